"""Pages of papers as PNG pictures: rendered by a persistent worker process, with an LRU cache of recent ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from folio.pdf.render import PagePicture, page_png
from folio.workers import PersistentWorker

# Pictures kept for readers who page back and forth; about half a megabyte each
CACHED_PICTURES = 32


@dataclass(frozen=True, slots=True)
class PageView:
    """Physical page `page`, from 1, of a PDF, with these quotes marked."""

    path: Path
    page: int
    quotes: tuple[str, ...]
    dpi: int


class PageImages:
    """Renders pages; thread-safe. A hostile page can use only the time and memory that its worker is given."""

    def __init__(self, *, timeout_s: float, memory_mb: int, cached_pictures: int = CACHED_PICTURES) -> None:
        """timeout_s, memory_mb: limits for rendering one page, see workers.run_guarded."""
        self._worker = PersistentWorker(_render, timeout_s=timeout_s, memory_mb=memory_mb)
        self._cached = lru_cache(maxsize=cached_pictures)(self._worker.run)  # exceptions are not cached

    def picture(self, view: PageView) -> PagePicture:
        """The page as it was when it was first rendered. Raises PaperError as render.page_png does, and PaperLimit."""
        return self._cached(view)

    def close(self) -> None:
        self._worker.close()


def _render(view: PageView) -> PagePicture:
    return page_png(view.path, view.page, view.quotes, dpi=view.dpi)
