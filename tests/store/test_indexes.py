"""The derived indexes: repaired from the library after any damage; readers see one generation."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from folio.errors import StoreBusy, StoreMismatch
from folio.papers.model import Vectors
from folio.store.bm25 import TantivyIndex
from folio.store.index_files import read_manifest, write_manifest
from folio.store.indexes import (
    LEXICAL,
    LIBRARY,
    Indexes,
    faults,
    open_indexes,
    rebuild_indexes,
    require_fingerprint,
    verify,
    writing,
)
from folio.store.library import Library
from folio.store.rows import pack_vector
from folio.store.vectors import VectorIndex
from tests.helpers.damage import cut, flip, tamper
from tests.helpers.fakes import HashingEmbedder, overwrite
from tests.helpers.paths import ROOT
from tests.helpers.stores import FINGERPRINT, LATER, QUESTIONS, TEXTS, Notices, Store


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store")
    for name, text in TEXTS.items():
        made.add(name, text)
    made.update()
    yield made
    made.library.close()


def _opened(made: Store, notice: Callable[[str], None] = pytest.fail) -> Indexes:
    """Its indexes; by default any notice is a failure."""
    return open_indexes(made.folder, made.library, "tantivy", notice)


def _faults(made: Store) -> list[str]:
    return verify(made.folder, made.library, "tantivy")


def _search(indexes: Indexes, embedder: HashingEmbedder) -> list[list[tuple[int, float]]]:
    found = []
    for question in QUESTIONS:
        found.append(indexes.vectors.search(embedder.embed_query(question), 6))
        found.append(indexes.lexical.search(question, 6))
    return found


def _files(folder: Path) -> dict[str, bytes]:
    """A folder's files except locks and SQLite's side files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith((".lock", "-wal", "-shm"))
    }


def _assert_whole(made: Store, indexes: Indexes) -> None:
    with made.library.reading() as stamp:
        assert indexes.stamp == indexes.vectors.stamp == indexes.lexical.stamp == stamp
        assert indexes.vectors.ids() == indexes.lexical.ids() == made.library.chunk_ids()


# Damage: a function that damages the folder, and how the notice begins


def _vector_file(folder: Path) -> Path:
    (path,) = folder.glob("vectors-*.faiss")
    return path


def _make_foreign(manifest: Path) -> None:
    """As of a valid index of another store with the same number of chunks."""
    write_manifest(manifest, {**read_manifest(manifest), "epoch": "of another store"})


def _emptied_bm25(folder: Path) -> None:
    """With the right stamp, but no passages."""
    stamp = TantivyIndex.load(folder / "lexical").stamp
    TantivyIndex.create(stamp, folder / "lexical").add((), stamp)


def _wide_vectors(folder: Path) -> None:
    """With the right stamp and count, but another dimension."""

    def read(ids: Sequence[int]) -> Vectors:
        return np.ones((len(ids), 65), dtype=np.float32)

    index = VectorIndex.load(folder, read)
    VectorIndex(65, index.stamp, read).update(index.ids(), (), index.stamp, folder)


def _of_the_last_version(folder: Path) -> None:
    """A manifest with SHA-256 and without checksums of blocks, the format before."""
    manifest = read_manifest(folder / "vectors.json")
    for segment in manifest["segments"]:
        segment |= {"bytes": segment.pop("sums")["bytes"], "sha256": "0" * 64}
    (folder / "vectors.json").write_text(json.dumps(manifest))


VECTORS_GONE = "The vector index was missing or could not be read: repaired"
BM25_GONE = "The BM25 index was missing or could not be read: repaired"
VECTORS_FOREIGN = "The vector index did not match the library: repaired"
BM25_FOREIGN = "The BM25 index did not match the library: repaired"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "vector manifest missing": (lambda folder: (folder / "vectors.json").unlink(), VECTORS_GONE),
    "vector manifest garbage": (lambda folder: (folder / "vectors.json").write_text("{}"), VECTORS_GONE),
    "vectors missing": (lambda folder: _vector_file(folder).unlink(), VECTORS_GONE),
    "vectors truncated": (lambda folder: cut(_vector_file(folder)), VECTORS_GONE),
    "vectors of the last version": (_of_the_last_version, VECTORS_GONE),
    "vectors emptied": (lambda folder: overwrite(_vector_file(folder), b""), VECTORS_GONE),
    "vectors foreign": (
        lambda folder: _make_foreign(folder / "vectors.json"),
        VECTORS_FOREIGN,
    ),
    "vectors wide": (_wide_vectors, VECTORS_GONE),
    "BM25 missing": (lambda folder: shutil.rmtree(folder / "lexical"), BM25_GONE),
    "BM25 manifest missing": (lambda folder: (folder / "lexical" / "folio.json").unlink(), BM25_GONE),
    "BM25 truncated": (lambda folder: cut(next((folder / "lexical").glob("*.idx"))), BM25_GONE),
    "BM25 part missing": (lambda folder: next((folder / "lexical").glob("*.store")).unlink(), BM25_GONE),
    "BM25 foreign": (
        lambda folder: _make_foreign(folder / "lexical" / "folio.json"),
        BM25_FOREIGN,
    ),
    "BM25 emptied": (_emptied_bm25, BM25_FOREIGN),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_index_is_repaired_with_one_notice(filled: Store, name: str) -> None:
    before = _search(_opened(filled), filled.embedder)
    embedded = len(filled.embedder.passages)
    damage, beginning = DAMAGE[name]
    damage(filled.folder)
    assert _faults(filled) != []
    notices = Notices()
    indexes = _opened(filled, notices)
    assert len(notices) == 1
    assert notices[0].startswith(beginning)
    assert notices[0].endswith("from the library without embedding anything again.")
    _assert_whole(filled, indexes)
    assert _search(indexes, filled.embedder) == before
    assert len(filled.embedder.passages) == embedded
    assert _faults(filled) == []
    assert _search(_opened(filled), filled.embedder) == before


