"""Damaged files of a store: every command gives the right answer or one sentence, and nothing that people said is lost.

What is made from PDFs, a rebuild makes again. What people said is in a file of its own, with daily copies.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from folio.cli.doctor import examine
from folio.errors import FolioError, StoreDamaged, UserFileDamaged
from folio.papers.metadata import simple_metadata
from folio.store.conversations import Conversations
from folio.store.database import NAMES
from folio.store.query_log import LogEntry, QueryLog
from folio.store.user_file import copies, copy_now, set_aside, user_file_of
from folio.system import workers
from folio.web.service import Service
from tests.helpers import libraries
from tests.helpers.damage import tamper
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.fakes import LINES, HashingApp, HashingEmbedder, hashing_app, make_pdf, overwrite, read_once

FLIPS = 20
OF_PAPERS = ("papers", "hits", "found_papers", "answers")
SEEDS = range(1000 if EXHAUSTIVE else 8)
QUESTIONS = ("What does a sponge absorb?", "Which order does a rotation keep?", "What makes the loss smaller?")
ALL_QUESTIONS = {
    *(f"{number + 1} Question {number}?" for number in range(15)),
    *(f"{number + 16} {QUESTIONS[number % 3]}" for number in range(15)),
}
ENTRY = replace(libraries.ENTRY, feedback="")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with papers, a store, a log of 30 questions, five conversations of three turns, and an edit.

    Today's copy has all that people said.
    """
    folder = tmp_path_factory.mktemp("sound")
    for subject in LINES:
        make_pdf(folder / "papers" / f"{subject}.pdf", subject, headings=("1 Introduction", "2 Methods"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app = hashing_app(folder, LLM="builtin")
        app.run()
    with closing(app.open_library()) as library, closing(Conversations(app.library_path)) as kept:
        chat = app.chat(library, top_k=2)
        log = QueryLog(library.database)
        for number in range(15):
            trace = {"events": ["x" * 50 * number]} if number % 2 else None
            log.add(replace(ENTRY, question=f"Question {number}?", trace=trace))
        for _ in range(5):
            id = kept.begin()
            for turn, question in enumerate(QUESTIONS, 1):
                said = chat.ask(question).answer
                reply = {"message": question, "answer": said.text, "turn": turn, "hits": ["x" * 3000]}
                kept.add(id, reply, said, replace(ENTRY, question=question))
        trees = next(paper.id for paper in library.papers() if paper.file == "trees.pdf")
        library.set_metadata(trees, "person", simple_metadata(year=1999, origin="person"))
    app.finish_edit(is_renamed=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app.run()  # which gives each paper the citation key that it keeps
    copy_now(user_file_of(app.library_path))
    return folder


class Desk:
    """A copy of a folder, and everything that can be asked of it."""

    def __init__(self, sound: Path, folder: Path) -> None:
        shutil.copytree(sound, folder)
        self.notices: list[str] = []
        made = hashing_app(folder, LLM="builtin")
        self.app = HashingApp(made.settings, self.notices.append, HashingEmbedder())
        self.library, self.user = self.app.library_path, user_file_of(self.app.library_path)

    def papers(self) -> Any:
        with closing(self.app.open_library()) as library:
            return [(paper.title, paper.year, paper.pages, paper.file, paper.chunks) for paper in library.papers()]

    def found_papers(self) -> Any:
        with closing(self.app.open_library()) as library:
            found = [self.app.retriever(library).search_papers(question, 2) for question in QUESTIONS]
            return [[(hit.paper.file, hit.words, round(hit.score, 6)) for hit in hits] for hits in found]

    def answers(self) -> Any:
        """What is quoted for each question, of which paper and page."""
        with closing(self.app.open_library()) as library:
            chat = self.app.chat(library, top_k=2)
            return [
                [
                    (cited.paper.id, cited.label, cited.page, cited.quote)
                    for cited in chat.ask(question).answer.citations
                ]
                for question in QUESTIONS
            ]

    def hits(self) -> Any:
        with closing(self.app.open_library()) as library:
            retriever = self.app.retriever(library)
            return [
                [
                    (hit.paper.key, hit.pages, hit.text, round(hit.score, 6))
                    for hit in retriever.search(question, 5).hits
                ]
                for question in QUESTIONS
            ]

    def log(self) -> LogEntry | None:
        with closing(self.app.open_library()) as library:
            log = QueryLog(library.database)
            log.counts()
            return log.last()

    def questions(self) -> dict[str, str]:
        """Row and question of every entry of the log, with its feedback."""
        with closing(self.app.open_library()) as library:
            found = library.database.query("SELECT id, question, feedback FROM queries")
            return {f"{id} {question}": feedback for id, question, feedback in found}

    def conversations(self) -> dict[str, list[Any]]:
        """What was shown in each."""
        with closing(Conversations(self.library)) as kept:
            return {found.id: [(turn.place, turn.reply) for turn in kept.turns(found.id)] for found in kept.summaries()}

    def continued(self) -> Any:
        """What follow-ups have to go on: the last answer of each conversation."""
        with closing(Conversations(self.library)) as kept, closing(self.app.open_library()) as library:
            return {found.id: kept.turns(found.id, library)[-1].answer for found in kept.summaries()}

    def said(self) -> dict[str, list[Any]]:
        """Every row of what people and services said."""
        with closing(self.app.open_library()) as library:
            tables = [table for table in NAMES["user"] if table != "kept"]
            return {table: sorted(library.database.query(f"SELECT * FROM {table}")) for table in tables}

    def damage(self, path: Path, seed: int) -> None:
        """Flip bits at random places of a file whose log has been written into it."""
        rng = random.Random(seed)
        content = bytearray(path.read_bytes())
        for _ in range(FLIPS):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        overwrite(path, bytes(content))

    def ask_everything(self) -> None:
        """Every other question that a person can ask gets an answer or one sentence."""
        assert all(row.fix for row in examine(self.app) if row.needed and not row.ready)
        service = Service(self.app)
        web = (service.papers, service.health, service.conversations)
        for ask in (*web, self.log, self.app.verify, partial(self.app.run, prune=True)):
            answer_or_sentence(ask)
        service.close()


@pytest.fixture(autouse=True)
def _reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture(scope="module")
def right(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    desk = Desk(sound, tmp_path_factory.mktemp("right") / "desk")
    return {name: getattr(desk, name)() for name in (*OF_PAPERS, "conversations", "continued", "said")}


def answer_or_sentence(ask: Callable[[], Any]) -> Any:
    """What it returns, or the error that a user would see; anything else it raises is a fault of Folio."""
    try:
        return ask()
    except FolioError as error:
        return error


# What is made from the PDFs


@pytest.mark.parametrize("seed", SEEDS)
def test_twenty_flipped_bits_of_the_library(sound: Path, right: dict[str, Any], tmp_path: Path, seed: int) -> None:
    desk = Desk(sound, tmp_path / "desk")
    desk.damage(desk.library, seed)
    for name, expected in right.items():
        found = answer_or_sentence(getattr(desk, name))
        if name == "continued" and isinstance(found, dict):  # of a paper that cannot be found there is none
            found = {id: answer or expected[id] for id, answer in found.items()}
        assert found == expected or (isinstance(found, FolioError) and found.remedy), name
    desk.ask_everything()
    desk.app.run(rebuild=True)
    assert desk.app.verify() == []
    assert {name: getattr(desk, name)() for name in right} == right
    said = [notice for notice in desk.notices if "set aside" in notice]
    assert len(said) == len(set_aside(desk.library)) <= 1
    assert set_aside(desk.user) == []


@pytest.mark.parametrize(
    "damaged",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:4096] + bytes(len(content) - 4096),
        lambda content: bytes(4096) + content[4096:],
        lambda content: random.Random(1).randbytes(len(content)),
        lambda content: b"%PDF-1.7 of another program" * 99,
    ],
    ids=["half", "pages of zeros", "no header", "noise", "another file"],
)
def test_damage_to_the_library_loses_no_user_data(
    sound: Path, right: dict[str, Any], tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    desk = Desk(sound, tmp_path / "desk")
    overwrite(desk.library, damaged(desk.library.read_bytes()))
    assert isinstance(answer_or_sentence(desk.papers), StoreDamaged)
    with closing(Conversations(desk.library)) as kept:  # they do not need the library
        assert len(kept.summaries()) == len(right["conversations"])
    desk.app.run(rebuild=True)
    assert {name: getattr(desk, name)() for name in right} == right
    (aside,) = set_aside(desk.library)
    assert desk.notices == [f"The old library could not be used and was set aside as {aside.name}."]
    assert desk.app.verify() == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE texts SET text = replace(text, 'sponge', 'spange')",
        "DELETE FROM texts",
        "UPDATE papers SET text_crc = text_crc + 1",
        "UPDATE papers SET length = length + 1",
        "UPDATE papers SET starts = '[0, 20]'",
        "UPDATE papers SET starts = '[20, 0]'",
        'UPDATE papers SET labels = \'["9", "10"]\'',
        "UPDATE papers SET metadata = replace(metadata, 'On ', 'Of ')",
        "UPDATE papers SET problems = '[[['",
        "UPDATE papers SET sections = '[]'",
        "UPDATE papers SET sections = replace(sections, 'Methods', 'methods')",
        "UPDATE papers SET digest = zeroblob(16)",
        "UPDATE chunks SET start = start + 1",
        'UPDATE chunks SET "end" = 9999999',
        "UPDATE chunks SET start = 'x'",
        "UPDATE chunks SET text_hash = upper(text_hash)",
        "UPDATE vectors SET data = data || x'00'",
        "UPDATE vectors SET data = x'' || substr(data, 1, 40) || x'41' || substr(data, 42)",
        "UPDATE vectors SET data = zeroblob(256)",
        "UPDATE vectors SET data = 5",
        "UPDATE meta SET value = 'x' WHERE key = 'generation'",
        "DELETE FROM meta WHERE key = 'epoch'",
        "UPDATE meta SET value = '[1' WHERE key = 'fingerprint'",
    ],
)
def test_a_question_never_gets_what_was_not_stored(
    sound: Path, right: dict[str, Any], tmp_path: Path, damage: str
) -> None:
    desk = Desk(sound, tmp_path / "desk")
    tamper(desk.library, damage)
    found = answer_or_sentence(desk.hits)
    assert isinstance(found, StoreDamaged)
    assert found.happened.startswith(f"The library {desk.library} ")
    assert "--rebuild" in found.remedy
    assert answer_or_sentence(desk.app.verify)
    desk.app.run(rebuild=True)
    assert {name: getattr(desk, name)() for name in right} == right
    assert desk.app.verify() == []


@pytest.mark.parametrize("killed_after", ["library.sqlite", "library.sqlite-wal", "nothing"])
def test_a_killed_rebuild_of_a_damaged_library_loses_nothing(
    sound: Path, right: dict[str, Any], tmp_path: Path, killed_after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(sound, tmp_path / "desk")
    tamper(desk.library, "DROP TABLE vectors")
    # As a server does: what was written last is in the write-ahead logs alone
    keepers = [sqlite3.connect(path) for path in (desk.library, desk.user)]
    for keeper, change in zip(
        keepers,
        ("UPDATE meta SET value = value || '0' WHERE key = 'described'", "UPDATE queries SET feedback = 'good'"),
        strict=True,
    ):
        keeper.execute("PRAGMA wal_autocheckpoint = 0")
        keeper.execute(change)
        keeper.commit()
    assert desk.library.with_name("library.sqlite-wal").stat().st_size

    class Killed(BaseException):
        pass

    rename = os.replace

    def rename_and_die(old: Path, new: Path) -> None:
        if old.name == "rebuild.sqlite":
            raise Killed
        rename(old, new)
        if old.name == killed_after:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", rename_and_die)
        with pytest.raises(Killed):
            desk.app.run(rebuild=True)
    for keeper in keepers:
        keeper.close()
    for ask in (desk.hits, desk.papers, desk.app.run, desk.app.verify):  # nothing makes a new library in its place
        found = answer_or_sentence(ask)
        assert isinstance(found, StoreDamaged)
        assert "--rebuild" in found.remedy
    desk.app.run(rebuild=True)
    assert all(getattr(desk, name)() == right[name] for name in (*OF_PAPERS, "conversations"))
    assert set(desk.questions().values()) == {"good"}
    assert len(desk.questions()) == 30
    assert desk.app.verify() == []
    assert len(set_aside(desk.library)) == 1


# What people said


@pytest.mark.parametrize("seed", SEEDS)
def test_twenty_flipped_bits_of_what_people_said(sound: Path, right: dict[str, Any], tmp_path: Path, seed: int) -> None:
    """An edit, or the name of a conversation, may be another afterwards: nothing tells what a person wrote."""
    desk = Desk(sound, tmp_path / "desk")
    desk.damage(desk.user, seed)
    answers, shown = (answer_or_sentence(ask) for ask in (desk.answers, desk.conversations))
    assert answers == right["answers"] or (isinstance(answers, FolioError) and answers.remedy)
    if isinstance(shown, FolioError):
        assert shown.remedy
    else:  # SQLite may not find one, and never gives another
        assert all(turn in right["conversations"][id] for id, turns in shown.items() for turn in turns)
    desk.ask_everything()
    answer_or_sentence(desk.app.repair)
    assert desk.app.verify() == []
    assert (desk.answers(), desk.conversations()) == (right["answers"], right["conversations"])
    assert set(desk.questions()) == ALL_QUESTIONS
    assert set_aside(desk.library) == []
    assert len(desk.notices) <= 2


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("UPDATE queries SET answer = 'It is not.' WHERE id < 3", "questions"),
        ("UPDATE queries SET feedback = 'goof' WHERE id < 3", "questions"),
        ("UPDATE turns SET reply = replace(reply, 'sponge', 'sp0nge') WHERE place = 1 AND id < 5", "turns"),
        ("UPDATE turns SET memory = CAST(x'ff' AS TEXT) WHERE place = 1 AND id < 5", "turns"),
        ("UPDATE metadata SET fields = '{'", "edits"),
        ("UPDATE metadata SET fields = CAST(x'7bff7d' AS TEXT)", "edits"),
    ],
)
def test_a_row_that_cannot_be_read_is_restored(
    sound: Path, right: dict[str, Any], tmp_path: Path, damage: str, what: str, kept: bool
) -> None:
    desk = Desk(sound, tmp_path / "desk")
    tamper(desk.user, damage)
    if not kept:
        for copy in copies(desk.user):
            copy.unlink()
    assert desk.app.verify()
    assert desk.app.backend.is_sound()  # so that a person is told to repair, not to read all PDFs again
    desk.app.repair()
    count = 1 if what == "edits" else 2
    (notice,) = desk.notices
    assert notice == (
        f"Parts of your questions, conversations and edits that could not be read: {count}. Taken from a copy of an"
        f" earlier day: {count if kept else 0}; lost: {0 if kept else count}."
    )
    assert desk.app.verify() == []
    if kept:
        assert desk.said() == right["said"]
        return
    turns = [turn for each in desk.conversations().values() for turn in each]
    lost = {"questions": (28, 15, 1), "turns": (30, 13, 1), "edits": (30, 15, 0)}[what]
    assert (len(desk.questions()), len(turns), len(desk.said()["metadata"])) == lost
    with closing(Conversations(desk.library)) as conversations:  # numbered without gaps: they can be continued
        for found in conversations.summaries():
            numbers = [(turn.place, turn.reply["turn"]) for turn in conversations.turns(found.id)]
            assert numbers == [(place, place) for place in range(1, found.turns + 1)]


