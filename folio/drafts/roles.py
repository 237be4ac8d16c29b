"""Who does what to whom, and which number is whose: the same words in other places say something else. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from folio.drafts.wording import Word, align, are_opposite, has_word, is_same_word, words_of_claim
from folio.grounding.conflicts import are_apart
from folio.grounding.grounder import Fault
from folio.grounding.negation import sides_of
from folio.grounding.quantities import Quantity, quantities
from folio.text import tokenize, typed

# What stands between two things that are compared
_COMPARES = re.compile(
    r"\b(?:than(?! (?:\d|one\b|two\b|three\b|half\b|a (?:few|dozen|hundred|thousand)))|outperform\w*|exceed\w*"
    r"|surpass\w*|beats?|dominates?|compared (?:to|with)|relative to|versus|vs"
    r"|over(?=\s+(?:the\s+)?(?:baseline|original)))\b",
    re.I,
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|be|being)\s+(?:\w+ly\s+)?\w+(?:ed|en|t)\b[^,;.]{0,40}\bby\b", re.I)
# What separates the things that each have their own number
_SHARES = re.compile(
    r"[,;:]\s|\b(?:and|but|while|whereas|versus|vs|compared (?:to|with)|than|against|or|to)\b", re.I
)
_RESPECTIVELY = re.compile(r"\brespectively\b", re.I)
_LEAST_DENSITY = 0.34  # of the words of the source between the first and the last that the claim has


def other_roles(claim: str, source: str) -> Iterator[Fault]:
    """That a claim has the things of its source in each other's places."""
    if _is_turned_round(claim, source):
        yield Fault("comparison", "the paper compares them the other way round")
    elif _COMPARES.search(claim) and not _COMPARES.search(source):
        yield Fault("no comparison", "the paper does not compare these")
    elif turned := _reversed_pair(claim, source):
        yield Fault("roles", f"the paper has “{turned}” the other way round")
    elif half := _of_the_other_half(claim, source):
        yield Fault("half", f"the paper says “{half}” of something else")
    elif exchanged := _exchanged(claim, source):
        yield Fault("order", f"the paper has “{exchanged}” the other way round")


_COORDINATES = re.compile(r"[;:]\s|,\s|\b(?:and|but|while|whereas|although)\b", re.I)


def _of_the_other_half(claim: str, source: str) -> str:
    """A word of a claim of which the source has the opposite too, and that beside the claim's other words; or "".

    "It gained mass in winter and lost mass in summer" does not say that it lost mass in winter.
    """
    parts = [words_of_claim(part) for part in _COORDINATES.split(source)]
    words = words_of_claim(claim)
    for word in words:
        mine, theirs = _behind(parts, word.stem, is_same_word), _behind(parts, word.stem, are_opposite)
        if mine is None or theirs is None:
            continue
        rest = frozenset(each.stem for each in words if each is not word)
        if _only(rest, theirs, [mine]) > _only(rest, mine, [theirs]):
            return word.written
    return ""


def _behind(
    parts: Sequence[Sequence[Word]], stem: str, fits: Callable[[str, str], bool]
) -> frozenset[str] | None:
    """The stems behind the first word that fits a stem, in its part; None if none fits."""
    for part in parts:
        for place, word in enumerate(part):
            if fits(stem, word.stem):
                return frozenset(each.stem for each in part[place + 1 :])
    return None


def _is_turned_round(claim: str, source: str) -> bool:
    here, there = _COMPARES.search(claim), _COMPARES.search(source)
    if not (here and there):
        return False
    left, right = (_stems(part) for part in _sides(claim, here))
    other_left, other_right = (_stems(part) for part in _sides(source, there))
    straight, crossed = _common(right, other_right), _common(right, other_left)
    if straight == crossed:
        own = left - right
        straight, crossed = _common(own, other_left - other_right), _common(own, other_right - other_left)
    poles, other_poles = _poles(claim), _poles(source)
    is_opposite = any((number, not side) in other_poles for number, side in poles - other_poles)
    is_passive = bool(_PASSIVE.search(claim)) != bool(_PASSIVE.search(source))
    return straight != crossed and (crossed > straight) != (is_opposite or is_passive)


