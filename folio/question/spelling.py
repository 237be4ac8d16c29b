"""Corrects the spelling of words that the index does not have: "gogle" becomes "google".

The vocabulary is the BM25 index's, whose tokens are stems. Stems are compared with stems, so that "architecures" is
close to "architectures" whatever the endings; the correction is a word of a passage with that stem.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from folio.text import STOP_WORDS, tokenize

# Words, including names and identifiers with inner joiners
_WORD = re.compile(r"[^\s\"“”„«»‘()\[\]{},;!?…]+")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\w)'[^']*'(?!\w)|`[^`]*`")
_PLAIN = re.compile(r"[^\W\d_]+")
# Contractions without the apostrophe
_CONTRACTION = re.compile(r"(?:does|did|are|was|were|has|have|had|could|would|should)nt", re.I)

_PREFIX = re.compile(r"(?:de|dis|mis|non|out|over|pre|re|sub|un|under)(?=\w{4})")

SHORTEST, LONGEST = 5, 40  # letters of a word to correct; almost anything is close to a shorter one
TWO_ERRORS = 8  # letters from which an impossible word may have two errors
SUBSTITUTIONS = 7  # letters from which one may be replaced by another
LEAST_PASSAGES = 2  # with a word, so that it is no misprint of a paper
LEAST_FOR_A_NAME = 5  # the same for a capitalised word in mid-sentence, which is probably a name
MOST_WORDS = 8  # corrected in one question
MOST_LOOKED_AT = 64  # words of one question that may be misspelt
MOST_LOOKED_UP = 8  # stems whose words are compared with a typed word

Vocabulary = Mapping[str, int]  # stem -> how many passages have it


@dataclass(frozen=True, slots=True)
class Respelling:
    """A question with corrected spelling."""

    question: str
    typed: str = ""  # the words from the first to the last correction; "" for none
    meant: str = ""  # the same words, corrected

    @property
    def note(self) -> str:
        """A sentence about the correction; "" for none."""
        return f"Searched for “{self.meant}” as well as “{self.typed}”." if self.typed else ""


def respelled(
    question: str,
    is_known: Callable[[str], bool],
    is_word: Callable[[str], bool],
    vocabulary: Callable[[], Vocabulary],
    texts_with: Callable[[Collection[str]], Mapping[str, Sequence[str]]],
) -> Respelling:
    """The question with corrected spelling.

    is_known: whether the index has this token. is_word: whether this is an English word, which is right even if no
    paper has it: "salinity" must not become "salient". vocabulary: only called for an unknown word. texts_with: texts
    that use each of these stems; called once at most. Quoted phrases, acronyms, words with digits or joiners, and short
    words stay unchanged; so do capitalised words in mid-sentence, unless they are one letter off a frequent word.
    """
    unknown = list(_unknown(question, is_known, is_word, vocabulary))
    texts = texts_with({stem for word in unknown for stem in word.stems}) if unknown else {}
    parts: list[str] = []  # alternately unchanged text and a corrected word
    first = end = 0
    for word in unknown:
        meant = word.meant(texts)
        if not meant or len(parts) >= 2 * MOST_WORDS:
            continue
        first = first if parts else word.start
        parts += [question[end : word.start], meant]
        end = word.start + len(word.typed)
    if not parts:
        return Respelling(question)
    changed = "".join([parts[1], *parts[2:]])
    return Respelling("".join([*parts, question[end:]]), question[first:end], changed)


class _Unknown(NamedTuple):
    """A word that may be misspelt."""

    start: int  # in the question
    typed: str  # in lower case
    stems: Sequence[str]  # of the words that it may be
    allowed: int  # typing errors; 0 for a word whose own stem the index has: a name's misspelling at most

    def meant(self, texts: Mapping[str, Sequence[str]]) -> str:
        """The correction, from texts that use each stem; "" for none."""
        from rapidfuzz.distance import OSA

        words = [surface_of(stem, self.typed, texts.get(stem, ())) for stem in self.stems]
        if not self.allowed:
            return _name(self.typed, words[0])
        close = [word for word in words if word and _is_close(self.typed, word.casefold(), self.allowed)]
        return min(close, key=lambda word: (OSA.distance(word.casefold(), self.typed), -len(word)), default="")


def _unknown(
    question: str, is_known: Callable[[str], bool], is_word: Callable[[str], bool], vocabulary: Callable[[], Vocabulary]
) -> Iterator[_Unknown]:
    """The words of a question that may be misspelt. For the parameters see respelled."""
    count = 0
    for start, stop, least in _candidates(question):
        word = question[start:stop].casefold()
        stems = tokenize(word)
        if len(stems) != 1 or _is_right(word, is_word):
            continue
        count += 1
        if count > MOST_LOOKED_AT:
            return
        if is_known(stems[0]):
            yield _Unknown(start, word, stems, 0)
        else:
            allowed = _allowed(word, vocabulary())
            stems = closest(word, stems[0], vocabulary(), least, allowed)
            yield _Unknown(start, word, stems, allowed)


def _is_right(word: str, is_word: Callable[[str], bool]) -> bool:
    """Whether this is an English word, or one after a prefix: "resends"."""
    prefix = _PREFIX.match(word)
    return is_word(word) or (prefix is not None and is_word(word[prefix.end() :]))


def _candidates(question: str) -> Iterator[tuple[int, int, int]]:
    """The spans of words that may be misspelt, each with the least number of passages for its correction."""
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

    Two only if it is long and has three letters in a row that no word of the index has. A correct word such as
    "ligation" has no such letters, and is often two letters off another word ("location").
    """
    start = f"^{typed}"
    threes = {start[at : at + 3] for at in range(len(start) - 2)} if len(typed) >= TWO_ERRORS else set()
    return 1 if all(any(three in f"^{word}" for word in vocabulary) for three in threes) else 2


