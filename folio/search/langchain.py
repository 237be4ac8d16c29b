"""LangChain integration: a retriever, and langchain-community's FAISS vector store over the same vectors.

In a LangChain program:

    from folio.app import connect
    folio = connect()
    folio.langchain_retriever(top_k=4).invoke("question")            # BM25 and FAISS, fused and reranked
    folio.langchain_vector_store().similarity_search("question")     # FAISS alone
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from folio.papers.model import Hit
from folio.protocols import Embedder
from folio.store.library import Library
from folio.store.vectors import full_precision_index

# A question -> its hits, best first
Search = Callable[[str], Sequence[Hit]]


class HitDocument(Document):
    """A hit as a LangChain document. Its metadata are plain values; `hit` is not serialized."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    hit: Hit = Field(exclude=True, repr=False)


class FolioRetriever(BaseRetriever):
    """Folio's search as a LangChain retriever: BM25 and FAISS, fused and reranked."""

    search: Search

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [to_document(hit) for hit in self.search(query)]


def to_document(hit: Hit) -> HitDocument:
    """A hit as a LangChain document.

    Metadata: file, title, page and last_page (physical, from 1), label (printed on the first page), chunk (its id, as
    text), score.
    """
    first, last = hit.pages
    metadata = {
        "file": hit.paper.file,
        "title": hit.paper.title,
        "page": first,
        "last_page": last,
        "label": hit.paper.pages.label(first),
        "chunk": str(hit.chunk.id),
        "score": hit.score,
    }
    return HitDocument(page_content=hit.text, metadata=metadata, hit=hit, id=str(hit.chunk.id))


class FolioEmbeddings(Embeddings):
    """Folio's embedder with LangChain's interface."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed_passages(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector


def vector_store(library: Library, embedder: Embedder) -> Any:
    """A langchain_community FAISS store over the library's vectors. Documents are read from the library on demand.

    Only search with it. It keeps all vectors in memory, and its scores are cosines. Do not call save_local and
    load_local, which pickle: Folio stores its own index.
    """
    from langchain_community.docstore.base import Docstore
    from langchain_community.vectorstores.faiss import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    class LibraryDocstore(Docstore):
        """Documents by chunk id, read from the library on demand."""

        def search(self, search: str) -> str | Document:
            if int(search) not in library.chunks([int(search)]):
                return f"ID {search} not found."
            ((chunk, paper, text),) = library.read_chunks([int(search)])
            return to_document(Hit(chunk, paper, text, 0.0))

    ids = {chunk_id: str(chunk_id) for chunk_id in sorted(library.chunk_ids())}
    return FAISS(
        FolioEmbeddings(embedder),
        full_precision_index(embedder.dimension, library.vectors()),
        LibraryDocstore(),
        ids,
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
