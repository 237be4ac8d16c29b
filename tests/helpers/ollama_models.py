"""What the stand-in for an Ollama server does with a request: embedding by hashed words, answers from the prompt.

No HTTP and no faults; those are ollama_server.py's.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

Json = dict[str, Any]
Reply = Callable[[list[Json]], str] | Sequence[str]

DEFAULT_NUM_CTX = 4096  # what Ollama takes under 24 GiB of VRAM, whatever the model could
REFUSAL = "Not found in the provided papers."
TOO_LONG = "the input length exceeds the context length"


@dataclass(frozen=True)
class Model:
    """A model to serve. parameters is its Modelfile's, a line each: "num_ctx 256"."""

    name: str
    architecture: str
    context_length: int
    embedding_length: int
    capabilities: tuple[str, ...]
    parameters: str = ""
    remote_host: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()

    @property
    def num_ctx(self) -> int | None:
        found = re.search(r"^num_ctx\s+(\d+)", self.parameters, re.MULTILINE)
        return int(found[1]) if found else None


LLAMA = Model("llama3.1:8b", "llama", 131072, 4096, ("completion", "tools"))
NOMIC = Model("nomic-embed-text:latest", "nomic-bert", 2048, 768, ("embedding",), "num_ctx 8192")
MINILM = Model("all-minilm:latest", "bert", 512, 384, ("embedding",), "num_ctx 256")
CLOUD = Model("gpt-oss:120b-cloud", "gptoss", 131072, 2880, ("completion",), remote_host="https://ollama.com:443")


