"""The stand-in for an Ollama server, asked by the real clients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import ollama
import pytest
from langchain_ollama import ChatOllama

from folio.models.ollama import client_kwargs
from tests.helpers.ollama_models import KILLED, VERSION, Scripted, hash_embedding
from tests.helpers.ollama_server import OllamaStandIn

EVIDENCE = """Answer from the evidence.

<evidence number="1" paper="On warmth" pages="p. 3">
The ocean warmed by 0.4 degrees in ten years. Nobody had expected that.
</evidence>

<evidence number="2" paper="Another paper" pages="p. 7">
Ice melted.
</evidence>

Question: How much did the ocean warm?"""


@pytest.fixture
def client(ollama_server: OllamaStandIn) -> Iterator[ollama.Client]:
    with ollama.Client(ollama_server.url, **client_kwargs(5)) as client:
        yield client


def chat(server: OllamaStandIn, **kwargs: Any) -> ChatOllama:
    return ChatOllama(model="llama3.1:8b", base_url=server.url, client_kwargs=client_kwargs(5), **kwargs)


def user(*contents: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content} for content in contents]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_says_what_it_is_and_what_it_has(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    assert httpx.get(ollama_server.url, trust_env=False, verify=False).text == "Ollama is running"
    assert httpx.get(f"{ollama_server.url}/api/version", trust_env=False, verify=False).json() == {"version": VERSION}
    assert [model.model for model in client.list().models] == [
        "llama3.1:8b",
        "nomic-embed-text:latest",
        "gpt-oss:120b-cloud",
    ]
    shown = client.show("nomic-embed-text")
    assert shown.capabilities == ["embedding"]
    assert shown.modelinfo == {
        "general.architecture": "nomic-bert",
        "nomic-bert.context_length": 2048,
        "nomic-bert.embedding_length": 64,
    }


def test_embeddings_depend_on_the_words_alone(client: ollama.Client) -> None:
    texts = ["sea ice melts in the Arctic", "Arctic ice melting at sea", "gradient descent converges", ""]
    first = [list(row) for row in client.embed("nomic-embed-text", texts).embeddings]
    assert first == [list(row) for row in client.embed("nomic-embed-text:latest", texts).embeddings]
    assert [math.isclose(cosine(row, row), 1.0) for row in first] == [True] * 4
    assert cosine(first[0], first[1]) > 0.5 > cosine(first[0], first[2])
    assert client.embed("nomic-embed-text", []).embeddings == []
    assert len(client.embed("nomic-embed-text", "one", dimensions=16).embeddings[0]) == 16


def test_a_hash_embedding_is_the_same_everywhere() -> None:
    assert hash_embedding("ice", 4) == hash_embedding("ICE!", 4)
    assert [round(x, 4) for x in hash_embedding("the glacier", 8)] == [0.0, 0.0, 0.0, 0.0, 0.9901, 0.099, 0.0, -0.099]


def test_a_long_text_is_cut_in_silence_unless_forbidden(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    long = "word " * 3000 + "tail"
    ollama_server.faults.ignores_truncate = True  # the client always asks for it
    cut = client.embed("nomic-embed-text", [long, "short"])
    assert ollama_server.cut == [long]
    assert list(cut.embeddings[0]) == list(client.embed("nomic-embed-text", "word").embeddings[0])
    assert cut.prompt_eval_count == 2048 + 2
    ollama_server.faults.ignores_truncate = False
    with pytest.raises(ollama.ResponseError, match="the input length exceeds the context length") as caught:
        client.embed("nomic-embed-text", [long], truncate=False)
    assert caught.value.status_code == 400


def test_chat_answers_whole_when_asked_to(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    answer = client.chat("llama3.1:8b", user(EVIDENCE))
    assert answer.message.content == "The ocean warmed by 0.4 degrees in ten years [1]."
    assert (answer.done_reason, answer.eval_count) == ("stop", 10)
    assert ollama_server.bodies("/api/chat")[0]["stream"] is False
    assert client.chat("llama3.1:8b", user("No evidence.")).message.content == "Not found in the provided papers."


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("Chat: ...\nFollow Up Input: And in winter?\nStandalone question:", "And in winter?"),
        ("Make it a standalone question.\nHuman: What is ice?\nHuman: tell me more", "What is ice?"),
        ("Rewrite as standalone.\nFollow-up: tell me more", "tell me more"),
    ],
)
def test_a_follow_up_comes_back_as_it_stands(client: ollama.Client, prompt: str, question: str) -> None:
    assert client.chat("llama3.1:8b", user(prompt)).message.content == question


def test_replies_can_be_scripted(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    ollama_server.reply = ["first", "second"]
    assert [client.chat("llama3.1:8b", user("?")).message.content for _ in range(2)] == ["first", "second"]
    with pytest.raises(ollama.ResponseError, match="one more"):
        client.chat("llama3.1:8b", user("?"))
    ollama_server.reply = lambda messages: f"{len(messages)} messages"
    assert client.chat("llama3.1:8b", user("a", "b")).message.content == "2 messages"


@pytest.mark.parametrize(("endless", "piece"), [("words", "word10000 word10001 "), ("nothing", "")])
def test_an_answer_without_end_is_left_by_the_client(ollama_server: OllamaStandIn, endless: Any, piece: str) -> None:
    ollama_server.faults.endless = endless
    pieces = chat(ollama_server, num_predict=3).stream(EVIDENCE)
    assert "".join(next(pieces).text for _ in range(5)) == f"The ocean warmed {piece}"
    pieces.close()  # type: ignore[attr-defined]


def test_num_predict_ends_the_answer(ollama_server: OllamaStandIn) -> None:
    message = chat(ollama_server, num_predict=3).invoke(EVIDENCE)
    assert message.text == "The ocean warmed "
    assert message.response_metadata["done_reason"] == "length"


def test_chat_drops_the_oldest_messages_but_not_the_system_one(
    ollama_server: OllamaStandIn, client: ollama.Client
) -> None:
    system = {"role": "system", "content": "rule " * 10}
    messages = [system, *user("old " * 100, "newer " * 10, "last " * 10)]
    ollama_server.faults.ignores_truncate = True  # the client always asks for it
    answer = client.chat("llama3.1:8b", messages, options={"num_ctx": 60})
    assert ollama_server.read == [[system, *user("newer " * 10, "last " * 10)]]
    assert ollama_server.cut == ["old " * 100]
    assert answer.prompt_eval_count == 3 * (13 + 4)
    client.chat("llama3.1:8b", user("word " * 4000))  # 5,200 tokens in the default context of 4,096
    assert ollama_server.read[-1] == user(" " + "word " * 3147)
    ollama_server.faults.ignores_truncate = False
    body = {"model": "llama3.1:8b", "messages": messages, "options": {"num_ctx": 60}, "truncate": False}
    refused = httpx.post(f"{ollama_server.url}/api/chat", json=body, trust_env=False, verify=False)
    assert (refused.status_code, refused.json()) == (400, {"error": "the input length exceeds the context length"})


def test_pull_adds_the_model(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match='model "all-minilm" not found, try pulling it first') as caught:
        client.embed("all-minilm", "text")
    assert caught.value.status_code == 404
    statuses = [part.status for part in client.pull("all-minilm", stream=True)]
    assert (statuses[0], statuses[-1]) == ("pulling manifest", "success")
    assert len(client.embed("all-minilm", "text").embeddings[0]) == 384
    with pytest.raises(ollama.ResponseError, match="file does not exist"):
        list(client.pull("no-such-model", stream=True))
    with pytest.raises(ollama.ResponseError, match="file does not exist"):
        client.pull("no-such-model")


def test_counted_faults_pass(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    ollama_server.faults.busy = 2
    ollama_server.faults.fails = 1
    statuses = []
    for _ in range(3):
        with pytest.raises(ollama.ResponseError) as caught:
            client.embed("nomic-embed-text", "text")
        statuses.append(caught.value.status_code)
    assert statuses == [503, 503, 500]
    ollama_server.faults.dropped = 1
    with pytest.raises(httpx.RemoteProtocolError):
        client.embed("nomic-embed-text", "text")
    assert len(client.embed("nomic-embed-text", "text").embeddings) == 1


def test_a_slow_server_outlasts_the_timeout(ollama_server: OllamaStandIn) -> None:
    with ollama.Client(ollama_server.url, **client_kwargs(0.1)) as hasty:
        ollama_server.faults.first_byte_s = 10
        with pytest.raises(httpx.ReadTimeout):
            hasty.embed("nomic-embed-text", "text")
        ollama_server.faults.first_byte_s = 0
        ollama_server.faults.between_pieces_s = 10
        with pytest.raises(httpx.ReadTimeout):
            list(hasty.chat("llama3.1:8b", user(EVIDENCE), stream=True))


def test_what_makes_no_sense_is_refused(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match='"nomic-embed-text" does not support chat'):
        client.chat("nomic-embed-text", user("?"))
    answers = [
        httpx.post(f"{ollama_server.url}{path}", content=content, trust_env=False, verify=False)
        for path, content in [("/api/embed", "{}"), ("/api/embed", "{"), ("/api/embed/", "{}")]
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 404]


SCHEMA = {
    "type": "object",
    "properties": {
        "statements": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "support": {"type": "array", "minItems": 1, "items": {"type": "integer", "enum": [27, 28]}},
                    "statement": {"type": "string", "maxLength": 20},
                },
            },
        },
        "answered": {"type": "boolean"},
    },
}


def test_a_format_makes_json_of_prose_and_leaves_json_alone(
    ollama_server: OllamaStandIn, client: ollama.Client
) -> None:
    ollama_server.reply = ["The ocean warmed a lot.", '{"statements": [ ', "plain", "The ocean warmed."]
    said = client.chat("llama3.1:8b", user("?"), format=SCHEMA).message.content
    assert said == '{"statements": [{"support": [27], "statement": "The ocean warmed a l"}], "answered": true}'
    assert client.chat("llama3.1:8b", user("?"), format=SCHEMA).message.content == '{"statements": [ '
    assert client.chat("llama3.1:8b", user("?"), format="json").message.content == '{"text": "plain"}'
    ollama_server.ignores_format = True
    assert client.chat("llama3.1:8b", user("?"), format=SCHEMA).message.content == "The ocean warmed."


def test_the_first_token_has_scripted_alternatives(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    ollama_server.reply = lambda messages: Scripted("Yes, it is", (("No", -2.4), ("Yes, ", -0.1), ("Maybe", -5.0)))
    answer = client.chat("llama3.1:8b", user("?"), logprobs=True, top_logprobs=2, options={"num_predict": 1})
    assert answer.message.content == "Yes, "
    (first,) = answer.logprobs or []
    assert (first.token, first.logprob) == ("Yes, ", -0.1)
    assert [(each.token, each.logprob) for each in first.top_logprobs or []] == [("Yes, ", -0.1), ("No", -2.4)]
    assert client.chat("llama3.1:8b", user("?")).logprobs is None
    ollama_server.version = "0.12.10"
    assert client.chat("llama3.1:8b", user("?"), logprobs=True, top_logprobs=2).logprobs is None


def test_scripted_replies_end_in_four_ways(ollama_server: OllamaStandIn, client: ollama.Client) -> None:
    ollama_server.reply = [
        Scripted("one two", ending="stopped"),
        Scripted("one two", ending="error"),
        Scripted("one two", ending="cut"),
        Scripted(refused=503, error="server busy"),
        "- " * 50,
    ]

    def listen() -> tuple[str, object]:
        *pieces, last = client.chat("llama3.1:8b", user("?"), stream=True)
        return "".join(piece.message.content or "" for piece in [*pieces, last]), last.done

    assert listen() == ("one two", False)
    with pytest.raises(ollama.ResponseError, match=KILLED):
        listen()
    with pytest.raises(httpx.RemoteProtocolError):
        listen()
    with pytest.raises(ollama.ResponseError, match="server busy") as caught:
        listen()
    assert caught.value.status_code == 503
    assert listen() == ("- " * 31, False)  # a model that repeats itself is stopped
