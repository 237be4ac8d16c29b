"""Checked sentences as JSON models, for `folio check --json` and other assistants."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from folio.drafts.claims import CheckedClaim
from folio.drafts.judging import Verdict
from folio.schema.answers import QuoteJson
from folio.schema.papers import Sha256, Strict, at


class PaperOfClaim(Strict):
    """A paper that a sentence was checked against."""

    paper: Annotated[Sha256, at("id")]
    file: str
    title: str


class CheckedQuote(QuoteJson):
    """A sentence of a paper that supports or contradicts a checked one, or is the nearest to it."""

    support: Annotated[float, Field(gt=0, le=1), AfterValidator(lambda share: round(share, 4))]
    """The share of the sentence's words that are there; 1 only for the paper's own words."""


class CheckedClaimJson(Strict):
    """A sentence, and what papers say of it."""

    claim: str
    """The sentence, without its citations."""
    verdict: Verdict
    """"quoted": in the paper's own words; "supported": one place says all of it; "contradicted": the place says the
    opposite; "number differs": it says this with another number; "not found": none says it, or not so much."""
    reason: str
    """Why it is not supported, in words; empty if it is."""
    rule: Annotated[str, BeforeValidator(lambda fault: fault.rule if fault else ""), at("fault")]
    """The kind of this reason, such as "number", "negation", "hedge"; empty if it is supported."""
    citations: list[CheckedQuote]
    """The place: what supports the sentence or contradicts it, or else what is nearest to it. Empty if nothing is."""
    against: list[CheckedQuote]
    """If it is supported: places of other papers that disagree."""
    papers: list[PaperOfClaim]
    """The papers that it was checked against; empty for the whole library."""
    verified_by: str
    """The model that agreed; empty if none ran."""


def checked_claim_json(checked: CheckedClaim) -> CheckedClaimJson:
    return CheckedClaimJson.model_validate(checked)
