"""The contract of an answer: invalid values, invariants for any text, and equal answers in every process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.answer.layout import AnswerFormat
from folio.answer.validation import ValidationResult
from folio.answer_types import REFUSAL, Answer, Citation, Evidence, RejectedSentence, Sentence, Style
from folio.papers.model import Hit, PageMap
from tests.helpers.cli_runner import LIMIT_S, CliRunner
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.factories import evidence_of, hit_on, to_the_end
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT
from tests.helpers.validation import check

OTTERS = (
    "The fur of a sea otter has about 155,000 hairs on each square centimetre of skin. No other mammal has a denser"
    " fur. Store the value d in a[1] and erase it",
    "after use. Sea otters do not hibernate. J. R. Kenyon counted 1,260 animals.",
)
SIZES = (
    "Table 2: Sizes.\nGlacier    Length (km)\nAletsch    23.1\nGorner    12.4\n"
    "罗讷冰川位于瑞士瓦莱州。 The array is scaled to [0, 1]."
)


def over_two_pages(first: str, second: str) -> Hit:
    """A paper in which a sentence goes on from one page to the next."""
    hit = hit_on(f"{first}\n{second}", file="otters.pdf")
    return replace(hit, paper=replace(hit.paper, pages=PageMap((0, len(first) + 1), ("", ""))))


EVIDENCE = evidence_of([over_two_pages(*OTTERS), hit_on(SIZES, file="sizes.pdf")])
TEXTS = {piece.paper.id: piece.text for piece in EVIDENCE}

# What check keeps, for any text

FRAGMENTS = (
    *(*OTTERS, *SIZES.splitlines(), "No other mammal has a denser fur", "Sea otters do not hibernate"),
    *("Store the value d in a[1] and erase it after use", "155,000", "Paris"),
    *(".", ". ", "! ", "…", "。", ",", " and ", "\n", "\n\n", "\r\n", " ", "\t", "e.g. ", "J. "),
    *("[1]", " [1].", "[3]", "[1, 2]", "[1-2]", "[[1]]", "([2])", "(1)", "(2).", "【1†source】", "[^1]", "［1］"),
    *("[", "]", "(", ")", "1", "a[1]", "[0, 1]", "[Source 1]", "[otters p.9]", "(p. 9)", "According to [1], "),
    *(", see [2]", "[1](http://x.y)", "- ", "* ", "1. ", "# ", "## Summary\n", "**", "*", "_", "`", "```", "```\n"),
    *("~~~\n", "> ", "---\n", "|", "| ", " |\n", "|---|\n", "| Aletsch | 23.1 |\n", "$", "\\(", "<b>", "</b>", "<br>"),
    *("<p>", "<", ">", "<think>", "</think>", '<a href="x">', REFUSAL, f"**{REFUSAL}**\n", "I could not find it."),
    *("The evidence does not say.", "\x1b[31m", "\x1b]8;;http://x\x1b\\", "\x1b]0;", "\x1b", "\x9b1m", "\x07", "\x00"),
    *("\u202e", "\u200b", "\u200d", "\u200c", "\ufeff", "\xad", "\u2028", "\ud800"),
)
WRITTEN = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=16).map("".join)
STATEMENTS = st.lists(
    st.fixed_dictionaries(
        {"support": st.lists(st.integers(0, 12), max_size=3), "statement": WRITTEN},
        optional={"part": st.sampled_from(["summary", "analysis"]), "heading": WRITTEN},
    ),
    max_size=5,
)
# What a model writes, and the form that it was asked for: prose, statements, or prose where statements were asked for
FORMATS: tuple[AnswerFormat, ...] = ("prose", "statements", "quote")
ANSWERS = st.tuples(STATEMENTS, st.booleans(), st.booleans()).map(
    lambda made: json.dumps({"statements": made[0], "answered": made[1]}, ensure_ascii=made[2])
)
OUTPUTS = st.tuples(st.sampled_from(FORMATS[:2]), WRITTEN) | st.tuples(st.just(FORMATS[1]), ANSWERS)
# The form of a quote shows nothing before its end, so what is told of a beginning holds for the others
QUOTED = st.lists(st.tuples(st.sampled_from(["Quote: ", "**Answer:** ", "Quote: \"", "\n"]), WRITTEN), max_size=4).map(
    lambda parts: "\n".join(label + text for label, text in parts)
)
IN_JSON = st.fixed_dictionaries({}, optional={"quote": WRITTEN, "answer": WRITTEN}).map(json.dumps)
ALL_OUTPUTS = OUTPUTS | st.tuples(st.just(FORMATS[2]), WRITTEN | ANSWERS | QUOTED | IN_JSON)
EXAMPLES = 2000 if EXHAUSTIVE else 100
STYLES = st.sampled_from(["plain", "report"])
# A marker outside code and formulas; what is joined to a name is an index, what counts from 0 an interval.
MARKER = re.compile(r"(?<![\w\]])[\[【［]\s*\^?(?!0)\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\s*[\]】］]")
VERBATIM = re.compile(r"`[^`]*`|\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]")


def validated(
    pieces: Iterable[str],
    style: Style = "plain",
    evidence: Sequence[Evidence] = EVIDENCE,
    *,
    answer_format: AnswerFormat = "prose",
    whole: bool = True,
    max_chars: int = 100_000,
) -> tuple[list[Sentence | RejectedSentence], ValidationResult]:
    """What is made of a model's words, and the result."""
    return to_the_end(
        check(pieces, evidence, style=style, answer_format=answer_format, whole=whole, max_chars=max_chars)
    )


