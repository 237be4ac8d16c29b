"""Notes in copies of PDFs, as a PDF reader shows them, and as a file that Zotero imports."""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.bibliography import annotated
from folio.bibliography.notes import zotero_rdf
from folio.cli import notes as command
from folio.errors import DiskFull, PaperError
from folio.papers.model import Paper
from folio.pdf.annotations import AnnotatedCopy, PdfMark, write_annotated
from folio.store import notes
from folio.store.library import Library
from folio.store.note_places import listed, place_without_words, quote_at, quote_of
from folio.store.notes import Colour
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf

PAGE = "http://127.0.0.1:8420/"
HAIRS = "about 155,000 hairs on each square centimetre of skin"


class Desk:
    """A desk with two papers that have been read."""

    def __init__(self, desk: CliRunner) -> None:
        self.cli = desk
        desk.settings |= {"EMBEDDER": "builtin"}
        self.otters = write_pdf(desk.papers / "otters.pdf", OTTERS, "On Sea Otters")
        write_pdf(desk.papers / "glaciers.pdf", GLACIERS, "The Aletsch Glacier")
        assert desk.ingest().code == 0
        self.out = desk.folder / "out"

    def library(self) -> closing[Library]:
        return closing(Library(self.cli.store / "library.sqlite"))

    def paper(self, library: Library, file: str = "otters.pdf") -> Paper:
        (paper,) = [paper for paper in library.papers() if paper.file == file]
        return paper

    def note(self, words: str, text: str = "", colour: Colour = "yellow", file: str = "otters.pdf") -> None:
        with self.library() as library:
            quote = quote_of(library, self.paper(library, file), words)
            notes.add(library.database, [quote], text=text, colour=colour)

    def export(self, *arguments: str) -> tuple[int, str, str]:
        ran = self.cli._here(command, ["export", "--pdf", str(self.out), *arguments])
        return ran.code, ran.out, ran.err


@pytest.fixture
def desk(desk: CliRunner) -> Desk:
    return Desk(desk)


def _annotations(path: Path) -> list[list[dict[str, Any]]]:
    """What a reader of PDFs finds on each page."""
    found = []
    with pymupdf.open(path) as document:
        for page in document:
            found.append(
                [
                    {
                        "kind": each.type[1],
                        "text": each.info["content"],
                        "author": each.info["title"],
                        "colour": "".join(f"{round(255 * part):02x}" for part in each.colors["stroke"]),
                        "words": " ".join(page.get_textbox(each.rect).split()),
                        "rect": tuple(map(round, each.rect)),
                    }
                    for each in page.annots()
                ]
            )
    return found


def test_a_copy_has_highlights_with_their_comments(desk: Desk) -> None:
    desk.note(HAIRS, "Größe?\nReally <b>so</b> many?", "green")
    desk.note("It opens the shells with a stone", colour="blue")
    desk.note("The gauge stands in the river Massa", file="glaciers.pdf")
    before = hashlib.sha256(desk.otters.read_bytes()).hexdigest(), desk.otters.stat().st_mtime_ns
    code, out, err = desk.export()
    copy = desk.out / "otters (annotated).pdf"
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{desk.out}/{name} (annotated).pdf: {count}" for name, count in (
        ("otters", "2 notes"), ("glaciers", "1 note"))]  # fmt: skip
    assert (hashlib.sha256(desk.otters.read_bytes()).hexdigest(), desk.otters.stat().st_mtime_ns) == before
    (first,), (second,) = _annotations(copy)
    assert (first["kind"], first["author"], first["colour"]) == ("Highlight", "Folio", "5fc264")
    assert first["text"].splitlines() == ["Größe?", "Really <b>so</b> many?"]
    assert HAIRS in first["words"]
    assert (second["text"], second["colour"]) == ("", "5aa7ee")
    assert "It opens the shells with a stone" in second["words"]
    # The copy is a paper like the other: its own text is what it was.
    with pymupdf.open(copy) as one, pymupdf.open(desk.otters) as two:
        assert [page.get_text() for page in one] == [page.get_text() for page in two]


def test_nothing_is_written_over(desk: Desk) -> None:
    desk.note(HAIRS)
    desk.export()
    first = (desk.out / "otters (annotated).pdf").read_bytes()
    desk.export()
    assert sorted(path.name for path in desk.out.iterdir()) == ["otters (annotated) 2.pdf", "otters (annotated).pdf"]
    assert (desk.out / "otters (annotated).pdf").read_bytes() == first


def test_chosen_notes(desk: Desk) -> None:
    desk.note(HAIRS, colour="green")
    desk.note("The gauge stands in the river Massa", file="glaciers.pdf")
    desk.export("--colour", "green")
    assert [path.name for path in desk.out.iterdir()] == ["otters (annotated).pdf"]


@pytest.mark.parametrize("inside", ["", "sub", "sub/deep"])
def test_no_copy_among_the_papers(desk: Desk, inside: str) -> None:
    desk.note(HAIRS)
    desk.out = desk.cli.papers / inside
    code, _, err = desk.export()
    assert (code, "The copies would be read as papers" in err) == (2, True)
    assert sorted(path.name for path in desk.cli.papers.rglob("*.pdf")) == ["glaciers.pdf", "otters.pdf"]


def test_a_hidden_folder_among_the_papers(desk: Desk) -> None:
    desk.note(HAIRS)
    desk.out = desk.cli.papers / ".annotated"
    assert desk.export()[0] == 0
    assert "Nothing new" in desk.cli.ingest().out


