"""What people and services say of papers, in the table `metadata`: one row per paper and source.

It stays when a paper goes, and comes back with it. When a file is replaced by a newer version of the same paper, the
new one inherits it. What the PDF itself says is in the paper's own row.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from folio.identifiers import without_version
from folio.paper_metadata import Metadata, Source, to_json
from folio.store import paper_vectors, rows, works
from folio.store.database import Database
from folio.text import tokenize

# Words in a row that two texts are compared by, and the share of them that versions of one paper have in common
_SHINGLE, _SAME = 5, 0.5


def read(database: Database, papers: Iterable[str] | None = None) -> dict[str, dict[Source, Metadata]]:
    """Paper -> what each source but its PDF says of it; of these papers, or of all. Raises StoreDamaged."""
    sql, values = f"SELECT {rows.METADATA_COLUMNS} FROM metadata", {}
    if papers is not None:
        sql, values = f"{sql} WHERE paper IN (SELECT value FROM json_each(:papers))", {"papers": list(papers)}
    found: dict[str, dict[Source, Metadata]] = defaultdict(dict)
    for paper, source, metadata in database.read(rows.metadata_layer, sql, **values):
        found[paper][source] = metadata
    return dict(found)


def write(database: Database, paper: str, source: Source, metadata: Metadata) -> None:
    """Replace what a source says of a paper; delete it if that is nothing."""
    database.execute("DELETE FROM metadata WHERE paper = :paper AND source = :source", paper=paper, source=source)
    paper_vectors.count_change(database)
    if metadata.known():
        row = {"paper": paper, "source": source, "fields": json.dumps(to_json(metadata), ensure_ascii=False)}
        updated = datetime.now(UTC).isoformat(timespec="seconds")
        database.insert("metadata", [{**row, "updated": updated, **rows.search_keys(metadata)}])


@dataclass(frozen=True, slots=True)
class Version:
    """A paper as one PDF has it."""

    id: str
    metadata: Metadata  # what is known of it
    text: str


def inherit(database: Database, old: Version, new: Version) -> None:
    """Give a paper what people wrote or imported about another, and its work, if both are versions of one paper.

    What they said of the new one already is kept.
    """
    if not same_paper(old, new):
        return
    works.inherit(database, old.id, new.id)
    said = read(database, [old.id, new.id])
    for source, metadata in said.get(old.id, {}).items():
        if source not in said.get(new.id, {}):
            # The version is the old file's.
            arxiv = replace(metadata.arxiv, value=without_version(metadata.arxiv.value))
            write(database, new.id, source, replace(metadata, arxiv=arxiv))


def is_said_of(database: Database, papers: Iterable[str]) -> set[str]:
    """Those of these papers of which people or services say something, or whose work is known."""
    among = "paper IN (SELECT value FROM json_each(:papers))"
    sql = f"SELECT paper FROM metadata WHERE {among} UNION SELECT paper FROM paper_works WHERE {among}"
    return set(database.read(rows.string, sql, papers=list(papers)))


def same_paper(old: Version, new: Version) -> bool:
    """Whether two PDFs are versions of one paper: by identifier, by title, or by what their texts have in common."""
    pairs = [
        [without_version(getattr(each.metadata, field).value.casefold()) for each in (old, new)]
        for field in ("arxiv", "doi")
    ]
    agree = [ours == theirs for ours, theirs in pairs if ours and theirs]
    if agree:
        return any(agree)
    titles = [tokenize(each.metadata.title.value) for each in (old, new)]
    if len(titles[0]) > 2 and titles[0] == titles[1]:
        return True
    before, after = _shingles(old.text), _shingles(new.text)
    return bool(before and after) and len(before & after) >= _SAME * min(len(before), len(after))


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = tokenize(text)
    return set(zip(*(words[place:] for place in range(_SHINGLE)), strict=False))
