"""What answers are shown from: one made by hand (two papers, evidence from both, sentences), and a PDF with no end."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf

from folio.answer_types import ANALYSIS, SUMMARY, Answer, Citation, Evidence, RejectedSentence, Section, Sentence
from folio.papers.metadata import simple_metadata
from folio.papers.model import Chunk, Hit, PageMap, Paper

ICE = (
    "The Aletsch glacier has a length of 23 kilometres.\nIt lies in the Bernese Alps.",
    "Its tongue retreats by 40 metres each year.",
)
MELT = ("The tongue of the Aletsch glacier\nretreats by 50 metres each year.",)
QUESTION = "How long is the Aletsch glacier?"


_DESCRIBED = {"title", "authors", "year", "arxiv"}


def paper_of(file: str, *pages: str, **more: Any) -> tuple[Paper, str]:
    """A paper with these pages, and its text; more: other values of its fields."""
    text, starts = "", []
    for page in pages:
        starts.append(len(text))
        text += f"{page}\n\n"
    paper = Paper(
        id=hashlib.sha256(file.encode()).hexdigest(),
        file=file,
        metadata=simple_metadata(**{name: more.pop(name) for name in _DESCRIBED & more.keys()}),
        pages=PageMap(tuple(starts), ("",) * len(pages)),
        length=len(text),
        chunks=1,
    )
    return replace(paper, **more), text


def evidence_of(number: int, paper: Paper, text: str, score: float = 0.5) -> Evidence:
    """A whole paper as evidence."""
    hit = Hit(Chunk(number, paper.id, 0, len(text)), paper, text, score, dense=0.75, lexical=12.5)
    return Evidence(number, paper, 0, len(text), text, (hit,))


def cite(evidence: Evidence, quote: str, support: float = 1.0) -> Citation:
    """The citation of these words of a piece of evidence."""
    start = evidence.text.index(quote)
    return Citation(evidence.paper, start, start + len(quote), quote, evidence.number, support)


ICE_PAPER, ICE_TEXT = paper_of(
    "alps/ice.pdf",
    *ICE,
    title="Ice of the Alps",
    authors=("Ada Ice", "Bo Berg"),
    year=2021,
    pages=PageMap((0, len(ICE[0]) + 2), ("iv", "")),
)
MELT_PAPER, MELT_TEXT = paper_of("melt.pdf", *MELT, title="Melt", authors=("Cy Melt",), arxiv="2301.01234v2")
ICE_EVIDENCE = evidence_of(1, ICE_PAPER, ICE_TEXT, 0.91)
MELT_EVIDENCE = evidence_of(2, MELT_PAPER, MELT_TEXT, 0.4)

LENGTH = cite(ICE_EVIDENCE, "The Aletsch glacier has a length of 23 kilometres.")
PLACE = cite(ICE_EVIDENCE, "It lies in the Bernese Alps.", 0.625)
RETREAT = cite(ICE_EVIDENCE, "Its tongue retreats by 40 metres each year.")
OTHERWISE = cite(MELT_EVIDENCE, "The tongue of the Aletsch glacier\nretreats by 50 metres each year.")

ANSWER = Answer(
    QUESTION,
    QUESTION,
    (
        Sentence("It is 23 kilometres long and lies in the Alps.", (LENGTH, PLACE)),
        Sentence("Its tongue retreats by 40 metres each year.", (RETREAT,), (OTHERWISE,)),
    ),
    (ICE_EVIDENCE, MELT_EVIDENCE),
)
REPORT = replace(
    ANSWER,
    style="report",
    sentences=(
        Sentence("It is 23 kilometres long.", (LENGTH,), section=SUMMARY),
        Sentence("It melts.", (RETREAT, OTHERWISE), section=SUMMARY),
        Sentence("It lies in the Alps.", (PLACE,), section=ANALYSIS),
        Sentence("It has a length of 23 kilometres.", (LENGTH,), section=Section("Analysis", "Size")),
        Sentence("It becomes shorter.", (RETREAT,), (OTHERWISE,), section=Section("Analysis", "Melt")),
    ),
)
STEPS = "To see it:\n1. Go to Blatten.\n2. Look up:\n   | ice | 23 km |"
FALSE = "It is 99 kilometres long."
OUTCOMES = replace(
    ANSWER,
    sentences=(
        Sentence("It lies in the Bernese Alps.", (LENGTH,)),
        Sentence(
            "Its tongue gets shorter each year.", (replace(RETREAT, support=0.5),), (OTHERWISE,), outcome="reworded"
        ),
        Sentence("It is 23 kilometres long.", (LENGTH,), instead_of=FALSE),
        Sentence(STEPS, (PLACE,), outcome="reworded", verified_by="a verifier"),
    ),
    dropped=2,
    left_out=(RejectedSentence(FALSE, "it says 23"), RejectedSentence("Then:\n1. Rest.", "no evidence says this")),
)
_PAINTED = "Who painted the Aletsch glacier?"
REFUSED = Answer("Who painted it?", _PAINTED, (), (ICE_EVIDENCE,), missing=(_PAINTED,))
HITS = (*ICE_EVIDENCE.hits, *MELT_EVIDENCE.hits)
MODELS = {"embedder": "hashing", "reranker": "built in", "llm": "by hand"}
TIMINGS = {"retrieve": 12.5, "answer": 30.0}


def endless(path: Path) -> Path:
    """A PDF whose page no program ever finishes: a drawing of 20 drawings of 20 drawings and so on, 12 deep."""
    document = pymupdf.open()
    page = document.new_page()
    page.draw_line((0, 0), (9, 9))
    below = 0
    for _ in range(12):
        form = document.get_new_xref()
        inside = f"/XObject << /X {below} 0 R >>" if below else ""
        document.update_object(
            form, f"<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << {inside} >> >>"
        )
        document.update_stream(form, b"/X Do " * 20 if below else b"0 0 m 600 800 l S ")
        below = form
    document.xref_set_key(page.xref, "Resources", f"<< /XObject << /X {below} 0 R >> >>")
    (contents,) = page.get_contents()
    document.update_stream(contents, document.xref_stream(contents) + b" /X Do")
    document.save(path)
    document.close()
    return path
