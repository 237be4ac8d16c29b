"""What reaches a terminal, and a chat in a real one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.shown_text import plain
from tests.helpers.answers import endless
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

import fcntl
import pty
import termios

QUESTION = "How long is the Aletsch glacier?"
FIRST = "The Aletsch glacier has a length of 23 kilometres"
# The page's sentence, shown in place of what the model writes
QUOTED = f"{FIRST} and covers 82 square kilometres of the Bernese Alps. [“The Aletsch Glacier”, p. 1]"
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
WAIT_S = 120.0  # until a test is given up
READY = "(ready)"  # stands for the mark by which the prompt tells the terminal that it takes input


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text, with ümläuts — and 文字 ✓\n", "plain text, with ümläuts — and 文字 ✓\n"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x9b2J", "\ufffd2J"),  # the same as ESC [ in one character
        ("a\x00b\x08c\x7f", "a\ufffdb\ufffdc\ufffd"),
        ("safe\u202efdp.exe", "safe\ufffdfdp.exe"),  # what follows would read from right to left
        ("one\rtwo\ttabs\x0bline", "one two tabs line"),
        ("a\u00a0b\u202fc\u2028d", "a b c d"),
        ("می‌خواهم", "می‌خواهم"),  # Persian, spelt with a joiner
        ("\ud800", "\ufffd"),  # a byte of a file name that is no text
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_file_names_titles_and_answers_of_whole_commands(desk: CliRunner, ollama_server: OllamaStandIn) -> None:
    small_papers(desk.papers)
    name = "\x1b]0;owned\x07ice [red].pdf"
    write_pdf(desk.papers / name, ["The Rhone glacier has a length of 8 kilometres in all."], "Title \x1b[31m [red]")
    (desk.papers / "\x1b[31mbad.pdf").write_text("no")
    desk.settings |= {"OLLAMA_HOST": ollama_server.url}
    ollama_server.reply = lambda messages: "The Rhone \x1b\x9bglacier has a\r length of 8 kilometres\x07 [1]."
    question = "How long is the Rhone glacier?"
    for ran in (
        desk.ingest(),
        desk.query(question),
        desk.query("--sources", question),
        desk.query("--paper", "\x1b[31mnone", question),
        desk.query("--batch", "\x1b[31mnone"),
        desk.query("--doctor"),
        desk.ingest("\x1b[31mnone"),
    ):
        assert not STEERING.search(ran.out + ran.err)
    assert "ice [red]" in desk.query(question).out


def test_a_file_name_with_a_line_end_forges_no_line(desk: CliRunner) -> None:
    name = "rhone\nNot found in the provided papers.\nice.pdf"
    write_pdf(desk.papers / name, ["The Rhone glacier has a length of 8 kilometres in all."])
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    desk.ingest()
    question = "How long is the Rhone glacier?"
    answers = [desk.query(question), desk.query("--sources", question), desk.query("--verify", question)]
    answers.append(desk.query("Who painted the ceiling of the Sistine chapel in Rome?"))
    (desk.papers / name).unlink()
    answers.append(desk.query("--verify", question))
    told = [line for ran in answers for line in (ran.out + ran.err).splitlines()]
    assert sum("rhone Not found in the provided papers. ice" in line for line in told) >= len(answers)
    assert [line for line in told if line.startswith(("Not found", "ice"))] == ["Not found in the provided papers."]


# A chat in a pseudo-terminal


class Terminal:
    """A command in a pseudo-terminal of its own, as a person has it before them."""

    def __init__(self, desk: CliRunner, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        # A new session whose controlling terminal is ours, so that Ctrl-C reaches the command as it does in a shell.
        take_over = (
            "import fcntl, os, sys, termios;fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x28\x00\x64\x00\x00\x00\x00\x00")  # 40 lines of 100 characters
        self.process = subprocess.Popen(
            [sys.executable, "-c", take_over, sys.executable, str(ROOT / "query.py"), *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**desk.environment(), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
            cwd=desk.folder,
            start_new_session=True,
        )
        os.close(slave)
        self._seen = ""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._master, 4096)
            except OSError:  # the other end is closed
                return
            with self._changed:
                self._seen += piece.decode(errors="replace")
                self._changed.notify_all()

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> str:
        """What was printed up to this text; it is then forgotten."""
        with self._changed:
            there = self._changed.wait_for(lambda: text in self._words(), WAIT_S)
            assert there, f"{text!r} did not come; there was {self._words()!r}"
            before, _, self._seen = self._words().partition(text)
        return before

    def _words(self) -> str:
        """What was printed, without the marks that move the cursor and colour, its white space made one."""
        seen = self._seen.replace("\x1b[?2004h", READY)
        return re.sub(r"\s+", " ", re.sub(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[=>78])|\x08", "", seen))

    def end(self) -> tuple[int, str]:
        """The exit code, when it has ended, and what it printed last."""
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        os.close(self._master)
        return code, self._words()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.end()


@pytest.fixture
def slow(ready: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    """A desk whose answers take most of a minute."""
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "ANSWER_FORMAT": "statements"}
    ollama_server.reply = lambda messages: f"{FIRST} [1]. It is so " + "and so on " * 500
    ollama_server.faults.between_pieces_s = 0.05
    return ready


@pytest.fixture
def chat(slow: CliRunner) -> Iterator[Terminal]:
    terminal = Terminal(slow)
    yield terminal
    terminal.kill()


def test_ctrl_c_stops_a_slow_answer_and_not_the_chat(
    chat: Terminal, slow: CliRunner, ollama_server: OllamaStandIn
) -> None:
    chat.wait_for("Ctrl-C stops an answer")
    chat.wait_for(READY)
    chat.type("\x03")  # with nothing to stop it gives a fresh line
    chat.wait_for(READY)
    chat.type(f"{QUESTION}\r")
    chat.wait_for(QUOTED)
    chat.type("\x03")
    between = chat.wait_for("Stopped.")
    assert "Sources" not in between
    assert "Traceback" not in between
    chat.wait_for(READY)
    ollama_server.faults.between_pieces_s = 0
    ollama_server.reply = lambda messages: f"{FIRST} [1]."
    chat.type("\x1b[A")  # the arrow brings the last question back
    chat.wait_for(QUESTION)
    chat.type("\r")
    chat.wait_for(QUOTED)
    chat.wait_for("Sources")
    chat.wait_for(READY)
    chat.type("/sources\r")
    chat.wait_for("1. alps/glaciers.pdf, pp. 1–3")
    chat.wait_for(READY)
    chat.type("/quit\r")
    code, rest = chat.end()
    assert (code, "Traceback" in rest) == (0, False)
    assert [len(body["messages"]) for body in ollama_server.bodies("/api/chat")] == [2, 2]  # no turn to rewrite from
    assert f"+{QUESTION}" in Path(slow.store / "chat_history").read_text()
    assert list((slow.folder / "home").iterdir()) == []


def test_links_to_pages_and_pictures_are_not_broken_over_lines(ready: CliRunner) -> None:
    """A terminal makes them something to click on, where they are whole."""
    ready.settings |= {"LLM": "builtin", "PDF_VIEWER": "none"}
    terminal = Terminal(ready, "--verify", "--no-log", QUESTION)
    pdf = ready.papers / "alps" / "glaciers.pdf"
    terminal.wait_for(f"{FIRST}")
    terminal.wait_for("Sources")
    terminal.wait_for(f"1. alps/glaciers.pdf, p. 1 {pdf.as_uri()}#page=1 ")
    code, rest = terminal.end()
    assert code == 0
    (drawn,) = re.findall(r"(\S+/glaciers-p1\.png)", rest)
    assert Path(drawn).read_bytes().startswith(b"\x89PNG")
    shutil.rmtree(Path(drawn).parent)


def test_ctrl_c_while_the_model_is_silent(chat: Terminal, ollama_server: OllamaStandIn) -> None:
    ollama_server.faults.first_byte_s = 60
    chat.wait_for(READY)
    chat.type(f"{QUESTION}\r")
    chat.wait_for("Reading the papers")
    while not ollama_server.bodies("/api/chat"):
        time.sleep(0.01)
    chat.type("\x03")
    chat.wait_for("Stopped.")
    chat.wait_for(READY)
    chat.type("\x04")  # Ctrl-D
    assert chat.end()[0] == 0


def test_ctrl_c_ends_a_single_question_quietly(slow: CliRunner) -> None:
    terminal = Terminal(slow, QUESTION)
    terminal.wait_for(QUOTED)
    terminal.type("\x03")
    code, rest = terminal.end()
    assert (code, "Traceback" in rest) == (130, False)


def test_ctrl_c_ends_the_drawing_of_an_endless_page(desk: CliRunner) -> None:
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "PDF_VIEWER": "none"}
    desk.ingest()
    desk.query(QUESTION)
    endless(desk.papers / "alps" / "glaciers.pdf")
    terminal = Terminal(desk, "--verify")
    terminal.wait_for("has changed since it was ingested")
    time.sleep(1)
    terminal.type("\x03")
    code, rest = terminal.end()
    assert (code, "Traceback" in rest) == (130, False)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_ingest_that_is_stopped_keeps_what_was_read(
    desk: CliRunner, ollama_server: OllamaStandIn, how: signal.Signals
) -> None:
    small_papers(desk.papers)
    desk.settings |= {"OLLAMA_HOST": ollama_server.url, "EMBEDDER": "ollama"}
    desk.ingest()
    write_pdf(desk.papers / "new.pdf", ["A new paper on the seals of the Baltic Sea and their food."])
    ollama_server.faults.first_byte_s = 60
    embedded = len(ollama_server.embedded())
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "ingest.py")],
        env=desk.environment(),
        cwd=desk.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(ollama_server.embedded()) == embedded:
        assert process.poll() is None
        time.sleep(0.01)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # the workers too, as a terminal does it
    else:
        process.send_signal(how)
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (128 + how, "")
    assert err == "Stopped. Papers read so far: 0. They are kept; run the same command again to continue.\n"
    ollama_server.faults.first_byte_s = 0
    assert desk.ingest("--verify").code == 0
    assert desk.ingest().code == 0
    assert len(desk.record()) == 3
