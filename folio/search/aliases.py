"""The name that everybody uses for a paper although its title may not have it, such as Raft.

It stands on the paper's first page, and is the name of its own that the paper uses most; or the first page gives it to
what it presents, or defines it as an acronym of the title. Others hardly use it. Titles and files: paper_names.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial

from folio.protocols import LexicalIndex
from folio.search.acronyms import long_form
from folio.store.library import Library
from folio.text import STOP_WORDS, plain_words, tokenize
from folio.types import Paper

# A paper is known by a name that it uses at least so often, and so many times as often as any other paper; fewer times
# do for one that it introduces on its first page.
_LEAST_USES, _TIMES_OTHERS, _INTRODUCED_TIMES = 10, 5, 2
# More papers than this are not read for a name; a word that more passages have is no name.
_MOST_READ, _MOST_PASSAGES = 5_000, 1_000
# Passages that show whether a word is written as a name, and the share of capitals that makes it one
_LOOKED_AT, _CAPITALS = 3, 0.9
# Characters of a text in which it says what it presents, and how often it names it there at least
_FRONT, _LEAST_IN_FRONT = 3_000, 2
_MORE_FREQUENT = 12  # names that a paper may use more often, because others use them too

_NAME = re.compile(r"(?<![\w-])[A-Z][\w-]*\w")

# A word -> the paper that is known by it
KnownBy = Callable[[str], Paper | None]


def known_by_none(word: str) -> None:
    """The default: no paper is known by another name than those of its title and file."""


@dataclass
class Aliases:
    """Says which paper is known by a word; remembers what it has looked up.

    papers_with: the papers that may use a word, those that use it most first. text_of: a paper's text.
    """

    papers_with: Callable[[str], Sequence[Paper]]
    text_of: Callable[[Paper], str]
    _known: dict[str, Paper | None] = field(default_factory=dict)
    _own: dict[str, Paper | None] = field(default_factory=dict)

    def __call__(self, word: str) -> Paper | None:
        """The paper that is known by this word; None if there is none. Case does not matter."""
        key = word.casefold()
        if key not in self._known:
            self._known[key] = self._paper_known_by(key)
        return self._known[key]

    def _paper_known_by(self, word: str) -> Paper | None:
        if len(word) < 3 or word in STOP_WORDS or not word[0].isalpha():
            return None
        first, most, others = self._uses(word)
        if first is None or most < max(_LEAST_USES, _INTRODUCED_TIMES * others) or _is_author(word, first):
            return None
        text = self.text_of(first)
        front = text[:_FRONT]
        if len(_as_word(word).findall(front)) < _LEAST_IN_FRONT:
            return None
        if _introduces(front, word) or _abbreviates(word, first.title, front):
            return first
        is_own = most >= _TIMES_OTHERS * others
        return first if is_own and self._is_most_frequent(word, most, first, text) else None

    def _uses(self, word: str) -> tuple[Paper | None, int, int]:
        """The paper that uses a name most, how often, and how often another does at most."""
        pattern = _as_word(word)
        papers = self.papers_with(word)
        uses = sorted(
            ((_uses(pattern, self.text_of(paper)), -place) for place, paper in enumerate(papers)), reverse=True
        )
        (most, place), (others, _) = (*uses, (0, 0), (0, 0))[:2]
        return (papers[-place] if most else None), most, others

    def _is_most_frequent(self, word: str, uses: int, paper: Paper, text: str) -> bool:
        """Whether the paper uses no other name more often that is its own, too."""
        counts = Counter(match.group() for match in _NAME.finditer(text))
        more = [name for name, count in counts.most_common(_MORE_FREQUENT + 1) if count > uses]
        return len(more) <= _MORE_FREQUENT and not any(
            self._is_own(name, paper) for name in more if name.casefold() not in {word, *STOP_WORDS}
        )

    def _is_own(self, name: str, paper: Paper) -> bool:
        key = name.casefold()
        if key not in self._own:
            first, most, others = self._uses(key)
            self._own[key] = first if most >= max(_LEAST_USES, _TIMES_OTHERS * others) else None
        own = self._own[key]
        return own is not None and own.id == paper.id


def _uses(pattern: re.Pattern[str], text: str) -> int:
    """How often a text has a word as a name; 0 if it often writes it without a capital."""
    found = [match.group()[0].isupper() for match in pattern.finditer(text)]
    return sum(found) if sum(found) >= _CAPITALS * len(found) else 0


def _is_author(word: str, paper: Paper) -> bool:
    return any(word in plain_words(str(name)) for name in paper.metadata.authors.value)


def _as_word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.I)


def _introduces(front: str, word: str) -> bool:
    """Whether a first page gives this name to what it presents: "presents the design of X, a system", "called X"."""
    name = rf"[\"“‘']?{re.escape(word)}(?![\w-])"
    presents = rf"\b(?:presents?|introduces?|proposes?|describes?)\s+(?:\w+\s+){{0,5}}?{name}"
    return (
        re.search(rf"{presents}[\"”’']?(?:[,.;:(—]|\s+(?:\(|is\b))|\b(?:called|named|dubbed)\s+{name}", front, re.I)
        is not None
    )


def _abbreviates(word: str, title: str, front: str) -> bool:
    """Whether a first page defines an acronym for most of the title: "Google File System (GFS)"."""
    defined = re.search(rf"\(\s*({re.escape(word)})s?\s*[),;]", front, re.I)
    long = set(tokenize(long_form(defined[1], [front]))) if defined else set()
    named = set(tokenize(title))
    return bool(long) and long <= named and 2 * len(long) >= len(named)


def aliases_in(library: Library) -> Aliases:
    """Reads all papers for a word, but none if they are too many. For a library whose index of words is not open."""
    few = library.counts()["papers"] <= _MOST_READ
    papers = cache(library.papers)
    return Aliases(lambda _: papers() if few else (), partial(_text, library))


def papers_with(word: str, library: Library, words: LexicalIndex) -> Sequence[Paper]:
    """The two papers that have a word in most passages, the one with more first; () for one that is not a name."""
    tokens = tokenize(word)
    if not tokens or not 1 < words.passages_with(tokens[0]) <= _MOST_PASSAGES:
        return ()
    ids = words.passages_of(tokens[0], _MOST_PASSAGES)
    shown = " ".join(text for _, _, text in library.read_chunks(ids[:_LOOKED_AT]))
    if not _uses(_as_word(word), shown):
        return ()
    counts = Counter(chunk.paper_id for chunk in library.chunks(ids).values())
    return library.papers_by_id(sorted(counts, key=lambda id: (-counts[id], id))[:2])


def indexed_aliases(library: Library, find: Callable[[str], Sequence[Paper]]) -> Aliases:
    """Reads two papers for a word at most. find: see `papers_with`."""
    return Aliases(find, partial(_text, library))


def _text(library: Library, paper: Paper) -> str:
    return library.text(paper.id, 0, paper.length)
