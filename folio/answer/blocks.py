"""Evidence -> the blocks that excerpts are cut from: runs of sentences, whole lists and algorithms, tables. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

from folio.answer.structure import Structure, algorithm, structures
from folio.answer_types import Evidence
from folio.papers.sections import Kind
from folio.text import sentence_spans, stripped

Span = tuple[int, int]

# A sentence with more words is a run of table cells or references; one with fewer says nothing by itself.
LONGEST_SENTENCE, SHORTEST_SENTENCE = 110, 5
LONGEST_WORD = 60  # characters; a longer word is an address or a hash
WHOLE_LIST, WHOLE_ALGORITHM = 110, 300  # maximum words of a list or an algorithm; both are only shown whole
# A list without an introduction whose items have fewer words on average, bullets included, is a menu.
LEAST_ITEM_WORDS = 3
HEADER_ROWS = 2  # maximum lines of a table that name its columns
MOST_BEFORE = 2  # maximum sentences to go back for what an excerpt's first sentence refers to

_WHOLE = re.compile(r"[.!?:;…。！？][\"'”’»)\]*]*(?:\s?\[[\d,;\s–-]+\])*$")
# The end before a break in mid-sentence
_CUT = re.compile(r"\b(?:et al|e\.g|i\.e|cf|vs|figs?|eqs?|secs?|refs?)\.$", re.I)
_PARAGRAPH = re.compile(r"\n\s*\n")
_BULLET = re.compile(r"(?:[•▪‣*–-]|\(?\d{1,2}[.)])\s+")
_ALGORITHM = re.compile(r"(?:algorithm|listing|procedure)\s*\d", re.I)
_CODE = re.compile(r"\s*(?:\d{1,3}[ ]?:|(?:for|while|if|else|end|repeat|until|return)\b)", re.I)  # a line of code
_CAPTION_BELOW = re.compile(r"\n\s*table\s*[\dIVX]", re.I)
# Dot leaders of a table of contents
_LEADERS = re.compile(r"(?:\. ?){4,}")
# The middle of a sentence: a word without capitals, perhaps after a sign of a formula
_LOWER_CASE = re.compile(r"(?:[^\w\s\"“‘'(\[]+\s+)?[a-z]+(?:[’'-][a-z]+)*(?![\w’'-])")
# The start of a reference: "[12] A. Otter", "Otter, A., & Seal, B. (2001).", "Otter et al., (2001). On ..."
_REFERENCE = re.compile(
    r"\W*\[\d+\]\s+[A-Z]|\W*(?:[A-Z][\w’'-]+, (?:[A-Z]\. ?)+(?:, )?(?:&|and)? ?){2,}"
    r"|\W*[A-Z][\w’'-]+(?: et al\.)?, \((?:19|20)\d\d\)\.|doi:|https?://doi",
    re.I,
)
_OWN_WORK = (
    r"(?:paper|article|study|work|thesis|report|review|section|chapter|document|survey|manuscript|tutorial|course|book"
    r"|guide|module|publication|project|replication)"
)
# Words that lean on the sentence before: "Therefore", "It", "These results", "In contrast". "It is known that", "This
# paper", "Here we" and "Both A and B" do not.
_LEANS = re.compile(
    # "Unfortunately, for high-degree objects these queries ..."
    r"(?:(?-i:[A-Z])\w+ly,\s+)?(?:"
    r"(?:(?:therefore|thus|hence|however|moreover|furthermore|additionally|consequently|accordingly|nevertheless"
    r"|nonetheless|otherwise|instead|similarly|likewise|also|but|and|so|yet|then|conversely|meanwhile|besides|still"
    r"|again|finally|indeed|specifically|such|they|their|theirs|them|he|she|his|her|him|latter|former|its|those|these)\b"
    r"|it\b(?!\s+(?:is|was|has been|seems|appears|follows)\b[^.]{0,60}?\b(?:that|to|whether)\b)"
    rf"|(?:this|that)\b(?!\s+{_OWN_WORK}\b)"
    r"|the (?:latter|former|same|other|second|third|last)\b"
    r"|in (?:contrast|addition|turn|particular|fact|such|other words|both cases)\b|(?:in|for|at) that\b"
    r"|as (?:a result|a consequence|such)\b|for (?:example|instance|the same)\b|by contrast\b|to do so\b"
    r"|on the contrary\b|both\b(?!\s+[\w-]+ and\b)|more(?:over| specifically| precisely)\b"
    r"|(?:second|third|fourth|lastly)(?:ly)?,"
    # "Since it used only one key", "At this point"
    rf"|[a-z]+ (?:it|its|they|their|them|he|she|this|these|those)\b(?! {_OWN_WORK}\b))"
    # "We apply this pattern", "the vertices of this convex hull"
    rf"|[^.;:,]*?\b(?:this|these|the above)\s+(?!(?:{_OWN_WORK}|and|or|is|are|was|were|can|may|will|has|have)\b)[a-z]"
    r"|[^.;:]*\bon the other hand\b)",
    re.I,
)
# Sentences that only announce content: "Section 2 describes the protocol", "In this section, we present ...", "The rest
# of this paper is organized as follows". "Section 2 shows that ..." makes a claim.
_PLACE = r"(?:(?:sub)?sections?|sec\.|chapters?|appendix|appendices|§+)"
_TELLS = (
    r"(?:describ|present|discuss|introduc|outlin|review|evaluat|cover|giv|conclud|summari|explain|detail|address|examin"
    r"|explor|survey|provid|report|defin|contain|compar|analy|motivat|specif|formali|illustrat|show|deriv|investigat)"
    r"\w*\b(?!,? that\b)"
)
_ANNOUNCES = re.compile(
    rf"(?:in |finally, |then, )?{_PLACE}\s*[\dA-Z]+(?:\.\d+)*,?\s+(?:(?:we|then|briefly|further|also) )*{_TELLS}"
    rf"|in (?:this|the (?:next|following|present)) {_PLACE},? we (?:(?:first|then|briefly|will|now) )*{_TELLS}"
    rf"|(?:this|the (?:next|following)) {_PLACE} (?:(?:first|then|briefly|will|also) )*{_TELLS}"
    r"|the (?:rest|remainder) of (?:this|the|our) \w+|(?:this|the|our) \w+ is (?:organi[sz]ed|structured) as follows",
    re.I,
)


# Titles in an appendix of what others wrote, or a model: samples, prompts, items of data sets
_SAMPLES = re.compile(
    r"\b(?:samples?|examples?|prompts?|prompting|generat(?:ed|ions?)|completions?|transcripts?|dialogues?|conversations?"
    r"|templates?|phrasing|questionnaires?|instructions?)\b",
    re.I,
)
_I = re.compile(r"\bI(?:['’](?:m|ve|d|ll))?\s+[a-z]")  # papers say "we"


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, a list item or a table row: its span [start, end) in the evidence's text."""

    start: int
    end: int
    can_answer: bool = True  # False for a title or a fragment
    leans: bool = False  # refers to what comes before
    in_middle: bool = False  # begins in the middle of a sentence


