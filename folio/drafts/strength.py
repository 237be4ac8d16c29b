"""Whether a claim says more than its source: all for some, is for may be, causes for goes with, men for mice. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from folio.drafts.masking import HIDDEN
from folio.drafts.wording import has_word, words_of_claim
from folio.grounding.grounder import Fault
from folio.grounding.negation import NEGATION, normalised

_CLAUSE = re.compile(r"[,;:()—–]\s|\s[—–]\s|\b(?:but|whereas|while|although|though|however|which|who|and that)\b")


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words.split(', '))})\b", re.I)


# What makes a source say less than the bare sentence. A claim without any word of the kind says more than its source.
_HEDGES = _pattern(
    r"may(?! 20| 19|,? \d), might, could, would, should, ought, possibly, perhaps, probably, likely, unlikely,"
    r" suggest\w*,"
    r" appears?, appeared, seem\w*, hypothes\w+, conjectur\w+, expect\w*, believe\w*, assum\w+, potential\w*,"
    r" presumabl\w+, apparently, arguably, speculat\w+, supposed\w*, plan(?:s|ned|ning)?, intend\w*, future work,"
    r" in principle, in theory, if, unless, whether, provided that, tends?, tended, preliminary, we hope, uncertain\w*"
)
_PARTLY = _pattern(
    r"some, few, fewer, most, sometimes, rarely, seldom, occasionally, partly, partially, often, usually, typically,"
    r" generally, frequently, half, many, majority, minority, in part, mostly, mainly, nearly, almost, approximately,"
    r" hardly, barely, up to, only"
)
_WHOLLY = _pattern(
    r"all, every, each, always, entire\w*, complete\w*, whol\w+, full\w*, none, never, no, any, anyone, everyone,"
    r" nobody,"
    r" invariably, without exception, exclusively, solely, perfectly, guarantee\w*, must"
)
_MOST = _pattern(r"most, majority, mostly, mainly, usually, typically, generally, often, frequently, almost, nearly")
_ONLY = _pattern(r"only, solely, exclusively, just, merely, alone, sole")
_ONLY_IF = _pattern(r"only (?:if|when|where|after|for|in|with|under|on), unless, except")
_GO_TOGETHER = _pattern(
    r"associat\w+, correlat\w+, linked, related, relationship, predict(?:s|ed|or|ors|ive)?, co-?occur\w*, covar\w+"
)
_CAUSES = _pattern(
    r"caus(?:e|es|ed|ing|al|ally), lead(?:s|ing)? to, led to, result(?:s|ed|ing)? in, because, due to, owing to,"
    r" thanks to, induc\w+, trigger\w*, responsible for, brings? about, brought about, gives? rise to, drives?,"
    r" driven by,"
    r" effect of, consequence of, therefore, hence, makes?, made"
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
_LEAST_OF_CLAUSE = 2  # words of the claim in a clause that speaks of it


class Told(NamedTuple):
    """A claim, and what its source says of it."""

    claim: str
    source: str  # the sentences, with cited works masked (masking.py)


def overstated(told: Told) -> Iterator[Fault]:
    """What a claim says beyond its source."""
    claim, clauses = told.claim, _clauses_of(told)
    said = " ; ".join(clauses)
    if (hedge := _HEDGES.search(said)) and not _HEDGES.search(claim):
        yield Fault("hedge", f"the paper says this with “{hedge.group()}”, not as a fact")
    if (only := _ONLY_IF.search(told.source)) and not (_ONLY.search(claim) or _ONLY_IF.search(claim)):
        yield Fault("condition", f"the paper says this holds “{only.group()}”")
    if _WHOLLY.search(claim) and (partly := _PARTLY.search(said)) and not _WHOLLY.search(said):
        yield Fault("quantifier", f"the paper says “{partly.group()}”, not this much")
    elif (whole := _WHOLLY.search(claim)) and not (_WHOLLY.search(told.source) or _ONLY.search(told.source)):
        yield Fault("quantifier", f"the paper does not say “{whole.group()}”")
    elif (
        (partly := _PARTLY.search(said))
        and not (_PARTLY.search(claim) or _HEDGES.search(claim))
        and _is_about(partly, said, claim)
    ):
        yield Fault("quantifier", f"the paper says this with “{partly.group()}”")
    if (most := _MOST.search(claim)) and not (_MOST.search(said) or _WHOLLY.search(said)):
        yield Fault("quantifier", f"the paper does not say “{most.group()}”")
    if (only := _ONLY.search(claim)) and not _ONLY.search(told.source):
        yield Fault("quantifier", f"the paper does not say “{only.group()}”")
    if (together := _GO_TOGETHER.search(said)) and not _GO_TOGETHER.search(claim):
        yield Fault("causality", f"the paper says “{together.group()}”, not that one brings about the other")
    if (cause := _CAUSES.search(claim)) and _GO_TOGETHER.search(said) and not _CAUSES.search(said):
        yield Fault("causality", f"the paper does not say “{cause.group()}”")
    for group in _SUBJECTS:
        if (whom := group.search(told.source)) and not group.search(claim):
            yield Fault("scope", f"the paper says this of “{whom.group()}”")
    yield from _secondhand(told)
    yield from _denied(told)


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
    return about or clauses


def _is_about(found: re.Match[str], said: str, claim: str) -> bool:
    """Whether one of the next two words after a match is in the claim."""
    wanted = frozenset(word.stem for word in words_of_claim(claim))
    after = words_of_claim(said[found.end() : found.end() + 60])[:2]
    return any(has_word(word.stem, wanted) for word in after)


def _secondhand(told: Told) -> Iterator[Fault]:
    """That the source reports what others found, and the claim gives it as the paper's own."""
    if _OTHERS.search(told.claim) or _names_another(told):
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
    """That only one of the two denies something that both speak of."""
    claim, source = normalised(told.claim), normalised(told.source)
    in_claim, in_source = NEGATION.search(claim), list(NEGATION.finditer(source))
    if in_claim and not in_source:
        yield Fault("negation", f"the paper says it without “{in_claim.group()}”")
    wanted = frozenset(word.stem for word in words_of_claim(told.claim))
    for found in () if in_claim else in_source:
        near = words_of_claim(re.split(r"[,;:.()]", source[found.end() :])[0])[:3]
        if any(has_word(word.stem, wanted) for word in near):
            yield Fault("negation", f"the paper says it with “{found.group()}”")
            return
