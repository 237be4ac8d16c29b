"""Paper files: uploads get safe names, removed papers keep their file, changed files are not served."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from folio.errors import NotKnown, PaperError, StoreBusy
from folio.papers.model import SourceFile
from folio.store import indexes
from folio.store.library import Library
from folio.system import workers
from folio.web.papers import STALE_S, PaperFiles, removed_papers, safe_name
from tests.helpers.factories import GLACIERS, OTTERS, pdf_of
from tests.helpers.fakes import HashingApp, RecordedProgress, hashing_app, read_here
from tests.helpers.paths import ROOT


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return hashing_app(tmp_path)


@pytest.fixture
def paper_files(app: HashingApp) -> PaperFiles:
    return PaperFiles(app)


def add(paper_files: PaperFiles, content: bytes, name: str = "otters.pdf") -> SourceFile:
    upload = paper_files.save_upload(io.BytesIO(content), name)
    assert paper_files.ingest(upload, RecordedProgress()).status == "added"
    return upload.file


def names(app: HashingApp) -> list[str]:
    """The files in PAPERS_DIR, hidden ones included."""
    return sorted(path.name for path in app.settings.PAPERS_DIR.iterdir())


def papers(app: HashingApp) -> list[str]:
    with closing(app.open_library()) as library:
        assert library.failures() == []
        return [paper.file for paper in library.papers()]


# Adding


def test_a_pdf_is_added_and_found(app: HashingApp, paper_files: PaperFiles, tmp_path: Path) -> None:
    progress = RecordedProgress()
    upload = paper_files.save_upload(io.BytesIO(pdf_of()), "otters.pdf")
    outcome, file = paper_files.ingest(upload, progress), upload.file
    assert (outcome.status, outcome.pages, outcome.file.name) == ("added", 2, "otters.pdf")
    assert (names(app), papers(app)) == (["otters.pdf"], ["otters.pdf"])
    assert Path(file.path).read_bytes() == pdf_of()
    assert progress.chunks == {"otters.pdf": outcome.chunks}
    (tmp_path / "any").touch()
    assert Path(file.path).stat().st_mode == (tmp_path / "any").stat().st_mode  # as other files have it
    with closing(app.open_library()) as library:
        assert app.retriever(library).search("What do otters eat?", 1).hits[0].paper.title == "On Sea Otters"
        assert paper_files.pdf(library, file.sha256) == Path(file.path)


def test_another_file_with_the_same_name_is_numbered(app: HashingApp, paper_files: PaperFiles, tmp_path: Path) -> None:
    folder = app.settings.PAPERS_DIR
    (folder / "otters.pdf").mkdir(parents=True)  # these cannot be read
    (folder / "otters (2).pdf").symlink_to(tmp_path / "gone.pdf")
    assert [add(paper_files, pdf_of(pages)).name for pages in (OTTERS, GLACIERS)] == [
        "otters (3).pdf",
        "otters (4).pdf",
    ]
    assert names(app) == ["otters (2).pdf", "otters (3).pdf", "otters (4).pdf", "otters.pdf"]
    assert papers(app) == ["otters (3).pdf", "otters (4).pdf"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("otters.pdf", "otters.pdf"),
        ("Otters.PDF", "Otters.pdf"),
        ("../../etc/passwd", "passwd.pdf"),
        ("..\\..\\boot.pdf", "boot.pdf"),
        ("/etc/cron.d/x.pdf", "x.pdf"),
        (".hidden.pdf", "hidden.pdf"),
        ("...", "paper.pdf"),
        ("", "paper.pdf"),
        ("a\x00b\x1b[31m\n.pdf", "a b [31m.pdf"),
        ('a<b>:"c|d?*.pdf', "a_b___c_d__.pdf"),
        ("\udce4.pdf", "paper.pdf"),
        ("ä" * 300 + ".pdf", "ä" * 100 + ".pdf"),
        ("paper.pdf.exe", "paper.pdf.exe.pdf"),
        ("nul.pdf", "_nul.pdf"),
    ],
)
def test_a_name_is_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


class Torn(io.BytesIO):
    """A body whose client leaves in the middle."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise ConnectionResetError
        return super().read(size)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        *(
            (io.BytesIO(content), PaperError)
            for content in (b"", b"%PD", b"<html>%PDF</html>", b" " * 1024 + b"%PDF-1.7")
        ),
        (Torn(b"%PDF-1.7" + b" " * 5000), ConnectionResetError),
    ],
)
def test_a_body_that_is_no_pdf_or_interrupted_leaves_nothing(
    app: HashingApp, paper_files: PaperFiles, body: io.BytesIO, error: type[Exception]
) -> None:
    app.settings.PAPERS_DIR.mkdir()
    with pytest.raises(error):
        paper_files.save_upload(body, "otters.pdf")
    assert names(app) == []


