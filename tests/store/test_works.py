"""Works are kept, each once, with their versions, citations, notices and papers; damage to them is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.errors import StoreDamaged
from folio.papers.work import SourceName, Work, WorkAuthor, from_json, reference_mark, to_json
from folio.store import works
from folio.store.library import Library
from folio.store.sqlite import MEMORY
from folio.store.works import Notice

TITLE = "On the Sleep of Otters"
TIME = "2026-01-02T03:04:05+00:00"


def work(source: SourceName = "openalex", title: str = TITLE, year: int | None = 2021, **more: Any) -> Work:
    return Work(source, title=title, authors=(WorkAuthor("Byte", "Ada"),), year=year, **more)


@pytest.fixture
def library() -> Iterator[Library]:
    with closing(Library(MEMORY, create=True)) as made:
        yield made


def put(library: Library, *given: Work) -> list[str]:
    with library.database.transaction():
        return works.put(library.database, given)


def test_descriptions_from_several_sources_become_one_work(library: Library) -> None:
    said = [
        work("crossref", doi="10.1/x", venue="Journal of Otters"),
        work("openalex", title="On the sleep of otters", openalex="W1", doi="10.1/x", cited=4, is_open=True),
        work("semanticscholar", year=None, semanticscholar="a" * 40, arxiv="2101.00001", doi="10.1/x"),
        work("arxiv", title="Sleeping Otters", arxiv="2101.00001v2", categories=("cs.IR",), pdfs=("https://a.org/1",)),
        work("openalex", title=TITLE, openalex="W1", cited=5),
    ]
    ids = put(library, *said)
    assert len(set(ids)) == 1
    kept = works.get(library.database, ids)[ids[0]]
    assert list(kept.said) == ["crossref", "openalex", "semanticscholar", "arxiv"]
    found = kept.work
    assert (found.title, found.venue, found.cited, found.arxiv) == (TITLE, "Journal of Otters", 5, "2101.00001")
    assert (found.source, found.categories, found.pdfs) == ("crossref", ("cs.IR",), ("https://a.org/1",))
    by_title = works.find(library.database, work("crossref"))
    assert by_title == kept
    assert works.find(library.database, work(year=2019)) is None
    assert works.find(library.database, work(doi="10.1/other", year=2019)) is None
    assert library.check() == []


def test_a_description_shows_that_two_works_are_one(library: Library) -> None:
    first, second, other = put(
        library,
        work("crossref", title="A", doi="10.1/x"),
        work("openalex", title="B", openalex="W2", references=("W9", "10.1/y")),
        work("openalex", title="C", openalex="W3", references=("W2",)),
    )
    assert len({first, second, other}) == 3
    with library.database.transaction():
        works.link_paper(library.database, "p" * 64, second, "title", 0.97)
        works.add_notice(library.database, Notice(second, "correction", "2024-05", "10.1/c", "crossref", TIME))
    assert put(library, work("semanticscholar", title="D", doi="10.1/x", openalex="W2")) == [first]
    assert works.get(library.database, [second]) == {}
    assert works.of_papers(library.database, ["p" * 64])["p" * 64].work == first
    assert works.references_of(library.database, first) == ["openalex W9", "doi 10.1/y"]
    assert works.citing(library.database, first) == [other]
    assert [each.work for each in works.notices_of_works(library.database, [first, second])] == [first]
    assert library.check() == []


def test_of_preprint_and_publication_the_publication_is_preferred(library: Library) -> None:
    preprint, journal, editorial, later = put(
        library,
        work("arxiv", arxiv="2101.00001v1", year=2020),
        work("crossref", doi="10.1/x", venue="Journal of Otters", year=2022, kind="article-journal"),
        work("crossref", title="Editorial", doi="10.1/e", year=2021),
        work("arxiv", title="Editorial", arxiv="2101.00009", year=2022),
    )
    database = library.database
    assert [kept.id for kept in works.versions(database, preprint)] == [journal, preprint]
    assert [kept.id for kept in works.versions(database, journal)] == [journal, preprint]
    assert [kept.id for kept in works.versions(database, editorial)] == [editorial]
    assert [kept.id for kept in works.versions(database, later)] == [later]
    (of_openalex,) = put(library, work("openalex", openalex="W1", arxiv="2101.00001", year=2020, kind="article"))
    assert of_openalex == preprint
    # Another one with the same arXiv id, and with another id at OpenAlex: a version, not the same
    (copy,) = put(library, work("openalex", openalex="W2", arxiv="2101.00001", doi="10.48/z", year=2020, cited=1))
    assert {kept.id for kept in works.versions(database, copy)} == {preprint, journal, copy}
    with database.transaction():
        works.link_paper(database, "p" * 64, preprint, "arxiv", 1.0)
        works.add_notice(database, Notice(journal, "retraction", "2024-05-06", "10.1/r", "crossref", TIME))
    assert [kept.id for kept in works.of_paper(database, "p" * 64)][:2] == [
        preprint,
        works.versions(database, copy)[0].id,
    ]
    assert [each.work for each in works.notices_of_papers(database, ["p" * 64, "q" * 64])["p" * 64]] == [journal]
    assert library.check() == []


def test_a_publications_notices_are_its_preprints_but_not_vice_versa(library: Library) -> None:
    preprint, journal, other = put(
        library,
        work("arxiv", arxiv="2101.00001v1", year=2020),
        work("crossref", doi="10.1/x", venue="Journal of Otters", kind="article-journal"),
        work("crossref", title="Another Work on Other Otters", doi="10.1/z"),
    )
    database = library.database
    withdrawn = Notice(preprint, "withdrawal", "2024", "2101.00001v2", "arxiv", TIME)
    retracted = Notice(journal, "retraction", "2024-05-06", "10.1/r", "crossref", TIME)
    with database.transaction():
        for paper, id in zip("pqr", (preprint, journal, other), strict=True):
            works.link_paper(database, paper * 64, id, "doi", 1.0)
        works.add_notice(database, withdrawn)
        works.add_notice(database, retracted)
    found = works.notices_of_papers(database, [paper * 64 for paper in "pqr"])
    assert found == {"p" * 64: [retracted, withdrawn], "q" * 64: [retracted]}
    assert library.check() == []


def test_a_retraction_stays_until_its_source_withdraws_it(library: Library) -> None:
    (id,) = put(library, work(openalex="W1", is_retracted=True))
    (notice,) = works.notices_of_works(library.database, [id])
    assert (notice.kind, notice.source, notice.link) == ("retraction", "openalex", "")
    put(library, work("crossref", is_retracted=False))
    assert works.notices_of_works(library.database, [id]) == [notice]
    put(library, work(openalex="W1"))
    assert works.notices_of_works(library.database, [id]) == []


def test_citations_between_papers_go_by_any_mark_and_any_version(library: Library) -> None:
    preprint, journal, citing, unknown = put(
        library,
        work("arxiv", arxiv="2101.00001", year=2020),
        work("crossref", doi="10.1/x", kind="article-journal", year=2021),
        work("openalex", title="Citing", openalex="W5", references=("10.1/x", "W77")),
        work("semanticscholar", title="Other", semanticscholar="b" * 40, references=("W5",)),
    )
    database = library.database
    assert works.citing(database, preprint) == [citing]
    assert works.citing(database, journal) == [citing]
    assert works.citing(database, unknown) == []
    assert works.library_edges(database) == []  # no paper of these is in the library
    assert works.papers_of(database, citing) == []


A_WORK = st.builds(
    work,
    st.sampled_from(["openalex", "crossref", "arxiv", "semanticscholar"]),
    st.sampled_from(["a", "b", "four words and more"]),
    st.sampled_from([2001, 2002]),
    doi=st.sampled_from(["", "10.1/1", "10.1/2"]),
    openalex=st.sampled_from(["", "W1", "W2"]),
    arxiv=st.sampled_from(["", "2101.00001", "2101.00002v3"]),
    references=st.sampled_from([(), ("W1", "W2"), ("10.1/2",)]),
    is_retracted=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(A_WORK, max_size=8))
def test_any_history_leaves_works_that_agree_with_themselves(history: list[Work]) -> None:
    with closing(Library(MEMORY, create=True)) as library:
        for each in history:
            (id,) = put(library, each)
            assert works.get(library.database, [id])[id].said[each.source] == each.__class__(
                **{name: getattr(each, name) for name in each.__slots__} | {"references": ()}
            )
            assert put(library, each) == [id]
        ids = [id for (id,) in library.database.query("SELECT id FROM works")]
        for kept in works.get(library.database, ids).values():
            for kind in ("doi", "openalex", "arxiv"):
                assert len([mark for mark in kept.identifiers() if mark.startswith(f"{kind} ")]) <= 1
            root = works.versions(library.database, kept.id)[0]
            assert root.version_of == ""
        citing = {citing for (citing,) in library.database.query("SELECT citing FROM citations")}
        noticed = {work for (work,) in library.database.query("SELECT work FROM notices")}
        assert (citing | noticed) <= set(ids)
        assert library.check() == []


@given(A_WORK)
def test_a_work_is_read_as_it_was_written(given_work: Work) -> None:
    assert from_json(given_work.source, to_json(given_work)).marks() == given_work.marks()


@pytest.mark.parametrize(
    "written",
    [
        {"title": 1},
        {"year": "2020"},
        {"year": True},
        {"authors": [["a"]]},
        {"pdfs": "x"},
        {"is_retracted": 1},
        {"x": ""},
    ],
)
def test_an_invalid_work_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a work cannot be read"):
        from_json("openalex", written)


def test_references_that_could_not_be_read_again_are_not_kept(library: Library) -> None:
    odd = ("", "10.1234/" + "x" * 600, "10.1234/a\nb")
    (id,) = put(library, work(openalex="W1", references=("W2", *odd)))
    assert works.references_of(library.database, id) == ["openalex W2"]
    assert library.check() == []


def test_no_work_cites_itself_and_circles_end(library: Library) -> None:
    one = work(openalex="W1", doi="10.1234/one", references=("W1", "10.1234/ONE", "W2"))
    other = work(title="Sleeping Otters", openalex="W2", references=("W2", "W1"))
    ids = put(library, one, other)
    assert [works.references_of(library.database, id) for id in ids] == [["openalex W2"], ["openalex W1"]]
    assert [works.citing(library.database, id) for id in ids] == [[ids[1]], [ids[0]]]


def test_references_are_known_by_their_form() -> None:
    assert list(map(reference_mark, ("W12", "10.1/X", "a" * 40, "2101.00001v2"))) == [
        "openalex W12", "doi 10.1/x", f"semanticscholar {'a' * 40}", "arxiv 2101.00001"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "read"),
    [
        ("UPDATE works SET said = replace(said, '\"title\"', 'title')", "get"),
        ("UPDATE works SET said = replace(said, 'openalex', 'nobody')", "get"),
        ("UPDATE works SET said = '{}'", "get"),
        ("UPDATE works SET version_of = 'no id'", "get"),
        ("UPDATE work_marks SET mark = 'doi 10.1/y' WHERE mark = 'doi 10.1/x'", "find"),
        ("UPDATE citations SET cited = 'W1'", "references"),
        ("UPDATE citations SET said_at = 'now'", "references"),
        ("UPDATE paper_works SET score = 5000", "paper"),
        ("UPDATE paper_works SET found_by = 'chance'", "paper"),
        ("UPDATE notices SET kind = 'rumour'", "notices"),
        ("UPDATE notices SET dated = 'May'", "notices"),
    ],
)
def test_an_invalid_row_is_an_error(library: Library, damage: str, read: str) -> None:
    (id,) = put(library, work(doi="10.1/x", is_retracted=True, references=("W1",)))
    database = library.database
    with database.transaction():
        works.link_paper(database, "p" * 64, id, "doi", 1.0)
    assert library.check() == []
    database.execute(damage)
    reads: dict[str, Callable[[], object]] = {
        "get": lambda: works.get(database, [id]),
        "find": lambda: works.with_mark(database, "doi 10.1/y"),
        "references": lambda: works.references_of(database, id),
        "paper": lambda: works.of_papers(database, ["p" * 64]),
        "notices": lambda: works.notices_of_works(database, [id]),
    }
    with pytest.raises(StoreDamaged):
        reads[read]()
    if read != "find":
        assert len(library.check()) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "rumour"}, {"dated": "May"}, {"link": "x" * 501}, {"link": "a\nb"}, {"source": "me"}, {"said_at": ""}],
)
def test_an_invalid_notice_is_refused(library: Library, wrong: dict[str, Any]) -> None:
    values = {"work": "0" * 16, "kind": "retraction", "dated": "", "link": "", "source": "crossref", "said_at": TIME}
    with pytest.raises(ValueError, match="a notice about a work"):
        works.add_notice(library.database, Notice(**{**values, **wrong}))
