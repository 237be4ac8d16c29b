"""Reviews of papers as JSON models, for the web API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from folio.bibliography.document import Block, BlockKind, RunStyle
from folio.review.review import MOST_QUESTIONS
from folio.schema.papers import Count, Strict
from folio.schema.web import NOT_BLANK, ErrorBody, FilterRequest

REVIEW = "^[0-9a-f]{16}$"
ReviewId = Annotated[str, Field(pattern=REVIEW, description="Returned with a new review.")]
ReviewState = Literal["waiting", "reading", "comparing", "done", "stopped", "failed"]
Question = Annotated[str, Field(pattern=NOT_BLANK, max_length=500)]


class ReviewRequest(FilterRequest):
    """A review of the papers that fit; `papers` for chosen ones, nothing for all. Papers are read whole: `section`
    chooses those that have such a section."""

    title: Annotated[str, Field(max_length=200)] = ""
    """Empty: named after the number of its papers."""
    questions: Annotated[list[Question], Field(max_length=MOST_QUESTIONS)] = Field(default_factory=list)
    """Put to each paper."""


class RunJson(Strict):
    """Words of one style."""

    text: str
    style: RunStyle
    link: str
    """Of a citation: where its words are on the page, "#paper/ID/p/7?from=10&to=20"; empty for other words."""


class BlockJson(Strict):
    """A heading, a paragraph or an item of a list."""

    kind: BlockKind
    level: Count
    """Of a heading: 1 is the title."""
    runs: list[RunJson]


class ReviewJson(Strict):
    """A review, or how far it is. Reviews are kept until the server ends, the latest ones."""

    id: ReviewId
    title: str
    state: ReviewState
    done: Count
    """Papers read."""
    total: Count
    error: ErrorBody | None
    """Why it failed."""
    blocks: list[BlockJson]
    """Once it is done."""


def block_json(block: Block) -> BlockJson:
    runs = [RunJson(text=run.shown, style=run.style, link=run.link) for run in block.runs]
    return BlockJson(kind=block.kind, level=block.level, runs=runs)
