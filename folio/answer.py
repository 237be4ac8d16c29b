"""Question + evidence -> the sentences of an answer, each with its citations: by a model, or extractive."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from folio import cite, prompts
from folio.errors import ContextTooSmall, OllamaError
from folio.ollama import OllamaServer, broke_off, client_kwargs, translate
from folio.sentences import sentence_spans
from folio.tokens import coverage, estimate_tokens, tokenize
from folio.types import Embedder, Hit, Sentence, TermWeights, Turn

if TYPE_CHECKING:
    from langchain_ollama import ChatOllama

# Sizes of context that a model is loaded with. Few, because each change makes the server load the model again.
CONTEXT_SIZES = (4096, 8192, 16384, 32768, 65536, 131072)
# Tokens that a model's own template puts around the messages.
TEMPLATE_TOKENS = 64
# Turns of a conversation that a follow-up is rewritten from.
REMEMBERED_TURNS = 4
# What models put before a question that they rewrote.
_LABEL = re.compile(r"^\W*(?:(?:standalone|rewritten|follow-up)\s+)*question\W*:", re.I)


class OllamaAnswerer:
    """A chat model that Ollama serves, held to the evidence by cite.check."""

    def __init__(
        self, server: OllamaServer, model: str, *, evidence_tokens: int, answer_tokens: int
    ) -> None:
        """evidence_tokens: of the passages in a prompt at most. answer_tokens: room that is kept for the answer.

        Asks the server about the model. Raises OllamaError, ModelMissing, CloudModel.
        """
        self._server = server
        self._model = server.require_local(model)
        self._largest = self._model.context_length or CONTEXT_SIZES[0]
        self._evidence_tokens = min(evidence_tokens, self._largest)
        self._answer_tokens = answer_tokens
        self._context = 0  # tokens; the size that the model was last loaded with
        self.notice = ""
        self.name = f"{self._model.name} (Ollama)"

    def sentences(self, question: str, hits: Sequence[Hit]) -> Iterator[Sentence | None]:
        """See types.Answerer. Raises ModelError."""
        evidence = self._evidence(hits)
        if evidence:
            shown = hits[: len(evidence)]
            prompt = prompts.QUESTION.format(evidence="\n\n".join(evidence), question=question)
            self.notice = ""
            yield from cite.check(self._stream(prompts.ANSWER, prompt), shown, whole=lambda: not self.notice)

    def standalone(self, question: str, history: Sequence[Turn]) -> str:
        """See types.Answerer. What is no question is not believed: the follow-up is then taken as it was asked."""
        turns = [f"Q: {turn.standalone_question}\nA: {turn.answer}" for turn in history[-REMEMBERED_TURNS:]]
        prompt = prompts.STANDALONE.format(chat_history="\n".join(turns), question=question)
        known = set(tokenize(" ".join([*turns, question])))
        for line in "".join(self._stream("", prompt)).splitlines():
            rewritten = _LABEL.sub("", line).strip(" *\"“”\n")
            if rewritten and not rewritten.endswith(":"):  # "Here is the standalone question:"
                believed = len(rewritten) <= 4 * len(question) + 400 and known.intersection(tokenize(rewritten))
                return rewritten if believed and not cite.is_refusal(rewritten) else question
        return question

    def _evidence(self, hits: Sequence[Hit]) -> list[str]:
        """The passages as the model reads them, best first, as many as the budget of tokens holds."""
        kept: list[str] = []
        left = self._evidence_tokens
        for number, hit in enumerate(hits, 1):
            text = prompts.EVIDENCE.format(number=number, file=hit.paper.file, pages=hit.where, text=hit.text)
            left -= estimate_tokens(text)
            if left < 0 and kept:
                break
            kept.append(text)
        return kept

    def _stream(self, system: str, prompt: str) -> Iterator[str]:
        """The model's words as they come. Raises OllamaError when the answer breaks off, ContextTooSmall for a cut."""
        from langchain_core.messages import HumanMessage, SystemMessage

        needed = estimate_tokens(system) + estimate_tokens(prompt) + TEMPLATE_TOKENS
        model = self._chat_model(needed)
        messages = [SystemMessage(system)] if system else []
        done = ""
        try:
            for chunk in model.stream([*messages, HumanMessage(prompt)]):
                done = done or str(chunk.response_metadata.get("done_reason") or "")
                read = chunk.usage_metadata["input_tokens"] if chunk.usage_metadata else 0
                if read + TEMPLATE_TOKENS >= self._context:  # the server filled the context, and left out the rest
                    raise self._too_small(read)
                yield str(chunk.content)
        except (OllamaError, ContextTooSmall, GeneratorExit):
            raise
        except Exception as error:  # whatever the client meets on the way is told in our words
            raise translate(error, self._model.name, self._server.url) from error
        if not done:
            raise broke_off(self._model.name, self._server.url)
        if done == "length":
            self.notice = f"The answer was cut at {self._answer_tokens} tokens; raise ANSWER_TOKENS for a longer one."

    def _chat_model(self, prompt_tokens: int) -> ChatOllama:
        from langchain_ollama import ChatOllama

        needed = max(prompt_tokens + self._answer_tokens, self._context)
        fitting = [size for size in CONTEXT_SIZES if needed <= size <= self._largest]
        if not fitting and needed > self._largest:
            raise self._too_small(prompt_tokens)
        self._context = fitting[0] if fitting else self._largest
        return ChatOllama(
            model=self._model.name,
            base_url=self._server.url,
            temperature=0,
            num_ctx=self._context,
            num_predict=self._answer_tokens,
            client_kwargs=client_kwargs(self._server.timeout_s),
        )

    def _too_small(self, prompt_tokens: int) -> ContextTooSmall:
        return ContextTooSmall(
            f"The prompt of {prompt_tokens:,} tokens leaves {self._model.name} no room to answer"
            f" in a context of {self._context or self._largest:,}.",
            "Lower CONTEXT_TOKENS or TOP_K, or set LLM_MODEL to a model with a longer context.",
        )


