"""Annotations of Zotero: how they are read, where they are anchored, and that notes follow them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.errors import UsageError
from folio.ingest import discovery
from folio.pdf import units
from folio.pdf.annotations import PdfPlaces, areas_on_pages
from folio.schema.notes import NoteJson, note_json
from folio.store import notes
from folio.store.note_places import listed
from folio.system import workers
from folio.zotero.annotations import Annotation
from folio.zotero.files import DataFolder
from folio.zotero.library import read_library
from tests.helpers.fakes import HashingApp, RecordedProgress, hashing_app, make_pdf, read_here
from tests.helpers.zotero_library import GROUP, IMAGE, INK, NOTE, MadeZotero, state_of

WORDS = "Its shortest vector is hard to find in high dimension."


class Annotated:
    """A library with a paper of Zotero, whose annotations the test makes."""

    def __init__(self, app: HashingApp, folder: Path) -> None:
        self.app = app
        self.zotero = MadeZotero(folder / "Zotero")
        self.item = self.zotero.item(title="On Lattices")
        self.pdf = make_pdf(folder / "made.pdf", "lattices")
        self.key = self.zotero.attach(self.item, "storage:lattices.pdf", self.pdf.read_bytes())

    def take(self) -> tuple[int, int, int]:
        """Ingest Zotero's papers and take over its annotations: new, changed, removed."""
        self.zotero.save()
        before = state_of(self.zotero.folder)
        zotero = read_library(DataFolder(self.zotero.folder))
        self.app.settings.PAPERS_DIR.mkdir(exist_ok=True)
        files, _ = discovery.hash_files({each.path: each.path.name for each in zotero.attachments}, RecordedProgress())
        self.app.describe_from_zotero(zotero, files)
        list(self.app.ingest(files, RecordedProgress(), jobs=1, retry=frozenset()))
        self.app.finish_ingest()
        self.app.remove_what_left_zotero(zotero)
        taken = self.app.take_annotations(zotero)
        assert state_of(self.zotero.folder) == before
        return taken.new, taken.changed, taken.removed

    def notes(self) -> list[NoteJson]:
        with closing(self.app.open_library()) as library:
            return [note_json(note) for note in listed(library)]

    def note(self) -> NoteJson:
        (only,) = self.notes()
        return only


@pytest.fixture
def annotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Annotated]:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    made = Annotated(hashing_app(tmp_path), tmp_path)
    yield made
    made.zotero.close()


def test_a_highlight_is_a_note_on_its_words(annotated: Annotated) -> None:
    annotated.zotero.annotate(
        annotated.key, WORDS, comment="Why?\nSee <Regev>.", colour="#5FB236", tags=["hard", "to read"]
    )
    assert annotated.take() == (1, 0, 0)
    note = annotated.note()
    (quote,) = note.quotes
    assert (quote.quote, quote.page, quote.place, quote.area) == (WORDS, 1, "here", None)
    assert (note.colour, note.shade, note.is_annotation) == ("green", "#5fb236", True)
    assert note.text == "Why?\nSee <Regev>.\n\nTags: hard, to read."
    assert (note.created, note.updated) == ("2024-05-06T07:08:09.000000+00:00", "2024-06-07T08:09:10.000000+00:00")
    assert note.zotero == f"zotero://open-pdf/library/items/{annotated.key}?page=1"
    assert annotated.take() == (0, 0, 0)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("its shortest vector\nis hard to find in high dimen-\nsion", WORDS[:-1]),
        ("ITS  SHORTEST VECTOR", "Its shortest vector"),
        ("Its longest vector", ""),
        ("Keys are large but signing is fast enough.", ""),  # on the other page
    ],
)
def test_words_as_zotero_has_them(annotated: Annotated, words: str, found: str) -> None:
    annotated.zotero.annotate(annotated.key, words, rects=[[72, 700, 300, 712], [72, 680, 200, 698]])
    annotated.take()
    note = annotated.note()
    (quote,) = note.quotes
    assert quote.quote == found
    if found:
        assert note.text == ""
    else:  # shown with the area that it marks, on a page that is 842 points high
        assert note.text == f"“{' '.join(words.split())}”"
        assert (quote.page, quote.area) == (1, [72.0, 842 - 712.0, 300.0, 842 - 680.0])


