"""Answers and summaries with labelled sentences: judged files, FaithBench and SummEdits, as one kind of object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from folio.answer.markers import MARKER, TRAILING_MARKERS, in_square_brackets, simplified, take_markers, unadorned
from folio.answer_types import Evidence
from folio.errors import UsageError
from folio.evaluate.dataset import Form, Offset, Words, malformed, validated_entries
from folio.papers.metadata import simple_metadata
from folio.papers.model import Chunk, Hit, PageMap, Paper
from folio.text import sentence_spans

# Labels of a judged file that are counted. The last one is of a whole answer: which sentence is at fault is not known.
SUPPORTED, FALSE, NOT_IN_EVIDENCE, UNFAITHFUL = "supported", "false", "not in evidence", "rated unfaithful"
# FaithBench: sentences without a marked span, and with one that people marked as Unwanted.
GOOD, BAD = "good", "bad"
# SummEdits: sentences of whole summaries.
CONSISTENT, EDITED = "consistent", "edited"
LABELS = (SUPPORTED, FALSE, NOT_IN_EVIDENCE, UNFAITHFUL, GOOD, BAD, CONSISTENT, EDITED)

# Not counted: sentences that make no claim, and those of which people were not sure or which they forgave.
FILLER, DEBATABLE = "filler", "benign or questionable"

_ENDS_IN_NUMBER = re.compile(r"\s+(\d{1,2})\.$")
_UNWANTED = "Unwanted"  # and Unwanted.Intrinsic, Unwanted.Extrinsic
_SUMMARY_QUESTION = "What does the text say?"


@dataclass(frozen=True, slots=True)
class LabelledStatement:
    """A statement with the label that people gave it."""

    text: str
    label: str
    kind: str = ""  # how it was written, or what is wrong with it
    markers: tuple[int, ...] = ()  # evidence numbers
    counted: bool = True  # False for a sentence that a corrupted twin shares with its answer, which has it already


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer or a summary of which the check is to show what is supported."""

    id: str
    model: str
    question: str
    evidence: tuple[Evidence, ...]
    statements: tuple[LabelledStatement, ...]
    is_twin: bool = False  # a corrupted copy of the answer before it
    is_summary: bool = False
    domain: str = ""
    edits: tuple[str, ...] = ()  # the kinds of change that made a summary inconsistent
    not_located: int = 0  # sentences that do not stand in the answer, and so have no markers


# Judged answers


def load_judged(path: Path) -> list[LabelledAnswer]:
    """The answers of a judged file, each followed by its corrupted twin if it has one. Raises UsageError."""
    found: list[LabelledAnswer] = []
    for place, (line, form) in enumerate(validated_entries(JudgedForm, path), 1):
        id = f"{path.stem}:{place}"  # several answers to a question may have the question's id
        numbers = [piece.number for piece in form.evidence if piece.number is not None]
        if numbers not in ([], list(range(1, len(form.evidence) + 1))):
            raise malformed(path, line, "evidence: its numbers must be 1, 2, 3 and so on")
        evidence = _evidence(form.evidence)
        found.append(_judged(id, form, evidence, form.sentences, form.answer))
        if form.corrupted_sentences:
            twin = _judged(f"{id}:corrupted", form, evidence, form.corrupted_sentences, form.corrupted, is_twin=True)
            found.append(twin)
    return _some(found, path)


def _judged(
    id: str,
    form: JudgedForm,
    evidence: tuple[Evidence, ...],
    sentences: Sequence[SentenceForm],
    written: str | None,
    *,
    is_twin: bool = False,
) -> LabelledAnswer:
    shared = {(sentence.text, sentence.label) for sentence in form.sentences} if is_twin else set()
    named = markers_of([sentence.text for sentence in sentences], written or "", len(evidence))
    statements = tuple(
        LabelledStatement(text, s.label, s.kind or "", markers or (), (s.text, s.label) not in shared)
        for s, text, markers in zip(sentences, _bare(sentences), named, strict=True)
    )
    missing = named.count(None) if written else 0
    return LabelledAnswer(id, form.model, form.question, evidence, statements, is_twin=is_twin, not_located=missing)


def _bare(sentences: Sequence[SentenceForm]) -> Iterator[str]:
    """The sentences of an answer without emphasis, and without the number of the next list item.

    A splitter leaves that at a sentence's end: "It can be caused by: 1.", "Low quality 2.", "Hormones 3."
    """
    item = 1
    for sentence in sentences:
        text = unadorned(simplified(sentence.text)).strip()
        number = _ENDS_IN_NUMBER.search(text)
        if number and int(number[1]) in (1, item):
            item = int(number[1]) + 1
            text = text[: number.start()]
        yield text or sentence.text


