"""A chat model as the assessor of a deep search: it plans, scores passages, rephrases, and compares papers.

Its replies only choose and order the evidence; answers are checked against the pages as always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from typing import Any, TypeVar

from folio.answer import prompts
from folio.answer.fencing import passage_block
from folio.answer.layout import Layout
from folio.answer.markers import printable, simplified
from folio.answer.parser import object_schema
from folio.answer.reply_json import JsonModel, StoppedError, lines_of, list_shape, printable_line
from folio.answer_types import Evidence
from folio.deep.types import MOST_RELEVANCE, Assessment, Budget, NamedClaim
from folio.errors import ModelError
from folio.grounding.sentences import number_sentences
from folio.models.model_server import ModelServer
from folio.papers.model import Hit
from folio.text import one_line, tokenize

MOST_CLAIMS, MOST_SENTENCES = 6, 6  # in a comparison, and on each side of a claim
LONGEST_CLAIM = 400  # characters
CLAIMS_REPLY_TOKENS = 768
LONGEST_SUMMARY, LONGEST_QUERY = 600, 200  # characters
MOST_QUERIES, MOST_PARTS = 3, 4
REPLY_TOKENS = 256
T = TypeVar("T")
_POLL_S = 0.1  # between two calls of check_cancelled while waiting for the threads

_ASSESSMENT = object_schema(
    summary={"type": "string"},
    relevance={"type": "integer", "minimum": 0, "maximum": MOST_RELEVANCE},
)
_QUERIES = list_shape("queries", 1, MOST_QUERIES)
_PARTS = list_shape("parts", 0, MOST_PARTS)


class LlmAssessor:
    """See types.Assessor and types.Comparer. A passage is not scored if it is too long or two replies are unusable.

    A lost server, or a model that fails twice on a prompt, ends the search: it would score nothing more.
    """

    uses_model = True

    def __init__(
        self,
        server: ModelServer,
        model: str,
        *,
        parallel: int,
        tokens: int,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Asks the server about the model. Raises as ModelServer.require_local does.

        parallel: simultaneous calls. tokens: as for JsonModel. check_cancelled: called often; an exception ends a call.
        """
        self._model = JsonModel(server, model, tokens=tokens)
        self._parallel = parallel
        self._check_cancelled = check_cancelled
        self.name = self._model.title

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """Scores several passages at once."""
        stop = Event()
        pool = ThreadPoolExecutor(self._parallel, thread_name_prefix="assess")
        try:
            for future in [pool.submit(self._assess, question, hit, budget, stop) for hit in hits]:
                yield self._wait(future)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)

    def _wait(self, future: Future[T]) -> T:
        """The thread's result. Calls check_cancelled while waiting."""
        while True:
            self._check_cancelled()
            if wait([future], _POLL_S).done:
                return future.result()

    def _assess(self, question: str, hit: Hit, budget: Budget, stop: Event) -> Assessment:
        prompt = prompts.ASSESS.format(evidence=passage_block(1, hit.paper, hit.where, hit.text), question=question)
        return self._ask(prompt, _ASSESSMENT, _assessment, budget, stop) or Assessment(None)

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """The parts that the model names."""
        prompt = prompts.PLAN.format(question=question)
        read = partial(_parts, question=question)
        return self._in_thread(lambda stop: self._ask(prompt, _PARTS, read, budget, stop))

    def rephrase(self, question: str, earlier: Sequence[str], budget: Budget) -> list[str]:
        """The model's rewordings."""
        prompt = prompts.REPHRASE.format(question=question, asked="\n".join(f"- {text}" for text in earlier))
        return self._in_thread(lambda stop: self._ask(prompt, _QUERIES, _queries, budget, stop)) or []

    def compare(self, question: str, evidence: Sequence[Evidence], budget: Budget) -> list[NamedClaim]:
        """Compares the first pieces of evidence, as many as fit into the model's context.

        The prompt begins like the answer's, so that the server has its evidence in the cache.
        """
        for pieces in range(len(evidence), 1, -1):
            layout = Layout(question, evidence[:pieces], "statements", "plain")
            prompt = layout.start + prompts.COMPARE.format(question=question)
            if self._model.fits(prompt, CLAIMS_REPLY_TOKENS):
                count = len(number_sentences(layout.evidence))
                shape, read = claims_schema(count), partial(read_claims, sentences=count)
                ask = partial(self._ask, prompt, shape, read, budget, longest=CLAIMS_REPLY_TOKENS)
                return self._in_thread(ask) or []
        return []

    def _in_thread(self, ask: Callable[[Event], T | None]) -> T | None:
        """Call the model in a thread, so that the call can be cancelled."""
        with ThreadPoolExecutor(1) as pool:
            stop = Event()
            try:
                return self._wait(pool.submit(ask, stop))
            finally:
                stop.set()

    def _ask(
        self,
        prompt: str,
        shape: dict[str, Any],
        read: Callable[[Any], T | None],
        budget: Budget,
        stop: Event,
        longest: int = REPLY_TOKENS,
    ) -> T | None:
        """The value that `read` makes of the reply; None without a usable one. longest: maximum tokens of a reply."""

        def check() -> None:
            if stop.is_set() or budget.out_of_time:
                raise StoppedError

        try:
            return self._model.ask(
                prompt,
                shape,
                read,
                reply_tokens=longest,
                take_call=lambda: not stop.is_set() and budget.take_call(),
                check=check,
            )
        except ModelError:
            stop.set()
            raise


