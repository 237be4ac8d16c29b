"""What a passage and a question cost, each part by itself, for scale_model.py: processor seconds, which the load of the
machine hardly changes.

    python benchmarks/unit_costs.py --papers ~/papers --out benchmarks/unit-costs.json

Papers are read and embedded by the built-in model, as an ingest does; HNSW graphs are built and searched with FAISS, in
one thread, with the parameters that Folio gives Milvus (which builds them with the same algorithm, in its own library).
What only Milvus Lite can tell comes from milvus.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import faiss
import numpy as np

from benchmarks import synthetic
from folio.cluster.paper_record import PaperRecord
from folio.cluster.paper_rows import chunk_rows, paper_row
from folio.files import sha256_file
from folio.ingest import pipeline
from folio.ingest.chunking import chunk_id
from folio.ingest.discovery import find_pdfs
from folio.models.minilm import BuiltinEmbedder
from folio.store.fingerprint import Reading
from folio.types import NewPaper, SourceFile, Vectors

M, EF_CONSTRUCTION, EF = 16, 200, 200  # milvus_client.py
DIMENSION = 768
GRAPHS = (8_000, 32_000)  # vectors
EMBEDDED = 256  # passages


def read(files: Sequence[Path]) -> tuple[list[NewPaper], dict[str, float]]:
    """The papers of these files, and what reading took."""
    began, papers = process_time(), []
    for path in files:
        paper = pipeline.read_paper(SourceFile(str(path), path.name, sha256_file(path)), Reading(1500, 200), 500)
        papers.append(paper)
    seconds = process_time() - began
    passages = sum(len(paper.spans) for paper in papers)
    pages = sum(len(paper.pages.starts) for paper in papers)
    return papers, {
        "papers": len(papers),
        "pages_per_paper": pages / len(papers),
        "passages_per_paper": passages / len(papers),
        "parse_s": seconds / passages,
        "text_bytes": sum(len(paper.text.encode()) for paper in papers) / passages,
    }


def embed(papers: Sequence[NewPaper]) -> dict[str, float]:
    """What the built-in model takes for a passage."""
    texts = [paper.text[start:end] for paper in papers for start, end in paper.spans][:EMBEDDED]
    embedder = BuiltinEmbedder()
    embedder.embed_passages(texts[:8])
    began = process_time()
    for at in range(0, len(texts), 32):
        embedder.embed_passages(texts[at : at + 32])
    return {"embed_s": (process_time() - began) / len(texts)}


def write(papers: Sequence[NewPaper]) -> dict[str, float]:
    """Bytes of a passage in the rows and in the record of its paper, and the seconds that making them takes."""
    rng = np.random.default_rng(1)
    passages, row_bytes, record_bytes, words, paper_bytes = 0, 0, 0, 0, 0
    began = process_time()
    for paper in papers:
        vectors = rng.standard_normal((len(paper.spans), DIMENSION), dtype=np.float32)
        ids = tuple(chunk_id(paper.id, start, end) for start, end in paper.spans)
        record = PaperRecord(paper, "0" * 32, "2026-01-01T00:00:00", ids, vectors, None)
        record_bytes += len(record.to_text())
        file = SourceFile(f"/papers/{paper.id[:12]}.pdf", f"{paper.id[:12]}.pdf", paper.id)
        about = paper_row(record, paper.metadata, [file])
        paper_bytes += sum(len(str(value)) for key, value in about.items() if key != "vector")
        rows, _ = chunk_rows(record, paper.metadata)
        for row in rows:
            words += len(set(row["body"].split()))
            row_bytes += 4 * DIMENSION + sum(len(str(value)) for key, value in row.items() if key != "vector")
        passages += len(ids)
    seconds = process_time() - began
    return {
        "row_bytes": row_bytes / passages,
        "record_bytes": record_bytes / passages,
        "words": words / passages,
        "paper_bytes": paper_bytes / len(papers),
        "rows_s": seconds / passages,
    }


def graphs() -> list[dict[str, float]]:
    """What building and searching an HNSW graph takes, at some sizes."""
    faiss.omp_set_num_threads(1)
    template = synthetic.random_template(DIMENSION)
    count = max(GRAPHS)
    made = synthetic.generate_papers(template, count, DIMENSION, count // 60)
    vectors: Vectors = np.concatenate([batch for _, batch in made])
    vectors = vectors[np.random.default_rng(3).permutation(count)]
    found = []
    for size in GRAPHS:
        index = faiss.IndexHNSWFlat(DIMENSION, M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction, index.hnsw.efSearch = EF_CONSTRUCTION, EF
        began = process_time()
        index.add(vectors[:size])
        build_s = (process_time() - began) / size
        questions = vectors[:200] + 0.02 * np.random.default_rng(4).standard_normal((200, DIMENSION), dtype=np.float32)
        began = process_time()
        for question in questions:
            index.search(question[None], 36)
        search_s = (process_time() - began) / len(questions)
        size_bytes = len(faiss.serialize_index(index)) / size
        found.append({"vectors": size, "build_s": build_s, "search_s": search_s, "bytes": size_bytes})
        print(found[-1], file=sys.stderr, flush=True)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure what a passage and a question cost.")
    parser.add_argument("--papers", type=Path, required=True, metavar="FOLDER", help="PDFs to read and embed")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="PDFs at most (default: 20)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the figures, as JSON")
    arguments = parser.parse_args(argv)
    papers, reading = read(sorted(find_pdfs([arguments.papers]))[: arguments.most])
    figures: dict[str, Any] = {
        "measured": f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}",
        "dimension": DIMENSION,
        **reading,
        **embed(papers),
        **write(papers),
        "graphs": graphs(),
    }
    arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