@dataclass(frozen=True)
class Block:
    """Consecutive parts of the evidence in one section, without interruptions such as headings."""

    evidence: Evidence
    kind: Literal["prose", "list", "table", "algorithm"]
    parts: tuple[Part, ...]
    head: Span | None = None  # a list's introduction, a table's caption and header
    section: Kind = "other"
    tail: Span | None = None  # a table's caption if it is below
    name: str = ""  # an algorithm's: "Algorithm 19 ML-KEM.KeyGen()"

    @cached_property
    def words(self) -> tuple[int, ...]:
        """The number of words of each part."""
        return tuple(len(self.text_of(place).split()) for place in range(len(self.parts)))

    @cached_property
    def paragraphs(self) -> tuple[int, ...]:
        """The number of the paragraph that each part is in, from 0."""
        gaps = (self.evidence.text[before.end : after.start] for before, after in pairwise(self.parts))
        return tuple(accumulate((bool(_PARAGRAPH.search(gap)) for gap in gaps), initial=0))

    def text_of(self, place: int) -> str:
        part = self.parts[place]
        return self.evidence.text[part.start : part.end]

    @property
    def is_sample(self) -> bool:
        """Whether it is sample text in an appendix, which states nothing: a prompt, generated text, an item of data."""
        at = self.evidence.start + self.start
        around = [one for one in self.evidence.paper.sections.sections if one.start <= at < one.end]
        if not any(one.kind == "appendix" for one in around):
            return False
        text = self.evidence.text[self.start : self.end]
        return any(_SAMPLES.search(one.title) for one in around) or _I.search(text) is not None

    @property
    def start(self) -> int:
        return min(self.head[0], self.parts[0].start) if self.head else self.parts[0].start

    @property
    def end(self) -> int:
        return max(self.parts[-1].end, *(span[1] for span in (self.head, self.tail) if span), 0)


