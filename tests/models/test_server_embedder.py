"""The embedder over Ollama, against a server on the loopback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from folio.errors import CloudModel, ContextTooSmall, ModelFailed, ModelMissing, ModelServerError, NoVector, WrongModel
from folio.models.ollama import OllamaServer
from folio.models.server_embedder import ServerEmbedder, _parts
from folio.protocols import Embedder, TitledEmbedder
from tests.helpers.ollama_models import LLAMA, MINILM, NOMIC, hash_embedding
from tests.helpers.ollama_server import OllamaStandIn

Make = Callable[..., ServerEmbedder]


@pytest.fixture
def make(ollama_server: OllamaStandIn) -> Make:
    def embedder(model: str = "nomic-embed-text", **kwargs: Any) -> ServerEmbedder:
        server = OllamaServer(ollama_server.url, timeout_s=kwargs.pop("timeout_s", 5))
        return ServerEmbedder(server, model, **{"batch": 4, "first_wait_s": 0.001, **kwargs})

    return embedder


def test_passages_and_queries_have_their_own_prefix(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder: Embedder = make()
    passages = embedder.embed_passages(["sea ice melts", "gradients vanish"])
    query = embedder.embed_query("ice")
    assert ollama_server.embedded() == [
        "search_document: sea ice melts",
        "search_document: gradients vanish",
        "search_query: ice",
    ]
    assert (passages.dtype.name, passages.shape) == ("float32", (2, 64))
    assert (query.dtype.name, query.shape) == ("float32", (64,))
    np.testing.assert_allclose(passages[0], hash_embedding("search_document: sea ice melts", 64), atol=1e-6)
    np.testing.assert_allclose(query, hash_embedding("search_query: ice", 64), atol=1e-6)
    assert passages[0] @ query > passages[1] @ query


def own_model(server: OllamaStandIn, name: str, **changed: Any) -> str:
    """The name of a further model of the server, like nomic-embed-text but for these changes."""
    tagged = name if ":" in name else f"{name}:latest"
    server.models[tagged] = replace(NOMIC, name=tagged, **changed)
    return name


def test_embeddinggemma_reads_the_title_of_a_paper(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make(own_model(ollama_server, "embeddinggemma:300m"))
    assert isinstance(embedder, TitledEmbedder)
    assert embedder.reads_titles
    assert embedder.identity()["passage_prefix"] == "title: {title} | text: "
    vectors = embedder.embed_titled([("one", "How Otters\nSleep"), ("one", ""), ("two", "Ice | text: no")])
    nomic = make()
    assert not nomic.reads_titles
    nomic.embed_titled([("one", "How Otters Sleep")])
    assert ollama_server.embedded() == [
        "title: How Otters Sleep | text: one",
        "title: none | text: one",
        "title: Ice / text: no | text: two",
        "search_document: one",
    ]
    assert not np.array_equal(vectors[0], vectors[1])


@pytest.mark.parametrize(
    ("model", "passage", "query"),
    [
        ("mxbai-embed-large", "one", "Represent this sentence for searching relevant passages: two"),
        ("embeddinggemma:300m", "title: none | text: one", "task: search result | query: two"),
        ("me/multilingual-e5-base", "passage: one", "query: two"),
        ("me/nomic-embed-text-v2-moe", "search_document: one", "search_query: two"),
        ("hf.co/Qwen/Qwen3-Embedding-0.6B-GGUF:Q8_0", "one",
         "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:two"),
        ("all-minilm", "one", "two"),
        ("somebody/embedder", "one", "two"),
    ],
)  # fmt: skip
def test_a_model_reads_what_its_makers_say(
    ollama_server: OllamaStandIn, make: Make, model: str, passage: str, query: str
) -> None:
    embedder = make(own_model(ollama_server, model))
    embedder.embed_passages(["one"])
    embedder.embed_query("two")
    assert ollama_server.embedded() == [passage, query]
    assert embedder.prefixes_unknown == (model == "somebody/embedder")
    identity = embedder.identity()
    assert identity["passage_prefix"].replace("{title}", "none") == passage.removesuffix("one")
    assert identity["query_prefix"] == query.removesuffix("two")


def test_given_prefixes_are_used_to_the_letter(ollama_server: OllamaStandIn, make: Make) -> None:
    for given in ({"query_prefix": "Q>"}, {"passage_prefix": "P> "}, {"query_prefix": "", "passage_prefix": ""}):
        embedder = make(**given)
        embedder.embed_passages(["one"])
        embedder.embed_query("two")
        assert not embedder.prefixes_unknown
    assert ollama_server.embedded() == ["search_document: one", "Q>two", "P> one", "search_query: two", "one", "two"]


def test_a_long_prefix_fits_with_its_text(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.count_tokens = lambda text: len(text.encode()) + 2  # the worst that a tokenizer can do
    embedder = make(own_model(ollama_server, "qwen3-embedding", context_length=512))
    embedder.embed_query("ice " * 130)
    embedder.embed_passages(["ice " * 130])
    assert ollama_server.cut == []
    assert embedder.identity()["part_bytes"] == "464"  # nothing is put before a passage
    with pytest.raises(ContextTooSmall, match="which a prefix of 600 characters fills"):
        make("qwen3-embedding", passage_prefix="x" * 600)
    with pytest.raises(ContextTooSmall, match="reads only 48 tokens"):
        make(own_model(ollama_server, "m", context_length=48))


def test_identity(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make()
    assert embedder.name == "nomic-embed-text:latest (Ollama)"
    assert embedder.identity() == {
        "embedder": "ollama",
        "model": "nomic-embed-text:latest",
        "digest": ollama_server.models["nomic-embed-text:latest"].digest,
        "weights": NOMIC.blobs[0],
        "dimension": "64",
        "passage_prefix": "search_document: ",
        "query_prefix": "search_query: ",
        "part_bytes": "2000",
        "normalised": "unit",
    }
    assert ollama_server.embedded() == []  # the server says what is needed; no model is loaded for it


def test_the_dimension_is_measured_where_the_server_does_not_say(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make()
    embedder._model = replace(embedder._model, embedding_length=None)
    assert (embedder.dimension, embedder.dimension) == (64, 64)
    assert ollama_server.embedded() == ["dimension"]


def test_texts_go_in_batches_and_keep_their_order(ollama_server: OllamaStandIn, make: Make) -> None:
    texts = [f"passage number {'x' * length}" for length in range(1, 11)]
    vectors = make().embed_passages(texts)
    assert make().embed_passages([]).shape == (0, 64)
    assert [len(body["input"]) for body in ollama_server.bodies("/api/embed")] == [4, 4, 2]
    assert {body["options"]["num_ctx"] for body in ollama_server.bodies("/api/embed")} == {2048}
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_allclose(vector, hash_embedding(f"search_document: {text}", 64), atol=1e-6)


def test_a_long_text_is_embedded_in_parts_and_never_cut(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.count_tokens = lambda text: len(text.encode()) + 2  # the worst that a tokenizer can do
    long = "ice " * 750 + "glacier " * 250  # 5,000 bytes: parts of 2,000, 2,000 and 1,000
    vectors = make(batch=2).embed_passages(["before", long, "after"])
    assert ollama_server.cut == []
    assert [len(text) - len("search_document: ") for text in ollama_server.embedded()] == [6, 2000, 2000, 1000, 5]
    own = [np.array(hash_embedding(text, 64)) for text in ollama_server.embedded()]
    mean = 2 * own[1] + 2 * own[2] + own[3]
    for vector, expected in zip(vectors, [own[0], mean / np.linalg.norm(mean), own[4]], strict=True):
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    assert "".join(t.removeprefix("search_document: ") for t in ollama_server.embedded()[1:4]) == long
    make().embed_query(long)
    assert ollama_server.cut == []


def test_a_server_is_asked_to_refuse_rather_than_to_cut(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make()
    embedder.embed_passages(["sea ice", "melts"])
    embedder.embed_query("ice")
    bodies = ollama_server.bodies("/api/embed")
    assert [body["truncate"] for body in bodies] == [False, False]
    assert not any(body.keys() & {"shift", "tools"} for body in bodies)
    ollama_server.count_tokens = lambda text: 1000 * len(text)  # a tokenizer that no limit in bytes foresees
    with pytest.raises(ContextTooSmall, match="The text is longer than the context of nomic-embed-text"):
        embedder.embed_query("ice")
    assert ollama_server.cut == []


def test_a_small_window_makes_small_parts(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.count_tokens = lambda text: len(text.encode()) + 2
    ollama_server.models[MINILM.name] = MINILM
    make("all-minilm").embed_passages(["ice " * 130])
    assert [len(text) for text in ollama_server.embedded()] == [208, 208, 104]
    assert ollama_server.cut == []


@pytest.mark.parametrize(
    ("context", "parameters", "part_bytes"),
    [(8192, "", "2000"), (8192, "num_ctx 1024", "976"), (512, "num_ctx 8192", "464"), (0, "", "464")],
)
def test_the_window_is_the_smaller_of_what_the_server_says(
    ollama_server: OllamaStandIn, make: Make, context: int, parameters: str, part_bytes: str
) -> None:
    model = own_model(ollama_server, "m", context_length=context, parameters=parameters)
    assert make(model).identity()["part_bytes"] == part_bytes


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("", 4, [""]),
        ("abcd", 4, ["abcd"]),
        ("ab cd", 4, ["ab ", "cd"]),
        ("ab\ncd e", 4, ["ab\n", "cd e"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("äää", 4, ["ää", "ä"]),
        ("a€€", 4, ["a€", "€"]),
        ("😀😀", 5, ["😀", "😀"]),
        ("a\ud800b", 4, ["a?b"]),
    ],
)
def test_parts(text: str, limit: int, parts: list[str]) -> None:
    assert list(_parts(text, limit)) == parts


def test_passing_errors_are_tried_again_but_not_for_ever(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.faults.busy, ollama_server.faults.fails, ollama_server.faults.dropped = 1, 1, 2
    vector = make(retries=4).embed_query("ice")
    assert ollama_server.embedded() == ["search_query: ice"] * 5
    np.testing.assert_allclose(vector, hash_embedding("search_query: ice", 64), atol=1e-6)
    for retries, texts in ((2, 1), (0, 9)):
        ollama_server.faults.busy, before = 100, len(ollama_server.bodies("/api/embed"))
        with pytest.raises(ModelServerError, match="busy"):
            make(retries=retries).embed_passages(["ice"] * texts)
        assert len(ollama_server.bodies("/api/embed")) == before + retries + 1  # a failed batch ends the work


def test_a_runner_killed_while_embedding_is_tried_again(ollama_server: OllamaStandIn, make: Make) -> None:
    faults = ollama_server.faults
    faults.status, faults.error = 400, 'do embedding request: Post "http://127.0.0.1:36123/embedding": EOF'
    faults.fails = 2
    assert make().embed_passages(["one"]).shape == (1, 64)
    assert len(ollama_server.bodies("/api/embed")) == 3
    faults.fails = 9
    with pytest.raises(ModelFailed) as caught:
        make(retries=1).embed_passages(["one"])
    assert caught.value.happened.startswith("Ollama stopped while it was running nomic-embed-text:latest: ")
    assert len(ollama_server.bodies("/api/embed")) == 5
    faults.fails, faults.error = 9, "the input is bad"
    with pytest.raises(ModelServerError, match="status 400"):
        make().embed_passages(["one"])
    assert len(ollama_server.bodies("/api/embed")) == 6


def test_parts_that_cancel_each_other_out_give_no_vector(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.faults.garbage = "opposite"
    with pytest.raises(ModelServerError, match="returned a vector of zeros"):
        make().embed_passages(["a" * 4000])


@pytest.mark.parametrize(
    ("garbage", "happened"),
    [
        ("html", "did not answer like an Ollama server"),
        ("json", "did not answer like an Ollama server"),
        ("list", "did not answer like an Ollama server"),
        ("count", "returned 1 vectors for 2 texts"),
        ("dimension", "returned a vector of 63 numbers where the model has 64"),
        ("nan", "returned a vector with a number that is not finite"),
        ("zero", "returned a vector of zeros"),
        ("tiny", "returned a vector of zeros"),
        ("large", "returned a vector with numbers that are too large"),
        ("huge", "returned a vector with numbers that are too large"),
        ("true", "returned a vector with something in it that is not a number"),
        ("text", "returned a vector with something in it that is not a number"),
        ("no list", "returned something that is not a list of vectors"),
    ],
)
def test_garbage_is_an_error_at_once(ollama_server: OllamaStandIn, make: Make, garbage: Any, happened: str) -> None:
    embedder = make()
    ollama_server.faults.garbage = garbage
    with pytest.raises(ModelServerError, match=happened):
        embedder.embed_passages(["one", "two"])
    assert len(ollama_server.bodies("/api/embed")) == 1


def test_a_silent_server_is_an_error_after_the_timeout(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make(timeout_s=0.2)
    ollama_server.faults.first_byte_s = 5
    with pytest.raises(ModelServerError, match="silent for too long"):
        embedder.embed_query("ice")
    assert len(ollama_server.embedded()) == 1


def test_an_unusable_model_is_refused_at_once(ollama_server: OllamaStandIn, make: Make) -> None:
    embedder = make()
    del ollama_server.models["nomic-embed-text:latest"]
    ollama_server.models["far:latest"] = replace(LLAMA, name="far:latest", remote_host="https://far.example")
    for model, error, happened in (
        ("all-minilm", ModelMissing, "all-minilm"),
        ("llama3.1:8b", WrongModel, r"llama3\.1:8b is not an embedding model"),
        ("far", CloudModel, "far is a cloud model"),
    ):
        with pytest.raises(error, match=happened):
            make(model)
    with pytest.raises(ModelMissing, match="nomic-embed-text"):
        embedder.embed_query("ice")


@pytest.mark.parametrize("place", range(6))
def test_a_text_without_a_vector_is_found_and_left_out(ollama_server: OllamaStandIn, make: Make, place: int) -> None:
    ollama_server.no_vector = "qqq"
    texts = [f"ice {number}" for number in range(6)]
    texts[place] = "qqq"
    vectors = make().embed_passages(texts)
    assert [bool(row.any()) for row in vectors] == [number != place for number in range(6)]
    assert np.allclose(np.linalg.norm(np.delete(vectors, place, axis=0), axis=1), 1, atol=1e-6)
    assert len(ollama_server.bodies("/api/embed")) <= 2 + 2 * 2  # no request is repeated


def test_a_part_without_a_vector_does_not_count_in_the_mean(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.no_vector = "qqq"
    embedder = make(own_model(ollama_server, "small", context_length=256))
    words = "glaciers move slowly " * 9
    alone, mixed, none = embedder.embed_passages([words, f"{words}{'q' * 200}", "q" * 400])
    np.testing.assert_allclose(mixed, alone, atol=1e-6)
    assert not none.any()


def test_a_question_or_a_model_without_vectors_is_an_error(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.no_vector = "qqq"
    embedder = make()
    with pytest.raises(NoVector, match="no vector for this question"):
        embedder.embed_query("qqq")
    with pytest.raises(NoVector, match="has no vector for a text: failed to encode response: json: unsupported value"):
        make().embed_passages(["qqq"] * 20)
    assert embedder.embed_passages(["ice"] * 12 + ["qqq"] * 9).any(axis=1).sum() == 12
