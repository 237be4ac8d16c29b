"""Packed BM25 postings, and their scores by tantivy's formula, so that a server ranks like an index on disk. Pure.

A posting of a term is the number of a passage with it, the term's count in the passage, and the passage's length.
Lengths are stored in one byte, as in tantivy.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain

import numpy as np
import numpy.typing as npt

from folio.errors import IndexDamaged

Numbers = npt.NDArray[np.int64]
# BM25's constants, as in tantivy
K1, B = 1.2, 0.75
# A row has the postings of a term in this many passages. Smaller blocks mean more rows to read for a frequent term;
# larger ones mean that adding a paper rewrites longer rows.
BLOCK = 2**14
# Longer terms are stored as their hash, because an index of the server cannot hold them
_LONGEST = 100
_CRC_BYTES = 4
_WIDE_GAPS, _WIDE_COUNTS = 1, 2


def _field_norms() -> Iterator[int]:
    """Lucene's SmallFloat.byte4ToInt, a table in tantivy: the first 24 lengths are exact, others have four bits."""
    for byte in range(256):
        rest = max(0, byte - 24)
        shift = max(0, (rest >> 3) - 1)
        yield byte if byte < 24 else 24 + (rest if rest < 8 else (rest & 7 | 8) << shift)


FIELD_NORMS = np.array(list(_field_norms()), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of one term. All arrays have the shape (passages with the term,)."""

    numbers: Numbers  # of the passages, in ascending order
    counts: Numbers  # of the term in each passage
    norms: npt.NDArray[np.uint8]  # the index in FIELD_NORMS of each passage's length

    def __len__(self) -> int:
        return len(self.numbers)

    def without(self, numbers: Numbers) -> Postings:
        remaining = ~np.isin(self.numbers, numbers)
        return Postings(self.numbers[remaining], self.counts[remaining], self.norms[remaining])


NONE = Postings(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8))


def joined(parts: Sequence[Postings]) -> Postings:
    """The concatenated postings of parts, whose numbers ascend from one part to the next."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NONE
    return Postings(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.norms for part in parts]),
    )


def key(term: str) -> str:
    """The stored form of a term."""
    return term if len(term) <= _LONGEST else f"#{blake2b(term.encode(), digest_size=16).hexdigest()}"


def postings_of(first: int, bodies: Sequence[Sequence[str]]) -> dict[str, Postings]:
    """Term -> its postings in passages with the numbers `first`, `first` + 1, ... bodies: the terms of each passage."""
    places: dict[str, int] = {}
    terms = np.fromiter((places.setdefault(term, len(places)) for term in chain.from_iterable(bodies)), dtype=np.int64)
    lengths = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies))
    norms = (np.searchsorted(FIELD_NORMS, lengths, side="right") - 1).astype(np.uint8)
    passages = np.repeat(np.arange(len(bodies)), lengths)
    pairs, counts = np.unique(terms * len(bodies) + passages, return_counts=True)
    of_term, passages = np.divmod(pairs, max(1, len(bodies)))
    ends = np.searchsorted(of_term, np.arange(len(places)), side="right").tolist()
    numbers, norms, start = first + passages, norms[passages], 0
    by_term: dict[str, Postings] = {}
    for term, end in zip(places, ends, strict=True):
        by_term[key(term)] = Postings(numbers[start:end], counts[start:end], norms[start:end])
        start = end
    return by_term


def pack(term: str, block: int, postings: Postings) -> bytes:
    """The postings of a term in a block as bytes: checksum, widths, then the gaps between numbers, counts and norms."""
    gaps = np.diff(postings.numbers, prepend=block * BLOCK)
    counts = np.minimum(postings.counts, 65_535)
    widths = _WIDE_GAPS * bool(gaps.max() > 255) | _WIDE_COUNTS * bool(counts.max() > 255)
    numbers = gaps.astype("<u2" if widths & _WIDE_GAPS else "u1").tobytes()
    often = counts.astype("<u2" if widths & _WIDE_COUNTS else "u1").tobytes()
    data = b"".join((bytes([widths]), numbers, often, postings.norms.tobytes()))
    return checked(data, term, block, len(postings))


def unpack(term: str, block: int, count: int, stored: bytes) -> Postings:
    """The postings from the bytes of `pack`. Raises IndexDamaged if they are not those of this term in this block."""
    data = verified(stored, term, block, count)
    widths = data[0] if data else 0
    gap_bytes, count_bytes = (2 if widths & wide else 1 for wide in (_WIDE_GAPS, _WIDE_COUNTS))
    counts_at, norms_at = 1 + gap_bytes * count, 1 + (gap_bytes + count_bytes) * count
    if len(data) != norms_at + count:
        raise damaged()
    gaps = np.frombuffer(data, f"<u{gap_bytes}", count, 1)
    counts = np.frombuffer(data, f"<u{count_bytes}", count, counts_at)
    numbers = np.cumsum(gaps, dtype=np.int64) + block * BLOCK
    return Postings(numbers, counts.astype(np.int64), np.frombuffer(data, np.uint8, count, norms_at))


def checked(data: bytes, *keys: object) -> bytes:
    """Bytes, preceded by a checksum over them and their keys."""
    return _crc(data, keys) + data


def verified(stored: bytes, *keys: object) -> bytes:
    """The bytes without their checksum. Raises IndexDamaged if it does not match them and their keys."""
    data = stored[_CRC_BYTES:]
    if stored[:_CRC_BYTES] != _crc(data, keys):
        raise damaged()
    return data


def _crc(data: bytes, keys: tuple[object, ...]) -> bytes:
    return zlib.crc32(data, zlib.crc32("\n".join(map(str, keys)).encode())).to_bytes(_CRC_BYTES, "little")


def damaged() -> IndexDamaged:
    return IndexDamaged("a row of the BM25 index on the server has changed since it was written")


@dataclass(frozen=True, slots=True)
class Bm25:
    """The statistics of all passages."""

    passages: int
    tokens: int  # in all of them

    def scores(self, postings: Postings) -> npt.NDArray[np.float32]:
        """The score of each passage for one term, in single precision as in tantivy (Bm25Weight)."""
        passages_without = self.passages - len(postings) + 0.5
        weight = np.float32(math.log(1 + passages_without / (len(postings) + 0.5)) * (1 + K1))
        average = np.float32(self.tokens / max(1, self.passages)) or np.float32(1)
        by_length = (np.float32(K1) * (1 - np.float32(B) + np.float32(B) * FIELD_NORMS / average)).astype(np.float32)
        counts = postings.counts.astype(np.float32)
        return np.asarray(weight * counts / (counts + by_length[postings.norms]), dtype=np.float32)
