"""Cross-encoders: loaded from files, run as ONNX graphs. Tests build a small one with random weights."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from config import Settings
from folio.errors import ModelMissing
from folio.model_choice import ModelChoice
from folio.models import cross_encoder as module
from folio.models.bert_onnx import build_graph, find_model, record_digests
from folio.models.cross_encoder import CrossEncoder, CrossEncoderReranker, OnnxPairs, PairModel, TorchPairs, read_model
from folio.protocols import Reranker
from folio.question.question import Question
from folio.search.retriever import reranked
from tests.helpers.cross_encoders import Kind, save_cross_encoder
from tests.helpers.factories import one_page_hits
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


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("models") / "ms-marco-MiniLM-L-6-v2")


def scores(folder: Path, cache: Path | None = None, texts: Sequence[str] = TEXTS) -> list[float]:
    """The scores of the texts by the model in a folder."""
    return CrossEncoderReranker(folder, NAME, cache).scores(Question(QUESTION), one_page_hits(*texts), {})


def reference(folder: Path) -> Any:
    """The scores of TEXTS by sentence-transformers; with one label: through a sigmoid."""
    from sentence_transformers import CrossEncoder as Reference

    model = Reference(str(folder), device="cpu", local_files_only=True)
    return model.predict([(QUESTION, text) for text in TEXTS])


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_cross_encoder_scores_as_sentence_transformers_does(
    tmp_path: Path, kind: Kind, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = save_cross_encoder(tmp_path / "model", kind)
    capfd.readouterr()
    reranker: Reranker = CrossEncoderReranker(folder, NAME, tmp_path / "onnx")
    hits = one_page_hits(*TEXTS)
    found = reranker.scores(Question(QUESTION), hits, {})
    assert capfd.readouterr() == ("", "")  # no progress bar, nor anything else
    expected = reference(folder)
    np.testing.assert_allclose(found, expected, atol=1e-5 if kind == "bert" else 1e-4)
    assert len({round(score, 4) for score in found}) == 4
    assert all(0 <= score <= 1 for score in [*found, *scores(folder, texts=["half \ud835 a pair"])])
    order = [hits[place].paper.file for place in np.argsort(-expected)]
    assert [hit.paper.file for hit in reranked(reranker, Question(QUESTION), hits, {})] == order
    assert reranker.scores(Question(QUESTION), [], {}) == []
    assert reranker.name == NAME
    assert len(list(tmp_path.glob("onnx/*.onnx"))) == 1
    assert scores_without([*TORCH, "onnx"], folder, tmp_path / "onnx") == found  # the graph is built once


def test_the_quantised_graph_is_used_only_if_it_is_accurate(
    cross_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = CrossEncoder(cross_encoder, NAME, otherwise="", check_pairs=module.CHECK_PAIRS)
    sizes, tensors = read_model(cross_encoder)
    exact, quantised = (build_graph(tensors, sizes, terms, classifier=True) for terms in (0, 2))
    monkeypatch.setattr(module, "QUANTISED_TOLERANCE", 0.5)
    assert encoder._build_graph() == (quantised, "")
    monkeypatch.setattr(module, "QUANTISED_TOLERANCE", 0.0)
    assert encoder._build_graph() == (exact, "")


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_exact_graph_gives_the_logits_of_sentence_transformers(tmp_path: Path, kind: Kind) -> None:
    folder = save_cross_encoder(tmp_path / "model", kind)
    sizes, tensors = read_model(folder)
    graph = OnnxPairs(folder, build_graph(tensors, sizes, 0, classifier=True))
    expected = np.stack(list(TorchPairs(folder).logits(module.CHECK_PAIRS)))
    found = np.stack(list(graph.logits(module.CHECK_PAIRS)))
    assert np.abs(found - expected).max() <= 1e-3 * max(1.0, float(np.abs(expected).max()))


WITHOUT = (
    "import json, sys\n"
    "sys.modules.update(dict.fromkeys(sys.argv[4:]))\n"  # as if they were not installed
    "from pathlib import Path\n"
    "from folio.errors import FolioError\n"
    "from folio.models.cross_encoder import CrossEncoderReranker\n"
    "from folio.question.question import Question\n"
    "from tests.helpers.factories import one_page_hits\n"
    "reranker = CrossEncoderReranker(Path(sys.argv[1]), 'x', Path(sys.argv[2]))\n"
    "try:\n"
    "    print(json.dumps(reranker.scores(Question(sys.argv[3]), one_page_hits(*json.load(sys.stdin)), {})))\n"
    "except FolioError as error:\n"
    "    print(json.dumps([type(error).__name__, error.happened, error.remedy]))\n"
)
TORCH = ("torch", "sentence_transformers", "transformers", "sklearn", "scipy")


def scores_without(packages: Sequence[str], folder: Path, cache: Path) -> list[Any]:
    """The scores of TEXTS where these packages are not installed, or the error."""
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(folder), str(cache), QUESTION, *packages],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(ran.stdout)
    return found


def test_a_graph_is_built_without_torch(cross_encoder: Path, tmp_path: Path) -> None:
    assert scores_without(TORCH, cross_encoder, tmp_path / "onnx") == scores(cross_encoder)


def test_a_missing_package_is_named_with_its_command(cross_encoder: Path, tmp_path: Path) -> None:
    assert scores_without(["onnx"], cross_encoder, tmp_path / "onnx") == [
        "ModelMissing",
        f"The cross-encoder in {cross_encoder} has not been prepared yet, which needs the package onnx.",
        "Run `make models`, or set RERANKER=builtin.",
    ]
    deberta = save_cross_encoder(tmp_path / "model", "deberta")
    name, happened, remedy = scores_without(TORCH, deberta, tmp_path / "onnx")
    assert name == "ModelMissing"
    assert happened.startswith(f"The cross-encoder in {deberta} cannot run as a graph (")
    assert happened.endswith("), and torch, which may run it, is not installed.")
    assert remedy == "Run `pip install -r requirements.txt`, or set RERANKER=builtin."


def with_further_weights(folder: Path) -> None:
    """A tensor that BERT has not, which a graph of BERT would leave out."""
    from safetensors.torch import load_file, save_file

    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    save_file({**tensors, "bert.encoder.layer.0.adapter.weight": tensors["classifier.bias"].clone()}, weights)


def another_activation(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))


def without_the_fast_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


@pytest.mark.parametrize("change", [another_activation, without_the_fast_tokenizer, with_further_weights])
def test_a_model_of_another_kind_is_run_by_sentence_transformers(
    cross_encoder: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(cross_encoder, tmp_path / "model")
    change(folder)
    expected = pytest.approx(reference(folder).tolist(), abs=1e-6)
    for _ in range(2):  # the second time the cache says that there is no graph
        assert scores(folder, tmp_path / "onnx") == expected
    assert list(tmp_path.glob("onnx/*.onnx")) == []


@pytest.mark.parametrize(("kind", "special"), [("bert", "[SEP]"), ("roberta", "</s>"), ("roberta", "<pad>")])
def test_special_tokens_in_a_text_are_text(tmp_path: Path, kind: Kind, special: str) -> None:
    folder = save_cross_encoder(tmp_path / "model", kind)
    models: list[PairModel] = [
        CrossEncoder(folder, NAME, otherwise="", check_pairs=module.CHECK_PAIRS).load(),
        TorchPairs(folder),
    ]
    assert isinstance(models[0], OnnxPairs)
    pair = (f"otters {special} eat", "urchins")
    for model in models:
        assert model.count_tokens(special) > 1
        assert model.max_tokens == 128
    one, other = (next(model.logits([pair])) for model in models)
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_model_with_several_labels_is_no_reranker(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "model", labels=("entailment", "neutral", "contradiction"))
    with pytest.raises(ModelMissing, match=r"cannot be loaded: it has 3 labels, and a reranker has one\.$"):
        scores(folder)


def test_hugging_face_cache_is_searched_without_its_package(
    cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "hub" / "models--cross-encoder--ms-marco-MiniLM-L-6-v2"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text("abc123")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_model(NAME, tmp_path / "models") is None
    shutil.copytree(cross_encoder, cached / "snapshots" / "abc123")
    assert find_model(NAME, tmp_path / "models") == cached / "snapshots" / "abc123"
    for name in ("", "a/b/c", "x" * 5000, "\0", "../.."):
        assert find_model(name, tmp_path / "models") is None


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
def test_damaged_files_are_reported_in_one_line(
    cross_encoder: Path, tmp_path: Path, damage: Callable[[Path], None], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(cross_encoder, tmp_path / "model")
    damage(folder)
    capfd.readouterr()
    with pytest.raises(ModelMissing) as caught:
        scores(folder)
    assert str(folder) in caught.value.happened
    assert "\n" not in caught.value.happened
    assert caught.value.remedy == "Delete the folder and run `make models`, or set RERANKER=builtin."
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocab.txt", "sha256.json"])
def test_files_that_are_not_as_they_were_downloaded_are_refused(cross_encoder: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(cross_encoder, tmp_path / "model")
    record_digests(folder)
    cache = tmp_path / "onnx"
    CrossEncoderReranker(folder, NAME, cache).load()
    status = (folder / name).stat()
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(ModelMissing, match=r"has changed since it was downloaded\.$"):
        CrossEncoderReranker(folder, NAME, cache).load()


def test_where_a_cross_encoder_is_searched(
    cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    named = ModelChoice(settings(tmp_path, CROSS_ENCODER=str(cross_encoder)), print)
    assert named.cross_encoder_files() == cross_encoder
    in_models = ModelChoice(settings(cross_encoder.parent), print)
    assert in_models.cross_encoder_files() == cross_encoder
    reranker = in_models.reranker()
    assert isinstance(reranker, CrossEncoderReranker)
    assert reranker.name == NAME
