"""Hours of kills, damaged files, hostile PDFs, swapped files and full disks. Not part of `make test`; a slice of it is.

    python scripts/campaign.py --seed 1 --trials 5000 --jobs 2 --out campaign.jsonl
    python scripts/campaign.py --only flips,kills --minutes 10 --out campaign.jsonl
    python scripts/campaign.py --replay flips-1-42

A trial breaks something while Folio works or between two commands. Then the store is opened and verified, the command
is run to its end, and the store is compared with a fresh one: content, ranking and answers. Everything random in a
trial comes from its seed. Run again with the same file, the campaign continues where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A script run as a file can import only from its own folder, where `campaign` is this file.
sys.path.insert(0, str(ROOT))

_SHOWN = 30  # failures that are listed at the end


def main(argv: list[str] | None = None) -> int:
    from campaign.run import KINDS, campaign, done_in, seeds, table

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of the campaign (default: 1)")
    parser.add_argument("--trials", type=int, default=5000, help="how many (default: 5000)")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of trials (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument("--out", type=Path, help="file with a line of JSON for each trial; continued if it is there")
    parser.add_argument("--papers", type=Path, action="append", help="a folder with PDFs to mutate, several times")
    parser.add_argument("--replay", metavar="SEED", action="append", help="run this trial alone, such as flips-1-42")
    given = parser.parse_args(argv)
    kinds = given.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"unknown kinds: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    beside = [ROOT.parent / "shared" / name for name in ("papers", "nasty")]
    sources = given.papers or [folder for folder in beside if folder.is_dir()] or [ROOT / "papers"]
    if given.replay:
        return _replay(given.replay, sources)
    if given.out is None:
        parser.error("--out is needed")
    groups = seeds(kinds, given.seed, given.trials)
    campaign(groups, given.out, sources, jobs=given.jobs, minutes=given.minutes)
    wanted = {seed for group in groups for seed in group}
    results = [result for result in done_in(given.out) if result.seed in wanted]
    failed = [result for result in results if not result.held]
    print(table(results))
    for result in failed[:_SHOWN]:
        print(f"\n{result.seed}: {result.what}\n  {result.failure}\n  {'; '.join(result.commands)}")
    return 1 if failed or not results else 0


def _replay(seeds: list[str], sources: list[Path]) -> int:
    from campaign.run import Runner, prepare, workplace

    prepare()
    code = 0
    with workplace() as work:
        for seed in seeds:
            for result in Runner(work, sources).run([seed]):
                outcome = "held" if result.held else f"failed: {result.failure}"
                print(f"{result.seed}: {result.what}\n  {outcome} ({result.seconds:.1f} s)", flush=True)
                print(*(f"  {command}\n" for command in result.commands), sep="", end="", flush=True)
                code |= not result.held
    return code


if __name__ == "__main__":
    sys.exit(main())
