"""Themes: papers that are alike in meaning and in their words, headed by terms that they share.

Papers are merged by Ward's method (Ward 1963, https://doi.org/10.1080/01621459.1963.10500845), with
the update of Lance and Williams; ties go to the papers that come first, so that the same papers give the same themes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from folio.papers.model import Vectors
from folio.protocols import Embedder
from folio.review.contributions import Contribution
from folio.review.terms import Term, heading, likely, terms_of, written

LEAST_PAPERS = 6  # for themes; fewer are read in one go
_PER_THEME, _MOST_THEMES = 3, 14  # papers on average, before those that fit none are put apart
_SMALLEST = 2  # papers of a theme; those near to no theme come last, rather than in a wrong one
_LEAST_NEAR = 0.14  # how alike a paper and the others of a theme are; below, it is on another subject
_SAME_THEME = 0.5  # how alike the papers of two groups are that are one theme, however few there are
_MEANING = 1 / 3  # share of the meaning of the abstracts in how alike two papers are; the other is of their words
OTHERS, ALL = "Other subjects", ""  # headings of papers near no other, and of all papers where there are no themes
_MOST_COMPARED = 40  # terms of a group whose meaning is compared


def themes(papers: Sequence[Contribution], embedder: Embedder) -> list[tuple[str, list[Contribution]]]:
    """The themes with their headings, the largest first; papers within one by year.

    papers: those with points. Raises ModelError.
    """
    ordered = sorted(papers, key=lambda each: each.paper.id)
    if len(ordered) < LEAST_PAPERS:
        return [(ALL, _by_year(ordered))] if ordered else []
    alike = _alike(ordered)
    groups, apart = _placed(alike, _groups(alike))
    listed = [[ordered[place] for place in group] for group in groups]
    listed.sort(key=lambda group: (-len(group), min(each.paper.id for each in group)))
    named = headings(listed, ordered, embedder)
    found = [(heading, _by_year(group)) for group, heading in zip(listed, named, strict=True)]
    return [*found, *([(OTHERS, _by_year([ordered[place] for place in apart]))] if apart else [])]


def _alike(papers: Sequence[Contribution]) -> Vectors:
    """How alike each two papers are: in what sets their abstracts apart from those of the others, and in the words of
    their whole texts, rare ones first. What all papers of a choice share, such as "students", counts for nothing."""
    about = np.stack([each.about for each in papers])
    apart = _unit(about - about.mean(axis=0))
    fit = Counter(word for each in papers for word in each.words)
    shared = sorted(word for word, count in fit.items() if 1 < count <= len(papers) / 2)
    column = {word: place for place, word in enumerate(shared)}
    counted = np.zeros((len(papers), len(shared)), dtype=np.float32)
    for row, each in enumerate(papers):
        for word, count in each.words.items():
            if word in column:
                counted[row, column[word]] = (1 + math.log(count)) * math.log(len(papers) / fit[word])
    counted = _unit(counted)
    return np.asarray(_MEANING * apart @ apart.T + (1 - _MEANING) * counted @ counted.T, dtype=np.float32)


def _unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)), dtype=np.float32)


def _placed(alike: Vectors, groups: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[int]]:
    """The groups of papers that are near to the others of their group, and the papers near to no group."""
    kept: list[list[int]] = []
    alone: list[int] = []
    for group in groups:
        close = [one for one in group if len(group) > 1 and _nearness(alike, one, group) >= _LEAST_NEAR]
        if len(close) >= _SMALLEST:
            kept.append(close)
        alone += [one for one in group if len(close) < _SMALLEST or one not in close]
    apart = []
    for one in alone:
        near = [_nearness(alike, one, group) for group in kept]
        if near and max(near) >= _LEAST_NEAR:
            kept[near.index(max(near))].append(one)
        else:
            apart.append(one)
    return kept, apart


def _nearness(alike: Vectors, one: int, group: Sequence[int]) -> float:
    """How near a paper is to the others of a group, on average."""
    return float(np.mean([alike[one, other] for other in group if other != one]))


def _by_year(papers: Sequence[Contribution]) -> list[Contribution]:
    return sorted(papers, key=lambda each: (each.paper.year or 9999, each.paper.title.casefold(), each.paper.id))


def _groups(alike: Vectors) -> list[list[int]]:
    """The papers in at most _MOST_THEMES groups, by Ward's method."""
    count = len(alike)
    wanted = min(_MOST_THEMES, max(2, round(count / _PER_THEME)))
    far = 2 - 2 * alike.astype(np.float64)  # squared distances
    np.fill_diagonal(far, np.inf)
    sizes = np.ones(count)
    groups: dict[int, list[int]] = {place: [place] for place in range(count)}
    while len(groups) > 1:
        one, two = divmod(int(np.argmin(far)), count)
        one, two = min(one, two), max(one, two)
        if len(groups) <= wanted and alike[np.ix_(groups[one], groups[two])].mean() < _SAME_THEME:
            break
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
    """A heading for each group: terms that its papers share and others have less, none twice. Raises ModelError."""
    terms = {each.paper.id: terms_of(each.summary) for each in every}
    taken: set[Term] = set()
    found = []
    for group in groups:
        inside = [terms[each.paper.id] for each in group]
        outside = [terms[each.paper.id] for each in every if each not in group]
        scores = likely(inside, outside)
        best = sorted(scores, key=lambda term: (-scores[term], term))[:_MOST_COMPARED]
        middle = np.mean([each.about for each in group], axis=0)
        near = embedder.embed_passages([written(term, inside) for term in best]) @ middle if best else []
        scores = {term: scores[term] * max(0.0, float(cosine)) ** 0.5 for term, cosine in zip(best, near, strict=True)}
        chosen = heading(scores, inside, taken)
        taken |= set(chosen)
        line = ", ".join(written(term, inside) for term in chosen) or group[0].paper.title
        found.append(f"{line[:1].upper()}{line[1:]}")
    return found
