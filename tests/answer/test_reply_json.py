"""Values from replies of models that ignore the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.reply_json import list_shape, reply_value
from folio.deep.llm import claims_schema
from folio.evaluate.judge import Grade

LIST = list_shape("queries", 1, 3)
SCORE: dict[str, Any] = {
    "properties": {"summary": {"type": "string"}, "relevance": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["summary", "relevance"],
}
PASSAGE: dict[str, Any] = {"properties": {"passage": {"type": "string"}}, "required": ["passage"]}
CLAIMS, GRADE = claims_schema(9), Grade.model_json_schema()
WANTED = {"queries": ["ice", "snow"]}
CLAIM = {"claim": "Ice melts.", "same": [1, 2], "other": [3]}


@pytest.mark.parametrize(
    "reply",
    [
        '{"queries": ["ice", "snow"]}', '```json\n{"queries": [\n "ice",\n "snow"\n]}\n```',
        'Sure! Here they are {as JSON}:\n{"queries": ["ice", "snow"]}\nShall I go on?',
        '<think>Perhaps {"queries": ["rain"]}? No.</think>\n{"queries": ["ice", "snow"]}',
        'Perhaps {"queries": ["rain"]}? No.\n</think>\n\n{"queries": ["ice", "snow"]}',  # the template wrote <think>
        '{"queries": ["...", "..."]}\n\n{"queries": ["ice", "snow"]}',  # the form of the prompt first
        '{"queries": ["ice", "snow"]}\n{"queries": ["ice", "snow"]}', '["ice", "snow"]',
        "Here are two:\n\n1. ice\n2. **snow**\n\nGood luck!", '- "ice"\n* “snow”',
    ],
)  # fmt: skip
def test_a_list_of_texts(reply: str) -> None:
    assert reply_value(reply, LIST) == WANTED


@pytest.mark.parametrize(
    "reply",
    [
        "", "none", "[]", "ice, snow", "<think>ice\n- snow", "See [3].", '["ice"] or ["snow"]',
        '{"queries": ["ice"]} or {"queries": ["snow"]}', '{"queries": ["ice", "sno', "{" * 100_000, "[" * 100_000,
        "{ " * 100_000,
    ],
)  # fmt: skip
def test_ambiguous_lists_are_not_read(reply: str) -> None:
    assert reply_value(reply, LIST) is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"summary": "Ice.", "relevance": "8"}', {"summary": "Ice.", "relevance": 8}),
        ('{"summary": "8", "relevance": 8}', {"summary": "8", "relevance": 8}),
        ('{"summary": "Ice.", "relevance": true}', {"summary": "Ice.", "relevance": True}),  # for others to refuse
        ("8", {"summary": "", "relevance": 8}), ("**8**.", {"summary": "", "relevance": 8}),
        ("Summary: It melts by 3 m.\nRelevance: 8", {"summary": "It melts by 3 m.", "relevance": 8}),
        ("- **Summary:** It melts.\n- **Relevance score:** 8 / 10", {"summary": "It melts.", "relevance": 8}),
        ("The relevance is 8.", {"summary": "", "relevance": 8}),
        ("It melts by 3 m a year, so 8 out of 10.", {"summary": "", "relevance": 8}), ("It melts by 3 m a year.", None),
        ("Relevance: high", None), ("Relevance: 7.5", None), ("Relevance: -1", None), ("Relevance: 7 to 8/10", None),
        ("-1", None), ("[8]", None), ("8 9", None), ("In 2018/10 it melted.", None),
        # The form of the prompt alone, whole, in a list or cut off, is no score.
        ('{"summary":"...","relevance":7}', None), ('```json\n{"summary": "…", "relevance": 7}\n```', None),
        ('[{"summary":"...","relevance":7}]', None), ('The form is {"summary":"...","relevance":7}', None),
        ('{"summary":"...","relevance":7', None),
        ('{"summary": "Ice.", "relevance": 8} and {"summary": "Ice.", "relevance": 9}', None),
        # One object is read wherever it stands, and words around it are read without it.
        ('[{"summary":"a","relevance":8}]', {"summary": "a", "relevance": 8}),
        ('{"summary":"...","relevance":7}\nRelevance: 8', {"summary": "", "relevance": 8}),
        ('{"summary": "It "melts".", "relevance": 8}', {"summary": 'It "melts".', "relevance": 8}),
        ("{'Summary': 'It melts.', relevance: 8,} // done", {"summary": "It melts.", "relevance": 8}),
        ('The set {of it}: {“summary”: “Its $\\beta$”, “relevance”: 8}', {"summary": "Its $\\beta$", "relevance": 8}),
        ('{"summary": "Its \\theta.", "relevance": 8}', {"summary": "Its \\theta.", "relevance": 8}),
        ("Summary: It melts. Relevance: 8", {"summary": "It melts.", "relevance": 8}),
        # A number of things is no score.
        ("The relevance of 2 of these sentences is low.", None), ("A relevance of 8.", {"summary": "", "relevance": 8}),
        ("A relevance of 8 out of 10", {"summary": "", "relevance": 8}), ("It melted in 8 out of 10 summers.", None),
        ("8/10 of the ice melted.", None),
    ],
)  # fmt: skip
def test_a_number(reply: str, value: object) -> None:
    assert reply_value(reply, SCORE) == value


def test_a_grade_a_passage_and_claims() -> None:
    assert reply_value("Grade: 2", GRADE) == {"reason": "", "grade": 2}
    assert reply_value("The answer is right.\nGrade: **3**/3", GRADE) == {"reason": "", "grade": 3}
    assert reply_value('```\n{"reason": "Right.", "grade": 3}\n```', GRADE) == {"reason": "Right.", "grade": 3}
    assert reply_value("```\nIce melts\nin summer.\n```", PASSAGE) == {"passage": "Ice melts\nin summer."}
    assert reply_value('{"passage": "Ice', PASSAGE) is None
    assert reply_value(f"They agree:\n{json.dumps([CLAIM])}", CLAIMS) == {"claims": [CLAIM]}
    assert reply_value(json.dumps({"claims": [CLAIM, CLAIM]})[:-20], CLAIMS) is None  # cut off
    assert reply_value("1. They agree that ice melts.", CLAIMS) is None
    assert reply_value('{"reason": "...", "grade": 2}', GRADE) is None
    assert reply_value('{"claims":[{"claim":"...","same":[3,17],"other":[22]}]}', CLAIMS) is None
    assert reply_value(f'{{"claims":[{{"claim":"...","same":[3],"other":[]}}]}} {json.dumps([CLAIM])}', CLAIMS) == {
        "claims": [CLAIM]
    }


@given(st.text(alphabet='{}[]",:0123456789 a\n-.*`</think>', max_size=60))
def test_no_reply_raises(text: str) -> None:
    for shape in (LIST, SCORE, PASSAGE, CLAIMS, GRADE):
        found = reply_value(text, shape)
        assert found is None or found.keys() & shape["properties"].keys()
