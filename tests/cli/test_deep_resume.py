"""query.py --resume and /resume: a deep search that was stopped goes on, from another process too."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_models import Json, Scripted, answer_from_evidence
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT

BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"
SMALL = {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "50"}
CONTINUES = "`python query.py --resume` continues"


class Model:
    """Scores passages, is silent after so many of them, or gone."""

    def __init__(self, server: OllamaStandIn) -> None:
        self.server = server
        self.scored: list[str] = []
        self.hangs_after = self.gone_after = 1000

    def __call__(self, messages: list[Json]) -> str:
        prompt = str(messages[-1]["content"])
        if '"relevance"' in prompt:
            if len(self.scored) >= self.hangs_after:
                self.server.wait(60)
            self.scored.append(prompt)
            self.server.faults.dropped = 1000 if len(self.scored) >= self.gone_after else 0
            return json.dumps({"summary": "It says so.", "relevance": 9 if "Aletsch glacier has" in prompt else 2})
        if '"queries"' in prompt:
            return json.dumps({"queries": ["otter food"]})
        return answer_from_evidence(messages)


@pytest.fixture
def model(ollama_server: OllamaStandIn) -> Model:
    ollama_server.reply = Model(ollama_server)
    return ollama_server.reply


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a desk with two papers in some ten passages."""
    folder = tmp_path_factory.mktemp("passages")
    with pytest.MonkeyPatch.context() as patch:
        desk = CliRunner(folder, patch, settings=SMALL)
        small_papers(desk.papers)
        assert desk.ingest().code == 0
    return folder


@pytest.fixture
def builtin(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[CliRunner]:
    desk = CliRunner(folder, monkeypatch, capsys, {**SMALL, "LLM": "builtin"})
    yield desk
    checkpoint(desk).unlink(missing_ok=True)


@pytest.fixture
def with_model(builtin: CliRunner, model: Model) -> CliRunner:
    builtin.settings |= {"LLM": "ollama", "OLLAMA_HOST": model.server.url, "VERIFIER": "none", "PARALLEL": "1"}
    return builtin


def checkpoint(desk: CliRunner) -> Path:
    return desk.store / "deep_search.json"


def kept_scores(desk: CliRunner) -> list[int]:
    """The scores of the step that a search was taking."""
    if not checkpoint(desk).exists():
        return []
    scored = json.loads(checkpoint(desk).read_text())["progress"]["scored"]
    return [event["assessment"]["relevance"] for event in scored]


def without_times(answer: Json) -> Json:
    trace = {**answer["trace"], "seconds": 0, "calls": 0}
    return {**answer, "timings_ms": {}, "trace": trace}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_search_goes_on_to_the_same_answer(with_model: CliRunner, model: Model, how: signal.Signals) -> None:
    with_model.settings["ROUNDS"] = "1"
    model.hangs_after = 3
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "query.py"), "--deep", "--json", BOTH],
        env=with_model.environment(),
        cwd=with_model.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(kept_scores(with_model)) < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGKILL: -9}[how]
    assert (out, "Traceback" in err) == ("", False)
    assert (CONTINUES in err) == (how == signal.SIGINT)
    assert stat.S_IMODE(checkpoint(with_model).stat().st_mode) == 0o600
    assert len(kept_scores(with_model)) == 3
    if how != signal.SIGKILL:
        return
    model.hangs_after = 1000
    before = list(model.scored)[:3]
    del model.scored[:]
    resumed = with_model.query("--resume", "--json").object
    assert not set(before) & set(model.scored)
    assert not checkpoint(with_model).exists()
    assert without_times(resumed) == without_times(with_model.query("--deep", "--json", BOTH).object)


def test_a_lost_server_is_an_error_with_the_way_on(with_model: CliRunner, model: Model) -> None:
    model.gone_after = 2
    asked = with_model.query("--deep", "--style", "report", "--top-k", "6", "--paper", "glaciers", BOTH)
    lines = [line for line in asked.err.splitlines() if not line.startswith(("Papers for", "Evidence"))]
    assert (asked.code, asked.out) == (1, "")
    assert len(lines) == 2
    assert lines[1].endswith(f"Then {CONTINUES} the search.")
    again = with_model.query("--resume")  # it is still gone
    assert again.code == 1
    assert "Traceback" not in again.err
    model.gone_after, model.server.faults.dropped = 1000, 0
    resumed = with_model.query("--deep", "--resume")
    assert resumed.code == 0
    assert resumed.out.startswith(BOTH)
    assert "Aletsch glacier is" in resumed.out
    assert "otters.pdf" not in resumed.out + resumed.err  # the choice of papers is kept, too
    assert with_model.query("--resume").code == 2


def _is_answer(prompt: str) -> bool:
    """Whether a model is asked for the answer: not to plan, to score a passage or to look again."""
    return not any(f'"{key}"' in prompt for key in ("parts", "relevance", "queries"))


def test_after_a_failed_answer_only_the_answer_is_asked_again(with_model: CliRunner, model: Model) -> None:
    def lost(messages: list[Json]) -> str | Scripted:
        prompt = str(messages[-1]["content"])
        return Scripted(refused=400, error="no") if _is_answer(prompt) else model(messages)

    model.server.reply = lost
    asked = with_model.query("--deep", BOTH)
    assert asked.code == 1
    assert "The search is saved; `python query.py --resume` answers from it again." in asked.err
    model.server.reply = model
    scored = len(model.scored)
    assert with_model.query("--resume").code == 0
    assert len(model.scored) == scored


