"""How papers are named in citations, by themselves and beside others of the same name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.answer_types import Citation
from folio.citation_label import CitationStyle, citation_label
from folio.paper_metadata import AND_OTHERS, Field, Metadata, PersonName
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from tests.helpers.stores import Store


def about(families: Sequence[str] = (), year: int | None = None, title: str = "", *, sure: bool = True) -> Metadata:
    people = tuple(AND_OTHERS if family == "et al." else PersonName(family, "A.") for family in families)
    return Metadata(
        title=Field(title, "page", sure) if title else Field(""),
        authors=Field(people, "page", sure) if people else Field(()),
        year=Field(year, "page", sure) if year else Field(None),
    )


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        (about(["Ongaro"], 2014), "Ongaro 2014"),
        (about(["Ongaro", "Ousterhout"], 2014), "Ongaro & Ousterhout 2014"),
        (about(["Ghemawat", "Gobioff", "Leung"], 2003), "Ghemawat et al. 2003"),
        (about(["Ghemawat", "et al."], 2003), "Ghemawat et al. 2003"), (about(["van der Berg"]), "van der Berg"),
        (about(["李"], 2020), "李 2020"),
        (about(["World Health Organization and All of Its Many Parts"]), "World Health Organization and All of…"),
        (replace(about(["Ongaro"]), year=Field(2014, "file date")), "Ongaro"),
        (replace(about(["X"], 2014, "Paxos"), authors=Field((PersonName("X"),), "page")), "“Paxos” 2014"),
        (about(title="In Search of a Thing " + "Word " * 9), "“In Search of a Thing Word Word Word Word Word…”"),
        (about(title="Raft: A Consensus Algorithm"), "“Raft: A Consensus Algorithm”"),
        (about(title="The Raft Algorithm: A Longer Story of All of It"), "“The Raft Algorithm”"),
        (about(["Ongaro"], 2014, "A Title", sure=False), ""), (about(year=2014), ""),
        (about(["Ongaro.pdf"], 2014), ""),  # what ends like a file would pass for a citation of one
        (about(["Ongaro", "raft.PDF "]), ""), (about(title="raft v2.pdf", year=2014), ""),
        (about(title="The .pdf Format"), "“The .pdf Format”"), (Metadata(), ""),
    ],
)  # fmt: skip
def test_a_label(metadata: Metadata, label: str) -> None:
    assert citation_label(metadata) == label


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store")
    with closing(made.library):
        for name in ("a", "b", "c", "d"):
            made.add(name, f"Text about {name}. " * 9)
        yield made


def say(store: Store, **said: Metadata) -> None:
    files = {paper.file: paper.id for paper in store.library.papers()}
    for name, metadata in said.items():
        store.library.set_metadata(files[f"{name}.pdf"], "bibliography", metadata)


def labels(library: Library) -> dict[str, str]:
    """File -> label, as all papers are read, which is as each is."""
    papers = library.papers()
    assert papers == sorted(library.papers_by_id([paper.id for paper in papers]), key=lambda paper: paper.file)
    return {paper.file[0]: paper.label for paper in papers}


def test_papers_that_are_named_alike_get_letters_by_their_titles(store: Store) -> None:
    assert labels(store.library) == dict.fromkeys("abcd", "")
    say(
        store,
        a=about(["Otter"], 2020, "Sleep"),
        b=about(["Otter"], 2020, "Food"),
        c=about(["Otter"], 2021, "Fur"),
        d=about(["Otter", "Seal"], 2020, "Kelp"),
    )
    expected = {"a": "Otter 2020b", "b": "Otter 2020a", "c": "Otter 2021", "d": "Otter & Seal 2020"}
    assert labels(store.library) == expected
    store.library.drop("/papers/b.pdf")
    assert labels(store.library) == {"a": "Otter 2020", "c": "Otter 2021", "d": "Otter & Seal 2020"}
    store.add("b", "Text about b. " * 9)  # what was said of it comes back, and so do the letters
    assert labels(store.library) == expected


def test_titles_and_names_without_a_year_get_letters_too(store: Store) -> None:
    say(
        store,
        a=about(title="Report of the Year: One"),
        b=about(title="Report of the Year: Two"),
        c=about(["Otter"]),
        d=about(["Otter"], title="Kelp"),
    )
    assert labels(store.library) == {
        "a": "“Report of the Year” (a)",
        "b": "“Report of the Year” (b)",
        "c": "Otter (a)",
        "d": "Otter (b)",
    }


@pytest.mark.parametrize(
    ("style", "marks"),
    [
        ("author-year", ["[Otter 2020, p. 1]", "[b.pdf p.1]", "[arXiv:2301.01234 p.1]"]),
        ("arxiv", ["[arXiv:2301.01234 p.1]", "[b.pdf p.1]", "[arXiv:2301.01234 p.1]"]),
        ("file", ["[a.pdf p.1]", "[b.pdf p.1]", "[c.pdf p.1]"]),
    ],
)
def test_the_style_decides_what_a_citation_looks_like(store: Store, style: CitationStyle, marks: list[str]) -> None:
    arxiv = Field("2301.01234v2", "page", True)
    say(store, a=replace(about(["Otter"], 2020), arxiv=arxiv), c=Metadata(arxiv=arxiv))
    library = Library(store.folder / LIBRARY, citation_style=style)
    for papers in (library.papers(), library.papers_by_id([paper.id for paper in library.papers()])):
        cited = [Citation(paper, 0, 4, "Text", 1, 1.0) for paper in papers]
        assert [citation.shown for citation in cited][:3] == marks
    library.close()


@pytest.mark.parametrize(
    ("style", "marks"),
    [
        ("author-year", ["[Otter 2020 v1, p. 1]", "[Otter 2020 v2, p. 1]", "[arXiv:2301.01234v10 p.1]"]),
        ("arxiv", ["[arXiv:2301.01234v1 p.1]", "[arXiv:2301.01234v2 p.1]", "[arXiv:2301.01234v10 p.1]"]),
        ("file", ["[a.pdf p.1]", "[b.pdf p.1]", "[c.pdf p.1]"]),
    ],
)
def test_versions_of_a_paper_are_told_apart(store: Store, style: CitationStyle, marks: list[str]) -> None:
    known = about(["Otter"], 2020)
    first, second, tenth = (Field(f"2301.01234v{number}", "page", True) for number in (1, 2, 10))
    say(store, a=replace(known, arxiv=first), b=replace(known, arxiv=second), c=Metadata(arxiv=tenth))
    library = Library(store.folder / LIBRARY, citation_style=style)
    for papers in (library.papers(), library.papers_by_id([paper.id for paper in library.papers()])):
        assert [Citation(paper, 0, 4, "Text", 1, 1.0).shown for paper in papers][:3] == marks
    library.close()


def test_versions_of_one_number_get_letters(store: Store) -> None:
    known = about(["Otter"], 2020)
    first, second = (Field(f"2301.01234v{number}", "page", True) for number in (1, 2))
    say(
        store,
        a=replace(known, arxiv=first),
        b=replace(known, arxiv=second),
        c=replace(known, arxiv=second),
        d=replace(known, arxiv=Field("2301.01235v2", "page", True)),
    )
    assert labels(store.library) == {
        "a": "Otter 2020 v1",
        "b": "Otter 2020 v2 (a)",
        "c": "Otter 2020 v2 (b)",
        "d": "Otter 2020",
    }


def test_versions_are_found_by_their_index(store: Store) -> None:
    seen: list[str] = []
    say(store, a=replace(about(["Otter"], 2020), arxiv=Field("2301.01234v1", "page", True)))
    (file, *_) = store.library.files()
    database = store.library.database
    assert isinstance(database, SqliteDatabase)
    database._sqlite.set_trace_callback(seen.append)
    store.library.papers_by_id([file.sha256])
    database._sqlite.set_trace_callback(None)
    (sql,) = (sql for sql in seen if "alike AS" in sql)
    steps = [step for *_, step in database.query(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("USING INDEX papers_arxiv" in step for step in steps)
    assert any("USING INDEX metadata_arxiv" in step for step in steps)
    assert not [step for step in steps if re.match(r"SCAN (papers|metadata|p|m)\b", step)]
