"""Where the papers of a review say the same, where they contradict each other, and what they leave open.

Two sentences of papers without a common author agree if they are near in meaning, share words, speak of more than their
own study and do not conflict, which readers can judge: both are shown. The rules for a conflict are those of answers
(grounding/conflicts.py), and those for an open question those of deep answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

import numpy as np

from folio.answer.about import OWN_WORK
from folio.answer_types import Quote
from folio.deep.profile import open_sentences
from folio.deep.types import Agreement, Difference
from folio.grounding.conflicts import conflict
from folio.grounding.sentences import content_words, share, tokens_of
from folio.papers.model import Paper, Vectors
from folio.papers.people import families
from folio.papers.sections import NOT_EVIDENCE, Kind
from folio.protocols import Embedder
from folio.review.contributions import Contribution
from folio.review.excerpts import LONGEST_TEXT, Excerpt, is_plain
from folio.text import fold, one_line

MOST_GROUPS = 5  # agreements, differences, open questions
_SAME, _LEAST_SHARED = 0.64, 0.15  # cosine of two sentences that say the same, and share of the words of each
_TOPIC = 0.55  # cosine of two sentences that may conflict
# What a sentence says of its own study or course agrees with no other one, however alike they sound
_OWN = re.compile(
    rf"\b(?:we|our|ours|us|I|my|this|these|those)\b|\bthe (?:\w+ )?(?:{OWN_WORK}|materials?|package"
    r"|experiments?|measurements?|results?|evaluation|systems?|authors?)\b",
    re.I,
)
_MOST_PAIRS = 4000  # that are compared word by word, the nearest first
_ROWS = 512  # of one multiplication
_LAST_PART = 0.5  # where open questions stand in a paper whose sections are not known
_OPEN_KINDS: frozenset[Kind] = frozenset({"discussion", "conclusion", "limitations"})
# Sentences that only announce open questions
_ANNOUNCES = re.compile(
    r"\b(?:list|discuss|describ|outlin|conclud|mention|suggest|summari[sz])\w*\b[^.]{0,60}"
    r"\b(?:open (?:problem|question)s|future (?:work|research)|avenues|directions)|\b(?:therefore|hence|thus)\b",
    re.I,
)
_LEAST_WORDS, _LEAST_NEAR = 10, 0.25  # words of an open question, and its cosine to what the papers are about
_MOST_OPEN = 4  # of one paper that are compared
_SHARED = 0.6  # cosine of two open questions about the same thing


def compare(papers: Sequence[Contribution]) -> tuple[tuple[Agreement, ...], tuple[Difference, ...]]:
    """The agreements and the differences of these papers, the nearest pairs first. No sentence is in two groups."""
    agreements: list[Agreement] = []
    differences: list[Difference] = []
    used: set[Quote] = set()
    for near, one, two in _pairs(papers):
        if {one.quote, two.quote} & used:
            continue
        if conflict(one.text, two.text):
            differences.append(Difference((one.quote,), (two.quote,)))
        elif near >= _SAME and _say_the_same(one, two):
            agreements.append(Agreement((one.quote, two.quote)))
        else:
            continue
        used |= {one.quote, two.quote}
    return tuple(agreements[:MOST_GROUPS]), tuple(differences[:MOST_GROUPS])


def _pairs(papers: Sequence[Contribution]) -> Iterator[tuple[float, Excerpt, Excerpt]]:
    """Sentences of papers without a common author that are near in meaning, the nearest first."""
    sentences = [sentence for each in papers for sentence in each.sentences]
    if len(papers) < 2 or not sentences:
        return
    rows = np.concatenate([each.vectors for each in papers if each.sentences])
    teams = _teams([each.paper for each in papers])
    of = np.array([teams[sentence.quote.paper.id] for sentence in sentences])
    found: list[tuple[float, int, int]] = []
    for start in range(0, len(rows), _ROWS):
        near = rows[start : start + _ROWS] @ rows.T
        near[of[start : start + _ROWS, None] == of[None, :]] = 0
        ones, twos = np.nonzero(near >= _TOPIC)
        for one, two in zip(ones.tolist(), twos.tolist(), strict=True):
            if start + one < two:
                found.append((-float(near[one, two]), start + one, two))
    for far, one, two in sorted(found)[:_MOST_PAIRS]:
        yield -far, sentences[one], sentences[two]


def _say_the_same(one: Excerpt, two: Excerpt) -> bool:
    if _OWN.search(one.text) or _OWN.search(two.text):
        return False
    words, others = content_words(one.text), content_words(two.text)
    return min(share(words, tokens_of(two.text)), share(others, tokens_of(one.text))) >= _LEAST_SHARED


def _teams(papers: Sequence[Paper]) -> dict[str, int]:
    """Paper id -> the number of its group: papers with a common author, or versions of one work. What one group says
    twice is no agreement."""
    groups: list[tuple[set[str], set[str]]] = []  # names, and ids of papers
    for paper in papers:
        names, ids = {*map(fold, families(paper.metadata.authors.value)), f"title {_work(paper)}"}, {paper.id}
        for group in [group for group in groups if group[0] & names]:
            groups.remove(group)
            names, ids = names | group[0], ids | group[1]
        groups.append((names, ids))
    return {id: number for number, (_, ids) in enumerate(groups) for id in ids}


def _work(paper: Paper) -> str:
    """The key of a work: two files with the same title are versions of one work."""
    return fold(paper.title) or paper.id


def open_of(paper: Paper, text: str) -> list[Quote]:
    """The sentences of a paper on what is open or left to further work, that read by themselves. text: the paper's."""
    text = text[:LONGEST_TEXT]
    found = []
    for start, end in open_sentences(text):
        kind = paper.sections.kind(start, end)
        late = kind in (None, "other") and start > _LAST_PART * paper.length
        if (kind in _OPEN_KINDS or late) and kind not in NOT_EVIDENCE and _is_whole(paper, start, end, text):
            found.append(Quote(paper, start, end, text[start:end]))
    return found[-_MOST_OPEN:]


