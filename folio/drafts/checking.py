"""A draft -> each of its sentences that cites a paper of the library, checked against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from folio.bibliography.imports import decoded, read_bibliography
from folio.bibliography.word import read_paragraphs
from folio.drafts import latex, markdown
from folio.drafts.cited import CitedPapers, Library
from folio.drafts.claims import LONGEST_CLAIM, CheckedClaim, ClaimChecker
from folio.drafts.draft import Cited, Draft, DraftSentence, sentences
from folio.drafts.judging import Verdict
from folio.errors import UsageError
from folio.papers.model import Paper, Progress
from folio.store import citation_names
from folio.store import library as store
from folio.system.files import open_regular
from folio.text import shorten

LARGEST_MB, LONGEST = 50, 5_000_000  # of a file; characters of its text
MOST_SENTENCES = 5_000
_BY_ENDING: dict[str, Literal["markdown", "latex", "word"]] = {
    ".md": "markdown", ".markdown": "markdown", ".qmd": "markdown", ".rmd": "markdown", ".txt": "markdown",
    ".tex": "latex", ".ltx": "latex", ".docx": "word",
}  # fmt: skip
_TROUBLE: frozenset[Verdict] = frozenset({"contradicted", "number differs", "not found"})


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of a draft, and what the papers that it cites say of it."""

    line: int
    text: str
    # Of the whole sentence; or of the part before each citation, if each is supported by its own paper and no paper
    # supports the whole
    claims: tuple[CheckedClaim, ...]
    not_here: tuple[Cited, ...] = ()  # what it also cites

    @property
    def verdict(self) -> Verdict:
        verdicts = [claim.verdict for claim in self.claims]
        return "supported" if "supported" in verdicts and len(verdicts) > 1 else verdicts[0]

    @property
    def is_trouble(self) -> bool:
        """Whether it should be looked at. What is not found may be in a paper that it cites and that is not here."""
        return self.verdict in _TROUBLE and not (self.verdict == "not found" and self.not_here)


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft that was checked."""

    file: str
    sentences: tuple[CheckedSentence, ...]
    not_here: tuple[tuple[int, Cited], ...]  # what it cites that is not in the library, with the line, each once
    problems: tuple[str, ...] = ()

    @property
    def trouble(self) -> tuple[CheckedSentence, ...]:
        return tuple(sentence for sentence in self.sentences if sentence.is_trouble)


def read_draft(path: Path) -> Draft:
    """A draft from a file, with the .bib files that it names beside it. Raises UsageError if it cannot be read."""
    kind = _BY_ENDING.get(path.suffix.casefold())
    if kind is None:
        raise UsageError(
            f"{path.name} is no draft that Folio reads.", "Name a file in Markdown (.md), LaTeX (.tex) or Word (.docx)."
        )
    data = _bytes(path)
    if kind == "word":
        return markdown.read_plain(_sane("\n\n".join(read_paragraphs(data, path.name)), path))
    text = _sane(decoded(data), path)
    if kind == "markdown":
        return _with_bibliographies(markdown.read(text), path, markdown.bib_files(text))
    return _with_bibliographies(latex.read(text), path, latex.bib_files(text))


def _bytes(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST_MB * 10**6 + 1)
    except OSError as error:
        why = error.strerror or "it is no file"
        raise UsageError(f"{path} cannot be read: {why}.", "Check the path and its permissions.") from error
    if len(data) > LARGEST_MB * 10**6:
        raise UsageError(f"{path.name} is larger than {LARGEST_MB} MB.", "Check it in parts.")
    return data


def _sane(text: str, path: Path) -> str:
    """The text of a draft. Raises UsageError for what is none, and for one that is too long."""
    if "\x00" in text:
        raise UsageError(f"{path.name} is not text.", "Save it as UTF-8.")
    if len(text) > LONGEST:
        raise UsageError(f"{path.name} has more than {LONGEST:,} characters.", "Check it in parts.")
    return text


def _with_bibliographies(draft: Draft, path: Path, names: Sequence[str]) -> Draft:
    """A draft with the entries of the bibliographies that it names; the first entry with a key counts."""
    entries, problems = list(draft.bibliography), list(draft.problems)
    for name in names[:20]:
        try:
            entries += read_bibliography(path.parent / name).entries
        except (UsageError, OSError, ValueError) as error:
            problems.append(getattr(error, "happened", f"The bibliography {shorten(name, 100)} cannot be read."))
    return replace(draft, bibliography=tuple(entries), problems=tuple(problems))


def check_draft(draft: Draft, file: str, checker: ClaimChecker, progress: Progress) -> CheckedDraft:
    """Check the sentences of a draft. Raises as ClaimChecker.check does."""
    cited = CitedPapers(draft, known_papers(checker.library))
    found = list(islice(sentences(draft), MOST_SENTENCES + 1))
    problems = list(draft.problems)
    if len(found) > MOST_SENTENCES:
        problems.append(f"Only the first {MOST_SENTENCES:,} sentences that cite something are checked.")
    checked: list[CheckedSentence] = []
    not_here: dict[Cited, int] = {}
    for place, sentence in enumerate(found[:MOST_SENTENCES]):
        progress("checking", place, min(len(found), MOST_SENTENCES))
        absent = tuple(each for each in sentence.cited if not cited.of(each))
        for each in absent:
            not_here.setdefault(each, sentence.line)
        if len(absent) < len(sentence.cited):
            checked.append(replace(_checked(sentence, cited.of, checker), not_here=absent))
    return CheckedDraft(file, tuple(checked), tuple((line, each) for each, line in not_here.items()), tuple(problems))


def known_papers(library: store.Library) -> Library:
    """The papers of a library, by what a draft may call them."""
    now = library.citation_keys()  # may store new ones
    with library.reading():
        given = citation_names.keys(library.database)
        keys = {paper: {*given.get(paper, ()), key} for paper, key in now.items()}
        return Library(library.papers(), keys, {file.path: file.sha256 for file in library.files()})


def _checked(
    sentence: DraftSentence, papers_of: Callable[[Cited], list[Paper]], checker: ClaimChecker
) -> CheckedSentence:
    """A sentence, checked as a whole; else in the parts that each cite something of their own."""
    whole = checker.check(shorten(sentence.text, LONGEST_CLAIM), _papers(sentence.cited, papers_of))
    parts = [(text, papers) for text, cites in sentence.parts if (papers := _papers(cites, papers_of))]
    if not whole.is_supported and len(parts) == len(sentence.parts) > 1:
        claims = tuple(_supported(parts, checker))
        if len(claims) == len(parts):
            return CheckedSentence(sentence.line, sentence.text, claims)
    return CheckedSentence(sentence.line, sentence.text, (whole,))


def _supported(parts: Sequence[tuple[str, list[Paper]]], checker: ClaimChecker) -> Iterator[CheckedClaim]:
    """The parts of a sentence, as long as they are supported."""
    for text, papers in parts:
        claim = checker.check(shorten(text, LONGEST_CLAIM), papers)
        if not claim.is_supported:
            return
        yield claim


def _papers(cites: Sequence[Cited], papers_of: Callable[[Cited], list[Paper]]) -> list[Paper]:
    return list({paper.id: paper for each in cites for paper in papers_of(each)}.values())