WATCHED = """
import io, os, sys
from pathlib import Path
from types import SimpleNamespace
from folio.web.papers import PaperFiles
folder = Path(sys.argv[1])
def look(event, _):
    if event.startswith(("open", "os.")) and not event.startswith(("os.listdir", "os.scandir")):
        for name in ("otters.pdf", "otters (2).pdf"):
            if os.path.exists(folder / name) and not os.path.getsize(folder / name):
                os._exit(3)
sys.addaudithook(look)
(folder / "otters.pdf").write_bytes(b"%PDF-1.7 another")
files = PaperFiles.__new__(PaperFiles)
files._app = SimpleNamespace(papers_folder=folder)
print(files.save_upload(io.BytesIO(b"%PDF-1.7" + b" " * 5000), "otters.pdf").file.name)
"""


def test_an_upload_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WATCHED, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "otters (2).pdf\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["otters (2).pdf", "otters.pdf"]


def test_a_pdf_without_text_is_reported_and_not_kept(app: HashingApp, paper_files: PaperFiles) -> None:
    add(paper_files, pdf_of())
    file = paper_files.save_upload(io.BytesIO(b"%PDF-1.7\nthe rest of it was lost"), "torn.pdf")
    with pytest.raises(PaperError, match=r"damaged|no pages|not a PDF"):
        paper_files.ingest(file, RecordedProgress())
    assert (names(app), papers(app)) == (["otters.pdf"], ["otters.pdf"])


def test_during_another_ingest_an_upload_is_refused_and_leaves_nothing(
    app: HashingApp, paper_files: PaperFiles
) -> None:
    file = paper_files.save_upload(io.BytesIO(pdf_of()), "otters.pdf")
    with indexes.writing(app.settings.VECTORSTORE_DIR), pytest.raises(StoreBusy):
        paper_files.ingest(file, RecordedProgress())
    assert names(app) == []


@pytest.mark.parametrize("why", ["it gives no text", "another ingest is running", "it is there twice"])
def test_a_file_that_was_there_before_is_not_deleted(app: HashingApp, paper_files: PaperFiles, why: str) -> None:
    content = b"%PDF-1.7\nthe rest of it was lost" if why == "it gives no text" else pdf_of()
    path = app.settings.PAPERS_DIR / "mine.pdf"
    path.parent.mkdir()
    path.write_bytes(content)
    if why == "it is there twice":
        (path.parent / "copy.pdf").write_bytes(content)
        app.run()
    upload = paper_files.save_upload(io.BytesIO(content), "mine.pdf")
    if why == "it gives no text":
        with pytest.raises(PaperError):
            paper_files.ingest(upload, RecordedProgress())
    elif why == "another ingest is running":
        with indexes.writing(app.settings.VECTORSTORE_DIR), pytest.raises(StoreBusy):
            paper_files.ingest(upload, RecordedProgress())
    else:
        assert paper_files.ingest(upload, RecordedProgress()).status == "unchanged"
    assert path.read_bytes() == content


def test_stale_uploads_are_deleted(app: HashingApp, paper_files: PaperFiles) -> None:
    add(paper_files, pdf_of())
    for name, age in ((".upload-old.pdf", 2 * STALE_S), (".upload-new.pdf", 0)):
        path = app.settings.PAPERS_DIR / name
        path.write_bytes(b"%PDF-1.7")
        os.utime(path, (time.time() - age,) * 2)
    paper_files.delete_stale_uploads()
    assert names(app) == [".upload-new.pdf", "otters.pdf"]  # another server may be writing it


