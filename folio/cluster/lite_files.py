"""What a killed process may leave in the folder of Milvus Lite that the next one could not use."""

from __future__ import annotations

import shutil
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
