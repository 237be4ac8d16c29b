"""Pages for people who turn them: drawn once, by a process that a hostile page cannot take along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.errors import PaperError, PaperLimit
from folio.pdf.render import page_png
from folio.web import page_images
from folio.web.page_images import PageImages, PageView
from tests.helpers.factories import OTTERS, write_pdf

FUR = "No other mammal has a denser fur."


@pytest.fixture
def drawer() -> Iterator[PageImages]:
    made = PageImages(timeout_s=60, memory_mb=1024)
    yield made
    made.close()


def test_a_page_is_drawn_as_it_is_anywhere_else(drawer: PageImages, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    view = PageView(path, 1, (FUR, "Nobody wrote this sentence here."), 72)
    assert drawer.picture(view) == page_png(path, 1, view.quotes, dpi=72)
    assert drawer.picture(view).found == (True, False)


def test_a_page_that_was_drawn_of_late_is_not_drawn_again(drawer: PageImages, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    first = drawer.picture(PageView(path, 1, (FUR,), 72))
    path.unlink()
    assert drawer.picture(PageView(path, 1, (FUR,), 72)) is first
    with pytest.raises(PaperError, match=r"otters\.pdf cannot be opened"):
        drawer.picture(PageView(path, 1, (), 72))


def test_the_oldest_picture_is_forgotten_first(
    drawer: PageImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "KEPT", 2)
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    first, second, third = (PageView(path, 1, (), dpi) for dpi in (36, 37, 38))
    drawer.picture(first)
    drawer.picture(second)
    drawer.picture(first)
    drawer.picture(third)
    path.unlink()
    assert drawer.picture(first).png
    assert drawer.picture(third).png
    with pytest.raises(PaperError):
        drawer.picture(second)


def test_a_page_gets_no_more_memory_than_it_may_take(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    drawer = PageImages(timeout_s=60, memory_mb=1)
    try:
        with pytest.raises((PaperLimit, PaperError)):
            drawer.picture(PageView(path, 1, (), 150))
    finally:
        drawer.close()
