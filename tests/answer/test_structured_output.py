"""Parsing a model's JSON answer while it streams, whatever its form."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from folio.answer.parser import MOST_STATEMENTS, MOST_SUPPORT, Heading, ParsedSentence, StatementParser, schema
from folio.answer_types import REFUSAL, Style

pytestmark = pytest.mark.fast

FLOAT, EAT = "Otters float in rafts of kelp.", "They eat 25 urchins."
Parts = list[ParsedSentence | Heading]


def parsed(pieces: Iterable[str], count: int = 5, *, cut: bool = False) -> Parts:
    parser = StatementParser(count)
    return [part for piece in pieces for part in parser.feed(piece)] + parser.end(cut=cut)


def answer(*statements: object, answered: object = True) -> str:
    return json.dumps({"statements": statements, "answered": answered}, ensure_ascii=False)


def statement(text: object, support: object = (1,), **more: object) -> dict[str, object]:
    return {**more, "support": support, "statement": text}


@pytest.mark.parametrize(
    "before",
    [
        "", "Here is the answer in JSON:\n\n", "Sure, I can help. Here it is:\n```json\n", "The form is {...}, so: ",
        "<think>Hm.</think>Here:\n```json\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_list", [False, True])
def test_json_after_a_few_words(before: str, is_list: bool) -> None:
    said = [statement(FLOAT, [1]), statement(EAT, [2])]
    written = f"{before}{json.dumps(said) if is_list else answer(*said)}\n```\nI hope that helps."
    wanted = [ParsedSentence(FLOAT, support=(1,)), ParsedSentence(EAT, support=(2,))]
    assert parsed([written]) == parsed([*written]) == wanted


def test_a_statement_alone_and_prose_before_json_are_read() -> None:
    assert parsed([json.dumps(statement(FLOAT, [2]))]) == [ParsedSentence(FLOAT, support=(2,))]
    said = f'{FLOAT} [1] {EAT} [2] For example: {{"statements": []}}'
    assert parsed([said])[:2] == [ParsedSentence(FLOAT, support=(1,)), ParsedSentence(EAT, support=(2,))]
    lead = "Otters are animals of the sea. " * 14
    assert parsed([lead + answer(statement(FLOAT))])[0].text == "Otters are animals of the sea."
    text = answer(statement(FLOAT, [2, 1, 2]), statement(EAT, [3]))
    assert parsed([text]) == [ParsedSentence(FLOAT, support=(2, 1)), ParsedSentence(EAT, support=(3,))]


@pytest.mark.parametrize("style", ["plain", "report"])
def test_the_schema_lists_the_existing_sentences(style: Style) -> None:
    shape = schema(3, style)
    Draft202012Validator.check_schema(shape)
    statements = shape["properties"]["statements"]
    support = statements["items"]["properties"]["support"]
    assert support["items"] == {"type": "integer", "enum": [1, 2, 3]}
    assert (support["minItems"], support["maxItems"]) == (1, MOST_SUPPORT)
    assert statements["maxItems"] == MOST_STATEMENTS[style]
    fields = ["part", "heading", "support", "statement"] if style == "report" else ["support", "statement"]
    assert list(statements["items"]["properties"]) == fields  # in this order a model writes them
    assert statements["items"]["required"] == fields
    assert shape["required"] == list(shape["properties"]) == ["statements", "answered"]


def test_the_schema_refuses_wrong_numbers_and_too_many() -> None:
    shape = Draft202012Validator(schema(3, "plain"))
    assert shape.is_valid({"statements": [statement(FLOAT, [1, 3])], "answered": True})
    assert shape.is_valid({"statements": [], "answered": False})
    for support in ([], [4], [0], ["1"], [1.5], [1] * (MOST_SUPPORT + 1)):
        assert not shape.is_valid({"statements": [statement(FLOAT, support)], "answered": True})
    many = [statement(FLOAT, [1])] * (MOST_STATEMENTS["plain"] + 1)
    assert not shape.is_valid({"statements": many, "answered": True})


def test_a_statement_is_given_out_when_its_object_closes() -> None:
    text = answer(statement(FLOAT), statement("Set {x[1]} to {y}, see [z]."))
    closes = [at + 1 for at in range(len(text)) if text[: at + 1].endswith(('."}',))]
    parser = StatementParser(5)
    given = [at for at, char in enumerate(text, 1) if parser.feed(char)]
    assert given == closes
    assert len(closes) == 2


def test_a_statement_that_breaks_off_keeps_its_whole_sentences_unless_it_was_cut_off() -> None:
    text = answer(statement(FLOAT), {"support": [2], "statement": f"{EAT} They sleep afloat.", "part": "analysis"})
    ends = {', "part"': [FLOAT, f"{EAT} They sleep afloat."], " sleep": [FLOAT, EAT], " urchins": [FLOAT]}
    for end, texts in ends.items():
        assert [part.text for part in parsed([text[: text.index(end)]])] == texts  # the model ended here
        kept = texts if "part" in end else [FLOAT]  # its sentences may be missing
        assert [part.text for part in parsed([text[: text.index(end)]], cut=True)] == kept
    late = answer({"statement": FLOAT, "support": [1]})
    assert parsed([late[: late.index(", ")]], cut=True) == []
    assert [part.text for part in parsed([text[: text.index("}]") + 1]], cut=True)][::2] == [
        FLOAT,
        f"{EAT} They sleep afloat.",
    ]
    assert [part.text for part in parsed([answer(statement("The mean was 3.5 m."))[:57]])] == []  # "3."


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"statements":[{"support":[1]', ',"statement":"Otters float."}]', "}"],
        ['{"statements":[{"support":[1],"statement":"Otters {', '} float."}', "]}"],
        ['{"answered":true,"statements":[{"support":[1],', '"statement":"Otters {} float."}]}'],
    ],
)
def test_a_bracket_within_a_statement_does_not_close_it(pieces: list[str]) -> None:
    (found,) = parsed(pieces)
    assert found.text.replace(" {}", "") == "Otters float."


TEXTS = st.text(max_size=12) | st.sampled_from(
    [FLOAT, EAT, "a[1]", "}", '"}]', "{", "\\", '\\"', "[2]", "```", REFUSAL]
)
SCALARS = st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)
STATEMENTS = st.fixed_dictionaries(
    {"support": JSON | st.lists(st.integers(0, 7), max_size=4), "statement": JSON | TEXTS},
    optional={"part": JSON | st.sampled_from(["summary", "analysis"]), "heading": JSON},
)
ANSWERS = st.fixed_dictionaries({"statements": JSON | st.lists(STATEMENTS | JSON, max_size=4), "answered": JSON})
BEFORE = (
    *("", " \n", "```json\n", "```", "<think>No {\n}</think>\n", "<thinking></thinking>```json", "Here: "),
    *("Hm. {} [1]</think>", "[{", "</think>"),
)
WRITTEN = st.tuples(
    st.sampled_from(BEFORE),
    (ANSWERS | JSON).map(lambda value: json.dumps(value, ensure_ascii=False)) | st.text(max_size=30),
    st.sampled_from(["", "\n```", " {", "}", "{}", " I hope that helps."]),
).map("".join)


@given(WRITTEN, st.data())
def test_piece_by_piece_gives_the_same_as_the_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed([text]) == parsed(pieces) == parsed(list(text))


@given(ANSWERS | JSON)
def test_any_fields_give_words_and_known_sentences(value: object) -> None:
    for part in parsed([json.dumps(value)]):
        assert part.text == part.text.strip() != ""
        assert all(char.isprintable() or char in "\n\u200c\u200d" for char in part.text)
        if isinstance(part, ParsedSentence):
            assert set(part.support) <= {1, 2, 3, 4, 5}
            assert any(char.isalnum() for char in part.text)


@pytest.mark.parametrize(
    ("support", "taken"),
    [
        ([1, 9, 0, -3, 2], (1, 2)), ([True, 2.0, "3", None, [1]], (2, 3, 1)), ("12", ()), (3, (3,)),
        ("[2], S4", (2, 4)), (1.5, ()), ("Table 2.1", ()), (None, ()), ({"1": 1}, ()),
    ],
)  # fmt: skip
def test_the_numbers_of_sentences_are_found_in_any_form(support: object, taken: tuple[int, ...]) -> None:
    assert parsed([answer(statement(FLOAT, support))]) == [ParsedSentence(FLOAT, support=taken)]


@pytest.mark.parametrize("text", [None, 3, True, [], {}, "", "  ", "...", "[1]", "\x1b[31m", ["Otters"]])
def test_a_statement_without_words_is_ignored(text: object) -> None:
    assert parsed([answer(statement(text), statement(EAT))]) == [ParsedSentence(EAT, support=(1,))]


def test_markers_name_sentences_and_control_characters_go() -> None:
    found = parsed([answer({"statement": f"{FLOAT} [2]"}, {"support": [1], "statement": "**Otters** float [3]."})])
    assert found == [ParsedSentence(FLOAT, support=(2,)), ParsedSentence("Otters float.", support=(1, 3))]
    (part,) = parsed([answer(statement("Otters \x1b[31mfloat\u202e.\x07"))])
    assert part.text == "Otters float."


@pytest.mark.parametrize("statements", [(), (statement(FLOAT),)])
def test_an_unanswered_question_ends_in_the_refusal(statements: tuple[object, ...]) -> None:
    found = parsed([answer(*statements, answered=False)])
    assert found == [*parsed([answer(*statements)]), ParsedSentence(REFUSAL)]


@pytest.mark.parametrize("answered", [None, 0, "", "false", []])
def test_only_false_means_unanswered(answered: object) -> None:
    assert parsed([answer(answered=answered)]) == []


def test_an_unanswered_flag_may_come_first() -> None:
    text = json.dumps({"answered": False, "statements": [statement(FLOAT)]})
    assert [part.text for part in parsed([text])] == [FLOAT, REFUSAL]


@pytest.mark.parametrize(
    ("broken", "texts"),
    [
        *((f'{{"statements":[{{"support":[1],"statement":"Otters float."{end}', ["Otters float."]) for end in (
            '},{"statement":"They e', '},{"support":[', '}],"answ', '}],"answered":fal', "}],,,", "}" + "\n" * 400,
        )),
        *((beginning, []) for beginning in ('{"statements":[{"support":[1', '{"statements"', "{")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", [True, False])
def test_broken_json_gives_its_whole_statements(broken: str, texts: list[str], cut: bool) -> None:
    assert [part.text for part in parsed([broken], cut=cut)] == texts
    assert [part.text for part in parsed(list(broken), cut=cut)] == texts


THOUGHTS = (
    "<think>\nIs it {this}?\n</think>\n\n",
    "<thinking>So</thinking>```json\n",
    "<THINK>a</THINK> <think>b</think>",
)


@pytest.mark.parametrize("before", ["", "\n ", "```json\n", "```\n", *THOUGHTS])
@pytest.mark.parametrize("behind", ["", "\n```\n", "\n```\nI hope {that} helps.", "}"])
def test_json_in_a_fence_or_after_a_thought(before: str, behind: str) -> None:
    text = f"{before}{answer(statement(FLOAT))}{behind}"
    assert parsed([text]) == parsed(list(text)) == [ParsedSentence(FLOAT, support=(1,))]


HALF_THOUGHTS = (
    "Okay, the user asks about otters. ",
    f"Okay, sentence [3] says it. {EAT} [2] " * 3,
    "Let me read sentence 3 again. It says it in other words. " * 20,
    f"The form is {answer(statement('...', [3, 4]))}, and perhaps {answer(statement(EAT, [4]))}? ",
)


@pytest.mark.parametrize("thought", HALF_THOUGHTS)
@pytest.mark.parametrize("closing", ["</think>", "</Thinking>\n\n", "</think>\n```json\n", "</think>Here it is:\n"])
def test_a_thought_without_its_opening_tag_is_dropped(thought: str, closing: str) -> None:
    text = f"{thought}{closing}{answer(statement(FLOAT))}"
    assert parsed([text]) == parsed(list(text)) == [ParsedSentence(FLOAT, support=(1,))]
    text = f"{thought}{closing.partition('>')[0]}>{FLOAT} [2]"
    assert parsed([text]) == parsed(list(text)) == [ParsedSentence(FLOAT, support=(2,))]


@pytest.mark.parametrize("text", ["<think>It never ends", "<thi", "``", "```json", "", " \n"])
def test_a_thought_or_a_fence_alone_says_nothing(text: str) -> None:
    assert parsed([text]) == parsed(list(text)) == []


def test_prose_in_place_of_json_is_read() -> None:
    text = f"<think>Hm.</think>Here it is: {FLOAT} [2] {EAT} [3, 9]\n1. Wash it [4]\n2. Dry it [5]"
    expected = [
        ParsedSentence(f"Here it is: {FLOAT}", support=(2,)),
        ParsedSentence(EAT, support=(3,)),
        ParsedSentence("Wash it", support=(4,)),
        ParsedSentence("Dry it", support=(5,)),
    ]
    assert parsed([text]) == parsed(list(text)) == expected
    assert parsed([REFUSAL]) == [ParsedSentence(REFUSAL)]


def test_line_breaks_within_a_string_are_taken() -> None:
    text = '{"statements":[{"support":[1],"statement":"Wash it.\nDry it."}],"answered":true}'
    assert parsed([text]) == parsed(list(text)) == [ParsedSentence("Wash it.\nDry it.", support=(1,))]


# Steps, code, tables

STEPS = "\n".join(f"{number}. Do the {name} part" for number, name in enumerate("abcdefgh", 1))
CODE = "```python\nxof = XOF.Init()\nxof.Absorb(rho)\nx[1] = y[2]  # both\n```"
TABLE = "| Model | F1 |\n|---|---|\n| Otter | 93.1 |"


@pytest.mark.parametrize(
    "text", [STEPS, CODE, TABLE, "XOF.Init() starts it.", "Call XOF.Init() first.", "`x[1]` holds f(x) = a[2] + (b).",
             "The array is scaled to [0, 1].", "for i in range(8):\n    print(x[i])", "E = mc^2 and a_1 < b"],
)  # fmt: skip
def test_steps_code_tables_and_formulas_are_unchanged(text: str) -> None:
    assert parsed([answer(statement(text))]) == [ParsedSentence(text, support=(1,))]


def test_a_marker_after_a_line_of_code_names_a_sentence() -> None:
    text = "xof = XOF.Init()  [2]\nx[1] = y[2] [3]"
    assert parsed([answer(statement(text))]) == [ParsedSentence("xof = XOF.Init()\nx[1] = y[2]", support=(1, 2, 3))]


def test_a_part_and_a_heading_become_headings_once() -> None:
    places = [("summary", ""), ("summary", ""), ("analysis", ""), ("analysis", "**The melt** [1]\nfast"),
              ("analysis", "Size"), ("elsewhere", "Nothing"), (3, "Nothing")]  # fmt: skip
    statements = [statement(f"Fact {n}.", part=part, heading=heading) for n, (part, heading) in enumerate(places)]
    parts = parsed([answer(*statements)])
    assert [part.text if isinstance(part, ParsedSentence) else f"# {part.text}" for part in parts] == [
        "# summary", "Fact 0.", "Fact 1.", "# analysis", "Fact 2.", "# analysis", "# The melt fast", "Fact 3.",
        "# analysis", "# Size", "Fact 4.", "Fact 5.", "Fact 6.",
    ]  # fmt: skip


def test_a_reference_of_the_papers_own_names_no_sentence() -> None:
    said = [f"{FLOAT[:-1]} (ref. 3).", "Otters (ref. 2, 4) float [2].", "According to sentence 4, otters float."]
    assert parsed([answer(*({"statement": text} for text in said))]) == [
        ParsedSentence(FLOAT),
        ParsedSentence("Otters float.", support=(2,)),
        ParsedSentence("Otters float.", support=(4,)),
    ]


def test_a_number_in_round_brackets_names_a_sentence_only_where_no_support_is_given() -> None:
    said = f"{FLOAT[:-1]} (3)."
    assert parsed([answer(statement(said, [1]))]) == [ParsedSentence(FLOAT, support=(1,))]
    assert parsed([answer({"statement": said})]) == [ParsedSentence(FLOAT, support=(3,))]


def test_xml_in_place_of_json_is_read() -> None:
    said = f'<statement support="2">{FLOAT}</statement><statement support="3, 4">{EAT}</statement>'
    said = f"<statements>{said}</statements>"
    wanted = [ParsedSentence(FLOAT, support=(2,)), ParsedSentence(EAT, support=(3, 4))]
    assert parsed([said]) == parsed([*said]) == wanted
