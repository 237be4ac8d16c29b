"""Looks for faults in the rows of a library in Milvus."""

from __future__ import annotations

from folio.cluster.milvus_library import MilvusLibrary
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
                library.read_chunks(ids)
                if ids:
                    library.vectors_of(ids)
            except StoreDamaged as error:
                faults.append(error.happened)
    return faults
