"""The vector index: search, updates, merging, concurrent readers and damage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.store.index_files import checksums, read_manifest, to_json, write_manifest
from folio.store.rows import Stamp
from folio.store.vectors import MANIFEST, VectorIndex
from tests.helpers.damage import cut, flip

STAMP = Stamp("0123456789abcdef", 3)


def _unit(*rows: tuple[float, ...]) -> Vectors:
    found = np.asarray(rows, dtype=np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


class VectorsById(dict[int, tuple[float, ...]]):
    """Vectors by id, as a library has them; records which were read."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[int] = []

    def read(self, ids: Sequence[int]) -> Vectors:
        self.asked += ids
        return _unit(*[self[chunk] for chunk in ids])

    def scattered(self, ids: Sequence[int]) -> None:
        """Different vectors for these ids."""
        rng = np.random.default_rng(min(ids))
        self.update(zip(ids, map(tuple, rng.standard_normal((len(ids), 8)).tolist()), strict=True))


EAST, NORTH = _unit((1, 0), (0, 1))
VECTORS = {10: (1.0, 0.0), 20: (3.0, 1.0), 30: (0.0, 1.0), 40: (-1.0, 0.0), 7: (3.0, 1.0)}


@pytest.fixture
def shelf() -> VectorsById:
    return VectorsById(VECTORS)


@pytest.fixture
def index(shelf: VectorsById) -> VectorIndex:
    made = VectorIndex(2, STAMP, shelf.read)
    made.update(VECTORS, (), STAMP)
    return made


@pytest.fixture
def saved(shelf: VectorsById, tmp_path: Path) -> VectorIndex:
    made = VectorIndex(2, STAMP, shelf.read)
    made.update(VECTORS, (), STAMP, tmp_path)
    return made


def _later(generation: int) -> Stamp:
    return Stamp(STAMP.epoch, generation)


def _approximately(pairs: list[tuple[int, float]]) -> list[tuple[int, Any]]:
    return [(chunk, pytest.approx(score, abs=1e-6)) for chunk, score in pairs]


# Searching


def test_the_nearest_come_first_and_ties_by_id(index: VectorIndex) -> None:
    near = 3 / 10**0.5
    expected = _approximately([(10, 1.0), (7, near), (20, near), (30, 0.0), (40, -1.0)])
    assert index.search(EAST, 10) == expected
    assert index.search(EAST, 3) == expected[:3]
    assert index.search(NORTH, 1) == _approximately([(30, 1.0)])


def test_ties_at_the_cut_go_to_the_lowest_ids() -> None:
    ids = [105, 101, 109, 100, 104, 102, 108, 103, 107, 106]
    shelf = VectorsById(dict.fromkeys(ids, (1.0, 2.0)))
    index = VectorIndex(2, STAMP, shelf.read)
    for part in (ids[:4], ids[4:]):  # in two segments
        index.update(part, (), STAMP)
    assert [chunk for chunk, _ in index.search(EAST, 3)] == [100, 101, 102]
    assert [chunk for chunk, _ in index.search(EAST, 2, [108, 109, 107])] == [107, 108]
    assert [chunk for chunk, _ in index.search(EAST, 99)] == sorted(ids)


def test_vectors_equal_in_half_precision_are_ranked_exactly() -> None:
    """Forty vectors that are equal in half precision; the library's vectors decide."""
    angles = np.linspace(0.6, 0.6001, 40)
    shelf = VectorsById({100 + place: (float(np.cos(a)), float(np.sin(a))) for place, a in enumerate(angles)})
    index = VectorIndex(2, STAMP, shelf.read)
    index.update(shelf, (), STAMP)
    true = sorted(shelf, key=lambda chunk: (-float((shelf.read([chunk]) * EAST).sum()), chunk))
    assert [chunk for chunk, _ in index.search(EAST, 3)] == true[:3]


def test_a_search_among_given_ids(index: VectorIndex) -> None:
    assert [chunk for chunk, _ in index.search(EAST, 10, [40, 20, 30])] == [20, 30, 40]
    assert [chunk for chunk, _ in index.search(EAST, 1, [40, 30])] == [30]
    assert index.search(EAST, 10, [999]) == []
    assert index.search(EAST, 10, []) == []


