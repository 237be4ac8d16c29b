"""Checked sentences as JSON models, for `folio check --json` and other assistants."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from folio.drafts.checking import CheckedDraft
from folio.drafts.claims import CheckedClaim
from folio.drafts.judging import Verdict
from folio.schema.answers import QuoteJson
from folio.schema.papers import FromOne, Sha256, Strict, With, at


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


class NotHereJson(Strict):
    """A work that a draft cites and that is not in the library."""

    line: FromOne
    """Of the first sentence that cites it; in a Word document, the number of the paragraph's line in its text."""
    cited: Annotated[str, BeforeValidator(str)]
    """As the draft has it."""


class CheckedSentenceJson(Strict):
    """A sentence of a draft that cites a paper of the library."""

    line: FromOne
    text: str
    verdict: Verdict
    trouble: Annotated[bool, at("is_trouble")]
    """Whether it should be looked at. What is not found may be in a work that it cites and that is not here."""
    claims: list[CheckedClaimJson]
    """The sentence; or its parts, where each is supported by the paper that it cites itself."""
    not_here: list[Annotated[str, BeforeValidator(str)]]
    """What it also cites and is not in the library, as the draft has it."""


class CheckedDraftJson(Strict):
    """What `folio check --json` prints: a draft, sentence by sentence."""

    file: str
    sentences: list[CheckedSentenceJson]
    not_here: list[NotHereJson]
    problems: list[str]
    """What could not be read of the draft."""


def checked_draft_json(checked: CheckedDraft) -> CheckedDraftJson:
    not_here = [NotHereJson(line=line, cited=str(cited)) for line, cited in checked.not_here]
    return CheckedDraftJson.model_validate(With(checked, not_here=not_here))


class SentenceCitationJson(Strict):
    """What `folio cite --json` prints: a checked sentence with the citation key of its place."""

    checked: CheckedClaimJson
    key: str
    """The citation key of the paper of the first place; empty without one."""


def sentence_citation_json(checked: CheckedClaim, key: str) -> SentenceCitationJson:
    return SentenceCitationJson(checked=checked_claim_json(checked), key=key)