class RefusedError(Exception):
    """An answer {"error": ...} with this status."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


def words_of(text: str) -> int:
    """Tokens in a text, about: English has three words to four tokens."""
    return math.ceil(len(text.split()) * 1.3)


def hash_embedding(text: str, dimension: int) -> list[float]:
    """A unit vector by feature hashing: each word adds to four places. Texts that share words point the same way."""
    vector = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
        weight = 0.2 if len(word) < 4 else 1.0  # most short words say little
        for at in range(0, 16, 4):
            number = int.from_bytes(digest[at : at + 4], "big")
            vector[(number >> 1) % dimension] += weight if number & 1 else -weight
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm else [1.0] + [0.0] * (dimension - 1)


def answer_from_evidence(messages: list[Json]) -> str:
    """The default reply: the first sentence of evidence 1 with its marker, or a follow-up question as it stands."""
    last = str(messages[-1]["content"])
    evidence = re.search(r'^<evidence number="1"[^\n]*>\n(.*?)^</evidence>$', last, re.MULTILINE | re.DOTALL)
    if evidence is None:
        if any("standalone" in str(message["content"]).lower() for message in messages):
            return _last_question(last)
        return REFUSAL
    text = " ".join(evidence[1].split())
    sentences = re.split(r"(?<=[.!?])\s+", text)
    sentence = next((s for s in sentences if len(s.split()) >= 5 and s[-1] in ".!?"), text)
    words = sentence.rstrip(".!?")
    return f"{words} [1]{sentence[len(words) :]}"


def _last_question(prompt: str) -> str:
    unlabelled = (re.sub(r"^[\w -]{1,30}:\s*", "", line.strip()) for line in prompt.splitlines())
    lines = [line for line in unlabelled if line]
    return next((line for line in reversed(lines) if line.endswith("?")), lines[-1] if lines else "")


class OllamaModels:
    """The models of a server. dimension is nomic-embed-text's; count_tokens is the tokenizer of all of them.

    A reply that is a list is said in order, one for each chat.
    """

    def __init__(self, dimension: int, reply: Reply, count_tokens: Callable[[str], int]) -> None:
        nomic = replace(NOMIC, embedding_length=dimension)
        self.models = {model.name: model for model in (LLAMA, nomic, CLOUD)}
        self.registry = {model.name: model for model in (LLAMA, nomic, MINILM)}  # what can be pulled
        self.reply = reply
        self.count_tokens = count_tokens
        self.cut: list[str] = []  # texts and messages that the models did not see whole
        self.read: list[list[Json]] = []  # for each chat the messages that the model saw
        self.lock = threading.Lock()
        self._said = 0

    def find(self, body: Json) -> Model:
        name = body.get("model")
        if not isinstance(name, str) or not name:
            raise RefusedError(400, "model is required")
        tagged = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
        if tagged not in self.models:
            raise RefusedError(404, f"model '{name}' not found")
        return self.models[tagged]

    def tags(self) -> Json:
        return {
            "models": [
                {"name": m.name, "model": m.name, "modified_at": "2026-08-01T00:00:00Z", "size": 1, "digest": m.digest,
                 "details": {"family": m.architecture}}
                for m in self.models.values()
            ]
        }  # fmt: skip

    def show(self, body: Json) -> Json:
        model = self.find(body)
        facts: Json = {
            "general.architecture": model.architecture,
            f"{model.architecture}.context_length": model.context_length,
            f"{model.architecture}.embedding_length": model.embedding_length,
        }
        remote = {"remote_host": model.remote_host, "remote_model": model.name} if model.remote_host else {}
        return {"details": {"family": model.architecture}, "model_info": facts, "parameters": model.parameters,
                "capabilities": list(model.capabilities), **remote}  # fmt: skip

    def embed(self, body: Json) -> Json:
        model = self.find(body)
        given = body.get("input", [])
        texts: list[str] = [given] if isinstance(given, str) else given
        if not all(isinstance(text, str) for text in texts):
            raise RefusedError(400, "invalid input type")
        dimension = min(body.get("dimensions") or model.embedding_length, model.embedding_length)
        read = [self._fit(text, self._context(model, body), body.get("truncate") is not False) for text in texts]
        embeddings = [hash_embedding(text, dimension) for text in read]
        return {"model": body["model"], "embeddings": embeddings, "total_duration": 1, "load_duration": 1,
                "prompt_eval_count": sum(map(self.count_tokens, read))}  # fmt: skip

    def chat(self, body: Json) -> Iterator[Json]:
        """The pieces of an answer; raises RefusedError before the first where there is none."""
        model = self.find(body)
        if "completion" not in model.capabilities:
            raise RefusedError(400, f'"{body["model"]}" does not support chat')
        messages: list[Json] = body.get("messages") or []
        head: Json = {"model": body["model"], "created_at": "2026-08-01T00:00:00Z"}
        if not messages:
            empty = {"role": "assistant", "content": ""}
            return iter([{**head, "message": empty, "done": True, "done_reason": "load"}])
        context = self._context(model, body)
        read = self._window(messages, context, body.get("truncate") is not False)
        limit = (body.get("options") or {}).get("num_predict", -1)
        pieces = re.findall(r"\S+\s*|\s+", self._say(read))
        said = pieces if limit < 0 else pieces[:limit]
        last = {"done": True, "done_reason": "stop" if len(said) == len(pieces) else "length", "total_duration": 1,
                "load_duration": 1, "prompt_eval_count": min(context, self._tokens(read)), "prompt_eval_duration": 1,
                "eval_count": len(said), "eval_duration": 1}  # fmt: skip
        parts: list[Json] = [{"content": piece, "done": False} for piece in said] + [{"content": "", **last}]
        return ({**head, "message": {"role": "assistant", "content": part.pop("content")}, **part} for part in parts)

    def pull(self, body: Json) -> Iterator[Json]:
        yield {"status": "pulling manifest"}
        name = str(body.get("model", ""))
        model = self.registry.get(name if ":" in name else f"{name}:latest")
        if model is None:
            yield {"error": "pull model manifest: file does not exist"}
            return
        for completed in (0, 512, 1024):
            yield {"status": f"pulling {model.digest[:12]}", "digest": f"sha256:{model.digest}", "total": 1024,
                   "completed": completed}  # fmt: skip
        yield {"status": "verifying sha256 digest"}
        self.models[model.name] = model
        yield {"status": "success"}

    def _say(self, messages: list[Json]) -> str:
        with self.lock:
            self.read.append(messages)
            at, self._said = self._said, self._said + 1
        if callable(self.reply):
            return self.reply(messages)
        if at >= len(self.reply):
            raise RefusedError(500, f"the test scripted {len(self.reply)} replies and this is one more")
        return self.reply[at]

    def _context(self, model: Model, body: Json) -> int:
        asked = (body.get("options") or {}).get("num_ctx") or model.num_ctx or DEFAULT_NUM_CTX
        return min(int(asked), model.context_length)

    def _tokens(self, messages: list[Json]) -> int:
        return sum(self.count_tokens(str(message["content"])) + 4 for message in messages)

    def _fit(self, text: str, context: int, truncate: bool, keep_end: bool = False) -> str:
        """The longest beginning, or end, of a text that the context takes."""
        if self.count_tokens(text) <= context:
            return text
        if not truncate:
            raise RefusedError(400, TOO_LONG)
        with self.lock:
            self.cut.append(text)
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            part = text[-middle:] if keep_end else text[:middle]
            low, high = (middle, high) if self.count_tokens(part) <= context else (low, middle - 1)
        return text[len(text) - low :] if keep_end else text[:low]

    def _window(self, messages: list[Json], context: int, truncate: bool) -> list[Json]:
        """The messages that fit: the oldest go first, system messages and the last one stay, the last one is cut."""
        if self._tokens(messages) <= context:
            return messages
        if not truncate:
            raise RefusedError(400, TOO_LONG)
        kept = list(messages)
        while self._tokens(kept) > context:
            oldest = next((i for i, message in enumerate(kept[:-1]) if message["role"] != "system"), None)
            if oldest is None:
                room = max(0, context - self._tokens(kept[:-1]) - 4)
                kept[-1] = {**kept[-1], "content": self._fit(kept[-1]["content"], room, True, keep_end=True)}
                return kept
            with self.lock:
                self.cut.append(str(kept.pop(oldest)["content"]))
        return kept
