"""BM25: one contract for both engines, and damage to the index on disk."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from folio.errors import IndexDamaged
from folio.store import bm25
from folio.store.bm25 import MANIFEST, OkapiIndex, TantivyIndex, rarity
from folio.store.index_files import read_manifest, write_manifest
from folio.store.rows import Passage, Stamp
from tests.helpers.damage import cut, flip

STAMP = Stamp("epoch", 1)
Engine = TantivyIndex | OkapiIndex
Make = Callable[[Sequence[Passage]], Engine]

LATTICES, SPONGES, EMPTY = "a" * 64, "b" * 64, "c" * 64
PASSAGES = (
    Passage(11, LATTICES, "Lattice signatures", "Gradient gradient gradient: the norm of a gradient is bounded."),
    Passage(12, LATTICES, "Lattice signatures", "The gradient of the loss is computed once for each batch of data."),
    Passage(13, LATTICES, "Lattice signatures", "ML-KEM.KeyGen draws a seed and expands it with SHAKE128."),
    Passage(21, SPONGES, "On sponges", "A sponge absorbs its input and squeezes its output; the permutation is fixed."),
    Passage(22, SPONGES, "On sponges", "The gradient of a loss has no place in a sponge, where bits are permuted."),
    Passage(31, EMPTY, "", "... --- ..."),
)


@pytest.fixture(params=["tantivy on disk", "tantivy in memory", "rank_bm25"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def tantivy(passages: Sequence[Passage]) -> TantivyIndex:
        index = TantivyIndex.create(STAMP, tmp_path / "lexical" if request.param == "tantivy on disk" else None)
        index.add(passages, STAMP)
        return index

    return (lambda passages: OkapiIndex(passages, STAMP)) if request.param == "rank_bm25" else tantivy


@pytest.fixture
def index(make: Make) -> Engine:
    return make(PASSAGES)


def _ids(found: Sequence[tuple[int, float]]) -> list[int]:
    return [chunk for chunk, _ in found]


# The contract


def test_best_first(index: Engine) -> None:
    found = index.search("gradient", 10)
    assert _ids(found) == [11, 12, 22]
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0
    assert _ids(index.search("gradient", 2)) == [11, 12]


def test_the_rarer_word_wins(index: Engine) -> None:
    assert _ids(index.search("gradient squeezes", 10))[0] == 21


def test_ties_are_in_the_order_of_their_ids(make: Make) -> None:
    ids = list(range(100, 130))
    random.Random(7).shuffle(ids)
    index = make([Passage(i, LATTICES, "", "the same words here") for i in ids] + [Passage(1, SPONGES, "", "others")])
    found = index.search("same words", 5)
    assert _ids(found) == [100, 101, 102, 103, 104]
    assert len({score for _, score in found}) == 1


def test_only_the_papers_that_are_given(index: Engine) -> None:
    assert _ids(index.search("gradient", 10, frozenset({SPONGES}))) == [22]
    assert _ids(index.search("gradient", 10, frozenset({SPONGES, LATTICES}))) == [11, 12, 22]
    assert index.search("gradient", 10, frozenset({EMPTY})) == []
    assert index.search("gradient", 10, frozenset({"d" * 64})) == []
    assert index.search("gradient", 10, frozenset()) == []


def test_a_score_does_not_depend_on_the_filter(index: Engine) -> None:
    among_all = dict(index.search("gradient loss", 10))
    alone = dict(index.search("gradient loss", 10, frozenset({SPONGES})))
    assert alone[22] == pytest.approx(among_all[22])


@pytest.mark.parametrize(
    ("query", "k"),
    [*((query, 10) for query in ("", "   ", "what is the of and", "?!", "zyzzyva", "zyzzyva xylem")), ("gradient", 0)],
)
def test_an_empty_or_unknown_query_finds_nothing(index: Engine, query: str, k: int) -> None:
    assert index.search(query, k) == []


def test_an_unknown_word_next_to_a_known_one_changes_nothing(index: Engine) -> None:
    assert index.search("zyzzyva sponge", 10) == index.search("sponge", 10)


@pytest.mark.parametrize("query", ["ML-KEM.KeyGen", "keygen", "ml-kem", "shake128", "SHAKE", "gen"])
def test_technical_names_are_found_whole_and_in_parts(index: Engine, query: str) -> None:
    assert _ids(index.search(query, 10)) == [13]


@pytest.mark.parametrize("query", ['gradient AND "sponge', "body:gradient", "gradient*", "-gradient +(", "a:b:c^2~"])
def test_query_syntax_is_ignored(index: Engine, query: str) -> None:
    expected = [] if "gradient" not in query else [11, 12, 22]
    assert {11, 12, 22} & set(_ids(index.search(query, 10))) == set(expected)


def test_a_title_counts(index: Engine) -> None:
    assert set(_ids(index.search("signatures", 10))) == {11, 12, 13}
    assert set(_ids(index.search("sponges", 10))) == {21, 22}


def test_a_word_of_the_query_counts_once(index: Engine) -> None:
    assert index.search("sponge sponge sponge", 10) == index.search("sponge", 10)


def test_rarity_falls_with_frequency(index: Engine) -> None:
    found = [index.rarity(token) for token in ("zyzzyva", "seed", "spong", "gradient")]
    assert found == sorted(found, reverse=True)
    assert found == [pytest.approx(rarity(with_it, 6)) for with_it in (0, 1, 2, 3)]
    assert found[-1] > 0


def test_length_and_ids(index: Engine) -> None:
    assert index.ids() == {11, 12, 13, 21, 22, 31}
    assert len(index) == 6
    assert index.stamp == STAMP


@pytest.mark.parametrize("passages", [(), (Passage(31, EMPTY, "", "... ---"),)])
def test_an_index_without_words(make: Make, passages: Sequence[Passage]) -> None:
    index = make(passages)
    assert index.search("gradient", 10) == []
    assert index.ids() == {passage.id for passage in passages}
    assert index.rarity("gradient") >= 0


def test_one_passage_is_found(make: Make) -> None:
    # rank-bm25's own IDF gives no weight to a word in half of the passages or more.
    index = make(PASSAGES[:1])
    assert _ids(index.search("gradient", 10)) == [11]


def test_ids_are_as_large_as_chunk_ids_get(make: Make) -> None:
    index = make([Passage(2**63 - 1, LATTICES, "", "large"), Passage(0, LATTICES, "", "small")])
    assert _ids(index.search("large", 3)) == [2**63 - 1]
    assert index.ids() == {2**63 - 1, 0}


def test_both_engines_rank_alike() -> None:
    random_ = random.Random(11)
    words = [f"word{number}" for number in range(60)]
    passages = [
        Passage(i, LATTICES, "", " ".join(random_.choices(words, weights=range(1, 61), k=random_.randint(20, 60))))
        for i in range(200)
    ]
    tantivy, okapi = TantivyIndex.create(STAMP), OkapiIndex(passages, STAMP)
    tantivy.add(passages, STAMP)
    for query in ("word3 word9", "word1", "word20 word21 word2"):
        first, second = tantivy.search(query, 10), okapi.search(query, 10)
        assert len(set(_ids(first)) & set(_ids(second))) >= 9
        # tantivy keeps a passage's length in one byte.
        assert [score for _, score in first] == pytest.approx([score for _, score in second], rel=0.05)


# What an index on disk does


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index = TantivyIndex.create(STAMP, tmp_path / "lexical")
    index.add(PASSAGES, STAMP)
    return tmp_path / "lexical"


def test_passages_are_added_in_place(folder: Path) -> None:
    index = TantivyIndex.load(folder)
    index.add([Passage(41, "d" * 64, "", "Bloom filters")], Stamp("epoch", 2))
    assert index.ids() == {11, 12, 13, 21, 22, 31, 41}
    assert index.stamp == Stamp("epoch", 2)
    assert _ids(index.search("bloom", 10)) == [41]
    reopened = TantivyIndex.load(folder, thorough=True)
    assert (reopened.ids(), reopened.stamp) == (index.ids(), index.stamp)
    assert reopened.search("gradient bloom", 10) == index.search("gradient bloom", 10)


def test_passages_score_alike_however_they_were_added(folder: Path, tmp_path: Path) -> None:
    index = TantivyIndex.create(STAMP, tmp_path / "one by one")
    for passage in reversed(PASSAGES):
        index.add([passage], STAMP)
    at_once = TantivyIndex.load(folder)
    for query in ("gradient", "gradient of a sponge's loss", "lattice signatures", "on sponges"):
        assert index.search(query, 10) == at_once.search(query, 10)
        assert [index.rarity(token) for token in query.split()] == [at_once.rarity(token) for token in query.split()]


def test_scores_that_differ_by_rounding_are_ties() -> None:
    below = 1 - 2.0**-23
    assert bm25.tied([(7, 1.0), (3, below), (5, 0.5)], 2.0**-22) == [(3, 1.0), (7, 1.0), (5, 0.5)]
    assert bm25.tied([(7, 1.0), (3, below)], 2.0**-24) == [(7, 1.0), (3, below)]


def test_a_reader_keeps_the_state_it_opened(folder: Path) -> None:
    reader, writer = TantivyIndex.load(folder), TantivyIndex.load(folder)
    before = reader.search("gradient", 10)
    writer.add([Passage(41, LATTICES, "", "gradient gradient gradient")], Stamp("epoch", 2))
    assert reader.search("gradient", 10) == before
    assert reader.ids() == {passage.id for passage in PASSAGES}
    assert 41 in _ids(TantivyIndex.load(folder).search("gradient", 10))


def test_a_new_index_takes_the_place_of_the_old_one(folder: Path) -> None:
    index = TantivyIndex.create(Stamp("other", 5), folder)
    index.add(PASSAGES[:1], Stamp("other", 5))
    assert TantivyIndex.load(folder, thorough=True).ids() == {11}


def test_nothing_writes_in_the_folder_after_an_index_was_opened(folder: Path, tmp_path: Path) -> None:
    """tantivy's thread took a lock there later: of 250 folders, some had its file again after it was deleted."""
    locks = [tmp_path / str(number) / bm25._LOCK for number in range(150)]
    for lock in locks:
        shutil.copytree(folder, lock.parent)
        lock.unlink()
    opened = []
    for lock in locks:
        opened.append(TantivyIndex.load(lock.parent))
        lock.unlink(missing_ok=True)
    time.sleep(0.2)
    assert [lock for lock in locks if lock.exists()] == []
    assert all(len(index) == len(PASSAGES) for index in opened)


