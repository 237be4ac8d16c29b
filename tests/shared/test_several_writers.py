"""Several computers on one library in PostgreSQL: they ingest, are killed, rebuild, edit and ask at the same time."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from folio.errors import StoreBusy, StoreMissing
from folio.ingest import discovery
from folio.ingest.discovery import Outcome
from folio.papers.model import SourceFile
from folio.shared import published
from folio.shared.postgres import PostgresDatabase
from folio.shared.store import PostgresStore
from folio.store import notes
from folio.store.note_places import listed, quote_at
from folio.store.query_log import QueryLog
from folio.system import workers
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import HashingApp, RecordedProgress, read_once
from tests.helpers.postgres import PostgresServer
from tests.helpers.shared_writer import shared_app, writer

WORDS = ("lattice", "sponge", "gradient", "rotation", "kelp", "glacier", "signature", "momentum", "padding", "urchin")
PAPERS = 6


def make_papers(folder: Path, first: int = 0, end: int = PAPERS, edition: int = 0) -> Path:
    """Papers of about ten passages each; one is in two files."""
    for number in range(first, end):
        pages = [
            " ".join(f"The {WORDS[(number + n) % 10]} of paper {number} has {n + page} parts in edition {edition}."
                     for n in range(10))
            for page in range(2)
        ]  # fmt: skip
        write_pdf(folder / f"p{number:02}.pdf", pages, f"On {WORDS[number % 10]} {number}")
    if not first:
        (folder / "a copy.pdf").write_bytes((folder / "p00.pdf").read_bytes())
    return folder


@dataclass(frozen=True)
class Template:
    """What a computer has ingested, to be copied: the papers and its store in a folder, the library in a database.

    The papers are always in `work`, for the library knows where.
    """

    folder: Path
    work: Path
    database: str


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Template:
    folder, database = tmp_path_factory.mktemp("several"), postgres.new_database()
    made = Template(folder / "kept", folder / "work", database)
    make_papers(made.work / "papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        outcomes = shared_app(made.work, made.work / "first", postgres.url(database)).run()
    assert Counter(outcome.status for outcome in outcomes) == {"added": PAPERS, "duplicate": 1}
    made.work.rename(made.folder)
    return made


@pytest.fixture
def papers(template: Template, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose subfolder `papers` has the papers."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    shutil.rmtree(template.work, ignore_errors=True)
    shutil.copytree(template.folder / "papers", template.work / "papers")
    return template.work


@pytest.fixture
def url(postgres: PostgresServer, template: Template, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database, or of one with the papers in it where the test needs them ingested."""
    name = postgres.new_database(*[template.database] if "ingested" in request.fixturenames else [])
    yield postgres.url(name)
    postgres.drop_database(name)


@pytest.fixture
def computer(papers: Path, url: str) -> Callable[..., HashingApp]:
    """Makes the tool of a computer with a folder of this name."""
    return lambda name, **more: shared_app(papers, papers / name, url, **more)


@pytest.fixture
def ingested(template: Template, papers: Path, computer: Callable[..., HashingApp]) -> HashingApp:
    """The tool of a computer that has ingested all papers."""
    shutil.copytree(template.folder / "first", papers / "first")
    return computer("first")


def store_of(app: HashingApp) -> PostgresStore:
    assert isinstance(app.backend, PostgresStore)
    return app.backend


def require_whole(app: HashingApp, count: int = PAPERS) -> None:
    """The library has each paper once and no fault; nothing is left of jobs and writers."""
    with closing(store_of(app).open()) as library:
        assert library.check() == []
        assert len(library.papers()) == count
        assert len(library.files()) == count + 1
        assert library.failures() == []
        assert library._query("SELECT paper FROM jobs") == []
        assert {paper for (paper,) in library._query("SELECT DISTINCT paper FROM pdfs")} == set(library.added())
        texts = library._query("SELECT count(*) FROM pending")
        assert texts == [(0,)]


def hits(app: HashingApp, question: str = "glacier parts") -> list[tuple[str, int, float]]:
    with closing(app.open_library()) as library:
        found = app.retriever(library).search(question, 8).hits
        return [(hit.paper.file, hit.chunk.id, round(hit.score, 6)) for hit in found]


def added(lines: Sequence[str]) -> set[str]:
    return {line.split(" ", 1)[1] for line in lines if line.startswith("added ")}


# Ingesting


