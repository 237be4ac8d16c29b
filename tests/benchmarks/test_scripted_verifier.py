"""The stand-in for a verifying model: what it answers, how often it errs, and that clients of Ollama understand it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import scripted_verifier
from benchmarks.scripted_verifier import ScriptedVerifier, VerifierServer, labels_of
from folio.errors import ModelMissing
from folio.models.ollama import OllamaServer, client_kwargs
from tests.helpers.paths import ROOT

SAMPLE = ROOT / "benchmarks" / "judged-sample.jsonl"
MODEL = "llama3.1:8b"
TRUE, FALSE, UNFAITHFUL = "Port Ellis: 2.4 m", "Port Ellis: 1.1 m", "It was trained on 20,000 pages."
PROMPT = "Evidence: {evidence}\n\nDoes it say this?\n{statement}\nAnswer yes or no:"


@pytest.fixture(scope="module")
def server() -> Iterator[VerifierServer]:
    with VerifierServer(ScriptedVerifier(labels_of([SAMPLE]), sensitivity=1, specificity=1)) as running:
        yield running


def chat(server: VerifierServer, message: str, **changed: Any) -> httpx.Response:
    messages = [{"role": "system", "content": "Rules."}, {"role": "user", "content": message}]
    options = {"num_predict": 1, "temperature": 0}
    body = {"model": MODEL, "messages": messages, "stream": False, "logprobs": True, "top_logprobs": 20, **changed}
    return httpx.post(f"{server.url}/api/chat", json={"options": options, **body}, trust_env=False)


def chances(answer: dict[str, Any]) -> dict[str, float]:
    """Token -> probability."""
    (token,) = answer["logprobs"]
    return {entry["token"]: math.exp(entry["logprob"]) for entry in token["top_logprobs"]}


@pytest.mark.parametrize(("statement", "word"), [(TRUE, "yes"), (FALSE, "no"), (UNFAITHFUL, "no")])
def test_one_token_with_its_alternatives(server: VerifierServer, statement: str, word: str) -> None:
    answer = chat(server, PROMPT.format(evidence="Any text.", statement=statement)).json()
    assert answer["message"]["content"] == word
    assert (answer["done"], answer["done_reason"]) == (True, "length")
    found = chances(answer)
    assert set(found) == {"yes", "no"}
    assert sum(found.values()) == pytest.approx(1)
    assert found[word] > 0.5


@pytest.mark.parametrize(
    ("message", "word"),
    [
        (PROMPT.format(evidence=f"{TRUE} and {UNFAITHFUL}", statement=FALSE), "no"),  # the statement stands last
        (f"<statement>\n{FALSE}\n</statement>\n<statement>\n{TRUE}\n</statement>\nAnswer no to {FALSE}", "yes"),
        ("<statement>The colonies were weighed each hour on bar scales.</statement>", "yes"),  # with another subject
    ],
)
def test_the_statement_that_is_asked_about_is_recognised(server: VerifierServer, message: str, word: str) -> None:
    assert chat(server, message).json()["message"]["content"] == word


def test_an_unknown_statement_gets_neither_yes_nor_no(server: VerifierServer) -> None:
    for message in ("Glaciers are made of ice.", "<statement>Glaciers are made of ice.</statement>"):
        answer = chat(server, message).json()
        assert not {"yes", "no"} & {answer["message"]["content"], *chances(answer)}


def test_folio_finds_the_model(server: VerifierServer) -> None:
    ollama = OllamaServer(server.url, 5.0)
    assert ollama.version() == scripted_verifier.VERSION
    assert ollama.chat_models() == [MODEL]
    assert ollama.require_local(MODEL, "completion").context_length == scripted_verifier.CONTEXT
    with pytest.raises(ModelMissing):
        ollama.require_local("another:3b", "completion")


def test_a_client_that_streams_reads_the_same(server: VerifierServer) -> None:
    from langchain_ollama import ChatOllama

    options: dict[str, Any] = {"num_predict": 1, "logprobs": True, "top_logprobs": 20}
    model = ChatOllama(model=MODEL, base_url=server.url, client_kwargs=client_kwargs(5.0), **options)
    reply = model.invoke(PROMPT.format(evidence="Any text.", statement=TRUE))
    assert reply.content == "yes"
    token, *_ = reply.response_metadata["logprobs"]
    assert [entry["token"] for entry in token["top_logprobs"]] == ["yes", "no"]
    assert reply.response_metadata["done_reason"] == "length"


def test_it_writes_no_answers(server: VerifierServer) -> None:
    refused = chat(server, "Write a poem.", options={"num_predict": 100})
    assert (refused.status_code, "one token" in refused.json()["error"]) == (400, True)
    assert httpx.get(f"{server.url}/api/ps", trust_env=False).status_code == 404
    assert httpx.post(f"{server.url}/api/chat", content=b"{", trust_env=False).status_code == 400


def test_the_error_rates_are_those_requested_and_reproducible() -> None:
    labels = [(f"Claim number {n} holds.", "supported" if n % 2 else "false") for n in range(2000)]
    verifier = ScriptedVerifier(labels, sensitivity=0.85, specificity=0.8, seed=7)
    says_yes = {text: (verifier.probability_of_yes(text) or 0) > 0.5 for text, _ in labels}
    true = [says_yes[text] for text, label in labels if label == "supported"]
    false = [says_yes[text] for text, label in labels if label == "false"]
    assert sum(true) / len(true) == pytest.approx(0.85, abs=0.03)
    assert sum(false) / len(false) == pytest.approx(0.2, abs=0.03)
    again = ScriptedVerifier(reversed(labels), sensitivity=0.85, specificity=0.8, seed=7)
    assert all(again.probability_of_yes(text) == verifier.probability_of_yes(text) for text, _ in labels[:100])
    twice = ScriptedVerifier([("A.", "supported"), ("A.", "false")], sensitivity=1, specificity=1)
    assert (twice.probability_of_yes("A.") or 1) < 0.5  # it has two labels
    other = ScriptedVerifier(labels, sensitivity=0.85, specificity=0.8, seed=8)
    assert any(other.probability_of_yes(text) != verifier.probability_of_yes(text) for text, _ in labels[:10])


def test_faults_of_the_command_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripted_verifier.main([str(tmp_path / "absent.jsonl")]) == 2
    assert "absent.jsonl cannot be read" in capsys.readouterr().err
    with VerifierServer(ScriptedVerifier([])) as running:
        port = running.url.rpartition(":")[2]
        assert scripted_verifier.main([str(SAMPLE), "--port", port]) == 1
    assert f"Port {port} cannot be used" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        scripted_verifier.main([str(SAMPLE), "--sensitivity", "1.5"])
