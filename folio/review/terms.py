"""The terms of papers: noun phrases, found without a parser, and which of them say what a group of papers is about.

In English a noun phrase ends where a run of content words ends: "an introduction to linear regression with R" has
"regression" and "linear regression", and not "linear". So a term is the end of such a run in most of its places (the
runs are those of RAKE: Rose et al. 2010, https://doi.org/10.1002/9780470689646.ch1).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from folio.text import STOP_WORDS, tokenize

Term = tuple[str, ...]  # stems of one to three words
_MOST_WORDS, MOST_TERMS = 3, 3  # of a term, and of a heading
_BY_WORDS = (1.0, 2.0, 2.0)  # two words say more than one
_LEAST_FIRST, _LEAST_NEXT = 0.7, 0.4  # score of the first term of a heading and of others, relative to the best one
_SPOKEN_OF = 3  # places of a term in a summary
_WORD = re.compile(r"[^\W\d_][\w’'-]*[^\W_]|[^\W\d_]")
_BREAKS = re.compile(r".*ly|using|based|via|including|like")  # inside no noun phrase
_BETWEEN = re.compile(r"[ \t]*")
# Before a word that is a verb, and after one
_SUBJECTS = frozenset(
    "to we i you they it he she who that which can could will would may might must should not"
    " students learners readers authors".split()
)
# Before "to" with a noun: "an introduction to linear regression"
_TAKE_NOUNS = frozenset(
    "introduction guide approach approaches access respect applied related compared similar exposed limited".split()
)
_DETERMINERS = frozenset(
    "the a an its our their his her this these those each how what whether us them it that".split()
)
_ENDS_NOT = re.compile(r"(?:able|ible|ive|ful|ous|ed|est|ly|less|ise|ize|ify)s?$", re.I)  # adjectives, verbs, adverbs
# Words of papers about themselves and about their kind, which say nothing alone
_EMPTY = frozenset(
    tokenize(
        "better best more most less good high paper article study work result results method methods approach"
        " approaches show present propose describe use used using new based different large small provide introduce"
        " report original authors author code implementation problem set number time case general many several well"
        " first two three one way order given main make made possible low simple help allow include available"
        " developed design designed analysis research review overview introduction towards toward guide year"
        " published experiment system tool tools example examples topic topics concept concepts skill skills part"
        " parts project projects type types form range lot need needs goal goals aim idea ideas step steps feature"
        " features application applications technique techniques importance user users information knowledge"
        " question questions process context field area areas level issue issues effect effects change role value"
        " values group groups thing things summary abstract section figure table title end top basis basics lack"
        " variety support course courses student students lesson lessons module modules material materials program"
        " programs class classes people person world day week text book chapter notes version versions addition"
        " understanding learning teaching training online tutorial series development performance implementations"
        " ability access key high-level open source resources resource environment environments package packages"
        " function functions"
    )
)


@dataclass(slots=True)
class Terms:
    """The terms of one text: how often each ends a run of content words, and how it is written."""

    ends: Counter[Term] = field(default_factory=Counter)
    places: Counter[Term] = field(default_factory=Counter)
    titled: set[Term] = field(default_factory=set)
    forms: defaultdict[Term, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def weight(self, term: Term) -> float:
        """How much the text speaks of a term, 0 to 1: a word said once is said by the way."""
        return 1.0 if term in self.titled else min(1.0, self.places[term] / _SPOKEN_OF)


def terms_of(text: str) -> Terms:
    """The terms of a text whose first line is a title."""
    found = Terms()
    for place, line in enumerate(text.splitlines()):
        for run in _runs(line):
            _add(found, run, is_title=place == 0)
    return found


def _add(found: Terms, run: Sequence[tuple[str, str, bool]], *, is_title: bool) -> None:
    """Count the terms of a run of (stem, word, whether the word begins a sentence)."""
    for start in range(len(run)):
        for end in range(start + 1, min(len(run), start + _MOST_WORDS) + 1):
            term = tuple(stem for stem, _, _ in run[start:end])
            found.places[term] += 1
            if is_title:
                found.titled.add(term)
            found.ends[term] += end == len(run)
            # How a word is written in a title or at the start of a sentence says little of how it is elsewhere
            words = [
                word.casefold() if (first or is_title) and word.istitle() else word for _, word, first in run[start:end]
            ]
            sure = not is_title and not run[start][2]
            found.forms[term][" ".join(words)] += 4 if sure else 1


def _runs(line: str) -> Iterator[list[tuple[str, str, bool]]]:
    """The runs of content words of a line, without the verbs at their ends."""
    line = line.lower() if line.isupper() else line
    run: list[tuple[str, str, bool]] = []
    last, before, word = 0, "", ""
    for match in _WORD.finditer(line):
        previous, word = word.casefold(), match.group().strip("’'-")
        between = line[last : match.start()]
        last = match.end()
        plain = word.casefold()
        stems = tokenize(word)
        if not _BETWEEN.fullmatch(between):
            yield run
            run, before = [], ""
        is_content = plain not in STOP_WORDS and len(stems) == 1 and len(plain) > 2 and not _BREAKS.fullmatch(plain)
        if not is_content:
            if plain in _DETERMINERS and run:
                run.pop()  # "describes the", "teaching a"
            yield run
            run, before = [], "" if plain == "to" and previous in _TAKE_NOUNS else plain
            continue
        is_first = not line[: match.start()].strip() or bool(re.search(r"[.:?!]\s*$", line[: match.start()]))
        if not run and (before in _SUBJECTS or (is_first and plain.endswith("ing"))):
            before = ""  # "we present", "to teach", ": exploring"
        else:
            run.append((stems[0], word, is_first))
    yield run


def heading(scores: Mapping[Term, float], group: Sequence[Terms], taken: AbstractSet[Term]) -> list[Term]:
    """Up to three terms that head a group of papers, best first, as scored: what at least two thirds of the papers
    speak of, or what some speak of and the others do not. taken: terms that head another group."""
    chosen: list[Term] = []
    left = set(range(len(group)))
    free = {term: score for term, score in scores.items() if term not in taken}
    most = max(free.values(), default=0.0)
    while left and len(chosen) < MOST_TERMS:
        fit = {
            term: score * math.sqrt(sum(group[place].places[term] > 0 for place in left) / len(left))
            for term, score in free.items()
            if not any(set(term) & set(other) for other in chosen)
            and score >= (_LEAST_NEXT if chosen else _LEAST_FIRST) * most
            and (len(term) > 1 or not chosen)
        }
        best = max(fit, key=lambda term: (fit[term], term), default=None)
        if best is None or fit[best] <= 0:
            break
        chosen.append(best)
        left -= {place for place in left if group[place].places[best]}
        if len(left) <= len(group) / 3:
            break
    return chosen


def likely(group: Sequence[Terms], others: Sequence[Terms]) -> dict[Term, float]:
    """Terms of a group -> how much more its papers speak of them than the others do, more than 0."""
    ends, places = Counter[Term](), Counter[Term]()
    for paper in group:
        ends.update(paper.ends)
        places.update(paper.places)
    found: dict[Term, float] = {}
    for term in places:
        is_noun = 2 * ends[term] >= places[term] and not _ENDS_NOT.search(written(term, group))
        if not is_noun or all(stem in _EMPTY for stem in term):
            continue
        inside = sum(paper.weight(term) for paper in group) / len(group)
        outside = sum(paper.weight(term) for paper in others) / max(1, len(others))
        titled = sum(term in paper.titled for paper in group) / len(group)
        gain = (inside - 2 * outside) * _BY_WORDS[len(term) - 1] * (1 + titled)
        if gain > 0:
            found[term] = gain
    return found


def written(term: Term, group: Sequence[Terms]) -> str:
    forms = Counter[str]()
    for paper in group:
        forms.update(paper.forms.get(term, {}))
    return min(forms, key=lambda form: (-forms[form], form))
