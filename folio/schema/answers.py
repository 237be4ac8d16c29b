"""The models of what `--json` prints. `make schema` makes docs/answer.schema.json from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
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

from folio.answer_types import (
    SUMMARY,
    Answer,
    Disagreement,
    Outcome,
    Quote,
    Section,
    Style,
    shown_citation,
    warnings,
)
from folio.bibliography.markdown import LINE_BREAK, escaped, line_escaped
from folio.deep.types import (
    MOST_RELEVANCE,
    Again,
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
    PaperSpan,
    PaperTitle,
    Score,
    Sha256,
    Strict,
    With,
    at,
)
from folio.shown_text import name_line, page_words, plain_line, short_line, statement_lines
from folio.store.instructions import Instruction
from folio.zotero.link import open_page

Models = Annotated[dict[str, str], Field(description="The models that embedded, reranked and answered.")]
Timings = Annotated[dict[str, Annotated[float, Field(ge=0)]], Field(description="Milliseconds of each stage.")]

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
    """The journal or the conference; empty if not sure."""
    year: int | None = None
    """The year of publication; null if not sure."""
    page: FromOne
    """Physical page of the quote, from 1."""
    label: str
    """Label printed on the page, such as "iv" or "127"; the page's number if the file gives none."""
    quote: Annotated[str, Field(min_length=1)]
    """Verbatim, with the line breaks of the page."""
    start: Annotated[Count, at("offsets", 0)]
    """Start of the quote in the text of its page, in characters."""
    end: Annotated[FromOne, at("offsets", 1)]
    """End of the quote in the text of its page."""
    span: PaperSpan | None = None
    """Start and end of the quote in the text of the paper; null in answers of older versions."""
    shown: str
    """The citation as displayed: "[Ongaro 2014, p. 6]", "[arXiv:2301.01234 p.7]", "[otters.pdf p.7]"; for a retracted
    paper "[Ongaro 2014, RETRACTED, p. 6]". No other text is displayed in this form."""
    section: str = ""
    """The section of the quote, such as "§5.2 Leader election"; empty if unknown."""
    zotero: str = ""
    """The link to the page in Zotero, "zotero://open-pdf/library/items/KEY?page=7"; empty if the paper is not there."""
    notice: NoticeJson | None = None
    """The paper's retraction, correction or the like; null if none is known."""

    @model_validator(mode="before")
    @classmethod
    def _from_quote(cls, value: Any) -> Any:
        return With(value, **cited_as(value.paper, value.page)) if isinstance(value, Quote) else value


def cited_as(paper: Paper, page: int) -> dict[str, Any]:
    """The fields of a citation that describe its paper, from the library's current metadata."""
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
    """A quote that supports a sentence of an answer."""

    evidence: FromOne
    """Number of the evidence that contains it."""
    support: Support
    """How well the quotes support the sentence; 1 means verbatim."""
    number: Count = 0
    """Number of its page in the list of sources, from 1: "[3]" with CITATION_STYLE=numbered; 0 in answers of older
    versions."""
    marks: list[Span] = Field(default_factory=list)
    """The words of the quote that a reworded sentence rests on, or that differ from the sentence."""
    differs: Disagreement | Literal[""] = ""
    """How the quote disagrees with the sentence: "denial", another "number", or another number where one of the two
    states a "condition" that the other has not; empty if it supports it, and in answers of older versions."""


class SentenceJson(Strict):
    """One statement of the answer with its citations."""

    text: Annotated[str, Field(min_length=1)]
    """A sentence, an excerpt of several sentences, or several lines, such as a list, code or a table."""
    section: Annotated[str, BeforeValidator(str)]
    """The heading above it, such as "Closest passages"; in a report "Summary" or "Analysis/Melt"."""
    citations: Annotated[list[CitationJson], Field(min_length=1)]
    against: list[CitationJson]
    """Quotes from other papers that disagree with it."""
    outcome: Outcome = "quoted"
    """Whose words these are: "quoted" is the paper's; "reworded" is the model's, shown with its quotes."""
    verified_by: str = ""
    """The verifier that agreed with a reworded statement; empty if none ran."""
    instead_of: str = ""
    """The model's unsupported statement that this quote replaces; else empty."""
    marks: list[Span] = Field(default_factory=list)
    """The words of the text that answer the question, in order."""
    short: Span | None = None
    """A short answer in the text, such as "64 MB", shown above the text; null if none was found."""