@dataclass(frozen=True, slots=True)
class _Scored:
    """A sentence of the evidence, where it stands and how well it answers."""

    source: int  # the evidence's number, from 1
    start: int  # offsets in the hit's text
    end: int
    score: float


# How many sentences an extractive answer has at most, and how close to the best the others must come.
MOST_SENTENCES = 3
CLOSE_ENOUGH = 0.85
# Below this the best sentence is no answer: questions on other subjects score 0.27 in the median, see LOG.md.
LEAST_SCORE = 0.3
# A sentence of fewer or more words is a heading, a caption's label or a run of table cells.
WORDS = (5, 90)
# How a list's item begins, how a whole sentence ends, and what only a table of contents holds.
_BULLET = re.compile(r"(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_WHOLE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LEADERS = re.compile(r"(?:\. ?){4,}")


class ExtractiveAnswerer:
    """The sentences of the evidence that answer best, quoted word for word. No model writes anything."""

    name = "extractive (built in)"
    notice = ""

    def __init__(self, embedder: Embedder, term_weights: Callable[[str], TermWeights]) -> None:
        self._embedder = embedder
        self._term_weights = term_weights

    def sentences(self, question: str, hits: Sequence[Hit]) -> Iterator[Sentence | None]:
        """See types.Answerer."""
        scored = self._score(question, hits)
        best = scored[0].score if scored else 0.0
        if best < LEAST_SCORE:
            return
        shown: list[set[str]] = []
        for sentence in scored:
            hit = hits[sentence.source - 1]
            quote = cite.citation(
                hit, sentence.source, hit.chunk.start + sentence.start, hit.chunk.start + sentence.end
            )
            words = set(tokenize(quote.quote))
            if sentence.score < CLOSE_ENOUGH * best or len(shown) == MOST_SENTENCES:
                return
            if words and not any(_alike(words, other) for other in shown):
                shown.append(words)
                yield Sentence(_as_sentence(quote.quote), (quote,))

    def standalone(self, question: str, history: Sequence[Turn]) -> str:
        """See types.Answerer. A question that leans on the one before is joined to it."""
        if not history or not leans_back(question):
            return question
        anchor = next((turn for turn in reversed(history) if not leans_back(turn.question)), history[-1])
        return f"{anchor.question} {question}"

    def _score(self, question: str, hits: Sequence[Hit]) -> list[_Scored]:
        """Every sentence of the evidence, best first.

        The score is the mean of its cosine to the question and of the share of the question's words that it or its
        paper's title holds: a question names the paper, which a sentence of that paper seldom does.
        """
        places = [
            (number, start, end)
            for number, hit in enumerate(hits, 1)
            for start, end in statements(hit.text)
        ]
        if not places:
            return []
        texts = [hits[number - 1].text[start:end] for number, start, end in places]
        nearness = self._embedder.embed_passages(texts) @ self._embedder.embed_query(question)
        weights = self._term_weights(question)
        titles = [hits[number - 1].paper.title for number, _, _ in places]
        held = np.array(
            [coverage(weights, tokenize(f"{title} {text}")) for title, text in zip(titles, texts, strict=True)]
        )
        scores = (nearness + held) / 2
        found = [_Scored(*place, float(score)) for place, score in zip(places, scores, strict=True)]
        return sorted(found, key=lambda sentence: (-sentence.score, sentence.source, sentence.start))


def statements(text: str) -> list[tuple[int, int]]:
    """Spans of what can be quoted as an answer: whole sentences and list items, no headings and contents lines.

    A sentence that ends in a colon takes along what it announces.
    """
    found: list[tuple[int, int]] = []
    announced: int | None = None
    for start, end in sentence_spans(text):
        bullet = _BULLET.match(text, start, end)
        begin = bullet.end() if bullet else start
        words = len(text[begin:end].split())
        if text[end - 1] == ":" and words >= WORDS[0]:
            announced = begin
            continue
        if announced is not None and len(text[announced:end].split()) <= WORDS[1]:
            begin = announced
        announced = None
        is_whole = bool(bullet) or bool(_WHOLE.search(text, begin, end))
        if is_whole and WORDS[0] <= words <= WORDS[1] and not _LEADERS.search(text, begin, end):
            found.append((begin, end))
    return found


def _as_sentence(quote: str) -> str:
    """A quote on one line, with dots where the page's edge cut the sentence."""
    line = " ".join(quote.split())
    before = "… " if line[:1].islower() else ""
    after = "" if _WHOLE.search(line) or line.endswith(":") else " …"
    return f"{before}{line}{after}"


def _alike(words: set[str], other: set[str]) -> bool:
    return len(words & other) > 0.8 * min(len(words), len(other))


_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|she|him|his|her|hers|same|former|latter|both|else"
    r"|others?|such(?! as\b)|(?:the|which|another|first|second|last) ones?|(?<!is )(?<!are )(?<!was )(?<!were )there)\b"
    r"|^\W*(?:and|but|or|so|then|also|how so|what about|how about)\b",
    re.I,
)


def leans_back(question: str) -> bool:
    """Whether a question cannot be understood without the one before: it points back, or names hardly anything."""
    return bool(_BACK.search(question)) or len(set(tokenize(question))) < 3
