"""The cells of a table are quotes of their paper, or empty."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from folio.answer_types import AnswerStopped
from folio.papers.model import Paper
from folio.store.library import Library
from folio.table.cell import Cell, Column
from folio.table.finder import CellFinder
from tests.helpers.factories import shelf
from tests.helpers.fakes import HashingApp

LENGTH = Column("Length", "What length has the Aletsch glacier?", "number", "m")
DIET = Column("Diet", "What does the sea otter eat?")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    return shelf(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def library(app: HashingApp) -> Iterator[Library]:
    with closing(app.open_library()) as library:
        yield library


@pytest.fixture(scope="module")
def finder(app: HashingApp, library: Library) -> CellFinder:
    return app.cell_finder(library)


def paper(library: Library, file: str) -> Paper:
    return next(paper for paper in library.papers() if paper.file == file)


def cells(finder: CellFinder, of: Paper, *columns: Column) -> list[Cell]:
    found = list(finder.fill(of, columns))
    assert [place for place, _ in found] == list(range(len(columns)))
    return [cell for _, cell in found]


def test_a_cell_quotes_its_own_paper_or_stays_empty(finder: CellFinder, library: Library) -> None:
    glaciers, otters = paper(library, "glaciers.pdf"), paper(library, "otters.pdf")
    length, diet = cells(finder, glaciers, LENGTH, DIET)
    (found,) = length.findings
    assert (found.value, found.number, found.by_model) == ("23 kilometres", 23_000.0, False)
    assert (found.quote.paper, found.quote.page) == (glaciers, 1)
    assert library.text(glaciers.id, *found.quote.span) == found.quote.quote
    assert diet.findings == ()
    assert diet.closest is not None
    assert diet.closest.paper == glaciers
    assert library.text(glaciers.id, *diet.closest.span) == diet.closest.quote
    assert length.closest is None
    length, diet = cells(finder, otters, LENGTH, DIET)
    assert length.findings == ()
    assert "urchins, clams and crabs" in diet.findings[0].shown


def test_passages_with_too_few_words_of_a_question_are_not_read(finder: CellFinder, library: Library) -> None:
    """A review asks many papers what most do not say: the same answers, and nothing is read for the others."""
    otters, glaciers = paper(library, "otters.pdf"), paper(library, "glaciers.pdf")
    ((_, diet),) = finder.fill(otters, [DIET], least_said=0.45)
    assert diet == cells(finder, otters, DIET)[0]
    ((_, none),) = finder.fill(glaciers, [DIET], least_said=0.45)
    assert (none.findings, none.confidence, none.closest) == ((), None, None)
    ((_, unread),) = finder.fill(otters, [DIET], least_said=1.01)
    assert unread.findings == ()


def test_filling_can_be_stopped_between_cells(finder: CellFinder, library: Library) -> None:
    left = [None, None]

    def check_cancelled() -> None:
        if not left:
            raise AnswerStopped
        left.pop()

    with pytest.raises(AnswerStopped):
        list(finder.fill(paper(library, "glaciers.pdf"), [LENGTH] * 20, check_cancelled))
    assert left == []
