"""Detects sentences that contradict each other by a negation or by opposite words. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from folio.grounding.quantities_old import plain_text
from folio.text import tokenize

DENIALS = frozenset(
    "not no never none nobody nothing neither nor without cannot unable lacks lacked nicht kein keine keinen keiner"
    " ohne nie".split()
)
# Words that negate without a "not", or only partly. A sentence with one of them gets the benefit of the doubt.
_HALF_DENIALS = re.compile(
    r"\b(?:un(?!der|i|til|to)\w{4,}|non\w*|(?:in|im)(?:possible|dependent|sufficient|valid|correct|accurate|effective"
    r"|complete|feasible|active|secure|consistent|capable|distinguishable|visible|significant|adequate|appropriate)\w*"
    r"|dis(?:able|agree|allow|card|continu|prov|regard|similar)\w*|only|except|rather|instead|avoid\w*|prevent\w*"
    r"|exclu\w+|refus\w+|reject\w*|den(?:y|ie)\w*|ignor\w+|omit\w*|miss\w*|absen\w+|fail\w*|few\w*|little|less\w*|lower"
    r"|below|under|hardly|scarcely|barely|rarely|seldom|sometimes|difficult\w*|hard|differ\w*|free|zero|open|remov\w*"
    r"|eliminat\w*|stop\w*|ceas\w*|los\w+|limit\w*|against|beyond|oppos\w*|contrary|false|wrong\w*|negativ\w*|drop\w*"
    r"|neglect\w*|alone|forbid\w*|prohibit\w*|restrict\w*|at most|at least|or not|weak\w*|poor\w*|slow\w*|decreas\w*"
    r"|lack\w*|deficien\w*|depriv\w*|attenuat\w*|abolish\w*|inhibit\w*|suppress\w*|block\w*|delet\w*|deplet\w*)\b"
)
_REWORDED = (
    (re.compile(r"\b(?:no|not) (?:more|later|greater|higher|larger) than\b"), "at most"),
    (re.compile(r"\b(?:no|not) (?:less|fewer|earlier|smaller|lower) than\b"), "at least"),
    (re.compile(r"\b(?:can ?not|no longer)\b"), "not"),
    (re.compile(r"\bfail(?:s|ed|ing)? to\b"), "not"),
    (re.compile(r"\bnot (?:only|just|merely|least|until|surprisingly|to mention)\b|\bno (?:doubt|matter|wonder)\b"
                r"|\bwhether or not\b|\bif not\b|\bno\.? ?(?=\d)|\bnothing but\b|^no, "), ""),
    # Denied only in part: no denial.
    (re.compile(r"\bnot (?:(?:yet|also|be) )?(?:always|all|every|fully|entirely|completely|necessarily|exactly"
                r"|strictly|both|solely|purely|simply|mainly|directly)\b"), "rarely"),
)  # fmt: skip
_CLAUSE = re.compile(
    r"[,;:.!?()]+(?=\s|$)|\s[–—-]\s|\b(?:but|whereas|while|although|though|however|because|since|unless|if|when)\b"
)
_CJK, _CJK_DENIAL = re.compile("[\u4e00-\u9fff]"), re.compile("[不没無无未非]")
# A number with the words before it, which may give a direction: "rose by 7 %"
_DIRECTED = re.compile(r"(?P<before>(?:(?<![^\W\d])[^\W\d]{1,40}\W+){0,3})(?P<number>\d[\d.,]*)")
# Phrases that deny or leave open what follows them.
_SAYING = (
    r"(?:believ|think|thought|claim|show|demonstrat|prov|report|suggest|say|said|impl|mean|conclud|indicat|confirm"
    r"|establish|held|stat|assum)\w*"
)
_FRAME = re.compile(
    rf"\b(?:not (?:true|the case|clear|known|certain|proven)|no (?:\w+ )?(?:evidence|proof|signs?|indications?)"
    rf"|(?:not|never|nobody|nothing|no one|no \w+) (?:\w+ )?{_SAYING}(?: \w+)? that"
    rf"|(?:falsely|wrongly|mistakenly|erroneously) (?:\w+ )?{_SAYING}|(?:false|untrue|doubtful|unlikely|unproven) that"
    r"|unclear|unknown|uncertain|doubt(?:s|ed)?|whether|(?:hypothes|speculat|conjectur|myth)\w* (?:is )?that)\b"
)
_CONDITION = re.compile(r"(?:^|[,:(•] )if (?P<given>[^,;:]+), (?:then )?(?!(?:and|or|but)\b)(?P<then>[^;:]+)")
_MAYBE = re.compile(r"\b(?:may|might|could(?! be))\s+(?:(?:also|be|been|have|well|even|\w+ly)\s+)*(?P<verb>[^\W\d]+)")
_ONLY = re.compile(
    r"\s(?:only|except) (?:against|if|when|in|for|under|with|on|at|by|from|within|after|before|as|where|while|until"
    r"|during|up to)\b"
)
_ENDS = re.compile(r"[.!?;]+\s+")
# A sentence with one of these hedges or denies by itself.
_FRAMES_ITSELF = re.compile(
    r"\b(?:if|whether|doubt\w*|unclear|unknown|uncertain|question\w*|ask\w*|claim\w*|falsely|may|might|could|possib\w*"
    r"|perhaps|potential\w*|maybe|likely|suggest\w*|seem\w*|appear\w*|when|where|provided|unless|given|long as"
    r"|hypothes\w*|evidence|debat\w*|stud(?:y|ie)\w*|investigat\w*|examin\w*|explor\w*|assess\w*|believ\w*|not|no"
    r"|never|nobody|nothing|none|cannot|without|speculat\w*|conjectur\w*|myth\w*)\b"
)
_MOST = 0.8
# Words between a word and what it refers to, at most.
_NEAR = 12
_RAW_WORD = re.compile(r"non-\w+|[^\W_](?:[\w.]*\w)?")
_SMALL_WORDS = frozenset(
    "the a an its their our this that of in to be is are was were been has have it they we he she at".split()
)

_PAIRS = (
    "increase increases increased increasing rise rises rose rising risen raise raises raised raising grow grows grew"
    " growing higher highest more greater larger bigger | decrease decreases decreased decreasing reduce reduces"
    " reduced reducing reduction fall falls fell falling fallen drop drops dropped dropping decline declines declined"
    " declining lower lowers lowered lowering lowest fewer less smaller",
    "fast faster fastest quicker | slow slower slowest",
    "better best improve improves improved improving improvement enhance enhances enhanced | worse worst worsen worsens"
    " worsened degrade degrades degraded degrading deteriorate deteriorates deteriorated",
    "above | below beneath", "before | after", "earlier | later", "large | small", "high | low", "upper | lower",
    "long longer | short shorter", "minimum minimal minimize minimizes | maximum maximal maximize maximizes",
    "most | least", "enable enables enabled enabling | disable disables disabled disabling",
    "include includes included including | exclude excludes excluded excluding",
    "accept accepts accepted accepting | reject rejects rejected rejecting",
    "encrypt encrypts encrypted encrypting encryption | decrypt decrypts decrypted decrypting decryption",
    "allow allows allowed allowing permit permits permitted | forbid forbids forbidden prevent prevents prevented"
    " preventing prohibit prohibits prohibited", "positive positively | negative negatively", "first | last",
    "true | false", "strong stronger strongly | weak weaker weakly", "early | late",
    "easy easier | difficult hard harder",
    "advance advances advanced advancing | retreat retreats retreated retreating",
    "gain gains gained gaining | lose loses lost losing loss", "import imports imported | export exports exported",
    *(f"{word} | {prefix}{word}" for prefix, words in (
        ("un", "stable likely known supervised able"), ("im", "possible"), ("non", "linear"), ("non-", "linear"),
        ("in", "secure valid correct significant dependent sufficient complete consistent feasible effective accurate"),
    ) for word in words.split()),
)  # fmt: skip
_POLES: dict[str, list[tuple[int, bool]]] = {}
for _group, _pair in enumerate(_PAIRS):
    for _side, _forms in enumerate(_pair.split("|")):
        for _form in _forms.split():
            _POLES.setdefault(_form, []).append((_group, bool(_side)))


@dataclass(frozen=True, slots=True)
class _Pole:
    """One of two opposites, the words it refers to, and whether it is negated."""

    group: int
    side: bool
    of: frozenset[str]
    denied: bool


_Denial = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Polarity:
    """What a text denies. A denial has the words before it in its clause, and the first two after it."""

    denials: tuple[_Denial, ...]
    hedges: frozenset[str]
    poles: tuple[_Pole, ...]
    words: frozenset[str]


def contradicts(sentence: str, quote: str) -> bool:
    """Whether one text denies what the other says, by a negation or an opposite.

    quote: all quotes of the sentence, joined, since one quote may deny what another one says. Other kinds of denial
    ("deficient", "only", "unlike") get the benefit of the doubt.
    """
    return _lifted_out(sentence, quote) or opposes(sentence, quote)


def opposes(sentence: str, quote: str) -> bool:
    """Whether the texts differ by a negation, by an opposite, or in the direction of a number."""
    said, there = _polarity(sentence), _polarity(quote)
    if (_CJK_DENIAL.search(sentence) is None) != (_CJK_DENIAL.search(quote) is None) and _CJK.search(sentence):
        return True
    if _turned_at_a_number(sentence, quote) or _cut_from_a_denial(sentence, quote):
        return True
    # Denials and hedges that both texts have make no difference.
    more, less = _unmatched(said.denials, there.denials), _unmatched(there.denials, said.denials)
    if more and not less and there.hedges <= said.hedges:
        return True
    if less and not more and said.hedges <= there.hedges and any(_says(said.words, *denial) for denial in less):
        return True
    sides = {(pole.group, pole.side) for pole in said.poles}
    return any(_is_opposed(pole, there.poles) for pole in said.poles if (pole.group, not pole.side) not in sides)


def _unmatched(denials: tuple[_Denial, ...], others: tuple[_Denial, ...]) -> list[_Denial]:
    return [denial for denial in denials if not any(denial[1] & other[1] or denial == other for other in others)]


def _says(words: frozenset[str], before: frozenset[str], behind: frozenset[str]) -> bool:
    """Whether these words affirm, of the same thing, what the other text denies."""
    return bool(behind) and behind <= words and 2 * len(before & words) >= len(before)


def _is_opposed(pole: _Pole, others: tuple[_Pole, ...]) -> bool:
    pairs = [other for other in others if other.group == pole.group]
    if any(other.side == pole.side for other in pairs):
        return False
    return any(other.of & pole.of and other.denied == pole.denied for other in pairs)


def _cut_from_a_denial(sentence: str, quote: str) -> bool:
    """Whether a sentence is part of the quote without the denial before it: "must not / reuse a seed"."""
    piece, whole = (" ".join(_worded(text).split()).strip(" .") for text in (sentence, quote))
    at = whole.find(piece) if piece else -1
    if at < 1:
        return False
    before = _RAW_WORD.findall(_CLAUSE.split(whole[:at])[-1])[-3:]
    return not DENIALS.isdisjoint(before) and DENIALS.isdisjoint(_RAW_WORD.findall(piece))


def _lifted_out(sentence: str, quote: str) -> bool:
    """Whether a sentence claims what the quote only denies, doubts or makes conditional: "no evidence that / X"."""
    claim = _worded(sentence)
    words = frozenset(tokenize(claim))
    if len(words) < 2:
        return False
    places = [piece for piece in _ENDS.split(_worded(quote)) if _mostly(words, piece)]
    return bool(places) and all(_is_framed(claim, words, piece) for piece in places)


def _is_framed(claim: str, words: frozenset[str], piece: str) -> bool:
    """Whether a text makes the claim only under a denial, doubt or condition that the claim lacks."""
    for frame in _FRAME.finditer(piece):
        scope = _CLAUSE.split(piece[frame.end() :].lstrip(" ,"))[0]
        head, rest = piece[: frame.start()], piece[: frame.start()] + piece[frame.end() + len(scope) :]
        shared = words.intersection(tokenize(head)).difference(tokenize(scope))
        if _mostly(words, scope) and not shared and not _mostly(words, rest) and not _has_own(claim, scope):
            return True
    if condition := _CONDITION.search(piece):
        given, then = condition["given"], condition["then"]
        both = words.intersection(tokenize(given)) and words.intersection(tokenize(then))
        if not both and (_mostly(words, given) or _mostly(words, then)) and not _has_own(claim, f"{given} {then}"):
            return True
    if (maybe := _MAYBE.search(piece)) and words.intersection(tokenize(maybe["verb"])):
        clauses = [clause for clause in _CLAUSE.split(piece) if _mostly(words, clause)]
        said = " can " in claim or _has_own(claim, piece.replace(maybe[0], ""))
        if not said and clauses and all(_MAYBE.search(clause) for clause in clauses):
            return True
    before, only, behind = piece.partition(found[0]) if (found := _ONLY.search(piece)) else (piece, "", "")
    last = _telling(_RAW_WORD.findall(before))[-1:]
    told = words.intersection(tokenize(behind))
    return bool(only and words.issuperset(last) and _mostly(words, before) and not told and not _has_own(claim, before))


def _mostly(words: frozenset[str], text: str) -> bool:
    return len(words.intersection(tokenize(text))) >= _MOST * len(words)


def _has_own(claim: str, scope: str) -> bool:
    """Whether a claim has a hedge or denial of its own, which its source lacks."""
    own = _FRAMES_ITSELF.findall(claim) + _HALF_DENIALS.findall(claim)
    return not set(own) <= set(_FRAMES_ITSELF.findall(scope) + _HALF_DENIALS.findall(scope))


def _turned_at_a_number(sentence: str, quote: str) -> bool:
    """Whether a number goes up in one and down in the other: "rose by 7 %" for "fell by 7 % and rose by 2 %"."""
    said, there = _directions(sentence), _directions(quote)
    return any(
        number in there and (group, not side) in there[number] and (group, side) not in there[number]
        for number, poles in said.items()
        for group, side in poles
    )


@lru_cache(maxsize=4096)
def _directions(text: str) -> dict[str, frozenset[tuple[int, bool]]]:
    """The numbers in a text, each with the opposites just before it."""
    found: dict[str, frozenset[tuple[int, bool]]] = {}
    for match in _DIRECTED.finditer(plain_text(text).casefold()):
        words = re.findall(r"[^\W\d]+", match["before"])
        poles = next((_POLES[word] for word in reversed(words) if word in _POLES), [])
        number = match["number"].strip(".,")
        found[number] = found.get(number, frozenset()) | frozenset(poles)
    return found


@lru_cache(maxsize=4096)
def _worded(text: str) -> str:
    """A text in lower case, with its denials in one form."""
    plain = re.sub(r"\b(?:ca|wo|sha)?n['’]t\b|(?<=\w)n['’]t\b", " not", plain_text(text).casefold())
    for pattern, replacement in _REWORDED:
        plain = pattern.sub(replacement, plain)
    return plain


@lru_cache(maxsize=4096)
def _polarity(text: str) -> _Polarity:
    plain = _worded(text)
    denials, poles, before = dict[_Denial, None](), list[_Pole](), list[str]()
    for clause in _CLAUSE.split(plain):
        words = _RAW_WORD.findall(clause)
        for place in (place for place, word in enumerate(words) if word in DENIALS):
            subject = _telling(words[max(0, place - _NEAR) : place])
            if not subject and words[0] in ("which", "who", "that", "and", "nor"):
                subject = before
            # "but not on text": the denied words are elsewhere
            behind = _telling(words[place + 1 : place + _NEAR])[:2] if words[:1] != ["not"] else []
            denials[frozenset(subject), frozenset(behind)] = None
        for place, word in enumerate(words):
            denied = not DENIALS.isdisjoint(words[max(0, place - 4) : place])
            of = _target(words, place) if word in _POLES else frozenset[str]()
            poles += [_Pole(group, side, of, denied) for group, side in _POLES.get(word, ())]
        before = _telling(words[-_NEAR:])[-1:]
    hedges = frozenset(stem for word in _HALF_DENIALS.findall(plain) for stem in tokenize(word)[:1] or [word])
    # Deduplicated: poles are compared pairwise, and a long text may repeat one thousands of times.
    return _Polarity(tuple(denials), hedges, tuple(dict.fromkeys(poles)), frozenset(tokenize(plain)))


def _telling(words: list[str]) -> list[str]:
    """The stems of the content words, without adverbs, which a paraphrase may leave out."""
    telling = (word for word in words if not word.endswith("ly") and word not in ("yet", "any"))
    return [stem for word in telling for stem in tokenize(word)[:1]]


def _target(words: list[str], place: int) -> frozenset[str]:
    """The words that an opposite refers to: "higher accuracy", "the accuracy is higher", "more than 5"."""
    after = place + 1
    while after < len(words) and words[after] in _SMALL_WORDS:
        after += 1
    if words[after : after + 1] == ["than"] and words[after + 1 : after + 2] and words[after + 1][0].isdigit():
        after += 1
    found: list[str] = []
    for word in words[after : after + _NEAR]:
        stems = tokenize(word)[:1]
        if len(found) == 3 or not (stems or word in ("of", "the", "in")):
            break
        found += stems
    return frozenset(found or _telling(words[max(0, place - _NEAR) : place])[-1:])
