"""Finds algorithms, listings and procedures in a text: each is one span with its label and all of its lines. Pure.

A label such as "Algorithm 19 ML-KEM.KeyGen()" is followed by lines of description, inputs and outputs, and then by the
steps; or a listing ends with its label. Numbered steps count up, over page breaks too. Without numbers, the lines of an
algorithm differ from prose: they are shorter, or have signs where prose has words.

In doubt a label is a sentence that mentions an algorithm, and nothing is found.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folio.text import one_line

_NAMES = r"algorithm|alg\.|listing|procedure|pseudo-?code|protocol|program|code|snippet|function|subroutine"
_NUMBER = r"(?:[A-Z][.-]?)?\d{1,3}(?:[.-]\d{1,3})?[a-z]?(?!\w)|[IVX]{1,5}(?![\w'’])"
# "Algorithm 19 ML-KEM.KeyGen()", "Listing 2. Structures", "Figure 17. Algorithm for detecting ..."
_LABEL = re.compile(
    rf"^[ ]*(?P<kind>{_NAMES}|fig(?:ure|\.))[ ]*(?P<number>{_NUMBER})[ ]?(?P<mark>[.:|—–-](?!\d))?(?P<title>[^\n]*)$",
    re.I | re.M,
)
# A label without a number: "Algorithm MAX-THROUGHPUT:", "Function alloc(Superblock, Sreq)"
_UNNUMBERED = re.compile(
    r"^[ ]*(?P<kind>(?i:algorithm|procedure|protocol|function|subroutine))[ ]+(?P<number>)(?P<mark>)"
    r"(?P<title>[^\W\d][\w.-]*[ ]?\([^)\n]{0,60}\)[ ]?[:;{]?|[A-Z][\w.-]*[ ]?:)[ ]*$",
    re.M,
)
# A figure is one of code if its caption begins with such a word.
_OF_CODE = re.compile(
    r"\W*(?:\w[\w-]*\W+){0,6}?(?:pseudo-?code|algorithm|procedure|listing|source code|code)\b", re.I
)
_CONTINUED = re.compile(r"\W*cont(?:inued|['’]?d|\.)", re.I)
_LEADERS = re.compile(r"(?:\.[ ]?){5,}")
# The number of a step, and the mark after it: "1:", "12.", "(3)", "Step 4:", "7"
_STEP = re.compile(r"[ ]*(?:step[ ]+)?\(?(?P<number>\d{1,3})(?:(?P<mark>[ ]?:|[.)])(?!\d)|(?=[ ]|$))", re.I)
_INPUTS = re.compile(
    r"[ ]*(?:\w+[ ]+)?(?:inputs?|outputs?|require[sd]?|ensures?|data|results?|returns|parameters?|precondition"
    r"|postcondition|initiali[sz]ation)[ ]?:",
    re.I,
)
# Signs and words that code has and prose has not: an assignment, a brace, a comment, "for ... do", "return x"
_CODE = re.compile(
    r"[←⇐⟵≔▷▹⊳{}]|:=|[=!]=|->|<-|&&|\+\+|;[ ]*$|\)[ ]*[:;{][ ]*$|^[ ]*(?:#|%|--)|(?<![:\w])/[/*]"
    r"|[\w)\]][ ]?=[ ]?[\w(\[\"']"
    r"|^[ ]*(?:(?:for|foreach|while|if|else|elif|elseif|until|when|upon|with|def|case|switch|try|procedure|function)\b"
    r".{0,90}(?:\bdo|\bthen|[:{])[ ]*$|(?:begin|else|repeat|loop|od|fi|end)\b.{0,25}$|return\b.{0,60}$|[)(]{1,2}\w)",
    re.I,
)
# Those of them that formulas do not have
_STRONG = re.compile(
    r"[←⇐⟵≔▷▹⊳]|:=|->|<-|&&|\+\+|[;{][ ]*$|(?<![:\w])/[/*]"
    r"|^[ ]*(?:\}|(?:(?:for|foreach|while|if|else|elif|elseif|until|when|upon|def|case|procedure|function)\b.{0,90}"
    r"(?:\bdo|\bthen|[:{]|\))[ ]*$"
    r"|(?:begin|else|repeat|loop|od|fi|end)\b.{0,25}$|return\b.{0,60}$))",
    re.I,
)
_PLAIN = re.compile(r"[(\"“'‘]?(?:[aAI]|[^\W\d_]{2,})(?:[-’'][^\W\d_]+)*[,.;:!?)\"”’]{0,3}")
_SENTENCE_END = re.compile(r"[.!?:][)\"”’]?$")

_MOST_DESCRIBING = 900  # characters between a label and the first step
_MOST_BETWEEN = 900  # characters from one numbered step to the next
_MOST_LINES_BETWEEN = 16
_MOST_UNNUMBERED = 6_000  # characters of an algorithm without numbers
_LEAST_BARE = 3  # steps whose numbers have no mark, which may be cells of a table
_MOST_PLAIN_LINES = 8  # in code without numbers, one after the other
# Labels that say by themselves that code stands there
_CODE_KINDS = frozenset({"listing", "code", "snippet", "program", "pseudocode", "pseudo-code"})
_MOST_DOUBLED = 4  # steps with the number of the step before
_LEAST_STRONG = 2  # lines with signs that formulas do not have; twice as many if nothing says that it is code
_LONG = 0.7  # share of the usual length of a line from which a line is full, so that its sentence may go on
_PROSE = 0.72  # share of a line's words that are plain words, in prose
_MOST_TITLE = 100  # characters
_MOST_LABEL_LINES = 4


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm's span [start, end) with its label, and its name: "Algorithm 19 ML-KEM.KeyGen()"."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    begins: bool  # a paragraph


@dataclass(frozen=True, slots=True)
class _Label:
    """A line that may be the label of an algorithm."""

    line: int  # its index
    last: int  # the index of the last line of its caption
    kind: str  # "algorithm", "listing", "figure"
    name: str
    says_code: bool  # it is no figure, or one of code
    is_prose: bool  # it may be a sentence: it has no mark, and goes on in lower case


def find_algorithms(text: str) -> list[Algorithm]:
    """The algorithms of a paper's cleaned text, in order, without overlap."""
    if not (_LABEL.search(text) or _UNNUMBERED.search(text)):
        return []
    return _Finder(text).find()


