"""Questions for the user's own papers, written by a chat model, each with the spans that answer it.

The model writes a question, an answer and quotes; the program holds them to the pages. What does not stand there word
for word is thrown away, and another passage is tried.
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
from folio.errors import ModelError, UsageError
from folio.evaluate.dataset import Gold, Question
from folio.evaluate.quote_match import LEAST_QUOTE, fold, weight
from folio.ingest import chunking
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import ChatModel
from folio.store.library import Library
from folio.text import sentence_spans, tokenize
from folio.types import Paper

# Rules and a prompt -> what a model says to them, which is to be JSON
Ask = Callable[[str, str], str]

CONTEXT, REPLY = 4096, 512  # tokens: of two passages with the rules and the reply; of the reply
PASSAGE = 1500  # characters of a page that a question is asked about, at most
SENTENCES = 3  # in a passage at least, of at least SHORTEST_SENTENCE words
SHORTEST_SENTENCE = 6
# Papers and passages of one paper that are looked at, for each question that is wanted: a shelf may be large.
PAPERS_EACH, PASSAGES_EACH = 4, 40
PAIRS_OF = 8  # next passages, the nearest pair of which is asked about together
ALIKE = 0.8  # share of their tokens from which two passages count as versions of one
TRIES = 10  # passages for one question; a model that writes nothing sound about so many does not for others either
SHORTEST_QUOTE, LONGEST_QUOTE = 5, 80  # words
LONGEST_QUESTION = 300  # characters

_REFERENCES = re.compile(
    r"^[ \t]*(?:\d+\.?|[IVX]+\.)?[ \t]*(?:references|bibliography|literature cited|works cited)[ \t]*:?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# What entries of a list of references have, and lines of a table of contents.
_SOURCE = re.compile(r"\bdoi\b|\barXiv:|https?://|\bpp\.\s*\d|\bvol\.|\bProc\.|\bISBN\b|^\s*\[\d+\]", re.I | re.M)
_LEADERS = re.compile(r"(?:\.\s?){5,}|(?:…\s?){2,}")
# What a chat model's template, or the fence around evidence, means something by.
_CONTROLS = re.compile(r"<[\s/]*[A-Za-z|｜]|\[/?(?:INST|SYS)\b")
# A question that only someone who has the passage before them understands.
_POINTS_AT_THE_PAPER = re.compile(
    r"\b(?:this|the|these)\s+(?:paper|article|passage|text|evidence|excerpt|section|authors?|present (?:study|work))\b"
    r"|\b(?:mentioned|described|given|listed) (?:above|here)\b|\b(?:evidence|passage) [12]\b|\bboth passages\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Written(BaseModel):
    """What the model is to reply."""

    question: str
    answer: str
    quotes: list[str]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of one page that reads as prose."""

    paper: Paper
    page: int
    text: str
    tokens: frozenset[str]


def ask_with(server: OllamaServer, model: str) -> Ask:
    """A chat model that Ollama serves, as `make` asks it: temperature 0, held to the shape of the reply.

    Asks the server about the model. Raises OllamaError, ModelMissing, CloudModel; a call raises ModelError.
    """
    info = server.require_local(model)
    chat = ChatModel(server, info.name)
    context = min(CONTEXT, info.context_length or CONTEXT)
    shape = Written.model_json_schema()

    def ask(rules: str, prompt: str) -> str:
        pieces = chat.stream(rules, prompt, context=context, longest=REPLY, shape=shape)
        return "".join(str(piece.content) for piece in pieces)

    return ask


def make(library: Library, ask: Ask, count: int, *, seed: int = 0) -> Iterator[Question]:
    """At most `count` questions on the papers of a library, each as soon as it is written: factual, synthesis, ...

    A factual question has one gold span; one of synthesis has two, of two papers, or of two places where there is one
    paper, and needs both. Papers take turns; the seed decides their order and which of their passages are asked about,
    so that the same papers, model and seed give the same set. Fewer come where the passages run out.

    Raises UsageError where no paper has a passage of prose, ModelError where the model writes nothing sound in TRIES
    tries at one question or at all (the questions before it stand), and what `ask` raises.
    """
    pool = _pool(library, random.Random(seed), count)
    if not pool:
        raise UsageError(
            "No paper in the index has a passage of prose to ask about.", "Put papers with text in and run ingest.py."
        )
    rarity = _rarity(pool)
    asked: set[str] = set()
    for number in range(1, count + 1):
        for _ in range(TRIES):
            chosen = _chosen(pool, 1 + (number + 1) % 2, rarity)
            if not chosen and asked:
                return
            question = _written(ask, chosen, f"m{number:03}") if chosen else None
            if question and question.text.casefold() not in asked:
                break
        else:
            raise ModelError(
                "The model wrote no question that its passage bears out, however many passages it was given.",
                "Keep what there is, or set LLM_MODEL to a larger model.",
            )
        asked.add(question.text.casefold())
        yield question


# Passages


