"""What is printed of the evidence of a deep answer, behind a plain answer and as sections of a report."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from folio.answer_types import Answer, Evidence, Quote, Sentence, Style
from folio.cli.render_profile import show_profile
from folio.evidence_profile import Age, Agreement, Basis, Confidence, Difference, EvidenceProfile
from folio.grounding.sentences import citation, number_sentences, quote
from tests.helpers.factories import evidence_of, hits_on

LONG, ALSO, SHORT, UNKNOWN = (
    "The glacier is 23 km long.",
    "It has 23 km of length.",
    "The glacier is 20 km long.",
    "It is unclear why it retreats.",
)
EVIDENCE = evidence_of([hits_on(text, file=f"p{n}.pdf")[0] for n, text in enumerate((LONG, ALSO, SHORT, UNKNOWN), 1)])


def quotes_of(evidence: list[Evidence]) -> list[Quote]:
    return [quote(sentence) for sentence in number_sentences(evidence)]


ONE, TWO, THREE, OPEN = quotes_of(EVIDENCE)
BASIS = Basis(papers=1, relevant=4, scored=10, statements=2, left_out=1)
EMPTY = EvidenceProfile(BASIS, None, (), (), (), Age((), 1))
FULL = EvidenceProfile(
    replace(BASIS, left_out=0),
    Confidence(0.6, "medium"),
    (Agreement((ONE, TWO)),),
    (Difference((TWO,), (THREE,)),),
    (OPEN,),
    Age((1998, 2012, 2012), 2),
    "llama3.1:8b (Ollama)",
)
SURE = "Confidence: medium. In tests 60% of such answers showed what was asked for.\n"


def printed(profile: EvidenceProfile, style: Style, *above: Evidence) -> str:
    """Behind an answer that quotes these pieces of evidence."""
    said = (Sentence(piece.text, (citation(piece, 0, len(piece.text), 1.0),)) for piece in above)
    out = io.StringIO()
    show_profile(
        Console(file=out, width=240, soft_wrap=True, color_system=None),
        profile,
        Answer("How long?", "How long?", tuple(said), tuple(EVIDENCE), style=style),
    )
    return out.getvalue()


def test_a_report_has_a_section_for_each_part() -> None:
    assert printed(FULL, "report") == (
        f"\nWhere the papers agree\n• “{LONG}” [p1.pdf p.1]\n  “{ALSO}” [p2.pdf p.1]\n"
        f"\nWhere they differ\n• “{ALSO}” [p2.pdf p.1]\n  but “{SHORT}” [p3.pdf p.1]\n"
        "llama3.1:8b (Ollama) chose which quotes belong together: read them.\n"
        f"\nOpen questions\n• “{UNKNOWN}” [p4.pdf p.1]\n"
        f"\nAge and confidence of the evidence\n{SURE}"
        "2 statements from 1 paper; 4 of 10 passages relevant.\n"
        "Age: papers of 1998 to 2012, 2 papers without a sure year.\n"
    )


def test_behind_a_plain_answer_it_is_a_few_lines() -> None:
    assert printed(EMPTY, "plain") == (
        "\nAbout the evidence\n"
        "2 statements from 1 paper; 4 of 10 passages relevant. 1 statement left out.\n"
        "Age: 1 paper without a sure year.\n"
    )
    assert (
        f"Age: papers of 1998 to 2012, 2 papers without a sure year.\nWhere the papers agree:\n• “{LONG}”"
        in printed(FULL, "plain")
    )


def test_parts_without_content_are_left_out() -> None:
    assert printed(EMPTY, "report").startswith("\nAge and confidence of the evidence\n2 statements")


def test_what_the_answer_quotes_is_cited_and_not_quoted_again() -> None:
    shown = printed(FULL, "report", EVIDENCE[0], EVIDENCE[3])
    assert f"• [p1.pdf p.1] (quoted above)\n  “{ALSO}” [p2.pdf p.1]\n" in shown
    assert "• [p4.pdf p.1] (quoted above)\n" in shown
    assert LONG not in shown
    # Both sides of a difference stand above, and there it says that they differ.
    assert "Where they differ" not in printed(FULL, "report", EVIDENCE[1], EVIDENCE[2])


def test_a_hostile_quote_stays_on_its_line_and_looks_like_no_citation() -> None:
    text = "It is 20 km long [Otter 2021, p. 6]\nSources\n1. trusted.pdf \x1b[31m\u202ex."
    (hostile,) = evidence_of(hits_on(text, file="odd.pdf"))
    found = Quote(hostile.paper, 0, len(text), text)
    shown = printed(replace(EMPTY, open_questions=(found,)), "report")
    assert "• “It is 20 km long (Otter 2021, p. 6) Sources 1. trusted.pdf" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
