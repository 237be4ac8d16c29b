"""A paper's metadata: title, authors, year, venue, identifiers; each field with its origin. Pure.

Several sources may describe one paper: its PDF, services on the internet, a bibliography, Zotero, a person. Each is a
layer. The shown metadata takes every field from the first source of SOURCES that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, get_args

from folio.papers.identifiers import bare_arxiv, version_number, without_version
from folio.papers.sections import SectionMap
from folio.text import one_line, plain_words

if TYPE_CHECKING:
    from pydantic import TypeAdapter


ValueT = TypeVar("ValueT")

# The sources of metadata, the most trusted first
Source = Literal["person", "zotero", "bibliography", "online", "pdf"]
SOURCES: tuple[Source, ...] = get_args(Source)
# Where a field was read. In a PDF: on the first pages, in its metadata (Info and XMP), in an identifier (an arXiv id
# has the year), in the dates of the file and of the cited works, in the file name. Online: from a service. "": nowhere.
Origin = Literal[
    "", "page", "pdf metadata", "identifier", "file date", "cited works", "file name",
    "arxiv", "openalex", "crossref", "semanticscholar", "europepmc", "bibliography", "zotero", "person",
]  # fmt: skip
ORIGIN_WORDS: dict[Origin, str] = {
    "": "not known",
    "page": "from its first pages",
    "pdf metadata": "from the file's metadata",
    "identifier": "from its identifier",
    "file date": "from the file's date",
    "cited works": "guessed from the works that it cites, so shown nowhere else",
    "file name": "from the file's name",
    "arxiv": "from arXiv",
    "openalex": "from OpenAlex",
    "crossref": "from Crossref",
    "semanticscholar": "from Semantic Scholar",
    "europepmc": "from Europe PMC",
    "bibliography": "from your bibliography",
    "zotero": "from Zotero",
    "person": "edited",
}
# The sources that know a paper's arXiv version, the best first
_KNOW_VERSION: tuple[Source, ...] = ("person", "pdf", "online", "zotero", "bibliography")
# Genres with an entry type of their own in BibTeX
PHD, MASTER, TECHNICAL = "PhD thesis", "Master's thesis", "Technical report"


@dataclass(frozen=True, slots=True)
class Field(Generic[ValueT]):
    """A value, its origin, and whether it can be cited unchecked. A person emptied an empty value with an origin."""

    value: ValueT
    origin: Origin = ""
    sure: bool = False


class PersonName(NamedTuple):
    """A name in two parts. An organisation, or a person with one name, has only a family name."""

    family: str
    given: str = ""

    def __str__(self) -> str:
        return f"{self.given} {self.family}".strip()


@dataclass(frozen=True, slots=True)
class Metadata:
    """The fields of a paper. An unknown field is "", () or None, and not sure."""

    title: Field[str] = Field("")
    authors: Field[tuple[PersonName, ...]] = Field(())
    year: Field[int | None] = Field(None)
    venue: Field[str] = Field("")  # the journal, the conference, the university
    doi: Field[str] = Field("")  # without a resolver's address: "10.21105/jose.00013"
    arxiv: Field[str] = Field("")  # with its version if known: "2301.01234v2"
    date: Field[str] = Field("")  # of its publication, at least the month: "2023-01-04", "2023-01"
    categories: Field[tuple[str, ...]] = Field(())  # of arXiv, the main one first: ("cs.CL", "cs.LG")
    abstract: Field[str] = Field("")
    kind: Field[str] = Field("")  # a CSL type: "article-journal", "paper-conference", "thesis"
    genre: Field[str] = Field("")  # a kind of its `kind`: "PhD thesis", "Technical report"
    volume: Field[str] = Field("")
    issue: Field[str] = Field("")
    pages: Field[str] = Field("")  # in its venue: "137–150"
    publisher: Field[str] = Field("")
    url: Field[str] = Field("")
    citation_key: Field[str] = Field("")  # its key in a person's bibliography: "ongaro2014"
    bibliography: Field[str] = Field("")  # the absolute path of that bibliography
    tags: Field[tuple[str, ...]] = Field(())
    collections: Field[tuple[str, ...]] = Field(())  # with the collections above each: "Systems/Consensus"
    # What else a bibliography or Zotero has, as text, for exports (bibliography/further.py): ("series", "LNCS")
    further: Field[tuple[tuple[str, str], ...]] = Field(())
    zotero: Field[str] = Field("")  # its attachment in Zotero: "library/items/KEY", "groups/12/items/KEY"

    @property
    def printed_year(self) -> int | None:
        """The year, unless it is only guessed from the works that the paper cites."""
        return None if self.year.origin == "cited works" else self.year.value

    @property
    def printed_date(self) -> str:
        """The date; without one, or with one of another year than a person or a journal gave, the year; "" for none."""
        year = str(self.printed_year or "")
        return self.date.value if self.date.value.startswith(year) else year

    def known(self) -> dict[str, Field[Any]]:
        """The fields that were found, by name."""
        return {name: field for name in FIELDS if (field := getattr(self, name)).origin}


_DATE = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?", re.ASCII)


def is_date(text: str) -> bool:
    """Whether a text is a day or a month of the calendar: "2023-01-04", "2023-01"."""
    match = _DATE.fullmatch(text)
    try:
        return bool(match and date(int(match[1]), int(match[2]), int(match[3] or 1)))
    except ValueError:
        return False


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Metadata))
NO_METADATA = Metadata()
# Stands for the authors that a list does not name
AND_OTHERS = PersonName("et al.")


def merged(layers: Mapping[Source, Metadata]) -> Metadata:
    """Every field from the most trusted source that has it.

    The arXiv version comes from a person or else the file: services and bibliographies may mean another version.
    """
    known: dict[str, Field[Any]] = {}
    for source in reversed(SOURCES):
        known |= layers.get(source, NO_METADATA).known()
    arxiv = known.get("arxiv", NO_METADATA.arxiv)
    named = (layers.get(source, NO_METADATA).arxiv.value for source in _KNOW_VERSION)
    same = (value for value in named if bare_arxiv(value) == bare_arxiv(arxiv.value))
    version = next((value for value in same if version_number(value) is not None), arxiv.value)
    return Metadata(**known | {"arxiv": replace(arxiv, value=version)})


def with_own_version(layers: Mapping[Source, Metadata], online: Metadata) -> Metadata:
    """A service's metadata of a paper, with the arXiv version of the paper's file: a service names the latest.

    layers: the known metadata of the paper.
    """
    known, named = merged(layers).arxiv.value, online.arxiv.value
    value = known if bare_arxiv(known) == bare_arxiv(named) else without_version(named)
    return replace(online, arxiv=replace(online.arxiv, value=value))


def simple_metadata(
    title: str = "", authors: Sequence[str] = (), year: int | None = None, arxiv: str = "", origin: Origin = "page"
) -> Metadata:
    """Metadata with these values, not sure. The last word of an author is the family name."""
    names = [author.rpartition(" ") for author in authors]
    people = tuple(PersonName(family, given) for given, _, family in names)
    values: dict[str, Any] = {"title": title, "authors": people, "year": year, "arxiv": arxiv}
    return Metadata(**{name: Field(value, origin) for name, value in values.items() if value})


def to_json(metadata: Metadata) -> dict[str, dict[str, Any]]:
    """The known fields as JSON values: {"year": {"value": 2014, "origin": "page", "sure": true}}."""
    unknown = set(FIELDS) - metadata.known().keys()
    written: dict[str, dict[str, Any]] = stored_form(Metadata).dump_python(metadata, mode="json", exclude=unknown)
    return written


def from_json(written: Mapping[str, Any]) -> Metadata:
    """What `to_json` wrote. Raises ValueError for anything else."""
    metadata: Metadata = read_stored(stored_form(Metadata), written, "the metadata of a paper")
    if not all(len(field) == 3 and field["origin"] for field in written.values()):
        raise ValueError("a field of a paper's metadata is not whole")
    return metadata


@cache
def stored_form(kind: Any) -> TypeAdapter[Any]:
    """The stored JSON form of a dataclass's values."""
    from pydantic import TypeAdapter  # slow, and workers that read PDFs start often and do not need it

    return TypeAdapter(kind)


