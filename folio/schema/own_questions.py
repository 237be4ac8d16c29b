"""A person's own questions as an evaluation set, as JSON models for the web API."""

from __future__ import annotations

from typing import Literal

from folio.schema.papers import Count, FromOne, Sha256, Strict
from folio.schema.web import ConversationId, TurnNumber


class OpenedRequest(Strict):
    """A cited page that a person opened from an answer."""

    conversation: ConversationId
    turn: TurnNumber
    paper: Sha256
    page: FromOne
    """Physical, from 1."""


class TriedJson(Strict):
    """What a way to search found."""

    settings: dict[str, str]
    """The settings that choose it; empty for the present ones."""
    found: Count
    """Questions of which a known page is among the passages that an answer is made from."""
    gained: Count
    """Found, but not with the present settings."""
    lost: Count
    """The other way round."""
    verdict: Literal["better", "worse", "unclear", "same", "more passages"]
    """By a sign test at 5 % for all settings together. "unclear": the difference may be chance."""


class OwnResultJson(Strict):
    """How many of the questions are found now, and in other ways."""

    questions: Count
    opened: Count
    """Of them, those that only opened citations vouch for."""
    now: TriedJson
    others: list[TriedJson]
    missed: list[str]
    """Questions that are not found now."""


class OwnQuestionsJson(Strict):
    """The questions of the log that can be measured, and the last result while the log stays the same."""

    questions: Count
    opened: Count
    bad: Count
    """Answers rated bad: their right page is not known, so they are not measured."""
    logged: bool
    """Whether questions are logged."""
    state: Literal["idle", "running", "failed"]
    done: Count
    """Searches that are done, of `total`."""
    total: Count
    problem: str
    """Why the last run failed."""
    result: OwnResultJson | None
