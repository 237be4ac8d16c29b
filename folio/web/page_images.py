"""Pages of papers as pictures, for people who look at many: drawn by a worker that stays, the latest ones kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from folio.pdf.render import PagePicture, page_png
from folio.workers import PersistentWorker

# Pictures that are kept, about half a megabyte each: somebody turns a page, and back.
KEPT = 32


@dataclass(frozen=True, slots=True)
class PageView:
    """Physical page `page`, from 1, of a PDF, with these quotes marked."""

    path: Path
    page: int
    quotes: tuple[str, ...]
    dpi: int


class PageImages:
    """Any number of threads may ask. A hostile page takes what its worker is allowed, and no more."""

    def __init__(self, *, timeout_s: float, memory_mb: int) -> None:
        """What the drawing of one page may take. See workers.run_guarded."""
        self._worker = PersistentWorker(_drawn, timeout_s=timeout_s, memory_mb=memory_mb)
        self._kept: OrderedDict[PageView, PagePicture] = OrderedDict()
        self._lock = Lock()

    def picture(self, view: PageView) -> PagePicture:
        """The page as it was when it was first asked for. Raises PaperError as draw.page_png does, and PaperLimit."""
        with self._lock:
            if view in self._kept:
                self._kept.move_to_end(view)
                return self._kept[view]
        picture = self._worker.run(view)
        with self._lock:
            self._kept[view] = picture
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return picture

    def close(self) -> None:
        self._worker.close()


def _drawn(view: PageView) -> PagePicture:
    return page_png(view.path, view.page, view.quotes, dpi=view.dpi)
