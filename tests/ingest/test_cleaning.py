"""Text cleaning: examples and properties."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folio.ingest.cleaning import clean
from folio.papers.model import Page

pytestmark = pytest.mark.fast


def _pages(*texts: str) -> list[Page]:
    return [Page(number, "", text) for number, text in enumerate(texts, 1)]


def _clean(*texts: str) -> str:
    return clean(_pages(*texts))[0]


def _each(*texts: str) -> list[str]:
    text, page_map = clean(_pages(*texts))
    return [text[slice(*page_map.bounds(n, len(text)))].strip() for n in range(1, len(texts) + 1)]


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("eﬃcient ﬁnd ﬂow oﬀ baﬄe ﬅ ﬆ", "efficient find flow off baffle st st"),
        ("10⁻³ x² H₂O ½ ™", "10⁻³ x² H₂O ½ ™"),
        ("soft\xadhyphen", "softhyphen"),
        ("a\xa0b\u2003c\u202fd\u3000e\tf", "a b c d e f"),
        ("nul\x00 bell\x07 del\x7f", "nul bell del"),
        ("zero\u200bwidth \ufeffmark \u200ebidi\u202e \u2066x\u2069", "zerowidth mark bidi x"),
        ("lone\ud835surrogate", "lonesurrogate"),
        ("\uf0b7 item \ue000glyph\U000f0001", "• item glyph"),
        ("e\u0301tude", "étude"),
        ("well\u2010known non\u2011breaking", "well-known non-breaking"),
        ("line one  \r\nline two\rline three", "line one\nline two\nline three"),
        ("a\n\n\n\n\nb\n \n \nc\n\nd\ne", "a\n\nb\n\nc\n\nd\ne"),
        ("    indented = code\n        stays = True", "indented = code\n        stays = True"),
        ("\n\n  \n", ""),
    ],
)
def test_characters_and_whitespace(raw: str, repaired: str) -> None:
    assert _clean(raw) == repaired


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("re-\ntrieval", "retrieval"),
        ("re\xad\ntrieval", "retrieval"),
        ("writ\u2010\nten", "written"),
        ("infor-  \n  mation, then", "information, then"),
        ("state-of-the-\nart, but the rest", "state-of-the-art, but the rest"),
        ("multi-dimen-\nsional", "multi-dimensional"),
        ("ML-\nKEM", "ML-KEM"),
        ("pages 12-\n19", "pages 12-19"),
        ("GPT-\nbased", "GPT-based"),
        ("Smith-\nJones", "Smith-Jones"),
        ("k-\nmeans", "k-means"),
        ("built-\nin", "built-in"),
        ("pre-\nand postsynaptic", "pre-\nand postsynaptic"),
        ("https://host.org/some-\npath", "https://host.org/some-path"),
        ("a dash -\nand more", "a dash -\nand more"),
        ("not a word-\n\nNext paragraph", "not a word-\n\nNext paragraph"),
        # The paper's own spelling decides.
        ("data-driven here; data-\ndriven there", "data-driven here; data-driven there"),
        ("online here; on-\nline there", "online here; online there"),
        ("co-operate, cooperate, cooperate; co-\noperate", "co-operate, cooperate, cooperate; cooperate"),
        ("Bitbucket and Bit-\nBucket", "Bitbucket and BitBucket"),
        # Both parts are words, and the first one begins other compounds.
        ("open-source, open access, open-\naccess", "open-source, open access, open-access"),
    ],
)
def test_words_hyphenated_at_line_ends(raw: str, repaired: str) -> None:
    assert _clean(raw) == repaired


def test_a_word_hyphenated_at_the_end_of_a_page() -> None:
    text, page_map = clean(_pages("It is about re-", "trieval of text."))
    assert text == "It is about retrieval of text."
    assert page_map.starts == (0, len("It is about re"))


@pytest.mark.parametrize(
    ("first", "second", "joint"),
    [
        ("It ends.", "next one", "\n\n"),
        ("It goes", "on here", "\n"),
        ("one, two,", "three", "\n"),
        ("It goes", "On here", "\n\n"),
        ("Said (so)", "and so", "\n\n"),
    ],
)
def test_pages_are_joined(first: str, second: str, joint: str) -> None:
    assert _clean(first, second) == first + joint + second


def test_a_sentence_goes_on_over_a_page_break_where_reading_says_so() -> None:
    first = Page(1, "", "It was said by", goes_on=True, inside=("7",))
    pages = [first, Page(2, "", "Head\n8\n\nLamport.", inside=("Head", "8"))]
    assert clean(pages)[0] == "It was said by\nLamport."
    assert clean([pages[0], Page(2, "", ""), pages[1]])[0] == "It was said by\n\nLamport."
    # Only at the edge, and only as often as it is named
    assert clean([Page(1, "", "8\n8\nA\n8", inside=("8",))])[0] == "8\nA\n8"


def test_a_page_without_text_starts_where_the_next_one_does() -> None:
    text, page_map = clean(_pages("", "One.", "", " \n", "Two.", ""))
    assert text == "One.\n\nTwo."
    assert page_map.starts == (0, 0, 6, 6, 6, 10)


def test_labels_are_kept() -> None:
    _, page_map = clean([Page(1, "iv", "One."), Page(2, "", "Two.")])
    assert page_map.labels == ("iv", "")


def test_no_pages() -> None:
    text, page_map = clean([])
    assert (text, page_map.starts, page_map.labels) == ("", (), ())


_BODY = ["Alpha is first.\nIt opens.", "Beta is second.\nIt follows.", "Gamma is third.\nIt goes.", "Delta.\nIt ends."]


def test_running_heads_feet_and_page_numbers_are_removed() -> None:
    pages = [f"Journal of Things 12 (2020)\n{body}\nA. Author et al.\n{n}" for n, body in enumerate(_BODY, 5)]
    found = _each(*pages)
    assert found == ["Journal of Things 12 (2020)\n" + _BODY[0], *_BODY[1:]]


def test_heads_of_left_and_right_pages_are_removed() -> None:
    bodies = [f"Body number {name} speaks.\nAnd {name} ends." for name in "abcdefgh"]
    pages = [f"{n} A. Author\n{b}" if n % 2 else f"A Title of Things {n}\n{b}" for n, b in enumerate(bodies, 1)]
    assert _each(*pages)[1:] == bodies[1:]


def test_heads_of_many_lines_are_removed() -> None:
    head = "NIST SP 800-207\nTHE TITLE\n{}\nThis publication is free of charge"
    assert _each(*[f"{head.format(n)}\n{body}" for n, body in enumerate(_BODY, 1)])[1:] == _BODY[1:]


def test_the_title_on_the_first_page_stays() -> None:
    pages = [f"A Title of Things\n{body}" for body in _BODY]
    assert _each(*pages) == ["A Title of Things\n" + _BODY[0], *_BODY[1:]]


def test_roman_page_numbers_and_those_in_words_are_removed() -> None:
    numbers = ["iii", "iv", "Page 1 of 9", "- 2 -"]
    labels = ["iii", "iv", "1", "2"]
    pages = [
        Page(n, label, f"{body}\n{number}")
        for n, (label, body, number) in enumerate(zip(labels, _BODY, numbers, strict=True), 1)
    ]
    assert clean(pages)[0] == "\n\n".join(_BODY)


@pytest.mark.parametrize(
    "pages",
    [
        ["Same head\n" + body for body in _BODY[:2]],  # too few pages to tell
        [f"Figure {n}: a picture\n{body}" for n, body in enumerate(_BODY, 1)],
        [f"{n} Reproduction of Figure {n + 1}\n{body}" for n, body in enumerate(_BODY, 1)],
        [f"Chapter {n}\n{body}" for n, body in enumerate(_BODY, 1)],
        [f"{body}\n0.1 2.{n} 3" for n, body in enumerate(_BODY, 1)],
        [f"{body}\n{n}" for n, body in zip((17, 4, 90, 3), _BODY, strict=True)],
        ["Methods\n" + _BODY[0], *_BODY[1:]],
        ["Hello world"] * 5,
    ],
    ids=["two pages", "captions", "headings", "chapters", "table rows", "lone numbers", "one heading", "nothing else"],
)
def test_text_that_resembles_a_running_head_stays(pages: list[str]) -> None:
    assert _each(*pages) == pages


_text = st.text(st.one_of(st.characters(), st.sampled_from("ab- \n\n\xad\f\v\x00ﬁ\ud800\uf0b7\xa019.")), max_size=120)


@settings(deadline=None)
@given(st.lists(_text, max_size=6))
def test_pages_partition_text_that_is_valid_utf8(texts: list[str]) -> None:
    text, page_map = clean(_pages(*texts))
    text.encode("utf-8")
    assert len(page_map.starts) == len(page_map.labels) == len(texts)
    assert list(page_map.starts) == sorted(page_map.starts)
    assert all(start == 0 for start in page_map.starts[:1])
    assert text == text.strip()
    assert "\n\n\n" not in text
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cs", "Co")]
    slices = [text[slice(*page_map.bounds(n, len(text)))] for n in range(1, len(texts) + 1)]
    assert "".join(slices) == text
    for part in slices:
        assert part.rstrip("\n") == part.strip()
        assert part[len(part.rstrip("\n")) :] in ("", "\n", "\n\n")


@settings(deadline=None)
@given(st.lists(st.text("abcdefghij .", max_size=60), max_size=2))
def test_plain_text_stays_as_it_is(texts: list[str]) -> None:
    assert _each(*texts) == [text.strip() for text in texts]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.from_regex(r"[a-z]{2,8}( [a-z]{2,8}){5,20}\.", fullmatch=True), min_size=3, max_size=8, unique=True))
def test_body_text_survives_between_running_lines(bodies: list[str]) -> None:
    pages = [f"The Running Head\n{body}\n{number}" for number, body in enumerate(bodies, 1)]
    assert _each(*pages)[1:] == bodies[1:]
