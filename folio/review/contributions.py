"""What a paper contributes, in a few of its own sentences: what it is, how it was done, what was found, its limits.

The first is chosen by how near its meaning is to the title and the abstract, and by the words with which authors say
what their paper does; the others as on the page of a paper (answer/about.py), from sentences that read by themselves.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from folio.answer.about import MOVES, AboutKind
from folio.answer_types import Quote
from folio.papers.model import Paper, Vectors
from folio.papers.sections import Kind
from folio.protocols import Embedder
from folio.review.excerpts import OWN, Excerpt, abbreviations, excerpts, undefined, unexplained
from folio.text import STOP_WORDS, one_line, tokenize

_ABOUT = 1200  # characters of the title and the abstract, or of the first sentences, that are compared
_FIRST = 6  # sentences that stand for an abstract where a paper has none
_MOST_SAYING, _MOST_FRONT, _MOST_OTHER = 12, 8, 6  # sentences whose meaning is compared, of each kind
_OPENING, _LEAST_OPENING = 0.2, 3000  # share and characters of a paper without sections that may say what it is
_MOST_COUNTED, _TITLE_COUNTS = 60_000, 5  # characters of a paper whose words are counted; a word of its title counts as
_MOST_STEMS = 1_500  # that are kept of a paper
_NO_SUBJECT: frozenset[Kind] = frozenset({"references", "boilerplate", "acknowledgements", "appendix"})
_MOST_POINTS, _MOST_WORDS = 3, 110  # of an entry
ALIKE = 0.8  # cosine of two sentences that say the same
# Cosines to what the paper is about: of a first sentence that says what the paper does, of another first one, of one
# that continues it, of others where a paper sums up, and of others elsewhere, most of which are details
_LEAST_SAYING, _LEAST, _LEAST_LONGER, _LEAST_SUMMED, _LEAST_ELSEWHERE = 0.15, 0.3, 0.4, 0.35, 0.55
_LEAST_OUTCOME, _OUTCOME_COUNTS = 0.15, 0.3  # of the outcome of a replication, and what its words add to its nearness
_MOST_FIRST = 45  # words of a first sentence that is shown with the next one

# At the start of a sentence: "In this article, we ...", "The aim of the course is ...", "This replication reports ..."
_SAYS_WHAT = re.compile(
    rf"(?:[\w ]{{3,30}} — )?(?:here,? |(?:in|with|through|throughout) )?(?:(?:the|our|an?) (?:\w+ )?"
    rf"(?:aim|goal|purpose|objective|focus|contribution)s? of )?(?:this|the present|our) {OWN}\b"
    r"(?:,? (?:we|I)\b|[^.;]{0,30}?\b(?:present|describ|report|introduc|propos|show|provid|survey|review|explor|examin"
    r"|investigat|argu|develop|offer|articulat|demonstrat|stud|analy[sz]|compar|discuss|outlin|address|summari[sz]"
    r"|is\b|aim|has\b|gives|deals|reproduc|replicat)\w*\b)",
    re.I,
)
_REPRODUCED = re.compile(
    r"\b(?:(?:we|I) (?:were|was|are|am) (?:un)?able to|could (?:not )?be"
    r"|(?:was|were|has been|have been) (?:\w+ly |partially |not )?|(?:we|I) (?:have )?(?:\w+ly )?|able to |failed to "
    r"|succeed\w* in |(?:attempt|effort|try|tried)(?: is| was)?(?: made)? to (?:\w+ly )?(?:and \w+ly )?)"
    r"(?:reproduc|replicat)(?:e|ed|ing)\b",
    re.I,
)
# Whether a replication succeeded, as its authors say in a sentence of its own: also where they cite the original work
_OUTCOME = re.compile(
    r"\b(?:we|I|it|results?|figures?|findings?|experiments?|simulations?|models?)\b[^.;]{0,60}?"
    r"\b(?:(?:were|was|am|are) (?:\w+ly )?(?:un)?able to|success\w*|succeed\w* in|fail\w* to|could (?:not|only)"
    r"|(?:partially|partly|fully|mostly|exactly|largely) )[^.;]{0,30}?\b(?:reproduc|replicat)\w*",
    re.I,
)
_OTHERS_WORK = re.compile(r"\[\d[\d,;\s–-]*\]|\([^()]*\b(?:19|20)\d\d[a-z]?[^()]*\)|\bet al\b|\bthe authors?\b", re.I)
_RAISED = re.compile("[⁰¹²³⁴-⁹]")
_BY_THE_WAY = re.compile(
    r"\b(?:hope|begin|start|remark|note|decided|in general|unfortunately|interestingly|of course|just|mentioned"
    r"|open question|put differently|in other words"
    r"|will (?:then|now|next|only))\b|\?",
    re.I,
)
_ADDS = re.compile(
    r"\b(?:also|too|however|again|second|finally|another|furthermore|thus|therefore|hence|(?:have|has) since)\b", re.I
)  # to what came before
_GOES_ON = re.compile(rf"{_ADDS.pattern}|\b(?:here|now|first)\b|\bthe (?:two|three|four|five) [a-z]", re.I)
_CONCEDES = re.compile(r"(?:although|while|though|despite|even)\b", re.I)  # a limit that a result makes up for
# A thing that a sentence before has named: "the scheme", "the proposed system"; not "the system of axioms"
_NAMED_BEFORE = re.compile(
    r"\b(?:it|they|them|the (?:\w+ )?(?:schemes?|methods?|methodology|systems?|approach|algorithms?|models?|protocols?"
    r"|tools?|techniques?|frameworks?|apps?|package|software|problem|experiments?|results?|authors?))\b"
    r"(?! (?:of|for|that|by|in|to|which|was|were)\b)",
    re.I,
)
_IS = r"(?:is|are|was|were|provides?|presents?|describes?|aims?|consists?|introduces?|teaches|allows?|offers?|enables?)"
_FRONT: dict[Kind, float] = {"abstract": 0.15, "introduction": 0.05, "conclusion": 0.0}
_WORDED, _WORDED_LATE, _NAMED, _FIRST_TO_SAY = 0.45, 0.15, 0.4, 0.1  # what the words of a first sentence add
_OTHERS, _ASIDE, _BEFORE, _NOTED, _UNEXPLAINED = 0.12, 0.15, 0.12, 0.04, 0.25  # what they take away
_UNDEFINED, _MOST_UNDEFINED = 0.06, 3  # what each abbreviation takes away that nobody explains
_SUMS_UP: frozenset[Kind] = frozenset({"abstract", "conclusion", "limitations"})
_SECTIONS: dict[AboutKind, tuple[Kind, ...]] = {  # of each kind, best first
    "method": ("abstract", "methods", "introduction", "other"),
    "result": ("abstract", "conclusion", "results", "discussion", "introduction", "other"),
    "limits": ("limitations", "conclusion", "discussion"),
}
_RANK: tuple[AboutKind, ...] = ("result", "method", "limits")  # which follow the first sentence, most wanted first
_ORDER: tuple[PointKind, ...] = ("subject", "claim", "method", "result", "limits")  # as they are read


# What a quote says of its paper; "subject": of the paper's subject, where no sentence says what the paper does
PointKind = Literal["subject"] | AboutKind


@dataclass(frozen=True, slots=True)
class Point:
    """A quote with what it says of the paper."""

    kind: PointKind
    quote: Quote


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a paper contributes: its points in reading order, none if no sentence says it by itself."""

    paper: Paper
    points: tuple[Point, ...]
    sentences: tuple[Excerpt, ...]  # all that were compared, in the order of the paper
    vectors: Vectors  # of the sentences, shape (len(sentences), dimension)
    vector: Vectors  # of the title and the points, of unit length, shape (dimension,)
    about: Vectors  # of the title and the abstract, of unit length, shape (dimension,)
    summary: str  # title, abstract and the sentences that were compared, a line each
    words: Mapping[str, int]  # stem -> how often the paper has it, of the most frequent ones