def test_two_computers_share_the_work(papers: Path, url: str, computer: Callable[..., HashingApp]) -> None:
    with (
        writer("ingest", papers, papers / "one", url, 0.03) as one,
        writer("ingest", papers, papers / "other", url, 0.03) as other,
    ):
        done = [one.finish(), other.finish()]
    first, second = map(added, done)
    assert first
    assert second
    assert not first & second
    assert len(first | second) == PAPERS
    require_whole(computer("third"))


@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_computers_work_is_taken_over(
    papers: Path, url: str, computer: Callable[..., HashingApp], after: int
) -> None:
    with (
        writer("ingest", papers, papers / "killed", url, 0.05) as killed,
        writer("ingest", papers, papers / "other", url, 0.05) as other,
    ):
        before = killed.wait_for(after) + killed.kill()
        done = added(other.finish())
    assert len(done | added(before)) == PAPERS
    require_whole(computer("third"))


def test_a_claim_is_taken_over_once_its_writer_has_ended(ingested: HashingApp) -> None:
    file, known = SourceFile("/papers/new.pdf", "new.pdf", "f" * 64), SourceFile("/papers/x.pdf", "x.pdf", "")
    store = store_of(ingested)
    with closing(store.open()) as one, closing(store.open()) as other:
        known = one.files()[0]
        assert not one.claims.claim(known)  # it is there
        assert one.claims.claim(known, is_known=True)
        for _ in range(2):
            assert one.claims.claim(file)
        assert not other.claims.claim(file)
        one.claims.release(file)
        assert other.claims.claim(file)
        assert not one.claims.claim(file)
        assert other.claims._alive is not None
        other.claims._alive.close()  # as when its computer has died
        deadline = time.monotonic() + 30
        while not one.claims.claim(file):  # the server notices a closed connection some time later
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not other.claims.claim(file)
        with closing(store.open()) as third:
            assert not third.claims.claim(file)
            one.close()
            assert third.claims.claim(file)


def test_edits_questions_and_conversations_of_several_computers_are_all_kept(
    papers: Path, url: str, ingested: HashingApp
) -> None:
    with (
        writer("say", papers, papers / "one", url) as one,
        writer("say", papers, papers / "other", url) as other,
    ):
        one.finish(), other.finish()
    with closing(store_of(ingested).open()) as library, closing(ingested.conversations()) as conversations:
        assert library.check() == []
        assert {len(paper.metadata.venue.value) for paper in library.papers()} == {12}
        assert len(library.described()) == PAPERS + 12
        assert [row for row, _ in QueryLog(library.database).entries()] == list(range(24, 0, -1))
        kept = conversations.summaries()
        assert sorted(each.turns for each in kept) == [6, 6, 12]
        assert [turn.place for turn in conversations.turns("together" * 2)] == list(range(1, 13))


# Rebuilding


class Reader:
    """Asks again and again, as a computer that serves; what it saw of papers is kept."""

    def __init__(self, app: HashingApp) -> None:
        self.seen: set[tuple[str, ...]] = set()
        self.questions = 0
        self.error: BaseException | None = None
        self._app, self._ends = app, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            with closing(self._app.open_library()) as library:
                while not self._ends.is_set():
                    self._look(library)
        except BaseException as error:
            self.error = error

    def _look(self, library: Any) -> None:
        files = {file.sha256 for file in library.files()}  # outside a snapshot
        assert len(files) == PAPERS
        with library.reading():
            papers = library.papers()
            texts = {library.text(paper.id, 0, paper.length) for paper in papers}
            chunks = library.chunk_ids_of([paper.id for paper in papers])
            assert len(library.read_chunks(chunks)) == len(chunks) == library.chunk_count()
        editions = {text.rpartition("edition ")[2][0] for text in texts}
        self.seen.add(tuple(sorted(editions)))
        found = self._app.retriever(library).search("glacier parts", 5).hits
        assert len(found) == 5
        self.questions += 1


def test_readers_see_the_old_library_or_the_new_one(
    papers: Path, url: str, ingested: HashingApp, computer: Callable[..., HashingApp]
) -> None:
    make_papers(papers / "papers", edition=1)
    with Reader(computer("reader")) as reader:
        for store in ("one", "other"):
            with writer("rebuild", papers, papers / store, url) as one:
                assert len(added(one.finish())) == PAPERS
        count = reader.questions
        while reader.questions < count + 2 and reader.error is None:
            time.sleep(0.02)
    assert reader.seen == {("0",), ("1",)}
    require_whole(ingested)
    require_one_schema(url)


