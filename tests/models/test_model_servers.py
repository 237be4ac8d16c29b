"""What every server of models does for Folio: stand-ins of two APIs, and a real llama.cpp where one is installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from jsonschema import validate  # type: ignore[import-untyped]

from folio.answer.parser import schema
from folio.errors import ContextTooSmall, ModelMissing, ModelServerError, WrongModel
from folio.models.chat_model import ChatModel
from folio.models.model_server import THOUGHT, ModelServer
from folio.models.ollama import OllamaServer
from folio.models.openai_server import OpenAIServer
from folio.models.server_embedder import ServerEmbedder
from tests.helpers import llama_cpp
from tests.helpers.ollama_models import QWEN3, Json, Scripted
from tests.helpers.ollama_server import OllamaStandIn, closed_url
from tests.helpers.openai_server import OpenAIStandIn

SHAPE = schema(12, "plain")


@dataclass(frozen=True)
class Served:
    """A server with a chat model, and with an embedding model if `embeds`."""

    server: ModelServer
    model: str
    stand_in: OllamaStandIn | None  # None for the real one
    context: int  # tokens; of Ollama the model's

    def open(self) -> ChatModel:
        return ChatModel.open(self.server, self.model)

    def says(self, *replies: str | Scripted) -> None:
        """What the model of a stand-in says. The real one says what it likes."""
        if self.stand_in:
            self.stand_in.reply = list(replies)


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    if reason := llama_cpp.missing():
        pytest.skip(reason)
    with llama_cpp.llama_server() as url:
        yield url


@pytest.fixture(params=["ollama", "openai", "llama.cpp"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    if request.param == "llama.cpp":
        url = request.getfixturevalue("llama")
        yield Served(OpenAIServer(url, 30.0, context=llama_cpp.CONTEXT), "tiny", None, llama_cpp.CONTEXT)
    elif request.param == "openai":
        with OpenAIStandIn(dimension=64) as stand_in:
            yield Served(OpenAIServer(f"{stand_in.url}/v1", 5.0), "llama3.1:8b", stand_in, stand_in.habits.context)
    else:
        with OllamaStandIn(dimension=64) as stand_in:
            yield Served(OllamaServer(stand_in.url, 5.0), "llama3.1:8b", stand_in, 131_072)


def ended(model: ChatModel, **options: Any) -> tuple[str, str, str]:
    """A reply's thought and text, and how it ended."""
    pieces = list(model.stream("Be brief.", "Why?", **{"context": model.context_for(400), "longest": 200, **options}))
    (reason,) = [piece.response_metadata["done_reason"] for piece in pieces if "done_reason" in piece.response_metadata]
    thought = "".join(piece.additional_kwargs.get(THOUGHT, "") for piece in pieces)
    return thought, "".join(str(piece.content) for piece in pieces), reason


def until(is_so: Callable[[], bool]) -> None:
    end = monotonic() + 20
    while not is_so():
        assert monotonic() < end
        sleep(0.01)


def test_it_lists_its_models_and_knows_their_context(served: Served) -> None:
    assert served.server.version()
    assert served.model in served.server.models()
    assert served.server.chat_models() == [served.model]
    assert served.open().largest == served.context
    with pytest.raises(ModelMissing) as caught:
        ChatModel.open(served.server, "nope:1b")
    assert "does not have the model nope:1b." in caught.value.happened
    assert caught.value.remedy.endswith(".")


def test_a_reply_streams_and_says_how_it_ended(served: Served) -> None:
    served.says("Because it is so.", "Because it is so.")
    model = served.open()
    thought, text, reason = ended(model)
    assert text.strip()
    assert reason == "stop"
    if served.stand_in:
        assert (thought, text) == ("", "Because it is so.")
        assert ended(model, longest=2) == ("", "Because it ", "length")


