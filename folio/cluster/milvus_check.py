"""Looks for faults in the rows of a library in Milvus."""

from __future__ import annotations

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
