"""Packed postings: what is unpacked is what was packed. That scores are tantivy's is tested with the search."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.errors import IndexDamaged
from folio.shared.server_index import BLOCK, FIELD_NORMS, NONE, Postings, joined, key, pack, postings_of, unpack

PLACES = st.dictionaries(st.integers(0, BLOCK - 1), st.tuples(st.integers(1, 70_000), st.integers(0, 255)), min_size=1)


def _postings(block: int, places: dict[int, tuple[int, int]]) -> Postings:
    counts, norms = zip(*(places[place] for place in sorted(places)), strict=True)
    numbers = block * BLOCK + np.array(sorted(places), dtype=np.int64)
    return Postings(numbers, np.array(counts, dtype=np.int64), np.array(norms, dtype=np.uint8))


@given(st.integers(0, 1000), PLACES)
def test_unpacked_is_what_was_packed(block: int, places: dict[int, tuple[int, int]]) -> None:
    made = _postings(block, places)
    found = unpack("term", block, len(made), pack("term", block, made))
    assert found.numbers.tolist() == made.numbers.tolist()
    assert found.counts.tolist() == np.minimum(made.counts, 65_535).tolist()  # more make no difference to a score
    assert found.norms.tolist() == made.norms.tolist()


@given(PLACES, st.data())
def test_a_changed_byte_is_found(places: dict[int, tuple[int, int]], data: st.DataObject) -> None:
    made = _postings(3, places)
    stored = bytearray(pack("term", 3, made))
    at = data.draw(st.integers(0, len(stored) - 1))
    stored[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(IndexDamaged):
        unpack("term", 3, len(made), bytes(stored))
    for term, block, count in (("other", 3, len(made)), ("term", 4, len(made)), ("term", 3, len(made) + 1)):
        with pytest.raises(IndexDamaged):
            unpack(term, block, count, pack("term", 3, made))


def test_lengths_are_rounded_down_to_what_a_byte_holds() -> None:
    assert FIELD_NORMS[:45].tolist() == [*range(40), 40, 42, 44, 46, 48]
    assert FIELD_NORMS[-1] == 2_013_265_944  # the last of tantivy's table
    assert (np.diff(FIELD_NORMS) > 0).all()


@given(st.lists(st.lists(st.sampled_from(["ice", "sea", "otter", "x" * 200]), max_size=60), max_size=20))
def test_postings_count_the_terms_of_each_passage(bodies: list[list[str]]) -> None:
    made = postings_of(100, bodies)
    expected = {
        key(term): [(number, Counter(body)[term], len(body)) for number, body in enumerate(bodies, 100) if term in body]
        for term in {term for body in bodies for term in body}
    }
    assert made.keys() == expected.keys()
    for term, own in made.items():
        counted = [(number, count) for number, count, _ in expected[term]]
        assert list(zip(own.numbers.tolist(), own.counts.tolist(), strict=True)) == counted
        lengths = [length for _, _, length in expected[term]]
        assert all(FIELD_NORMS[norm] <= length for norm, length in zip(own.norms, lengths, strict=True))
        assert all(FIELD_NORMS[norm + 1] > length for norm, length in zip(own.norms.astype(int), lengths, strict=True))


def test_parts_are_joined_and_numbers_taken_out() -> None:
    first, second = _postings(0, {1: (1, 5), 3: (2, 5)}), _postings(1, {0: (1, 9)})
    both = joined([first, NONE, second])
    assert both.numbers.tolist() == [1, 3, BLOCK]
    assert both.without(np.array([3, 7])).numbers.tolist() == [1, BLOCK]
    assert len(joined([])) == 0
