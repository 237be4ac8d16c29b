"""Finds the papers that a text names: by title, short name, acronym, file name, arXiv id, or a name in common use.

Names are whole words: BERT is neither RoBERTa nor Sentence-BERT.

A name in common use, such as Raft, need not be in the paper's title. It is on the paper's first page, and others hardly
use it; the paper uses no other name more, or the first page introduces it or defines it as an acronym of the title.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import PurePath

from folio.errors import NotKnown, UsageError, command
from folio.papers.identifiers import without_version
from folio.papers.model import Paper, SourceFile
from folio.protocols import LexicalIndex
from folio.question.parts import long_form
from folio.shown_text import name_line
from folio.store.library import Library
from folio.text import STOP_WORDS, one_line, plain_words, tokenize, without_ending

# A word, with the joiners inside names
_WORD = re.compile(r"\w+(?:[-.‑–/+]\w+)*\+*")
_NOT_ALNUM = re.compile(r"[\W_]+")
# What ends the short name at the beginning of a title
_AFTER_LEAD = re.compile(r":\s|\s[-–—]\s|\?\s")
MOST_LEAD_WORDS = 4
MOST_WORDS = 25  # in one name
MOST_QUESTION_WORDS = 400
# Words that begin file names and titles, but are no names
_NO_NAMES = STOP_WORDS | frozenset(
    "abstract appendix article book chapter copy document draft download file final full introduction main manual"
    " manuscript new notes original overview paper papers pdf poster preprint print proceedings report review revised"
    " scan slides study summary supplement supplementary survey text thesis title untitled version".split()
)

_ID = re.compile(r"[0-9a-f]{6,64}", re.I)
_LISTED = 5  # papers in an error
_SHOWN = 80  # characters of a name in an error
# Similar names in an error, and their smallest likeness to the typed name (difflib's ratio)
_SIMILAR, _NEAR = 3, 0.4

Named = tuple[str, int]  # a name without spaces and signs, and its rank: 0 is the surest

# A paper must use a common name at least this often, and this many times as often as any other paper; the last is for
# a name that it introduces on its first page.
_LEAST_USES, _TIMES_OTHERS, _INTRODUCED_TIMES = 10, 5, 2
# With more papers than this, none are read for a name; a word in more passages than this is no name
_MOST_READ, _MOST_PASSAGES = 5_000, 1_000
# Passages to check whether a word is written as a name, and the share of capitals that makes it a name
_LOOKED_AT, _CAPITALS = 3, 0.9
# Characters at the beginning of a text that say what it presents, and how often they must have the name
_FRONT, _LEAST_IN_FRONT = 3_000, 2
_MORE_FREQUENT = 12  # names that a paper may use more often than its own, because others use them too

_NAME = re.compile(r"(?<![\w-])[A-Z][\w-]*\w")

# The SHA-256 of papers/folio-sample.pdf, which is its id in a library. scripts/make_sample.py makes that file.
SAMPLE_ID = "377fb8174cfddaec8cbf10b33de9f5784705d4f0468979abd3735d4bdef3841c"
_FOLIO = re.compile(r"\bfolio\b", re.I)

# Word -> the paper that it is a common name of
KnownBy = Callable[[str], Paper | None]


def known_by_none(word: str) -> None:
    """The default: papers have no names but those of their title and file."""


class PaperNames:
    """The names of some papers."""

    def __init__(self, papers: Sequence[Paper], known_by: KnownBy = known_by_none) -> None:
        """known_by: for a word that is no other name of these papers; see Aliases."""
        self._names: dict[str, list[tuple[int, Paper]]] = {}
        for paper in papers:
            for name, rank in set(_names(paper)):
                self._names.setdefault(name, []).append((rank, paper))
        self._ids = frozenset(paper.id for paper in papers)
        self._known_by = known_by

    def meant(self, question: str, *, by_use: bool = True) -> tuple[Paper, ...]:
        """The papers that a question names, in the question's order; () if it names none.

        A longer name wins over a shorter one inside it ("Sentence-BERT" names no paper called BERT), and a paper's own
        name over an acronym, a word of a title, or a common name. by_use: whether common names count.
        """
        words = [_plain(match.group()) for match in _WORD.finditer(question)][:MOST_QUESTION_WORDS]
        found: list[tuple[int, list[Paper]]] = []
        taken: set[int] = set()
        for length in range(min(MOST_WORDS, len(words)), 0, -1):
            for start in range(len(words) - length + 1):
                place = range(start, start + length)
                if taken.isdisjoint(place) and (meant := self._meant(words[start : start + length], by_use)):
                    taken.update(place)
                    found.append((start, meant))
        in_order = (paper for _, meant in sorted(found, key=lambda each: each[0]) for paper in meant)
        return tuple({paper.id: paper for paper in in_order}.values())

    def called(self, name: str) -> tuple[Paper, ...]:
        """The papers that have this whole name, of the surest rank only; () if there is none."""
        words = [match.group() for match in _WORD.finditer(name)]
        return tuple(self._meant(words, by_use=True)) if words else ()

    def _meant(self, words: Sequence[str], by_use: bool) -> list[Paper]:
        """The papers that these words name together, of the surest rank only."""
        found = _meant(words, self._names)
        if found or not by_use or len(words) > 1 or _is_common(words[0]):
            return found
        known = self._known_by(words[0])
        return [known] if known is not None and known.id in self._ids else []


def papers_named(
    name: str, papers: Sequence[Paper], files: Mapping[str, Sequence[str]], known_by: KnownBy = known_by_none
) -> list[Paper]:
    """The papers that a user means by a name. Case, accents and punctuation do not matter.

    The first of these that matches: a citation's or a bibliography's key, a file, a title or an arXiv number; the
    beginning of an id; a short name, as in a question; all words of a name that the title and files have, the last
    perhaps incomplete; a common name. files: paper id -> file names, see `file_names`.
    """
    wanted, words = plain_words(name), _parts(name)
    if not words:
        return []
    exact = [paper for paper in papers if wanted in map(plain_words, _exact_names(paper, files.get(paper.id, ())))]
    if not exact and _ID.fullmatch(name):
        exact = [paper for paper in papers if paper.id.startswith(name.lower())]
    if exact or (exact := list(PaperNames(papers).called(name))):
        return exact
    matches = [
        paper
        for paper in papers
        if _has_words(_parts(" ".join([paper.title, paper.arxiv, paper.file, *files.get(paper.id, ())])), words)
    ]
    return matches or list(PaperNames(papers, known_by).called(name))


def the_paper(
    name: str, papers: Sequence[Paper], files: Mapping[str, Sequence[str]], known_by: KnownBy = known_by_none
) -> Paper:
    """The paper that a name means, see `papers_named`. Raises UsageError for several papers, NotKnown for none."""
    matches = papers_named(name, papers, files, known_by)
    if not matches:
        raise unknown_paper(name, papers, files)
    if len(matches) == 1:
        return matches[0]
    listed = "; ".join(f"{name_line(paper.file, 60)} ({paper.id[:12]})" for paper in matches[:_LISTED])
    more = f" and {len(matches) - _LISTED} more" if len(matches) > _LISTED else ""
    raise UsageError(
        f"“{name_line(name, _SHOWN)}” fits {len(matches)} papers: {listed}{more}.",
        "Give the file name or the id of one.",
    )


def paper_in(library: Library, name: str) -> Paper:
    """The paper of a library that a name means: see `the_paper`."""
    with library.reading():
        return the_paper(name, library.papers(), file_names(library.files()), aliases_in(library))


def unknown_paper(name: str, papers: Sequence[Paper], files: Mapping[str, Sequence[str]]) -> NotKnown:
    """The error for a name without a paper."""
    known = {known for paper in papers for known in (*files.get(paper.id, [paper.file]), paper.title)}
    return NotKnown(
        f"No paper in the index is called “{name_line(name, _SHOWN)}”.{similar_names(name, known)}",
        f"Give its key, its file, words of its title or the beginning of its id: `{command('papers')}` lists them.",
    )


def similar_names(wanted: str, known: Iterable[str]) -> str:
    """A sentence for an error: the known names similar to the wanted one; "" if there are none."""
    folded = {" ".join(plain_words(name)) or name: name for name in sorted(known) if name}
    near = difflib.get_close_matches(" ".join(plain_words(wanted)) or wanted, folded, _SIMILAR, _NEAR)
    return f" Similar names: {', '.join(name_line(folded[name], _SHOWN) for name in near)}." if near else ""


def file_names(files: Iterable[SourceFile]) -> dict[str, list[str]]:
    """Paper id -> the names of its files."""
    names: dict[str, list[str]] = {}
    for file in files:
        names.setdefault(file.sha256, []).append(file.name)
    return names


def _exact_names(paper: Paper, files: Sequence[str]) -> Iterator[str]:
    """Keys, arXiv numbers, the title, and file names with and without folder and suffix."""
    yield from (paper.key, paper.metadata.citation_key.value, paper.arxiv, without_version(paper.arxiv), paper.title)
    if paper.arxiv:
        yield f"arXiv {without_version(paper.arxiv)}"
    for file in {paper.file, *files}:
        path = PurePath(file)
        yield from (file, path.name, without_ending(file), path.stem)


def _parts(text: str) -> list[str]:
    """The words of a text and of the file names in it: "raft_final" has two."""
    return plain_words(text.replace("_", " "))


def _has_words(words: Sequence[str], wanted: Sequence[str]) -> bool:
    *whole, last = wanted
    return set(whole) <= set(words) and any(word.startswith(last) for word in words)


def _meant(words: Sequence[str], names: dict[str, list[tuple[int, Paper]]]) -> list[Paper]:
    """The papers that these words name together, of the surest rank only."""
    candidates = names.get(_squashed(" ".join(words)), [])
    if len(words) == 1 and not candidates and words[0].endswith("s"):  # "CRDTs"
        words = [words[0][:-1]]
        candidates = names.get(_squashed(words[0]), [])
    allowed = [(rank, paper) for rank, paper in candidates if rank != _ACRONYM or _is_acronym(words)]
    best = min((rank for rank, _ in allowed), default=0)
    return [paper for rank, paper in allowed if rank == best]


_OWN, _ACRONYM, _IN_TITLE = range(3)  # ranks


def _names(paper: Paper) -> Iterator[Named]:
    title = one_line(paper.title)
    stem = PurePath(paper.file).stem
    for own in (title, stem, paper.file, paper.arxiv, paper.key, *_short_names(title), *_file_names(stem)):
        words = _WORD.findall(own)
        if words and len(words) <= MOST_WORDS and not all(_is_common(word) for word in words):
            yield _squashed(own), _OWN
    lead, *rest = _AFTER_LEAD.split(title, maxsplit=1)
    acronym = _acronym(lead)
    if len(acronym) >= 3:
        yield acronym, _ACRONYM
    if not rest:
        for word in _name_words(title):
            yield _squashed(word), _IN_TITLE


def _short_names(title: str) -> Iterator[str]:
    """A short beginning of a title up to a colon, a name in brackets, the title without its article."""
    lead, *rest = _AFTER_LEAD.split(title, maxsplit=1)
    words = lead.split()
    if rest and len(words) <= MOST_LEAD_WORDS:
        yield lead
    yield from (name for name in re.findall(r"\(([\w-]{2,12})\)", title) if sum(map(str.isupper, name)) > 1)
    if title[:4].casefold() == "the " and len(title.split()) > 2:
        yield title[4:]


def _file_names(stem: str) -> Iterator[str]:
    """A file's name without years and versions: "bert-2018_v2" is bert."""
    words = [word for word in re.split(r"[\s_.-]+", stem) if not re.fullmatch(r"(?:19|20)\d\d|v\d+|\d", word)]
    if words and not any(word.isdigit() for word in words) and len(words) <= MOST_LEAD_WORDS:
        yield " ".join(words)


