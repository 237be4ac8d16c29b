"""Whatever happens to the files of the derived indexes, a question gets the answer that it had before."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from folio.errors import IndexDamaged
from folio.papers.model import Vectors
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever, SearchResult
from folio.store import index_files
from folio.store.bm25 import MANIFEST as BM25_MANIFEST
from folio.store.bm25 import TantivyIndex
from folio.store.index_files import BLOCK, Checksums, check
from folio.store.indexes import LEXICAL, LIBRARY, check_in_background, open_indexes, update_indexes, verify, writing
from folio.store.library import Library
from folio.store.vectors import VectorIndex
from tests.helpers.damage import flip
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.fakes import HashingEmbedder, overwrite
from tests.helpers.stores import QUESTIONS, TEXTS, Notices, Store

LISTED = ("vectors-*.faiss", "vectors.json", f"{LEXICAL}/*", f"{LEXICAL}/.managed.json")
FLIPS_PER_FILE = 20 if EXHAUSTIVE else 3
SAID = "repaired from the library without embedding anything again."


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Store(tmp_path_factory.mktemp("pristine") / "store")
    for name, text in TEXTS.items():
        made.add(name, text)
    made.update()
    made.library.close()
    return made.folder


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "store")


def _files(folder: Path) -> list[Path]:
    """The derived files that are not empty: locks are."""
    found = sorted({path for pattern in LISTED for path in folder.glob(pattern)})
    return [path for path in found if path.stat().st_size]


class Asked:
    """A store that is open for questions."""

    def __init__(self, folder: Path) -> None:
        self.library, self.notices = Library(folder / LIBRARY), Notices()
        self.retriever = Retriever(
            self.library,
            lambda: open_indexes(folder, self.library, "tantivy", self.notices),
            HashingEmbedder(),
            None,
            FusionSettings(0.7, 0.3, 20),
        )

    def answers(self) -> list[object]:
        found: list[SearchResult] = [self.retriever.search(question, 6) for question in QUESTIONS]
        return [(result.hits, result.ranked) for result in found]


@pytest.fixture
def asked(folder: Path) -> Iterator[Asked]:
    made = Asked(folder)
    yield made
    made.library.close()


@pytest.fixture(scope="module")
def expected(pristine: Path) -> list[object]:
    made = Asked(pristine)
    answers = made.answers()
    made.library.close()
    assert made.notices == []
    return answers


def _damages(path: Path, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    content = path.read_bytes()
    for at in rng.sample(range(8 * len(content)), FLIPS_PER_FILE):
        flipped = bytearray(content)
        flipped[at // 8] ^= 1 << at % 8
        yield f"bit {at} of {path.name} flipped", bytes(flipped)
    yield f"{path.name} truncated", content[: rng.randrange(len(content))]


def test_a_flipped_bit_or_a_truncation_is_repaired_at_opening(folder: Path, expected: list[object]) -> None:
    rng = random.Random(15)
    damages = [(path, *damage) for path in _files(folder) for damage in _damages(path, rng)]
    assert len(damages) > 30
    for path, name, content in damages:
        kept = {each: each.read_bytes() for each in _files(folder)}
        overwrite(path, content)
        asked = Asked(folder)
        assert (asked.answers(), len(asked.notices)) == (expected, 1), name
        assert asked.notices[0].endswith(SAID), name
        asked.library.close()
        for each in _files(folder):
            each.unlink()
        for each, before in kept.items():
            overwrite(each, before)


def test_an_ingest_repairs_a_flipped_bit_without_new_papers(folder: Path) -> None:
    library = Library(folder / LIBRARY)
    for path in [path for path in _files(folder) if path.suffix in (".faiss", ".idx")]:
        flip(path, mask=4)
    notices = Notices()
    with writing(folder):
        update_indexes(folder, library, "tantivy", notices)
    assert notices == [
        "The vector index could not be read and the BM25 index could not be read: rebuilt from the"
        " library without embedding anything again."
    ]
    assert verify(folder, library, "tantivy") == []
    library.close()


# Engines that fail on files that seem sound


class Panic(BaseException):
    """As a panic in Rust reaches Python: not an Exception."""


def _raises(error: BaseException) -> Callable[..., object]:
    def fails(*_: object, **__: object) -> object:
        raise error

    return fails


FAULTS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "panic": (TantivyIndex, "_search", _raises(Panic("index out of bounds"))),
    "value error": (TantivyIndex, "_search", _raises(ValueError("corrupt"))),
    "not a number": (TantivyIndex, "_search", lambda *_: [(1, float("nan"))]),
    "unknown id": (TantivyIndex, "_search", lambda *_: [(1, 2.0)]),
    "id twice": (TantivyIndex, "_search", lambda *_: [(1, 2.0), (1, 2.0)]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failure_inside_an_engine_leads_to_a_rebuild(
    folder: Path, asked: Asked, expected: list[object], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The engine fails while it reads the files of before, and works on new ones."""
    kind, method, fault = FAULTS[name]
    sound, before = getattr(kind, method), (folder / LEXICAL / BM25_MANIFEST).read_bytes()

    def faulty(self: object, *arguments: object) -> object:
        still = (folder / LEXICAL / BM25_MANIFEST).read_bytes() == before
        return fault(self, *arguments) if still else sound(self, *arguments)

    monkeypatch.setattr(kind, method, faulty)
    assert asked.answers() == expected
    assert [notice.endswith(SAID) for notice in asked.notices] == [True]


