"""What is wrong with a value that a client sent, in words, for every face that takes JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folio.schema.notes import NOTE, SHADE
from folio.schema.papers import SHA256
from folio.schema.settings import DAY, MODEL_NAME, TASK
from folio.schema.web import CONVERSATION, KEY, NOT_BLANK, UPLOAD, YEARS_PATTERN

# Pattern of a field -> what is wrong with a value that does not match it
PATTERNS = {
    NOT_BLANK: "must not be empty",
    YEARS_PATTERN: "is not a year or a range of years, such as 2014, 2010-2015, 2020- or -1999",
    KEY: "is not 16 letters, digits, - and _",
    CONVERSATION: "is not the id of a conversation",
    SHA256: "is not the id of a paper",
    UPLOAD: "is not the id of an upload",
    NOTE: "is not an id of 16 digits and letters a to f",
    TASK: "is not the id of a task",
    DAY: "is not a day, such as 2026-11-28",
    MODEL_NAME: "is not the name of a model",
    SHADE: "is not a colour, such as #ffd400",
}

# Kind of an error of pydantic -> the same; the limits are those of the error's context
_WRONG = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "string_too_short": "must not be empty",
    "string_too_long": "is longer than {max_length:,} characters",
    "too_short": "has too few entries",
    "too_long": "has more than {max_length:,} entries",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "literal_error": "is not {expected}",
    "enum": "is not {expected}",
}
_OF_ANOTHER_KIND = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "list": "a list",
}  # fmt: skip


def what_is_wrong(error: Mapping[str, Any]) -> str:
    """What is wrong with a field of a request, in words. error: one of pydantic's `ValidationError.errors()`."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(context["pattern"], "has the wrong form")
    if kind in _WRONG:
        return _WRONG[kind].format(**context)
    wanted = _OF_ANOTHER_KIND.get(kind.partition("_")[0])
    return f"is not {wanted}" if wanted else "cannot be read"