@pytest.mark.parametrize(
    ("damaged", "library_too"),
    [
        (lambda content: content[:-5000], True),
        (lambda content: b"", False),
        (lambda content: b"Dear diary," * 999, True),
        (None, False),
    ],
    ids=["cut", "emptied", "another file", "removed"],
)
def test_user_data_comes_back_from_its_copy(
    sound: Path,
    right: dict[str, Any],
    tmp_path: Path,
    damaged: Callable[[bytes], bytes] | None,
    library_too: bool,
) -> None:
    desk = Desk(sound, tmp_path / "desk")
    if damaged is None:
        desk.user.unlink()
    else:
        overwrite(desk.user, damaged(desk.user.read_bytes()))
        if not desk.user.stat().st_size:  # SQLite takes an empty file for a new one, whatever is in its log
            desk.user.with_name("user.sqlite-wal").write_bytes(b"a log of it")
    if library_too:
        overwrite(desk.library, desk.library.read_bytes()[:-20000])
    with pytest.raises(UserFileDamaged):
        desk.app.run(rebuild=library_too)
    assert desk.notices == []
    assert isinstance(answer_or_sentence(desk.app.repair), StoreDamaged) == library_too
    desk.app.run(rebuild=library_too)
    assert {name: getattr(desk, name)() for name in right} == right
    assert desk.app.verify() == []
    of_user = [notice for notice in desk.notices if notice.startswith("user.sqlite was ")]
    assert len(of_user) == 1
    assert len(desk.notices) == 1 + library_too
