"""Mistyped options and commands: the error names what was probably meant."""

from __future__ import annotations

import pytest

from folio.cli import ask, evaluate, fetch, ingest, main, papers, serve


def refusal(run: object, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The last line of a command that cannot be parsed."""
    assert callable(run)
    with pytest.raises(SystemExit) as raised:
        run(words)
    assert raised.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("run", "words", "program", "meant"),
    [
        (ask.main, ["--verfy"], "query.py", "--verify"),
        (ask.main, ["--show-evidense=1"], "query.py", "--show-evidence"),
        (ask.main, ["--jsn", "--bach"], "query.py", "--json, --batch"),
        (ask.main, ["--xyzzy"], "query.py", ""),
        (ask.main, ["-V"], "query.py", ""),
        (ingest.main, ["--rebild"], "ingest.py", "--rebuild"),
        (fetch.main, ["--serch"], "fetch.py", "--search"),
        (serve.main, ["--prt", "80"], "serve.py", "--port"),
        (evaluate.main, ["--juge"], "evaluate.py", "--judge"),
        (papers.main, ["list", "--warnigs"], "folio papers", "--warnings"),
        (papers.main, ["list", "--rezet"], "folio papers", ""),  # --reset is an option of `folio papers edit` alone
    ],
)
def test_a_mistyped_option(
    run: object, words: list[str], program: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = " ".join(word for word in words if word != "list")
    suggestion = f" (did you mean {meant}?)" if meant else ""
    assert refusal(run, words, capsys) == f"{program}: error: unrecognized arguments: {typed}{suggestion}"


@pytest.mark.parametrize(
    ("run", "words", "error"),
    [
        (ask.main, ["--style", "repot", "Why?"], " (did you mean report?)"),
        (main.main, ["asc"], " (did you mean ask?)"),
        (main.main, ["--verison"], " (did you mean --version?)"),
        (papers.main, ["lst"], " (did you mean list?)"),
        (papers.main, ["list", "--sort", "yaer"], " (did you mean year?)"),
        (papers.main, ["list", "--sort", "length"], ")"),
        (ask.main, ["how", "long", "--nonsense"], "unrecognized arguments: --nonsense"),
        (ask.main, ["--top-k", "0", "Why?"], "argument --top-k: must be a whole number, 1 or more"),
        (ask.main, ["--top-k", "1.5", "Why?"], "argument --top-k: must be a whole number, 1 or more"),
        (ask.main, ["--top-k", "-1"], "argument --top-k: must be a whole number, 1 or more"),
        # One more would once have ended the process, and with still more the index was called damaged
        (ask.main, ["--top-k", "10001", "Why?"], "argument --top-k: must be at most 10,000"),
        (ask.main, ["--top-k", "9" * 5000, "Why?"], "argument --top-k: must be at most 10,000"),
        (main.main, ["ask", "--top-k", "0"], "folio ask: error: argument --top-k: must be a whole number, 1 or more"),
        (ingest.main, ["--jobs", "99999999999999999999"], "argument --jobs: must be at most 1,024"),
        (ingest.main, ["--jobs", "two"], "argument --jobs: must be a whole number, 1 or more"),
        (ingest.main, ["--rebuild", "--verify"], "argument --verify: not allowed with argument --rebuild"),
    ],
)
def test_a_value_or_choice_that_cannot_be(
    run: object, words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = refusal(run, words, capsys)
    assert shown.endswith(error)
    assert ("did you mean" in shown) == ("did you mean" in error)
