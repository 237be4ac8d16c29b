"""What services say of works is the same on every computer: a copy that is kept up with Milvus."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.cluster.milvus_client import Milvus
from folio.commands import ingest
from folio.errors import StoreDamaged
from folio.paper_metadata import PersonName
from folio.store import citations, notices, works
from folio.store.library import Library
from folio.store.paper_store import PaperStore
from folio.store.work_rows import Notice
from folio.work import SourceName, Work, WorkAuthor
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.milvus import Killed, KilledAt, computer, lite_app, milvus_of

TITLE = "On the Sleep of Otters"


def work(source: SourceName = "openalex", title: str = TITLE, year: int | None = 2021, **more: Any) -> Work:
    return Work(source, title=title, authors=(WorkAuthor(PersonName("Byte", "Ada")),), year=year, **more)


@pytest.fixture(params=["local", "milvus"])
def computers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[HashingApp]]:
    """Two papers that nobody has read, and three computers; where the library is in a folder, these share it."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    small_papers(tmp_path / "papers")
    if request.param == "local":
        yield [hashing_app(tmp_path)] * 3
        return
    with lite_app(tmp_path, tmp_path / "papers") as app:
        yield [app, *(computer(app, tmp_path / f"computer {n}") for n in (1, 2))]


@pytest.fixture
def milvus(computers: list[HashingApp]) -> list[HashingApp]:
    if computers[0] is computers[1]:
        pytest.skip("only where there are copies")
    return computers


def put(app: HashingApp, *given: Work) -> list[str]:
    with closing(app.open_library(create=True)) as library, library.changing_works() as database:
        return works.put(database, given)


def everything(library: PaperStore) -> list[list[tuple[Any, ...]]]:
    """All tables about works, in the order in which lists follow them."""
    database = library.database
    tables = {
        "works": "id",
        "work_marks": "mark, work",
        "paper_works": "paper",
        "citations": "rowid",
        "notices": "rowid",
    }
    return [database.query(f"SELECT * FROM {table} ORDER BY {order}") for table, order in tables.items()]


def on_each(computers: list[HashingApp]) -> list[list[list[tuple[Any, ...]]]]:
    found = []
    for app in computers:
        with closing(app.open_library(create=True)) as library:
            found.append(everything(library))
    return found


def assert_same(computers: list[HashingApp]) -> list[list[tuple[Any, ...]]]:
    first, *others = on_each(computers)
    assert others == [first] * len(others)
    return first


def test_what_is_looked_up_on_one_computer_is_known_on_the_others(computers: list[HashingApp]) -> None:
    first, second, third = computers
    first.run()
    assert assert_same(computers) == [[], [], [], [], []]
    with closing(second.open_library()) as library:
        otters, ice = (paper.id for paper in library.papers())
        with library.changing_works() as database:
            (one, two) = works.put(
                database,
                [
                    work(openalex="W1", doi="10.1/otters", references=("W2", "https://doi.org/10.1/x")),
                    work(title="Ice", openalex="W2", is_retracted=True),
                ],
            )
            works.link_paper(database, otters, one, "doi", 1.0)
            works.link_paper(database, ice, two, "title", 0.9)
            works.link_paper(database, "e" * 64, two, "title", 0.9)  # not in the library
    with closing(third.open_library()) as library:
        assert [kept.work.doi for kept in works.of_paper(library.database, otters)] == ["10.1/otters"]
        assert citations.library_edges(library.database) == [(otters, ice)]
        assert citations.cited_papers(library.database, otters) == {ice}
        assert works.papers_of(library.database, two) == [ice]
        assert [paper.flag is not None for paper in library.papers_by_id([otters, ice])] == [False, True]
        assert [paper.flag is not None for paper in library.papers()] == [False, True]
        with library.changing_works() as database:  # the retraction was an error
            notices.drop(database, Notice(two, "retraction", "", "", "openalex", ""))
    with closing(first.open_library(create=True)) as library:
        assert [paper.flag for paper in library.papers()] == [None, None]
        library.drop(library.files()[1].path)
    with closing(second.open_library()) as library:
        assert citations.library_edges(library.database) == []
    assert [len(table) for table in assert_same(computers)] == [2, 5, 3, 2, 0]


