"""What the models of JSON are made of: numbers, ids, and what became of a paper."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from folio.work import SourceName
from folio.work_notices import NoticeKind, WorkNotice

Count = Annotated[int, Field(ge=0)]
FromOne = Annotated[int, Field(ge=1)]
SHA256 = "^[0-9a-f]{64}$"
Sha256 = Annotated[str, Field(pattern=SHA256, description="SHA-256 of the paper's file, in hex.")]
PageRange = Annotated[tuple[FromOne, FromOne], Field(description="First and last page, physical, from 1.")]


class Strict(BaseModel):
    """An object with these fields and no other.

    A default is for a reply that an older Folio kept; what is written always has the field.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
    )


class NoticeJson(Strict):
    """What became of a paper after it came out, such as that it was retracted."""

    kind: NoticeKind
    date: str
    """ISO date, "2021-03-04", "2021-03" or "2021"; empty if it is not known."""
    link: str
    """The DOI of the notice, or an arXiv id with its version; empty if it is not known."""
    source: SourceName
    """The service that says so; without meaning for `older-version` and `same-paper`, which the index shows."""
    mark: str
    """The word in citations of the paper: "RETRACTED"; empty for a correction, which is told with the sources."""
    text: str
    """In words: "RETRACTED 2021-03-04 (doi:10.1234/notice)"."""


def notice_json(notice: WorkNotice | None) -> NoticeJson | None:
    if notice is None:
        return None
    return NoticeJson(
        kind=notice.kind,
        date=notice.dated,
        link=notice.link,
        source=notice.source,
        mark=notice.mark,
        text=notice.text,
    )
