"""What a person says of a paper outlives ingests, rebuilds, damage, newer versions of its file, and removal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from folio.errors import StoreDamaged
from folio.papers.edits import edited, parse_edits
from folio.papers.metadata import Field, Metadata
from folio.papers.work import Work
from folio.store import indexes, notes, user_file, works
from folio.store.database import NAMES
from folio.store.note_places import listed, quote_of
from folio.store.user_file import set_aside
from folio.system import workers
from folio.text import one_line
from tests.helpers.damage import at_once
from tests.helpers.exhaustive import sample
from tests.helpers.fakes import LINES, HashingApp, HashingEmbedder, hashing_app, make_pdf, overwrite, read_once
from tests.helpers.forks import forks_of
from tests.helpers.libraries import everything, filled

TITLE = "Zanzibar and its sponges"
EDIT = (f"title={TITLE}", "year=2014", "authors=Otter, Ann; {The Sponge Society}", "venue=Journal of Sponges")


@pytest.fixture(autouse=True)
def _no_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_once)


@pytest.fixture
def app(tmp_path: Path) -> HashingApp:
    """A store of some papers, one of which a person has edited; it takes notices."""
    app = hashing_app(tmp_path)
    app = HashingApp(app.settings, lambda text: None, HashingEmbedder())
    for subject in LINES:
        make_pdf(app.settings.PAPERS_DIR / f"{subject}.pdf", subject)
    app.run()
    edit(app, "sponges.pdf", *EDIT)
    assert_edited(app)
    return app


def edit(app: HashingApp, file: str, *changes: str, reset: tuple[str, ...] = ()) -> None:
    """What `folio papers edit` does."""
    edits = parse_edits(changes, reset)
    with closing(app.open_library()) as library:
        (paper,) = (paper for paper in library.papers() if paper.file == file)
        is_renamed = library.change_metadata(paper.id, "person", lambda person: edited(person, edits))
    app.finish_edit(is_renamed=is_renamed)


def metadata(app: HashingApp, file: str = "sponges.pdf") -> Metadata:
    with closing(app.open_library()) as library:
        (paper,) = (paper for paper in library.papers() if paper.file == file)
        return paper.metadata


def record(app: HashingApp, file: str = "sponges.pdf") -> dict[str, Any]:
    entries = json.loads(app.settings.INGESTED_JSON.read_text(encoding="utf-8"))
    found: dict[str, Any] = next(entry for entry in entries if entry["file"] == file)
    return found


def found_by_title(app: HashingApp, word: str = "Zanzibar") -> set[str]:
    """The files that BM25 finds by a word; it stands in titles only. Any notice, as of a repair, is an error."""
    strict = hashing_app(app.settings.PAPERS_DIR.parent)
    with closing(strict.open_library()) as library:
        opened = strict.open_indexes(library)
        hits = opened.lexical.search(word, 50)
        return {paper.file for _, paper, _ in library.read_chunks([chunk for chunk, _ in hits])}


def assert_edited(app: HashingApp, file: str = "sponges.pdf") -> None:
    """The edit is in the library, in the record and in the index, and nothing is wrong with any of them."""
    found = metadata(app, file)
    assert (found.title, found.year) == (Field(TITLE, "person", True), Field(2014, "person", True))
    assert [str(person) for person in found.authors.value] == ["Ann Otter", "The Sponge Society"]
    said = record(app, file)
    assert (said["title"], said["year"], said["venue"], said["doi"]) == (TITLE, 2014, "Journal of Sponges", "")
    assert found_by_title(app) == {file}
    assert app.verify() == []


def assert_not_edited(app: HashingApp, file: str) -> None:
    assert {field.origin for field in metadata(app, file).known().values()} <= {"pdf metadata", "page", "file date"}
    assert found_by_title(app) == set()
    assert app.verify() == []


def test_an_edit_outlives_another_ingest_and_reading_the_file_again(app: HashingApp) -> None:
    app.run()
    assert_edited(app)
    app.run(retry=["sponges.pdf"])
    assert_edited(app)


def test_an_edit_outlives_a_rebuild_also_with_another_model(app: HashingApp) -> None:
    app.run(rebuild=True)
    assert_edited(app)
    other = HashingApp(app.settings, app.notice, HashingEmbedder(name="other"))
    other.run(rebuild=True)
    found = metadata(other)
    assert (found.title.value, found.year.value) == (TITLE, 2014)


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_newer_version_inherits_the_edit(app: HashingApp, rebuild: bool) -> None:
    make_pdf(app.settings.PAPERS_DIR / "sponges.pdf", "sponges", change="This is the second edition of the text.")
    app.run(rebuild=rebuild)
    assert_edited(app)
    app.run(rebuild=True)
    assert_edited(app)


@pytest.mark.parametrize("rebuild", [False, True])
def test_notes_are_on_the_newer_version_too(app: HashingApp, rebuild: bool) -> None:
    """The last line of the file is replaced; then another paper takes its place, and it comes back elsewhere."""

    def places() -> list[tuple[str, str, str]]:
        with closing(app.open_library()) as library:
            return [(each.place, each.quote.file, one_line(each.quote.quote)) for each in listed(library)[0].quotes]

    first, last = LINES["sponges"][0], LINES["sponges"][-1]
    with closing(app.open_library()) as library:
        (paper,) = (paper for paper in library.papers() if paper.file == "sponges.pdf")
        note = notes.add(library.database, [quote_of(library, paper, words) for words in (first, last)], text="Mine.")
    path = app.settings.PAPERS_DIR / "sponges.pdf"
    make_pdf(path, "sponges", change="This is the second edition of the text.")
    app.run(rebuild=rebuild)
    assert places() == [("moved", "sponges.pdf", first), ("lost", "sponges.pdf", last)]
    app.run(rebuild=True)
    assert places() == [("moved", "sponges.pdf", first), ("lost", "sponges.pdf", last)]
    second = path.read_bytes()
    make_pdf(path, "gradients", "Descent", change="Not what it was before.")
    app.run(rebuild=rebuild)
    assert [place for place, *_ in places()] == ["removed", "removed"]
    path.with_name("again.pdf").write_bytes(second)
    app.run()
    assert places() == [("moved", "again.pdf", first), ("lost", "again.pdf", last)]
    with closing(app.open_library()) as library:
        assert notes.require(library.database, note.id).text == "Mine."
    assert app.verify() == []


@pytest.mark.parametrize("rebuild", [False, True])
def test_an_edit_does_not_follow_a_file_to_another_paper(app: HashingApp, rebuild: bool) -> None:
    path = app.settings.PAPERS_DIR / "sponges.pdf"
    first = path.read_bytes()
    make_pdf(path, "gradients", "Descent", change="Not what it was before.")
    app.run(rebuild=rebuild)
    assert metadata(app).title.value == "Descent"
    assert_not_edited(app, "sponges.pdf")
    path.write_bytes(first)  # the paper is back, and so is what was said of it
    app.run()
    assert_edited(app)


def test_an_edit_comes_back_with_a_paper_that_was_removed(app: HashingApp) -> None:
    kept = app.settings.PAPERS_DIR.parent / "elsewhere.pdf"
    shutil.move(app.settings.PAPERS_DIR / "sponges.pdf", kept)
    app.run(prune=True)
    assert found_by_title(app) == set()
    shutil.move(kept, app.settings.PAPERS_DIR / "again.pdf")
    app.run()
    assert_edited(app, "again.pdf")


def test_an_edit_is_kept_when_papers_swap_their_files(app: HashingApp) -> None:
    sponges, trees = (app.settings.PAPERS_DIR / f"{name}.pdf" for name in ("sponges", "trees"))
    beside = sponges.with_suffix(".beside")
    for one, other in ((sponges, beside), (trees, sponges), (beside, trees)):
        one.rename(other)
    app.run()
    assert_edited(app, "trees.pdf")


def test_a_reset_restores_the_files_values_everywhere(app: HashingApp) -> None:
    edit(app, "sponges.pdf", reset=("all",))
    assert_not_edited(app, "sponges.pdf")
    assert metadata(app).title == Field("On sponges", "pdf metadata")
    assert (record(app)["title"], record(app)["year"]) == ("On sponges", None)
    with closing(app.open_library()) as library:
        assert library.database.query("SELECT count(*) FROM metadata WHERE source = 'person'") == [(0,)]


def test_the_index_that_followed_edits_ranks_as_a_new_one(app: HashingApp) -> None:
    for title in ("Zanzibar once", "Zanzibar twice", TITLE):
        edit(app, "trees.pdf", f"title={title}")
    with closing(app.open_library()) as library:
        followed = app.open_indexes(library).lexical.search("zanzibar sponges rotation", 50)
        app.repair()
        assert app.open_indexes(library).lexical.search("zanzibar sponges rotation", 50) == followed
    assert found_by_title(app) == {"sponges.pdf", "trees.pdf"}


def test_an_edit_of_another_field_leaves_the_indexes_alone(app: HashingApp) -> None:
    with closing(app.open_library()) as library, library.reading() as before:
        pass
    edit(app, "sponges.pdf", "doi=10.1000/sponges")
    with closing(app.open_library()) as library, library.reading() as after:
        assert after == before
    assert record(app)["doi"] == "10.1000/sponges"


def test_a_rebuild_changes_no_user_data(tmp_path: Path) -> None:
    app = filled(tmp_path)
    with closing(app.open_library()) as library:
        before = everything(library.database)
    assert all(before[table] for table in NAMES["user"])
    app.repair()
    app.run(rebuild=True)
    with closing(app.open_library()) as library:
        after = everything(library.database)
    changed = {table for table in after if after[table] != before[table]}
    assert changed <= {"meta", "papers", "chunks", "removed", "paper_vectors"}
    made = [[row[:7] for row in rows["papers"]] for rows in (before, after)]  # without the time
    assert made[0] == made[1]
    other = HashingApp(app.settings, app.notice, HashingEmbedder(name="other"))
    other.run(rebuild=True)
    (app.settings.PAPERS_DIR / "otters.pdf").unlink()
    other.run(prune=True)
    with closing(other.open_library()) as library:
        said = everything(library.database)
    assert {table for table in NAMES["user"] if said[table] != before[table]} <= {"kept", "citation_names"}
    assert set(said["citation_names"]) >= set(before["citation_names"])  # others got theirs


# Damage


def test_an_unreadable_edit_is_restored_or_lost_alone(app: HashingApp) -> None:
    edit(app, "trees.pdf", "year=1999")
    user = user_file.user_file_of(app.library_path)
    user_file.copy_now(user)
    for copies in (1, 0):
        with closing(sqlite3.connect(user)) as connection, connection:
            connection.execute("UPDATE metadata SET fields = replace(fields, '{', '[') WHERE fields LIKE '%Zanzibar%'")
        with pytest.raises(StoreDamaged):
            metadata(app)
        assert len(app.verify()) == 1
        with pytest.raises(StoreDamaged):
            app.run(rebuild=True)
        assert app.repair().is_complete == bool(copies)
        app.run(rebuild=True)
        assert_edited(app) if copies else assert_not_edited(app, "sponges.pdf")
        assert metadata(app, "trees.pdf").year == Field(1999, "person", True)
        for copy in user_file.copies(user):
            copy.unlink()
    assert set_aside(app.library_path) == []


# While others write


def test_an_edit_while_an_ingest_holds_the_writer_lock(app: HashingApp) -> None:
    with indexes.writing(app.store_folder):
        edit(app, "trees.pdf", "title=Zanzibar Trees")
        assert metadata(app, "trees.pdf").title.value == "Zanzibar Trees"
        assert record(app, "trees.pdf")["title"] == "On trees"  # until the ingest ends
        with closing(app.open_library()) as library:  # a question finds it even so
            hits = app.open_indexes(library).lexical.search("Zanzibar", 50)
            assert {paper.file for _, paper, _ in library.read_chunks([chunk for chunk, _ in hits])} == {
                "sponges.pdf",
                "trees.pdf",
            }
    make_pdf(app.settings.PAPERS_DIR / "more.pdf", "lattices", "More", change="A new paper of this ingest.")
    app.run()
    assert record(app, "trees.pdf")["title"] == "Zanzibar Trees"
    assert found_by_title(app) == {"sponges.pdf", "trees.pdf"}
    assert app.verify() == []


def test_an_edit_during_an_ingest_is_not_lost(app: HashingApp, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = app.hashing.embed_passages
    edits = iter(["title=Zanzibar Trees"])

    def embed_and_edit(texts: Any) -> Any:
        for change in edits:
            edit(app, "trees.pdf", change)
        return embed(texts)

    monkeypatch.setattr(app.hashing, "embed_passages", embed_and_edit)
    make_pdf(app.settings.PAPERS_DIR / "more.pdf", "lattices", "More", change="A new paper of this ingest.")
    app.run()
    assert next(edits, None) is None
    assert record(app, "trees.pdf")["title"] == "Zanzibar Trees"
    assert found_by_title(app) == {"sponges.pdf", "trees.pdf"}
    assert app.verify() == []


def test_edits_of_several_fields_at_once_are_all_kept(app: HashingApp) -> None:
    with closing(app.open_library()) as library:
        (paper,) = (paper.id for paper in library.papers() if paper.file == "trees.pdf")
    texts = ("title=Zanzibar Trees", "year=2001", "venue=Trees", "doi=10.1000/trees")

    def change(number: int) -> None:
        edits = parse_edits([texts[number]], [])
        with closing(app.open_library()) as library:
            library.change_metadata(paper, "person", lambda person: edited(person, edits))

    at_once(len(texts), change)
    found = metadata(app, "trees.pdf")
    values = (found.title.value, found.year.value, found.venue.value, found.doi.value)
    assert values == ("Zanzibar Trees", 2001, "Trees", "10.1000/trees")


# Kills


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork and can be killed")
def test_a_killed_edit_is_whole_or_absent(app: HashingApp, tmp_path: Path) -> None:
    sound = app.settings.PAPERS_DIR.parent

    def killed(step: int) -> Path:
        """Make the edit in a copy of the folder, and be killed at this step; 0 is never reached."""
        copy = shutil.copytree(sound, tmp_path.with_name(f"{tmp_path.name}-killed-{step}"))
        code, out = forks_of("tests.helpers.kill_steps").run("edit", copy, step)
        assert code == (-signal.SIGKILL if step else 0), out
        return copy

    steps = len(json.loads((killed(0) / "steps.json").read_text()))
    assert steps > 5
    states = set()
    for step in sample(range(1, steps + 1), 2):
        copy = killed(step)
        made = hashing_app(copy)
        after = HashingApp(made.settings, lambda text: None, HashingEmbedder())
        found = metadata(after, "trees.pdf")
        assert (found.title.value, found.year.value) in (("On trees", None), ("Zanzibar Trees", 1999))
        with indexes.writing(after.store_folder):  # as any ingest at its end
            after.finish_ingest()
        is_there = found.title.value == "Zanzibar Trees"
        assert found_by_title(after) == ({"sponges.pdf", "trees.pdf"} if is_there else {"sponges.pdf"})
        assert record(after, "trees.pdf")["title"] == found.title.value
        assert after.verify() == []
        states.add(is_there)
        shutil.rmtree(copy)
    assert states == {False, True}


def test_works_outlive_rebuilds_removal_newer_versions_and_damage(app: HashingApp) -> None:
    path = app.settings.PAPERS_DIR / "sponges.pdf"
    work = Work("openalex", title=TITLE, openalex="W1", references=("W2",), is_retracted=True)
    with closing(app.open_library()) as library, library.database.transaction():
        (first,) = (paper.id for paper in library.papers() if paper.file == path.name)
        (id,) = works.put(library.database, [work])
        works.link_paper(library.database, first, id, "title", 0.95)

    def assert_kept(*, changed: bool = False) -> None:
        with closing(app.open_library()) as library:
            ids = [paper.id for paper in library.papers() if paper.file == path.name]
            assert [paper == first for paper in ids] == ([] if not path.exists() else [not changed])
            for paper in [first, *ids]:
                assert [kept.id for kept in works.of_paper(library.database, paper)] == [id]
                assert [each.kind for each in works.notices_of_papers(library.database, [paper])[paper]] == [
                    "retraction"
                ]
            assert works.references_of(library.database, id) == ["openalex W2"]
            assert works.find(library.database, Work("crossref", openalex="W1")) is not None
        assert app.verify() == []

    app.run(rebuild=True)
    assert_kept()
    content = app.library_path.read_bytes()
    overwrite(app.library_path, content[:18] + b"\xff" * 6 + content[24:])  # of the header: no program can open it
    with pytest.raises(StoreDamaged):
        metadata(app)
    app.run(rebuild=True)
    assert_kept()
    make_pdf(path, "sponges", change="This is the second edition of the text.")
    app.run()
    assert_kept(changed=True)
    make_pdf(path, "sponges", change="This is the third edition of the text.")
    app.run(rebuild=True)
    assert_kept(changed=True)
    path.unlink()
    app.run(prune=True)
    assert_kept()