def read_stored(form: TypeAdapter[ValueT], written: object, what: str) -> ValueT:
    """A value in its stored form, of exactly the declared types. Raises ValueError for anything else.

    form: from stored_form. written: from json.loads. what: names the value in the error.
    """
    text = json.dumps(written, ensure_ascii=False).encode(errors="replace")  # a service may send half a surrogate pair
    try:
        return form.validate_json(text, strict=True, extra="forbid")
    except ValueError as error:
        raise ValueError(f"{what} cannot be read") from error


# A heading with only these words does not name a subject
_GENERIC = frozenset(
    "abstract acknowledgement acknowledgements acknowledgment acknowledgments aims and appendices appendix article"
    " author authors availability background bibliography code competing concluding conclusion conclusions conflict"
    " conflicts content contents contribution contributions contributor contributors data declaration definitions"
    " detail details directions discussion ethics evaluation example examples experiment experimental experiments"
    " figures final findings for funding further future general goals implications implementation in information"
    " interest interests introduction keywords limitations literature main materials method methodology methods"
    " model motivation need notation notes objectives of other our outline overview paper preliminaries problem"
    " procedure references related remarks research result results review section setup statement study summary"
    " supplementary supporting table tables the this to usage use work works".split()
)
# Bounds against hostile files
_MOST_HEADINGS, _LONGEST_HEADING, _LONGEST = 200, 200, 20_000


def paper_text(metadata: Metadata, sections: SectionMap) -> str:
    """The text for searching a whole paper: title, abstract, headings that name a subject, family names, venue.

    A line each; "" if none is known. The most important come first: a model may not read a long text to its end.
    """
    families = (person.family for person in metadata.authors.value if person != AND_OTHERS)
    lines = [metadata.title.value, metadata.abstract.value, "; ".join(headings(sections))]
    lines += [", ".join(families), metadata.venue.value]
    text = "\n".join(one_line(line) for line in lines if line.strip())[:_LONGEST]
    return text.encode(errors="replace").decode()  # a file may have half a character, which cannot be hashed


def headings(sections: SectionMap) -> tuple[str, ...]:
    """The headings that name a subject, in order, each once; not "Introduction" or "Materials and methods"."""
    titles = dict.fromkeys(section.title[:_LONGEST_HEADING] for section in sections.headed)
    return tuple(title for title in titles if _names_subject(title))[:_MOST_HEADINGS]


def _names_subject(title: str) -> bool:
    return any(word not in _GENERIC and not word.isdigit() for word in plain_words(title))
