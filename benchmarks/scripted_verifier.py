"""A stand-in for a verifying model that errs as a real one does, to measure Folio's check without a model.

    python benchmarks/scripted_verifier.py judged.jsonl --port 11500
    OLLAMA_HOST=127.0.0.1:11500 VERIFIER=llm python -m benchmarks.grounding --judged judged.jsonl

A server on the loopback that speaks as much of Ollama's protocol as one-token yes-or-no questions with log
probabilities need. It reads the labels of judged answers, finds the statement that a message asks about, and says yes
to a supported one with the probability `--sensitivity`, and no to any other with `--specificity`. The errors depend on
the seed and the statement alone, so the same statement always gets the same answer.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import threading
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.grounding.answers import FALSE, NOT_IN_EVIDENCE, SUPPORTED, UNFAITHFUL, load_judged
from folio.errors import FolioError

VERSION = "0.12.11"  # the first with log probabilities
CONTEXT = 131072
# The least similarity of a statement that was changed on the way, such as a pronoun replaced by its subject
CLOSE = 0.7
_TAGGED = re.compile(r"<statement>(.*?)</statement>", re.S)

Json = dict[str, Any]


class ScriptedVerifier:
    """Says yes or no to statements whose labels are known."""

    def __init__(
        self, labels: Iterable[tuple[str, str]], *, sensitivity: float = 0.85, specificity: float = 0.8, seed: int = 0
    ) -> None:
        """labels: statements with the labels of a judged file; a statement with two labels is not supported."""
        self._is_true: dict[str, bool | None] = {}
        for text, label in labels:
            known = {SUPPORTED: True, FALSE: False, NOT_IN_EVIDENCE: False, UNFAITHFUL: False}.get(label)
            folded = _folded(text)
            self._is_true[folded] = False if self._is_true.get(folded, known) != known else known
        self._sensitivity = sensitivity
        self._specificity = specificity
        self._seed = seed

    def probability_of_yes(self, message: str) -> float | None:
        """What it makes of the statement in a message; None if the message has none that it knows."""
        statement = self._find(message)
        if statement is None:
            return None
        chance = random.Random(f"{self._seed}:{statement}")
        is_true = self._is_true[statement]
        # A statement without a claim may get either answer.
        says_yes = {True: self._sensitivity, False: 1 - self._specificity, None: 0.5}[is_true] > chance.random()
        confidence = 0.5 + 0.49 * math.sqrt(chance.random())
        return confidence if says_yes else 1 - confidence

    def _find(self, message: str) -> str | None:
        """The statement that stands last in a message, where the question about it is: evidence may quote others."""
        folded = _folded(message)
        ends = ((folded.rfind(known) + len(known), known) for known in self._is_true if known in folded)
        if tagged := _TAGGED.findall(message):
            asked = _folded(tagged[-1])
            if asked in self._is_true:
                return asked
            return next(iter(get_close_matches(asked, self._is_true, 1, CLOSE)), None)
        return max(ends, key=lambda found: (found[0], len(found[1])), default=(0, None))[1]


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def labels_of(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """The statements of judged files with their labels. Raises UsageError."""
    return [(s.text, s.label) for path in paths for answer in load_judged(path) for s in answer.statements]


class VerifierServer:
    """The server, at `url` while its `with` block lasts."""

    def __init__(self, verifier: ScriptedVerifier, model: str = "llama3.1:8b", port: int = 0) -> None:
        """port: on the loopback; 0 for a free one."""
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.verifier, self._http.model = verifier, model
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self.close()

    def serve_forever(self) -> None:
        self._http.serve_forever(0.01)

    def close(self) -> None:
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    verifier: ScriptedVerifier
    model: str

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/api/version":
            self._send(200, {"version": VERSION})
        elif self.path == "/api/tags":
            name = self.server.model
            self._send(200, {"models": [{"name": name, "model": name, "digest": "0" * 64, "details": {}}]})
        else:
            self._send(404, {"error": f"there is no {self.path} here"})

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            model = body["model"]
        except (ValueError, KeyError, TypeError):
            self._send(400, {"error": "invalid request body"})
            return
        if model != self.server.model:
            self._send(404, {"error": f"model '{model}' not found"})
        elif self.path == "/api/show":
            info = {"general.architecture": "llama", "llama.context_length": CONTEXT}
            self._send(200, {"modelfile": "", "details": {}, "model_info": info, "capabilities": ["completion"]})
        elif self.path == "/api/chat":
            self._chat(body)
        else:
            self._send(404, {"error": f"there is no {self.path} here"})

    def log_message(self, format: str, *args: object) -> None:
        """No line for each request."""

    def _chat(self, body: Json) -> None:
        if body.get("options", {}).get("num_predict") != 1:
            self._send(400, {"error": "this stand-in answers in one token: it verifies statements and writes nothing"})
            return
        message = next((m["content"] for m in reversed(body.get("messages", [])) if m.get("role") == "user"), "")
        probability = self.server.verifier.probability_of_yes(message)
        # A model that does not see what is asked begins with some other word.
        tokens = {"I": 0.9} if probability is None else {"yes": probability, "no": 1 - probability}
        ranked = sorted(tokens.items(), key=lambda token: -token[1])
        entries = [{"token": token, "logprob": math.log(p), "bytes": list(token.encode())} for token, p in ranked]
        said = {"message": {"role": "assistant", "content": ranked[0][0]}, "done": False}
        if body.get("logprobs"):
            said["logprobs"] = [{**entries[0], "top_logprobs": entries[: body.get("top_logprobs", 0)]}]
        end = {"done": True, "done_reason": "length", "prompt_eval_count": len(message) // 4, "eval_count": 1}
        about = {"model": self.server.model, "created_at": "2026-01-01T00:00:00Z"}
        if body.get("stream") is False:
            self._send(200, {**about, **said, **end})
        else:
            last = {"message": {"role": "assistant", "content": ""}, **end}
            lines = [json.dumps({**about, **part}) for part in (said, last)]
            self._send(200, "\n".join(lines) + "\n", "application/x-ndjson")

    def _send(self, status: int, body: Json | str, kind: str = "application/json; charset=utf-8") -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Serve a verifier that errs as a real model does, until Ctrl-C.")
    parser.add_argument("judged", type=Path, nargs="+", metavar="FILE", help="judged answers, whose labels it reads")
    parser.add_argument("--sensitivity", type=float, default=0.85, help="share of supported statements that get a yes")
    parser.add_argument("--specificity", type=float, default=0.8, help="share of the others that get a no")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="llama3.1:8b", help="the model's name (LLM_MODEL)")
    parser.add_argument("--port", type=int, default=11500)
    given = parser.parse_args(argv)
    for name in ("sensitivity", "specificity"):
        if not 0 <= getattr(given, name) <= 1:
            parser.error(f"--{name} must be from 0 to 1")
    try:
        labels = labels_of(given.judged)
    except FolioError as error:
        print(error.happened, error.remedy, sep="\n", file=sys.stderr)
        return error.exit_code
    verifier = ScriptedVerifier(labels, sensitivity=given.sensitivity, specificity=given.specificity, seed=given.seed)
    try:
        server = VerifierServer(verifier, given.model, given.port)
    except OSError as error:
        print(
            f"Port {given.port} cannot be used: {error.strerror}.",
            "Choose another: --port N.",
            sep="\n",
            file=sys.stderr,
        )
        return 1
    print(f"{given.model} verifies {len(labels)} statements at {server.url}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
