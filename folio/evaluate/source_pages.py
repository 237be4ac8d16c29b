"""Re-reads papers from their files, so that gold entries and citations are checked without trusting the index.

A page is read in MuPDF's order and, if needed, in Folio's reading order, because only the latter keeps the words of a
table row together. Text found in either version is on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from folio.errors import PaperError
from folio.evaluate.quote_match import fold_quote, is_verbatim, pages_with, stands_on
from folio.files import sha256_file
from folio.pdf.mupdf import pymupdf, unlock
from folio.pdf.reader import read_pdf
from folio.store.library import Library
from folio.types import Paper

PageTexts = tuple[str, ...]


class SourcePages:
    """The pages of one library's papers, read from their files."""

    def __init__(self, library: Library, documents: Mapping[str, str]) -> None:
        """documents: the texts of a plain text set by their paper's file name; each is one page."""
        self._library = library
        self._documents = documents
        self._paths: dict[str, list[Path]] = {}
        for file in library.files():
            self._paths.setdefault(file.sha256, []).append(Path(file.path))
        self._raw: dict[str, PageTexts] = {}
        self._reordered: dict[str, PageTexts] = {}
        self._folded: dict[tuple[str, bool], PageTexts] = {}
        self.missing: list[str] = []  # missing or changed files; the indexed pages are used instead

    def pages_with(self, paper: Paper, quote: str) -> frozenset[int]:
        """The pages, from 1, that contain a folded quote."""
        by_version = (pages_with(quote, pages) for pages in self._folded_versions(paper))
        return next(filter(None, by_version), frozenset())

    def contains_part(self, paper: Paper, page: int, folded: str) -> bool:
        """Whether a run of a folded text is on a page. See quote_match.stands_on."""
        return any(stands_on(folded, _page(pages, page)) for pages in self._folded_versions(paper))

    def is_verbatim(self, paper: Paper, page: int, quote: str) -> bool:
        """Whether a quote is verbatim on a page. See quote_match.is_verbatim."""
        return any(is_verbatim(quote, _page(read(paper), page)) for read in (self._raw_pages, self._ordered_pages))

    def _folded_versions(self, paper: Paper) -> Iterator[PageTexts]:
        """The folded pages in each order; the second is computed only if it is needed."""
        for ordered in (False, True):
            key = (paper.id, ordered)
            if key not in self._folded:
                pages = self._ordered_pages(paper) if ordered else self._raw_pages(paper)
                self._folded[key] = tuple(map(fold_quote, pages))
            yield self._folded[key]

    def _raw_pages(self, paper: Paper) -> PageTexts:
        if paper.id not in self._raw:
            self._raw[paper.id] = self._read(paper)
        return self._raw[paper.id]

    def _read(self, paper: Paper) -> PageTexts:
        if paper.file in self._documents:
            return (self._documents[paper.file],)
        path = self._path(paper)
        if path is None:
            self.missing.append(paper.file)
            return self._indexed_pages(paper)
        document = pymupdf().open(path, filetype="pdf")
        try:
            unlock(document)
            return tuple(page.get_text("text") for page in document)
        finally:
            document.close()

    def _ordered_pages(self, paper: Paper) -> PageTexts:
        if paper.id not in self._reordered:
            path = None if paper.file in self._documents else self._path(paper)
            try:
                pages = tuple(page.text for page in read_pdf(path).pages) if path else self._raw_pages(paper)
            except PaperError:  # it was readable when it was ingested; use MuPDF's order
                pages = self._raw_pages(paper)
            self._reordered[paper.id] = pages
        return self._reordered[paper.id]

    def _path(self, paper: Paper) -> Path | None:
        """A file that exists and is unchanged since it was ingested."""
        existing = (path for path in self._paths.get(paper.id, ()) if path.is_file())
        return next((path for path in existing if sha256_file(path) == paper.id), None)

    def _indexed_pages(self, paper: Paper) -> PageTexts:
        spans = (paper.pages.bounds(number, paper.length) for number in range(1, paper.page_count + 1))
        return tuple(self._library.text(paper.id, start, end) for start, end in spans)


def _page(pages: PageTexts, number: int) -> str:
    return pages[number - 1] if 1 <= number <= len(pages) else ""
