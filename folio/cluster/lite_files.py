"""What a killed process may leave in the folder of Milvus Lite that the next one could not use."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path


def delete_indexes(folder: Path, collection: str) -> None:
    """Delete the files of a collection's indexes. Milvus Lite makes those that are missing when it loads it.

    It writes them in place, so one of them may be cut short, and then it can no longer load the collection.
    """
    for indexes in (folder / "collections" / collection).glob("partitions/*/indexes"):
        shutil.rmtree(indexes)


def delete_unfinished(folder: Path, collection: str) -> None:
    """Delete what there is of a collection that has no schema yet, or Milvus Lite could not create it."""
    unfinished = folder / "collections" / collection
    if unfinished.is_dir() and not (unfinished / "schema.json").exists():
        shutil.rmtree(unfinished)


def delete_written_logs(folder: Path) -> None:
    """Delete the logs of writes that are in the files of their collections, or Milvus Lite has these rows twice.

    It names the log that it goes on with when the rows of the one before are written, and deletes that one then. The
    caller uses the folder alone.
    """
    for manifest in (folder / "collections").glob("*/manifest.json"):
        with suppress(ValueError, LookupError, TypeError):  # Milvus Lite says what is wrong with it
            first = int(json.loads(manifest.read_bytes())["active_wal_number"])
            for log in (manifest.parent / "wal").glob("wal_*.arrow"):
                if int(log.stem.rpartition("_")[2]) < first:
                    log.unlink()
