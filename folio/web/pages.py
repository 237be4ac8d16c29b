"""The pages of papers for the reader: pictures, the text with its places, and words to find."""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from pathlib import Path
from threading import Condition, Lock
from typing import Generic, NamedTuple, TypeVar

from folio.papers.model import Paper
from folio.papers.references import citations, entries
from folio.papers.sections import PaperSection
from folio.pdf.letters import Rect, fold_word, is_right_to_left
from folio.pdf.mupdf import pymupdf
from folio.pdf.render import PagePicture, page_png
from folio.pdf.text_layer import TextLayer, page_sizes, text_layer
from folio.schema import web as schema
from folio.system.workers import PersistentWorker
from folio.text import fold, stripped

T = TypeVar("T")

# Bytes of cached pictures, for readers who page back and forth; a picture has about half a megabyte at 150 dpi
CACHED_PICTURES = 64 * 10**6
CACHED_TEXTS = 16 * 10**6
CACHED_SIZES = 64  # papers
MOST_HITS = 2000  # places listed for words to find
_FOLDED_PAPERS = 4  # papers whose folded text is kept between searches
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_BETWEEN_SPACES = re.compile(r"\S+")
_HEADING = 400  # characters of a section's beginning that are searched for its heading
_SAMPLE = 4000  # characters of a page that show the direction of its script


@dataclass(frozen=True, slots=True)
class PageView:
    """Physical page `page`, from 1, of a PDF, with these quotes marked."""

    paper: str  # SHA-256 of the file; another file may take its path
    path: Path
    page: int
    quotes: tuple[str, ...]
    dpi: int


@dataclass(frozen=True, slots=True)
class PageOfText:
    """Physical page `page`, from 1, of a PDF, with its text in the library, which begins at `start` in the paper."""

    paper: str  # SHA-256 of the file
    path: Path
    page: int
    text: str
    start: int


class Cache(Generic[T]):
    """The values that were used last, up to some bytes. Thread-safe."""

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        """most: bytes. size: the bytes of a value."""
        self._most, self._size = most, size
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key; made if it is not kept, once for all who ask. What `make` raises is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
                self._keep(key, value)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return value

    def _keep(self, key: Hashable, value: T) -> None:
        with self._lock:
            if key not in self._values:
                self._values[key] = value
                self._bytes += self._size(value)
            while self._bytes > self._most:
                self._bytes -= self._size(self._values.popitem(last=False)[1])


class PageReader:
    """Reads and draws pages in a worker process, which limits the time and memory of a hostile page. Thread-safe."""

    def __init__(self, *, timeout_s: float, memory_mb: int, cached_pictures: int = CACHED_PICTURES) -> None:
        """timeout_s, memory_mb: limits for one page, see workers.run_guarded. cached_pictures: in bytes."""
        self._worker = PersistentWorker(_work, timeout_s=timeout_s, memory_mb=memory_mb)
        self._pictures = Cache[PagePicture](cached_pictures, lambda picture: len(picture.png))
        self._sizes = lru_cache(maxsize=CACHED_SIZES)(self._read_sizes)  # exceptions are not cached
        self._asked = 0  # requests that a person waits for
        self._idle = Condition()

    def start(self) -> None:
        """Start the worker, so that the first page need not wait for it. Raises PaperError."""
        self._worker.run(None)

    def wait_until_idle(self) -> None:
        """Wait while a person waits for a page: what is read ahead comes after it."""
        with self._idle:
            self._idle.wait_for(lambda: not self._asked)

    @contextmanager
    def asked(self) -> Iterator[None]:
        """A person waits for a page meanwhile."""
        with self._idle:
            self._asked += 1
        try:
            yield
        finally:
            with self._idle:
                self._asked -= 1
                self._idle.notify_all()

    def picture(self, view: PageView) -> PagePicture:
        """The page as it was when it was first drawn. Raises PaperError as render.page_png does, and PaperLimit."""

        def draw() -> PagePicture:
            drawn = self._worker.run(view)
            assert isinstance(drawn, PagePicture)
            return drawn

        return self._pictures.get(view, draw)

    def text_layer(self, page: PageOfText) -> TextLayer:
        """Where the words of a page are drawn. Raises as `picture` does."""
        layer = self._worker.run(page)
        assert isinstance(layer, TextLayer)
        return layer

    def sizes(self, paper: str, path: Path) -> tuple[tuple[float, float], ...]:
        """The width and the height of each page as shown, in points. Raises as `picture` does."""
        return self._sizes(paper, path)

    def _read_sizes(self, _paper: str, path: Path) -> tuple[tuple[float, float], ...]:
        sizes = self._worker.run(path)
        assert isinstance(sizes, list)
        return tuple(sizes)

    def close(self) -> None:
        self._worker.close()


_Work = PageView | PageOfText | Path | None


def _work(item: _Work) -> PagePicture | TextLayer | list[tuple[float, float]] | None:
    if item is None:
        pymupdf()  # it is slow to import
        return None
    if isinstance(item, PageView):
        return page_png(item.path, item.page, item.quotes, dpi=item.dpi)
    if isinstance(item, PageOfText):
        return text_layer(item.path, item.page, item.text, item.start)
    return page_sizes(item)


# The text of a page


