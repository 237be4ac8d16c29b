"""What scale_model.py takes as given, each with its source and how far it may be off."""

from __future__ import annotations

from dataclasses import dataclass

GB = 10**9


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number that was not measured here."""

    value: float
    unit: str
    source: str
    factor: float  # it may be this many times smaller or larger


ASSUMPTIONS = {
    "node_memory": Assumption(64 * GB, "bytes of a query node", "our choice of machine: 16 cores, 64 GB", 1.0),
    "node_cores": Assumption(16, "cores of a query node", "our choice of machine", 1.0),
    "memory_used": Assumption(
        0.7, "share of it for segments", "Milvus stops loading near 0.9; the rest is for searches", 1.2
    ),
    "segment": Assumption(1024 * 2**20, "bytes of rows in a segment", "milvus.yaml, dataCoord.segment.maxSize", 2.0),
    "disk_segment": Assumption(
        2048 * 2**20, "the same with DISKANN", "milvus.yaml, dataCoord.segment.diskSegmentMaxSize", 2.0
    ),
    "shard": Assumption(
        100 * GB, "bytes of rows in a shard", "Milvus docs, Create Collection: one more for each 100 GB", 2.0
    ),
    "pq_bytes": Assumption(96, "bytes of a vector in HNSW_PQ", "one byte for each 8 numbers of 768", 2.0),
    "pq_ratio": Assumption(
        0.125, "DISKANN: codes in memory, of raw vectors", "milvus.yaml, common.DiskIndex.PQCodeBudgetGBRatio", 1.5
    ),
    "cache_ratio": Assumption(
        0.1, "DISKANN: cache in memory, of raw vectors", "milvus.yaml, common.DiskIndex.SearchCacheBudgetGBRatio", 1.5
    ),
    "sector": Assumption(
        4096, "DISKANN: bytes on disk of a vector and its 56 links", "milvus.yaml MaxDegree; a sector each", 1.3
    ),
    "posting": Assumption(8, "bytes of a word of a passage in the BM25 index", "a 4-byte id and a 4-byte weight", 2.0),
    "merges": Assumption(2, "times a passage is indexed", "segments are merged, and their index made again", 2.0),
    "vamana": Assumption(
        3, "DISKANN: index build, of HNSW's", "DiskANN (Subramanya et al. 2019): two passes, more links", 2.0
    ),
    "sq_speed": Assumption(
        0.6, "HNSW_SQ: search time, of HNSW's", "a quarter of the bytes read; the walk is the same", 1.7
    ),
    "pq_speed": Assumption(0.8, "HNSW_PQ: search time, of HNSW's", "table look-ups in place of products", 1.7),
    "disk_reads": Assumption(
        60, "DISKANN: reads of a search in a segment", "DiskANN, search list of 100, with cache", 2.0
    ),
    "read_s": Assumption(100e-6, "seconds of a read from NVMe, 4 at once", "usual data sheets", 2.0),
    "spread": Assumption(0.3, "sigma of a segment's search time, lognormal", "our guess", 1.7),
    "hop_s": Assumption(0.5e-3, "median seconds of a hop in the network", "one data centre", 2.0),
    "hop_spread": Assumption(0.5, "sigma of a hop, lognormal", "our guess", 1.5),
    "lookups": Assumption(
        10,
        "reads by key for a question, one after the other",
        "LOG.md: about a dozen requests, two of them searches",
        1.5,
    ),
    "lookup_s": Assumption(
        4e-3, "seconds of a read by key, besides its hops", "our guess for a server; Milvus Lite takes 5 to 20 ms", 3.0
    ),
    "tick_s": Assumption(
        0.2,
        "seconds between ticks, for the next of which a read with Strong waits",
        "milvus.yaml, timeTickInterval",
        2.0,
    ),
    "leftover": Assumption(
        1.5, "times the rows that the object store holds", "merged segments stay until they are collected", 1.5
    ),
    "copies": Assumption(1.5, "bytes on disks for a byte in the object store", "MinIO with erasure code 8 + 4", 1.3),
    "ollama_gpu": Assumption(
        400,
        "passages a second, nomic-embed-text on Ollama with a GPU",
        "our guess; measure yours with folio ingest",
        2.5,
    ),
    "ollama_cpu": Assumption(20, "the same on 8 cores without one", "our guess", 2.0),
    "ingest_cores": Assumption(64, "cores for parsing, the built-in embedder and index builds", "our choice", 1.0),
    "ollama_hosts": Assumption(8, "Ollama hosts", "our choice", 1.0),
    "writers": Assumption(8, "writers of rows at once", "our choice", 1.0),
    "heaps_k": Assumption(30, "Heaps's law for different words: k", "Manning et al. 2008, section 5.1: 30 to 100", 3.0),
    "heaps_b": Assumption(0.5, "the same: b", "Manning et al. 2008, section 5.1: about 0.5", 1.1),
    "version_bytes": Assumption(42, "bytes of a counted paper in the term statistics", "term_statistics.py: JSON", 1.1),
    "word_bytes": Assumption(16, "bytes of a word there", "term_statistics.py: JSON", 1.3),
    "rows_at_once": Assumption(500, "rows of a request", "milvus_client.BATCH", 1.0),
    "text_bytes": Assumption(60_000, "bytes of a row of text", "paper_record.py: Milvus's limit is 65,535", 1.1),
    "read_rate": Assumption(
        20e6, "bytes a second that Python reads as rows", "our guess: pymilvus makes dictionaries", 2.0
    ),
}
