"""What embedding models were trained to read before a query and before a passage.

A model that was trained with a prefix ranks worse without it. The facts are from the models' cards; each row names its
card. The names are those that people pull with Ollama: its own library's, and GGUF files of the same models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# In a prefix: the title of the passage's paper
from folio.text import one_line

TITLE = "{title}"
_NO_TITLE = "none"  # as embeddinggemma's card says
MAX_TITLE = 200  # bytes of UTF-8


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What is put before each text, to the letter, but for TITLE in that of a passage."""

    query: str = ""
    passage: str = ""


NONE = Prefixes()
_SEARCHING = Prefixes(query="Represent this sentence for searching relevant passages: ")
# The instruction that both cards give for retrieval
_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"

# A pattern for the beginning of a model's base name (see base_name), and its prefixes. The first that matches holds.
_TABLE: tuple[tuple[str, Prefixes], ...] = (
    # https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 and .../nomic-embed-text-v2-moe, "Task instruction prefixes"
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    # https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1: the prompt is for queries alone
    (r"mxbai-embed-(?:large|2d-large)", _SEARCHING),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-l-v2.0 and -m-v2.0
    (r"snowflake-arctic-embed(?:2|-[ml]-v2)", Prefixes(query="query: ")),
    # https://huggingface.co/Snowflake/snowflake-arctic-embed-m and its sizes xs, s, m, m-long, m-v1.5 and l
    (r"snowflake-arctic-embed", _SEARCHING),
    # https://huggingface.co/BAAI/bge-m3: "no instruction" for queries or passages
    (r"bge-m3", NONE),
    # https://huggingface.co/BAAI/bge-large-zh-v1.5, "Model List"
    (r"bge-(?:small|base|large)-zh", Prefixes(query="为这个句子生成表示以用于检索相关文章：")),
    # https://huggingface.co/BAAI/bge-large-en-v1.5, "Model List". Ollama's bge-large is this model.
    (r"bge-(?:small|base|large)", _SEARCHING),
    # https://huggingface.co/intfloat/e5-mistral-7b-instruct and multilingual-e5-large-instruct: get_detailed_instruct
    (r"(?:intfloat-)?(?:multilingual-)?e5-[\w.-]*instruct", Prefixes(query=f"{_WEB_SEARCH} ")),
    # https://huggingface.co/intfloat/multilingual-e5-large and .../e5-large-v2: "query: " and "passage: "
    (r"(?:intfloat-)?(?:multilingual-)?e5-(?:small|base|large)", Prefixes("query: ", "passage: ")),
    # https://huggingface.co/google/embeddinggemma-300m, "Prompt Instructions": Retrieval-query, Retrieval-document
    (r"embeddinggemma", Prefixes("task: search result | query: ", f"title: {TITLE} | text: ")),
    # https://huggingface.co/Qwen/Qwen3-Embedding-0.6B: get_detailed_instruct, without a space after "Query:"
    (r"qwen3-embedding", Prefixes(query=_WEB_SEARCH)),
    # https://huggingface.co/ibm-granite/granite-embedding-278m-multilingual: its examples encode texts as they are
    (r"granite-embedding", NONE),
    # https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: texts as they are
    (r"all-minilm", NONE),
    # https://huggingface.co/sentence-transformers/paraphrase-multilingual-mpnet-base-v2: texts as they are
    (r"paraphrase-multilingual", NONE),
)
_KNOWN = tuple((re.compile(rf"{pattern}(?![a-z])"), prefixes) for pattern, prefixes in _TABLE)


def with_title(prefix: str, title: str) -> str:
    """A passage's prefix with the title of its paper, on one line, cut off at MAX_TITLE; "none" if there is none."""
    line = one_line(title.replace("|", "/"))
    cut = line.encode(errors="replace")[:MAX_TITLE].decode(errors="ignore")
    return prefix.replace(TITLE, cut or _NO_TITLE)


def base_name(model: str) -> str:
    """A model's name without namespaces and tag, in lower case.

    >>> base_name("hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0")
    'qwen3-embedding-0.6b-gguf'
    """
    return model.rpartition("/")[2].partition(":")[0].casefold()


def known_prefixes(model: str) -> Prefixes | None:
    """The prefixes of a model on Ollama, by its name; None for one that is not in the table."""
    name = base_name(model)
    return next((prefixes for pattern, prefixes in _KNOWN if pattern.match(name)), None)