def test_an_empty_index_finds_nothing(index: VectorIndex, shelf: VectorsById) -> None:
    assert VectorIndex(2, STAMP, shelf.read).search(EAST, 5) == []
    assert index.search(EAST, 0) == []


def test_a_score_is_independent_of_how_a_chunk_was_found(index: VectorIndex) -> None:
    found = dict(index.search(EAST, 10))
    for order in (sorted(found), sorted(found, reverse=True), [20]):
        assert index.cosines(order, EAST) == [found[chunk] for chunk in order]
    assert index.cosines([], EAST) == []


def test_a_search_reads_the_vectors_of_few(shelf: VectorsById) -> None:
    shelf.scattered(range(100, 5100))
    index = VectorIndex(8, STAMP, shelf.read)
    index.update(range(100, 5100), (), STAMP)
    shelf.asked.clear()
    index.search(_unit((1, 2, 3, 4, 5, 6, 7, 8))[0], 20)
    assert 40 <= len(shelf.asked) <= 120


# Adding and removing


@pytest.mark.parametrize("on_disk", [False, True])
def test_chunks_are_added_and_removed(index: VectorIndex, shelf: VectorsById, tmp_path: Path, on_disk: bool) -> None:
    folder = tmp_path if on_disk else None
    shelf |= {20: (0.0, -1.0), 50: (1.0, 1.0)}
    index.update([20, 50], [20, 30, 40, 999], _later(4), folder)
    assert index.ids() == {10, 20, 50, 7}
    assert len(index) == 4
    assert index.stamp == _later(4)
    assert [chunk for chunk, _ in index.search(EAST, 9)] == [10, 7, 50, 20]
    assert [chunk for chunk, _ in index.search(EAST, 9, [30, 20, 50])] == [50, 20]
    if on_disk:
        assert VectorIndex.load(tmp_path, shelf.read).search(EAST, 9) == index.search(EAST, 9)


