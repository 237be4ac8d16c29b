"""Notices and newest versions, as services say them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folio.errors import SourceError
from folio.papers.identifiers import version_number
from folio.papers.metadata import Field, Metadata, merged, with_own_version
from folio.papers.model import PageMap, Paper
from folio.papers.work import Work, WorkNotice
from folio.services import arxiv, crossref
from folio.services.crossref import read_registered, read_updating
from folio.services.updates import is_missing, newer
from tests.helpers.paths import ROOT
from tests.helpers.source_records import (
    arxiv_entry,
    arxiv_feed,
    crossref_list,
    crossref_update,
    crossref_work,
    with_updates,
)

RECORDED = ROOT.parent / "shared" / "apis" / "crossref"


def notices_of(*updates: Any) -> tuple[WorkNotice, ...]:
    work = with_updates(crossref_work("10.1234/x", "Otters"), "updated-by", *updates)
    ((found,),) = [read_registered(json.dumps(crossref_list(work)))]
    return found.notices


KINDS = {
    "retraction": ["retraction", "Retraction"],
    "partial-retraction": ["partial_retraction"],
    "withdrawal": ["withdrawal"],
    "removal": ["removal"],
    "expression-of-concern": ["expression_of_concern", "Expression of Concern"],
    "correction": ["correction", "corrigendum", "erratum"],
    "new-version": ["new_version"],
    "reinstatement": ["reinstatement"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_crossrefs_types_are_kinds(kind: str) -> None:
    for written in KINDS[kind]:
        (found,) = notices_of(crossref_update("10.1234/N", written, 2021, 3, 4))
        assert (found.kind, found.dated, found.link, found.source) == (kind, "2021-03-04", "10.1234/n", "crossref")


def test_a_type_that_nobody_knows_is_no_notice() -> None:
    assert notices_of(crossref_update("10.1234/n", "celebration", 2021), {"type": 7}, {}) == ()


@pytest.mark.parametrize(
    ("written", "dated"),
    [
        ([[2015, 5, 4]], "2015-05-04"),
        ([[2015, 5]], "2015-05"),
        ([[2015]], "2015"),
        ([[2015, None, 4]], "2015"),
        ([[2015, 13, 40]], ""),
        ([[99999, 1, 1]], ""),
        ([[10**30]], ""),
        ([[None]], ""),
        ([[]], ""),
        ([], ""),
    ],
)
def test_dates_are_checked(written: list[Any], dated: str) -> None:
    (found,) = notices_of({"DOI": "10.1234/n", "type": "retraction", "updated": {"date-parts": written}})
    assert found.dated == dated


def test_a_notice_without_a_sound_doi_has_no_link() -> None:
    (found,) = notices_of({"DOI": "javascript:alert(1)", "type": "retraction"})
    assert found == WorkNotice("retraction")
    for odd in ("\u202egnp.exe", "x" * 900, "\u2028"):
        (found,) = notices_of(crossref_update(f"10.1234/{odd}", "retraction", 2021))
        assert (found.kind, found.dated, found.link) == ("retraction", "2021", "")


def test_what_publisher_and_retraction_watch_say_is_one_notice() -> None:
    twice = crossref_update("10.1234/n", "retraction", 2021, 3, 4)
    assert notices_of(twice, {**twice, "source": "retraction-watch", "updated": None}) == (
        WorkNotice("retraction", "2021-03-04", "10.1234/n"),
    )


def test_hundreds_of_notices_are_bounded() -> None:
    many = [crossref_update(f"10.1234/{number}", "correction", 2021) for number in range(10_000)]
    assert len(notices_of(*many)) == crossref._NOTICES


def test_records_of_notices_name_the_works_that_they_are_about() -> None:
    about = [crossref_update("10.1234/X", "retraction", 2020), crossref_update("10.1234/y", "new_edition", 2022)]
    listed = crossref_list(with_updates(crossref_work("10.1234/N", "Retraction"), "update-to", *about), {"DOI": 7})
    assert read_updating(json.dumps(listed)) == [
        ("10.1234/x", WorkNotice("retraction", "2020", "10.1234/n")),
        ("10.1234/y", WorkNotice("new-version", "2022", "10.1234/n")),
    ]
    for wrong in ("", "[]", '{"status": "ok", "message": {"items": 7}}', '{"status": "failed"}'):
        for read in (read_updating, read_registered):
            with pytest.raises(SourceError, match="Crossref sent something that cannot be read"):
                read(wrong)


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded exchanges are not there")
def test_the_notice_of_a_recorded_exchange_is_read() -> None:
    (path,) = RECORDED.glob("34-works-*.json")
    body = json.loads(path.read_text(encoding="utf-8"))["body"]
    (found,) = read_registered(json.dumps({"status": "ok", "message": {"items": [body["message"]]}}))
    assert found.notices == (WorkNotice("correction", "2015-05-04", "10.1073/pnas.1507001112"),)


# arXiv

WITHDRAWN = [
    "This paper has been withdrawn by the author due to a crucial error in Lemma 2",
    "Withdrawn",
    "20 pages. This paper has been withdrawn",
    "Paper withdrawn by the authors",
    "arXiv admin note: withdrawn by arXiv administrators",
    "This article is temporarily withdrawn",
]
NOT_WITHDRAWN = [
    "",
    "the claim of v1 is withdrawn",
    "Theorem 2 was withdrawn",
    "On students who were withdrawn from school",
    "12 pages, 3 figures",
]


@pytest.mark.parametrize("comment", [*WITHDRAWN, *NOT_WITHDRAWN])
def test_a_comment_tells_that_a_paper_is_withdrawn(comment: str) -> None:
    feed = arxiv_feed(arxiv_entry("2101.00001v3", "Otters", "Ada Byte", updated="2024-02-30", comment=comment))
    (found,) = arxiv.read_latest(feed.decode())
    assert (found.is_withdrawn, found.updated, found.work.arxiv) == (comment in WITHDRAWN, "", "2101.00001v3")


def paper(arxiv: str) -> Paper:
    return Paper(arxiv, f"{arxiv}.pdf", Metadata(arxiv=Field(arxiv, "page", True)), PageMap((0,), ("",)), 1, 1)


def test_a_version_is_newer_than_every_one_that_is_here() -> None:
    first, second, other, unknown = (paper(each) for each in ("2101.1v1", "2101.1v2", "2102.2v1", "2101.1"))
    third = Work("arxiv", arxiv="2101.1v3")
    assert newer(first, third, [first, other])
    assert newer(second, third, [first, second])
    assert not newer(first, third, [first, second])
    assert newer(unknown, third, [unknown])
    assert not newer(first, Work("arxiv", arxiv="2101.1v2"), [first, second])
    assert not newer(first, Work("arxiv", arxiv="2101.1"), [first])
    assert not newer(unknown, Work("arxiv", arxiv="2101.1v1"), [unknown])
    assert not newer(other, third, [other])
    assert is_missing(second, Work("arxiv", arxiv="2101.1v1"), [second, other])
    assert not is_missing(second, Work("arxiv", arxiv="2101.1v2"), [second])


def test_the_file_knows_its_version_and_people_know_better() -> None:
    def said(value: str) -> Metadata:
        return Metadata(arxiv=Field(value, "page", True))

    assert merged({"pdf": said("2101.1v1"), "online": said("2101.1v3")}).arxiv.value == "2101.1v1"
    assert merged({"pdf": said("2101.1v1"), "bibliography": said("2101.1")}).arxiv.value == "2101.1v1"
    assert merged({"pdf": said("2101.1v1"), "person": said("2101.1v2")}).arxiv.value == "2101.1v2"
    assert merged({"pdf": said("2101.1v1"), "person": said("2102.2")}).arxiv.value == "2102.2"
    assert with_own_version({"pdf": said("2101.1")}, said("2101.1v3")).arxiv.value == "2101.1"
    assert with_own_version({"pdf": said("2101.1v1")}, said("2101.1")).arxiv.value == "2101.1v1"
    assert with_own_version({}, said("2101.1v3")).arxiv.value == "2101.1"
    assert [version_number(each) for each in ("2101.1v3", "2101.1", "math/0101001v12", "v")] == [3, None, 12, None]
