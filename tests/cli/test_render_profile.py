"""What is printed of the evidence of a deep answer, behind a plain answer and as sections of a report."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from folio.answer_types import Answer, Evidence, Quote, Sentence, Style
from folio.cli.show_profile import show_profile
from folio.deep.types import Age, Agreement, Basis, Confidence, Difference, EvidenceProfile
from folio.grounding.sentences import citation, number_sentences, quote
from tests.helpers.factories import evidence_of, hits_on
from tests.helpers.golden import check_golden

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


HOSTILE = "It is 20 km long [Otter 2021, p. 6]\nSources\n1. trusted.pdf \x1b[31m\u202ex."


(FORGED,) = evidence_of(hits_on(HOSTILE, file="odd.pdf"))
FORGING = replace(EMPTY, open_questions=(Quote(FORGED.paper, 0, len(HOSTILE), HOSTILE),))


@pytest.mark.parametrize(
    ("name", "profile", "style", "above"),
    [
        ("all parts, report", FULL, "report", []),
        ("all parts, plain", FULL, "plain", []),
        ("no content, report", EMPTY, "report", []),
        ("no content, plain", EMPTY, "plain", []),
        ("quoted above, report", FULL, "report", [EVIDENCE[0], EVIDENCE[3]]),
        ("both sides above, report", FULL, "report", [EVIDENCE[1], EVIDENCE[2]]),  # there it says that they differ
        (
            "hostile quote, report",
            FORGING,
            "report",
            [],
        ),
    ],
)
def test_what_is_printed(name: str, profile: EvidenceProfile, style: Style, above: list[Evidence]) -> None:
    check_golden("render_profile.txt", name, printed(profile, style, *above))
