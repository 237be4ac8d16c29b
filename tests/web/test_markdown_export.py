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
from folio.schema import answer_json
from folio.shown_text import COMMAND, one_line, statement_lines
from folio.web.markdown_export import markdown
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
)

pytestmark = pytest.mark.fast


def reply(answer: Answer) -> dict[str, Any]:
    """The fields of an API reply that the export uses."""
    return {**answer_json(answer, HITS, MODELS, TIMINGS).model_dump(mode="json"), "message": answer.question}


def test_a_conversation_with_its_citations() -> None:
    noted = replace(ANSWER, notice="The answer was cut.")
    assert markdown("How long is it?", [reply(noted), reply(REFUSED)]) == (
        "# How long is it?\n\n"
        "## How long is the Aletsch glacier?\n\n"
        "It is 23 kilometres long and lies in the Alps. \\[alps/ice.pdf p.1\\] Its tongue retreats by 40 metres each"
        " year. \\[alps/ice.pdf p.2\\] **But \\[arXiv:2301.01234 p.1\\] says otherwise.**\n\n"
        "Note: The answer was cut.\n\n"
        "### Sources\n\n"
        "1. alps/ice.pdf, p. 1 (printed iv). Ice of the Alps\n\n"
        "   > “The Aletsch glacier has a length of 23 kilometres.”\n\n"
        "   > “It lies in the Bernese Alps.” (support 0.62)\n\n"
        "2. alps/ice.pdf, p. 2. Ice of the Alps\n\n"
        "3. melt.pdf, p. 1. Melt\n\n"
        "   > “The tongue of the Aletsch glacier retreats by 50 metres each year.”\n\n"
        "## Who painted it?\n\n"
        "Understood as: Who painted the Aletsch glacier?\n\n"
        "*Not found in the provided papers.*\n\n"
        "## Key references\n\n"
        "- Ice of the Alps. alps/ice.pdf, pp. 1, 2\n"
        "- Melt. melt.pdf, p. 1\n"
    )


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
    assert markdown("Ice", [reply(OUTCOMES)]).split("### Sources")[0] == (
        "# Ice\n\n"
        "## How long is the Aletsch glacier?\n\n"
        "It lies in the Bernese Alps. \\[alps/ice.pdf p.1\\]\n\n"
        "≈ Its tongue gets shorter each year. \\[alps/ice.pdf p.2\\]"
        " **But \\[arXiv:2301.01234 p.1\\] says otherwise.**\n\n"
        "> “Its tongue retreats by 40 metres each year.”\n\n"
        "*In place of a statement that the papers do not support:*\n\n"
        "It is 23 kilometres long. \\[alps/ice.pdf p.1\\]\n\n"
        "≈ To see it:\\\n1\\. Go to Blatten.\\\n2\\. Look up:\\\n&nbsp;&nbsp;&nbsp;\\| ice \\| 23 km \\|\\\n"
        "\\[alps/ice.pdf p.1\\]\n\n"
        "> “It lies in the Bernese Alps.”\n\n"
        "*≈ in the model's own words; the quote stands beneath. 1 of 2 not checked by a verifier, the others by a"
        " verifier.*\n\n"
    )
    assert "\n### Left out\n\nThe papers do not support these statements of the model:\n\n" in markdown(
        "Ice", [reply(OUTCOMES)]
    )
    assert "\n- It is 99 kilometres long.\\\n  *Reason: it says 23*\n- Then:\\\n  1\\. Rest.\\\n" in markdown(
        "Ice", [reply(OUTCOMES)]
    )


def test_a_reworded_statement_of_a_summary_has_its_quote_in_its_item() -> None:
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
    lines = markdown("Ice", [reply(REPORT)]).splitlines()
    assert [line for line in lines if line.startswith(("#", "- ", "It "))] == [
        "# Ice",
        "## How long is the Aletsch glacier?",
        "### Summary",
        r"- It is 23 kilometres long. \[alps/ice.pdf p.1\]",
        r"- It melts. \[alps/ice.pdf p.2\] \[arXiv:2301.01234 p.1\]",
        "### Analysis",
        r"It lies in the Alps. \[alps/ice.pdf p.1\]",
        "#### Size",
        r"It has a length of 23 kilometres. \[alps/ice.pdf p.1\]",
        "#### Melt",
        r"It becomes shorter. \[alps/ice.pdf p.2\] **But \[arXiv:2301.01234 p.1\] says otherwise.**",
        "### Sources",
        "## Key references",
        "- Ice of the Alps. alps/ice.pdf, pp. 1, 2",
        "- Melt. melt.pdf, p. 1",
    ]


def test_several_pages_contradict_a_sentence() -> None:
    disputed = replace(ANSWER, sentences=(Sentence("It grows.", (LENGTH,), (OTHERWISE, ANSWER.citations[2])),))
    expected = r"It grows. \[alps/ice.pdf p.1\] **But \[arXiv:2301.01234 p.1\] \[alps/ice.pdf p.2\] say otherwise.**"
    assert f"{expected}\n" in markdown("Ice", [reply(disputed)])


def test_a_conversation_of_refusals_lists_nothing() -> None:
    assert markdown("Who?", [reply(REFUSED)]) == (
        "# Who?\n\n## Who painted it?\n\nUnderstood as: Who painted the Aletsch glacier?\n\n"
        "*Not found in the provided papers.*\n"
    )


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


def shown(text: str) -> str:
    """The text as it should appear: on one line, without invisible characters."""
    return one_line(text)


def noted(text: str) -> str:
    """A notice as it should appear: the same, with its commands as code."""
    return COMMAND.sub(r"\1", one_line(text))


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](https://example.com/a.png)",
    "[1]: https://example.com",
    "<https://example.com>",
    "`code` and ```fence```",
    "# A heading",
    "Setext\n===",
    "a\n\n---\n\nb",
    "> a quote",
    "- an item",
    "+ an item",
    "* an item",
    "12. an item",
    "3) an item",
    "a **bold** _word_ ~~gone~~",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "&lt;b&gt; &#60; R&D",
    "    indented code",
    "\tx",
    "back\\slash \\[x](y)",
    "ends with a backslash \\",
    "[^1] and $x$",
    "%%",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_no_text_becomes_active(text: str) -> None:
    written = markdown(text, [reply(saying(text))])
    found = list(tokens(written))
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in found} <= HARMLESS
    assert [token.tag for token in found if token.type == "heading_open"] == "h1 h2 h3 h4 h3 h3 h2".split()
    assert sum(token.type == "list_item_open" for token in found) == 3  # of the summary, the sources, the references
    assert sum(token.type == "blockquote_open" for token in found) == 1
    lines = paragraphs(found)
    wanted = shown(text)
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
    assert {shown(text), f"Note: {noted(text)}", with_mark(text, mark)} <= lines


def test_a_url_does_not_become_a_link() -> None:
    written = markdown("x", [reply(saying("See https://example.com and www.example.com"))])
    assert "https://" not in written  # https\:// is shown alike
    assert "www." not in written


def test_no_terminal_control_characters() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202e\u2028new"
    written = markdown(evil, [reply(saying(evil))])
    assert [char for char in written if not char.isprintable() and char != "\n"] == []
