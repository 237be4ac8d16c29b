"""Markdown export: its content, and that no text in it becomes active markup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from folio.answer_types import SUMMARY, Answer, Section, Sentence
from folio.schema.answers import answer_json
from folio.shown_text import COMMAND, plain_line, statement_lines
from folio.web.export import markdown
from tests.helpers.answers import (
    ANSWER,
    HITS,
    LENGTH,
    MODELS,
    OTHERWISE,
    OUTCOMES,
    REFUSED,
    REPORT,
    TIMINGS,
    cite,
    evidence_of,
    paper_of,
)  # fmt: skip
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast


def reply(answer: Answer) -> dict[str, Any]:
    """The fields of an API reply that the export uses."""
    return {**answer_json(answer, HITS, MODELS, TIMINGS).model_dump(mode="json"), "message": answer.question}


def golden(name: str) -> str:
    return (ROOT / "tests" / "data" / "golden" / name).read_text(encoding="utf-8")


def test_a_conversation_with_its_citations() -> None:
    noted = replace(ANSWER, notice="The answer was cut.")
    assert markdown("How long is it?", [reply(noted), reply(REFUSED)]) == golden("conversation.md")


def test_a_deep_search_is_a_line() -> None:
    read = [
        {"event": "evidence", "paper": paper, "relevance": score} for paper, score in (("a", 5), ("b", 4), ("b", None))
    ]
    trace = {"rounds": 2, "calls": 1, "seconds": 41.2, "events": [{"event": "papers"}, *read]}
    exported = markdown("Ice", [{**reply(ANSWER), "trace": trace}])
    line = "*Deep search: 2 rounds, 3 passages of 2 papers read, 1 relevant; 1 model call, 41 s*"
    assert exported == markdown("Ice", [reply(ANSWER)]).replace("### Sources", f"{line}\n\n### Sources")


def test_sources_have_their_venue() -> None:
    cited = reply(ANSWER)
    for citation in cited["citations"]:
        citation |= {"venue": "*Journal* of Ice", "year": 2021}
    exported = markdown("Ice", [cited])
    assert "2. alps/ice.pdf, p. 2. Ice of the Alps. \\*Journal\\* of Ice, 2021\n" in exported


def test_outcomes_are_marked() -> None:
    exported = markdown("Ice", [reply(OUTCOMES)])
    assert exported.split("### Sources")[0] == golden("outcomes.md")
    assert "\n### Left out\n\nThe papers do not support these statements of the model:\n\n" in exported
    left_out = "\n- It is 99 kilometres long.\\\n  *Reason: it says 23*\n- Then:\\\n  1\\. Rest.\\\n"
    assert left_out in exported


def test_a_reworded_summary_statement_keeps_its_quote_in_its_item() -> None:
    summary = replace(OUTCOMES, sentences=tuple(replace(said, section=SUMMARY) for said in OUTCOMES.sentences))
    found = [token.type for token in GFM.parse(markdown("Ice", [reply(summary)]).split("### Sources")[0])]
    assert found.count("bullet_list_open") == 1
    assert found.count("list_item_open") == 4
    first_quote = found.index("blockquote_open")
    assert "list_item_close" in found[first_quote:]  # it is inside


def test_an_answer_of_an_older_folio_is_exported() -> None:
    older = reply(ANSWER)
    del older["left_out"]
    for sentence in older["sentences"]:
        for field in ("outcome", "verified_by", "instead_of"):
            del sentence[field]
    assert markdown("Ice", [older]) == markdown("Ice", [reply(ANSWER)])


def test_a_report_has_its_headings() -> None:
    assert markdown("Ice", [reply(REPORT)]) == golden("report.md")


def test_several_pages_contradict_a_sentence() -> None:
    disputed = replace(ANSWER, sentences=(Sentence("It grows.", (LENGTH,), (OTHERWISE, ANSWER.citations[2])),))
    expected = r"It grows. \[alps/ice.pdf p.1\] **But \[arXiv:2301.01234 p.1\] \[alps/ice.pdf p.2\] say otherwise.**"
    assert f"{expected}\n" in markdown("Ice", [reply(disputed)])


# No text becomes active markup

GFM = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HARMLESS = {"heading", "paragraph", "blockquote", "ordered_list", "bullet_list", "list_item", "inline", "text"}
HARMLESS |= {"text_special", "strong", "em", "hardbreak"}
HARMLESS |= {"code_inline"}  # of a command in a notice


def tokens(text: str) -> Iterator[Token]:
    for token in GFM.parse(text):
        yield token
        yield from token.children or ()


def saying(text: str) -> Answer:
    """An answer with this text as question, sentence, section, file, title and quote."""
    paper, stands = paper_of(f"{text}.pdf", f"A passage, {text} it says.", title=text)
    evidence = evidence_of(1, paper, stands)
    cited = cite(evidence, stands.strip())
    sentences = (Sentence(text, (cited,), (cited,), Section("Analysis", text)), Sentence(text, (cited,), (), SUMMARY))
    return Answer(text, text, sentences, (evidence,), notice=text)


def paragraphs(found: list[Token]) -> set[str]:
    """The text of each heading and paragraph, as it is drawn."""
    inline = (token.children or () for token in found if token.type == "inline")
    return {
        "".join("\n" if part.type == "hardbreak" else part.content for part in parts).replace("\u00a0", " ")
        for parts in inline
    }


def with_mark(text: str, mark: str) -> str:
    """A statement and what stands after it: below, if it has several lines."""
    lines = statement_lines(text)
    return "\n".join([*lines, mark]) if len(lines) > 1 else f"{lines[0]} {mark}"


def noted(text: str) -> str:
    """A notice as it should appear: on one line, without invisible characters, with its commands as code."""
    return COMMAND.sub(r"\1", plain_line(text))


ATTACKS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))",
    "![x](https://example.com/a.png)", "[1]: https://example.com", "<https://example.com>", "`code` and ```fence```",
    "# A heading", "Setext\n===", "a\n\n---\n\nb", "> a quote", "- an item", "+ an item", "* an item", "12. an item",
    "3) an item", "a **bold** _word_ ~~gone~~", "| a | b |\n|---|---|\n| 1 | 2 |", "&lt;b&gt; &#60; R&D",
    "    indented code", "\tx", "back\\slash \\[x](y)", "ends with a backslash \\", "[^1] and $x$", "%%",
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
def test_no_text_becomes_active(text: str) -> None:
    written = markdown(text, [reply(saying(text))])
    found = list(tokens(written))
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in found} <= HARMLESS
    assert [token.tag for token in found if token.type == "heading_open"] == "h1 h2 h3 h4 h3 h3 h2".split()
    assert sum(token.type == "list_item_open" for token in found) == 3  # of the summary, the sources, the references
    assert sum(token.type == "blockquote_open" for token in found) == 1
    lines = paragraphs(found)
    wanted = plain_line(text)
    assert wanted in lines  # the title
    (mark,) = {cited.shown for cited in saying(text).citations}
    assert with_mark(text, f"{mark} But {mark} says otherwise.") in lines
    assert f"“A passage, {wanted} it says.”" in lines
    assert f"Note: {noted(text)}" in lines


@given(st.text(st.sampled_from("a1 \n\t#*_-+=.:)(![]<>`\\|~&;/\"'"), min_size=1).filter(str.strip))
def test_any_text_is_shown_unchanged(text: str) -> None:
    found = list(tokens(markdown(text, [reply(saying(text))])))
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in found} <= HARMLESS
    lines = paragraphs(found)
    (mark,) = {cited.shown for cited in saying(text).citations}
    assert {plain_line(text), f"Note: {noted(text)}", with_mark(text, mark)} <= lines


def test_urls_and_control_characters_do_nothing() -> None:
    written = markdown("x", [reply(saying("See https://example.com and www.example.com"))])
    assert "https://" not in written  # https\\:// is shown alike
    assert "www." not in written
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202e\u2028new"
    written = markdown(evil, [reply(saying(evil))])
    assert [char for char in written if not char.isprintable() and char != "\n"] == []