def test_a_saved_index_is_loaded(saved: VectorIndex, index: VectorIndex, shelf: VectorsById, tmp_path: Path) -> None:
    loaded = VectorIndex.load(tmp_path, shelf.read)
    assert (loaded.stamp, loaded.dimension, loaded.ids()) == (STAMP, 2, set(VECTORS))
    assert loaded.search(EAST, 10) == saved.search(EAST, 10) == index.search(EAST, 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vectors-01234567-3.faiss", MANIFEST]
    assert loaded.count_mismatches() == 0


def test_an_empty_index_is_saved_and_loaded_too(shelf: VectorsById, tmp_path: Path) -> None:
    VectorIndex(8, STAMP, shelf.read).update((), (), STAMP, tmp_path)
    loaded = VectorIndex.load(tmp_path, shelf.read)
    assert (len(loaded), loaded.dimension, loaded.search(np.ones(8, np.float32), 3)) == (0, 8, [])
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_an_update_writes_only_new_vectors(shelf: VectorsById, tmp_path: Path) -> None:
    shelf.scattered(range(1000, 3000))
    shelf.scattered(range(3000, 3020))
    VectorIndex(8, STAMP, shelf.read).update(range(1000, 3000), (), STAMP, tmp_path)
    (large,) = tmp_path.glob("*.faiss")
    before = (large.stat().st_ino, large.stat().st_mtime_ns, large.stat().st_atime_ns)
    shelf.asked.clear()
    loaded = VectorIndex.load(tmp_path, shelf.read)
    loaded.update(range(3000, 3020), (), _later(4), tmp_path)
    assert sorted(shelf.asked) == list(range(3000, 3020))
    assert (large.stat().st_ino, large.stat().st_mtime_ns, large.stat().st_atime_ns) == before
    (small,) = set(tmp_path.glob("*.faiss")) - {large}
    into_empty = tmp_path / "empty"
    into_empty.mkdir()
    VectorIndex(8, STAMP, shelf.read).update(range(3000, 3020), (), _later(4), into_empty)
    assert small.read_bytes() == next(into_empty.glob("*.faiss")).read_bytes()
    assert VectorIndex.load(tmp_path, shelf.read).ids() == set(range(1000, 3020))


def test_segments_are_merged_as_they_grow_and_stay_few(shelf: VectorsById, tmp_path: Path) -> None:
    paper, papers = 5, 64
    index = VectorIndex(8, Stamp(STAMP.epoch, 0), shelf.read)
    shelf.scattered(range(1, 1 + paper * papers))
    for number in range(papers):
        index = VectorIndex.load(tmp_path, shelf.read) if number else index
        first = 1 + number * paper
        index.update(range(first, first + paper), (), _later(number + 1), tmp_path)
        sizes = [len(segment) for segment in index.segments]
        assert sum(sizes) == paper * (number + 1)
        assert all(size > sum(sizes[place + 1 :]) for place, size in enumerate(sizes))
        assert len(list(tmp_path.glob("*.faiss"))) == len(sizes) == (number + 1).bit_count()
    # Each vector was written once per segment size: 1, 2, 4, .. 64 papers.
    assert len(shelf.asked) == paper * papers * (1 + 6) / 2 + paper * papers / 2
    assert index.ids() == set(range(1, 1 + paper * papers))


def test_a_segment_with_many_removed_vectors_is_rewritten(shelf: VectorsById, tmp_path: Path) -> None:
    shelf.scattered(range(1000, 1100))
    VectorIndex(8, STAMP, shelf.read).update(range(1000, 1100), (), STAMP, tmp_path)
    for generation, upto, kept in ((4, 1025, 100), (5, 1026, 74)):
        loaded = VectorIndex.load(tmp_path, shelf.read)
        loaded.update((), range(1000, upto), _later(generation), tmp_path)
        (entry,) = read_manifest(tmp_path / MANIFEST)["segments"]
        assert (entry["count"], entry["count"] - len(entry["removed"])) == (kept, 1100 - upto)
        assert VectorIndex.load(tmp_path, shelf.read).ids() == set(range(upto, 1100))


def test_an_emptied_segment_leaves_no_file(saved: VectorIndex, shelf: VectorsById, tmp_path: Path) -> None:
    saved.update((), list(VECTORS), _later(4), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]
    assert len(VectorIndex.load(tmp_path, shelf.read)) == 0


def test_lists_and_flat_segments_are_searched_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    centres = 4 * rng.standard_normal((30, 8))
    rows = (centres[rng.integers(30, size=900)] + 0.4 * rng.standard_normal((900, 8))).tolist()
    shelf = VectorsById({chunk: tuple(row) for chunk, row in enumerate(rows, 1)})
    VectorIndex(8, STAMP, shelf.read, flat_up_to=300).update(range(1, 801), (), STAMP, tmp_path)
    index = VectorIndex.load(tmp_path, shelf.read, flat_up_to=300)
    index.update(range(801, 901), [5], _later(4), tmp_path)
    index = VectorIndex.load(tmp_path, shelf.read, flat_up_to=300)
    assert [segment.kind for segment in index.segments] == ["lists", "flat"]
    entry, _ = read_manifest(tmp_path / MANIFEST)["segments"]
    assert entry["recall"] >= 0.99
    assert 1 <= entry["probes"] <= 30
    found, alive = 0, [chunk for chunk in range(1, 901) if chunk != 5]
    for question in shelf.read(range(1, 901, 30)):
        cosines = dict(zip(alive, index.cosines(alive, question), strict=True))
        best = sorted(cosines.items(), key=lambda pair: (-pair[1], pair[0]))[:20]
        found += len(set(best) & set(index.search(question, 20)))
        assert index.search(question, 20, alive) == best
    assert found / 600 >= 0.99


# Concurrent readers, and kills


def test_an_update_deletes_old_and_partial_files(saved: VectorIndex, shelf: VectorsById, tmp_path: Path) -> None:
    for left in ("vectors-01234567-2.faiss.new", "vectors-01234567-4.faiss.new", "vectors-ffffffff-9.faiss"):
        (tmp_path / left).write_bytes(b"half")
    (tmp_path / f"{MANIFEST}.new").write_text("{")
    shelf[60] = (1.0, 2.0)
    saved.update([60], (), _later(4), tmp_path)
    files = ["vectors-01234567-3.faiss", "vectors-01234567-4.faiss", MANIFEST]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert VectorIndex.load(tmp_path, shelf.read).ids() == {*VECTORS, 60}


def test_an_open_index_works_after_its_files_were_deleted(
    saved: VectorIndex, shelf: VectorsById, tmp_path: Path
) -> None:
    reader = VectorIndex.load(tmp_path, shelf.read)
    before = reader.search(EAST, 10)
    shelf |= dict.fromkeys(range(60, 70), (1.0, 2.0))
    saved.update(range(60, 70), [10], _later(4), tmp_path)
    assert not (tmp_path / "vectors-01234567-3.faiss").exists()
    assert reader.search(EAST, 10) == before


def test_a_reader_retries_if_a_writer_replaced_the_manifest(
    saved: VectorIndex, shelf: VectorsById, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer deletes a file listed in the manifest that the reader has just read."""
    shelf |= dict.fromkeys(range(60, 70), (1.0, 2.0))
    read_bytes, written = Path.read_bytes, list[Path]()

    def read_then_write(path: Path) -> bytes:
        content = read_bytes(path)
        if not written:
            written.append(path)
            saved.update(range(60, 70), (), _later(4), tmp_path)
        return content

    monkeypatch.setattr(Path, "read_bytes", read_then_write)
    assert VectorIndex.load(tmp_path, shelf.read).stamp == _later(4)
    assert written == [tmp_path / MANIFEST]


# Damage


def test_vectors_that_differ_from_the_librarys_are_counted(
    saved: VectorIndex, shelf: VectorsById, tmp_path: Path
) -> None:
    assert saved.count_mismatches() == 0
    shelf |= {30: (0.0, -1.0), 40: (-1.0, 0.01)}
    assert VectorIndex.load(tmp_path, shelf.read).count_mismatches() == 2


def _file(folder: Path) -> Path:
    (path,) = folder.glob("*.faiss")
    return path


def _change(folder: Path, wrong: dict[str, object], *, segment: bool = False) -> None:
    manifest = read_manifest(folder / MANIFEST)
    (manifest["segments"][0] if segment else manifest).update(wrong)
    write_manifest(folder / MANIFEST, manifest)


def _truncate_with_its_manifest(folder: Path, size: int) -> None:
    """As a full disk would leave it if the manifest recorded the size actually written."""
    cut(_file(folder), size)
    _change(folder, {"sums": to_json(checksums(_file(folder)))}, segment=True)


def _write_manifest(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)


ANY, CHANGED = ".", "has changed since it was written"
WRONG_MANIFESTS: list[dict[str, object]] = [{"count": 4}, {"dimension": 3}, {"segments": 5}, {"segments": [{}]}]
WRONG_ENTRIES: list[dict[str, object]] = [
    {"sums": {"bytes": 7, "blocks": "00000000"}}, {"sums": {"bytes": 2**21, "blocks": "00000000"}}, {"sums": 5},
    {"count": 4}, {"count": "5"}, {"kind": "lists"}, {"file": "vectors-none.faiss"}, {"file": 5},
    {"file": ""}, {"file": "../library.sqlite"}, {"removed": 5}, {"removed": [10]}, {"more": 1},
]  # fmt: skip
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte flipped": (lambda folder: flip(_file(folder), 60), CHANGED),
    "the last byte flipped": (lambda folder: flip(_file(folder), -1), CHANGED),
    **{f"manifest {wrong}": (partial(_change, wrong=wrong), ANY) for wrong in WRONG_MANIFESTS},
    **{f"segment {wrong}": (partial(_change, wrong=wrong, segment=True), ANY) for wrong in WRONG_ENTRIES},
    **{
        f"manifest {content!r}": (partial(_write_manifest, content=content), ANY)
        for content in (b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe\x00", b"{}")
    },
    "no vectors": (lambda folder: _file(folder).unlink(), "cannot be read"),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "cannot be read"),
    **{f"{size} bytes": (partial(_truncate_with_its_manifest, size=size), ANY) for size in (0, 1, 40, 100)},
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_noticed(saved: VectorIndex, shelf: VectorsById, tmp_path: Path, name: str) -> None:
    damage, match = DAMAGE[name]
    damage(tmp_path)
    with pytest.raises(IndexDamaged, match=match):
        VectorIndex.load(tmp_path, shelf.read)


def test_an_index_without_an_epoch_is_of_no_library(saved: VectorIndex, shelf: VectorsById, tmp_path: Path) -> None:
    _change(tmp_path, {"epoch": None})
    assert VectorIndex.load(tmp_path, shelf.read).stamp != STAMP
