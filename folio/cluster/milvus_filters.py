"""Filters of Milvus: which rows a search or a read may find. Pure.

Texts in them are keys, or words of letters and digits: nothing in them needs an escape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from folio.store.paper_store import Years
from folio.types import PassageFields

# Of a year that is known
_LEAST, _MOST = 1, 10_000


def all_of(conditions: Iterable[str]) -> str:
    """Rows that meet each of these conditions; "" is none."""
    return " and ".join(condition for condition in conditions if condition)


def one_of(field: str, values: Iterable[str | int]) -> str:
    """The field has one of these values."""
    return f"{field} in [{', '.join(json.dumps(value) for value in values)}]"


def any_of(field: str, values: Iterable[str]) -> str:
    """The field, of kind "keys", has one of these values among its own."""
    return f"array_contains_any({field}, {json.dumps(list(values))})"


def any_year(ranges: Iterable[Years]) -> str:
    """The year lies in one of these ranges; "" for none."""
    found = [f"(year >= {first or _LEAST} and year <= {last or _MOST})" for first, last in ranges]
    return f"({' or '.join(found)})" if found else ""


def passages_with(fields: PassageFields) -> str:
    """Chunks that may be found; "" for any."""
    kinds = " or ".join(f'kinds like "%|{kind}|%"' for kind in sorted(fields.kinds))
    apart = f"not ({one_of('apart', sorted(fields.apart))})" if fields.apart else ""
    return all_of([any_year(fields.years), f"({kinds})" if kinds else "", apart])


def is_key(value: str) -> bool:
    """Whether a text can stand in a filter, and be the name of a file."""
    return re.fullmatch(r"\w[\w.-]{0,149}", value, re.ASCII) is not None
