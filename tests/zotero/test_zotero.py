from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import process_time
from typing import IO, Any

import pytest

from folio.errors import FolioError, UsageError
from folio.papers.metadata import PersonName, from_json, to_json
from folio.zotero import database
from folio.zotero.files import DataFolder
from folio.zotero.library import ZoteroLibrary, read_library
from folio.zotero.sync import mislabelled, missing, other_files
from tests.helpers.sqlite_faults import sqlite_faults
from tests.helpers.zotero_library import FEED, GROUP, PDF, MadeZotero, state_of


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeZotero]:
    zotero = MadeZotero(tmp_path / "Zotero")
    yield zotero
    zotero.sqlite.close()


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PAUSE_S", 0.0)


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests keep in the shared one at the same time is none of these tests' business."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def _read(zotero: MadeZotero, base: Path | None = None) -> ZoteroLibrary:
    """What is read, after making sure that nothing in the folder has changed and nothing stays elsewhere."""
    zotero.save()
    before, temporary = state_of(zotero.folder), sorted(Path(tempfile.gettempdir()).glob("folio-zotero-*"))
    found = read_library(DataFolder(zotero.folder, base))
    assert state_of(zotero.folder) == before
    assert sorted(Path(tempfile.gettempdir()).glob("folio-zotero-*")) == temporary
    return found


def test_an_item_with_everything(made: MadeZotero) -> None:
    systems = made.collection("Systems")
    consensus = made.collection("Consensus", systems)
    item = made.item(
        "conferencePaper",
        creators=[
            ("editor", "Garth", "Gibson"),
            ("author", "Diego", "Ongaro"),
            ("author", "John", "Ousterhout"),
            ("author", "The Raft Team"),
        ],
        tags=["to read", "automatic"],
        collections=[consensus],
        title="In Search of an <i>Understandable</i> Consensus Algorithm",
        date="2014-06-00 June 2014",
        proceedingsTitle="USENIX ATC",
        DOI="https://doi.org/10.5555/2643634.2643666",
        url="https://www.usenix.org/raft",
        volume=7,
        pages="305–319",
        publisher="USENIX",
        series="ATC",
        place="Philadelphia",
        ISBN="978-1-931971-10-2",
        abstractNote="Raft is\na consensus algorithm.",
        extra="tex.ids: x\nCitation Key: ongaro2014\nsecond: line",
    )
    key = made.attach(item, "storage:raft.pdf", b"%PDF-")
    (found,) = _read(made).attachments
    assert found.path == made.folder / "storage" / key / "raft.pdf"
    assert {name: field.value for name, field in found.metadata.known().items()} == {
        "title": "In Search of an Understandable Consensus Algorithm",
        "authors": (PersonName("Ongaro", "Diego"), PersonName("Ousterhout", "John"), PersonName("The Raft Team")),
        "year": 2014,
        "venue": "USENIX ATC",
        "doi": "10.5555/2643634.2643666",
        "abstract": "Raft is a consensus algorithm.",
        "kind": "paper-conference",
        "volume": "7",
        "pages": "305–319",
        "publisher": "USENIX",
        "url": "https://www.usenix.org/raft",
        "citation_key": "ongaro2014",
        "tags": ("to read", "automatic"),
        "collections": ("Systems/Consensus",),
        "further": (
            ("isbn", "978-1-931971-10-2"),
            ("address", "Philadelphia"),
            ("series", "ATC"),
            ("editor", "Gibson, Garth"),
            ("month", "6"),
        ),
        "zotero": f"library/items/{key}",
    }
    assert all(field.origin == "zotero" and field.sure for field in found.metadata.known().values())
    assert from_json(to_json(found.metadata)) == found.metadata


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("thesis", {"university": "ETH Zürich", "date": "1998", "thesisType": "Master's thesis"},
         ("thesis", "ETH Zürich", 1998)),
        ("journalArticle", {"publicationTitle": "Ice", "date": "0000-00-00 n.d."}, ("article-journal", "Ice", None)),
        ("bookSection", {"bookTitle": "Handbook", "date": "in press, 2021?"}, ("chapter", "Handbook", 2021)),
        ("preprint", {"repository": "arXiv", "date": "2023-01-03 2023-01-03"}, ("article", "arXiv", 2023)),
        ("unheardOf", {"date": ""}, ("", "", None)),
    ],
)  # fmt: skip
def test_kinds_venues_and_years(
    made: MadeZotero, kind: str, fields: dict[str, Any], expected: tuple[str, str, int | None]
) -> None:
    made.attach(made.item(kind, title="T", **fields))
    found = _read(made).attachments[0].metadata
    assert (found.kind.value, found.venue.value, found.year.value) == expected
    assert found.genre.value == fields.get("thesisType", "")


