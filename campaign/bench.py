"""Stores to begin with, references to compare with, and the comparison."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import papers
from campaign.desk import Desk, Ended, Failed, Work
from campaign.papers import Name
from campaign.web import Request, session
from campaign.write_steps import counted, killed_at

Plan = Mapping[str, Name]  # file name -> the made paper in it
Found = dict[str, Any]  # what a probe found

SIZES = (3, 12)  # papers in most stores
# How a store is left before the trial: closed; with a write-ahead log, as a kill leaves it; in the middle of a rebuild
FLAVOURS = ("closed", "wal", "rebuilding")
_SCORE = 1e-6
_SAID = "said.json"  # of a desk: what people had said when its store was made


def plan(numbers: Sequence[int]) -> dict[str, Name]:
    """The first version of these papers."""
    return {f"p{number:03}.pdf": (number, 0) for number in numbers}


@dataclass
class Bench:
    """The desk of a trial, and what many trials share: stores, references, times."""

    desk: Desk
    what: str = ""  # what the trial does, to tell in its result
    larger: int = 0  # papers in its store, if that is to be a larger one

    def size(self, chance: random.Random) -> int:
        """The number of papers for the trial's store."""
        size = chance.choice(SIZES)
        return SIZES[0] if self.desk.whole else self.larger or size

    # Stores

    def start(self, size: int, flavour: str = "closed") -> dict[str, Name]:
        """Make the desk hold a store of so many papers, with a conversation, a log and an edit; returns its papers.

        The store lies where it was made: it knows its files by their paths. Its copy of what people said has all that
        `said_in_copy` tells.
        """
        made, desk, planned = self._place(f"base-{size}-{flavour}"), self.desk, plan(range(size))
        if not made.exists():
            desk.clear()
            desk.lay_out(planned)
            self._require(desk.ingest())
            asked = [Request("chat", question) for question in papers.questions([0, 1])[:2]]
            self._require(desk.run(session(desk, asked)))
            self._require(desk.command("query", papers.questions([2])[0]))
            self._require(desk.run(_edited))
            _write(desk.root / _SAID, self.said())
            self._leave(flavour)
            self._keep(made)
        desk.clear()
        desk.lay_out(planned)
        shutil.copytree(made, desk.root, dirs_exist_ok=True)
        desk.commands.clear()
        return planned

    def _leave(self, flavour: str) -> None:
        desk = self.desk
        if flavour == "wal":
            # Papers that change again and again, and no one who closes the library.
            desk.put("p000.pdf", papers.content((0, 9)))
            self._require(desk.run(_unclosed(desk, desk.work("ingest"))))
            desk.put("p000.pdf", papers.content((0, 0)))
            self._require(desk.run(_unclosed(desk, desk.work("ingest"))))
            self._require(desk.run(_unclosed(desk, desk.work("query", papers.questions([1])[0]))))
        elif flavour == "rebuilding":
            steps = self.steps(f"rebuilding-{len(list(desk.papers.iterdir()))}", desk.work("ingest", "--rebuild"))
            for step in range(steps * 9 // 10, 0, -max(1, steps // 40)):
                desk.run(desk.work("ingest", "--rebuild"), around=killed_at(desk, step))
                if (desk.store / "rebuild.sqlite").exists():
                    return
            raise Failed("No kill of a rebuild leaves rebuild.sqlite.")

    def steps(self, key: str, work: Work) -> int:
        """The number of write steps of a command; what is on the desk is used up, unless it is known already."""
        kept = self._place(f"steps-{key}.json")
        if not kept.exists():
            self._require(self.desk.run(work, around=counted(self.desk)))
            _write(kept, json.loads((self.desk.root / "steps.json").read_text()))
        return int(json.loads(kept.read_text()))

    def seconds(self, key: str, work: Work) -> float:
        """How long a command takes undisturbed; the same holds."""
        kept = self._place(f"seconds-{key}.json")
        if not kept.exists():
            ended = self.desk.run(work)
            self._require(ended)
            _write(kept, ended.seconds)
        return float(json.loads(kept.read_text()))

    def _keep(self, place: Path) -> None:
        """Keep the desk's store and record."""
        new = place.with_name(f"{place.name}.{os.getpid()}")
        new.mkdir(parents=True)
        if self.desk.store.exists():
            shutil.copytree(self.desk.store, new / "store")
        if self.desk.record.exists():
            shutil.copy(self.desk.record, new / "ingested.json")
        if (self.desk.root / _SAID).exists():
            shutil.copy(self.desk.root / _SAID, new / _SAID)
        os.replace(new, place)

    # References

    def reference(self, planned: Plan, asked: Sequence[str]) -> Found:
        """What a fresh store of these papers holds and answers; the desk is used up, unless it is known already."""
        key = hashlib.sha256(json.dumps([sorted(planned.items()), asked]).encode()).hexdigest()[:24]
        kept = self._place(f"reference-{key}.json")
        if not kept.exists():
            self.desk.clear()
            self.desk.lay_out(planned)
            self._require(self.desk.ingest())
            _write(kept, self.probe(asked))
        found: Found = json.loads(kept.read_text())
        return found

    def probe(self, asked: Sequence[str]) -> Found:
        """What the desk's store holds, ranks and answers."""
        desk = self.desk
        (desk.root / "questions.txt").write_text("\n".join(asked), encoding="utf-8")
        (desk.root / "two.txt").write_text("\n".join(asked[:2]), encoding="utf-8")
        ended = desk.run(lambda: _probe(desk))
        desk.commands.append(f"probe -> {ended.code}")
        if ended.code:
            raise Failed(f"The store cannot be asked: {ended.said}")
        found: Found = json.loads((desk.root / "probe.json").read_text())
        found["notices"] = ended.err.strip()
        return found

    def content(self) -> dict[str, dict[str, Any]]:
        """What the library holds of each file."""
        place = self.desk.root / "content.json"

        def work() -> int:
            place.write_text(json.dumps(_content()), encoding="utf-8")
            return 0

        place.unlink(missing_ok=True)
        if not (self.desk.store / "library.sqlite").exists():
            return {}
        ended = self.desk.run(work)
        if ended.code:
            raise Failed(f"The library cannot be read: {ended.said}")
        found: dict[str, dict[str, Any]] = json.loads(place.read_text())
        return found

    def _require(self, ended: Ended, codes: Sequence[int] = (0,)) -> None:
        if ended.code not in codes:
            raise Failed(f"Nothing was done to it, and it ended with {ended.code}: {ended.said}")

    def _place(self, name: str) -> Path:
        kind = "whole" if self.desk.whole else "forked"
        place = self.desk.root.with_name(f"{self.desk.root.name}-{kind}") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    # After a trial

    def verify(self, *codes: int) -> Ended:
        """Run --verify; raises Failed for another exit code than these."""
        ended = self.desk.ingest("--verify")
        if ended.code not in codes:
            raise Failed(f"--verify ended with {ended.code}: {ended.said}")
        return ended

    def require_equal(self, reference: Found, asked: Sequence[str]) -> None:
        """Raise Failed unless the desk's store is sound and equals the reference."""
        self.verify(0)
        found = self.probe(asked)
        if found["notices"] != reference["notices"]:
            raise Failed(f"A store that --verify calls consistent was repaired: {found['notices'][:300]}")
        differ = differences(reference, found)
        if differ:
            raise Failed(f"It differs from a fresh store: {differ}")
        left = [path.name for path in self.desk.store.rglob("*") if path.name.endswith(".new")]
        if left:
            raise Failed(f"Partial files are left: {left}")

    def conversations(self) -> dict[str, list[dict[str, str]]]:
        """The turns of each conversation, by its id."""
        ended = self.desk.run(session(self.desk, [Request("conversations", "")]))
        if ended.code:
            raise Failed(f"The conversations cannot be read: {ended.said}")
        found: dict[str, list[dict[str, str]]] = json.loads(ended.out.splitlines()[-1])
        return found

    def said(self) -> Found:
        """What people said: the turns of conversations, the log, and edits."""
        place = self.desk.root / "said-now.json"
        place.unlink(missing_ok=True)
        ended = self.desk.run(lambda: _write_said(place))
        if ended.code:
            raise Failed(f"What people said cannot be read: {ended.said}")
        found: Found = json.loads(place.read_text())
        return found

    def require_said(self, *, may_change: bool = False) -> None:
        """Raise Failed unless all is there that people had said when the store was made, as its copy has it.

        may_change: an edit may have another text.
        """
        before, found = json.loads((self.desk.root / _SAID).read_text()), self.said()
        for kind in before:
            if may_change and kind == "edits":
                before[kind], found[kind] = ([row[:2] for row in rows[kind]] for rows in (before, found))
            if lost := [row for row in before[kind] if row not in found[kind]]:
                raise Failed(f"Of what people said, {kind} are lost: {str(lost)[:300]}")

    def require_conversations(self, acknowledged: Sequence[Mapping[str, Any]]) -> None:
        """Raise Failed unless each of these turns is kept, and every conversation can be read."""
        kept = [turn for turns in self.conversations().values() for turn in turns]
        for turn in acknowledged:
            if not any(turn["message"] == other["message"] and turn["answer"] == other["answer"] for other in kept):
                raise Failed(f"An acknowledged turn is lost: {turn['message']}")


def differences(reference: Found, found: Found) -> str:
    """How two stores differ; empty if they do not."""
    for file in sorted({*reference["content"], *found["content"]}):
        one, other = reference["content"].get(file), found["content"].get(file)
        if one is None or other is None:
            return f"{file} is {'not ' if other is None else ''}there"
        for field in one:
            if one[field] != other[field]:
                return f"{field} of {file} is {str(other[field])[:120]}, and {str(one[field])[:120]} in a fresh one"
    if reference["record"] != found["record"]:
        return "ingested.json is another"
    for (question, before), (_, after) in zip(reference["ranking"], found["ranking"], strict=True):
        if [hit[0] for hit in before] != [hit[0] for hit in after]:
            return f"ranking: another order for {question!r}: {_first_difference(before, after)}"
        for (hit, *scores), (_, *others) in zip(before, after, strict=True):
            if any(_apart(one, other) for one, other in zip(scores, others, strict=True)):
                return f"ranking: other scores for {question!r}, {hit}: {others}, and {scores} in a fresh one"
    if reference["answers"] != found["answers"]:
        return f"answers: {str(found['answers'])[:200]}, and {str(reference['answers'])[:200]} in a fresh one"
    return ""


def _apart(one: float | None, other: float | None) -> bool:
    return (one is None) != (other is None) or (one is not None and other is not None and abs(one - other) > _SCORE)


def _first_difference(before: Sequence[Any], after: Sequence[Any]) -> str:
    for place, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one[0] != other[0]:
            return f"{place}. is {other}, and {one} in a fresh one"
    return f"{len(after)} hits, and {len(before)} in a fresh one"


def _unclosed(desk: Desk, work: Work) -> Work:
    """The work with both files of the library open besides, and no end: the write-ahead logs stay."""

    def unclosed() -> int:
        import sqlite3

        held = [sqlite3.connect(desk.store / name) for name in ("library.sqlite", "user.sqlite")]
        for connection in held:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        code = work()
        sys.stdout.flush()
        os._exit(code)

    return unclosed


def _edited() -> int:
    """In the forked process: edit a paper, in a field that no comparison looks at, and copy what people said."""
    from folio.app import from_environment
    from folio.papers.metadata import Field, Metadata
    from folio.store.user_file import copy_now, user_file_of

    app = from_environment(print)
    with closing(app.open_library()) as library:
        library.set_metadata(library.papers()[0].id, "person", Metadata(publisher=Field("A Press", "person", True)))
    copy_now(user_file_of(app.library_path))
    return 0


def _write_said(place: Path) -> int:
    """In the forked process: write down what people said."""
    from folio.app import from_environment

    with closing(from_environment(print).open_library()) as library:
        query = library.database.query
        turns = query("SELECT conversation, place, reply FROM turns ORDER BY conversation, place")
        found = {
            "turns": [
                (id, place, json.loads(reply)["message"], json.loads(reply)["answer"]) for id, place, reply in turns
            ],
            "questions": query("SELECT id, question, answer, sources FROM queries ORDER BY id"),
            "edits": query("SELECT paper, source, fields FROM metadata ORDER BY paper, source"),
        }
    _write(place, found)
    return 0


def _probe(desk: Desk) -> int:
    """In the forked process: write down what the store holds and answers."""
    ranking, answers = [], []
    for passages in _asked("questions.txt", "--sources", "--top-k", "10"):
        hits = [
            [
                f"{hit['paper'][:12]}/{hit['pages']}/{hashlib.sha256(hit['text'].encode()).hexdigest()[:8]}",
                hit["score"], hit["dense"], hit["bm25"],
            ]
            for hit in passages["hits"]
        ]  # fmt: skip
        ranking.append((passages["question"], hits))
    for answer in _asked("two.txt", "--no-log"):
        answers.append({name: value for name, value in answer.items() if name not in ("timings_ms", "hits")})
    record = [{k: v for k, v in entry.items() if k != "added"} for entry in json.loads(desk.record.read_text())]
    found = {"content": _content(), "ranking": ranking, "answers": answers, "record": record}
    (desk.root / "probe.json").write_text(json.dumps(found), encoding="utf-8")
    return 0


def _asked(file: str, *options: str) -> list[dict[str, Any]]:
    from folio.cli import ask

    shown, sys.stdout = sys.stdout, io.StringIO()
    try:
        code = ask.main(["--batch", file, "--json", *options])
        lines = sys.stdout.getvalue().splitlines()
    finally:
        sys.stdout = shown
    if code:
        raise SystemExit(code)
    return [json.loads(line) for line in lines]


def _content() -> dict[str, dict[str, Any]]:
    """What the library has of each file."""
    from folio.app import from_environment
    from folio.store.library import Library

    with closing(Library(from_environment(print).library_path)) as library, library.reading():
        vectors = {i: row.tobytes() for ids, rows in library.vectors() for i, row in zip(ids, rows, strict=True)}
        known = {paper.id: paper for paper in library.papers()}
        content: dict[str, dict[str, Any]] = {}
        for file in library.files():
            paper = known[file.sha256]
            chunks = sorted(library.chunks(library.chunk_ids_of([paper.id])).values(), key=lambda chunk: chunk.start)
            text = library.text(paper.id, 0, paper.length)
            content[file.name] = {
                "path": file.path,
                "sha256": paper.id,
                "title": paper.title,
                "authors": list(paper.authors),
                "year": paper.year,
                "starts": list(paper.pages.starts),
                "labels": list(paper.pages.labels),
                "problems": list(paper.problems),
                "text": hashlib.sha256(text.encode()).hexdigest(),
                "chunks": [(chunk.id, chunk.start, chunk.end) for chunk in chunks],
                "vectors": hashlib.sha256(b"".join(vectors[chunk.id] for chunk in chunks)).hexdigest(),
            }
        failures = {f.file.name: [f.file.path, f.file.sha256, f.happened] for f in library.failures()}
        return {**content, **{f"failed {name}": {"failure": failure} for name, failure in failures.items()}}


def _write(path: Path, value: object) -> None:
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value), encoding="utf-8")
    os.replace(new, path)
