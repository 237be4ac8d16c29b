"""Checksums of the files of the derived indexes, so that damage is found when they are opened, in bounded time.

A manifest lists each file with its size and the CRC-32 of each block of a mebibyte, and has a checksum of itself.
CRC-32 detects every flipped bit, and all but one in four billion random changes to a block. It is no protection
against forgery, because a forger could also write the manifest. It is five times as fast as BLAKE2 (LOG.md).
"""

from __future__ import annotations

import json
import math
import os
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from folio.errors import FolioError, IndexDamaged
from folio.system.files import json_bytes, write_json

BLOCK = 2**20
# Device, inode, size, and times of change: each version of a file has its own identity.
Identity = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Checksums:
    """The checksums of one file."""

    bytes: int  # the file's size
    blocks: tuple[int, ...]  # the CRC-32 of each block


class Summing:
    """Computes the checksums of data that arrives in pieces."""

    def __init__(self) -> None:
        self._bytes = 0
        self._blocks: list[int] = []

    def update(self, data: bytes | memoryview) -> None:
        remaining = memoryview(data)
        while remaining:
            used = self._bytes % BLOCK
            piece, remaining = remaining[: BLOCK - used], remaining[BLOCK - used :]
            if used:
                self._blocks[-1] = zlib.crc32(piece, self._blocks[-1])
            else:
                self._blocks.append(zlib.crc32(piece))
            self._bytes += len(piece)

    def sums(self) -> Checksums:
        return Checksums(self._bytes, tuple(self._blocks))


def checksums(path: Path) -> Checksums:
    """The checksums of a file; reads all of it. Raises OSError."""
    summing, buffer = Summing(), bytearray(BLOCK)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            summing.update(memoryview(buffer)[:count])
    return summing.sums()


def check(folder: Path, files: Mapping[str, Checksums], budget: int | None = None) -> frozenset[Identity]:
    """Compare files with their checksums; returns the files' identities. Raises IndexDamaged, OSError.

    budget: read at most about this many bytes; None reads everything. If there are more, the first and last block of
    each file are checked, which hold its structure, and a random sample of the others.
    """
    blocks = [(name, number) for name, sums in files.items() for number in range(len(sums.blocks))]
    if budget is not None and len(blocks) * BLOCK > budget:
        blocks = _sample(files, blocks, budget // BLOCK)
    numbers_of: dict[str, list[int]] = {name: [] for name in files}
    for name, number in blocks:
        numbers_of[name].append(number)
    return frozenset(_check_file(folder / name, files[name], numbers) for name, numbers in numbers_of.items())


def _sample(files: Mapping[str, Checksums], blocks: list[tuple[str, int]], count: int) -> list[tuple[str, int]]:
    ends = {(name, number) for name, sums in files.items() for number in (0, len(sums.blocks) - 1)}
    inner = [block for block in blocks if block not in ends]
    chosen = random.sample(inner, min(len(inner), max(0, count - len(ends))))
    return sorted([*(block for block in blocks if block in ends), *chosen])


def _check_file(path: Path, sums: Checksums, numbers: Iterable[int]) -> Identity:
    changed = IndexDamaged(f"{path.name} has changed since it was written")
    buffer = bytearray(BLOCK)
    with path.open("rb", buffering=0) as file:
        identity = _identity(os.fstat(file.fileno()))
        if os.fstat(file.fileno()).st_size != sums.bytes:
            raise changed
        for number in numbers:
            file.seek(number * BLOCK)
            count = file.readinto(buffer)
            if zlib.crc32(memoryview(buffer)[:count]) != sums.blocks[number]:
                _damaged.add(identity)
                raise changed
    return identity


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# Damaged files found by checks in the background; looked up before each search.
_damaged: set[Identity] = set()


def any_damaged(files: frozenset[Identity]) -> bool:
    """Whether a check in this process has found any of these files damaged."""
    return not _damaged.isdisjoint(files)


def check_in_background(folder: Path, files: Mapping[str, Checksums]) -> Thread:
    """Check everything in a daemon thread, for `any_damaged`."""

    def work() -> None:
        for name, sums in files.items():
            try:
                check(folder, {name: sums})
            except (IndexDamaged, OSError):  # a missing file was replaced by a newer one
                continue

    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def write_manifest(path: Path, content: Mapping[str, object]) -> None:
    """Replace a manifest, with a checksum of its content. Raises DiskFull."""
    write_json(path, {"checksum": zlib.crc32(json_bytes(content)), **content})


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest's content. Raises IndexDamaged if it has changed since it was written, FileNotFoundError."""
    try:
        data = path.read_bytes()
        content = dict(json.loads(data))
        expected = content.pop("checksum")
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise IndexDamaged(f"{path.name} cannot be read: {error}") from error
    checksum = zlib.crc32(json_bytes(content))
    if expected != checksum or data != json_bytes({"checksum": checksum, **content}):
        raise IndexDamaged(f"{path.name} has changed since it was written")
    return content


def to_json(sums: Checksums) -> dict[str, object]:
    """Checksums in a manifest's format: the blocks as concatenated hexadecimal numbers."""
    return {"bytes": sums.bytes, "blocks": "".join(f"{block:08x}" for block in sums.blocks)}


def from_json(value: Mapping[str, Any]) -> Checksums:
    """The checksums of a manifest's entry. Raises KeyError, TypeError, ValueError."""
    text = str(value["blocks"])
    sums = Checksums(int(value["bytes"]), tuple(int(text[at : at + 8], 16) for at in range(0, len(text), 8)))
    if len(sums.blocks) != -(-sums.bytes // BLOCK):
        raise ValueError("the number of blocks does not match the size")
    return sums


Hits = list[tuple[int, float]]  # chunk ids with scores


@contextmanager
def engine_errors(name: str, *passed: type[BaseException]) -> Iterator[None]:
    """Turn errors of an index's engine into IndexDamaged, except those in `passed`. name: of the index.

    Catches BaseException, because a panic in Rust is not an Exception.
    """
    try:
        yield
    except (FolioError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, passed):
            raise
        reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
        raise IndexDamaged(f"the {name} index cannot be read: {reason}") from error


def require_possible(name: str, hits: Hits, limit: int) -> Hits:
    """Raises IndexDamaged for hits that no sound index gives: a score that is not finite, an id that occurs twice."""
    if len(hits) > limit or len({chunk for chunk, _ in hits}) < len(hits):
        raise IndexDamaged(f"the {name} index finds a passage twice")
    if not all(math.isfinite(score) for _, score in hits):
        raise IndexDamaged(f"the {name} index gives a score that is not a number")
    return hits
