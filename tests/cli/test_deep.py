"""query.py --deep and /deep in the chat, over two papers, with and without a model."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from folio.schema.answers import json_schema
from folio.shown_text import PROFILE_HEADINGS
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import write_pdf
from tests.helpers.ollama_models import Json, answer_from_evidence
from tests.helpers.ollama_server import OllamaStandIn

BOTH = "How long is the Aletsch glacier, and what is the diet of the sea otter?"


@pytest.fixture
def shared(ready: CliRunner) -> CliRunner:
    """The index that all tests ask, with built-in models."""
    ready.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    return ready


def test_without_a_model_each_step_is_a_line(shared: CliRunner) -> None:
    asked = shared.query("--deep", BOTH)
    assert asked.code == 0
    assert "23 kilometres" in asked.out
    assert "urchins, clams and crabs" in asked.out
    lines = asked.err.splitlines()
    assert sum(line.startswith("Papers for “") for line in lines) >= 3
    assert any(line.startswith("Evidence ") and "otters.pdf, p" in line for line in lines)
    assert any(line.startswith("Search ended: ") for line in lines)


def test_json_has_the_trace_and_quotes_of_the_evidence(shared: CliRunner) -> None:
    printed = shared.query("--deep", "--json", BOTH)
    assert "Papers for" not in printed.err
    answer = printed.object
    Draft202012Validator(json_schema()).validate(answer)
    trace = answer["trace"]
    assert (trace["assessor"], trace["calls"]) == ("built in", 0)
    assert trace["events"][0]["event"] == "papers"
    assert trace["rounds"] == 1
    assert trace["events"][-1]["event"] == "search_ended"
    assert {citation["file"] for citation in answer["citations"]} == {"otters.pdf", "alps/glaciers.pdf"}
    texts = {evidence["number"]: evidence["text"] for evidence in answer["evidence"]}
    assert all(citation["quote"] in texts[citation["evidence"]] for citation in answer["citations"])
    again = shared.query("--deep", "--json", BOTH).object
    assert (again["answer"], again["evidence"]) == (answer["answer"], answer["evidence"])
    plain = shared.query("--json", BOTH).object
    assert "trace" not in plain
    assert {piece["file"] for piece in plain["evidence"]} <= {piece["file"] for piece in answer["evidence"]}
    assert answer["citations"][0]["quote"] == plain["citations"][0]["quote"]


def test_a_refusal_names_the_passages_of_that_search(shared: CliRunner) -> None:
    opera = "Which bank lent the money for the opera in Vienna?"
    asked = shared.query("--deep", opera)
    assert asked.out == "Not found in the provided papers.\n"
    hint = asked.err.splitlines()[-1]
    assert hint.startswith("The closest passages are in ")
    assert hint.endswith("; --show-evidence shows them.")
    assert shared.query(opera).err.splitlines()[-1].endswith("; --sources shows them.")
    assert "/sources shows them." in shared.query(typed=f"/deep {opera}\n").err
    shown = shared.query("--deep", "--show-evidence", opera)
    assert "shows them" not in shown.err
    named = hint.removeprefix("The closest passages are in ").partition(" p")[0]
    assert named in shown.out
    assert shared.query("--deep", "--json", opera).object["evidence_profile"] is None


def test_two_processes_give_the_same_bytes(shared: CliRunner) -> None:
    question = f"{BOTH.rstrip('?')}, and how thick is the fur of a walrus?"
    spawned = shared.spawn("query.py", "--deep", "--json", question, more={"PYTHONHASHSEED": "1"})  # here it is another
    here = shared.query("--deep", "--json", question)
    first, second = (
        re.sub(r'"(seconds|timings_ms)": ?([\d.]+|\{.*?\})', "", ran.out, flags=re.S) for ran in (spawned, here)
    )
    assert first == second


def test_in_a_chat_only_the_question_after_deep_is_deep(shared: CliRunner) -> None:
    chat = shared.query(typed=f"/deep {BOTH}\n/sources\nHow thick is the Aletsch glacier?\n/deep\n")
    assert chat.code == 0
    assert chat.err.count("Search ended: ") == 1
    assert "800 metres" in chat.out


def model(messages: list[Json]) -> str:
    prompt = str(messages[-1]["content"])
    if '"relevance"' in prompt:
        return json.dumps({"summary": "It says so.", "relevance": 9 if "Aletsch glacier has" in prompt else 0})
    if '"queries"' in prompt:
        return json.dumps({"queries": ["glacier length"]})
    return answer_from_evidence(messages)


def profile_of(text: str) -> list[str]:
    """What is printed of the evidence as a whole, behind a plain answer."""
    return text.partition("About the evidence\n")[2].partition("\nSources\n")[0].strip().splitlines()


def test_the_profile_of_the_evidence_follows_the_answer(shared: CliRunner) -> None:
    asked = shared.query("--deep", BOTH)
    lines = profile_of(asked.out)
    assert any(line.startswith("2 statements from 2 papers; ") for line in lines), lines
    assert "Age: 2 papers without a sure year." in lines
    assert profile_of(shared.query("--deep", BOTH).out) == lines
    assert "About the evidence" not in shared.query(BOTH).out
    printed = shared.query("--deep", "--json", BOTH).object["evidence_profile"]
    assert printed["age"] == {"years": [], "unknown": 2}
    assert printed["basis"]["papers"] == 2


RIVAL = (
    "The Alps have many glaciers. The Aletsch glacier has a length of 20 kilometres and covers 82 square kilometres"
    " of the Bernese Alps. " + "Snow falls on it in each month of the year. " * 12,
    "Some say that it moves quickly. It is unclear why the Aletsch glacier retreats faster than other glaciers.",
)
WHY = "Why does the Aletsch glacier retreat, and how long is it?"


@pytest.fixture
def rivals(filled: CliRunner) -> CliRunner:
    """Three papers, two of which give other lengths for one glacier."""
    write_pdf(filled.papers / "rival.pdf", RIVAL, "A Rival View of the Aletsch")
    assert filled.ingest().code == 0
    return filled


def test_a_report_has_sections_on_its_evidence(rivals: CliRunner) -> None:
    asked = rivals.query("--deep", "--style", "report", WHY)
    headings = [line for line in asked.out.splitlines() if line in (*PROFILE_HEADINGS, "Sources", "Key references")]
    assert headings == ["Open questions", "Age and confidence of the evidence", "Sources", "Key references"], asked.out
    assert "• [rival.pdf p.2] (quoted above)" in asked.out
    for said in ("has a length of 23 kilometres", "has a length of 20 kilometres", "It is unclear why"):
        assert " ".join(asked.out.split()).count(said) == 1, asked.out
    assert "gives another number" in asked.out  # the answer itself shows both sides, so no section repeats them


def test_quotes_of_the_profile_stand_on_their_pages(rivals: CliRunner) -> None:
    answer = rivals.query("--deep", "--json", WHY).object
    Draft202012Validator(json_schema()).validate(answer)
    profile = answer["evidence_profile"]
    (quote,) = profile["open_questions"]
    assert (quote["file"], quote["page"]) == ("rival.pdf", 2)
    assert " ".join(quote["quote"].split()) == RIVAL[1].partition(". ")[2]
    assert profile["differences"][0]["others"][0]["file"] in ("rival.pdf", "alps/glaciers.pdf")


@pytest.fixture
def with_model(shared: CliRunner, ollama_server: OllamaStandIn) -> CliRunner:
    ollama_server.reply = model
    shared.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "VERIFIER": "none", "DEEP_CALLS": "20"}
    return shared


def test_a_model_answers_from_passages_scored_above_zero(with_model: CliRunner, ollama_server: OllamaStandIn) -> None:
    answer = with_model.query("--deep", "--json", "What length has the Aletsch glacier?").object
    trace = answer["trace"]
    assert trace["assessor"] == "llama3.1:8b (Ollama)"
    assert 0 < trace["calls"] <= 20
    assert trace["rounds"] <= 3
    scores = [event["relevance"] for event in trace["events"] if event["event"] == "evidence"]
    assert set(scores) == {0, 9}
    assert {evidence["file"] for evidence in answer["evidence"]} == {"alps/glaciers.pdf"}
    assert not answer["refused"]
    assert "It says so" not in answer["answer"]
    prompts = [str(body["messages"][-1]["content"]) for body in ollama_server.answering]
    assert ["- on [1]" in prompt and "It says so." in prompt for prompt in prompts if "<notes>" in prompt] == [
        True
    ]


def test_a_model_that_is_no_judge_scores_no_passage(rivals: CliRunner, ollama_server: OllamaStandIn) -> None:
    ollama_server.judges_badly = True
    ollama_server.reply = lambda messages: "Yes"
    rivals.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    answer = rivals.query("--deep", "--json", "What length has the Aletsch glacier?").object
    assert (answer["trace"]["assessor"], answer["trace"]["calls"]) == ("built in", 0)
    assert not any("relevance" in str(body["messages"]) for body in ollama_server.answering)
    assert answer["sentences"]
    assert answer["evidence_profile"]["confidence"] is None  # a model has a part in the answer
    assert rivals.query("--deep", "--json", "What length has the Aletsch glacier?").object["trace"]["calls"] == 0


def test_a_model_groups_quotes_and_none_of_its_words_show(rivals: CliRunner, ollama_server: OllamaStandIn) -> None:
    invented = "The Aletsch glacier has a length of 99 kilometres."

    def reply(messages: list[Json]) -> str:
        prompt = " ".join(str(messages[-1]["content"]).split())
        if '"relevance"' in prompt:
            return json.dumps({"summary": "It is long.", "relevance": 8 if "has a length of" in prompt else 0})
        if '"claims"' not in prompt:
            return answer_from_evidence(messages)
        number = {km: re.search(rf"\[(\d+)\] The Aletsch glacier has a length of {km}", prompt) for km in (20, 23)}
        same, other = (int(found[1]) for found in (number[23], number[20]) if found)
        claims = [
            {"claim": "The Aletsch glacier has a length of 23 kilometres.", "same": [same], "other": [other]},
            {"claim": invented, "same": [same, other], "other": []},
            {"claim": "Both agree that it is long.", "same": [invented, 999], "other": []},
        ]
        return json.dumps({"claims": claims})

    ollama_server.reply, ollama_server.ignores_format = reply, True
    rivals.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "VERIFIER": "none"}
    question = "What length has the Aletsch glacier?"
    profile = rivals.query("--deep", "--json", question).object["evidence_profile"]
    assert (profile["compared_by"], profile["calls"], profile["confidence"]) == ("llama3.1:8b (Ollama)", 1, None)
    assert profile["agreements"] == []
    (found,) = profile["differences"]
    assert [quote["file"] for quote in (*found["some"], *found["others"])] == ["alps/glaciers.pdf", "rival.pdf"]
    printed = rivals.query("--deep", "--style", "report", question)
    assert "99 kilometres" not in printed.out
    assert "Both agree" not in printed.out
    rivals.settings |= {"DEEP_CALLS": "3"}  # the search takes them
    spent = rivals.query("--deep", "--json", question).object["evidence_profile"]
    assert (spent["compared_by"], spent["calls"]) == ("", 0)


def test_a_missing_model_is_an_error_without_traceback(with_model: CliRunner, ollama_server: OllamaStandIn) -> None:
    ollama_server.models.clear()
    asked = with_model.query("--deep", BOTH)
    assert asked.code != 0
    assert "Traceback" not in asked.err


def test_query_variants_by_a_model(with_model: CliRunner, ollama_server: OllamaStandIn) -> None:
    with_model.settings |= {"LLM": "builtin", "QUERY_VARIANTS": "llm"}
    asked = with_model.query("How long is the Aletsch glacier?")
    assert "23 kilometres" in asked.out
    assert "QUERY_VARIANTS" not in asked.err
    assert len(ollama_server.bodies("/api/chat")) == 1
    with_model.settings |= {"QUERY_VARIANTS": "hyde"}
    asked = with_model.query("How long is the Aletsch glacier?")
    assert "23 kilometres" in asked.out
    assert "QUERY_VARIANTS=hyde: llama3.1:8b wrote nothing usable" in asked.err
    ollama_server.models.clear()
    gone = with_model.query("How long is the Aletsch glacier?")
    assert gone.code != 0
    assert "Traceback" not in gone.err
