"""The campaign of scripts/campaign.py: its own workings, and a slice of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from campaign import papers
from campaign.bench import Found, differences
from campaign.bombs import BOMBS, Bomb, bomb
from campaign.mutations import mutate
from campaign.result import Result
from campaign.run import done_in, seeds, table
from tests.helpers.paths import ROOT

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at its processes in /proc")
TRIALS = 8  # of the slice: each kind at least once, in about eight seconds of one core


def campaign(*arguments: object, sabotage: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script. sabotage: Python that breaks Folio first."""
    code = f"{sabotage}\nimport sys\nfrom scripts.campaign import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)  # on a busy computer it waits
@needs_linux
def test_nothing_gets_through_in_a_slice_of_the_campaign(tmp_path: Path) -> None:
    out = tmp_path / "slice.jsonl"
    ran = campaign("--seed", 15, "--trials", TRIALS, "--out", out)
    assert (ran.returncode, ran.stderr) == (0, ""), f"{ran.stdout}\n{ran.stderr}"
    results = done_in(out)
    assert len(results) == TRIALS
    assert {result.kind for result in results} == {"kills", "flips", "pdfs", "swaps", "disks"}
    assert ran.stdout == table(results) + "\n"
    # A second run has nothing left to do.
    before = out.read_bytes()
    again = campaign("--seed", 15, "--trials", TRIALS, "--out", out)
    assert (again.returncode, again.stdout) == (0, ran.stdout)
    assert out.read_bytes() == before


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_linux
@pytest.mark.parametrize(
    ("sabotage", "said"),
    [
        ("from folio.store import indexes; indexes.verify = lambda *_, **__: 1 / 0", "ZeroDivisionError"),
        ("from folio.store import indexes; indexes.verify = lambda *_, **__: [str(len(b'.' * 700_000_000))]", " MB."),
        ("from folio.ingest import pipeline; pipeline.prune = lambda *_, **__: []", " is there"),
    ],
)
def test_a_broken_folio_fails_a_trial(sabotage: str, said: str) -> None:
    prune = "kills-1-2"
    ran = campaign("--replay", prune, sabotage=sabotage)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.startswith(f"{prune}: prune of ")
    assert said in ran.stdout


def test_all_that_is_random_comes_from_the_seed() -> None:
    content = papers.content((3, 1))
    for seed in ("pdfs-1-1", "pdfs-1-2", "pdfs-2-1"):
        assert mutate(content, random.Random(seed)) == mutate(content, random.Random(seed))
    assert mutate(content, random.Random("a"))[0] != mutate(content, random.Random("b"))[0]
    assert papers.pages((3, 1)) != papers.pages((3, 0))
    assert bomb(random.Random("bomb")) == bomb(random.Random("bomb"))


@pytest.mark.parametrize("make", list(dict.fromkeys(BOMBS)))
def test_a_bomb_is_a_small_pdf(make: Bomb) -> None:
    assert make(random.Random(1)).startswith(b"%PDF-")
    assert len(make(random.Random(2))) < 12_000_000


def test_a_longer_campaign_holds_the_trials_of_a_shorter_one() -> None:
    kinds = ["kills", "pdfs"]
    short, long = ({seed for group in seeds(kinds, 1, trials) for seed in group} for trials in (100, 1000))
    assert len(short) == 100
    assert len(long) == 1000
    assert short < long
    assert all(len(group) == 1 or group[0].startswith("pdfs") for group in seeds(kinds, 1, 1000))


def test_a_line_that_was_cut_short_is_run_again(tmp_path: Path) -> None:
    held = Result("kills-1-0", "kills", True, 0.5, 120, 0, "a kill")
    line = json.dumps(vars(held))
    (tmp_path / "out").write_text(f"{line}\n{line[:20]}")
    assert done_in(tmp_path / "out") == [held]


def test_the_table_counts_by_kind() -> None:
    results = [
        Result("kills-1-0", "kills", True, 0.5, 120, 0, ""),
        Result("kills-1-1", "kills", False, 2.5, 110, 0, "", "It hangs."),
        Result("pdfs-1-0", "pdfs", True, 1.0, 200, 500, ""),
    ]
    assert table(results).splitlines()[2:] == [
        "| kills | 2 | 1 | 1 | 120 MB | 0 MB | 2.5 s |",
        "| pdfs | 1 | 1 | 0 | 200 MB | 500 MB | 1.0 s |",
        "| all | 3 | 2 | 1 | 200 MB | 500 MB | 2.5 s |",
    ]


FOUND: Found = {
    "content": {"a.pdf": {"text": "1", "title": "A"}},
    "ranking": [["q", [["one", 0.5, None, 1.0], ["two", 0.4, 0.3, None]]]],
    "answers": [{"answer": "It is so."}],
    "record": [{"file": "a.pdf"}],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"content": {}}, "a.pdf is not there"),
        ({"content": {"a.pdf": {"text": "2", "title": "A"}}}, "text of a.pdf is 2"),
        ({"ranking": [["q", [["one", 0.5 + 1e-9, None, 1.0], ["two", 0.4, 0.3, None]]]]}, ""),
        ({"ranking": [["q", [["one", 0.5, None, 1.00001], ["two", 0.4, 0.3, None]]]]}, "ranking: other scores"),
        ({"ranking": [["q", [["one", 0.5, 0.5, 1.0], ["two", 0.4, 0.3, None]]]]}, "ranking: other scores"),
        ({"ranking": [["q", [["two", 0.4, 0.3, None], ["one", 0.5, None, 1.0]]]]}, "ranking: another order"),
        ({"ranking": [["q", [["one", 0.5, None, 1.0]]]]}, "ranking: another order"),
        ({"answers": [{"answer": "It is not so."}]}, "answers: "),
        ({"record": []}, "ingested.json is another"),
    ],
)
def test_a_difference_from_the_fresh_store_is_told(change: Found, said: str) -> None:
    found = differences(FOUND, {**FOUND, **change})
    assert bool(found) == bool(said)
    assert said in found
