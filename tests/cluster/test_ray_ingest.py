"""`folio ingest --on ray`: the library, the report and the errors of an ingest without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="ray is not installed (requirements-cluster.txt)")

from folio import workers
from folio.store.paper_store import PaperStore
from tests.helpers.factories import small_papers
from tests.helpers.fakes import HashingApp, hashing_app, make_pdf, read_once


def kept(library: PaperStore) -> list[Any]:
    """All that a store says of its papers, save when they were added."""
    papers = library.papers()
    ids = library.chunk_ids_of([paper.id for paper in papers])
    hashes = {id: found.text_hash for id, found in library.paper_vectors().items()}
    return [
        papers,
        sorted(library.read_chunks(ids), key=lambda row: row[0].id),
        library.vectors_of(ids).tolist(),
        hashes,
    ]


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HashingApp]:
    papers = tmp_path / "papers"
    small_papers(papers)
    make_pdf(papers / "more" / "trees.pdf", "trees")
    (papers / "broken.pdf").write_bytes(b"%PDF-1.7 nothing follows")
    (papers / "copy.pdf").write_bytes(next(papers.glob("*.pdf")).read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        app = hashing_app(tmp_path / "plain", PAPERS_DIR=papers)
        app.run()
    return app


def test_the_same_library_and_report(ray: Any, plain: HashingApp, tmp_path: Path) -> None:
    app = hashing_app(tmp_path / "ray", PAPERS_DIR=plain.settings.PAPERS_DIR)
    app.run(on_ray=True)
    with closing(plain.open_library()) as expected, closing(app.open_library()) as found:
        assert kept(found) == kept(expected)
        assert found.failures() == expected.failures()
