"""Cells of evidence tables against what people marked: right, wrong, not found though there, rightly not found.

python benchmarks/tables.py cells.jsonl                       cells of papers in the index; others are left out
python benchmarks/tables.py evidence/dev.json                 trial reports: each prompt is a cell of its report
python benchmarks/tables.py evidence/dev.json --limit 50      some of them, spread over the set
python benchmarks/tables.py cells.jsonl --out found.jsonl     writes what was found, to read

A line of a set of cells has file, column, question, kind, unit, choices, and gold: a list of {"page", "quote"}.
Without gold the paper says nothing of it. A cell is right if one of its quotes overlaps a gold quote; on trial reports,
a span that annotators marked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.app import App
from folio.cli.command import positive_int, run_command
from folio.cli.evaluate import spread
from folio.console import output, progress_bar
from folio.evaluate import dataset, runner
from folio.evaluate.tables import Table, print_tables
from folio.papers.model import Paper
from folio.store.library import Library
from folio.table.cell import Cell, Column, ColumnKind
from folio.table.finder import CellFinder

Span = tuple[int, int]
RIGHT, WRONG, MISSED, EMPTY = "right", "wrong", "not found though there", "rightly not found"
CLOSEST = "of these the closest place right"
LEAST_SHARED = 20  # characters that a quote and a gold quote share; all of a shorter one


@dataclass(frozen=True, slots=True)
class Asked:
    """A cell of a set: its paper's file, its column, and where the answer is; no place where the paper has none."""

    file: str
    column: Column
    gold: tuple[str | Span, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell that was found, and what it is worth."""

    asked: Asked
    cell: Cell
    verdict: str
    is_near: bool  # whether its closest place overlaps a gold quote
    seconds: float


def cells_of(path: Path) -> list[Asked]:
    """The cells of a set in lines of JSON."""
    asked = []
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        said: dict[str, Any] = json.loads(line)
        kind: ColumnKind = said.get("kind") or "text"
        column = Column(
            said["column"], said.get("question", ""), kind, said.get("unit") or "", tuple(said.get("choices") or ())
        )
        asked.append(Asked(said["file"], column, tuple(gold["quote"] for gold in said["gold"])))
    return asked


def prompts_of(asked: dataset.EvalSet) -> list[Asked]:
    """The prompts of trial reports as cells."""
    return [
        Asked(
            question.gold[0].paper,
            Column(question.text[:80], question.text),
            tuple((gold.start, gold.start + len(gold.quote)) for gold in question.gold if gold.start is not None),
        )
        for question in asked.questions
    ]


def judged(finder: CellFinder, papers: dict[str, Paper], asked: Sequence[Asked]) -> Iterator[Judged]:
    """Each cell, found and judged; those of a paper together."""
    for file in dict.fromkeys(one.file for one in asked):
        own = [one for one in asked if one.file == file]
        paper = papers[Path(file).name]
        text = finder.retriever.text(paper.id, 0, paper.length)
        begun = time.process_time()
        for place, cell in finder.fill(paper, [one.column for one in own]):
            golds = [span for gold in own[place].gold for span in _spans(text, gold)]
            is_near = cell.closest is not None and _overlaps(cell.closest.span, golds)
            yield Judged(own[place], cell, _verdict(cell, golds), is_near, time.process_time() - begun)
            begun = time.process_time()


def _spans(text: str, gold: str | Span) -> list[Span]:
    """Where a gold quote is in a text."""
    if not isinstance(gold, str):
        return [gold]
    # A page may break a word at the end of a line, which the text of the index has whole.
    whole = re.sub(r"(\w)[-\u2010\u00ad]\s+(?=\w)", r"\1", normalize("NFKC", gold))
    words = r"\W*".join(map(re.escape, re.findall(r"\w", whole)))
    return [match.span() for match in re.finditer(words, text, re.I)]


def _verdict(cell: Cell, golds: Sequence[Span]) -> str:
    if not cell.findings:
        return MISSED if golds else EMPTY
    return RIGHT if any(_overlaps(finding.quote.span, golds) for finding in cell.findings) else WRONG


def _overlaps(span: Span, golds: Sequence[Span]) -> bool:
    start, end = span
    return any(
        min(end, last) - max(start, first) >= min(LEAST_SHARED, last - first, end - start) for first, last in golds
    )


def table(name: str, found: Sequence[Judged]) -> Table:
    """A line for each column that several papers were asked, and one for all."""
    by_column: dict[str, list[Judged]] = {}
    for one in found:
        by_column.setdefault(one.asked.column.name, []).append(one)
    groups = [(column, own) for column, own in by_column.items() if len(own) > 1 and len(by_column) < 30]
    head = ("column", "cells", RIGHT, WRONG, MISSED, CLOSEST, EMPTY, "s of CPU a cell")
    rows = []
    for column, own in [*groups, ("all", list(found))]:
        counts = Counter(one.verdict for one in own)
        seconds = sum(one.seconds for one in own) / max(1, len(own))
        near = sum(one.is_near for one in own)
        verdicts = [counts[RIGHT], counts[WRONG], counts[MISSED], near, counts[EMPTY]]
        rows.append((column, str(len(own)), *map(str, verdicts), f"{seconds:.2f}"))
    return Table(name, head, tuple(rows))


@contextmanager
def opened(app: App, path: Path, limit: int | None) -> Iterator[tuple[CellFinder, dict[str, Paper], list[Asked]]]:
    """A finder over the papers of a set, the papers by file, and its cells."""
    if path.suffix == ".json":
        evalset = dataset.load(path)
        with progress_bar() as progress, runner.open_text_store(app, evalset, progress) as store:
            asked = spread(prompts_of(evalset), limit)
            yield app.cell_finder(store.library, store.retriever), _by_file(store.library), asked
        return
    with closing(app.open_library()) as library:
        papers = _by_file(library)
        asked = cells_of(path)
        unknown = sorted({one.file for one in asked if Path(one.file).name not in papers})
        if unknown:
            print(f"Left out, as the index does not have them: {', '.join(unknown)}", file=sys.stderr)
        asked = spread([one for one in asked if one.file not in unknown], limit)
        yield app.cell_finder(library), papers, asked


def _by_file(library: Library) -> dict[str, Paper]:
    return {Path(paper.file).name: paper for paper in library.papers()}


def _lines(found: Sequence[Judged]) -> Iterator[str]:
    for one in found:
        cell = one.cell
        yield json.dumps(
            {
                "file": one.asked.file,
                "column": one.asked.column.name,
                "verdict": one.verdict,
                "confidence": cell.confidence,
                "findings": [
                    {"value": each.value, "number": each.number, "page": each.quote.page, "quote": each.quote.quote}
                    for each in cell.findings
                ],
                "closest": cell.closest.quote if cell.closest else "",
                "gold": one.asked.gold,
            },
            ensure_ascii=False,
        )


def _run(app: App, arguments: argparse.Namespace) -> int:
    for path in arguments.sets:
        with opened(app, path, arguments.limit) as (finder, papers, asked):
            found = list(judged(finder, papers, asked))
        print_tables(output(), [table(path.name, found)])
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in _lines(found))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the cells of evidence tables.")
    parser.add_argument("sets", type=Path, nargs="+", help="sets of cells, or of trial reports with their prompts")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="cells of each set, spread over it")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append what was found to this file, as JSON lines")
    arguments = parser.parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
