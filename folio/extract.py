"""Question + evidence -> an answer in the papers' own sentences. No model writes anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from folio.dispute import conflict
from folio.facts import facts
from folio.protocols import Embedder, TermWeights
from folio.sentences import sentence_spans
from folio.support import Judge, citation
from folio.tokens import coverage, tokenize
from folio.types import ANALYSIS, SUMMARY, Answer, Evidence, Sentence, Style


@dataclass(frozen=True, slots=True)
class _Scored:
    """A sentence of the evidence, where it stands and how well it answers."""

    evidence: Evidence
    start: int  # offsets in the evidence's text
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.evidence.text[self.start : self.end]


# How many sentences an extractive answer has at most, and how close to the best the others must come.
MOST_SENTENCES = 3
CLOSE_ENOUGH = 0.85
# The same for the analysis of a report, which follows these sentences as its summary.
MOST_DETAILS = 8
DETAIL_ENOUGH = 0.6
# Below this the best sentence is no answer: questions on other subjects score 0.27 in the median, see LOG.md.
LEAST_SCORE = 0.3
# A sentence of fewer or more words is a heading, a caption's label or a run of table cells.
WORDS = (5, 90)
# How a list's item begins, how a whole sentence ends, and what only a table of contents holds.
_BULLET = re.compile(r"(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_WHOLE = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LEADERS = re.compile(r"(?:\. ?){4,}")


class ExtractiveAnswerer:
    """The sentences of the evidence that answer best, quoted word for word."""

    name = "extractive (built in)"
    notice = ""

    def __init__(self, embedder: Embedder, term_weights: Callable[[str], TermWeights], *, evidence_tokens: int) -> None:
        """evidence_tokens: of the evidence that is looked through at most."""
        self._embedder = embedder
        self._term_weights = term_weights
        self.evidence_tokens = evidence_tokens

    def sentences(self, question: str, evidence: Sequence[Evidence], style: Style = "plain") -> Iterator[Sentence]:
        """See protocols.Answerer."""
        scored = self._score(question, evidence)
        if not scored or scored[0].score < LEAST_SCORE:
            return
        judge = Judge(evidence, None)
        best = scored[0].score
        answering = _differing(place for place in scored if place.score >= CLOSE_ENOUGH * best)[:MOST_SENTENCES]
        for place in answering:
            yield _sentence(place, judge, SUMMARY if style == "report" else "")
        if style == "report":
            near = [place for place in scored if place.score >= max(LEAST_SCORE, DETAIL_ENOUGH * best)]
            details = _differing([*answering, *near])[len(answering) :][:MOST_DETAILS]
            for paper in dict.fromkeys(place.evidence.paper for place in details):
                own = (place for place in details if place.evidence.paper == paper)
                for place in sorted(own, key=lambda place: place.evidence.start + place.start):
                    yield _sentence(place, judge, f"{ANALYSIS}/{paper.title or paper.file}")

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        """See protocols.Answerer. A question that leans on the one before is joined to it.

        "Explain the second one" is taken to mean the second item, or else sentence, of the last answer.
        """
        if not history:
            return question
        if meant := _meant(question, history[-1]):
            return meant
        if not leans_back(question):
            return question
        anchor = next((turn for turn in reversed(history) if not leans_back(turn.question)), history[-1])
        return f"{anchor.question} {question}"

    def _score(self, question: str, evidence: Sequence[Evidence]) -> list[_Scored]:
        """Every sentence of the evidence, best first.

        The score is the mean of its cosine to the question and of the share of the question's words that it or its
        paper's title holds: a question names the paper, which a sentence of that paper seldom does.
        """
        places = [(piece, start, end) for piece in evidence for start, end in statements(piece.text)]
        if not places:
            return []
        texts = [piece.text[start:end] for piece, start, end in places]
        nearness = self._embedder.embed_passages(texts) @ self._embedder.embed_query(question)
        weights = self._term_weights(question)
        titles = [piece.paper.title for piece, _, _ in places]
        held = np.array(
            [coverage(weights, tokenize(f"{title} {text}")) for title, text in zip(titles, texts, strict=True)]
        )
        scores = (nearness + held) / 2
        found = [_Scored(*place, float(score)) for place, score in zip(places, scores, strict=True)]
        return sorted(found, key=lambda place: (-place.score, place.evidence.number, place.start))


def _sentence(place: _Scored, judge: Judge, section: str) -> Sentence:
    quote = citation(place.evidence, place.start, place.end, 1.0)
    return Sentence(_as_sentence(quote.quote), (quote,), judge.against(quote.quote, (quote,)), section)


def _differing(places: Iterable[_Scored]) -> list[_Scored]:
    """These places without those that say again what one before them says.

    With other numbers a sentence says something else, unless another paper gives them for the same thing: then it is
    shown as a disagreement.
    """
    kept: list[_Scored] = []
    for place in places:
        if tokenize(place.text) and not any(_repeats(place, before) for before in kept):
            kept.append(place)
    return kept


def _repeats(place: _Scored, before: _Scored) -> bool:
    words, others = set(tokenize(place.text)), set(tokenize(before.text))
    if len(words & others) <= 0.8 * min(len(words), len(others)):
        return False
    apart = place.evidence.paper != before.evidence.paper
    return _numbers(place.text) == _numbers(before.text) or (apart and conflict(place.text, before.text))


def _numbers(text: str) -> frozenset[object]:
    return frozenset(facts(text).quantities)


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


_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|this|that|these|those|he|she|him|his|her|hers|same|former|latter|both|else"
    r"|others?|such(?! as\b)|(?:the|which|another|first|second|last) ones?|(?<!is )(?<!are )(?<!was )(?<!were )there)\b"
    r"|^\W*(?:and|but|or|so|then|also|how so|what about|how about)\b",
    re.I,
)


def leans_back(question: str) -> bool:
    """Whether a question cannot be understood without the one before: it points back, or names hardly anything."""
    return bool(_BACK.search(question)) or _counted_off(question) is not None or len(set(tokenize(question))) < 3


_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_WHICH = re.compile(
    rf"\b(?:the\s+)?(?:(?P<word>{'|'.join(_ORDINALS)}|last)|(?P<digits>\d{{1,2}})(?:st|nd|rd|th))\s+"
    r"(?:(?P<one>one|of\s+(?:them|these|those))|point|item|sentence|answer|method|option|step|reason|source|quote)\b"
    r"|(?:\b(?:number|point|item|sentence|no\.)\s*|#)(?P<number>\d{1,2})\b",
    re.I,
)
# What a list in a sentence begins with, and what parts its items.
_LISTED = re.compile(
    r"(?::|\b(?:include[sd]?|including|such as|namely|are|were|(?:consists?|made(?: up)?|composed) of|comprises?))\s+"
    r"(?!.*:\s)",
    re.S,
)
_PARTED = re.compile(r"[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*[•▪‣]\s*|\s*\(?\b(?:[ivx]{1,4}|\d{1,2}|[a-h])\)\s+")
_LONGEST_ITEM = 12  # words


def _counted_off(question: str) -> re.Match[str] | None:
    """Where a question counts off something that was answered: "the second one", or "step 2" and hardly anything else.

    "The first step of key generation in ML-DSA" needs no answer to be understood.
    """
    match = _WHICH.search(question)
    if match and (match["one"] or len(set(tokenize(question[: match.start()] + question[match.end() :]))) < 3):
        return match
    return None


def _meant(question: str, last: Answer) -> str:
    """The question with the item that it counts off filled in; nothing where it counts off none that is there."""
    match = _counted_off(question)
    if match is None:
        return ""
    items = _items(last)
    word = (match["word"] or "").lower()
    place = len(items) if word == "last" else int(match["digits"] or match["number"] or _ORDINALS.index(word) + 1)
    if not 1 <= place <= len(items):
        return ""
    item = items[place - 1]
    if len(item.split()) <= _LONGEST_ITEM:
        return f"{question[: match.start()]}{item.rstrip(' .')}{question[match.end() :]}"
    return f"{question} {item}"


def _items(answer: Answer) -> list[str]:
    """What an answer lists: the items of its one sentence, else its sentences."""
    texts = [sentence.text for sentence in answer.sentences]
    if len(texts) == 1 and (listed := _LISTED.search(texts[0])):
        items = [item.strip(" .\n") for item in _PARTED.split(texts[0][listed.end() :])]
        items = [item for item in items if item]
        if len(items) > 1 and all(len(item.split()) <= _LONGEST_ITEM for item in items):
            return items
    return texts