def test_an_index_opens_where_its_lock_cannot_be_taken(folder: Path) -> None:
    (folder / bm25._LOCK).unlink()
    (folder / bm25._LOCK).mkdir()
    assert _ids(TantivyIndex.load(folder).search("gradient", 10)) == [11, 12, 22]


def test_an_index_opens_where_links_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError("A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refused)
    index = TantivyIndex.load(folder)
    index.add([LATER], Stamp("epoch", 2))
    assert sorted(_ids(TantivyIndex.load(folder).search("gradient passage", 10))) == [11, 12, 22, 101]


class _DiskFails(OSError):
    pass


@pytest.mark.parametrize("on_disk", [True, False])
def test_passages_can_be_added_after_an_error_that_is_still_held(folder: Path, on_disk: bool) -> None:
    """A writer that nobody ended kept its lock, and wrote on, as long as the error was held."""

    def cut_short() -> Iterator[Passage]:
        yield LATER
        raise _DiskFails

    index = TantivyIndex.load(folder) if on_disk else TantivyIndex.create(STAMP)
    before = index.ids()
    with pytest.raises(_DiskFails) as held:
        index.add(cut_short(), Stamp("epoch", 2))
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    time.sleep(0.2)
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == files
    assert index.ids() == before
    index.add([Passage(102, LATTICES, "", "Another one.")], Stamp("epoch", 3))
    assert index.ids() == before | {102}
    assert held.value.__traceback__ is not None


def _delete(folder: Path, suffix: str) -> None:
    for path in folder.glob(f"*{suffix}"):
        if path.name != MANIFEST:
            path.unlink()


def _write_manifest(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)


def _largest(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name != MANIFEST), key=lambda path: path.stat().st_size)


