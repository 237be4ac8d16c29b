"""Reads a PDF file: the text of its pages, their printed labels, its metadata, and its problems."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from folio.errors import PaperBusy, PaperError, PaperLimit, command
from folio.papers.model import Page, ParsedPdf
from folio.pdf import attached, damage, flow, layout_model, legible, limits, ocr, order
from folio.pdf.drawing import SearchWork, images
from folio.pdf.front_matter import PageText, read_front_matter
from folio.pdf.glyphs import raw_blocks
from folio.pdf.headings import HeadingCollector
from folio.pdf.hidden_text import have_ink
from folio.pdf.line_numbers import LineNumbers
from folio.pdf.lines import Block, Letter, Letters, letters_of, mark_formulas, true_lines
from folio.pdf.mupdf import file_metadata, line_text, open_pdf, pymupdf, spans_of, unlock, without_lines
from folio.pdf.ocr import NotScannedYet, Scan, scan_page
from folio.pdf.order import Box, page_text
from folio.pdf.raised import write_notation
from folio.pdf.scans import Blocks, Scans, with_text_over
from folio.pdf.steps import with_step_rows
from folio.pdf.tables import in_rows
from folio.pdf.turned import level_page, with_level_parts
from folio.pdf.units import load_page
from folio.pdf.visible import VisibleText, visible_text
from folio.system.files import open_regular
from folio.system.workers import separate_cpu_limit
from folio.text import one_line, reason_of

# Problems of pages that a later ingest may be able to read
NOT_READ, NO_TIME = "no text (image only)", "no time was left"
READ_BY_OCR = "read by OCR"
NOT_CHECKED = "not checked for hidden text"
SCANNED = "scanned: only the text over its picture was read"
ENCODED = "the text is encoded so that no program can read it"
TOO_MANY = f"and {limits.OCR_PAGES:,} pages of the file were read by OCR already"
# Appended to the reason why OCR stopped on a page, if the next ingest tries again by itself
UNFINISHED = "; tried again by the next ingest"
# The same if OCR would stop again
LIMITED = "; tried again with other limits or another OCR engine"
# A page with an image and fewer letters and digits than this is a scan: scanners leave stray marks.
_STRAY_CHARACTERS = 16
_DAMAGED = "Open it in a PDF reader and save or print it to a new PDF, or download the file again."
OCR_OR_OUT = "If its pages show text, run OCR, for example `ocrmypdf --force-ocr in.pdf out.pdf`; or leave it out."
_LIMITS = "PARSE_TIMEOUT_S or PARSE_MEMORY_MB"
_INGEST = f"`{command('ingest')}`"
_AGAIN = f"then run {_INGEST} with its path"


# What happened and the remedy, for a file whose bytes differ from those that were hashed
CHANGED = ("The file changed while it was being read.", "Run the command again.")

# A PDF's header must be within this many bytes of the start. Readers allow junk before it.
_HEADER_WITHIN = 1024
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_WEB_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b", re.I | re.S
)
_SIGN_IN = "Replace it with the PDF, from a browser that is signed in, or move it out of the folder."
# Scan.stopped_by -> when OCR tries the page again
_WHEN_AGAIN = {"": "", "limit": LIMITED, "computer": UNFINISHED}
# The assumed time of the layout model for one page, in seconds on one core
_LAYOUT_PAGE_S = 0.5


class ReadOptions(TypedDict, total=False):
    """See read_content."""

    layout: bool
    ocr: bool
    seconds: float
    scans: Mapping[int, Scan] | None
    draw_apart: bool


def read_pdf(path: Path, max_chars: int = limits.TEXT_CHARACTERS, **options: Unpack[ReadOptions]) -> ParsedPdf:
    """read_content on the bytes of a file. Raises PaperBusy also if it cannot be opened, or is a pipe or a device."""
    content = read_file(path)
    return read_content(content, path.name, max_chars, **options)


def read_file(path: Path, max_mb: float = math.inf) -> bytes:
    """The bytes of a regular file, read once.

    Raises PaperBusy if it cannot be opened or changes meanwhile, and PaperLimit if it has more than max_mb megabytes.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            # Reading one more byte shows whether the file grew.
            content = b"" if size > max_mb * 1e6 else file.read(size + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        # It was readable when it was hashed, so its content may be fine: the next ingest tries again.
        raise PaperBusy(f"The file cannot be opened: {reason}.", "Check that it exists and is readable.") from error
    if size > max_mb * 1e6:
        raise PaperLimit(
            f"The file has {size / 1e6:,.0f} MB, and MAX_FILE_MB is {max_mb:g}.",
            "Split the file, or raise MAX_FILE_MB if you trust it.",
        )
    if len(content) != size:
        raise PaperBusy(*CHANGED)
    return content


def read_content(
    content: bytes,
    name: str,
    max_chars: int = limits.TEXT_CHARACTERS,
    *,
    layout: bool = False,
    ocr: bool = False,
    seconds: float = math.inf,
    scans: Mapping[int, Scan] | None = None,
    draw_apart: bool = False,
) -> ParsedPdf:
    """The pages of a PDF in reading order, with its front matter.

    content: the bytes of the file. name: its name, which may be an arXiv identifier.

    Pages that cannot be read stay in the list, without text and with the problem, so that page numbers stay right.
    layout: mark headings and write tables in Markdown. ocr: read scanned pages, if an engine is installed. seconds:
    the work that the layout model may do, see _WorkBudget; pages beyond it are read without the model, and their
    problem says so. scans: page index (from 0) -> the result of OCR. None runs OCR here. draw_apart: see SearchWork.

    Raises PaperError if the file is empty, not a PDF, locked by a password, unreadable, without text (scanned), or has
    more than max_chars characters or too many pages; PaperLimit if OCR, or more time for it, may help;
    ocr.NotScannedYet, with all pages that need OCR, if some of them are missing in `scans`.
    """
    with _opened(content) as document:
        return _read(_Reader(document, name, layout, ocr, seconds, scans, draw_apart), max_chars)


def scan(content: bytes, index: int) -> Scan:
    """OCR of page `index` (from 0) of a PDF by the installed engine. Raises PaperError as read_content does."""
    with _opened(content) as document:
        return scan_page(load_page(document, index))


@contextmanager
def _opened(content: bytes) -> Iterator[Any]:
    """The PyMuPDF document of these bytes. Raises PaperError if it cannot be read."""
    _check_header(content[:_HEADER_WITHIN])
    mupdf = pymupdf()
    try:
        document = open_pdf(content)
    except MemoryError:
        raise
    except Exception as error:  # MuPDF raises many kinds; each means that the file is broken
        raise damaged() from error
    try:
        if not unlock(document):
            raise PaperError("The file is encrypted and needs a password.", "Save it without a password.")
        yield document
    finally:
        document.close()
        # MuPDF keeps every warning until they are reset.
        mupdf.TOOLS.reset_mupdf_warnings()


def _check_header(head: bytes) -> None:
    """Raises PaperError if `head` is not the beginning of a PDF. MuPDF would open text, HTML and images too."""
    if not head:
        raise PaperError("The file is empty (0 bytes).", "Download it again.")
    if head.startswith(_LFS_POINTER):
        raise PaperError("The file is a Git LFS pointer, not the PDF itself.", "Run `git lfs pull` in its repository.")
    if b"%PDF-" not in head:
        if _WEB_PAGE.match(head):
            raise PaperError("The file is a web page, not a PDF: perhaps one to sign in or to pay.", _SIGN_IN)
        raise PaperError("The file is not a PDF.", "Replace it with the PDF, or move it out of the folder.")


class _WorkBudget:
    """The work that the layout model may do on one file, in seconds on an ordinary core.

    Pages are counted, not timed, so that the model reads the same pages on every computer, however busy it is.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def take(self, cost: float) -> bool:
        """Whether a page that costs this many seconds may be read; if so, its cost is subtracted."""
        if cost > self._left:
            return False
        self._left -= cost
        return True


class _DrawnPage(NamedTuple):
    """What a page shows. Sizes are in points, of the page as its text is level."""

    rotation: int  # degrees by which the file turns the page
    visible: VisibleText
    width: float
    height: float
    letters: Letters
    blocks: Sequence[Block]  # of true lines
    boxes: Sequence[Sequence[Box]]  # the lines of each block, steps and turned parts in their places
    is_turned: bool  # whether some of its text is, or the page


class _Reader:
    """Reads the pages of one document in turn, and collects the problems of the whole file."""

    def __init__(
        self,
        document: Any,
        name: str,
        layout: bool,
        ocr: bool,
        seconds: float,
        scans: Mapping[int, Scan] | None,
        draw_apart: bool,
    ) -> None:
        self.document, self.name = document, name
        self.scans, self.scanned, self.not_scanned = scans, 0, list[int]()
        self.layout, self.obstacles = layout, Obstacles(ocr)
        self.model_work = _WorkBudget(seconds)
        self.search_work = SearchWork(apart=draw_apart)
        self.front_pages: list[PageText] = []
        self.headings = HeadingCollector()
        self.margin: list[str] = []
        self.verdicts: dict[int, legible.Verdict] = {}
        self.edges: dict[int, list[order.EdgeLine]] = {}
        self.split: dict[int, list[legible.SplitLine]] = {}
        self.line_numbers = LineNumbers()
        self.pictures = Scans()
        self.paragraphs: dict[int, list[list[Box]]] = {}  # page -> the lines of each of its paragraphs

    def read_page(self, index: int) -> tuple[str, str]:
        """The text of page `index` (from 0) and its problem, or ""."""
        damage.forget_messages()
        page = load_page(self.document, index)
        drawn = self._drawn(page)
        torn = damage.TORN if damage.is_torn(self.document, page) else ""
        self.obstacles.torn += bool(torn)
        blocks = order.without_stamp(drawn.boxes) if index == 0 else drawn.boxes
        paragraphs = _paragraphs(blocks)
        text, problem = _readable(order.text_of(paragraphs)), ""
        verdict = self.verdicts[index] = legible.judge(text)
        is_encoded = verdict is legible.Verdict.ILLEGIBLE
        self._note_looks(index, drawn, blocks, text, is_encoded=is_encoded)
        if is_encoded:
            text, problem = self._decoded(page, index, drawn.rotation)
        elif is_nearly_empty(text):
            if has_image := bool(images(page)):
                self.obstacles.images += 1
                text, problem = self._by_ocr(page, index, drawn.rotation, text)
            if not text and not problem:
                problem = NOT_READ if has_image else "" if torn else "no text"
        else:
            self._note_lines(page, index, blocks, text)
            self.paragraphs[index] = paragraphs
            on_page = _boxes(drawn.visible.blocks) if drawn.is_turned else drawn.boxes
            if self.pictures.add_page(page, index, text, on_page, self.search_work):
                text, problem = self._scanned(page, index, drawn.rotation, text)
                del self.paragraphs[index]
        if self.layout and text and not problem and not is_nearly_empty(text) and not drawn.is_turned:
            # The model would see turned text sideways.
            by_region, problem = self._by_layout(index, drawn.blocks, drawn.letters, blocks, text)
            if by_region != text:
                text = by_region
                self.paragraphs.pop(index, None)
        hidden, unchecked = self._note_hidden(index, drawn.visible)
        return text, "; ".join(filter(None, (torn, problem, hidden, unchecked)))

    def _drawn(self, page: Any) -> _DrawnPage:
        """What a page shows, level and in true lines."""
        rotation = page.rotation
        if rotation:
            page.set_rotation(0)  # text comes unrotated, so the picture of the page must be too
        visible = visible_text(page, self.search_work)
        level = level_page(visible.blocks, page.rect.width, page.rect.height)
        letters = cache(lambda: level.letters(visible.letters or _letters(page, visible.hidden)))
        blocks = true_lines(level.blocks, letters)
        if not level.is_turned:
            blocks = mark_formulas(blocks, partial(have_ink, page, self.search_work))
        write_notation(blocks)
        as_drawn = _boxes(blocks)
        boxes = with_level_parts(blocks, as_drawn, _text_with_tables)
        is_turned = bool(rotation or level.is_turned or boxes is not as_drawn)
        boxes = with_step_rows(boxes)
        return _DrawnPage(rotation, visible, level.width, level.height, letters, blocks, boxes, is_turned)

    def _note_looks(
        self, index: int, drawn: _DrawnPage, blocks: Sequence[Sequence[Box]], text: str, *, is_encoded: bool
    ) -> None:
        """Keep what the looks of a page say: its headings, its line numbers, and what is on the front pages."""
        if not is_encoded:
            numbers = self.line_numbers.add_page(index, blocks) if text else frozenset()
            self.headings.add_page(index + 1, without_lines(drawn.blocks, numbers))
        if index == 0:
            self.margin = _vertical_texts(drawn.blocks)
        if index < limits.FRONT_PAGES:
            front_blocks, front_text = ((), "") if is_encoded else (drawn.blocks, text)
            self.front_pages.append(PageText(front_blocks, drawn.width, drawn.height, front_text))

    def _note_hidden(self, index: int, visible: VisibleText) -> tuple[str, str]:
        """Keep the problems of a page with hidden text, and return them."""
        obstacles = self.obstacles
        obstacles.hidden = obstacles.hidden or (visible.problem and f"p. {index + 1}: {visible.problem}")
        obstacles.unchecked = obstacles.unchecked or not visible.checked
        return visible.problem, "" if visible.checked else NOT_CHECKED

    def _note_lines(self, page: Any, index: int, blocks: Sequence[Sequence[Box]], text: str) -> None:
        """Keep what can only be judged with the other pages: lines at the edges, and words that may be split."""
        self.edges[index] = order.edge_lines(blocks)
        if legible.may_be_split(text):
            self.split[index] = _split_lines(page)

    def scan_page(self, index: int, text: str) -> tuple[str, str]:
        """The text of a page that turned out to be scanned, and its problem. text: what stands over its picture."""
        page = load_page(self.document, index)
        return self._scanned(page, index, page.rotation, text)

    def _scanned(self, page: Any, index: int, rotation: int, text: str) -> tuple[str, str]:
        self.obstacles.images += 1
        if index < len(self.front_pages):
            self.front_pages[index] = PageText((), 1, 1, "")  # a stamp is no title
        # OCR reads a page as it is shown, and lines of a turned page stand elsewhere there.
        over = [] if rotation else self.pictures.lines[index]
        read, problem = self._by_ocr(page, index, rotation, text, SCANNED, over)
        if not problem.startswith(READ_BY_OCR):
            self.obstacles.stamped += 1
        return read, problem or SCANNED

    def decode_page(self, index: int) -> tuple[str, str]:
        """The text of a page whose fonts no program can read, and its problem."""
        page = load_page(self.document, index)
        return self._decoded(page, index, page.rotation)

    def _decoded(self, page: Any, index: int, rotation: int) -> tuple[str, str]:
        self.obstacles.encoded += 1
        text, problem = self._by_ocr(page, index, rotation, "", ENCODED)
        if text:
            return text, f"{problem}, because its {ENCODED.removeprefix('the ')}"
        if problem:
            return "", problem
        return "", f"{ENCODED}; {'install Tesseract' if self.obstacles.ocr else 'set OCR=auto'}"

    def is_encoded(self, index: int) -> bool:
        """Whether a page with too few letters for a verdict counts as illegible, because most other pages are."""
        verdicts = list(self.verdicts.values())
        broken = verdicts.count(legible.Verdict.ILLEGIBLE)
        is_unknown = self.verdicts.get(index) is legible.Verdict.UNKNOWN
        return is_unknown and broken > 1 and broken > verdicts.count(legible.Verdict.LEGIBLE)

    def _by_ocr(
        self, page: Any, index: int, rotation: int, text: str, reason: str = NOT_READ, over: Blocks = ()
    ) -> tuple[str, str]:
        """The text of a page by OCR, and its problem.

        text: the text in the file. reason: why OCR is needed. over: the lines that stand over the picture.
        """
        if not self.obstacles.ocr:
            return text, ""
        engine = ocr.engine()
        if engine is None:
            self.obstacles.no_engine = True
            return text, ""
        if self.scanned >= limits.OCR_PAGES:
            self.obstacles.too_many = True
            return text, f"{reason}, {TOO_MANY}"
        self.scanned += 1
        if self.scans is None:
            page.set_rotation(rotation)
            scan = scan_page(page)
        elif index in self.scans:
            scan = self.scans[index]
        else:
            self.not_scanned.append(index)
            return text, ""
        if scan.failed:
            self.obstacles.unfinished |= scan.stopped_by == "computer"
            self.obstacles.limited |= scan.stopped_by == "limit"
            return text, f"{reason}, and {engine.name} {scan.failed}{_WHEN_AGAIN[scan.stopped_by]}"
        if not ocr.is_text(page_text(scan.blocks)):
            nothing = f"no text (image only, in which {engine.name} finds none)"
            return text, "" if text else nothing if reason == NOT_READ else f"{reason}, and {engine.name} finds none"
        return page_text(with_text_over(scan.blocks, over)), f"{READ_BY_OCR} ({engine.name})"

    def _by_layout(
        self, index: int, drawn: Sequence[Block], letters: Letters, blocks: Sequence[Sequence[Box]], text: str
    ) -> tuple[str, str]:
        """The text of a page by its regions, and its problem. text: from the fast parser, used if the model fails."""
        if not self.model_work.take(_LAYOUT_PAGE_S):
            self.obstacles.no_time = True
            return text, f"read without its layout: {NO_TIME}"
        try:
            with separate_cpu_limit():
                regions = layout_model.find_regions(self.document, index)
            return layout_model.page_text_by_region(regions, blocks, partial(_letters_of_lines, drawn, letters)), ""
        except MemoryError:
            raise
        except Exception as error:  # the model failed, but the text was read
            return text, f"read without its layout: {reason_of(error)}"

    def problems(self) -> Iterator[str]:
        """The problems of the whole file."""
        if inside := attached.names(self.document):
            yield f"to read the files inside it, save them into the folder: {inside}"
        if self.document.is_repaired:
            yield "the file is damaged and was repaired while reading"
        yield from self.obstacles.problems()


def _read(reader: _Reader, max_chars: int) -> ParsedPdf:
    document = reader.document
    try:
        length = len(document)
    except MemoryError:
        raise
    except Exception:  # a broken page tree
        length = 0
    if length > limits.PAGES:
        raise PaperError(f"The file has {length:,} pages; at most {limits.PAGES:,} are read.", "Split it.")
    labels = page_labels(document, length)
    pages: list[Page] = []
    characters = failed = 0
    for index in range(length):
        text = ""
        try:
            text, problem = reader.read_page(index)
        except MemoryError:
            raise
        except Exception as error:  # one bad page must not stop the others
            failed += 1
            problem = f"cannot be read: {reason_of(error)}"
        characters += len(text)
        if characters > max_chars:
            raise PaperError(
                f"The file holds more than {max_chars:,} characters of text.", "Split it into smaller PDFs."
            )
        pages.append(Page(index + 1, labels[index], text, problem))
    attached.refuse_cover(document, pages)
    pages = _finish(pages, reader)
    if reader.not_scanned:
        raise NotScannedYet(reader.not_scanned, length)
    reader.obstacles.check_text(pages, failed)
    nothing = PageText((), 1, 1, "")
    fronts = [nothing if reader.is_encoded(index) else page for index, page in enumerate(reader.front_pages)]
    metadata = read_front_matter(file_metadata(document), fronts, reader.margin, reader.name, _end(pages))
    return ParsedPdf(tuple(pages), metadata, tuple(reader.problems()), reader.headings.collected(document))


def _finish(pages: Sequence[Page], reader: _Reader) -> list[Page]:
    """The pages after the steps that need all pages: illegible text, line numbers, flow, split words, furniture."""
    finished = list(pages)
    for index, page in enumerate(finished):
        if page.text and reader.is_encoded(index):
            text, problem = reader.decode_page(index)
            finished[index] = replace(page, text=text, problem="; ".join(filter(None, (problem, page.problem))))
            reader.paragraphs.pop(index, None)
    for index in reader.pictures.take_others():
        page = finished[index]
        text, problem = reader.scan_page(index, page.text)
        finished[index] = replace(page, text=text, problem="; ".join(filter(None, (problem, page.problem))))
        reader.paragraphs.pop(index, None)
    if not reader.layout:
        for index, blocks, numbers in reader.line_numbers.unnumbered():
            reader.paragraphs[index] = _paragraphs(blocks)
            finished[index] = replace(finished[index], text=order.text_of(reader.paragraphs[index]))
            if index < len(reader.front_pages):
                reader.front_pages[index] = reader.front_pages[index].without(numbers, finished[index].text)
    for index, arranged in flow.arrange(reader.paragraphs).items():
        finished[index] = replace(
            finished[index], text=arranged.text, goes_on=arranged.goes_on, inside=arranged.furniture
        )
    if any(reader.split.values()):  # a font splits words wherever it is used
        for index in reader.edges.keys() - reader.split.keys():
            reader.split[index] = _split_lines(load_page(reader.document, index))
    for index, text in legible.join_words([page.text for page in finished], reader.split).items():
        finished[index] = replace(finished[index], text=text)
    furniture = order.repeated([reader.edges.get(index, []) for index in range(len(finished))])
    return [replace(page, furniture=texts) if texts else page for page, texts in zip(finished, furniture, strict=True)]


def _split_lines(page: Any) -> list[legible.SplitLine]:
    return legible.split_lines(legible.glyphs(raw_blocks(page)))


def _paragraphs(blocks: Sequence[Sequence[Box]]) -> list[list[Box]]:
    """The lines of each paragraph, with the cells of a row on one line."""
    return order.page_paragraphs(in_rows(blocks))


def _text_with_tables(blocks: Sequence[Sequence[Box]]) -> str:
    return order.text_of(_paragraphs(blocks))


def _boxes(blocks: Sequence[Mapping[str, Any]]) -> list[list[Box]]:
    """The lines of each block."""
    return [
        [
            Box._make((*line["bbox"], line_text(line), abs(line["dir"][0]) > 0.9, *_type(line["spans"])))
            for line in block.get("lines", ())
        ]
        for block in blocks
    ]


def _type(spans: Sequence[Mapping[str, Any]]) -> tuple[float, str]:
    """The size and the font of most characters of a line, without the prefix of a subset of the font."""
    if len(spans) == 1:
        return spans[0]["size"], spans[0]["font"].rpartition("+")[2]
    characters: dict[tuple[float, str], int] = {}
    for span in spans:
        style = span["size"], span["font"]
        characters[style] = characters.get(style, 0) + len(span["text"])
    size, font = max(characters, key=characters.__getitem__, default=(0.0, ""))
    return size, font.rpartition("+")[2]


def _letters(page: Any, hidden: frozenset[int]) -> list[list[Letter]]:
    """The letters of each visible span of a page."""
    return [span["chars"] for number, span in enumerate(spans_of(raw_blocks(page))) if number not in hidden]


def _letters_of_lines(blocks: Sequence[Block], letters: Letters) -> list[list[list[layout_model.Letter]]]:
    """The letters of each line of each block, for the layout model."""
    return [
        [[letter for span in line["spans"] for letter in _centred(span, letters)] for line in block.get("lines", ())]
        for block in blocks
    ]


def _centred(span: Mapping[str, Any], letters: Letters) -> Iterator[layout_model.Letter]:
    """The letters of a span, with the spaces that true_lines put around it."""
    box, text = span["bbox"], span["text"]
    chars = letters_of(span, letters)
    if "plain" in span or not chars:  # raised or lowered: written in its notation; or a sign that is not drawn
        yield layout_model.Letter(text, *_centre(box))
        return
    if text[:1] == " " and chars and chars[0]["c"] != " ":
        yield layout_model.Letter(" ", *_centre(box))
    for letter in chars:
        yield layout_model.Letter(letter["c"], *_centre(letter["bbox"]))
    if text[-1:] == " " and chars and chars[-1]["c"] != " ":
        yield layout_model.Letter(" ", *_centre(box))


def _centre(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _readable(text: str) -> str:
    """The text, or "" if it has neither letters nor digits: only dots, or glyphs mapped to control characters."""
    return text if any(map(str.isalnum, text)) else ""


def _end(pages: Sequence[Page]) -> str:
    """The last limits.CITED_WITHIN characters of the text, which contain the references."""
    texts: list[str] = []
    left = limits.CITED_WITHIN
    for page in reversed(pages):
        texts.append(page.text[-left:])
        left -= len(texts[-1])
        if left <= 0:
            break
    return "\n".join(reversed(texts))


def _vertical_texts(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The text of each block that runs up or down the page."""
    texts_by_block = [
        [line_text(line) for line in block.get("lines", ()) if abs(line["dir"][0]) < 0.1] for block in blocks
    ]
    return [" ".join(texts).strip() for texts in texts_by_block if texts]


def damaged() -> PaperError:
    return PaperError("The file is damaged or cut short: no page of it can be read.", _DAMAGED)


@dataclass(slots=True)
class Obstacles:
    """What went wrong while the pages of a file were read."""

    ocr: bool  # whether OCR may be used
    torn: int = 0  # pages whose content is damaged
    images: int = 0  # pages with an image and hardly any text
    stamped: int = 0  # those with more text over it, which were not read by OCR
    encoded: int = 0  # pages whose text is illegible, see pdf/legible.py
    hidden: str = ""  # the first message about hidden text
    no_engine: bool = False  # OCR was needed, but no engine is installed
    no_time: bool = False  # the layout model had no time left
    unfinished: bool = False  # OCR did not finish some pages, and may finish them under the same limits
    limited: bool = False  # OCR did not finish some pages, and needs other limits for them
    too_many: bool = False  # more pages need OCR than limits.OCR_PAGES
    unchecked: bool = False  # not all pages were searched for hidden text

    def problems(self) -> Iterator[str]:
        """The problems of the whole file."""
        if self.unchecked:
            yield "its pages are slow to draw, so not all of them were searched for hidden text"
        if self.no_engine and self.images:
            yield f"to read its pages without text, {ocr.HOW_TO_INSTALL}, {_AGAIN}"
        if self.unfinished:
            yield f"to read the pages that OCR did not finish, run {_INGEST} again, or raise PARSE_TIMEOUT_S"
        elif self.limited:
            yield f"to read the pages that OCR did not finish, raise {_LIMITS}, and run {_INGEST} again"
        if self.too_many:
            yield f"to read all of its pages, split the file: OCR reads {limits.OCR_PAGES:,} pages of one"
        if self.no_time:
            yield f"to read all of its pages, raise PARSE_TIMEOUT_S, {_AGAIN}"

    def check_text(self, pages: Sequence[Page], failed: int) -> None:
        """Raises PaperError with the most likely reason if there is nothing to index.

        failed: how many pages could not be read.
        """
        if failed == len(pages) or (self.torn and not any(page.text for page in pages)):
            raise damaged()
        with_text = sum(bool(page.text) for page in pages)
        worth_reading = sum(not is_nearly_empty(page.text) for page in pages) - self.stamped
        if self.encoded and not worth_reading:
            raise self._not_read("The text of the file is encoded so that no program can read it", "--force-ocr ")
        if self.images and not worth_reading and with_text <= self.images:
            raise self._not_read("The file is scanned: no text layer", "")
        if not with_text:
            all_hidden = f"The file has no visible text; {self.hidden}."
            raise PaperError(
                all_hidden if self.hidden else "The file has no text on any page.",
                OCR_OR_OUT,
            )

    def _not_read(self, happened: str, option: str) -> PaperError:
        """The error for a file that only OCR can read: PaperLimit if a later ingest may do so."""
        ocrmypdf = f"`ocrmypdf {option}in.pdf out.pdf`"
        if not self.ocr:
            remedy = f"Set OCR=auto, or run OCR, for example {ocrmypdf}, and put the result in the folder."
            return PaperLimit(f"{happened}.", remedy)
        if self.no_engine:
            how = ocr.HOW_TO_INSTALL[0].upper() + ocr.HOW_TO_INSTALL[1:]
            remedy = f"{how}, and run {_INGEST} again; or run {ocrmypdf}."
            return PaperLimit(f"{happened}, and no OCR engine is installed.", remedy)
        if self.unfinished:
            remedy = f"Run {_INGEST} again when less is running, raise PARSE_TIMEOUT_S, or run {ocrmypdf}."
            return PaperBusy(f"{happened}, and OCR did not finish.", remedy)
        if self.limited:
            remedy = f"Raise {_LIMITS}, and run {_INGEST} again; or run {ocrmypdf}."
            return PaperLimit(f"{happened}, and OCR did not finish.", remedy)
        remedy = f"Try another OCR engine, for example {ocrmypdf}, and put the result in the folder; or leave it out."
        return PaperError(f"{happened}, and OCR finds no text in it.", remedy)


def is_nearly_empty(text: str) -> bool:
    # The beginning is enough: long texts have letters there.
    return sum(character.isalnum() for character in text[: 4 * _STRAY_CHARACTERS]) < _STRAY_CHARACTERS


def page_labels(document: Any, count: int) -> list[str]:
    """The printed label of each page, "" if the file has none or it is too long to be one."""
    try:
        rules = sorted(document.get_page_labels(), key=lambda rule: rule["startpage"])
    except Exception:  # broken labels, or too many to fit in memory, are ignored
        return [""] * count
    labels = [""] * count
    for number, rule in enumerate(rules):
        end = rules[number + 1]["startpage"] if number + 1 < len(rules) else count
        prefix = rule.get("prefix", "")
        if len(prefix) > limits.LABEL:
            continue
        for index in range(max(0, rule["startpage"]), min(end, count)):
            value = rule.get("firstpagenum", 1) + index - rule["startpage"]
            label = _printable(prefix + _numeral(value, rule.get("style", "")))
            labels[index] = label if len(label) <= limits.LABEL else ""
    return labels


def _numeral(value: int, style: str) -> str:
    """A page number in a PDF page label style (ISO 32000-1, 12.4.2): D, R, r, A, a, or "" for no number."""
    if style == "D":
        return str(value)
    if not style or not 0 < value < 4000:
        return ""
    if style in "Aa":
        # z is followed by aa, then bb
        text = chr(ord("A") + (value - 1) % 26) * ((value - 1) // 26 + 1)
    else:
        text = ""
        for size, sign in zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
            strict=True,
        ):
            text += sign * (value // size)
            value %= size
    return text.lower() if style in "ra" else text


def _printable(text: str) -> str:
    return one_line("".join(c if c.isprintable() else " " for c in text))
