"""Citation keys: "otter2021sea". A key that was given to a paper stays its key. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

from folio.papers.label import letters
from folio.papers.model import Paper
from folio.text import STOP_WORDS, fold, without_accents

_KEY = re.compile(r"[^\s,{}()=\"#%'\\~@\x00-\x1f\x7f]{1,200}")
OTHERS = re.compile(r"(?:,?\s+|^)et\.?\s+al\.?$", re.I)


def citation_keys(papers: Sequence[Paper], given: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Paper id -> its citation key, among all papers of a library.

    A key that a person or a reference manager chose comes first, then the key that a paper was given last, then a new
    one. New keys that are equal get letters, in the order of titles, copies last. No paper gets a key that another
    paper ever had, unless it was chosen for it.

    given: paper id -> its keys until now, the last one at the end; also of papers that are not in the library.
    """
    owner = {key.casefold(): id for id, keys in given.items() for key in keys}
    keys: dict[str, str] = {}
    taken: set[str] = set()

    def is_free(key: str, paper: Paper) -> bool:
        return key.casefold() not in taken and owner.get(key.casefold(), paper.id) == paper.id

    def give(paper: Paper, key: str) -> None:
        keys[paper.id] = key
        taken.add(key.casefold())

    in_order = sorted(papers, key=lambda paper: (paper.is_copy, paper.title, paper.id))
    # If several papers have the same chosen key, it stays with the one that was given it.
    for paper in sorted(in_order, key=lambda paper: owner.get(chosen_key(paper).casefold()) != paper.id):
        if (chosen := chosen_key(paper)) and chosen.casefold() not in taken:
            give(paper, chosen)
    for paper in in_order:
        last = last_key(given, paper.id)
        if paper.id not in keys and last and last.casefold() not in taken:
            give(paper, last)
    new = [paper for paper in in_order if paper.id not in keys]
    wanted = Counter(own_key(paper).casefold() for paper in new if not paper.is_copy)
    added: dict[str, Iterator[int]] = {}
    for paper in new:
        key = own_key(paper)
        numbers = added.setdefault(key.casefold(), count())
        has_letters = wanted[key.casefold()] > 1 or f"{key}a".casefold() in owner
        if has_letters or not is_free(key, paper):
            key = next(made for n in numbers if is_free(made := f"{key}{letters(n)}", paper))
        give(paper, key)
    return keys


def last_key(given: Mapping[str, Collection[str]], paper: str) -> str:
    """The key that a paper was given last, "" if none. given: see citation_keys."""
    return next(reversed([*given.get(paper, ())]), "")


def own_key(paper: Paper) -> str:
    """The chosen key; else author, year and first content word of the title, if they are sure; else from the file."""
    if chosen := chosen_key(paper):
        return chosen
    about = paper.metadata
    authors, title = (about.authors.value if about.authors.sure else ()), about.title.value if about.title.sure else ""
    family = _ascii(OTHERS.sub("", authors[0].family)) if authors else ""
    words = (word for word in re.findall(r"\w+", title) if word.lower() not in STOP_WORDS)
    first = next((plain for word in words if (plain := _ascii(word))), "")
    if family or first:
        return f"{family}{(about.year.value if about.year.sure else None) or ''}{first}"
    return _ascii(paper.key) or f"paper{paper.id[:8]}"


def is_key_for(key: str, paper: Paper) -> bool:
    """Whether a key is made as people and reference managers make them: the first author's family name, the year, and
    perhaps words of the title or a letter: "rose2020", "rose_etal_2020b", "roseZeroTrust2020"."""
    authors = paper.metadata.authors.value
    family = _ascii(OTHERS.sub("", authors[0].family)) if authors else ""
    if not family or not paper.year:
        return False
    made = re.fullmatch(rf"{re.escape(family)}(?:etal)?([a-z]*){paper.year}([a-z]*)", _ascii(key))
    return made is not None and all(
        words in _ascii(paper.title) for words in (made[1], made[2] if len(made[2]) > 1 else "")
    )


def chosen_key(paper: Paper) -> str:
    """The key that a person, Zotero or a bibliography chose; "" for none, or one that BibTeX cannot read."""
    chosen = paper.metadata.citation_key.value
    return chosen if _KEY.fullmatch(chosen) and chosen.isprintable() else ""


def _ascii(text: str) -> str:
    """The letters and digits of a text, in lower case, without diacritics."""
    return "".join(filter(str.isascii, fold(without_accents(text))))[:100]
