"""FAISS segments: search, removal, files, and the recall of IVF segments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

import numpy as np
import pytest

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.store.index_files import checksums
from folio.store.vectors import BEST, ERROR, RECALL, Ids, Segment, build, build_flat, full_precision_index
from tests.helpers.damage import cut
from tests.helpers.fakes import overwrite
from tests.helpers.windows import SHARING_VIOLATION, refusal

COUNT, DIMENSION = 4000, 96


class VectorsById:
    """Vectors by id, as a library has them, in about a hundred clusters."""

    def __init__(self, count: int = COUNT, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        subjects = rng.standard_normal((count // 40, DIMENSION), dtype=np.float32)
        own = rng.standard_normal((count, DIMENSION), dtype=np.float32)
        vectors = subjects[rng.integers(len(subjects), size=count)] + 0.7 * own
        self.vectors = np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
        self.ids: Ids = np.random.default_rng(seed).permutation(count).astype(np.int64) * 2**40 + 7
        self.place = {chunk: row for row, chunk in enumerate(self.ids.tolist())}

    def read(self, ids: Sequence[int]) -> Vectors:
        return self.vectors[[self.place[chunk] for chunk in ids]]

    def questions(self, count: int = 100) -> Vectors:
        """Queries near the vectors, made differently from the synthetic queries of the build."""
        rng = np.random.default_rng(11)
        rows = self.vectors[rng.choice(len(self.vectors), size=(count, 2))]
        astray = rng.standard_normal((count, DIMENSION), dtype=np.float32) / DIMENSION**0.5
        asked = rows[:, 0] + 0.5 * rows[:, 1] + astray
        return np.asarray(asked / np.linalg.norm(asked, axis=1, keepdims=True), dtype=np.float32)

    def nearest(self, question: Vectors, k: int = BEST, among: Sequence[int] | None = None) -> list[int]:
        ids = self.ids.tolist() if among is None else list(among)
        scores = self.vectors[[self.place[chunk] for chunk in ids]] @ question
        return [ids[row] for row in np.argsort(-scores)[:k]]


@pytest.fixture(scope="module")
def shelf() -> VectorsById:
    return VectorsById()


@pytest.fixture(scope="module")
def listed(shelf: VectorsById) -> Segment:
    return build(np.sort(shelf.ids), shelf.read, DIMENSION, flat_up_to=1000)


@pytest.fixture(scope="module")
def plain(shelf: VectorsById) -> Segment:
    return build_flat(np.sort(shelf.ids), shelf.read, DIMENSION)


def test_the_kind_is_chosen_by_size(shelf: VectorsById) -> None:
    ids = np.sort(shelf.ids)
    kinds = [build(ids, shelf.read, DIMENSION, flat_up_to).kind for flat_up_to in (COUNT, COUNT - 1)]
    assert kinds == ["flat", "lists"]


def test_an_ivf_segment_reaches_its_recall(shelf: VectorsById, listed: Segment) -> None:
    assert listed.kind == "lists"
    assert listed.recall >= RECALL
    assert listed.probes <= listed.index.nlist // 2
    found = shared = 0
    for question in shelf.questions():
        near = {chunk for chunk, _ in listed.search(question, 2 * BEST)}
        shared += len(near.intersection(shelf.nearest(question)))
        found += BEST
    assert shared / found >= RECALL


def test_a_flat_segment_misses_nothing(shelf: VectorsById, plain: Segment) -> None:
    assert (plain.kind, plain.probes, plain.recall) == ("flat", 0, 1.0)
    for question in shelf.questions(30):
        near = [chunk for chunk, _ in plain.search(question, 2 * BEST)]
        assert set(shelf.nearest(question)) <= set(near)


def test_no_ivf_segment_is_built_without_benefit() -> None:
    """Uniformly distributed vectors have no clusters: most lists would have to be read."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((600, 256), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    made = build(np.arange(600), lambda ids: vectors[list(ids)], 256, flat_up_to=100)
    assert (made.kind, made.recall) == ("flat", 1.0)


@pytest.mark.parametrize("kind", ["plain", "listed"])
def test_scores_are_within_the_stated_error(shelf: VectorsById, request: pytest.FixtureRequest, kind: str) -> None:
    segment: Segment = request.getfixturevalue(kind)
    for question in shelf.questions(20):
        pairs = segment.search(question, 200)
        assert [score for _, score in pairs] == sorted((score for _, score in pairs), reverse=True)
        true = shelf.read([chunk for chunk, _ in pairs]) @ question
        assert np.abs(true - [score for _, score in pairs]).max() <= ERROR


@pytest.mark.parametrize("kind", ["plain", "listed"])
def test_among_given_ids_nothing_is_missed(shelf: VectorsById, request: pytest.FixtureRequest, kind: str) -> None:
    segment: Segment = request.getfixturevalue(kind)
    chosen = np.random.default_rng(4).choice(shelf.ids, 300, replace=False).tolist()
    for question in shelf.questions(20):
        near = [chunk for chunk, _ in segment.search(question, 300, frozenset([*chosen, 5]))]
        assert set(near) == set(chosen)
        assert near[0] == shelf.nearest(question, 1, chosen)[0]


@pytest.mark.parametrize("up_to", [1000, 5000])
def test_removed_vectors_are_not_found(up_to: int) -> None:
    shelf = VectorsById(1500)
    segment = build(np.sort(shelf.ids), shelf.read, DIMENSION, flat_up_to=up_to)
    question = shelf.questions(1)[0]
    gone = frozenset(shelf.nearest(question, 10))
    segment.removed = gone
    assert len(segment) == 1490
    assert set(segment.ids().tolist()) == set(shelf.ids.tolist()) - gone
    stored = {chunk: row for ids, rows in segment.stored() for chunk, row in zip(ids.tolist(), rows, strict=True)}
    assert stored.keys() == set(segment.ids().tolist())
    for near in (
        segment.search(question, 1500),
        segment.search(question, 1500, frozenset([*gone, *shelf.ids.tolist()])),
    ):
        assert near
        assert not gone.intersection(chunk for chunk, _ in near)


