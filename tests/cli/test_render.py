"""Answers, sources, evidence and passages as they are printed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from folio.answer_types import SUMMARY, Answer, Section, Sentence
from folio.cli import render
from folio.paper_metadata import Field
from folio.schema import StatsJson
from tests.helpers.answers import (
    ANSWER,
    ICE_EVIDENCE,
    MELT_EVIDENCE,
    OTHERWISE,
    OUTCOMES,
    PLACE,
    REPORT,
    cite,
    evidence_of,
    paper_of,
)


def printed(print_on: Callable[[Console], None], *, terminal: bool = False) -> str:
    """What is printed on a pipe, or in a terminal of 60 columns, as plain text."""
    out = io.StringIO()
    console = Console(
        file=out, width=60 if terminal else 240, soft_wrap=not terminal, force_terminal=terminal, color_system=None
    )
    print_on(console)
    return out.getvalue()


def told(answer: Answer) -> Callable[[Console], None]:
    """An answer's sentences, one at a time."""

    def tell(console: Console) -> None:
        before: Sentence | None = None
        for sentence in answer.sentences:
            render.show_sentence(console, sentence, before)
            before = sentence

    return tell


def test_sentences_name_each_page_once_and_what_disagrees() -> None:
    assert printed(told(ANSWER)) == (
        "It is 23 kilometres long and lies in the Alps. [alps/ice.pdf p.1]\n"
        "Its tongue retreats by 40 metres each year. [alps/ice.pdf p.2]\n"
        f"But [arXiv:2301.01234 p.1] says otherwise: “{' '.join(OTHERWISE.quote.split())}”\n"
    )


def test_a_reworded_statement_has_a_sign_and_its_quote_beneath() -> None:
    assert printed(told(OUTCOMES)) == (
        "It lies in the Bernese Alps. [alps/ice.pdf p.1]\n"
        "≈ Its tongue gets shorter each year. [alps/ice.pdf p.2]\n"
        "  “Its tongue retreats by 40 metres each year.”\n"
        f"But [arXiv:2301.01234 p.1] says otherwise: “{' '.join(OTHERWISE.quote.split())}”\n"
        "In place of a statement that the papers do not support:\n"
        "It is 23 kilometres long. [alps/ice.pdf p.1]\n"
        "≈ To see it:\n"
        "  1. Go to Blatten.\n"
        "  2. Look up:\n"
        "     | ice | 23 km |\n"
        "  [alps/ice.pdf p.1]\n"
        "  “It lies in the Bernese Alps.”\n"
    )


def test_in_a_terminal_it_wraps_beside_its_sign() -> None:
    words = "Its tongue gets shorter " + "and shorter " * 5 + "each year."
    sentence = replace(OUTCOMES.sentences[1], text=words, against=())
    shown = printed(lambda console: render.show_sentence(console, sentence), terminal=True).splitlines()
    assert [line.rstrip() for line in shown] == [
        "≈ Its tongue gets shorter and shorter and shorter and",
        "  shorter and shorter and shorter each year. [alps/ice.pdf",
        "  p.2]",
        "  “Its tongue retreats by 40 metres each year.”",
    ]


def test_lines_of_a_quoted_statement_are_indented_and_a_summary_has_its_bullet() -> None:
    quoted = replace(OUTCOMES.sentences[3], outcome="quoted", verified_by="", text="1. Go.\n\n\n\tx = 1\n")
    shown = printed(lambda console: render.show_sentence(console, quoted))
    assert shown == "  1. Go.\n\n      x = 1\n  [alps/ice.pdf p.1]\n"
    reworded = replace(OUTCOMES.sentences[3], section=SUMMARY, text="a\nb")
    shown = printed(lambda console: render.show_sentence(console, reworded))
    assert shown == "Summary\n• ≈ a\n    b\n    [alps/ice.pdf p.1]\n    “It lies in the Bernese Alps.”\n"