def contribution(paper: Paper, text: str, embedder: Embedder) -> Contribution:
    """text: the paper's. Raises ModelError."""
    every = list(excerpts(paper, text))
    saying = [each for each in every if _says_what(each)][:_MOST_SAYING]
    front = list(dict.fromkeys([*saying, *[each for each in every if _opens(paper, each)][:_MOST_FRONT]]))
    kinds = {kind: _of_kind(kind, every) for kind in _SECTIONS}
    compared = sorted({*front, *(each for group in kinds.values() for each in group)}, key=_place)
    abstract = paper.metadata.abstract.value or " ".join(each.text for each in front[:_FIRST])
    texts = [f"{paper.title}. {abstract}"[:_ABOUT], *(each.text for each in compared)]
    vectors = embedder.embed_passages(texts)
    about, rows = vectors[0], dict(zip(compared, vectors[1:], strict=True))
    near = {each: float(row @ about) for each, row in rows.items()}
    firsts = {min(group, key=_place) for group in (saying, front) if group}  # what later ones speak of
    short = abbreviations(text) - abbreviations(f"({paper.title})") - set(paper.title.split())
    may_open = [each for each in front if near[each] >= (_LEAST_SAYING if _says_what(each) else _LEAST)]
    worth = {
        each: near[each]
        + _weight(paper, each)
        + _FIRST_TO_SAY * (each in firsts)
        - _UNEXPLAINED * bool(unexplained(each.text, short))
        - _undefined(paper, each)
        for each in may_open
    }
    first = max(may_open, key=lambda each: worth[each], default=None)
    used = [] if first is None else [first]
    points = [] if first is None else [Point(_kind(paper, first), _with_next(first, about, embedder))]
    for kind in _RANK if points else ():
        fit = [each for each in kinds[kind] if near[each] >= _least(each) and not points[0].quote.contains(each.quote)]
        known = short - abbreviations(points[0].quote.quote)
        fit = [each for each in fit if not unexplained(each.text, known)]
        fit = [each for each in fit if all(float(rows[each] @ rows[other]) < ALIKE for other in used)]
        worth = {
            each: near[each]
            + _OUTCOME_COUNTS * (kind == "result" and _says_outcome(each))
            - _NOTED * bool(_RAISED.search(each.text))
            - _undefined(paper, each)
            for each in fit
        }
        best = max(fit, key=lambda each: worth[each], default=None)
        words = sum(len(point.quote.quote.split()) for point in points)
        if best and len(points) < _MOST_POINTS and words + len(best.text.split()) <= _MOST_WORDS:
            points.append(Point(kind, best.quote))
            used.append(best)
    if first and len(points) == 1 and (second := _second(paper, first, front, near, rows, points[0].quote)):
        points.append(Point("claim", second.quote))
        used.append(second)
    points.sort(key=lambda point: _ORDER.index(point.kind))
    vector = _mean([about, *(rows[each] for each in used)])
    summary = "\n".join([paper.title, one_line(abstract), *(each.text for each in compared)])
    counts = _word_counts(paper, text)
    return Contribution(paper, tuple(points), tuple(compared), vectors[1:], vector, about, summary, counts)


