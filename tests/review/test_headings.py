"""A model's headings: only names of subjects, in words of the quotes; else the themes keep their own."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from folio.answer_types import Quote
from folio.models.ollama import OllamaServer
from folio.review.headings import HeadingWriter, may_head
from folio.review.report import Citing, report
from folio.review.review import Review, Reviewer
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.review_papers import Written, write

OTTERS = [
    write(f"Otters {n}: counting", ("abstract", f"This paper presents the counting of sea otters in bays by {how}."))
    for n, how in enumerate(("buoys", "ships", "planes"))
]
SOUPS = [
    write(f"Soups {n}: cooking", ("abstract", f"We present the cooking of lentil soup with {what} and spice."))
    for n, what in enumerate(("carrots", "onions", "leeks"))
]


def quotes(papers: Sequence[Written]) -> list[Quote]:
    return [Quote(each.paper, 0, end := each.text.index("\n"), each.text[:end]) for each in papers]


@pytest.mark.parametrize("heading", ["Sea otters", "Counting of sea otters", "Otters and bays"])
def test_a_name_in_words_of_the_quotes_may_head(heading: str) -> None:
    assert may_head(heading, quotes(OTTERS))


@pytest.mark.parametrize(
    "heading",
    [
        "Sea otters are counted",  # a sentence
        "Better counting of sea otters",  # a judgement
        "No counting of sea otters",
        "Counting 40 sea otters",
        "Counting walruses",  # no quote has the word
        "Buoys",  # of one paper alone
        "Counting of sea otters in bays by buoys",  # too long
        "Sea otters: counting",
        "[Seal 2014, p. 3]",
        "<b>otters</b>",
        "of the",
        "",
    ],
)
def test_what_may_claim_something_heads_nothing(heading: str) -> None:
    assert not may_head(heading, quotes(OTTERS))


def review(reply: str) -> tuple[Review, list[dict[str, object]]]:
    papers = [*OTTERS, *SOUPS]
    texts = {each.paper.id: each.text for each in papers}
    with OllamaStandIn(reply=lambda messages: reply) as server:
        writer = HeadingWriter(OllamaServer(server.url, 5.0), "llama3.1:8b", tokens=6768)
        reviewer = Reviewer(lambda paper: texts[paper.id], HashingEmbedder(dimension=256), None, writer)
        return reviewer.review([each.paper for each in papers], "T"), server.bodies("/api/chat")


def test_a_model_names_themes_and_its_headings_are_marked() -> None:
    made, asked = review(json.dumps({"heading": "counting of sea otters"}))
    named = {theme.heading: theme.by_model for theme in made.themes}
    assert named.pop("Counting of sea otters") == "llama3.1:8b (Ollama)"
    assert list(named.values()) == [""]  # no quote of the others speaks of otters
    headings = [block.runs[0].text for block in report(made, Citing(False)) if block.kind == "heading"]
    assert "Counting of sea otters *" in headings
    prompt = str(asked[0]["messages"][-1]["content"])  # type: ignore[index]
    assert prompt.count("<evidence ") == 3


@pytest.mark.parametrize("reply", ["no JSON", json.dumps({"heading": 3}), json.dumps({"heading": "Ignore all papers"})])
def test_without_a_usable_reply_themes_keep_their_own_headings(reply: str) -> None:
    made, _ = review(reply)
    assert [theme.by_model for theme in made.themes] == ["", ""]


def test_a_server_that_fails_is_asked_once() -> None:
    papers = [*OTTERS, *SOUPS]
    texts = {each.paper.id: each.text for each in papers}
    with OllamaStandIn() as server:
        writer = HeadingWriter(OllamaServer(server.url, 5.0), "llama3.1:8b", tokens=6768)
    reviewer = Reviewer(lambda paper: texts[paper.id], HashingEmbedder(dimension=256), None, writer)
    made = reviewer.review([each.paper for each in papers], "T")
    assert [theme.by_model for theme in made.themes] == ["", ""]
