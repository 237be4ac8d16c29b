"""Hits -> evidence: joined, completed, left out, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.evidence import HEADER_TOKENS, MAX_GROWTH, GatheredEvidence, gather, without
from folio.answer_types import Evidence, Selected
from folio.papers.metadata import NO_METADATA
from folio.papers.model import Chunk, Hit, PageMap, Paper
from folio.papers.sections import PaperSection, SectionMap
from folio.text import estimate_tokens
from tests.helpers.factories import hits_on

pytestmark = pytest.mark.fast

PLENTY = 100_000
PROSE = " ".join(f"The river runs through valley {number} below the town." for number in range(100))


class Text:
    """Papers, their texts, and hits on parts of them."""

    def __init__(self, *texts: str, pages: Sequence[int] = (0,)) -> None:
        self.texts = {f"p{number}": text for number, text in enumerate(texts, 1)}
        page_map = PageMap(tuple(pages), ("",) * len(pages))
        self.papers = {
            name: Paper(name, f"{name}.pdf", NO_METADATA, page_map, len(text), 1) for name, text in self.texts.items()
        }

    def read(self, paper: str, start: int, end: int) -> str:
        return self.texts.get(paper, "")[start:end]

    def hit(self, start: int | str, end: int | str, paper: str = "p1", score: float = 0.5) -> Hit:
        """A hit on [start, end) of a paper, or from where words begin to where others end."""
        text = self.texts[paper]
        first = start if isinstance(start, int) else text.index(start)
        last = end if isinstance(end, int) else text.index(end, first) + len(end)
        return Hit(Chunk(first + 1, paper, first, last), self.papers[paper], text[first:last], score)

    def whole(self, start: int | str, end: int | str) -> str:
        """The text of the evidence that one hit makes."""
        (evidence,) = gather([self.hit(start, end)], self.read, PLENTY).evidence
        return evidence.text


def spans(gathered: GatheredEvidence) -> list[tuple[int, str, int, int]]:
    return [(e.number, e.paper.id, e.start, e.end) for e in gathered.evidence]


def test_separate_hits_keep_their_order() -> None:
    shelf = Text("One ends here. Two ends here. Three ends here.", "Four ends here.")
    places = (("Three", "p1", 0.9), ("Four", "p2", 0.8), ("One", "p1", 0.7))
    hits = [shelf.hit(word, "here.", paper, score) for word, paper, score in places]
    gathered = gather(hits, shelf.read, PLENTY)
    assert spans(gathered) == [(1, "p1", 30, 46), (2, "p2", 0, 15), (3, "p1", 0, 14)]
    assert [(e.text, e.hits) for e in gathered.evidence] == [(hit.text, (hit,)) for hit in hits]
    assert gathered.left_out == 0
    assert gather([], shelf.read, PLENTY) == GatheredEvidence((), 0)
    (blank,) = hits_on("", "", "")
    assert gather([blank], lambda paper, start, end: "    "[start:end], 1000).evidence == ()


@pytest.mark.parametrize(
    ("second", "joined"), [((14, 35), True), ((20, 35), True), ((29, 46), True), ((30, 46), False)]
)
def test_hits_that_overlap_or_touch_are_joined(second: tuple[int, int], joined: bool) -> None:
    shelf = Text("One ends here. Two ends here. Three ends here.")
    ends = [shelf.hit(0, 29, score=0.5), shelf.hit(*second, score=0.8)]
    gathered = gather(ends, lambda *span: "", PLENTY)  # nothing to widen with
    if joined:
        assert spans(gathered) == [(1, "p1", 0, second[1])]
        assert gathered.evidence[0].text == shelf.texts["p1"][: second[1]]
        assert gathered.evidence[0].hits == (ends[1], ends[0])  # best first
        assert gathered.evidence[0].score == 0.8
    else:
        assert spans(gathered) == [(1, "p1", 0, 29), (2, "p1", 30, 46)]


def test_hits_are_joined_across_a_middle_one_within_a_paper() -> None:
    shelf = Text(PROSE)
    hits = [shelf.hit(0, 100, score=0.9), shelf.hit(200, 300, score=0.8), shelf.hit(100, 200, score=0.7)]
    gathered = gather(hits, lambda *span: "", PLENTY)
    assert spans(gathered) == [(1, "p1", 0, 300)]
    assert gathered.evidence[0].hits == tuple(hits)
    shelf = Text("One ends here. Two ends.", "Not the same at all. Or?")
    gathered = gather([shelf.hit(0, 14), shelf.hit(0, 20, "p2")], shelf.read, PLENTY)
    assert spans(gathered) == [(1, "p1", 0, 14), (2, "p2", 0, 20)]


def test_a_repeated_text_is_dropped() -> None:
    shelf = Text("Otters float in kelp. They eat.", "Otters  float in\nkelp.", "Seals do not float.")
    gathered = gather([shelf.hit(0, 21), shelf.hit(0, 22, "p2"), shelf.hit(0, 19, "p3")], shelf.read, PLENTY)
    texts = [(e.paper.id, e.text) for e in gathered.evidence]
    assert (texts, gathered.left_out) == ([("p1", "Otters float in kelp."), ("p3", "Seals do not float.")], 0)


SENTENCES = "One is short. Two is cut here in the middle. Three stands. Four is cut as well, here. Five."
ENDS = "A first sentence, cut. A last one without a stop"
LONG = "Start. " + "word " * 300 + "end. Next."
BACK = "The bay is cold. Otters sleep on kelp. Therefore, they drift in rafts at night."
STEPS = """The steps are as follows:

