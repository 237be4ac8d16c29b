"""What is made once and kept: read back whole or not at all, and made anew when what it was made of has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import get_ident

import pytest

from folio.models.onnx_cache import OnnxCache

CONTENT = b"a graph" * 1000


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"weights")
    return path


def keep(folder: Path, weights: Path, content: bytes = CONTENT, version: str = "1") -> OnnxCache:
    kept = OnnxCache.read(folder, "model")
    kept.keep(version, kept.examined([weights]), content)
    return OnnxCache.read(folder, "model")


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] + path.suffix for path in folder.iterdir())


def test_what_was_kept_is_read_back(tmp_path: Path, weights: Path) -> None:
    kept = keep(tmp_path / "a" / "cache", weights)
    assert kept.content() == CONTENT
    assert kept.is_of("1", kept.examined([weights]))
    assert not kept.is_of("2", kept.examined([weights]))
    assert names(tmp_path / "a" / "cache") == ["model.json", "model.onnx"]


def test_there_is_nothing_before_it_was_kept(tmp_path: Path, weights: Path) -> None:
    for kept in (
        OnnxCache.read(tmp_path / "nowhere", "model"),
        OnnxCache.read(None, "model"),
        keep(tmp_path, weights, b""),
    ):
        assert kept.content() is None
    OnnxCache.read(None, "model").keep("1", (), CONTENT)
    assert not (tmp_path / "nowhere").exists()


def test_that_there_is_none_is_remembered_too(tmp_path: Path, weights: Path) -> None:
    kept = keep(tmp_path / "cache", weights, b"")
    assert (kept.graph, kept.content()) == ("", None)
    assert kept.is_of("1", kept.examined([weights]))


def test_other_bytes_are_seen_and_another_time_alone_is_not_a_change(tmp_path: Path, weights: Path) -> None:
    kept = keep(tmp_path / "cache", weights)
    os.utime(weights, (1, 1))
    assert kept.examined([weights]) != kept.sources
    assert kept.is_of("1", kept.examined([weights]))
    weights.write_bytes(b"WEIGHTS")
    assert not kept.is_of("1", kept.examined([weights]))


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
def test_what_is_damaged_counts_as_not_there_and_is_made_again(
    tmp_path: Path, weights: Path, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "cache"
    keep(folder, weights)
    damage(folder)
    assert OnnxCache.read(folder, "model").content() is None
    assert keep(folder, weights).content() == CONTENT


def test_the_new_one_takes_the_place_of_the_old_one(tmp_path: Path, weights: Path) -> None:
    folder = tmp_path / "cache"
    old = keep(folder, weights)
    (folder / "model.onnx.77.new").write_bytes(b"left behind")
    (folder / "model.json.78.new").write_bytes(b"of a process that is at it")
    os.utime(folder / "model.onnx.77.new", (1, 1))
    (folder / "other.onnx").write_bytes(b"of another model")
    assert keep(folder, weights, b"another").content() == b"another"
    assert names(folder) == ["model.json", "model.new", "model.onnx", "other.onnx"]
    assert old.content() is None


def test_where_nothing_can_be_written_nothing_is_raised(tmp_path: Path, weights: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert keep(tmp_path / "cache", weights).content() is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, weights: Path) -> None:
    folder = tmp_path / "cache"
    keep(folder, weights)
    (folder / f"model.json.{os.getpid()}-{get_ident()}.new").symlink_to("/dev/full")
    assert keep(folder, weights, b"another").content() == CONTENT


def test_many_may_make_it_at_once(tmp_path: Path, weights: Path) -> None:
    def work(number: int) -> bytes | None:
        return keep(tmp_path / "cache", weights).content()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(40))) <= {CONTENT, None}
    assert OnnxCache.read(tmp_path / "cache", "model").content() == CONTENT
