"""Finds the papers that a set names freely: by arXiv id, DOI or another identifier, by file name or by title."""

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
    """The papers of one library by every name that a set may have for them."""

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
        known = self._named.setdefault(mark, [])
        if paper not in known:
            known.append(paper)

    def find(self, name: str) -> tuple[str, ...]:
        """The ids of the papers that this names; several for versions of one work, none if it is not here.

        A file goes before an identifier, and that before a title. The version of an arXiv id does not matter.
        """
        for mark in _marks_of_name(name):
            if found := self._named.get(mark):
                return tuple(sorted(found))
        return ()


def resolved(evalset: EvalSet, library: Library) -> EvalSet:
    """The set with the files of the papers that it names; the set itself if it names files alone.

    Names of papers that are not in the library go to `unknown`. A question of which none is there is left out, and
    counted in `left_out`. Raises UsageError if the library has none of the set's papers.
    """
    if not evalset.is_by_name:
        return evalset
    lookup = PaperLookup(library)
    unknown: dict[str, None] = {}
    asked: list[Question] = []
    for question in evalset.questions:
        gold: list[Gold] = []
        for one in question.gold:
            papers = lookup.find(one.paper)
            if papers:
                part = one.part or lookup.files[papers[0]]
                gold += [replace(one, paper=lookup.files[paper], part=part) for paper in papers]
            else:
                unknown[one.paper] = None
        if gold or not question.gold:
            parts = {one.part for one in gold}
            asked.append(replace(question, gold=tuple(dict.fromkeys(gold)), every=question.every and len(parts) > 1))
    if not any(question.gold for question in asked):
        raise UsageError(
            f"None of the papers that {evalset.path.name} asks about is in the index: {_examples(unknown)}.",
            f"Name their folder: {command(f'evaluate {evalset.path} --papers FOLDER')}.",
        )
    left_out = len(evalset.questions) - len(asked)
    return replace(evalset, questions=tuple(asked), unknown=tuple(unknown), left_out=left_out)


def _examples(names: Iterable[str]) -> str:
    first = [name_line(name, 80) for name in islice(names, 4)]
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")


def _marks_of_name(name: str) -> Iterator[str]:
    yield f"file {name.casefold()}"
    if found := find_identifier(name):
        yield _identifier_mark(found.kind, found.value)
    if found_in_file := arxiv_id({}, (), name).value:  # "1706.03762v5.pdf", whatever the file is called here
        yield _identifier_mark("arxiv", found_in_file)
    if title := fold(name):
        yield f"title {title}"


def _identifier_mark(kind: str, value: str) -> str:
    return f"{kind} {bare_arxiv(value) if kind == 'arxiv' else value.casefold()}"


def _file_marks(name: str) -> Iterator[str]:
    """A file with and without its folder and its suffix, and the arXiv id that it is called by."""
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
    """The identifiers of the work that a paper is, in any version."""
    for kept in works.of_paper(library.database, paper.id):
        for mark in kept.marks():
            kind, _, value = mark.partition(" ")
            if kind != "title":
                yield _identifier_mark(kind, value)
