"""Judged files, FaithBench and SummEdits are read as labelled answers, with the markers beside each sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.grounding.answers import LabelledStatement, load_faithbench, load_judged, load_summedits, markers_of
from folio.errors import UsageError
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

SAMPLE = ROOT / "benchmarks" / "judged-sample.jsonl"


def written(path: Path, *entries: Any) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def judged(**changed: Any) -> dict[str, Any]:
    sentences = [{"text": "Otters float.", "label": "supported"}]
    return {"question": "What floats?", "evidence": ["Otters float."], "sentences": sentences, **changed}


def test_the_sample_is_read_with_its_twins() -> None:
    answers = load_judged(SAMPLE)
    assert [(answer.id, answer.model, answer.is_twin) for answer in answers] == [
        ("judged-sample:1", "made-up-8b", False),
        ("judged-sample:1:corrupted", "made-up-8b", True),
        ("judged-sample:2", "made-up-8b", False),
        ("judged-sample:3", "made-up-8b", False),
        ("judged-sample:3:corrupted", "made-up-8b", True),
        ("judged-sample:4", "another-3b", False),
        ("judged-sample:5", "another-3b", False),
    ]
    assert sum(answer.not_located for answer in answers) == 0
    assert answers[0].statements[2] == LabelledStatement(
        "No sugar was given to them while the study ran.", "supported", "own words", (2,)
    )
    assert [statement.markers for statement in answers[3].statements] == [(), (2,), (2,)]


def test_a_twin_counts_only_for_what_differs() -> None:
    answer, twin = load_judged(SAMPLE)[:2]
    assert all(statement.counted for statement in answer.statements)
    assert [(s.label, s.counted) for s in twin.statements] == [
        ("false", True), ("supported", False), ("supported", False),
    ]  # fmt: skip


def test_pieces_of_one_file_are_of_one_paper(tmp_path: Path) -> None:
    pieces = [
        {"number": 1, "file": "a.pdf", "title": "A", "pages": [3, 4], "text": "On page three."},
        {"number": 2, "file": "b.pdf", "title": "B", "pages": [1], "text": "Elsewhere."},
        {"number": 3, "file": "a.pdf", "title": "A", "pages": [1, 1], "text": "On page one."},
    ]
    (answer,) = load_judged(written(tmp_path / "j.jsonl", judged(evidence=pieces)))
    first, other, last = answer.evidence
    assert [(piece.number, piece.text, piece.pages) for piece in answer.evidence] == [
        (1, "On page three.", (3, 3)),
        (2, "Elsewhere.", (1, 1)),
        (3, "On page one.", (1, 1)),
    ]
    assert first.paper is last.paper
    assert (first.paper.title, other.paper.title) == ("A", "B")


def test_a_sentence_without_a_marker_names_nothing(tmp_path: Path) -> None:
    plain = judged(evidence=["Otters float.", "Kelp grows."])
    unmarked, marked = {**plain, "answer": "Otters float."}, {**plain, "answer": "Otters float [2]."}
    answers = load_judged(written(tmp_path / "j.jsonl", plain, unmarked, marked))
    assert [answer.statements[0].markers for answer in answers] == [(), (), (2,)]


def test_the_number_of_the_next_item_is_cut(tmp_path: Path) -> None:
    texts = ["**Kelp** has: 1.", "Low quality 2.", "Hormones", "It has 25."]
    sentences = [{"text": text, "label": "supported"} for text in texts]
    (answer,) = load_judged(written(tmp_path / "j.jsonl", judged(sentences=sentences)))
    assert [statement.text for statement in answer.statements] == ["Kelp has:", "Low quality", "Hormones", "It has 25."]


def test_a_sentence_that_is_not_in_its_answer_is_reported(tmp_path: Path) -> None:
    absent, given = load_judged(written(tmp_path / "j.jsonl", judged(answer="Kelp floats [1]."), judged()))
    assert (absent.not_located, given.not_located) == (1, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"evidence": []}, "evidence"),
        ({"evidence": [" "]}, "evidence.0.text"),
        ({"sentences": []}, "sentences"),
        ({"sentences": [{"text": "A."}]}, "sentences.0.label"),
        ({"question": ""}, "question"),
        ({"evidence": [{"number": 2, "text": "A."}]}, "evidence: its numbers must be 1, 2, 3 and so on"),
    ],
)
def test_a_malformed_entry_is_named(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "j.jsonl", judged(), judged(**changed))
    with pytest.raises(UsageError) as raised:
        load_judged(path)
    assert f"j.jsonl, line 2: {message}" in raised.value.happened


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no answers"):
        load_judged(written(tmp_path / "j.jsonl"))


def test_a_sentence_in_an_unwanted_span_is_bad(tmp_path: Path) -> None:
    summary = "Here is a summary: \n\nOtters float. They eat stones. Kelp grows. It is green."

    def span(words: str, *labels: str) -> dict[str, Any]:
        start = summary.index(words)
        return {"start": start, "end": start + len(words), "label": list(labels), "note": ""}

    annotations = [
        span(". They eat stones. ", "Unwanted", "Unwanted.Intrinsic"),  # it has no word of the sentences beside it
        span("grows", "Questionable"),
        span("green", "Benign", "Unwanted.Extrinsic"),
    ]
    entry = {"source": "Otters float.", "summary": summary, "model": "m", "annotations": annotations}
    path = tmp_path / "f.json"
    path.write_text(json.dumps([entry]), encoding="utf-8")
    (answer,) = load_faithbench(path)
    assert [(s.text, s.label, s.markers) for s in answer.statements] == [
        ("Here is a summary:", "filler", (1,)),
        ("Otters float.", "good", (1,)),
        ("They eat stones.", "bad", (1,)),
        ("Kelp grows.", "benign or questionable", (1,)),
        ("It is green.", "bad", (1,)),
    ]
    assert (answer.id, answer.model, answer.is_summary) == ("f:1", "m", True)


def test_summaries_are_joined_with_their_documents(tmp_path: Path) -> None:
    written(tmp_path / "documents.jsonl", {"_id": "d", "text": "Otters float. They eat clams."})
    kept = {"domain": "sea", "document": "d", "summary": "Otters float.", "consistent": True, "edits": []}
    edited = {"domain": "sea", "document": "d", "summary": "Otters sink. They eat clams.", "consistent": False}
    written(tmp_path / "summaries.jsonl", kept, {**edited, "edits": ["antonym_swap"]})
    consistent, changed = load_summedits(tmp_path)
    assert [(s.text, s.label) for s in changed.statements] == [
        ("Otters sink.", "edited"),
        ("They eat clams.", "edited"),
    ]
    assert (consistent.edits, changed.edits, changed.domain) == ((), ("antonym_swap",), "sea")
    assert changed.evidence[0].text == "Otters float. They eat clams."


def test_a_summary_without_its_document_is_named(tmp_path: Path) -> None:
    written(tmp_path / "documents.jsonl", {"_id": "d", "text": "Otters float."})
    written(tmp_path / "summaries.jsonl", {"document": "e", "summary": "Otters float.", "consistent": True})
    with pytest.raises(UsageError, match=r"line 1: document: documents\.jsonl has no e"):
        load_summedits(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_summedits(tmp_path / "absent")


@pytest.mark.parametrize(
    ("sentence", "answer", "markers"),
    [
        ("Otters float.", "Otters float [1].", (1,)),
        ("Otters float.", "Otters float.[2]", (2,)),
        ("Otters float.", "Otters float. [2][3]", (2, 3)),
        ("Otters float.", "* **Otters**  float [1, 3].\n* Other [2].", (1, 3)),
        ("Otters float.", "1. Otters\nfloat (Evidence 2).", (2,)),
        ("Otters float.", "[3] Otters float.", (3,)),
        ("Otters float on kelp.", "Otters float [1] on kelp [2].", (1, 2)),
        ("Otters float.", "Otters float. Kelp grows [1].", ()),
        ("Otters float.", "Kelp grows. [1] Otters float.", ()),
        ("Otters float.", "Otters float 【1†source】.", (1,)),
        ("Workshop 1 | 20", "| Workshop 1 | 20 [2] |\n| Workshop 2 | 17 [1] |", (2,)),
        ("The values lie in [0, 1].", "The values lie in [0, 1] [2].", (2,)),
        ("Call `float()`.", "Call `float()` [1].", (1,)),
        ("There are 2 otters.", "There are [1] 2 otters.", (1,)),
        ("Otters float.", "Otters float [9].", ()),
        ("Otters sink.", "Otters float [1].", None),
        ("...", "Otters float [1].", None),
    ],
)
def test_markers_beside_a_sentence_are_found(sentence: str, answer: str, markers: tuple[int, ...] | None) -> None:
    assert markers_of([sentence], answer, 3) == [markers]


def test_a_repeated_sentence_is_the_one_after_the_sentence_before() -> None:
    answer = "It is so [1]. But then [2]. It is so [3]."
    assert markers_of(["It is so.", "But then.", "It is so."], answer, 3) == [(1,), (2,), (3,)]


def test_a_sentence_out_of_order_is_found_all_the_same() -> None:
    assert markers_of(["Second.", "First."], "First [1]. Second [2].", 2) == [(2,), (1,)]