def _assessment(reply: Any) -> Assessment | None:
    """The relevance and the summary in a reply; None without a whole number from 0 to 10."""
    if not isinstance(reply, dict):
        return None
    relevance, summary = reply.get("relevance"), reply.get("summary", "")
    if type(relevance) is not int or not 0 <= relevance <= MOST_RELEVANCE or not isinstance(summary, str):
        return None
    return Assessment(relevance, printable_line(simplified(printable(summary)), LONGEST_SUMMARY))


def _queries(reply: Any) -> list[str] | None:
    return lines_of(reply, "queries", MOST_QUERIES, LONGEST_QUERY) or None


def _parts(reply: Any, question: str) -> list[str] | None:
    """[] for a question without parts. Ignores parts without a word of the question, and the question itself."""
    lines = lines_of(reply, "parts", MOST_PARTS, LONGEST_QUERY)
    if lines is None:
        return None
    whole = tokenize(question)
    parts = {tuple(tokenize(line)): line for line in lines}
    kept = [line for words, line in parts.items() if words != tuple(whole) and not set(whole).isdisjoint(words)]
    return kept if len(kept) > 1 else []


def claims_schema(sentences: int) -> dict[str, Any]:
    """The JSON Schema of a comparison. sentences: number of sentences of the evidence."""
    numbers = {
        "type": "array",
        "items": {"type": "integer", "enum": list(range(1, sentences + 1))},
        "maxItems": MOST_SENTENCES,
    }
    claim = {"type": "string"}
    items = object_schema(claim=claim, same={**numbers, "minItems": 1}, other=numbers)
    return object_schema(claims={"type": "array", "items": items, "maxItems": MOST_CLAIMS})


def read_claims(reply: Any, sentences: int) -> list[NamedClaim] | None:
    """The claims in a reply, with the existing numbers; None if it has no list of claims."""
    listed = reply.get("claims") if isinstance(reply, dict) else None
    if not isinstance(listed, list):
        return None
    claims = []
    for one in listed[:MOST_CLAIMS]:
        claim = one.get("claim") if isinstance(one, dict) else None
        if isinstance(claim, str):
            text = one_line(simplified(printable(claim[:LONGEST_CLAIM])))
            same, other = (_numbers(one.get(side), sentences) for side in ("same", "other"))
            claims += [NamedClaim(text, same, other)] if text and same else []
    return claims


def _numbers(value: Any, sentences: int) -> tuple[int, ...]:
    listed = value if isinstance(value, list) else []
    known = (number for number in listed if type(number) is int and 1 <= number <= sentences)
    return tuple(dict.fromkeys(known))[:MOST_SENTENCES]