def test_notes_are_on_the_papers_of_a_rebuild(papers: Path, ingested: HashingApp) -> None:
    with closing(store_of(ingested).open()) as library:
        texts = {paper: library.text(paper.id, 0, paper.length) for paper in library.papers()[:3]}
        for paper, text in texts.items():
            notes.add(library.database, [quote_at(library, paper, 0, 20), quote_at(library, paper, 0, len(text))])
            write_pdf(papers / "papers" / paper.file, [f"{text[:-30]} at last."], paper.title)
    ingested.run(rebuild=True)
    with closing(store_of(ingested).open()) as library:
        places = {note.note.quotes[0].file: tuple(each.place for each in note.quotes) for note in listed(library)}
        assert places.pop("p00.pdf") == ("here", "here")  # only a copy of it was replaced
        assert set(places.values()) == {("moved", "lost")}
        assert len(places) == 2


def require_one_schema(url: str) -> None:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'folio%'").fetchall()
        assert found == [(2,)]  # what people said, and the papers
        assert connection.execute("SELECT key FROM folio.kept WHERE key = 'rebuild'").fetchall() == []


def test_two_rebuilds_at_once_share_the_work(
    papers: Path, url: str, ingested: HashingApp, computer: Callable[..., HashingApp]
) -> None:
    make_papers(papers / "papers", edition=1)
    with (
        writer("rebuild", papers, papers / "one", url, 0.03) as one,
        writer("rebuild", papers, papers / "other", url, 0.03) as other,
    ):
        done = added(one.finish()) | added(other.finish())
    assert len(done) == PAPERS
    require_whole(ingested)
    require_one_schema(url)


def test_a_killed_rebuild_leaves_the_library_and_is_continued(
    papers: Path, url: str, ingested: HashingApp, computer: Callable[..., HashingApp]
) -> None:
    before = hits(ingested)
    make_papers(papers / "papers", edition=1)
    with writer("rebuild", papers, papers / "killed", url, 0.05) as killed:
        first = added([*killed.wait_for(3), *killed.kill()])
    assert hits(ingested) == before
    with writer("rebuild", papers, papers / "other", url) as other:
        assert len(added(other.finish()) | first) == PAPERS
    require_whole(ingested)
    require_one_schema(url)
    assert hits(ingested) != before


def test_papers_that_are_added_during_a_rebuild_are_not_lost(
    papers: Path, ingested: HashingApp, computer: Callable[..., HashingApp], url: str
) -> None:
    def rebuilding() -> Iterator[Outcome]:
        progress = RecordedProgress()
        files, _ = discovery.hash_files(discovery.find_pdfs([papers / "papers"]), progress)
        return ingested.rebuild(files, progress)

    outcomes = rebuilding()
    next(outcomes)
    make_papers(papers / "papers", PAPERS, PAPERS + 1)
    assert [outcome.file.name for outcome in _new(computer("other").run())] == [f"p{PAPERS:02}.pdf"]
    with pytest.raises(StoreBusy, match=f"Another computer has added papers during the rebuild: p{PAPERS:02}.pdf."):
        list(outcomes)
    require_whole(ingested, PAPERS + 1)
    assert len(added([f"{one.status} {one.file.name}" for one in rebuilding()])) == 1  # it continues
    require_whole(ingested, PAPERS + 1)
    require_one_schema(url)


def test_a_transaction_after_a_rebuild_works_on_the_new_library(
    ingested: HashingApp, computer: Callable[..., HashingApp]
) -> None:
    store = store_of(ingested)
    with closing(store.open()) as one, closing(store.open()) as other:
        (first, *_), schema = other.papers(), "folio_abcdef"
        done: list[list[str]] = []

        def change() -> None:
            with other.database.transaction():
                done.append([file.name for file in other.files()])

        with closing(store.database(schema=schema)):
            pass
        with one.database.transaction():
            thread = threading.Thread(target=change)
            thread.start()
            time.sleep(0.3)
            assert isinstance(one.database, PostgresDatabase)
            one.database.serve(schema)
        thread.join()
        assert done == [[]]  # the new one is empty
        one.database.drop_unused()
        assert other.files() == []
        assert other.papers_by_id([first.id]) == []


# PDFs


def test_a_pdf_without_its_file_comes_from_the_database(ingested: HashingApp, tmp_path: Path) -> None:
    with closing(store_of(ingested).open()) as library:
        file = library.files()[3]
        copy = library.copy_of(file.sha256, tmp_path / "copies")
        assert copy is not None
        assert hashlib.sha256(copy.read_bytes()).hexdigest() == file.sha256
        assert library.copy_of(file.sha256, tmp_path / "copies") == copy
        assert library.copy_of("0" * 64, tmp_path / "copies") is None
        assert len(list((tmp_path / "copies").iterdir())) == 1


