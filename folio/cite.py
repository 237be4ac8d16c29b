"""Sentences, markers, quotes: what an answer may say and which words of which page it stands on. Pure.

A citation's quote is a slice of the paper's text, cut at the page's edge, and its page comes from the offset of the
slice. Nothing that a model wrote gets into a citation but the number of the evidence it points to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from folio.sentences import sentence_spans, stripped
from folio.tokens import tokenize
from folio.types import REFUSAL, Citation, Hit, Sentence

# Of a sentence's telling words, how many must stand in a passage for it to count as support. A passage that the
# writer named needs less than one that the program looked up.
SUPPORT_NAMED = 0.5
SUPPORT_FOUND = 0.7
# Quotes behind one sentence at most.
MOST_QUOTES = 4

# A marker, as asked for and as models write it: [1], [1, 2], [1][3], [Source 1], 【1】
# and within a second pair of brackets: [[1]], ([1])
_MARKER = re.compile(
    r"\s*(?P<outer>[\[(])?[\[【(]\s*(?:sources?|evidence|passages?)?\s*"
    r"(?P<numbers>\d{1,3}(?:\s*(?:,|;|and|&|-|–)\s*\d{1,3})*)\s*[\]】)](?(outer)[\])])",
    re.I,
)
_TRAILING_MARKERS = re.compile(rf"(?:{_MARKER.pattern})+", re.I)
_CUT_MARKER = re.compile(r"\s*[\[【]\s*\d*$")
_LIST_ITEM = re.compile(r"(?:(?:[-–•▪‣*]|#+|\d{1,2}[.)])\s+)+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _page_parts(hit: Hit, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of the span [start, end) of the hit's text that each stand on one page, without space around them."""
    pages, offset = hit.paper.pages, hit.chunk.start
    while start < end:
        page = pages.page_at(offset + start)
        page_end = pages.starts[page] - offset if page < len(pages.starts) else end
        stop = min(end, max(start + 1, page_end))
        part = stripped(hit.text, start, stop)
        if part[0] < part[1]:
            yield part
        start = stop


def citation(hit: Hit, source: int, start: int, end: int) -> Citation:
    """The citation of a span [start, end) of the hit's paper that lies in the hit: of its longest part on one page."""
    offset = hit.chunk.start
    parts = _page_parts(hit, start - offset, end - offset)
    first, last = max(parts, key=lambda part: part[1] - part[0], default=(start - offset, start - offset))
    page = hit.paper.pages.page_at(offset + first)
    return Citation(
        hit.paper.file, hit.paper.title, page, hit.paper.pages.label(page), hit.text[first:last], source
    )


def quotes(sentence: str, evidence: Sequence[tuple[int, Hit]], least: float) -> tuple[Citation, ...]:
    """The few quotes that together hold a sentence up, in the order of the evidence; none when they cannot.

    evidence: passages with their numbers. The quotes hold all of the sentence's numbers and at least this share of its
    words, and each stands on one page: it is not enough that the passages as a whole would. Taken first is what brings
    a number that is still missing, then what is most like the sentence (Dice's coefficient of their words).
    """
    words, numbers = set(tokenize(sentence)), _numbers_of(sentence)
    places = [
        citation(hit, source, hit.chunk.start + start, hit.chunk.start + end)
        for source, hit in evidence
        for span in sentence_spans(hit.text) or [(0, len(hit.text))]
        for start, end in _page_parts(hit, *span)
    ]
    held = [(set(tokenize(place.quote)), _numbers_of(place.quote)) for place in places]
    chosen: list[int] = []
    missing, found = set(numbers), set[str]()
    while words and len(chosen) < min(MOST_QUOTES, len(places)):
        worth = [
            (len(missing & figures), 2 * len(words & (there - found)) / (len(words) + len(there) or 1), -place)
            for place, (there, figures) in enumerate(held)
        ]
        best = max((place for place in range(len(places)) if place not in chosen), key=worth.__getitem__)
        chosen.append(best)
        missing -= held[best][1]
        found |= words & held[best][0]
        if not missing and len(found) >= least * len(words):
            return tuple(places[place] for place in sorted(chosen))
    return ()


def support(sentence: str, passage: str) -> float:
    """The share, 0 to 1, of a sentence's telling words that stand in a passage; 0 when one of its numbers does not."""
    words = set(tokenize(sentence))
    if not words:
        return 0.0
    if not _numbers_of(sentence) <= _numbers_of(passage):
        return 0.0
    return len(words & set(tokenize(passage))) / len(words)


