"""Notes for Zotero: their content, and that no text in them becomes markup or another link."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from folio.answer_types import Answer
from folio.papers.metadata import Field
from folio.schema.answers import answer_json
from folio.web.export import markdown, zotero_note
from tests.helpers.answers import ANSWER, HITS, MODELS, OUTCOMES, REFUSED, REPORT, TIMINGS
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

LINK = "zotero://open-pdf/library/items/ABCD2345"


def reply(answer: Answer) -> dict[str, Any]:
    return {**answer_json(answer, HITS, MODELS, TIMINGS).model_dump(mode="json"), "message": answer.question}


def in_zotero(answer: Answer, item: str = "library/items/ABCD2345") -> dict[str, Any]:
    """The reply as if the first cited paper came from Zotero."""
    paper = answer.citations[0].paper
    described = replace(paper, metadata=replace(paper.metadata, zotero=Field(item, "zotero", True)))

    def moved(part: Any) -> Any:
        return replace(part, paper=described) if part.paper == paper else part

    sentences = tuple(
        replace(one, citations=tuple(map(moved, one.citations)), against=tuple(map(moved, one.against)))
        for one in answer.sentences
    )
    return reply(replace(answer, sentences=sentences, evidence=tuple(map(moved, answer.evidence))))


def citations(said: dict[str, Any]) -> list[dict[str, Any]]:
    """All citations of a reply."""
    return [*said["citations"], *(one for sentence in said["sentences"] for one in sentence["citations"])]


class _Parts(HTMLParser):
    """The tags, links and text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name != "data-schema-version"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_an_answer_as_a_note() -> None:
    said = in_zotero(ANSWER)
    golden = (ROOT / "tests" / "data" / "golden" / "zotero-note.html").read_text(encoding="utf-8")
    assert zotero_note(said["message"], [said]) == golden


def test_a_conversation_has_its_questions() -> None:
    note = _Parts(zotero_note("Ice", [reply(ANSWER), reply(REFUSED), reply(REPORT), reply(OUTCOMES)]))
    assert note.links == []
    assert "Who painted it?Not found in the provided papers." in note.text
    assert "≈ " in note.text


HOSTILE = '</p><script>alert(1)</script><img src=x onerror="x">&lt;b&gt; [other p.3] "quoted\'\x1b[31m\u202e'


def test_no_text_becomes_markup() -> None:
    said = in_zotero(ANSWER)
    said["message"] = said["notice"] = HOSTILE
    for sentence in said["sentences"]:
        sentence["text"] = f"- {HOSTILE}\n  - {HOSTILE}"
        sentence["section"] = f"Analysis/{HOSTILE}"
    for cited in citations(said):
        cited |= {"title": HOSTILE, "file": HOSTILE, "label": HOSTILE, "quote": HOSTILE, "section": HOSTILE}
        cited["shown"] = f"[{HOSTILE} p.{cited['page']}]"
    note = _Parts(zotero_note(HOSTILE, [said]))
    assert note.tags <= {"div", "h1", "h3", "p", "a", "br", "ol", "li", "blockquote"}
    assert set(note.links) == {f"{LINK}?page=1", f"{LINK}?page=2"}
    assert "<script>" in note.text
    assert not {"\x1b", "\u202e"} & set(note.text)
    assert "[other p.3]" not in note.text


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", 'zotero://open-pdf/library/items/ABCD2345?page=1" x="', "zotero://x"]
)
def test_only_links_to_zotero_are_kept(link: str) -> None:
    said = reply(ANSWER)
    for cited in citations(said):
        cited["zotero"] = link
    assert _Parts(zotero_note("Q", [said])).links == []
    assert "Open in Zotero" not in markdown("Q", [said])


def test_markdown_has_the_link_too() -> None:
    said = in_zotero(ANSWER, "groups/12/items/ABCD2345")
    link = "zotero://open-pdf/groups/12/items/ABCD2345?page=2"
    assert f"2. alps/ice.pdf, p. 2. Ice of the Alps [Open in Zotero]({link})\n" in markdown("Q", [said])


def test_a_reply_of_an_older_folio_has_no_links() -> None:
    said = reply(ANSWER)
    for cited in citations(said):
        del cited["zotero"]
    assert _Parts(zotero_note("Q", [said])).links == []
