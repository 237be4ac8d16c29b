"""NLI cross-encoders as verifiers. Tests build small ones with random weights, of both types that run as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from folio.errors import ModelMissing
from folio.models.bert_onnx import record_digests
from folio.models.cross_encoder import (
    NLI_CHECK_PAIRS,
    CrossEncoder,
    Labels,
    NliVerifier,
    OnnxPairs,
    PairModel,
    TorchPairs,
    _split,
    read_labels,
)
from folio.protocols import Claim, Entailment, PromptStart, Verifier
from tests.helpers.cross_encoders import Kind, save_cross_encoder

NAME = "cross-encoder/nli-MiniLM2-L6-H768"
NLI = ("contradiction", "entailment", "neutral")
KINDS: tuple[Kind, ...] = ("bert", "roberta")
CLAIMS = (
    Claim("otters eat clams.", "sea otters eat urchins and clams.", "otters"),
    Claim("the ice is thin.", "the ice is thick. it melts."),
    Claim("kelp grows.", "we thank the reviewers."),
)
LONG = " ".join(f"otter {'abcdefgh'[i]} eats kelp and {'stuvwxyz'[i]} clams." for i in range(8))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: save_cross_encoder(folder / kind, kind, NLI) for kind in KINDS}


def reference(folder: Path, pairs: Sequence[tuple[str, str]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The logits by transformers alone, which truncates only the premise."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), split_special_tokens=True)
    model = AutoModelForSequenceClassification.from_pretrained(str(folder)).eval()
    rows = []
    for premise, statement in pairs:
        given = tokenizer(premise, statement, truncation="only_first", max_length=128, return_tensors="pt")
        with torch.no_grad():
            rows.append(model(**given).logits[0].double().numpy())
    return np.stack(rows)


def shares(logits: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[list[float]]:
    odds = np.exp(logits)
    found: list[list[float]] = (odds / odds.sum(axis=-1, keepdims=True)).tolist()
    return found


def expected_of(folder: Path) -> list[list[float]]:
    """The shares of the labels for CLAIMS."""
    return shares(reference(folder, [(claim.premise, claim.statement) for claim in CLAIMS]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "labels", [NLI, ("Neutral", "CONTRADICTION", "Entailment"), ("entailment", "neutral", "contradicts")]
)
def test_the_labels_names_say_what_the_numbers_mean(
    tmp_path: Path, kind: Kind, labels: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    folder = save_cross_encoder(tmp_path / "model", kind, labels)
    capfd.readouterr()
    verifier: Verifier = NliVerifier(folder, NAME, tmp_path / "onnx")
    found = list(verifier.entails(CLAIMS))
    assert capfd.readouterr() == ("", "")
    expected = expected_of(folder)
    entails = next(at for at, name in enumerate(labels) if name.lower().startswith("entail"))
    contradicts = next(at for at, name in enumerate(labels) if name.lower().startswith("contra"))
    assert [one.entails for one in found] == pytest.approx([row[entails] for row in expected], abs=1e-4)
    assert [one.contradicts for one in found] == pytest.approx([row[contradicts] for row in expected], abs=1e-4)
    assert len({one.entails for one in found}) == 3
    assert len(list(tmp_path.glob("onnx/*.onnx"))) == 1
    again = NliVerifier(folder, NAME, tmp_path / "onnx")  # from the cached graph
    assert list(again.entails(CLAIMS)) == found
    assert verifier.for_answer(PromptStart("", "", 4096)) is verifier
    assert verifier.name == NAME
    assert list(verifier.entails([])) == []


@pytest.mark.parametrize("labels", [("not_entailment", "entailment"), ("0", "1"), ("supported", "unsupported")])
def test_a_model_of_two_labels_tells_only_what_is_supported(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = save_cross_encoder(tmp_path / "model", "roberta", labels)
    found = list(NliVerifier(folder, NAME).entails(CLAIMS))
    expected = expected_of(folder)
    yes = labels.index("supported") if "supported" in labels else 1
    assert [one.entails for one in found] == pytest.approx([row[yes] for row in expected], abs=1e-4)
    assert {one.contradicts for one in found} == {0.0}


def test_a_model_of_one_label_gives_a_probability(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "model")
    found = list(NliVerifier(folder, NAME).entails(CLAIMS))
    logits = reference(folder, [(claim.premise, claim.statement) for claim in CLAIMS])
    assert [one.entails for one in found] == pytest.approx((1 / (1 + np.exp(-logits[:, 0]))).tolist(), abs=1e-4)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["LABEL_0"], Labels(1, 0)),
        (["LABEL_0", "LABEL_1"], Labels(2, 1)),
        (["0", "1"], Labels(2, 1)),
        (["contradiction", "entailment", "neutral"], Labels(3, 1, 0)),
        (["ENTAILMENT", "NEUTRAL", "CONTRADICTION"], Labels(3, 0, 2)),
        (["entailment", "not_entailment"], Labels(2, 0)),
        (["NotEntailment", "Entailment"], Labels(2, 1)),
        (["hallucinated", "consistent"], Labels(2, 1)),
        (["inconsistent", "consistent"], Labels(2, 1)),
        (["SUPPORTS", "REFUTES", "neutral"], Labels(3, 0, 1)),
    ],
)
def test_labels(names: list[str], labels: Labels) -> None:
    assert read_labels(names) == labels


@pytest.mark.parametrize(
    "names",
    [
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("NEGATIVE", "POSITIVE"),
        ("entailment", "supported", "neutral"),
        ("neutral", "contradiction"),
        ("1", "0"),
    ],
)
def test_a_model_of_something_else_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    folder = save_cross_encoder(tmp_path / "model", labels=names)
    with pytest.raises(ModelMissing) as caught:
        list(NliVerifier(folder, NAME).entails(CLAIMS))
    labels = f"its labels are {', '.join(names)}, not entailment, neutral and contradiction"
    assert caught.value.happened == f"The cross-encoder in {folder} cannot be loaded: {labels}."
    assert caught.value.remedy == "Delete the folder and run `make models`, or set VERIFIER=none."


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_part_of_a_long_premise_counts(models: dict[str, Path], kind: str) -> None:
    model = CrossEncoder(models[kind], NAME, otherwise="", check_pairs=NLI_CHECK_PAIRS).load()
    assert isinstance(model, OnnxPairs)
    statement = "otter c eats kelp."
    room = model.max_tokens - model.special_tokens - model.count_tokens(statement)
    parts = _split(LONG, room, model)
    assert len(parts) > 1
    assert all(part in LONG and model.count_tokens(part) <= room for part in parts)
    expected = shares(reference(models[kind], [(part, statement) for part in parts]))
    (found,) = NliVerifier(models[kind], NAME).entails([Claim(statement, LONG)])
    best = max(row[1] for row in expected)
    assert found.entails == pytest.approx(best, abs=1e-3)
    assert found.contradicts == pytest.approx(min(1 - best, max(row[0] for row in expected)), abs=1e-3)


def test_parts_are_whole_sentences_that_overlap(models: dict[str, Path]) -> None:
    model: PairModel = TorchPairs(models["roberta"])  # a token for each letter
    assert _split("one. Two. Three. Four.", 100, model) == ["one. Two. Three. Four."]
    assert _split("One. Two. Three. Four.", 16, model) == ["One. Two. Three.", "Three. Four."]
    assert _split("One. Two. Three. Four.", 10, model) == ["One. Two.", "Three.", "Four."]
    assert _split("otters eat urchins and clams", 10, model) == ["otters eat", "urchins", "and clams"]
    assert "".join(_split("x" * 35, 10, model)) == "x" * 35


def test_what_is_not_known(models: dict[str, Path]) -> None:
    long = "otters eat clams and urchins and kelp. " * 3
    claims = [Claim(long, "otters eat."), Claim("otters eat.", " \n"), Claim("", "otters eat."), CLAIMS[0]]
    claims.append(Claim("half \ud835 a pair", "half \ud835 a pair"))  # a lone surrogate is no error
    found = list(NliVerifier(models["roberta"], NAME).entails(claims))
    assert [one == Entailment(None) for one in found] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("kind", ["roberta", "deberta"])
def test_a_model_of_another_type_is_run_by_sentence_transformers(tmp_path: Path, kind: Kind) -> None:
    folder = save_cross_encoder(tmp_path / "model", kind, NLI)
    config = folder / "config.json"
    if kind == "roberta":
        config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    expected = expected_of(folder)
    for _ in range(2):  # the second time the cache says that there is no graph
        found = list(NliVerifier(folder, NAME, tmp_path / "onnx").entails(CLAIMS))
        assert [one.entails for one in found] == pytest.approx([row[1] for row in expected], abs=1e-5)
    assert list(tmp_path.glob("onnx/*.onnx")) == []


def test_damaged_files_are_reported_in_one_line(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "model", "roberta", NLI)
    record_digests(folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    for gone, happened in (
        ("", "model.safetensors has changed since it was downloaded."),
        ("sha256.json", ""),
        ("config.json", ""),
    ):
        if gone:
            (folder / gone).unlink()
        with pytest.raises(ModelMissing) as caught:
            NliVerifier(folder, NAME).load()
        assert caught.value.happened.endswith(happened)
        assert "\n" not in caught.value.happened
        assert caught.value.remedy == "Delete the folder and run `make models`, or set VERIFIER=none."