def _acronym(title: str) -> str:
    """The first letters of a title's words without stop words: "The Google File System" is gfs."""
    words = [word for word in _WORD.findall(title) if word.casefold() not in STOP_WORDS]
    return "".join(word[0] for word in words).casefold() if len(words) <= 8 else ""


def _name_words(title: str) -> Iterator[str]:
    """The words of a title that can only be names: PageRank, GPT-3."""
    for word in _WORD.findall(title):
        capitals = sum(map(str.isupper, word))
        if capitals > 1 and not title.isupper() and (not word.isupper() or len(word) > 2):
            yield word


def _is_acronym(words: Sequence[str]) -> bool:
    """Whether a word is written as an acronym: in capitals, or without a vowel, which no English word is."""
    (word, *more) = words
    return not more and (word.rstrip("s").isupper() or not re.search(r"[aeiouy\d]", word, re.I))


def _is_common(word: str) -> bool:
    return word.casefold() in _NO_NAMES or len(word) < 2


def _plain(word: str) -> str:
    """A word of a question without an ending that is added to names."""
    return re.sub(r"(?:-based|-like|-style)$", "", word)


def _squashed(name: str) -> str:
    # Not text.fold: names that differ in an accent are two.
    return _NOT_ALNUM.sub("", name).casefold()


