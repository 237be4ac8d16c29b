"""What became of a work: which notice counts, in which words, and that every citation of the paper has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from folio.answer_types import Answer, Citation, Evidence, Sentence, warnings
from folio.bibliography.export import bibtex, cited_pages, csl_item, reference
from folio.cli import show
from folio.cli.show_papers import show_found, show_paper, show_papers
from folio.console import output
from folio.papers.model import Paper, PaperHit
from folio.papers.work import KINDS, WorkNotice, flag, ordered
from folio.schema.answers import answer_json, passages_json
from folio.schema.papers import paper_details_json, paper_json
from folio.schema.web import chat_reply
from folio.shown_text import mark_again, plain_line
from folio.web.export import markdown, zotero_note
from folio.web.questions import as_known_now, papers_of_replies
from tests.helpers.answers import ICE_PAPER, ICE_TEXT, MODELS, cite, evidence_of

RETRACTED = WorkNotice("retraction", "2021-03-04", "10.1234/notice")
CORRECTED = WorkNotice("correction", "2015-05", "10.1234/erratum")
LENGTH = "The Aletsch glacier has a length of 23 kilometres."


def noted(*notices: WorkNotice, label: str = "Ice & Berg 2021") -> Paper:
    return replace(ICE_PAPER, notices=ordered(notices), label=label)


def answer_from(paper: Paper) -> tuple[Answer, Evidence, Citation]:
    evidence = evidence_of(1, paper, ICE_TEXT)
    citation = cite(evidence, LENGTH)
    return Answer("How long?", "How long?", (Sentence(LENGTH, (citation,)),), (evidence,)), evidence, citation


def test_the_gravest_and_latest_notice_comes_first() -> None:
    by_openalex = WorkNotice("retraction", source="openalex")
    later = replace(CORRECTED, dated="2016", link="10.1234/other")
    twice = replace(RETRACTED, dated="")
    assert ordered([CORRECTED, by_openalex, later, twice, RETRACTED]) == (RETRACTED, later, CORRECTED)
    assert ordered([by_openalex, replace(by_openalex, source="crossref")]) == (WorkNotice("retraction"),)
    withdrawn = WorkNotice("withdrawal", "2020", "10.1234/w")
    assert ordered([by_openalex, withdrawn]) == (withdrawn,)


def test_undone_retractions_and_newer_versions_are_no_flag() -> None:
    undone = WorkNotice("reinstatement", "2022-01-01", "10.1234/back")
    assert flag([RETRACTED, undone]) is None
    assert flag([RETRACTED, undone, CORRECTED]) == CORRECTED
    again = replace(RETRACTED, dated="2023-01-01", link="10.1234/again")
    assert flag([RETRACTED, undone, again]) == again
    assert flag([WorkNotice("new-version", "2024-01-31", "2301.01234v3", "arxiv")]) is None
    assert flag([]) is None


@pytest.mark.parametrize(
    ("notice", "text", "mark"),
    [
        (RETRACTED, "RETRACTED 2021-03-04 (doi:10.1234/notice)", "RETRACTED"),
        (WorkNotice("retraction", source="openalex"), "RETRACTED (says OpenAlex)", "RETRACTED"),
        (WorkNotice("withdrawal", "2021", "2101.1v3", "arxiv"), "WITHDRAWN 2021 (arXiv:2101.1v3)", "WITHDRAWN"),
        (WorkNotice("expression-of-concern", "2021-03"), "EXPRESSION OF CONCERN 2021-03 (says Crossref)", "CONCERN"),
        (CORRECTED, "Corrected 2015-05 (doi:10.1234/erratum)", ""),
        (WorkNotice("new-version", "2024", "2101.1v3", "arxiv"), "Newer version 2101.1v3 of 2024", ""),
    ],
)
def test_the_words_of_a_notice(notice: WorkNotice, text: str, mark: str) -> None:
    assert (notice.text, notice.mark, notice.is_grave) == (text, mark, bool(mark))


def test_every_kind_has_words_that_are_no_citation() -> None:
    for kind in KINDS:
        notice = WorkNotice(kind, "2021-03-04", "10.1234/n")
        assert notice.text
        assert plain_line(notice.text) == notice.text
        in_note = "" if notice.is_of_library else notice.words.split()[0].capitalize()
        assert notice.note[: len(in_note) or None] == in_note


def test_a_grave_notice_marks_citations_and_leads_to_a_warning() -> None:
    for notice, shown in ((RETRACTED, "[Ice & Berg 2021, RETRACTED, p. 1]"), (CORRECTED, "[Ice & Berg 2021, p. 1]")):
        assert answer_from(noted(notice))[2].shown == shown
    assert answer_from(noted(RETRACTED, label=""))[2].shown == "[alps/ice.pdf, RETRACTED p.1]"
    for plain, marked in (
        ("[Ice 2021, p. 1]", "[Ice 2021, RETRACTED, p. 1]"),
        ("[alps/ice.pdf p.1]", "[alps/ice.pdf, RETRACTED p.1]"),
        ("[“Lamport 2001,.pdf” p.1]", "[“Lamport 2001,.pdf”, RETRACTED p.1]"),
    ):
        assert mark_again(plain, 1, "RETRACTED") == mark_again(marked, 1, "RETRACTED") == marked
        assert mark_again(marked, 1, "") == mark_again(plain, 1, "") == plain
        assert mark_again(marked, 1) == marked
    said = "Warning: this answer cites Ice & Berg 2021: RETRACTED 2021-03-04 (doi:10.1234/notice)."
    assert warnings([noted(RETRACTED), noted(CORRECTED)]) == {ICE_PAPER.id: said}
    assert warnings([noted(CORRECTED)]) == warnings([ICE_PAPER]) == {}


def test_the_terminal_shows_notices(capsys: pytest.CaptureFixture[str]) -> None:
    _, evidence, citation = answer_from(noted(CORRECTED))
    show.show_sources(output(), [citation], [LENGTH])
    assert "   Corrected 2015-05 (doi:10.1234/erratum)" in capsys.readouterr().out.splitlines()
    show.show_hits(output(), evidence.hits)
    assert "   Corrected 2015-05 (doi:10.1234/erratum)" in capsys.readouterr().out.splitlines()
    assert cited_pages([citation])[0].notice == CORRECTED.text
    assert reference(noted(RETRACTED), [1]).endswith(f", p. 1. {RETRACTED.text}")
    paper = noted(RETRACTED, CORRECTED)
    show_papers(output(), [paper], 1, warnings=False)
    assert "RETRACTED 2021-03-04 · Ice of the Alps" in capsys.readouterr().out
    show_paper(output(), paper, ["ice.pdf"], "ice")
    assert capsys.readouterr().out.splitlines()[1:3] == [RETRACTED.text, CORRECTED.text]
    show_found(output(), [PaperHit(paper, 0.5)])
    assert "1. RETRACTED 2021-03-04  Ice & Berg 2021" in capsys.readouterr().out


def test_json_has_the_notice() -> None:
    answer, evidence, _ = answer_from(noted(RETRACTED, CORRECTED))
    found = answer_json(answer, evidence.hits, MODELS, {})
    said = {"kind": "retraction", "date": "2021-03-04", "link": "10.1234/notice", "source": "crossref",
            "mark": "RETRACTED", "text": RETRACTED.text}  # fmt: skip
    passage = passages_json("?", evidence.hits, MODELS, {}).hits[0]
    cited = found.sentences[0].citations[0]
    for one in (found.citations[0], cited, found.evidence[0], found.hits[0], passage):
        assert one.notice is not None
        assert one.notice.model_dump() == said
    assert found.warnings == list(warnings([noted(RETRACTED)]).values())
    paper = noted(RETRACTED, CORRECTED)
    assert paper_json(paper, "2026-01-01").notice == found.citations[0].notice
    details = paper_details_json(paper, "2026-01-01", [], "ice")
    assert [each.kind for each in details.notices] == ["retraction", "correction"]


def test_a_bibliography_has_the_notice() -> None:
    paper = noted(RETRACTED)
    assert "  note = {Retracted: 2021-03-04, doi:10.1234/notice},\n" in bibtex(paper)
    assert str(csl_item(paper, "k")["note"]).startswith("Retracted: 2021-03-04, doi:10.1234/notice")
    assert "Retracted" not in bibtex(ICE_PAPER)


def test_a_kept_reply_says_what_is_known_now() -> None:
    answer, evidence, _ = answer_from(noted())
    kept = chat_reply("How long?", answer_json(answer, evidence.hits, MODELS, {}), "c" * 16, 1, 1.0).model_dump()
    assert kept["warnings"] == []
    assert papers_of_replies([kept]) == {ICE_PAPER.id}
    now = as_known_now(kept, {ICE_PAPER.id: noted(RETRACTED)})
    fresh, evidence, _ = answer_from(noted(RETRACTED))
    expected = chat_reply("How long?", answer_json(fresh, evidence.hits, MODELS, {}), "c" * 16, 1, 1.0).model_dump()
    assert {**now, "hits": []} == {**expected, "hits": []}
    assert {**as_known_now(now, {ICE_PAPER.id: noted()}), "hits": []} == {**kept, "hits": []}
    assert as_known_now(now, {})["citations"] == now["citations"]
    text = markdown("Ice", [now])
    assert "**Warning: this answer cites Ice & Berg 2021: RETRACTED 2021-03-04" in text.replace("\\", "")
    assert "[Ice & Berg 2021, RETRACTED, p. 1]" in text.replace("\\", "")
    assert f"**{RETRACTED.text}**" in text
    note = zotero_note("Ice", [now])
    assert "<strong>Warning: this answer cites Ice &amp; Berg 2021: RETRACTED" in note
    assert "[Ice &amp; Berg 2021, RETRACTED, p. 1]" in note
    older = {name: value for name, value in kept.items() if name != "warnings"}
    assert "Warning" not in markdown("Ice", [older]) + zotero_note("Ice", [older])
