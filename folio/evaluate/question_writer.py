"""Writes evaluation questions about the user's own papers with a chat model, each with its gold quotes.

The model writes a question, an answer and quotes, and the program checks them against the pages. If a quote is not
verbatim, the question is discarded and another passage is tried.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from folio.answer import prompts
from folio.answer.fencing import passage_block
from folio.answer.reply_json import reply_value
from folio.errors import ModelError, ThoughtAlone, UsageError, command
from folio.evaluate.dataset import Gold, Question
from folio.evaluate.relevance import MIN_QUOTE_LENGTH, fold_quote, weight
from folio.ingest import chunking
from folio.models.chat_model import ChatModel
from folio.models.model_server import ModelServer
from folio.papers.model import Paper
from folio.store.library import Library
from folio.text import one_line, sentence_spans, tokenize

# Called with a system prompt and a prompt; returns the model's reply, which should be JSON
Ask = Callable[[str, str], str]

CONTEXT, REPLY = 4096, 512  # tokens: two passages, the prompts and the reply; the reply alone
PASSAGE = 1500  # maximum characters of a passage
SENTENCES = 3  # minimum per passage, each with at least SHORTEST_SENTENCE words
SHORTEST_SENTENCE = 6
# Papers read per question wanted, and passages kept per paper: collections may be large.
PAPERS_EACH, PASSAGES_EACH = 4, 40
PAIRS_OF = 8  # passages considered as the first of a pair
ALIKE = 0.8  # two passages with at least this share of common tokens are versions of the same text
TRIES = 10  # attempts per question; a model that fails this often will fail on other passages too
SHORTEST_QUOTE, LONGEST_QUOTE = 5, 80  # words
LONGEST_QUESTION = 300  # characters

_REFERENCES = re.compile(
    r"^[ \t]*(?:\d+\.?|[IVX]+\.)?[ \t]*(?:references|bibliography|literature cited|works cited)[ \t]*:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# Typical of entries in a bibliography, and of lines in a table of contents
_SOURCE = re.compile(r"\bdoi\b|\barXiv:|https?://|\bpp\.\s*\d|\bvol\.|\bProc\.|\bISBN\b|^\s*\[\d+\]", re.I | re.M)
_LEADERS = re.compile(r"(?:\.\s?){5,}|(?:…\s?){2,}")
# Control markup of chat templates or of the fence around evidence
_CONTROLS = re.compile(r"<[\s/]*[A-Za-z|｜]|\[/?(?:INST|SYS)\b")
# Phrases of a question that cannot be understood without the passage
_POINTS_AT_THE_PAPER = re.compile(
    r"\b(?:this|the|these)\s+(?:paper|article|passage|text|evidence|excerpt|section|authors?|present (?:study|work))\b"
    r"|\b(?:mentioned|described|given|listed) (?:above|here)\b|\b(?:evidence|passage) [12]\b|\bboth passages\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class ModelReply(BaseModel):
    """The reply expected from the model."""

    question: str
    answer: str
    quotes: list[str]


_SHAPE = ModelReply.model_json_schema()


@dataclass(frozen=True, slots=True)
class Passage:
    """Prose from one page."""

    paper: Paper
    page: int
    text: str
    tokens: frozenset[str]


def ask_with(server: ModelServer, model: str, form: type[BaseModel] = ModelReply) -> Ask:
    """A chat model for `write_questions`: temperature 0, with replies constrained to the form's JSON schema.

    Looks the model up on the server. Raises ModelError, and so does a call.
    """
    chat = ChatModel.open(server, model)
    shape = form.model_json_schema()

    def ask(rules: str, prompt: str) -> str:
        try:
            return chat.write(rules, prompt, context=chat.context_for(CONTEXT), longest=REPLY, shape=shape)
        except ThoughtAlone:
            if chat.only_thinks:
                raise
            return ""

    return ask


def write_questions(library: Library, ask: Ask, count: int, *, seed: int = 0) -> Iterator[Question]:
    """Write at most `count` questions about a library's papers, alternately factual and synthesis; yields each at once.

    A factual question has one gold quote. A synthesis question has two and needs both; they come from two papers, or
    from two passages if there is only one. Papers take turns; the seed decides their order and their passages, so the
    same papers, model and seed give the same set. There are fewer questions if the passages run out.

    Raises UsageError if no paper has a passage of prose, ModelError if the model writes no valid question in TRIES
    attempts (earlier questions remain valid), and whatever `ask` raises.
    """
    pool = _pool(library, random.Random(seed), count)
    if not pool:
        raise UsageError(
            "No paper in the index has prose to ask about.", f"Add papers with text and run `{command('ingest')}`."
        )
    idf = _idf(pool)
    seen: set[str] = set()
    for number in range(1, count + 1):
        for _ in range(TRIES):
            chosen = _choose(pool, 1 + (number + 1) % 2, idf)
            if not chosen and seen:
                return
            question = _write_question(ask, chosen, f"m{number:03}") if chosen else None
            if question and question.text.casefold() not in seen:
                break
        else:
            raise ModelError(
                f"The model wrote no valid question in {TRIES} attempts.",
                "Keep the questions written so far, or set LLM_MODEL to a larger model.",
            )
        seen.add(question.text.casefold())
        yield question


def _pool(library: Library, rng: random.Random, count: int) -> list[Passage]:
    """Passages to ask about; the papers take turns."""
    papers = library.papers()
    rng.shuffle(papers)
    by_paper: list[list[Passage]] = []
    for paper in papers[: PAPERS_EACH * count]:
        passages = list(passages_of(paper, library.text(paper.id, 0, paper.length)))
        rng.shuffle(passages)
        by_paper.append(passages[:PASSAGES_EACH])
    longest = max(map(len, by_paper), default=0)
    return [passages[turn] for turn in range(longest) for passages in by_paper if turn < len(passages)]


def passages_of(paper: Paper, text: str) -> Iterator[Passage]:
    """The prose passages of a paper, without its bibliography and table of contents."""
    headings = [match.start() for match in _REFERENCES.finditer(text) if match.start() >= len(text) // 2]
    body = headings[0] if headings else len(text)
    for page in range(1, paper.page_count + 1):
        start, end = paper.pages.bounds(page, paper.length)
        on_page = text[start : min(end, body)]
        for first, last in chunking.split(on_page, PASSAGE, 0):
            piece = on_page[first:last]
            if is_prose(piece):
                yield Passage(paper, page, piece, frozenset(tokenize(piece)))


def is_prose(text: str) -> bool:
    """Whether a text consists of sentences and is not a table, bibliography, table of contents or code."""
    if _LEADERS.search(text) or _CONTROLS.search(text) or len(_SOURCE.findall(text)) >= SENTENCES:
        return False
    letters = sum(char.isalpha() or char.isspace() for char in text)
    sentences = (text[start:end] for start, end in sentence_spans(text))
    complete = [s for s in sentences if s[-1] in ".?!" and len(s.split()) >= SHORTEST_SENTENCE]
    return len(complete) >= SENTENCES and letters >= 0.8 * len(text)


def _idf(pool: Sequence[Passage]) -> dict[str, float]:
    """The inverse document frequency of each token: ln(passages / passages with the token)."""
    counts = Counter(token for passage in pool for token in passage.tokens)
    return {token: math.log(len(pool) / count) for token, count in counts.items()}


def _choose(pool: list[Passage], count: int, idf: Mapping[str, float]) -> list[Passage]:
    """Remove from the pool the next passage, or the most similar pair of one of the next PAIRS_OF and any other.

    Returns [] if the pool has too few passages.
    """
    if len(pool) < count:
        return []
    if count == 1:
        return [pool.pop(0)]
    pairs = [
        (_similarity(first, other, idf), place, at)
        for place, first in enumerate(pool[:PAIRS_OF])
        for at, other in _partners(pool, first)
    ]
    _, place, at = max(pairs, key=lambda pair: pair[0])
    chosen = [pool[place], pool[at]]
    for position in sorted((place, at), reverse=True):
        del pool[position]
    return chosen


def _partners(pool: Sequence[Passage], first: Passage) -> list[tuple[int, Passage]]:
    """The passages of other papers with their positions, or of the same paper if it is the only one."""
    rest = [(at, passage) for at, passage in enumerate(pool) if passage is not first]
    return [(at, passage) for at, passage in rest if passage.paper != first.paper] or rest


def _similarity(first: Passage, other: Passage, idf: Mapping[str, float]) -> float:
    """The Jaccard similarity of two passages' tokens, weighted by IDF; 0 for near duplicates."""
    shared = first.tokens & other.tokens
    both = first.tokens | other.tokens
    if len(shared) >= ALIKE * len(both):
        return 0.0
    return sum(map(idf.__getitem__, shared)) / (sum(map(idf.__getitem__, both)) or 1.0)


