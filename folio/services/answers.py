"""Checked, bounded fields for parsing the replies of all services, and what a search asks of them. Pure."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from folio.errors import SourceError
from folio.papers.metadata import is_date
from folio.text import one_line

MOST = 5000  # authors or references read of a work
_LONGEST_TEXT, _LONGEST_LINE = 50_000, 2_000  # characters
_LONGEST_ADDRESS = 2_000
_EARLIEST, _LATEST = 1400, 2100  # years
_TAG = re.compile(r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,500})?/?>")
_CLOSED_BLOCK = re.compile(r"</(?:jats:)?(?:p|title|sec|h[1-6])>", re.I)
_DAY = re.compile(r"\d{4}-\d{2}(?:-\d{2})?(?!\d)", re.ASCII)
_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")

AnswerT = TypeVar("AnswerT", bound="Part")

Sort = Literal["relevance", "date", "citations"]
SearchSource = Literal["openalex", "semanticscholar", "arxiv", "europepmc"]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A search for works."""

    words: str
    since: date | None = None  # the first day
    is_open: bool = False  # only works that can be read without paying
    min_cited: int = 0  # minimum number of citing works
    most: int = 20
    sort: Sort = "relevance"
    until: date | None = None  # the last day
    categories: tuple[str, ...] = ()  # of arXiv, one of which must fit: "cs.CL", or an archive: "cs"


def day_in(text: str) -> str:
    """The day or month at the start of a timestamp, "2021-04-20T16:07:14Z" -> "2021-04-20"; "" if it cannot be read."""
    match = _DAY.match(text)
    return match.group() if match and is_date(match.group()) else ""


class Part(BaseModel):
    """A part of a reply. Unknown fields are ignored; a malformed field counts as missing."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _field_alone(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return validate(value)
        except ValidationError:
            field = cls.model_fields[str(info.field_name)]
            return "" if field.is_required() else field.get_default(call_default_factory=True)


class WorkPart(Part):
    """A work; validation fails if it has neither a readable title nor an identifier."""

    @model_validator(mode="after")
    def _names_a_work(self) -> Self:
        if not self.names_a_work:
            raise ValueError("it has neither a title nor an identifier")
        return self

    @property
    def names_a_work(self) -> bool:
        raise NotImplementedError


def clean(text: str, longest: int = _LONGEST_LINE) -> str:
    """The text on one line, without markup and without characters that cannot be stored, cut to `longest`."""
    bare = _TAG.sub("", html.unescape(_CLOSED_BLOCK.sub(" ", html.unescape(text[: 4 * longest]))))
    whole = bare.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    shown = "".join(" " if unicodedata.category(char) == "Cc" else char for char in unicodedata.normalize("NFC", whole))
    return one_line(shown)[:longest].rstrip()


def _line(value: Any) -> Any:
    return "" if value is None else clean(value) if isinstance(value, str) else value


def _long(value: Any) -> Any:
    return "" if value is None else clean(value, _LONGEST_TEXT) if isinstance(value, str) else value


def _number_as_text(value: Any) -> Any:
    return str(value) if type(value) is int else _line(value)


def valid_year(value: Any) -> int | None:
    """The value if it is a plausible year."""
    return value if type(value) is int and _EARLIEST <= value <= _LATEST else None


def _count(value: Any) -> Any:
    return value if type(value) is int and 0 <= value < 10**9 else None


def _address(value: Any) -> Any:
    """A web address, unchanged; "" for anything else."""
    if not isinstance(value, str) or len(value) > _LONGEST_ADDRESS or not re.match(r"https?://[^\s]+\Z", value):
        return ""
    # Lone surrogates cannot be stored; direction marks reorder a line.
    return value if value.isprintable() else ""


def _bounded(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """The items that can be read."""
    items = value[:MOST] if isinstance(value, list) else [] if value is None else [value]
    try:
        return validate(items)
    except ValidationError:
        readable: list[Any] = []
        for item in items:
            with suppress(ValidationError):
                readable += validate([item])
        return readable


Line = Annotated[str, BeforeValidator(_line)]
LongText = Annotated[str, BeforeValidator(_long)]
Number = Annotated[str, BeforeValidator(_number_as_text)]  # a volume or an issue: "12", "12a"
Year = Annotated[int | None, BeforeValidator(valid_year)]
Count = Annotated[int | None, BeforeValidator(_count)]
Address = Annotated[str, BeforeValidator(_address)]
ItemT = TypeVar("ItemT")
Bounded = Annotated[list[ItemT], WrapValidator(_bounded), Field(default_factory=list)]


def is_found(status: int, name: str) -> bool:
    """True for status 200, False for 404. Raises SourceError for any other. name: the service."""
    if status not in (200, 404):
        raise unreadable(name)
    return status == 200


def parse_json(text: str, name: str) -> Any:
    """The JSON value of a reply. Raises SourceError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(name) from error


def parse_one(model: type[AnswerT], value: Any, name: str) -> AnswerT:
    """A part of a reply, checked. Raises SourceError."""
    try:
        return model.model_validate(value)
    except (ValidationError, RecursionError) as error:
        raise unreadable(name) from error


def parse_all(model: type[AnswerT], values: Any, name: str, most: int) -> list[AnswerT]:
    """The first `most` readable parts of a list. Raises SourceError if it is not a list, or no part is readable."""
    if not isinstance(values, list):
        raise unreadable(name)
    parts = list(islice(_readable(model, values), most))
    if values and not parts:
        raise unreadable(name)
    return parts


def _readable(model: type[AnswerT], values: Sequence[Any]) -> Iterator[AnswerT]:
    for value in values:
        try:
            yield model.model_validate(value)
        except (ValidationError, RecursionError):
            continue


def unreadable(name: str) -> SourceError:
    return SourceError(f"{name} sent something that cannot be read.", "Try again later.")


def orcid(text: str) -> str:
    """The ORCID in an address; "" if there is none."""
    match = _ORCID.search(text)
    return match.group() if match else ""


def page_range(first: str, last: str) -> str:
    return f"{first}–{last}" if first and last and first != last else first or last