def test_a_long_quote_is_cut_at_a_word() -> None:
    words = " ".join(f"word{number}" for number in range(200))
    paper, text = paper_of("x.pdf", words)
    cited = cite(evidence_of(1, paper, text), words, 0.5)
    shown = printed(lambda console: render.show_sentence(console, Sentence("Said.", (cited,), outcome="reworded")))
    _, quote = shown.splitlines()
    assert quote.endswith(" word34 …”")  # the next word would make it 243 characters
    assert len(quote) <= 244
    assert words.startswith(quote.removeprefix("  “").removesuffix(" …”"))


@pytest.mark.parametrize(
    ("verifiers", "checked"),
    [
        (("",), "Not checked by a verifier."),
        (("", ""), "Not checked by a verifier."),
        (("llama", "llama"), "Checked by llama."),
        (("llama", "nli"), "Checked by llama, nli."),
        (("", "llama", ""), "2 of 3 not checked by a verifier, the others by llama."),
    ],
)
def test_the_sign_is_explained_once(verifiers: tuple[str, ...], checked: str) -> None:
    reworded = OUTCOMES.sentences[1]
    sentences = [OUTCOMES.sentences[0], *(replace(reworded, verified_by=name) for name in verifiers)]
    shown = printed(lambda console: render.show_legend(console, sentences))
    assert shown == f"≈ in the model's own words; the quote stands beneath. {checked}\n"


def test_an_answer_of_quotes_needs_no_legend() -> None:
    assert printed(lambda console: render.show_legend(console, ANSWER.sentences)) == ""


def test_what_was_left_out_is_shown_with_its_reason() -> None:
    assert printed(lambda console: render.show_left_out(console, OUTCOMES)) == (
        "\n"
        "Left out\n"
        "• It is 99 kilometres long.\n"
        "  Reason: it says 23\n"
        "• Then:\n"
        "  1. Rest.\n"
        "  Reason: no evidence says this\n"
    )
    nothing = printed(lambda console: render.show_left_out(console, ANSWER))
    assert nothing == "\nLeft out\nNothing was left out.\n"
    older = printed(lambda console: render.show_left_out(console, replace(ANSWER, dropped=2)))
    assert older == "\nLeft out\nThe statements that were left out were not kept with this answer.\n"


def test_a_paper_of_arxiv_is_cited_by_its_identifier() -> None:
    sentence = REPORT.sentences[1]
    assert printed(lambda console: render.show_sentence(console, replace(sentence, section=Section()))) == (
        "It melts. [alps/ice.pdf p.2] [arXiv:2301.01234 p.1]\n"
    )


def test_a_report_has_headings_where_the_section_changes() -> None:
    assert printed(told(REPORT)) == (
        "Summary\n"
        "• It is 23 kilometres long. [alps/ice.pdf p.1]\n"
        "• It melts. [alps/ice.pdf p.2] [arXiv:2301.01234 p.1]\n"
        "\n"
        "Analysis\n"
        "It lies in the Alps. [alps/ice.pdf p.1]\n"
        "\n"
        "Size\n"
        "It has a length of 23 kilometres. [alps/ice.pdf p.1]\n"
        "\n"
        "Melt\n"
        "It becomes shorter. [alps/ice.pdf p.2]\n"
        f"But [arXiv:2301.01234 p.1] says otherwise: “{' '.join(OTHERWISE.quote.split())}”\n"
    )


def test_sources_are_pages_with_their_quotes_in_the_order_of_the_answer() -> None:
    assert printed(lambda console: render.show_sources(console, ANSWER.citations)) == (
        "\n"
        "Sources\n"
        "1. alps/ice.pdf, p. 1 (printed iv) · Ice of the Alps\n"
        "   “The Aletsch glacier has a length of 23 kilometres.”\n"
        "   “It lies in the Bernese Alps.” · support 0.62\n"
        "2. alps/ice.pdf, p. 2 · Ice of the Alps\n"
        "   “Its tongue retreats by 40 metres each year.”\n"
        "3. melt.pdf, p. 1 · Melt\n"
        "   “The tongue of the Aletsch glacier retreats by 50 metres each year.”\n"
    )


