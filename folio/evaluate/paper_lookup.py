"""Looks up the papers that a set names: by arXiv id, DOI or another identifier, by file name or by title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import PurePath

from folio.errors import UsageError, command
from folio.evaluate.dataset import EvalSet, Gold, Question
from folio.identifiers import bare_arxiv, find_identifier
from folio.pdf.identifiers import arxiv_id
from folio.shown_text import name_line
from folio.store import works
from folio.store.library import Library
from folio.text import fold
from folio.types import Paper


class PaperLookup:
    """The papers of one library by all their possible names."""

    def __init__(self, library: Library) -> None:
        self.files: dict[str, str] = {}  # paper id -> the name of a file
        self._named: dict[str, list[str]] = {}  # kind and name -> paper ids
        papers = {paper.id: paper for paper in library.papers()}
        for file in library.files():
            self.files.setdefault(file.sha256, file.name)
            for mark in _file_marks(file.name):
                self._add(mark, file.sha256)
        for paper in papers.values():
            for mark in (*_paper_marks(paper), *_work_marks(library, paper)):
                self._add(mark, paper.id)

    def _add(self, mark: str, paper: str) -> None:
        papers = self._named.setdefault(mark, [])
        if paper not in papers:
            papers.append(paper)

    def find(self, name: str) -> tuple[str, ...]:
        """The ids of the papers with a name: several for versions of one work, none if the library has none of them.

        Files come before identifiers, and identifiers before titles. The version of an arXiv id does not matter.
        """
        for mark in _marks_of_name(name):
            if papers := self._named.get(mark):
                return tuple(sorted(papers))
        return ()


def resolved(evalset: EvalSet, library: Library) -> EvalSet:
    """The set with its papers named by their files; the set itself if it already names only files.

    Names of papers that are not in the library go to `unknown`. A question none of whose papers is in the library is
    left out, and counted in `left_out`. Raises UsageError if the library has none of the set's papers.
    """
    if not evalset.is_by_name:
        return evalset
    lookup = PaperLookup(library)
    unknown: dict[str, None] = {}
    questions: list[Question] = []
    for question in evalset.questions:
        gold: list[Gold] = []
        for entry in question.gold:
            papers = lookup.find(entry.paper)
            if papers:
                part = entry.part or lookup.files[papers[0]]
                gold += [replace(entry, paper=lookup.files[paper], part=part) for paper in papers]
            else:
                unknown[entry.paper] = None
        if gold or not question.gold:
            parts = {entry.part for entry in gold}
            questions.append(
                replace(question, gold=tuple(dict.fromkeys(gold)), every=question.every and len(parts) > 1)
            )
    if not any(question.gold for question in questions):
        raise UsageError(
            f"None of the papers that {evalset.path.name} asks about is in the index: {_examples(unknown)}.",
            f"Name their folder: {command(f'evaluate {evalset.path} --papers FOLDER')}.",
        )
    left_out = len(evalset.questions) - len(questions)
    return replace(evalset, questions=tuple(questions), unknown=tuple(unknown), left_out=left_out)


def _examples(names: Iterable[str]) -> str:
    first = [name_line(name, 80) for name in islice(names, 4)]
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")


def _marks_of_name(name: str) -> Iterator[str]:
    yield f"file {name.casefold()}"
    if identifier := find_identifier(name):
        yield _identifier_mark(identifier.kind, identifier.value)
    if arxiv := arxiv_id({}, (), name).value:  # "1706.03762v5.pdf", even if the library's file has another name
        yield _identifier_mark("arxiv", arxiv)
    if title := fold(name):
        yield f"title {title}"


def _identifier_mark(kind: str, value: str) -> str:
    return f"{kind} {bare_arxiv(value) if kind == 'arxiv' else value.casefold()}"


def _file_marks(name: str) -> Iterator[str]:
    """The marks of a file: its name with and without folder and suffix, and an arXiv id in the name."""
    last = PurePath(name)
    yield from (f"file {each.casefold()}" for each in (name, last.name, last.stem))
    if arxiv := arxiv_id({}, (), last.name).value:
        yield _identifier_mark("arxiv", arxiv)


def _paper_marks(paper: Paper) -> Iterator[str]:
    about = paper.metadata
    if about.arxiv.value:
        yield _identifier_mark("arxiv", about.arxiv.value)
    if about.doi.value:
        yield _identifier_mark("doi", about.doi.value)
    if title := fold(paper.title):
        yield f"title {title}"


def _work_marks(library: Library, paper: Paper) -> Iterator[str]:
    """The identifiers of a paper's work, in any version."""
    for version in works.of_paper(library.database, paper.id):
        for mark in version.marks():
            kind, _, value = mark.partition(" ")
            if kind != "title":
                yield _identifier_mark(kind, value)
