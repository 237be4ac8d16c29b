"""What `--json` prints, as models: docs/answer.schema.json is made from them by `make schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from folio.answer_types import REFUSAL, Answer, Outcome, Quote, Style, shown_citation, warnings
from folio.deep.types import (
    Agreement,
    DeepEvent,
    DeepTrace,
    EvidenceProfile,
    EvidenceScored,
    Level,
    PapersFound,
    SearchAgain,
    SearchEnded,
)
from folio.papers.label import sure_venue, sure_year
from folio.papers.lists import By
from folio.papers.model import Hit, Paper
from folio.schema.papers import (
    DIGITS,
    Count,
    FromOne,
    NoticeJson,
    PageRange,
    PaperFile,
    PaperId,
    PaperNotice,
    PaperTitle,
    Score,
    Sha256,
    Strict,
    With,
    at,
)
from folio.zotero.link import open_page

Models = Annotated[dict[str, str], Field(description="What embedded, reranked and answered.")]
Timings = Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(description="Milliseconds that each stage took.")]

Span = Annotated[
    tuple[Count, FromOne], Field(description="Start and end in the text of the sentence, in Unicode code points.")
]


def _rounded_support(support: float) -> float:
    """Rounded, but never to 0, and to 1 only for a verbatim sentence."""
    least = 10**-DIGITS
    return support if support == 1 else min(max(round(support, DIGITS), least), 1 - least)


Support = Annotated[float, Field(gt=0, le=1), AfterValidator(_rounded_support)]


class QuoteJson(Strict):
    """A quote from a paper and its place."""

    paper: PaperId
    file: str
    """File name, as shown to people."""
    title: str
    venue: str = ""
    """The journal or the conference; empty if that is not sure."""
    year: int | None = None
    """The year of publication; null if it is not sure."""
    page: FromOne
    """Physical page of the quote, from 1."""
    label: str
    """Label printed on the page, such as "iv" or "127"; its number if the file states none."""
    quote: Annotated[str, Field(min_length=1)]
    """Verbatim, with the line breaks of the page."""
    start: Annotated[Count, at("offsets", 0)]
    """Start of the quote in the text of its page, in characters."""
    end: Annotated[FromOne, at("offsets", 1)]
    """End of the quote in the text of its page."""
    shown: str
    """The citation as displayed: "[Ongaro 2014, p. 6]", "[arXiv:2301.01234 p.7]", "[otters.pdf p.7]"; of a paper that
    may not be relied on "[Ongaro 2014, RETRACTED, p. 6]". No other text is displayed in such a form."""
    section: str = ""
    """The paper's section that it stands in, such as "§5.2 Leader election"; empty if none is known."""
    zotero: str = ""
    """The link to its page in Zotero, "zotero://open-pdf/library/items/KEY?page=7"; empty if it is not there."""
    notice: NoticeJson | None = None
    """That the paper was retracted, corrected or the like; null if nothing is known."""

    @model_validator(mode="before")
    @classmethod
    def _from_quote(cls, value: Any) -> Any:
        return With(value, **cited_as(value.paper, value.page)) if isinstance(value, Quote) else value


def cited_as(paper: Paper, page: int) -> dict[str, Any]:
    """What a citation of a page says of its paper, as the library knows it now."""
    return {
        "title": paper.title,
        "file": paper.file,
        "venue": sure_venue(paper.metadata),
        "year": sure_year(paper.metadata),
        "shown": shown_citation(paper, page),
        "zotero": open_page(paper.metadata.zotero.value, page),
        "notice": paper.flag,
    }


class CitationJson(QuoteJson):
    """A quote that holds up a sentence of an answer."""

    evidence: FromOne
    """Number of the evidence that contains it."""
    support: Support
    """How well the quotes support the sentence; 1 means verbatim."""
    number: Count = 0
    """Number of its page in the list of sources, from 1: "[3]" with CITATION_STYLE=numbered; 0 for an answer of
    an older Folio."""


class SentenceJson(Strict):
    """One statement of the answer with its citations."""

    text: Annotated[str, Field(min_length=1)]
    """A sentence, an excerpt of several; or several lines, such as a list, code or a table."""
    section: Annotated[str, BeforeValidator(str)]
    """The heading that it stands under, such as "Closest passages", or "Summary" or "Analysis/Melt" in a report."""
    citations: Annotated[list[CitationJson], Field(min_length=1)]
    against: list[CitationJson]
    """Quotes from other papers that disagree with it."""
    outcome: Outcome = "quoted"
    """Whose words these are: "quoted" is the paper's, or nearly; "reworded" is the model's, shown with its quotes."""
    verified_by: str = ""
    """The verifier that agreed with a reworded statement; empty if none ran."""
    instead_of: str = ""
    """A statement of the model that the papers do not support and whose place this quote takes; else empty."""
    marks: list[Span] = Field(default_factory=list)
    """The words of the text that answer the question, in order."""
    short: Span | None = None
    """A short answer in the text, such as "64 MB"; null if none was found. It is shown above the text."""


