"""A library with something of everything that a store keeps, and all that a store says of it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folio import workers
from folio.paper_metadata import PersonName, simple_metadata
from folio.store import citations, notices, works
from folio.store.paper_store import PaperStore
from folio.store.query_log import LogEntry
from folio.store.work_rows import Notice
from folio.work import Work, WorkAuthor
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


def awkward_papers(folder: Path) -> Path:
    """Three papers, one of them in two files, and a file that no text can be read from."""
    small_papers(folder)
    write_pdf(folder / "bees.pdf", ("Bees dance to tell where flowers are. The angle is that of the sun.",), "Bees")
    (folder / "a copy.pdf").write_bytes((folder / "bees.pdf").read_bytes())
    (folder / "broken.pdf").write_bytes(b"no PDF")
    return folder


def filled(folder: Path) -> Path:
    """A folder with these papers and a library of them."""
    awkward_papers(folder / "papers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "run_guarded", read_once)
        fill(hashing_app(folder, **READERS))
    return folder


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
        author = (WorkAuthor(PersonName("Byte", "Ada")),)
        with library.changing_works() as database:
            one, other = works.put(
                database,
                [
                    Work("openalex", title="Otters Asleep", authors=author, year=2021, doi="10.1/otters"),
                    Work("crossref", title="Bees Awake", authors=author, year=2020, doi="10.1/bees"),
                ],
            )
            works.link_paper(database, ids[-1], one, "doi", 1.0)
            citations.add_citations(database, one, ["doi 10.1/bees", "doi 10.1/unknown"], "openalex", works.now())
            notices.add(database, Notice(other, "retraction", "2021-05-26", "10.1/gone", "crossref", works.now()))
        log = app.query_log(library)
        log.add(ENTRY)
        log.add(replace(ENTRY, question="Why?", confidence=None, trace=None, feedback=""))
    with closing(app.conversations()) as conversations:
        conversation = conversations.begin()
        entry = replace(ENTRY, asked="2026-01-03T00:00:00+00:00")
        conversations.add(conversation, {**REPLY, "turn": 1}, ANSWER, entry)
        conversations.add(conversation, {**REPLY, "turn": 2}, ANSWER, None)
        conversations.mark(conversation, 2, "bad")
    return app


def everything(app: HashingApp) -> dict[str, Any]:
    """All that the store of an app says, but the order of papers that were added in the same second."""
    with closing(app.open_library(create=True)) as library:
        found = of_papers(library)
        found["works"] = sorted(map(repr, works.read_rows(library.database)))
        counts = app.query_log(library).counts()
    with closing(app.conversations()) as conversations:
        found["conversations"] = conversations.summaries()
    found["asked"] = sorted(map(repr, app.backend.asked()))
    found["log"] = counts
    return found


def of_papers(library: PaperStore) -> dict[str, Any]:
    """All that a library says of papers."""
    papers = library.papers()
    ids = {paper.id: sorted(library.chunk_ids_of([paper.id])) for paper in papers}
    fine = {id: library.fine_in(ids[id]) for id in ids}
    files: dict[str, list[Any]] = {}
    for file in library.files():
        files.setdefault(file.sha256, []).append(file)
    return {
        "fingerprint": library.fingerprint(),
        "papers": papers,
        "files": files,
        "failures": library.failures(),
        "added": library.added(),
        "counts": [library.counts()[name] for name in ("papers", "files", "failures")],
        "texts": {paper.id: library.text(paper.id, 0, paper.length) for paper in papers},
        "passages": {id: [(chunk, text) for chunk, _, text in library.read_chunks(ids[id])] for id in ids},
        "vectors": {id: library.vectors_of(ids[id]).tobytes() for id in ids},
        "fine": fine,
        "fine vectors": [
            library.vectors_of([chunk.id for chunk in chunks]).tobytes()
            for each in fine.values()
            for _, chunks in sorted(each.items())
            if chunks
        ],
        "paper vectors": {id: (each.text_hash, each.vector.tobytes()) for id, each in library.paper_vectors().items()},
        "described": library.described(),
        "layers": {id: library.metadata_layers(id) for id in (*ids, *library.described())},
        "chunk counts": [library.chunk_count(), library.chunk_count("fine")],
    }
