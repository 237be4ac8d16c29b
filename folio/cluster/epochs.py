"""The epochs of a library in Milvus: each is written down before its collections are created, until they are dropped.

So whatever a process that was killed has left of one is found later. Only those that nothing names are dropped, and
only where an epoch begins or has become the current one: nobody else makes one then.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from folio.cluster.collections import Names
from folio.cluster.library_state import read_state
from folio.cluster.milvus_client import Milvus
from folio.cluster.record_files import RecordFiles
from folio.errors import FolioError

_KEY = "epoch."


def create_epoch(milvus: Milvus, prefix: str, made_with: dict[str, str]) -> str:
    """Create the collections of a new one, and those that outlive it; returns its name. made_with: its fingerprint."""
    dimension, is_dual = int(made_with["dimension"]), made_with.get("index") == "dual"
    names = Names(prefix, uuid4().hex[:12])
    for name, fields in names.shared().items():
        milvus.create(name, fields)
    milvus.write(names.store, [{"key": f"{_KEY}{names.epoch}", "value": names.epoch}])
    sizes = _sizes(milvus, prefix)
    for name, fields in names.of_epoch(dual=is_dual).items():
        milvus.create(name, fields, dimension, sizes.get(name.rpartition("_")[2], 0))
    return names.epoch


def _sizes(milvus: Milvus, prefix: str) -> dict[str, int]:
    """How many rows the collections with the vectors of chunks have now: a rebuild makes as many, more or less."""
    with suppress(FolioError, ValueError, LookupError, TypeError):  # of a library that cannot be read
        state = read_state(milvus, Names(prefix))
        names = Names(prefix, state.epoch)
        kept = {"chunks": names.chunks, **({"fine": names.fine} if state.is_dual else {})} if state.epoch else {}
        return {kind: milvus.count(name, "") for kind, name in kept.items()}
    return {}


def drop_epoch(milvus: Milvus, names: Names, records: RecordFiles, epoch: str) -> None:
    """Drop an epoch's collections, and the records of its papers."""
    for name in Names(names.prefix, epoch).of_epoch(dual=True).keys() & milvus.collections():
        milvus.drop(name)
    records.drop_epoch(epoch)
    milvus.delete(names.store, f'key == "{_KEY}{epoch}"')


def drop_unused(milvus: Milvus, names: Names, records: RecordFiles, used: set[str]) -> None:
    """Drop all epochs but these."""
    written = milvus.rows(names.store, f'key like "{_KEY}%"', ["key"], strong=True)
    for epoch in {str(row["key"]).removeprefix(_KEY) for row in written} - used:
        drop_epoch(milvus, names, records, epoch)