def _sides(text: str, between: re.Match[str]) -> tuple[str, str]:
    """The clause before and after what compares."""
    before = re.split(r"[,;:]\s|\b(?:that|but|while|whereas)\b", text[: between.start()])[-1]
    after = re.split(r"[,;:.]\s|\b(?:but|while|whereas|because|when|if)\b", text[between.end() :])[0]
    return before, after


def _poles(text: str) -> frozenset[tuple[int, bool]]:
    stems = ((tokenize(word) or [word])[0] for word in re.findall(r"[^\W\d_]+", text.casefold()))
    return frozenset(pole for stem in stems for pole in sides_of(stem))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in words_of_claim(text) if not sides_of(word.stem))


def _common(words: frozenset[str], others: frozenset[str]) -> int:
    return sum(has_word(word, others) for word in words)


def _exchanged(claim: str, source: str) -> str:
    """Two words of a claim that stand in each other's place in the source; "" for none.

    Neighbours may change places ("maps are converted", "converts maps"), and a passive turns its sides round.
    """
    here, there = words_of_claim(claim), words_of_claim(source)
    known = [(word, place) for word, place in zip(here, align(here, there), strict=True) if place is not None]
    places = [-1, *(place for _, place in known), len(there)]
    is_passive = bool(_PASSIVE.search(claim)) != bool(_PASSIVE.search(source))
    for first, last in combinations(range(1, len(places) - 1), 2):
        if last - first < 2 or places[first] < places[last] or is_passive:
            continue
        if _fits(places, first, places[last]) and _fits(places, last, places[first]):
            one, other = known[first - 1][0], known[last - 1][0]
            if not _is_turned(claim, one, other):
                return f"{one.written} … {other.written}"
    return ""


def _fits(places: Sequence[int], at: int, place: int) -> bool:
    """Whether a place is between those of the neighbours of a word."""
    return places[at - 1] < place < places[at + 1]


def _is_turned(claim: str, first: Word, last: Word) -> bool:
    """Whether two words of a claim are the items of a list, whose order says nothing."""
    between = typed(claim)[first.start + len(first.written) : last.start]
    return bool(_LIST.fullmatch(between))


_LIST = re.compile(r"(?:\s*,\s*[^\s,]+){0,8},?\s*(?:and|or|,)\s*", re.I)
_BETWEEN = re.compile(
    r"([^\W\d_]+)[-\s]+(?:to|by|from|over|into|before|after|per|versus|vs|causes?|for)[-\s]+(?:the |an? )?([^\W\d_]+)",
    re.I,
)


def _reversed_pair(claim: str, source: str) -> str:
    """Two words with a preposition between them that the source has the other way round; "" for none."""
    there = {tuple(_stem(word) for word in found.groups()) for found in _overlapping(source)}
    for found in _overlapping(claim):
        first, last = (_stem(word) for word in found.groups())
        if first != last and (last, first) in there and (first, last) not in there:
            return found.group()
    return ""


def _overlapping(text: str) -> Iterator[re.Match[str]]:
    found = _BETWEEN.search(text)
    while found:
        yield found
        found = _BETWEEN.search(text, found.start(2))


def _stem(word: str) -> str:
    return (tokenize(word) or [word.casefold()])[0]


def is_scattered(claim: str, source: str) -> bool:
    """Whether the words of a claim lie far apart in its source, so that they may be of several things."""
    wanted = frozenset(word.stem for word in words_of_claim(claim))
    there = words_of_claim(source)
    places = [place for place, word in enumerate(there) if has_word(word.stem, wanted)]
    if len(places) < 2:
        return False
    last: dict[str, int] = {}
    found = {there[place].stem for place in places}
    shortest = len(there)
    for place in places:
        last[there[place].stem] = place
        if len(last) == len(found):
            shortest = min(shortest, place - min(last.values()) + 1)
    return len(found) / shortest < _LEAST_DENSITY