def blocks(evidence: Evidence) -> Iterator[Block]:
    """The blocks of a piece of evidence: first algorithms, tables and lists, then prose."""
    text, sentences = evidence.text, sentence_spans(evidence.text)
    taken: list[Span] = []
    for span in _algorithm_spans(evidence):
        taken.append((span[0], span[1]))
        if span[0] >= 0 and span[1] <= len(text):  # a part of an algorithm is no answer
            yield _algorithm(evidence, *span)
    for each in sorted(structures(text), key=lambda each: (each.kind != "table", each.start)):
        is_contents = 2 * sum(bool(_LEADERS.search(text, *item)) for item in each.items) > len(each.items)
        if each.is_bibliography or is_contents or any(each.start < end and start < each.end for start, end in taken):
            continue
        found = _table(evidence, each) if each.kind == "table" else _list(evidence, each, sentences)
        if found is not None:
            taken.append((found.start, found.end))
            yield found
    run: list[Part] = []
    section: tuple[int, Kind] = (-1, "other")
    for start, end in sentences:
        here = _section(evidence, start)
        begins = here != section and here[0] >= evidence.start  # a piece of evidence may begin in mid-section
        start = _after_heading(evidence, start, end)
        is_taken = any(start < last and first < end for first, last in taken)
        part = None if is_taken else _sentence(text, start, end, begins=begins)
        if run and (part is None or here != section):
            yield Block(evidence, "prose", tuple(run), section=section[1])
            run = []
        section = here
        if part is not None:
            run.append(part)
    if run:
        yield Block(evidence, "prose", tuple(run), section=section[1])


def _algorithm_spans(evidence: Evidence) -> Iterator[tuple[int, int, str]]:
    """The algorithms that a piece of evidence has a part of: their spans in its text, and their names."""
    for section in evidence.paper.sections.sections:
        start, end = section.start - evidence.start, section.end - evidence.start
        if section.kind == "algorithm" and start < len(evidence.text) and end > 0:
            yield start, end, section.title


def _algorithm(evidence: Evidence, start: int, end: int, name: str) -> Block:
    """An algorithm: its head is the label and the description, its parts are the steps."""
    parts = tuple(Part(*item) for item in algorithm(evidence.text, start, end).items)
    head = stripped(evidence.text, start, parts[0].start)
    kind = _section(evidence, start)[1]
    return Block(evidence, "algorithm", parts, head if head[0] < head[1] else None, kind, None, name)


def _sentence(text: str, start: int, end: int, *, begins: bool) -> Part | None:
    """The sentence as a part; None for what interrupts a text: a heading, table cells, contents, a reference.

    begins: whether a section begins with it.
    """
    bullet = _BULLET.match(text, start, end)
    words = text[bullet.end() if bullet else start : end].split()
    if (
        len(words) > LONGEST_SENTENCE
        or max(map(len, words), default=0) > LONGEST_WORD
        or _LEADERS.search(text, start, end)
        or _REFERENCE.match(text, start, end)
        or not (bullet or _WHOLE.search(text, start, end))
        or _CUT.search(text, start, end)
    ):
        return None
    before = text[max(0, start - 40) : start]
    follows = before.rstrip()[-1:] in [*".!?:…"] and not _PARAGRAPH.search(before)  # not "otters" after "e.g."
    in_middle = not (begins or bullet or follows) and bool(_LOWER_CASE.match(text, start, end))
    spelled = sum(sum(map(str.isalpha, word)) > 1 for word in words)  # a formula has hardly any
    announces = text[end - 1] in ":?" or _ANNOUNCES.match(text, start, end)
    can_answer = spelled >= SHORTEST_SENTENCE and not announces and not in_middle
    return Part(start, end, can_answer, in_middle or leans(text[start:end]), in_middle)


