"""A question in other words without a model: acronyms spelled out as the papers do, and words near it in meaning."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from folio.protocols import Embedder, TermWeights
from folio.text import STOP_WORDS, plain_words, tokenize

# Words that are compared with the question, and those of them that are added to it
MOST_COMPARED, ADDED = 60, 4
LEAST_LETTERS = 4
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z]*[A-Z][A-Za-z]*s?\b|\b[A-Z]{2,}s?\b")
_IN_BRACKETS = re.compile(r"((?:[\w'’-]+[ \n]+){1,10})\(([A-Z][A-Za-z-]{1,9})\)")
_WORD = re.compile(r"[^\W\d_]+")


def spelled_out(question: str, texts: Sequence[str]) -> str:
    """The question with its acronyms spelled out, and with acronyms of what it spells out; "" if there are none.

    texts: passages, which may define them: "Message Authentication Code (MAC)".
    """
    forms = dict(_definitions(texts))
    added = []
    for acronym in dict.fromkeys(_ACRONYM.findall(question)):
        if (form := forms.get(acronym.removesuffix("s"))) and form.casefold() not in question.casefold():
            added.append(form)
    words = " ".join(plain_words(question))
    for acronym, form in forms.items():
        if f" {' '.join(plain_words(form))} " in f" {words} " and acronym.casefold() not in words.split():
            added.append(acronym)
    return f"{question.rstrip(' ?')} {' '.join(added)}" if added else ""


def _definitions(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Acronyms and what they stand for, by initials: Schwartz and Hearst (2003), for whole words alone."""
    for text in texts:
        for match in _IN_BRACKETS.finditer(text):
            words, acronym = match[1].split(), match[2].removesuffix("s")
            letters = [letter.casefold() for letter in acronym if letter.isalpha()]
            form = words[-len(letters) :]
            if len(letters) > 1 and [word[0].casefold() for word in form] == letters:
                yield acronym, " ".join(form)


def acronyms_in(question: str) -> list[str]:
    """Its words in capitals, each once."""
    return list(dict.fromkeys(_ACRONYM.findall(question)))


def near_words(
    question: str, texts: Sequence[str], embedder: Embedder, weights: Callable[[str], TermWeights]
) -> tuple[str, ...]:
    """The words of these passages that are nearest to the question in meaning and that it does not have itself.

    Compared are the MOST_COMPARED with the highest TF-IDF. Raises ModelError.
    """
    own = set(tokenize(question))
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.casefold() for word in _WORD.findall(text) if len(word) >= LEAST_LETTERS)
    frequent = [word for word, _ in counts.most_common(5 * MOST_COMPARED) if word not in STOP_WORDS]
    rarity = weights(" ".join(frequent))
    scored: dict[str, tuple[float, str]] = {}  # by stem: "kernel" and "kernels" are one word
    for word in frequent:
        tokens = tokenize(word)
        if len(tokens) == 1 and tokens[0] not in own:
            score = counts[word] * rarity.get(tokens[0], 0.0)
            scored[tokens[0]] = max(scored.get(tokens[0], (0.0, "")), (score, word))
    words = [word for _, word in sorted(scored.values(), key=lambda one: (-one[0], one[1]))[:MOST_COMPARED]]
    if not words:
        return ()
    vectors = embedder.embed_queries([question, *words])
    order = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
    return tuple(words[place] for place in order[:ADDED].tolist())
