"""Runs trials one after another, each in a process of its own, and keeps a line of JSON for each."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import resource
import shutil
import signal
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from campaign.bench import Bench
from campaign.desk import Desk, Failed, forked, preload
from campaign.result import Result

# Kinds of trials, and their shares
KINDS = {"kills": 30, "flips": 30, "pdfs": 24, "swaps": 8, "disks": 8}
# One of so many trials runs the scripts themselves, with the built-in embedder
_WHOLE_EVERY = 100
# And one of so many has a larger store: papers in it -> trials
_LARGER = {200: 40, 50: 20}
# PDFs that one ingest reads: each is a trial
BATCH = 20


def seeds(kinds: Sequence[str], seed: int, trials: int) -> list[list[str]]:
    """The seeds of a campaign in the order in which they are run; those in one list are run together."""
    total = sum(KINDS[kind] for kind in kinds)
    units: list[tuple[float, list[str]]] = []
    for kind in kinds:
        names = [f"{kind}-{seed}-{number}" for number in range(round(trials * KINDS[kind] / total))]
        step = BATCH if kind == "pdfs" else 1
        groups = [names[at : at + step] for at in range(0, len(names), step)]
        units += [((place + 0.5) / len(groups), group) for place, group in enumerate(groups)]
    return [group for _, group in sorted(units, key=lambda unit: unit[0])]


def done_in(path: Path) -> list[Result]:
    """The results in a file; a last line that was cut short is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, TypeError):
            found.append(Result(**json.loads(line)))
    return found


@dataclass
class Runner:
    """Runs trials in a folder of its own. sources: folders with PDFs to mutate."""

    work: Path
    sources: Sequence[Path]
    name: str = "desk-0"

    def run(self, group: Sequence[str]) -> list[Result]:
        """Run these trials, which are of one kind, in a forked process."""
        kind, _, number = _parts(group[0])
        answer = self.work / f"{self.name}.result"
        answer.unlink(missing_ok=True)
        began, worked = monotonic(), _cpu_s()

        def work() -> None:
            results = self._batch(group) if kind == "pdfs" else [self._one(group[0], kind, number)]
            answer.write_text("\n".join(json.dumps(asdict(result)) for result in results))

        os.waitpid(forked(work), 0)
        if not answer.exists():
            seconds = monotonic() - began
            return [Result(seed, kind, False, seconds, 0, 0, "", "The trial's own process ended.") for seed in group]
        cpu_s = round((_cpu_s() - worked) / len(group), 3)
        return [replace(Result(**json.loads(line)), cpu_s=cpu_s) for line in answer.read_text().splitlines()]

    def bench(self, *, whole: bool = False) -> Bench:
        return Bench(Desk(self.work / self.name, self.work / "cache", whole=whole))

    def _one(self, seed: str, kind: str, number: int) -> Result:
        bench = self.bench(whole=number % _WHOLE_EVERY == _WHOLE_EVERY // 2)
        if not bench.desk.whole:
            bench.larger = next((size for size, every in _LARGER.items() if number % every == every - 1), 0)
        began, failure = monotonic(), ""
        try:
            _trial(kind)(bench, random.Random(seed))
        except Failed as failed:
            failure = str(failed)
        except Exception as error:
            failure = f"The campaign itself: {''.join(traceback.format_exception(error)[-3:])}"
        desk = bench.desk
        seconds = round(monotonic() - began, 3)
        memory = round(desk.main_mb), round(desk.worker_mb)
        return Result(
            seed, kind, not failure, seconds, *memory, bench.what, failure, commands=desk.commands if failure else []
        )

    def _batch(self, group: Sequence[str]) -> list[Result]:
        from campaign import pdfs

        return pdfs.batch(self.bench(), group, self.sources)


def _trial(kind: str) -> Any:
    return importlib.import_module(f"campaign.{kind}").trial


def prepare() -> None:
    """Import everything before the first fork."""
    preload()
    for kind in KINDS:
        importlib.import_module(f"campaign.{kind}")
    gc.freeze()


def _cpu_s() -> float:
    """Seconds of processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _parts(seed: str) -> tuple[str, int, int]:
    kind, campaign, number = seed.split("-")
    if kind not in KINDS:
        raise ValueError(f"no kind of trial: {kind}")
    return kind, int(campaign), int(number)


@contextlib.contextmanager
def workplace(parent: Path | None = None) -> Iterator[Path]:
    """A folder for the desks, in memory where that is possible: what is tested is not the disk."""
    memory = Path("/dev/shm")
    if parent is None and memory.is_dir() and shutil.disk_usage(memory).free > 2 * 2**30:
        parent = memory
    work = Path(tempfile.mkdtemp(prefix="folio-campaign-", dir=parent))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the folder is removed then too
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def campaign(
    groups: Sequence[Sequence[str]], out: Path, sources: Sequence[Path], *, jobs: int, minutes: float | None
) -> None:
    """Run those trials that `out` has no line for, and append a line for each. Ends early after so many minutes."""
    finished = {result.seed for result in done_in(out)}
    left = [rest for group in groups if (rest := [seed for seed in group if seed not in finished])]
    end = None if minutes is None else monotonic() + 60 * minutes
    if out.exists() and not out.read_bytes().endswith((b"\n", b"")[:1]) and out.stat().st_size:
        with out.open("a", encoding="utf-8") as file:
            file.write("\n")
    if not left:
        return
    prepare()
    with workplace() as work:
        children = [
            forked(partial(_work, Runner(work, sources, f"desk-{job}"), left[job::jobs], out, end))
            for job in range(jobs)
        ]
        try:
            for child in children:
                os.waitpid(child, 0)
        except BaseException:
            for child in children:
                with contextlib.suppress(OSError):
                    os.kill(child, signal.SIGKILL)  # its own children end with it
                    os.waitpid(child, 0)
            raise


def _work(runner: Runner, groups: Sequence[Sequence[str]], out: Path, end: float | None) -> None:
    for group in groups:
        if end is not None and monotonic() > end:
            return
        lines = "".join(json.dumps(asdict(result)) + "\n" for result in runner.run(group))
        with out.open("a", encoding="utf-8") as file:
            file.write(lines)  # in one write: the other jobs append too


def table(results: Sequence[Result]) -> str:
    """A table by kind, in Markdown."""
    head = "| kind | tried | held | failed | peak memory, main process | its workers | longest |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- |"]
    for kind in [*(kind for kind in KINDS if any(result.kind == kind for result in results)), "all"]:
        these = [result for result in results if kind in (result.kind, "all")]
        if these:
            held = sum(result.held for result in these)
            main, worker = max(r.main_mb for r in these), max(r.worker_mb for r in these)
            lines.append(
                f"| {kind} | {len(these):,} | {held:,} | {len(these) - held:,} | {main:,.0f} MB | {worker:,.0f} MB |"
                f" {max(result.seconds for result in these):,.1f} s |"
            )
    return "\n".join(lines)