class LeftOutJson(Strict):
    """A model's statement that the answer leaves out, because the papers do not support it."""

    text: str
    reason: str
    """The reason for leaving it out, in words."""


class EvidenceJson(Strict):
    """Text for the answerer, which cites it by number."""

    number: FromOne
    paper: PaperId
    file: PaperFile
    title: PaperTitle
    pages: PageRange
    score: Score
    """Score of the best passage in it."""
    text: str
    section: str = ""
    """Its sections of the paper: "§5.2 Log", "§5.2 Log – §6 Clients"; empty if unknown."""
    notice: PaperNotice = None
    """The paper's retraction, correction or the like; null if none is known."""


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
    span: PaperSpan | None = None
    """Start and end of the passage in the text of the paper; null in answers of older versions."""
    section: str = ""
    """Its sections of the paper: "§5.2 Log", "§5.2 Log – §6 Clients"; empty if unknown."""
    notice: PaperNotice = None
    """The paper's retraction, correction or the like; null if none is known."""


# "Not found in the provided papers.", "Not found in the 12 papers of Consensus."
REFUSAL_PATTERN = r"^Not found in .+\.$"
# Rules between the fields of a refusal and of an answer
_NONE: JsonDict = {"maxItems": 0}
_SOME: JsonDict = {"minItems": 1}
_REFUSED_OR_CITED: JsonDict = {
    "if": {"properties": {"refused": {"const": True}}},
    "then": {"properties": {"answer": {"pattern": REFUSAL_PATTERN}, "sentences": _NONE, "citations": _NONE}},
    "else": {
        "if": {"properties": {"remark": {"const": ""}}},
        "then": {"properties": {"sentences": _SOME, "citations": _SOME}},
        "else": {"properties": {"sentences": _NONE, "citations": _NONE}},
    },
}


class UsedInstructionJson(Strict):
    """What was asked of the wording of an answer, in the words that the instruction had then."""

    id: str
    name: str
    text: str


class AnswerJson(Strict):
    """An answer, a remark or a refusal. A refusal names what was asked. Remarks and refusals cite nothing."""

    # The command, the API and the page share these fields; subclasses add or leave out some. tests/test_faces.py checks
    # where each field is shown.
    model_config = ConfigDict(json_schema_extra=_REFUSED_OR_CITED)

    standalone_question: str
    """The question, rewritten to stand alone."""
    style: Style
    answer: Annotated[str, at("text")]
    """The sentences joined, the remark, or the refusal. A report is Markdown with its headings."""
    searched: str = ""
    """What was asked: "12 papers in Consensus, 2000 to 2015", "All 95 papers"; empty for a remark, and in answers of
    older versions."""
    refused: bool
    remark: str = ""
    """Folio's own words in place of an answer, such as to a greeting, without citations; else empty."""
    sentences: list[SentenceJson]
    dropped_sentences: Annotated[Count, at("dropped")]
    """Number of the model's sentences left out because nothing supports them."""
    left_out: list[LeftOutJson] = Field(default_factory=list)
    """These sentences, in the model's order; empty in answers of older versions."""
    notice: str
    """A remark, such as that the answer was cut short; otherwise empty."""
    missing: list[str] = Field(default_factory=list)
    """What the papers do not answer: the question, after a refusal or closest passages, else parts of it; in answers of
    older versions empty."""
    warnings: list[str] = Field(default_factory=list)
    """A sentence on each cited paper that was retracted, withdrawn or the like. Show them above the answer."""
    instruction: UsedInstructionJson | None = None
    """What was asked of the wording; null for nothing."""
    model_failed: bool = False
    """Whether the model's server failed. The sentences are from before the failure, or quotes."""
    citations: list[CitationJson]
    """Every citation of the sentences once, in order, including quotes that disagree."""
    hits: list[HitJson]
    """Passages found, best first."""
    models: Models
    question: str
    evidence: list[EvidenceJson]
    """The evidence given to the answerer, by number."""
    timings_ms: Timings