def sentences(found: list[Sentence | RejectedSentence]) -> list[Sentence]:
    return [part for part in found if isinstance(part, Sentence)]


def is_clean(text: str) -> bool:
    return all(char.isprintable() or char in "\u200c\u200d" for char in text)


@given(ALL_OUTPUTS, STYLES)
@settings(max_examples=EXAMPLES)
def test_every_printed_sentence_cites_words_of_a_page(output: tuple[AnswerFormat, str], style: Style) -> None:
    found, result = validated([output[1]], style, answer_format=output[0])
    for citation in (c for sentence in sentences(found) for c in (*sentence.citations, *sentence.against)):
        paper = citation.paper
        assert 1 <= citation.page <= paper.page_count
        first, last = paper.pages.bounds(citation.page, paper.length)
        assert first <= citation.start < citation.end <= last
        assert TEXTS[paper.id][citation.start : citation.end] == citation.quote
        assert citation.quote in TEXTS[paper.id][first:last]
    assert all(sentence.citations for sentence in sentences(found))
    assert result.shown == len(sentences(found))
    assert result.rejected == tuple(part for part in found if isinstance(part, RejectedSentence))
    assert not (result.refused and result.shown)
    answer = Answer("Why?", "Why?", tuple(sentences(found)), tuple(EVIDENCE), len(result.rejected), "", style)
    assert answer.refused == (result.shown == 0)


@given(ALL_OUTPUTS, STYLES)
@settings(max_examples=EXAMPLES)
def test_nothing_printed_steers_a_terminal_or_imitates_a_marker(output: tuple[AnswerFormat, str], style: Style) -> None:
    found, _ = validated([output[1]], style, answer_format=output[0])
    for sentence in sentences(found):
        assert is_clean(f"{sentence.text}{sentence.section}".replace("\n", ""))
        assert "\n" not in str(sentence.section)
        assert sentence.text == sentence.text.strip() != ""
        assert any(char.isalnum() for char in sentence.text)
        if "\n" not in sentence.text and "`" not in sentence.text:  # steps and code keep their brackets
            assert not MARKER.search(VERBATIM.sub("", sentence.text)), sentence.text
        assert not MARKER.search(str(sentence.section))
    said = [(sentence.section.heading, sentence.text.casefold()) for sentence in sentences(found)]
    assert len(set(said)) == len(said)  # a report's analysis may say again what its summary says


@given(ALL_OUTPUTS, STYLES, st.data())
@settings(max_examples=EXAMPLES)
def test_the_pieces_of_a_text_do_not_matter(
    output: tuple[AnswerFormat, str], style: Style, data: st.DataObject
) -> None:
    form, text = output
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = validated([text], style, answer_format=form)
    assert whole == validated(pieces, style, answer_format=form) == validated(list(text), style, answer_format=form)


@given(OUTPUTS, WRITTEN, STYLES, st.integers(0, 400))
@settings(max_examples=EXAMPLES)
def test_shown_sentences_are_never_taken_back(
    output: tuple[AnswerFormat, str], more: str, style: Style, end: int
) -> None:
    form, text = output[0], output[1] + more
    so_far, _ = validated(list(text[:end]), style, answer_format=form, whole=False)
    whole, _ = validated([text], style, answer_format=form)
    assert whole[: len(so_far)] == so_far


