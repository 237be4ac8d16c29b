"""Page pictures: rendered once, cached, and in a process that a hostile page cannot harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.errors import PaperError, PaperLimit
from folio.pdf.render import page_png
from folio.web.page_images import PageImages, PageView
from tests.helpers.factories import OTTERS, write_pdf

FUR = "No other mammal has a denser fur."


@pytest.fixture
def renderer() -> Iterator[PageImages]:
    made = PageImages(timeout_s=60, memory_mb=1024)
    yield made
    made.close()


def test_a_page_looks_the_same_as_from_page_png(renderer: PageImages, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    view = PageView(path, 1, (FUR, "Nobody wrote this sentence here."), 72)
    assert renderer.picture(view) == page_png(path, 1, view.quotes, dpi=72)
    assert renderer.picture(view).highlighted == (True, False)


def test_a_cached_page_is_not_rendered_again(renderer: PageImages, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    first = renderer.picture(PageView(path, 1, (FUR,), 72))
    path.unlink()
    assert renderer.picture(PageView(path, 1, (FUR,), 72)) is first
    with pytest.raises(PaperError, match=r"otters\.pdf cannot be opened"):
        renderer.picture(PageView(path, 1, (), 72))


def test_the_least_recently_used_picture_is_evicted(tmp_path: Path) -> None:
    renderer = PageImages(timeout_s=60, memory_mb=1024, cached_pictures=2)
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    first, second, third = (PageView(path, 1, (), dpi) for dpi in (36, 37, 38))
    try:
        for view in (first, second, first, third):
            renderer.picture(view)
        path.unlink()
        assert renderer.picture(first).png
        assert renderer.picture(third).png
        with pytest.raises(PaperError):
            renderer.picture(second)
    finally:
        renderer.close()


def test_a_failure_is_not_cached(renderer: PageImages, tmp_path: Path) -> None:
    path = tmp_path / "otters.pdf"
    with pytest.raises(PaperError):
        renderer.picture(PageView(path, 1, (), 72))
    write_pdf(path, OTTERS)
    assert renderer.picture(PageView(path, 1, (), 72)).png


def test_a_page_over_the_memory_limit_fails(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "otters.pdf", OTTERS)
    renderer = PageImages(timeout_s=60, memory_mb=1)
    try:
        with pytest.raises((PaperLimit, PaperError)):
            renderer.picture(PageView(path, 1, (), 150))
    finally:
        renderer.close()
