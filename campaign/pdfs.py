"""Mutated and hostile PDFs, read in the guarded worker processes with small limits."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from campaign import papers
from campaign.bench import Bench
from campaign.bombs import bomb
from campaign.desk import Failed, Work
from campaign.mutations import mutate
from campaign.result import Result

LIMITS = {"PARSE_TIMEOUT_S": "15", "PARSE_MEMORY_MB": "512", "MAX_FILE_MB": "20"}
_SOUND = {"sound-a.pdf": (0, 0), "sound-b.pdf": (1, 0)}
_ASKED = papers.questions([0, 1])
_BOMBS = 0.08  # share of the handmade ones
_TWICE = 0.1  # share of ingests that are done again, to compare
_MAX_SOURCE = 20_000_000  # bytes: larger ones are not mutated
_MAX_TITLE = 10_000  # characters


def batch(bench: Bench, group: Sequence[str], sources: Sequence[Path]) -> list[Result]:
    """Ingest these mutants together; those of an ingest that failed, one by one."""
    began, made = monotonic(), {}
    for seed in group:
        chance = random.Random(seed)
        made[seed] = bomb(chance) if chance.random() < _BOMBS else _mutant(bench, chance, sources)
    again = random.Random(group[0]).random() < _TWICE
    failures: dict[str, str] = {}
    try:
        failures = _ingest(bench, {seed: content for seed, (content, _) in made.items()}, again=again)
        try:
            _without(bench, group)
        except Failed as failed:
            failures.setdefault(group[0], f"With these papers gone again: {failed}")
    except Failed as failed:
        if len(group) > 1:
            alone = [result for seed in group for result in batch(bench, [seed], sources)]
            if not all(result.held for result in alone):
                return alone
        failures[group[0]] = str(failed) + (" (with the others of its batch only)" if len(group) > 1 else "")
    seconds = round((monotonic() - began) / len(group), 3)
    desk = bench.desk
    memory = round(desk.main_mb), round(desk.worker_mb)
    return [
        Result(seed, "pdfs", seed not in failures, seconds, *memory, made[seed][1], failures.get(seed, ""))
        for seed in group
    ]


def _ingest(bench: Bench, mutants: dict[str, bytes], *, again: bool) -> dict[str, str]:
    """Ingest mutants beside sound papers; returns what is wrong with any. Raises Failed if the whole failed."""
    desk = bench.desk
    bench.reference(_SOUND, _ASKED)
    desk.settings, desk.read = dict(LIMITS), "workers"
    found = []
    for jobs in ("1", "2")[: 1 + again]:
        desk.clear()
        desk.lay_out(_SOUND)
        for seed, content in mutants.items():
            desk.put(f"{seed}.pdf", content)
        ended = desk.ingest("--jobs", jobs)
        if ended.code not in (0, 1):
            raise Failed(f"The ingest ended with {ended.code}: {ended.said}")
        found.append(bench.content())
    record = {path: entry for entry in json.loads(desk.record.read_text()) for path in entry["paths"]}
    wrong = {seed: fault for seed in mutants if (fault := _fault(record.get(str(desk.papers / f"{seed}.pdf"))))}
    if again:
        for seed in mutants:
            one, other = (content.get(f"{seed}.pdf", {}).get("text") for content in found)
            if one and other and one != other:
                wrong[seed] = "Read twice, it gave two texts."
    bench.verify(0)
    return wrong


def _without(bench: Bench, mutants: Sequence[str]) -> None:
    """Drop the mutants again: what is left equals a store that never had them."""
    desk = bench.desk
    for seed in mutants:
        (desk.papers / f"{seed}.pdf").unlink()
    ended = desk.ingest("--prune")
    if ended.code:
        raise Failed(f"The ingest ended with {ended.code}: {ended.said}")
    bench.require_equal(bench.reference(_SOUND, _ASKED), _ASKED)


def _fault(entry: dict[str, Any] | None) -> str:
    """What is wrong with what ingested.json says of a file: it must have text, or a sentence that says why not."""
    if entry is None:
        return "ingested.json does not name it."
    if "failed" in entry:
        told = entry["failed"].endswith((".", ".)")) and entry["remedy"].endswith(".")
        if not told:
            return f"No sentence: {entry['failed'][:200]!r} {entry['remedy'][:200]!r}"
        return f"Too long a sentence: {entry['failed'][:200]}" if len(entry["failed"]) > 1000 else ""
    if not entry["chunks"] or not entry["pages"]:
        return "It has no text, and was added."
    if len(json.dumps([entry["title"], entry["authors"], entry["problems"]])) > _MAX_TITLE:
        return "Its title, authors or problems are not bounded."
    return ""


def _mutant(bench: Bench, chance: random.Random, sources: Sequence[Path]) -> tuple[bytes, str]:
    """A change of one of the sources, or of a few of its pages."""
    files = [path for folder in sources for path in sorted(folder.rglob("*.pdf"))]
    path = chance.choice(files)
    form = chance.choice(("cut", "cut", "expanded", "expanded", "whole"))
    if path.stat().st_size > 300_000 and form == "whole":
        form = "cut"
    content = path.read_bytes() if form == "whole" else _few_pages(bench, path, form)
    changed, how = mutate(content, chance)
    return changed, f"{path.name}, {form}: {how}"


def _few_pages(bench: Bench, path: Path, form: str) -> bytes:
    """The first pages of a PDF as a PDF, its streams decompressed if it is to be expanded; a made paper if it has none.

    It is made in a process of its own: some of the sources are not sound.
    """
    kept = bench.desk.cache / "sources" / f"{path.stem}-{path.stat().st_size}-{form}.pdf"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        bench.desk.root.joinpath("tmp").mkdir(parents=True, exist_ok=True)
        new = bench.desk.root / "few.pdf"
        new.unlink(missing_ok=True)
        with suppress(Failed):  # some of the sources end the process
            bench.desk.run(_cut(path, new, form))
        made = new.read_bytes() if new.exists() else b""
        new.write_bytes(made if 0 < len(made) < 2_000_000 else papers.content((5, 0)))
        new.replace(kept)
    return kept.read_bytes()


def _cut(path: Path, new: Path, form: str) -> Work:
    def cut() -> int:
        import pymupdf

        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
        if path.stat().st_size > _MAX_SOURCE:
            return 0
        try:
            document = pymupdf.open(path)
            document.select(range(min(3, len(document))))
            options = {"expand": 255} if form == "expanded" else {"deflate": True}
            new.write_bytes(document.tobytes(garbage=3, no_new_id=True, **options))
        except Exception:
            return 0
        return 0

    return cut