class LeftOutJson(Strict):
    """A statement that the model wrote and that the answer does not show, because the papers do not support it."""

    text: str
    reason: str
    """Why it was left out, in words."""


class EvidenceJson(Strict):
    """Text given to the answerer, which cites it by number."""

    number: FromOne
    paper: PaperId
    file: PaperFile
    title: PaperTitle
    pages: PageRange
    score: Score
    """Score of the best passage that it was built from."""
    text: str
    section: str = ""
    """The sections of the paper that it stands in: "§5.2 Log", "§5.2 Log – §6 Clients"; empty if none is known."""
    notice: PaperNotice = None
    """That the paper was retracted, corrected or the like; null if nothing is known."""


class HitJson(Strict):
    """A passage found for the question."""

    paper: PaperId
    file: PaperFile
    title: PaperTitle
    pages: PageRange
    score: Score
    """The score that ranks the passages."""
    dense: Score | None
    """Cosine to the question; null if dense search did not find the passage."""
    bm25: Annotated[Score | None, at("lexical")]
    """BM25 score; null if BM25 did not find the passage."""
    text: str
    page_breaks: list[Count] = Field(default_factory=list)
    """Where in its text each page after the first begins, in Unicode code points."""
    section: str = ""
    """The sections of the paper that it stands in: "§5.2 Log", "§5.2 Log – §6 Clients"; empty if none is known."""
    notice: PaperNotice = None
    """That the paper was retracted, corrected or the like; null if nothing is known."""


# What holds between the fields of a refusal and of an answer.
_NONE: JsonDict = {"maxItems": 0}
_SOME: JsonDict = {"minItems": 1}
_REFUSED_OR_CITED: JsonDict = {
    "if": {"properties": {"refused": {"const": True}}},
    "then": {"properties": {"answer": {"const": REFUSAL}, "sentences": _NONE, "citations": _NONE}},
    "else": {
        "if": {"properties": {"remark": {"const": ""}}},
        "then": {"properties": {"sentences": _SOME, "citations": _SOME}},
        "else": {"properties": {"sentences": _NONE, "citations": _NONE}},
    },
}


class AnswerJson(Strict):
    """An answer, a remark or a refusal. A refusal has a fixed wording. A remark and a refusal cite nothing."""

    # Every face has these fields; one that has more, or does not send some, is a subclass. tests/test_faces.py says
    # where each of them is shown.
    model_config = ConfigDict(json_schema_extra=_REFUSED_OR_CITED)

    standalone_question: str
    """The question rewritten so that it stands alone."""
    style: Style
    answer: Annotated[str, at("text")]
    """The sentences joined, the remark, or the fixed refusal."""
    refused: bool
    remark: str = ""
    """Folio's own words in place of an answer, such as to a greeting; else empty. Nothing is cited then."""
    sentences: list[SentenceJson]
    dropped_sentences: Annotated[Count, at("dropped")]
    """Number of the model's sentences that nothing supports and that are not shown."""
    left_out: list[LeftOutJson] = Field(default_factory=list)
    """Those sentences, in the order in which the model wrote them; empty for an answer of an older Folio."""
    notice: str
    """A remark, such as that the answer was cut short; otherwise empty."""
    warnings: list[str] = Field(default_factory=list)
    """A sentence on each cited paper that was retracted, or of which that may be. Show them above the answer."""
    model_failed: bool = False
    """Whether the model's server failed. The sentences are those that it had written before, or else quotes."""
    citations: list[CitationJson]
    """Every citation of the sentences once, in order, including those that disagree."""
    hits: list[HitJson]
    """Passages found, best first."""
    models: Models
    question: str
    evidence: list[EvidenceJson]
    """The evidence given to the answerer, by number."""
    timings_ms: Timings


class PassagesJson(Strict):
    """The result of `--sources`: passages without an answer."""

    question: str
    hits: list[HitJson]
    """Best first."""
    models: Models
    timings_ms: Timings


class ErrorJson(Strict):
    """A question of a batch that could not be answered."""

    question: str
    error: str
    """What happened."""
    remedy: str
    """What to do about it."""


