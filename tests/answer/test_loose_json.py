"""JSON as models write it: what is valid stays what it is, what is not is read as a person would read it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.loose_json import CutText, LooseReader, loose_values
from folio.answer.tex import plain_tex

pytestmark = pytest.mark.fast

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\\"), max_size=9)
KEYS = WORDS.map(lambda key: key.strip().casefold())
TEXTS = WORDS | st.sampled_from(['a "b", "c"', "it's", "x: 1, y: 2", '"}]', "{", "// no", "# 3", "“a”, “b”", "a\n- b"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False, width=32) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(KEYS, VALUES, max_size=4)


@given(CONTAINERS, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_is_read_as_json(value: Any, is_ascii: bool, indent: int | None) -> None:
    assert loose_values(json.dumps(value, ensure_ascii=is_ascii, indent=indent)) == [value]


@given(CONTAINERS | st.text(max_size=40), st.text("{}[]()\"'“”`,:=\\nt/* #a1", max_size=30), st.data())
def test_pieces_give_the_same_as_the_whole(value: Any, more: str, data: st.DataObject) -> None:
    text = json.dumps(value) + more
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    reader = LooseReader()
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        reader.feed(text[start:end])
    reader.end()
    assert reader.roots == loose_values(text)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"a": [1, 2,], "b": "c",}', {"a": [1, 2], "b": "c"}),
        ("{'a': 'it\\'s the otter's', 'b': True, 'c': None}", {"a": "it's the otter's", "b": True, "c": None}),
        ("{“a”: “one”, „b“: „two“, «c»: «three», `d`: ‘four’}", {"a": "one", "b": "two", "c": "three", "d": "four"}),
        ('{A: 1, b_2: yes, c: two words, d = 3, "e" => 4}', {"a": 1, "b_2": "yes", "c": "two words", "d": 3, "e": 4}),
        ('{"a": 1, // one\n # two\n /* three, {"x": 1} */ "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "say "yes", and "no"", "b": 1}', {"a": 'say "yes", and "no"', "b": 1}),
        ('{"a": [1, 2, "b": "c"}', {"a": [1, 2], "b": "c"}),
        ('{"a": [{"b": 1}, {"b": 2], "c": 3}', {"a": [{"b": 1}, {"b": 2}], "c": 3}),
        ('{"a": "b" "c": "d"\n"e": 1}', {"a": "b", "c": "d", "e": 1}),
        ('{"a": (1, 2), "b": [S3, #4]}', {"a": [1, 2], "b": ["S3", "#4"]}),
        ('{"a": "see http://x.org/# and /* this */"}', {"a": "see http://x.org/# and /* this */"}),
        ('{"a": [1, 2, ', {"a": [1, 2]}),
        ('{"a": [1, 2', {"a": [1]}),  # 2, or 20
        ("{}", {}),
    ],
)
def test_what_is_nearly_json_is_read_as_it_is_meant(written: str, value: Any) -> None:
    assert loose_values(f"Here: {written}") == [value]


def test_objects_one_after_the_other_and_an_end_that_is_cut() -> None:
    first, second = loose_values('{"a": 1}\n{"a": 2} and {"b": "cut off')[1:]
    assert (first, second) == ({"a": 2}, {"b": "cut off"})
    assert isinstance(second["b"], CutText)


@pytest.mark.parametrize(
    "hostile",
    [
        *("[" * 2**20, '{"a":' * 200_000, "[{" * 500_000, '{"a":"' + '"b' * 500_000, "{" + '"a",' * 250_000),
        *("[" + "/*" * 500_000, "[" + "'" * 2**20, '{"a":"' + "\\" * 2**20, "{" + "a " * 500_000, "}{" * 500_000),
        *(
            '["' + "\\nu$" * 250_000 + '"]',
            '["\\nu' + "\\(" * 500_000 + '"]',
            "[" + "1" * 2**20 + "]",
            '{"a" ' * 200_000,
            "[#" * 500_000,
        ),
    ],
)
def test_a_million_characters_take_seconds(hostile: str) -> None:
    begin = time.monotonic()
    loose_values(hostile)
    reader = LooseReader()
    for at in range(0, 2**15, 16):
        reader.feed(hostile[at : at + 16])
    assert time.monotonic() - begin < 20


TEX = [
    (r"The weight $\beta$ and $\theta$, $\rho$, $\nabla L$, $\frac{3}{4}$", "The weight β and θ, ρ, ∇L, 3/4"),
    (r"a density \rho of 3, a time \tau of 2, \alpha and \sigma", "a density ρ of 3, a time τ of 2, α and σ"),
    (r"$x \to \infty$, $n \neq 3$, $\nu = 2$, $a \times b \leq c$", "x →∞, n ≠3, ν= 2, a ×b ≤c"),
    (r"$10^{-3}\,\mathrm{m}$ at 5\% with $\bar{x}$", r"10^-3 m at 5% with $\bar{x}$"),
    (r"\\(\\beta_1\\) and \\alpha", "β_1 and α"),
    (r"One line.\nAnother, and\ttabs:\tan,\top.", "One line.\nAnother, and\ttabs:\tan,\top."),
    (r"First.\nutility\nnew\nearth\nTau\rthe end", "First.\nutility\nnew\nearth\nTau\rthe end"),
    (r"Items:\na) one\ne) two\nu) three\ni. four", "Items:\na) one\ne) two\nu) three\ni. four"),
    (r"Columns:\theight\ttime\tradius\nrow\tfour", "Columns:\theight\ttime\tradius\nrow\tfour"),
    (r"First\nexists\nless\rtimes\textended\textra\tg", "First\nexists\nless\rtimes\textended\textra\tg"),
    (r"\udots and \u00e9 and \upsilon", "⋰ and é and υ"),
    (r"for $5 and $6 {a} \u03b2", "for $5 and $6 {a} β"),
    (r"C:\\beta\\new stays", r"C:\beta\new stays"),
]


@pytest.mark.parametrize(("written", "meant"), TEX)
def test_a_backslash_is_an_escape_only_where_it_makes_one(written: str, meant: str) -> None:
    ((text,),) = loose_values(f'["{written}"]')
    assert plain_tex(text) == meant