def test_identifiers_also_where_extra_has_them(made: MadeZotero) -> None:
    made.attach(made.item("preprint", archiveID="arXiv:2301.01234v2", citationKey="a2023", extra="citation key: b"))
    made.attach(made.item("report", extra="DOI: 10.1000/xyz\narXiv: 2301.01234 [cs.CL]"))
    made.attach(made.item("report", DOI="nonsense", url="javascript:alert(1)"))
    found = [each.metadata for each in _read(made).attachments]
    assert [(one.doi.value, one.arxiv.value, one.citation_key.value) for one in found] == [
        ("", "2301.01234v2", "a2023"),
        ("10.1000/xyz", "2301.01234", ""),
        ("", "", ""),
    ]
    assert found[2].url.value == ""


def test_editors_stand_where_no_author_does(made: MadeZotero) -> None:
    made.attach(made.item("book", creators=[("translator", "T", "T"), ("editor", "Ada", "Lovelace")]))
    found = _read(made).attachments[0].metadata
    assert found.authors.value == (PersonName("Lovelace", "Ada"),)
    assert found.further.value == (("translator", "T, T"),)


def test_trash_and_other_files_are_left_out(made: MadeZotero) -> None:
    kept = made.attach(made.item(title="Kept"))
    trashed = made.attach(made.item(title="Trashed"))
    made.trash(made.id_of(trashed))
    parent = made.item(title="Parent in the trash")
    orphan = made.attach(parent)
    made.trash(parent)
    made.attach(made.item(title="Page"), "storage:page.html", content_type="text/html")
    made.attach(made.item(title="Link"), None, link_mode=3)
    made.attach(made.item(title="News", library=FEED), library=FEED)
    found = _read(made)
    assert [each.link for each in found.attachments] == [f"library/items/{kept}"]
    assert found.trashed.keys() == {f"library/items/{trashed}", f"library/items/{orphan}"}
    assert [(kind, each.path.name) for kind, each in found.others] == [("web page", "page.html")]


def test_files_are_told_apart_by_type_and_by_name(made: MadeZotero) -> None:
    item = made.item(title="Kept")
    for name, kind in (
        ("scan.PDF", "application/octet-stream"), ("torn.pdf", ""), ("typed", PDF),
        ("sub.epub", "application/epub+zip"), ("page.html", "text/html"), ("data.csv", "text/csv"),
    ):  # fmt: skip
        made.attach(item, f"storage:{name}", content_type=kind)
    made.attach(item, "storage:gone.epub", content_type="application/epub+zip")
    made.trash(made._last)
    found = _read(made)
    assert [each.path.name for each in found.attachments] == ["scan.PDF", "torn.pdf", "typed"]
    assert mislabelled(found, lambda metadata: True) == ["scan.PDF", "torn.pdf"]
    assert other_files(found, lambda metadata: True) == {
        "EPUB": ["sub.epub"], "web page": ["page.html"], "other file": ["data.csv"]
    }  # fmt: skip
    assert other_files(found, lambda metadata: False) == {}
    assert found.attachments[0].metadata.title.value == "Kept"


def test_missing_files_are_named_with_where_they_were_looked_for(made: MadeZotero, tmp_path: Path) -> None:
    stored = made.attach(made.item(title="Stored"), "storage:a.pdf")
    made.attach(made.item(title="Relative"), "attachments:sub/b.pdf", link_mode=2)
    made.attach(made.item(title="Outside"), "storage:../c.pdf")
    linked = "b.pdf (looked for in {})".format(tmp_path / "base" / "sub")
    expected = [
        f"a.pdf (looked for in {made.folder / 'storage' / stored})",
        "sub/b.pdf (Zotero's base folder for linked files is not known)",
        "storage:../c.pdf (not at a place that Folio can look at)",
    ]
    assert missing(_read(made), lambda metadata: True) == expected
    assert missing(_read(made, tmp_path / "base"), lambda metadata: True) == [expected[0], linked, expected[2]]


def better_bibtex(folder: Path, *statements: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(folder / "better-bibtex.sqlite")) as sqlite:
        for statement in statements:
            sqlite.execute(*statement)
        sqlite.commit()


def keys_of(zotero: ZoteroLibrary) -> list[str]:
    return [each.metadata.citation_key.value for each in zotero.attachments]