@given(OUTPUTS, STYLES, st.integers(0, 400))
def test_a_cut_answer_is_a_prefix_of_the_whole_one(
    output: tuple[AnswerFormat, str], style: Style, max_chars: int
) -> None:
    form, text = output
    cut, _ = validated([text], style, answer_format=form, max_chars=max_chars)
    assert cut == validated(list(text), style, answer_format=form, max_chars=max_chars)[0]
    assert validated([text], style, answer_format=form)[0][: len(cut)] == cut


def test_a_sentence_over_two_pages_is_quoted_on_both() -> None:
    (sentence,), _ = validated(["Store the value d in a[1] and erase it after use."])
    assert isinstance(sentence, Sentence)
    assert [(c.page, c.quote) for c in sentence.citations] == [
        (1, "Store the value d in a[1] and erase it"),
        (2, "after use."),
    ]


# What papers/model.py refuses

PAGES = ("The fur is dense. It is warm.", "It has hairs.")
(SOURCE,) = evidence_of([hit_on(*PAGES)])
PAPER, TEXT = SOURCE.paper, SOURCE.text
START = len(PAGES[0]) + 2  # of the second page
(OTHER,) = evidence_of([hit_on(*PAGES, file="other.pdf")])


def quote(start: int, end: int, **other: Any) -> Citation:
    values = {"paper": PAPER, "quote": TEXT[start:end], "evidence": 1, "support": 1.0, **other}
    return Citation(start=start, end=end, **values)


def part(start: int, end: int, **other: Any) -> Evidence:
    values = {"number": 1, "paper": PAPER, "text": TEXT[start:end], "hits": SOURCE.hits, **other}
    return Evidence(start=start, end=end, **values)


def answer(*citations: Citation, evidence: tuple[Evidence, ...] = (SOURCE,), against: bool = False) -> Answer:
    cited, other = ((quote(0, 17),), citations) if against else (citations, ())
    return Answer("Why?", "Why?", (Sentence("The fur is dense.", cited, other),), evidence)


def test_supported_statements_are_shown() -> None:
    citation = quote(START, len(TEXT), support=0.01)
    assert (citation.page, citation.quote, citation.offsets) == (2, "It has hairs.", (0, 13))
    assert answer(citation, quote(0, 17)).citations == (citation, quote(0, 17))
    assert answer(quote(18, 29), against=True).citations == (quote(0, 17), quote(18, 29))
    assert answer(quote(18, 29), evidence=(part(18, 29),)).citations == (quote(18, 29),)
    assert part(0, 1).pages == (1, 1)
    assert SOURCE.pages == (1, 2)
    assert Answer("Why?", "Why?", ()).text == REFUSAL


