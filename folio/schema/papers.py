"""Papers as JSON models, for `folio papers list --json` and the web API; and the parts that all JSON models share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from folio.errors import command
from folio.papers.lists import unsure_fields
from folio.papers.metadata import Metadata, Origin
from folio.papers.model import Paper, PaperHit
from folio.papers.sections import Kind
from folio.papers.work import NoticeKind, SourceName

if TYPE_CHECKING:
    from folio.store.readings import Reading


def at(name: str, *path: str | int) -> Any:
    """A field that is built from an attribute with another name or place. JSON has the field's own name."""
    return Field(validation_alias=AliasPath(name, *path))


Count = Annotated[int, Field(ge=0)]
FromOne = Annotated[int, Field(ge=1)]
SHA256 = "^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256, description="SHA-256 of the paper's file, in hex.")]
PageRange = Annotated[tuple[FromOne, FromOne], Field(description="First and last page, physical, from 1.")]
PaperSpan = Annotated[
    tuple[Count, FromOne], Field(description="Start and end in the text of the paper, in Unicode code points.")
]
DIGITS = 4  # of a score, behind the point
Score = Annotated[float, AfterValidator(lambda score: round(score, DIGITS))]
# Fields of a paper, in a model built from something that has a `paper`
PaperId = Annotated[Sha256, at("paper", "id")]
PaperFile = Annotated[str, at("paper", "file")]
PaperTitle = Annotated[str, at("paper", "title")]