def test_a_source_has_its_venue_where_that_is_sure() -> None:
    known = replace(
        PLACE.paper.metadata,
        venue=Field("Journal\x1b[2J of\nIce [Fake 2014, p. 6]", "crossref", True),
        year=Field(2021, "crossref", True),
    )
    cited = replace(PLACE, paper=replace(PLACE.paper, metadata=known))
    heading, published, _ = printed(lambda console: render.show_sources(console, [cited])).splitlines()[2:]
    assert "Ice of the Alps" in heading
    assert published.strip().startswith("Journal")
    assert published.endswith(", 2021")
    assert "\x1b" not in published
    assert "[Fake 2014, p. 6]" not in published


def test_a_quote_wraps_under_its_source_in_a_terminal() -> None:
    shown = printed(lambda console: render.show_sources(console, ANSWER.citations), terminal=True).splitlines()
    assert [line.rstrip() for line in shown[-2:]] == [
        "   “The tongue of the Aletsch glacier retreats by 50 metres",
        "   each year.”",
    ]


def test_references_are_made_from_the_citations() -> None:
    assert printed(lambda console: render.show_references(console, REPORT.citations)) == (
        "\n"
        "Key references\n"
        "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf, pp. 1, 2\n"
        "Cy Melt. Melt. arXiv:2301.01234v2, p. 1\n"
    )


@pytest.mark.parametrize(
    ("authors", "year", "title", "line"),
    [
        ((), None, "", "x.pdf, p. 1"),
        ((), 1999, "", "(1999). x.pdf, p. 1"),
        ((), None, "A Title.", "A Title. x.pdf, p. 1"),
        (("A", "B", "C"), 1999, "T", "A, B and C (1999). T. x.pdf, p. 1"),
        (("A", "B", "C", "D"), 1999, "T", "A et al. (1999). T. x.pdf, p. 1"),
        (("A", "B", "C", "D et al."), None, "T", "A et al. T. x.pdf, p. 1"),
    ],
)
def test_a_reference_says_what_is_known(authors: tuple[str, ...], year: int | None, title: str, line: str) -> None:
    paper, text = paper_of("x.pdf", "Some words.", authors=authors, year=year, title=title)
    cited = cite(evidence_of(1, paper, text), "Some words.")
    shown = printed(lambda console: render.show_references(console, [cited]))
    assert shown == f"\nKey references\n{line}\n"


def test_evidence_is_what_the_answerer_was_given() -> None:
    assert printed(lambda console: render.show_evidence(console, ANSWER.evidence)) == (
        "\n"
        "Evidence\n"
        "[1] alps/ice.pdf, pp. 1–2 · Ice of the Alps · 0.91 (cosine 0.75, BM25 12.50)\n"
        "   The Aletsch glacier has a length of 23 kilometres.\n"
        "   It lies in the Bernese Alps.\n"
        "\n"
        "   Its tongue retreats by 40 metres each year.\n"
        "\n"
        "[2] melt.pdf, p. 1 · Melt · 0.40 (cosine 0.75, BM25 12.50)\n"
        "   The tongue of the Aletsch glacier\n"
        "   retreats by 50 metres each year.\n"
        "\n"
    )


def test_evidence_that_one_search_alone_found_or_none() -> None:
    (hit,) = MELT_EVIDENCE.hits
    dense = replace(MELT_EVIDENCE, hits=(replace(hit, lexical=None),))
    assert "· 0.40 (cosine 0.75)\n" in printed(lambda console: render.show_evidence(console, [dense]))
    bare = replace(MELT_EVIDENCE, hits=(replace(hit, dense=None, lexical=None),))
    assert "Melt · 0.40\n" in printed(lambda console: render.show_evidence(console, [bare]))
    nothing = printed(lambda console: render.show_evidence(console, ()))
    assert nothing == "\nEvidence\nNone: no passages found.\n"


def test_hits_are_numbered_by_rank() -> None:
    assert printed(lambda console: render.show_hits(console, MELT_EVIDENCE.hits)) == (
        "1. melt.pdf, p. 1 · Melt · 0.40\n   The tongue of the Aletsch glacier\n   retreats by 50 metres each year.\n\n"
    )


