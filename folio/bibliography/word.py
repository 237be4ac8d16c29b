"""Word documents (.docx): writes notes and tables as one, and reads the text of a draft.

A file that a person names may be anything, so that it is looked at as a ZIP archive before it is unpacked.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING

from folio.bibliography.document import Block
from folio.bibliography.notes import REMARKS, TITLE, heading_of, links_of, paper_of, paragraphs, place_of
from folio.errors import UsageError
from folio.shown_text import plain_line
from folio.store.note_places import PlacedNote
from folio.store.notes import Colour
from folio.text import reason_of

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

# Colour -> the name of Word's highlight that is closest to it (docx.enum.text.WD_COLOR_INDEX)
_HIGHLIGHTS: dict[Colour, str] = {"yellow": "YELLOW", "green": "BRIGHT_GREEN", "blue": "TURQUOISE", "pink": "PINK"}
# Bounds of a document that is read, unpacked
MOST_PARTS, LARGEST_PART, LARGEST = 5_000, 50_000_000, 200_000_000
LARGEST_RATIO = 200  # of a part of more than 10 MB to its packed size: text is packed to a tenth
_TEXT, _TAB, _BREAKS, _PARAGRAPH = "t", "tab", ("br", "cr"), "p"
_LEFT_OUT = ("del", "moveFrom", "instrText")  # deleted text, and the code of fields
_UNREADABLE = "Save it again as a Word document (.docx), or export it as Markdown."


def word_document(notes: Sequence[PlacedNote], page: str) -> bytes:
    """The notes in this order as a file of Microsoft Word (.docx), with a heading for each paper.

    page: see markdown.
    """
    import docx

    document = docx.Document()
    about = document.core_properties
    about.title, about.author, about.comments = TITLE, "", ""
    document.add_heading(TITLE, 0)
    for _, group in groupby(notes, paper_of):
        for place, note in enumerate(group):
            if not place:
                document.add_heading(heading_of(note), 1)
            _add_note(document, note, page)
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def word_of_blocks(blocks: Sequence[Block]) -> bytes:
    """A document as a file of Microsoft Word (.docx). blocks: the first is its title."""
    import docx

    document = docx.Document()
    about = document.core_properties
    about.title, about.author, about.comments = blocks[0].runs[0].shown if blocks else "", "", ""
    for block in blocks:
        if block.kind == "heading":
            document.add_heading(" ".join(run.shown for run in block.runs), block.level - 1)
            continue
        paragraph = document.add_paragraph()
        if block.kind == "item":
            paragraph._p.style = "ListBullet"
        for place, run in enumerate(block.runs):
            if place:
                paragraph.add_run(" ")
            if run.link:
                _add_link(paragraph, run.shown, run.link)
                continue
            added = paragraph.add_run(run.shown)
            added.bold, added.italic = run.style == "bold" or None, run.style == "italic" or None
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _add_note(document: Document, placed: PlacedNote, page: str) -> None:
    from docx.enum.text import WD_COLOR_INDEX

    _add_lines(document, placed.note.statement)
    for each in placed.quotes:
        if each.quote.quote:
            paragraph = document.add_paragraph()
            paragraph._p.style = "Quote"  # add_paragraph(style=...) would look for it among all styles
            quote = paragraph.add_run(f"“{plain_line(each.quote.quote)}”")
            if name := _HIGHLIGHTS.get(placed.note.colour):
                quote.font.highlight_color = WD_COLOR_INDEX[name]
        source = document.add_paragraph(f"{place_of(each, placed)}.")
        for text, address in links_of(each, placed, page):
            source.add_run(" ")
            _add_link(source, text, address)
        if remark := REMARKS.get(each.place):
            source.add_run(f" {remark}").italic = True
    _add_lines(document, placed.note.text)


@dataclass(frozen=True, slots=True)
class Linked:
    """Words, and after them the text of a link."""

    words: str
    text: str = ""
    address: str = ""  # "" for a text without a link


def table_document(
    title: str, about: str, headings: Sequence[str], rows: Sequence[Sequence[Sequence[Linked]]]
) -> bytes:
    """A table as a file of Microsoft Word, on its side. rows: of each, the paragraphs of its cells."""
    import docx
    from docx.enum.section import WD_ORIENT
    from docx.table import _Cell

    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author, properties.comments = plain_line(title), "", ""
    section = document.sections[0]
    section.orientation = WD_ORIENT.LANDSCAPE
    section.page_width, section.page_height = section.page_height, section.page_width
    document.add_heading(plain_line(title), 0)
    document.add_paragraph(plain_line(about))
    table = document.add_table(rows=len(rows) + 1, cols=len(headings))
    table.style = "Table Grid"
    every = [[[Linked(heading)] for heading in headings], *rows]
    for place, (row, cells) in enumerate(zip(table._tbl.tr_lst, every, strict=True)):
        for element, lines in zip(row.tc_lst, cells, strict=True):
            cell = _Cell(element, table)  # table.cell would walk through all cells for each
            for number, each in enumerate(lines):
                paragraph = cell.add_paragraph() if number else cell.paragraphs[0]
                paragraph.add_run(plain_line(each.words)).bold = not place
                if each.text:
                    paragraph.add_run(" ")
                    _add_linked(paragraph, each)
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _add_linked(paragraph: Paragraph, linked: Linked) -> None:
    if linked.address:
        _add_link(paragraph, plain_line(linked.text), linked.address)
    else:
        paragraph.add_run(plain_line(linked.text))


def _add_lines(document: Document, text: str) -> None:
    for lines in paragraphs(text):
        paragraph = document.add_paragraph(lines[0])
        for line in lines[1:]:
            paragraph.add_run().add_break()
            paragraph.add_run(line)


def _add_link(paragraph: Paragraph, text: str, address: str) -> None:
    """Add a link, for which python-docx has no function of its own."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    run = paragraph.add_run(text)
    run.font.underline = True
    link = OxmlElement("w:hyperlink")
    relations = paragraph.part.rels  # its own function for a link compares it with all others
    id = f"link{len(relations)}"
    relations.add_relationship(RELATIONSHIP_TYPE.HYPERLINK, address, id, is_external=True)
    link.set(qn("r:id"), id)
    link.append(run._r)
    paragraph._p.append(link)


