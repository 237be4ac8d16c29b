"""Exports notes as Markdown, for Zotero, and the papers that they cite as BibTeX. word.py writes them for Word.

Text of papers and of people is only text: it is escaped in Markdown, and has no control characters in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby

from folio.bibliography.export import library_bibtex, page_and_label
from folio.bibliography.markdown import LINE_BREAK, escaped
from folio.papers.link import reader_link
from folio.shown_text import name_line, plain_line
from folio.store.note_places import Place, PlacedNote, PlacedQuote
from folio.store.notes import NoteQuote
from folio.zotero.link import open_page

TITLE = "Notes"
_IN_FOLIO, _IN_ZOTERO = "Open in Folio", "Open in Zotero"
# Where a quote is -> what must be said about it
REMARKS: Mapping[Place, str] = {
    "lost": "These words are no longer in the paper.",
    "removed": "The paper was removed from the library.",
}
# The namespaces of Zotero's RDF: https://github.com/zotero/translators, Zotero RDF.js
_RDF = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "z": "http://www.zotero.org/namespaces/export#",
    "bib": "http://purl.org/net/biblio#",
}


def folio_link(page: str, quote: NoteQuote, note: str) -> str:
    """The address of a quote and its note on Folio's page: "http://127.0.0.1:8420/#paper/ID/p/7?from=10&to=20&note=ID".

    page: the address of Folio's page.
    """
    link = reader_link(page, quote.paper, quote.page or 1, (quote.start, quote.end) if quote.quote else None)
    return f"{link}{'&' if '?' in link else '?'}note={note}"


def zotero_link(placed: PlacedQuote) -> str:
    """The link that opens the page in Zotero; "" if the paper is not there."""
    return open_page(placed.paper.metadata.zotero.value, placed.quote.page or 1) if placed.paper else ""


def markdown(notes: Sequence[PlacedNote], page: str) -> str:
    """The notes in this order, with a heading for each paper. page: the address of Folio's page, for links."""
    parts = [f"# {TITLE}"]
    for _, group in groupby(notes, paper_of):
        of_paper = list(group)
        parts.append(f"## {escaped(heading_of(of_paper[0]))}")
        parts.append("\n\n---\n\n".join("\n\n".join(markdown_note(note, page)) for note in of_paper))
    return "\n\n".join(parts) + "\n"


def markdown_note(placed: PlacedNote, page: str) -> Iterator[str]:
    """The paragraphs of a note. page: see markdown."""
    if statement := _markdown_lines(placed.note.statement):
        yield statement
    for each in placed.quotes:
        links = "".join(f" [{text}]({address})" for text, address in links_of(each, placed, page))
        remark = f" *{REMARKS[each.place]}*" if each.place in REMARKS else ""
        words = f"> “{escaped(each.quote.quote)}”\n>\n" if each.quote.quote else ""
        yield f"{words}> {escaped(place_of(each, placed))}.{links}{remark}"
    if text := _markdown_lines(placed.note.text):
        yield text


def _markdown_lines(text: str) -> str:
    return "\n\n".join(LINE_BREAK.join(map(escaped, lines)) for lines in paragraphs(text))


def paragraphs(text: str) -> list[list[str]]:
    """The lines of each paragraph of a text, on which no character is hidden."""
    lines = [plain_line(line) for line in text.splitlines()]
    return [list(group) for has_words, group in groupby(lines, bool) if has_words]


def paper_of(placed: PlacedNote) -> str:
    return placed.quotes[0].quote.paper if placed.quotes else ""


def heading_of(placed: PlacedNote) -> str:
    """The title of the paper of a note, or its file."""
    return _name(placed.quotes[0].quote) if placed.quotes else "No paper"


def _name(quote: NoteQuote) -> str:
    return name_line(quote.title) if quote.title.strip() else name_line(quote.file)


def place_of(each: PlacedQuote, placed: PlacedNote) -> str:
    """The page, after the paper if it is another one than that of the note."""
    return _page(each.quote) if each.quote.paper == paper_of(placed) else where_of(each)


def where_of(each: PlacedQuote) -> str:
    """The paper and the page: "On Sea Otters, p. 7 (printed iv)"."""
    return f"{_name(each.quote)}, {_page(each.quote)}"


def _page(quote: NoteQuote) -> str:
    if not quote.page:
        return "the whole paper"
    return ("an area of " if quote.area else "") + page_and_label(quote.page, quote.label)


def links_of(each: PlacedQuote, placed: PlacedNote, page: str) -> Iterator[tuple[str, str]]:
    """The text and the address of each link to a quote that has a place."""
    if each.place in ("here", "moved"):
        yield _IN_FOLIO, folio_link(page, each.quote, placed.note.id)
        if link := zotero_link(each):
            yield _IN_ZOTERO, link


def zotero_rdf(notes: Sequence[PlacedNote], page: str) -> str:
    """The notes in this order for Zotero's File, Import: RDF with a note of its own for each paper, in HTML.

    Zotero's translator "Zotero RDF" reads bib:Memo as a note. page: see markdown.
    """
    memos = []
    for number, (_, group) in enumerate(groupby(notes, paper_of), 1):
        of_paper = list(group)
        parts = [f"<h1>{escape(heading_of(of_paper[0]))}</h1>"]
        parts += [part for note in of_paper for part in _html_note(note, page)]
        html = escape("".join(parts))
        memos.append(f'<bib:Memo rdf:about="#note_{number}"><rdf:value>{html}</rdf:value></bib:Memo>')
    names = "".join(f' xmlns:{name}="{address}"' for name, address in _RDF.items())
    inside = "\n    ".join(memos)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<rdf:RDF{names}>\n    {inside}\n</rdf:RDF>\n'


def _html_note(placed: PlacedNote, page: str) -> Iterator[str]:
    yield from _html_lines(placed.note.statement)
    for each in placed.quotes:
        if each.quote.quote:
            yield f"<blockquote><p>“{escape(plain_line(each.quote.quote))}”</p></blockquote>"
        links = "".join(f' <a href="{escape(address)}">{text}</a>' for text, address in links_of(each, placed, page))
        remark = f" <em>{REMARKS[each.place]}</em>" if each.place in REMARKS else ""
        yield f"<p>{escape(place_of(each, placed))}.{links}{remark}</p>"
    yield from _html_lines(placed.note.text)


def _html_lines(text: str) -> Iterator[str]:
    for lines in paragraphs(text):
        yield f"<p>{'<br/>'.join(map(escape, lines))}</p>"


def cited_bibtex(notes: Sequence[PlacedNote], keys: Mapping[str, str], published: Mapping[str, str]) -> str:
    """The papers that the notes cite as BibTeX, with a comment on each that was removed.

    keys, published: see library_bibtex.
    """
    quotes = [each for note in notes for each in note.quotes]
    cited = {each.paper.id: each.paper for each in quotes if each.paper}
    removed = dict.fromkeys(_name(each.quote).replace("@", "(at)") for each in quotes if each.paper is None)
    comments = "".join(f"% {REMARKS['removed']} {name}\n" for name in removed)
    return comments + library_bibtex(list(cited.values()), keys, published)
