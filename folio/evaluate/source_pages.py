"""A paper's own pages, read afresh from its file: what gold and citations are held against, and not the index.

A page is read twice where that is needed: as MuPDF gives it, and in Folio's reading order, since the words of a row of
a table stand next to each other only there. What stands in either stands on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from folio.errors import PaperError
from folio.evaluate.quote_match import fold, pages_with, stands_on, word_for_word
from folio.files import sha256_file
from folio.pdf.mupdf import pymupdf
from folio.pdf.reader import read_pdf
from folio.store.library import Library
from folio.types import Paper

PageImages = tuple[str, ...]


class Originals:
    """The papers of one library as their files have them."""

    def __init__(self, library: Library, documents: Mapping[str, str]) -> None:
        """documents: the texts of a plain text set by the name of their paper's file; each is a page of its own."""
        self._library = library
        self._documents = documents
        self._paths: dict[str, list[Path]] = {}
        for file in library.files():
            self._paths.setdefault(file.sha256, []).append(Path(file.path))
        self._drawn: dict[str, PageImages] = {}
        self._ordered: dict[str, PageImages] = {}
        self._folded: dict[tuple[str, bool], PageImages] = {}
        self.gone: list[str] = []  # files that are not there any more, or not the same: their pages are the index's

    def pages_with(self, paper: Paper, quote: str) -> frozenset[int]:
        """The pages, from 1, on which a folded quote stands; nothing where it stands nowhere."""
        return next((found for pages in self._readings(paper) if (found := pages_with(quote, pages))), frozenset())

    def stands_on(self, paper: Paper, page: int, folded: str) -> bool:
        """Whether a piece of a folded text stands on a page. See matching.stands_on."""
        return any(stands_on(folded, _page(pages, page)) for pages in self._readings(paper))

    def quoted(self, paper: Paper, page: int, quote: str) -> bool:
        """Whether a quote stands on a page word for word. See matching.word_for_word."""
        return any(word_for_word(quote, _page(read(paper), page)) for read in (self._as_drawn, self._in_order))

    def _readings(self, paper: Paper) -> Iterator[PageImages]:
        """The folded pages of each reading; the second is made when the first does not have what is looked for."""
        for ordered in (False, True):
            key = (paper.id, ordered)
            if key not in self._folded:
                pages = self._in_order(paper) if ordered else self._as_drawn(paper)
                self._folded[key] = tuple(map(fold, pages))
            yield self._folded[key]

    def _as_drawn(self, paper: Paper) -> PageImages:
        if paper.id not in self._drawn:
            self._drawn[paper.id] = self._read(paper)
        return self._drawn[paper.id]

    def _read(self, paper: Paper) -> PageImages:
        if paper.file in self._documents:
            return (self._documents[paper.file],)
        path = self._path(paper)
        if path is None:
            self.gone.append(paper.file)
            return self._indexed(paper)
        document = pymupdf().open(path, filetype="pdf")
        try:
            if document.needs_pass:
                document.authenticate("")
            return tuple(page.get_text("text") for page in document)
        finally:
            document.close()

    def _in_order(self, paper: Paper) -> PageImages:
        if paper.id not in self._ordered:
            path = None if paper.file in self._documents else self._path(paper)
            try:
                pages = tuple(page.text for page in read_pdf(path).pages) if path else self._as_drawn(paper)
            except PaperError:  # it could be read when it was ingested; there is the first reading still
                pages = self._as_drawn(paper)
            self._ordered[paper.id] = pages
        return self._ordered[paper.id]

    def _path(self, paper: Paper) -> Path | None:
        """A file that is there and is the one that was ingested."""
        known = (path for path in self._paths.get(paper.id, ()) if path.is_file())
        return next((path for path in known if sha256_file(path) == paper.id), None)

    def _indexed(self, paper: Paper) -> PageImages:
        spans = (paper.pages.bounds(number, paper.length) for number in range(1, paper.page_count + 1))
        return tuple(self._library.text(paper.id, start, end) for start, end in spans)


def _page(pages: PageImages, number: int) -> str:
    return pages[number - 1] if 1 <= number <= len(pages) else ""