def test_works_that_turn_out_to_be_one_are_one_everywhere(computers: list[HashingApp]) -> None:
    first, second, third = computers
    (one,) = put(first, work(title="A", doi="10.1/a", references=("W7", "W8")))
    (two,) = put(second, work(title="B", openalex="W2", references=("W9",), is_retracted=True))
    assert one != two
    assert_same(computers)
    (both,) = put(third, work("crossref", title="C", doi="10.1/a", openalex="W2"))
    kept, marks, _, cited, noted = assert_same(computers)
    assert [row[0] for row in kept] == [both]
    assert {row[1] for row in marks} == {both}
    assert {(row[0], row[1]) for row in cited} == {(both, f"openalex W{n}") for n in (7, 8, 9)}
    assert [row[0] for row in noted] == [both]


def test_lists_have_the_same_order_on_a_computer_that_saw_each_change_and_on_a_new_one(
    computers: list[HashingApp], tmp_path: Path
) -> None:
    first, second, third = computers
    for n, app in enumerate((first, second, first, second, first)):
        put(app, *(work(title=f"T{k} {n}", openalex=f"W{k}{n}", references=("W1", "W5")) for k in (3, 1, 2)))
        if n == 2:
            put(second, work(title="T1 0", openalex="W10", references=("W1", "W6", "W5")))
            assert_same([first, second])
    *_, cited, _ = assert_same([first, second, third])
    assert len(cited) == 31
    with closing(first.open_library(create=True)) as library:
        database = library.database
        citing = citations.citing(database, put(first, work(title="one", openalex="W1"))[0])
        assert len(citing) == 15


def test_what_services_say_outlives_a_rebuild_and_a_repair(computers: list[HashingApp]) -> None:
    first, second, third = computers
    first.run()
    put(second, work(openalex="W1", references=("W2",), abstract="long " * 30_000))  # several rows
    put(first, work(title="Other", openalex="W2"))
    before = assert_same(computers)
    for arguments in (("--repair", "--yes"), ("--rebuild", "--yes")):
        assert ingest.run(second, ingest.parser("ingest.py").parse_args(arguments)) == 0
        assert assert_same(computers) == before
    put(third, work(openalex="W1", abstract="short"))  # fewer rows than before
    assert assert_same(computers) != before


def test_all_works_are_copied_to_another_library_and_back(computers: list[HashingApp], tmp_path: Path) -> None:
    put(computers[0], work(openalex="W1", references=("W2", "W3"), is_retracted=True), work(title="B", openalex="W2"))
    with closing(computers[1].open_library(create=True)) as library:
        with library.changing_works() as database:
            works.link_paper(database, "e" * 64, works.with_mark(database, "openalex W1")[0].id, "title", 0.9)
        before, rows = everything(library), list(works.read_rows(library.database))
    with closing(Library(tmp_path / "other.sqlite", create=True)) as other:
        with other.changing_works() as database:
            works.insert_rows(database, rows)
        assert everything(other) == before
        back = list(works.read_rows(other.database))
    with closing(computers[2].open_library(create=True)) as library, library.changing_works() as database:
        works.insert_rows(database, back)
    assert assert_same(computers) == before


# Copies


def test_a_failure_in_the_middle_changes_nothing(milvus: list[HashingApp]) -> None:
    first, second, _ = milvus
    put(first, work(openalex="W1"))
    before = assert_same(milvus)
    sound = milvus_of(second)

    def fail(step: int) -> None:
        with closing(second.open_library(create=True)) as library:
            library._works.milvus = KilledAt(sound, step)  # type: ignore[attr-defined]
            with library.changing_works() as database:
                works.put(database, [work(title="Two", openalex="W2", references=("W1",))])
                if not step:
                    raise Killed

    for step in (0, 1, 2):
        with pytest.raises(Killed):
            fail(step)
        if step < 2:
            assert assert_same(milvus) == before
    # The documents were written, and not the stamp: the next change brings them to all.
    put(first, work(title="Three", openalex="W3"))
    assert [len(table) for table in assert_same(milvus)] == [3, 6, 0, 1, 0]


