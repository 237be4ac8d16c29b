"""Themes: papers whose contributions are near in meaning, headed by words that their quotes share.

Papers are merged by Ward's method (Ward 1963, https://doi.org/10.1080/01621459.1963.10500845) on unit vectors, with
the update of Lance and Williams; ties go to the papers that come first, so that the same papers give the same themes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from folio.papers.model import Vectors
from folio.protocols import Embedder
from folio.review.contributions import Contribution
from folio.text import STOP_WORDS, one_line, tokenize

LEAST_PAPERS = 6  # for themes; fewer are read in one go
_PER_THEME, _MOST_THEMES = 4.5, 9  # papers on average
_SMALLEST = 2  # papers of a theme; the others are put with the nearest one, or last if none is near
_LEAST_NEAR = 0.25  # product of a paper with the mean of a theme's other papers; below, it is on another subject
_LEAST_WORDS, _MOST_WORDS = 2, 3  # terms of a heading
OTHERS, ALL = "Other subjects", ""  # headings of papers near no other, and of all papers where there are no themes
# Words of papers about themselves, which head no theme
_PLAIN = frozenset(
    tokenize(
        "better best more most less good high paper article study work result results"
        " method methods approach approaches show present propose describe use"
        " used using new based different large small provide introduce report replication replicate reproduce"
        " reproduction reproducing reproducibility original authors author code implementation problem problems set"
        " number time case general many several well first two three one way order given main make made possible high"
        " low simple help allow allows include includes available developed design designed analysis research review"
        " overview introduction towards toward guide year years published experiment experiments system systems"
    )
)
Term = tuple[str, ...]  # the stems of one word, or of two neighbours
_MOST_COMPARED = 40  # terms of a group whose meaning is compared
_LEAST_TERM = 0.25  # cosine of a term to the mean of its group
_PAIR, _TITLED = 1.5, 1.4  # two words say more than one, and a title says what matters
_ADJECTIVE = re.compile(r"(?:able|ible|ive|al|ful|ous|ed|est|ent|ic)$", re.I)  # says little alone
_WORD = re.compile(r"[^\W\d_][\w’'-]*[^\W_]|[^\W\d_]")


def themes(papers: Sequence[Contribution], embedder: Embedder) -> list[tuple[str, list[Contribution]]]:
    """The themes with their headings, the largest first; papers within one by year.

    papers: those with points. Raises ModelError.
    """
    ordered = sorted(papers, key=lambda each: each.paper.id)
    if len(ordered) < LEAST_PAPERS:
        return [(ALL, _by_year(ordered))] if ordered else []
    groups = _groups(np.stack([each.vector for each in ordered]))
    listed: list[list[Contribution]] = []
    alone: list[Contribution] = []
    for group in groups:
        close, far = _near([ordered[place] for place in group])
        listed += [close] if len(close) >= _SMALLEST else []
        alone += far if len(close) >= _SMALLEST else [*close, *far]
    apart = []
    for paper in alone:
        near = [float(np.mean([other.vector for other in group], axis=0) @ paper.vector) for group in listed]
        if near and max(near) >= _LEAST_NEAR:
            listed[near.index(max(near))].append(paper)
        else:
            apart.append(paper)
    listed.sort(key=lambda group: (-len(group), min(each.paper.id for each in group)))
    named = headings(listed, ordered, embedder)
    found = [(heading, _by_year(group)) for group, heading in zip(listed, named, strict=True)]
    return [*found, *([(OTHERS, _by_year(apart))] if apart else [])]


def _near(group: Sequence[Contribution]) -> tuple[list[Contribution], list[Contribution]]:
    """The papers of a group that are near to the others of it, and those that are not."""
    total = np.sum([each.vector for each in group], axis=0)
    others = [(total - each.vector) / max(1, len(group) - 1) for each in group]
    is_near = [float(other @ each.vector) >= _LEAST_NEAR for each, other in zip(group, others, strict=True)]
    return (
        [each for each, near in zip(group, is_near, strict=True) if near],
        [each for each, near in zip(group, is_near, strict=True) if not near],
    )


def _by_year(papers: Sequence[Contribution]) -> list[Contribution]:
    return sorted(papers, key=lambda each: (each.paper.year or 9999, each.paper.title.casefold(), each.paper.id))


def _groups(vectors: Vectors) -> list[list[int]]:
    """The rows in at most _MOST_THEMES groups, by Ward's method."""
    count = len(vectors)
    wanted = min(_MOST_THEMES, max(2, round(count / _PER_THEME)))
    far = 2 - 2 * (vectors @ vectors.T).astype(np.float64)  # squared distances
    np.fill_diagonal(far, np.inf)
    sizes = np.ones(count)
    groups: dict[int, list[int]] = {place: [place] for place in range(count)}
    for _ in range(count - wanted):
        one, two = divmod(int(np.argmin(far)), count)
        one, two = min(one, two), max(one, two)
        total = sizes + sizes[one] + sizes[two]
        merged = ((sizes + sizes[one]) * far[one] + (sizes + sizes[two]) * far[two] - sizes * far[one, two]) / total
        far[one], far[:, one] = merged, merged
        far[one, one] = np.inf
        far[two], far[:, two] = np.inf, np.inf
        sizes[one] += sizes[two]
        groups[one] += groups.pop(two)
    return [sorted(group) for group in groups.values()]