class PassagesJson(Strict):
    """The output of `--sources`: passages without an answer."""

    question: str
    hits: list[HitJson]
    """Best first."""
    models: Models
    timings_ms: Timings
    notice: str
    """Why only words were searched; empty if vectors were too."""


class ErrorJson(Strict):
    """A question of a batch that could not be answered."""

    question: str
    error: str
    """What happened."""
    remedy: str
    """What to do about it."""


NotNegative = Annotated[float, Field(ge=0)]


class StatsJson(Strict):
    """What `--stats` prints."""

    papers: Count
    """Each once, however many copies of it there are."""
    copies: Count
    """Further files with the text of one of them, which are not searched."""
    pages: Count
    """Of all papers together."""
    mean_pages: NotNegative
    """Of a paper."""
    mean_length: NotNegative
    """Of a paper, in characters of text."""
    chunks: Count
    mean_chunk: NotNegative
    """The mean size of a passage, in characters."""
    fine_chunks: Count
    """Passages within these passages, with INDEX=dual."""
    mean_fine_chunk: NotNegative
    """Their mean size, in characters."""
    bytes: Count
    """Size of the store on disk."""
    questions: Count
    """Questions in the log."""
    refused: Count
    """Questions without an answer in the papers."""
    good: Count
    """Answers rated good."""
    bad: Count
    median_ms: Annotated[float, Field(ge=0)] | None
    """Median milliseconds of an answer; null before the first."""
    median_confidence: Annotated[float, Field(ge=0, le=1)] | None
    """Median confidence of the built-in answers and refusals; null without one."""


class PaperCountJson(Strict):
    """The number of papers with a value."""

    value: str
    """Empty for papers without a value."""
    papers: FromOne


class PaperCountsJson(Strict):
    """The output of `--stats --by`: numbers of papers by author, year, venue, kind of section or warning."""

    by: By
    counts: list[PaperCountJson]


def answer_json(
    answer: Answer,
    hits: Sequence[Hit],
    models: Mapping[str, str],
    timings_ms: Mapping[str, float],
    instruction: Instruction | None = None,
) -> AnswerJson:
    """An answer as the object that `--json` prints."""
    warned = list(warnings(citation.paper for citation in answer.citations).values())
    text = "\n\n".join(_report(answer)) if answer.style == "report" and answer.sentences else answer.text
    given = {"text": text, "warnings": warned, "hits": hits, "models": models, "timings_ms": timings_ms}
    used = None
    if instruction is not None:
        used = UsedInstructionJson(id=instruction.id, name=instruction.name, text=instruction.text)
    searched = answer.scope.line if answer.scope else ""
    return AnswerJson.model_validate(With(answer, **given, searched=searched, instruction=used))


def _report(answer: Answer) -> Iterator[str]:
    """The blocks of a report as Markdown: headings, the summary as a list, and paragraphs. Its text has no markup."""
    before = Section()
    for section, group in groupby(answer.sentences, lambda sentence: sentence.section):
        if section.heading and section.heading != before.heading:
            yield f"## {section.heading}"
        if section.subheading:
            yield f"### {escaped(section.subheading)}"
        before = section
        lines = (filter(None, statement_lines(sentence.text)) for sentence in group)
        texts = [LINE_BREAK.join(map(line_escaped, each)) for each in lines]
        if section == SUMMARY:
            yield "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
        else:
            yield " ".join(texts)