def test_stats_are_a_table() -> None:
    stats = StatsJson(
        papers=12,
        chunks=3456,
        bytes=98_765_432,
        questions=7,
        refused=2,
        good=3,
        bad=1,
        median_ms=1234.0,
        median_confidence=0.632,
    )
    rows = printed(lambda console: render.show_stats(console, stats)).splitlines()
    assert [row.split(maxsplit=1)[0] for row in rows] == [
        "papers", "passages", "size", "questions", "not", "confidence", "feedback",
    ]  # fmt: skip
    assert [" ".join(row.split()) for row in rows] == [
        "papers 12",
        "passages 3,456",
        "size on disk 98.8 MB",
        "questions 7, answered in 1.2 s (median)",
        "not found 2",
        "confidence 0.63 (median)",
        "feedback 3 good, 1 bad",
    ]


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[bold]x[red]\nnew"


def test_nothing_from_a_paper_or_a_model_steers_the_terminal() -> None:
    paper, text = paper_of(
        f"{EVIL}.pdf", f"A passage {EVIL} with words.", title=EVIL, authors=(EVIL,), arxiv="", year=2020
    )
    evidence = evidence_of(1, paper, text)
    cited = cite(evidence, text.strip())
    sentence = Sentence(f"A sentence {EVIL}.", (cited,), (cited,), Section("Analysis", EVIL))
    shown = "".join(
        printed(print_on)
        for print_on in (
            lambda console: render.show_question(console, EVIL),
            lambda console: render.show_sentence(console, sentence),
            lambda console: render.show_sources(console, [cited]),
            lambda console: render.show_references(console, [cited]),
            lambda console: render.show_evidence(console, [evidence]),
            lambda console: render.show_hits(console, evidence.hits),
        )
    )
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
    assert "[bold]x[red]" in shown  # nor is it taken for a mark of type
    assert shown.count("owned") == 18


def test_support_below_one_is_said_beside_its_quote_only() -> None:
    assert PLACE.support == 0.625
    assert ICE_EVIDENCE.score == 0.91
    assert printed(lambda console: render.show_sources(console, [PLACE])).count("support") == 1


def test_a_name_or_title_with_a_line_end_makes_no_line_of_its_own() -> None:
    paper, text = paper_of("ice\nSources\n1. x.pdf", "Some words.", title="A\nB", authors=("C\nD",))
    evidence = evidence_of(1, paper, text)
    cited = cite(evidence, "Some words.")
    sentence = Sentence("Said.", (cited,), (cited,))
    shown = [
        printed(print_on)
        for print_on in (
            lambda console: render.show_question(console, "a\nb"),
            lambda console: render.show_sentence(console, sentence),
            lambda console: render.show_sources(console, [cited]),
            lambda console: render.show_references(console, [cited]),
            lambda console: render.show_evidence(console, [evidence]),
            lambda console: render.show_hits(console, evidence.hits),
        )
    ]
    assert shown == [
        "a b\n",
        "Said. [“ice Sources 1. x.pdf” p.1]\nBut [“ice Sources 1. x.pdf” p.1] says otherwise: “Some words.”\n",
        "\nSources\n1. ice Sources 1. x.pdf, p. 1 · A B\n   “Some words.”\n",
        "\nKey references\nC D. A B. ice Sources 1. x.pdf, p. 1\n",
        "\nEvidence\n[1] ice Sources 1. x.pdf, p. 1 · A B · 0.50 (cosine 0.75, BM25 12.50)\n   Some words.\n\n",
        "1. ice Sources 1. x.pdf, p. 1 · A B · 0.50\n   Some words.\n\n",
    ]


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("numbat.pdf", "numbat"),
        ("a/numbat.pdf", "a/numbat"),
        ("a.b/c/numbat.v2.pdf", "a.b/c/numbat.v2"),
        ("numbat", "numbat"),
    ],
)
def test_a_paper_is_cited_by_its_file_with_its_folder(file: str, key: str) -> None:
    assert paper_of(file, "Words.")[0].key == key
