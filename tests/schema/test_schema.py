"""What `--json` prints: its values, and that docs/answer.schema.json says what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import BaseModel

from folio.answer_types import REFUSAL, SUMMARY, Answer, Section
from folio.bibliography.markdown import escaped
from folio.schema.answers import ErrorJson, StatsJson, answer_json, json_schema, line, passages_json
from scripts.make_schema import SCHEMA
from tests.helpers.answers import ANSWER, HITS, MODELS, OUTCOMES, QUESTION, REFUSED, REPORT, TIMINGS
from tests.helpers.cli_runner import CliRunner
from tests.helpers.golden import assert_golden
from tests.helpers.ollama_models import Scripted
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


ANSWERS = {"plain": ANSWER, "report": REPORT, "outcomes": OUTCOMES,
           "refused": replace(REFUSED, dropped=2, notice="It was cut.")}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_printed_as_in_its_golden_file(schema: Draft202012Validator, name: str) -> None:
    printed = answered(ANSWERS[name])
    assert_golden(f"answer-{name}", printed)
    schema.validate(printed)


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
    for name, kind in found["$defs"].items():
        assert kind["additionalProperties"] is False, name
        assert set(kind["required"]) == set(kind["properties"]), name
        assert kind["description"], name


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
    [{"page": 0}, {"page": "1"}, {"support": 0}, {"support": 1.1}, {"paper": "otters.pdf"}, {"quote": ""},
     {"start": -1}, {"hit": 1}],
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
    hits = [replace(HITS[0], score=1 / 3, dense=2 / 3, lexical=score) for score in (100 / 7, None)]
    passages = read(passages_json(QUESTION, hits, MODELS, TIMINGS))
    scores = [(hit["score"], hit["dense"], hit["bm25"]) for hit in passages["hits"]]
    assert scores == [(0.3333, 0.6667, 14.2857), (0.3333, 0.6667, None)]
    assert passages.keys() == {"question", "hits", "models", "timings_ms", "notice"}


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

    # The model is removed after the command has found it
    ollama_server.stated = Scripted(refused=404, error="model 'llama3.1:8b' not found")
    ollama_server.faults.fails = 0
    errors = ready.query("--json", "--no-log", "--batch", str(questions))
    assert [found.keys() for found in errors.objects] == [ErrorJson.model_fields.keys()] * 2
    for found in (*batch, report, passages, stats, counts, *failed, *errors.objects):
        schema.validate(found)
    assert [found["refused"] for found in batch] == [False, True]
    assert report["style"] == "report"
    assert report["answer"].startswith("## ")
    assert [found["model_failed"] for found in (*batch, report, *failed)] == [False] * 3 + [True] * 2
    assert stats.keys() == StatsJson.model_fields.keys()
    # What a program does with a citation: the words stand where it says.
    (evidence,) = (one for one in batch[0]["evidence"] if one["number"] == batch[0]["citations"][0]["evidence"])
    assert batch[0]["citations"][0]["quote"] in evidence["text"]


def test_a_report_is_markdown_with_its_headings() -> None:
    """Its text is no markup, whatever the papers and the model wrote."""
    first = REPORT.sentences[0]
    said = (
        replace(first, section=SUMMARY), replace(first, section=SUMMARY, text="Ice [melts](x).\n\n# fast"),
        replace(first, section=Section("Analysis", "Melt *now*")), replace(first, section=Section("Analysis", "Loss")),
    )  # fmt: skip
    text = answer_json(replace(REPORT, sentences=said), (), {}, {}).answer
    words = escaped(first.text)
    assert text == (
        f"## Summary\n\n- {words}\n- Ice \\[melts\\](x).\\\n  \\# fast\n\n"
        f"## Analysis\n\n### Melt \\*now\\*\n\n{words}\n\n### Loss\n\n{words}"
    )
    assert answer_json(replace(REPORT, style="plain"), (), {}, {}).answer == REPORT.text