def test_stored_vectors_are_those_that_were_added(shelf: VectorsById, plain: Segment, listed: Segment) -> None:
    for segment in (plain, listed):
        seen = 0
        for ids, rows in segment.stored():
            own = shelf.read(ids.tolist())
            assert (np.abs(rows - own) <= ERROR * np.abs(own) + 2**-24).all()
            seen += len(ids)
        assert seen == COUNT


@pytest.mark.parametrize("kind", ["plain", "listed"])
def test_a_file_is_mapped_and_finds_the_same(
    shelf: VectorsById, request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    segment: Segment = request.getfixturevalue(kind)
    segment.write(tmp_path / "vectors-0-1.faiss")
    meta = segment.meta
    assert meta is not None
    (path,) = tmp_path.iterdir()
    assert (meta.file, meta.sums) == (path.name, checksums(path))
    assert meta.sums.bytes == path.stat().st_size
    assert (meta.count, meta.kind, meta.probes, meta.recall) == (
        COUNT, segment.kind, segment.probes, segment.recall,
    )  # fmt: skip
    opened = Segment.open(tmp_path, meta, DIMENSION)
    for question in shelf.questions(20):
        assert opened.search(question, BEST) == segment.search(question, BEST)
    assert opened.ids().tolist() == segment.ids().tolist() == np.sort(shelf.ids).tolist()


@pytest.mark.parametrize("kind", ["plain", "listed"])
def test_opening_a_file_does_not_load_its_vectors(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Few bytes are resident after opening, more after a search."""
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        pytest.skip("needs Linux to tell what is in memory")

    def resident(path: Path) -> int:
        lines = iter(maps.read_text().splitlines())
        return sum(
            int(next(line for line in lines if line.startswith("Rss:")).split()[1]) * 1024
            for head in lines
            if head.endswith(str(path))
        )

    segment: Segment = request.getfixturevalue(kind)
    path = tmp_path / "vectors-0-1.faiss"
    segment.write(path)
    assert segment.meta is not None
    opened = Segment.open(tmp_path, segment.meta, DIMENSION)
    vectors = COUNT * DIMENSION * 2
    before = resident(path)
    for _ in opened.stored():
        pass
    assert before < vectors / 2 < vectors * 0.9 < resident(path)


def test_the_same_vectors_give_the_same_file(shelf: VectorsById, listed: Segment, tmp_path: Path) -> None:
    build(np.sort(shelf.ids), shelf.read, DIMENSION, flat_up_to=1000).write(tmp_path / "again")
    listed.write(tmp_path / "first")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "first").read_bytes()


@pytest.mark.parametrize("kind", ["plain", "listed"])
@pytest.mark.parametrize("wrong", ["bytes", "count", "kind", "dimension", "content"])
def test_a_changed_file_is_not_opened(request: pytest.FixtureRequest, tmp_path: Path, kind: str, wrong: str) -> None:
    segment: Segment = request.getfixturevalue(kind)
    path = tmp_path / "vectors-0-1.faiss"
    segment.write(path)
    meta, dimension = segment.meta, DIMENSION
    assert meta is not None
    if wrong == "bytes":
        cut(path)
    elif wrong == "count":
        meta = replace(meta, count=meta.count - 1)
    elif wrong == "kind":
        meta = replace(meta, kind="lists" if meta.kind == "flat" else "flat")
    elif wrong == "dimension":
        dimension += 1
    else:
        overwrite(path, bytes(len(path.read_bytes())))
    with pytest.raises((IndexDamaged, RuntimeError)):
        Segment.open(tmp_path, meta, dimension)


def test_a_full_precision_index_has_the_exact_vectors(shelf: VectorsById) -> None:
    batches = ((shelf.ids[first : first + 900].tolist(), shelf.vectors[first : first + 900]) for first in (0, 900))
    index = full_precision_index(DIMENSION, batches)
    assert index.ntotal == 1800
    scores, ids = index.search(shelf.vectors[:5], 1)
    assert ids[:, 0].tolist() == shelf.ids[:5].tolist()
    assert index.reconstruct(int(shelf.ids[17])).tolist() == shelf.vectors[17].tolist()
    assert scores[:, 0].tolist() == pytest.approx([1] * 5, abs=1e-6)


@pytest.mark.parametrize(("refusals", "name"), [(3, "new-4.faiss"), (10**9, None)])
def test_a_file_locked_by_windows_is_retried_then_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int, name: str | None
) -> None:
    tries, rename = [0], os.replace

    def held(old: Path, new: Path) -> None:
        tries[0] += 1
        assert tries[0] < 1000
        if tries[0] <= refusals:
            raise refusal(SHARING_VIOLATION, old)
        rename(old, new)

    monkeypatch.setattr(os, "replace", held)
    segment = build_flat(np.arange(3), lambda ids: np.eye(3, 8, dtype=np.float32)[list(ids)], 8)
    began = monotonic()
    if name is None:
        with pytest.raises(PermissionError):
            segment.write(tmp_path / "new.faiss")
        assert list(tmp_path.iterdir()) == []
        assert monotonic() - began > 0.5
    else:
        segment.write(tmp_path / "new.faiss")
        assert segment.meta is not None
        assert [path.name for path in tmp_path.iterdir()] == [segment.meta.file] == [name]