def _word_counts(paper: Paper, text: str) -> dict[str, int]:
    """How often a paper has its most frequent stems, a word of its title some times more."""
    kept, at = [paper.title] * _TITLE_COUNTS, 0
    for start, end in sorted(paper.sections.spans_of_kinds(_NO_SUBJECT)):
        kept.append(text[at:start])
        at = max(at, end)
    kept.append(text[at:])
    stems = tokenize("\n".join(kept)[:_MOST_COUNTED])
    counts = Counter(stem for stem in stems if len(stem) > 2 and stem.isalpha() and stem not in STOP_WORDS)
    return {sys.intern(stem): count for stem, count in counts.most_common(_MOST_STEMS)}


def _second(
    paper: Paper,
    first: Excerpt,
    every: Sequence[Excerpt],
    near: Mapping[Excerpt, float],
    rows: Mapping[Excerpt, Vectors],
    shown: Quote,
) -> Excerpt | None:
    """Another sentence on what a paper is, where it has none on its method, result or limits."""
    fit = [
        each
        for each in every
        if near[each] >= _LEAST_ELSEWHERE
        and not shown.contains(each.quote)
        and each.section != "conclusion"
        and _opens(paper, each)
        and float(rows[each] @ rows[first]) < ALIKE
        and (_says_what(each) or _names_subject(paper, each.text))
        and not any(words.search(each.text) for words in (_OTHERS_WORK, _BY_THE_WAY, _GOES_ON))
    ]
    return max(fit, key=lambda each: near[each], default=None)


def _undefined(paper: Paper, excerpt: Excerpt) -> float:
    """What abbreviations that nothing explains take from a sentence: a reader may not know them."""
    return _UNDEFINED * min(_MOST_UNDEFINED, undefined(excerpt.text, paper.title))


def _place(excerpt: Excerpt) -> int:
    return excerpt.quote.start


def _kind(paper: Paper, first: Excerpt) -> PointKind:
    return "claim" if _says_what(first) or _names_subject(paper, first.text) else "subject"