class _Finder:
    """Finds the algorithms of one text."""

    def __init__(self, text: str) -> None:
        self._lines: list[_Line] = []
        end = 0
        for match in re.finditer(r"[^\n]*\S[^\n]*", text):
            begins = not self._lines or text.count("\n", end, match.start()) > 1
            self._lines.append(_Line(match.start(), match.end(), match.group().strip(), begins))
            end = match.end()
        self._starts = [line.start for line in self._lines]
        lengths = sorted(len(line.text) for line in self._lines)
        self._usual = lengths[len(lengths) * 4 // 5] if lengths else 0  # most lines of prose are full
        self._text = text
        self._label_at: dict[int, _Label] = {}

    def find(self) -> list[Algorithm]:
        spans: list[tuple[int, int, str]] = []
        self._label_at = {label.line: label for label in self._labels(_LABEL)}
        for first, last, name in self._of_labels(list(self._label_at.values())):
            if not spans or first > spans[-1][1]:
                spans.append((first, last, name))
        for label in self._labels(_UNNUMBERED):
            place = bisect_left(spans, (label.line + 1,))
            around = [span for span in spans[max(0, place - 1) : place] if label.line <= span[1]]
            last = 0 if around else self._end_below(label)
            limit = spans[place][0] - 1 if place < len(spans) else len(self._lines)
            last = min(last, limit)
            if last <= label.last:
                continue
            name = label.name
            if last < limit and (caption := self._label_at.get(last + 1)) and caption.kind == "figure":
                last, name = caption.last, caption.name
            spans.insert(place, (label.line, last, name))
        return [Algorithm(self._lines[first].start, self._lines[last].end, name) for first, last, name in spans]

    def _labels(self, pattern: re.Pattern[str]) -> Iterator[_Label]:
        for match in pattern.finditer(self._text):
            line = bisect_left(self._starts, match.start())
            if _LEADERS.search(match.group()) or line >= len(self._lines) or not self._may_begin(line):
                continue
            kind, title, mark = match["kind"].casefold().rstrip("."), match["title"], match["mark"] or ""
            is_figure = kind.startswith("fig")
            if is_figure and not mark:
                continue
            words = title.split()
            is_prose = not mark and bool(words) and (title[:1] in ",;)" or (words[0].islower() and words[0].isalpha()))
            if is_prose and len(words) > 1 and "(" not in words[0] and not self._begins_paragraph(line):
                continue
            name = one_line(f"{match['kind'].capitalize()} {match['number']}{mark.strip()} {title}")
            name = name if len(name) <= _MOST_TITLE else name[:_MOST_TITLE].rpartition(" ")[0]
            says_code = not is_figure or bool(_OF_CODE.match(title))
            yield _Label(line, self._caption_end(line), "figure" if is_figure else kind, name, says_code, is_prose)

    def _begins_paragraph(self, index: int) -> bool:
        return self._lines[index].begins or not self._is_full(index - 1)

    def _may_begin(self, index: int) -> bool:
        """Whether a caption may begin with this line, which a full line of prose does not continue into."""
        return self._begins_paragraph(index) or self._is_step(index + 1) or self._is_input(index + 1)

    def _caption_end(self, first: int) -> int:
        """The last line of the caption that begins here: it goes on after full lines."""
        last = first
        while (
            last + 1 < len(self._lines)
            and last - first < _MOST_LABEL_LINES
            and self._is_full(last)
            and not self._lines[last + 1].begins
            and not (_SENTENCE_END.search(self._lines[last].text) and last > first)
            and not self._is_step(last + 1)
            and not self._is_input(last + 1)
        ):
            last += 1
        return last

    def _is_full(self, index: int) -> bool:
        return index >= 0 and len(self._lines[index].text) >= _LONG * self._usual

    def _is_step(self, index: int) -> bool:
        return index < len(self._lines) and bool(_STEP.match(self._lines[index].text))

    def _is_input(self, index: int) -> bool:
        return index < len(self._lines) and bool(_INPUTS.match(self._lines[index].text))

    def _is_prose(self, index: int) -> bool:
        """Whether a line is one of prose: full, of plain words, without the signs of code."""
        text = self._lines[index].text
        if not self._is_full(index) or _CODE.search(text):
            return False
        words = text.split()
        return sum(bool(_PLAIN.fullmatch(word)) for word in words) >= _PROSE * len(words)

    def _is_strong(self, index: int) -> bool:
        return bool(_STRONG.search(self._lines[index].text))

    def _is_code(self, index: int) -> bool:
        return bool(_CODE.search(self._lines[index].text))

    def _of_labels(self, labels: Sequence[_Label]) -> Iterator[tuple[int, int, str]]:
        """First and last line of the algorithm of each label, and its name, in order.

        Labels of one kind stand on one side: above the steps, or below.
        """
        below = [self._end_below(label) for label in labels]
        above = [-1 if label.is_prose else self._start_above(label) for label in labels]
        votes: Counter[str] = Counter()
        for label, last, first in zip(labels, below, above, strict=True):
            votes[label.kind] += (last > 0) - (first >= 0)
        taken = -1
        for label, last, first in zip(labels, below, above, strict=True):
            has_above = first > taken
            if label.line <= taken or not (last or has_above):
                continue
            if last and (votes[label.kind] > 0 or not has_above or (not votes[label.kind] and label.kind != "figure")):
                taken = last
                yield label.line, last, label.name
            elif has_above and votes[label.kind] <= 0:
                taken = label.last
                yield first, label.last, label.name

    def _end_below(self, label: _Label) -> int:
        """The last line of the steps below a label; 0 if there are none.

        Numbers that count up come before signs of code: inputs above the steps have these signs too.
        """
        code = 0
        if not label.says_code:
            return 0
        for index in self._described(label):
            step = _STEP.match(self._lines[index].text)
            last = self._run_end(index, step) if step else 0
            if last and not (code and code < index and step and ":" not in (step["mark"] or "")):
                return last
            if not code and not label.is_prose and self._begins_code(index, label):
                code = index
        return self._code_end(code) if code else 0

    def _described(self, label: _Label) -> Iterator[int]:
        """The lines below a label in which its steps may begin."""
        end = self._lines[label.last].end
        for index in range(label.last + 1, len(self._lines)):
            if self._lines[index].start - end > _MOST_DESCRIBING or index in self._label_at:
                return
            yield index

    def _run_end(self, index: int, step: re.Match[str]) -> int:
        """The last line of the numbered steps that begin here; 0 if the numbers do not count up."""
        mark, number, at = (step["mark"] or "").strip(), int(step["number"]), index
        if number > 1 and not mark:
            return 0
        numbers, doubled = {number}, 0
        while doubled <= _MOST_DOUBLED and (following := self._next_step(at, number, mark)) is not None:
            at, number = following
            doubled += number in numbers
            numbers.add(number)
        return self._last_line(index, at) if len(numbers) >= (2 if mark else _LEAST_BARE) else 0

    def _next_step(self, index: int, number: int, mark: str) -> tuple[int, int] | None:
        """The line and number of the step after the one in this line; None if there is none.

        A number may be missing or doubled; some listings number every fifth line.
        """
        limit = self._lines[index].end + _MOST_BETWEEN
        wanted = {number + 1: 0, number + 2: 1, number: 2}
        if number % 5 == 0 or number == 1:
            wanted.setdefault(number + 5 - number % 5, 3)
        best: tuple[int, int, int] | None = None
        for at in range(index + 1, min(index + 1 + _MOST_LINES_BETWEEN, len(self._lines))):
            line = self._lines[at]
            other = self._label_at.get(at)
            if line.start > limit or (other is not None and not _CONTINUED.search(other.name)):
                break
            step = _STEP.match(line.text)
            if step is None or (step["mark"] or "").strip() != mark:
                continue
            rank = wanted.get(int(step["number"]))
            if rank is not None and (best is None or rank < best[0]):
                best = rank, at, int(step["number"])
            if rank == 0:
                break
        return (best[1], best[2]) if best else None

    def _last_line(self, first: int, last: int) -> int:
        """The last line of the step in the line `last`: it goes on after a full line.

        Numbers alone on their lines stand before as many lines of steps.
        """
        bare = 0
        while last - bare >= first and _STEP.fullmatch(self._lines[last - bare].text):
            bare += 1
        longest = max(len(line.text) for line in self._lines[first : last + 1])
        while last + 1 < len(self._lines) and (bare or not self._lines[last + 1].begins):
            text = self._lines[last].text
            ends = text[-1] in ".;" or len(text) < max(_LONG * longest, 30)
            if last + 1 in self._label_at or (not bare and (ends or self._is_prose_from(last + 1))):
                break
            bare = max(0, bare - 1)
            last += 1
        return last

    def _is_prose_from(self, index: int) -> bool:
        """Whether prose begins with this line: it is prose, and so is the next one."""
        if not self._is_prose(index):
            return False
        is_last = index + 1 >= len(self._lines) or self._lines[index + 1].begins
        return bool(_SENTENCE_END.search(self._lines[index].text)) if is_last else self._is_prose(index + 1)

    def _begins_code(self, index: int, label: _Label) -> bool:
        """Whether code without numbers begins with this line: it and most lines after it have signs of code."""
        if not (self._is_code(index) or self._is_input(index)) or self._is_in_prose(index):
            return False
        lines = range(index, min(index + 8, len(self._lines)))
        return (
            sum(self._is_code(at) for at in lines) >= _LEAST_BARE
            and (label.kind in _CODE_KINDS or sum(self._is_strong(at) for at in lines) >= _LEAST_STRONG)
            and not any(self._is_prose_from(at) for at in lines[:3])
        )

    def _code_end(self, first: int) -> int:
        """The last line of code without numbers: before prose, another label, or a paragraph without code."""
        last = at = first
        while at + 1 < len(self._lines) and self._lines[at + 1].end - self._lines[first].start <= _MOST_UNNUMBERED:
            at += 1
            if at in self._label_at or self._is_prose_from(at) or (self._lines[at].begins and self._is_in_prose(at)):
                break
            if self._is_code(at) or (at - last <= 3 and not self._lines[at].begins):
                last = at
            elif at - last > 6:
                break
        return last

    def _start_above(self, label: _Label) -> int:
        """The first line of the code above a label; -1 if there is none."""
        if label.says_code and (first := self._numbered_above(label.line)) >= 0:
            return first
        first, signs, strong = label.line, 0, 0
        for at in range(label.line - 1, -1, -1):
            is_far = self._lines[label.line].start - self._lines[at].start > _MOST_UNNUMBERED
            if is_far or first - at > _MOST_PLAIN_LINES or self._is_in_prose(at) or self._labels_near(at):
                break
            if self._is_code(at):
                first, signs, strong = at, signs + 1, strong + self._is_strong(at)
        if not self._is_enough(label, signs, strong, label.line - first):
            return -1
        top = first  # the paragraph begins a little above its first sign
        while not self._lines[top].begins and first - top < 3 and not self._labels_near(top - 1):
            if self._is_in_prose(top - 1) or not re.search(r"[^\W\d_]", self._lines[top - 1].text):
                break  # prose, or the number of a page
            top -= 1
        return top

    def _is_enough(self, label: _Label, signs: int, strong: int, lines: int) -> bool:
        """Whether lines above a label are code. signs, strong: how many of them have signs of code."""
        if label.kind in _CODE_KINDS and 5 * signs >= 3 * lines:
            return signs >= 2
        least = _LEAST_STRONG if label.says_code else 2 * _LEAST_STRONG
        return signs >= _LEAST_BARE and strong >= least and 5 * signs >= 2 * lines

    def _is_in_prose(self, index: int) -> bool:
        """Whether a line is in a paragraph of prose."""
        first = last = index
        while not self._lines[first].begins and index - first < 8:
            first -= 1
        while last + 1 < len(self._lines) and not self._lines[last + 1].begins and last - index < 8:
            last += 1
        prose = sum(self._is_prose(at) for at in range(first, last + 1))
        return prose >= 2 and 2 * prose > last - first

    def _labels_near(self, index: int) -> bool:
        """Whether a line is in the caption of a label."""
        lines = range(index - _MOST_LABEL_LINES, index + 1)
        return any(line in self._label_at and index <= self._label_at[line].last for line in lines)

    def _numbered_above(self, index: int) -> int:
        """The first line of the numbered lines that end above this line; -1 if there are none."""
        at, first, number, mark, count = index - 1, index, 0, "", 0
        while at >= 0 and first - at <= _MOST_LINES_BETWEEN // 2:
            if at in self._label_at:
                break
            step = _STEP.match(self._lines[at].text)
            if step and (not count or (step["mark"] or "").strip() == mark):
                value = int(step["number"])
                if not count or value in (number - 1, number - 2, number):
                    first, number, mark, count = at, value, (step["mark"] or "").strip(), count + 1
                    if value <= 1:
                        break
            at -= 1
        return first if count >= _LEAST_BARE else -1
