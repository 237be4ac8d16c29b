"""Looks for faults in the rows of a library in Milvus, and in those of what was asked of it."""

from __future__ import annotations

from folio.cluster import history_copy
from folio.cluster.history_rows import HistoryRows
from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.record_files import RecordFiles
from folio.errors import StoreDamaged


def faults_of(library: MilvusLibrary) -> list[str]:
    """What is wrong with the rows, one sentence each: reads them all."""
    faults = []
    with library.reading():
        for paper in library.papers():
            try:
                ids = library.chunk_ids_of([paper.id])
                if len(ids) != paper.chunks:
                    faults.append(f"Paper {paper.id[:12]} has {len(ids)} passages, and should have {paper.chunks}.")
                fine = [chunk.id for inside in library.fine_in(ids).values() for chunk in inside]
                wanted = library.rows_of_papers([paper.id])[paper.id]["fine"]
                if len(fine) != wanted:
                    faults.append(f"Paper {paper.id[:12]} has {len(fine)} fine passages, and should have {wanted}.")
                library.text(paper.id, 0, 1)  # compares all of it
                library.read_chunks([*ids, *fine])
                if ids:
                    library.vectors_of([*ids, *fine])
            except StoreDamaged as error:
                faults.append(error.happened)
    return faults


def unsaid_of(library: MilvusLibrary, records: RecordFiles) -> list[str]:
    """The papers of which sources have said more than the library knows, one sentence each."""
    return [
        f"What is known about paper {paper[:12]} is not what its record says."
        for paper, layers in records.metadata()
        if layers.keys() - library.metadata_layers(paper).keys()
    ]


def faults_of_history(rows: HistoryRows) -> list[str]:
    """What is wrong with the log and the conversations, at most one sentence: reads them all."""
    try:
        for _ in history_copy.read_all(rows):
            pass
    except StoreDamaged as error:
        return [error.happened]
    return []
