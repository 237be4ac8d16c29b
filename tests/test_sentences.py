"""Where sentences end: abbreviations, numbers, quotes, lists, other scripts."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.sentences import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Full stops that end nothing
        ("See Fig. 3 for it. Then go.", ["See Fig. 3 for it.", "Then go."]),
        ("Eqs. 2 and 3 hold, cf. Sec. 4. Done.", ["Eqs. 2 and 3 hold, cf. Sec. 4.", "Done."]),
        ("By Alg. 2 it halts. Thm. 1 says so.", ["By Alg. 2 it halts.", "Thm. 1 says so."]),
        ("We use it, e.g. Adam, i.e. the default. Good.", ["We use it, e.g. Adam, i.e. the default.", "Good."]),
        ("Smith et al. Report it. Then", ["Smith et al. Report it.", "Then"]),
        ("As Smith et al. (2020) show. It holds.", ["As Smith et al. (2020) show.", "It holds."]),
        ("J. R. R. Tolkien wrote. He did.", ["J. R. R. Tolkien wrote.", "He did."]),
        ("It is 3.14. Version 1.2 came.", ["It is 3.14.", "Version 1.2 came."]),
        ("The U.S. Army came. It left.", ["The U.S. Army came.", "It left."]),
        ("No. 5 is good. We agree.", ["No. 5 is good.", "We agree."]),
        ("The answer is no. He left.", ["The answer is no.", "He left."]),
        ("Open the app. Then log in.", ["Open the app.", "Then log in."]),
        ("it waits... and goes on. Now.", ["it waits... and goes on.", "Now."]),
        ("Use numpy.linalg here. See it.", ["Use numpy.linalg here.", "See it."]),
        # Full stops that do
        ("Type I. Then more.", ["Type I.", "Then more."]),
        ("Is it? Yes! Fine… Next", ["Is it?", "Yes!", "Fine…", "Next"]),
        ("It costs $5. 10 people came.", ["It costs $5.", "10 people came."]),
        ("One.\nTwo goes on\nhere. Three.", ["One.", "Two goes on\nhere.", "Three."]),
        ("He ran.[1] She sat.[2, 3]", ["He ran.[1]", "She sat.[2, 3]"]),
        # Quotes and brackets close behind the stop
        ('He said "yes." Then left.', ['He said "yes."', "Then left."]),
        ("He said “yes.” Then left.", ["He said “yes.”", "Then left."]),
        ("Elle a dit « oui. » Puis", ["Elle a dit « oui. »", "Puis"]),
        ("(It holds.) Next.", ["(It holds.)", "Next."]),
        ("It holds. “So it does.” End", ["It holds.", "“So it does.”", "End"]),
        # Lists, headings, paragraphs
        ("1. First item\n2. Second item", ["1. First item", "2. Second item"]),
        ("• one thing\n• two things", ["• one thing", "• two things"]),
        ("- one\n- two", ["- one", "- two"]),
        ("Introduction\n\nThe text goes on. End", ["Introduction", "The text goes on.", "End"]),
        ("1) alpha\n2) beta. Gamma", ["1) alpha", "2) beta.", "Gamma"]),
        # No final stop, no text, other scripts
        ("No final stop", ["No final stop"]),
        ("  \n ", []),
        ("", []),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("这是吗？是！好", ["这是吗？", "是！", "好"]),
        ("Это так. Да. Нет", ["Это так.", "Да.", "Нет"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


WORDS = "The cat Fig. al. 3 2. 4.5 J. end. Why? No! ... “Then ” « » ** [1] [2,3] [ (1) (2019) 。 文".split()
WORDS += ["\n\n", "\n- ", "\n"]
PROSE = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join) | st.lists(
    st.sampled_from([*WORDS, *" .[]()-1\n"]), max_size=25
).map("".join)


@given(PROSE | st.text(max_size=80))
def test_sentences_are_disjoint_in_order_trimmed_and_cover_every_letter(text: str) -> None:
    spans = sentence_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())


@pytest.mark.parametrize("text", ["." * 6000 + "!x", "。" * 6000 + "x"])
def test_a_run_of_stops_does_not_take_long(text: str) -> None:
    begun = time.process_time()
    sentence_spans(text)
    assert time.process_time() - begun < 0.4
