"""Prompts that a person picks in an assistant: a review, a comparison, the check of a claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from folio.mcp import shown
from folio.mcp.tools import Backend, Call, check_claim
from folio.schema.mcp import Arguments, CheckClaim

_Words = Annotated[str, Field(pattern=r"\S", max_length=2_000)]

_RULES = (
    "Use the tools of Folio and nothing that you know from elsewhere. Give each statement the citation that Folio gives"
    " for it. Where the papers disagree, say so with both citations. Say what they do not answer."
)


class Review(Arguments):
    topic: Annotated[_Words, Field(description="What the review is about.")]


class Compare(Arguments):
    papers: Annotated[_Words, Field(description="The papers: files, titles or authors, with commas between them.")]
    aspect: Annotated[str, Field(max_length=2_000, description="What to compare, such as the methods.")] = ""


class Check(Arguments):
    claim: Annotated[_Words, Field(description="One sentence.")]


class Prompt(NamedTuple):
    name: str
    title: str
    about: str
    arguments: type[Arguments]
    write: Callable[[Backend, Any, Call], str]


def review(backend: Backend, wanted: Review, call: Call) -> str:
    return (
        f"Review what my papers say about: {wanted.topic.strip()}\n\n"
        "First find the papers with `search_papers`, then what they say with `ask` (with `deep` if the topic is broad)"
        " and `search_passages`, and read the pages that matter with `read_pages`. Write a review: what is agreed, what"
        f" differs, what is open, and the papers it rests on, as `cite` gives them. {_RULES}"
    )


def compare(backend: Backend, wanted: Compare, call: Call) -> str:
    aspect = wanted.aspect.strip() or "their questions, methods, results and limits"
    return (
        f"Compare these papers of my library: {wanted.papers.strip()}\nCompare: {aspect}\n\n"
        "Find each with `search_papers`, look at its `paper_outline`, and ask it alone with `ask` and its `papers`."
        f" Make a table with a row for each aspect and a column for each paper, every cell with its citation. {_RULES}"
    )


def check(backend: Backend, wanted: Check, call: Call) -> str:
    checked = shown.claim(check_claim(backend, CheckClaim(claim=wanted.claim), call))
    return (
        f"Is this right, by my papers? {wanted.claim.strip()}\n\nFolio has checked it against the whole library:\n\n"
        f"{checked}\n\nSay what the papers say of it, with the citation. If it is not supported, say what is, and how"
        f" the sentence could be put so that it is; check that with `check_claim`. {_RULES}"
    )


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt("review", "Review", "What the papers say about a topic.", Review, review),
        Prompt("compare", "Compare papers", "Some papers side by side.", Compare, compare),
        Prompt("check_claim", "Check a claim", "What the papers say of a sentence.", Check, check),
    )
}