def other_owner(claim: str, source: str) -> tuple[Quantity, Quantity | None] | None:
    """A number of a claim that its source gives for something else, and the number that it gives for this, if any.

    Where a source has several numbers of a kind, each belongs to the words beside it. Of numbers that it gives
    "respectively", nothing is sure.
    """
    given = [number for number in quantities(source) if not number.is_reference]
    for number in quantities(claim):
        same = [other for other in given if number.is_among([other])]
        rivals = [other for other in given if other not in same and are_of_a_kind(number, other)]
        if not same or not rivals:
            continue
        if _RESPECTIVELY.search(source) and not _RESPECTIVELY.search(claim):
            return number, None
        beside = _stems(_share_of(claim, number))
        if not beside:
            continue
        shares = {id(other): _stems(_share_of(source, other)) for other in (*same, *rivals)}
        own = max(_only(beside, shares[id(other)], [shares[id(r)] for r in rivals]) for other in same)
        best = max(rivals, key=lambda rival: _only(beside, shares[id(rival)], [shares[id(s)] for s in same]))
        theirs = _only(beside, shares[id(best)], [shares[id(s)] for s in same])
        # It is given for something that the claim does not name: "91 % on the validation set and 87 % on the test set"
        # is not 91 % on the test set.
        apart = [shares[id(other)] - beside for other in same]
        is_elsewhere = all(_common(words, beside) < len(words) for words in apart)
        if theirs > own or (theirs and is_elsewhere and _stands_by(claim, number, shares[id(best)])):
            return number, best
        if not own and not any(_common(beside, share) for share in (shares[id(other)] for other in same)):
            return number, None
    return None


def _stands_by(claim: str, number: Quantity, share: frozenset[str]) -> bool:
    """Whether the words right behind a number of a claim are in the share of another number."""
    behind = words_of_claim(claim[number.span[1] :])[:2]
    return bool(behind) and all(has_word(word.stem, share) for word in behind)


def in_place_of(number: Quantity, claim: str, source: str) -> Quantity | None:
    """The number of a source that it has where a claim has another one; None if it has none of the kind."""
    beside = _stems(_share_of(claim, number))
    rivals = [other for other in quantities(source) if not other.is_reference and are_of_a_kind(number, other)]

    def fit(other: Quantity) -> tuple[bool, int, bool]:
        is_same_scale = bool(number.scale == other.scale and number.counted & other.counted)
        return is_same_scale, _common(beside, _stems(_share_of(source, other))), number.scale == other.scale

    return max(rivals, key=fit, default=None)


def _only(beside: frozenset[str], share: frozenset[str], others: Sequence[frozenset[str]]) -> int:
    """How many of the words beside a number are in a share and in none of the others."""
    return sum(has_word(word, share) and not any(has_word(word, other) for other in others) for word in beside)


def _share_of(text: str, number: Quantity) -> str:
    """The words around a number, up to what separates it from others."""
    start, end = number.span
    spans = [other.span for other in quantities(text) if other.span != number.span]
    before = max((last for _, last in spans if last <= start), default=0)
    after = min((first for first, _ in spans if first >= end), default=len(text))
    low = max((found.end() for found in _SHARES.finditer(text, before, start)), default=before) if before else 0
    high = max((found.start() for found in _SHARES.finditer(text, end, after)), default=after)
    return f"{text[low:start]} {text[end : high if after < len(text) else after]}"


def are_of_a_kind(number: Quantity, other: Quantity) -> bool:
    """Whether two numbers could be values of the same thing."""
    if number.unit or other.unit:
        return number.unit == other.unit
    if is_year(number) != is_year(other):
        return False
    return not (number.counted and other.counted) or are_apart(number, other) or is_year(number)


def is_year(number: Quantity) -> bool:
    return not number.unit and number.written.isdecimal() and 1500 <= number.value <= 2100
