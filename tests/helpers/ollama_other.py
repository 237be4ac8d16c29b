"""The rest of what the stand-in for an Ollama server answers: loaded models, /api/generate, and OpenAI's API."""

from __future__ import annotations

from collections.abc import Iterator

from tests.helpers.ollama_models import THEN, Json, OllamaModels

CREATED = 1785542400  # THEN, in seconds


def running(models: OllamaModels) -> Json:
    """GET /api/ps."""
    listed = {entry["name"]: entry for entry in models.tags()["models"]}
    kept = ("name", "model", "size", "digest")
    return {
        "models": [
            {**{key: listed[name][key] for key in kept}, "details": models.show({"model": name})["details"],
             "expires_at": THEN, "size_vram": 0, "context_length": models.contexts[name]}
            for name in models.loaded
        ]
    }  # fmt: skip


def generate(models: OllamaModels, body: Json) -> Iterator[Json]:
    """POST /api/generate: a chat of one message, in another form."""
    for part in models.chat({**body, "messages": [{"role": "user", "content": body["prompt"]}]}):
        message = part.pop("message")
        yield {**part, "response": message["content"], **({"context": [1, 2]} if part["done"] else {})}


def openai_models(models: OllamaModels) -> Json:
    """GET /v1/models."""
    entries = [{"id": name, "object": "model", "created": CREATED, "owned_by": "library"} for name in models.models]
    return {"object": "list", "data": entries}


def openai_embeddings(models: OllamaModels, body: Json) -> Json:
    """POST /v1/embeddings."""
    made = models.embed(body)
    count = made.get("prompt_eval_count", 0)
    data = [{"object": "embedding", "embedding": row, "index": at} for at, row in enumerate(made["embeddings"])]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def openai_chat(models: OllamaModels, body: Json) -> Iterator[Json]:
    """POST /v1/chat/completions: the parts of a stream, or the one object if no stream is asked for."""
    head = {"id": "chatcmpl-1", "created": CREATED, "model": body["model"], "system_fingerprint": "fp_ollama"}
    *pieces, last = models.chat({**body, **_as_ollama(body)})
    count, written = last["prompt_eval_count"], last["eval_count"]
    usage = {"prompt_tokens": count, "completion_tokens": written, "total_tokens": count + written}
    reason = last["done_reason"]
    if not body.get("stream"):
        said, thought = (
            "".join(piece["message"].get(name, "") for piece in pieces) for name in ("content", "thinking")
        )
        message = {"role": "assistant", "content": said, **({"reasoning": thought} if thought else {})}
        logprobs = [each for piece in pieces for each in piece.get("logprobs", [])]
        choice = {"index": 0, "message": message, "finish_reason": reason}
        choices = [{**choice, **({"logprobs": {"content": logprobs}} if logprobs else {})}]
        yield {**head, "object": "chat.completion", "choices": choices, "usage": usage}
        return
    head = {**head, "object": "chat.completion.chunk"}
    for part in [*pieces, last]:
        delta = dict(part["message"])
        if thought := delta.pop("thinking", ""):
            delta["reasoning"] = thought
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason if part["done"] else None}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": usage}


def _as_ollama(body: Json) -> Json:
    """The options of OpenAI's API as Ollama's."""
    shape = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    effort = body.get("reasoning_effort")
    return {
        "options": {"num_predict": body.get("max_tokens", -1)},
        **({"format": shape} if shape else {}),
        **({"think": False if effort == "none" else effort} if effort else {}),
    }