def test_both_indexes_are_repaired_with_one_notice(filled: Store) -> None:
    before = _search(_opened(filled), filled.embedder)
    _vector_file(filled.folder).unlink()
    shutil.rmtree(filled.folder / "lexical")
    notices = Notices()
    assert _search(_opened(filled, notices), filled.embedder) == before
    assert notices == [
        "The vector index was missing or could not be read and the BM25 index was missing or could not be read: "
        "repaired from the library without embedding anything again."
    ]


def test_opening_a_current_index_writes_nothing(filled: Store) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.folder.rglob("*")}
    _assert_whole(filled, _opened(filled))
    assert {path: path.stat().st_mtime_ns for path in filled.folder.rglob("*")} == before


def _take_vectors(made: Store, folder: Path) -> None:
    for path in made.folder.glob("vectors*"):
        path.unlink()
    for path in folder.glob("vectors*"):
        shutil.copy(path, made.folder)


def _take_bm25(made: Store, folder: Path) -> None:
    shutil.rmtree(made.folder / "lexical")
    shutil.copytree(folder / "lexical", made.folder / "lexical")


@pytest.mark.parametrize("which", ["vectors", "BM25", "both"])
@pytest.mark.parametrize("change", ["added", "dropped", "replaced", "dropped and added again"])
def test_an_outdated_index_is_updated(filled: Store, tmp_path: Path, which: str, change: str) -> None:
    older = shutil.copytree(filled.folder, tmp_path / "older")
    if change == "added":
        filled.add("trees", LATER)
    elif change == "replaced":
        filled.add("sponges", LATER)
    else:
        filled.library.drop("/papers/sponges.pdf")
    if change == "dropped and added again":
        filled.add("sponges", TEXTS["sponges"])
    if which != "both":
        filled.update()
    if which == "vectors":
        _take_vectors(filled, older)
    elif which == "BM25":
        _take_bm25(filled, older)
    embedded = len(filled.embedder.passages)
    notices = Notices()
    indexes = _opened(filled, notices)
    assert len(notices) == 1
    assert notices[0].count("did not match the library") == (2 if which == "both" else 1)
    _assert_whole(filled, indexes)
    assert _faults(filled) == []
    assert len(filled.embedder.passages) == embedded
    with writing(filled.folder):
        rebuild_indexes(filled.folder, filled.library, "tantivy")
    anew = _opened(filled)
    for question in QUESTIONS:
        vector = filled.embedder.embed_query(question)
        assert indexes.vectors.search(vector, 6) == anew.vectors.search(vector, 6)
        assert indexes.lexical.search(question, 99) == anew.lexical.search(question, 99)


