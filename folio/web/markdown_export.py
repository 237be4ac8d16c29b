"""A conversation as Markdown, for people to keep: questions, answers, and under each the pages cited. Pure.

Nothing that a paper, a file's name or a model says becomes a link, a tag or a heading of its own: it is written so that
CommonMark (https://spec.commonmark.org/0.31.2/), and what GitHub and pandoc add to it, show it as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from folio.answer.bibliography import Source, by_page, reference_line
from folio.answer.markup import printable
from folio.types import SUMMARY

_ACTIVE = re.compile(
    r"[\\`*_{}\[\]<>#|~$&@^]"  # anywhere
    r"|:(?=//)|(?<=www)\."  # in an address, which becomes a link without more
    r"|\A[-+=:]"  # at the start of a line
)
_NUMBER = re.compile(r"\A\d{1,9}(?=[.)])")  # there too, as of a list


def markdown(title: str, replies: Sequence[Mapping[str, Any]]) -> str:
    """A conversation with this title. replies: of the web API, in their order."""
    parts = [f"# {_escaped(title)}"]
    for reply in replies:
        parts += _turn(reply)
    if papers := list(_references(replies)):
        parts += ["## Key references", "\n".join(papers)]
    return "\n\n".join(parts) + "\n"


def _turn(reply: Mapping[str, Any]) -> Iterator[str]:
    """The paragraphs of a question and its answer."""
    sources = by_page(_source(citation) for citation in reply["citations"])
    numbers = {(source.paper, source.page): number for number, source in enumerate(sources, 1)}
    yield f"## {_escaped(reply['message'])}"
    if reply["standalone_question"] != reply["message"].strip():
        yield f"Understood as: {_escaped(reply['standalone_question'])}"
    if reply["refused"]:
        yield f"*{_escaped(reply['answer'])}*"
    before = ""
    for section, sentences in groupby(reply["sentences"], lambda sentence: str(sentence["section"])):
        yield from _headings(section, before)
        before = section
        said = [_sentence(sentence, numbers) for sentence in sentences]
        yield "\n".join(f"- {line}" for line in said) if section == SUMMARY else " ".join(said)
    if reply["notice"]:
        yield f"Note: {_escaped(reply['notice'])}"
    if sources:
        yield "### Sources"
    for number, source in enumerate(sources, 1):
        yield from _listed(number, source)


def _headings(section: str, before: str) -> Iterator[str]:
    """What stands above a section of a report: its heading where that is another, and its subheading."""
    heading, _, below = section.partition("/")
    if heading and heading != before.partition("/")[0]:
        yield f"### {_escaped(heading)}"
    if below:
        yield f"#### {_escaped(below)}"


def _sentence(sentence: Mapping[str, Any], numbers: Mapping[tuple[str, int], int]) -> str:
    """A sentence with the numbers of the pages that it stands on, and of those that say otherwise."""
    said = f"{_escaped(sentence['text'])} {_marker(sentence['citations'], numbers)}"
    others = _marker(sentence["against"], numbers)
    if sentence["against"]:
        said += f" **But {others} {'say' if ',' in others else 'says'} otherwise.**"
    return said


def _marker(citations: Sequence[Mapping[str, Any]], numbers: Mapping[tuple[str, int], int]) -> str:
    """As in "[1, 3]"."""
    cited = dict.fromkeys(numbers[citation["paper"], citation["page"]] for citation in citations)
    return f"[{', '.join(map(str, cited))}]"


def _listed(number: int, source: Source) -> Iterator[str]:
    """An item of a numbered list: the page, and under it what stands there."""
    title = f". {_escaped(source.title)}" if source.title.strip() else ""
    item = f"{number}. "
    yield f"{item}{_escaped(source.file)}, {_escaped(source.where)}{title}"
    for quote, support in source.quotes:
        held = f" (support {support:.2f})" if support < 1 else ""
        yield f"{' ' * len(item)}> “{_escaped(quote)}”{held}"


def _references(replies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every paper cited, with its pages."""
    papers: dict[str, tuple[str, str, set[int]]] = {}
    for citation in (citation for reply in replies for citation in reply["citations"]):
        known = papers.setdefault(citation["paper"], (citation["title"], citation["file"], set()))
        known[2].add(citation["page"])
    for title, file, pages in papers.values():
        yield f"- {_escaped(reference_line('', printable(title), printable(file), sorted(pages)))}"


def _source(citation: Mapping[str, Any]) -> Source:
    quotes = ((citation["quote"], citation["support"]),)
    return Source(citation["paper"], citation["file"], citation["title"], citation["page"], citation["label"], quotes)


def _escaped(text: str) -> str:
    """On one line, and shown as it is."""
    line = " ".join(printable(text).split())
    return _NUMBER.sub(r"\g<0>\\", _ACTIVE.sub(r"\\\g<0>", line))
