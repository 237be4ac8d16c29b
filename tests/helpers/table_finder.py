"""A finder of cells that needs no model: the sentences of a paper with all words of a column's question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from folio.answer_types import Quote
from folio.papers.model import Paper
from folio.store.library import Library
from folio.table.cell import Cell, Column, Finding

_SENTENCE = re.compile(r"[^.?!\n]+[.?!]?")


@dataclass
class WordFinder:
    """Every sentence on one page with all words of the question is a finding, in the order of the paper.

    before: called with the paper and the column before each cell.
    """

    library: Library
    before: Callable[[Paper, Column], None] = lambda paper, column: None
    asked: list[tuple[str, str]] = field(default_factory=list)  # paper and column of each cell, as they were asked

    def fill(
        self, paper: Paper, columns: Sequence[Column], check_cancelled: Callable[[], None]
    ) -> Iterator[tuple[int, Cell]]:
        for place, column in enumerate(columns):
            check_cancelled()
            self.before(paper, column)
            self.asked.append((paper.id, column.name))
            yield place, Cell(tuple(self._findings(paper, column)))

    def _findings(self, paper: Paper, column: Column) -> Iterator[Finding]:
        text = self.library.text(paper.id, 0, paper.length)
        wanted = (column.question or column.name).casefold().split()
        for match in _SENTENCE.finditer(text):
            words = match[0].strip()
            start = match.start() + match[0].index(words) if words else 0
            if words and all(word in words.casefold() for word in wanted):
                first, last = paper.pages.pages_of(start, start + len(words))
                if first == last:
                    number = re.search(r"\d+", words) if column.kind == "number" else None
                    quote = Quote(paper, start, start + len(words), words)
                    yield Finding(quote, number[0] if number else "", float(number[0]) if number else None)