def test_an_index_of_another_library_is_rebuilt(filled: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    for name in ("sponges", "lattices", "gradients"):  # the same number of papers and chunks, and the same generation
        other.add(name, TEXTS[name])
    other.update()
    other.library.close()
    _take_vectors(filled, other.folder)
    _take_bm25(filled, other.folder)
    notices = Notices()
    _assert_whole(filled, _opened(filled, notices))
    assert len(notices) == 1


def test_indexes_ahead_of_a_restored_library_are_not_used(filled: Store, tmp_path: Path) -> None:
    filled.library.close()
    shutil.copy(filled.folder / LIBRARY, tmp_path / "kept.sqlite")
    filled.library = Library(filled.folder / LIBRARY)
    filled.add("trees", LATER)
    filled.update()
    filled.library.close()
    shutil.copy(tmp_path / "kept.sqlite", filled.folder / LIBRARY)
    filled.library = Library(filled.folder / LIBRARY)
    _assert_whole(filled, _opened(filled, Notices()))
    filled.update()
    assert _faults(filled) == []


def test_okapi_keeps_nothing_on_disk(filled: Store) -> None:
    shutil.rmtree(filled.folder / "lexical")
    _vector_file(filled.folder).unlink()
    notices = Notices()
    _assert_whole(filled, open_indexes(filled.folder, filled.library, "rank_bm25", notices))
    assert [notice.startswith(VECTORS_GONE) for notice in notices] == [True]
    assert not (filled.folder / "lexical").exists()
    assert verify(filled.folder, filled.library, "rank_bm25") == []
    _assert_whole(filled, open_indexes(filled.folder, filled.library, "rank_bm25", pytest.fail))


def test_an_empty_library_can_be_opened(tmp_path: Path) -> None:
    with closing(Library(tmp_path / LIBRARY, create=True)) as library:
        assert verify(tmp_path, library, "tantivy") == []
    made = Store(tmp_path / "store")
    made.update()
    indexes = _opened(made)
    assert _search(indexes, made.embedder) == [[]] * 8
    assert _faults(made) == []
    made.add("lattices", TEXTS["lattices"])
    made.update()
    _assert_whole(made, _opened(made))
    made.library.close()


# Readers and writers


@pytest.mark.parametrize("name", ["vectors missing", "BM25 missing", "vectors foreign", "BM25 truncated"])
def test_a_reader_works_in_memory_while_another_process_writes(filled: Store, name: str) -> None:
    before = _search(_opened(filled), filled.embedder)
    DAMAGE[name][0](filled.folder)
    files = _files(filled.folder)
    with writing(filled.folder):
        notices = Notices()
        indexes = _opened(filled, notices)
    _assert_whole(filled, indexes)
    assert _search(indexes, filled.embedder) == before
    assert len(notices) == 1
    assert notices[0].endswith(": built in memory from the library for now. Another process is writing to this index.")
    assert _files(filled.folder) == files


def test_a_reader_keeps_its_generation_while_papers_are_added(filled: Store) -> None:
    reader = Library(filled.folder / LIBRARY)
    with reader.reading() as stamp:
        ids = reader.chunk_ids()
        filled.add("trees", LATER)
        filled.library.drop("/papers/sponges.pdf")
        filled.update()
        files = _files(filled.folder)
        indexes = open_indexes(filled.folder, reader, "tantivy", pytest.fail)
        assert indexes.stamp == stamp
        assert indexes.vectors.ids() == indexes.lexical.ids() == ids
        assert _files(filled.folder) == files  # newer readers still need the newer indexes
    newer = open_indexes(filled.folder, reader, "tantivy", pytest.fail)
    _assert_whole(filled, newer)
    assert newer.stamp.generation == stamp.generation + 2
    reader.close()


def test_open_indexes_do_not_change_while_papers_are_added(filled: Store) -> None:
    reader = Library(filled.folder / LIBRARY)
    with reader.reading():
        indexes = open_indexes(filled.folder, reader, "tantivy", pytest.fail)
        before, ids = _search(indexes, filled.embedder), indexes.vectors.ids()
        filled.add("gradients", LATER)
        filled.update()
        filled.library.drop("/papers/gradients.pdf")
        filled.update()
        filled.library.drop("/papers/sponges.pdf")
        filled.update()
        assert _search(indexes, filled.embedder) == before
        assert indexes.vectors.ids() == indexes.lexical.ids() == ids
    reader.close()


def test_two_writers(filled: Store) -> None:
    with writing(filled.folder):
        with pytest.raises(StoreBusy, match="Another process is writing") as caught, writing(filled.folder):
            pytest.fail("both were let in")
        assert caught.value.exit_code == 2
    with writing(filled.folder):
        pass


def test_two_writers_in_two_processes(filled: Store) -> None:
    code = (
        "import sys; from pathlib import Path; from folio.store.indexes import writing\n"
        f"with writing(Path({str(filled.folder)!r})): print('in', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        with pytest.raises(StoreBusy), writing(filled.folder):
            pytest.fail("both were let in")
        other.kill()
    with writing(filled.folder):  # a killed writer does not keep the lock
        pass


# Fingerprints


def test_the_same_fingerprint_passes_and_a_new_store_takes_any(filled: Store, tmp_path: Path) -> None:
    require_fingerprint(filled.library, dict(FINGERPRINT))
    new = Library(tmp_path / "new.sqlite", create=True)
    require_fingerprint(new, FINGERPRINT)
    assert new.fingerprint() == {}  # checking does not set it
    new.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chunk_size": "1500"}, "chunk_size is 80 in the index and 1500 now"),
        ({"embedder": "ollama"}, "embedder is hashing in the index and ollama now"),
        ({"digest": "abc"}, "digest is unknown in the index and abc now"),
        ({"chunk_size": "9", "embedder": "x"}, "80 in the index and 9 now; embedder is hashing in the index and x now"),
    ],
)
def test_a_different_fingerprint_is_reported_with_the_rebuild_command(
    filled: Store, change: dict[str, str], said: str
) -> None:
    with pytest.raises(StoreMismatch) as caught:
        require_fingerprint(filled.library, {**FINGERPRINT, **change})
    assert said in caught.value.happened
    assert "python ingest.py --rebuild" in caught.value.remedy


