"""The LangChain integration: the same passages as Folio's own search, with correct pages."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from folio.papers.model import Hit
from folio.search.langchain import FolioEmbeddings
from tests.helpers.factories import GLACIERS, shelf
from tests.helpers.fakes import HashingApp

pytestmark = pytest.mark.fast

QUESTION = "How thick is the ice of the glacier at the Konkordiaplatz?"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    return shelf(tmp_path_factory.mktemp("shelf"))


def on_their_pages(metadata: dict[str, object], content: str) -> bool:
    """Whether a passage of the glacier paper is on the pages in its metadata, and needs all of them."""
    first, last = int(str(metadata["page"])), int(str(metadata["last_page"]))
    pages = ["".join(page.split()) for page in GLACIERS]
    shown = "".join(content.split())
    whole = "".join(pages[first - 1 : last])
    return shown in whole and (first == last or (shown not in "".join(pages[first:last])))


def test_the_retriever_finds_what_folios_own_search_finds(app: HashingApp) -> None:
    with closing(app.open_library()) as library:
        own = app.retriever(library).search(QUESTION, 3).hits
    retriever = app.langchain_retriever(top_k=3)
    assert isinstance(retriever, BaseRetriever)
    documents = retriever.invoke(QUESTION)
    assert [document.id for document in documents] == [str(hit.chunk.id) for hit in own]
    assert [document.page_content for document in documents] == [hit.text for hit in own]
    assert [document.metadata for document in documents] == [expected(hit) for hit in own]
    assert [document.metadata["score"] for document in documents] == [hit.score for hit in own]
    assert len(app.langchain_retriever().invoke(QUESTION)) == app.settings.TOP_K
    for document in documents:
        json.dumps(document.metadata)
        assert "hit" not in document.model_dump()
        if document.metadata["file"] == "glaciers.pdf":
            assert on_their_pages(document.metadata, document.page_content)


def expected(hit: Hit) -> dict[str, object]:
    return {
        "file": hit.paper.file,
        "title": hit.paper.title,
        "page": hit.pages[0],
        "last_page": hit.pages[1],
        "label": str(hit.pages[0]),
        "chunk": str(hit.chunk.id),
        "score": hit.score,
    }


def test_the_vector_store_finds_what_folios_dense_search_finds(tmp_path: Path) -> None:
    app = shelf(tmp_path, RERANKER="none", DENSE_WEIGHT="1", BM25_WEIGHT="0")
    with closing(app.open_library()) as library:
        own = app.retriever(library).search(QUESTION, 4).hits
    store = app.langchain_vector_store()
    assert isinstance(store, VectorStore)
    documents = store.similarity_search(QUESTION, k=4)
    assert [document.id for document in documents] == [str(hit.chunk.id) for hit in own]
    assert [document.page_content for document in documents] == [hit.text for hit in own]
    for document, hit in zip(documents, own, strict=True):
        assert {**document.metadata, "score": 0} == {**expected(hit), "score": 0}
    assert any(document.metadata["page"] < document.metadata["last_page"] for document in documents)
    assert all(on_their_pages(d.metadata, d.page_content) for d in documents if d.metadata["file"] == "glaciers.pdf")
    scored = store.similarity_search_with_score(QUESTION, k=4)
    assert [score for _, score in scored] == pytest.approx([hit.dense for hit in own], abs=1e-5)


def test_the_vector_store_as_a_retriever_and_by_marginal_relevance(app: HashingApp) -> None:
    store = app.langchain_vector_store()
    found = store.as_retriever(search_kwargs={"k": 2}).invoke(QUESTION)
    assert [document.id for document in found] == [d.id for d in store.similarity_search(QUESTION, k=2)]
    varied = store.max_marginal_relevance_search(QUESTION, k=2, fetch_k=5)
    assert varied[0].id == found[0].id
    assert len({document.id for document in varied}) == 2
    assert store.docstore.search("12345") == "ID 12345 not found."  # LangChain's own message


def test_nothing_is_pickled_and_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("pickled")

    app = shelf(tmp_path)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.faiss"))
    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, forbidden)
    app.langchain_vector_store().similarity_search(QUESTION)
    app.langchain_retriever().invoke(QUESTION)
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.faiss")) == before
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pkl", ".pickle")]


def test_the_embeddings_are_the_embedders(app: HashingApp) -> None:
    embedder = app.hashing
    embeddings = FolioEmbeddings(embedder)
    assert embeddings.embed_query("ice") == pytest.approx(embedder.embed_query("ice").tolist())
    assert embeddings.embed_documents(["ice", "fur"]) == embedder.embed_passages(["ice", "fur"]).tolist()
