"""Index files in the database: the computer that builds them publishes them, so that others need not build them.

They are published with the state of their library, and read only if all parts are there and match the digest. Their
content is then checked like that of local index files (store/indexes.py).
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path, PurePosixPath

from folio.errors import StoreError
from folio.store import bm25, vectors
from folio.store.database import Database
from folio.store.indexes import FINE, LEXICAL
from folio.store.rows import Stamp
from folio.system.files import discard, no_space, replace

# Bytes of a part
_PART = 2**23
# The versions of FAISS's and tantivy's file formats
KIND = f"faiss 1, tantivy {bm25.FORMAT}"
_FOLDERS = ("", FINE, LEXICAL)
# Index files are published again when the library has grown by this share; until then, others add what is missing.
_GROWN = 0.1


def publish(database: Database, folder: Path, stamp: Stamp, passages: int) -> bool:
    """Publish the index files of a folder, which are at this stamp, unless similar ones are published already.

    passages: their number in the library. Returns whether the files were published.
    """
    latest = "SELECT generation, parts FROM published WHERE kind = :kind AND epoch = :epoch AND part = 0"
    latest_row = database.query(f"{latest} ORDER BY generation DESC", kind=KIND, epoch=stamp.epoch)
    if latest_row and not _has_grown(database, latest_row[0][0], passages):
        return False
    content = _packed(folder)
    digest = hashlib.sha256(content).hexdigest()
    parts = [content[at : at + _PART] for at in range(0, len(content), _PART)]
    row = {"kind": KIND, "epoch": stamp.epoch, "generation": stamp.generation, "parts": len(parts), "digest": digest}
    with database.transaction("user"):
        database.execute("DELETE FROM published WHERE kind = :kind", kind=KIND)
        for part, data in enumerate(parts):
            database.insert("published", [{**row, "part": part, "data": data}])
    return True


def _has_grown(database: Database, generation: int, passages: int) -> bool:
    sql = "SELECT count(*) FROM chunks WHERE parent IS NULL AND generation > :generation"
    ((new,),) = database.query(sql, generation=generation)
    return bool(new > _GROWN * passages)


def fetch(database: Database, folder: Path, stamp: Stamp, own: Stamp | None) -> bool:
    """Fetch published index files into a folder if they are closer to this state of the library than its own.

    own: the state of the folder's files; None if there are none. Returns whether files were fetched. Incomplete, forged
    or foreign files are not fetched; the indexes are then built from the library.
    """
    since = own.generation if own is not None and own.epoch == stamp.epoch else -1
    sql = """SELECT generation, parts, digest FROM published WHERE kind = :kind AND epoch = :epoch AND part = 0
        AND generation > :since AND generation <= :now ORDER BY generation DESC LIMIT 1"""
    newest = database.query(sql, kind=KIND, epoch=stamp.epoch, since=since, now=stamp.generation)
    if not newest:
        return False
    generation, parts, digest = newest[0]
    sql = """SELECT data FROM published WHERE kind = :kind AND epoch = :epoch AND generation = :generation
        ORDER BY part"""
    data = [row[0] for row in database.query(sql, kind=KIND, epoch=stamp.epoch, generation=generation)]
    content = b"".join(data)
    if len(data) != parts or hashlib.sha256(content).hexdigest() != digest:
        return False
    try:
        _unpack(content, folder)
    except (tarfile.TarError, OSError, ValueError):
        return False
    return True


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in _FOLDERS:
            for path in sorted((folder / name).glob("*")):
                if path.is_file() and _is_index(name, path.name):
                    tar.add(path, f"{name}/{path.name}".lstrip("/"), recursive=False)
    return packed.getvalue()


def _is_index(folder: str, name: str) -> bool:
    if folder == LEXICAL:
        return not name.endswith((".lock", ".new"))
    return name == vectors.MANIFEST or (name.startswith("vectors-") and name.endswith(".faiss"))


def _unpack(content: bytes, folder: Path) -> None:
    """Put the files into their folders, the manifests last. Raises ValueError for a file that is not of an index."""
    fresh = folder / "fetched"
    with no_space(folder):
        discard(fresh)
        fresh.mkdir(parents=True)
        try:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                members = tar.getmembers()
                for member in members:
                    place, name = str(PurePosixPath(member.name).parent), PurePosixPath(member.name).name
                    place = "" if place == "." else place
                    if not member.isreg() or place not in _FOLDERS or not _is_index(place, name):
                        raise ValueError(f"{member.name} is not a file of an index")
                for member in members:  # one by one: extractall needs Python 3.11.4 to be safe
                    source = tar.extractfile(member)
                    assert source is not None
                    (fresh / member.name).parent.mkdir(exist_ok=True)
                    with source, (fresh / member.name).open("xb") as target:
                        shutil.copyfileobj(source, target)
            discard(folder / LEXICAL)
            names = [PurePosixPath(member.name) for member in members]
            manifests = (vectors.MANIFEST, bm25.MANIFEST)
            for path in sorted(names, key=lambda path: path.name in manifests):
                (folder / path).parent.mkdir(exist_ok=True)
                replace(fresh / path, folder / path)
        finally:
            with suppress(OSError, StoreError):
                discard(fresh)