@pytest.mark.parametrize("is_old", [False, True])
def test_keys_of_better_bibtex_that_are_not_pinned(made: MadeZotero, is_old: bool) -> None:
    items = [
        made.item(title="One", extra="Citation Key: pinned2001"), made.item(title="Two", citationKey="native2002"),
        made.item(title="Three"), made.item(title="Four", library=GROUP), made.item(title="Five"),
    ]  # fmt: skip
    for item in items:
        made.attach(item, library=GROUP if item == items[3] else 1)
    rows = [(item, made.key(item), GROUP if item == items[3] else 1, f"bbt{item}", 0) for item in items[:4]]
    if is_old:
        names = ("itemID", "itemKey", "libraryID", "citekey", "pinned")
        entries = [dict(zip(names, row, strict=True)) for row in rows]
        stored = json.dumps({"name": "better-bibtex.citekey", "data": entries})
        better_bibtex(made.folder, ('CREATE TABLE "better-bibtex" (name TEXT PRIMARY KEY, data TEXT)',),
                      ('INSERT INTO "better-bibtex" VALUES (?, ?)', ("better-bibtex.citekey", stored)))  # fmt: skip
    else:
        create = "CREATE TABLE citationkey (itemID, itemKey, libraryID, citationKey, pinned)"
        better_bibtex(made.folder, (create,), *(("INSERT INTO citationkey VALUES (?, ?, ?, ?, ?)", r) for r in rows))
    found = _read(made)
    assert keys_of(found) == ["pinned2001", "native2002", f"bbt{items[2]}", "", f"bbt{items[3]}"]
    assert found.problem == ""


@pytest.mark.parametrize("content", [b"", b"This is no database at all, but a text that somebody put there." * 99])
def test_a_library_is_read_without_a_damaged_better_bibtex(made: MadeZotero, content: bytes) -> None:
    made.attach(made.item(title="One"))
    (made.folder / "better-bibtex.sqlite").write_bytes(content)
    found = _read(made)
    assert keys_of(found) == [""]
    assert found.problem == (f"The library {made.folder / 'better-bibtex.sqlite'} is damaged." if content else "")


def test_groups_bare_files_and_linked_ones(made: MadeZotero, tmp_path: Path) -> None:
    group = made.attach(made.item(title="In a group", library=GROUP), library=GROUP)
    bare = made.attach(None, "storage:bare.pdf")
    made.put(made.id_of(bare), made.collection("Unsorted"))
    made.attach(made.item(title="Linked"), str(tmp_path / "x.pdf"), link_mode=2)
    made.attach(made.item(title="Relative"), "attachments:y.pdf", link_mode=2)
    found = _read(made, tmp_path / "base").attachments
    assert [each.path.name for each in found] == ["bare.pdf", "x.pdf", "y.pdf", "paper.pdf"]  # groups come last
    assert found[3].link == f"groups/12/items/{group}"
    assert found[0].metadata.known().keys() == {"zotero", "collections"}
    assert found[2].path == tmp_path / "base" / "y.pdf"


def test_collections_have_their_path_and_cycles_end(made: MadeZotero) -> None:
    deep = None
    for number in range(150):
        deep = made.collection(f"c{number}", deep)
    first = made.collection("First")
    second = made.collection("Second", first)
    made.sqlite.execute("UPDATE collections SET parentCollectionID = ? WHERE collectionID = ?", (second, first))
    gone = made.collection("Gone")
    below_gone = made.collection("Below", gone)
    made.sqlite.execute("INSERT INTO deletedCollections (collectionID) VALUES (?)", (gone,))
    own = made.collection("Itself")
    made.sqlite.execute("UPDATE collections SET parentCollectionID = collectionID WHERE collectionID = ?", (own,))
    lost = made.collection("Lost", 99999)
    assert deep is not None
    item = made.item(title="T", collections=[deep, second, below_gone, own, lost])
    made.attach(item)
    paths = _read(made).attachments[0].metadata.collections.value
    assert paths[:3] == ("First/Second", "Itself", "Lost")
    assert paths[3].startswith("c50/c51/")
    assert len(paths) == 4


def test_names_in_many_scripts(made: MadeZotero) -> None:
    names = [("Лев", "Толстой"), ("", "王小明"), ("محمد", "الخوارزمي"), ("Ngô Bảo", "Châu"), ("Zoë 𝒜", "O’Brien")]
    item = made.item(title="論文 – статья", creators=[("author", *name) for name in names], tags=["étude", "论文"])
    key = made.attach(item, "storage:論文 – статья.pdf", b"%PDF-")
    (found,) = _read(made).attachments
    assert found.metadata.authors.value == tuple(PersonName(family, given) for given, family in names)
    assert found.path.is_file()
    assert found.path.parent.name == key


