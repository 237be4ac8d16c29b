"""Statements in another language than the evidence: judged by numbers, and names that no language changes. Pure.

The grounder compares words, and finds none of a translation's in the paper.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from folio.grounding.quantities import Quantity, quantities
from folio.grounding.sentences import EvidenceSentence
from folio.text import STOP_WORDS

LEAST_WORDS = 5  # of a statement whose language is told by its function words
LEAST_SHARE = 0.12  # of its words that are function words of its language
# The most frequent function words of German, French, Spanish, Italian, Portuguese, Dutch, Swedish and Polish that are
# no English words. These languages are told from English, and not from each other.
_FUNCTION_WORDS = frozenset(
    "der das des dem den und ist sind von mit ein eine einer einem einen nicht auf für bis zu zur zum im sich wird hat"
    " wurde durch nach bei aus über um le la les du de et est sont une dans pour par sur avec que qui au aux ne pas il"
    " jusqu el los las del y en con por para una uno se su es al lo gli della dei nel che di non è sono ha tra fino os"
    " uma da dos em não até são ao o na het een van op met voor zijn niet naar tot och att på är som av ett från till"
    " w z się nie jest do przez oraz".split()
).difference(STOP_WORDS)
_WORD = re.compile(r"(?<!\w)[^\W\d_]+")
_DIGITS = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z]-)\d(?:[\d.,'\u00a0\u202f ]*\d)?")
_POINT_FOR_THOUSANDS = re.compile(r"\d{1,3}(?:[.'\u00a0\u202f ]\d{3})+(?:,\d+)?")
_COMMA_FOR_DECIMALS = re.compile(r"\d+,\d+")
# BERT, GPT-2, mRNA, IL6: not the capital of a sentence, a name or a German noun
_CODE = re.compile(r"(?<![^\W_])(?=[^\W_]*[A-Z0-9])(?=[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*", re.A)


def is_in_another_language(statement: str, evidence: str) -> bool:
    """Whether a statement is in another language than the evidence, as far as scripts and English words show."""
    here, there = _scripts(statement), _scripts(evidence)
    if here and there and here[0] != there[0]:
        return True
    (english, foreign), (in_english, in_other) = _shares(statement), _shares(evidence)
    if len(_WORD.findall(statement)) < LEAST_WORDS or max(english, foreign) < LEAST_SHARE:
        return False
    return (english >= foreign) != (in_english >= in_other)


def is_borne_out(statement: str, sources: Sequence[EvidenceSentence]) -> bool:
    """Whether the sources have all numbers and codes of a statement, and it has any; units are not compared."""
    text = " ".join(source.text for source in sources)
    numbers, known = list(_numbers(statement)), quantities(text, units=False)
    codes = [code for code in _CODE.findall(statement) if sum(map(_is_sign, code)) > 1]
    folded = text.casefold()
    return bool(numbers or codes) and (
        all(any(number.is_among(known) for number in forms) for forms in numbers)
        and all(code.casefold() in folded for code in codes)
    )


def _numbers(text: str) -> Iterator[tuple[Quantity, ...]]:
    """Each number of a text, as English reads it and as other languages do: 150.000 is 150 or 150,000."""
    for match in _DIGITS.finditer(text):
        written = match.group()
        forms = [written]
        if _POINT_FOR_THOUSANDS.fullmatch(written):
            forms.append(re.sub(r"[^\d,]", "", written).replace(",", "."))
        elif _COMMA_FOR_DECIMALS.fullmatch(written):
            forms.append(written.replace(",", "."))
        yield tuple(number for form in forms for number in quantities(form, units=False)[:1])


def _is_sign(char: str) -> bool:
    return char.isupper() or char.isdigit()


def _shares(text: str) -> tuple[float, float]:
    """The share of English function words, and of those of other languages. A word with a capital may be a name."""
    words = [word for word in _WORD.findall(text) if word.islower()]
    counts = (sum(word in each for word in words) for each in (STOP_WORDS, _FUNCTION_WORDS))
    english, foreign = (count / len(words) if words else 0.0 for count in counts)
    return english, foreign


def _scripts(text: str) -> list[str]:
    """The scripts of a text's letters, the most frequent first: LATIN, CYRILLIC, CJK ..."""
    counts: dict[str, int] = {}
    for char in text:
        if char.isalpha():
            script = "LATIN" if char.isascii() else unicodedata.name(char, "?").partition(" ")[0]
            script = "CJK" if script in ("HIRAGANA", "KATAKANA") else script
            counts[script] = counts.get(script, 0) + 1
    return sorted(counts, key=lambda script: -counts[script])
