"""Parsing a model's prose: sentences, markers, headings, tables, code, in pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.markers import take_markers
from folio.answer.parser import LONGEST_SENTENCE, Heading, OutputParser, ParsedSentence, parse_sentences
from tests.helpers.cpu_time import assert_linear

pytestmark = pytest.mark.fast

WORDS = "The cat Fig. al. 3 2. 4.5 J. end. Why? No! ... “Then ” « » ** [1] [2,3] [ (1) (2019) 。 文 | `".split()
WORDS += ["\n\n", "\n- ", "\n", "\n| ", " |\n", "\n|---|\n", "\n```\n", "\n# ", "**\n"]
DRAFTS = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.lists(
    st.sampled_from([*WORDS, *" .[]()-1\n|#*"]), max_size=25
).map("".join)


def parsed(pieces: Iterable[str], count: int = 3) -> list[ParsedSentence | Heading]:
    parser = OutputParser(count)
    return [part for piece in pieces for part in parser.feed(piece)] + parser.end()


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("It holds [1].", 3, ("It holds.", (1,))), ("It holds[1].", 3, ("It holds.", (1,))),
        ("It holds [1][3].", 3, ("It holds.", (1, 3))), ("It holds [1] [3].", 3, ("It holds.", (1, 3))),
        ("It holds [3, 1; 2].", 3, ("It holds.", (3, 1, 2))), ("It holds [1 and 2].", 3, ("It holds.", (1, 2))),
        ("It holds [1-3].", 3, ("It holds.", (1, 2, 3))), ("It holds [1 – 3].", 3, ("It holds.", (1, 2, 3))),
        ("It holds [2-999].", 3, ("It holds.", (2, 3))), ("It holds [3-1].", 3, ("It holds.", ())),
        # Other notations
        ("It holds [Source 1].", 3, ("It holds.", (1,))), ("It holds [Evidence 2, 3].", 3, ("It holds.", (2, 3))),
        ("It holds [passage 2].", 3, ("It holds.", (2,))), ("It holds [Ref. 2].", 3, ("It holds.", (2,))),
        ("It holds [^1].", 3, ("It holds.", (1,))), ("It holds [#2].", 3, ("It holds.", (2,))),
        ("It holds [1, p. 4].", 3, ("It holds.", (1,))), ("It holds (sources 1 and 2).", 3, ("It holds.", (1, 2))),
        ("[2] It holds.", 3, ("It holds.", (2,))),
        # Missing, repeated, nested, cut off
        ("It holds.", 3, ("It holds.", ())), ("It [1] holds [1].", 3, ("It holds.", (1,))),
        ("It holds [[1]].", 3, ("It holds.", (1,))), ("It holds ([2]).", 3, ("It holds.", (2,))),
        ("It holds (see [2]).", 3, ("It holds.", (2,))),
        ("It holds (as said [2]).", 3, ("It holds (as said).", (2,))), ("It holds [1", 3, ("It holds", ())),
        ("It holds [1, 2", 3, ("It holds", ())),
        # Invented
        ("It holds [7].", 3, ("It holds.", ())), ("It holds [0].", 3, ("It holds.", ())),
        ("It holds [2, 9].", 3, ("It holds.", (2,))), ("It holds [1].", 0, ("It holds.", ())),
        # What only the program may write: a citation of a page
        ("It holds [otters p.7].", 3, ("It holds.", ())),
        ("It holds [arXiv:2301.01234 p. 7] [2].", 3, ("It holds.", (2,))), ("It holds (p. 7).", 3, ("It holds.", ())),
        ("It holds (Smith, pp. 7-9) [1].", 3, ("It holds.", (1,))),
        # No markers
        ("Scaled to [0, 1] it holds [2].", 3, ("Scaled to [0, 1] it holds.", (2,))),
        ("It holds [citation needed].", 3, ("It holds [citation needed].", ())),
        ("It holds [1000].", 3, ("It holds [1000].", ())),
        ("The array x[1] is set [2].", 3, ("The array x[1] is set.", (2,))),
        ("`a[1]` is set [2].", 3, ("`a[1]` is set.", (2,))),
        ("It is $x_[1]$ here [2].", 3, ("It is $x_[1]$ here.", (2,))),
        # Round brackets: a number of the evidence, or not
        ("It holds (1).", 3, ("It holds.", (1,))), ("It holds (2019).", 3, ("It holds (2019).", ())),
        ("It holds (7).", 3, ("It holds (7).", ())), ("It holds (a).", 3, ("It holds (a).", ())),
        ("It holds (1, 9).", 3, ("It holds (1, 9).", ())),
        ("It holds (1) and more (2).", 3, ("It holds (1) and more.", (2,))),
        ("By equation (2).", 3, ("By equation (2).", ())),
        ("It follows from step (1).", 3, ("It follows from step (1).", ())),
    ],
)  # fmt: skip
def test_markers(text: str, count: int, expected: tuple[str, tuple[int, ...]]) -> None:
    assert take_markers(text, count) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A is b [1]. C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        # A marker behind the full stop belongs to the sentence before it
        ("A is b. [1] C is d. [2]", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("A is b.[1] C is d.[2][1]", [("A is b.", (1,)), ("C is d.", (2, 1))]),
        ("A is b.\n[1]\nC is d.", [("A is b.", (1,)), ("C is d.", ())]),
        ("A is b. (1) C is d.", [("A is b.", (1,)), ("C is d.", ())]), ("A is b. [1].", [("A is b.", (1,))]),
        ("A is b 【1†source】.", [("A is b.", (1,))]), ("[2] A is b.", [("A is b.", (2,))]),
        # Lists and marks of type
        ("- A is b [1].\n- C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("1. A is b [1].\n2. C is d [2].", [("A is b.", (1,)), ("C is d.", (2,))]),
        ("**A** is b. [1]", [("A is b.", (1,))]), ("**A is b.** [1] **C.**", [("A is b.", (1,)), ("C.", ())]),
        ("-5 degrees is cold [1].", [("-5 degrees is cold.", (1,))]), ("3.5 is b [1].", [("3.5 is b.", (1,))]),
        # Nothing to say
        ("", []), (" \n[1]", []), ("...", []),
    ],
)  # fmt: skip
def test_parse_sentences(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert parse_sentences(text, 3, complete=True) == ([ParsedSentence(*sentence) for sentence in expected], "")
    assert parsed([text]) == [ParsedSentence(*sentence) for sentence in expected]


def test_a_sentence_ends_when_the_next_begins() -> None:
    assert parse_sentences("A is b. [", 3, complete=False) == ([], "A is b. [")
    assert parse_sentences("A is b. [1] [", 3, complete=False) == ([], "A is b. [1] [")
    assert parse_sentences("A is b. [1] C", 3, complete=False) == ([ParsedSentence("A is b.", (1,))], " C")
    assert parse_sentences("A is b. C", 3, complete=False) == ([ParsedSentence("A is b.", ())], "C")
    parser = OutputParser(3)
    assert parser.feed("A is b. ") == []
    assert parser.feed("[1]") == []
    assert parser.feed(" C") == [ParsedSentence("A is b.", (1,))]
    assert parser.feed(" is d.") == []
    assert parser.end() == [ParsedSentence("C is d.", ())]


@given(DRAFTS | st.text(max_size=80), st.data())
def test_pieces_of_every_size_give_the_same_as_the_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=len(text))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parsed(pieces) == parsed([text]) == parsed(list(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Head\n\nText [1].", [Heading("Head"), ParsedSentence("Text.", (1,))]),
        ("### The *Head*: \nText.", [Heading("The Head"), ParsedSentence("Text.", ())]),
        ("**Head**\nText.", [Heading("Head"), ParsedSentence("Text.", ())]),
        ("**Head:**\n\n- Text [2].", [Heading("Head"), ParsedSentence("Text.", (2,))]),
        (
            "A is b [1].\n\n## Head\n\nC. [2].",
            [ParsedSentence("A is b.", (1,)), Heading("Head"), ParsedSentence("C.", (2,))],
        ),
        ("**Bold** begins this sentence [1].", [ParsedSentence("Bold begins this sentence.", (1,))]),
    ],
)
def test_headings(text: str, expected: list[ParsedSentence | Heading]) -> None:
    got = parsed([text])
    if "*Head*" in text:  # whether the inner marks of type stay is of no concern here
        got = [Heading(part.text.replace("*", "")) if isinstance(part, Heading) else part for part in got]
    assert got == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "| Model | F1 |\n|---|---|\n| Otter | 93.1 [1] |\n| Seal | **88** [2] |\n",
            [ParsedSentence("Model: Otter; F1: 93.1", (1,), ("Otter", "93.1")),
             ParsedSentence("Model: Seal; F1: 88", (2,), ("Seal", "88"))],
        ),
        # Without a head, each row by itself
        ("| Otter | 93.1 |\n| Seal | 88 | [2]\n",
         [ParsedSentence("Otter; 93.1", (), ("Otter", "93.1")), ParsedSentence("Seal; 88", (2,), ("Seal", "88"))]),
        # Prose before and after
        (
            "They differ. [1]\n| A | B |\n|:--|--:|\n| x | y |\nThat is all. [2]",
            [ParsedSentence("They differ.", (1,)), ParsedSentence("A: x; B: y", (), ("x", "y")),
             ParsedSentence("That is all.", (2,))],
        ),
        # More cells than the head names; an empty one
        ("| A |\n|---|\n| x | y |\n", [ParsedSentence("A: x; y", (), ("x", "y"))]),
        ("| A | B |\n|---|---|\n|  | y |\n", [ParsedSentence("B: y", (), ("y",))]),
        # A head alone says nothing
        ("| A | B |\n|---|---|\n", []),
    ],
)  # fmt: skip
def test_a_tables_rows_are_sentences_and_keep_their_cells(text: str, expected: list[ParsedSentence | Heading]) -> None:
    assert parsed([text]) == expected
    assert parsed(list(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wash it\nDry it [2]\nStore it", [("Wash it", ()), ("Dry it", (2,)), ("Store it", ())]),
        ("1. Wash it\n2. Dry it", [("Wash it", ()), ("Dry it", ())]),
        ("Step 1: wash it\nStep 2: dry it\n", [("Step 1: wash it", ()), ("Step 2: dry it", ())]),
        ("call XOF.Init()\ncall XOF.Absorb(x)", [("call XOF.Init()", ()), ("call XOF.Absorb(x)", ())]),
        ("So it is:\nwash it\n\n\n dry it", [("So it is:", ()), ("wash it", ()), ("dry it", ())]),
        ("Wash it\r\nDry it.\n[1]", [("Wash it", ()), ("Dry it.", (1,))]),
        ("> Wash it\n> Dry it", [("Wash it", ()), ("Dry it", ())]),
    ],
)
def test_the_end_of_a_line_ends_a_sentence(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert parsed([text]) == [ParsedSentence(*sentence) for sentence in expected]
    assert parsed(list(text)) == parsed([text])


def test_an_index_in_code_is_no_marker() -> None:
    text = "Run this:\n```python\nx = a[1]  [2]\nprint(x)\n\n```\nIt prints x [1]."
    assert parsed([text]) == [
        ParsedSentence("Run this:", ()),
        ParsedSentence("x = a[1]", (2,)),
        ParsedSentence("print(x)", ()),
        ParsedSentence("It prints x.", (1,)),
    ]
    assert parsed(list(text)) == parsed([text])


def test_control_sequences_are_left_out_however_they_are_cut() -> None:
    text = "A \x1b[31mis\x1b[0m b\x07 [1]. \x1b]8;;http://x\x07C\x1b]8;;\x07 is d.\r\nE."
    expected = [ParsedSentence("A is b.", (1,)), ParsedSentence("C is d.", ()), ParsedSentence("E.", ())]
    assert parsed([text]) == expected
    assert parsed(list(text)) == expected


def test_endless_text_is_cut() -> None:
    parser = OutputParser(3)
    found = [part for _ in range(2000) for part in parser.feed("word ")] + parser.end()
    assert found
    assert all(len(part.text) <= LONGEST_SENTENCE + 1 for part in found)


@pytest.mark.parametrize(
    ("repeated", "count", "around", "size"),
    [
        ("word ", 1228, ("", ""), 1), ("[1]", 2048, ("", ""), 1), ("\u200d", 6144, ("", ""), 4),
        ("[", 1400, ("", ""), 1500), (" ", 1400, ("x [", "y"), 1500), (" ", 1200, ("```\nx = 1", "!x\n```\n"), 1300),
        (" ", 1200, ("```\nx = 1", "(x)\n```\n"), 1300), (" ", 1200, ("```\nx = 1 [source", "]\n```\n"), 1300),
    ],
)  # fmt: skip
def test_no_text_takes_long(repeated: str, count: int, around: tuple[str, str], size: int) -> None:
    def read(times: int) -> None:
        text = (repeated * times).join(around)
        parsed([text[start : start + size] for start in range(0, len(text), size)])

    assert_linear(read, count)  # the last ones took up to 60 s


def test_nested_brackets_take_no_time_and_leave_no_marker() -> None:
    assert take_markers("[" * 1400, 3) == ("", ())
    assert take_markers("It holds " + "[" * 5 + "1" + "]" * 5, 3) == ("It holds", (1,))
    text, _ = take_markers("A" + "[" * 500 + "1" + "]2" * 400, 3)
    assert "[" not in text
    assert_linear(lambda times: take_markers("[" * times, 3), 1400)
    assert_linear(lambda times: take_markers("A" + "[" * times + "1" + "]2" * times, 3), 400)


def markers_of(parts: Sequence[ParsedSentence | Heading]) -> set[int]:
    return {marker for part in parts if isinstance(part, ParsedSentence) for marker in part.markers}


@given(DRAFTS, st.integers(0, 3))
def test_markers_name_evidence_and_sentences_have_words(text: str, count: int) -> None:
    parts = parsed([text], count)
    assert markers_of(parts) <= set(range(1, count + 1))
    assert all(part.text == part.text.strip() and part.text for part in parts)