def _is_whole(paper: Paper, start: int, end: int, text: str) -> bool:
    sentence = text[start:end]
    is_long = len(sentence.split()) >= _LEAST_WORDS
    return is_long and is_plain(paper, start, end, sentence) and not _ANNOUNCES.search(sentence)


def left_open(
    questions: Sequence[Quote],
    papers: Sequence[Contribution],
    embedder: Embedder,
    shown: AbstractSet[Quote] = frozenset(),
) -> tuple[tuple[Quote, ...], ...]:
    """Open questions, those that several papers share first, then those nearest to what the papers are about.

    shown: quotes that are shown elsewhere; only a shared question is shown again. Raises ModelError.
    """
    if not questions or not papers:
        return ()
    rows = embedder.embed_passages([one_line(each.quote) for each in questions])
    about: Vectors = np.mean([each.vector for each in papers], axis=0)
    near = rows @ about
    groups: list[tuple[int, ...]] = []
    used: set[int] = set()
    pairs = [
        (-float(rows[one] @ rows[two]), one, two)
        for one, two in combinations(range(len(questions)), 2)
        if _work(questions[one].paper) != _work(questions[two].paper)
    ]
    for far, one, two in sorted(pairs):
        if -far < _SHARED:
            break
        if not used & {one, two}:
            used |= {one, two}
            groups.append((one, two))
    of_one: dict[str, int] = {}
    for place in np.argsort(-near, kind="stable").tolist():
        if place not in used and questions[place] not in shown and near[place] >= _LEAST_NEAR:
            of_one.setdefault(_work(questions[place].paper), place)
    groups += [(place,) for place in of_one.values()]
    return tuple(tuple(questions[place] for place in group) for group in groups[:MOST_GROUPS])
