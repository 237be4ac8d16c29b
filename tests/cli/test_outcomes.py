"""Answers with every outcome, by whole commands: what is marked, what was left out, what is said while one waits."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import pytest
from rich.console import Console

from folio.answer_types import Checking, Evidence, RejectedSentence, Thinking
from folio.cli import session
from folio.cli.session import WaitingStatus
from tests.helpers.cli_runner import CliRunner
from tests.helpers.live_server import until
from tests.helpers.scripted_answerer import (
    FALSE,
    IS_LONG,
    IS_THICK,
    OTHER_REASON,
    REASON,
    RETREATS,
    STEPS,
    Part,
    every_outcome,
    script_answers,
)

QUESTION = "How long is the Aletsch glacier?"
LEFT_OUT = f"""
Left out
• {FALSE}
  Reason: {REASON}
• Then:
  1. Stop.
  2. Rest.
  Reason: {OTHER_REASON}
"""
MEANING = "≈ in the model's own words; the quote stands beneath. Checked by llama3.1:8b (Ollama)."


@pytest.fixture
def scripted(ready: CliRunner, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    ready.settings["EMBEDDER"] = "builtin"
    script_answers(monkeypatch, every_outcome)
    return ready


def test_every_outcome_on_a_pipe(scripted: CliRunner) -> None:
    ran = scripted.query(QUESTION)
    assert ran.code == 0
    assert ran.out.startswith(
        f"{IS_LONG} [“The Aletsch Glacier”, p. 1]\n"
        "≈ Its tongue gets shorter by about 40 metres a year. [“The Aletsch Glacier”, p. 2]\n"
        f"  “{RETREATS}”\n"
        "In place of a statement that the papers do not support:\n"
        f"{IS_THICK} [“The Aletsch Glacier”, p. 2]\n"
        "≈ To read the gauge:\n"
        "  1. Go to Blatten.\n"
        "  2. Find the river:\n"
        "     | river | built |\n"
        "     | Massa | 1922  |\n"
        "  [“The Aletsch Glacier”, p. 3]\n"
        "  “The gauge stands in the river Massa and was built in 1922.”\n"
        f"{MEANING}\n"
        "\nSources\n"
    )
    assert FALSE not in ran.out
    assert "checking" not in ran.out + ran.err
    assert "2 unsupported sentences were left out. --show-dropped shows them.\n" in ran.err


def test_show_dropped_lists_what_was_left_out(scripted: CliRunner) -> None:
    ran = scripted.query("--show-dropped", QUESTION)
    assert ran.out.endswith(LEFT_OUT)
    assert ran.err.endswith("2 unsupported sentences were left out.\n")
    file = scripted.folder / "questions.txt"
    file.write_text(f"{QUESTION}\n{QUESTION}\n", encoding="utf-8")
    assert scripted.query("--batch", str(file), "--show-dropped").out.count(LEFT_OUT) == 2


def test_a_chat_lists_what_was_left_out(scripted: CliRunner) -> None:
    ran = scripted.query(typed=f"/dropped\n{QUESTION}\n/dropped\n")
    assert ran.out.endswith(LEFT_OUT)
    assert ran.out.count("Left out") == 1
    assert ran.err.splitlines()[0] == "Nothing has been asked yet."
    assert "2 unsupported sentences were left out. /dropped shows them.\n" in ran.err


def test_one_sentence_left_out_of_a_refusal(ready: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    script_answers(monkeypatch, lambda evidence: iter([RejectedSentence(FALSE, REASON)]))
    ran = ready.query(QUESTION)
    assert ran.out == "Not found in the provided papers.\n"
    assert "1 unsupported sentence was left out. --show-dropped shows it.\n" in ran.err
    shown = ready.query("--show-dropped", QUESTION)
    assert shown.out == f"Not found in the provided papers.\n\nLeft out\n• {FALSE}\n  Reason: {REASON}\n"


def test_json_has_every_outcome_and_nothing_else(scripted: CliRunner) -> None:
    ran = scripted.query("--json", "--show-dropped", QUESTION)
    found = ran.object
    assert ran.err == ""
    assert [said["outcome"] for said in found["sentences"]] == ["quoted", "reworded", "quoted", "reworded"]
    assert found["sentences"][2]["instead_of"] == FALSE
    assert found["sentences"][3]["text"] == STEPS
    assert [rejected["reason"] for rejected in found["left_out"]] == [REASON, OTHER_REASON]


# While statements wait


class Screen(io.StringIO):
    """What a terminal is sent. A status line is drawn by a thread, a few times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._read = 0

    def since(self) -> str:
        """What was sent since the last call."""
        sent = self.getvalue()[self._read :]
        self._read += len(sent)
        return sent

    def wait_for(self, text: str) -> None:
        """Wait until this was sent since the last call."""
        start = self._read
        until(lambda: text in self.getvalue()[start:])
        self._read = len(self.getvalue())


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Standard error in a terminal."""
    sent = Screen()
    console = Console(file=sent, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(session, "errors", lambda: console)
    return sent


def test_a_terminal_says_how_many_statements_wait(screen: Screen) -> None:
    with WaitingStatus(quiet=False) as waiting:
        screen.wait_for("Reading the papers ...")
        waiting.on_progress(Checking(1))
        screen.wait_for("checking 1 more")
        waiting.on_progress(Checking(2))
        screen.wait_for("checking 2 more")
        with waiting.hidden():
            screen.since()
            assert screen.since() == ""  # nothing is drawn into the sentence
        screen.wait_for("checking 2 more")  # it goes on after the sentence
        waiting.on_progress(Checking(0))
        screen.since()
        with waiting.hidden():
            pass
        assert screen.since() == ""
    assert screen.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # the line is gone, the cursor is back


def test_until_the_first_sentence_the_papers_are_read(screen: Screen) -> None:
    with WaitingStatus(quiet=False) as waiting:
        waiting.on_progress(Checking(1))
        screen.wait_for("checking 1 more")
        waiting.on_progress(Checking(0))
        screen.wait_for("Reading the papers ...")
        waiting.on_progress(Thinking())
        screen.wait_for("The model is thinking ...")
        with waiting.hidden():
            pass
        waiting.on_progress(Thinking())  # of a second attempt, say
        screen.since()
        assert screen.since() == ""


def test_nothing_is_said_when_it_is_quiet(screen: Screen) -> None:
    with WaitingStatus(quiet=True) as waiting:
        waiting.on_progress(Checking(2))
        with waiting.hidden():
            pass
    assert screen.getvalue() == ""


def test_a_command_says_what_its_answerer_is_checking(
    ready: CliRunner, monkeypatch: pytest.MonkeyPatch, screen: Screen
) -> None:
    def script(evidence: Sequence[Evidence]) -> Iterator[Part]:
        for part in every_outcome(evidence):
            yield part
            if isinstance(part, Checking) and part.count:
                screen.wait_for(f"checking {part.count} more")

    script_answers(monkeypatch, script)
    ran = ready.query(QUESTION)
    assert ran.code == 0
    assert "checking" not in ran.out + ran.err
    screen.since()
    script_answers(monkeypatch, every_outcome)
    assert ready.query("--json", QUESTION).code == 0
    assert screen.since() == ""
