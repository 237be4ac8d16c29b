"""The contract of the log and of conversations, in SQLite and in Milvus; and what Milvus's own way must hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio.answer_types import Answer
from folio.cluster import history_copy
from folio.cluster.collections import HISTORY
from folio.cluster.history_rows import HistoryRows, Written
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_conversations import MilvusConversations
from folio.cluster.milvus_log import MilvusQueryLog
from folio.errors import NotKnown, StoreDamaged, StoreRefused, UsageError
from folio.store import asked_rows
from folio.store.conversations import Conversations
from folio.store.history import Asked, ConversationStore, KeptTurn, QuestionLog
from folio.store.library import Library
from folio.store.query_log import LogCounts, LogEntry, LoggedSource, QueryLog
from tests.helpers.answers import ANSWER, REFUSED, REPORT
from tests.helpers.milvus import Killed, KilledAt, release

ENTRY = LogEntry(
    asked="2026-01-02T03:04:05+00:00",
    question="And how long is it?",
    standalone_question="How long is the Aletsch glacier?",
    chunks=(2**63 - 1, 1, 77),
    answer="It is 23 km long. It shrinks.",
    sources=(LoggedSource("a" * 64, "alps/glaciers.pdf", 3, "The glacier is 23 km long."),),
    timings_ms={"retrieve": 12.5, "total": 1012.75},
    model="extractive",
    confidence=0.5,
    trace={"events": [{"why": "Größe \x00"}], "left_out": 0},
)
REFUSAL = replace(ENTRY, question="Why?", sources=(), confidence=None, trace=None, timings_ms={"total": 2.0})
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


class Kept:
    """A store of questions. Each call is for another server, that has seen nothing."""

    def log(self) -> QuestionLog:
        raise NotImplementedError

    def conversations(self) -> ConversationStore:
        raise NotImplementedError

    def read_all(self) -> list[Asked]:
        raise NotImplementedError

    def keep_all(self, asked: list[Asked]) -> int:
        raise NotImplementedError


class InSqlite(Kept):
    def __init__(self, path: Path) -> None:
        self.library = Library(path, create=True)
        self.opened: list[Library | Conversations] = [self.library]

    def log(self) -> QueryLog:
        self.opened.append(another := Library(self.library.path))
        return QueryLog(another.database)

    def conversations(self) -> Conversations:
        self.opened.append(another := Conversations(self.library.path))
        return another

    def read_all(self) -> list[Asked]:
        return list(asked_rows.read_all(self.library.database))

    def keep_all(self, asked: list[Asked]) -> int:
        return asked_rows.keep_all(self.library.database, asked)


class InMilvus(Kept):
    def __init__(self, milvus: Milvus, prefix: str) -> None:
        self.milvus, self.prefix = milvus, prefix

    def rows(self) -> HistoryRows:
        return HistoryRows(lambda: self.milvus, self.prefix)

    def log(self) -> MilvusQueryLog:
        return MilvusQueryLog(self.rows())

    def conversations(self) -> MilvusConversations:
        return MilvusConversations(self.rows())

    def read_all(self) -> list[Asked]:
        return list(history_copy.read_all(self.rows()))

    def keep_all(self, asked: list[Asked]) -> int:
        return history_copy.keep_all(self.rows(), asked)


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Milvus]:
    file = tmp_path_factory.mktemp("history") / "lite.db"
    yield Milvus(str(file), "", 60)
    release(file)


@pytest.fixture
def milvus(lite: Milvus, request: pytest.FixtureRequest) -> InMilvus:
    """Collections of their own for each test."""
    return InMilvus(lite, re.sub(r"\W", "_", request.node.name))


@pytest.fixture(params=["sqlite", "milvus"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    if request.param == "milvus":
        yield request.getfixturevalue("milvus")
        return
    made = InSqlite(tmp_path / "library.sqlite")
    yield made
    for opened in made.opened:
        opened.close()


def asking(question: str) -> Answer:
    return replace(REFUSED, question=question)


# The log


def test_nothing_is_there_before_the_first_question(kept: Kept) -> None:
    log, conversations = kept.log(), kept.conversations()
    assert log.last() is None
    assert log.entries() == []
    assert log.entry(1) is None
    assert log.counts() == LogCounts(0, 0, 0, 0, None, None)
    assert log.clear() == 0
    assert conversations.summaries() == ()
    assert conversations.clear() == 0
    assert conversations.are_stored
    assert kept.read_all() == []
    with pytest.raises(UsageError, match="no answer to rate"):
        log.mark("good")


def test_what_one_server_logs_is_in_the_log_of_another(kept: Kept) -> None:
    first, second = kept.log(), kept.log()
    numbers = [log.add(replace(ENTRY, question=f"{n}?")) for n, log in enumerate((first, second, first))]
    assert numbers == sorted(set(numbers))
    assert second.entries() == [(number, replace(ENTRY, question=f"{n}?")) for n, number in enumerate(numbers)][::-1]
    assert second.entries(most=2) == second.entries()[:2]
    assert second.entry(numbers[0]) == replace(ENTRY, question="0?")
    assert [log.last().question for log in (first, second, kept.log()) if (log.last())] == ["2?", "1?", "2?"]  # type: ignore[union-attr]
    assert second.clear() == 3
    assert first.entries() == []


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("Größe von 𝔽₂? 氷河 🦀", "Größe von 𝔽₂? 氷河 🦀"),
        ('\'; DROP TABLE queries; --\n\t"quoted" \\u0041', '\'; DROP TABLE queries; --\n\t"quoted" \\u0041'),
        ("a\x00b", "a\x00b"),
        ("", ""),
        ("氷" * 100_000, "氷" * 100_000),  # 300,000 bytes: a field of Milvus holds 65,535
        ("from a torn \udcff\ud83d terminal \ud83d", "from a torn \ufffd\ufffd terminal \ufffd"),
        ("both halves \ud83e\udd80", "both halves 🦀"),
    ],
    ids=["beyond ASCII", "SQL", "NUL", "empty", "long", "lone surrogates", "a pair of surrogates"],
)
def test_any_text_can_be_logged(kept: Kept, text: str, stored: str) -> None:
    def with_text(of: str) -> LogEntry:
        source = LoggedSource(of, of, 1, of)
        return LogEntry(ENTRY.asked, of, of, (1,), of, (source, source), {of: 1.0}, of)

    kept.log().add(with_text(text))
    assert kept.log().last() == with_text(stored)


def test_feedback_is_counted(kept: Kept) -> None:
    log = kept.log()
    numbers = [log.add(entry) for entry in (ENTRY, REFUSAL, replace(ENTRY, feedback="bad"))]
    assert kept.log().mark("good") == replace(ENTRY, feedback="good")
    kept.log().mark_row(numbers[0], "bad")
    kept.log().mark_row(numbers[0], "good")
    assert [number for number, _ in kept.log().entries("good")] == [numbers[2], numbers[0]]
    assert [number for number, _ in kept.log().entries("good", 1)] == [numbers[2]]
    assert kept.log().entries("bad") == []
    assert kept.log().counts() == LogCounts(3, 1, 2, 0, 1012.75, 0.5)
    with pytest.raises(UsageError, match="no longer in the log"):
        log.mark_row(numbers[2] + 1, "good")
    log.clear()
    with pytest.raises(UsageError, match="no answer to rate"):
        log.mark("good")


def test_each_server_marks_its_own_question_and_a_new_one_the_last_of_all(kept: Kept) -> None:
    first, second = kept.log(), kept.log()
    first.add(replace(ENTRY, question="mine"))
    second.add(replace(ENTRY, question="theirs"))
    assert first.mark("good").question == "mine"
    assert kept.log().mark("bad").question == "theirs"


# Conversations


def test_turns_are_returned_in_order_by_every_server(kept: Kept) -> None:
    here, there = kept.conversations(), kept.conversations()
    one, two = here.begin(), here.begin()
    said: dict[str, Any] = {"answer": "Größe \ud83d 🦀 'x'", "hits": [{"score": 0.1, "pages": [1, 2]}], "none": None}
    long = {"answer": "氷" * 50_000, "turn": 2}
    assert here.add(one, {**said, "turn": 1}, ANSWER, None) == 1
    assert there.add(two, {"answer": "other"}, REFUSED, None) == 1
    assert there.add(one, long, REPORT, None) == 2
    turns = here.turns(one)
    assert [(turn.place, turn.reply, turn.query, turn.answer) for turn in turns] == [
        (1, {**said, "turn": 1}, None, None),
        (2, long, None, None),
    ]
    assert all(ISO.fullmatch(turn.asked) for turn in turns)
    assert there.turns(one) == turns
    assert [turn.reply for turn in here.turns(two)] == [{"answer": "other"}]


def test_the_list_has_the_latest_first(kept: Kept) -> None:
    here, there = kept.conversations(), kept.conversations()
    ids = [here.begin() for _ in range(3)]
    for number, id in enumerate([*ids, ids[0]]):
        (here, there)[number % 2].add(id, {}, asking(f"Question\n{number} \ud83d?"), None)
    assert [(found.id, found.title, found.turns) for found in there.summaries()] == [
        (ids[0], "Question 0 \ufffd?", 2),
        (ids[2], "Question 2 \ufffd?", 1),
        (ids[1], "Question 1 \ufffd?", 1),
    ]
    assert all(ISO.fullmatch(found.updated) for found in here.summaries())
    assert [here.require(id) for id in (ids[0], ids[2], ids[1])] == list(here.summaries())


def test_unknown_conversations_and_turns_raise(kept: Kept) -> None:
    here = kept.conversations()
    id, other = here.begin(), here.begin()
    here.add(id, {}, ANSWER, None)
    unknown: list[Callable[[], object]] = [
        lambda: here.require(other),
        lambda: here.turns('x" or "1" == "1'),
        lambda: here.turns(other),
        lambda: here.remove(other),
        lambda: here.query(other, 1),
        lambda: here.query(id, 2),
        lambda: here.query(id, 0),
        lambda: here.mark(other, 1, "good"),
        lambda: here.mark(id, 2, "good"),
    ]
    for ask in unknown:
        with pytest.raises(NotKnown, match="There is no such conversation"):
            ask()
    assert here.turns(id)[0].reply == {}


def test_a_turn_knows_its_number_in_the_log(kept: Kept) -> None:
    here, id = kept.conversations(), kept.conversations().begin()
    for n, entry in enumerate((ENTRY, None, REFUSAL)):
        here.add(id, {"turn": n + 1}, ANSWER, entry)
    log = kept.log()
    numbers = [number for number, _ in log.entries()]
    assert [turn.query for turn in kept.conversations().turns(id)] == [numbers[1], None, numbers[0]]
    assert [here.query(id, place) for place in (1, 2, 3)] == [numbers[1], None, numbers[0]]
    log.mark_row(numbers[1], "good")
    assert log.entry(numbers[1]) == replace(ENTRY, feedback="good")
    log.clear()
    log.add(ENTRY)
    assert [turn.query for turn in here.turns(id)] == [None] * 3


def test_feedback_is_in_the_reply(kept: Kept) -> None:
    here, there = kept.conversations(), kept.conversations()
    id = here.begin()
    for _ in range(2):
        here.add(id, {"answer": "\ud83d", "feedback": ""}, ANSWER, None)
    there.mark(id, 2, "good")
    assert [turn.reply["feedback"] for turn in here.turns(id)] == ["", "good"]
    here.mark(id, 2, "bad")
    assert there.turns(id)[1].reply == {"answer": "\ud83d", "feedback": "bad"}


def test_a_deleted_conversation_is_gone_everywhere_and_the_others_stay(kept: Kept) -> None:
    here, there = kept.conversations(), kept.conversations()
    ids = [here.begin() for _ in range(3)]
    for id in ids:
        here.add(id, {}, asking(id), replace(ENTRY, question=id))
        here.add(id, {}, ANSWER, replace(ENTRY, question=id))
        here.mark(id, 1, "good")
    there.remove(ids[1])
    assert [found.id for found in here.summaries()] == [ids[2], ids[0]]
    assert {entry.question for _, entry in kept.log().entries()} == {ids[0], ids[2]}
    with pytest.raises(NotKnown):
        here.turns(ids[1])
    assert here.clear() == 2
    assert there.clear() == 0
    assert there.summaries() == ()
    assert kept.log().clear() == 4  # clearing conversations leaves the log
    assert kept.log().entries() == []


def test_a_conversation_deleted_or_continued_while_answering_is_not_added_to(kept: Kept) -> None:
    here, there = kept.conversations(), kept.conversations()
    deleted, continued = here.begin(), here.begin()
    for id in (deleted, continued):
        here.add(id, {"turn": 1}, ANSWER, ENTRY)
    there.remove(deleted)
    with pytest.raises(NotKnown, match="was deleted or continued elsewhere"):
        here.add(deleted, {"turn": 2}, ANSWER, ENTRY)
    there.add(continued, {"turn": 2}, ANSWER, ENTRY)
    with pytest.raises(NotKnown, match="was deleted or continued elsewhere"):
        here.add(continued, {"turn": 2}, ANSWER, ENTRY)
    assert [(found.id, found.turns) for found in here.summaries()] == [(continued, 2)]
    assert kept.log().counts().questions == 2


def test_servers_that_write_at_the_same_time_lose_nothing(kept: Kept) -> None:
    shared = kept.conversations().begin()
    servers = [(kept.conversations(), kept.log()) for _ in range(3)]

    def talk(number: int) -> None:
        conversations, log = servers[number]
        own = conversations.begin()
        for place in range(1, 6):
            assert conversations.add(own, {"said": place, "turn": place}, asking(str(number)), ENTRY) == place
            conversations.add(shared, {"said": f"{number} {place}"}, ANSWER, None)
            conversations.mark(own, place, "good")
            log.add(ENTRY)
            assert [turn.reply["said"] for turn in conversations.turns(own)] == list(range(1, place + 1))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(talk, range(3)))
    turns = kept.conversations().turns(shared)
    assert [turn.place for turn in turns] == list(range(1, 16))
    assert sorted(turn.reply["said"] for turn in turns) == [f"{n} {place}" for n in range(3) for place in range(1, 6)]
    for number in range(3):  # each server's in its own order
        own = [turn.reply["said"] for turn in turns if turn.reply["said"].startswith(str(number))]
        assert own == [f"{number} {place}" for place in range(1, 6)]
    assert kept.log().counts().questions == 30
    assert sorted(found.turns for found in kept.conversations().summaries()) == [5, 5, 5, 15]


# Copies


def test_everything_is_copied_both_ways(kept: Kept, tmp_path: Path, lite: Milvus, request: Any) -> None:
    here, log = kept.conversations(), kept.log()
    one, two = here.begin(), here.begin()
    log.add(replace(ENTRY, feedback="good", asked="2025-01-02T03:04:05+00:00"))
    here.add(one, {"answer": "氷" * 30_000, "turn": 1}, asking("Ice?"), replace(ENTRY, question="Ice?"))
    here.add(two, {"answer": "b", "turn": 1}, ANSWER, None)
    here.add(one, {"answer": "c", "turn": 2}, ANSWER, REFUSAL)
    here.mark(one, 2, "bad")
    everything = kept.read_all()
    assert len(everything) == 4
    with closing(Library(tmp_path / "other.sqlite", create=True)):
        pass
    others: list[InSqlite | InMilvus] = [InSqlite(tmp_path / "other.sqlite"), InMilvus(lite, f"other_{id(request)}")]
    for other in others:
        assert other.keep_all(everything) == 4
        assert other.keep_all(everything) == 0
        assert other.read_all() == everything
        assert [(s.title, s.turns) for s in other.conversations().summaries()] == [
            (s.title, s.turns) for s in here.summaries()
        ]
        assert [turn.reply for turn in other.conversations().turns(one)] == [t.reply for t in here.turns(one)]
        assert {entry.question for _, entry in other.log().entries()} == {e.question for _, e in log.entries()}
        assert [turn.query is None for turn in other.conversations().turns(two)] == [True]
    assert kept.keep_all(others[1].read_all()) == 0 if isinstance(kept, InSqlite) else True
    for opened in others[0].opened if isinstance(others[0], InSqlite) else []:
        opened.close()


# Milvus alone


def test_a_kill_leaves_an_answer_whole_or_not_at_all(milvus: InMilvus) -> None:
    id = milvus.conversations().begin()
    milvus.conversations().add(id, {"turn": 1}, ANSWER, ENTRY)
    sound = milvus.milvus
    milvus.milvus = KilledAt(sound, 1)  # type: ignore[assignment]
    with pytest.raises(Killed):
        milvus.conversations().add(id, {"turn": 2, "answer": "氷" * 40_000}, ANSWER, ENTRY)
    milvus.milvus = KilledAt(sound, 2)  # type: ignore[assignment]
    milvus.conversations().add(id, {"turn": 2, "answer": "氷" * 40_000}, ANSWER, ENTRY)  # one request is enough
    milvus.milvus = sound
    turns = milvus.conversations().turns(id)
    assert [turn.query for turn in turns] == [number for number, _ in milvus.log().entries()][::-1]
    assert len(turns) == 2


def test_a_kill_while_a_conversation_is_deleted_leaves_nothing_to_be_seen(milvus: InMilvus) -> None:
    sound = milvus.milvus
    id = milvus.conversations().begin()
    for step in (2, 3):
        other = milvus.conversations().begin()
        milvus.conversations().add(other, {"turn": 1}, ANSWER, ENTRY)
        milvus.milvus = KilledAt(sound, step)  # type: ignore[assignment]
        try:
            milvus.conversations().remove(other)
        except Killed:
            assert step == 2
        milvus.milvus = sound
        assert milvus.conversations().summaries() == ()
        assert milvus.log().entries() == []
        assert milvus.log().counts().questions == 0
    milvus.conversations().add(id, {}, ANSWER, ENTRY)
    milvus.conversations().remove(id)  # the next deletion deletes the rows of the first too
    assert {row["kind"] for row in sound.rows(f"{milvus.prefix}_history", 'key >= ""', ["kind"])} == {"deleted"}


def test_deletions_are_forgotten_after_a_day(milvus: InMilvus, monkeypatch: pytest.MonkeyPatch) -> None:
    here = milvus.conversations()
    for n in range(3):
        with monkeypatch.context() as patch:
            if n < 2:
                patch.setattr("folio.cluster.history_rows.time", lambda: 0.0)
            here.add(id := here.begin(), {}, ANSWER, ENTRY)
            here.clear() if n else here.remove(id)
    rows = milvus.milvus.rows(f"{milvus.prefix}_history", 'key >= ""', ["kind"], strong=True)
    assert sorted(row["kind"] for row in rows) == ["deleted", "entry", "entry"]
    assert here.clear() == 0
    assert len(milvus.log().entries()) == 2


def test_what_was_being_added_while_a_conversation_was_deleted_stays_hidden(milvus: InMilvus) -> None:
    """The server looked before the deletion, and writes after it."""
    here, there = milvus.conversations(), milvus.conversations()
    id = here.begin()
    here.add(id, {"turn": 1}, ANSWER, ENTRY)

    class Overtaken(HistoryRows):
        def write(self, *items: Written) -> None:
            there.remove(id)
            super().write(*items)

    late = MilvusConversations(Overtaken(lambda: milvus.milvus, milvus.prefix))
    late.add(id, {"turn": 2}, ANSWER, ENTRY)
    assert there.summaries() == ()
    assert milvus.log().entries() == []


def test_turns_that_are_added_in_the_same_moment_are_both_kept(milvus: InMilvus) -> None:
    """Neither server sees the other's turn before it writes its own."""
    here, there = milvus.conversations(), milvus.conversations()
    id = here.begin()
    here.add(id, {"turn": 1}, ANSWER, ENTRY)

    class Overtaken(HistoryRows):
        def write(self, *items: Written) -> None:
            there.add(id, {"turn": 2, "said": "first"}, ANSWER, None)
            super().write(*items)

    MilvusConversations(Overtaken(lambda: milvus.milvus, milvus.prefix)).add(id, {"turn": 2}, ANSWER, ENTRY)
    assert sorted(turn.reply.get("said", "") for turn in here.turns(id)) == ["", "", "first"]
    assert [turn.reply["turn"] for turn in here.turns(id)] == [1, 2, 3]
    assert here.add(id, {"turn": 4}, ANSWER, None) == 4


