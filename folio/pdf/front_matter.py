"""What a paper says about itself: title, authors, year, identifiers, venue and abstract, each with its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from folio.types import ParsedPdf

ValueT = TypeVar("ValueT")

# Where a field was read: on the first pages, in the PDF's metadata (Info and XMP), in an identifier (an arXiv id has
# the year), in the dates of the cited works and of the file, in the file's name. "" is a field that was not found.
Origin = Literal["", "page", "pdf metadata", "identifier", "file date", "cited works", "file name"]


@dataclass(frozen=True, slots=True)
class Field(Generic[ValueT]):
    """A value, where it was read, and whether it can be cited without a person looking at it."""

    value: ValueT
    origin: Origin = ""
    sure: bool = False


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name in two parts. An organisation, or a person with one name, has only a family name."""

    family: str
    given: str = ""

    def __str__(self) -> str:
        return f"{self.given} {self.family}".strip()


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields of a paper. A field that was not found is "", () or None, and is not sure."""

    title: Field[str] = Field("")
    authors: Field[tuple[PersonName, ...]] = Field(())
    year: Field[int | None] = Field(None)
    doi: Field[str] = Field("")  # without a resolver's address: "10.21105/jose.00013"
    arxiv: Field[str] = Field("")  # with its version if known: "2301.01234v2"
    venue: Field[str] = Field("")  # the journal or the conference, as it is printed
    abstract: Field[str] = Field("")

    @property
    def printed_year(self) -> int | None:
        """The year, unless it is only guessed from the works that the paper cites."""
        return None if self.year.origin == "cited works" else self.year.value


@dataclass(frozen=True, slots=True)
class ParsedPaper(ParsedPdf):
    """A parsed PDF with its front matter; title, authors, year and arxiv are the values of the same fields."""

    front: FrontMatter = FrontMatter()
