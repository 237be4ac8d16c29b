"""Labelled sentences are found in their answer, with the evidence numbers beside them."""

from __future__ import annotations

import pytest

from folio.evaluate.marker_lookup import markers_of

pytestmark = pytest.mark.fast


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