def test_a_relative_papers_folder_is_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    app = hashing_app(tmp_path, PAPERS_DIR=Path("../papers"))
    paper_files = PaperFiles(app)
    file = add(paper_files, pdf_of())
    assert file.path == str(tmp_path / "papers" / "otters.pdf")
    assert [outcome.status for outcome in app.run()] == ["unchanged"]
    assert paper_files.remove(file.sha256)[0].kept_at == ".removed/otters.pdf"


# Removing


def test_a_paper_is_not_removed_while_another_is_added(app: HashingApp, paper_files: PaperFiles) -> None:
    file = add(paper_files, pdf_of())
    refused: list[str] = []

    class IngestProgress(RecordedProgress):
        def planned(self, files: Sequence[SourceFile]) -> None:
            with ThreadPoolExecutor(1) as other, pytest.raises(StoreBusy) as caught:
                other.submit(paper_files.remove, file.sha256).result()
            refused.append(caught.value.happened)

    paper_files.ingest(paper_files.save_upload(io.BytesIO(pdf_of(GLACIERS)), "glaciers.pdf"), IngestProgress())
    assert refused == ["Another paper is being added to the index."]
    assert papers(app) == ["glaciers.pdf", "otters.pdf"]


def test_a_removed_papers_file_is_kept_and_not_ingested(app: HashingApp, paper_files: PaperFiles) -> None:
    file = add(paper_files, pdf_of())
    add(paper_files, pdf_of(GLACIERS), "glaciers.pdf")
    (removed,) = paper_files.remove(file.sha256)
    assert (removed.file, removed.kept_at) == ("otters.pdf", ".removed/otters.pdf")
    assert (app.settings.PAPERS_DIR / ".removed" / "otters.pdf").read_bytes() == pdf_of()
    assert papers(app) == ["glaciers.pdf"]
    assert app.verify() == []
    app.run()
    assert papers(app) == ["glaciers.pdf"]
    add(paper_files, pdf_of())
    assert paper_files.remove(file.sha256)[0].kept_at == ".removed/otters (2).pdf"


def test_pages_that_hear_of_a_removal_can_list_it(
    app: HashingApp, paper_files: PaperFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = add(paper_files, pdf_of())
    finish = HashingApp.finish_ingest
    listed: list[str] = []

    def finish_ingest(self: HashingApp) -> None:
        listed.extend(removal.paper for removal in removed_papers(self))
        finish(self)

    monkeypatch.setattr(HashingApp, "finish_ingest", finish_ingest)
    paper_files.remove(file.sha256)
    assert listed == [file.sha256]


def test_a_file_outside_the_papers_folder_is_not_moved(
    app: HashingApp, paper_files: PaperFiles, tmp_path: Path
) -> None:
    path = tmp_path / "otters.pdf"
    path.write_bytes(pdf_of())
    file = SourceFile(str(path), "otters.pdf", add(paper_files, pdf_of()).sha256)
    with closing(Library(app.library_path)) as library:
        library.link([file], [str(app.settings.PAPERS_DIR / "otters.pdf")])
    assert paper_files.remove(file.sha256)[0].kept_at is None
    assert path.read_bytes() == pdf_of()
    assert papers(app) == []


# Finding


def test_a_missing_or_changed_file_is_not_served(app: HashingApp, paper_files: PaperFiles) -> None:
    file = add(paper_files, pdf_of())
    with pytest.raises(NotKnown):
        paper_files.remove("0" * 64)
    with closing(app.open_library()) as library:
        with pytest.raises(NotKnown):
            paper_files.pdf(library, "0" * 64)
        assert paper_files.pdf(library, file.sha256) == Path(file.path)
        for change in (lambda: Path(file.path).write_bytes(pdf_of(GLACIERS)), Path(file.path).unlink):
            change()
            with pytest.raises(PaperError, match=r"otters\.pdf is missing or has changed"):
                paper_files.pdf(library, file.sha256)
