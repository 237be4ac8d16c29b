"""Looks for faults in the collections of a library in Milvus, and in their rows."""

from __future__ import annotations

from folio.cluster.collections import FORMAT, Names
from folio.cluster.library_state import LibraryState
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_errors import REPAIR
from folio.cluster.milvus_library import MilvusLibrary
from folio.cluster.record_files import RecordFiles
from folio.errors import StoreDamaged, StoreMismatch
from folio.text import VERSION


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


def require_whole(milvus: Milvus, names: Names, state: LibraryState, place: str) -> None:
    """Raise StoreDamaged or StoreMismatch unless all collections are there, and as the library says."""
    of_epoch = names.of_epoch(dual=state.is_dual)
    wanted = {*names.shared(), *of_epoch, *([names.works] if state.works else [])}
    if missing := sorted(wanted - milvus.collections()):
        raise StoreDamaged(f"Collections of the library at {place} are missing: {', '.join(missing)}.", REPAIR)
    if state.format < FORMAT:
        raise StoreMismatch(f"The library at {place} was written by an earlier version of Folio.", REPAIR)
    if state.tokenizer != VERSION:
        raise StoreMismatch(f"The words of the library at {place} were made by another version of Folio.", REPAIR)
    dimension = milvus.dimension(names.chunks)
    if str(dimension) != state.fingerprint.get("dimension"):
        raise StoreDamaged(
            f"The collection {names.chunks} has vectors of {dimension} numbers, and its library says"
            f" {state.fingerprint.get('dimension', 'nothing')}.",
            REPAIR,
        )
