"""Papers as JSON: what `folio papers list --json` prints and the web API replies, as models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from folio.errors import command
from folio.papers.lists import unsure_fields
from folio.papers.metadata import Metadata, Origin
from folio.papers.model import Paper, PaperHit
from folio.papers.sections import Kind
from folio.papers.work import NoticeKind, SourceName

# What the models of JSON are made of: how they are built from our dataclasses, numbers, ids, notices.


def at(name: str, *path: str | int) -> Any:
    """A field that has another place in the dataclass it is built from: the names of attributes. JSON has its name."""
    return Field(validation_alias=AliasPath(name, *path))


Count = Annotated[int, Field(ge=0)]
FromOne = Annotated[int, Field(ge=1)]
SHA256 = "^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256, description="SHA-256 of the paper's file, in hex.")]
PageRange = Annotated[tuple[FromOne, FromOne], Field(description="First and last page, physical, from 1.")]
DIGITS = 4  # of a score, behind the point
Score = Annotated[float, AfterValidator(lambda score: round(score, DIGITS))]
# What is said of a paper by whatever stands in it
PaperId = Annotated[Sha256, at("paper", "id")]
PaperFile = Annotated[str, at("paper", "file")]
PaperTitle = Annotated[str, at("paper", "title")]


class With:
    """A dataclass with attributes that it does not have, or with other values, for a model to be built from."""

    def __init__(self, source: object, **given: Any) -> None:
        self.__dict__.update(given, _source=source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Strict(BaseModel):
    """An object with these fields and no other, built from JSON or from the attributes of a dataclass.

    A default is for a reply that an older Folio kept; what is written always has the field.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        from_attributes=True,
        validate_by_name=True,
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
    )


class NoticeJson(Strict):
    """What became of a paper after it came out, such as that it was retracted."""

    kind: NoticeKind
    date: Annotated[str, at("dated")]
    """ISO date, "2021-03-04", "2021-03" or "2021"; empty if it is not known."""
    link: str
    """The DOI of the notice, or an arXiv id with its version; empty if it is not known."""
    source: SourceName
    """The service that says so; without meaning for `older-version` and `same-paper`, which the index shows."""
    mark: str
    """The word in citations of the paper: "RETRACTED"; empty for a correction, which is told with the sources."""
    text: str
    """In words: "RETRACTED 2021-03-04 (doi:10.1234/notice)"."""


PaperNotice = Annotated[NoticeJson | None, at("paper", "flag")]


def _unsure(known: object) -> object:
    return unsure_fields(known) if isinstance(known, Metadata) else known


class PaperJson(Strict):
    """A paper in a list."""

    id: Sha256
    key: str
    """Its name in citations: "arXiv:2301.01234", otherwise the file without its suffix."""
    file: str
    title: str
    authors: list[str]
    year: int | None
    venue: Annotated[str, at("metadata", "venue", "value")]
    """The journal, the conference, the university."""
    doi: Annotated[str, at("metadata", "doi", "value")]
    arxiv: str
    tags: Annotated[list[str], at("metadata", "tags", "value")]
    collections: Annotated[list[str], at("metadata", "collections", "value")]
    """Their paths: "Systems/Consensus"."""
    unsure: Annotated[list[str], BeforeValidator(_unsure), at("metadata")]
    """Which of title, authors, year, venue and doi nobody is sure of."""
    pages: Annotated[Count, at("page_count")]
    chunks: Count
    added: str
    """ISO time in UTC."""
    problems: list[str]
    """Problems found when the file was read."""
    notice: Annotated[NoticeJson | None, at("flag")] = None
    """That it was retracted, corrected or the like; null if nothing is known."""


class PaperMatchJson(Strict):
    """Why a paper was found by a query."""

    label: str
    """What citations call it: "Ongaro & Ousterhout 2014", or its key where that is not sure."""
    score: Score
    """The score that ranks the papers."""
    bm25: Annotated[float | None, at("lexical")]
    """BM25 of its title, abstract, headings, authors and venue; null if they have none of the query's words."""
    dense: float | None
    """Cosine of these to the query; null if the paper has no vector yet."""
    words: list[str]
    """The words of the query that these have."""
    pages: PageRange | None
    """Those of its best passage; null if none was found."""
    section: str
    """The section of its best passage; "" if none is known."""


