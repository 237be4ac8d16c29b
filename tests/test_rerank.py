"""The rerankers: the built-in one, and the loading of a cross-encoder with weights made here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from config import Settings
from folio import crossencoder
from folio.app import App
from folio.bert import graph
from folio.crossencoder import CrossEncoderReranker, local_files
from folio.errors import ModelMissing
from folio.minilm import BuiltinEmbedder
from folio.protocols import Reranker
from folio.rerank import CLOSELY, BuiltinReranker
from folio.retrieve import reranked
from folio.types import Hit, Tokens
from tests.helpers.factories import even_weights, one_page_hits
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.paths import ROOT

NAME = "cross-encoder/ms-marco-MiniLM-L-6-v2"
QUESTION = "What do sea otters eat?"
TEXTS = (
    "The glacier is long and the ice is thick.",
    "Sea otters eat urchins and clams.",
    "Urchins eat kelp.",
    "Sea otters float in kelp.",
)


def settings(folder: Path, **chosen: str) -> Settings:
    return Settings(_env_file=None, MODELS_DIR=folder, **chosen)  # type: ignore[call-arg,arg-type]


def found(dense: Sequence[float | None], lexical: Sequence[float | None]) -> list[Hit]:
    hits = one_page_hits(*TEXTS)
    return [replace(hit, dense=d, lexical=b) for hit, d, b in zip(hits, dense, lexical, strict=True)]


# Built in


def builtin() -> BuiltinReranker:
    """Over so many dimensions that words which are not alike have nothing in common."""
    return BuiltinReranker(HashingEmbedder(4096))


def test_the_built_in_reranker_puts_first_what_holds_the_questions_words() -> None:
    reranker: Reranker = builtin()
    hits = found([0.5] * 4, [1.0] * 4)
    scores = reranker.scores(QUESTION, hits, even_weights(QUESTION))
    # Of sea, otters and eat: matched in whole and in a window, the BM25 score, pairs of neighbours, the best sentence
    assert scores == [
        pytest.approx((10 * whole + 10 * whole + 1 + pairs + whole) / 23, abs=1e-6)
        for whole, pairs in [(0, 0), (1, 1), (1 / 3, 0), (2 / 3, 1 / 2)]
    ]
    order = [hit.paper.file for hit in reranked(reranker, QUESTION, hits, even_weights(QUESTION))]
    assert order == ["paper2.pdf", "paper4.pdf", "paper3.pdf", "paper1.pdf"]


def test_a_rare_word_counts_for_more_than_common_ones() -> None:
    weights = {"sea": 1.0, "otter": 1.0, "eat": 5.0}
    scores = builtin().scores(QUESTION, found([0.5] * 4, [1.0] * 4), weights)
    assert scores[1] > scores[2] > scores[3] > scores[0]


def test_the_title_is_read_with_the_passage() -> None:
    (hit,) = one_page_hits("Urchins are what they eat.")
    hits = [hit, replace(hit, paper=replace(hit.paper, title="On Sea otters"))]
    weights = even_weights(QUESTION)
    assert builtin().scores(QUESTION, hits, weights) == [
        pytest.approx((20 / 3 + 1 / 3) / 23, abs=1e-6),
        pytest.approx((20 + 1 / 2 + 1 / 3) / 23, abs=1e-6),  # neighbours in the title are; a title is no sentence
    ]


def test_what_is_asked_for_stands_close_together() -> None:
    apart = f"Sea otters float in kelp. {'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp."
    near = f"{'The glacier is long and the ice is thick. ' * 10}Urchins eat kelp. Sea otters float in kelp."
    hits = one_page_hits(apart, near)
    scores = builtin().scores(QUESTION, hits, even_weights(QUESTION))
    assert scores == [pytest.approx((10 + 10 * part + 1 / 2 + 2 / 3) / 23, abs=1e-6) for part in (2 / 3, 1)]


def test_the_built_in_reranker_heeds_both_searches() -> None:
    weights = even_weights("xyzzy")
    by_bm25 = reranked(builtin(), "xyzzy", found([None] * 4, [2.0, None, 1.0, 8.0]), weights)
    assert [hit.paper.file for hit in by_bm25] == ["paper4.pdf", "paper1.pdf", "paper3.pdf", "paper2.pdf"]
    assert [hit.score for hit in by_bm25] == [pytest.approx(part / 23) for part in (1, 1 / 4, 1 / 8, 0)]
    # The cosine has its say in what is read closely.
    close = [replace(hit, dense=0.01 * place) for place, hit in enumerate(one_page_hits(*["Otters float."] * 15), 1)]
    by_cosine = reranked(builtin(), "otters", close, even_weights("otters"))
    assert [hit.paper.file for hit in by_cosine] == [f"paper{n}.pdf" for n in (*range(4, 16), 3, 2, 1)]
    # First sight: the cosine by the largest, all words held, and all in one sentence
    sights = [0.3 * cosine / 15 + 0.2 + 0.1 for cosine in (3, 2, 1)]
    behind = [21 / 23 * 0.99 * sight / sights[0] for sight in sights]
    assert [hit.score for hit in by_cosine] == [pytest.approx(score) for score in [21 / 23] * 12 + behind]


def test_the_best_at_first_sight_are_read_closely_and_no_others() -> None:
    read: list[str] = []

    class Reader(HashingEmbedder):
        def tokens(self, texts: Sequence[str]) -> list[Tokens]:
            read.extend(texts)
            return super().tokens(texts)

    texts = [f"Otters number {number} float." for number in range(14)]
    hits = [replace(hit, lexical=float(place)) for place, hit in enumerate(one_page_hits(*texts))]
    scores = BuiltinReranker(Reader(4096)).scores("otters", hits, even_weights("otters"))
    assert read == ["otters", "A Paper", *reversed(texts[14 - CLOSELY :])]  # one title for all of them
    assert scores == sorted(scores)
    assert len(set(scores)) == 14


def test_the_built_in_reranker_takes_what_there_is() -> None:
    assert builtin().scores(QUESTION, [], even_weights(QUESTION)) == []
    assert builtin().scores("", found([None] * 4, [None] * 4), {}) == [0.0] * 4
    opposite = builtin().scores("", found([-0.5] * 4, [0.0] * 4), {})
    assert opposite == [0.0] * 4


def test_ties_keep_the_order_in_which_they_came() -> None:
    hits = [replace(hit, dense=0.5) for hit in one_page_hits(*TEXTS * 5)]
    assert reranked(builtin(), "xyzzy", hits, {}) == [replace(hit, score=0.0) for hit in hits]


def test_other_words_for_it_come_before_a_stray_word_of_it() -> None:
    hits = one_page_hits(
        "Ships that crossed the sea in winter were often lost, and their crews with them.",
        "These marine mammals feed on urchins, clams and crabs.",
    )
    hits = [replace(hit, lexical=bm25) for hit, bm25 in zip(hits, (3.0, None), strict=True)]
    weights = even_weights(QUESTION)
    by_words = reranked(builtin(), QUESTION, hits, weights)
    assert [hit.paper.file for hit in by_words] == ["paper1.pdf", "paper2.pdf"]
    by_meaning = reranked(BuiltinReranker(BuiltinEmbedder()), QUESTION, hits, weights)
    assert [hit.paper.file for hit in by_meaning] == ["paper2.pdf", "paper1.pdf"]


# A cross-encoder: a small one of the same architecture, its weights random


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "ms-marco-MiniLM-L-6-v2"
    folder.mkdir()
    letters = [*"abcdefghijklmnopqrstuvwxyz?."]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        num_labels=1,
        initializer_range=1.0,  # so that the scores differ
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_a_cross_encoder_scores_as_sentence_transformers_does(
    cross_encoder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import numpy as np
    from sentence_transformers import CrossEncoder

    capfd.readouterr()
    reranker: Reranker = CrossEncoderReranker(cross_encoder, NAME)
    hits = one_page_hits(*TEXTS)
    scores = reranker.scores(QUESTION, hits, {})
    assert capfd.readouterr() == ("", "")  # no progress bar of the loading, nor anything else
    model = CrossEncoder(str(cross_encoder), device="cpu", local_files_only=True)
    expected = model.predict([(QUESTION, text) for text in TEXTS])  # of one label: through a sigmoid
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert len({round(score, 4) for score in scores}) == 4
    assert all(0 <= score <= 1 for score in scores)
    order = [hits[place].paper.file for place in np.argsort(-expected)]
    assert [hit.paper.file for hit in reranked(reranker, QUESTION, hits, {})] == order
    assert reranker.scores(QUESTION, [], {}) == []
    assert reranker.name == NAME


def test_its_graph_is_made_once_and_then_needs_no_torch(cross_encoder: Path, tmp_path: Path) -> None:
    hits = one_page_hits(*TEXTS)
    expected = CrossEncoderReranker(cross_encoder, NAME, tmp_path).scores(QUESTION, hits, {})
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from folio.crossencoder import CrossEncoderReranker\n"
        "from tests.helpers.factories import one_page_hits\n"
        "given = json.load(sys.stdin)\n"
        "before = set(sys.modules)\n"
        "reranker = CrossEncoderReranker(Path(sys.argv[1]), 'x', Path(sys.argv[2]))\n"
        "scores = reranker.scores(given['question'], one_page_hits(*given['texts']), {})\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(json.dumps([scores, sorted(new & {'torch', 'transformers', 'sentence_transformers', 'onnx'})]))\n"
    )
    given = json.dumps({"question": QUESTION, "texts": TEXTS})
    ran = subprocess.run(
        [sys.executable, "-c", code, str(cross_encoder), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == [expected, []]


def test_the_rounded_graph_is_kept_where_it_agrees_and_the_exact_one_where_it_does_not(
    cross_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = CrossEncoderReranker(cross_encoder, NAME)
    expected = reranker._by_torch()(crossencoder.TRIED)
    sizes, tensors = crossencoder._read(cross_encoder)
    exact, rounded = (graph(tensors, sizes, terms, classifier=True) for terms in (0, 2))
    monkeypatch.setattr(crossencoder, "AS_ROUNDED", 0.5)
    assert reranker._agreeing(expected) == rounded
    monkeypatch.setattr(crossencoder, "AS_ROUNDED", 0.0)
    assert reranker._agreeing(expected) == exact
    assert reranker._agreeing(expected + 0.1) == b""  # of another model


def another_activation(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))


def without_the_fast_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize("change", [another_activation, without_the_fast_tokenizer])
def test_a_model_of_another_kind_is_run_by_sentence_transformers(
    cross_encoder: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    from sentence_transformers import CrossEncoder

    folder = shutil.copytree(cross_encoder, tmp_path / "model")
    change(folder)
    hits = one_page_hits(*TEXTS)
    expected = CrossEncoder(str(folder), device="cpu", local_files_only=True).predict(
        [(QUESTION, text) for text in TEXTS]
    )
    for _ in range(2):  # the second time it is known that there is no graph
        scores = CrossEncoderReranker(folder, NAME, tmp_path / "onnx").scores(QUESTION, hits, {})
        assert scores == pytest.approx(expected.tolist(), abs=1e-6)
    assert list(tmp_path.glob("onnx/*.onnx")) == []


def test_half_a_character_is_no_error(cross_encoder: Path) -> None:
    (score,) = CrossEncoderReranker(cross_encoder, NAME).scores(QUESTION, one_page_hits("half \ud835 a pair"), {})
    assert 0 <= score <= 1


def test_the_hubs_cache_is_looked_into_without_its_package(
    cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "hub" / "models--cross-encoder--ms-marco-MiniLM-L-6-v2"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("abc123")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert local_files(NAME, tmp_path / "models") is None
    shutil.copytree(cross_encoder, cached / "snapshots" / "abc123")
    assert local_files(NAME, tmp_path / "models") == cached / "snapshots" / "abc123"
    for name in ("", "a/b/c", "x" * 5000, "\0", "../.."):
        assert local_files(name, tmp_path / "models") is None


def cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])


def of_another_size(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 32', '"hidden_size": 64'))


def without_words(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        of_another_size,
        without_words,
        lambda folder: (folder / "model.safetensors").write_bytes(b"junk" * 100),
        lambda folder: (folder / "model.safetensors").unlink(),
        lambda folder: (folder / "config.json").write_text("{"),
        lambda folder: (folder / "config.json").write_text("{}"),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
    ],
)
def test_damaged_files_are_told_in_one_line(
    cross_encoder: Path, tmp_path: Path, damage: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(cross_encoder, tmp_path / "model")
    damage(folder)
    capfd.readouterr()
    with pytest.raises(ModelMissing) as caught:
        CrossEncoderReranker(folder, NAME).scores(QUESTION, one_page_hits(*TEXTS), {})
    assert str(folder) in caught.value.happened
    assert "\n" not in caught.value.happened
    assert caught.value.remedy == "Fetch it again with `make models`, or set RERANKER=builtin."
    assert capfd.readouterr() == ("", "")


def test_where_a_cross_encoder_is_looked_for(
    cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    named = App(settings(tmp_path, CROSS_ENCODER=str(cross_encoder)), print)
    assert named.cross_encoder_files() == cross_encoder
    in_models = App(settings(cross_encoder.parent), print)
    assert in_models.cross_encoder_files() == cross_encoder
    reranker = in_models.reranker()
    assert isinstance(reranker, CrossEncoderReranker)
    assert reranker.name == NAME


# Which one is taken


def test_a_choice_is_kept_and_auto_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notices: list[str] = []

    def app(choice: str) -> App:
        return App(settings(tmp_path, RERANKER=choice, CROSS_ENCODER="nobody/has-this"), notices.append)

    assert app("none").reranker() is None
    assert isinstance(app("builtin").reranker(), BuiltinReranker)
    with pytest.raises(ModelMissing) as caught:
        app("crossencoder").reranker()
    assert caught.value.happened == "The files of nobody/has-this are not on this computer."
    assert "`make models`" in caught.value.remedy
    assert notices == []
    automatic = app("auto")
    assert isinstance(automatic.reranker(), BuiltinReranker)
    automatic.announce()
    (notice,) = notices
    assert "reranker" in notice
    assert "`make models` fetches nobody/has-this" in notice
