"""Papers' files: PDFs put in under safe names, papers taken out with their file kept, changed files not served."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from desk import GLACIERS, OTTERS, write_pdf
from doubles import HashingApp, NullWatch, hashing_app, read_here

from folio import store, workers
from folio.errors import NotKnown, PaperError, StoreBusy
from folio.library import Library
from folio.shelf import Shelf, _safe
from folio.types import SourceFile


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HashingApp:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    return hashing_app(tmp_path)


@pytest.fixture
def shelf(app: HashingApp) -> Shelf:
    return Shelf(app)


def pdf(tmp_path: Path, pages: tuple[str, ...] = OTTERS, name: str = "made.pdf") -> bytes:
    """A PDF's bytes; the same pages are the same file."""
    path = tmp_path / "elsewhere" / f"{len(pages)} {name}"
    return (path if path.exists() else write_pdf(path, pages, "On Sea Otters")).read_bytes()


def put_in(shelf: Shelf, content: bytes, name: str = "otters.pdf") -> SourceFile:
    file = shelf.take_in(io.BytesIO(content), name)
    assert shelf.ingest(file, NullWatch()).status == "added"
    return file


def names(app: HashingApp) -> list[str]:
    """What lies in PAPERS_DIR, hidden files too."""
    return sorted(path.name for path in app.settings.PAPERS_DIR.iterdir())


def papers(app: HashingApp) -> list[str]:
    library = app.open_library()
    try:
        assert library.failures() == []
        return [paper.file for paper in library.papers()]
    finally:
        library.close()


# Putting in


def test_a_pdf_is_put_in_read_and_found(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    watch = NullWatch()
    file = shelf.take_in(io.BytesIO(pdf(tmp_path)), "otters.pdf")
    outcome = shelf.ingest(file, watch)
    assert (outcome.status, outcome.pages, outcome.file.name) == ("added", 2, "otters.pdf")
    assert names(app) == ["otters.pdf"]
    assert Path(file.path).read_bytes() == pdf(tmp_path)
    assert watch.chunks == {"otters.pdf": outcome.chunks}
    assert papers(app) == ["otters.pdf"]
    library = app.open_library()
    assert app.retriever(library).search("What do otters eat?", 1).hits[0].paper.title == "On Sea Otters"
    assert shelf.pdf(library, file.sha256) == Path(file.path)
    library.close()


def test_the_same_file_again_is_not_kept_twice(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    put_in(shelf, pdf(tmp_path))
    again = shelf.take_in(io.BytesIO(pdf(tmp_path)), "otters.pdf")
    assert shelf.ingest(again, NullWatch()).status == "unchanged"
    other = shelf.take_in(io.BytesIO(pdf(tmp_path)), "another name.pdf")
    outcome = shelf.ingest(other, NullWatch())
    assert (outcome.status, outcome.notes) == ("duplicate", ("The same file as otters.pdf.",))
    assert (names(app), papers(app)) == (["otters.pdf"], ["otters.pdf"])


def test_another_file_of_the_same_name_gets_the_next_one(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    put_in(shelf, pdf(tmp_path))
    put_in(shelf, pdf(tmp_path, GLACIERS))
    assert names(app) == ["otters (2).pdf", "otters.pdf"]
    assert papers(app) == ["otters (2).pdf", "otters.pdf"]


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
    ],
)
def test_a_name_is_made_safe(name: str, safe: str) -> None:
    assert _safe(name) == safe


@pytest.mark.parametrize("content", [b"", b"%PD", b"<html>%PDF</html>", b" " * 1024 + b"%PDF-1.7"])
def test_what_is_no_pdf_is_refused_and_nothing_is_left(app: HashingApp, shelf: Shelf, content: bytes) -> None:
    app.settings.PAPERS_DIR.mkdir()
    with pytest.raises(PaperError, match="The file is not a PDF"):
        shelf.take_in(io.BytesIO(content), "otters.pdf")
    assert names(app) == []


def test_an_upload_that_breaks_off_leaves_nothing(app: HashingApp, shelf: Shelf) -> None:
    class Torn(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise ConnectionResetError
            return super().read(size)

    with pytest.raises(ConnectionResetError):
        shelf.take_in(Torn(b"%PDF-1.7" + b" " * 5000), "otters.pdf")
    assert names(app) == []


def test_a_pdf_without_text_is_told_of_and_not_kept(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    put_in(shelf, pdf(tmp_path))
    file = shelf.take_in(io.BytesIO(b"%PDF-1.7\nthe rest of it was lost"), "torn.pdf")
    with pytest.raises(PaperError, match=r"damaged|no pages|not a PDF"):
        shelf.ingest(file, NullWatch())
    assert (names(app), papers(app)) == (["otters.pdf"], ["otters.pdf"])


def test_beside_another_ingest_nothing_is_put_in_and_nothing_left(
    app: HashingApp, shelf: Shelf, tmp_path: Path
) -> None:
    file = shelf.take_in(io.BytesIO(pdf(tmp_path)), "otters.pdf")
    with store.writing(app.settings.VECTORSTORE_DIR), pytest.raises(StoreBusy):
        shelf.ingest(file, NullWatch())
    assert names(app) == []


# Taking out


def test_a_paper_that_is_taken_out_does_not_come_back_and_its_file_is_kept(
    app: HashingApp, shelf: Shelf, tmp_path: Path
) -> None:
    file = put_in(shelf, pdf(tmp_path))
    put_in(shelf, pdf(tmp_path, GLACIERS), "glaciers.pdf")
    removed = shelf.remove(file.sha256)
    assert (removed.file, removed.kept_at) == ("otters.pdf", ".removed/otters.pdf")
    assert (app.settings.PAPERS_DIR / ".removed" / "otters.pdf").read_bytes() == pdf(tmp_path)
    assert papers(app) == ["glaciers.pdf"]
    assert app.verify() == []
    app.run()
    assert papers(app) == ["glaciers.pdf"]
    put_in(shelf, pdf(tmp_path))
    assert shelf.remove(file.sha256).kept_at == ".removed/otters (2).pdf"


def test_a_file_that_lies_elsewhere_is_left_alone(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    content = pdf(tmp_path)
    path = tmp_path / "elsewhere" / "2 made.pdf"
    file = SourceFile(str(path), "otters.pdf", put_in(shelf, content).sha256)
    library = Library(app.library_path)
    library.link([file], [str(app.settings.PAPERS_DIR / "otters.pdf")])
    library.close()
    assert shelf.remove(file.sha256).kept_at is None
    assert path.read_bytes() == content
    assert papers(app) == []


def test_what_is_not_there_cannot_be_taken_out(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    put_in(shelf, pdf(tmp_path))
    with pytest.raises(NotKnown):
        shelf.remove("0" * 64)
    assert papers(app) == ["otters.pdf"]


# Where they are


def test_a_file_that_is_gone_or_changed_is_not_served(app: HashingApp, shelf: Shelf, tmp_path: Path) -> None:
    file = put_in(shelf, pdf(tmp_path))
    library = app.open_library()
    try:
        with pytest.raises(NotKnown):
            shelf.pdf(library, "0" * 64)
        assert shelf.pdf(library, file.sha256) == Path(file.path)
        Path(file.path).write_bytes(pdf(tmp_path, GLACIERS))
        with pytest.raises(PaperError, match=r"otters\.pdf is gone or has changed"):
            shelf.pdf(library, file.sha256)
        Path(file.path).unlink()
        with pytest.raises(PaperError, match=r"otters\.pdf is gone or has changed"):
            shelf.pdf(library, file.sha256)
    finally:
        library.close()