def _evidence(forms: Sequence[EvidenceForm]) -> tuple[Evidence, ...]:
    """The pieces as spans of papers: those of one file are of one paper, on the first page that each names."""
    by_file: dict[str, list[int]] = {}
    for place, form in enumerate(forms):
        by_file.setdefault(form.file or f"text {_letters(place)}", []).append(place)
    found: dict[int, Evidence] = {}
    for file, places in by_file.items():
        places.sort(key=lambda place: forms[place].pages[0])
        starts, length = {}, 0
        for place in places:
            starts[place] = length
            length += len(forms[place].text) + 2
        last = forms[places[-1]].pages[0]
        pages = [
            min((starts[place] for place in places if forms[place].pages[0] >= page), default=length)
            for page in range(1, last + 1)
        ]
        paper = Paper(
            file,
            file,
            simple_metadata(forms[places[0]].title),
            PageMap(tuple(pages), ("",) * last),
            length,
            len(places),
        )
        found.update((place, _piece(place + 1, paper, starts[place], forms[place].text)) for place in places)
    return tuple(found[place] for place in range(len(forms)))


def _letters(place: int) -> str:
    """A name without a digit, which a statement's numbers could be found in: a, b, ... z, ba, bb, ..."""
    return (_letters(place // 26) if place >= 26 else "") + chr(ord("a") + place % 26)


def _piece(number: int, paper: Paper, start: int, text: str) -> Evidence:
    end = start + len(text)
    return Evidence(number, paper, start, end, text, (Hit(Chunk(number, paper.id, start, end), paper, text, 0.0),))


# Summaries of one text


def load_faithbench(path: Path) -> list[LabelledAnswer]:
    """FaithBench (Bao et al. 2024, arXiv:2410.13210): a sentence is bad if a span marked Unwanted has a word of it.

    One with another marked span, or that only introduces others, is not counted. Raises UsageError.
    """
    found = [
        LabelledAnswer(
            f"{path.stem}:{number}",
            form.model,
            _SUMMARY_QUESTION,
            _evidence([EvidenceForm(text=form.source)]),
            tuple(_by_spans(form.summary, form.annotations)),
            is_summary=True,
        )
        for number, (_, form) in enumerate(validated_entries(FaithBenchForm, path), 1)
    ]
    return _some(found, path)


def _by_spans(summary: str, annotations: Sequence[AnnotationForm]) -> Iterator[LabelledStatement]:
    unwanted = [a for a in annotations if any(label.startswith(_UNWANTED) for label in a.label)]
    for start, end in sentence_spans(summary):
        text = summary[start:end]
        if _is_marked(summary, start, end, unwanted):
            label = BAD
        elif text.endswith(":"):  # "Here is a summary of the passage:"
            label = FILLER
        else:
            label = DEBATABLE if _is_marked(summary, start, end, annotations) else GOOD
        yield LabelledStatement(text, label, markers=(1,))


def _is_marked(summary: str, start: int, end: int, annotations: Iterable[AnnotationForm]) -> bool:
    """Whether one of the annotations has a word of the sentence [start, end)."""
    parts = (summary[max(start, a.start) : min(end, a.end)] for a in annotations)
    return any(any(character.isalnum() for character in part) for part in parts)


def load_summedits(folder: Path) -> list[LabelledAnswer]:
    """SummEdits (Laban et al. 2023, arXiv:2305.14540): consistent summaries, and edited ones that are not.

    Raises UsageError.
    """
    documents = {form.id: form.text for _, form in validated_entries(DocumentForm, folder / DOCUMENTS)}
    path = folder / SUMMARIES
    found: list[LabelledAnswer] = []
    for number, (line, form) in enumerate(validated_entries(SummaryForm, path), 1):
        if form.document not in documents:
            raise malformed(path, line, f"document: {DOCUMENTS} has no {form.document}")
        label = CONSISTENT if form.consistent else EDITED
        spans = sentence_spans(form.summary)
        found.append(
            LabelledAnswer(
                f"summedits:{number}",
                "",
                _SUMMARY_QUESTION,
                _evidence([EvidenceForm(text=documents[form.document])]),
                tuple(LabelledStatement(form.summary[slice(*span)], label, markers=(1,)) for span in spans),
                is_summary=True,
                domain=form.domain,
                edits=() if form.consistent else tuple(form.edits),
            )
        )
    return _some(found, path)


def _some(found: list[LabelledAnswer], path: Path) -> list[LabelledAnswer]:
    if not found:
        raise UsageError(
            f"{path} has no answers.", "Name a file that has some; docs/evaluation-set.md shows the format."
        )
    return found


# The markers beside a labelled sentence

# Signs do not matter: white space, bold, bullets and table rules differ between an answer and a labelled sentence.
_WORD = re.compile(r"[^\W_]+")
_CLOSING = re.compile(rf"(?:(?!{MARKER.pattern})[^\w\n])*", re.I)


@dataclass(frozen=True, slots=True)
class _MarkedWord:
    text: str  # folded
    start: int
    end: int
    in_marker: bool  # inside brackets that look like a marker


def markers_of(sentences: Sequence[str], answer: str, count: int) -> list[tuple[int, ...] | None]:
    """The evidence numbers from 1 to count that each sentence of an answer names; None where it is not in the answer.

    The sentences are without markers and in the order of the answer. A sentence that stands in the answer twice is the
    first one after the sentence before it.
    """
    text = in_square_brackets(simplified(answer))
    words = _words(text)
    found: list[tuple[int, ...] | None] = []
    at = 0
    for sentence in sentences:
        wanted = [word.text for word in _words(in_square_brackets(simplified(sentence)))]
        place = _find(wanted, words, at) or _find(wanted, words, 0)
        if place is None:
            found.append(None)
            continue
        first, at = place
        found.append(_markers(text, words[first].start, words[at - 1].end, count))
    return found


def _words(text: str) -> list[_MarkedWord]:
    marked = [match.span() for match in MARKER.finditer(text)]
    return [
        _MarkedWord(match.group().casefold(), *match.span(), any(start <= match.start() < end for start, end in marked))
        for match in _WORD.finditer(text)
    ]


def _find(wanted: Sequence[str], words: Sequence[_MarkedWord], at: int) -> tuple[int, int] | None:
    """The span [first, end) of the words that are wanted, from `at` on; words in markers may stand between them."""
    for first in range(at, len(words)) if wanted else ():
        if words[first].text == wanted[0] and (end := _matched(wanted, words, first)):
            return first, end
    return None


def _matched(wanted: Sequence[str], words: Sequence[_MarkedWord], at: int) -> int:
    """Where the words that are wanted end if they begin here; 0 if they do not stand here."""
    for place, word in enumerate(wanted):
        while at < len(words) and words[at].in_marker and (words[at].text != word or _after(words, at) == word):
            if place == 0:
                return 0
            at += 1
        if at == len(words) or words[at].text != word:
            return 0
        at += 1
    return at


def _after(words: Sequence[_MarkedWord], at: int) -> str:
    """The first word after a marker."""
    return next((word.text for word in words[at:] if not word.in_marker), "")


def _markers(text: str, start: int, end: int, count: int) -> tuple[int, ...]:
    """The numbers in the sentence [start, end), in a marker that begins its line, and in those after its end."""
    line = text.rfind("\n", 0, start) + 1
    if not _WORD.search(MARKER.sub("", unadorned(text[line:start]))):
        start = line
    if closed := _CLOSING.match(text, end):
        end = closed.end()
    if trail := TRAILING_MARKERS.match(text, end):
        end = trail.end()
    return take_markers(unadorned(text[start:end]), count)[1]


# The file formats

# The files of a SummEdits folder
DOCUMENTS, SUMMARIES = "documents.jsonl", "summaries.jsonl"

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]  # not stripped: offsets count from its first character
Pages = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=2)]


