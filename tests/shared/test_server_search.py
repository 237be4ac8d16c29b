"""Search in the server: what it finds is what the indexes on disk find, before and after updates, kills and damage."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from folio.errors import IndexDamaged, StoreBusy, StoreError
from folio.shared import server_index, server_search
from folio.shared.postgres import PostgresDatabase
from folio.shared.server_search import ServerIndexes, open_server_indexes
from folio.store.library import Library
from folio.text import tokenize
from tests.helpers.damage import at_once
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.forks import forks_of
from tests.helpers.library_pair import LibraryPair, made_up_questions, made_up_texts, real_texts
from tests.helpers.postgres import PostgresServer, once_it_answers

Found = Sequence[tuple[int, float]]
CHARACTERS = 10**7 if EXHAUSTIVE else 480_000  # of real papers: more than a thousand passages


@pytest.fixture
def pair(tmp_path: Path, url: str) -> Iterator[LibraryPair]:
    made = LibraryPair(tmp_path, url)
    yield made
    made.close()


@pytest.fixture(scope="module")
def real(
    tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer
) -> Iterator[tuple[LibraryPair, ServerIndexes, list[str]]]:
    """A library of real papers, its indexes on the server, and questions."""
    texts, asked = real_texts()
    name = postgres.new_database()
    pair = LibraryPair(tmp_path_factory.mktemp("real"), postgres.url(name))
    added = 0
    for number, text in enumerate(texts):
        if added < CHARACTERS:
            pair.add(f"paper{number}.pdf", text, text[:80].split("\n")[0])
            added += len(text)
    yield pair, pair.update(), [*asked[:40], *made_up_questions(texts, 40)]
    pair.close()
    postgres.drop_database(name)


def assert_same(found: Found, expected: Found) -> None:
    """The same ids in the same order; scores may differ in the fifth digit."""
    assert [chunk for chunk, _ in found] == [chunk for chunk, _ in expected]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], rtol=2e-5)


def assert_finds(
    pair: LibraryPair, indexes: ServerIndexes, questions: Sequence[str], expected: Sequence[tuple[Found, Found]]
) -> None:
    """What new indexes on disk have found for the questions, by words and by meaning."""
    for question, (by_words, by_vectors) in zip(questions, expected, strict=True):
        assert_same(indexes.lexical.search(question, 20), by_words)
        assert indexes.passages.search(pair.embedder.embed_query(question), 20) == by_vectors


def assert_finds_the_same(pair: LibraryPair, indexes: ServerIndexes, questions: Sequence[str]) -> None:
    """Both indexes of the server against new ones on disk, in all that they answer."""
    words, vectors = pair.bm25(), pair.vectors()
    with pair.shared.reading(), pair.local.reading():
        for question in questions:
            assert_same(indexes.lexical.search(question, 20), words.search(question, 20))
            query = pair.embedder.embed_query(question)
            assert indexes.passages.search(query, 20) == vectors.search(query, 20)
            for token in tokenize(question):
                assert indexes.lexical.passages_with(token) == words.passages_with(token)
        assert indexes.lexical.vocabulary() == words.vocabulary()


# What they find


def test_bm25_finds_what_tantivy_finds_with_its_scores(real: tuple[LibraryPair, ServerIndexes, list[str]]) -> None:
    pair, indexes, questions = real
    words = pair.bm25()
    assert len(questions) >= 40
    assert pair.local.chunk_count() > 1000
    with pair.shared.reading():
        for question in questions:
            assert_same(indexes.lexical.search(question, 20), words.search(question, 20))
            token = max(tokenize(question) or ["none"], key=len)
            assert indexes.lexical.passages_of(token, 8) == words.passages_of(token, 8)
            assert indexes.lexical.rarity(token) == pytest.approx(words.rarity(token))


def test_the_vocabulary_is_tantivys(real: tuple[LibraryPair, ServerIndexes, list[str]]) -> None:
    pair, indexes, _ = real
    assert dict(indexes.lexical.vocabulary()) == pair.bm25().vocabulary()


def test_only_the_papers_that_are_given(real: tuple[LibraryPair, ServerIndexes, list[str]]) -> None:
    pair, indexes, questions = real
    words, vectors = pair.bm25(), pair.vectors()
    ids = sorted(paper.id for paper in pair.local.papers())
    for papers in (frozenset(ids[:1]), frozenset(ids[::3]), frozenset(ids), frozenset(["unknown"]), frozenset[str]()):
        own = pair.local.chunk_ids_of(papers)
        with pair.shared.reading():
            for question in questions[::4]:
                assert_same(indexes.lexical.search(question, 20, papers), words.search(question, 20, papers))
                query = pair.embedder.embed_query(question)
                assert indexes.passages.search(query, 20, papers) == vectors.search(query, 20, own)


def test_a_small_library_is_searched_exactly(real: tuple[LibraryPair, ServerIndexes, list[str]]) -> None:
    pair, indexes, questions = real
    vectors = pair.vectors()
    with pair.shared.reading():
        for question in questions:
            query = pair.embedder.embed_query(question)
            found = indexes.passages.search(query, 20)
            assert found == vectors.search(query, 20)
            ids = [chunk for chunk, _ in found]
            assert indexes.passages.cosines(ids, query) == [score for _, score in found]


def test_the_graph_finds_nearly_all(
    real: tuple[LibraryPair, ServerIndexes, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, indexes, questions = real
    vectors, papers = pair.vectors(), frozenset(sorted(paper.id for paper in pair.local.papers())[::2])
    own = pair.local.chunk_ids_of(papers)
    for name in ("EXACT_UP_TO", "EXACT_AMONG_UP_TO"):
        monkeypatch.setattr(server_search, name, 0)
    recalls: list[float] = []
    with pair.shared.reading():
        for question in questions:
            query = pair.embedder.embed_query(question)
            for within, ids in ((None, None), (papers, own)):
                best = dict(vectors.search(query, 20, ids))
                found = indexes.passages.search(query, 20, within)
                assert len(found) == 20
                assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
                recalls.append(len(best.keys() & dict(found).keys()) / 20)
    assert np.mean(recalls) >= 0.95


def test_all_are_searched_where_a_filter_leaves_few(real: tuple[LibraryPair, ServerIndexes, list[str]]) -> None:
    pair, indexes, questions = real
    vectors, kept = pair.vectors(), set(sorted(pair.local.chunk_ids())[::97])
    with pair.shared.reading():
        for question in questions[:10]:
            query = pair.embedder.embed_query(question)
            found = indexes.passages.search_all(query, 20, lambda ids: kept & set(ids))
            assert found == vectors.search(query, 20, sorted(kept))
        assert indexes.passages.search_all(query, pair.local.chunk_count(), set) is None


def test_fine_passages_have_an_index_of_their_own(tmp_path: Path, url: str) -> None:
    pair = LibraryPair(tmp_path, url, dual=True)
    texts = made_up_texts(4, 3000)
    papers = pair.add_all(texts)
    indexes, fine = pair.update(), pair.vectors(fine=True)
    assert indexes.fine_passages is not None
    own = pair.local.fine_ids_in(pair.local.chunk_ids_of(papers[:1]))
    for question in made_up_questions(texts, 10):
        query = pair.embedder.embed_query(question)
        assert indexes.fine_passages.search(query, 20) == fine.search(query, 20)
        assert indexes.fine_passages.search(query, 20, frozenset(papers[:1])) == fine.search(query, 20, own)
    pair.close()


def test_a_question_takes_few_statements(
    real: tuple[LibraryPair, ServerIndexes, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, _, questions = real
    indexes = open_server_indexes(pair.database, pair.shared)
    statements: list[str] = []

    def listed(run: Callable[..., Any]) -> Callable[..., Any]:
        def run_and_list(sql: str, **values: object) -> Any:
            statements.append(sql)
            return run(sql, **values)

        return run_and_list

    for name in ("query", "query_binary"):
        monkeypatch.setattr(pair.database, name, listed(getattr(pair.database, name)))
    question, papers = questions[0], frozenset(sorted(paper.id for paper in pair.local.papers())[::2])
    with pair.shared.reading():
        for within in (None, papers):
            statements.clear()
            indexes.lexical.search(question, 50, within)
            for token in tokenize(question):
                indexes.lexical.rarity(token)
            indexes.passages.search(pair.embedder.embed_query(question), 50, within)
            # postings (kept the second time), their ids, vectors near the question; of papers, their numbers
            own = [sql for sql in statements if "search_" in sql]
            assert len(own) == 3, own


def test_odd_words(pair: LibraryPair) -> None:
    long = "x" * 3000
    pair.add("odd.pdf", f"Rows of 0 {'0 ' * 190} and one {long} word. Łukasz met 知識 and ML-KEM.KeyGen.", "Odd")
    pair.add("zeros.pdf", "0 " * 199)
    pair.add("plain.pdf", "One plain text has 0 zeros but one.")
    pair.add("none.pdf", "... --- ...", "...")
    indexes = pair.update()
    assert_finds_the_same(
        pair, indexes, ["0", long, "lukasz", "知識", "ml-kem", "plain zeros 0", "", "a the", "\ud800 one"]
    )
    assert indexes.lexical.search("0", 0) == []


def test_an_empty_library(pair: LibraryPair) -> None:
    indexes = pair.update()
    assert indexes.lexical.search("words", 5) == []
    assert indexes.passages.search(pair.embedder.embed_query("words"), 5) == []
    assert indexes.lexical.vocabulary() == {}
    assert indexes.lexical.passages_with("words") == 0


# Updates


def test_updates_leave_no_history(pair: LibraryPair, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (server_index, sys.modules["folio.shared.server_index"]):
        monkeypatch.setattr(module, "BLOCK", 32)  # so that papers lie in several blocks
    texts = made_up_texts(14, 4000)
    questions = made_up_questions(texts, 25)
    ids = pair.add_all(texts[:8])
    assert_finds_the_same(pair, pair.update(), questions)

    pair.add("8.pdf", texts[8])  # added
    assert_finds_the_same(pair, pair.update(), questions)
    pair.add("2.pdf", texts[9])  # replaced
    pair.drop("5.pdf")
    assert_finds_the_same(pair, pair.update(), questions)
    pair.retitle(ids[3], texts[0].split(".")[0])
    pair.drop("0.pdf")
    pair.add("0.pdf", texts[0], "The same paper again")
    assert_finds_the_same(pair, pair.update(), questions)
    for number in (1, 2, 3, 4, 6, 7, 8):
        pair.drop(f"{number}.pdf")
    assert_finds_the_same(pair, pair.update(), questions)
    pair.add_all(texts[9:], 20)
    indexes = pair.update()
    assert_finds_the_same(pair, indexes, questions)
    assert pair.update().stamp == indexes.stamp  # nothing to be done


def test_a_snapshot_keeps_its_state_while_others_update(pair: LibraryPair, url: str) -> None:
    texts = made_up_texts(4, 3000)
    questions = made_up_questions(texts, 10)
    pair.add_all(texts[:2])
    pair.update()
    expected = pair.nearest(questions)
    reader = Library(PostgresDatabase(url))
    assert isinstance(reader.database, PostgresDatabase)
    with reader.reading():
        indexes = open_server_indexes(reader.database, reader)
        pair.drop("1.pdf")
        pair.add("2.pdf", texts[2])
        newer = pair.update()
        server_index.update(pair.database, pair.shared, rebuild=True)
        assert_finds(pair, indexes, questions, expected)
        assert indexes.stamp.generation < newer.stamp.generation
    assert_finds_the_same(pair, open_server_indexes(pair.database, pair.shared), questions)
    reader.close()


def test_indexes_of_an_earlier_generation_find_what_is_still_there(pair: LibraryPair) -> None:
    texts = made_up_texts(4, 3000)
    pair.add_all(texts[:3])
    before = pair.update()
    question = texts[0][:60]
    query = pair.embedder.embed_query(question)
    deep = before.lexical.search(question, 1000), before.passages.search(query, 1000)
    pair.drop("1.pdf")
    pair.add("3.pdf", texts[3])
    indexes = open_server_indexes(pair.database, pair.shared)
    assert indexes.stamp == before.stamp
    left = pair.shared.chunk_ids()
    for found, all_before in zip(
        (indexes.lexical.search(question, 20), indexes.passages.search(query, 20)), deep, strict=True
    ):
        assert found == [pair for pair in all_before if pair[0] in left][:20]


def test_papers_can_be_added_during_an_update(pair: LibraryPair, url: str) -> None:
    texts = made_up_texts(3, 3000)
    pair.add("0.pdf", texts[0])
    pair.update()
    pair.add("1.pdf", texts[1])
    other = PostgresDatabase(url)
    with other.deriving():
        server_index.read_state(other, lock=True)
        pair.add("2.pdf", texts[2])
        with pytest.raises(StoreBusy), pair.database.deriving(wait_s=0.1):
            server_index.read_state(pair.database, lock=True)
    other.close()
    assert_finds_the_same(pair, pair.update(), made_up_questions(texts, 10))


def test_two_that_update_at_once_both_end(pair: LibraryPair, url: str) -> None:
    texts = made_up_texts(4, 3000)
    pair.add_all(texts)

    def update(number: int) -> None:
        with closing(PostgresDatabase(url)) as database:
            server_index.update(database, Library(database))

    at_once(3, update)
    assert_finds_the_same(pair, open_server_indexes(pair.database, pair.shared), made_up_questions(texts, 10))


def test_a_killed_update_leaves_the_old_state(pair: LibraryPair) -> None:
    texts = made_up_texts(5, 3000)
    questions = made_up_questions(texts, 10)
    pair.add_all(texts[:3])
    update = forks_of("tests.helpers.update_child").run
    for statement in (1, 2, 3, 5, 8, 11, 14):  # the first update makes the tables
        assert update(pair.url, statement)[0] == -9, statement
        with pytest.raises(IndexDamaged):
            open_server_indexes(pair.database, pair.shared)
    before = pair.update()
    expected = pair.nearest(questions)
    pair.retitle(pair.local.papers()[0].id, "Another title")
    pair.add("3.pdf", texts[3])
    pair.add("4.pdf", texts[4])
    for statement in (3, 4, 5, 7, 8):
        assert update(pair.url, statement)[0] == -9, statement
        indexes = open_server_indexes(pair.database, pair.shared)
        assert indexes.stamp == before.stamp
        assert_finds(pair, indexes, questions, expected)
    code, out = update(pair.url, 1000)
    assert code == 0, out
    assert int(out) > 8
    assert_finds_the_same(pair, open_server_indexes(pair.database, pair.shared), questions)


def test_a_killed_server_keeps_the_state_before_the_update(pair: LibraryPair, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_up_texts(3, 3000)
    questions = made_up_questions(texts, 10)
    pair.add("0.pdf", texts[0])
    before = pair.update()
    expected = pair.nearest(questions)
    pair.add("1.pdf", texts[1])
    copy_in = pair.database.copy_in

    def die(table: str, rows: Iterable[bytes]) -> None:
        copy_in(table, rows)
        if "postings" in table:
            os.kill(pair.database.query("SELECT pg_backend_pid()")[0][0], signal.SIGKILL)

    monkeypatch.setattr(pair.database, "copy_in", die)
    with pytest.raises(StoreError):
        server_index.update(pair.database, pair.shared)
    monkeypatch.undo()
    # The server starts again by itself
    indexes = once_it_answers(lambda: open_server_indexes(pair.database, pair.shared))
    assert indexes.stamp == before.stamp
    assert_finds(pair, indexes, questions, expected)
    assert_finds_the_same(pair, pair.update(), questions)


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE search_postings_1 SET data = substring(data FROM 1 FOR length(data) - 1)",
        "UPDATE search_postings_1 SET data = overlay(data PLACING '\\x00' FROM 6 FOR 1) || '\\x00'",
        "UPDATE search_postings_1 SET data = ''",
        "UPDATE search_postings_1 SET count = count + 1",
        "UPDATE search_postings_1 SET block = block + 1",
        "UPDATE search_postings_1 p SET data = o.data FROM search_postings_1 o WHERE o.term > p.term",
        "UPDATE search_papers_1 SET ids = overlay(ids PLACING '\\x0707' FROM 8 FOR 2)",
        "UPDATE search_papers_1 SET first = first + 1",
        "DELETE FROM search_papers_1",
    ],
)
def test_a_damaged_row_fails_and_a_rebuild_repairs_it(pair: LibraryPair, damage: str) -> None:
    texts = made_up_texts(2, 3000)
    pair.add_all(texts)
    indexes, question = pair.update(), texts[0][:40]
    assert indexes.lexical.search(question, 5)
    pair.database.execute(damage)
    again = open_server_indexes(pair.database, pair.shared)
    with pytest.raises(IndexDamaged):
        again.lexical.search(question, 5)
    server_index.update(pair.database, pair.shared, rebuild=True)
    assert_finds_the_same(pair, open_server_indexes(pair.database, pair.shared), [question])


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM search_postings_1 WHERE term = (SELECT min(term) FROM search_postings_1)", "lacks words"),
        ("UPDATE search_postings_1 SET data = ''", "row of the BM25 index on the server has changed"),
        ("DELETE FROM search_papers_1 WHERE first = 0", "BM25 index on the server and the library hold different"),
        ("DELETE FROM search_vectors_1 WHERE chunk = (SELECT min(chunk) FROM search_vectors_1)", "hold different"),
        ("UPDATE search_vectors_1 SET chunk = 1 WHERE chunk = (SELECT min(chunk) FROM search_vectors_1)", "different"),
        (
            "UPDATE search_vectors_1 v SET data = o.data FROM search_vectors_1 o"
            " WHERE o.chunk = (SELECT min(chunk) FROM search_vectors_1)",
            "vectors in the vector index on the server differ",
        ),
        ("DELETE FROM search_state", "has no indexes"),
        ("UPDATE meta SET value = '7' WHERE key = 'generation'", "not up to date"),
    ],
)
def test_a_check_finds_what_is_wrong(pair: LibraryPair, damage: str, fault: str) -> None:
    pair.add_all(made_up_texts(3, 3000))
    pair.drop("1.pdf")
    pair.update()
    assert server_search.faults(pair.database, pair.shared) == []
    pair.database.execute(damage)
    assert any(fault in found for found in server_search.faults(pair.database, pair.shared))
    server_index.update(pair.database, pair.shared, rebuild=True)
    assert server_search.faults(pair.database, pair.shared) == []


def test_an_update_makes_damaged_rows_anew(pair: LibraryPair) -> None:
    texts = made_up_texts(3, 3000)
    pair.add_all(texts[:2])
    pair.update()
    pair.database.execute("UPDATE search_postings_1 SET data = ''")
    pair.add("2.pdf", texts[2])
    assert_finds_the_same(pair, pair.update(), made_up_questions(texts, 5))


def test_a_vector_that_is_not_the_librarys(pair: LibraryPair) -> None:
    text = made_up_texts(1, 3000)[0]
    pair.add("0.pdf", text)
    pair.update()
    pair.database.execute(
        "UPDATE search_vectors_1 v SET data = o.data FROM search_vectors_1 o"
        " WHERE o.chunk = (SELECT min(chunk) FROM search_vectors_1)"
    )
    indexes = open_server_indexes(pair.database, pair.shared)
    with pytest.raises(IndexDamaged):
        indexes.passages.search(pair.embedder.embed_query(text[:50]), 20)


def test_missing_indexes_and_those_of_another_version(pair: LibraryPair) -> None:
    text = made_up_texts(1, 3000)[0]
    pair.add("0.pdf", text)
    with pytest.raises(IndexDamaged, match="has no indexes"):
        open_server_indexes(pair.database, pair.shared)
    pair.update()
    pair.database.execute("UPDATE search_state SET value = replace(value, '\"format\": 1', '\"format\": 0')")
    with pytest.raises(IndexDamaged, match="has no indexes"):
        open_server_indexes(pair.database, pair.shared)
    assert_finds_the_same(pair, pair.update(), [text[:40]])


def test_a_role_without_the_right_to_extensions_gets_a_remedy(pair: LibraryPair) -> None:
    pair.add("0.pdf", "A text.")
    pair.database.execute("CREATE ROLE folio_reader LOGIN")
    pair.database.execute("GRANT ALL ON ALL TABLES IN SCHEMA folio TO folio_reader")
    pair.database.execute("GRANT USAGE ON SCHEMA folio TO folio_reader")
    ((schema,),) = pair.database.query("SELECT value FROM folio.kept WHERE key = 'library'")
    pair.database.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO folio_reader")
    pair.database.execute(f"GRANT ALL ON SCHEMA {schema} TO folio_reader")
    other = PostgresDatabase(psycopg.conninfo.make_conninfo(pair.url, user="folio_reader"))
    with pytest.raises(StoreError, match="cannot search vectors") as caught:
        server_index.update(other, Library(other))
    assert "CREATE EXTENSION vector" in caught.value.remedy
    other.close()
    pair.database.execute("DROP OWNED BY folio_reader")
    pair.database.execute("DROP ROLE folio_reader")
