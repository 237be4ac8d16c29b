"""Damaged PDFs: bits, pieces, objects, cross-references and lengths of a sound one changed at random."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_NUMBERS = (
    b"0", b"-1", b"1", b"2147483647", b"-2147483648", b"4294967296", b"9223372036854775807", b"99999999999999999999",
    b"1e308", b"-1e-308", b"0.0000001", b"1.#INF", b"65536", b"1000000",
)  # fmt: skip
_ENTRIES = (
    b"/Kids[1 0 R 1 0 R]", b"/Kids[]", b"/Count -5", b"/Count 1000000000", b"/MediaBox[0 0 1e9 1e9]",
    b"/MediaBox[0 0 0 0]", b"/MediaBox[9 9 1 1]", b"/MediaBox[NaN 0 1 R]", b"/Rotate 45", b"/UserUnit 1e30",
    b"/Filter[/FlateDecode/FlateDecode/FlateDecode]", b"/Filter/LZWDecode", b"/Filter/DCTDecode",
    b"/Filter/JBIG2Decode",
    b"/Filter/JPXDecode", b"/Filter/CCITTFaxDecode", b"/Filter/ASCII85Decode", b"/Filter/Crypt", b"/Length 1",
    b"/Length 99999999", b"/Length 5 0 R", b"/Width 100000/Height 100000", b"/BitsPerComponent 17", b"/Subtype/Form",
    b"/Subtype/Type3", b"/Encoding/Identity-H", b"/ToUnicode 1 0 R", b"/Contents[1 0 R 1 0 R]", b"/Resources 1 0 R",
    b"/Parent 1 0 R", b"/Type/ObjStm/N 100000/First 0", b"/W[9 9 9]", b"/Prev 0", b"/Encrypt 1 0 R",
    b"/Predictor 15/Columns 100000000", b"/OCProperties 1 0 R", b"/PageLabels<</Nums[0<</S/r/St 999999999>>]>>",
    b"/Font<</F1 1 0 R>>", b"/Group<</S/Transparency>>", b"/SMask 1 0 R", b"/Annots[1 0 R]",
    b"/AcroForm<</Fields[1 0 R]>>",
)  # fmt: skip
Mutation = Callable[[bytearray, random.Random], str]


def mutate(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The content with one to four changes, and what they are."""
    changed = bytearray(content)
    done = [chance.choice(MUTATIONS)(changed, chance) for _ in range(chance.choice((1, 1, 2, 4)))]
    return bytes(changed), ", ".join(done)


def _bits(content: bytearray, chance: random.Random) -> str:
    count = chance.choice((1, 5, 20, 200))
    for _ in range(count if content else 0):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return f"{count} bits flipped"


def _span(content: bytearray, chance: random.Random) -> tuple[int, int]:
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + chance.choice((1, 10, 100, 1000, 10_000)))


def _overwritten(content: bytearray, chance: random.Random) -> str:
    start, end = _span(content, chance)
    content[start:end] = chance.choice((bytes(end - start), b"\xff" * (end - start), chance.randbytes(end - start)))
    return f"{end - start} bytes overwritten"


def _exchanged(content: bytearray, chance: random.Random) -> str:
    (a, b), (c, d) = sorted((_span(content, chance), _span(content, chance)))
    b = min(b, c)
    content[a:d] = content[c:d] + content[b:c] + content[a:b]
    return "pieces exchanged"


def _repeated(content: bytearray, chance: random.Random) -> str:
    start, end = _span(content, chance)
    at = chance.randrange(len(content) + 1)
    content[at:at] = content[start:end] * chance.choice((1, 1, 50))
    return "a piece repeated"


def _removed(content: bytearray, chance: random.Random) -> str:
    start, end = _span(content, chance)
    del content[start:end]
    return f"{end - start} bytes removed"


def _cut(content: bytearray, chance: random.Random) -> str:
    del content[chance.randrange(len(content) + 1) :]
    return "cut"


def _replaced(content: bytearray, chance: random.Random, pattern: bytes, make: Callable[[bytes], bytes]) -> int:
    """Replace one to ten of what a pattern finds."""
    found = [match.span() for match in re.finditer(pattern, content)]
    chosen = sorted(chance.sample(found, min(len(found), chance.choice((1, 2, 10)))), reverse=True)
    for start, end in chosen:
        content[start:end] = make(bytes(content[start:end]))
    return len(chosen)


def _numbers(content: bytearray, chance: random.Random) -> str:
    return f"{_replaced(content, chance, rb'-?[0-9]+', lambda _: chance.choice(_NUMBERS))} numbers changed"


def _references(content: bytearray, chance: random.Random) -> str:
    numbers = re.findall(rb"(\d+) 0 obj", content) or [b"1"]
    changed = _replaced(content, chance, rb"\d+ 0 R", lambda _: chance.choice(numbers) + b" 0 R")
    return f"{changed} references changed"


def _names(content: bytearray, chance: random.Random) -> str:
    names = re.findall(rb"/[A-Za-z0-9]+", content) or [b"/X"]
    return f"{_replaced(content, chance, rb'/[A-Za-z0-9]+', lambda _: chance.choice(names))} names changed"


def _lengths(content: bytearray, chance: random.Random) -> str:
    changed = _replaced(content, chance, rb"/Length[ ]?\d+", lambda _: b"/Length " + chance.choice(_NUMBERS))
    return f"{changed} lengths changed"


def _crossreferences(content: bytearray, chance: random.Random) -> str:
    def off(found: bytes) -> bytes:
        return re.sub(rb"\d+", lambda _: str(chance.randrange(2 * len(content) + 1)).encode(), found, count=1)

    pattern = chance.choice((rb"\d{10} \d{5} [nf]", rb"startxref\s+\d+", rb"/Prev \d+", rb"/XRefStm \d+"))
    return f"{_replaced(content, chance, pattern, off)} cross-references changed"


def _entries(content: bytearray, chance: random.Random) -> str:
    return f"{_replaced(content, chance, rb'<<', lambda _: b'<<' + chance.choice(_ENTRIES))} entries added"


def _nested(content: bytearray, chance: random.Random) -> str:
    deep = chance.choice((100, 1000, 100_000))
    opened = chance.choice((b"[", b"<<", b"<</A", b"("))
    return f"{_replaced(content, chance, rb'<<', lambda found: found + b'/Z' + opened * deep)} deep nests"


def _doubled(content: bytearray, chance: random.Random) -> str:
    content += content[chance.randrange(len(content) + 1) :]
    return "its end twice"


MUTATIONS: tuple[Mutation, ...] = (
    _bits, _bits, _overwritten, _exchanged, _repeated, _removed, _cut, _numbers, _numbers, _references, _names,
    _lengths, _crossreferences, _entries, _entries, _nested, _doubled,
)  # fmt: skip