def _pool(library: Library, rng: random.Random, count: int) -> list[Passage]:
    """Passages to ask about, the papers taking turns."""
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
    """The pieces of a paper's pages that read as prose, without its references and tables of contents."""
    headings = [found.start() for found in _REFERENCES.finditer(text) if found.start() >= len(text) // 2]
    body = headings[0] if headings else len(text)
    for page in range(1, paper.page_count + 1):
        start, end = paper.pages.bounds(page, paper.length)
        on_page = text[start : min(end, body)]
        for first, last in chunking.split(on_page, PASSAGE, 0):
            piece = on_page[first:last]
            if is_prose(piece):
                yield Passage(paper, page, piece, frozenset(tokenize(piece)))


def is_prose(text: str) -> bool:
    """Whether a text is made of sentences: no table, no references, no contents, no code."""
    if _LEADERS.search(text) or _CONTROLS.search(text) or len(_SOURCE.findall(text)) >= SENTENCES:
        return False
    letters = sum(char.isalpha() or char.isspace() for char in text)
    sentences = (text[start:end] for start, end in sentence_spans(text))
    whole = [s for s in sentences if s[-1] in ".?!" and len(s.split()) >= SHORTEST_SENTENCE]
    return len(whole) >= SENTENCES and letters >= 0.8 * len(text)


def _rarity(pool: Sequence[Passage]) -> dict[str, float]:
    """How much each token tells: its inverse document frequency, ln(passages / passages with it)."""
    counts = Counter(token for passage in pool for token in passage.tokens)
    return {token: math.log(len(pool) / count) for token, count in counts.items()}


def _chosen(pool: list[Passage], wanted: int, rarity: Mapping[str, float]) -> list[Passage]:
    """The next passage, or the nearest pair of one of the next PAIRS_OF and any other; taken out of the pool.

    Nothing where the pool does not have as many.
    """
    if len(pool) < wanted:
        return []
    if wanted == 1:
        return [pool.pop(0)]
    pairs = [
        (_nearness(one, other, rarity), place, at)
        for place, one in enumerate(pool[:PAIRS_OF])
        for at, other in _elsewhere(pool, one)
    ]
    _, place, at = max(pairs, key=lambda pair: pair[0])
    chosen = [pool[place], pool[at]]
    for taken in sorted((place, at), reverse=True):
        del pool[taken]
    return chosen


def _elsewhere(pool: Sequence[Passage], one: Passage) -> list[tuple[int, Passage]]:
    """The passages of other papers, with their places; of the same paper where there is no other."""
    others = [(at, passage) for at, passage in enumerate(pool) if passage is not one]
    return [(at, passage) for at, passage in others if passage.paper != one.paper] or others


def _nearness(one: Passage, other: Passage, rarity: Mapping[str, float]) -> float:
    """The share of their tokens that two passages have in common, each counting for how much it tells.

    0 for what is almost the same text.
    """
    shared = one.tokens & other.tokens
    both = one.tokens | other.tokens
    if len(shared) >= ALIKE * len(both):
        return 0.0
    return sum(map(rarity.__getitem__, shared)) / (sum(map(rarity.__getitem__, both)) or 1.0)


# Questions


def _written(ask: Ask, passages: Sequence[Passage], id: str) -> Question | None:
    """A question about these passages; None where what the model wrote does not hold."""
    fenced = [
        prompts.EVIDENCE.format(
            number=number, paper=_title(passage.paper), pages=f"p. {passage.page}", text=passage.text
        )
        for number, passage in enumerate(passages, 1)
    ]
    prompt = prompts.MAKE_FACTUAL if len(passages) == 1 else prompts.MAKE_SYNTHESIS
    reply = ask(prompts.MAKE, prompt.format(evidence="\n\n".join(fenced)))
    try:
        written = Written.model_validate_json(reply[reply.find("{") : reply.rfind("}") + 1])
    except ValidationError:
        return None
    text, answer = " ".join(written.question.split()), " ".join(written.answer.split())
    quotes = _quotes(written.quotes, passages)
    if not quotes or not _asks(text) or not _follows(answer, quotes):
        return None
    several = len(passages) > 1
    gold = tuple(
        Gold(passage.paper.file, passage.page, quote, part=str(number) if several else "")
        for number, (passage, quote) in enumerate(zip(passages, quotes, strict=True), 1)
    )
    return Question(id, text, "synthesis" if several else "factual", True, answer, gold, every=several)


def _title(paper: Paper) -> str:
    return " ".join((paper.title or paper.file).split()).translate(str.maketrans('<>"', "‹›'"))


def _quotes(given: Sequence[str], passages: Sequence[Passage]) -> list[str]:
    """For each passage the quote of it, in its own words; [] where one is missing."""
    found = []
    for passage in passages:
        standing = [quote for quote in (stands(words, passage.text) for words in given) if quote and quote not in found]
        if not standing:
            return []
        found.append(standing[0])
    return found


def stands(quote: str, text: str) -> str:
    """A quote as it stands in a text word for word, its white space made single spaces; "" where it does not.

    Too short a quote, or too long, is none.
    """
    words = quote.split()
    if not SHORTEST_QUOTE <= len(words) <= LONGEST_QUOTE or weight(fold(quote)) < LEAST_QUOTE:
        return ""
    found = re.search(r"(?<!\w)" + r"\s+".join(map(re.escape, words)) + r"(?!\w)", text)
    return " ".join(found.group().split()) if found else ""


def _asks(question: str) -> bool:
    """Whether this is a question that can be understood without the passage."""
    sound = question.endswith("?") and len(question) <= LONGEST_QUESTION and len(tokenize(question)) >= 2
    return sound and not _POINTS_AT_THE_PAPER.search(question)


def _follows(answer: str, quotes: Sequence[str]) -> bool:
    """Whether an answer keeps to its quotes: every number of it stands there, and of one quote half of its words."""
    said = " ".join(quotes)
    tokens, there = set(tokenize(answer)), set(tokenize(said))
    if not tokens or not set(_NUMBER.findall(answer)) <= set(_NUMBER.findall(said)):
        return False
    return len(quotes) > 1 or 2 * len(tokens & there) >= len(tokens)
