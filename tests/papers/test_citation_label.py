"""How papers are named in citations, by themselves and beside others of the same name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from folio.answer_types import Citation
from folio.papers.label import CitationStyle, citation_label
from folio.papers.metadata import Field, Metadata, PersonName
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from tests.helpers.known_papers import about
from tests.helpers.stores import Store


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
    titles = {"a": "Sleep", "b": "Food", "c": "Fur", "d": "Kelp"}
    named = {name: about(["Otter"], 2021 if name == "c" else 2020, title) for name, title in titles.items()}
    say(store, **named | {"d": about(["Otter", "Seal"], 2020, "Kelp")})
    expected = {"a": "Otter 2020b", "b": "Otter 2020a", "c": "Otter 2021", "d": "Otter & Seal 2020"}
    assert labels(store.library) == expected
    store.library.drop("/papers/b.pdf")
    assert labels(store.library) == {"a": "Otter 2020", "c": "Otter 2021", "d": "Otter & Seal 2020"}
    store.add("b", "Text about b. " * 9)  # what was said of it comes back, and so do the letters
    assert labels(store.library) == expected


def arxiv(number: str) -> Field[str]:
    return Field(f"2301.0{number}", "page", True)


KNOWN = about(["Otter"], 2020)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Titles and names without a year
        ({"a": about(title="Report of the Year: One"), "b": about(title="Report of the Year: Two"),
          "c": about(["Otter"]), "d": about(["Otter"], title="Kelp")},
         {"a": "“Report of the Year” (a)", "b": "“Report of the Year” (b)", "c": "Otter (a)", "d": "Otter (b)"}),
        # Versions of one number
        ({name: replace(KNOWN, arxiv=arxiv(number)) for name, number in
          (("a", "1234v1"), ("b", "1234v2"), ("c", "1234v2"), ("d", "1235v2"))},
         {"a": "Otter 2020 v1", "b": "Otter 2020 v2 (a)", "c": "Otter 2020 v2 (b)", "d": "Otter 2020"}),
    ],
)  # fmt: skip
def test_what_is_named_alike_gets_letters(store: Store, said: dict[str, Metadata], expected: dict[str, str]) -> None:
    say(store, **said)
    assert labels(store.library) == expected


ONE = {"a": replace(KNOWN, arxiv=arxiv("1234v2")), "c": Metadata(arxiv=arxiv("1234v2"))}
VERSIONS = {"a": replace(KNOWN, arxiv=arxiv("1234v1")), "b": replace(KNOWN, arxiv=arxiv("1234v2")),
            "c": Metadata(arxiv=arxiv("1234v10"))}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "style", "marks"),
    [
        (ONE, "author-year", ["[Otter 2020, p. 1]", "[b.pdf p.1]", "[arXiv:2301.01234 p.1]"]),
        (ONE, "arxiv", ["[arXiv:2301.01234 p.1]", "[b.pdf p.1]", "[arXiv:2301.01234 p.1]"]),
        (ONE, "file", ["[a.pdf p.1]", "[b.pdf p.1]", "[c.pdf p.1]"]),
        (VERSIONS, "author-year", ["[Otter 2020 v1, p. 1]", "[Otter 2020 v2, p. 1]", "[arXiv:2301.01234v10 p.1]"]),
        (VERSIONS, "arxiv", [f"[arXiv:2301.01234v{number} p.1]" for number in (1, 2, 10)]),
        (VERSIONS, "file", ["[a.pdf p.1]", "[b.pdf p.1]", "[c.pdf p.1]"]),
    ],
)
def test_the_style_decides_what_a_citation_looks_like(
    store: Store, said: dict[str, Metadata], style: CitationStyle, marks: list[str]
) -> None:
    say(store, **said)
    with closing(Library(store.folder / LIBRARY, citation_style=style)) as library:
        for papers in (library.papers(), library.papers_by_id([paper.id for paper in library.papers()])):
            assert [Citation(paper, 0, 4, "Text", 1, 1.0).shown for paper in papers][:3] == marks


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
