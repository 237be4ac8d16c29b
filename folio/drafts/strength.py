"""Whether a claim says more than its source: all for some, is for may be, causes for goes with, men for mice. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from folio.drafts.masking import HIDDEN
from folio.drafts.wording import has_word, words_of_claim
from folio.grounding.grounder import Fault
from folio.grounding.negation import NEGATION, normalised

_CLAUSE = re.compile(r"[,;:()—–]\s|\s[—–]\s|\b(?:but|whereas|while|although|though|however|which|who|and that)\b")


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words.split(', '))})\b", re.I)


# What makes a source say less than the bare sentence. A claim without any word of the kind says more than its source.
_MODALS = _pattern(
    r"may(?! 20| 19|,? \d), might, could, would, should, ought, possibly, perhaps, probably, likely, unlikely,"
    r" suggest\w*, appears?, appeared, seem\w*, hypothes\w+, conjectur\w+, expect\w*, believe\w*, assum\w+,"
    r" potential\w*, presumabl\w+, apparently, arguably, speculat\w+, supposed\w*, plan(?:s|ned|ning)?, intend\w*,"
    r" future work, in principle, in theory, tends?, tended, preliminary, we hope, uncertain\w*,"
    r" (?:is|be|seems) possible, possibility, conceivabl\w*, plausibl\w*, unclear, unknown, claim(?:s|ed)?, argue[ds]?,"
    r" alleg\w+, purport\w+, thought to, said to, rumou?r\w*"
)
_CONDITIONS = _pattern(r"if, unless, whether, provided that, as long as, on condition, assuming, in case")
_PARTLY = _pattern(
    r"some, few, fewer, most, sometimes, rarely, seldom, occasionally, partly, partially, often, usually, typically,"
    r" generally, frequently, half, many, majority, minority, in part, mostly, mainly, nearly, almost, hardly, barely,"
    r" to some extent, up to"
)
_WHOLLY = _pattern(
    r"all, every, each, always, entirely, completely, wholly, fully, any, anyone, everyone, invariably,"
    r" without exception, exclusively, perfectly, guarantee\w*, must, entire, whole"
)
_MOST = _pattern(r"most, majority, mostly, mainly, usually, typically, generally, often, frequently, almost, nearly")
_ONLY = _pattern(r"only, solely, exclusively, just, merely, alone, sole")
_ONLY_IF = _pattern(r"only (?:if|when|where|after|for|in|with|under|on), unless, except")
_GO_TOGETHER = _pattern(
    r"associat\w+, correlat\w+, linked (?:to|with), (?:is|are|was|were|be|been) (?:\w+ )?related, relationship,"
    r" predict(?:s|ed|or|ors|ive)?, co-?occur\w*, covar\w+"
)
_CAUSES = _pattern(
    r"caus(?:e|es|ed|ing|al|ally), lead(?:s|ing)? to, led to, result(?:s|ed|ing)? in, because, due to, owing to,"
    r" thanks to, induc\w+, trigger\w*, responsible for, brings? about, brought about, gives? rise to, drives?,"
    r" driven by,"
    r" effect of, consequence of"
)
# Whom or what something was found in. Groups that a claim may not exchange, nor leave out.
_SUBJECTS = (
    _pattern(r"mice, mouse, murine, rats?, rodents?, animals?, monkeys?, macaques?, cats?, zebrafish, drosophila"),
    _pattern(r"humans?, patients?, people, persons?, volunteers?, men, women, adults?"),
    _pattern(r"in vitro, cell lines?, cultured?, in silico, simulat\w+, synthetic, toy"),
    _pattern(r"children, infants?, adolescents?, pupils?, elderly, older adults?"),
    _pattern(r"undergraduates?"), _pattern(r"graduates?, postgraduates?"),
)  # fmt: skip
_OTHERS = re.compile(
    r"\b(?:et al|the authors|(?:previous|prior|earlier|past|other|recent|existing)"
    r" (?:work|works|stud(?:y|ies)|research\w*|authors?|reports?|experiments?|papers?|publications?)"
    r"|(?:the )?original (?:authors?|paper|article|study|work|publication)"
    r"|(?:has|have|had) been (?:shown|reported|found|argued|suggested|demonstrated|claimed|proposed)"
    r"|(?:they|others|some authors) (?:show|report|found|find|argue|claim|suggest|propose)\w*"
    r"|according to|as (?:shown|reported|described|argued|noted) (?:by|in))\b",
    re.I,
)
OWN = re.compile(r"\b(?:we|our|ours|us|i|my|this (?:paper|work|article|study|report|replication)|here)\b", re.I)
_AS_AUTHOR = rf"(?:['’]s)?(?:\s+(?:and|&)\s+[A-Z]\w+)?(?:['’]s)?\s*(?:\bet\.? al\b|\w*\s*{HIDDEN})"
_MARKED_END = re.compile(rf"{HIDDEN}\W*$")
# What `normalised` takes for no denial: here it is one, unless a "than" makes it a bound
_NOT_WHOLLY = re.compile(
    r"(?:\b(?:not|no|never|cannot)|n['’]t) (?:all|always|every\w*|entirely|completely|fully|necessarily|surprisingly"
    r"|longer|(?:more|less|fewer|later|earlier)\b(?! than))\b",
    re.I,
)
_CLAUSE_END = re.compile(r"[,;:.()—](?:\s|$)|\b(?:but|whereas|while|although|and|or)\b")
_REACH = 3  # words that a "not", an "all" or a "some" is said of
_LEAST_OF_CLAUSE = 2  # words of the claim in a clause that speaks of it


class Told(NamedTuple):
    """A claim, and what its source says of it."""

    claim: str
    source: str  # the sentences, with cited works masked (masking.py)


def overstated(told: Told) -> Iterator[Fault]:
    """What a claim says beyond its source."""
    claim, said = told.claim, " ; ".join(_clauses_of(told))
    for hedges in (_MODALS, _CONDITIONS):
        if (hedge := hedges.search(said)) and not hedges.search(claim):
            yield Fault("hedge", f"the paper says this with “{hedge.group()}”, not as a fact")
    if (only := _ONLY_IF.search(told.source)) and not (_ONLY.search(claim) or _ONLY_IF.search(claim)):
        yield Fault("condition", f"the paper says this holds “{only.group()}”")
    yield from _quantified(told)
    if (together := _GO_TOGETHER.search(said)) and not _GO_TOGETHER.search(claim):
        yield Fault("causality", f"the paper says “{together.group()}”, not that one brings about the other")
    if (cause := _CAUSES.search(claim)) and not _CAUSES.search(told.source):
        yield Fault("causality", f"the paper does not say “{cause.group()}”")
    for group in _SUBJECTS:
        if (whom := group.search(told.source)) and not group.search(claim):
            yield Fault("scope", f"the paper says this of “{whom.group()}”")
    yield from _secondhand(told)
    yield from _denied(told)


def _quantified(told: Told) -> Iterator[Fault]:
    """What a claim says of more, or of fewer, than its source does."""
    claim, source = told.claim, told.source
    for mine, theirs in ((_WHOLLY, (_WHOLLY,)), (_MOST, (_MOST, _WHOLLY)), (_ONLY, (_ONLY,))):
        given = [words for pattern in theirs for _, words in _governed(pattern, source)]
        for found, words in _governed(mine, claim):
            if not any(_share(words, other) for other in given):
                yield Fault("quantifier", f"the paper does not say “{found.group()}”")
    hedged = [words for pattern in (_PARTLY, _MODALS) for _, words in _governed(pattern, claim)]
    wanted = [word.stem for word in words_of_claim(claim)]
    for found, words in _governed(_PARTLY, source):
        if _share(words[:2], wanted) and not any(_share(words, other) for other in hedged):
            yield Fault("quantifier", f"the paper says this with “{found.group()}”")


def _governed(pattern: re.Pattern[str], text: str) -> list[tuple[re.Match[str], list[str]]]:
    """Each match in a text, and the next words of its clause."""
    return [
        (found, [word.stem for word in words_of_claim(_CLAUSE_END.split(text[found.end() :])[0])[:_REACH]])
        for found in pattern.finditer(text)
    ]


def _share(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two lists of stems have a word in common."""
    there = frozenset(others)
    return any(has_word(word, there) for word in words)