class StatsJson(Strict):
    """What `--stats` prints."""

    papers: Count
    chunks: Count
    bytes: Count
    """Size of the store on disk."""
    questions: Count
    """Questions in the log."""
    refused: Count
    """Questions that the papers do not answer."""
    good: Count
    """Answers rated good."""
    bad: Count
    median_ms: Annotated[float, Field(ge=0)] | None
    """Median milliseconds of an answer; null before the first."""
    median_confidence: Annotated[float, Field(ge=0, le=1)] | None
    """Median confidence of the built-in answers, refusals included; null where none was given."""


class PaperCountJson(Strict):
    """How many papers have a value."""

    value: str
    """Empty for the papers that have none."""
    papers: FromOne


class PaperCountsJson(Strict):
    """What `--stats --by` prints: how many papers there are by author, year, venue, kind of section or warning."""

    by: By
    counts: list[PaperCountJson]


def answer_json(
    answer: Answer, hits: Sequence[Hit], models: Mapping[str, str], timings_ms: Mapping[str, float]
) -> AnswerJson:
    """An answer as the object that `--json` prints."""
    warned = list(warnings(citation.paper for citation in answer.citations).values())
    return AnswerJson.model_validate(With(answer, warnings=warned, hits=hits, models=models, timings_ms=timings_ms))


def passages_json(
    question: str, hits: Sequence[Hit], models: Mapping[str, str], timings_ms: Mapping[str, float]
) -> PassagesJson:
    """Passages as the object that `--json --sources` prints."""
    given = {"question": question, "hits": hits, "models": models, "timings_ms": timings_ms}
    return PassagesJson.model_validate(given)


def counts_json(by: By, counts: Sequence[tuple[str, int]]) -> PaperCountsJson:
    return PaperCountsJson(by=by, counts=[PaperCountJson(value=value, papers=number) for value, number in counts])


def line(value: BaseModel) -> str:
    """An object as one line of readable JSON without control characters.

    Letters stay as they are; whatever is not printable, such as a control character, a mark that turns the direction
    of reading or half of a pair, is written as an escape.
    """
    text = json.dumps(value.model_dump(), ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title that only repeats the field's name


def json_schema() -> dict[str, Any]:
    """The JSON schema of whatever `query.py --json` prints on a line."""
    pass  # DROPPED  # which has this module's AnswerJson

    printed = DeepAnswerJson | AnswerJson | PassagesJson | ErrorJson | StatsJson | PaperCountsJson
    lines: TypeAdapter[Any] = TypeAdapter(printed)
    made: JsonSchemaValue = lines.json_schema(mode="serialization", schema_generator=_Schema)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "Folio's answers",
        "description": "One line of what `python query.py --json` prints.",
        **made,
    }


# What is said of the evidence of a deep answer, as JSON.


class ConfidenceJson(Strict):
    """How often answers like this one showed what was asked for: docs/trust.md says how that was measured."""

    value: Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: round(value, 2))]
    level: Level


class BasisJson(Strict):
    """What the answer rests on, counted."""

    papers: Count
    """Papers that it cites and that were not retracted."""
    relevant: Count
    """Passages that were scored as relevant."""
    scored: Count
    """Passages that were scored."""
    statements: Count
    left_out: Count
    """A model's statements that nothing supports."""


class DifferenceJson(Strict):
    """Papers that disagree."""

    some: Annotated[list[QuoteJson], Field(min_length=1)]
    others: Annotated[list[QuoteJson], Field(min_length=1)]


class AgeJson(Strict):
    """The years of the papers that the answer cites."""

    years: list[int]
    """Of each paper whose year is sure, the oldest first."""
    unknown: Count
    """Papers without such a year."""


def _quotes(group: object) -> object:
    return group.quotes if isinstance(group, Agreement) else group


class EvidenceProfileJson(Strict):
    """What the answer rests on, as a whole. Every quote is the paper's own words."""

    basis: BasisJson
    confidence: ConfidenceJson | None
    """Null where none was measured: for answers that a model wrote."""
    agreements: list[Annotated[list[QuoteJson], Field(min_length=2), BeforeValidator(_quotes)]]
    """Quotes of two papers or more that say the same."""
    differences: list[DifferenceJson]
    open_questions: Annotated[list[QuoteJson], Field(max_length=3)]
    """What the papers say is open."""
    age: AgeJson
    compared_by: str
    """The model that chose which quotes belong together; empty for rules."""
    calls: Count
    """Calls of that model; the search and they take DEEP_CALLS together, at most."""