# Judged answers: Folio's own


class EvidenceForm(Form):
    text: Text
    number: int | None = None
    file: str = ""
    title: str = ""
    pages: Pages = Field(default_factory=lambda: [1])


def _as_evidence(value: Any) -> Any:
    """Evidence may be a plain text."""
    return {"text": value} if isinstance(value, str) else value


class SentenceForm(Form):
    text: Words
    label: str
    kind: str | None = None


class JudgedForm(Form):
    model: str = ""
    question: Words
    evidence: Annotated[list[Annotated[EvidenceForm, BeforeValidator(_as_evidence)]], Field(min_length=1)]
    answer: str | None = None
    sentences: Annotated[list[SentenceForm], Field(min_length=1)]
    corrupted: str | None = None
    corrupted_sentences: list[SentenceForm] = Field(default_factory=list)


# FaithBench (https://github.com/vectara/FaithBench)


class AnnotationForm(Form):
    start: Offset
    end: Offset
    label: list[str]


class FaithBenchForm(Form):
    source: Text
    summary: Text
    model: str
    annotations: list[AnnotationForm]


# SummEdits (https://github.com/salesforce/factualNLG)


class DocumentForm(Form):
    id: Annotated[Words, Field(alias="_id")]
    text: Text


class SummaryForm(Form):
    document: Words
    summary: Text
    consistent: bool
    domain: str = ""
    edits: list[str] = Field(default_factory=list)
