"""The frozen dataclasses of an answer: evidence, citations, sentences. Those that are shown check their contract."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, cast, get_args

from folio.errors import require
from folio.papers.model import Hit, Paper
from folio.shown_text import citation_mark, label_mark, name_line, page_words

REFUSAL = "Not found in the provided papers."
_NOT_FOUND_IN = "Not found in "


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span [start, end) of a paper's text that an answer may cite as [number]: hits, joined and widened."""

    number: int  # from 1
    paper: Paper
    start: int
    end: int
    text: str
    hits: tuple[Hit, ...]  # the hits it was built from, best first; never empty

    def __post_init__(self) -> None:
        require(self.number >= 1, "evidence is numbered from 1")
        require(0 <= self.start < self.end <= self.paper.length, "evidence lies in its paper's text")
        require(len(self.text) == self.end - self.start, "evidence has the text of its span")
        require(bool(self.hits), "evidence comes from a hit")

    @property
    def score(self) -> float:
        return self.hits[0].score

    @property
    def pages(self) -> tuple[int, int]:
        """First and last physical page."""
        return self.paper.pages.pages_of(self.start, self.end)

    @property
    def where(self) -> str:
        """The pages in words: "p. 3" or "pp. 3–4"."""
        return page_words(self.pages)

    @property
    def section(self) -> str:
        return self.paper.sections.shown(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Quote:
    """A verbatim quote: the span [start, end) of the paper's text. Its page is computed from the span."""

    paper: Paper
    start: int
    end: int
    quote: str

    def __post_init__(self) -> None:
        require(0 <= self.start < self.end <= self.paper.length, "a quote lies in its paper's text")
        require(len(self.quote) == self.end - self.start, "a quote has the length of its span")
        require(self.quote == self.quote.strip(), "a quote has no space around it")
        first, last = self.paper.pages.pages_of(self.start, self.end)
        require(first == last, "a quote stands on one page")

    @property
    def page(self) -> int:
        """Physical, from 1."""
        return self.paper.pages.page_at(self.start)

    @property
    def label(self) -> str:
        """The label printed on the page, or the page's number if the file gives none."""
        return self.paper.pages.label(self.page)

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the quote in the text of the paper."""
        return self.start, self.end

    def contains(self, other: Quote) -> bool:
        """Whether another quote is a part of this one."""
        return self.paper == other.paper and self.start <= other.start and other.end <= self.end

    @property
    def offsets(self) -> tuple[int, int]:
        """Start and end of the quote in the text of its page, in characters."""
        begins, _ = self.paper.pages.bounds(self.page, self.paper.length)
        return self.start - begins, self.end - begins

    @property
    def section(self) -> str:
        return self.paper.sections.shown(self.start, self.end)

    @property
    def shown(self) -> str:
        """The citation as displayed: see `shown_citation`."""
        return shown_citation(self.paper, self.page)


def shown_citation(paper: Paper, page: int) -> str:
    """The citation of a page: "[Ongaro & Ousterhout 2014, p. 6]", "[arXiv:2301.01234 p.7]", "[otters.pdf p.7]".

    Of a retracted or withdrawn paper: "[Ongaro 2014, RETRACTED, p. 6]", "[otters.pdf, RETRACTED p.7]".
    """
    mark = paper.flag.mark if paper.flag else ""
    return label_mark(paper.label, page, mark) if paper.label else citation_mark(paper.cited_as, page, mark)


# How a quote disagrees with a statement: it says the opposite, gives another number, or another number where one of
# the two states a condition that the other has not.
Disagreement = Literal["denial", "number", "condition"]


@dataclass(frozen=True, slots=True)
class Citation(Quote):
    """A quote that supports a sentence of an answer, or disagrees with it."""

    evidence: int  # number of the evidence that contains it
    support: float  # in (0, 1]: how well the quotes support the sentence; 1 means verbatim
    number: int = field(default=0, compare=False)  # its page's number among the sources, from 1: SourceNumbers
    # [start, end) in the quote of the words that a reworded sentence rests on, or that differ
    marks: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    differs: Disagreement | Literal[""] = ""  # how it disagrees with the sentence; "" if it supports it

    def __post_init__(self) -> None:
        Quote.__post_init__(self)
        require(0 < self.support <= 1, "support is above 0 and at most 1")


def warnings(cited: Iterable[Paper]) -> dict[str, str]:
    """Paper id -> the warning to show above an answer that cites it. Only retracted papers and the like have one."""
    flagged = {paper: paper.flag for paper in cited if paper.flag and paper.flag.is_grave}
    return {
        paper.id: f"Warning: this answer cites {name_line(paper.label or paper.cited_as)}: {flag.text}."
        for paper, flag in flagged.items()
    }


@dataclass(frozen=True, slots=True)
class Selected:
    """Words that a reader selected and asks about: the span [start, end) of the paper's text."""

    paper: Paper
    start: int
    end: int
    text: str

    @property
    def page(self) -> int:
        """Physical, from 1; that of its beginning."""
        return self.paper.pages.page_at(self.start)

    def overlaps(self, paper: Paper, start: int, end: int) -> bool:
        return paper.id == self.paper.id and start < self.end and self.start < end


Heading = Literal["", "Summary", "Analysis", "From the papers", "Closest passages", "Also"]


@dataclass(frozen=True, slots=True)
class Section:
    """The heading of a statement, in a report or over excerpts; empty for a model's plain answer.

    JSON and the library have it as one string: "Summary", "Analysis/Melt", "From the papers", "".
    """

    heading: Heading = ""
    subheading: str = ""

    def __post_init__(self) -> None:
        require(self.heading in get_args(Heading), "a section has one of the headings")
        require(bool(self.heading) or not self.subheading, "a subheading belongs to a heading")

    @classmethod
    def parse(cls, written: str) -> Section:
        """The section from its string. Raises ValueError for an unknown heading."""
        heading, _, subheading = written.partition("/")
        return cls(cast(Heading, heading), subheading)

    def __str__(self) -> str:
        return f"{self.heading}/{self.subheading}" if self.subheading else self.heading


SUMMARY, ANALYSIS = Section("Summary"), Section("Analysis")
# Excerpts: an answer, passages that may not answer, and a sentence from elsewhere that may.
FROM_PAPERS, CLOSEST, ALSO = Section("From the papers"), Section("Closest passages"), Section("Also")
EXCERPTS = frozenset(section.heading for section in (FROM_PAPERS, CLOSEST, ALSO))


# quoted: the paper's own sentences. reworded: a model's words, shown with a mark and their quote.
Outcome = Literal["quoted", "reworded"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One statement of an answer with its citations: a sentence, an excerpt of several, a list or lines of code."""

    text: str
    citations: tuple[Citation, ...]
    against: tuple[Citation, ...] = ()  # quotes from other papers that disagree with it
    section: Section = Section()  # its heading, in a report or over excerpts
    outcome: Outcome = "quoted"
    verified_by: str = ""  # the verifier that agreed with a reworded statement; "" if none ran
    instead_of: str = ""  # the model's statement that this quote replaces
    marks: tuple[tuple[int, int], ...] = ()  # [start, end) of the words that answer, in order, without overlap
    short: tuple[int, int] | None = None  # [start, end) in `text`: the short answer, such as "64 MB"

    def __post_init__(self) -> None:
        require(bool(self.text.strip()), "a sentence has words")
        require(bool(self.citations), "a sentence has a citation")
        require(
            self.outcome == "quoted" or all(citation.support < 1 for citation in self.citations),
            "only a quoted sentence has support 1",
        )
        require(self.outcome == "quoted" or not self.instead_of, "only a quote replaces a statement")
        require(self.outcome == "quoted" or not (self.marks or self.short), "only the paper's words are marked")
        bounds = [0, *(offset for mark in self.marks for offset in mark), len(self.text)]
        require(bounds == sorted(bounds) and all(a < b for a, b in self.marks), "marks are in the text, in order")
        short = self.short or (0, 1)
        require(0 <= short[0] < short[1] <= len(self.text), "a short answer is in the text")


class SourceNumbers:
    """Numbers the pages that an answer cites, from 1, in the order of its sentences."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}  # paper and page

    def numbered(self, sentence: Sentence) -> Sentence:
        """The next sentence of the answer, with its citations numbered."""
        for cited in (*sentence.citations, *sentence.against):
            self._numbers.setdefault((cited.paper.id, cited.page), len(self._numbers) + 1)
        return replace(
            sentence, citations=self._with_numbers(sentence.citations), against=self._with_numbers(sentence.against)
        )

    def _with_numbers(self, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
        return tuple(replace(cited, number=self._numbers[cited.paper.id, cited.page]) for cited in citations)


@dataclass(frozen=True, slots=True)
class RejectedSentence:
    """A model's statement that is left out, because the evidence does not support it."""

    text: str
    reason: str  # in words; sent to the model, which gets one retry
    rule: str = ""  # the name of the rule that it broke


@dataclass(frozen=True, slots=True)
class Checking:
    """The number of statements waiting for the verifier. Those that pass are shown."""

    count: int


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model thinks before it writes."""


Style = Literal["plain", "report"]


class AnswerStopped(Exception):
    """Raised by a callback to end an answer. What was shown until then is kept."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question was asked of: a number of papers, and what restricts them."""

    count: int
    is_all: bool = False  # all papers of the library; parts of them, if `rest` names sections
    project: str = ""  # the name of a project, or of several
    title: str = ""  # of the only paper that was named
    is_chosen: bool = False  # papers were named one by one
    rest: str = ""  # further restrictions: "2000 to 2015, tagged raft"

    @property
    def line(self) -> str:
        """ "12 papers in Consensus, 2000 to 2015", "All 95 papers", "“On Sea Otters”"."""
        return self._with_rest(f"{self._papers} in {self.project}" if self.project else self._papers)

    @property
    def is_restricted(self) -> bool:
        return not self.is_all or bool(self.rest)

    @property
    def refusal(self) -> str:
        """ "Not found in the 12 papers of Consensus, 2000 to 2015."; REFUSAL for the whole library."""
        if not self.is_restricted:
            return REFUSAL
        papers = self._papers[0].lower() + self._papers[1:]
        if self.count == 1 and not (self.title or self.is_all):
            papers = "one paper"
        where = papers if self.title or self.is_all else f"the {papers}"
        where = self._with_rest(f"{where} of {self.project}" if self.project else where)
        return f"{_NOT_FOUND_IN}{where}."

    @property
    def _papers(self) -> str:
        if self.title:
            return f"“{self.title}”"
        noun = "paper" if self.count == 1 else "papers"
        if self.is_all:
            return f"All {self.count:,} papers" if self.count != 1 else "The only paper"
        return f"{self.count:,} {'chosen ' * self.is_chosen}{noun}"

    def _with_rest(self, text: str) -> str:
        return f"{text}, {self.rest}" if self.rest else text


def is_refusal(text: str) -> bool:
    """Whether the text of an answer says that nothing was found, whatever it was asked of."""
    return text == REFUSAL or (text.startswith(_NOT_FOUND_IN) and text.endswith("."))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer as shown: sentences that each cite a page of the evidence; or a refusal or a remark without any."""

    question: str
    standalone_question: str  # the follow-up, rewritten so that it stands alone
    sentences: tuple[Sentence, ...]
    evidence: tuple[Evidence, ...] = ()  # the evidence given to the answerer
    dropped: int = 0  # number of the model's sentences that no evidence supports
    notice: str = ""  # a remark to show with it, such as that it was cut short
    style: Style = "plain"
    left_out: tuple[RejectedSentence, ...] = ()  # the statements counted in `dropped`; () in answers of older versions
    model_failed: bool = False  # the model's server failed; the sentences came before that, or are quotes
    remark: str = ""  # Folio's own words in place of an answer, such as to a greeting
    offers_model: bool = False  # the notice says what a chat model would add
    # What the papers do not answer: the question of a refusal or of closest passages, else parts of it, in its words
    missing: tuple[str, ...] = ()
    scope: Scope | None = None  # what was asked; None in answers of older versions, and where a question chose papers

    def __post_init__(self) -> None:
        require(not (self.remark and self.sentences), "a remark takes the place of an answer")
        require(len(self.left_out) in (0, self.dropped), "dropped counts the statements that are left out")
        numbers = [evidence.number for evidence in self.evidence]
        require(numbers == list(range(1, len(numbers) + 1)), "evidence is numbered in order")
        for citation in self.citations:
            require(1 <= citation.evidence <= len(numbers), "a citation names evidence of the answer")
            source = self.evidence[citation.evidence - 1]
            at = citation.start - source.start
            require(source.paper == citation.paper, "a citation names its evidence's paper")
            require(at >= 0 and source.text.startswith(citation.quote, at), "a quote stands in its evidence")

    @property
    def refused(self) -> bool:
        return not (self.sentences or self.remark)

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences) or self.remark or self._refusal

    @property
    def _refusal(self) -> str:
        return self.scope.refusal if self.scope else REFUSAL

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every citation once, in the order of the answer, including those that disagree."""
        return tuple(dict.fromkeys(c for sentence in self.sentences for c in (*sentence.citations, *sentence.against)))
