"""Whether a statement and its source differ by a "not" or by opposite words. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from folio.grounding.words import held_of
from folio.text import tokenize

DENIALS = frozenset(
    "not no never none nobody nothing neither nor without cannot unable nicht kein keine ohne nie".split()
)
# Words that deny in part or without a "not". A text with one of them gets the benefit of the doubt.
_HALF_DENIAL = re.compile(
    r"\b(?:un(?!der|i|til|to)\w{4,}|non\w*|in(?:dependent|sufficient|valid|correct|accurate|effective|complete|feasible"
    r"|active|secure|consistent|capable|visible|significant|adequate)\w*|impossib\w*|dis(?:able|agree|allow|card|regard)\w*"
    r"|only|except|rather|instead|avoid\w*|prevent\w*|exclu\w+|refus\w+|reject\w*|den(?:y|ie)\w*|ignor\w+|omit\w*|miss\w*"
    r"|absen\w+|fail\w*|few\w*|little|less|hardly|scarcely|barely|rarely|seldom|difficult\w*|hard|differ\w*|free|zero"
    r"|remov\w*|eliminat\w*|stop\w*|los\w+|limit\w*|against|contrary|false|wrong\w*|negativ\w*|neglect\w*|alone|forbid\w*"
    r"|prohibit\w*|restrict\w*|lack\w*|abolish\w*|inhibit\w*|suppress\w*|block\w*|whether|if|unless|unlike|although|but"
    r"|however|despite|while|whereas|than|both|either)\b"
)
_NO_DENIAL = re.compile(
    r"\b(?:not|no) (?:only|just|merely|least|until|more|less|fewer|later|earlier|surprisingly|necessarily|always|all|every"
    r"|fully|entirely|completely)\b|\bno (?:doubt|matter|longer)\b|\bwhether or not\b|\bif not\b|\bno\.? ?(?=\d)|^no, "
)
_SAME_AS_NOT = re.compile(
    r"\bfail(?:s|ed|ing)? to\b|\bcan ?not\b|\b(?:no|not|little) (?:\w+ )?(?:evidence|proof|signs?|indications?) (?:that|of|for)\b"
    r"|\bnot (?:true|the case|clear|known|certain|proven) (?:that|whether|if)\b|\b(?:unclear|unknown|doubtful) (?:that|whether|if)\b"
)
_CLAUSE = re.compile(
    r"[,;:.!?()]+(?=\s|$)|\s[–—-]\s|\b(?:but|whereas|while|although|though|however|because|since|and|or)\b"
)
_WORD = re.compile(r"[^\W_][\w-]*")
_OPPOSITES = (
    "increase rise rose risen raise grow grew higher more greater larger bigger gain gained | decrease reduce reduction"
    " fall fell fallen drop dropped decline lower fewer less smaller lose lost loss",
    "fast faster fastest quicker | slow slower slowest", "better best improve improved | worse worst worsen degrade deteriorate",
    "above | below", "before | after", "earlier | later", "large largest | small smallest", "high highest | low lowest",
    "upper | lower", "long longer longest | short shorter shortest", "minimum minimal minimize | maximum maximal maximize",
    "most | least", "enable | disable", "include included | exclude excluded", "accept accepted | reject rejected",
    "encrypt encryption | decrypt decryption", "allow permit | forbid prevent prohibit", "positive | negative",
    "first | last", "true | false", "strong stronger | weak weaker", "early | late", "easy easier | difficult hard harder",
    "advance | retreat", "import | export", "exceed exceeded | below under", "left | right", "simple | complex",
    "stable | unstable", "possible | impossible", "secure | insecure", "significant | insignificant",
    "dependent | independent", "sufficient | insufficient", "complete | incomplete", "internal | external",
    "local | global", "public | private", "online | offline", "start begin | end finish", "win won | lose lost",
    "up | down", "buy bought | sell sold", "open | close closed", "old older oldest | new newer newest young younger",
    "rich | poor", "agree | disagree", "success succeed | failure fail failed", "parent | child", "north | south",
    "east | west", "male men man | female women woman", "always | never", "all every | some few none",
)  # fmt: skip
_POLES: dict[str, set[tuple[int, bool]]] = {}
for _number, _pair in enumerate(_OPPOSITES):
    for _side, _forms in enumerate(_pair.split("|")):
        for _form in _forms.split():
            _POLES.setdefault((tokenize(_form) or [_form])[0], set()).add((_number, bool(_side)))


def denies(statement: str, source: str) -> bool:
    """Whether one of two texts denies what the other says without a denial."""
    said, there = _worded(statement), _worded(source)
    ours, theirs = _halves(said), _halves(there)
    return _turned(said, there, excused=theirs - ours) or _turned(there, said, excused=ours - theirs)


def _turned(denying: str, plain: str, excused: set[str]) -> bool:
    """Whether a text denies something that the other affirms. excused: words that may be the other's denial."""
    if excused:
        return False
    words = frozenset(tokenize(plain))
    denied = frozenset().union(*_denied(plain))
    return any(scope and held_of(scope, words) == scope and not scope & denied for scope in _denied(denying))


def _halves(text: str) -> set[str]:
    return {(tokenize(word) or [word])[0] for word in _HALF_DENIAL.findall(text)}


def opposes(statement: str, source: str) -> bool:
    """Whether a statement has a word and the source only its opposite, beside the same word."""
    said, there = _poles(statement), _poles(source)
    sides = {pole for pole, _ in there}
    mine = {pole for pole, _ in said}
    return any(
        (group, side) not in sides and (group, not side) in sides and (group, not side) not in mine
        and any(other == (group, not side) and of & near for other, near in there)
        for (group, side), of in said
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _worded(text: str) -> str:
    plain = re.sub(r"\b(?:ca|wo)?n['’]t\b|(?<=\w)n['’]t\b", " not", " ".join(text.casefold().split()))
    plain = _SAME_AS_NOT.sub("not", plain)
    return _NO_DENIAL.sub(" ", plain)


@lru_cache(maxsize=4096)
def _denied(text: str) -> tuple[frozenset[str], ...]:
    """What each denial denies: the next two content words in its clause, or else the one before."""
    found = []
    for clause in _CLAUSE.split(text):
        words = _WORD.findall(clause)
        for place in (place for place, word in enumerate(words) if word in DENIALS):
            behind = [stem for word in words[place + 1 : place + 8] for stem in tokenize(word)[:1]]
            before = [stem for word in words[max(0, place - 6) : place] for stem in tokenize(word)[:1]]
            found.append(frozenset(behind[:2] or before[-1:]))
    return tuple(found)


@lru_cache(maxsize=4096)
def _poles(text: str) -> tuple[tuple[tuple[int, bool], frozenset[str]], ...]:
    """The opposites in a text, each with the content words near it."""
    words = [(tokenize(word) or [word])[0] for word in _WORD.findall(text.casefold())]
    found = []
    for place, word in enumerate(words):
        near = frozenset(words[max(0, place - 4) : place] + words[place + 1 : place + 5])
        found += [(pole, frozenset(stem for stem in near if len(stem) > 2)) for pole in _POLES.get(word, ())]
    return tuple(found)