def test_of_several_places_the_closest(annotated: Annotated) -> None:
    for offset in (0, 140):
        annotated.zotero.annotate(annotated.key, "vector", offset=offset)
    annotated.take()
    with closing(annotated.app.open_library()) as library:
        (paper,) = library.papers()
        text = library.text(paper.id, 0, paper.length)
    starts = sorted(note.quotes[0].start for note in annotated.notes())
    assert starts == [text.index("vector"), text.index("vector", text.index("vector") + 1)]


@pytest.mark.parametrize(
    ("kind", "position", "area"),
    [
        (IMAGE, {"pageIndex": 1, "rects": [[100, 500, 300, 600]]}, [100.0, 242.0, 300.0, 342.0]),
        (NOTE, {"pageIndex": 1, "rects": [[100, 500, 122, 522]]}, [100.0, 320.0, 122.0, 342.0]),
        (INK, {"pageIndex": 1, "width": 2, "paths": [[100, 500, 200, 600, 300, 550]]}, [100.0, 242.0, 300.0, 342.0]),
        (NOTE, {"pageIndex": 1, "rects": [[9000, 9000, 9100, 9100]]}, None),  # outside of the page
        (NOTE, {"pageIndex": 1}, None),
    ],
)
def test_without_words_it_is_on_an_area_or_a_page(
    annotated: Annotated, kind: int, position: dict[str, Any], area: list[float] | None
) -> None:
    annotated.zotero.annotate(
        annotated.key, kind=kind, comment="Look", colour="#aaaaaa", position=json.dumps(position)
    )
    annotated.take()
    note = annotated.note()
    (quote,) = note.quotes
    assert (quote.quote, quote.page, quote.area, note.colour, note.text) == ("", 2, area, "", "Look")


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("size", [1, 4])  # a page of 2,400 points is shown smaller
def test_an_area_of_a_cropped_and_turned_page(tmp_path: Path, turned: int, size: int) -> None:
    """It is around the ink that was drawn there."""
    with pymupdf.open() as document:
        page = document.new_page(width=600 * size, height=800 * size)
        page.set_cropbox(pymupdf.Rect(50, 40, 550 * size, 760 * size))
        page.draw_rect(pymupdf.Rect(100, 100, 160, 120), fill=(0, 0, 0))
        page.set_rotation(turned)
        document.save(tmp_path / "a.pdf")
    with pymupdf.open(tmp_path / "a.pdf") as document:
        ink = units.load_page(document, 0).get_pixmap(colorspace=pymupdf.csGRAY)
    dark = [divmod(at, ink.width) for at, value in enumerate(ink.samples) if value < 128]
    rows, columns = zip(*dark, strict=True)
    drawn = (min(columns), min(rows), max(columns) + 1, max(rows) + 1)
    # Drawn at (100, 100) in a crop box at (50, 40): (150, 140) from the upper left corner of the paper
    in_pdf = (150.0, 800.0 * size - 160, 210.0, 800.0 * size - 140)
    (area,) = areas_on_pages(PdfPlaces(tmp_path / "a.pdf", ((1, (in_pdf,)),)))
    assert area is not None
    assert all(abs(one - other) <= 1.5 for one, other in zip(area, drawn, strict=True)), (area, drawn)


def test_changes_and_deletions_follow(annotated: Annotated) -> None:
    zotero = annotated.zotero
    first = zotero.annotate(annotated.key, WORDS, comment="first")
    second = zotero.annotate(annotated.key, "A signature samples", comment="second")
    assert annotated.take() == (2, 0, 0)
    ids = {note.text: note.id for note in annotated.notes()}
    zotero.sqlite.execute("UPDATE itemAnnotations SET comment = 'new' WHERE itemID = ?", (zotero.id_of(first),))
    zotero.erase(second)
    assert annotated.take() == (0, 1, 1)
    assert (annotated.note().id, annotated.note().text) == (ids["first"], "new")
    zotero.trash(zotero.id_of(first))
    assert annotated.take() == (0, 0, 1)
    assert annotated.notes() == []


