"""Bits flipped in the files of a store; files cut short, emptied, replaced and removed.

What holds: no wrong quote, page or citation is ever shown, and nothing of what people said is lost that the last daily
copy has. A flipped bit inside a text that a person wrote, as in the title that an edit gives, may go unnoticed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from campaign import papers
from campaign.bench import FLAVOURS, Bench, Found
from campaign.desk import Desk, Failed
from folio.store.indexes import LIBRARY
from folio.store.user_file import set_aside
from folio.system.files import remove
from tests.helpers.fakes import overwrite

# How often each kind of file is damaged
_FILES = {
    "library.sqlite": 30, "library.sqlite-wal": 10, "library.sqlite-shm": 3, "user.sqlite": 24, "user.sqlite-wal": 6,
    "user-*.sqlite": 2, "vectors.json": 8, "*.faiss": 16, "lexical/*": 22, "ingested.json": 6, "writer.lock": 2,
    "rebuild.sqlite*": 3, "*": 3,
}  # fmt: skip
_DAMAGES = {"bits": 50, "cut": 15, "emptied": 7, "removed": 8, "garbage": 7, "zeros": 8, "folder": 5}
# What the commands must mend by themselves: an obstacle such as a folder in the place of a file, a person may remove.
_BY_HAND = ("folder",)


def trial(bench: Bench, chance: random.Random) -> None:
    """Damage a file; then ask, verify, and mend as a person would."""
    desk = bench.desk
    size = bench.size(chance)
    kind = chance.choices(list(_FILES), list(_FILES.values()))[0]
    flavour = chance.choices(FLAVOURS, (70, 20, 10))[0]
    flavour = "wal" if kind.endswith(("-wal", "-shm")) else flavour
    flavour = "rebuilding" if kind == "rebuild.sqlite*" else flavour
    if desk.whole or size > 100:
        flavour = FLAVOURS[0]
    planned = {f"p{number:03}.pdf": (number, 0) for number in range(size)}
    asked = papers.questions([0, size - 1, size // 2, size + 1])
    reference = bench.reference(planned, asked)
    bench.start(size, flavour)
    path = _chosen(desk, kind, chance)
    what = _damage(path, chance)
    name = path.relative_to(desk.root).as_posix()
    bench.what = f"{what} in {name} of a store of {size}, {flavour}"
    derived = any(part in name for part in ("lexical", "vectors", ".faiss"))
    of_people = path.name.startswith("user")
    before = None
    if chance.random() < 0.5:
        before = desk.command("query", "--sources", "--json", "--top-k", "10", asked[0])
    bench.verify(0, 1)
    if before is not None and (derived or of_people) and not before.code:
        _require_ranking(before.out, reference)
    _mend(bench, path, what, derived, chance)
    bench.require_equal(reference, asked)
    bench.require_said(may_change=of_people)
    if of_people and set_aside(desk.store / LIBRARY):
        raise Failed("What people said was damaged, and the library was set aside.")


def _chosen(desk: Desk, kind: str, chance: random.Random) -> Path:
    """A file of this kind, or any where there is none."""
    everything = sorted([*(path for path in desk.store.rglob("*") if path.is_file()), desk.record])
    if kind == "ingested.json":
        return desk.record
    return chance.choice(sorted(path for path in desk.store.glob(kind) if path.is_file()) or everything)


def _damage(path: Path, chance: random.Random) -> str:
    """Damage the file; returns what was done to it."""
    content = bytearray(path.read_bytes())
    what = chance.choices(list(_DAMAGES), list(_DAMAGES.values()))[0]
    if not content and what in ("bits", "cut", "emptied", "zeros"):
        what = "garbage"
    if what == "bits":
        bits = chance.randint(1, 20)
        for _ in range(bits):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        overwrite(path, bytes(content))
        return f"{bits} bits flipped"
    if what == "cut":
        left = chance.randrange(len(content))
        overwrite(path, bytes(content[:left]))
        return f"cut to {left} of {len(content)} bytes"
    if what == "emptied":
        overwrite(path, b"")
    elif what == "removed":
        remove(path)
    elif what == "garbage":
        overwrite(path, chance.randbytes(len(content) or 100))
    elif what == "zeros":
        at = chance.randrange(0, len(content), 4096)
        content[at : at + 4096] = bytes(len(content[at : at + 4096]))
        overwrite(path, bytes(content))
    else:
        remove(path)
        path.mkdir()
        (path / "inside").write_text("a file in a folder in the place of a file")
    return what


def _require_ranking(out: str, reference: Found) -> None:
    (line,) = out.splitlines()
    found = [hit["score"] for hit in json.loads(line)["hits"]]
    expected = [hit[1] for hit in reference["ranking"][0][1]]
    if len(found) != len(expected) or any(abs(a - b) > 1e-6 for a, b in zip(found, expected, strict=True)):
        raise Failed(f"silent: a query found other scores: {found[:4]}, and {expected[:4]} in a sound store")


def _mend(bench: Bench, path: Path, what: str, derived: bool, chance: random.Random) -> None:
    """The commands that a person would try, in turn, until the store is sound. Raises Failed if it never is."""
    ladder: list[tuple[str, ...]] = [(), ("--repair",), ("--rebuild",)]
    if derived and what not in _BY_HAND:
        ladder = [chance.choice([(), ("--repair",)])]
    elif chance.random() < 0.3:
        ladder = ladder[-1:]
    said = "nothing"
    for by_hand in (False, True):
        if by_hand:
            if what not in _BY_HAND:
                break
            remove(path)
        for options in ladder:
            ended = bench.desk.ingest(*options)
            said = f"{' '.join(options)} ended with {ended.code}: {ended.said}"
            # --repair and --verify look at the index alone, and not at the list beside it.
            if not ended.code and not bench.verify(0, 1).code and not bench.desk.record.is_dir():
                return
    raise Failed(f"No command mends it; the last, {said}")