@dataclass
class Aliases:
    """Looks up the paper that a word is a common name of, and remembers the result.

    papers_with: word -> the papers that may use it, those with most uses first. text_of: a paper's text.
    """

    papers_with: Callable[[str], Sequence[Paper]]
    text_of: Callable[[Paper], str]
    _known: dict[str, Paper | None] = field(default_factory=dict)
    _own: dict[str, Paper | None] = field(default_factory=dict)

    def __call__(self, word: str) -> Paper | None:
        """The paper that this word is a common name of; None if there is none. Case does not matter."""
        key = word.casefold()
        if key not in self._known:
            self._known[key] = self._paper_known_by(key)
        return self._known[key]

    def _paper_known_by(self, word: str) -> Paper | None:
        if len(word) < 3 or word in STOP_WORDS or not word[0].isalpha():
            return None
        first, most, others = self._most_uses(word)
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

    def _most_uses(self, word: str) -> tuple[Paper | None, int, int]:
        """The paper that uses a name most, its number of uses, and the largest number of another paper."""
        pattern = _as_word(word)
        papers = self.papers_with(word)
        uses = sorted(
            ((_uses(pattern, self.text_of(paper)), -place) for place, paper in enumerate(papers)), reverse=True
        )
        (most, place), (others, _) = (*uses, (0, 0), (0, 0))[:2]
        return (papers[-place] if most else None), most, others

    def _is_most_frequent(self, word: str, uses: int, paper: Paper, text: str) -> bool:
        """Whether the paper uses no other name of its own more often."""
        counts = Counter(match.group() for match in _NAME.finditer(text))
        more = [name for name, count in counts.most_common(_MORE_FREQUENT + 1) if count > uses]
        return len(more) <= _MORE_FREQUENT and not any(
            self._is_own(name, paper) for name in more if name.casefold() not in {word, *STOP_WORDS}
        )

    def _is_own(self, name: str, paper: Paper) -> bool:
        key = name.casefold()
        if key not in self._own:
            first, most, others = self._most_uses(key)
            self._own[key] = first if most >= max(_LEAST_USES, _TIMES_OTHERS * others) else None
        own = self._own[key]
        return own is not None and own.id == paper.id


