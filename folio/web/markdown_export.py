"""Exports a conversation as Markdown: questions, answers, and the pages cited under each answer. Pure.

Text from a paper, a file name or a model never becomes a link, a tag or a heading: it is escaped for CommonMark
(https://spec.commonmark.org/0.31.2/) and for the extensions of GitHub and pandoc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from folio.answer.bibliography import CitedPage, merge_by_page, reference_line
from folio.shown_text import citation_mark, name_line, one_line, sentence_line
from folio.types import SUMMARY, Section

_ACTIVE = re.compile(
    r"[\\`*_{}\[\]<>#|~$&@^]"  # anywhere
    r"|:(?=//)|(?<=www)\."  # in URLs, which GitHub turns into links
    r"|\A[-+=:]"  # at the start of a line
)
_NUMBER = re.compile(r"\A\d{1,9}(?=[.)])")  # list numbers at the start of a line


def markdown(title: str, replies: Sequence[Mapping[str, Any]]) -> str:
    """replies: ChatReply objects of the web API as dictionaries, in order."""
    parts = [f"# {_escaped(title)}"]
    for reply in replies:
        parts += _turn(reply)
    if papers := list(_references(replies)):
        parts += ["## Key references", "\n".join(papers)]
    return "\n\n".join(parts) + "\n"


def _turn(reply: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of a question and its answer."""
    sources = merge_by_page(_source(citation) for citation in reply["citations"])
    yield f"## {_escaped(reply['message'])}"
    if reply["standalone_question"] != reply["message"].strip():
        yield f"Understood as: {_escaped(reply['standalone_question'])}"
    if reply["refused"]:
        yield f"*{_escaped(reply['answer'])}*"
    before = Section()
    for section, sentences in groupby(reply["sentences"], lambda sentence: Section.parse(sentence["section"])):
        yield from _headings(section, before)
        before = section
        lines = [_sentence(sentence) for sentence in sentences]
        yield "\n".join(f"- {line}" for line in lines) if section == SUMMARY else " ".join(lines)
    if reply["notice"]:
        yield f"Note: {_escaped(reply['notice'])}"
    if sources:
        yield "### Sources"
    for number, source in enumerate(sources, 1):
        yield from _source_item(number, source)


def _headings(section: Section, before: Section) -> Iterator[str]:
    """The lines above a section of a report: its heading if it changed, and its subheading."""
    if section.heading and section.heading != before.heading:
        yield f"### {section.heading}"
    if section.subheading:
        yield f"#### {_escaped(section.subheading)}"


def _sentence(sentence: Mapping[str, Any]) -> str:
    """A sentence with the pages that support it, and those that contradict it."""
    line = f"{_escaped(sentence_line(sentence['text']))} {' '.join(_marks(sentence['citations']))}"
    others = _marks(sentence["against"])
    if others:
        line += f" **But {' '.join(others)} {'say' if len(others) > 1 else 'says'} otherwise.**"
    return line


def _marks(citations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Citations as the terminal shows them, each page once: "[otters p.7]"."""
    keys = ((str(cited["shown"]).removeprefix("[").rpartition(" p.")[0], cited["page"]) for cited in citations)
    return [_markup_escaped(mark) for mark in dict.fromkeys(citation_mark(key, page) for key, page in keys)]


def _source_item(number: int, source: CitedPage) -> Iterator[str]:
    """An item of the numbered list of sources: the page, with its quotes below."""
    title = f". {_escaped(name_line(source.title))}" if source.title.strip() else ""
    item = f"{number}. "
    yield f"{item}{_escaped(name_line(source.file))}, {_escaped(source.where)}{title}"
    for quote, support in source.quotes:
        support_note = f" (support {support:.2f})" if support < 1 else ""
        yield f"{' ' * len(item)}> “{_escaped(quote)}”{support_note}"


def _references(replies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each cited paper, with its pages."""
    papers: dict[str, tuple[str, str, set[int]]] = {}
    for citation in (citation for reply in replies for citation in reply["citations"]):
        paper = papers.setdefault(citation["paper"], (citation["title"], citation["file"], set()))
        paper[2].add(citation["page"])
    for title, file, pages in papers.values():
        yield f"- {_escaped(reference_line('', name_line(title), name_line(file), sorted(pages)))}"


def _source(citation: Mapping[str, Any]) -> CitedPage:
    quotes = ((citation["quote"], citation["support"]),)
    return CitedPage(
        citation["paper"], citation["file"], citation["title"], citation["page"], citation["label"], quotes
    )


def _escaped(text: str) -> str:
    """Text of others on one line, escaped."""
    return _markup_escaped(one_line(text))


def _markup_escaped(line: str) -> str:
    return _NUMBER.sub(r"\g<0>\\", _ACTIVE.sub(r"\\\g<0>", line))
