"""Counts the words of the passages of a library in Milvus (term_statistics.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.term_statistics import TermStatistics


def counted(library: MilvusLibrary, before: TermStatistics) -> TermStatistics:
    """The statistics of the versions that count now. Raises StoreDamaged if passages are missing."""
    rows = {str(row["version"]): int(row["passages"]) for row in library.paper_rows()}
    gone = before.counted.keys() - rows.keys()
    left = before.changed([], _bodies(library, gone))
    if left.counted.keys() - rows.keys():  # somebody has deleted their rows already: begin again
        left = TermStatistics()
    after = left.changed(_bodies(library, rows.keys() - left.counted.keys()), [])
    if after.counted != {version: passages for version, passages in rows.items() if passages}:
        raise library.damaged("passages are missing")
    return after


def _bodies(library: MilvusLibrary, versions: Iterable[str]) -> Iterator[tuple[str, str]]:
    for row in library.passages_of(versions, ("version", "body"), strong=True):
        yield str(row["version"]), str(row["body"])
