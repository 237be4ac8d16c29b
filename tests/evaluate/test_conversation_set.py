"""Folders of conversations by people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folio.errors import UsageError
from folio.evaluate import dataset
from folio.evaluate.dataset import Document, Question, Rewrite
from tests.helpers.paths import ROOT

SHARED = ROOT.parent / "shared" / "mtrag"
LENGTH = "How long is the Aletsch glacier?"
PASSAGES: list[dict[str, Any]] = [
    {"_id": "ice", "title": " Ice ", "text": "The Aletsch glacier is 23 kilometres long."},
    {"_id": "thick", "text": "At the Konkordiaplatz it is 800 metres thick."},
]
ASKED = [{"speaker": "user", "text": LENGTH}, {"speaker": "agent", "text": "23 kilometres."}]
TURN: dict[str, Any] = {
    "id": "c<::>2",
    "history": ASKED,
    "question": " How thick is it? ",
    "gold": ["thick", "ice", "thick"],
    "answerability": "ANSWERABLE",
    "kind": "Follow-up",
    "answer": "not read",
}
REWRITE = {
    "id": "r<::>2",
    "history": [LENGTH, " "],
    "question": "And how thick?",
    "standalone": "How thick is Aletsch?",
}


def folder_of(folder: Path, **files: list[Any]) -> Path:
    folder.mkdir(exist_ok=True)
    content: dict[str, list[Any]] = {"passages": [*PASSAGES], "turns": [TURN], "rewrites": [REWRITE], **files}
    for name, values in content.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8")
    return folder


def test_a_folder_of_conversations(tmp_path: Path) -> None:
    loaded = dataset.load(folder_of(tmp_path / "glaciers"))
    assert loaded.name == "glaciers"
    assert loaded.documents == (Document("ice", "Ice", PASSAGES[0]["text"]), Document("thick", "", PASSAGES[1]["text"]))
    assert loaded.questions == (Question("c<::>2", "How thick is it?", "Follow-up", history=(LENGTH,)),)
    assert loaded.relevance == {"c<::>2": {"thick": 1, "ice": 1}}
    assert loaded.rewrites == (Rewrite("r<::>2", (LENGTH,), "And how thick?", "How thick is Aletsch?"),)


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"answerability": "partial"}, True),
        ({"answerability": "UNANSWERABLE", "gold": []}, False),
        ({"answerability": "UNDERSPECIFIED"}, False),
        ({"gold": []}, False),
        ({"history": []}, False),
        ({"history": [{"speaker": "agent", "text": "Hello."}]}, False),
        ({"history": [{"speaker": "User", "text": LENGTH}]}, True),
    ],
)
def test_answered_follow_ups_are_asked(tmp_path: Path, change: dict[str, Any], asked: bool) -> None:
    turns = [{**TURN, "id": "always"}, {**TURN, **change}]
    questions = dataset.load(folder_of(tmp_path, turns=turns)).questions
    assert [question.id for question in questions] == ["always", "c<::>2"][: 1 + asked]


def test_rewrites_are_optional(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "rewrites.jsonl").unlink()
    assert dataset.load(tmp_path).rewrites == ()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"turns": [TURN, TURN]}, r"turns\.jsonl, line 2: the id c<::>2 is used twice\."),
        ({"turns": [{**TURN, "gold": ["snow"]}]}, r"turns\.jsonl, line 1: its gold snow is not in passages\.jsonl\."),
        ({"turns": [{**TURN, "history": [{"text": "x"}]}]}, r"line 1: history\.0\.speaker: field required"),
        ({"turns": [{**TURN, "history": "x"}]}, r"line 1: history: input should be a valid list"),
        ({"turns": [{**TURN, "history": []}]}, r"turns\.jsonl has no answered follow-up with gold\."),
        ({"passages": [PASSAGES[0], PASSAGES[0]]}, r"passages\.jsonl, line 2: the id ice is used twice\."),
        ({"rewrites": [{**REWRITE, "standalone": " "}]}, r"rewrites\.jsonl, line 1: standalone: string should have"),
        ({"rewrites": [REWRITE, REWRITE]}, r"rewrites\.jsonl, line 2: the id r<::>2 is used twice\."),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, files: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dataset.load(folder_of(tmp_path, **files))


def test_passages_must_be_there(tmp_path: Path) -> None:
    (folder_of(tmp_path) / "passages.jsonl").unlink()
    with pytest.raises(UsageError, match=r"passages\.jsonl cannot be read"):
        dataset.load(tmp_path)


def test_the_shared_set() -> None:
    if not SHARED.exists():
        pytest.skip("the set ../shared/mtrag is not here")
    loaded = dataset.load(SHARED)
    assert (len(loaded.questions), len(loaded.documents), len(loaded.rewrites)) == (171, 1488, 326)
