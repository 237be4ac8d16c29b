"""What a question was asked of, in words: "12 papers in Consensus, 2000 to 2015". Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from folio.answer_types import Scope
from folio.shown_text import name_line

if TYPE_CHECKING:
    from folio.papers.model import Paper
    from folio.search.filters import PaperFilter, YearRange

_LONGEST = 80  # characters of a name


def scope_of(
    wanted: PaperFilter, chosen: Sequence[Paper] | None, *, total: int, projects: Sequence[str] = ()
) -> Scope:
    """The scope of a filter.

    chosen: the papers that fit; None for all. total: how many papers the library has. projects: their names, for those
    that the filter names by their ids.
    """
    is_named = bool(wanted.papers or wanted.ids) and not projects
    only = chosen[0] if chosen and is_named and len(chosen) == 1 else None
    return Scope(
        count=total if chosen is None else len(chosen),
        is_all=chosen is None and replace(wanted, sections=()) == type(wanted)(),
        project=_either(projects),
        title=name_line(only.title or only.file, _LONGEST) if only else "",
        is_chosen=is_named,
        rest=in_words(wanted),
    )


def in_words(wanted: PaperFilter) -> str:
    """The restrictions of a filter, but papers named one by one: "2000 to 2015, by Ongaro"."""
    return ", ".join(_parts(wanted))


def _parts(wanted: PaperFilter) -> Iterable[str]:
    """Each further restriction, in words."""
    if wanted.years:
        yield " or ".join(map(_years, wanted.years))
    for before, values in (
        ("by ", wanted.authors),
        ("published in ", wanted.venues),
        ("tagged ", wanted.tags),
        ("in the collection ", wanted.collections),
        ("in the category ", wanted.categories),
        ("cited by ", wanted.cited_by),
    ):
        if values:
            yield f"{before}{_either(values)}"
    if wanted.sections:
        yield f"only in sections called {_either(wanted.sections)}"


def _years(years: YearRange) -> str:
    if years.first == years.last:
        return str(years.first)
    if years.last is None:
        return f"from {years.first}"
    return f"until {years.last}" if years.first is None else f"{years.first} to {years.last}"


def _either(names: Iterable[str]) -> str:
    return " or ".join(name_line(name, _LONGEST) for name in names)
