"""A library with something of everything that is kept, all of its rows, and what a PDF is to have said."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folio.papers.metadata import Metadata, from_json, simple_metadata, to_json
from folio.papers.work import Work, WorkAuthor
from folio.store import instructions, notes, projects, rows, tables, works
from folio.store.database import NAMES, Database
from folio.store.library import Library
from folio.store.note_places import quote_at
from folio.store.notes import Note, NoteOrigin
from folio.store.query_log import LogEntry, LoggedSource
from folio.store.readings import MovedFile, record_reading, record_removal
from folio.store.rows import row_digest
from folio.store.table_places import row_of, stored_finding
from folio.store.tables import Fill, TableCell, TableColumn, TableRow
from folio.store.works import Notice
from folio.system import workers
from tests.helpers.answers import ANSWER
from tests.helpers.factories import small_papers, write_pdf
from tests.helpers.fakes import HashingApp, hashing_app, read_once

READERS: dict[str, Any] = {"LLM": "builtin", "RERANKER": "builtin"}
ABSENT = "0" * 64  # a paper that is not in the library
REPLY = {"question": "How long?", "sources": [{"quote": "Its length is 23 km."}]}
ENTRY = LogEntry(
    asked="2026-01-02T03:04:05+00:00",
    question="How long is the Aletsch glacier?",
    standalone_question="How long is the Aletsch glacier?",
    chunks=(2**63 - 1, 1, 77),
    answer="It is 23 km long.",
    sources=(),
    timings_ms={"retrieve": 12.5, "total": 1012.75},
    model="extractive",
    feedback="good",
    confidence=0.5,
    trace={"events": [{"why": "Größe"}], "left_out": 0},
)


def everything(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """Table -> all of its rows, sorted; the same of a library in another engine if it has the same in it."""
    with database.snapshot():
        return {
            table: sorted(database.query(f"SELECT * FROM {table}"), key=repr)
            for part in NAMES.values()
            for table in part
        }


def set_pdf_metadata(library: Library, paper: str, said: Metadata) -> None:
    """Change what the PDF of a paper says of it, as if it had been read so. With another title it is indexed again."""
    database = library.database
    with database.transaction():
        (row,) = database.query(f"SELECT {rows.PAPER_COLUMNS} FROM papers WHERE id = :paper", paper=paper)
        about = dict(zip(rows.PAPER_COLUMNS.split(", "), row, strict=True))
        before = from_json(json.loads(about["metadata"]))
        about["metadata"] = json.dumps(to_json(said), ensure_ascii=False)
        digest = row_digest("papers", *about.values())
        changed = {"metadata": about["metadata"], "digest": digest, **rows.search_keys(said)}
        columns = ", ".join(f"{name} = :{name}" for name in changed)
        database.execute(f"UPDATE papers SET {columns} WHERE id = :paper", paper=paper, **changed)
        rows.count_description_change(database)
        if before.title.value != said.title.value:
            rows.increase(database, "generation")
            now = "(SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'generation')"
            database.execute(f"INSERT INTO removed SELECT id, {now} FROM chunks WHERE paper = :paper", paper=paper)
            for table, column in (("chunks", "paper"), ("papers", "id")):
                database.execute(f"UPDATE {table} SET generation = {now} WHERE {column} = :paper", paper=paper)


def awkward_papers(folder: Path) -> Path:
    """Three papers, one of them in two files, and a file that no text can be read from."""
    small_papers(folder)
    write_pdf(folder / "bees.pdf", ("Bees dance to tell where flowers are. The angle is that of the sun.",), "Bees")
    (folder / "a copy.pdf").write_bytes((folder / "bees.pdf").read_bytes())
    (folder / "broken.pdf").write_bytes(b"no PDF")
    return folder


def filled(folder: Path) -> HashingApp:
    """The app over a folder with these papers and a library of them."""
    awkward_papers(folder / "papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        return fill(hashing_app(folder, **READERS))


def fill(app: HashingApp) -> HashingApp:
    """Ingest the papers, and add what people, services and questions add to a library."""
    app.run()
    with closing(app.open_library()) as library:
        ids = [paper.id for paper in library.papers()]
        said = simple_metadata("Otters Asleep", ["Ada Byte"], 2021, origin="person")
        library.set_metadata(ids[-1], "person", said)
        library.set_metadata(ids[0], "online", simple_metadata("Somewhere", ["Bo Li"], 1999, origin="openalex"))
        library.set_metadata(ABSENT, "bibliography", simple_metadata("Not here", origin="bibliography"))
        app.backend.update_indexes(library)
        author = (WorkAuthor("Byte", "Ada"),)
        with library.changing_works() as database:
            one, other = works.put(
                database,
                [
                    Work("openalex", title="Otters Asleep", authors=author, year=2021, doi="10.1/otters"),
                    Work("crossref", title="Bees Awake", authors=author, year=2020, doi="10.1/bees"),
                ],
            )
            works.link_paper(database, ids[-1], one, "doi", 1.0)
            works.add_citations(database, one, ["doi 10.1/bees", "doi 10.1/unknown"], "openalex", works.now())
            works.add_notice(database, Notice(other, "retraction", "2021-05-26", "10.1/gone", "crossref", works.now()))
        own = instructions.add(library.database, "For a clinician", "Name the dose first. Größe?")
        instructions.choose(library.database, "a project", own.id)
        record_reading(library.database, ids[0], 1)
        record_removal(library.database, ABSENT, "Not here", [MovedFile("gone.pdf", "/gone.pdf", "/.removed/gone.pdf")])
        log = app.query_log(library)
        log.add(ENTRY)
        cited = log.add(replace(ENTRY, sources=(LoggedSource(ids[0], "a.pdf", 1, "Its length"),)))
        log.open_citation(cited, ids[0], 1)
        log.add(replace(ENTRY, question="Why?", confidence=None, trace=None, feedback="", scope="3 papers in Sea"))
    with closing(app.conversations()) as conversations:
        conversation = conversations.begin()
        entry = replace(ENTRY, asked="2026-01-03T00:00:00+00:00")
        conversations.add(conversation, {**REPLY, "turn": 1}, ANSWER, entry)
        conversations.add(conversation, {**REPLY, "turn": 2}, ANSWER, None)
        conversations.mark(conversation, 2, "bad")
        conversations.pin(conversation, pinned=True)
        asked = {"conversation": conversation, "turn": 3, "key": "a", "message": "And then?", "state": "running"}
        assert conversations.ask(conversation, asked, "this server")
    with closing(app.open_library()) as library:
        paper = library.papers()[0]
        quotes = [quote_at(library, paper, 0, 20), quote_at(library, paper, 5, paper.length)]
        notes.add(library.database, quotes, colour="blue", text="Größe?", conversation=conversation, turn=2)
        notes.add(library.database, quotes[:1], statement="It is so.")
        origin = NoteOrigin("library/items/ANNOTAT1", "library/items/ATTACHM1", "#ffd400", "state")
        times = "2024-05-06T07:08:09.000000+00:00", "2024-06-07T08:09:10.000000+00:00"
        annotation = Note(notes.new_id(), "yellow", "Wow", "", None, None, *times, tuple(quotes[:1]), origin)
        notes.put_annotations(library.database, [annotation], [])
        _add_table(library)
        rule = projects.rule_item({"tag": ["otters"], "year": ["2015-"]})
        members = [
            projects.Member("paper", paper.id, paper.title),
            projects.Member("excluded", ABSENT, "Not here"),
            projects.Member("rule", rule),
            projects.Member("conversation", conversation),
        ]
        projects.add(library.database, "Sëa", "What otters do.", members)
    return app


def _add_table(library: Library) -> None:
    """A table with a cell in each state, which a program fills."""
    database, papers = library.database, library.papers()
    columns = [TableColumn(f"{at:016x}", f"Größe {at}", "", "number", "km", ("ü",)) for at in range(4)]
    rows_of_papers = [*map(row_of, papers), TableRow(ABSENT, "Not here", "gone.pdf", "Gone 2020", 2020)]
    id = tables.add(database, "Sizes", {"tag": ["ü"]}, columns, rows_of_papers)
    fill = Fill(id, reading=papers[0].id)
    assert tables.begin(database, fill, "this server", resumes=True)
    text = library.text(papers[0].id, 0, papers[0].length)
    found = stored_finding(papers[0], text, (0, 20), "23 km", 23.5, by_model=True)
    for column, cell in (
        (columns[0], TableCell("found", (found, found))),
        (columns[1], TableCell("not_found")),
        (columns[2], TableCell("failed", error=("It broke.", "Mend it."))),
    ):
        assert tables.land(database, fill, "this server", column, papers[0].id, cell)
    tables.edit_cell(database, id, columns[0].id, papers[0].id, "24 km")
    tables.edit_cell(database, id, columns[3].id, ABSENT, "Größe?")
    tables.hide_row(database, id, papers[-1].id, hidden=True)