def is_subject(word: str) -> bool:
    """Whether a word names whom or what something was found in."""
    return any(group.fullmatch(word) for group in _SUBJECTS)


def _clauses_of(told: Told) -> list[str]:
    """The clauses of the source that speak of what the claim does; all of it if none has enough of its words."""
    wanted = frozenset(word.stem for word in words_of_claim(told.claim))
    clauses = [clause for clause in _CLAUSE.split(told.source) if clause.strip()]
    about = [
        clause
        for clause in clauses
        if sum(has_word(word.stem, wanted) for word in words_of_claim(clause)) >= _LEAST_OF_CLAUSE
    ]
    covered = frozenset(word.stem for clause in about for word in words_of_claim(clause))
    rest = [clause for clause in clauses if clause not in about]
    for clause in rest:  # what only a short clause says
        if any(has_word(word.stem, wanted) and word.stem not in covered for word in words_of_claim(clause)):
            about.append(clause)
    return about or clauses


def _secondhand(told: Told) -> Iterator[Fault]:
    """That the source reports what others found, and the claim gives it as the paper's own."""
    if _OTHERS.search(told.claim.replace("he authors", "")) or _names_another(told):
        return
    if (other := _OTHERS.search(told.source)) and not OWN.search(told.source[: other.start()]):
        yield Fault("attribution", f"the paper reports this from others (“{other.group()}”)")
    elif _MARKED_END.search(told.source.rstrip()) and not OWN.search(told.source):
        yield Fault("attribution", "the paper cites another work for this")


def _names_another(told: Told) -> bool:
    """Whether a claim itself names somebody that its source does: "Shimer and Smith derive"."""
    named = re.findall(r"\b[A-Z][\w-]+", told.claim)
    return any(re.search(rf"\b{name}{_AS_AUTHOR}", told.source) for name in named)


def _denied(told: Told) -> Iterator[Fault]:
    """That one of the two denies what the other says, or denies that it is wholly so."""
    for text, other, how in ((told.claim, told.source, "without"), (told.source, told.claim, "with")):
        if (found := _NOT_WHOLLY.search(text)) and not _NOT_WHOLLY.search(other):
            yield Fault("negation", f"the paper says it {how} “{found.group()}”")
            return
    claim, source = normalised(told.claim), normalised(told.source)
    for text, other, how in ((claim, source, "without"), (source, claim, "with")):
        there = [word.stem for word in words_of_claim(other)]
        denied = [words for _, words in _governed(NEGATION, other)]
        for found, words in _governed(NEGATION, text):
            shared = [word for word in words if _share([word], there)]
            if shared and not any(_share(shared, other_words) for other_words in denied):
                yield Fault("negation", f"the paper says it {how} “{found.group()}”")
                return
            if not shared and how == "without" and not denied:
                yield Fault("negation", f"the paper says it without “{found.group()}”")
                return
