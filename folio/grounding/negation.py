"""Detects a statement that differs from its source by a "not" or by opposite words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from folio.grounding.sentences import content_words, matching_words, share, tokens_of
from folio.text import one_line, tokenize

DENIALS = frozenset(
    "not no never none nobody nothing neither nor without cannot unable nicht kein keine ohne nie".split()
)
# Words that deny in part or without a "not". A difference between texts with such words is no proof of a denial.
_HALF_DENIAL = re.compile(
    r"\b(?:un(?!der|i|til|to)\w{4,}|non\w*|impossib\w*|only|except|rather|instead|avoid\w*|prevent\w*|exclu\w+|refus\w+"
    r"|reject\w*|den(?:y|ie)\w*|ignor\w+|omit\w*|miss\w*|absen\w+|fail\w*|few\w*|little|less|barely|rarely"
    r"|seldom|limit\w*|against|false|lack\w*|whether|if|unless|unlike|although|but|however|despite|while|whereas|than)\b"
)
_NO_DENIAL = re.compile(
    r"\b(?:not|no) (?:only|just|merely|least|until|more|less|fewer|later|earlier|surprisingly|necessarily|always|all"
    r"|every|fully|entirely|completely)\b|\bno (?:doubt|matter|longer)\b|\bnothing but\b|\bwhether or not\b"
    r"|\bno\.? ?(?=\d)|^no, "
)
# Other forms of "not", also gradual ones; but not "far from the coast", which is a distance.
_SAME_AS_NOT = re.compile(
    r"\b(?:ca|wo)?n['’]t\b|(?<=\w)n['’]t\b|\bfail(?:s|ed|ing)? to\b|\bcan ?not\b|\b(?:hardly|scarcely)\b"
    r"|\bfar from(?! (?:the|an?|this|that|these|those|its|their|our|each|every|any|other|one)\b)(?: being)?\b"
    r"|\b(?:anything but|by no means|in no (?:way|sense|respect)|nowhere near)\b"
    r"|\bnot (?:at all|in the (?:least|slightest))\b"
)
# Words that deny what follows them, also those that put something else in its place
NEGATION = re.compile(
    rf"\b(?:{'|'.join(sorted(DENIALS))}|instead of|rather than|except(?: for)?|unlike|lack(?:s|ed|ing)?"
    r"|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|exclud(?:e|es|ed|ing)|reject(?:s|ed|ing)?|other than|apart from"
    r"|despite|regardless of)\b"
)
_CLAUSE = re.compile(
    r"(?<![,;:.!?()])[,;:.!?()]+(?=\s|$)|\s[–—-]\s|\b(?:but|whereas|while|although|though|however|because|since|and|or)\b"
)
_WORD = re.compile(r"[^\W_][\w-]*")
_OPPOSITES = """
increase rise rose risen raise grow grew higher more greater larger bigger gain gained | decrease reduce reduction fall
fell fallen drop dropped decline lower fewer less smaller lose lost loss; fast faster fastest quicker | slow slower
slowest; better best improve improved | worse worst worsen degrade deteriorate; above | below; before | after; first |
last; early | late; earlier | later; large largest | small smallest; high highest | low lowest; upper | lower; long
longer longest | short shorter shortest; most | least; minimum minimal minimize | maximum maximal maximize; strong
stronger | weak weaker; easy easier simple simpler simplest simplicity trivial | difficult hard harder complicated
complex complexity; old older oldest | new newer newest young younger; positive
| negative; true | false; enable | disable; include included | exclude excluded; accept accepted | reject rejected;
allow permit | forbid prevent prohibit; encrypt encryption | decrypt decryption; advance | retreat; buy bought | sell
sold; open | close closed; exceed exceeded | under; stable | unstable; possible | impossible; secure | insecure;
significant | insignificant; dependent | independent; sufficient | insufficient; complete | incomplete; male men man |
female women woman; always | never; all every | some few none
"""
# Degree words before a quality: "very simple", "less stable". Those that mean "very" are interchangeable.
_VERY = frozenset(
    "very highly extremely particularly especially remarkably surprisingly truly really exceedingly exceptionally"
    " extraordinarily incredibly immensely unusually".split()
)
_DEGREES = _VERY | frozenset(
    "quite rather more most less least so too fairly relatively much significantly substantially considerably slightly"
    " somewhat increasingly".split()
)
# If a sentence has this share of a statement's other words, a different quality in it is an error and not a rewording:
# of about 1,600 true statements, none has a different quality from 0.9 on, and four from 0.7 on.
_SAME_FRAME = 0.9
Pole = tuple[int, bool]  # the number of a pair of opposites, and whether the word is on its second side


def _stem(word: str) -> str:
    return (tokenize(word) or [word])[0]


_VERY_TOKENS = frozenset(map(_stem, _VERY))
_POLES: dict[str, set[Pole]] = {}
for _number, _pair in enumerate(_OPPOSITES.split(";")):
    for _side, _forms in enumerate(_pair.split("|")):
        for _form in _forms.split():
            _POLES.setdefault(_stem(_form), set()).add((_number, bool(_side)))


def sides_of(stem: str) -> frozenset[Pole]:
    """The sides of the pairs of opposites that a stem is on."""
    return frozenset(_POLES.get(stem, ()))


def denies(statement: str, source: str) -> bool:
    """Whether one of two texts denies what the other affirms."""
    return _contradict(normalised(statement), normalised(source), _half_denials(normalised(statement)))


def affirms_denied(denying: str, affirming: str) -> bool:
    """Whether the second of two texts affirms what the first denies."""
    denying, affirming = normalised(denying), normalised(affirming)
    return _half_denials(affirming) <= _half_denials(denying) and _affirms_denied(denying, affirming)


def _contradict(text: str, source: str, half_denials: set[str]) -> bool:
    """Whether one of two plain texts denies what the other affirms. half_denials: those around the first text."""
    source_half_denials = _half_denials(source)
    return (source_half_denials <= half_denials and _affirms_denied(text, source)) or (
        half_denials <= source_half_denials and _affirms_denied(source, text)
    )


def _affirms_denied(denying: str, affirming: str) -> bool:
    """Whether `affirming` has all words of a phrase that `denying` denies, without denying any of them."""
    denied = _denied(denying) - {frozenset()}
    affirmed = matching_words(frozenset().union(*denied), frozenset(tokenize(affirming)))
    also_denied = frozenset().union(*_denied(affirming))
    return any(words <= affirmed and not words & also_denied for words in denied)


def _half_denials(text: str) -> set[str]:
    return {_stem(word) for word in _HALF_DENIAL.findall(text)}


def opposes(statement: str, source: str) -> bool:
    """Whether a statement has a word and the source only its opposite, near the same word."""
    poles, source_poles = _poles(statement), _poles(source)
    for pole, near in poles.items():
        opposite = (pole[0], not pole[1])
        if opposite in poles or pole in source_poles:
            continue
        if near & source_poles.get(opposite, set()):
            return True
    return False


def is_denied(statement: str, sentences: Sequence[str]) -> bool:
    """Whether a clause of a statement denies what its closest sentences affirm, or the other way round.

    A "not" in the other sentences is ignored.
    """
    plain = normalised(statement)
    half_denials = _half_denials(plain)
    for clause in filter(tokens_of, _CLAUSE.split(plain)):
        closest = [normalised(sentence) for sentence in _closest(clause, statement, sentences)]
        if closest and all(_contradict(clause, sentence, half_denials) for sentence in closest):
            return True
    return False


def is_opposed(statement: str, sentences: Sequence[str], evidence_tokens: frozenset[str]) -> bool:
    """Whether a statement has the opposite of a word of its sentences, or another quality in its place.

    evidence_tokens: the tokens of all evidence.
    """
    if opposes(statement, " ".join(sentences)):
        return True
    closest = _closest(statement, statement, sentences)
    return any(opposes(statement, sentence) or _regraded(statement, sentence, evidence_tokens) for sentence in closest)


def _closest(clause: str, statement: str, sentences: Sequence[str]) -> list[str]:
    """The sentences with the most words of a clause and of its statement; several if there is a tie."""
    scores = [share(tokens_of(clause), has) + share(content_words(statement), has) for has in map(tokens_of, sentences)]
    return [sentence for sentence, score in zip(sentences, scores, strict=True) if score == max(scores)]


def _regraded(statement: str, sentence: str, evidence_tokens: frozenset[str]) -> bool:
    """Whether a statement differs from its sentence in a graded quality: "very difficult" for "very simple".

    The quality of the statement is nowhere in the evidence, and the quality of the sentence not in the statement.
    """
    words, sentence_words = content_words(statement), tokens_of(sentence)
    sentence_qualities = list(_graded(sentence))
    for degree, quality in _graded(statement):
        if quality not in words:
            continue
        frame = words - {quality} - _VERY_TOKENS
        if (
            matching_words(frozenset({quality}), evidence_tokens)
            or not frame
            or share(frame, sentence_words) < _SAME_FRAME
        ):
            continue
        replaced = [
            other
            for same, other in sentence_qualities
            if same == degree and not matching_words(frozenset({other}), words)
        ]
        if any(_POLES.get(quality, set()).isdisjoint(_POLES.get(other, ())) for other in replaced):
            return True
    return False


def _graded(text: str) -> Iterator[tuple[str, str]]:
    """Each degree word and the quality after it, as a token. All words that mean "very" count as "very"."""
    words = _WORD.findall(text.casefold())
    for degree, word in pairwise(words):
        if degree in _DEGREES and word not in _DEGREES and (tokens := tokenize(word)):
            yield "very" if degree in _VERY else degree, tokens[0]


@lru_cache(maxsize=4096)
def normalised(text: str) -> str:
    """The text in lower case, with "not" for its other forms, without phrases that only look like a denial."""
    return _NO_DENIAL.sub(" ", _SAME_AS_NOT.sub(" not", one_line(text.casefold())))


@lru_cache(maxsize=4096)
def _denied(text: str) -> frozenset[frozenset[str]]:
    """What each denial denies: the next two content words of its clause, or else the one before."""
    phrases = set()
    for clause in _CLAUSE.split(text):
        words = _WORD.findall(clause)
        for place in (place for place, word in enumerate(words) if word in DENIALS):
            after = [token for word in words[place + 1 : place + 8] for token in tokenize(word)[:1]]
            before = [token for word in words[max(0, place - 6) : place] for token in tokenize(word)[:1]]
            phrases.add(frozenset(after[:2] or before[-1:]))
    return frozenset(phrases)


@lru_cache(maxsize=4096)
def _poles(text: str) -> dict[Pole, set[str]]:
    """The sides of pairs of opposites that a text has, each with the content words near it."""
    words = [_stem(word) for word in _WORD.findall(text.casefold())]
    nearby_words: dict[Pole, set[str]] = {}
    for place, word in enumerate(words):
        for pole in _POLES.get(word, ()):
            near = words[max(0, place - 4) : place] + words[place + 1 : place + 5]
            nearby_words.setdefault(pole, set()).update(other for other in near if len(other) > 2)
    return nearby_words
