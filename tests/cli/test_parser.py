"""Mistyped options and commands: the error names what was probably meant."""

from __future__ import annotations

import pytest

from folio.commands import ask, evaluate, fetch, ingest, main, papers, serve


@pytest.mark.parametrize(
    ("run", "words", "error"),
    [
        (ask.main, ["--verfy"], "query.py: error: unrecognized arguments: --verfy (did you mean --verify?)"),
        (ask.main, ["how", "long", "--show-evidense=1"],
         "query.py: error: unrecognized arguments: --show-evidense=1 (did you mean --show-evidence?)"),
        (ask.main, ["--jsn", "--bach"],
         "query.py: error: unrecognized arguments: --jsn --bach (did you mean --json, --batch?)"),
        (ask.main, ["--xyzzy"], "query.py: error: unrecognized arguments: --xyzzy"),
        (ask.main, ["-V"], "query.py: error: unrecognized arguments: -V"),
        (ingest.main, ["--rebild"], "ingest.py: error: unrecognized arguments: --rebild (did you mean --rebuild?)"),
        (fetch.main, ["--serch"], "fetch.py: error: unrecognized arguments: --serch (did you mean --search?)"),
        (serve.main, ["--prt", "80"], "serve.py: error: unrecognized arguments: --prt 80 (did you mean --port?)"),
        (evaluate.main, ["--juge"], "evaluate.py: error: unrecognized arguments: --juge (did you mean --judge?)"),
        (papers.main, ["list", "--warnigs"],
         "folio papers: error: unrecognized arguments: --warnigs (did you mean --warnings?)"),
        # Only the named command's options: `folio papers edit` has --reset
        (papers.main, ["list", "--rezet"], "folio papers: error: unrecognized arguments: --rezet"),
    ],
)  # fmt: skip
def test_a_mistyped_option_is_told_with_the_one_meant(
    run: object, words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(run)
    with pytest.raises(SystemExit) as raised:
        run(words)
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == error


@pytest.mark.parametrize(
    ("run", "words", "meant"),
    [
        (ask.main, ["--style", "repot", "Why?"], " (did you mean report?)"),
        (main.main, ["asc"], " (did you mean ask?)"),
        (main.main, ["--verison"], " (did you mean --version?)"),
        (papers.main, ["lst"], " (did you mean list?)"),
        (papers.main, ["list", "--sort", "yaer"], " (did you mean year?)"),
        (papers.main, ["list", "--sort", "length"], ""),
    ],
)
def test_a_mistyped_choice_is_told_with_the_one_meant(
    run: object, words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(run)
    with pytest.raises(SystemExit) as raised:
        run(words)
    assert raised.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(meant)
    assert ("did you mean" in last) == bool(meant)


@pytest.mark.parametrize(
    ("run", "words", "error"),
    [
        (ask.main, ["--top-k", "0", "Why?"], "argument --top-k: must be a whole number, 1 or more"),
        (ask.main, ["--top-k", "1.5", "Why?"], "argument --top-k: must be a whole number, 1 or more"),
        # One more would once have ended the process, and with still more the index was called damaged
        (ask.main, ["--top-k", "10001", "Why?"], "argument --top-k: must be at most 10,000"),
        (ask.main, ["--top-k", "9" * 5000, "Why?"], "argument --top-k: must be at most 10,000"),
        (ingest.main, ["--jobs", "99999999999999999999"], "argument --jobs: must be at most 1,024"),
    ],
)
def test_a_number_has_its_bounds(run: object, words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(run)
    with pytest.raises(SystemExit) as raised:
        run(words)
    assert raised.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(error)