def _says_what(excerpt: Excerpt) -> bool:
    """Whether a sentence says what its paper does."""
    sentence = excerpt.text
    if excerpt.section in _FRONT and (MOVES["claim"].says.search(sentence) or _REPRODUCED.search(sentence)):
        return True
    return bool(_SAYS_WHAT.match(sentence))


def _opens(paper: Paper, excerpt: Excerpt) -> bool:
    """Whether a sentence stands where a paper says what it is."""
    is_early = excerpt.quote.start < max(_OPENING * paper.length, _LEAST_OPENING)
    return excerpt.section in _FRONT or (excerpt.section == "other" and is_early)


def _weight(paper: Paper, excerpt: Excerpt) -> float:
    """What the section and the words of a sentence add to its nearness, as the first one of an entry."""
    sentence = excerpt.text
    worded = _WORDED if _opens(paper, excerpt) else _WORDED_LATE
    return (
        _FRONT.get(excerpt.section, 0.0)
        + max(worded * _says_what(excerpt), _NAMED * _names_subject(paper, sentence))
        - _OTHERS * bool(_OTHERS_WORK.search(sentence))
        - _NOTED * bool(_RAISED.search(sentence))
        - _ASIDE * bool(_BY_THE_WAY.search(sentence) or _ADDS.search(sentence))
        - _BEFORE * bool(_NAMED_BEFORE.search(sentence))
    )


def _names_subject(paper: Paper, sentence: str) -> bool:
    """Whether a sentence begins with what the title names: "ThermoState is a Python package that ..."."""
    name, colon, _ = paper.title.partition(": ")
    if not colon or name.startswith("["):
        return False  # "A Josephson junction is ..." is about the subject of a title, not about the paper
    words = set(tokenize(name))
    start = re.match(rf"([^,.;:]{{1,80}}?)\s{_IS}\b", sentence)
    said = set(tokenize(start[1])) if start else set()
    return bool(said) and len(said & words) >= max(min(2, len(words)), len(said) / 2)


def _of_kind(kind: AboutKind, every: Sequence[Excerpt]) -> list[Excerpt]:
    """The sentences that may be of a kind, those in the best sections first, at most _MOST_OTHER."""
    sections = _SECTIONS[kind]
    fit = [
        each
        for each in every
        if (kind == "result" and _says_outcome(each))
        or (
            each.section in sections
            and MOVES[kind].says.search(each.text)
            and not any(words.search(each.text) for words in (_OTHERS_WORK, _BY_THE_WAY, _GOES_ON))
            and not (kind == "limits" and _is_result(each.text))
        )
    ]

    def rank(excerpt: Excerpt) -> tuple[bool, int]:
        return not _says_outcome(excerpt), (*sections, excerpt.section).index(excerpt.section)

    return sorted(fit, key=rank)[:_MOST_OTHER]


def _says_outcome(excerpt: Excerpt) -> bool:
    """Whether a sentence says if a replication succeeded; not what others did, which the introduction tells."""
    said = excerpt.section != "introduction" and not _BY_THE_WAY.search(excerpt.text)
    return said and bool(_OUTCOME.search(excerpt.text))


def _is_result(sentence: str) -> bool:
    says = _REPRODUCED.search(sentence) or MOVES["result"].says.search(sentence)
    return bool(says or _CONCEDES.match(sentence))


def _least(excerpt: Excerpt) -> float:
    if _says_outcome(excerpt):
        return _LEAST_OUTCOME
    return _LEAST_SUMMED if excerpt.section in _SUMS_UP else _LEAST_ELSEWHERE


def _with_next(first: Excerpt, about: Vectors, embedder: Embedder) -> Quote:
    """The first sentence, with the next one that leans on it if that is about the paper too."""
    if first.longer is None or len(first.text.split()) > _MOST_FIRST:
        return first.quote
    added = one_line(first.longer.quote)[len(first.text) :].strip()
    is_clean = not any(words.search(added) for words in (_OTHERS_WORK, _BY_THE_WAY, _RAISED))
    is_near = is_clean and float(embedder.embed_passages([added])[0] @ about) >= _LEAST_LONGER
    return first.longer if is_near else first.quote


def _mean(vectors: Sequence[Vectors]) -> Vectors:
    total = np.sum(vectors, axis=0)
    return np.asarray(total / max(1e-9, float(np.linalg.norm(total))), dtype=np.float32)