def page_text_json(paper: Paper, page: PageOfText, layer: TextLayer, text_of_paper: str) -> str:
    """A schema.PageText as JSON."""
    listed = entries(paper, text_of_paper)
    start, text = page.start, page.text
    end = start + len(text)
    headings = [
        (section, *heading_span(section, text[section.start - start :][:_HEADING]))
        for section in paper.sections.headed
        if start <= section.start < end
    ]
    cuts = [edge - start for _, *span in headings for edge in span]
    return schema.PageText(
        page=page.page,
        label=paper.pages.label(page.page),
        width=round(layer.width, 2),
        height=round(layer.height, 2),
        start=start,
        end=end,
        text=text,
        words=[[word.start, word.end, *_rounded(word.box)] for word in layer.words],
        placed=layer.placed,
        direction="rtl" if reads_right_to_left(text) else "ltr",
        headings=[
            schema.HeadingJson(start=first, end=last, level=section.level, title=section.plain)
            for section, first, last in headings
        ],
        paragraphs=[[start + first, start + last] for first, last in paragraphs(text, cuts)],
        links=[
            schema.LinkJson(box=_rounded(link.box), page=link.page or None, uri=link.uri, at=_point(link.at))
            for link in layer.links
        ],
        citations=[
            schema.InnerCitationJson(
                start=each.start,
                end=each.end,
                page=paper.pages.page_at(each.entry.start),
                entry=[each.entry.start, each.entry.end],
            )
            for each in citations(text_of_paper, start, end, listed)
        ],
        references=[[entry.start, entry.end] for entry in listed if start <= entry.start < end],
    ).model_dump_json()


def _rounded(box: Rect) -> Rect:
    x0, y0, x1, y1 = box
    return round(x0, 1), round(y0, 1), round(x1, 1), round(y1, 1)


def _point(at: tuple[float, float] | None) -> list[float] | None:
    return None if at is None else [round(coordinate, 1) for coordinate in at]


def heading_span(section: PaperSection, text: str) -> tuple[int, int]:
    """The span in the paper of the words of a section's heading. text: the beginning of the section."""
    folded, title = Folded.of(text), fold(section.title)
    at = folded.letters.find(title) if title else -1
    if at < 0:
        return section.start, section.start + len(text.partition("\n")[0])
    return section.start, section.start + folded.offsets[at + len(title) - 1] + 1


def paragraphs(text: str, cuts: Sequence[int] = ()) -> Iterator[tuple[int, int]]:
    """The spans of the paragraphs of a page's text, which is also cut at these offsets."""
    edges = sorted({0, len(text), *cuts, *(match.start() for match in _PARAGRAPH.finditer(text))})
    for first, last in (stripped(text, *span) for span in pairwise(edges)):
        if first < last:
            yield first, last


def reads_right_to_left(text: str) -> bool:
    """Whether most letters of a text are of a script that is written from the right."""
    letters = [char for char in text[:_SAMPLE] if char.isalpha()]
    return 2 * sum(map(is_right_to_left, letters)) > len(letters)


# Words to find in a paper


class Places(NamedTuple):
    """Where words stand in a paper: how many times, and the first spans."""

    total: int
    spans: list[tuple[int, int]]


class Folded(NamedTuple):
    """The folded letters and digits of a text."""

    letters: str
    offsets: array[int]  # of each letter in the text
    spaced: bytearray  # 1 for a letter after white space, except behind a hyphen at the end of a line

    @classmethod
    def of(cls, text: str) -> Folded:
        letters: list[str] = []
        offsets, spaced, hyphen = array("I"), bytearray(), False
        for match in _BETWEEN_SPACES.finditer(text):
            word, start = match.group(), match.start()
            folded = fold_word(word)
            if word.isascii() and len(folded) == len(word):  # other characters may fold to several letters, or to none
                offsets.extend(range(start, match.end()))
            else:
                offsets.extend(start + place for place, char in enumerate(word) for _ in fold_word(char))
            letters.append(folded)
            spaced += (b"\0" if hyphen else b"\1") + bytes(len(folded) - 1) if folded else b""
            hyphen = word.endswith("-") and text[match.end() : match.end() + 1] == "\n"
        return cls("".join(letters), offsets, spaced)


_folded = lru_cache(maxsize=_FOLDED_PAPERS)(Folded.of)


def find_words(text: str, words: str) -> Places:
    """Where words stand in a text, without regard to case, accents, ligatures, signs and line ends; parts of words too.

    White space in the text matches only between two words. Without a letter or digit, the signs are searched as typed.
    """
    wanted = [folded for folded in map(fold, words.split()) if folded]
    if not wanted:
        return _places(_signs(text, words.strip()))
    letters, offsets, spaced = _folded(text)
    pattern, between = "".join(wanted), list(accumulate(map(len, wanted)))[:-1]
    within = bytearray(b"\1" * len(pattern))  # 1 for each letter before which the text must not have white space
    for n in (0, *between):
        within[n] = 0
    whole = int.from_bytes(within, "big")

    def fits(at: int) -> bool:
        # One number, because a hostile text has the letters at millions of places.
        has_other_seam = int.from_bytes(spaced[at : at + len(pattern)], "big") & whole
        return not has_other_seam and all(offsets[at + n] > offsets[at + n - 1] + 1 for n in between)

    def spans() -> Iterator[tuple[int, int]]:
        at = letters.find(pattern)
        while at >= 0:
            end = at + len(pattern)
            is_hit = fits(at)
            if is_hit:
                yield offsets[at], offsets[end - 1] + 1
            at = letters.find(pattern, end if is_hit else at + 1)

    return _places(spans())


def _signs(text: str, signs: str) -> Iterator[tuple[int, int]]:
    at = text.find(signs) if signs else -1
    while at >= 0:
        yield at, at + len(signs)
        at = text.find(signs, at + len(signs))


def _places(spans: Iterator[tuple[int, int]]) -> Places:
    listed = list(islice(spans, MOST_HITS))
    return Places(len(listed) + sum(1 for _ in spans), listed)
