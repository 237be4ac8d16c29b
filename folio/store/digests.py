"""Digests of stored values, so that a flipped bit on the disk is an error and never a wrong quote or page. Pure."""

from __future__ import annotations

import hashlib
import json
import zlib

from folio.types import Vectors

DIGEST_BYTES = 16
# A stored vector consists of its numbers (float32, little-endian), this mark, and the numbers' CRC-32.
_MARK, _CRC_BYTES = b"c", 4


def text_hash(text: str) -> str:
    """A 16-byte hash of a text, in hex, to embed equal texts once and to notice changes."""
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest()


def text_crc(text: str) -> int:
    """The CRC-32 of a paper's text in UTF-8. Nearly every question checks it, and a CRC is five times as fast."""
    return zlib.crc32(text.encode())


def row_digest(table: str, *values: object) -> bytes:
    """A 16-byte hash of a row: its table and its values (None, numbers, strings)."""
    serialized = json.dumps([table, *values])
    return hashlib.blake2b(serialized.encode(), digest_size=DIGEST_BYTES).digest()


def pack_vector(vector: Vectors) -> bytes:
    """A vector in its stored form: numbers, mark, CRC-32."""
    numbers = vector.astype("<f4").tobytes()
    return numbers + _MARK + zlib.crc32(numbers).to_bytes(_CRC_BYTES, "little")


def vector_bytes(blob: bytes) -> bytes:
    """The numbers of a stored vector. Raises ValueError if they have changed since they were stored."""
    numbers_end = len(blob) - _CRC_BYTES
    if blob[-_CRC_BYTES:] != zlib.crc32(memoryview(blob)[: numbers_end - 1]).to_bytes(_CRC_BYTES, "little"):
        raise ValueError("a vector has changed since it was stored")
    return blob[: numbers_end - 1]
