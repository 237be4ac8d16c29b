"""SIGKILL at a random write step or at a random time, over all that writes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from campaign import papers
from campaign.bench import Bench
from campaign.desk import Desk, Failed, Work
from campaign.papers import Name
from campaign.web import ACKNOWLEDGED, Request, acknowledged, session
from campaign.write_steps import killed_at

ACTIONS = ("first", "ingest", "replace", "prune", "rebuild", "repair", "upload", "remove", "chat")
_VARIANTS = 3  # of each change of each size: what a reference costs is shared by the trials
_UPLOAD = "uploaded.pdf"


@dataclass(frozen=True)
class Change:
    """What happens to the papers, and the command that is killed."""

    before: dict[str, Name]
    after: dict[str, Name]
    work: Callable[[Desk], Work]
    in_folder: dict[str, Name] | None = None  # what is put there before the command, if it is not `after`


def trial(bench: Bench, chance: random.Random) -> None:
    """Kill a command, one to three times; then complete it, and compare."""
    desk = bench.desk
    size = bench.size(chance)
    action, variant = chance.choice(ACTIONS), chance.randrange(_VARIANTS if size < 100 else 1)
    if action == "first" and size > 12:
        action = "ingest"
    change = change_of(action, size, variant)
    asked = papers.questions([0, size - 1, size // 2, size + 1])
    reference = bench.reference(change.after, asked)

    def prepare() -> None:
        bench.start(size)
        if action == "first":
            desk.clear()
        desk.lay_out(change.after if change.in_folder is None else change.in_folder)

    key = f"{action}-{size}-{variant}"
    by_step = not desk.whole and chance.random() < 0.8
    kills = chance.choices((1, 2, 3), (80, 15, 5))[0]
    prepare()
    steps = bench.steps(key, change.work(desk)) if by_step else 0
    seconds = 0.0 if by_step else bench.seconds(key, change.work(desk))
    prepare()
    done = []
    for _ in range(kills):
        desk.root.joinpath(ACKNOWLEDGED).unlink(missing_ok=True)
        if by_step:
            step = chance.randint(1, max(1, steps))
            ended = desk.run(change.work(desk), around=killed_at(desk, step))
            done.append(f"step {step} of {steps}")
        else:
            after = chance.uniform(0, 1.05 * seconds)
            ended = desk.run(change.work(desk), kill_after=after, group=desk.whole and action in _SERVED)
            done.append(f"{after:.3f} s of {seconds:.3f}")
        desk.commands.append(f"{action} killed at {done[-1]} -> {ended.code}")
        bench.what = f"{action} of {size}, variant {variant}, killed at {', '.join(done)}"
        turns = [turn for turn in acknowledged(desk) if turn.get("saved")]
        bench.verify(0, 1)
        if action == "chat":
            bench.require_conversations(turns)
    if chance.random() < 0.3:
        _ask(bench, asked, change)
    complete(bench, action, change)
    bench.require_equal(reference, asked)
    if action == "chat":
        bench.require_conversations([turn for turn in acknowledged(desk) if turn.get("saved")])
    if action != "first":
        bench.require_said()


_SERVED = ("upload", "remove", "chat")


def change_of(action: str, size: int, variant: int) -> Change:
    chance = random.Random(f"{action} {size} {variant}")
    before = {f"p{number:03}.pdf": (number, 0) for number in range(size)}
    few = chance.sample(sorted(before), max(1, min(size - 1, 1 + variant, 5)))
    new = {f"p{size + n:03}.pdf": (size + n, 0) for n in range(1 + variant)}
    replaced: dict[str, Name] = {file: (before[file][0], 1 + variant) for file in few}
    if variant == 2:  # two files swap their names
        one, other = chance.sample(sorted(before), 2)
        replaced |= {one: before[other], other: before[one]}
    if action == "first":
        return Change({}, before, lambda desk: desk.work("ingest"))
    if action == "ingest":
        return Change(before, before | new, lambda desk: desk.work("ingest"))
    if action == "replace":
        return Change(before, before | replaced, lambda desk: desk.work("ingest"))
    if action == "prune":
        left = {file: name for file, name in before.items() if file not in few}
        return Change(before, left, lambda desk: desk.work("ingest", "--prune"))
    if action == "rebuild":
        return Change(before, before | replaced, lambda desk: desk.work("ingest", "--rebuild"))
    if action == "repair":
        return Change(before, before, lambda desk: desk.work("ingest", "--repair"))
    if action == "upload":
        added: Name = (size + 3 + variant, 0)

        def upload(desk: Desk) -> Work:
            path = desk.root / "tmp" / _UPLOAD
            path.write_bytes(papers.content(added))
            return session(desk, [Request("upload", str(path))])

        return Change(before, before | {_UPLOAD: added}, upload, before)
    if action == "remove":
        gone = few[0]
        left = {file: name for file, name in before.items() if file != gone}
        return Change(
            before, left, lambda desk: session(desk, [Request("remove", papers.sha256(before[gone]))]), before
        )
    questions = [*papers.questions([0, 1])[:2], "And where was it measured?"]
    return Change(before, before, lambda desk: session(desk, [Request("chat", asked) for asked in questions]))


def complete(bench: Bench, action: str, change: Change) -> None:
    """Run the command to its end, as a person would."""
    desk = bench.desk
    ended = desk.run(change.work(desk))
    desk.commands.append(f"{action} again -> {ended.code}")
    gone = action == "remove" and "404" in ended.said  # it was removed before the kill
    if ended.code and not gone:
        raise Failed(f"{action}, completed, ended with {ended.code}: {ended.said}")
    if action in ("upload", "remove"):
        # The file of a removed paper stays in .removed, or in its place if the kill came before that.
        if action == "remove":
            desk.lay_out(change.after)
        if desk.ingest("--prune").code:
            raise Failed(f"An ingest after {action} failed: {desk.commands[-1]}")


def _ask(bench: Bench, asked: list[str], change: Change) -> None:
    """A query between the kill and the completion: an answer from these papers, or a sentence."""
    ended = bench.desk.command("query", "--sources", "--json", asked[-1])
    known = {papers.sha256(name) for name in (*change.before.values(), *change.after.values())}
    if not ended.code:
        found = {hit["paper"] for line in ended.out.splitlines() for hit in json.loads(line)["hits"]}
        if not found <= known:
            raise Failed(f"A hit of an unknown paper: {found - known}")


# In the forked process