def test_no_copy_beside_a_paper_from_elsewhere(desk: Desk) -> None:
    elsewhere = write_pdf(desk.cli.folder / "thesis" / "a.pdf", ("A paper about tea, and about milk in it." * 3,))
    assert desk.cli.ingest(str(elsewhere)).code == 0
    desk.note(HAIRS)
    desk.out = elsewhere.parent
    assert desk.export()[0] == 2


def test_words_of_two_pages_areas_pages_and_papers(desk: Desk) -> None:
    with desk.library() as library:
        paper = desk.paper(library)
        border = paper.pages.starts[1]
        spans = quote_at(library, paper, border - 30, border + 40)
        for quote in (
            spans,
            place_without_words(library, paper, 2, (100.0, 100.0, 200.0, 150.0)),
            place_without_words(library, paper, 2),
            place_without_words(library, paper, 0),
        ):
            notes.add(library.database, [quote], text="mine")
    desk.export()
    first, second = _annotations(desk.out / "otters (annotated).pdf")
    assert sorted((each["kind"], each["text"]) for each in first) == [("Highlight", "mine"), ("Text", "mine")]
    assert sorted((each["kind"], each["text"]) for each in second) == [
        ("Highlight", ""), ("Square", "mine"), ("Text", "mine")]  # fmt: skip
    (square,) = [each for each in second if each["kind"] == "Square"]
    assert all(abs(one - other) <= 3 for one, other in zip(square["rect"], (100, 100, 200, 150), strict=True))


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("size", [1, 4])
def test_on_the_words_of_a_page_however_it_is_cropped_turned_and_large(tmp_path: Path, turned: int, size: int) -> None:
    """The ink of the highlight is where the words are drawn."""
    with pymupdf.open() as document:
        page = document.new_page(width=600 * size, height=800 * size)
        page.insert_text((150 * size, 300 * size), "The words of this line are marked", fontsize=14 * size)
        page.set_cropbox(pymupdf.Rect(50, 40, 550 * size, 760 * size))
        page.set_rotation(turned)
        document.save(tmp_path / "a.pdf")
    mark = PdfMark(1, "words of this line", None, (1.0, 0.0, 0.0), "")
    assert write_annotated(AnnotatedCopy(tmp_path / "a.pdf", tmp_path / "b.pdf", (mark,))) == 1
    with pymupdf.open(tmp_path / "b.pdf") as document:
        page = document[0]
        page.set_rotation(0)
        (words,) = page.search_for("words of this line")
        (highlight,) = page.annots()
        assert abs(words & highlight.rect) > 0.8 * abs(words)
        assert abs(highlight.rect) < 2 * abs(words)


def test_a_file_that_is_gone_or_cannot_be_read_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.note(HAIRS)
    desk.note("The gauge stands in the river Massa", file="glaciers.pdf")
    desk.otters.write_bytes(desk.otters.read_bytes() + b"\n")
    code, out, err = desk.export()
    assert (code, out) == (1, f"{desk.out}/glaciers (annotated).pdf: 1 note\n")
    assert err == (
        "otters.pdf: no copy was written, because its file is missing or has changed since it was read\n"
    )


@pytest.mark.parametrize("error", [PaperError("It hangs.", ""), OSError(28, "No space left on device"), SystemExit(1)])
def test_a_copy_is_whole_or_is_not_there(desk: Desk, error: BaseException) -> None:
    """A reader that fails, a full disk, a stop in the middle."""
    desk.note(HAIRS)

    def stopped(copy: AnnotatedCopy) -> PaperError:
        copy.target.write_bytes(b"%PDF-1.4 the beginning")
        if isinstance(error, PaperError):
            return error
        raise error

    def write() -> Iterator[annotated.Copied]:
        with desk.library() as library:
            yield from annotated.write_copies(library, listed(library), desk.out, lambda paper: None, stopped)

    if isinstance(error, PaperError):
        (copied,) = write()
        assert (copied.path, copied.why) == (None, "It hangs.")
    else:
        with pytest.raises(DiskFull if isinstance(error, OSError) else type(error)):
            list(write())
    assert list(desk.out.iterdir()) == []


class _Html(HTMLParser):
    """The tags and the text of a note in HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_file_that_zotero_imports(desk: Desk) -> None:
    desk.note(HAIRS, "<script>alert(1)</script> & \x1b[31m]]>")
    desk.note("The gauge stands in the river Massa", file="glaciers.pdf")
    with desk.library() as library:
        rdf = zotero_rdf(listed(library), PAGE)
    root = ElementTree.fromstring(rdf.encode())
    names = {"rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "bib": "http://purl.org/net/biblio#"}
    memos = root.findall("bib:Memo", names)
    assert len({memo.get(f"{{{names['rdf']}}}about") for memo in memos}) == 2
    parsed = []
    for memo in memos:
        html = _Html()
        html.feed(memo.findtext("rdf:value", "", names))
        parsed.append(html)
    assert [html.text[:11] for html in parsed] == ["On Sea Otte", "The Aletsch"]
    assert set(parsed[0].tags) == {"h1", "blockquote", "p", "a"}
    assert "<script>alert(1)</script> & " in parsed[0].text
    assert all(link.startswith(PAGE) for html in parsed for link in html.links)
    ran = desk.cli._here(command, ["export", str(desk.cli.folder / "notes.rdf")])
    assert (ran.code, (desk.cli.folder / "notes.rdf").read_text(encoding="utf-8").count("<bib:Memo")) == (0, 2)
