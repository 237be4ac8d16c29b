"""The ranking is a function of the library: whatever a store went through, it finds what a fresh one finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from folio.papers.model import SourceFile
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.store.bm25 import MANIFEST
from folio.store.indexes import LEXICAL, LIBRARY, Engine, open_indexes
from folio.store.library import Library
from folio.text import tokenize
from tests.helpers.exhaustive import EXHAUSTIVE
from tests.helpers.stores import Notices, Store

WORDS = [
    f"{first}{second}" for first in ("lat", "spon", "grad", "tre", "key") for second in ("tice", "ge", "ient", "es")
]
QUESTIONS = ("latice sponge", "gradient", "trees keys keyes", "sponge ge", " ".join(WORDS), "nothing of all this")
ENGINES: tuple[Engine, ...] = ("tantivy", "rank_bm25")
# File name -> the text of its paper
Files = dict[str, str]


def _text(rng: random.Random) -> str:
    """Paragraphs of a few words, common ones and rare ones; some occur twice, so that their scores are equal."""
    paragraphs = [
        " ".join(rng.choices(WORDS, weights=range(1, len(WORDS) + 1), k=rng.randint(3, 12))) + "."
        for _ in range(rng.randint(1, 9))
    ]
    paragraphs += rng.choices(paragraphs, k=rng.randint(0, 4))
    return "\n\n".join(paragraphs)


class History:
    """A store on which things happen at random, and the files that should be in it."""

    def __init__(self, folder: Path, engine: Engine, rng: random.Random) -> None:
        self.store = Store(folder)
        self.files: Files = {}
        self._engine, self._rng = engine, rng
        self._texts = [_text(rng) for _ in range(12)]

    def run(self, steps: int) -> None:
        kinds: list[Callable[[], object]] = [self._add, self._add, self._replace, self._remove, self._copy]
        ends: list[Callable[[], object]] = [self._update, self._killed_at_the_manifest, lambda: None]
        for step in range(steps):
            (self._add if step < 4 else self._rng.choice(kinds))()
            self._rng.choices(ends, weights=(6, 1, 3))[0]()
        self._update()

    def _put(self, name: str) -> None:
        """As an ingest does: a text that the library has is linked, any other is added."""
        text = self._rng.choice(self._texts)
        _put(self.store, name, text, self.files)
        self.files[name] = text

    def _add(self) -> None:
        self._put(f"paper{self._rng.randrange(20)}")

    def _replace(self) -> None:
        if self.files:
            self._put(self._rng.choice(sorted(self.files)))

    def _remove(self) -> None:
        if self.files:
            name = self._rng.choice(sorted(self.files))
            self.store.library.drop(f"/papers/{name}.pdf")
            del self.files[name]

    def _copy(self) -> None:
        if self.files:
            text = self.files[self._rng.choice(sorted(self.files))]
            name = f"copy{self._rng.randrange(20)}"
            _put(self.store, name, text, self.files)
            self.files[name] = text

    def _update(self) -> None:
        self.store.update(self._engine)

    def _killed_at_the_manifest(self) -> None:
        """An update that was killed when BM25 had committed and its manifest was not yet written."""
        manifest = self.store.folder / LEXICAL / MANIFEST
        before = manifest.read_bytes() if manifest.exists() else None
        self._update()
        if before is not None:
            manifest.write_bytes(before)


def _put(store: Store, name: str, text: str, files: Files) -> None:
    """The title is the same for all: who is named is not the subject here, and equal paragraphs are to tie."""
    known = next((other for other, own in files.items() if own == text), None)
    if known is None:
        store.add(name, text, title="A paper")
    else:
        sha256 = next(f.sha256 for f in store.library.files() if f.name == f"{known}.pdf")
        store.library.link([SourceFile(f"/papers/{name}.pdf", f"{name}.pdf", sha256)])


def _fresh(folder: Path, files: Files, engine: Engine, rng: random.Random, *, one_by_one: bool) -> Store:
    store, order, added = Store(folder), sorted(files), Files()
    rng.shuffle(order)
    for name in order:
        _put(store, name, files[name], added)
        added[name] = files[name]
        if one_by_one:
            store.update(engine)
    store.update(engine)
    return store


@contextmanager
def _retriever(store: Store, engine: Engine) -> Iterator[Retriever]:
    library = Library(store.folder / LIBRARY)
    notices = Notices()
    yield Retriever(
        library,
        lambda: open_indexes(store.folder, library, engine, notices),
        store.embedder,
        None,
        FusionSettings(0.7, 0.3, 20),
    )
    library.close()
    assert notices == []


def _found(store: Store, engine: Engine) -> list[object]:
    """Everything that ranks, in order: ids, and scores to compare; then the names that answers cite."""
    indexes = open_indexes(store.folder, store.library, engine, pytest.fail)
    found: list[object] = [paper.key for paper in sorted(store.library.papers(), key=lambda paper: paper.id)]
    for question in QUESTIONS:
        for k in (1, 3, 200):
            lexical = indexes.lexical.search(question, k)
            dense = indexes.vectors.search(store.embedder.embed_query(question), k)
            found += [[chunk for chunk, _ in lexical], pytest.approx([score for _, score in lexical], rel=1e-6, abs=0)]
            found += [[chunk for chunk, _ in dense], pytest.approx([score for _, score in dense], rel=1e-6, abs=1e-9)]
        found += [indexes.lexical.rarity(token) for token in tokenize(question)]
    with _retriever(store, engine) as retriever:
        for question in QUESTIONS:
            hits = retriever.search(question, 8).hits
            found += [
                [(hit.chunk.id, hit.paper.key) for hit in hits],
                pytest.approx([hit.score for hit in hits], rel=1e-6),
            ]
    return found


def _values(found: list[object]) -> list[object]:
    """The same with plain numbers: two approximations cannot be compared."""
    return [getattr(value, "expected", value) for value in found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(50 if EXHAUSTIVE else 3))
def test_a_store_with_a_history_ranks_as_a_fresh_one(tmp_path: Path, engine: Engine, seed: int) -> None:
    rng = random.Random(seed)
    history = History(tmp_path / "old", engine, rng)
    history.run(steps=20)
    assert history.files
    expected = _found(history.store, engine)
    for name, one_by_one in (("at once", False), ("one by one", True)):
        fresh = _fresh(tmp_path / name, history.files, engine, rng, one_by_one=one_by_one)
        assert fresh.library.chunk_ids() == history.store.library.chunk_ids()
        assert _values(_found(fresh, engine)) == expected
        fresh.library.close()
    history.store.library.close()
