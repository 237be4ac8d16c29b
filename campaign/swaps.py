"""Files swapped, grown, cut and removed while an ingest hashes and reads them."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from campaign import papers
from campaign.bench import Bench
from campaign.desk import Desk, Failed, Work
from folio.system import workers
from folio.system.files import remove

_LIMITS = {"PARSE_TIMEOUT_S": "10", "PARSE_MEMORY_MB": "512"}
# In worker processes only, which have limits: without them the reading of these never ends.
_ENDLESS = ("pipe", "zeros")
_KINDS = ("swap", "swap", "replace", "replace", "grow", "append", "cut", "remove", "folder", "link", "empty")


@dataclass(frozen=True)
class Change:
    """What happens to a file."""

    kind: str
    file: str
    other: str
    content: bytes  # what the file holds afterwards, where it is given


def trial(bench: Bench, chance: random.Random) -> None:
    """Change files while an ingest runs: what the library then holds under a hash is the text of those bytes."""
    desk = bench.desk
    size = chance.randint(2, 8)
    first, planned = chance.randrange(100), {}
    planned = {f"p{number:03}.pdf": (first + number, 0) for number in range(size)}
    asked = papers.questions([first, first + 1])
    how = "workers" if desk.whole or chance.random() < 0.12 else "here"
    changes = [_change(chance, planned, how) for _ in range(chance.randint(1, 4))]
    hooked = how == "here" and chance.random() < 0.75
    bench.what = (
        f"{', '.join(c.kind for c in changes)} of {size} papers, {'between' if hooked else 'at any time'}, {how}"
    )
    reference = bench.reference(planned, asked)
    contents = [*(papers.content(name) for name in planned.values()), *(change.content for change in changes)]
    texts = _texts(bench, contents)

    desk.clear()
    desk.lay_out(planned)
    desk.settings, desk.read = dict(_LIMITS), "workers" if how == "workers" else "here"
    if chance.random() < 0.3:  # some of them are known already
        for file in list(planned)[size // 2 :]:
            remove(desk.papers / file)
        desk.ingest()
        desk.lay_out(planned)
    work = desk.work("ingest", "--jobs", "1")
    if hooked:
        moments = [chance.randrange(size) for _ in changes]
        ended = desk.run(work, around=_hook(desk.papers, changes, moments))
    else:
        seconds = 2.5 if how == "workers" else 0.15
        ended = desk.run(work, beside=_at_times(desk.papers, changes, [chance.uniform(0, seconds) for _ in changes]))
    desk.commands.append(f"ingest with changes -> {ended.code}")
    if ended.code not in (0, 1):
        raise Failed(f"The ingest ended with {ended.code}: {ended.said}")
    for file, about in bench.content().items():
        if "text" not in about:
            continue
        if about["sha256"] not in texts:
            raise Failed(f"{file} has a hash that none of the files ever had.")
        if about["text"] != texts[about["sha256"]]:
            raise Failed(f"Wrong words under a right hash: {file} has the text of another file.")
    bench.verify(0, 1)
    for path in desk.papers.iterdir():
        remove(path)
    desk.lay_out(planned)
    ended = desk.ingest("--prune", "--jobs", "1")
    if ended.code:
        raise Failed(f"With the files back, the ingest ended with {ended.code}: {ended.said}")
    bench.require_equal(reference, asked)


def _change(chance: random.Random, planned: dict[str, papers.Name], how: str) -> Change:
    file, other = chance.sample(sorted(planned), 2)
    kind = chance.choice((*_KINDS, *_ENDLESS) if how == "workers" else _KINDS)
    own, new = papers.content(planned[file]), papers.content((planned[file][0], chance.randint(1, 3)))
    return Change(kind, file, other, {
        "replace": new,
        "grow": own + b"\n% and a tail" * chance.randint(1, 1000),
        "append": own + new,
        "cut": own[: len(own) * 2 // 3],
        "empty": b"",
    }.get(kind, own))  # fmt: skip


def _apply(folder: Path, change: Change) -> None:
    """Change a file, in single steps from one known content to another."""
    path, other, beside = folder / change.file, folder / change.other, folder / ".beside"
    if change.kind == "swap":
        if path.is_file() and other.is_file():
            os.replace(path, beside)
            os.replace(other, path)
            os.replace(beside, other)
        return
    if change.kind in ("grow", "append") and path.is_file():
        tail = change.content[path.stat().st_size :]
        if path.read_bytes() + tail == change.content:
            with path.open("ab", buffering=0) as file:
                file.write(tail)
        return
    if change.kind in ("cut", "empty") and path.is_file():
        if change.content == path.read_bytes()[: len(change.content)]:
            os.truncate(path, len(change.content))
        return
    if change.kind == "replace":
        beside.write_bytes(change.content)
    elif change.kind == "link":
        beside.symlink_to(other)
    elif change.kind == "zeros":
        beside.symlink_to("/dev/zero")
    elif change.kind == "pipe":
        os.mkfifo(beside)
    elif change.kind == "folder":
        beside.mkdir()
    remove(path)
    if beside.is_symlink() or beside.exists():
        os.replace(beside, path)


def _hook(folder: Path, changes: list[Change], moments: list[int]) -> Callable[[Work], int]:
    """Makes the changes when that many files have been read: after all were hashed, before the next is read."""

    def around(work: Work) -> int:
        read_here, read = workers.run_guarded, 0

        def reading(function: Any, items: Iterable[Any], **limits: Any) -> Generator[Any, None, None]:
            nonlocal read
            for item in items:
                for change, moment in zip(changes, moments, strict=True):
                    if moment == read:
                        _apply(folder, change)
                read += 1
                yield from read_here(function, [item], **limits)

        workers.run_guarded = reading
        return work()

    return around


def _at_times(folder: Path, changes: list[Change], times: list[float]) -> Callable[[], None]:
    """Makes each change once its time has come."""
    began, left = monotonic(), sorted(zip(times, range(len(times)), strict=True))

    def beside() -> None:
        while left and monotonic() - began >= left[0][0]:
            _apply(folder, changes[left.pop(0)[1]])

    return beside


def _texts(bench: Bench, contents: Iterable[bytes]) -> dict[str, str]:
    """SHA-256 -> digest of the text, of each content that can be read; what is not read here is in no library."""
    desk: Desk = bench.desk
    desk.clear()
    read, desk.read = desk.read, "cached"
    for number, content in enumerate({hashlib.sha256(content).hexdigest(): content for content in contents}.values()):
        desk.put(f"v{number:02}.pdf", content)
    desk.ingest("--jobs", "1")
    desk.read = read
    return {about["sha256"]: about["text"] for about in bench.content().values() if "text" in about}