class With:
    """An object with additional or other attributes, to build a model from."""

    def __init__(self, source: object, **given: Any) -> None:
        self.__dict__.update(given, _source=source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


class Strict(BaseModel):
    """An object with exactly these fields, built from JSON or from the attributes of a dataclass.

    Defaults are for stored replies of older versions: written JSON always has every field.
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
    """A notice about a paper after its publication, such as its retraction."""

    kind: NoticeKind
    date: Annotated[str, at("dated")]
    """ISO date, "2021-03-04", "2021-03" or "2021"; empty if unknown."""
    link: str
    """The DOI of the notice, or an arXiv id with its version; empty if unknown."""
    source: SourceName
    """The service with the notice; meaningless for `older-version` and `same-paper`, which come from the index."""
    mark: str
    """The word in citations of the paper: "RETRACTED"; empty for a correction, which only the sources show."""
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
    date: Annotated[str, at("metadata", "printed_date")] = ""
    """ISO date of its publication as far as it is known: "2021-03-04", "2021-03", "2021"; "" if unknown."""
    categories: Annotated[list[str], at("metadata", "categories", "value")] = []
    """Categories of arXiv, the main one first: "cs.CL"."""
    tags: Annotated[list[str], at("metadata", "tags", "value")]
    collections: Annotated[list[str], at("metadata", "collections", "value")]
    """Their paths: "Systems/Consensus"."""
    unsure: Annotated[list[str], BeforeValidator(_unsure), at("metadata")]
    """Fields, of title, authors, year, venue and doi, that are not sure."""
    pages: Annotated[Count, at("page_count")]
    chunks: Count
    added: str
    """ISO time in UTC."""
    problems: list[str]
    """Problems found when the file was read."""
    notice: Annotated[NoticeJson | None, at("flag")] = None
    """Its retraction, correction or the like; null if none is known."""


class PaperMatchJson(Strict):
    """Why a query found a paper."""

    label: str
    """Its name in citations: "Ongaro & Ousterhout 2014", or its key if that is not sure."""
    score: Score
    """The score that ranks the papers."""
    bm25: Annotated[float | None, at("lexical")]
    """BM25 of its title, abstract, headings, authors and venue; null without a word of the query."""
    dense: float | None
    """Cosine of these texts to the query; null if the paper has no vector yet."""
    words: list[str]
    """The words of the query in these texts."""
    pages: PageRange | None
    """The pages of its best passage; null without one."""
    section: str
    """The section of its best passage; "" if unknown."""


class ListedPaperJson(PaperJson):
    match: PaperMatchJson | None = None
    """Why the query found it; null without a query, or if the paper was not found by one."""
    read: str = ""
    """When it was last open in the reader, as ISO time in UTC; empty if it never was."""
    read_page: Count = 0
    """The physical page that was open then; 0 if it never was."""


class PapersFoundJson(Strict):
    """The result of `query.py --papers --json`."""

    query: str
    papers: list[ListedPaperJson]
    """Best first."""
    notice: str
    """What is missing in the ranking; "" if nothing."""


class PersonJson(Strict):
    """A name in two parts. An organisation, or a person with one name, has only a family name."""

    family: str
    given: str = ""


class FieldJson(Strict):
    origin: Origin
    """Its origin; "person" for an edit, "" if unknown."""
    sure: bool
    """Whether it can be cited unchecked."""


class TextFieldJson(FieldJson):
    value: str


class YearFieldJson(FieldJson):
    value: int | None


class AuthorsFieldJson(FieldJson):
    value: list[PersonJson]


class ListFieldJson(FieldJson):
    value: list[str]


class PairsFieldJson(FieldJson):
    value: list[tuple[str, str]]


class FieldsJson(Strict):
    """Every field of a paper, each from the most trusted source that has it."""

    title: TextFieldJson
    authors: AuthorsFieldJson
    year: YearFieldJson
    venue: TextFieldJson
    doi: TextFieldJson
    arxiv: TextFieldJson
    date: TextFieldJson
    """An ISO date, of a day or a month."""
    categories: ListFieldJson
    """Categories of arXiv: "cs.CL"."""
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
    """A kind of the CSL type: "PhD thesis"."""
    citation_key: TextFieldJson
    """The key that a person, Zotero or a bibliography chose."""
    bibliography: TextFieldJson
    """The path of that bibliography."""
    tags: ListFieldJson
    collections: ListFieldJson
    further: PairsFieldJson
    """What else a bibliography or Zotero has, by names of BibTeX: ["series", "LNCS"]."""
    zotero: TextFieldJson
    """Its attachment in Zotero."""


class SectionJson(Strict):
    """A section of a paper. Its subsections follow it, with a higher level."""

    level: FromOne
    number: str
    title: str
    kind: Kind
    pages: PageRange


class PaperDetailsJson(PaperJson):
    """A paper with every field and its sections."""

    files: list[str]
    """The names of all its files."""
    citation_key: str
    """Its key in exports, which it keeps: the chosen one, else one that Folio made."""
    fields: Annotated[FieldsJson, at("metadata")]
    sections: list[SectionJson]
    notices: list[NoticeJson]
    """All notices after its publication, also on newer versions; the gravest first."""


def paper_json(paper: Paper, added: str) -> PaperJson:
    """added: ISO time in UTC."""
    return PaperJson.model_validate(With(paper, added=added))


def listed_paper_json(paper: Paper, added: str, reading: Reading | None = None) -> ListedPaperJson:
    """Like paper_json, for a list that a query may have ranked. reading: None if it was never open in the reader."""
    return ListedPaperJson.model_validate(With(paper, added=added, **_read(paper, reading)))


def _read(paper: Paper, reading: Reading | None) -> dict[str, Any]:
    if reading is None:
        return {"read": "", "read_page": 0}
    return {"read": reading.opened, "read_page": min(reading.page, paper.page_count)}  # a new version may be shorter


def found_paper_json(hit: PaperHit, added: str, reading: Reading | None = None) -> ListedPaperJson:
    """A paper that a query found. added: ISO time in UTC. reading: see listed_paper_json."""
    passage = hit.passage
    match = With(
        hit,
        label=hit.paper.label or hit.paper.cited_as,
        pages=passage.pages if passage else None,
        section=passage.section if passage else "",
    )
    return ListedPaperJson.model_validate(With(hit.paper, added=added, match=match, **_read(hit.paper, reading)))


def papers_notice(without_vector: int) -> str:
    """A sentence about papers without a vector of their current metadata; "" if there are none."""
    if not without_vector:
        return ""
    which = "1 paper has" if without_vector == 1 else f"{without_vector:,} papers have"
    return (
        f"{which} no vector of the title, abstract and headings known now. `{command('ingest')}` completes the ranking."
    )


def paper_details_json(paper: Paper, added: str, files: Sequence[str], key: str) -> PaperDetailsJson:
    """added: ISO time in UTC. files: the names of its files. key: its citation key."""
    return PaperDetailsJson.model_validate(details(paper, added, files, key))


def details(paper: Paper, added: str, files: Sequence[str], key: str, **more: Any) -> With:
    """The object to build a PaperDetailsJson from. more: other attributes."""
    pages_of = paper.pages.pages_of
    sections = [With(section, pages=pages_of(section.start, section.end)) for section in paper.sections.headed]
    return With(paper, added=added, files=files, citation_key=key, sections=sections, **more)
