"""Made papers: small PDFs whose text is a function of a number and a version, byte for byte the same in every run."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import cache

Name = tuple[int, int]  # of a made paper: its number, and its version

_PROPERTIES = (
    "density", "viscosity", "melting point", "refractive index", "conductivity", "boiling point", "hardness",
    "heat capacity", "solubility", "elasticity", "permeability", "surface tension",
)  # fmt: skip
_UNITS = ("kelvin", "pascals", "joules", "grams per litre", "millimetres", "siemens", "newtons per metre")
_WHERE = ("in dry air", "under water", "at night", "in a sealed vessel", "near the wall", "at low pressure")
_EVERYWHERE = (
    "All samples were weighed before and after the measurement.",
    "The instrument was calibrated against a standard each morning.",
    "Results below the limit of detection were left out.",
    "We thank the referees for their careful reading of the manuscript.",
)
_SYLLABLES = ("cor", "vane", "lith", "ora", "tem", "pis", "quel", "dra", "mon", "sil", "urb", "eth", "gar", "nix")


@cache
def substance(number: int) -> str:
    """What a paper is about: a word that no other paper has."""
    first, rest = divmod(number, len(_SYLLABLES) ** 2)
    second, third = divmod(rest, len(_SYLLABLES))
    return f"{_SYLLABLES[second]}{_SYLLABLES[third]}{_SYLLABLES[(first + 3 * third) % len(_SYLLABLES)]}ite"


def questions(numbers: Sequence[int]) -> list[str]:
    """Questions about these papers, and two that many papers answer."""
    asked = [f"What is the {_PROPERTIES[number % 12]} of {substance(number)}?" for number in numbers]
    return [*asked, "When was the instrument calibrated?", "Which density was measured under water?"]


def pages(name: Name) -> list[list[str]]:
    """The lines of each page."""
    number, version = name
    chance = random.Random(f"paper {number} {version}")
    what = substance(number)
    made: list[list[str]] = []
    for page in range(chance.randint(1, 3)):
        heading = [f"On {what}"] if not page else []
        lines = [
            f"The {chance.choice(_PROPERTIES)} of {what} is {chance.randint(2, 9999)} {chance.choice(_UNITS)}"
            f" {chance.choice(_WHERE)}."
            for _ in range(chance.randint(3, 7))
        ]
        made.append([*heading, *lines, chance.choice(_EVERYWHERE)])
    if version:
        made[-1].append(f"This is revision {version} of the paper on {what}.")
    return made


@cache
def content(name: Name) -> bytes:
    """The bytes of the PDF."""
    return pdf(pages(name), title=f"On {substance(name[0])}", author=f"A. {substance(name[0] + 7).title()}")


@cache
def sha256(name: Name) -> str:
    return hashlib.sha256(content(name)).hexdigest()


def pdf(text: Sequence[Sequence[str]], title: str = "", author: str = "") -> bytes:
    """A PDF with these lines on its pages."""
    count = len(text)
    kids = " ".join(f"{4 + 2 * page} 0 R" for page in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {count}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for page, lines in enumerate(text):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (5 + 2 * page)
        )
        drawn = "".join(f"({_escaped(line)})Tj T*\n" for line in lines)
        objects.append(stream(f"BT /F1 10 Tf 14 TL 72 740 Td\n{drawn}ET".encode("latin-1")))
    objects.append(f"<</Title({_escaped(title)})/Author({_escaped(author)})>>".encode())
    return assembled(objects, info=len(objects))


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """A stream object with these bytes."""
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(data), data)


def assembled(objects: Sequence[bytes], *, info: int = 0, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1; the first is the catalog. info: the number of the document's data."""
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    named = b"/Info %d 0 R" % info if info else b""
    out += b"trailer<</Size %d/Root 1 0 R%s%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, named, trailer, start)
    return bytes(out)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