def test_computers_that_write_at_the_same_time_lose_nothing(milvus: list[HashingApp]) -> None:
    def look_up(number: int) -> None:
        for n in range(5):
            put(milvus[number], work(title=f"T{number}{n}", openalex=f"W{number}{n}", references=("W1",)))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(look_up, range(2)))
    kept, *_ = assert_same(milvus)
    assert len(kept) == 10


def test_a_computer_that_another_overtakes_is_read_all_the_same(milvus: list[HashingApp]) -> None:
    """Its documents have smaller numbers than what the others have already."""
    first, second, third = milvus
    put(first, work(title="One", openalex="W1", references=("W9",)))

    class Overtaken:
        def __init__(self, connection: Milvus) -> None:
            self._connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self._connection, name)

        def write(self, name: str, rows: list[dict[str, Any]]) -> None:
            if name == "folio_works":
                put(second, work(title="Two", openalex="W2", references=("W9",)))
                assert_same([second, third])
            self._connection.write(name, rows)

    with closing(first.open_library(create=True)) as library:
        library._works.milvus = Overtaken(milvus_of(first))  # type: ignore[attr-defined]
        with library.changing_works() as database:
            works.put(database, [work(title="Three", openalex="W3", references=("W9",))])
    *_, cited, _ = assert_same(milvus)
    assert len(cited) == 3


def test_a_computer_that_turns_to_another_library_forgets_the_works_of_the_first(
    milvus: list[HashingApp],
) -> None:
    first, second, _ = milvus
    put(first, work(openalex="W1"))
    assert_same(milvus)
    other = HashingApp(
        second.settings.model_copy(update={"MILVUS_PREFIX": "other", "RECORDS_URI": str(second.store_folder / "o")}),
        second.notice,
        second.hashing,
    )
    assert on_each([other]) == [[[], [], [], [], []]]
    put(other, work(title="Z", openalex="W9"))
    assert on_each([other]) != on_each([first])
    assert_same(milvus)


def test_works_that_were_changed_in_milvus_are_noticed_and_left_out_by_a_repair(milvus: list[HashingApp]) -> None:
    first, second, _ = milvus
    first.run()
    (one,) = put(first, work(openalex="W1"))
    put(first, work(title="Two", openalex="W2"))
    name, connection = "folio_works", milvus_of(first)
    (row,) = connection.rows(name, f'key == "work.{one}.0"', ["key", "changed", "part", "parts", "value"])
    for change in ({"value": row["value"].replace("Otters", "Ottars")}, {"value": "[]"}, {"parts": 2}):
        connection.write(name, [{**row, **change}])
        with (
            closing(second.open_library()) as library,
            pytest.raises(StoreDamaged, match="What services say of a work"),
        ):
            library.papers()
    assert ingest.run(second, ingest.parser("ingest.py").parse_args(("--repair", "--yes"))) == 0
    with closing(second.open_library()) as library:
        assert [row[0] for row in everything(library)[0]] != [one]
        assert len(everything(library)[0]) == 1


def test_a_collection_of_works_that_is_gone_is_named_and_begun_again_by_a_repair(milvus: list[HashingApp]) -> None:
    milvus[0].run()
    put(milvus[0], work(openalex="W1"))
    milvus_of(milvus[1]).drop("folio_works")
    with pytest.raises(StoreDamaged, match="are missing: folio_works"):
        milvus[1].open_library()
    assert ingest.run(milvus[1], ingest.parser("ingest.py").parse_args(("--repair", "--yes"))) == 0
    assert assert_same(milvus[1:]) == [[], [], [], [], []]
    put(milvus[2], work(openalex="W1"))
    assert len(assert_same(milvus)[0]) == 1


def test_a_work_is_kept_before_the_first_paper(tmp_path: Path) -> None:
    with lite_app(tmp_path, tmp_path / "papers") as app:
        with closing(app.open_library(create=True)) as library, library.changing_works() as database:
            works.put(database, [work(openalex="W1")])
        other = computer(app, tmp_path / "other")
        with closing(other.open_library(create=True)) as library:
            assert len(everything(library)[0]) == 1