def closest(typed: str, stem: str, vocabulary: Vocabulary, least: int, allowed: int) -> list[str]:
    """The stems of the vocabulary that an unknown word may stand for, closest and most frequent first.

    The distance is optimal string alignment, at most `allowed`: a letter left out, added or changed, or two exchanged,
    count as one each. The first letter must be the same: typing errors seldom change it.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    by_length: dict[int, list[str]] = {}
    for word, count in vocabulary.items():
        if count >= least and word[0] == typed[0]:
            by_length.setdefault(len(word), []).append(word)
    distances: dict[str, float] = {}
    for length, words in by_length.items():
        # An error in the ending changes the stem ("simulatios"), but the word begins with the right stem.
        for begin in {stem, typed[:length]} if length >= SHORTEST - 1 else {stem}:
            for word, distance, _ in process.extract(
                begin, words, scorer=OSA.distance, score_cutoff=allowed, limit=None
            ):
                # Prefer the word's own stem, and stems that leave out few letters.
                penalised = distance + (0 if begin == stem else 0.5) + max(0, len(stem) - length) / 10
                distances[word] = min(penalised, distances.get(word, penalised))
    return sorted(distances, key=lambda word: (distances[word], -vocabulary[word], word))[:MOST_LOOKED_UP]


def _name(typed: str, word: str) -> str:
    """The word of the index if it is a name that the typed word misspells: "herbivor" for Herbivore; else ""."""
    is_name = word[:1].isupper() and word.casefold().rstrip("s") != typed.rstrip("s")
    return word if is_name and _is_close(typed, word.casefold(), 1) else ""


def _is_close(typed: str, word: str, allowed: int) -> bool:
    """Whether one word may be the other with typing errors.

    No letter of a short word may be replaced: "phage" is no misspelt "phase", but "trsut" is a misspelt "trust".
    """
    from rapidfuzz.distance import OSA

    if len(typed) < SUBSTITUTIONS and len(typed) == len(word) and sorted(typed) != sorted(word):
        return False
    return 0 < OSA.distance(word, typed) <= allowed


def surface_of(stem: str, typed: str, texts: Sequence[str]) -> str:
    """The word with this stem in these texts that is closest to the typed one, in its most frequent form; "" for none.

    A name's stem is its first token: RoBERTa has tokens for its parts, too.
    """
    from rapidfuzz.distance import OSA

    counts = Counter(match.group() for text in texts for match in _PLAIN.finditer(text))
    same = {word: count for word, count in counts.items() if tokenize(word)[:1] == [stem]}
    # Of two equally close words, the longer one: letters are left out more often than added.
    best = min(
        {word.casefold() for word in same}, key=lambda word: (OSA.distance(word, typed), -len(word), word), default=""
    )
    forms = [word for word in same if word.casefold() == best]
    return max(forms, key=lambda word: (same[word], word.islower(), word), default="")