def _numbers_of(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def take_markers(text: str, count: int) -> tuple[str, tuple[int, ...]]:
    """A sentence without its markers, and the numbers 1..count that they held, each once, in order.

    Round brackets are taken for a marker only where no letter or year could be meant: (1) but not (2019). What counts
    from 0 is an interval, such as [0, 1].
    """
    numbers: dict[int, None] = {}

    def take(match: re.Match[str]) -> str:
        found = _numbers(match["numbers"])
        is_round = match.group().lstrip().startswith("(")
        if (is_round and (not found or max(found) > count)) or (0 in found and len(found) > 1):
            return match.group()
        numbers.update((number, None) for number in found if 1 <= number <= count)
        return ""

    return " ".join(_CUT_MARKER.sub("", _MARKER.sub(take, text)).split()), tuple(numbers)


def _numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in re.split(r"\s*(?:,|;|and|&)\s*", text):
        first, _, last = re.sub(r"\s*[-–]\s*", "-", part).partition("-")
        if first.isdecimal() and last.isdecimal():
            found.extend(range(int(first), min(int(last), int(first) + 20) + 1))
        elif first.isdecimal():
            found.append(int(first))
    return found


@dataclass(frozen=True, slots=True)
class Written:
    """A sentence as a model wrote it: its words, and the evidence that its markers name."""

    text: str
    markers: tuple[int, ...]


def written_sentences(text: str, count: int, *, complete: bool) -> tuple[list[Written], str]:
    """What a model has written so far as sentences with their markers, and the rest that is not yet whole.

    A marker that stands behind the full stop belongs to the sentence before it. With `complete`, nothing is left over.
    """
    spans = sentence_spans(text)
    joined: list[list[int]] = []
    for start, end in spans:
        lead = _TRAILING_MARKERS.match(text, start, end)
        if joined and lead:
            joined[-1][1] = lead.end()
            start = lead.end()
        if start < end:
            joined.append([start, end])
    rest = len(text)
    if not complete and joined:
        rest = joined.pop()[0]  # the next piece may go on with it, or bring its marker
        if joined and text[rest:].lstrip()[0] in "[【(":  # perhaps the beginning of a marker of the sentence before
            rest = joined.pop()[0]
    sentences = [Written(*take_markers(_unadorned(text[start:end]), count)) for start, end in joined]
    return [sentence for sentence in sentences if sentence.text.strip(" .")], text[rest:] if not complete else ""


def _unadorned(sentence: str) -> str:
    """Without the number or bullet of a list item, the marks of a heading and of bold type."""
    return _LIST_ITEM.sub("", sentence.replace("**", "").strip(), count=1)


def cited(sentence: Written, hits: Sequence[Hit]) -> Sentence | None:
    """The sentence with the citations that hold it up; None when no passage does.

    The passages that it names are tried first, each alone and then together; after them, so that a wrong marker is
    mended rather than believed, the others.
    """
    named = [(number, hits[number - 1]) for number in sentence.markers]
    alone = [quotes(sentence.text, [passage], SUPPORT_NAMED) for passage in named]
    citations = tuple(chain(*alone)) or quotes(sentence.text, named, SUPPORT_NAMED)
    if not citations:
        others = sorted(enumerate(hits, 1), key=lambda item: -support(sentence.text, item[1].text))
        found = (quotes(sentence.text, [other], SUPPORT_FOUND) for other in others)
        citations = next((several for several in found if several), ())
    return Sentence(sentence.text, citations) if citations else None


def is_refusal(text: str) -> bool:
    """Whether a model said, in the words it was given, that the papers do not answer."""
    return text.strip(" \"'*\n").casefold().startswith(REFUSAL.casefold().rstrip("."))


def check(
    pieces: Iterable[str], hits: Sequence[Hit], *, whole: Callable[[], bool] = lambda: True
) -> Iterator[Sentence | None]:
    """A model's words, as they come, to sentences that cite; None for each that no passage supports.

    A refusal ends it, as does the end of the words. whole: asked at the end, whether the model had said all that it
    wanted to; where it was cut off, what it had begun is no sentence.
    """
    rest = ""
    for piece in pieces:
        rest += piece
        sentences, rest = written_sentences(rest, len(hits), complete=False)
        for sentence in sentences:
            if is_refusal(sentence.text):
                return
            yield cited(sentence, hits)
    if not whole():
        return
    for sentence in written_sentences(rest, len(hits), complete=True)[0]:
        if is_refusal(sentence.text):
            return
        yield cited(sentence, hits)