def test_rows_that_were_changed_are_noticed_and_can_be_deleted(milvus: InMilvus) -> None:
    log, name = milvus.log(), f"{milvus.prefix}_history"
    log.add(ENTRY)
    (row,) = milvus.milvus.rows(name, 'kind == "entry"', list(HISTORY), strong=True)
    for change in ({"value": row["value"].replace("23", "24")}, {"value": ""}, {"parts": 2}, {"about": "{}"}):
        milvus.milvus.write(name, [{**row, **change}])
        if change != {"parts": 2}:
            with pytest.raises(StoreDamaged, match="In Milvus, the log cannot be read") as caught:
                log.last()
            assert history_copy.faults_of(milvus.rows()) == [caught.value.happened]
            assert "query.py --forget" in caught.value.remedy
    assert log.clear() == 1
    assert log.entries() == []
    assert history_copy.faults_of(milvus.rows()) == []


def test_what_milvus_cannot_hold_is_refused(milvus: InMilvus) -> None:
    turn = KeptTurn("no conversation's name", "x", 1, ENTRY.asked, {}, "{}")
    for asked in (Asked(replace(ENTRY, asked="yesterday"), None), Asked(None, turn)):
        with pytest.raises(StoreRefused, match="Milvus cannot hold a"):
            milvus.keep_all([asked])
    assert milvus.read_all() == []


def test_an_answer_that_is_too_large_is_refused(milvus: InMilvus) -> None:
    with pytest.raises(StoreRefused, match="Milvus cannot hold an answer"):
        milvus.log().add(replace(ENTRY, answer="x" * 9_000_000))
    assert milvus.log().entries() == []
