"""The sections of a text: which are shown, which spans are apart."""

from __future__ import annotations

from folio.papers.sections import Kind, PaperSection, SectionMap, overlap


def section(start: int, end: int, kind: Kind, level: int = 1, title: str = "", number: str = "") -> PaperSection:
    return PaperSection(start, end, level, number, title or kind.title(), kind)


PAPER = SectionMap((
    section(10, 20, "boilerplate", 0), section(30, 100, "results", number="5"),
    section(40, 60, "results", 2, "Latency", "5.2"), section(45, 55, "caption", 0, "Figure 3"),
    section(100, 200, "references"), section(120, 140, "caption", 0, "Table 2"),
    section(180, 200, "appendix", 2, "Proofs", "A"),
))  # fmt: skip


def test_a_place_is_named_after_its_section_or_caption() -> None:
    assert PAPER.shown(42, 44) == "§5.2 Latency"
    assert PAPER.shown(42, 58) == "§5.2 Latency"
    assert PAPER.shown(12, 18) == ""
    assert PAPER.shown(90, 125) == "§5 Results – References"
    assert PAPER.shown(46, 55) == "Figure 3 in §5.2 Latency"
    assert PAPER.shown(46, 56) == "§5.2 Latency"
    assert SectionMap((section(3, 9, "caption", 0, "Figure 1"),)).shown(3, 9) == "Figure 1"


def test_spans_that_are_apart_or_chosen() -> None:
    assert PAPER.spans_of_kinds() == ((10, 20), (100, 120), (140, 180))
    assert PAPER.spans_of_kinds(frozenset({"boilerplate"})) == ((10, 20),)
    assert SectionMap().spans_of_kinds() == ()
    thanked = SectionMap((section(0, 10, "acknowledgements"), section(10, 30, "references")))
    assert thanked.spans_of_kinds() == ((0, 30),)
    assert PAPER.spans(lambda one: one.kind == "results") == ((30, 100),)
    assert PAPER.spans(lambda one: one.title == "Latency" or one.kind == "references") == ((40, 60), (100, 200))


def test_overlap_counts_characters() -> None:
    spans = ((10, 20), (30, 40))
    cases = [((0, 10), 0), ((0, 11), 1), ((12, 14), 2), ((15, 35), 10), ((20, 30), 0), ((0, 50), 20), ((40, 99), 0)]
    assert [overlap(spans, *given) for given, _ in cases] == [count for _, count in cases]
