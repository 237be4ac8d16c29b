"""What holds for a library in both engines: each step is done in SQLite and in PostgreSQL, and has the same result.

Without a PostgreSQL server, it is done in SQLite alone.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from folio.errors import (
    ChangedElsewhere,
    FolioError,
    IndexDamaged,
    NotKnown,
    StoreBusy,
    StoreError,
    StoreMissing,
    StoreRefused,
    UsageError,
)
from folio.papers.metadata import NO_METADATA, Field, Metadata, PersonName, Source, simple_metadata
from folio.papers.model import Chunk, Failure
from folio.papers.sections import SectionMap
from folio.papers.work import SourceName, Work, WorkAuthor
from folio.store import metadata, notes, projects, readings, works
from folio.store.conversations import Conversations
from folio.store.database import USER_VERSION, Database, added_since, storable
from folio.store.library import Library
from folio.store.note_places import NoteFilter, Order, listed, place_without_words, quote_at, quote_of
from folio.store.notes import Area, Note, NoteQuote
from folio.store.projects import Member
from folio.store.query_log import LogCounts, LogEntry, LoggedSource, QueryLog
from folio.store.readings import MovedFile
from folio.store.rows import PaperVector, text_crc, text_hash
from folio.store.works import Notice
from tests.helpers import postgres
from tests.helpers.answers import ANSWER
from tests.helpers.damage import at_once
from tests.helpers.engines import (
    SECTIONS,
    TEXT,
    Both,
    Engine,
    add,
    file,
    ids,
    on_disk,
    on_server,
    paper,
    title_of,
    vectors,
)
from tests.helpers.exhaustive import EXHAUSTIVE

MADE_WITH = {"embedder": "test", "dimension": "4"}
# In the order of their bytes: digits, capitals, small letters, accents, other scripts, emoji
NAMES = ("10.pdf", "2.pdf", "B.pdf", "_.pdf", "a.pdf", "b.pdf", "z.pdf", "ä.pdf", "é.pdf", "Ω.pdf", "中.pdf", "🦀.pdf")
LETTERS = "0123456789ab"
ENTRY = LogEntry(
    "2026-01-02T03:04:05+00:00", "Größe?", "Größe?", (2**63 - 1, 1), "5 m 🦀.",
    (LoggedSource("a" * 64, "a.pdf", 1, "5 m"),), {"total": 1012.75}, "by hand", "", 0.5, {"why": "ü"},
)  # fmt: skip


@pytest.fixture
def engines(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Engine, ...]:
    local = on_disk(tmp_path / "store" / "library.sqlite")
    return (local, on_server(request.getfixturevalue("url"))) if postgres.is_installed() else (local,)


@pytest.fixture
def both(engines: tuple[Engine, ...]) -> Iterator[Both]:
    """An empty library in both engines."""
    opened = Both(*engines)
    opened(lambda library: library.set_fingerprint(MADE_WITH))
    yield opened
    opened.close()


def _generation(library: Library) -> int:
    with library.reading() as stamp:
        return stamp.generation


# Papers


def test_a_library_that_is_missing_is_not_made_by_reading(engines: tuple[Engine, ...]) -> None:
    for engine in engines:
        with pytest.raises(StoreMissing):
            engine.library()


def test_a_new_library_is_empty(both: Both) -> None:
    assert both(lambda library: library.papers()) == []
    assert set(both(lambda library: library.counts()).values()) == {0}
    assert both(lambda library: list(library.vectors())) == []
    assert both(lambda library: library.chunk_ids()) == set()
    assert both(_generation) == 0
    both.require_equal()


def test_a_paper_is_added_with_all_its_data(both: Both) -> None:
    new = both(lambda library: add(library, "a.pdf", paper("a", fine=True)))
    (found,) = both(lambda library: library.papers())
    assert (found.id, found.file, found.title, found.chunks) == (new.id, "a.pdf", "Title a", 3)
    assert (found.authors, found.year, found.pages) == (("A. Uthor", "B. Writer"), 2024, new.pages)
    assert (found.page_count, found.length, found.problems) == (3, len(TEXT), ("odd",))
    assert (found.arxiv, found.key, found.sections) == ("2301.01234v2", "arXiv:2301.01234", SectionMap(SECTIONS))
    assert both(lambda library: library.files()) == [file("a.pdf", "a")]
    assert datetime.fromisoformat(both(lambda library: library.added())[new.id]).tzinfo is not None
    chunks = ids(new)
    assert both(lambda library: library.chunk_ids_of([new.id])) == sorted(chunks[:3])
    assert both(lambda library: library.chunk_ids(grain="fine")) == set(chunks[3:])
    assert both(lambda library: [library.chunk_count(), library.chunk_count("fine")]) == [3, 3]
    inside = both(lambda library: library.fine_in(chunks[:3]))
    assert [[fine.id for fine in inside[id]] for id in chunks[:3]] == [[chunks[3]], chunks[4:], []]
    assert both(lambda library: sorted(library.fine_ids_in(chunks[1:3]))) == sorted(chunks[4:])
    parents = [None, None, None, chunks[0], chunks[1], chunks[1]]
    kept = {
        id: Chunk(id, new.id, *span, parent) for id, span, parent in zip(chunks, new.chunk_spans, parents, strict=True)
    }
    assert both(lambda library: library.chunks(chunks)) == kept
    expected = vectors(TEXT[start:end] for start, end in new.chunk_spans)
    order = [5, 4, 3, 2, 2, 1, 0, 0]
    found_vectors = both(lambda library: library.vectors_of([chunks[place] for place in order]).tolist())
    assert found_vectors == expected[order].tolist()
    batches = both(lambda library: [found for found, _ in library.vectors(batch=2)])
    assert batches == [sorted(chunks[:3])[:2], sorted(chunks[:3])[2:]]
    texts = [TEXT[start:end] for start, end in new.chunk_spans]
    assert [text for _, _, text in both(lambda library: library.read_chunks(chunks))] == texts
    passages = both(lambda library: list(library.passages()))
    assert [(one.id, one.paper_id, one.title, one.text) for one in passages] == [
        (id, new.id, "Title a", text) for id, text in zip(chunks[:3], texts, strict=False)
    ]
    both.require_equal()
    both(lambda library: library.drop("/papers/a.pdf"))
    assert both(lambda library: [library.chunk_count(), library.chunk_count("fine")]) == [0, 0]
    assert both(lambda library: set(library.removed(0))) == set(chunks)
    both.require_equal()


def test_papers_are_replaced_linked_moved_and_dropped(both: Both) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: add(library, "b.pdf", paper("b", TEXT.upper())))
    both(lambda library: library.link([file("copy.pdf", "a")]))
    both(lambda library: library.link([file("a.pdf", "b"), file("b.pdf", "a")]))  # they swapped their names
    assert [(one.file, one.id[0]) for one in both(lambda library: library.papers())] == [("a.pdf", "b"), ("b.pdf", "a")]
    both(lambda library: add(library, "a.pdf", paper("c", TEXT + "c", fine=True)))
    both(lambda library: library.link([file("moved.pdf", "a")], ["/papers/b.pdf"]))
    both(lambda library: library.drop("/papers/copy.pdf"))
    both(lambda library: library.drop("/papers/none.pdf"))
    assert [one.file for one in both(lambda library: library.papers())] == ["a.pdf", "moved.pdf"]
    assert both(_generation) == 8
    both(lambda library: library.drop("/papers/a.pdf"))
    assert both(lambda library: library.counts()) == {
        "papers": 1, "files": 1, "failures": 0, "chunks": 3, "vectors": 3, "removed": 9
    }  # fmt: skip
    both(lambda library: add(library, "a.pdf", paper("c", TEXT + "c")))  # it comes back
    assert both(lambda library: sorted(library.chunk_ids(9))) == sorted(ids(paper("c", TEXT + "c")))
    assert both(lambda library: library.removed(9)) == []
    assert both(lambda library: sorted(library.removed(8))) == sorted(ids(paper("c", TEXT + "c", fine=True)))
    both.require_equal()


def test_the_order_is_that_of_bytes(both: Both) -> None:
    for name, letter in sorted(zip(NAMES, LETTERS, strict=True), key=lambda pair: pair[1], reverse=True):
        both(lambda library, name=name, letter=letter: add(library, name, paper(letter, TEXT + letter)))  # type: ignore[misc]
        both(lambda library, name=name, letter=letter: library.link([file(f"{name}.pdf", letter)]))  # type: ignore[misc]
        failure = Failure(file(f"f{name}", letter), "It is torn.", "Glue it.")
        both(lambda library, failure=failure: library.record_failure(failure))  # type: ignore[misc]
    assert [one.file for one in both(lambda library: library.papers())] == list(NAMES)
    assert [one.file.name for one in both(lambda library: library.failures())] == [f"f{name}" for name in NAMES]
    added = [name for each in NAMES[::-1] for name in (each, f"{each}.pdf")]
    assert [one.name for one in both(lambda library: library.files())] == added
    both.require_equal()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83e\udd80!", "🦀!"),  # a pair of surrogates is a character
        ("𝔽 over 🦀 café", "𝔽 over 🦀 café"),
        ("\u202ea\x01\x1f\u2028b", "\u202ea\x01\x1f\u2028b"),
        ("%s %% :x ::y \\ ' \" $1 {}", "%s %% :x ::y \\ ' \" $1 {}"),
    ],
    ids=["NUL", "surrogate", "a pair of surrogates", "beyond the BMP", "controls", "signs of SQL"],
)
def test_any_text_is_kept_as_far_as_it_can_be(both: Both, text: str, kept: str) -> None:
    new = replace(paper("a", text), spans=((0, len(kept)), (1, len(kept))))
    said = simple_metadata(text, [text], 2020, origin="person")
    pair = vectors([kept, kept[1:]])
    both(lambda library: library.add(new, file("a.pdf", "a"), [7, 8], pair, added="2026-01-02T03:04:05+00:00"))
    both(lambda library: library.record_failure(Failure(file("b.pdf", "b"), text, text)))
    assert both(lambda library: library.text("a" * 64, 0, 99)) == kept
    assert [read for _, _, read in both(lambda library: library.read_chunks([7, 8]))] == [kept, kept[1:]]
    assert [one.text for one in both(lambda library: list(library.passages()))] == [kept, kept[1:]]
    assert both(lambda library: library.failures())[0].happened == kept

    def entry(of: str, in_json: str) -> LogEntry:
        source = LoggedSource(in_json, in_json, 1, in_json)
        return LogEntry(ENTRY.asked, of, of, (1,), of, (source, source), {in_json: 1.0}, of, trace={"why": in_json})

    both(lambda library: _log(library).add(entry(text, text)))
    assert both(lambda library: _log(library).last()) == entry(kept, text if "\0" in text else kept)
    if any("\ud800" <= character <= "\udfff" for character in text):
        with pytest.raises(StoreRefused):
            both(lambda library: library.set_metadata("a" * 64, "person", said))
    else:
        both(lambda library: library.set_metadata("a" * 64, "person", said))
        assert both(lambda library: library.papers()[0].title) == text
    both.require_equal()


def test_a_name_that_cannot_be_kept_is_refused(both: Both) -> None:
    name = "a\udce9.pdf"  # no UTF-8
    with pytest.raises(StoreRefused):
        both(lambda library: add(library, name, paper("a")))
    assert both(lambda library: library.papers()) == []
    with pytest.raises(StoreRefused):
        both(lambda library: library.record_failure(Failure(file(name, "a"), "Torn.", "Glue.")))
    both.require_equal()


def test_very_long_texts_are_kept(both: Both) -> None:
    rng = np.random.default_rng(5)  # what can be compressed is short in an index
    long = "".join(map(chr, rng.integers(0x4E00, 0x9FFF, 4000)))
    about = Metadata(
        title=Field(long, "page", True),
        authors=Field((PersonName(long, long),), "page", True),
        doi=Field("10.1/" + long, "page", True),
        arxiv=Field(long, "page", True),
    )
    new = paper("a", long * 300, about)
    both(lambda library: add(library, "a.pdf", new))
    both(lambda library: library.set_metadata("a" * 64, "person", about))
    path = "d/" + long[:800]  # 2,402 bytes
    both(lambda library: add(library, path, paper("b")))
    both(lambda library: library.record_failure(Failure(file(path + "c", "c"), long, long)))
    both(lambda library: QueryLog(library.database).add(replace(ENTRY, question=long, answer=long * 10)))
    assert both(lambda library: library.papers_by_id(["a" * 64]))[0].title == long
    assert both(lambda library: library.text("a" * 64, 0, 10**7)) == long * 300
    both(lambda library: library.set_metadata("c" * 64, "bibliography", about))
    both(lambda library: _put(library, work(title=long, doi="10.1/" + long[:400], references=("10.1/" + long[:490],))))
    both.require_equal()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda new: (new, [*ids(new)[:2], ids(new)[0]]),  # an id twice
        lambda new: (new, [*ids(new)[:2], 2**70]),
        lambda new: (replace(new, id="a" * 64), ids(new)),  # a paper that is there
    ],
    ids=["twice", "too large", "the same paper"],
)
def test_a_refused_paper_leaves_nothing_behind(both: Both, wrong: Callable[[Any], Any]) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    new, chunk_ids = wrong(paper("b", TEXT + "b"))
    found = vectors(new.text[start:end] for start, end in new.spans)
    with pytest.raises(StoreRefused):
        both(lambda library: library.add(new, file("b.pdf", "b"), chunk_ids, found))
    with pytest.raises(ValueError, match="zip"):  # fewer vectors than passages
        both(lambda library: library.add(paper("c"), file("c.pdf", "c"), ids(paper("c")), found[:2]))
    assert both(_generation) == 1
    assert both(lambda library: [one.id for one in library.papers()]) == ["a" * 64]
    both.require_equal()


def test_unknown_ids_are_skipped_or_named(both: Both) -> None:
    new = both(lambda library: add(library, "a.pdf", paper("a")))
    for unknown in (5, 2**63 - 1, -(2**63)):
        assert list(both(lambda library, id=unknown: library.chunks([id, ids(new)[0]]))) == [ids(new)[0]]  # type: ignore[misc]
    assert both(lambda library: library.chunks([])) == {}
    assert both(lambda library: library.text("9" * 64, 0, 5)) == ""
    both(lambda library: add(library, "b.pdf", paper("b", TEXT + "b")))
    unknown_too = ["b" * 64, "9" * 64, "a\0", "\ud800", "a" * 64]
    assert [one.id[0] for one in both(lambda library: library.papers_by_id(unknown_too))] == ["b", "a"]
    assert both(lambda library: library.chunk_ids_of(["9" * 64])) == []
    assert both(lambda library: library.text("\ud800", 0, 5)) == ""
    assert both(lambda library: QueryLog(library.database).entry(2**63 - 1)) is None
    with pytest.raises(IndexDamaged, match="names a passage that is not in the library: 17"):
        both(lambda library: library.vectors_of([ids(new)[0], 17]))


# Notes


class Written:
    """The time and the id of the next note: the same in both engines."""

    number = 0

    def next(self) -> None:
        self.number += 1


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    made = Written()
    monkeypatch.setattr(notes, "_now", lambda: f"2026-01-02T03:04:{made.number:02}.000+00:00")
    monkeypatch.setattr(secrets, "token_hex", lambda size: f"{made.number:0{2 * size}x}")
    return made


def _note(both: Both, written: Written, letter: str, *words: str, **given: Any) -> Note:
    """A new note on these words of a paper."""
    written.next()

    def add_note(library: Library) -> Note:
        (of,) = library.papers_by_id([letter * 64])
        return notes.add(library.database, [quote_of(library, of, each) for each in words], **given)

    return both(add_note)


def _places(both: Both) -> list[tuple[str, str, int, str]]:
    """State, paper, start and words of every quote: "removed" for a quote of a removed paper."""

    def read(library: Library) -> list[tuple[str, str, int, str]]:
        return [
            (each.place, each.quote.paper[0], each.quote.start, each.quote.quote)
            for note in reversed(listed(library, order="created"))
            for each in note.quotes
        ]

    return both(read)


def test_a_note_is_kept_changed_and_deleted(both: Both, written: Written) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: add(library, "b.pdf", paper("b", TEXT + "b")))
    first = _note(both, written, "a", "second  PAGE", "third", colour="green", text="Is it so?\n\nYes.")
    quote = first.quotes[0]
    assert (quote.start, quote.end, quote.quote, quote.page, quote.label) == (21, 32, "second page", 2, "2")
    assert (quote.before, quote.after) == (TEXT[:21], TEXT[32:])
    assert (quote.title, quote.file, quote.state) == ("Title a", "a.pdf", "here")
    assert first.quotes[1].label == "3"
    second = _note(both, written, "b", "ünï 🦀", statement="Crabs.")
    assert both(lambda library: notes.read(library.database)) == [first, second]
    assert both(lambda library: notes.require(library.database, second.id)) == second
    for wanted, expected in (
        ({"paper": "b" * 64}, [second]),
        ({"colour": "green"}, [first]),
        ({"colour": ""}, [second]),
        ({"ids": [second.id, "0" * 16]}, [second]),
        ({"ids": [], "colour": "pink"}, []),
    ):
        assert both(lambda library, wanted=wanted: notes.read(library.database, **wanted)) == expected  # type: ignore[misc]
    assert both(lambda library: [notes.count(library.database, letter * 64) for letter in "abc"]) == [1, 1, 0]
    before = both(lambda library: notes.state(library.database))
    written.next()
    changed = both(lambda library: notes.change(library.database, first.id, text="No."))
    assert changed == (first, replace(first, text="No.", updated="2026-01-02T03:04:03.000+00:00"))
    again = both(lambda library: notes.change(library.database, first.id, colour=""))
    assert (again[0], again[1].colour) == (changed[1], "")
    assert both(lambda library: notes.state(library.database)) != before
    with pytest.raises(ChangedElsewhere):  # its colour is another one by now
        both(lambda library: notes.undo_change(library.database, *changed))
    for change in (again, changed, changed):
        both(lambda library, change=change: notes.undo_change(library.database, *change))  # type: ignore[misc]
    assert both(lambda library: notes.state(library.database)) == before
    assert both(lambda library: notes.read(library.database)) == [first, second]
    both.require_equal()
    assert both(lambda library: notes.remove(library.database, first.id)) == first
    for _ in range(2):
        both(lambda library: notes.restore(library.database, first))
    assert both(lambda library: notes.read(library.database)) == [first, second]
    both.require_equal()
    both(lambda library: notes.remove(library.database, first.id))
    assert both(lambda library: library.database.query("SELECT DISTINCT note FROM note_quotes")) == [(second.id,)]
    for act in (notes.remove, notes.require, notes.change):
        with pytest.raises(NotKnown):
            both(lambda library, act=act: act(library.database, first.id))  # type: ignore[misc]
    both.require_equal()


def test_a_project_is_made_changed_and_deleted(
    both: Both, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "_now", lambda: f"2026-01-02T03:04:{written.number:02}.000+00:00")
    rule = projects.rule_item({"tag": ["b", "a", "a"], "year": ["2015-"], "author": []})
    assert (rule, projects.rule_of(rule)) == (
        '{"tag": ["a", "b"], "year": ["2015-"]}',
        {"tag": ("a", "b"), "year": ("2015-",)},
    )

    def make(name: str) -> projects.Project:
        written.next()
        return both(lambda library: projects.add(library.database, name, "", [Member("rule", rule)]))

    first, second = make(" Sëa\n of ice "), make("Land")
    assert (first.name, first.rules, second.name) == ("Sëa of ice", [projects.rule_of(rule)], "Land")
    assert both(lambda library: projects.read(library.database)) == [second, first]
    for name in ("land", "LAND ", "", " \n", "x" * 201):
        with pytest.raises(UsageError):
            both(lambda library, name=name: projects.add(library.database, name))  # type: ignore[misc]
    before = both(lambda library: projects.state(library.database))
    written.next()
    renamed = both(lambda library: projects.change(library.database, first.id, name="Ice", about="Why\0?"))
    assert (renamed[0], renamed[1].name, renamed[1].about) == (first, "Ice", "Why\ufffd?")
    added, gone = both(
        lambda library: projects.change_members(
            library.database,
            first.id,
            added=[Member("paper", "a" * 64, "A"), Member("rule", rule), Member("excluded", "b" * 64)],
            removed=[Member("note", "n"), Member("rule", projects.rule_item({"tag": ["c"]}))],
        )
    )
    assert ([each.item for each in added], gone) == (["a" * 64, "b" * 64], [])
    assert both(lambda library: projects.state(library.database)) != before
    _, swapped = both(
        lambda library: projects.change_members(library.database, first.id, added=[Member("paper", "b" * 64)])
    )
    assert [(each.kind, each.item) for each in swapped] == [("excluded", "b" * 64)]
    both(lambda library: _followed(library, "a", "b"))
    now = both(lambda library: projects.require(library.database, first.id))
    assert (now.items("paper"), now.items("excluded"), now.items("rule")) == (["b" * 64], [], [rule])
    assert both(lambda library: projects.projects_of(library.database, "paper", "b" * 64)) == [now]
    both(lambda library: projects.undo_change(library.database, *renamed))
    assert both(lambda library: projects.require(library.database, first.id)).name == "Sëa of ice"
    assert both(lambda library: projects.remove(library.database, first.id)).items("paper") == ["b" * 64]
    assert both(lambda library: library.database.query("SELECT DISTINCT project FROM project_members")) == [
        (second.id,)
    ]
    for act in (projects.remove, projects.require, projects.change, projects.change_members):
        with pytest.raises(NotKnown):
            both(lambda library, act=act: act(library.database, first.id))  # type: ignore[misc]
    for _ in range(2):
        both(lambda library: projects.restore(library.database, now))
    assert both(lambda library: projects.require(library.database, first.id)) == now
    assert both(lambda library: library.check()) == []
    both.require_equal()


def _followed(library: Library, old: str, new: str) -> None:
    with library.database.transaction("user"):
        projects.follow(library.database, old * 64, new * 64)


@pytest.mark.parametrize("text", ["a\0b\ud800", "\u202e\x1b]0;x\x07", "<b>]]></b> {} %s :x '", "ب" * 9_990, "\ufffe"])
def test_any_text_of_a_note_is_kept(both: Both, written: Written, text: str) -> None:
    new = paper("a", f"{storable(text)} is {storable(text)}")
    both(lambda library: add(library, storable(text).replace("/", "")[:50] + ".pdf", new))

    def add_note(library: Library) -> Note:
        (of,) = library.papers_by_id([new.id])
        return notes.add(library.database, [quote_at(library, of, 0, of.length)], text=text, statement=text)

    kept = both(add_note)
    assert (kept.text, kept.quotes[0].quote) == (storable(text), new.text)
    assert both(lambda library: [each.note for each in listed(library)]) == [kept]
    both.require_equal()


def test_places_are_found_again_in_a_text_that_was_read_again(both: Both, written: Written) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    _note(both, written, "a", "The second page")
    _note(both, written, "a", "And the third one")
    assert _places(both) == [("here", "a", 17, "The second page"), ("here", "a", 45, "And the third one")]

    def read_as(text: str) -> None:
        both(lambda library: library.drop("/papers/a.pdf"))
        both(lambda library: add(library, "a.pdf", paper("a", text)))

    both(lambda library: library.drop("/papers/a.pdf"))
    assert [place[0] for place in _places(both)] == ["removed", "removed"]
    read_as(TEXT)
    assert [place[0] for place in _places(both)] == ["here", "here"]
    read_as("The se-\ncond page came first. And the third one: gone?" + TEXT[-30:])
    assert _places(both) == [
        ("moved", "a", 0, "The se-\ncond page"),
        ("moved", "a", 59, "And the third one"),
    ]  # of two, the one with the same words around it
    read_as("And the third one")
    assert _places(both) == [("lost", "a", 0, "The se-\ncond page"), ("moved", "a", 0, "And the third one")]
    read_as(TEXT)
    assert _places(both) == [("moved", "a", 17, "The second page"), ("moved", "a", 45, "And the third one")]
    both.require_equal()


def test_places_without_words_outlive_another_text_and_a_new_version(both: Both, written: Written) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    area = (72.0, 90.5, 300.0, 200.0)

    def write(library: Library, page: int, on: Area | None) -> None:
        (of,) = library.papers_by_id(["a" * 64])
        notes.add(library.database, [place_without_words(library, of, page, on)])

    for page, on in ((0, None), (2, None), (2, area), (3, None)):
        written.next()
        both(lambda library, page=page, on=on: write(library, page, on))  # type: ignore[misc]

    def places() -> list[tuple[str, str, int, Area | None]]:
        def read(library: Library) -> list[tuple[str, str, int, Area | None]]:
            quotes = [note.quotes[0] for note in reversed(listed(library, order="created"))]
            return [(each.place, each.quote.paper[0], each.quote.page, each.quote.area) for each in quotes]

        return both(read)

    assert places() == [("here", "a", 0, None), ("here", "a", 2, None), ("here", "a", 2, area), ("here", "a", 3, None)]
    both.require_equal()
    # In the newer version the text of page 2 is on page 3.
    both(lambda library: add(library, "a.pdf", paper("b", f"It has a much longer first page. {TEXT}")))
    newer = [("here", "b", 0, None), ("moved", "b", 3, None), ("moved", "b", 3, area), ("here", "b", 3, None)]
    assert places() == newer
    assert places() == newer
    both.require_equal()


def test_what_was_found_is_stored(both: Both, written: Written) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    note = _note(both, written, "a", "The second page")
    both(lambda library: library.drop("/papers/a.pdf"))
    both(lambda library: add(library, "a.pdf", paper("a", "No. " + TEXT)))
    _places(both)
    (stored,) = both(lambda library: notes.require(library.database, note.id)).quotes
    assert (stored.state, stored.start, stored.text_crc) == ("moved", 21, text_crc("No. " + TEXT))
    assert (stored.before, stored.after) == (("No. " + TEXT)[:21], TEXT[32:])


def test_a_new_version_of_a_file_has_the_notes_of_the_old_one(both: Both, written: Written) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: library.link([file("copy.pdf", "a")]))
    _note(both, written, "a", "The second page")
    both(lambda library: add(library, "a.pdf", paper("b", "New. " + TEXT)))
    assert _places(both) == [("here", "a", 17, "The second page")]  # its paper is still there
    both(lambda library: add(library, "copy.pdf", paper("c", "Newer. " + TEXT)))
    assert _places(both) == [("moved", "c", 24, "The second page")]
    other = Metadata(title=Field("Quite another thing", "page", True))
    both(lambda library: add(library, "copy.pdf", paper("d", "On birds of the sea and the shore.", other)))
    assert _places(both) == [("removed", "c", 24, "The second page")]
    both(lambda library: add(library, "c.pdf", paper("c", "Newer. " + TEXT)))
    assert _places(both) == [("moved", "c", 24, "The second page")]
    both.require_equal()


def test_a_library_of_an_older_version_gets_the_tables_that_it_lacks(both: Both, engines: tuple[Engine, ...]) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: QueryLog(library.database).add(ENTRY))
    both.require_equal()
    tables = re.findall(r"CREATE TABLE (\w+)", added_since(1))
    for engine, library in zip(engines, both.libraries, strict=True):
        for table in reversed(tables):
            library.database.execute(f"DROP TABLE {table}")
        library.database.execute("UPDATE kept SET value = '1' WHERE key = 'version'")
        if engine.name == "sqlite":
            library.database.execute("PRAGMA user.user_version = 1")
        library.close()
        at_once(3, lambda _, engine=engine: engine.library().close())  # type: ignore[misc]
    both.libraries = [engine.library() for engine in engines]
    both.require_equal()
    assert both(lambda library: QueryLog(library.database).counts().questions) == 1
    sql = "SELECT value FROM kept WHERE key = 'version'"
    assert both(lambda library: library.database.query(sql)) == [(str(USER_VERSION),)]


def test_a_note_outlives_the_conversation_of_its_statement(both: Both, engines: tuple[Engine, ...]) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    for engine, library in zip(engines, both.libraries, strict=True):
        with closing(Conversations(partial(engine.connect, False))) as conversations:
            conversation = conversations.begin()
            conversations.add(conversation, {"answer": "x"}, ANSWER, None)
            (of,) = library.papers()
            quotes = [quote_of(library, of, "third")]
            note = notes.add(library.database, quotes, statement="So.", conversation=conversation, turn=1)
            assert (note.conversation, note.turn) == (conversation, 1)
            gone = notes.add(library.database, quotes, statement="So.", conversation="not stored", turn=1)
            assert (gone.conversation, gone.turn) == (None, None)
            removed = conversations.remove(conversation)
            assert notes.require(library.database, note.id) == replace(note, conversation=None, turn=None)
            conversations.restore(removed)
            assert notes.require(library.database, note.id) == note
        assert library.check() == []


def test_several_write_notes_at_once(both: Both, engines: tuple[Engine, ...]) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    for engine, library in zip(engines, both.libraries, strict=True):
        (of,) = library.papers()
        quote = quote_of(library, of, "third")
        first = notes.add(library.database, [quote])

        def write(number: int, engine: Engine = engine, quote: NoteQuote = quote, first: Note = first) -> None:
            with closing(engine.library()) as other:
                for each in range(5):
                    notes.add(other.database, [quote], text=f"{number} {each}")
                    notes.change(
                        other.database, first.id, text="T" if number else None, colour=None if number else "pink"
                    )

        at_once(2, write)
        texts = sorted(note.text for note in notes.read(library.database))
        assert texts == sorted(["T", *(f"{number} {each}" for number in range(2) for each in range(5))])
        assert notes.require(library.database, first.id).colour == "pink"
        assert library.check() == []


def test_notes_are_found_by_words_and_sorted(both: Both, written: Written) -> None:
    both(lambda library: add(library, "b.pdf", paper("b", TEXT + "b", simple_metadata("Åland otters"))))
    both(lambda library: add(library, "a.pdf", paper("a", TEXT, simple_metadata("Bees"))))
    _note(both, written, "a", "third one", text="Café?")
    _note(both, written, "b", "second", statement="Statement")
    _note(both, written, "a", "first")
    written.next()
    both(lambda library: notes.change(library.database, f"{1:016x}", colour="blue"))

    def numbers(order: Order = "place", **wanted: Any) -> list[int]:
        return both(lambda library: [int(one.note.id, 16) for one in listed(library, NoteFilter(**wanted), order)])

    assert numbers("place") == [2, 3, 1]
    assert numbers("created") == [3, 2, 1]
    assert numbers("updated") == [1, 3, 2]
    assert numbers("paper") == [2, 1, 3]
    assert numbers(query="cafe THIRD") == [1]
    assert numbers(query="state") == [2]
    assert numbers(query="bees") == [3, 1]
    assert numbers(query="bees second") == []
    assert numbers(ids=(f"{3:016x}", f"{1:016x}")) == [3, 1]
    with pytest.raises(NotKnown):
        numbers(ids=("0" * 16,))


# Snapshots and transactions


def test_a_snapshot_does_not_change_while_another_connection_writes(both: Both, engines: tuple[Engine, ...]) -> None:
    old = both(lambda library: add(library, "a.pdf", paper("a")))
    for engine, library in zip(engines, both.libraries, strict=True):
        with closing(engine.library()) as reader:
            with reader.reading() as stamp:
                add(library, "a.pdf", paper("b", TEXT.upper()))
                library.set_metadata("a" * 64, "person", simple_metadata("Other"))
                with reader.reading() as inner:
                    assert inner == stamp
                assert [one.title for one in reader.papers()] == ["Title a"]
                assert reader.chunk_ids() == set(ids(old))
                assert reader.text(old.id, 0, 9) == "The first"
                assert [found for found, _ in reader.vectors()] == [sorted(ids(old))]
                with pytest.raises(StoreError):
                    reader.drop("/papers/a.pdf")
            with reader.reading() as later:
                assert (later.epoch, later.generation) == (stamp.epoch, stamp.generation + 1)
                assert [one.id[0] for one in reader.papers()] == ["b"]
    both.require_equal()


def test_an_error_inside_a_snapshot_or_a_transaction_ends_it(both: Both) -> None:
    def fail(library: Library, in_transaction: bool) -> None:
        with library.database.transaction() if in_transaction else library.reading():
            if in_transaction:
                library.database.execute("DELETE FROM papers")
            raise LookupError

    both(lambda library: add(library, "a.pdf", paper("a")))
    for in_transaction in (False, True):
        with pytest.raises(LookupError):
            both(lambda library, kind=in_transaction: fail(library, kind))  # type: ignore[misc]
        assert not both(lambda library: library.database.in_snapshot)
    both(lambda library: add(library, "b.pdf", paper("b")))
    assert both(_generation) == 2
    both.require_equal()


_PARTS = ("library", "user", "both")


@pytest.mark.parametrize(("held", "wanted"), list(product(_PARTS, _PARTS)))
def test_a_transaction_keeps_others_from_what_it_may_change(
    both: Both, engines: tuple[Engine, ...], held: Any, wanted: Any
) -> None:
    def insert(library: Library, wait_s: float) -> None:
        with library.database.transaction(wanted, wait_s):
            library.database.insert("kept" if wanted == "user" else "meta", [{"key": "new", "value": ""}])

    for engine, library in zip(engines, both.libraries, strict=True):
        with closing(engine.connect(False)) as other, other.transaction(held):
            began = time.monotonic()
            if {held, wanted} == {"library", "user"}:
                insert(library, 0.2)
            else:
                with pytest.raises(StoreBusy):
                    insert(library, 0.2)
                assert 0.1 < time.monotonic() - began < 25  # and not as long as a command waits
    both.require_equal()


def test_another_transaction_is_waited_for(both: Both, engines: tuple[Engine, ...]) -> None:
    for engine, library in zip(engines, both.libraries, strict=True):
        with closing(engine.connect(False)) as other:
            ready = threading.Event()

            def hold(other: Database = other, ready: threading.Event = ready) -> None:
                with other.transaction():
                    ready.set()
                    time.sleep(0.2)

            thread = threading.Thread(target=hold)
            thread.start()
            ready.wait()
            add(library, "a.pdf", paper("a"))
            thread.join()
    both.require_equal()


# What is kept of papers


def test_pending_vectors_are_recalled_until_their_paper_is_added(both: Both) -> None:
    new = paper("a")
    digests = [text_hash(TEXT[start:end]) for start, end in new.spans]
    fresh = np.asarray([[1, 2, 3, 4]] * 4, dtype=np.float32)
    both(lambda library: library.remember([*digests, text_hash("other")], fresh))
    both(lambda library: library.remember(digests[:1], 2 * fresh[:1]))
    assert both(lambda library: library.recall(digests)[digests[0]].tolist()) == [2, 4, 6, 8]
    both(lambda library: add(library, "a.pdf", new))
    landed = both(lambda library: [row.tolist() for row in library.recall([digests[1], digests[1]]).values()])
    assert landed == vectors([TEXT[10:43]]).tolist()
    assert both(lambda library: sorted(library.recall([*digests, text_hash("other"), "0"]))) == sorted(
        [*digests, text_hash("other")]
    )
    both(lambda library: library.drop("/papers/a.pdf"))
    assert both(lambda library: list(library.recall(digests))) == []
    wanted = [text_hash("other"), text_hash("three")]
    assert both(lambda library: [row.tolist() for row in library.recall(wanted).values()]) == [[1, 2, 3, 4]]
    both(lambda library: library.forget_pending())
    assert both(lambda library: library.recall([text_hash("other")])) == {}
    whole = {"a" * 64: PaperVector(text_hash("whole"), vectors(["whole"])[0])}
    with pytest.raises(StoreRefused):  # of a paper that is not there
        both(lambda library: library.set_paper_vectors(whole))
    both(lambda library: add(library, "a.pdf", new))
    both(lambda library: library.set_paper_vectors(whole))
    assert both(lambda library: library.papers_stamp()[1]) > 0
    both.require_equal()


def test_what_people_say_stays_and_comes_back_and_is_inherited(both: Both) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: add(library, "b.pdf", paper("b", TEXT + "b")))
    said = simple_metadata("Äpfel", ["Ada Byte"], 2021, origin="person")
    assert both(lambda library: library.change_metadata("a" * 64, "person", lambda _: said))
    assert not both(lambda library: library.change_metadata("a" * 64, "person", lambda before: before))
    both(lambda library: library.change_metadata("a" * 64, "person", lambda said: replace(said, year=_said(1999))))
    both(lambda library: library.change_metadata("a" * 64, "person", lambda said: replace(said, doi=_said("10.1/a"))))
    assert both(lambda library: library.metadata_layers("a" * 64)) == {
        "pdf": paper("a").metadata,
        "person": replace(said, year=_said(1999), doi=_said("10.1/a")),
    }
    assert both(_generation) == 3  # another year makes no other index
    both(lambda library: library.set_metadata("a" * 64, "online", simple_metadata("Pears", origin="openalex")))
    both(lambda library: library.set_metadata_of("bibliography", {letter * 64: said for letter in "bz"}))
    assert both(lambda library: [one.title for one in library.papers()]) == ["Äpfel", "Äpfel"]
    assert both(lambda library: library.described()) == {letter * 64 for letter in "abz"}
    assert both(_generation) == 4  # two papers and two new titles
    assert [one.title for one in both(lambda library: list(library.passages(2)))] == ["Äpfel"] * 6
    both(lambda library: add(library, "a.pdf", paper("c", TEXT + "new")))  # a version of the same paper
    assert both(lambda library: sorted(library.metadata_layers("c" * 64))) == ["online", "pdf", "person"]
    both(lambda library: library.drop("/papers/a.pdf"))
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: library.set_metadata("a" * 64, "person", NO_METADATA))
    assert both(lambda library: library.papers()[0].year) == 2024
    assert both(lambda library: [one.title for one in library.papers()]) == ["Pears", "Äpfel"]
    both.require_equal()


def test_the_metadata_of_several_papers_changes_together(both: Both) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: add(library, "b.pdf", paper("b", TEXT + "b")))
    said = Metadata(title=_said("Äpfel"))
    papers = ["a" * 64, "b" * 64]
    both(lambda library: library.set_metadata("b" * 64, "person", said))
    assert both(lambda library: library.change_metadata_of(papers, "person", lambda _: said)) == (1, True)
    assert both(lambda library: [one.title for one in library.papers()]) == ["Äpfel", "Äpfel"]
    assert both(lambda library: library.change_metadata_of(papers, "person", lambda _: said)) == (0, False)

    for library in both.libraries:
        changes = iter([NO_METADATA])

        def fail_at_second(layers: Mapping[Source, Metadata]) -> Metadata:
            return next(changes)  # noqa: B023 -- called in this turn of the loop

        with pytest.raises(StopIteration):
            library.change_metadata_of(papers, "person", fail_at_second)
    assert both(lambda library: [one.title for one in library.papers()]) == ["Äpfel", "Äpfel"]
    both.require_equal()


def test_where_a_paper_was_read_stays_and_is_inherited(both: Both) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: readings.record_reading(library.database, "a" * 64, 2))
    both(lambda library: readings.record_reading(library.database, "a" * 64, 3))
    both(lambda library: readings.record_reading(library.database, "z" * 64, 1))
    both(lambda library: add(library, "a.pdf", paper("c", TEXT + "new")))  # a version of the same paper
    pages = both(lambda library: {id: read.page for id, read in readings.readings(library.database).items()})
    assert pages == {"a" * 64: 3, "c" * 64: 3, "z" * 64: 1}
    assert both(lambda library: set(readings.readings(library.database, ["c" * 64, "b" * 64]))) == {"c" * 64}
    assert both(lambda library: library.check()) == []


def test_a_removal_is_offered_until_the_paper_is_back(both: Both) -> None:
    files = [MovedFile("a.pdf", "/papers/a.pdf", "/papers/.removed/a.pdf")]
    both(lambda library: readings.record_removal(library.database, "a" * 64, "Äpfel\0", files))
    (removal,) = readings.removals(both.libraries[0].database)
    assert (removal.paper, removal.title, removal.files) == ("a" * 64, "Äpfel\ufffd", tuple(files))
    both(lambda library: add(library, "a.pdf", paper("a")))
    assert both(lambda library: readings.removals(library.database)) == []
    both(lambda library: library.drop("/papers/a.pdf"))
    assert both(lambda library: len(readings.removals(library.database))) == 1
    both(lambda library: readings.forget_removals(library.database, ["a" * 64]))
    assert both(lambda library: readings.removals(library.database)) == []
    assert both(lambda library: library.check()) == []


def _said(value: Any) -> Field[Any]:
    return Field(value, "person", True)


def _fail(said: Metadata) -> Metadata:
    raise ZeroDivisionError


def test_a_change_of_metadata_that_fails_changes_nothing(both: Both) -> None:
    both(lambda library: add(library, "a.pdf", paper("a")))
    both(lambda library: library.set_metadata("a" * 64, "person", Metadata(title=_said("Kept"))))

    def fail(library: Library) -> None:
        with library.database.transaction():
            metadata.write(library.database, "a" * 64, "person", Metadata(title=_said("Never Said")))
            assert library.papers_by_id(["a" * 64])[0].title == "Never Said"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        both(fail)
    with pytest.raises(ZeroDivisionError):
        both(lambda library: library.change_metadata("a" * 64, "person", _fail))
    wrong = Metadata(title=_said("\ud800"))
    with pytest.raises(StoreRefused):
        both(lambda library: library.change_metadata("a" * 64, "person", lambda _: wrong))
    assert both(lambda library: library.papers_by_id(["a" * 64])[0].title) == "Kept"
    assert both(lambda library: library.metadata_layers("a" * 64)["person"]) == Metadata(title=_said("Kept"))
    both.require_equal()


def about(family: str = "", year: int | None = None, title: str = "", arxiv: str = "") -> Metadata:
    return Metadata(
        title=Field(title, "page", bool(title)),
        authors=Field((PersonName(family),) if family else (), "page", bool(family)),
        year=Field(year, "page", year is not None),
        arxiv=Field(arxiv, "page", bool(arxiv)),
    )


def test_papers_are_named_for_citations(both: Both) -> None:
    said = {
        "a": about("Otter", 2020, "Sleep"),
        "b": about("Otter", 2020, "Food"),
        "c": about("Otter", 2021, "Fur", "2301.01234v1"),
        "d": about("Otter", 2021, "Fur", "2301.01234v2"),
        "e": about("Ötter", 2020, "Sleep"),
        "f": about(title="Report of the Year: One"),
        "0": about(title="Report of the Year: Two"),
        "1": about("Otter"),
    }
    for letter in said:
        both(lambda library, letter=letter: add(library, f"{letter}.pdf", paper(letter, TEXT + letter, NO_METADATA)))  # type: ignore[misc]
    for letter, fields in said.items():
        both(lambda library, id=letter * 64, it=fields: library.set_metadata(id, "bibliography", it))  # type: ignore[misc]
    both(lambda library: library.set_metadata("1" * 64, "online", about("Other", 2020, "Sleep")))
    labels = {one.id[0]: one.label for one in both(lambda library: library.papers())}
    assert labels == {
        "a": "Otter 2020b",
        "b": "Otter 2020a",
        "c": "Otter 2021 v1",
        "d": "Otter 2021 v2",
        "e": "Ötter 2020",
        "f": "“Report of the Year” (a)",
        "0": "“Report of the Year” (b)",
        "1": labels["1"],
    }
    for letter, label in labels.items():
        assert both(lambda library, id=letter * 64: library.papers_by_id([id])[0].label) == label  # type: ignore[misc]
    both(lambda library: library.drop("/papers/b.pdf"))
    assert both(lambda library: library.papers_by_id(["a" * 64])[0].label) == "Otter 2020"
    both.require_equal()


def test_names_in_citations_stay(both: Both) -> None:
    def described(library: Library, letter: str, title: str) -> None:
        add(library, f"{letter}.pdf", paper(letter, TEXT + letter, NO_METADATA))
        library.set_metadata(letter * 64, "bibliography", about("Otter", 2020, title))
        library.keep_names(library.papers())

    def names(library: Library) -> dict[str, tuple[str, str]]:
        keys = library.citation_keys()
        return {each.id[0]: (keys[each.id], each.label) for each in library.papers()}

    both(lambda library: described(library, "a", "Sleep"))
    both(lambda library: described(library, "b", "Sleep Again"))
    given = {"a": ("otter2020sleepa", "Otter 2020a"), "b": ("otter2020sleepb", "Otter 2020b")}
    assert both(names) == given
    both(lambda library: described(library, "c", "Sleep 1"))
    assert both(names) == {**given, "c": ("otter2020sleepc", "Otter 2020c")}
    both(lambda library: library.drop("/papers/a.pdf"))
    both(lambda library: described(library, "d", "Sleep"))
    assert both(names) == {"b": given["b"], "c": ("otter2020sleepc", "Otter 2020c"),
                           "d": ("otter2020sleepd", "Otter 2020d")}  # fmt: skip
    chosen = Metadata(citation_key=_said("OTTER2020sleepD"))
    both(lambda library: library.set_metadata("b" * 64, "zotero", chosen))
    (lost,) = both(lambda library: library.keep_names(library.papers()))
    assert lost == ("d.pdf", "otter2020sleepd", "otter2020sleepe")
    assert both(lambda library: library.citation_key(library.papers_by_id(["b" * 64])[0])) == "OTTER2020sleepD"
    both(lambda library: library.give_keys())
    both.require_equal()


# Works


def work(
    source: SourceName = "openalex", title: str = "On the Sleep of Otters", year: int | None = 2021, **more: Any
) -> Work:
    return Work(source, title=title, authors=(WorkAuthor("Byte", "Ada"),), year=year, **more)


def _put(library: Library, *given: Work) -> list[str]:
    with library.changing_works() as database:
        return works.put(database, given)


def _link(library: Library, letter: str, id: str) -> None:
    with library.changing_works() as database:
        works.link_paper(database, letter * 64, id, "doi", 0.97)


def test_works_citations_and_notices(both: Both) -> None:
    for letter in "abc":
        both(lambda library, letter=letter: add(library, f"{letter}.pdf", paper(letter, TEXT + letter)))  # type: ignore[misc]
    given = (
        work("arxiv", arxiv="2101.00001v1", year=2020),
        work("crossref", doi="10.1/x", kind="article-journal", year=2022, is_retracted=True),
        work("openalex", title="Citing", openalex="W5", references=("10.1/x", "W77", "W5", "10.1/ä🦀")),
        work("openalex", title="Other", openalex="W77", references=("W5", "2101.00001")),
    )
    preprint, journal, citing, other = both(lambda library: _put(library, *given))
    for letter, id in zip("abc", (preprint, citing, other), strict=True):
        both(lambda library, letter=letter, id=id: _link(library, letter, id))  # type: ignore[misc]
    assert both(lambda library: works.library_edges(library.database)) == [
        ("b" * 64, "a" * 64), ("b" * 64, "c" * 64), ("c" * 64, "a" * 64), ("c" * 64, "b" * 64)
    ]  # fmt: skip
    assert both(lambda library: works.cited_papers(library.database, "b" * 64)) == {"a" * 64, "c" * 64}
    assert both(lambda library: works.cited_papers(library.database, "a" * 64)) is None
    assert both(lambda library: works.citing(library.database, preprint)) == [citing, other]
    assert both(lambda library: [kept.id for kept in works.versions(library.database, preprint)]) == [journal, preprint]
    for kind, dated, link in (("correction", "2021", "10.1/b"), ("correction", "2021", "10.1/B"), ("erratum", "", "")):
        if kind == "erratum":
            continue
        notice = Notice(journal, kind, dated, link, "crossref", "2026-01-02T03:04:05+00:00")  # type: ignore[arg-type]

        def say(library: Library, notice: Notice = notice) -> None:
            with library.changing_works() as database:
                works.add_notice(database, notice)

        both(say)
    assert [one.link for one in both(lambda library: works.notices_of_works(library.database, [journal]))] == [
        "10.1/B", "10.1/b", ""
    ]  # fmt: skip
    assert (
        len(both(lambda library: library.papers_by_id(["a" * 64]))[0].notices) == 4
    )  # and that another file is the same paper
    joined = work("semanticscholar", title="D", doi="10.1/x", openalex="W77")
    assert both(lambda library: _put(library, joined)) == [journal]  # two works turn out to be one
    assert both(lambda library: works.get(library.database, [other])) == {}
    assert both(lambda library: works.papers_of(library.database, journal)) == ["c" * 64, "a" * 64]
    assert both(lambda library: works.references_of(library.database, journal)) == [
        "openalex W5",
        "arxiv 2101.00001",
    ]
    both.require_equal()


# The log and the conversations


def _log(library: Library) -> QueryLog:
    return QueryLog(library.database)


def test_the_log(both: Both) -> None:
    empty = LogCounts(questions=0, refused=0, good=0, bad=0, median_ms=None, median_confidence=None)
    assert both(lambda library: (_log(library).last(), _log(library).counts())) == (None, empty)
    with pytest.raises(UsageError, match="no answer to rate"):
        both(lambda library: _log(library).mark("good"))
    entries = [
        ENTRY,
        replace(ENTRY, confidence=None, trace=None, sources=(), timings_ms={}),
        replace(ENTRY, confidence=1, question="", asked="2025-01-01T00:00:00+00:00"),  # the clock was set back
    ]
    assert [both(lambda library, one=one: _log(library).add(one)) for one in entries] == [1, 2, 3]  # type: ignore[misc]
    both(lambda library: _log(library).mark_row(1, "good"))
    both(lambda library: _log(library).mark("good"))
    assert both(lambda library: _log(library).mark("bad")) == replace(entries[2], feedback="bad")
    assert both(lambda library: _log(library).last()) == replace(entries[2], feedback="bad")
    assert both(lambda library: _log(library).entry(2)) == entries[1]
    assert both(lambda library: _log(library).entry(1)) == replace(ENTRY, feedback="good")
    assert both(lambda library: _log(library).entry(9)) is None
    with pytest.raises(UsageError, match="no longer in the log"):
        both(lambda library: _log(library).mark_row(9, "good"))
    assert [row for row, _ in both(lambda library: _log(library).entries())] == [3, 2, 1]
    assert [row for row, _ in both(lambda library: _log(library).entries(most=2))] == [3, 2]
    assert [row for row, _ in both(lambda library: _log(library).entries("good", most=5))] == [1]
    assert both(lambda library: _log(library).counts()) == LogCounts(3, 1, 1, 1, 1012.75, 0.75)
    both.require_equal()
    assert both(lambda library: _log(library).clear()) == 3
    assert both(lambda library: _log(library).clear()) == 0
    for mark in (lambda log: log.mark("good"), lambda log: log.mark_row(1, "good")):
        with pytest.raises(UsageError):
            both(lambda library, mark=mark: mark(_log(library)))  # type: ignore[misc]
    assert both(lambda library: _log(library).add(ENTRY)) == 1
    both.require_equal()


def test_conversations(both: Both) -> None:
    for new in ("first", "second"):

        def add_turns(library: Library, new: str = new) -> list[int]:
            with closing(Conversations(lambda: _engine_of(library, both).connect(False))) as kept:
                assert kept.are_stored
                reply = {"question": "Größe 🦀\0?"}
                return [kept.add(new, reply, replace(ANSWER, question=f"{new} 🦀\0 ?"), ENTRY) for _ in range(2)]

        assert both(add_turns) == [1, 2]

    def with_them(do: Callable[[Conversations], Any]) -> Any:
        def run(library: Library) -> Any:
            with closing(Conversations(lambda: _engine_of(library, both).connect(False))) as kept:
                return do(kept)

        return both(run)

    assert [(one.id, one.turns) for one in with_them(lambda kept: kept.summaries())] == [("second", 2), ("first", 2)]
    assert with_them(lambda kept: kept.require("first").title) == "first 🦀\ufffd ?"
    assert [one.query for one in with_them(lambda kept: kept.turns("second"))] == [3, 4]
    with_them(lambda kept: kept.mark("first", 2, "bad"))
    with_them(lambda kept: kept.add("first", {"turn": 3}, ANSWER, None))
    for wrong in ({"turn": 3}, {"turn": 5}):
        with pytest.raises(FolioError, match="deleted or continued elsewhere"):
            with_them(partial(Conversations.add, conversation="first", reply=wrong, answer=ANSWER, entry=None))
    assert with_them(lambda kept: kept.summaries())[0].id == "first"
    both.require_equal()
    with_them(lambda kept: kept.pin("second", pinned=True))
    with_them(lambda kept: kept.rename("second", "Größe\0 🦀"))
    assert [(one.id, one.title, one.pinned) for one in with_them(lambda kept: kept.summaries())] == [
        ("second", "Größe\ufffd 🦀", True),
        ("first", "first 🦀\ufffd ?", False),
    ]
    assert [one.id for one in with_them(lambda kept: kept.search("GROSSE"))] == ["second"]
    assert with_them(lambda kept: kept.search("100%_'")) == ()
    both.require_equal()
    asked = {"turn": 4, "message": "Größe\0 🦀?", "key": "k"}
    for state in ("running", "failed"):
        assert with_them(lambda kept, state=state: kept.ask("first", {**asked, "state": state}, "one"))  # type: ignore[misc]
        assert with_them(lambda kept: [kept.ask("first", asked, "two"), kept.require("first").running]) == [False, 4]
        with_them(lambda kept, state=state: kept.leave("first", "one", {**asked, "state": state}))  # type: ignore[misc]
    assert with_them(lambda kept: kept.ask("first", asked, "two"))
    assert with_them(lambda kept: kept.renew("two")) == {("first", 4)}
    with_them(lambda kept: kept.stop("first", 4))
    assert with_them(lambda kept: kept.renew("two")) == set()
    assert with_them(lambda kept: kept.turns("first")[3].is_running)
    assert both(lambda library: library.check()) == []
    with_them(lambda kept: kept.answer("first", "two", {"turn": 4, "answer": "Größe"}, ANSWER, None))
    assert with_them(lambda kept: kept.turns("first")[3].reply["answer"]) == "Größe"
    both.require_equal()
    everything = [f"SELECT * FROM {table} ORDER BY 1" for table in ("conversations", "turns", "queries", "pins")]
    before = both(lambda library: [library.database.query(sql) for sql in everything])
    removed = with_them(lambda kept: kept.remove("second"))
    assert [row for row, _ in both(lambda library: QueryLog(library.database).entries())] == [2, 1]
    for _ in range(2):
        with_them(lambda kept: kept.restore(removed))
        assert both(lambda library: [library.database.query(sql) for sql in everything]) == before
    with_them(lambda kept: kept.remove("second"))
    assert both(lambda library: _log(library).add(replace(ENTRY, question="Meanwhile?"))) == 3  # its row is taken
    with_them(lambda kept: kept.restore(removed))
    assert [one.query for one in with_them(lambda kept: kept.turns("second"))] == [4, 5]
    assert both(lambda library: _log(library).entry(3)) == replace(ENTRY, question="Meanwhile?")
    assert both(lambda library: library.check()) == []
    both.require_equal()
    with_them(lambda kept: kept.remove("second"))
    assert [row for row, _ in both(lambda library: QueryLog(library.database).entries())] == [3, 2, 1]
    both(lambda library: QueryLog(library.database).clear())
    assert [one.query for one in with_them(lambda kept: kept.turns("first"))] == [None] * 4
    both.require_equal()
    assert with_them(lambda kept: kept.clear()) == 1
    assert with_them(lambda kept: kept.summaries()) == ()
    both.require_equal()


def _engine_of(library: Library, both: Both) -> Engine:
    return both.engines[both.libraries.index(library)]


def test_a_failure_is_replaced_and_forgotten(both: Both) -> None:
    for letter in "bc":
        both(lambda library, it=letter: library.record_failure(Failure(file("b.pdf", it), "Torn.", "Glue.")))  # type: ignore[misc]
    both(lambda library: library.record_failure(Failure(file("a.pdf", "a"), "Wet.", "Dry it.")))
    assert [one.file.sha256[0] for one in both(lambda library: library.failures())] == ["a", "c"]
    assert both(_generation) == 0
    both(lambda library: add(library, "b.pdf", paper("d")))
    both(lambda library: library.forget_failure("/papers/a.pdf"))
    assert both(lambda library: library.failures()) == []
    both(lambda library: library.record_failure(Failure(file("b.pdf", "e"), "Torn.", "Glue.")))
    assert both(lambda library: len(library.papers())) == 1  # a file that broke keeps its paper
    assert title_of("d") == both(lambda library: library.papers()[0].title)
    both.require_equal()
    both(lambda library: library.drop("/papers/b.pdf"))
    assert both(lambda library: [library.papers(), library.failures()]) == [[], []]


# Any history


class _History(RuleBasedStateMachine):
    """Random operations on both libraries, compared after each, and all that is in the libraries at the end."""

    url, folder = "", Path()

    def __init__(self) -> None:
        super().__init__()
        with psycopg.connect(self.url, autocommit=True) as connection:  # the library of the history before
            for (name,) in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^folio'").fetchall():
                connection.execute(f"DROP SCHEMA {name} CASCADE".encode())
        path = self.folder / str(next(_NUMBERS)) / "library.sqlite"
        self.both = Both(on_disk(path), on_server(self.url))
        self.both(lambda library: library.set_fingerprint(MADE_WITH))

    letter = st.sampled_from("abc")
    cited = st.sampled_from([(), ("W1", "10.1/b"), ("10.1/a", "W2", "W3")])
    name = st.sampled_from(["a.pdf", "B.pdf", "ä.pdf"])
    metadata = st.builds(about, st.sampled_from(["", "Otter", "Ötter"]), st.sampled_from([None, 2020, 2021]),
                         st.sampled_from(["", "Sleep", "Food of Otters at Sea"]),
                         st.sampled_from(["", "2301.01234v1", "2301.01234v2"]))  # fmt: skip

    @rule(name=name, letter=letter, fine=st.booleans(), said=metadata)
    def add(self, name: str, letter: str, fine: bool, said: Metadata) -> None:
        new = paper(letter, TEXT + letter, said, fine=fine)
        with suppress(StoreRefused):
            self.both(lambda library: add(library, name, new))

    @rule(name=name, letter=letter, gone=st.lists(name, max_size=2))
    def link(self, name: str, letter: str, gone: list[str]) -> None:
        with suppress(StoreRefused):
            self.both(lambda library: library.link([file(name, letter)], [f"/papers/{each}" for each in gone]))

    @rule(name=name)
    def drop(self, name: str) -> None:
        self.both(lambda library: library.drop(f"/papers/{name}"))

    @rule(name=name, letter=letter)
    def fail(self, name: str, letter: str) -> None:
        self.both(lambda library: library.record_failure(Failure(file(name, letter), "Torn.", "Glue.")))

    @rule(letter=letter, source=st.sampled_from(["person", "online", "bibliography"]), said=metadata)
    def say(self, letter: str, source: Any, said: Metadata) -> None:
        self.both(lambda library: library.change_metadata(letter * 64, source, lambda _: said))

    @rule(
        title=st.sampled_from(["Food of Otters at Sea", "Sleep"]),
        source=st.sampled_from(["openalex", "crossref"]),
        doi=st.sampled_from(["", "10.1/a", "10.1/b"]),
        openalex=st.sampled_from(["", "W1", "W2"]),
        references=cited,
        letter=letter,
        bad=st.booleans(),
    )
    def describe(self, letter: str, bad: bool, **said: Any) -> None:
        (id,) = self.both(lambda library: _put(library, work(**said, is_retracted=bad)))
        self.both(lambda library: _link(library, letter, id))

    @rule(text=st.text(max_size=5))
    def ask(self, text: str) -> None:
        self.both(lambda library: QueryLog(library.database).add(replace(ENTRY, question=text, answer=text)))

    @rule(row=st.integers(0, 3))
    def rate(self, row: int) -> None:
        with suppress(FolioError):
            self.both(lambda library: QueryLog(library.database).mark_row(row, "good"))

    @rule(keys=st.lists(st.sampled_from("xyz"), max_size=3, unique=True))
    def remember(self, keys: list[str]) -> None:
        self.both(lambda library: library.remember(keys, np.ones((len(keys), 4), dtype=np.float32)))

    def teardown(self) -> None:
        try:
            self.both.require_equal()
        finally:
            self.both.close()


_NUMBERS = count()


def test_any_history_has_the_same_result_in_both(url: str, tmp_path: Path) -> None:
    machine = type("_OwnHistory", (_History,), {"url": url, "folder": tmp_path})
    examples = 100 if EXHAUSTIVE else 6
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=12, deadline=None))