class ListedPaperJson(PaperJson):
    match: PaperMatchJson | None = None
    """Why a query found it; null where there was no query, or the paper was not looked up."""


class PapersFoundJson(Strict):
    """The result of `query.py --papers --json`."""

    query: str
    papers: list[ListedPaperJson]
    """Best first."""
    notice: str
    """What the ranking lacked; "" if nothing."""


class PersonJson(Strict):
    """A name in two parts. An organisation, or a person with one name, has only a family name."""

    family: str
    given: str = ""


class FieldJson(Strict):
    origin: Origin
    """Where it was read; "person" if someone edited it, "" if it is not known."""
    sure: bool
    """Whether it can be cited without a look at it."""


class TextFieldJson(FieldJson):
    value: str


class YearFieldJson(FieldJson):
    value: int | None


class AuthorsFieldJson(FieldJson):
    value: list[PersonJson]


class ListFieldJson(FieldJson):
    value: list[str]


class FieldsJson(Strict):
    """Every field of a paper, each from the most trusted source that has it."""

    title: TextFieldJson
    authors: AuthorsFieldJson
    year: YearFieldJson
    venue: TextFieldJson
    doi: TextFieldJson
    arxiv: TextFieldJson
    abstract: TextFieldJson
    kind: TextFieldJson
    """A CSL type such as "article-journal"."""
    volume: TextFieldJson
    issue: TextFieldJson
    pages: TextFieldJson
    """Its pages in its venue."""
    publisher: TextFieldJson
    url: TextFieldJson
    genre: TextFieldJson
    """What it is called within that: "PhD thesis"."""
    citation_key: TextFieldJson
    """As a bibliography calls it."""
    bibliography: TextFieldJson
    """The file of that bibliography."""
    tags: ListFieldJson
    collections: ListFieldJson
    zotero: TextFieldJson
    """Its attachment in Zotero."""


class SectionJson(Strict):
    """A section of a paper; the sections within it follow it and have a higher level."""

    level: FromOne
    number: str
    title: str
    kind: Kind
    pages: PageRange


class PaperDetailsJson(PaperJson):
    """A paper with every field and its sections."""

    files: list[str]
    """The names of all its files."""
    fields: Annotated[FieldsJson, at("metadata")]
    sections: list[SectionJson]
    notices: list[NoticeJson]
    """Everything that became of it after it came out, newer versions too; the gravest first."""


def paper_json(paper: Paper, added: str) -> PaperJson:
    """added: ISO time in UTC."""
    return PaperJson.model_validate(With(paper, added=added))


def listed_paper_json(paper: Paper, added: str) -> ListedPaperJson:
    """The same for a list that a query may have ranked."""
    return ListedPaperJson.model_validate(With(paper, added=added))


def found_paper_json(hit: PaperHit, added: str) -> ListedPaperJson:
    """A paper that a query found. added: ISO time in UTC."""
    passage = hit.passage
    match = With(
        hit,
        label=hit.paper.label or hit.paper.cited_as,
        pages=passage.pages if passage else None,
        section=passage.section if passage else "",
    )
    return ListedPaperJson.model_validate(With(hit.paper, added=added, match=match))


def papers_notice(without_vector: int) -> str:
    """A sentence about papers that have no vector of what is known about them now; "" if there are none."""
    if not without_vector:
        return ""
    which = "1 paper has" if without_vector == 1 else f"{without_vector:,} papers have"
    return (
        f"{which} no vector of the title, abstract and headings known now. `{command('ingest')}` completes the ranking."
    )


def paper_details_json(paper: Paper, added: str, files: Sequence[str]) -> PaperDetailsJson:
    """added: ISO time in UTC. files: the names of its files."""
    return PaperDetailsJson.model_validate(details(paper, added, files))


def details(paper: Paper, added: str, files: Sequence[str], **more: Any) -> With:
    """What a PaperDetailsJson is built from. more: other attributes."""
    pages_of = paper.pages.pages_of
    sections = [With(section, pages=pages_of(section.start, section.end)) for section in paper.sections.headed]
    return With(paper, added=added, files=files, sections=sections, **more)
