"""A small working server with OpenAI's API on the loopback, for tests: what LM Studio, llama.cpp, vLLM and others do.

It has the models, the replies and the faults of OllamaStandIn; `habits` says in what such servers differ:

    with OpenAIStandIn(dimension=64) as server:
        server.habits.schema = ("json_object",)  # it refuses the other kind
        ... ask server.url + "/v1" ...
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tests.helpers.ollama_models import (
    NOMIC,
    TOO_LONG,
    Json,
    RefusedError,
    Reply,
    answer_from_evidence,
    format_error,
    words_of,
)
from tests.helpers.ollama_server import Faults, Handler, OllamaStandIn, spoil_vectors

CHAT, EMBED = "/v1/chat/completions", "/v1/embeddings"


@dataclass
class Habits:
    """How a server differs from others. Settable at any time."""

    schema: tuple[str, ...] = ("json_schema", "json_object")  # kinds of response_format that it takes
    logprobs: Literal["given", "ignored", "refused"] = "given"
    usage: Literal["given", "ignored", "refused"] = "given"  # in a stream
    refuses: tuple[str, ...] = ()  # further fields
    refusal: int = 400  # the status of what it refuses
    thought: Literal["reasoning_content", "reasoning", "content"] = "reasoning_content"
    opens_thought: bool = True  # with `content`: whether the opening tag is written, too
    context: int = 8192  # tokens; for embeddings, too
    tells_context: Literal["", "props", "list", "studio"] = "props"
    counts: Literal["", "/tokenize", "/extras/tokenize/count"] = "/tokenize"
    cuts: bool = False  # a prompt that is too long is cut in silence; otherwise it is refused
    is_silent: bool = False  # a stream that is refused ends without a piece and without an error
    key: str = ""  # that a client must send
    is_ollama: bool = False  # it is Ollama's copy of this API


class OpenAIStandIn(OllamaStandIn):
    """The server, at `url` while its `with` block lasts."""

    def __init__(
        self,
        dimension: int = NOMIC.embedding_length,
        reply: Reply = answer_from_evidence,
        count_tokens: Callable[[str], int] = words_of,
    ) -> None:
        super().__init__(dimension, reply, count_tokens)
        self.faults = Faults(paths=(CHAT, EMBED))
        self.habits = Habits()

    @staticmethod
    def handler() -> type[Handler]:
        return _Handler

    def listed(self) -> Json:
        """GET /v1/models."""
        told = {"max_model_len": self.habits.context} if self.habits.tells_context == "list" else {}
        owner = "library" if self.habits.is_ollama else "me"
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 1, "owned_by": owner, **told} for name in self.models],
        }


class _Handler(Handler):
    stream_type = "text/event-stream"
    _is_thinking = False

    @property
    def stand_in(self) -> OpenAIStandIn:
        assert isinstance(self.server.stand_in, OpenAIStandIn)
        return self.server.stand_in

    def _refuse(self, refused: RefusedError) -> None:
        self._send(refused.status, {"error": {"message": str(refused), "type": "invalid_request_error", "code": None}})

    def _route(self, body: Json) -> None:
        stand_in, habits = self.stand_in, self.stand_in.habits
        if habits.key and self.headers.get("Authorization") != f"Bearer {habits.key}":
            raise RefusedError(401, "Incorrect API key provided")
        match self.command, self.path:
            case "GET", "/api/version" if habits.is_ollama:
                self._send(200, {"version": stand_in.version})
            case "GET", "/v1/models":
                self._send(200, stand_in.listed())
            case "GET", "/props" if habits.tells_context == "props":
                self._send(200, {"default_generation_settings": {"n_ctx": habits.context}, "build_info": "b9000"})
            case "GET", "/api/v0/models" if habits.tells_context == "studio":
                self._send(200, {"data": [self._studio(name) for name in stand_in.models]})
            case "GET", _ if habits.tells_context == "studio" and self.path.startswith("/api/v0/models/"):
                self._send(200, self._studio(self.path.removeprefix("/api/v0/models/").replace("%3A", ":")))
            case "POST", path if path == habits.counts:
                count = stand_in.count_tokens(body.get("content") or body.get("prompt") or body.get("input") or "")
                told = {"tokens": [1] * count} if path == "/tokenize" else {"count": count}
                self._send(200, told)
            case "POST", "/v1/embeddings":
                self._embed(body)
            case "POST", "/v1/chat/completions":
                self._chat(body)
            case _:
                self._send(404, {"detail": "Not Found"})

    def _studio(self, name: str) -> Json:
        kind = "embeddings" if "embedding" in self.stand_in.models[name].capabilities else "llm"
        return {"id": name, "type": kind, "loaded_context_length": self.stand_in.habits.context}

    def _embed(self, body: Json) -> None:
        stand_in, habits = self.stand_in, self.stand_in.habits
        model = stand_in.find(body)
        if "embedding" not in model.capabilities:
            raise RefusedError(501, "This server does not support embeddings. Start it with `--embeddings`")
        asked = {**body, "truncate": habits.cuts, "options": {"num_ctx": habits.context}}
        reply = stand_in.embed(asked)
        rows = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(reply["embeddings"])]
        used = reply.get("prompt_eval_count", 0)
        reply = {"object": "list", "data": rows, "model": body["model"], "usage": {"prompt_tokens": used}}
        self._send(200, _spoil(reply, stand_in.faults.garbage))

    def _chat(self, body: Json) -> None:
        stand_in, habits = self.stand_in, self.stand_in.habits
        kind = (body.get("response_format") or {}).get("type")
        if kind and kind not in habits.schema:
            raise RefusedError(habits.refusal, f"'response_format.type' must not be '{kind}'")
        if body.get("logprobs") and habits.logprobs == "refused":
            raise RefusedError(habits.refusal, "logprobs is not supported by this server")
        if body.get("stream_options") and habits.usage == "refused":
            raise RefusedError(habits.refusal, "unknown field stream_options")
        if refused := [name for name in habits.refuses if name in body]:
            raise RefusedError(habits.refusal, f"Extra inputs are not permitted: {refused[0]}")
        shape = body["response_format"] if kind else {}
        shape = shape.get("schema") or (shape.get("json_schema") or {}).get("schema")
        if wrong := format_error(shape):
            raise RefusedError(400, wrong)
        asked = {
            "model": body["model"],
            "messages": body["messages"],
            "stream": body.get("stream", False),
            "format": shape,
            "options": {"num_ctx": habits.context, "num_predict": body.get("max_tokens")},
            "think": _think(body),
            "truncate": habits.cuts,
            **({"logprobs": True, "top_logprobs": body["top_logprobs"]} if self._tells(body) else {}),
            "include_usage": bool(body.get("stream_options")) and habits.usage == "given",
        }
        try:
            self._answer(stand_in.chat(asked), asked)
        except RefusedError as refused:
            if not (habits.is_silent and body.get("stream") and str(refused) == TOO_LONG):
                raise
            self._stream(iter(()), asked)

    def _tells(self, body: Json) -> bool:
        return bool(body.get("logprobs")) and self.stand_in.habits.logprobs == "given"

    def _answer(self, parts: Iterator[Json], body: Json) -> None:
        if body["stream"]:
            self._is_thinking = False
            super()._answer(parts, body)
            return
        every = list(parts)
        text = "".join(part["message"]["content"] for part in every)
        message = {"role": "assistant", "content": text}
        self._send(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def _put(self, part: Json, body: Json) -> None:
        """An event of a stream, made from a line of Ollama's."""
        if "error" in part:
            self._event({"error": {"message": part["error"], "code": 500}})
            return
        choice: Json = {"index": 0, "delta": self._delta(part["message"]), "finish_reason": None}
        if part.get("logprobs"):
            choice["logprobs"] = {"content": part["logprobs"]}
        if part.get("done"):
            choice |= {"delta": {}, "finish_reason": part["done_reason"]}
        head: Json = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        self._event({**head, "choices": [choice]})
        if part.get("done"):
            read, written = part["prompt_eval_count"], part["eval_count"]
            used = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            if body["include_usage"]:
                self._event({**head, "choices": [], "usage": used})
            self._chunk("data: [DONE]\n\n")

    def _delta(self, message: Json) -> Json:
        habits = self.stand_in.habits
        thought, text = message.get("thinking", ""), message.get("content", "")
        if habits.thought != "content":
            return {habits.thought: thought} if thought else {"content": text}
        before = ""
        if thought and not self._is_thinking:
            before = "<think>" if habits.opens_thought else ""
        elif not thought and self._is_thinking and text:
            before = "</think>\n\n"
        self._is_thinking = bool(thought)
        return {"content": f"{before}{thought}{text}"}

    def _event(self, event: Json) -> None:
        self._chunk(f"data: {json.dumps(event)}\n\n")


def _think(body: Json) -> Any:
    """As Ollama's request has it."""
    told = (body.get("chat_template_kwargs") or {}).get("enable_thinking")
    return body.get("reasoning_effort") or told


def _spoil(reply: Json, garbage: str) -> Json:
    rows = spoil_vectors({"embeddings": [row["embedding"] for row in reply["data"]]}, garbage)["embeddings"]
    return {**reply, "data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}
