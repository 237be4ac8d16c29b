"""Exports a conversation as Markdown, or as the HTML of a Zotero note with links that open the cited pages. Pure.

Text from a paper, a file name or a model never becomes a link, a tag or a heading (bibliography/markdown.py). A link
comes from zotero/link.py or papers/link.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from textwrap import indent
from typing import Any

from folio.answer_types import CLOSEST, EXCERPTS, SUMMARY, Section
from folio.bibliography.export import CitedPage, merge_by_page, reference_line, stands_in
from folio.bibliography.markdown import LINE_BREAK, escaped, line_escaped
from folio.deep.types import RELEVANT
from folio.papers.label import published_in
from folio.papers.link import reader_link
from folio.shown_text import (
    ABOUT_EVIDENCE,
    AGREE,
    DIFFER,
    IN_PLACE,
    LEFT_OUT,
    MAY_NOT_ANSWER,
    OPEN,
    REWORDED_SIGN,
    counted,
    disagrees,
    legend,
    mark_again,
    marked_parts,
    name_line,
    number_mark,
    plain_line,
    split_commands,
    statement_lines,
    without_numbers,
)
from folio.zotero.link import checked

NO_ANSWER = "This question has no answer."
_MOST_NAMED = 10  # papers
_SCOPE_FIELDS = ("year", "author", "venue", "section", "collection", "tag", "cited_by", "category", "project")


def markdown(title: str, replies: Sequence[Mapping[str, Any]], *, numbered: bool = False) -> str:
    """replies: ChatReply and UnansweredJson objects of the web API as dictionaries, in order.

    numbered: cite by number of the source.
    """
    parts = [f"# {escaped(title)}"]
    for reply in replies:
        if "state" in reply:
            parts += [f"## {escaped(reply['message'])}", f"*{NO_ANSWER}*"]
            continue
        parts += _turn(_with_numbers(reply) if numbered else reply)
    if papers := list(_references(replies)):
        parts += ["## Key references", "\n".join(papers)]
    return "\n\n".join(parts) + "\n"


def _with_numbers(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A reply whose citations have as `mark` the number of their page in the sources; its texts lose such numbers."""
    pages = merge_by_page(map(_source, reply["citations"]))
    numbers = {(page.paper, page.page): number for number, page in enumerate(pages, 1)}

    def marked(value: Any) -> Any:
        if isinstance(value, list):
            return [marked(item) for item in value]
        if not isinstance(value, dict):
            return value
        fields = {name: marked(item) for name, item in value.items()}
        texts = [name for name in ("text", "quote") if isinstance(fields.get(name), str)]
        fields |= {name: without_numbers(fields[name]) for name in texts}
        if number := numbers.get((value.get("paper", ""), value.get("page", 0))):
            fields["mark"] = number_mark(number, (value.get("notice") or {}).get("mark", ""))
        return fields

    names = ("sentences", "citations", "left_out", "evidence_profile")
    return {**reply, **{name: marked(reply[name]) for name in names if name in reply}}


