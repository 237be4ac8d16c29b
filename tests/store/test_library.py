"""The library: transactions, snapshots, checks and damaged files."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from folio.errors import IndexDamaged, StoreDamaged, StoreMismatch, StoreMissing, StoreRefused
from folio.ingest.chunking import chunk_id, chunk_ids
from folio.paper_metadata import NO_METADATA, Field, Metadata, simple_metadata
from folio.sections import PaperSection, SectionMap
from folio.store import metadata_layers
from folio.store.digests import text_hash
from folio.store.library import Library
from folio.store.replacement import replace_papers
from folio.store.sqlite import SqliteDatabase
from folio.store.tables import LIBRARY_VERSION, NAMES
from folio.types import Chunk, Failure, NewPaper, PageMap, SourceFile, Vectors

pytestmark = pytest.mark.environment

TEXT = "The first page.\n\nThe second page says more.\n\nAnd the third one: ünï."


SPANS = ((0, 15), (10, 43), (45, 68))
SECTIONS = (
    PaperSection(5, 60, 1, "4", "Wörter", "methods"),
    PaperSection(10, 40, 2, "", "Kerne", "methods"),
    PaperSection(60, 68, 1, "V", "Ende", "conclusion"),
)


def _paper(letter: str, text: str = TEXT, spans: Sequence[tuple[int, int]] = SPANS) -> NewPaper:
    pages = PageMap((0, 17, 45), ("i", "", "3"))
    about = simple_metadata(f"Title {letter}", ("A. Uthor", "B. Writer"), 2024, "2301.01234v2")
    sections = SECTIONS if text.startswith(TEXT) else ()
    return NewPaper(letter * 64, about, text, pages, tuple(spans), ("odd",), sections)


def _file(name: str, letter: str) -> SourceFile:
    return SourceFile(f"/papers/{name}", name, letter * 64)


def _ids(paper: NewPaper) -> list[int]:
    return [chunk_id(paper.id, start, end) for start, end in paper.spans]


def _vectors(paper: NewPaper) -> Vectors:
    """A different vector for each chunk."""
    return _vectors_of(paper.text[start:end] for start, end in paper.spans)


def _vectors_of(texts: Iterable[str]) -> Vectors:
    rows = [np.frombuffer(bytes.fromhex(text_hash(text)), dtype=np.uint8) for text in texts]
    numbers = np.stack(rows)[:, :4] + np.float32(1)
    return np.asarray(numbers / np.linalg.norm(numbers, axis=1, keepdims=True), dtype=np.float32)


def _add(library: Library, name: str, letter: str, text: str = TEXT) -> NewPaper:
    paper = _paper(letter, text)
    library.add(paper, _file(name, letter), _ids(paper), _vectors(paper))
    return paper


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "library.sqlite"


@pytest.fixture
def library(path: Path) -> Iterator[Library]:
    opened = Library(path, create=True)
    opened.set_fingerprint({"embedder": "test", "dimension": "4"})
    yield opened
    opened.close()


def _sqlite(library: Library) -> SqliteDatabase:
    assert isinstance(library.database, SqliteDatabase)
    return library.database


def _generation(library: Library) -> int:
    with library.reading() as stamp:
        return stamp.generation


# Adding and removing papers


def test_a_new_library_is_empty(library: Library) -> None:
    assert library.papers() == []
    assert set(library.counts().values()) == {0}
    assert library.chunk_ids() == set()
    assert list(library.vectors()) == []
    assert _generation(library) == 0
    assert library.check() == []


def test_a_paper_is_added_with_all_its_data(library: Library) -> None:
    new = _add(library, "a.pdf", "a")
    (paper,) = library.papers()
    assert (paper.id, paper.file, paper.title, paper.authors) == (new.id, "a.pdf", "Title a", ("A. Uthor", "B. Writer"))
    assert (paper.year, paper.pages, paper.page_count, paper.chunks) == (2024, new.pages, 3, 3)
    assert (paper.length, paper.problems) == (len(TEXT), ("odd",))
    assert (paper.arxiv, paper.key) == ("2301.01234v2", "arXiv:2301.01234")
    assert paper.sections == SectionMap(SECTIONS)
    ids = _ids(new)
    assert library.chunk_ids_of([new.id]) == sorted(ids)
    assert library.chunks(ids) == {i: Chunk(i, new.id, *span) for i, span in zip(ids, new.spans, strict=True)}
    assert [library.text(new.id, start, end) for start, end in new.spans] == [TEXT[s:e] for s, e in new.spans]
    ((found_ids, found),) = library.vectors()
    assert found_ids == sorted(ids)
    assert found.tolist() == _vectors(new)[np.argsort(ids)].tolist()
    assert [(p.id, p.paper_id, p.title, p.text) for p in library.passages()] == [
        (i, new.id, "Title a", TEXT[start:end]) for i, (start, end) in zip(ids, new.spans, strict=True)
    ]
    assert datetime.fromisoformat(library.added()[new.id]).tzinfo is not None
    assert library.files() == [_file("a.pdf", "a")]
    assert library.check() == []


def test_characters_beyond_the_bmp_keep_their_offsets(library: Library) -> None:
    text = "𝔽 over 🦀 and then\n\ncafé"
    paper = _paper("a", text, [(0, 8), (2, len(text))])
    library.add(paper, _file("a.pdf", "a"), _ids(paper), _vectors(paper))
    assert [library.text(paper.id, start, end) for start, end in paper.spans] == ["𝔽 over 🦀", text[2:]]
    assert library.check() == []


def test_what_no_engine_stores_is_replaced_and_offsets_stay(library: Library) -> None:
    text = "Before \x00 and \ud83d alone,\n\nand after \udcff it."
    paper = _paper("a", text, [(0, 22), (24, len(text))])
    kept = text.replace("\x00", "\ufffd").replace("\ud83d", "\ufffd").replace("\udcff", "\ufffd")
    vectors = _vectors_of(kept[start:end] for start, end in paper.spans)
    library.add(paper, _file("a.pdf", "a"), _ids(paper), vectors)
    assert library.text(paper.id, 0, 99) == kept
    read = library.read_chunks(_ids(paper))
    assert [text for _, _, text in read] == [kept[start:end] for start, end in paper.spans]
    assert [passage.text for passage in library.passages()] == [text for _, _, text in read]
    library.record_failure(Failure(_file("b.pdf", "b"), "Torn \x00.", "Glue \ud800."))
    assert library.failures()[0] == Failure(_file("b.pdf", "b"), "Torn \ufffd.", "Glue \ufffd.")
    assert library.check() == []


def test_papers_are_sorted_by_name(library: Library) -> None:
    for name, letter in (("c.pdf", "c"), ("a.pdf", "b"), ("b.pdf", "a")):
        _add(library, name, letter, TEXT + letter)
    assert [paper.file for paper in library.papers()] == ["a.pdf", "b.pdf", "c.pdf"]
    assert [file.name for file in library.files()] == ["c.pdf", "a.pdf", "b.pdf"]
    assert [paper.id[0] for paper in library.papers_by_id(["c" * 64, "9" * 64, "a" * 64])] == ["c", "a"]


def test_unknown_ids_are_skipped(library: Library) -> None:
    new = _add(library, "a.pdf", "a")
    assert library.chunks([5, _ids(new)[0]]).keys() == {_ids(new)[0]}
    assert library.text("9" * 64, 0, 5) == ""
    assert library.chunk_ids_of(["9" * 64]) == []


def test_a_changed_file_replaces_its_paper(library: Library) -> None:
    old = _add(library, "a.pdf", "a")
    before = _generation(library)
    new = _add(library, "a.pdf", "b", TEXT.replace("second", "other"))
    assert [paper.id for paper in library.papers()] == [new.id]
    assert library.chunk_ids() == set(_ids(new))
    assert sorted(library.removed(before)) == sorted(_ids(old))
    assert library.counts() == {"papers": 1, "files": 1, "failures": 0, "chunks": 3, "vectors": 3, "removed": 3}
    assert library.check() == []


def test_a_paper_stays_while_any_file_holds_it(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    library.link([_file("copy.pdf", "a")])
    assert [p.file for p in library.papers()] == ["a.pdf"]
    library.drop("/papers/a.pdf")
    assert [p.file for p in library.papers()] == ["copy.pdf"]
    assert library.chunk_ids() == set(_ids(paper))
    library.drop("/papers/copy.pdf")
    assert library.papers() == []
    assert set(library.removed(0)) == set(_ids(paper))
    assert library.counts() == {"papers": 0, "files": 0, "failures": 0, "chunks": 0, "vectors": 0, "removed": 3}


def test_a_moved_file_keeps_its_paper(library: Library) -> None:
    _add(library, "a.pdf", "a")
    library.link([_file("b.pdf", "a")], ["/papers/a.pdf"])
    assert [(file.name, file.sha256) for file in library.files()] == [("b.pdf", "a" * 64)]
    assert library.removed(0) == []


def test_files_that_swapped_their_names_keep_both_papers(library: Library) -> None:
    _add(library, "a.pdf", "a")
    _add(library, "b.pdf", "b", TEXT.upper())
    library.link([_file("a.pdf", "b"), _file("b.pdf", "a")])
    assert [(paper.file, paper.id[0]) for paper in library.papers()] == [("a.pdf", "b"), ("b.pdf", "a")]
    assert library.removed(0) == []
    assert library.check() == []


def test_a_paper_can_come_back(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    library.drop("/papers/a.pdf")
    _add(library, "a.pdf", "a")
    assert library.chunk_ids() == set(_ids(paper))
    assert set(library.removed(0)) == set(_ids(paper))


def test_dropping_an_unknown_file_changes_only_the_generation(library: Library) -> None:
    _add(library, "a.pdf", "a")
    library.drop("/papers/none.pdf")
    assert [paper.file for paper in library.papers()] == ["a.pdf"]


def test_a_failed_add_leaves_nothing_behind(library: Library) -> None:
    old = _add(library, "a.pdf", "a")
    before, stamp = library.counts(), _generation(library)
    paper = _paper("b")
    with pytest.raises(StoreRefused):  # a chunk id that is in use
        library.add(paper, _file("a.pdf", "b"), [*_ids(paper)[:2], _ids(paper)[0]], _vectors(paper))
    with pytest.raises(ValueError, match="zip"):
        library.add(paper, _file("a.pdf", "b"), _ids(paper), _vectors(paper)[:2])
    assert (library.counts(), _generation(library)) == (before, stamp)
    assert [p.id for p in library.papers()] == [old.id]
    assert library.check() == []


# Generations


def test_each_write_increments_the_generation(library: Library) -> None:
    seen = [_generation(library)]
    _add(library, "a.pdf", "a")
    seen.append(_generation(library))
    _add(library, "b.pdf", "b", TEXT + "b")
    seen.append(_generation(library))
    library.drop("/papers/a.pdf")
    seen.append(_generation(library))
    library.record_failure(Failure(_file("c.pdf", "c"), "Torn.", "Glue."))
    seen.append(_generation(library))
    assert seen == [0, 1, 2, 3, 3]


def test_chunks_added_and_removed_after_a_generation(library: Library) -> None:
    first = _add(library, "a.pdf", "a")
    second = _add(library, "b.pdf", "b", TEXT + "b")
    library.drop("/papers/a.pdf")
    assert library.chunk_ids(1) == set(_ids(second))
    assert [passage.paper_id for passage in library.passages(1)] == [second.id] * 3
    assert library.chunk_ids(2) == set()
    assert list(library.passages(2)) == []
    assert set(library.removed(2)) == set(_ids(first))
    assert library.removed(3) == []


def test_vectors_are_read_by_id_in_the_order_asked_for(library: Library) -> None:
    papers = [_add(library, f"{letter}.pdf", letter, TEXT + letter) for letter in "ab"]
    ids = [chunk for paper in papers for chunk in _ids(paper)]
    vectors = np.concatenate([_vectors(paper) for paper in papers])
    order = [4, 0, 0, 5, 1]
    assert library.vectors_of([ids[place] for place in order]).tolist() == vectors[order].tolist()
    with pytest.raises(IndexDamaged, match="names a passage that is not in the library: 17"):
        library.vectors_of([ids[0], 17])


def test_chunks_are_counted_when_added_and_removed(library: Library, tmp_path: Path) -> None:
    counts = [library.chunk_count()]
    for change in (
        lambda: _add(library, "a.pdf", "a"),
        lambda: _add(library, "b.pdf", "b", TEXT + "b"),
        lambda: library.link([_file("c.pdf", "b")]),
        lambda: library.drop("/papers/b.pdf"),
        lambda: _add(library, "a.pdf", "d", TEXT + "d"),
        lambda: library.drop("/papers/c.pdf"),
    ):
        change()
        counts.append(library.chunk_count())
        assert counts[-1] == library.counts()["chunks"]
    assert counts == [0, 3, 6, 6, 6, 6, 3]
    other = Library(tmp_path / "other.sqlite", create=True)
    for letter in "xyz":
        _add(other, f"{letter}.pdf", letter, TEXT + letter)
    other.close()
    replace_papers(_sqlite(library), tmp_path / "other.sqlite")
    assert library.chunk_count() == library.counts()["chunks"] == 9
    library.database.execute("UPDATE meta SET value = 8 WHERE key = 'chunks'")
    assert library.check() == ["The number of passages differs from the recorded count."]


def test_new_rows_are_found_without_a_full_scan(library: Library) -> None:
    seen: list[str] = []
    database = _sqlite(library)
    database._sqlite.set_trace_callback(seen.append)
    _add(library, "a.pdf", "a")
    list(library.passages(0)), library.chunk_ids(0), library.removed(0), library.chunk_count()
    database._sqlite.set_trace_callback(None)
    tables = {*NAMES["library"], *NAMES["user"]} - {"meta", "kept"}
    for sql in (sql for sql in seen if sql.startswith("SELECT")):
        for *_, step in database.query(f"EXPLAIN QUERY PLAN {sql}"):
            assert not re.match(rf"SCAN ({'|'.join(tables)})\b", step), (sql, step)


def test_vectors_are_read_in_batches_sorted_by_id(library: Library) -> None:
    papers = [_add(library, f"{letter}.pdf", letter, TEXT + letter) for letter in "abcd"]
    batches = list(library.vectors(batch=5))
    assert [len(ids) for ids, _ in batches] == [5, 5, 2]
    assert [i for ids, _ in batches for i in ids] == sorted(i for paper in papers for i in _ids(paper))
    assert all(vectors.shape == (len(ids), 4) for ids, vectors in batches)


def test_a_snapshot_does_not_change_while_another_connection_writes(library: Library, path: Path) -> None:
    old = _add(library, "a.pdf", "a")
    reader = Library(path)
    with reader.reading() as stamp:
        _add(library, "a.pdf", "b", TEXT.upper())
        with reader.reading() as inner:
            assert inner == stamp
        assert [paper.id for paper in reader.papers()] == [old.id]
        assert reader.chunk_ids() == set(_ids(old))
        assert reader.text(old.id, 0, 9) == "The first"
        assert [ids for ids, _ in reader.vectors()] == [sorted(_ids(old))]
    with reader.reading() as later:
        assert (later.epoch, later.generation) == (stamp.epoch, stamp.generation + 1)
        assert [paper.id[0] for paper in reader.papers()] == ["b"]
    reader.close()


def test_an_error_inside_a_snapshot_ends_it(library: Library) -> None:
    with pytest.raises(LookupError), library.reading():
        raise LookupError
    _add(library, "a.pdf", "a")
    assert _generation(library) == 1


# Failures


def test_failures_are_recorded_until_the_file_can_be_read(library: Library) -> None:
    torn = Failure(_file("b.pdf", "b"), "It is torn.", "Glue it.")
    library.record_failure(torn)
    library.record_failure(Failure(_file("a.pdf", "a"), "It is wet.", "Dry it."))
    assert [failure.file.name for failure in library.failures()] == ["a.pdf", "b.pdf"]
    again = Failure(_file("b.pdf", "c"), "It is torn again.", "Glue it.")
    library.record_failure(again)
    assert library.failures()[1] == again
    _add(library, "b.pdf", "d")
    library.forget_failure("/papers/a.pdf")
    assert library.failures() == []


def test_a_file_that_broke_keeps_its_paper(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    library.record_failure(Failure(_file("a.pdf", "b"), "It is torn.", "Glue it."))
    assert [p.id for p in library.papers()] == [paper.id]
    library.drop("/papers/a.pdf")
    assert (library.papers(), library.failures()) == ([], [])


# Pending vectors


def test_vectors_are_recalled_from_papers_and_from_pending_ones(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    landed = text_hash(TEXT[0:15])
    fresh = np.asarray([[1, 2, 3, 4], [5, 6, 7, 8]], dtype=np.float32)
    library.remember([text_hash("one"), text_hash("two")], fresh)
    found = library.recall([text_hash("two"), landed, text_hash("three"), text_hash("two")])
    assert {digest: vector.tolist() for digest, vector in found.items()} == {
        text_hash("two"): [5, 6, 7, 8],
        landed: _vectors(paper)[0].tolist(),
    }
    library.forget_pending()
    assert library.recall([text_hash("one"), text_hash("two")]) == {}
    assert library.recall([landed]).keys() == {landed}


def test_pending_vectors_are_deleted_when_their_paper_is_added(library: Library) -> None:
    paper = _paper("a")
    hashes = [text_hash(TEXT[start:end]) for start, end in paper.spans]
    library.remember([*hashes, text_hash("of another paper")], np.ones((4, 4), dtype=np.float32))
    library.add(paper, _file("a.pdf", "a"), _ids(paper), _vectors(paper))
    library.drop("/papers/a.pdf")
    assert library.recall([*hashes, text_hash("of another paper")]).keys() == {text_hash("of another paper")}


# The whole library


@pytest.mark.parametrize("wrong", [(0, 69), (3, 3), (-1, 5), (8, 11)])
def test_sections_outside_their_text_or_across_each_other_are_refused(library: Library, wrong: tuple[int, int]) -> None:
    sections = (PaperSection(0, 10, 1, "", "Ice", "other"), PaperSection(*wrong, 1, "", "Sea", "other"))
    paper = replace(_paper("a"), sections=sections)
    with pytest.raises(ValueError, match="out of order"):
        library.add(paper, _file("a.pdf", "a"), _ids(paper), _vectors(paper))
    assert library.papers() == []


def test_replacing_a_library_copies_everything_under_a_new_epoch(library: Library, path: Path) -> None:
    _add(library, "old.pdf", "e", TEXT + "e")
    library.remember([text_hash("on its way")], np.ones((1, 4), dtype=np.float32))
    other = Library(path.with_name("rebuild.sqlite"), create=True)
    other.set_fingerprint({"embedder": "other", "dimension": "4"})
    paper = _add(other, "new.pdf", "a")
    _add(other, "gone.pdf", "b", TEXT + "b")
    other.drop("/papers/gone.pdf")
    other.record_failure(Failure(_file("c.pdf", "c"), "Torn.", "Glue."))
    with other.reading() as its, library.reading() as mine:
        pass
    reader = Library(path)
    with reader.reading() as seen:
        replace_papers(_sqlite(library), path.with_name("rebuild.sqlite"))
        assert [p.file for p in reader.papers()] == ["old.pdf"]  # until its snapshot ends
        assert seen == mine
    assert [p.file for p in reader.papers()] == ["new.pdf"]
    with library.reading() as now:
        assert now.epoch not in (its.epoch, mine.epoch)
        assert now.generation == its.generation == 3
    assert library.fingerprint() == {"embedder": "other", "dimension": "4"}
    assert library.counts() == other.counts()
    assert library.chunk_ids() == set(_ids(paper))
    assert library.papers() == other.papers()
    assert [f.file.name for f in library.failures()] == ["c.pdf"]
    assert library.recall([text_hash("on its way")]) == {}
    assert library.check() == []
    for one in (reader, other):
        one.close()


def _dual(letter: str) -> NewPaper:
    """A paper of three passages, the last of which holds two fine ones, the others one each."""
    (start, end), middle = SPANS[-1], SPANS[-1][0] + 5
    fine = (*((span,) for span in SPANS[:-1]), ((start, middle), (middle, end)))
    return replace(_paper(letter), fine_spans=fine)


def _add_dual(library: Library, name: str, letter: str) -> NewPaper:
    paper = _dual(letter)
    vectors = _vectors_of(paper.text[start:end] for start, end in paper.chunk_spans)
    library.add(paper, _file(name, letter), chunk_ids(paper), vectors)
    return paper


def test_fine_passages_are_kept_with_their_parents_and_counted_apart(library: Library) -> None:
    paper = _add_dual(library, "a.pdf", "a")
    ids = chunk_ids(paper)
    assert (library.chunk_count(), library.chunk_count("fine")) == (3, 4)
    assert (library.chunk_ids(), library.chunk_ids(grain="fine")) == (set(ids[:3]), set(ids[3:]))
    assert library.chunk_ids_of([paper.id]) == sorted(ids[:3])
    assert [chunk.parent for chunk in library.chunks(ids).values()] == [None] * 3 + [ids[0], ids[1], ids[2], ids[2]]
    inside = library.fine_in(ids[:3])
    assert [[chunk.id for chunk in inside[id]] for id in ids[:3]] == [[ids[3]], [ids[4]], [ids[5], ids[6]]]
    assert sorted(library.fine_ids_in([ids[0], ids[2]])) == sorted([ids[3], ids[5], ids[6]])
    assert [passage.id for passage in library.passages()] == ids[:3]
    assert [found for found, _ in library.vectors()] == [sorted(ids[:3])]
    assert len(library.vectors_of(ids)) == 7
    assert library.papers()[0].chunks == 3
    # The text of the first two is that of their fine passages: it has one vector for both.
    assert len(library.recall([text_hash(TEXT[start:end]) for start, end in paper.chunk_spans])) == 5
    assert library.check() == []
    library.drop("/papers/a.pdf")
    assert (library.chunk_count(), library.chunk_count("fine")) == (0, 0)
    assert set(library.removed(0)) == set(ids)
    assert library.check() == []


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE chunks SET parent = NULL WHERE start = 0", "number of fine passages differs"),
        ("DELETE FROM chunks WHERE parent = (SELECT max(parent) FROM chunks)", "number of fine passages differs"),
        ("UPDATE chunks SET parent = 17 WHERE parent IS NOT NULL", "refers to a missing row"),
        (
            "UPDATE chunks SET parent = (SELECT id FROM chunks WHERE parent IS NULL AND start = 0)"
            " WHERE parent IS NOT NULL AND start > 0",
            "3 fine passages lie outside their passage",
        ),
        ("UPDATE meta SET value = 5 WHERE key = 'fine'", "number of fine passages differs"),
    ],
)
def test_a_check_finds_tampering_with_fine_passages(library: Library, path: Path, statement: str, fault: str) -> None:
    _add_dual(library, "a.pdf", "a")
    assert library.check() == []
    with sqlite3.connect(path) as tamper:  # foreign keys are off here
        tamper.execute(statement)
    tamper.close()
    assert any(fault in problem for problem in library.check())


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE texts SET text = replace(text, 'second', 'sekond')", "is not the one that was stored"),
        ("UPDATE texts SET text = text || '.'", "is not the one that was stored"),
        ("UPDATE papers SET text_crc = text_crc + 1", "has changed since it was written"),
        ("UPDATE papers SET starts = '[0, 18, 45]'", "has changed since it was written"),
        ("UPDATE papers SET metadata = replace(metadata, 'Title', 'Titel')", "has changed since it was written"),
        ("UPDATE papers SET sections = replace(sections, '60', '61')", "has changed since it was written"),
        ("UPDATE chunks SET start = start + 1 WHERE start = 10", "does not match the text it was made from"),
        ("UPDATE vectors SET data = x'0000803f'", "a vector has changed"),
        ("UPDATE vectors SET data = x'00000000'", "a vector has changed"),
        ("DELETE FROM texts", "1 papers have no text"),
        ("DELETE FROM vectors WHERE chunk = (SELECT min(chunk) FROM vectors)", "1 passages have no vector"),
        ("DELETE FROM files", "1 papers have no file"),
        ("DELETE FROM papers", "refers to a missing row"),
        ("INSERT INTO vectors VALUES (1, zeroblob(16))", "refers to a missing row"),
    ],
)
def test_a_check_finds_tampering(library: Library, path: Path, statement: str, fault: str) -> None:
    _add(library, "a.pdf", "a")
    assert library.check() == []
    with sqlite3.connect(path) as tamper:  # foreign keys are off here
        tamper.execute(statement)
    tamper.close()
    assert any(fault in problem for problem in library.check())


def test_a_check_finds_a_flipped_page(library: Library, path: Path) -> None:
    for letter in "abcdef":
        _add(library, f"{letter}.pdf", letter, TEXT + letter * 3000)
    library.close()
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xa5" * 4096
    path.write_bytes(content)
    damaged = Library(path)
    try:
        problems = damaged.check()
    except StoreDamaged as error:
        problems = [error.happened]
    damaged.close()
    assert problems


def test_invalid_text_is_damage(library: Library, path: Path) -> None:
    paper = _add(library, "a.pdf", "a")
    with sqlite3.connect(path) as tamper:
        tamper.execute("UPDATE texts SET text = CAST(x'fffe00ff' AS TEXT)")
    tamper.close()
    with pytest.raises(StoreDamaged, match="Could not decode"):
        library.text(paper.id, 0, 5)


# Files that are not a library


def test_no_library(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="no index") as caught:
        Library(tmp_path / "library.sqlite")
    assert "python ingest.py" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_a_library_whose_creation_was_interrupted_is_created_again(tmp_path: Path) -> None:
    (tmp_path / "library.sqlite").touch()
    with pytest.raises(StoreMissing):
        Library(tmp_path / "library.sqlite")
    library = Library(tmp_path / "library.sqlite", create=True)
    assert library.papers() == []
    library.close()


@pytest.mark.parametrize("content", [b"This is a text and no database.\n" * 200, b"SQLite format 3\x00" + b"\x00" * 90])
def test_a_file_that_is_not_a_database(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "library.sqlite").write_bytes(content)
    with pytest.raises(StoreDamaged) as caught:
        Library(tmp_path / "library.sqlite", create=True).papers()
    assert "--rebuild" in caught.value.remedy
    assert (tmp_path / "library.sqlite").read_bytes() == content
    if (files := Path("/proc/self/fd")).is_dir():
        assert [file for file in files.iterdir() if file.resolve().is_relative_to(tmp_path)] == []


@pytest.mark.parametrize(
    ("version", "said", "remedy"),
    [
        (0, "was not written by Folio", "Move it away"),
        (-1, "was not written by Folio", "Move it away"),
        (
            LIBRARY_VERSION + 1,
            rf"a newer version of Folio \(schema {LIBRARY_VERSION + 1}; this version supports",
            "Use that version",
        ),
    ],
)
def test_a_database_of_another_program_or_of_a_newer_version_is_left_alone(
    tmp_path: Path, version: int, said: str, remedy: str
) -> None:
    path = tmp_path / "library.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    before = path.read_bytes()
    for create in (True, False):
        with pytest.raises(StoreMismatch, match=said) as caught:
            Library(path, create=create)
        assert remedy in caught.value.remedy
        assert "python ingest.py" in caught.value.remedy
    assert path.read_bytes() == before


def test_a_database_without_our_tables(tmp_path: Path) -> None:
    path = tmp_path / "library.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.execute(f"PRAGMA user_version = {LIBRARY_VERSION}")
    other.close()
    with pytest.raises(StoreDamaged, match="no such table"):
        Library(path).papers()
    with sqlite3.connect(path) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (LIBRARY_VERSION,)
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
    other.close()


def test_readers_may_open_a_library_while_it_is_created(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    for attempt in range(25):
        path, gate, made = tmp_path / f"{attempt}.sqlite", threading.Barrier(4), threading.Event()

        def look(path: Path = path, gate: threading.Barrier = gate, made: threading.Event = made) -> None:
            gate.wait()
            while not made.is_set():
                try:
                    library = Library(path)
                    assert library.papers() == []
                    library.close()
                except StoreMissing:
                    pass
                except BaseException as error:
                    errors.append(error)

        readers = [threading.Thread(target=look) for _ in range(3)]
        for reader in readers:
            reader.start()
        gate.wait()
        Library(path, create=True).close()
        made.set()
        for reader in readers:
            reader.join()
    assert errors == []


# What is known about papers


def _said(**values: object) -> Metadata:
    return Metadata(**{name: Field(value, "person", True) for name, value in values.items()})  # type: ignore[arg-type]


def test_metadata_of_a_source_is_replaced_changed_and_removed(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    assert library.metadata_layers(paper.id) == {"pdf": paper.metadata}
    library.set_metadata(paper.id, "bibliography", _said(venue="A Journal"))
    library.set_metadata(paper.id, "person", _said(year=1999))
    library.change_metadata(paper.id, "person", lambda said: replace(said, doi=Field("10.1000/a", "person", True)))
    assert library.metadata_layers(paper.id) == {
        "pdf": paper.metadata,
        "bibliography": _said(venue="A Journal"),
        "person": _said(year=1999, doi="10.1000/a"),
    }
    (found,) = library.papers()
    assert (found.year, found.metadata.venue.value, found.metadata.doi.value) == (1999, "A Journal", "10.1000/a")
    library.set_metadata(paper.id, "person", NO_METADATA)
    assert library.metadata_layers(paper.id).keys() == {"pdf", "bibliography"}
    assert library.papers()[0].year == 2024
    assert library.check() == []


def test_only_another_title_is_a_new_generation(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    other = _add(library, "b.pdf", "b", TEXT.upper())
    with library.reading() as before:
        pass
    assert not library.change_metadata(paper.id, "person", lambda _: _said(year=1999, title="Title a"))
    with library.reading() as same:
        assert same == before
    assert library.change_metadata(paper.id, "person", lambda said: replace(said, title=Field("B", "person", True)))
    with library.reading() as after:
        assert (after.epoch, after.generation) == (before.epoch, before.generation + 1)
    assert sorted(library.removed(before.generation)) == sorted(_ids(paper))
    assert library.chunk_ids(before.generation) == set(_ids(paper))
    assert {passage.title for passage in library.passages(before.generation)} == {"B"}
    assert {passage.title for passage in library.passages() if passage.paper_id == other.id} == {"Title b"}
    assert library.check() == []


def test_a_change_that_fails_changes_nothing(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    library.set_metadata(paper.id, "person", _said(title="Kept"))

    def fail(_: Metadata) -> Metadata:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        library.change_metadata(paper.id, "person", fail)
    with pytest.raises(StoreRefused):
        library.change_metadata(paper.id, "person", lambda _: _said(title="\ud800"))
    assert library.metadata_layers(paper.id)["person"] == _said(title="Kept")
    assert library.papers()[0].title == "Kept"


def test_what_is_read_in_a_transaction_that_fails_is_not_kept(library: Library) -> None:
    paper = _add(library, "a.pdf", "a")
    assert [found.title for found in library.papers_by_id([paper.id])] == ["Title a"]
    said = Metadata(title=Field("Never Said", "person", True))

    def fail() -> None:
        with library.database.transaction():
            metadata_layers.write(library.database, paper.id, "person", said)
            assert [found.title for found in library.papers_by_id([paper.id])] == ["Never Said"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [found.title for found in library.papers_by_id([paper.id])] == ["Title a"]
    library.set_metadata(paper.id, "person", Metadata(title=Field("Said", "person", True)))
    assert [found.title for found in library.papers_by_id([paper.id])] == ["Said"]
