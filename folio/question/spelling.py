"""Typed words that the index does not know are matched to close ones that it does: "gogle" to "google".

The vocabulary is the BM25 index's, whose tokens are stems. A stem is compared with stems, so that "architecures" is
close to "architectures" whatever their endings; what is searched and shown is a word of a passage that has the stem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from folio.text import STOP_WORDS, tokenize

# Words with the joiners of names inside: these are names or identifiers when they have one.
_WORD = re.compile(r"[^\s\"“”„«»‘()\[\]{},;!?…]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_PLAIN = re.compile(r"[^\W\d_]+")
# As people type them without the apostrophe
_CONTRACTION = re.compile(r"(?:does|did|are|was|were|has|have|had|could|would|should)nt", re.I)

_PREFIX = re.compile(r"(?:de|dis|mis|non|out|over|pre|re|sub|un|under)(?=\w{4})")

SHORTEST = 5  # letters of a word that is matched: close to a shorter one is almost anything
LONGEST = 40
# Letters from which two errors may be in a word that cannot be spelt right
TWO_ERRORS = 8
# Letters from which one may be another one
SUBSTITUTIONS = 7
# Passages that a word must stand in, so that no misprint of a paper is taken for a word
LEAST_PASSAGES = 2
# The same for a capitalised word in mid-sentence, which is probably a name
LEAST_FOR_A_NAME = 5
MOST_WORDS = 8  # of one question that are matched
MOST_LOOKED_UP = 8  # stems whose words are compared with what was typed

Vocabulary = Mapping[str, int]  # stem -> how many passages have it


@dataclass(frozen=True, slots=True)
class Respelling:
    """A question with words of the index in place of unknown ones that are close to them."""

    question: str
    typed: str = ""  # the words from the first changed one to the last; "" if none was
    meant: str = ""  # the same as they were searched

    @property
    def note(self) -> str:
        """A sentence about it, "" if nothing was changed."""
        return f"Searched for “{self.meant}” instead of “{self.typed}”." if self.typed else ""


def respelled(
    question: str,
    is_known: Callable[[str], bool],
    is_word: Callable[[str], bool],
    vocabulary: Callable[[], Vocabulary],
    surface: Callable[[str, str], str],
) -> Respelling:
    """The question with its misspelt words put right.

    is_known: whether the index has this token. is_word: whether this is an English word, though no paper has it: then
    it is spelt right, and "salinity" must not become "salient". vocabulary: called only if a word is unknown. surface:
    of a stem and the typed word, the word of the index to put there, as it is written; "" for none. Never changed:
    quoted phrases, acronyms, words with digits or joiners, short ones, and capitalised ones in mid-sentence unless they
    are one letter off a frequent word.
    """
    parts: list[str] = []  # what is between the changed words, and the words in their place
    first = end = 0
    for start, stop, least in _candidates(question):
        word = question[start:stop].casefold()
        stems = tokenize(word)
        if len(stems) != 1 or len(parts) >= 2 * MOST_WORDS or _is_right(word, is_word):
            continue
        if is_known(stems[0]):
            meant = _name(word, surface(stems[0], word))
        else:
            allowed = _allowed(word, vocabulary())
            meant = _meant(word, closest(word, stems[0], vocabulary(), least, allowed), surface, allowed)
        if not meant:
            continue
        first = first if parts else start
        parts += [question[end:start], meant]
        end = stop
    if not parts:
        return Respelling(question)
    changed = "".join([parts[1], *parts[2:]])
    return Respelling("".join([*parts, question[end:]]), question[first:end], changed)


def _is_right(word: str, is_word: Callable[[str], bool]) -> bool:
    """Whether this is an English word, or one behind a prefix: "resends"."""
    prefix = _PREFIX.match(word)
    return is_word(word) or (prefix is not None and is_word(word[prefix.end() :]))


def _candidates(question: str) -> Iterator[tuple[int, int, int]]:
    """The spans of words that may be misspelt, each with the number of passages that a word in its place must have."""
    quoted = [match.span() for match in _QUOTED.finditer(question)]
    begins = True
    for match in _WORD.finditer(question):
        start, stop = match.span()
        word = match.group()
        bare = word.rstrip(".:'’")
        at_start, begins = begins, word.endswith((".", ":")) or question[stop : stop + 1] in ("?", "!")
        if not _PLAIN.fullmatch(bare) or not bare.isascii() or not SHORTEST <= len(bare) <= LONGEST:
            continue
        if any(low <= start < high for low, high in quoted) or bare.casefold() in STOP_WORDS:
            continue
        if not bare[1:].islower() or _CONTRACTION.fullmatch(bare):  # an acronym, or a name such as RoBERTa
            continue
        is_name = bare[0].isupper() and not at_start
        yield start, start + len(bare), LEAST_FOR_A_NAME if is_name else LEAST_PASSAGES


def _allowed(typed: str, vocabulary: Vocabulary) -> int:
    """How many typing errors an unknown word may have.

    Two only in a long one with three letters in a row that no word of the index has: a word that is spelt right, such
    as "ligation", has none, and is often two letters off another ("location").
    """
    start = f"^{typed}"
    threes = {start[at : at + 3] for at in range(len(start) - 2)} if len(typed) >= TWO_ERRORS else set()
    return 1 if all(any(three in f"^{word}" for word in vocabulary) for three in threes) else 2


def closest(typed: str, stem: str, vocabulary: Vocabulary, least: int, allowed: int) -> list[str]:
    """The words of the vocabulary that may be meant by an unknown one, as stems, the closest and most frequent first.

    The distance is that of optimal string alignment: a letter left out, added, changed, or two exchanged, count as one
    each, and `allowed` of them are. The first letter must stay, which typing errors seldom change.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    by_length: dict[int, list[str]] = {}
    for word, count in vocabulary.items():
        if count >= least and word[0] == typed[0]:
            by_length.setdefault(len(word), []).append(word)
    found: dict[str, float] = {}
    for length, words in by_length.items():
        # An error in its ending gives a word another stem ("simulatios"), but the vocabulary's is its beginning.
        for begin in {stem, typed[:length]} if length >= SHORTEST - 1 else {stem}:
            for word, distance, _ in process.extract(
                begin, words, scorer=OSA.distance, score_cutoff=allowed, limit=None
            ):
                # The stem itself counts less than a stem that leaves out many letters of the word.
                far = distance + (0 if begin == stem else 0.5) + max(0, len(stem) - length) / 10
                found[word] = min(far, found.get(word, far))
    return sorted(found, key=lambda word: (found[word], -vocabulary[word], word))[:MOST_LOOKED_UP]