BROKEN: dict[str, tuple[str, Callable[[], object]]] = {
    "a quote over two pages": ("stands on one page", lambda: quote(18, START + 5)),
    "a quote of nothing": ("lies in its paper's text", lambda: quote(4, 4)),
    "a quote that ends before it begins": ("lies in its paper's text", lambda: quote(7, 4)),
    "a quote before the text": ("lies in its paper's text", lambda: quote(-1, 4, quote="12345")),
    "a quote behind the text": ("lies in its paper's text", lambda: quote(40, 99, quote="x" * 59)),
    "a quote with the length of another": ("length of its span", lambda: quote(0, 3, quote="The fur")),
    "a quote with space before it": ("no space around it", lambda: quote(3, 7)),
    "a quote with space behind it": ("no space around it", lambda: quote(0, 4)),
    "support of nothing": ("support is above 0", lambda: quote(0, 3, support=0.0)),
    "support below nothing": ("support is above 0", lambda: quote(0, 3, support=-0.5)),
    "support of more than all": ("support is above 0", lambda: quote(0, 3, support=1.01)),
    "support that is no number": ("support is above 0", lambda: quote(0, 3, support=float("nan"))),
    "a sentence without a citation": ("has a citation", lambda: Sentence("The fur is dense.", ())),
    "a sentence with only what disagrees": ("has a citation", lambda: Sentence("It is.", (), (quote(0, 3),))),
    "a sentence without words": ("has words", lambda: Sentence("", (quote(0, 3),))),
    "a sentence of spaces": ("has words", lambda: Sentence(" \n", (quote(0, 3),))),
    "evidence numbered 0": ("numbered from 1", lambda: part(0, 17, number=0)),
    "evidence before the text": ("lies in its paper's text", lambda: part(-2, 3, text="12345")),
    "evidence of nothing": ("lies in its paper's text", lambda: part(3, 3)),
    "evidence behind the text": ("lies in its paper's text", lambda: part(0, 99, text="x" * 99)),
    "evidence with another's text": ("the text of its span", lambda: part(0, 17, text="The fur is warm")),
    "evidence that nothing found": ("comes from a hit", lambda: part(0, 17, hits=())),
    "evidence numbered from 2": ("numbered in order", lambda: answer(quote(0, 3), evidence=(part(0, 17, number=2),))),
    "evidence numbered twice": ("numbered in order", lambda: answer(quote(0, 3), evidence=(SOURCE, SOURCE))),
    "an answer without evidence": ("evidence of the answer", lambda: answer(quote(0, 3), evidence=())),
    "a citation of evidence 0": ("evidence of the answer", lambda: answer(quote(0, 3, evidence=0))),
    "a citation of evidence that is not there": ("evidence of the answer", lambda: answer(quote(0, 3, evidence=2))),
    "a disagreement that is not there": (
        "evidence of the answer",
        lambda: answer(quote(0, 3, evidence=2), against=True),
    ),
    "a quote from another paper": ("evidence's paper", lambda: answer(quote(0, 3, paper=OTHER.paper))),
    "a quote that the paper does not have": ("stands in its evidence", lambda: answer(quote(0, 3, quote="One"))),
    "a quote from elsewhere in the paper": ("stands in its evidence", lambda: answer(quote(18, 20, quote="Th"))),
    "a quote before the evidence": ("stands in its evidence", lambda: answer(quote(0, 3), evidence=(part(4, 17),))),
    "a quote behind the evidence": ("stands in its evidence", lambda: answer(quote(18, 29), evidence=(part(0, 17),))),
    "a quote over its evidence's end": ("stands in its evidence", lambda: answer(quote(4, 17), evidence=(part(0, 9),))),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_value_cannot_be_made(name: str) -> None:
    rule, make = BROKEN[name]
    with pytest.raises(ValueError, match=f"^Broken contract: .*{rule}"):
        make()


# Answers that do not vary: two processes, in which sets and dicts of strings are in another order

QUESTION = "How long is the Aletsch glacier, and how dense is the fur of a sea otter?"
REPLY = (
    "## Summary\n- The Aletsch glacier has a length of 23 kilometres [1].\n- Rome has seven hills [1].\n\n"
    "## Analysis\n### The fur of a sea otter\nThe fur of a sea otter has about 155,000 hairs on each square centimetre"
    " of skin [2]. The Aletsch glacier is the largest glacier of the Alps."
)


# LLM, --style and ANSWER_FORMAT of each answer
VARIANTS: tuple[tuple[str, Style, AnswerFormat], ...] = (
    ("ollama", "report", "statements"),
    ("ollama", "report", "prose"),
    ("builtin", "plain", "prose"),
)
ASK = """
import json, os, sys
from query import main
for settings, arguments in json.loads(sys.argv[1]):
    os.environ.update(settings)
    assert main(arguments) == 0
"""


def printed(desk: CliRunner, seed: str) -> list[str]:
    """What a process prints for the question in each variant, without the times."""
    commands = [
        ({"LLM": llm, "ANSWER_FORMAT": form}, ("--json", "--style", style, QUESTION)) for llm, style, form in VARIANTS
    ]
    more = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "QUERY_LOG": "false"}
    ran = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(commands)],
        env={**desk.environment(), **more},
        cwd=desk.folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert all("timings_ms" in json.loads(line) for line in ran.stdout.splitlines())
    without, count = re.subn(r'"timings_ms": ?\{[^}]*\}', '"timings_ms": {}', ran.stdout)
    assert count == len(VARIANTS)
    return without.splitlines()


def test_two_processes_print_the_same_bytes(ready: CliRunner, ollama_server: OllamaStandIn) -> None:
    ready.settings["OLLAMA_HOST"] = ollama_server.url
    ollama_server.reply = lambda messages: REPLY
    first, second = printed(ready, "1"), printed(ready, "2")
    assert first == second
    assert all(len(json.loads(answer)["sentences"]) > 1 for answer in first)
    prompts = ollama_server.bodies("/api/chat")
    assert len(prompts) == 4
    assert prompts[:2] == prompts[2:]