def read_paragraphs(data: bytes, name: str) -> list[str]:
    """The text of each paragraph of a Word document, those of tables too, without deleted text and notes.

    name: of the file, for errors. Raises UsageError for anything else, and for a document over a limit.
    """
    _require_sane(data, name)
    try:
        import docx

        body = docx.Document(BytesIO(data)).element.body
        return [_text_of(each) for each in body.iter() if _tag(each) == _PARAGRAPH]
    except MemoryError:
        raise
    except Exception as error:  # python-docx and lxml raise many kinds for a broken document
        raise UsageError(f"{name} cannot be read as a Word document: {reason_of(error)}.", _UNREADABLE) from error


def _require_sane(data: bytes, name: str) -> None:
    """Raise UsageError for what is no ZIP archive, or would unpack to more than a document has."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UsageError(f"{name} is not a Word document (.docx).", _UNREADABLE) from error
    large = [part for part in parts if part.file_size > 10_000_000]
    if (
        len(parts) > MOST_PARTS
        or sum(part.file_size for part in parts) > LARGEST
        or any(part.file_size > LARGEST_PART for part in parts)
        or any(part.file_size > LARGEST_RATIO * max(1, part.compress_size) for part in large)
    ):
        raise UsageError(f"{name} would unpack to more than a document may have.", _UNREADABLE)


def _text_of(paragraph: object) -> str:
    return "".join(_pieces(paragraph))


def _pieces(element: object) -> Iterator[str]:
    """The text of an element, with that of the elements in it, but not of paragraphs in it (of text boxes)."""
    for child in element:  # type: ignore[attr-defined]
        tag = _tag(child)
        if tag == _TEXT:
            yield child.text or ""
        elif tag == _TAB:
            yield " "
        elif tag in _BREAKS:
            yield "\n"
        elif tag not in _LEFT_OUT and tag != _PARAGRAPH:
            yield from _pieces(child)


def _tag(element: object) -> str:
    """The name of an element without its namespace; "" for a comment."""
    tag = getattr(element, "tag", "")
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
