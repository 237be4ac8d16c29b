"""A question takes about a dozen statements, however many passages it reads: each may be a journey over a network."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from folio.papers.metadata import simple_metadata
from folio.papers.work import Work, WorkAuthor
from folio.question import spelling
from folio.store import sqlite, works
from folio.store.query_log import LogEntry
from folio.store.works import Notice
from tests.helpers.factories import shelf
from tests.helpers.fakes import HashingApp

_SETS_UP = re.compile(r"BEGIN|COMMIT|ROLLBACK|PRAGMA (?!(?:user\.)?user_version)")
ENTRY = LogEntry("2026-01-02T03:04:05+00:00", "Why?", "Why?", (1, 2), "So.", (), {"total": 1.0}, "extractive")


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    """An index of two papers of which everybody says something."""
    app = shelf(tmp_path)
    with closing(app.open_library()) as library:
        ids = [paper.id for paper in library.papers()]
        for id in ids:
            library.set_metadata(id, "person", simple_metadata("Alike", ["Ada Byte"], 2021, origin="person"))
        with library.changing_works() as database:
            author = (WorkAuthor("Byte", "Ada"),)
            (one,) = works.put(database, [Work("crossref", title="Alike", authors=author, year=2021, doi="10.1/a")])
            works.link_paper(database, ids[0], one, "doi", 1.0)
            works.add_citations(database, one, ["doi 10.1/b"], "crossref", works.now())
            works.add_notice(database, Notice(one, "retraction", "2021-05-26", "10.1/r", "crossref", works.now()))
        app.backend.update_indexes(library)
    return app


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements of connections opened inside, but those that begin or end a snapshot, or set a connection up."""
    made: list[str] = []
    connect = sqlite._connect

    def traced(address: str) -> sqlite3.Connection:
        connection = connect(address)
        connection.set_trace_callback(lambda sql: None if _SETS_UP.match(sql) else made.append(sql))
        return connection

    monkeypatch.setattr(sqlite, "_connect", traced)
    yield made


def test_a_library_is_opened_with_four_statements(app: HashingApp, monkeypatch: pytest.MonkeyPatch) -> None:
    with statements(monkeypatch) as made, closing(app.open_library()) as library, library.reading():
        assert len(made) <= 4, "\n".join(made)


@pytest.mark.parametrize(
    ("question", "are_words", "most"),
    [
        ("What does the diet of the sea otter have?", True, 12),
        ("Where do sea otters sleep in winter?", True, 12),
        # Passages are read, all together, for the spelling of words that the embedder does not know
        ("What is the largest glacier of the Alps?", False, 15),
    ],
)
def test_a_question_takes_a_dozen_statements(
    app: HashingApp, monkeypatch: pytest.MonkeyPatch, question: str, are_words: bool, most: int
) -> None:
    monkeypatch.setattr(spelling, "_is_right", lambda word, is_word: are_words)
    with statements(monkeypatch) as made, closing(app.open_library()) as library:
        chat = app.chat(library, top_k=4)
        log = app.query_log(library)
        made.clear()
        reply = chat.ask(question)
        log.add(ENTRY)
        asked = list(made)
    assert len({hit.chunk.id for hit in reply.hits}) >= 2
    assert len(asked) <= most, "\n".join(sql[:110] for sql in asked)


def test_more_passages_take_no_more_statements(app: HashingApp, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for most in (1, 20):
        with statements(monkeypatch) as made, closing(app.open_library()) as library:
            retriever = app.retriever(library)
            made.clear()
            retriever.search("Where do otters and glaciers lie?", most)
            counts.append(len(made))
    assert counts[0] == counts[1]