def test_values_of_any_type_and_size(made: MadeZotero) -> None:
    item = made.item(
        title="A\x1b[31m\nC", date=2014, volume=3.5, issue=b"blob", pages=None, abstractNote="x" * 3_000_000, url=7
    )
    made.attach(item)
    made.attach(made.item(title="y" * 100_000, creators=[("author", b"\xff", None), ("author", "\0", "N\0ame")]))
    made.attach(made.item(title=b"\xff\xfe"), b"storage:x.pdf")
    for column, value in (("key", "../../up"), ("key", 5), ("libraryID", "one"), ("libraryID", 77)):
        odd = made.id_of(made.attach(made.item(title="odd")))
        made.sqlite.execute(f"UPDATE items SET {column} = ? WHERE itemID = ?", (value, odd))
    made.attach(made.item(), "storage:../../../../etc/passwd")
    made.attach(987654, "storage:orphan.pdf")
    invalid = made.id_of(made.attach(made.item(title="T"), "storage:z.pdf"))
    not_utf8 = "CAST(X'73746f726167653aff2e706466' AS TEXT)"
    made.sqlite.execute(f"UPDATE itemAttachments SET path = {not_utf8} WHERE itemID = ?", (invalid,))
    made.collection(b"blob", "nowhere")
    made.sqlite.execute("INSERT INTO groups VALUES (13, 'one', 'x')")
    found = _read(made)
    first, second, orphan, broken = (each.metadata for each in found.attachments)
    assert first.title.value == "A [31m C"
    assert (first.year.value, first.volume.value, first.issue.value, first.url.value) == (2014, "3.5", "", "")
    assert len(first.abstract.value) == 20_000
    assert len(second.title.value) == 2000
    assert second.authors.value == (PersonName("N"),)
    assert orphan.known().keys() == {"zotero"}
    assert broken.title.value == "T"
    assert sorted(found.unusable.values()) == ["", "storage:../../../../etc/passwd"]


# The file: locked, torn, damaged, of another program