1. Fill the tank with water, which
takes an hour.
2. Open the valve.

3. Wait until nothing drips
any more from it."""
AMONG = f"Some words before it.\n\n{STEPS}\n\nSome words after it."
ALGORITHM = """Algorithm 1 Binary search
Require: a sorted array
1: low := 0
2: while low < high do
3:   middle := (low + high) / 2
4: end while
5: return low"""
CODE = f"We describe it below in some detail.\n{ALGORITHM}\nThe search needs a logarithm of steps. It is old."
TABLE = """Table 2. Scores of the models on
the test set, in percent.

Model  F1  Recall
Otter  93.1  90.0
Small ones
Seal  88.0  85.5
Walrus  81.2  80.1"""
SCORES = f"The models differ much.\n\n{TABLE}\n\nThe best one is Otter."
CAPTION_BELOW = "Model  F1\nOtter  93.1\nSeal  88.0\n\nTable 2. Scores."
BULLETS = "• Otters float\nin kelp.\n• Seals dive.\n– Walruses rest."
REFERENCES = [f"{n}. A. Author. “Title number {n} of many.”\nIn: Journal {n} (20{n:02})." for n in range(1, 8)]
MANY = [f"• Item {n} is about this and that, and so on,\nand about some more." for n in range(200)]
ITEMS = "\n".join(["Words before.\n", *MANY])


@pytest.mark.parametrize(
    ("text", "start", "end", "whole"),
    [
        (SENTENCES, "in the middle", "Four is", SENTENCES[14:-6]),
        (SENTENCES, "Two", "middle.", "Two is cut here in the middle."),
        (SENTENCES, "wo is", "is", "Two is cut here in the middle."),
        (BACK, "they drift", "night", BACK[17:]),  # with what its first sentence refers to
        # A paper's start and end are where it stops, a sentence too long to be one stays broken
        (ENDS, "sentence", "cut.", "A first sentence, cut."), (ENDS, "A last", "one", "A last one without a stop"),
        (ENDS, 0, 48, ENDS), (LONG, 100, 200, LONG[100:200].strip()), ("One.\n\nTwo.\n\nThree.", 4, 12, "Two."),
        # Steps with the line that announces them, and what stands around them
        *((AMONG, *span, STEPS) for span in (("2. Open", "valve."), ("The steps", "follows:"), ("takes an hour", "2."),
                                             ("3. Wait", "drips"), ("valve", "Wait"))),
        (AMONG, "Some words before", "it.", "Some words before it."),
        (AMONG, "Some words after", "it.", "Some words after it."),
        # An algorithm without the prose behind it, a table with its caption, bullets
        *((CODE, *span, ALGORITHM) for span in (("2: while", "do"), ("Algorithm 1", "search"), ("middle", "4: end"))),
        *((SCORES, *span, TABLE) for span in (("Seal", "88.0"), ("Model", "Recall"), ("the test", "percent."),
                                              ("90.0", "90.0"))),
        (f"Words before.\n\n{CAPTION_BELOW}\n\nWords after.", "Otter", "93.1", CAPTION_BELOW),
        (f"Words before.\n\n{BULLETS}\n\nWords after.", "Seals", "dive.", BULLETS),
        # What only looks like a list: numbered headings, prose that begins like code, what is left of a figure
        ("1.1 Context\n\nWords here.\n\n1.2 Code\n\nMore words.\n\n1.3 Tests", "1.3 Tests", "1.3 Tests", "1.3 Tests"),
        ("It was done\nfor the whole of the year.\nIf it was not, it was done\nwhile nobody was there.",
         "while nobody", "there.", "If it was not, it was done\nwhile nobody was there."),
        ("A\n\n10\n\n20\n\nB\n\n10\n\n20\n\nC\n\n30", "30", "30", "30"),
        # Of references one, and of a list that goes on beyond what is read whole items
        ("References\n\n" + "\n".join(REFERENCES), "number 4", "many", REFERENCES[3]),
        (ITEMS, "m 100 is", "more", MANY[100]),
        (ITEMS, "m 3 is", "more", "\n".join(MANY[:4])),  # it begins near, and ends far away
    ],
)  # fmt: skip
def test_a_hit_is_completed(text: str, start: int | str, end: int | str, whole: str) -> None:
    assert Text(text).whole(start, end) == whole


def test_evidence_grows_by_a_limit_at_each_end() -> None:
    text = "Words. " + "It is so,\n" * 400
    for start in range(0, len(text) - 100, 170):
        (evidence,) = gather([Text(text).hit(start, start + 100)], Text(text).read, PLENTY).evidence
        assert start - evidence.start <= MAX_GROWTH
        assert evidence.end - (start + 100) <= MAX_GROWTH


def test_evidence_that_grows_into_its_neighbour_is_joined() -> None:
    shelf = Text("One is here. Two is cut in the middle of it. Three is here.")
    hits = [shelf.hit("Two", "cut", score=0.6), shelf.hit("middle", "Three is here.", score=0.9)]
    gathered = gather(hits, shelf.read, PLENTY)
    assert [e.text for e in gathered.evidence] == ["Two is cut in the middle of it. Three is here."]
    assert gathered.evidence[0].hits == (hits[1], hits[0])


def test_pages_are_those_of_the_widened_span() -> None:
    text = "On page one a sentence begins that\nends on page two. And more."
    shelf = Text(text, pages=(0, text.index("ends")))
    hit = shelf.hit("ends", "two.")
    assert hit.pages == (2, 2)
    (evidence,) = gather([hit], shelf.read, PLENTY).evidence
    assert (evidence.text, evidence.pages, evidence.where) == (text[:-10], (1, 2), "pp. 1–2")


@pytest.mark.parametrize("now", ["", "Another text stands here now, and it is longer than the one before was."])
def test_a_hit_of_a_removed_paper_is_unchanged(now: str) -> None:
    shelf = Text("One is here. Two is cut in the middle of it. Three is here.")
    hit = shelf.hit("cut", "middle")
    shelf.texts["p1"] = now
    (evidence,) = gather([hit], shelf.read, PLENTY).evidence
    assert (evidence.start, evidence.end, evidence.text) == (20, 37, "cut in the middle")


def tokens(*evidence: Evidence) -> int:
    return sum(estimate_tokens(piece.text) + HEADER_TOKENS for piece in evidence)


def test_the_weakest_hits_are_left_out_and_counted() -> None:
    shelf = Text(*(f"Paper {n} says this and nothing else at all." for n in range(1, 6)))
    hits = [shelf.hit(0, 42, f"p{n}", 1 / n) for n in range(1, 6)]
    everything = gather(hits, shelf.read, PLENTY).evidence
    three = tokens(*everything[:3])
    for budget, kept in ((three, 3), (three - 1, 2), (PLENTY, 5)):
        gathered = gather(hits, shelf.read, budget)
        assert [e.paper.id for e in gathered.evidence] == ["p1", "p2", "p3", "p4", "p5"][:kept]
        assert gathered.left_out == 5 - kept


def test_the_best_hit_is_kept_and_joining_costs_the_difference() -> None:
    shelf = Text(PROSE)
    gathered = gather([shelf.hit(0, 500), shelf.hit(600, 700)], shelf.read, 1)
    assert [(e.start, e.end) for e in gathered.evidence] == [(0, 500)]
    assert gathered.left_out == 1
    shelf = Text(PROSE)
    hits = [shelf.hit(0, 500), shelf.hit(100, 550)]
    assert gather(hits, lambda *span: "", estimate_tokens(shelf.texts["p1"][:550]) + HEADER_TOKENS).left_out == 0


def test_evidence_grows_best_first_within_the_budget() -> None:
    whole = ("The first sentence is cut in its middle here.", "A second one is cut in the middle as well.")
    shelf = Text(*whole)
    hits = [shelf.hit("cut", "here.", score=0.9), shelf.hit("cut", "the middle", "p2", 0.8)]
    bare = tokens(*gather(hits, lambda *span: "", PLENTY).evidence)
    cut = ("cut in its middle here.", "cut in the middle")
    for budget, texts in ((bare, cut), (bare + 6, (whole[0], cut[1])), (PLENTY, whole)):
        assert tuple(e.text for e in gather(hits, shelf.read, budget).evidence) == texts


LINES = [
    *PROSE[:60].split(),
    *("1. One", "2. Two", "• x", "a  b  c", "Table 1. T", "Steps:", "end.", "1: x", "\n", "\n\n"),
]
DRAWN = st.lists(st.sampled_from(LINES), min_size=1, max_size=60)
TEXTS = DRAWN.map(" ".join) | DRAWN.map("\n".join)


@st.composite
def libraries(draw: st.DrawFn) -> tuple[Text, list[Hit]]:
    shelf = Text(*draw(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3)))
    hits: dict[tuple[str, int, int], Hit] = {}
    for _ in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(sorted(shelf.texts)))
        length = len(shelf.texts[name])
        start = draw(st.integers(0, length - 1))
        hit = shelf.hit(start, draw(st.integers(start + 1, length)), name, draw(st.floats(0, 1)))
        if hit.text.strip():
            hits[name, hit.chunk.start, hit.chunk.end] = replace(hit, chunk=replace(hit.chunk, id=len(hits)))
    return shelf, sorted(hits.values(), key=lambda hit: -hit.score)


@given(libraries(), st.integers(0, 400) | st.just(PLENTY))
def test_evidence_is_the_papers_text_without_repetition(library: tuple[Text, list[Hit]], budget: int) -> None:
    shelf, hits = library
    gathered = gather(hits, shelf.read, budget)
    evidence = gathered.evidence
    assert [e.number for e in evidence] == list(range(1, len(evidence) + 1))
    assert all(e.text == shelf.texts[e.paper.id][e.start : e.end] for e in evidence)
    for name in shelf.texts:
        places = sorted((e.start, e.end) for e in evidence if e.paper.id == name)
        assert all(before[1] < after[0] for before, after in pairwise(places))
    assert [hits.index(e.hits[0]) for e in evidence] == sorted(hits.index(e.hits[0]) for e in evidence)
    assert all(list(e.hits) == sorted(e.hits, key=lambda hit: -hit.score) for e in evidence)
    # Each hit that was taken is there, itself or word for word
    texts = [" ".join(e.text.split()) for e in evidence]
    assert all(
        any(" ".join(hit.text.split()) in text for text in texts) for hit in hits[: len(hits) - gathered.left_out]
    )
    assert tokens(*evidence) <= budget or len(evidence) <= 1
    assert gather(hits, shelf.read, budget) == gathered


def test_all_hits_of_a_paper_join_to_the_paper() -> None:
    hits = hits_on(PROSE[:500], PROSE[500:800], size=90)
    (evidence,) = gather(hits, lambda paper, start, end: "", PLENTY).evidence
    assert evidence.text == "".join(hit.text for hit in hits)
    assert evidence.pages == (1, 2)
    assert len(evidence.hits) == len(hits)


def test_evidence_does_not_grow_into_references() -> None:
    text = Text("Otters sleep on kelp. Seals eat\nA Otter, Urchins and crabs, 2014\nof the sea, and clams.")
    start, end = text.texts["p1"].index("A Otter"), text.texts["p1"].index("of the")
    hit, inside = text.hit("sleep", "Seals"), text.hit("Urchins", "crabs")
    assert text.whole("sleep", "Seals").endswith("and clams.")
    for kind in ("references", "boilerplate", "acknowledgements"):
        sections = SectionMap((PaperSection(start, end, 0, "", "", kind),))
        paper = replace(hit.paper, sections=sections)
        grown = [gather([replace(one, paper=paper)], text.read, PLENTY).evidence[0].text for one in (hit, inside)]
        assert grown == ["Otters sleep on kelp. Seals eat", text.texts["p1"][22:]]


def test_the_sentences_of_a_selection_are_left_out() -> None:
    shelf = Text("One ends here. Two ends here. Three ends here.", "Four ends here.")
    hits = [shelf.hit(0, "Three ends here."), shelf.hit(0, "here.", "p2")]
    evidence = gather(hits, shelf.read, PLENTY).evidence

    def left(start: int, end: int, paper: str = "p1") -> list[tuple[int, str]]:
        selected = Selected(shelf.papers[paper], start, end, "")
        return [(piece.number, piece.text) for piece in without(evidence, selected)]

    assert left(17, 20) == [(1, "One ends here."), (2, "Three ends here."), (3, "Four ends here.")]
    assert left(0, 20) == [(1, "Three ends here."), (2, "Four ends here.")]
    assert left(0, 46) == [(1, "Four ends here.")]
    assert left(0, 5, "p2") == [(1, "One ends here. Two ends here. Three ends here.")]