def test_a_reply_follows_a_schema(served: Served) -> None:
    served.says("It is the ice. It melts.")
    reply = served.open().write("", "Why?", context=2048, longest=200, shape=SHAPE)
    if served.stand_in:
        validate(json.loads(reply), SHAPE)
    else:  # a model of random habits may fill the reply with blanks
        assert reply.lstrip()[:1] in ("{", "")


def test_yes_or_no_is_one_token(served: Served) -> None:
    served.says(Scripted(" Yes", ((" No", -2.5), (" Yes", -0.25))))
    token = served.open().first_token("Be brief.", "Is it so?", context=2048)
    if served.stand_in:
        assert token.yes == pytest.approx(0.905, abs=0.001)
        assert token.alternatives[0][0] == " Yes"
    else:  # a word after a thought, or one token with its alternatives
        assert token.text.strip() or token.alternatives


def test_a_thought_is_apart_from_the_answer(served: Served) -> None:
    if served.stand_in:
        served.stand_in.models["qwen3:8b"] = QWEN3
        served.says("Because.")
        server = type(served.server)(served.server.url, 5.0, "on")
        thought, text, reason = ended(ChatModel.open(server, "qwen3:8b"))
    else:
        thought, text, reason = ended(served.open())
    assert "<think" not in thought + text
    assert (bool(text.strip()), reason) == (True, "stop")
    if served.stand_in:
        assert (text, len(thought) > 100) == ("Because.", True)


def test_a_prompt_that_is_too_long_is_refused(served: Served) -> None:
    served.says()
    model = served.open()
    context = min(model.largest, 4096)
    with pytest.raises(ContextTooSmall):
        list(model.stream("", "word " * 6000, context=context, longest=32))


def test_closing_a_reply_ends_the_work_on_it(served: Served) -> None:
    served.says("word " * 500, "Because.")
    if served.stand_in:
        served.stand_in.faults.between_pieces_s = 0.01
    model = served.open()
    pieces = model.stream("", "Why?", context=2048, longest=1000)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    if served.stand_in:
        stand_in = served.stand_in
        until(lambda: stand_in.left == 1)
        stand_in.faults.between_pieces_s = 0
    assert ended(model)[1].strip()


def test_waiting_for_a_reply_can_be_cancelled(served: Served) -> None:
    served.says("Because.")
    if served.stand_in:
        served.stand_in.faults.first_byte_s = 60

    def check_cancelled() -> None:
        raise KeyError("cancelled")

    model, began = served.open(), monotonic()
    with pytest.raises(KeyError, match="cancelled"):
        list(model.stream("", "Why?", context=2048, longest=32, check_cancelled=check_cancelled))
    assert monotonic() - began < 10


def test_vectors_have_unit_length_and_their_prefixes(served: Served) -> None:
    if not served.stand_in:
        with pytest.raises(WrongModel):  # it was started without --embedding
            ServerEmbedder(served.server, "tiny", 2).embed_query("glaciers")
        return
    embedder = ServerEmbedder(served.server, "nomic-embed-text:latest", 2)
    rows = embedder.embed_passages(["glaciers melt", "otters swim", "ice " * 2000])
    assert rows.shape == (3, 64)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
    assert rows[0] @ embedder.embed_query("glaciers melt") > 0.5
    prefixes = {text.partition(" ")[0] for text in texts_sent(served.stand_in)}
    assert prefixes - {"dimension"} == {"search_document:", "search_query:"}
    assert served.stand_in.cut == []
    assert embedder.identity()["embedder"] == served.server.kind


def texts_sent(stand_in: OllamaStandIn) -> list[str]:
    requests: list[Json] = [each.body for each in stand_in.requests]
    return [text for body in requests for text in body.get("input", ())]


@pytest.mark.parametrize("make", [OllamaServer, OpenAIServer])
def test_nothing_listens(make: Callable[[str], ModelServer]) -> None:
    server = make(closed_url())
    assert server.version() is None
    with pytest.raises(ModelServerError) as caught:
        server.chat_models()
    assert server.url in caught.value.happened
    assert "LLM=builtin" in caught.value.remedy