def _uses(pattern: re.Pattern[str], text: str) -> int:
    """The number of times that a text has a word as a name; 0 if the word often has no capital."""
    capitals = [match.group()[0].isupper() for match in pattern.finditer(text)]
    return sum(capitals) if sum(capitals) >= _CAPITALS * len(capitals) else 0


def _is_author(word: str, paper: Paper) -> bool:
    return any(word in plain_words(str(name)) for name in paper.metadata.authors.value)


def _as_word(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.I)


def _introduces(front: str, word: str) -> bool:
    """Whether a first page introduces this name: "presents the design of X, a system", "called X"."""
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
    """The common names in a library without its open BM25 index: reads all papers for a word, or none if too many."""
    few = library.counts()["papers"] <= _MOST_READ
    papers = cache(library.papers)
    return Aliases(lambda _: papers() if few else (), partial(_text, library))


def papers_with(word: str, library: Library, words: LexicalIndex) -> Sequence[Paper]:
    """The two papers with the most passages that have a word, best first; () for a word that is not a name."""
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
    """The common names in a library: reads at most two papers for a word. find: see `papers_with`."""
    return Aliases(find, partial(_text, library))


def _text(library: Library, paper: Paper) -> str:
    return library.text(paper.id, 0, paper.length)


def names_sample(question: str) -> bool:
    """Whether a question names Folio, the subject of its sample paper, or the file."""
    return _FOLIO.search(question) is not None
