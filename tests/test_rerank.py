"""The rerankers: the built-in one, and the loading of a cross-encoder with weights made here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from desk import even_weights, one_page_hits

from config import Settings
from folio.app import App
from folio.errors import ModelMissing
from folio.protocols import Reranker
from folio.rerank import BuiltinReranker, CrossEncoderReranker
from folio.retrieve import reranked
from folio.types import Hit

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


def test_the_built_in_reranker_puts_first_what_holds_the_questions_words() -> None:
    reranker: Reranker = BuiltinReranker()
    hits = found([0.5] * 4, [1.0] * 4)
    scores = reranker.scores(QUESTION, hits, even_weights(QUESTION))
    assert len(scores) == 4
    assert all(0 <= score <= 1 for score in scores)
    assert max(scores) == scores[1]
    assert min(scores) == scores[0]


def test_the_built_in_reranker_heeds_both_searches() -> None:
    weights = even_weights("xyzzy")
    by_cosine = reranked(BuiltinReranker(), "xyzzy", found([0.1, 0.2, 0.9, 0.3], [None] * 4), weights)
    assert [hit.paper.file for hit in by_cosine] == ["paper3.pdf", "paper4.pdf", "paper2.pdf", "paper1.pdf"]
    by_bm25 = reranked(BuiltinReranker(), "xyzzy", found([None] * 4, [2.0, None, 1.0, 8.0]), weights)
    assert [hit.paper.file for hit in by_bm25] == ["paper4.pdf", "paper1.pdf", "paper3.pdf", "paper2.pdf"]


def test_the_built_in_reranker_takes_what_there_is() -> None:
    assert BuiltinReranker().scores(QUESTION, [], even_weights(QUESTION)) == []
    assert BuiltinReranker().scores("", found([None] * 4, [None] * 4), {}) == [0.0] * 4
    opposite = BuiltinReranker().scores("", found([-0.5] * 4, [0.0] * 4), {})
    assert opposite == [0.0] * 4


def test_ties_keep_the_order_in_which_they_came() -> None:
    hits = found([0.5] * 4, [None] * 4)
    assert reranked(BuiltinReranker(), "xyzzy", hits, {}) == [
        replace(hit, score=score) for hit, score in zip(hits, BuiltinReranker().scores("xyzzy", hits, {}), strict=True)
    ]


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
