"""What the services' answers are made of: texts, names, addresses and numbers, checked and bounded. Pure."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from folio.text import one_line

MOST = 5000  # authors or references of a work
_LONGEST_TEXT, _LONGEST_LINE = 50_000, 2_000  # characters
_LONGEST_ADDRESS = 2_000
_EARLIEST, _LATEST = 1400, 2100  # years
_TAG = re.compile(r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,500})?/?>")
_CLOSED_BLOCK = re.compile(r"</(?:jats:)?(?:p|title|sec)>", re.I)
_ORCID = re.compile(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]")

AnswerT = TypeVar("AnswerT", bound="Part")


class Part(BaseModel):
    """A part of an answer. What it does not name is ignored; a field that cannot be read is as if it were missing."""

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
    """A work. One of which neither a title nor an identifier can be read is none."""

    @model_validator(mode="after")
    def _names_a_work(self) -> Self:
        if not self.names_a_work:
            raise ValueError("it has neither a title nor an identifier")
        return self

    @property
    def names_a_work(self) -> bool:
        raise NotImplementedError


def clean(text: str, longest: int = _LONGEST_LINE) -> str:
    """A text on one line, without markup and characters that cannot be stored, cut if it is too long."""
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


def _year(value: Any) -> Any:
    return value if type(value) is int and _EARLIEST <= value <= _LATEST else None


def _count(value: Any) -> Any:
    return value if type(value) is int and 0 <= value < 10**9 else None


def _address(value: Any) -> Any:
    """An address as it is, if it is one of the web."""
    if not isinstance(value, str) or len(value) > _LONGEST_ADDRESS or not re.match(r"https?://[^\s]+\Z", value):
        return ""
    if not value.isprintable():  # halves of characters, which cannot be stored, and what reorders a line
        return ""
    return value


def _bounded(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """The items that can be read."""
    items = value[:MOST] if isinstance(value, list) else [] if value is None else [value]
    try:
        return validate(items)
    except ValidationError:
        found: list[Any] = []
        for item in items:
            with suppress(ValidationError):
                found += validate([item])
        return found


Line = Annotated[str, BeforeValidator(_line)]
LongText = Annotated[str, BeforeValidator(_long)]
Number = Annotated[str, BeforeValidator(_number_as_text)]  # of a volume: "12", "12a"
Year = Annotated[int | None, BeforeValidator(_year)]
Count = Annotated[int | None, BeforeValidator(_count)]
Address = Annotated[str, BeforeValidator(_address)]
ItemT = TypeVar("ItemT")
Bounded = Annotated[list[ItemT], WrapValidator(_bounded), Field(default_factory=list)]


def parse_json(text: str, name: str) -> Any:
    """The JSON value of an answer. Raises SourceError. name: of the service."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(name) from error


def parse_one(model: type[AnswerT], value: Any, name: str) -> AnswerT:
    """A part of an answer, checked. Raises SourceError."""
    try:
        return model.model_validate(value)
    except (ValidationError, RecursionError) as error:
        raise unreadable(name) from error


def parse_all(model: type[AnswerT], values: Any, name: str, most: int) -> list[AnswerT]:
    """The parts of a list that can be read, at most so many. Raises SourceError if it is no list, or none can be."""
    if not isinstance(values, list):
        raise unreadable(name)
    found = list(islice(_readable(model, values), most))
    if values and not found:
        raise unreadable(name)
    return found


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
    found = _ORCID.search(text)
    return found.group() if found else ""


def page_range(first: str, last: str) -> str:
    return f"{first}–{last}" if first and last and first != last else first or last


# What a search for works asks of a service. Pure.

Sort = Literal["relevance", "date", "citations"]
SearchSource = Literal["openalex", "semanticscholar", "arxiv"]


@dataclass(frozen=True, slots=True)
class SearchQuery:
    words: str
    since: int | None = None  # the first year
    is_open: bool = False  # only what somebody may read without paying
    min_cited: int = 0  # works that cite it, at least
    most: int = 20
    sort: Sort = "relevance"
