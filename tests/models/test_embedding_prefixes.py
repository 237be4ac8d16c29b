"""Which prefixes a model's name stands for."""

from __future__ import annotations

import pytest

from folio.models.server_embedder import NONE, Prefixes, base_name, known_prefixes, with_title

SEARCHING = Prefixes("Represent this sentence for searching relevant passages: ", "")
WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
E5 = Prefixes("query: ", "passage: ")
NOMIC = Prefixes("search_query: ", "search_document: ")


@pytest.mark.parametrize(
    ("model", "prefixes"),
    [
        ("nomic-embed-text:latest", NOMIC),
        ("nomic-embed-text:v1.5", NOMIC),
        ("me/nomic-embed-text-v2-moe:latest", NOMIC),
        ("hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q8_0", NOMIC),
        ("mxbai-embed-large:335m", SEARCHING),
        ("snowflake-arctic-embed:latest", SEARCHING),
        ("snowflake-arctic-embed:22m", SEARCHING),
        ("snowflake-arctic-embed-m-v1.5", SEARCHING),
        ("snowflake-arctic-embed2:568m", Prefixes("query: ")),
        ("hf.co/Snowflake/snowflake-arctic-embed-l-v2.0-GGUF", Prefixes("query: ")),
        ("bge-large:latest", SEARCHING),
        ("qllama/bge-small-en-v1.5:f16", SEARCHING),
        ("bge-m3:567m", NONE),
        ("quentinz/bge-large-zh-v1.5", Prefixes("为这个句子生成表示以用于检索相关文章：")),
        ("jeffh/intfloat-multilingual-e5-large:f16", E5),
        ("yxchia/multilingual-e5-base", E5),
        ("e5-small-v2", E5),
        ("multilingual-e5-large-instruct", Prefixes(f"{WEB_SEARCH} ")),
        ("hellord/e5-mistral-7b-instruct:Q4_0", Prefixes(f"{WEB_SEARCH} ")),
        ("embeddinggemma:300m", Prefixes("task: search result | query: ", "title: {title} | text: ")),
        ("qwen3-embedding:0.6b", Prefixes(WEB_SEARCH)),
        ("hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0", Prefixes(WEB_SEARCH)),
        ("granite-embedding:278m", NONE),
        ("all-minilm:33m", NONE),
        ("chroma/all-minilm-l6-v2-f32", NONE),
        ("somebody/embedder", None),
        ("nomic-embed-code", None),  # another model with other instructions
        ("bge-multilingual-gemma2", None),
        ("nomic-embed-text/other", None),  # a namespace is no name
    ],
)
def test_known_prefixes(model: str, prefixes: Prefixes | None) -> None:
    assert known_prefixes(model) == prefixes


def test_a_base_name_has_neither_namespace_nor_tag() -> None:
    names = ["m", "M:latest", "a/m:1", "hf.co/a/m:Q8_0", "localhost:5000/a/m:x"]
    assert [base_name(name) for name in names] == ["m"] * 5


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("How Otters Sleep", "How Otters Sleep"),
        ("", "none"),
        (" \n ", "none"),
        ("Two\nlines | text: of it", "Two lines / text: of it"),
        ("ü" * 150, "ü" * 100),
        ("x" * 199 + "ü", "x" * 199),
        ("{title} {0}", "{title} {0}"),
    ],
)
def test_a_prefix_with_a_title(title: str, line: str) -> None:
    assert with_title("title: {title} | text: ", title) == f"title: {line} | text: "
    assert with_title("search_document: ", title) == "search_document: "