# A deep answer as JSON: what `--deep --json` prints, an answer with the trace of its search.

# Characters of events that the log keeps of one trace. One of three rounds has some 60,000.
MOST_LOGGED = 200_000


class PaperFoundJson(Strict):
    """A paper that a search found."""

    paper: Annotated[Sha256, at("id")]
    file: str
    title: str


class PapersEventJson(Strict):
    """A search for papers."""

    event: Literal["papers"] = "papers"
    query: str
    papers: list[PaperFoundJson]
    """Best first."""


class EvidenceEventJson(Strict):
    """A passage was scored."""

    event: Literal["evidence"] = "evidence"
    part: str
    """The part of the question that it was read for."""
    paper: Annotated[Sha256, at("hit", "paper", "id")]
    file: Annotated[str, at("hit", "paper", "file")]
    title: Annotated[str, at("hit", "paper", "title")]
    pages: Annotated[PageRange, at("hit", "pages")]
    text: Annotated[str, at("hit", "text")]
    """The passage."""
    page_breaks: Annotated[list[Count], at("hit", "page_breaks")] = Field(default_factory=list)
    """Where in its text each page after the first begins, in Unicode code points."""
    relevance: Annotated[Annotated[int, Field(ge=0, le=10)] | None, at("assessment", "relevance")]
    """0 is dropped; null if it could not be scored."""
    summary: Annotated[str, at("assessment", "summary")]
    """A model's, in its own words and not checked; empty without one."""


class SearchAgainEventJson(Strict):
    """Too little was found, and the search goes on."""

    event: Literal["search_again"] = "search_again"
    how: Literal["reformulate", "expand", "offset"]
    """In other words; in the papers that the best ones cite; in the papers that come next."""
    why: str
    queries: list[str]
    """What is searched next; with "expand", the titles of the papers that are read."""


class SearchEndedEventJson(Strict):
    """The search is over."""

    event: Literal["search_ended"] = "search_ended"
    why: str


EventJson = PapersEventJson | EvidenceEventJson | SearchAgainEventJson | SearchEndedEventJson
_EVENTS: dict[type[DeepEvent], type[EventJson]] = {
    PapersFound: PapersEventJson,
    EvidenceScored: EvidenceEventJson,
    SearchAgain: SearchAgainEventJson,
    SearchEnded: SearchEndedEventJson,
}


class TraceJson(Strict):
    """How the evidence of a deep answer was found."""

    assessor: str
    """What scored the passages."""
    rounds: Count
    calls: Count
    """Calls of a model before the answer."""
    seconds: Annotated[float, Field(ge=0)]
    events: list[Annotated[EventJson, Field(discriminator="event")]]
    """In order."""
    left_out: Count = 0
    """Events that are not listed: the log leaves some out of a very long trace."""


class DeepAnswerJson(AnswerJson):
    """An answer to `--deep`, with the trace of its search."""

    trace: TraceJson
    evidence_profile: EvidenceProfileJson | None = None
    """Null for a refusal and a remark."""


def deep_answer_json(answer: AnswerJson, trace: DeepTrace, profile: EvidenceProfile | None = None) -> DeepAnswerJson:
    """An answer with its trace and its profile."""
    return DeepAnswerJson.model_validate({**dict(answer), "trace": trace_json(trace), "evidence_profile": profile})


def trace_json(trace: DeepTrace) -> TraceJson:
    """How the evidence of an answer was found."""
    return TraceJson.model_validate(With(trace, events=[event_json(event) for event in trace.events]))


def logged_trace(trace: DeepTrace, most: int = MOST_LOGGED) -> dict[str, Any]:
    """The trace for the query log: why the search ended, and the first events that fit, in so many characters."""
    whole = trace_json(trace)
    sizes = [len(event.model_dump_json()) for event in whole.events]
    kept, room = set[int](), most
    for place in (len(sizes) - 1, *range(len(sizes) - 1)) if sizes else ():
        if sizes[place] <= room:
            kept.add(place)
            room -= sizes[place]
    events = [event for place, event in enumerate(whole.events) if place in kept]
    left_out = len(whole.events) - len(events)
    return whole.model_copy(update={"events": events, "left_out": left_out}).model_dump(mode="json")


def from_log(written: dict[str, Any] | None) -> TraceJson | None:
    """The trace that `logged_trace` gave; None without one, or for one of another version of Folio."""
    try:
        return None if written is None else TraceJson.model_validate(written)
    except ValidationError:
        return None


def event_json(event: DeepEvent) -> EventJson:
    """One event of a deep search."""
    return _EVENTS[type(event)].model_validate(event)