def _add_without_manifest(folder: Path) -> None:
    """As after a kill between the commit and its manifest."""
    stated = (folder / MANIFEST).read_bytes()
    TantivyIndex.load(folder).add([LATER], Stamp("epoch", 2))
    (folder / MANIFEST).write_bytes(stated)


def _use_another_tokenizer(folder: Path) -> None:
    manifest = read_manifest(folder / MANIFEST)
    write_manifest(folder / MANIFEST, {**manifest, "tokenizer": manifest["tokenizer"] + 1})


LATER = Passage(101, LATTICES, "Lattice signatures", "A later passage says more.")
ANY, CHANGED = ".", "has changed since it was written"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    **{
        f"no {suffix}": (partial(_delete, suffix=suffix), ANY)
        for suffix in (".idx", ".term", ".store", ".fast", ".json")
    },
    **{
        f"manifest {content!r}": (partial(_write_manifest, content=content), ANY)
        for content in (b"", b"{", b"[]", b"null", b"5", b"\xff\xfe", b"{}", b'{"tokenizer": 1, "files": []}')
    },
    "truncated": (lambda folder: cut(_largest(folder)), CHANGED),
    "flipped": (lambda folder: flip(_largest(folder)), CHANGED),
    "a commit without its manifest": (_add_without_manifest, ANY),
    "another tokenizer": (_use_another_tokenizer, "another version of Folio"),
    "no folder": (shutil.rmtree, "cannot be read"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_noticed(folder: Path, name: str) -> None:
    damage, match = DAMAGE[name]
    damage(folder)
    with pytest.raises(IndexDamaged, match=match):
        TantivyIndex.load(folder)


def test_damage_before_an_update_is_still_found_after_it(folder: Path) -> None:
    opened = TantivyIndex.load(folder)
    flip(next(folder.glob("*.store")), 0)
    opened.add([LATER], Stamp("epoch", 2))
    with pytest.raises(IndexDamaged, match=CHANGED):
        TantivyIndex.load(folder, thorough=True)
