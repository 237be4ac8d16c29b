"""What the models of JSON are made of: how they are built from our dataclasses, numbers, ids, notices."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AliasPath, BaseModel, ConfigDict, Field

from folio.work import SourceName
from folio.work_notices import NoticeKind


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