def leans(sentence: str) -> bool:
    """Whether a sentence refers to what comes before it."""
    return bool(_LEANS.match(sentence.lstrip("\"'“‘([ ")))


def _list(evidence: Evidence, structure: Structure, sentences: Sequence[Span]) -> Block | None:
    """A list that is short enough to be shown whole, with the sentence that introduces it; None for other lists.

    A list of single words without an introduction gives None: it is a menu, unless it is numbered as code is.
    """
    text, first = evidence.text, structure.items[0][0]
    start = structure.start
    # The introduction's last line belongs to the list (structure.py); its sentence may begin lines earlier.
    place = bisect_right(sentences, (first - 1, len(text))) - 1
    if place >= 0 and text[:first].rstrip().endswith(":") and len(text[sentences[place][0] : first].split()) <= 60:
        start = min(start, _after_heading(evidence, *sentences[place]))
    head = stripped(text, start, first)
    is_code = 2 * sum(bool(_CODE.match(text, *item)) for item in structure.items) > len(structure.items)
    most = WHOLE_ALGORITHM if is_code or _ALGORITHM.match(text, *head) else WHOLE_LIST
    if len(text[start : structure.end].split()) > most:
        return None
    is_short = len(text[first : structure.end].split()) < LEAST_ITEM_WORDS * len(structure.items)
    if is_short and head[0] == head[1] and not is_code:
        return None
    parts = tuple(Part(*stripped(text, *item)) for item in structure.items)
    return Block(evidence, "list", parts, head if head[0] < head[1] else None, _section(evidence, first)[1])


def _table(evidence: Evidence, structure: Structure) -> Block:
    """The rows of a table; its head is the caption and the lines that name the columns."""
    text = evidence.text
    rows = [stripped(text, *item) for item in structure.items]
    tail = None
    if below := _CAPTION_BELOW.search(text, *rows[-1]):
        rows[-1], tail = stripped(text, rows[-1][0], below.start()), _caption(text, below.start())
    above = 0
    while above < min(HEADER_ROWS, len(rows) - 1) and not any(map(str.isdigit, text[slice(*rows[above])])):
        above += 1
    head = stripped(text, structure.start, rows[above][0])
    if len(text[slice(*head)].split()) > LONGEST_SENTENCE:
        head = (rows[0][0], rows[0][0])
    parts = tuple(Part(start, end) for start, end in rows[above:])
    section = _section(evidence, structure.start)[1]
    return Block(evidence, "table", parts, head if head[0] < head[1] else None, section, tail)


def _caption(text: str, start: int) -> Span:
    """The first sentences of the caption that begins here: "Table 2." and the next one."""
    start = stripped(text, start, len(text))[0]
    gap = _PARAGRAPH.search(text, start)
    paragraph = text[start : gap.start() if gap else len(text)]
    ends = [end for _, end in sentence_spans(paragraph)]
    end = next((end for end in ends if len(paragraph[:end].split()) >= SHORTEST_SENTENCE), ends[-1])
    return start, start + end


def _section(evidence: Evidence, start: int) -> tuple[int, Kind]:
    """Start (in the paper) and kind of the innermost section here; "other" takes the kind of a section around it."""
    at = evidence.start + start
    around = [section for section in evidence.paper.sections.sections if section.start <= at < section.end]
    around = [section for section in around if section.kind != "algorithm"]
    kinds: list[Kind] = [section.kind for section in reversed(around) if section.kind != "other"]
    kind: Kind = kinds[0] if kinds else "other"
    return (around[-1].start if around else -1), kind


def _after_heading(evidence: Evidence, start: int, end: int) -> int:
    """Where a sentence begins after its section's heading, if the heading is joined to it."""
    at = evidence.start + start
    for section in evidence.paper.sections.sections:
        if section.level and at <= section.start < evidence.start + end:
            begins = section.start - evidence.start
            title = r"\W*".join(map(re.escape, f"{section.number} {section.title}".split()))
            if match := re.compile(rf"{title}[\s.:—–-]*", re.I).match(evidence.text, begins, end):
                start = match.end() if match.end() < end else start
    return start