def passages_json(
    question: str, hits: Sequence[Hit], models: Mapping[str, str], timings_ms: Mapping[str, float], notice: str = ""
) -> PassagesJson:
    """Passages as the object that `--json --sources` prints."""
    given = {"question": question, "hits": hits, "models": models, "timings_ms": timings_ms, "notice": notice}
    return PassagesJson.model_validate(given)


def counts_json(by: By, counts: Sequence[tuple[str, int]]) -> PaperCountsJson:
    return PaperCountsJson(by=by, counts=[PaperCountJson(value=value, papers=number) for value, number in counts])


def line(value: BaseModel) -> str:
    """An object as one line of readable JSON. Characters that are not printable become escapes."""
    text = json.dumps(value.model_dump(), ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


class UntitledSchema(GenerateJsonSchema):
    """A JSON schema without titles."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title would only repeat the field's name


def json_schema() -> dict[str, Any]:
    """The JSON schema of a line that `query.py --json` prints."""
    printed = DeepAnswerJson | AnswerJson | PassagesJson | ErrorJson | StatsJson | PaperCountsJson
    lines: TypeAdapter[Any] = TypeAdapter(printed)
    made: JsonSchemaValue = lines.json_schema(mode="serialization", schema_generator=UntitledSchema)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "Folio's answers",
        "description": "One line of what `python query.py --json` prints.",
        **made,
    }


class ConfidenceJson(Strict):
    """How often answers like this one were right. docs/trust.md describes the measurement."""

    value: Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: round(value, 2))]
    level: Level


class BasisJson(Strict):
    """The numbers of papers, passages and statements behind an answer."""

    papers: Count
    """Cited papers that were not retracted."""
    relevant: Count
    """Passages scored as relevant."""
    scored: Count
    """Passages scored."""
    statements: Count
    left_out: Count
    """The model's statements that nothing supports."""


class DifferenceJson(Strict):
    """Papers that disagree."""

    some: Annotated[list[QuoteJson], Field(min_length=1)]
    others: Annotated[list[QuoteJson], Field(min_length=1)]


class AgeJson(Strict):
    """The years of the cited papers."""

    years: list[int]
    """The sure year of each paper, the oldest first."""
    unknown: Count
    """Papers without a sure year."""


def _quotes(group: object) -> object:
    return group.quotes if isinstance(group, Agreement) else group


class EvidenceProfileJson(Strict):
    """The evidence behind an answer as a whole. Every quote is in the paper's words."""

    basis: BasisJson
    confidence: ConfidenceJson | None
    """Null for a model's answers, for which none was measured."""
    agreements: list[Annotated[list[QuoteJson], Field(min_length=2), BeforeValidator(_quotes)]]
    """Quotes of two or more papers that agree."""
    differences: list[DifferenceJson]
    open_questions: Annotated[list[QuoteJson], Field(max_length=3)]
    """Questions that the papers call open."""
    age: AgeJson
    compared_by: str
    """The model that grouped the quotes; empty for rules."""
    calls: Count
    """Calls of that model; with those of the search, at most DEEP_CALLS."""


# Characters of one trace's events in the log. A trace of three rounds has some 60,000.
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
    """The part of the question for which it was scored."""
    paper: Annotated[Sha256, at("hit", "paper", "id")]
    file: Annotated[str, at("hit", "paper", "file")]
    title: Annotated[str, at("hit", "paper", "title")]
    pages: Annotated[PageRange, at("hit", "pages")]
    text: Annotated[str, at("hit", "text")]
    """The passage."""
    page_breaks: Annotated[list[Count], at("hit", "page_breaks")] = Field(default_factory=list)
    """Where in its text each page after the first begins, in Unicode code points."""
    relevance: Annotated[Annotated[int, Field(ge=0, le=10)] | None, at("assessment", "relevance")]
    """From 0, which is dropped, to 10; null if the passage could not be scored."""
    summary: Annotated[str, at("assessment", "summary")]
    """A model's unchecked summary; empty without a model."""


class SearchAgainEventJson(Strict):
    """Too little was found, so the search continues."""

    event: Literal["search_again"] = "search_again"
    how: Literal["reformulate", "expand", "offset"]
    """In other words; in papers that the best papers cite; in the next papers."""
    why: str
    queries: list[str]
    """The next queries; with "expand", the titles of the papers to read."""


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
    """The search for the evidence of a deep answer."""

    assessor: str
    """The model or method that scored the passages."""
    rounds: Count
    calls: Count
    """Calls of a model before the answer."""
    seconds: Annotated[float, Field(ge=0)]
    events: list[Annotated[EventJson, Field(discriminator="event")]]
    """In order."""
    left_out: Count = 0
    """Events left out of a very long trace in the log."""


class DeepAnswerJson(AnswerJson):
    """An answer to `--deep`, with the trace of its search."""

    trace: TraceJson
    evidence_profile: EvidenceProfileJson | None = None
    """Null for a refusal and a remark."""


def deep_answer_json(answer: AnswerJson, trace: DeepTrace, profile: EvidenceProfile | None = None) -> DeepAnswerJson:
    """An answer with its trace and its profile."""
    return DeepAnswerJson.model_validate({**dict(answer), "trace": trace_json(trace), "evidence_profile": profile})


def trace_json(trace: DeepTrace) -> TraceJson:
    """The trace as JSON."""
    return TraceJson.model_validate(With(trace, events=[event_json(event) for event in trace.events]))


def logged_trace(trace: DeepTrace) -> dict[str, Any]:
    """The trace for the query log: the last event, and the first events that fit into MOST_LOGGED characters."""
    whole = trace_json(trace)
    sizes = [len(event.model_dump_json()) for event in whole.events]
    kept, room = set[int](), MOST_LOGGED
    for place in (len(sizes) - 1, *range(len(sizes) - 1)) if sizes else ():
        if sizes[place] <= room:
            kept.add(place)
            room -= sizes[place]
    events = [event for place, event in enumerate(whole.events) if place in kept]
    left_out = len(whole.events) - len(events)
    return whole.model_copy(update={"events": events, "left_out": left_out}).model_dump(mode="json")


def from_log(written: dict[str, Any] | None) -> TraceJson | None:
    """The trace from `logged_trace`; None without one, or for a trace of another version of Folio."""
    try:
        return None if written is None else TraceJson.model_validate(written)
    except ValidationError:
        return None


def event_json(event: DeepEvent) -> EventJson:
    """One event of a deep search."""
    return _EVENTS[type(event)].model_validate(event)


_LONGEST = 120  # characters of a query or a summary
_HOW: dict[Again, str] = {
    "reformulate": "in other words",
    "expand": "in the papers that the best ones cite",
    "offset": "in the next papers",
}


def event_line(event: EventJson) -> str:
    """A step of a deep search as one line, with the text of papers made harmless."""
    if event.event == "papers":
        files = ", ".join(name_line(paper.file) for paper in event.papers) or "none"
        line = f"Papers for “{short_line(event.query, _LONGEST)}”: {files}"
    elif event.event == "evidence":
        score = "not scored" if event.relevance is None else f"{event.relevance}/{MOST_RELEVANCE}"
        summary = f": {short_line(event.summary, _LONGEST)}" if event.summary else ""
        line = f"Evidence {score}: {name_line(event.file)}, {page_words(event.pages)}{summary}"
    elif event.event == "search_again":
        queries = ", ".join(f"“{short_line(query, _LONGEST)}”" for query in event.queries)
        line = f"Searching again, {_HOW[event.how]} ({event.why}): {queries}"
    else:
        line = f"Search ended: {event.why}."
    return plain_line(line)
