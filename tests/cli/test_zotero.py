"""`ingest.py --zotero`: what is read, described, changed and removed, and that Zotero's folder stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from folio.cli import papers
from folio.papers.metadata import Metadata
from folio.store.library import Library
from folio.zotero import sync
from tests.helpers.cli_runner import CliResult, CliRunner
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.zotero_library import MadeZotero, state_of


def _pdf(folder: Path, *pages: str) -> bytes:
    return write_pdf(folder / "made.pdf", pages).read_bytes()


BOTH = ["Ice of Zotero", "Otters of Zotero"]


class Shelf:
    """A desk with a Zotero library of two papers."""

    def __init__(self, desk: CliRunner, folder: Path) -> None:
        self.desk = desk
        desk.settings |= {"EMBEDDER": "builtin"}
        self.zotero = MadeZotero(folder / "home" / "Zotero")
        made = self.zotero
        alps = made.collection("Places")
        self.ice = made.collection("Ice", alps)
        self.otters = made.item(
            title="Otters of Zotero", date="2001", creators=[("author", "Ann", "Ott")], tags=["sea"]
        )
        self.otters_key = made.attach(self.otters, "storage:otters.pdf", _pdf(folder, *OTTERS))
        self.glaciers = made.item(title="Ice of Zotero", tags=["cold"], collections=[self.ice])
        self.glaciers_key = made.attach(self.glaciers, "storage:ice.pdf", _pdf(folder, *GLACIERS))

    def ingest(self, *arguments: str, data_folder: bool = True) -> CliResult:
        """Ingest; nothing in Zotero's folder may change."""
        self.zotero.save()
        before = state_of(self.zotero.folder)
        ran = self.desk.ingest("--zotero", *([str(self.zotero.folder)] if data_folder else []), *arguments)
        assert state_of(self.zotero.folder) == before
        return ran

    def titles(self) -> list[str]:
        return sorted(str(paper["title"]) for paper in self.desk.record() if "title" in paper)

    def layer(self, title: str) -> Metadata | None:
        with closing(Library(self.desk.store / "library.sqlite")) as library:
            (paper,) = [paper for paper in library.papers() if paper.title == title]
            return library.metadata_layers(paper.id).get("zotero")


