"""Passages that define what a question names come first; bare identifiers keep the order of the fused scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.papers.model import Chunk, Hit
from folio.papers.sections import PaperSection, SectionMap
from folio.question.named import NamedThing
from folio.search.definitions import (
    Term,
    algorithms_named,
    by_definition,
    first_where_defined,
    raised_by_definition,
)
from tests.helpers.factories import hits_on, one_page_hits

MENTIONS = "We call Raft.Count twice, as Algorithm 3 does."
DEFINES = "Algorithm 3 Raft.Count(b)\n\n1: n ← b\n2: return n"


def with_algorithm(hit: Hit, name: str, start: int, end: int) -> Hit:
    sections = SectionMap((PaperSection(start, end, 0, "", name, "algorithm"),))
    return replace(hit, paper=replace(hit.paper, sections=sections))


def scored(*hits: Hit) -> list[Hit]:
    return [replace(hit, score=1 - place / 10) for place, hit in enumerate(hits)]


def test_the_algorithm_that_a_question_names_comes_first() -> None:
    mentions, defines = one_page_hits(MENTIONS, DEFINES)
    hits = scored(mentions, with_algorithm(defines, "Algorithm 3 Raft.Count(b)", 0, len(DEFINES)))
    for question in ("How does Raft.Count work?", "Algorithm 3", "Raft.Count"):
        first, second = first_where_defined(NamedThing.of(question), hits)
        assert (first.text, second.text, first.score) == (DEFINES, MENTIONS, 1.0)
    for question in ("Why is Raft.Count slow?", "How does Raft.Dive work?", "Algorithm 4"):
        assert first_where_defined(NamedThing.of(question), hits) == hits


def test_bare_identifiers_come_first_where_they_are_explained_or_head_a_section() -> None:
    texts = (
        "Both use XOF-128 and other functions.",
        "The functions are these.\nXOF-128: a function without end.",
        "4.1 XOF-128\nIt has no end.",
        "Another one is XOF-1282.",
    )
    hits = scored(*one_page_hits(*texts))
    heading = SectionMap((PaperSection(0, len(texts[2]), 1, "4.1", "XOF-128", "other"),))
    hits[2] = replace(hits[2], paper=replace(hits[2].paper, sections=heading))
    ordered = by_definition(NamedThing.of("XOF-128"), hits)
    assert [hit.text for hit in ordered] == [texts[2], texts[1], texts[0], texts[3]]
    assert all(0 <= hit.score <= 1 for hit in ordered)


def test_what_does_not_have_a_bare_identifier_comes_last() -> None:
    texts = ("Table 4 lists objects.", "Wind and dust.", "The SDS-WAS forecasts.", "A system (SDS-WAS) of states.")
    ordered = by_definition(NamedThing.of("SDS-WAS"), scored(*one_page_hits(*texts)))
    assert [hit.text for hit in ordered] == [*texts[2:], *texts[:2]]
    assert [hit.score for hit in ordered] == sorted((hit.score for hit in ordered), reverse=True)


def test_algorithms_that_no_hit_has_are_named_with_their_places() -> None:
    text = f"{MENTIONS}\n\n{DEFINES}"
    start = text.index(DEFINES)
    hit = with_algorithm(hits_on(text)[0], "Algorithm 3 Raft.Count(b)", start, len(text))
    mention = replace(hit, chunk=Chunk(7, hit.paper.id, 0, len(MENTIONS)), text=MENTIONS)
    named = NamedThing.of("List the steps of Algorithm 3.")
    assert algorithms_named(named, [mention]) == [(hit.paper.id, start)]
    assert algorithms_named(named, [mention, hit]) == []
    assert algorithms_named(NamedThing.of("Why is Algorithm 3 slow?"), [mention]) == []


def test_of_two_algorithms_with_one_number_that_of_the_paper_that_is_named_comes_first() -> None:
    hits = scored(*one_page_hits(MENTIONS, DEFINES, DEFINES.replace("Count", "Dive")))
    files = "other.pdf", "NIST.FIPS.204.pdf", "NIST.FIPS.203.pdf"
    hits = [replace(hit, paper=replace(hit.paper, file=file)) for hit, file in zip(hits, files, strict=True)]
    hits[1:] = [with_algorithm(hit, hit.text.splitlines()[0], 0, len(hit.text)) for hit in hits[1:]]
    for number, place in (("203", 2), ("204", 1)):
        named = NamedThing.of(f"What are the steps of Algorithm 3 of FIPS {number}?")
        assert first_where_defined(named, hits)[0].text == hits[place].text


@pytest.mark.parametrize(
    ("sentence", "sure"),
    [
        ("A grace period is a time in which each thread is seen once.", 1.0),
        ("Informally, the term “grace period” refers to such a time.", 1.0),
        ("Grace periods, also called epochs, are the times between them.", 1.0),
        ("Such a time is called a grace period.", 0.9),
        ("Grace period: the time until every reader has ended.", 0.9),
        ("We introduce grace periods for lists.", 0.6),
        ("Grace periods take up to 20 ms.", 0.3),
        ("The list waits for a grace period before it frees memory.", 0.0),
        ("The grace of the periodic signal is a matter of taste.", 0.0),
    ],
)
def test_a_definition_is_known_by_its_form(sentence: str, sure: float) -> None:
    assert Term("grace period").defined_in(sentence) == sure
    assert Term("Grace periods").defined_in(sentence) == sure


def test_a_passage_that_defines_the_asked_term_is_raised() -> None:
    uses, defines = scored(*one_page_hits("We wait for a grace period.", "Pause. A grace period is a time."))
    raised = raised_by_definition("grace period", [uses, defines])
    assert [hit.text for hit in raised] == [uses.text, defines.text]  # a tenth apart: it is not raised above all
    near = replace(defines, score=0.95)
    raised = raised_by_definition("grace period", [uses, near])
    assert [hit.text for hit in raised] == [defines.text, uses.text]
    assert all(0 <= hit.score <= 1 for hit in raised)
    assert raised_by_definition("", [uses, near]) == [uses, near]
