"""`ingest.py --watch` over 10,000 files, and through faults: kills, a drive that comes and goes, a full disk, the limit
of watches. Needs Linux; mounting needs root. Not part of scripts/campaign.py, whose trials end by themselves.

    python -m campaign.watching --files 10000 --idle 60
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from folio.store.library import Library
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf

ROOT = Path(__file__).resolve().parent.parent
WAIT_S = 900.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Watched:
    """A folder of papers, a store, and the command that watches."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.papers, self.store = root / "papers", root / "store"
        self.papers.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None
        self.log = root / "log.txt"

    def environment(self) -> dict[str, str]:
        places = {"PAPERS_DIR": self.papers, "VECTORSTORE_DIR": self.store, "INGESTED_JSON": self.root / "in.json",
                  "CACHE_DIR": self.root / "cache", "MODELS_DIR": self.root / "models"}  # fmt: skip
        return {**os.environ, "EMBEDDER": "builtin", "LLM": "builtin", **{k: str(v) for k, v in places.items()}}

    def start(self, *before: str) -> None:
        command = [*before, sys.executable, str(ROOT / "ingest.py"), "--watch"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment())

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def files(self) -> set[str]:
        with suppress(Exception), closing(Library(self.store / "library.sqlite")) as library:
            return {file.name for file in library.files()}
        return set()

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def verify(self) -> bool:
        command = [sys.executable, str(ROOT / "ingest.py"), "--verify"]
        return subprocess.run(command, env=self.environment(), stdout=subprocess.DEVNULL).returncode == 0

    def cpu_s(self) -> float:
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self) -> float:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def until(holds: Callable[[], object], what: str) -> float:
    """Wait; returns the seconds that it took."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > WAIT_S:
            raise AssertionError(f"it never came: {what}")
        time.sleep(0.1)
    return time.monotonic() - began


def measure(watched: Watched, files: int, idle_s: float) -> None:
    """Start, memory, processor time at rest, and how long a change takes, with so many files."""
    source = write_pdf(watched.root / "source.pdf", OTTERS)
    for number in range(files):
        target = watched.papers / f"{number % 100:02}" / f"{number:05}.pdf"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, target)
    for name in ("first start", "second start"):
        watched.start()
        took = until(lambda: "In step" in watched.said() and len(watched.files()) == files, name)
        tell(f"{name}, {files:,} files: {took:.1f} s, {watched.memory_mb():.0f} MB")
        if name == "first start":
            assert watched.stop() == 0
    time.sleep(70)  # looks at the whole become rare
    before = watched.cpu_s()
    time.sleep(idle_s)
    tell(f"at rest: {watched.cpu_s() - before:.2f} s of processor time in {idle_s:.0f} s")
    write_pdf(watched.papers / "new.pdf", GLACIERS)
    tell(f"new paper: {until(lambda: 'new.pdf' in watched.files(), 'new'):.1f} s (the first loads the model)")
    write_pdf(watched.papers / "newer.pdf", (*GLACIERS, *OTTERS))
    tell(f"second new paper: {until(lambda: 'newer.pdf' in watched.files(), 'newer'):.1f} s")
    (watched.papers / "new.pdf").rename(watched.papers / "moved.pdf")
    tell(f"moved: {until(lambda: 'moved.pdf' in watched.files(), 'moved'):.1f} s")
    (watched.papers / "moved.pdf").unlink()
    tell(f"deleted: {until(lambda: 'moved.pdf' not in watched.files(), 'deleted'):.1f} s")
    tell(f"then {watched.memory_mb():.0f} MB")
    assert watched.stop() == 0


def kills(watched: Watched) -> None:
    """SIGKILL at growing times while twelve papers are read: what is next picks up."""
    for number in range(12):
        write_pdf(watched.papers / f"{number}.pdf", (*OTTERS * 3, f"Paper {number} is about {number} things."))
    for seconds in (1.0, 2.0, 3.0, 4.0, 5.0):
        watched.start()
        time.sleep(seconds)
        watched.stop(signal.SIGKILL)
    watched.start()
    until(lambda: len(watched.files()) == 12 and "In step" in watched.said(), "all papers after kills")
    assert watched.stop() == 0
    assert watched.verify()


def drive(watched: Watched) -> None:
    """A real file system that is mounted below the folder, unmounted, and mounted again."""
    write_pdf(watched.papers / "own.pdf", OTTERS)
    usb = watched.papers / "usb"
    usb.mkdir()
    disk = watched.root / "disk.img"
    with disk.open("wb") as file:
        file.truncate(16 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(disk)], check=True)

    def mount() -> None:
        subprocess.run(["mount", "-o", "loop", str(disk), str(usb)], check=True)

    mount()
    try:
        write_pdf(usb / "a.pdf", GLACIERS)
        watched.start()
        until(lambda: len(watched.files()) == 2, "both papers")
        subprocess.run(["umount", str(usb)], check=True)
        until(lambda: "usb is away" in watched.said(), "said that it is away")
        time.sleep(5)
        assert watched.files() == {"own.pdf", "usb/a.pdf"}
        mount()
        write_pdf(usb / "b.pdf", (*GLACIERS, *OTTERS))
        until(lambda: "usb/b.pdf" in watched.files(), "the paper of the drive that is back")
        assert watched.stop() == 0
    finally:
        subprocess.run(["umount", str(usb)], check=False, stderr=subprocess.DEVNULL)


def full_disk(watched: Watched) -> None:
    """The disk of the store fills, and is freed."""
    watched.store.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(watched.store)], check=True)
    try:
        write_pdf(watched.papers / "a.pdf", OTTERS)
        watched.start()
        until(lambda: "a.pdf" in watched.files(), "the first paper")
        filler = watched.store / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        write_pdf(watched.papers / "b.pdf", (*GLACIERS * 4, *OTTERS))
        until(lambda: "no space left" in watched.said(), "said that the disk is full")
        filler.unlink()
        until(lambda: "added: b.pdf" in watched.said(), "the paper after space was freed")
        assert watched.stop() == 0
        assert watched.verify()
    finally:
        subprocess.run(["umount", str(watched.store)], check=False)


def limit(watched: Watched) -> None:
    """The system gives no watches: the folder is looked through."""
    none_left = "echo 0 > /proc/sys/user/max_inotify_watches; exec \"$@\""
    watched.start("unshare", "-Ur", "sh", "-c", none_left, "sh")
    until(lambda: "does not tell what changes" in watched.said(), "said that it is looked through")
    write_pdf(watched.papers / "a.pdf", OTTERS)
    until(lambda: "a.pdf" in watched.files(), "the paper")
    watched.stop()


FAULTS = (kills, drive, full_disk, limit)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000, help="files in the folder; 0: only the faults")
    parser.add_argument("--idle", type=float, default=60, help="seconds at rest to measure")
    given = parser.parse_args(argv)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="watching-") as folder:
        for fault in FAULTS:
            watched = Watched(Path(folder, fault.__name__))
            try:
                fault(watched)
                tell(f"{fault.__name__}: held")
            except Exception as error:
                failed += 1
                said = watched.said() if watched.log.exists() else ""
                tell(f"{fault.__name__}: {type(error).__name__}: {error}\n{said}")
            finally:
                if watched.process is not None and watched.process.poll() is None:
                    watched.process.kill()
        if given.files:
            measure(Watched(Path(folder, "many")), given.files, given.idle)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
