"""The state of a library in Milvus: a few rows of the collection `store`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from time import time_ns
from typing import Any, Literal

from folio.cluster.collections import FORMAT, Names
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_errors import MissingCollection
from folio.cluster.paper_record import joined, parts
from folio.errors import StoreMismatch
from folio.store.rows import typed
from folio.text import VERSION

# The epoch that is read, one that a rebuild or a repair is filling, and one that a move is filling
Which = Literal["current", "building", "moving"]
Change = Literal["generation", "described", "edited"]
WORKS_STAMP = "works"


@dataclass(frozen=True, slots=True)
class LibraryState:
    """What a library is at a moment."""

    epoch: str = ""  # "" before the first paper
    fingerprint: dict[str, str] = field(default_factory=dict)
    generation: int = 0  # another one after each change of papers
    described: int = 0  # another one after each change of what is known about papers
    edited: int = 0  # when somebody last changed that: microseconds since 1970
    statistics: str = ""  # which term statistics are the current ones
    outdated: str = ""  # those before them: readers that know them still may read them
    tokenizer: int = VERSION  # that made the words of its passages
    works: str = ""  # the stamp of what services say of works, of whatever epoch; "" for nothing
    format: int = FORMAT  # of its rows

    @property
    def is_of_now(self) -> bool:
        """Whether this version of Folio would write the same rows."""
        return self.format == FORMAT and self.tokenizer == VERSION

    @property
    def is_dual(self) -> bool:
        """Whether it has fine passages (INDEX=dual)."""
        return self.fingerprint.get("index") == "dual"


def read_state(milvus: Milvus, names: Names, which: Which = "current") -> LibraryState:
    """The state as it is now. Raises StoreMismatch for a library of another version, and ValueError."""
    keys = [
        which,
        WORKS_STAMP,
        *(f"{which}.{each}" for each in ("generation", "described", "edited", "statistics", "outdated")),
    ]
    try:
        values = _values(milvus, names, keys)
    except MissingCollection:
        if names.store not in milvus.collections():
            return LibraryState()
        values = _values(milvus, names, keys)  # another computer has just created it
    if which not in values:
        return LibraryState(works=values.get(WORKS_STAMP, ""))
    current: dict[str, Any] = typed(dict, json.loads(values[which]), "the state of the library")
    written = current.get("format")
    if type(written) is not int or written > FORMAT:
        raise StoreMismatch(
            f"The collections {names.prefix}_* were written by another version of Folio"
            f" (format {str(written)[:20]}; this version writes {FORMAT}).",
            "Use that version, or set MILVUS_PREFIX to another name and run `python ingest.py`.",
        )
    made_with = typed(dict, current["fingerprint"], "the store's fingerprint")
    return LibraryState(
        typed(str, current["epoch"], "the epoch"),
        {str(key): typed(str, value, "the store's fingerprint") for key, value in made_with.items()},
        int(values.get(f"{which}.generation", 0)),
        int(values.get(f"{which}.described", 0)),
        int(values.get(f"{which}.edited", 0)),
        values.get(f"{which}.statistics", ""),
        values.get(f"{which}.outdated", ""),
        typed(int, current["tokenizer"], "the version of the tokenizer"),
        values.get(WORKS_STAMP, ""),
        written,
    )


def _values(milvus: Milvus, names: Names, keys: list[str]) -> dict[str, str]:
    found = milvus.rows_of(names.store, "key", keys, ["key", "value"], strong=True)
    return {str(row["key"]): str(row["value"]) for row in found}


def about(epoch: str, fingerprint: dict[str, str]) -> dict[str, Any]:
    """What says which epoch is the current one."""
    return {"format": FORMAT, "tokenizer": VERSION, "epoch": epoch, "fingerprint": fingerprint}


def write_state(milvus: Milvus, names: Names, state: LibraryState, which: Which) -> None:
    """Make an epoch the current one, or the one that is being filled; its generation is a new one."""
    now = _number()
    rows = {
        f"{which}.statistics": state.statistics,
        f"{which}.outdated": state.outdated,
        f"{which}.generation": now,
        f"{which}.described": now,
        which: json.dumps(about(state.epoch, state.fingerprint)),
    }
    milvus.write(names.store, [{"key": key, "value": value} for key, value in rows.items()])


def _number() -> str:
    """A number that was never used: the time in microseconds, which JavaScript can hold."""
    return str(time_ns() // 1000)


def forget_state(milvus: Milvus, names: Names, which: Which) -> None:
    """Delete a state; its first row tells that there is one."""
    milvus.delete(names.store, f'key == "{which}"')
    milvus.delete(names.store, f'key like "{which}.%"')


def note(milvus: Milvus, names: Names, which: Which, *changes: Change) -> None:
    """Note changes: each of these gets a number that it never had."""
    milvus.write(names.store, [{"key": f"{which}.{change}", "value": _number()} for change in changes])


def set_statistics(milvus: Milvus, names: Names, which: Which, key: str, before: LibraryState) -> None:
    """Name the term statistics that count, in place of those of a state."""
    rows = {f"{which}.statistics": key, f"{which}.outdated": before.statistics}
    milvus.write(names.store, [{"key": key, "value": value} for key, value in rows.items()])
    delete_text(milvus, names, before.outdated)


def write_text(milvus: Milvus, names: Names, key: str, text: str) -> None:
    """Keep a long text under a key."""
    rows = [{"key": f"{key}.{place}", "value": part} for place, part in enumerate(parts(text))]
    milvus.write(names.store, rows)


def read_text(milvus: Milvus, names: Names, key: str) -> str:
    """The text under a key; "" without one."""
    found = milvus.rows(names.store, f'key like "{key}.%"', ["key", "value"], strong=True)
    return joined([(int(str(row["key"]).rpartition(".")[2]), str(row["value"])) for row in found])


def delete_text(milvus: Milvus, names: Names, key: str) -> None:
    """Delete the text under a key."""
    if key:
        milvus.delete(names.store, f'key like "{key}.%"')


def short_hash(*values: str) -> str:
    """A key for values of any length: 32 hexadecimal digits."""
    return blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()
