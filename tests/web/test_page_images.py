"""Page pictures: rendered once, cached, and in a process that a hostile page cannot harm."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from folio.errors import PaperError, PaperLimit
from folio.pdf.render import page_png
from folio.web.pages import PageOfText, PageReader, PageView
from tests.helpers.factories import OTTERS, write_pdf

FUR = "No other mammal has a denser fur."


@pytest.fixture
def renderer(request: pytest.FixtureRequest) -> Iterator[PageReader]:
    """Some small pictures are cached."""
    memory_mb = getattr(request, "param", 1024)
    with closing(PageReader(timeout_s=60, memory_mb=memory_mb, cached_pictures=14_000)) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_pdf(tmp_path / "otters.pdf", OTTERS)


def test_a_page_looks_the_same_as_from_page_png(renderer: PageReader, path: Path) -> None:
    view = PageView("", path, 1, (FUR, "Nobody wrote this sentence here."), 72)
    assert renderer.picture(view) == page_png(path, 1, view.quotes, dpi=72)
    assert renderer.picture(view).highlighted == (True, False)


def test_pictures_are_cached_and_failures_are_not(renderer: PageReader, path: Path) -> None:
    first, second, third = (PageView("", path, 1, (), dpi) for dpi in (36, 37, 38))
    shown = [renderer.picture(view) for view in (first, second, first, third)]
    path.unlink()
    assert [renderer.picture(first), renderer.picture(third)] == [shown[0], shown[3]]
    with pytest.raises(PaperError, match=r"otters\.pdf cannot be opened"):
        renderer.picture(second)
    write_pdf(path, OTTERS)
    assert renderer.picture(second).png


def test_what_is_drawn_ahead_waits_for_people(renderer: PageReader, path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        with renderer.asked():
            with renderer.asked():
                waiting = pool.submit(renderer.wait_until_idle)
            with pytest.raises(TimeoutError):
                waiting.result(0.1)
            assert renderer.picture(PageView("", path, 1, (), 36)).png
        waiting.result(5)


@pytest.mark.parametrize("renderer", [1], indirect=True)
def test_a_page_over_the_memory_limit_fails(renderer: PageReader, path: Path) -> None:
    with pytest.raises((PaperLimit, PaperError)):
        renderer.picture(PageView("", path, 1, (), 150))


@pytest.mark.parametrize("renderer", [1], indirect=True)
def test_the_text_and_the_sizes_of_a_page_are_read_within_the_same_limits(renderer: PageReader, path: Path) -> None:
    with pytest.raises((PaperLimit, PaperError)):
        renderer.text_layer(PageOfText("", path, 1, OTTERS[0], 0))
    with pytest.raises((PaperLimit, PaperError)):
        renderer.sizes("", path)