@pytest.mark.parametrize("how", ["attachment trashed", "attachment erased"])
def test_the_notes_of_a_pdf_that_left_zotero_go_with_it(annotated: Annotated, how: str) -> None:
    other = annotated.zotero.attach(None, "storage:other.pdf", make_pdf(annotated.pdf, "sponges").read_bytes())
    annotated.zotero.annotate(other, "A sponge absorbs")
    annotated.zotero.annotate(annotated.key, WORDS)
    annotated.take()
    if how == "attachment erased":
        annotated.zotero.erase(other)
    else:
        annotated.zotero.trash(annotated.zotero.id_of(other))
    assert annotated.take() == (0, 0, 1)
    assert annotated.note().quotes[0].quote == WORDS


def test_a_persons_own_notes_stay_and_zoteros_are_read_only(annotated: Annotated) -> None:
    key = annotated.zotero.annotate(annotated.key, WORDS)
    annotated.take()
    id = annotated.note().id
    with closing(annotated.app.open_library()) as library:
        own = notes.add(library.database, [notes.require(library.database, id).quotes[0]], text="mine")
        for change in (
            lambda: notes.change(library.database, id, text="other"),
            lambda: notes.change(library.database, id, colour="pink"),
            lambda: notes.remove(library.database, id),
        ):
            with pytest.raises(UsageError, match="This note is an annotation of Zotero"):
                change()
        assert annotated.app.verify() == []
    annotated.zotero.erase(key)
    assert annotated.take() == (0, 0, 1)
    assert [note.id for note in annotated.notes()] == [own.id]


def test_a_groups_annotations_and_a_file_of_two_items(annotated: Annotated) -> None:
    zotero, content = annotated.zotero, annotated.pdf.read_bytes()
    of_group = zotero.attach(zotero.item(library=GROUP), "storage:lattices.pdf", content, library=GROUP)
    zotero.annotate(of_group, "The message chooses that point", library=GROUP)
    zotero.annotate(annotated.key, WORDS)
    assert annotated.take() == (2, 0, 0)
    with closing(annotated.app.open_library()) as library:
        items = set(notes.origins(library.database))
    assert {item.rpartition("/")[0] for item in items} == {"library/items", "groups/12/items"}


@pytest.mark.parametrize(
    "fields",
    [
        {"position": "not JSON"},
        {"position": "[" * 5000},
        {"position": "{}"},
        {"position": '{"pageIndex": 1e400}'},
        {"position": '{"pageIndex": -1, "rects": []}'},
        {"position": '{"pageIndex": 99, "rects": []}'},
        {"position": '{"pageIndex": 0, "rects": [[1, 2, 3]]}'},
        {"position": '{"pageIndex": 0, "rects": [[NaN, 2, 3, 4]]}'},
        {"position": b"\xff\xfe"},
        {"kind": 99},
        {"kind": "highlight"},
    ],
)
def test_what_is_malformed_is_left_out(annotated: Annotated, fields: dict[str, Any]) -> None:
    annotated.zotero.annotate(annotated.key, WORDS, **fields)
    annotated.zotero.annotate(annotated.key, "A signature samples", colour="javascript:", comment="a\x00b\x1b[31m")
    assert annotated.take() == (1, 0, 0)
    note = annotated.note()
    assert (note.quotes[0].quote, note.colour, note.shade) == ("A signature samples", "", "")
    assert note.text.isprintable()


def test_a_library_of_zotero_5_has_none(annotated: Annotated) -> None:
    assert annotated.take() == (0, 0, 0)


@pytest.mark.parametrize(
    ("shade", "colour"),
    [
        ("#ffd400", "yellow"), ("#ff6666", "pink"), ("#5fb236", "green"), ("#2ea8e5", "blue"), ("#a28ae5", "pink"),
        ("#e56eee", "pink"), ("#f19837", "yellow"), ("#aaaaaa", ""), ("", ""),
    ],
)  # fmt: skip
def test_zoteros_eight_colours(shade: str, colour: str) -> None:
    annotation = Annotation("", "", "", shade, 1, 0, (), (), "", "")
    assert annotation.colour == colour
