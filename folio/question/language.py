"""Recognises a question in another language than English by its most frequent words. Pure."""

from __future__ import annotations

import re

from folio.text import STOP_WORDS, without_accents

# German, French, Spanish, Italian, Portuguese, Dutch: words of questions, without accents
_LANGUAGES = tuple(
    frozenset(words.split())
    for words in (
        "aber als auf aus bei das dem den der des die ein eine einem einen einer fur gibt haben hat ich im ist"
        " kann mit nach nicht oder sich sie sind uber und vom von war warum was welche welchem welchen welcher"
        " welches wer werden wie wird wo worum wurde wurden zu zum zur",
        "a au aux avec c ce cette comment d dans de des du elle en est et il l la le les leur ou par pas pour"
        " pourquoi qu quand que quel quelle quelles quels qui quoi son sont sur un une",
        "como con cual cuales cuando cuanto cuantos de del donde el en es esta este la las los para por porque que"
        " quien quienes se son su un una y",
        "che chi come con cos cosa da dei del della delle di dove e gli ha i il in la le lo nel per perche quale"
        " quali quando quanti sono un una",
        "a ao as com como da das de do dos e em foi na no o onde os para pela pelo por porque quais qual quando"
        " quantos que quem sao um uma",
        "dat de deze die een en er heeft het hoe in is met naar niet of op te van voor waar waarom wat welke wie"
        " wordt zijn",
    )
)
_LEAST = 2  # words of a language that show it
# What questions of these languages are asked with
_ASKING = frozenset(
    "wann warum was welche welchem welchen welcher welches wer wie wo worum comment ou pourquoi qu quand que quel"
    " quelle quelles quels qui quoi como cual cuales cuando cuanto cuantos donde quien quienes che chi come dove perche"
    " quale quali quando quanti onde quais qual quantos quem hoe waar waarom wat welke".split()
)


def foreign_words(question: str) -> frozenset[str]:
    """The words that show that a question is in another language; empty for English, and for keywords.

    For another script than Latin these are all words.

    >>> sorted(foreign_words("Wer hat Zab geschrieben?"))
    ['hat', 'wer']
    """
    plain = re.sub(r"\bet al\b", "", without_accents(question).casefold())
    words = re.findall(r"[^\W\d_]+", plain)
    letters = "".join(words)
    if len(letters) > 2 and 2 * len(re.findall(r"[^a-z]", letters)) > len(letters):
        return frozenset(words)
    names = {word.casefold() for word in re.findall(r"[A-Z]{2,}", question)}  # the EM algorithm, an OS
    most = max((language.intersection(words) - names for language in _LANGUAGES), key=len)
    own, english = most - STOP_WORDS, STOP_WORDS.intersection(words) - most
    signs = (len(most) >= _LEAST, not most.isdisjoint(_ASKING), question.rstrip().endswith("?"))
    is_foreign = bool(own) and sum(signs) > 1 and len(own) > len(english)
    return most if is_foreign else frozenset()