def _write_question(ask: Ask, passages: Sequence[Passage], id: str) -> Question | None:
    """A question about these passages; None if the model's reply is invalid."""
    fenced = [
        passage_block(number, passage.paper, f"p. {passage.page}", passage.text)
        for number, passage in enumerate(passages, 1)
    ]
    prompt = prompts.MAKE_FACTUAL if len(passages) == 1 else prompts.MAKE_SYNTHESIS
    reply = ask(prompts.MAKE, prompt.format(evidence="\n\n".join(fenced)))
    try:
        reply_fields = ModelReply.model_validate(reply_value(reply, _SHAPE))
    except ValidationError:
        return None
    text, answer = one_line(reply_fields.question), one_line(reply_fields.answer)
    quotes = _quotes(reply_fields.quotes, passages)
    if not quotes or not _is_self_contained(text) or not _is_supported(answer, quotes):
        return None
    several = len(passages) > 1
    gold = tuple(
        Gold(passage.paper.file, passage.page, quote, part=str(number) if several else "")
        for number, (passage, quote) in enumerate(zip(passages, quotes, strict=True), 1)
    )
    return Question(id, text, "synthesis" if several else "factual", True, answer, gold, every=several)


def _quotes(candidates: Sequence[str], passages: Sequence[Passage]) -> list[str]:
    """One verbatim quote per passage; [] if a passage has none."""
    quotes = []
    for passage in passages:
        verbatim = (find_quote(words, passage.text) for words in candidates)
        first = next((quote for quote in verbatim if quote and quote not in quotes), None)
        if first is None:
            return []
        quotes.append(first)
    return quotes


def find_quote(quote: str, text: str) -> str:
    """Find a quote verbatim in a text; returns the text's words with single spaces.

    "" if the text does not have it, or it is too short or too long.
    """
    words = quote.split()
    if not SHORTEST_QUOTE <= len(words) <= LONGEST_QUOTE or weight(fold_quote(quote)) < MIN_QUOTE_LENGTH:
        return ""
    match = re.search(r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)", text)
    return one_line(match.group()) if match else ""


def _is_self_contained(question: str) -> bool:
    """Whether this is a question that can be understood without the passage."""
    sound = question.endswith("?") and len(question) <= LONGEST_QUESTION and len(tokenize(question)) >= 2
    return sound and not _POINTS_AT_THE_PAPER.search(question)


def _is_supported(answer: str, quotes: Sequence[str]) -> bool:
    """Whether the quotes support an answer: they have all its numbers and, for a single quote, half of its words."""
    quoted = " ".join(quotes)
    tokens, quote_tokens = set(tokenize(answer)), set(tokenize(quoted))
    if not tokens or not set(_NUMBER.findall(answer)) <= set(_NUMBER.findall(quoted)):
        return False
    return len(quotes) > 1 or 2 * len(tokens & quote_tokens) >= len(tokens)
