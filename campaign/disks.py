"""Full disks, disks that cannot be written, slow ones, and libraries that another program holds."""

from __future__ import annotations

import copy
import ctypes
import json
import os
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import sleep

from campaign import papers
from campaign.bench import Bench
from campaign.desk import Desk, Failed, Work
from campaign.kills import change_of, complete
from folio.store import sqlite
from folio.store.indexes import LIBRARY
from folio.store.sqlite import SqliteDatabase
from folio.store.user_file import set_aside, user_file_of
from folio.system.files import remove

_NEW_NAMESPACE, _PRIVATE, _READ_ONLY, _REMOUNT = 0x20000, 0x44000, 1, 32  # <sched.h>, <sys/mount.h>
_ACTIONS = ("first", "ingest", "replace", "prune", "rebuild", "repair", "upload", "remove", "chat")


def trial(bench: Bench, chance: random.Random) -> None:
    mounted = {_full: 50, _read_only: 15, _slow: 15, _held: 20}
    kinds = mounted if _own_mounts() else {_limited: 60, _slow: 20, _held: 20}
    chance.choices(list(kinds), list(kinds.values()))[0](bench, chance)


def _prepared(bench: Bench, chance: random.Random, what: str) -> tuple[Callable[[], None], Callable[[], None], Work]:
    """A store and a change to it: what completes the trial, what compares, and the command."""
    desk = bench.desk
    size = bench.size(chance)
    action, variant = chance.choice(_ACTIONS), chance.randrange(3)
    change = change_of(action, size, variant)
    asked = papers.questions([0, size - 1, size // 2, size + 1])
    bench.what = f"{what}: {action} of {size}, variant {variant}"
    reference = bench.reference(change.after, asked)
    bench.start(size)
    if action == "first":
        desk.clear()
        desk.store.mkdir()
    desk.lay_out(change.after if change.in_folder is None else change.in_folder)
    work = change.work(desk)
    return (
        lambda: complete(bench, action, change),
        lambda: bench.require_equal(reference, asked),
        work,
    )


def _full(bench: Bench, chance: random.Random) -> None:
    """A disk that fills up: the command says so, and loses nothing."""
    desk = bench.desk
    finish, compare, work = _prepared(bench, chance, "a full disk")
    free = chance.choice((0, chance.randint(0, 100), chance.randint(0, 1500)))
    with_papers = chance.random() < 0.15
    place = desk.papers if with_papers else desk.store
    bench.what += f", {free} kB left for {place.name}"
    _on_small_disk(place, free)
    try:
        ended = desk.run(work)
        desk.commands.append(f"with {free} kB left -> {ended.code}")
        if ended.code and "damaged" in ended.said:
            raise Failed(f"A full disk is called damage: {ended.said}")
        _require_none_aside(desk)
        bench.verify(0, 1)
        _mount("", place, _REMOUNT, b"size=400m")
        if "damaged" in (said := bench.verify(0, 1)).said and not ended.code:
            raise Failed(f"After a command that ended well: {said.said}")
        finish()
        _require_none_aside(desk)
        compare()
    finally:
        _leave(place)


def _read_only(bench: Bench, chance: random.Random) -> None:
    """A disk that cannot be written: questions are answered, and the rest says why it cannot be done."""
    desk = bench.desk
    size = bench.size(chance)
    gone = chance.choice(("nothing", "nothing", "vectors", "lexical"))
    bench.what = f"a read-only disk, a store of {size}, without {gone}"
    planned = {f"p{number:03}.pdf": (number, 0) for number in range(size)}
    asked = papers.questions([0, size - 1])
    reference = bench.reference(planned, asked)
    bench.start(size)
    for path in desk.store.glob(f"{gone}*"):
        remove(path)
    _on_small_disk(desk.store, 10_000)
    try:
        _mount("", desk.store, _REMOUNT | _READ_ONLY, b"")
        before = _listed(desk.store)
        ended = desk.command("query", "--sources", "--json", "--top-k", "10", asked[0])
        if ended.code:
            raise Failed(f"A question on a read-only disk ended with {ended.code}: {ended.said}")
        scores = [hit["score"] for hit in json.loads(ended.out)["hits"]]
        expected = [hit[1] for hit in reference["ranking"][0][1]]
        if len(scores) != len(expected) or any(abs(a - b) > 1e-6 for a, b in zip(scores, expected, strict=True)):
            raise Failed(f"Other scores on a read-only disk: {scores[:4]}, and {expected[:4]}")
        if desk.command("query", "--json", asked[0]).code:
            raise Failed(f"No answer on a read-only disk: {desk.commands[-1]}")
        for options in ((), ("--verify",), ("--rebuild",), ("--repair",)):
            desk.ingest(*options)
        if _listed(desk.store) != before:
            raise Failed("Something was written.")
        _mount("", desk.store, _REMOUNT, b"size=400m")
        if desk.ingest().code:
            raise Failed(f"An ingest, with the disk writable again: {desk.commands[-1]}")
        bench.require_equal(reference, asked)
    finally:
        _leave(desk.store)


def _slow(bench: Bench, chance: random.Random) -> None:
    """A disk that takes its time: whoever asks meanwhile gets a whole store, and whoever writes is told to wait."""
    desk = bench.desk
    finish, compare, work = _prepared(bench, chance, "a slow disk")
    seconds = chance.choice((0.01, 0.05))
    other = copy.copy(desk)
    other.name = "other"
    asked = 0

    def beside() -> None:
        nonlocal asked
        if asked < 4:
            asked += 1
            if asked % 2:
                other.command("query", "--sources", "--json", papers.questions([0])[0])
            else:
                other.ingest("--verify")

    def around(work: Work) -> int:
        fsync = os.fsync

        def slowly(file: int) -> None:
            sleep(seconds)
            fsync(file)

        os.fsync = slowly  # type: ignore[assignment]
        return work()

    ended = desk.run(work, around=None if desk.whole else around, beside=beside)
    desk.commands.append(f"on a slow disk -> {ended.code}")
    finish()
    compare()


def _held(bench: Bench, chance: random.Random) -> None:
    """A library that another program holds for longer than a command waits: it says so, and loses nothing."""
    desk = bench.desk
    finish, compare, work = _prepared(bench, chance, "a held library")
    library, after = desk.store / LIBRARY, chance.randint(0, 60)
    table = "meta"
    if chance.random() < 0.3:
        library, table = user_file_of(library), "kept"
    held: list[sqlite3.Connection] = []
    asked = 0

    def beside() -> None:
        nonlocal asked
        asked += 1
        if not held and asked > after and library.exists():
            connection = sqlite3.connect(library, timeout=0, isolation_level=None)
            try:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute(f"UPDATE {table} SET value = value")
                held.append(connection)
            except sqlite3.Error:
                connection.close()

    def around(work: Work) -> int:
        transaction = SqliteDatabase.transaction
        SqliteDatabase.transaction = lambda self, part="both", _=0.0: transaction(self, part, 0.2)  # type: ignore[assignment, method-assign]
        vars(sqlite)["BUSY_TIMEOUT_S"] = 0.2
        return work()

    try:
        ended = desk.run(work, around=None if desk.whole else around, beside=beside)
    finally:
        for connection in held:
            connection.close()
    bench.what += f", held after {after} looks" if held else ", never held"
    desk.commands.append(f"with the library held -> {ended.code}")
    if "damaged" in ended.said:
        raise Failed(f"A held library is called damage: {ended.said}")
    _require_none_aside(desk)
    finish()
    _require_none_aside(desk)
    compare()


def _require_none_aside(desk: Desk) -> None:
    """Raise Failed if a file was set aside: in none of these trials is one damaged."""
    for path in (desk.store / LIBRARY, user_file_of(desk.store / LIBRARY)):
        if aside := set_aside(path):
            raise Failed(f"A sound file was set aside as {aside[-1].name}")


def _limited(bench: Bench, chance: random.Random) -> None:
    """No file may grow beyond a size: what is left where no disk can be mounted."""
    desk = bench.desk
    finish, compare, work = _prepared(bench, chance, "a limit on files")
    limit = chance.randint(0, 300) * 1024

    def around(work: Work) -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return work()

    ended = desk.run(work, around=around)
    desk.commands.append(f"with files of at most {limit} bytes -> {ended.code}")
    _require_none_aside(desk)
    bench.verify(0, 1)
    finish()
    compare()


def _own_mounts() -> bool:
    """Give this process its own mounts, if that is allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or os.geteuid() or libc.unshare(_NEW_NAMESPACE):
        return False
    try:
        _mount("none", Path("/"), _PRIVATE, b"", kind="")
    except OSError:
        return False
    return True


def _mount(source: str, place: Path, flags: int, options: bytes, kind: str = "tmpfs") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), os.fsencode(place), kind.encode(), flags, options):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), str(place))


def _on_small_disk(place: Path, free_kb: int) -> None:
    """Move a folder's contents to a disk of its own, with that much space left."""
    aside = place.with_name("aside")
    place.rename(aside)
    place.mkdir()
    _mount("tmpfs", place, 0, b"size=400m")
    shutil.copytree(aside, place, dirs_exist_ok=True)
    remove(aside)
    room = os.statvfs(place)
    used = (room.f_blocks - room.f_bfree) * room.f_frsize
    _mount("", place, _REMOUNT, b"size=%d" % max(4096, used + free_kb * 1024))  # 0 would be no limit


def _leave(place: Path) -> None:
    ctypes.CDLL(None).umount2(os.fsencode(place), 2)  # MNT_DETACH


def _listed(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*"))