@pytest.fixture
def shelf(desk: CliRunner, tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(desk, desk.folder)
    yield made
    made.zotero.sqlite.close()


def test_papers_are_read_where_they_lie(shelf: Shelf) -> None:
    ran = shelf.ingest()
    assert (ran.code, ran.err.splitlines()) == (
        0, [f"Zotero: 2 PDFs in {shelf.zotero.folder}; papers with new metadata: 2, with changed metadata: 0."]
    )  # fmt: skip
    assert shelf.titles() == BOTH
    layer = shelf.layer("Ice of Zotero")
    assert layer is not None
    assert (layer.collections.value, layer.tags.value) == (("Places/Ice",), ("cold",))
    assert layer.zotero.value == f"library/items/{shelf.glaciers_key}"
    paths = [path for paper in shelf.desk.record() for path in paper["paths"]]
    assert str(shelf.zotero.folder / "storage" / shelf.otters_key / "otters.pdf") in paths
    found = shelf.desk.query("--json", "How long is the Aletsch glacier?").object
    assert found["citations"][0]["title"] == "Ice of Zotero"
    again = shelf.ingest()
    assert "Nothing new: all 2 papers" in again.out
    assert "papers with new metadata: 0, with changed metadata: 0" in again.err


def test_the_data_folder_is_found(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(shelf.zotero.folder.parent))
    assert shelf.ingest(data_folder=False).code == 0
    assert len(shelf.titles()) == 2


def test_the_next_run_takes_what_changed_without_reading_a_pdf(shelf: Shelf) -> None:
    shelf.ingest()
    shelf.zotero.set_field(shelf.glaciers, "title", "Another Title")
    shelf.zotero.put(shelf.otters, shelf.ice)
    ran = shelf.ingest()
    assert "Nothing new" in ran.out
    assert "papers with new metadata: 0, with changed metadata: 2" in ran.err
    assert shelf.titles() == ["Another Title", "Otters of Zotero"]
    assert "The index is consistent" in shelf.desk.ingest("--verify").out


@pytest.mark.parametrize("how", ["item trashed", "attachment trashed", "erased"])
def test_what_left_zotero_leaves_the_index(shelf: Shelf, how: str) -> None:
    shelf.ingest()
    if how == "erased":
        shelf.zotero.erase(shelf.otters_key)
    else:
        shelf.zotero.trash(shelf.otters if how == "item trashed" else shelf.zotero.id_of(shelf.otters_key))
    ran = shelf.ingest()
    assert shelf.titles() == ["Ice of Zotero"]
    where = "no longer in Zotero" if how == "erased" else "in Zotero's trash"
    assert f"otters.pdf Removed from the index, because it is {where}." in " ".join(ran.out.split())
    assert "The index is consistent" in shelf.desk.ingest("--verify").out


def test_papers_of_other_folders_and_libraries_are_left_alone(shelf: Shelf) -> None:
    about_tea = "Own paper about tea. Tea is made of leaves and hot water."
    write_pdf(shelf.desk.papers / "own.pdf", [about_tea, "And of milk."], "Tea")
    copy = shelf.desk.papers / "copy.pdf"
    copy.write_bytes((shelf.zotero.folder / "storage" / shelf.otters_key / "otters.pdf").read_bytes())
    assert shelf.desk.ingest().code == 0
    other = MadeZotero(shelf.desk.folder / "other")
    other._last = 1000
    other.attach(other.item(title="Tea"), "storage:tea.pdf", _pdf(shelf.desk.folder, about_tea))
    other.close()
    assert shelf.desk.ingest("--zotero", str(other.folder)).code == 0
    shelf.ingest()
    assert len(shelf.titles()) == 4
    assert shelf.desk.ingest().code == 0  # papers/ alone: Zotero's stay
    assert len(shelf.titles()) == 4
    shelf.zotero.trash(shelf.otters)
    shelf.ingest()
    with closing(Library(shelf.desk.store / "library.sqlite")) as library:
        files = {file.name for file in library.files()}
        described = [paper.metadata.zotero.value for paper in library.papers() if paper.file == "ice.pdf"]
        gone = [paper.metadata.zotero.value for paper in library.papers() if paper.file == "copy.pdf"]
    assert files == {"own.pdf", "copy.pdf", "ice.pdf", "tea.pdf"}
    assert (described, gone) == ([f"library/items/{shelf.glaciers_key}"], [""])


def test_files_that_are_no_pdfs_are_counted_and_named(shelf: Shelf) -> None:
    made = shelf.zotero
    made.attach(shelf.otters, "storage:odd.pdf", _pdf(shelf.desk.folder, "Odd words."), content_type="application/x")
    for name in ("a", "b", "c", "d"):
        made.attach(shelf.otters, f"storage:{name}.html", b"<p>", content_type="text/html")
    made.attach(shelf.glaciers, "storage:ice.epub", b"PK", content_type="application/epub+zip")
    said = shelf.ingest().err.splitlines()
    assert said[1:3] == [
        "PDFs that Zotero does not call PDFs, read too: 1, odd.pdf.",
        "Files in Zotero that are no PDFs, and are not read: 4 web pages, a.html, b.html, c.html and 1 more; 1 EPUB,"
        " ice.epub.",
    ]
    assert said[0].startswith("Zotero: 3 PDFs in ")
    cold = shelf.ingest("--tag", "cold").err
    assert "not read: 1 EPUB, ice.epub." in cold
    assert "odd.pdf" not in cold


def test_prune_and_rebuild_know_zoteros_papers(shelf: Shelf) -> None:
    shelf.ingest()
    ran = shelf.desk.ingest("--rebuild", str(shelf.zotero.folder / "storage" / shelf.otters_key))
    assert ran.code == 0
    assert shelf.titles() == BOTH
    assert shelf.ingest("--rebuild").code == 0
    assert shelf.titles() == BOTH
    (shelf.zotero.folder / "storage" / shelf.otters_key / "otters.pdf").unlink()
    kept = shelf.ingest()
    assert len(shelf.titles()) == 2
    place = shelf.zotero.folder / "storage" / shelf.otters_key
    assert f"PDFs whose file is not on this computer: 1, otters.pdf (looked for in {place})." in kept.err
    shelf.ingest("--prune")
    assert shelf.titles() == ["Ice of Zotero"]


def test_a_missing_moved_or_empty_library_removes_nothing(shelf: Shelf) -> None:
    shelf.ingest()
    shelf.zotero.save()
    moved = shelf.zotero.folder.rename(shelf.zotero.folder.with_name("away"))
    gone = shelf.desk.ingest("--zotero", str(shelf.zotero.folder))
    assert (gone.code, gone.err.splitlines()[0]) == (
        2, f"There is no Zotero library in {shelf.zotero.folder}: it has no zotero.sqlite."
    )  # fmt: skip
    MadeZotero(shelf.zotero.folder).close()
    empty = shelf.desk.ingest("--zotero", str(shelf.zotero.folder))
    assert empty.code == 2
    assert empty.err.startswith("There are no PDFs in the Zotero library")
    assert len(shelf.titles()) == 2
    assert shelf.desk.ingest("--zotero", str(moved)).code == 0
    assert len(shelf.titles()) == 2
    paths = [path for paper in shelf.desk.record() for path in paper["paths"]]
    assert all(path.startswith(str(moved)) for path in paths)


def test_a_pdf_changed_in_place_is_read_again(shelf: Shelf) -> None:
    shelf.ingest()
    stored = shelf.zotero.folder / "storage" / shelf.otters_key / "otters.pdf"
    stored.write_bytes(_pdf(shelf.desk.folder, *OTTERS, "A page about the teeth of otters, which are strong."))
    ran = shelf.ingest()
    assert "replaced" in ran.out
    assert shelf.titles() == BOTH
    assert "The index is consistent" in shelf.desk.ingest("--verify").out


def test_an_ingest_takes_a_collection_or_a_tag(shelf: Shelf) -> None:
    shelf.ingest("--collection", "places")
    assert shelf.titles() == ["Ice of Zotero"]
    shelf.ingest("--tag", "Sea")  # what was read before stays
    assert shelf.titles() == BOTH
    unknown = shelf.ingest("--collection", "Plants")
    assert unknown.code == 2
    assert unknown.err.splitlines() == [
        "No PDF in Zotero is in a collection or has a tag of this name: Plants.", "Collections in Zotero: Places/Ice."
    ]  # fmt: skip
    assert shelf.ingest("--tag", "sea", "--collection", "Ice").code == 0
    assert [shelf.ingest(option).code for option in ("--verify", "--repair")] == [2, 2]
    without = shelf.desk.ingest("--tag", "sea")
    assert (without.code, without.err.splitlines()[1]) == (2, "Add --zotero.")


def test_a_pdf_of_two_items_is_described_by_the_first(shelf: Shelf) -> None:
    made = shelf.zotero
    content = (made.folder / "storage" / shelf.otters_key / "otters.pdf").read_bytes()
    twin = made.attach(made.item(title="A Twin"), "storage:twin.pdf", content)
    ran = shelf.ingest()
    assert shelf.titles() == BOTH
    assert "PDFs of several Zotero items, with the metadata of the first: 1, otters.pdf." in ran.err
    made.trash(shelf.otters)
    shelf.ingest()
    assert shelf.titles() == ["A Twin", "Ice of Zotero"]
    layer = shelf.layer("A Twin")
    assert layer is not None
    assert layer.zotero.value == f"library/items/{twin}"
    made.trash(made.id_of(twin))
    shelf.ingest()
    assert shelf.titles() == ["Ice of Zotero"]


def test_linked_files_leave_but_not_those_in_papers(shelf: Shelf) -> None:
    made = shelf.zotero
    linked = write_pdf(shelf.desk.folder / "linked" / "tea.pdf", ["Tea is made of leaves and of hot water."])
    inside = write_pdf(shelf.desk.papers / "milk.pdf", ["Milk is what calves drink, and some people in their tea."])
    tea = made.attach(made.item(title="Tea"), str(linked), link_mode=2)
    milk = made.attach(made.item(title="Milk"), str(inside), link_mode=2)
    shelf.ingest()
    assert len(shelf.titles()) == 4
    made.erase(tea)
    made.erase(milk)
    shelf.ingest()
    assert {paper["file"] for paper in shelf.desk.record()} == {"ice.pdf", "otters.pdf", "milk.pdf"}
    assert linked.exists()


def test_a_stopped_ingest_continues(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.zotero.save()
    with monkeypatch.context() as patched:
        stopped = KeyboardInterrupt()
        patched.setattr(sync, "remove", lambda *_: (_ for _ in ()).throw(stopped))
        assert shelf.desk.ingest("--zotero", str(shelf.zotero.folder)).code == 130
    assert shelf.titles() == BOTH
    assert "Nothing new" in shelf.ingest().out


def test_a_linked_file_that_is_no_pdf_is_reported(shelf: Shelf) -> None:
    secret = shelf.desk.folder / "secret"
    secret.write_text("The password is Aletsch. " * 50, encoding="utf-8")
    shelf.zotero.attach(shelf.zotero.item(title="Secret"), str(secret), link_mode=2)
    ran = shelf.ingest()
    assert ran.code == 1
    assert len(shelf.titles()) == 2
    assert b"password" not in (shelf.desk.store / "library.sqlite").read_bytes()


def test_collections_and_tags_choose_papers(shelf: Shelf) -> None:
    assert shelf.ingest().code == 0
    desk = shelf.desk

    def folio_papers(*options: str) -> CliResult:
        return desk._here(SimpleNamespace(main=papers.main), ["list", "--json", *options])

    def listed(*options: str) -> list[str]:
        ran = folio_papers(*options)
        assert ran.code == 0, ran.err
        return [str(paper["title"]) for paper in ran.objects]

    def searched(*options: str) -> set[str]:
        found = desk.query("--sources", "--json", *options, "How long is it?").object["hits"]
        return {hit["title"] for hit in found}

    for options in (["--collection", "places"], ["--collection", "Places/Ice"], ["--tag", "COLD"]):
        assert (listed(*options), searched(*options)) == (["Ice of Zotero"], {"Ice of Zotero"}), options
    assert len(listed("--tag", "cold", "--tag", "sea")) == len(searched("--tag", "cold", "--tag", "sea")) == 2
    assert listed("--tag", "sea", "--collection", "Ice") == []
    answered = desk.query("--json", "--tag", "sea", "How many hairs has the fur of a sea otter?").object
    assert {cited["title"] for cited in answered["citations"]} == {"Otters of Zotero"}

    for ran in (folio_papers("--tag", "col"), desk.query("--tag", "col", "How long is it?")):
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.splitlines()[0] == "No paper in the index has the tag “col”. Similar names: cold."
    ran = desk.query("--sources", "--collection", "Ice", "--tag", "sea", "How long is it?")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "No paper fits the tag, of those that fit the rest.")
    questions = desk.folder / "questions.txt"
    questions.write_text("How long is the glacier?\n", encoding="utf-8")
    batch = desk.query("--batch", str(questions), "--json", "--collection", "Places").objects
    assert {hit["title"] for answer in batch for hit in answer["hits"]} == {"Ice of Zotero"}
