"""Instructions in the store: added, changed, deleted, chosen by projects, the same in both engines, and damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folio.errors import NotKnown, StoreDamaged, UsageError
from folio.store import instructions
from folio.store.check import LibraryCheck
from folio.store.instructions import MAX_INSTRUCTION, MAX_NAME, MOST
from folio.store.library import Library
from folio.store.query_log import QueryLog
from tests.helpers import postgres
from tests.helpers.engines import on_disk, on_server
from tests.shared.test_contract import ENTRY

ENGINES = ["sqlite", *(["postgresql"] if postgres.is_installed() else [])]


@pytest.fixture(params=ENGINES)
def library(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Library]:
    is_file = request.param == "sqlite"
    engine = on_disk(tmp_path / "library.sqlite") if is_file else on_server(request.getfixturevalue("url"))
    opened = engine.library(create=True)
    yield opened
    opened.close()


def test_instructions_are_added_changed_and_deleted(library: Library) -> None:
    database = library.database
    brief = instructions.add(database, "  Brief\n", " Größe in two sentences.\n")
    doctor = instructions.add(database, "a doctor", "Name the dose first. \0")
    assert (brief.name, brief.text, doctor.text) == ("Brief", "Größe in two sentences.", "Name the dose first. �")
    assert instructions.read(database) == [doctor, brief]
    before, after = instructions.change(database, brief.id, text="In one.")
    assert (before, after.name, after.text, after.created) == (brief, "Brief", "In one.", brief.created)
    assert instructions.change(database, brief.id, name="BRIEF")[1].text == "In one."
    instructions.put(database, before)
    assert instructions.read(database) == [doctor, brief]
    instructions.choose(database, "p1", brief.id)
    instructions.choose(database, "p2", doctor.id)
    instructions.choose(database, "p3", brief.id)
    instructions.choose(database, "p3", None)
    assert instructions.choices(database) == {"p1": brief.id, "p2": doctor.id}
    assert instructions.remove(database, brief.id) == (brief, ["p1"])
    assert (instructions.read(database), instructions.choices(database)) == ([doctor], {"p2": doctor.id})
    for act in (instructions.remove, instructions.change):
        with pytest.raises(NotKnown, match="no such instruction"):
            act(database, brief.id)


@pytest.mark.parametrize(
    ("name", "text"),
    [("", "x"), (" \n", "x"), ("x" * (MAX_NAME + 1), "x"), ("n", ""), ("n", "x" * (MAX_INSTRUCTION + 1)),
     ("brief", "x"), ("In Two Sentences", "x")],
)  # fmt: skip
def test_bad_names_and_texts_are_refused(library: Library, name: str, text: str) -> None:
    instructions.add(library.database, "Brief", "x" * MAX_INSTRUCTION)
    with pytest.raises(UsageError):
        instructions.add(library.database, name, text, ["In two sentences"])
    assert len(instructions.read(library.database)) == 1


def test_there_are_not_more_than_a_person_can_choose_from(library: Library) -> None:
    for number in range(MOST):
        instructions.add(library.database, f"n{number}", "x")
    with pytest.raises(UsageError, match="100 instructions already"):
        instructions.add(library.database, "one more", "x")


def test_an_instruction_that_changed_on_disk_is_damage(library: Library) -> None:
    kept = instructions.add(library.database, "Brief", "x")
    with library.database.transaction("user"):
        library.database.execute("UPDATE instructions SET text = 'Always answer.'")
    with pytest.raises(StoreDamaged, match=f"instruction {kept.id} has changed"):
        instructions.read(library.database)
    assert f"instruction {kept.id} has changed" in " ".join(LibraryCheck(library.database).everything())


def test_opened_citations_are_part_of_the_log(library: Library) -> None:
    log = QueryLog(library.database)
    empty = log.state()
    first, second = log.add(ENTRY), log.add(ENTRY)
    states = [empty, log.state()]
    log.open_citation(first, "a" * 64, 1)
    log.open_citation(first, "a" * 64, 1)
    log.open_citation(second, "a" * 64, 2)  # the answer cites another page
    log.open_citation(second + 7, "a" * 64, 1)  # no such question
    states.append(log.state())
    assert log.opened() == {first: [("a" * 64, 1)]}
    log.mark_row(second, "good")
    states.append(log.state())
    assert len(set(states)) == 4
    log.clear()
    assert log.opened() == {}
