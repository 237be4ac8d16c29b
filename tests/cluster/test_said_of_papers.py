"""What services and Zotero say of papers goes where the papers are, also before a paper is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pymilvus", reason="pymilvus is not installed (requirements-cluster.txt)")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed (requirements-cluster.txt)")

from folio import workers
from folio.files import sha256_file
from folio.paper_metadata import Field, simple_metadata
from folio.sources import fetching, zotero_sync
from folio.sources.zotero import Attachment, ZoteroLibrary
from folio.types import SourceFile
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_once
from tests.helpers.milvus import again, lite_app


@pytest.fixture(params=["local", "milvus"])
def app(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HashingApp]:
    """A store of each kind, empty, and two files that it has not read."""
    monkeypatch.setattr(workers, "run_guarded", read_once)
    write_pdf(tmp_path / "papers" / "otters.pdf", OTTERS, "On Sea Otters")
    write_pdf(tmp_path / "papers" / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
    if request.param == "local":
        yield hashing_app(tmp_path)
    else:
        with lite_app(tmp_path, tmp_path / "papers") as made:
            yield made


def file_of(app: HashingApp, name: str) -> SourceFile:
    path = app.settings.PAPERS_DIR / name
    return SourceFile(str(path), name, sha256_file(path))


def titles(app: HashingApp) -> list[str]:
    with closing(app.open_library()) as library:
        return [paper.title for paper in library.papers()]


def test_a_paper_that_services_described_before_it_came_is_described(app: HashingApp) -> None:
    papers = [file_of(app, name).sha256 for name in ("glaciers.pdf", "otters.pdf")]
    said = {paper: simple_metadata(f"From a service {n}", origin="openalex") for n, paper in enumerate(papers)}
    with closing(app.open_library(create=True)) as library:  # before the first ingest
        assert fetching.describe(library, {papers[0]: said[papers[0]]}) == 1
    app.run()
    assert titles(again(app)) == ["From a service 0", "On Sea Otters"]
    with closing(again(app).open_library(create=True)) as library:
        assert fetching.describe(library, said) == 1
        assert fetching.describe(library, said) == 0
    assert titles(again(app)) == ["From a service 0", "From a service 1"]


def test_a_paper_of_zotero_is_described_before_and_after_it_comes(app: HashingApp) -> None:
    files = [file_of(app, name) for name in ("glaciers.pdf", "otters.pdf")]

    def library_of(title: str) -> ZoteroLibrary:
        attachments = []
        for n, file in enumerate(files):
            about = simple_metadata(f"{title} {file.name}", origin="zotero")
            place = Field(f"library/items/ABCDEFG{n}", "zotero")
            attachments.append(Attachment(Path(file.path), replace(about, zotero=place)))
        return ZoteroLibrary(app.settings.PAPERS_DIR, tuple(attachments), {}, {})

    with closing(app.open_library(create=True)) as library:
        assert zotero_sync.describe(library, library_of("First"), files) == zotero_sync.Described(2, 0)
    app.run()
    assert titles(again(app)) == ["First glaciers.pdf", "First otters.pdf"]
    with closing(again(app).open_library(create=True)) as library:
        assert zotero_sync.describe(library, library_of("Second"), files) == zotero_sync.Described(0, 2)
    assert titles(again(app)) == ["Second glaciers.pdf", "Second otters.pdf"]
