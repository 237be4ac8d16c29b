"""The retriever pool: one library per question, shared models, and a replaced store is noticed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from folio.errors import StoreBusy, StoreError, StoreMismatch, StoreMissing
from folio.search.pool import MAX_IDLE, RetrieverPool
from folio.store.library import Library
from tests.helpers.factories import shelf
from tests.helpers.fakes import HashingApp

pytestmark = pytest.mark.fast

QUESTION = "What length has the Aletsch glacier?"


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    return shelf(tmp_path)


@pytest.fixture
def readers(app: HashingApp) -> Iterator[RetrieverPool]:
    made = RetrieverPool(app.open_library, app.retriever, app.open_indexes)
    yield made
    made.close()


def test_questions_have_own_libraries_and_shared_models(readers: RetrieverPool) -> None:
    with readers.acquire() as first, readers.acquire() as second:
        assert first.library is not second.library
        assert first.retriever is not second.retriever
        assert first.retriever.embedder is second.retriever.embedder
        assert first.retriever.search(QUESTION, 3).hits == second.retriever.search(QUESTION, 3).hits


def test_idle_readers_are_kept_up_to_a_limit(readers: RetrieverPool) -> None:
    with readers.acquire() as first:
        pass
    with readers.acquire() as again:
        assert again is first
    with ExitStack() as at_once:
        taken = [at_once.enter_context(readers.acquire()) for _ in range(MAX_IDLE + 2)]
    closed = []
    for reader in taken:
        try:
            reader.library.papers()
        except StoreError:
            closed.append(reader)
    assert len(closed) == 2


def test_failed_and_late_readers_are_not_reused(readers: RetrieverPool) -> None:
    with pytest.raises(LookupError), readers.acquire() as first:
        raise LookupError
    with readers.acquire() as second:
        assert second.library is not first.library
        assert second.retriever.search(QUESTION, 3).hits
    with readers.acquire() as late:
        readers.close()
        assert late.library.papers()
    with pytest.raises(StoreError):
        late.library.papers()


def test_a_reader_whose_library_cannot_be_looked_at_is_closed(
    readers: RetrieverPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(library: Library) -> None:
        raise StoreBusy("Another process is writing.", "Wait.")

    with readers.acquire() as first:
        pass
    with monkeypatch.context() as patch:
        patch.setattr(Library, "identity", busy)
        with pytest.raises(StoreBusy), readers.acquire():
            pass
    with pytest.raises(StoreError):
        first.library.papers()


def test_many_threads_find_the_same(readers: RetrieverPool) -> None:
    def find(_: int) -> list[int]:
        with readers.acquire() as reader:
            return [hit.chunk.id for hit in reader.retriever.search(QUESTION, 3).hits]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(find, range(64)))
    assert found == [found[0]] * 64


def test_a_replaced_store_is_opened(app: HashingApp, readers: RetrieverPool, tmp_path: Path) -> None:
    with readers.acquire() as before:
        assert before.library.chunk_count()
    folder = app.settings.VECTORSTORE_DIR
    shutil.rmtree(folder)
    with pytest.raises(StoreMissing), readers.acquire():
        pass
    other = shelf(tmp_path / "other")
    shutil.copytree(other.settings.VECTORSTORE_DIR, folder)
    with readers.acquire() as after:
        assert after.library is not before.library
        assert after.retriever.search(QUESTION, 1).hits[0].paper.file == "glaciers.pdf"


def test_a_store_rebuilt_with_another_model_is_refused(app: HashingApp, readers: RetrieverPool) -> None:
    with readers.acquire():
        pass
    library = Library(app.library_path)
    library.set_fingerprint({**library.fingerprint(), "embedder": "another"})
    library.close()
    with pytest.raises(StoreMismatch, match="embedder is another in the index"), readers.acquire():
        pass
