"""What `--json` prints: its values, and that docs/answer.schema.json says what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from folio.answer_types import REFUSAL, Answer
from folio.schema import ErrorJson, StatsJson, answer_json, json_schema, line, passages_json
from scripts.make_schema import SCHEMA
from tests.helpers.answers import (
    ANSWER,
    FALSE,
    HITS,
    ICE_EVIDENCE,
    ICE_PAPER,
    ICE_TEXT,
    MELT_PAPER,
    MELT_TEXT,
    MODELS,
    OUTCOMES,
    QUESTION,
    REFUSED,
    REPORT,
    STEPS,
    TIMINGS,
)
from tests.helpers.cli_runner import CliRunner
from tests.helpers.ollama_models import Json
from tests.helpers.ollama_server import OllamaStandIn

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    """The schema as it is in docs/."""
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


def answered(answer: Answer) -> dict[str, Any]:
    """What is printed for an answer, read again."""
    return read(answer_json(answer, HITS, MODELS, TIMINGS))


def read(value: BaseModel) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line(value))
    return found


def test_an_answer_in_json() -> None:
    found = answered(ANSWER)
    length, place, retreat, otherwise = found["citations"]
    assert length == {
        "paper": ICE_PAPER.id,
        "file": "alps/ice.pdf",
        "title": "Ice of the Alps",
        "venue": "",
        "year": None,
        "page": 1,
        "label": "iv",
        "quote": "The Aletsch glacier has a length of 23 kilometres.",
        "start": 0,
        "end": 50,
        "evidence": 1,
        "support": 1.0,
        "number": 0,
        "shown": "[alps/ice.pdf p.1]",
        "section": "",
        "zotero": "",
        "notice": None,
    }
    assert (place["start"], place["end"], place["support"]) == (51, 79, 0.625)
    assert (retreat["page"], retreat["start"], retreat["end"]) == (2, 0, 43)  # offsets are those in its page
    assert (otherwise["shown"], otherwise["evidence"]) == ("[arXiv:2301.01234 p.1]", 2)
    assert found["sentences"] == [
        {
            "text": "It is 23 kilometres long and lies in the Alps.",
            "section": "",
            "citations": [length, place],
            "against": [],
            "outcome": "quoted",
            "verified_by": "",
            "instead_of": "",
            "marks": [],
            "short": None,
        },
        {
            "text": "Its tongue retreats by 40 metres each year.",
            "section": "",
            "citations": [retreat],
            "against": [otherwise],
            "outcome": "quoted",
            "verified_by": "",
            "instead_of": "",
            "marks": [],
            "short": None,
        },
    ]
    assert found["evidence"] == [
        {
            "number": 1,
            "paper": ICE_PAPER.id,
            "file": "alps/ice.pdf",
            "title": "Ice of the Alps",
            "pages": [1, 2],
            "score": 0.91,
            "text": ICE_TEXT,
            "section": "",
            "notice": None,
        },
        {
            "number": 2,
            "paper": MELT_PAPER.id,
            "file": "melt.pdf",
            "title": "Melt",
            "pages": [1, 1],
            "score": 0.4,
            "text": MELT_TEXT,
            "section": "",
            "notice": None,
        },
    ]
    assert found["hits"][1] == {
        "paper": MELT_PAPER.id,
        "file": "melt.pdf",
        "title": "Melt",
        "pages": [1, 1],
        "score": 0.4,
        "dense": 0.75,
        "bm25": 12.5,
        "text": MELT_TEXT,
        "page_breaks": [],
        "section": "",
        "notice": None,
    }
    assert found["hits"][0]["page_breaks"] == [ICE_TEXT.index("Its tongue")]
    rest = {key: found[key] for key in found if key not in ("sentences", "citations", "evidence", "hits")}
    assert rest == {
        "question": QUESTION,
        "standalone_question": QUESTION,
        "style": "plain",
        "answer": "It is 23 kilometres long and lies in the Alps. Its tongue retreats by 40 metres each year.",
        "refused": False,
        "remark": "",
        "dropped_sentences": 0,
        "left_out": [],
        "notice": "",
        "warnings": [],
        "model_failed": False,
        "models": MODELS,
        "timings_ms": TIMINGS,
    }


def test_outcomes_in_json() -> None:
    found = answered(OUTCOMES)
    assert [(said["outcome"], said["verified_by"], said["instead_of"]) for said in found["sentences"]] == [
        ("quoted", "", ""),
        ("reworded", "", ""),
        ("quoted", "", FALSE),
        ("reworded", "a verifier", ""),
    ]
    assert found["sentences"][3]["text"] == STEPS
    assert found["dropped_sentences"] == 2
    assert found["left_out"] == [
        {"text": FALSE, "reason": "it says 23"},
        {"text": "Then:\n1. Rest.", "reason": "no evidence says this"},
    ]


def test_a_report_in_json() -> None:
    found = answered(REPORT)
    assert found["style"] == "report"
    sections = [sentence["section"] for sentence in found["sentences"]]
    assert sections == ["Summary", "Summary", "Analysis", "Analysis/Size", "Analysis/Melt"]


def test_a_refusal_in_json() -> None:
    found = answered(replace(REFUSED, dropped=2, notice="It was cut."))
    assert (found["answer"], found["refused"], found["sentences"], found["citations"]) == (REFUSAL, True, [], [])
    assert (found["dropped_sentences"], found["notice"]) == (2, "It was cut.")
    assert found["standalone_question"] == "Who painted the Aletsch glacier?"


def test_scores_are_rounded_and_may_be_missing() -> None:
    (hit,) = ICE_EVIDENCE.hits
    hit = replace(hit, score=1 / 3, dense=2 / 3, lexical=None)
    found = read(passages_json("q", [hit], MODELS, TIMINGS))
    assert [(one["score"], one["dense"], one["bm25"]) for one in found["hits"]] == [(0.3333, 0.6667, None)]
    assert found.keys() == {"question", "hits", "models", "timings_ms"}


def test_a_line_keeps_letters_and_escapes_what_steers_a_terminal() -> None:
    steering = '\x1b[2J\x9b31m\u202e\u2028\x7f\n\\"'
    value = ErrorJson(question="Größe — 文字 ✓ 🦦", error=steering, remedy="\U000e0041\u200d")
    shown = line(value)
    assert shown.isprintable()
    assert "Größe — 文字 ✓ 🦦" in shown
    assert '\\u001b[2J\\u009b31m\\u202e\\u2028\\u007f\\n\\\\\\"' in shown
    assert "\\udb40\\udc41\\u200d" in shown
    assert json.loads(shown) == value.model_dump()


def test_the_schema_in_docs_is_what_the_models_say() -> None:
    found = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert found == json_schema(), "make it again: make schema"
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in SCHEMA.read_text(encoding="utf-8")
    assert found["$defs"].keys() == {
        *("AnswerJson", "PassagesJson", "ErrorJson", "StatsJson", "PaperCountsJson", "PaperCountJson"),
        *("CitationJson", "SentenceJson", "LeftOutJson", "EvidenceJson", "HitJson", "NoticeJson"),
        *("DeepAnswerJson", "TraceJson", "PaperFoundJson", "PapersEventJson", "EvidenceEventJson"),
        *("SearchAgainEventJson", "SearchEndedEventJson", "EvidenceProfileJson", "BasisJson", "ConfidenceJson"),
        *("QuoteJson", "DifferenceJson", "AgeJson"),
    }
    for name, kind in found["$defs"].items():
        assert kind["additionalProperties"] is False, name
        assert set(kind["required"]) == set(kind["properties"]), name
        assert kind["description"], name


@pytest.mark.parametrize("answer", [ANSWER, REPORT, OUTCOMES, REFUSED], ids=["plain", "report", "outcomes", "refused"])
def test_answers_hold_to_the_schema(schema: Draft202012Validator, answer: Answer) -> None:
    assert list(schema.iter_errors(answered(answer))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"refused": True},  # and yet there are sentences
        {"refused": True, "sentences": [], "citations": []},  # in other words than those of a refusal
        {"refused": True, "sentences": [], "answer": REFUSAL}, {"sentences": []}, {"citations": []}, {"more": 1},
        {"style": "verse"}, {"left_out": [{"text": "It is so."}]},
        {"sentences": [answered(OUTCOMES)["sentences"][0] | {"outcome": "guessed"}]}, {"answer": None},
        {"timings_ms": {"answer": -1}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_answer_does_not_hold_to_the_schema(schema: Draft202012Validator, change: dict[str, Any]) -> None:
    assert not schema.is_valid(answered(ANSWER) | change)


@pytest.mark.parametrize(
    "change",
    [
        {"page": 0}, {"page": "1"}, {"support": 0}, {"support": 1.1}, {"paper": "otters.pdf"}, {"quote": ""},
        {"start": -1}, {"hit": 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_citation_does_not_hold_to_the_schema(schema: Draft202012Validator, change: dict[str, Any]) -> None:
    found = answered(ANSWER)
    assert not schema.is_valid(found | {"citations": [found["citations"][0] | change]})


def test_scores_have_four_decimals_and_support_stays_positive(schema: Draft202012Validator) -> None:
    for support, shown in ((1.0, 1.0), (0.99999, 0.9999), (0.62496, 0.625), (0.123449, 0.1234), (1e-9, 0.0001)):
        (sentence, *_) = ANSWER.sentences
        cited = replace(sentence.citations[0], support=support)
        found = answered(replace(ANSWER, sentences=(replace(sentence, citations=(cited,)),)))
        schema.validate(found)
        assert found["citations"][0]["support"] == shown
    hit = replace(HITS[0], score=1 / 3, dense=2 / 3, lexical=100 / 7)
    (printed,) = read(passages_json(QUESTION, [hit], MODELS, TIMINGS))["hits"]
    assert (printed["score"], printed["dense"], printed["bm25"]) == (0.3333, 0.6667, 14.2857)


def test_what_query_prints_holds_to_the_schema(
    schema: Draft202012Validator, ready: CliRunner, ollama_server: OllamaStandIn
) -> None:
    questions = ready.folder / "questions.txt"
    questions.write_text(f"{QUESTION}\nWho painted the ceiling of the Sistine chapel in Rome?\n", encoding="utf-8")
    batch = ready.query("--json", "--no-log", "--batch", str(questions)).objects
    report = ready.query("--json", "--no-log", "--style", "report", QUESTION).object
    passages = ready.query("--json", "--sources", QUESTION).object
    stats = ready.query("--json", "--stats").object
    counts = ready.query("--json", "--stats", "--by", "section").object
    ready.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    ollama_server.faults.fails = 9
    failed = ready.query("--json", "--no-log", "--batch", str(questions)).objects

    def removed(messages: list[Json]) -> str:
        ollama_server.models.clear()
        return ""

    ollama_server.reply = removed
    ollama_server.faults.fails = 0
    errors = ready.query("--json", "--no-log", "--batch", str(questions))
    assert [found.keys() for found in errors.objects] == [ErrorJson.model_fields.keys()] * 2
    for found in (*batch, report, passages, stats, counts, *failed, *errors.objects):
        schema.validate(found)
    assert [found["refused"] for found in batch] == [False, True]
    assert report["style"] == "report"
    assert [found["model_failed"] for found in (*batch, report, *failed)] == [False] * 3 + [True] * 2
    assert stats.keys() == StatsJson.model_fields.keys()
    # What a program does with a citation: the words stand where it says.
    (evidence,) = (one for one in batch[0]["evidence"] if one["number"] == batch[0]["citations"][0]["evidence"])
    assert batch[0]["citations"][0]["quote"] in evidence["text"]