def _meant(typed: str, stems: Sequence[str], surface: Callable[[str, str], str], allowed: int) -> str:
    """Of the words with these stems the closest to what was typed, the first of several; "" if none is close enough."""
    from rapidfuzz.distance import OSA

    words = [word for stem in stems if (word := surface(stem, typed)) and _is_close(typed, word.casefold(), allowed)]
    return min(words, key=lambda word: (OSA.distance(word.casefold(), typed), -len(word)), default="")


def _name(typed: str, word: str) -> str:
    """The word of the index if it is a name that a word with its stem misspells: "herbivor" for Herbivore; else ""."""
    is_name = word[:1].isupper() and word.casefold().rstrip("s") != typed.rstrip("s")
    return word if is_name and _is_close(typed, word.casefold(), 1) else ""


def _is_close(typed: str, word: str, allowed: int) -> bool:
    """Whether one may be the other with typing errors.

    In a short word no letter may be another one: "phage" is no misspelt "phase", though "trsut" is a misspelt "trust".
    """
    from rapidfuzz.distance import OSA

    if len(typed) < SUBSTITUTIONS and len(typed) == len(word) and sorted(typed) != sorted(word):
        return False
    return 0 < OSA.distance(word, typed) <= allowed


def surface_of(stem: str, typed: str, texts: Sequence[str]) -> str:
    """The word with this stem in these texts that is most like what was typed, as it is mostly written; "" if there is
    none. A name's stem is its first token: RoBERTa has those of its parts behind it."""
    from rapidfuzz.distance import OSA

    written = Counter(match.group() for text in texts for match in _PLAIN.finditer(text))
    same = {word: count for word, count in written.items() if tokenize(word)[:1] == [stem]}
    # Of two as close, the longer one: letters are left out more often than put in.
    best = min(
        {word.casefold() for word in same}, key=lambda word: (OSA.distance(word, typed), -len(word), word), default=""
    )
    forms = [word for word in same if word.casefold() == best]
    return max(forms, key=lambda word: (same[word], word.islower(), word), default="")
