"""The cache of ONNX graphs: loaded whole or not at all, and rebuilt when the sources have changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import get_ident

import pytest

from folio.models.bert_onnx import OnnxCache

CONTENT = b"a graph" * 1000


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"weights")
    return path


def save(folder: Path, weights: Path, content: bytes = CONTENT, version: str = "1") -> OnnxCache:
    cached = OnnxCache.read(folder, "model")
    cached.save(version, cached.hash_sources([weights]), content)
    return OnnxCache.read(folder, "model")


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] + path.suffix for path in folder.iterdir())


def test_a_saved_graph_is_loaded(tmp_path: Path, weights: Path) -> None:
    cached = save(tmp_path / "a" / "cache", weights)
    assert cached.load() == CONTENT
    assert cached.matches("1", cached.hash_sources([weights]))
    assert not cached.matches("2", cached.hash_sources([weights]))
    assert names(tmp_path / "a" / "cache") == ["model.json", "model.onnx"]


def test_an_empty_cache_has_no_graph(tmp_path: Path, weights: Path) -> None:
    empty = save(tmp_path, weights, b"")
    for cached in (OnnxCache.read(tmp_path / "nowhere", "model"), OnnxCache.read(None, "model"), empty):
        assert cached.load() is None
    assert empty.digest == ""  # that no graph can be built is cached too
    assert empty.matches("1", empty.hash_sources([weights]))
    OnnxCache.read(None, "model").save("1", (), CONTENT)
    assert not (tmp_path / "nowhere").exists()


def test_only_changed_bytes_count_as_a_change(tmp_path: Path, weights: Path) -> None:
    cached = save(tmp_path / "cache", weights)
    os.utime(weights, (1, 1))
    assert cached.hash_sources([weights]) != cached.sources
    assert cached.matches("1", cached.hash_sources([weights]))
    weights.write_bytes(b"WEIGHTS")
    assert not cached.matches("1", cached.hash_sources([weights]))


def damaged_graph(folder: Path) -> None:
    (path,) = folder.glob("*.onnx")
    path.write_bytes(CONTENT[:-1])


def absent_graph(folder: Path) -> None:
    (path,) = folder.glob("*.onnx")
    path.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damaged_graph,
        absent_graph,
        lambda folder: (folder / "model.json").write_text("{"),
        lambda folder: (folder / "model.json").write_text("[]"),
        lambda folder: (folder / "model.json").write_text('{"version": "1", "graph": "", "sources": [{"path": 1}]}'),
        lambda folder: (folder / "model.json").write_bytes(b"\xff"),
        lambda folder: (folder / "model.json").unlink(),
    ],
)
def test_a_damaged_cache_counts_as_absent_and_is_rebuilt(
    tmp_path: Path, weights: Path, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "cache"
    save(folder, weights)
    damage(folder)
    assert OnnxCache.read(folder, "model").load() is None
    assert save(folder, weights).load() == CONTENT


def test_a_new_graph_replaces_the_old_one(tmp_path: Path, weights: Path) -> None:
    folder = tmp_path / "cache"
    old = save(folder, weights)
    (folder / "model.onnx.77.new").write_bytes(b"left behind")
    (folder / "model.json.78.new").write_bytes(b"of a running process")
    os.utime(folder / "model.onnx.77.new", (1, 1))
    (folder / "other.onnx").write_bytes(b"of another model")
    assert save(folder, weights, b"another").load() == b"another"
    assert names(folder) == ["model.json", "model.new", "model.onnx", "other.onnx"]
    assert old.load() is None


def test_an_unwritable_folder_raises_nothing(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert save(tmp_path / "cache", weights).load() is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_disk_leaves_the_old_graph(tmp_path: Path, weights: Path) -> None:
    folder = tmp_path / "cache"
    save(folder, weights)
    (folder / f"model.json.{os.getpid()}-{get_ident()}.new").symlink_to("/dev/full")
    assert save(folder, weights, b"another").load() == CONTENT


def test_threads_may_save_at_once(tmp_path: Path, weights: Path) -> None:
    def work(number: int) -> bytes | None:
        return save(tmp_path / "cache", weights).load()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(40))) <= {CONTENT, None}
    assert OnnxCache.read(tmp_path / "cache", "model").load() == CONTENT