def test_an_unknown_fingerprint_field_is_reported(filled: Store) -> None:
    with pytest.raises(StoreMismatch, match="chunk_size is 80 in the index and unknown now"):
        require_fingerprint(filled.library, {"embedder": "hashing", "dimension": "64"})


# Verifying


def _other_vectors(filled: Store) -> None:
    def read(ids: Sequence[int]) -> Vectors:
        found = filled.library.vectors_of(ids).copy()
        found[0] = found[0, ::-1]
        return found

    stamp = VectorIndex.load(filled.folder, read).stamp
    VectorIndex(64, stamp, read).update(filled.library.chunk_ids(), (), stamp, filled.folder)


def _other_chunk(filled: Store) -> None:
    first, *others = sorted(filled.library.chunk_ids())

    def read(ids: Sequence[int]) -> Vectors:
        return filled.library.vectors_of([first if chunk == first + 1 else chunk for chunk in ids])

    stamp = VectorIndex.load(filled.folder, read).stamp
    VectorIndex(64, stamp, read).update([first + 1, *others], (), stamp, filled.folder)


def _other_passage(filled: Store) -> None:
    lexical = filled.folder / LEXICAL
    index = TantivyIndex.create(TantivyIndex.load(lexical).stamp, lexical)
    first, *others = filled.library.passages()
    index.add([replace(first, id=first.id + 1), *others], index.stamp)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda made: flip(_vector_file(made.folder)), ".faiss has changed since it was written."),
        (lambda made: DAMAGE["vectors missing"][0](made.folder), "The vector index cannot be read"),
        (lambda made: made.add("trees", LATER), "The vector index is not up to date with the library."),
        (lambda made: made.add("trees", LATER), "The BM25 index is not up to date with the library."),
        (_other_vectors, "1 vectors in the vector index differ from the library's."),
        (_other_chunk, "The vector index and the library hold different passages."),
        (lambda made: DAMAGE["vectors wide"][0](made.folder), "differ in dimension"),
        (lambda made: DAMAGE["BM25 missing"][0](made.folder), "The BM25 index cannot be read"),
        (
            lambda made: flip(next((made.folder / "lexical").glob("*.store"))),
            ".store has changed since it was written.",
        ),
        (_other_passage, "The BM25 index and the library hold different passages."),
    ],
)
def test_damage_to_an_index_is_found_and_repaired(filled: Store, damage: Callable[[Store], None], said: str) -> None:
    assert _faults(filled) == []
    damage(filled)
    assert any(said in problem for problem in _faults(filled))
    with writing(filled.folder):
        rebuild_indexes(filled.folder, filled.library, "tantivy")
    assert _faults(filled) == []


SHORT = pack_vector(np.ones(1, dtype=np.float32)).hex()


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE texts SET text = replace(text, 'sponge', 'sp0nge')", "is not the one that was stored"),
        (
            f"UPDATE vectors SET data = x'{SHORT}' WHERE chunk = (SELECT min(chunk) FROM vectors)",
            "not have 64 numbers.",
        ),
    ],
)
def test_damage_to_the_library_is_found(filled: Store, statement: str, fault: str) -> None:
    tamper(filled.folder / LIBRARY, statement)
    assert any(fault in problem for problem in _faults(filled))


def test_obvious_faults_are_reported(filled: Store) -> None:
    assert faults(filled.folder, filled.library, "tantivy") == []
    _vector_file(filled.folder).unlink()
    assert faults(filled.folder, filled.library, "tantivy") == ["The vector index was missing or could not be read"]


def test_an_update_leaves_no_file_of_an_earlier_state(filled: Store) -> None:
    (filled.folder / "vectors-01234567-1.faiss").write_bytes(b"old")
    (filled.folder / "vectors-01234567-2.faiss.new").write_bytes(b"half")
    filled.update()
    assert sorted(path.name for path in filled.folder.glob("vectors*")) == [
        _vector_file(filled.folder).name,
        "vectors.json",
    ]