@contextmanager
def other_process(zotero: MadeZotero, does: str) -> Iterator[None]:
    """A process that has the database open and waits; it is killed at the end."""
    script = f"""
        import sqlite3, sys, time
        db = sqlite3.connect({str(zotero.database)!r}, isolation_level=None)
        {does}
        print("ready", flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            process.kill()


def test_a_database_that_zotero_holds_locked(made: MadeZotero) -> None:
    made.attach(made.item(title="T"))
    made.save()
    locks = 'db.execute("PRAGMA locking_mode=EXCLUSIVE"); db.execute("BEGIN EXCLUSIVE")'
    with other_process(made, locks), closing(sqlite3.connect(made.database, timeout=0)) as other:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("SELECT * FROM items")
        assert [each.metadata.title.value for each in _read(made).attachments] == ["T"]


def test_a_hot_journal_is_played_back_in_the_copy_alone(made: MadeZotero) -> None:
    for number in range(200):
        made.attach(made.item(title=f"T{number}", abstractNote="x" * 2000))
    made.save()
    writes = (
        'db.execute("PRAGMA cache_size=5"); db.execute("BEGIN IMMEDIATE");'
        ' db.execute("DELETE FROM itemAttachments"); db.execute("UPDATE itemDataValues SET value = 0")'
    )
    with other_process(made, writes):
        pass
    journal = made.folder / "zotero.sqlite-journal"
    assert journal.stat().st_size > 0
    found = _read(made).attachments
    assert journal.stat().st_size > 0
    assert [each.metadata.title.value for each in found] == [f"T{number}" for number in range(200)]


def test_a_journal_that_names_another_file_cannot_have_it_deleted(made: MadeZotero, tmp_path: Path) -> None:
    made.attach(made.item(title="T"))
    made.save()
    victim = tmp_path / "precious.txt"
    victim.write_text("no journal", encoding="utf-8")
    writes = (
        'db.execute("PRAGMA cache_size=1"); db.execute("BEGIN IMMEDIATE"); db.execute("DELETE FROM items");'
        ' db.execute("UPDATE itemDataValues SET value = zeroblob(9000)")'
    )
    with other_process(made, writes):
        pass
    name = str(victim).encode()
    record = (4097).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    with (made.folder / "zotero.sqlite-journal").open("ab") as journal:
        journal.write(record + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(UsageError, match="stopped while it was writing"):
        _read(made)
    assert victim.exists()


def test_a_write_ahead_log_is_read(made: MadeZotero) -> None:
    made.save().sqlite.execute("PRAGMA journal_mode = WAL")
    made.attach(made.item(title="In the log"))
    made.save()
    assert (made.folder / "zotero.sqlite-wal").stat().st_size > 0
    assert [each.metadata.title.value for each in _read(made).attachments] == ["In the log"]


def test_a_folder_that_cannot_be_written(made: MadeZotero) -> None:
    made.attach(made.item(title="T"))
    made.close()
    made.database.chmod(0o400)
    made.folder.chmod(0o500)
    before = state_of(made.folder)
    try:
        assert len(read_library(DataFolder(made.folder)).attachments) == 1
        assert state_of(made.folder) == before
    finally:
        made.folder.chmod(0o700)


def test_a_file_changed_while_copied_is_copied_again(made: MadeZotero, monkeypatch: pytest.MonkeyPatch) -> None:
    made.attach(made.item(title="T"))
    made.save()
    real = shutil.copyfileobj
    copies: list[int] = []

    def copy_and_touch(source: IO[bytes], target: IO[bytes], size: int) -> None:
        real(source, target, size)
        copies.append(1)
        if len(copies) < 3:
            os.utime(made.database, ns=(1, len(copies)))

    monkeypatch.setattr(shutil, "copyfileobj", copy_and_touch)
    assert len(read_library(DataFolder(made.folder)).attachments) == 1
    assert len(copies) == 3
    copies.clear()
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: os.utime(made.database))
    with pytest.raises(UsageError, match=r"is writing to .* all the time"):
        read_library(DataFolder(made.folder))


@pytest.mark.parametrize("how", ["torn", "cut", "empty", "noise", "text"])
def test_a_damaged_file_is_one_sentence_and_what_to_do(made: MadeZotero, how: str) -> None:
    for number in range(100):
        made.attach(made.item(title=f"T{number}"))
    made.close()
    content = made.database.read_bytes()
    half = len(content) // 2
    damaged = {
        "torn": content[:half] + bytes(len(content) - half),
        "cut": content[:half],
        "empty": b"",
        "noise": os.urandom(5000),
        "text": b"SQLite format 3\0 but no more",
    }
    made.database.write_bytes(damaged[how])
    before = state_of(made.folder)
    with pytest.raises(UsageError, match=r"is damaged|is not a library of Zotero"):
        read_library(DataFolder(made.folder))
    assert state_of(made.folder) == before


@pytest.mark.parametrize("kind", ["read", "open"])
def test_an_unreadable_copy_is_no_damage_of_the_library(made: MadeZotero, kind: str) -> None:
    made.attach(made.item(title="T"))
    made.save()
    with (
        sqlite_faults(kind, 0, 10**9),
        pytest.raises(FolioError, match=r"copy of the library .* cannot be read") as found,
    ):
        _read(made)
    assert "damaged" not in found.value.happened
    assert "disk for temporary files" in found.value.remedy


def test_databases_of_other_programs_and_versions(tmp_path: Path) -> None:
    MadeZotero(tmp_path / "a", version="new").close()
    zotero = MadeZotero(tmp_path / "b")
    zotero.sqlite.execute("DROP TABLE itemTags")
    zotero.sqlite.execute("CREATE VIEW itemTags AS SELECT 1 AS itemID, 1 AS tagID, 1 AS type")
    zotero.close()
    for folder in (tmp_path / "a", tmp_path / "b"):
        with pytest.raises(UsageError, match="is not a library of Zotero"):
            read_library(DataFolder(folder))
    for version in (75, 1, -3):
        MadeZotero(tmp_path / str(version), version).close()
        with pytest.raises(UsageError, match="Zotero 4 or older") as found:
            read_library(DataFolder(tmp_path / str(version)))
        assert found.value.remedy == "Open it once with Zotero 5 or newer."


def test_two_thousand_items_take_seconds(made: MadeZotero) -> None:
    collections = [made.collection(f"c{number}") for number in range(50)]
    about: dict[str, Any] = {"date": "2014-01-02 2014", "publicationTitle": "Nature", "volume": "1"}
    for number in range(2000):
        creators = [("author", "Given", f"Family{number}"), ("author", "Other", "Name")]
        place = collections[number % 50]
        made.attach(
            made.item(creators=creators, tags=["a", "b"], collections=[place], title=f"Title {number}", **about)
        )
    made.save()
    began = process_time()
    found = read_library(DataFolder(made.folder))
    assert process_time() - began < 5  # 0.7
    assert len(found.attachments) == 2000