def test_an_incomplete_pdf_in_the_database_is_not_returned(ingested: HashingApp, tmp_path: Path) -> None:
    with closing(store_of(ingested).open()) as library:
        file = library.files()[3]
        with library.database.transaction("user"):
            library.database.execute("UPDATE pdfs SET data = :data WHERE paper = :paper", data=b"x", paper=file.sha256)
        assert library.copy_of(file.sha256, tmp_path / "copies") is None


# Index files in the database


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether index files were fetched, each time that they might have been."""
    found: list[bool] = []
    fetch = published.fetch

    def noted(*arguments: Any) -> bool:
        found.append(fetch(*arguments))
        return found[-1]

    monkeypatch.setattr(published, "fetch", noted)
    return found


def test_a_fresh_computer_fetches_index_files_that_find_the_same(
    ingested: HashingApp, computer: Callable[..., HashingApp], fetched: list[bool], url: str
) -> None:
    expected = hits(ingested)
    assert len(expected) == 8
    assert hits(computer("fresh")) == expected
    assert fetched == [True]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DELETE FROM folio.published")
    assert hits(computer("builds")) == expected
    assert fetched == [True, False]


def _forged(name: str, kind: bytes = tarfile.REGTYPE) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        member.size = 4 if kind == tarfile.REGTYPE else 0
        tar.addfile(member, io.BytesIO(b"evil"))
    return made.getvalue()


def _replaced(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"UPDATE folio.published SET data = '\\x{content.hex()}', digest = '{digest}'"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE folio.published SET parts = 2",
        "UPDATE folio.published SET data = set_byte(data, 5000, 255 - get_byte(data, 5000))",
        "UPDATE folio.published SET epoch = 'another'",
        "UPDATE folio.published SET generation = generation + 100",
        "UPDATE folio.published SET kind = 'faiss 99'",
        _replaced(b""),
        _replaced(b"no tar"),
        _replaced(_forged("../vectors-1.faiss")),
        _replaced(_forged("/tmp/vectors-1.faiss")),
        _replaced(_forged("lexical/../../meta.json")),
        _replaced(_forged("library.sqlite")),
        _replaced(_forged("vectors-1.faiss", tarfile.SYMTYPE)),
        _replaced(_forged("lexical/meta.json", tarfile.LNKTYPE)),
        _replaced(_forged("lexical/meta.json")),
    ],
    ids=[
        "a part is missing", "a bit is flipped", "another epoch", "of the future", "another format", "empty", "no tar",
        "above", "elsewhere", "above by a folder", "no index", "a symbolic link", "a hard link", "not what it says",
    ],
)  # fmt: skip
def test_published_files_that_are_not_sound_do_no_harm(
    ingested: HashingApp, computer: Callable[..., HashingApp], url: str, damage: str, papers: Path
) -> None:
    expected = hits(ingested)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(damage.encode())
    before = {path for path in papers.rglob("*") if path.is_file()}
    assert hits(computer("fresh")) == expected
    new = {path.relative_to(papers) for path in papers.rglob("*") if path.is_file()} - {
        path.relative_to(papers) for path in before
    }
    assert all(path.parts[0] == "fresh" for path in new)
    assert not (papers / "fresh" / "library.sqlite").exists()


def test_older_published_files_are_brought_up_to_date(
    ingested: HashingApp, computer: Callable[..., HashingApp], papers: Path, fetched: list[bool]
) -> None:
    make_papers(papers / "papers", PAPERS, PAPERS + 1)
    assert [outcome.status for outcome in _new(ingested.run())] == ["added"]
    fetched.clear()
    assert hits(computer("fresh"), f"paper {PAPERS}") == hits(ingested, f"paper {PAPERS}")
    assert fetched == [True]


def _new(outcomes: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.status != "unchanged"]


def test_a_library_that_is_missing_is_said_to_be(computer: Callable[..., HashingApp]) -> None:
    app = computer("first")
    assert not app.has_library()
    with pytest.raises(StoreMissing):
        app.open_library()
    with closing(app.conversations()) as conversations:
        assert conversations.summaries() == ()


def test_a_computer_whose_files_are_behind_has_no_fault(
    ingested: HashingApp, computer: Callable[..., HashingApp], papers: Path
) -> None:
    second = computer("second")
    make_papers(papers / "papers", PAPERS, PAPERS + 1)
    assert "added" in {outcome.status for outcome in second.run()}
    assert ingested.verify() == []
    (next((papers / "first").glob("vectors-*.faiss"))).unlink()
    assert len(ingested.verify()) == 1  # that is one