def test_ctrl_c_in_the_answer_keeps_the_search(with_model: CliRunner, model: Model) -> None:
    def interrupted(messages: list[Json]) -> str:
        prompt = str(messages[-1]["content"])
        if _is_answer(prompt):
            os.kill(os.getpid(), signal.SIGINT)
            model.server.wait(30)
        return model(messages)

    model.server.reply = interrupted
    asked = with_model.query("--deep", BOTH)
    assert (asked.code, asked.out) == (130, "")
    assert CONTINUES.replace("continues", "answers from it again") in asked.err
    model.server.reply = model
    scored = len(model.scored)
    assert with_model.query("--resume").code == 0
    assert len(model.scored) == scored


def test_the_run_after_a_spent_budget_has_a_new_one(with_model: CliRunner) -> None:
    with_model.settings["DEEP_CALLS"] = "3"
    asked = with_model.query("--deep", BOTH)
    assert asked.code == 0
    assert "The budget of the search is spent; `python query.py --resume` continues it with a new one." in asked.err
    resumed = with_model.query("--resume", "--json")
    assert resumed.object["trace"]["calls"] > 3


def test_in_a_chat_it_goes_on_in_a_new_conversation(with_model: CliRunner, model: Model) -> None:
    model.gone_after = 2

    def typed() -> Iterator[str]:
        yield f"/deep {BOTH}\n"
        model.gone_after, model.server.faults.dropped = 1000, 0
        yield "/resume\n"
        yield "/resume\n"

    with with_model.monkeypatch.context() as patch:
        patch.setattr("folio.cli.session._lines", lambda app, *, keep: typed())
        chat = with_model.query()
    assert chat.code == 0
    assert "Aletsch glacier is" in chat.out
    assert chat.err.count("Search ended: ") == 1
    assert "Then /resume continues the search." in chat.err
    assert "There is no deep search to resume." in chat.err


def test_a_chat_with_other_options_does_not_resume(builtin: CliRunner) -> None:
    stopped(builtin)
    chat = builtin.query("--style", "report", typed="/resume\n")
    assert "has other options" in chat.err
    assert "23 kilometres" in builtin.query(typed="/resume\n").out


def stopped(desk: CliRunner) -> None:
    """Leave the checkpoint of a search whose time was over."""
    desk.settings["DEEP_SECONDS"] = "0.000001"
    assert desk.query("--deep", BOTH).code == 0
    assert checkpoint(desk).exists()
    del desk.settings["DEEP_SECONDS"]


def test_without_a_model_it_goes_on_to_the_same_answer(builtin: CliRunner) -> None:
    stopped(builtin)
    resumed = builtin.query("--resume", "--json", "--show-evidence").object
    assert not checkpoint(builtin).exists()
    asked = builtin.query("--deep", "--json", BOTH).object
    assert (resumed["answer"], resumed["evidence"]) == (asked["answer"], asked["evidence"])


def test_what_is_not_logged_is_not_kept(builtin: CliRunner, tmp_path: Path) -> None:
    builtin.settings["DEEP_SECONDS"] = "0.000001"
    batch = tmp_path / "questions.txt"
    batch.write_text(f"{BOTH}\n")
    for options, setting in (
        (("--no-log", BOTH), "true"),
        ((BOTH,), "false"),
        (("--batch", str(batch)), "true"),
    ):
        builtin.settings["QUERY_LOG"] = setting
        asked = builtin.query("--deep", *options)
        assert (asked.code, "resume" in asked.err) == (0, False)
        assert not checkpoint(builtin).exists()
    builtin.settings["QUERY_LOG"] = "false"
    refused = builtin.query("--resume")
    assert refused.code == 2
    assert "QUERY_LOG=false" in refused.err


def test_it_is_forgotten_with_everything_else(builtin: CliRunner) -> None:
    stopped(builtin)
    assert "a deep search that was stopped" in builtin.query("--forget").out
    assert not checkpoint(builtin).exists()
    assert "deep search" not in builtin.query("--forget").out


def test_an_index_that_changed_begins_the_search_again(filled: CliRunner) -> None:
    stopped(filled)
    (filled.papers / "otters.pdf").unlink()
    assert filled.ingest("--prune").code == 0
    resumed = filled.query("--resume")
    assert resumed.code == 0
    assert "The index has changed since the search was stopped, so the search starts over." in resumed.err
    assert "otters.pdf" not in resumed.out + resumed.err


def test_another_answerer_does_not_go_on_with_it(builtin: CliRunner, ollama_server: OllamaStandIn) -> None:
    stopped(builtin)
    builtin.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "VERIFIER": "none"}
    resumed = builtin.query("--resume")
    assert resumed.code == 2
    assert "started with built in, but now llama3.1:8b (Ollama) scores passages" in resumed.err


def test_a_damaged_checkpoint_is_an_error_of_two_lines(builtin: CliRunner) -> None:
    stopped(builtin)
    filters = json.loads(checkpoint(builtin).read_text())
    filters["head"]["options"]["filters"] = [["x"]] * 20  # more than there are
    for content in ("", "{}", '{"version": 99}', "[" * 100_000, json.dumps(filters)):
        checkpoint(builtin).write_text(content)
        refused = builtin.query("--resume")
        assert (refused.code, len(refused.err.splitlines())) == (1, 2)
        assert "Ask the question again" in refused.err
    assert builtin.query("--deep", BOTH).code == 0  # which takes its place
    assert not checkpoint(builtin).exists()
