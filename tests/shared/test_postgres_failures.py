"""What a library in PostgreSQL does when the server, the network or the rights fail it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from config import PERSONAL
from folio.errors import DiskFull, StoreCut, StoreError, StoreMissing
from folio.shared import postgres as postgres_engine
from folio.shared.postgres import PostgresDatabase, place_of
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.system import workers
from tests.helpers.adder import Adder, add_numbered, number_of, open_library
from tests.helpers.cli_runner import CliRunner
from tests.helpers.engines import add, file, paper, rows_of
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, read_once
from tests.helpers.libraries import ENTRY
from tests.helpers.postgres import PostgresServer, free_port, new_folder, once_it_answers, own, running_server
from tests.helpers.shared_writer import shared_app
from tests.helpers.tcp_proxy import TcpProxy
from tests.helpers.tls_stand_in import certificate, tls_stand_in

PASSWORD = "s3cret-p%40ss"  # as it is written in an address


def generation(library: Library) -> int:
    with library.reading() as stamp:
        return stamp.generation


def require_whole(url: str, adder: Adder) -> None:
    with closing(open_library(url)) as library:
        assert library.check() == []
        found = {number_of(id) for id in library.added()}
        assert found >= set(adder.acknowledged)
        assert len(found - set(adder.acknowledged)) <= 1  # done, and not said
    for error in adder.errors:
        assert_plain(error)


def assert_plain(error: StoreError) -> None:
    """One sentence of what happened and one of what to do, without a password."""
    told = f"{error.happened} {error.remedy}"
    assert "\n" not in told
    assert error.happened.endswith(".")
    assert error.remedy.endswith(".")
    for secret in ("s3cret", "p@ss", "Traceback"):
        assert secret not in told


# The server ends


def test_killed_servers_tear_and_lose_nothing() -> None:
    with running_server(fsync=True) as server:
        url = server.url(server.new_database())
        open_library(url, create=True).close()
        with Adder(url) as adder:
            for kill in range(3):  # many: python -m campaign.postgres_kills
                adder.wait_for(3)
                time.sleep(0.007 * kill)
                server.kill()
                server.start()
            adder.wait_for(3)
        require_whole(url, adder)
        assert len(adder.errors) <= 3


def test_work_is_claimed_again_after_the_server_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_engine, "RETRY_S", 0.5)
    with running_server() as server:
        url = server.url(server.new_database())
        with closing(open_library(url, create=True)) as library:
            assert library.claims.claim(file("a.pdf", "a"))
            server.kill()
            with pytest.raises(StoreError) as refused:
                library.claims.claim(file("b.pdf", "b"))
            assert_plain(refused.value)
            server.start()
            assert library.claims.claim(file("b.pdf", "b"))
            with closing(open_library(url)) as other:
                assert other.claims.claim(file("a.pdf", "a"))
                assert not other.claims.claim(file("b.pdf", "b"))


@contextmanager
def replicated() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """Two servers: what is committed on the first is on the second before it is acknowledged."""
    with running_server() as first:
        second = PostgresServer(new_folder())
        second._environment = first._environment
        try:
            source = f"host=127.0.0.1 port={first.port} user=postgres"
            second.run("pg_basebackup", "-D", str(second.data), "-d", source, "-R", "-X", "stream", "-c", "fast")
            second.start()
            first.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            first.execute("SELECT pg_reload_conf()")
            while first.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
                time.sleep(0.05)
            yield first, second
        finally:
            second.remove()


def test_another_server_takes_over_and_nothing_acknowledged_is_missing() -> None:
    with replicated() as (first, second):
        name = first.new_database()
        url = (
            f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/{name}"
            "?target_session_attrs=read-write&sslmode=disable"
        )
        open_library(url, create=True).close()
        with closing(once_it_answers(lambda: open_library(second.url(name)))) as replica:
            assert replica.is_read_only
            with pytest.raises(StoreError) as refused:
                add_numbered(replica, 999)
            assert_plain(refused.value)
        with Adder(url) as adder:
            adder.wait_for(5)
            first.kill()
            second.run("pg_ctl", "promote", "-D", str(second.data))
            adder.wait_for(5)
        require_whole(url, adder)
    assert len(adder.errors) <= 2


# The network


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[TcpProxy]:
    made = TcpProxy(postgres.port)
    yield made
    made.close()


@pytest.fixture
def far(postgres: PostgresServer, url: str, proxy: TcpProxy) -> Iterator[Library]:
    """A library through the proxy, with one paper."""
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    with closing(open_library(postgres.url(str(name), port=proxy.port), create=True)) as library:
        add_numbered(library, 0)
        yield library


def _is_commit(data: bytes) -> bool:
    return b"COMMIT" in data


@pytest.mark.parametrize(("forwards", "late_s"), [(True, 0.0), (False, 0.0), (True, 1.0)], ids=["done", "not", "late"])
def test_an_unanswered_commit_is_done_once(
    far: Library, proxy: TcpProxy, url: str, forwards: bool, late_s: float
) -> None:
    before = generation(far)
    proxy.forwards_cut, proxy.late_s = forwards, late_s
    for do in (lambda: add_numbered(far, 1), lambda: QueryLog(far.database).add(ENTRY)):
        proxy.cut_at = _is_commit
        do()
        assert proxy.cut_at is None
    with closing(open_library(url)) as other:
        assert generation(far) == generation(other) == before + 1
        assert len(other.papers()) == 2
        assert len(QueryLog(other.database).entries()) == 1
        add_numbered(far, 2)
        assert other.check() == []


def test_a_commit_that_did_not_arrive_is_known_as_not_done(far: Library, proxy: TcpProxy) -> None:
    before = rows_of(far.database)

    def forget() -> None:
        with far.database.transaction():
            far.database.execute("DELETE FROM papers")

    proxy.cut_at = _is_commit
    with pytest.raises(StoreCut) as refused:
        forget()
    assert_plain(refused.value)
    assert rows_of(far.database) == before


def test_a_transaction_unknown_to_the_server_was_not_done(far: Library) -> None:
    assert isinstance(far.database, PostgresDatabase)
    assert not far.database._is_committed(str(2**40))


def test_a_read_is_cut_off_and_the_next_works(far: Library, proxy: TcpProxy) -> None:
    expected = far.papers(), far.files()
    proxy.cut_answer = lambda data: True
    assert far.files() == expected[1]  # alone, it is read again
    with far.reading():
        proxy.cut_answer = lambda data: True
        with pytest.raises(StoreError) as refused:
            far.papers_by_id(["0" * 8 + "a" * 56, "9" * 64])
        assert_plain(refused.value)
    assert (far.papers(), far.files()) == expected
    proxy.cut()  # as after a night
    assert (far.papers(), far.files()) == expected
    proxy.cut()
    add_numbered(far, 1)
    assert len(far.papers()) == 2


def test_the_server_looks_whether_a_computer_is_still_there(far: Library) -> None:
    database = far.database
    assert isinstance(database, PostgresDatabase)
    assert database.query("SHOW tcp_keepalives_idle") == [("10",)]
    with closing(database.another_connection()) as connection:
        assert connection.execute("SHOW tcp_keepalives_idle").fetchall() == [("10",)]


def test_a_transaction_that_is_cut_off_leaves_nothing(far: Library, proxy: TcpProxy) -> None:
    before = rows_of(far.database)

    def forget() -> None:
        with far.database.transaction():
            far.database.execute("DELETE FROM papers")
            far.database.execute("DELETE FROM pending")

    proxy.cut_at = lambda data: b"DELETE FROM pending" in data
    with pytest.raises(StoreCut) as refused:
        forget()
    assert_plain(refused.value)
    assert rows_of(far.database) == before
    proxy.cut_at = lambda data: b"INSERT INTO chunks" in data
    add_numbered(far, 1)  # it is added again
    assert far.check() == []


def test_a_connection_that_cannot_be_rolled_back_is_given_up(far: Library) -> None:
    """As when it was lost while rows were sent together: psycopg may leave it open, and of no more use."""
    database = far.database
    assert isinstance(database, PostgresDatabase)

    def use_it_up(begin: Callable[[], AbstractContextManager[object]]) -> None:
        with begin():
            database._own.pgconn.enter_pipeline_mode()
            database._own.pgconn.send_query_params(b"SELECT 1", None)
            far.files()

    for begin in (lambda: database.transaction("library"), database.snapshot, database.deriving):
        before = database._own
        with pytest.raises(StoreError):
            use_it_up(begin)
        add_numbered(far, 1)
        assert database._own is not before
    assert far.check() == []


def test_a_question_over_a_slow_network(
    tmp_path: Path, postgres: PostgresServer, url: str, proxy: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)
    small_papers(tmp_path / "papers")
    app = shared_app(tmp_path, tmp_path / "near", url, RERANKER="builtin")
    app.run()
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    distant = shared_app(tmp_path, tmp_path / "near", postgres.url(str(name), port=proxy.port), RERANKER="builtin")
    proxy.delay_s = 0.05
    with closing(distant.open_library()) as library:
        chat = distant.chat(library, top_k=5)
        trips: list[int] = []
        for question in ("How long is the Aletsch glacier?", "What do otters eat?"):
            before = proxy.round_trips
            answer = chat.ask(question).answer
            assert answer.evidence
            trips.append(proxy.round_trips - before)
        before = proxy.round_trips
        distant.query_log(library).add(ENTRY)
        logged = proxy.round_trips - before
    assert max(trips) <= 25
    assert logged <= 4


# The address


@pytest.fixture(scope="module")
def guarded() -> Iterator[PostgresServer]:
    """A server that asks for a password over the network."""
    with running_server() as server:
        server.execute("CREATE ROLE secured LOGIN PASSWORD 's3cret-p@ss'")
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"host all secured 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        server.execute("SELECT pg_reload_conf()")
        server.execute("GRANT CREATE ON DATABASE postgres TO secured")
        yield server


def secured(server: PostgresServer, password: str = PASSWORD, **options: str) -> str:
    return server.url("postgres", f"secured:{password}", port=server.port, **options)


def test_a_password_opens_the_library_and_is_never_told(guarded: PostgresServer) -> None:
    with closing(PostgresDatabase(secured(guarded), create=True)) as database:
        assert "s3cret" not in database.place + repr(database)
    guarded.execute("DROP SCHEMA IF EXISTS folio CASCADE")


def test_what_is_wrong_with_an_address_is_said_plainly(
    guarded: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_engine, "RETRY_S", 0.5)
    closed, host = free_port(), f"postgresql://secured:{PASSWORD}@127.0.0.1"
    trusted, key = certificate(tmp_path, "trusted")
    other, other_key = certificate(tmp_path, "other")
    with tls_stand_in(trusted, key) as port, tls_stand_in(other, other_key) as foreign:
        cases = {
            secured(guarded, "wr0ng-s3cret"): "password authentication failed",
            f"{host}:{closed}/x": "refused",
            f"postgresql://secured:{PASSWORD}@no-such-host.invalid/x": "",
            f"{host}:{guarded.port}/postgres?sslmode=require": "SSL",
            f"{host}:{foreign}/x?sslmode=verify-full&sslrootcert={trusted}": "certificate",
            f"{host}:{port}/x?sslmode=verify-full&sslrootcert={tmp_path}/none": "",
            secured(guarded).replace("/postgres?", "/no_such_name?"): "no_such_name",
            secured(guarded).replace("disable", "nonsense"): "",
        }
        for url, said in cases.items():
            began = time.monotonic()
            with pytest.raises(StoreError) as refused:
                PostgresDatabase(url, create=True)
            assert time.monotonic() - began < 5, url
            assert_plain(refused.value)
            assert said in refused.value.happened, refused.value.happened


@pytest.mark.parametrize(
    "password", ["s3cret/p@ss", "s3cret@p@ss", "s3cret?p@ss", "%zzs3cret", "12/s3cret", "s3cret#", "s3cret:pass"]
)
def test_an_address_that_needs_escaping_reveals_no_password(password: str) -> None:
    url = f"postgresql://me:{password}@host.example/papers"
    if password in ("s3cret#", "s3cret:pass"):  # these may be as they are
        assert place_of(url) == "the database papers on host.example"
        return
    with pytest.raises(StoreError) as refused:
        place_of(url)
    assert_plain(refused.value)
    assert "%2F" in refused.value.remedy


def test_the_database_address_is_not_read_from_a_checkout() -> None:
    assert "DATABASE_URL" in PERSONAL


def test_commands_end_with_a_sentence_and_without_a_password(guarded: PostgresServer, desk: CliRunner) -> None:
    small_papers(desk.papers)
    wrong = secured(guarded, "wr0ng-s3cret")
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "STORE": "postgres", "DATABASE_URL": wrong}
    ran = [desk.spawn("query.py", "How long?"), desk.ingest(), desk.query("--doctor")]
    for result in ran:
        told = " ".join((result.out + result.err).split())
        assert result.code, told
        assert "password authentication failed" in told
        for word in ("Traceback", "s3cret"):
            assert word not in told
    desk.settings["DATABASE_URL"] = secured(guarded)
    ran = [desk.ingest(), desk.query("How long is the glacier?", "--json"), desk.query("--doctor")]
    assert [result.code for result in ran[:2]] == [0, 0]
    assert not [result for result in ran if "s3cret" in result.out + result.err]
    files = [path for path in desk.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"s3cret" in path.read_bytes()]
    guarded.execute("DROP SCHEMA folio CASCADE")


def test_settings_are_recorded_without_the_password(tmp_path: Path, guarded: PostgresServer) -> None:
    app = shared_app(tmp_path, tmp_path / "store", secured(guarded))
    assert "s3cret" not in repr(app) + str(app.settings_used()) + repr(app.backend) + app.settings.model_dump_json()


# Rights


@pytest.fixture
def reader(postgres: PostgresServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HashingApp]:
    """The tool as somebody who may only read a library of two papers."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    small_papers(tmp_path / "papers")
    shared_app(tmp_path, tmp_path / "owner", url).run()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    postgres.execute("CREATE ROLE reader LOGIN; ALTER ROLE reader SET log_min_messages = 'error'")
    schemas = [schema for (schema,) in postgres.execute(
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'folio%'", name)]  # fmt: skip
    for schema in schemas:
        grants = f"GRANT USAGE ON SCHEMA {schema} TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader"
        postgres.execute(grants, name)
    yield shared_app(tmp_path, tmp_path / "reader", postgres.url(name, "reader"), RERANKER="builtin")
    postgres.execute("DROP OWNED BY reader", name)
    postgres.execute("DROP ROLE reader")


def test_a_role_that_may_only_read_can_ask(reader: HashingApp, postgres: PostgresServer, url: str) -> None:
    before = len((postgres.folder / "log").read_bytes())
    with closing(reader.open_library()) as library:
        assert library.is_read_only
        assert reader.chat(library, top_k=5).ask("How long is the Aletsch glacier?").answer.evidence
    with closing(reader.conversations()) as conversations:
        assert not conversations.are_stored
        assert conversations.summaries() == ()
    assert (postgres.folder / "log").read_bytes()[before:] == b""  # nothing was tried that is not allowed
    with pytest.raises(StoreError, match="permission denied") as refused:
        reader.run(retry=["otters.pdf"])
    assert_plain(refused.value)
    assert "rights" in refused.value.remedy
    assert b"permission denied" in (postgres.folder / "log").read_bytes()[before:]  # it would have been noticed


def test_a_role_that_may_not_read_gets_an_error(postgres: PostgresServer, url: str) -> None:
    open_library(url, create=True).close()
    name = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    postgres.execute("CREATE ROLE nobody_here LOGIN")
    with pytest.raises(StoreError) as refused:
        PostgresDatabase(postgres.url(name, "nobody_here"))
    postgres.execute("DROP ROLE nobody_here")
    assert not isinstance(refused.value, StoreMissing)
    assert_plain(refused.value)


# Room


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    folder = new_folder()
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mounted, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("a small disk can be mounted by root alone")
    try:
        yield own(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)
        folder.rmdir()


def _add_long(library: Library, number: int) -> None:
    new = replace(paper("a", os.urandom(200_000).hex()), id=f"{number:08}" + "a" * 56)
    add(library, f"{number}.pdf", new)


def _fill(library: Library) -> tuple[int, StoreError]:
    """Add papers until there is no room; returns how many were acknowledged, and the error."""
    for number in range(1000):
        try:
            _add_long(library, number)
        except StoreError as error:
            return number, error
    raise AssertionError("the disk was not filled")


def test_a_full_disk_is_named_and_tears_nothing() -> None:
    with small_disk(24) as disk, running_server() as server:
        server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        server.execute("CREATE DATABASE full_one TABLESPACE small")
        with closing(open_library(server.url("full_one"), create=True)) as library:
            number, full = _fill(library)
            assert isinstance(full, DiskFull)
            assert "no space left on the server" in full.happened
            require_room_helps(library, disk, number, full)


def test_a_full_disk_stops_the_server_until_there_is_room() -> None:
    with small_disk(72) as disk:
        server = PostgresServer(disk, fsync=True, max_wal_size="8MB", min_wal_size="2MB")
        try:
            server.create("--wal-segsize=1").start()
            name = server.new_database()
            with closing(open_library(server.url(name), create=True)) as library:
                require_room_helps(library, disk, *_fill(library))
        finally:
            server.stop()


def require_room_helps(library: Library, disk: Path, number: int, error: StoreError) -> None:
    """What was acknowledged is there once there is room, and more can be added."""
    assert_plain(error)
    assert number > 0
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    assert library.check() == []
    assert len(library.papers()) == number
    _add_long(library, number)
    assert library.check() == []
    assert len(library.papers()) == number + 1
