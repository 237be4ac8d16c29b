"""The FAISS index: searched, updated, saved, and noticed when it is not what was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from folio.errors import IndexDamaged
from folio.types import Stamp, Vectors
from folio.vectors import MANIFEST, VectorIndex

STAMP = Stamp("0123456789abcdef", 3)


def _unit(*rows: tuple[float, ...]) -> Vectors:
    vectors = np.asarray(rows, dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


EAST, NORTH = _unit((1, 0), (0, 1))
VECTORS = {10: (1, 0), 20: (3, 1), 30: (0, 1), 40: (-1, 0), 7: (3, 1)}


@pytest.fixture
def index() -> VectorIndex:
    made = VectorIndex(2, STAMP)
    made.update([(list(VECTORS), _unit(*VECTORS.values()))], (), STAMP)
    return made


def _approximately(pairs: list[tuple[int, float]]) -> list[tuple[int, Any]]:
    return [(chunk, pytest.approx(score, abs=1e-6)) for chunk, score in pairs]


def test_the_nearest_come_first_and_ties_by_id(index: VectorIndex) -> None:
    near = 3 / 10**0.5
    expected = _approximately([(10, 1.0), (7, near), (20, near), (30, 0.0), (40, -1.0)])
    assert index.search(EAST, 10) == expected
    assert index.search(EAST, 3) == expected[:3]
    assert index.search(NORTH, 1) == _approximately([(30, 1.0)])


def test_ties_at_the_cut_go_to_the_lowest_ids() -> None:
    ids = [105, 101, 109, 100, 104, 102, 108, 103, 107, 106]
    index = VectorIndex(2, STAMP)
    index.update([(ids, _unit(*[(1, 2)] * len(ids)))], (), STAMP)
    assert [chunk for chunk, _ in index.search(EAST, 3)] == [100, 101, 102]
    assert [chunk for chunk, _ in index.search(EAST, 2, [108, 109, 107])] == [107, 108]
    assert [chunk for chunk, _ in index.search(EAST, 99)] == sorted(ids)


def test_a_search_stays_among_the_ids_that_are_given(index: VectorIndex) -> None:
    assert [chunk for chunk, _ in index.search(EAST, 10, [40, 20, 30])] == [20, 30, 40]
    assert [chunk for chunk, _ in index.search(EAST, 1, [40, 30])] == [30]
    assert index.search(EAST, 10, [999]) == []
    assert index.search(EAST, 10, []) == []


def test_nothing_is_found_in_nothing(index: VectorIndex) -> None:
    assert VectorIndex(2, STAMP).search(EAST, 5) == []
    assert index.search(EAST, 0) == []


def test_an_update_may_be_repeated(index: VectorIndex) -> None:
    later = Stamp(STAMP.epoch, 4)
    for _ in range(2):
        index.update([([20, 50], _unit((0, -1), (1, 1)))], [30, 40, 999], later)
        assert index.ids() == {10, 20, 50, 7}
        assert len(index) == 4
        assert index.stamp == later
        assert index.vectors_of([20, 50, 10]).tolist() == _unit((0, -1), (1, 1), (1, 0)).tolist()


def test_a_chunk_that_is_taken_out_and_in_again_is_there_once(index: VectorIndex) -> None:
    index.update([([30], _unit((1, 1)))], [30], STAMP)
    assert len(index) == 5
    assert index.vectors_of([30]).tolist() == _unit((1, 1)).tolist()


def test_what_is_not_in_the_index_has_no_vector(index: VectorIndex) -> None:
    with pytest.raises(RuntimeError):
        index.vectors_of([999])


def test_what_was_saved_is_loaded(index: VectorIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    assert (loaded.stamp, loaded.dimension, loaded.ids()) == (STAMP, 2, set(VECTORS))
    assert loaded.search(EAST, 10) == index.search(EAST, 10)
    assert loaded.vectors_of(list(VECTORS)).tolist() == index.vectors_of(list(VECTORS)).tolist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vectors-01234567-3.faiss", MANIFEST]


def test_an_empty_index_is_saved_and_loaded_too(tmp_path: Path) -> None:
    VectorIndex(8, STAMP).save(tmp_path)
    assert (len(VectorIndex.load(tmp_path)), VectorIndex.load(tmp_path).dimension) == (0, 8)


def test_a_save_leaves_neither_its_forerunner_nor_what_was_broken_off(index: VectorIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    for left in ("vectors-01234567-2.faiss.new", "vectors-01234567-4.faiss.new", "vectors-ffffffff-9.faiss"):
        (tmp_path / left).write_bytes(b"half")
    (tmp_path / f"{MANIFEST}.new").write_text("{")
    index.update([([60], _unit((1, 2)))], (), Stamp(STAMP.epoch, 4))
    index.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vectors-01234567-4.faiss", MANIFEST]
    assert VectorIndex.load(tmp_path).ids() == {*VECTORS, 60}


def test_a_loaded_index_can_be_added_to(index: VectorIndex, tmp_path: Path) -> None:
    index.save(tmp_path)
    loaded = VectorIndex.load(tmp_path)
    loaded.update([([60], _unit((1, 0)))], [10], STAMP)
    assert loaded.search(EAST, 1) == _approximately([(60, 1.0)])


@pytest.mark.parametrize("at", [0, 40, -1])
def test_one_flipped_byte_is_noticed(index: VectorIndex, tmp_path: Path, at: int) -> None:
    index.save(tmp_path)
    (path,) = tmp_path.glob("*.faiss")
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(IndexDamaged, match="not the ones that were written"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 4},
        {"dimension": 3},
        {"sha256": "0" * 64},
        {"file": "vectors-none.faiss"},
        {"file": 5},
        {"file": ""},
        {"generation": None, "epoch": None, "file": None},
    ],
)
def test_a_manifest_that_does_not_fit_is_noticed(index: VectorIndex, tmp_path: Path, wrong: dict[str, object]) -> None:
    index.save(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, **wrong}))
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe\x00", b"{}"])
def test_a_manifest_that_cannot_be_read_is_noticed(index: VectorIndex, tmp_path: Path, content: bytes) -> None:
    index.save(tmp_path)
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("pattern", ["*.faiss", MANIFEST])
def test_a_missing_file_is_noticed(index: VectorIndex, tmp_path: Path, pattern: str) -> None:
    index.save(tmp_path)
    for path in tmp_path.glob(pattern):
        path.unlink()
    with pytest.raises(IndexDamaged, match="cannot be read"):
        VectorIndex.load(tmp_path)


def test_a_truncated_file_that_its_manifest_vouches_for_is_noticed(index: VectorIndex, tmp_path: Path) -> None:
    # What a full disk could leave, were the hash taken of what came through.
    import hashlib

    index.save(tmp_path)
    (path,) = tmp_path.glob("*.faiss")
    content = path.read_bytes()[:-9]
    path.write_bytes(content)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "sha256": hashlib.sha256(content).hexdigest()}))
    with pytest.raises(IndexDamaged):
        VectorIndex.load(tmp_path)
