"""Answers by a real chat model on a server: asks a set, keeps every reply of the server, and makes one table.

python benchmarks/real_model.py SET --out runs/now                        asks LLM_MODEL about the index; with
                                                                          LLM=openai on that server, else on Ollama
python benchmarks/real_model.py SET --out runs/now --most 30 --seed 1     some of the questions
python benchmarks/real_model.py SET --out runs/now --replay               asks no server
python benchmarks/real_model.py --out runs/now --grades grades.jsonl      the table alone, with a person's grades

SET: in any format of docs/evaluation-set.md; a set of texts has its own index. The server's replies go into
replies.jsonl, so that a change of the parser or of a rule is measured again in seconds; with --replay, a request that
was never sent before is an error. answers.jsonl has what a person grades: the question, the expected answer, and each
statement with its quotes. grades.jsonl is made by that person: {"id": ..., "grade": "good"} a line, or "partly",
"useless" or "wrong".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.chat import Chat, Reply
from folio.app import App
from folio.cli.command import positive_int, run_command
from folio.console import output, progress_bar, say
from folio.errors import ModelError
from folio.evaluate import dataset, runner
from folio.evaluate.dataset import EvalSet, Gold, Question
from folio.evaluate.relevance import fold_quote, holds
from folio.text import one_line

ANSWERS = "answers.jsonl"
GRADES = ("good", "partly", "useless", "wrong")
WAIT_S = 1800  # for one reply
# What does not change a reply: the size of the context depends on what the server has loaded
_UNIMPORTANT = ("num_ctx", "keep_alive")


class Recorder:
    """Stands between Folio and the server on loopback. Each request's reply is kept, and given again if known."""

    def __init__(self, server: str, kept: Path, *, replay: bool) -> None:
        """server: base URL. kept: a file of JSON lines, one for each request. replay: ask nothing of the server."""
        self._server, self._kept, self._replay = server, kept, replay
        lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
        self._known: dict[str, dict[str, Any]] = {each["key"]: each for each in map(json.loads, lines)}

    def reply(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the reply."""
        key = _key(method, path, body)
        if key not in self._known:
            if self._replay:
                return 500, b'{"error": "this request was not recorded"}'
            request = Request(self._server + path, body or None, {"Content-Type": "application/json"}, method=method)
            try:
                with urlopen(request, timeout=WAIT_S) as response:
                    status, text = response.status, response.read().decode()
            except HTTPError as error:
                status, text = error.code, error.read().decode()
            self._known[key] = {"key": key, "path": path, "request": body.decode(), "status": status, "reply": text}
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self._known[key]) + "\n")
        return self._known[key]["status"], self._known[key]["reply"].encode()


def _key(method: str, path: str, body: bytes) -> str:
    try:
        request = json.loads(body or b"{}")
        for name in _UNIMPORTANT:
            request.pop(name, None)
            request.get("options", {}).pop(name, None)
        body = json.dumps(request, sort_keys=True).encode()
    except ValueError:
        pass
    return hashlib.sha256(b" ".join((method.encode(), path.encode(), body))).hexdigest()


@contextmanager
def recording(recorder: Recorder) -> Iterator[str]:
    """Serve the recorder on a free port of loopback; yields host:port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", b"")

        def do_POST(self) -> None:
            self._answer("POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, method: str, body: bytes) -> None:
            status, text = recorder.reply(method, self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/x-ndjson")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with what came of it, as answers.jsonl has it."""

    id: str
    question: str
    answerable: bool
    expected: str
    text: str  # the answer as shown, a statement a line, each with its outcome and quotes
    statements: tuple[str, ...]  # their outcomes
    gold_in_evidence: bool
    gold_shown: bool  # in the quotes
    words: int
    left_out: int
    seconds: float
    error: str = ""


def ask(app: App, asked: EvalSet, questions: Sequence[Question], out: Path) -> Iterator[Asked]:
    """Ask each question by itself; what came of it is appended to answers.jsonl at once."""
    with progress_bar() as progress:
        ready = runner.open_text_store(app, asked, progress) if asked.documents else runner.open_paper_store(app)
    with ready as store:
        answerer = app.models.answerer(store.retriever)
        for question in questions:
            begun = perf_counter()
            reply, error = None, ""
            try:
                reply = Chat(store.retriever, answerer, top_k=app.top_k).ask(question.text)
            except ModelError as failure:
                error = f"{failure.happened} {failure.remedy}"
            each = _asked(question, reply, round(perf_counter() - begun, 1), error)
            with (out / ANSWERS).open("a", encoding="utf-8") as file:
                file.write(json.dumps({name: getattr(each, name) for name in Asked.__slots__}) + "\n")
            say(f"{each.id}: {each.seconds} s, {len(each.statements)} statements. {each.error}")
            yield each


def _asked(question: Question, reply: Reply | None, seconds: float, error: str) -> Asked:
    golds = [gold for gold in question.gold if gold.quote]
    answer = reply.answer if reply else None
    lines: list[str] = []
    for sentence in answer.sentences if answer else ():
        lines.append(f"[{sentence.outcome}] {one_line(sentence.text)}")
        lines += [f"    “{one_line(each.quote)}” ({each.paper.file}, p. {each.page})" for each in sentence.citations]
    if answer:
        lines += [f"Notice: {answer.notice}"] * bool(answer.notice) + ["(no statement)"] * (not answer.sentences)
    sentences = answer.sentences if answer else ()
    return Asked(
        question.id,
        question.text,
        question.answerable,
        question.answer,
        "\n".join(lines),
        tuple(sentence.outcome for sentence in sentences),
        _has([(piece.paper.file, piece.text) for piece in answer.evidence] if answer else [], golds),
        _has([(each.paper.file, each.quote) for sentence in sentences for each in sentence.citations], golds),
        sum(len(sentence.text.split()) for sentence in sentences),
        answer.dropped if answer else 0,
        seconds,
        error,
    )


def _has(texts: Sequence[tuple[str, str]], golds: Sequence[Gold]) -> bool:
    """Whether a gold quote, or most of it, stands in a text of its paper."""
    return any(
        file == gold.paper and holds(fold_quote(text), fold_quote(gold.quote)) for gold in golds for file, text in texts
    )


def print_table(asked: Sequence[Asked], grades: Mapping[str, str]) -> None:
    """Print the figures of a run. grades: by question id."""
    answerable = [each for each in asked if each.answerable]
    others = [each for each in asked if not each.answerable]
    in_evidence = [each for each in answerable if each.gold_in_evidence]
    statements = Counter(outcome for each in asked for outcome in each.statements)
    rows = {
        "questions, answerable": f"{len(asked)}, {len(answerable)}",
        "gold in the evidence": f"{len(in_evidence)} of {len(answerable)}",
        "gold in the quotes": f"{sum(each.gold_shown for each in answerable)} of {len(in_evidence)}",
        "answerable, nothing shown": str(sum(not each.statements for each in answerable)),
        "unanswerable, nothing shown": f"{sum(not each.statements for each in others)} of {len(others)}",
        "statements": ", ".join(f"{count} {outcome}" for outcome, count in statements.items()),
        "statements left out": str(sum(each.left_out for each in asked)),
        "words, median": f"{median(each.words for each in asked):.0f}",
        "seconds, median and most": f"{median(e.seconds for e in asked):.0f}, {max(e.seconds for e in asked):.0f}",
        "errors": str(sum(bool(each.error) for each in asked)),
    }
    if grades:
        for name, group in (("answerable", answerable), ("unanswerable", others)):
            count = Counter(grades[each.id] for each in group if each.id in grades)
            rows[f"grades, {name}"] = ", ".join(f"{count[grade]} {grade}" for grade in GRADES)
    console = output()
    for name, value in rows.items():
        console.print(f"{name:30}{value}", highlight=False)


def _read(path: Path) -> list[Asked]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Asked(**{**row, "statements": tuple(row["statements"])}) for row in rows]


def _run(app: App, arguments: argparse.Namespace) -> int:
    arguments.out.mkdir(parents=True, exist_ok=True)
    answers: Path = arguments.out / ANSWERS
    if arguments.grades:
        rows = map(json.loads, arguments.grades.read_text(encoding="utf-8").splitlines())
        print_table(_read(answers), {row["id"]: row["grade"] for row in rows})
        return 0
    asked = dataset.load(arguments.set)
    questions = list(asked.questions)
    if arguments.most and arguments.most < len(questions):
        questions = random.Random(arguments.seed).sample(questions, arguments.most)
    other = app.settings.LLM == "openai"
    server = app.models.chat_server.url.removesuffix("/v1")
    recorder = Recorder(server, arguments.out / "replies.jsonl", replay=arguments.replay)
    answers.unlink(missing_ok=True)
    with recording(recorder) as address:
        recorded = {"OPENAI_BASE_URL": f"http://{address}/v1"} if other else {"OLLAMA_HOST": address, "LLM": "ollama"}
        settings = app.settings.model_copy(update=recorded)
        print_table(list(ask(replace(app, settings=settings), asked, questions, arguments.out)), {})
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure answers by a real chat model.")
    parser.add_argument("set", type=Path, nargs="?", help="the questions")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where replies and answers are kept")
    parser.add_argument("--most", type=positive_int, metavar="N", help="ask N questions, drawn at random")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: 0)")
    parser.add_argument("--replay", action="store_true", help="use the kept replies alone")
    parser.add_argument("--grades", type=Path, metavar="FILE", help="show the table of a run with these grades")
    arguments = parser.parse_args(argv)
    if not (arguments.set or arguments.grades):
        parser.error("name a set of questions")
    return run_command(lambda app: _run(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