def headings(
    groups: Sequence[Sequence[Contribution]], every: Sequence[Contribution], embedder: Embedder
) -> list[str]:
    """A heading for each group: terms of its quotes and titles that its papers share, that others have less, and whose
    meaning is near to the group's. Raises ModelError."""
    terms = {each.paper.id: _terms(each) for each in every}
    return [_heading(group, every, terms, embedder) for group in groups]


def _heading(
    group: Sequence[Contribution],
    every: Sequence[Contribution],
    terms: Mapping[str, Mapping[Term, str]],
    embedder: Embedder,
) -> str:
    of_group = [terms[each.paper.id] for each in group]
    inside = Counter(term for paper in of_group for term in paper)
    outside = Counter(term for each in every if each not in group for term in terms[each.paper.id])
    titled = {term for each in group for term in _spelled(each.paper.title)}
    others = max(1, len(every) - len(group))
    written = {term: _usual(term, of_group) for term in inside}
    scores = {
        term: (count / len(group) - outside[term] / others)
        * (_PAIR if len(term) > 1 else 1.0)
        * (_TITLED if term in titled else 1.0)
        for term, count in inside.items()
        if not _ADJECTIVE.search(written[term])
    }
    likely = sorted(scores, key=lambda term: (inside[term] < 2, -scores[term], term))[:_MOST_COMPARED]
    if not likely:
        return group[0].paper.title
    middle = np.mean([each.vector for each in group], axis=0)
    cosines = embedder.embed_passages([written[term] for term in likely]) @ middle
    near = dict(zip(likely, cosines.tolist(), strict=True))
    ranked = sorted(likely, key=lambda term: (inside[term] < 2, -scores[term] * max(0.0, near[term]) ** 0.5, term))
    chosen: list[Term] = []
    for term in ranked:
        is_new = not any(set(term) & set(other) for other in chosen)
        # What the papers share, then what one of them has that none of the chosen ones is about
        if is_new and near[term] >= _LEAST_TERM and (inside[term] > 1 or len(chosen) < _LEAST_WORDS):
            chosen.append(term)
    line = ", ".join(written[term] for term in (chosen or ranked[:1])[:_MOST_WORDS])
    return f"{line[:1].upper()}{line[1:]}"


def _usual(term: Term, papers: Sequence[Mapping[Term, str]]) -> str:
    """How most papers write a term; a capital that only begins a sentence or a title counts less."""
    forms = Counter(paper[term] for paper in papers if term in paper)
    return min(forms, key=lambda form: (-forms[form], form.istitle(), form))


def _terms(paper: Contribution) -> dict[Term, str]:
    found: dict[Term, str] = {}
    title = paper.paper.title.lower() if paper.paper.title.isupper() else paper.paper.title
    for text in (*(one_line(point.quote.quote) for point in paper.points), title):
        for term, written in _spelled(text).items():
            found.setdefault(term, written)
    return found


def _spelled(text: str) -> dict[Term, str]:
    """The words of a text, and pairs of neighbouring ones, as stems -> how they are written."""
    found: dict[Term, str] = {}
    runs: dict[int, list[tuple[str, str]]] = defaultdict(list)
    run, last = 0, 0
    for match in _WORD.finditer(text):
        word = match.group().strip("’'-")
        stems = tokenize(word)
        between = text[last : match.start()]
        last = match.end()
        is_plain = len(stems) != 1 or word.casefold() in STOP_WORDS or len(word) < 3 or stems[0] in _PLAIN
        if between.strip() or is_plain or word.casefold().endswith("ly"):
            run += 1
        if not is_plain and not word.casefold().endswith("ly"):
            shown = word if any(map(str.isupper, word[1:])) else word.casefold()
            runs[run].append((stems[0], shown))
    for words in runs.values():
        for stem, word in words:
            found.setdefault((stem,), word)
        for (stem, word), (next_stem, next_word) in pairwise(words):
            found.setdefault((stem, next_stem), f"{word} {next_word}")
    return found