def test_a_broken_engine_is_an_error_with_a_remedy(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TantivyIndex, "_search", _raises(Panic("index out of bounds")))
    with pytest.raises(IndexDamaged, match="the BM25 index cannot be read: index out of bounds") as caught:
        asked.answers()
    assert "--repair" in caught.value.remedy


def test_a_wrong_vector_is_noticed_when_searched(folder: Path, asked: Asked, expected: list[object]) -> None:
    """As if it had been damaged before its checksum was computed."""

    def mirrored(ids: object) -> Vectors:
        vectors: Vectors = -asked.library.vectors_of(ids)  # type: ignore[arg-type]
        return vectors

    stamp = VectorIndex.load(folder, mirrored).stamp
    VectorIndex(64, stamp, mirrored).update(asked.library.chunk_ids(), (), stamp, folder)
    assert asked.answers() == expected
    assert [notice.endswith(SAID) for notice in asked.notices] == [True]


# Large files, of which opening reads a part


def _large(folder: Path, blocks: int) -> dict[str, Checksums]:
    path = folder / "large"
    path.write_bytes(random.Random(1).randbytes(blocks * BLOCK - 5))
    return {"large": index_files.checksums(path)}


def test_a_large_file_is_sampled_at_opening(tmp_path: Path) -> None:
    files, found = _large(tmp_path, 12), dict[int, int]()
    content = (tmp_path / "large").read_bytes()
    check(tmp_path, files, 4 * BLOCK)
    for block in (0, 3, 11):
        overwrite(tmp_path / "large", content)
        flip(tmp_path / "large", block * BLOCK + 7)
        with pytest.raises(IndexDamaged, match="large has changed since it was written"):
            check(tmp_path, files)
        for _ in range(40):
            try:
                check(tmp_path, files, 4 * BLOCK)
            except IndexDamaged:
                found[block] = found.get(block, 0) + 1
    assert (found[0], found[11]) == (40, 40)
    assert 0 < found[3] < 40  # two of the ten blocks between the ends are chosen


def test_a_background_check_has_damage_repaired_before_the_next_question(
    folder: Path, asked: Asked, expected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folio.store.vectors.CHECKED_BYTES", 0)
    monkeypatch.setattr("folio.store.index_files._sample", lambda files, blocks, count: [])  # nothing at opening
    (path,) = folder.glob("*.faiss")
    flip(path, 200, 16)  # inside a vector
    asked.retriever.search("nothing of this", 1)
    assert asked.notices == []
    for thread in check_in_background(folder, "tantivy"):
        thread.join()
    assert asked.answers() == expected
    assert [notice.endswith(SAID) for notice in asked.notices] == [True]
