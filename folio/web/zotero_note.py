"""Exports answers as a note for Zotero: its HTML, with links that open the cited pages there. Pure.

Zotero's notes are HTML in a `div` with the number of their schema. All text of others is escaped, and a link is one of
zotero_link.py or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from folio.answer.bibliography import CitedPage, merge_by_page
from folio.answer_types import Section
from folio.outcome_text import IN_PLACE, legend
from folio.shown_text import REWORDED_SIGN, mark_again, name_line, plain_line, split_commands, statement_lines
from folio.web.scope_text import asked_only
from folio.zotero_link import checked

_SCHEMA = 9  # of Zotero 6 and 7
_NBSP = "\u00a0"


def zotero_note(title: str, replies: Sequence[Mapping[str, Any]]) -> str:
    """replies: ChatReply objects of the web API as dictionaries, in order; of several each is under its question."""
    parts = [_element("h1", _text(title))]
    for reply in replies:
        if len(replies) > 1:
            parts.append(_element("h2", _text(reply["message"])))
        parts += _answer(reply)
    return f'<div data-schema-version="{_SCHEMA}">{"".join(parts)}</div>\n'


def _answer(reply: Mapping[str, Any]) -> Iterator[str]:
    if only := asked_only(reply.get("scope")):
        yield _paragraph(_text(f"Asked only: {only}"))
    if reply["refused"] or reply["remark"]:
        yield _paragraph(_text(reply["answer"]))
    for warning in reply.get("warnings", ()):
        yield _paragraph(_element("strong", _text(warning)))
    for written, sentences in groupby(reply["sentences"], lambda sentence: str(sentence["section"])):
        section = Section.parse(written)
        if heading := section.subheading or section.heading:
            yield _element("h3", _text(heading))
        for sentence in sentences:
            yield from _sentence(sentence)
    if said := legend([each.get("verified_by", "") for each in reply["sentences"] if _is_reworded(each)]):
        yield _paragraph(_text(said))
    if reply["notice"]:
        yield _paragraph(_with_code(f"Note: {reply['notice']}"))
    if sources := merge_by_page(_source(citation) for citation in reply["citations"]):
        yield _element("h3", "Sources")
        yield _element("ol", "".join(_element("li", "".join(_source_item(source))) for source in sources))


def _sentence(sentence: Mapping[str, Any]) -> Iterator[str]:
    """A statement with its citations, and the quotes beneath it if it is a model's."""
    if sentence.get("instead_of"):
        yield _paragraph(_element("em", _text(IN_PLACE)))
    lines = map(_indented, statement_lines(sentence["text"]))
    sign = f"{REWORDED_SIGN} " if _is_reworded(sentence) else ""
    statement = f"{sign}{'<br/>'.join(map(escape, lines))} {_marks(sentence['citations'])}"
    if sentence["against"]:
        statement += f" But {_marks(sentence['against'])} says otherwise."
    yield _paragraph(statement)
    if _is_reworded(sentence):
        yield from map(_quote, dict.fromkeys(citation["quote"] for citation in sentence["citations"]))


def _indented(line: str) -> str:
    """A line whose indent HTML keeps."""
    text = line.lstrip(" ")
    return _NBSP * (len(line) - len(text)) + text


def _is_reworded(sentence: Mapping[str, Any]) -> bool:
    return bool(sentence.get("outcome") == "reworded")  # an older Folio kept no outcome


def _marks(citations: Iterable[Mapping[str, Any]]) -> str:
    """Citations as Folio shows them, "[otters.pdf p.7]", each page once; a link where the paper is in Zotero."""
    marks: dict[str, str] = {}
    for cited in citations:
        marks.setdefault(mark_again(str(cited["shown"]), cited["page"]), checked(cited.get("zotero", "")))
    return " ".join(_linked(escape(mark), link) for mark, link in marks.items())


def _source_item(source: CitedPage) -> Iterator[str]:
    names = [name_line(name) for name in (source.title, source.file) if name.strip()]
    place = _text(", ".join((*names, source.where, *source.sections)))
    link = f" ({_linked('Open in Zotero', source.zotero)})" if source.zotero else ""
    notice = f" {_element('strong', _text(source.notice))}" if source.notice else ""
    yield _paragraph(place + notice + link)
    yield from (_quote(quote) for quote, _ in source.quotes)


def _source(citation: Mapping[str, Any]) -> CitedPage:
    quotes = ((citation["quote"], citation["support"]),)
    sections = tuple(filter(None, [citation.get("section", "")]))  # an older Folio kept none
    names = (citation["paper"], citation["file"], citation["title"], citation["page"], citation["label"])
    notice = (citation.get("notice") or {}).get("text", "")
    return CitedPage(*names, quotes, sections, checked(citation.get("zotero", "")), notice=notice)


def _quote(quote: str) -> str:
    return _element("blockquote", _paragraph(f"“{_text(quote)}”"))


def _linked(content: str, link: str) -> str:
    return f'<a href="{escape(link)}">{content}</a>' if link else content


def _paragraph(content: str) -> str:
    return _element("p", content)


def _element(tag: str, content: str) -> str:
    return f"<{tag}>{content}</{tag}>"


def _with_code(text: str) -> str:
    """A message of Folio, escaped, whose commands in backticks are code."""
    parts = split_commands(plain_line(text))
    return "".join(_element("code", escape(part)) if is_command else escape(part) for part, is_command in parts)


def _text(text: str) -> str:
    """Text of others on one line, escaped."""
    return escape(plain_line(text))