def _turn(reply: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of a question and its answer."""
    sources = merge_by_page(map(_source, reply["citations"]))
    yield f"## {escaped(reply['message'])}"
    if reply["standalone_question"] != reply["message"].strip():
        yield f"Understood as: {escaped(reply['standalone_question'])}"
    if asked := _asked(reply):
        yield escaped(asked)
    if wording := _instruction_words(reply):
        yield escaped(wording)
    if reply["refused"] or reply.get("remark"):
        yield f"*{escaped(reply['answer'])}*"
    for warning in reply.get("warnings", ()):
        yield f"**{escaped(warning)}**"
    if reply["sentences"]:
        yield "".join(map(Statements().add, reply["sentences"]))
    yield from _remarks(reply)
    if sources:
        yield "### Sources"
    texts = [sentence["text"] for sentence in reply["sentences"]]
    for number, source in enumerate(sources, 1):
        yield from _source_item(number, source, texts)
    if left_out := reply.get("left_out"):
        yield f"### {LEFT_OUT}"
        yield "The papers do not support these statements of the model:"
        items = (f"{_statement(each['text'])}{LINE_BREAK}*Reason: {escaped(each['reason'])}*" for each in left_out)
        yield "\n".join(_item("- ", item) for item in items)


class Statements:
    """The statements of an answer as Markdown, one after the other: what was written stays as it is."""

    def __init__(self) -> None:
        self._before: Mapping[str, Any] | None = None

    def add(self, sentence: Mapping[str, Any]) -> str:
        """The next one, with what separates it from the one before, the headings above it, and a short answer."""
        before, self._before = self._before, sentence
        section = Section.parse(sentence["section"])
        last = Section.parse(before["section"]) if before else Section()
        blocks = [_short_answer(sentence, short)] if before is None and (short := sentence.get("short")) else []
        blocks += _headings(section, last)
        statement = "\n\n".join(_paragraph_of(sentence))
        blocks.append(_item("- ", statement) if section == SUMMARY else statement)
        return ("" if before is None else self._between(before, sentence)) + "\n\n".join(blocks)

    def _between(self, before: Mapping[str, Any], sentence: Mapping[str, Any]) -> str:
        if before["section"] != sentence["section"]:
            return "\n\n"
        if sentence["section"] == str(SUMMARY):
            return "\n"
        return "\n\n" if _stands_alone(before) or _stands_alone(sentence) else " "


def ending(reply: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of an answer after its statements, where its sources are not listed.

    What it says in place of statements, its warnings and remarks, what was searched if that was in vain, and how many
    statements were left out.
    """
    if reply["refused"] or reply.get("remark"):
        yield f"*{escaped(reply['answer'])}*"
    if reply["refused"] and (asked := _asked(reply)):
        yield escaped(asked)
    for warning in reply.get("warnings", ()):
        yield f"**{escaped(warning)}**"
    yield from _remarks(reply)
    if count := reply["dropped_sentences"]:
        yield f"*{counted(count, 'unsupported sentence')} {'was' if count == 1 else 'were'} left out.*"


def _remarks(reply: Mapping[str, Any]) -> Iterator[str]:
    """The legend of reworded statements, the evidence profile, the notice, and the summary of a deep search."""
    if note := _legend(reply):
        yield f"*{escaped(note)}*"
    if profile := reply.get("evidence_profile"):
        yield from _profile(profile)
    if reply["notice"]:
        yield f"Note: {_with_code(reply['notice'])}"
    if trace := reply.get("trace"):
        yield f"*{_search_summary(trace)}*"


def with_links(value: Any, page: str) -> Any:
    """A reply, or a part of one, whose citations have as `link` the address of their words on Folio's page.

    page: the address of Folio's page.
    """
    if isinstance(value, list):
        return [with_links(item, page) for item in value]
    if not isinstance(value, Mapping):
        return value
    fields = {name: with_links(item, page) for name, item in value.items()}
    if "shown" in fields and "page" in fields:
        span = (fields["span"][0], fields["span"][1]) if fields.get("span") else None
        fields["link"] = reader_link(page, fields["paper"], fields["page"], span)
    return fields


def _profile(profile: Mapping[str, Any]) -> Iterator[str]:
    """The evidence profile: where the papers agree and differ, and what they leave open."""
    yield f"### {ABOUT_EVIDENCE}"
    if confidence := profile["confidence"]:
        share = f"{confidence['value']:.0%}"
        yield f"Confidence: {confidence['level']}. In tests {share} of such answers showed what was asked for."
    sides = [(group["some"], group["others"]) for group in profile["differences"]]
    differing = ["\n\n".join((_quoted(some), "but", _quoted(others))) for some, others in sides]
    parts = ((AGREE, map(_quoted, profile["agreements"])), (DIFFER, differing))
    for heading, items in (*parts, (OPEN, map(_quoted, ([quote] for quote in profile["open_questions"])))):
        if bullets := "\n".join(_item("- ", text) for text in items):
            yield f"#### {heading}"
            yield bullets


def _quoted(quotes: Iterable[Mapping[str, Any]]) -> str:
    """Quotes with their pages, each a paragraph."""
    return "\n\n".join(f"“{escaped(quote['quote'])}” {_marks([quote])[0]}" for quote in quotes)


def _search_summary(trace: Mapping[str, Any]) -> str:
    """A line about a deep search, without its steps."""
    read = [event for event in trace["events"] if event["event"] == "evidence"]
    relevant = sum((event["relevance"] or 0) >= RELEVANT for event in read)
    papers = len({event["paper"] for event in read})
    calls = f"{counted(trace['calls'], 'model call')}, " if trace["calls"] else ""
    return (
        f"Deep search: {counted(trace['rounds'], 'round')}, {counted(len(read), 'passage')} of"
        f" {counted(papers, 'paper')} read, {relevant} relevant; {calls}{trace['seconds']:.0f} s"
    )


def _short_answer(sentence: Mapping[str, Any], short: Sequence[int]) -> str:
    """A short answer in bold with its page."""
    answer = sentence["text"][short[0] : short[1]]
    on_page = [cited for cited in sentence["citations"] if stands_in(answer, [cited["quote"]])]
    return f"**{escaped(answer)}** {_marks((on_page or sentence['citations'])[:1])[0]}"


def _headings(section: Section, before: Section) -> Iterator[str]:
    """The lines above a section of a report: its heading if it changed, and its subheading."""
    if section.heading and section.heading != before.heading:
        yield f"### {section.heading}"
        if section.heading == CLOSEST.heading:
            yield f"*{MAY_NOT_ANSWER}*"
    if section.subheading:
        yield f"#### {escaped(section.subheading)}"


def _paragraph_of(sentence: Mapping[str, Any]) -> Iterator[str]:
    """A statement; before it what it stands for, and after it the quotes of one that is reworded."""
    if sentence.get("instead_of"):
        yield f"*{escaped(IN_PLACE)}*"
    yield _sentence(sentence)
    if _is_reworded(sentence):
        quotes = dict.fromkeys(citation["quote"] for citation in sentence["citations"])
        yield "\n>\n".join(f"> “{escaped(quote)}”" for quote in quotes)


def _stands_alone(sentence: Mapping[str, Any]) -> bool:
    several = len(statement_lines(sentence["text"])) > 1
    is_excerpt = Section.parse(sentence["section"]).heading in EXCERPTS
    return several or is_excerpt or _is_reworded(sentence) or bool(sentence.get("instead_of"))


def _item(bullet: str, text: str) -> str:
    """An item of a list, with all lines indented alike."""
    return bullet + indent(text, " " * len(bullet)).lstrip(" ")


def _statement(text: str, marks: Sequence[Sequence[int]] = ()) -> str:
    """A statement line by line, with the spaces that CommonMark would drop as entities, and marked words in bold."""
    shown = "\n".join(statement_lines(text))
    spans = [(start, end) for start, end in marks]
    lines: list[str] = [""]
    for part, is_marked in marked_parts(shown, text, spans):
        for number, piece in enumerate(part.split("\n")):
            if number:
                lines.append("")
            words = piece.strip(" ")
            bold = f"**{_spaced(words, starts=not lines[-1])}**" if words and is_marked else ""
            lines[-1] += piece.replace(words, bold, 1) if bold else _spaced(piece, starts=not lines[-1])
    return LINE_BREAK.join(lines)


def _spaced(line: str, *, starts: bool) -> str:
    """A part of a line, escaped. starts: whether it is the start of the line."""
    text = line.lstrip(" ") if starts else line
    return "&nbsp;" * (len(line) - len(text)) + re.sub(" (?= )", "&nbsp;", line_escaped(text))


def _sentence(sentence: Mapping[str, Any]) -> str:
    """A sentence with the pages that support it and that contradict it, on a new line if it has several lines."""
    sign = f"{REWORDED_SIGN} " if _is_reworded(sentence) else ""
    statement = _statement(sentence["text"], sentence.get("marks", ()))  # an older Folio stored none
    line = f"{sign}{statement}{LINE_BREAK if LINE_BREAK in statement else ' '}{' '.join(_marks(sentence['citations']))}"
    marked = ((how, _marks(quotes)) for how, quotes in _disagreeing(sentence))
    others = [f"{' '.join(marks)} {disagrees(how, len(marks))}" for how, marks in marked]
    return f"{line} **But {'; '.join(others)}.**" if others else line


def _disagreeing(sentence: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """How quotes disagree with a sentence, and those that do so."""
    for how in dict.fromkeys(quote.get("differs", "") for quote in sentence["against"]):  # an older Folio stored none
        yield how, [quote for quote in sentence["against"] if quote.get("differs", "") == how]


def _marks(citations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Citations as the terminal shows them, each page once: "[Ongaro 2014, p. 6]", or "[1]" with a mark.

    One with a `link` is a link (with_links).
    """
    marks: dict[str, str] = {}
    for cited in citations:
        marks.setdefault(cited.get("mark") or mark_again(str(cited["shown"]), cited["page"]), cited.get("link", ""))
    return [f"[{line_escaped(mark)}]({link})" if link else line_escaped(mark) for mark, link in marks.items()]


def _source_item(number: int, source: CitedPage, texts: Sequence[str]) -> Iterator[str]:
    """An item of the numbered list of sources: the page, and its quotes that are not in the texts."""
    title = f". {escaped(name_line(source.title))}" if source.title.strip() else ""
    item = f"{number}. "
    place = ", ".join((source.where, *source.sections))
    zotero = f" [Open in Zotero]({source.zotero})" if source.zotero else ""
    published = f". {escaped(source.published)}" if source.published else ""
    notice = f" **{escaped(source.notice)}**" if source.notice else ""
    yield f"{item}{escaped(name_line(source.file))}, {escaped(place)}{title}{published}{notice}{zotero}"
    for quote, support in source.quotes:
        if stands_in(quote, texts):
            continue
        support_note = f" (support {support:.2f})" if support < 1 else ""
        yield f"{' ' * len(item)}> “{escaped(quote)}”{support_note}"


def _references(replies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each cited paper, with its pages."""
    papers: dict[str, tuple[str, str, set[int]]] = {}
    for citation in (citation for reply in replies for citation in reply.get("citations", ())):
        _, _, pages = papers.setdefault(citation["paper"], (citation["title"], citation["file"], set()))
        pages.add(citation["page"])
    for title, file, pages in papers.values():
        yield f"- {escaped(reference_line('', name_line(title), name_line(file), sorted(pages)))}"


def _with_code(text: str) -> str:
    """A message of Folio, escaped, with its commands as code."""
    parts = split_commands(plain_line(text))
    return "".join(f"`{part}`" if is_command else line_escaped(part) for part, is_command in parts)


# Both formats


def _asked(reply: Mapping[str, Any]) -> str:
    """What a question was asked of, if that was a part of the library and no refusal names it; else ""."""
    words, searched = _scope_words(reply.get("scope")), reply.get("searched", "")
    if not words or (reply["refused"] and searched):
        return ""
    return f"Asked: {name_line(searched)}" if searched else f"Asked only: {words}"


def _instruction_words(reply: Mapping[str, Any]) -> str:
    """What was asked of the wording: "Instruction “For a clinician”: Name doses first."; "" for nothing."""
    used = reply.get("instruction")
    return f"Instruction “{plain_line(used['name'])}”: {plain_line(used['text'])}" if used else ""


def _scope_words(scope: Mapping[str, Any] | None) -> str:
    """What a question was restricted to: "“On Sea Otters”; year 2010-2015 or 2020-"; "" for the whole library.

    scope: a ScopeJson as a dictionary; None for an answer of an older Folio.
    """
    scope = scope or {}
    papers = [f"“{name_line(paper['title'] or paper['file'])}”" for paper in scope.get("papers", ())]
    more = [counted(len(papers) - _MOST_NAMED, "more paper")] if len(papers) > _MOST_NAMED else []
    parts = [", ".join([*papers[:_MOST_NAMED], *more])] if papers else []
    for field in _SCOPE_FIELDS:
        if values := scope.get(field):
            parts.append(f"{field.replace('_', ' ')} {' or '.join(map(name_line, values))}")
    return "; ".join(parts)


def _is_reworded(sentence: Mapping[str, Any]) -> bool:
    return bool(sentence.get("outcome") == "reworded")  # an older Folio stored no outcome


def _legend(reply: Mapping[str, Any]) -> str:
    """The meaning of the sign before reworded statements; "" without any."""
    return legend([sentence.get("verified_by", "") for sentence in reply["sentences"] if _is_reworded(sentence)])


def _source(citation: Mapping[str, Any]) -> CitedPage:
    return CitedPage(
        citation["paper"],
        citation["file"],
        citation["title"],
        citation["page"],
        citation["label"],
        quotes=((citation["quote"], citation["support"]),),
        sections=tuple(filter(None, [citation.get("section", "")])),  # an older Folio stored none
        zotero=checked(citation.get("zotero", "")),
        published=published_in(citation.get("venue", ""), citation.get("year")),
        notice=(citation.get("notice") or {}).get("text", ""),
    )


# A note for Zotero: HTML in a `div` with the number of Zotero's schema

_SCHEMA = 9  # of Zotero 6 and 7
_NBSP = "\u00a0"


def zotero_note(title: str, replies: Sequence[Mapping[str, Any]]) -> str:
    """replies: as for `markdown`; several get their questions as headings."""
    parts = [_element("h1", _text(title))]
    for reply in replies:
        if len(replies) > 1:
            parts.append(_element("h2", _text(reply["message"])))
        parts += [_paragraph(_text(NO_ANSWER))] if "state" in reply else _answer(reply)
    return f'<div data-schema-version="{_SCHEMA}">{"".join(parts)}</div>\n'


def _answer(reply: Mapping[str, Any]) -> Iterator[str]:
    if asked := _asked(reply):
        yield _paragraph(_text(asked))
    if wording := _instruction_words(reply):
        yield _paragraph(_text(wording))
    if reply["refused"] or reply["remark"]:
        yield _paragraph(_text(reply["answer"]))
    for warning in reply.get("warnings", ()):
        yield _paragraph(_element("strong", _text(warning)))
    for section, sentences in groupby(reply["sentences"], lambda sentence: Section.parse(sentence["section"])):
        if heading := section.subheading or section.heading:
            yield _element("h3", _text(heading))
        for sentence in sentences:
            yield from _note_sentence(sentence)
    if note := _legend(reply):
        yield _paragraph(_text(note))
    if reply["notice"]:
        yield _paragraph(_with_html_code(f"Note: {reply['notice']}"))
    if sources := merge_by_page(map(_source, reply["citations"])):
        yield _element("h3", "Sources")
        yield _element("ol", "".join(_element("li", "".join(_note_source_item(source))) for source in sources))


def _note_sentence(sentence: Mapping[str, Any]) -> Iterator[str]:
    """A statement with its citations, and its quotes below if it is reworded."""
    if sentence.get("instead_of"):
        yield _paragraph(_element("em", _text(IN_PLACE)))
    lines = map(_indented, statement_lines(sentence["text"]))
    sign = f"{REWORDED_SIGN} " if _is_reworded(sentence) else ""
    statement = f"{sign}{'<br/>'.join(map(escape, lines))} {_note_marks(sentence['citations'])}"
    for how, quotes in _disagreeing(sentence):
        statement += f" But {_note_marks(quotes)} {disagrees(how)}."
    yield _paragraph(statement)
    if _is_reworded(sentence):
        yield from map(_quote, dict.fromkeys(citation["quote"] for citation in sentence["citations"]))


def _indented(line: str) -> str:
    """A line whose indent HTML keeps."""
    text = line.lstrip(" ")
    return _NBSP * (len(line) - len(text)) + text


def _note_marks(citations: Iterable[Mapping[str, Any]]) -> str:
    """Citations as Folio shows them, "[otters.pdf p.7]", each page once; as a link if the paper is in Zotero."""
    marks: dict[str, str] = {}
    for cited in citations:
        marks.setdefault(mark_again(str(cited["shown"]), cited["page"]), checked(cited.get("zotero", "")))
    return " ".join(_linked(escape(mark), link) for mark, link in marks.items())


def _note_source_item(source: CitedPage) -> Iterator[str]:
    names = [name_line(name) for name in (source.title, source.file) if name.strip()]
    place = _text(", ".join((*names, source.where, *source.sections)))
    link = f" ({_linked('Open in Zotero', source.zotero)})" if source.zotero else ""
    notice = f" {_element('strong', _text(source.notice))}" if source.notice else ""
    yield _paragraph(place + notice + link)
    yield from (_quote(quote) for quote, _ in source.quotes)


def _quote(quote: str) -> str:
    return _element("blockquote", _paragraph(f"“{_text(quote)}”"))


def _linked(content: str, link: str) -> str:
    return f'<a href="{escape(link)}">{content}</a>' if link else content


def _paragraph(content: str) -> str:
    return _element("p", content)


def _element(tag: str, content: str) -> str:
    return f"<{tag}>{content}</{tag}>"


def _with_html_code(text: str) -> str:
    """A message of Folio, escaped, with its commands as code."""
    parts = split_commands(plain_line(text))
    return "".join(_element("code", escape(part)) if is_command else escape(part) for part, is_command in parts)


def _text(text: str) -> str:
    """Foreign text on one line, escaped."""
    return escape(plain_line(text))
