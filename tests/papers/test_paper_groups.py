from __future__ import annotations

import pytest

from folio.papers.lists import has_tag, is_in_collection, matches, unknown_names
from folio.papers.metadata import NO_METADATA, Field, Metadata

pytestmark = pytest.mark.fast

RAFT = Metadata(
    tags=Field(("To Read", "étude"), "zotero", True), collections=Field(("Systems/Consensus/Raft",), "zotero", True)
)
TEA = Metadata(tags=Field(("tea",), "zotero", True), collections=Field(("Consensus, a pun",), "zotero", True))


@pytest.mark.parametrize(
    "name", ["Systems", "systems", "Consensus", "Raft", "Systems/Consensus", "consensus/raft", "/Systems/", " Raft "]
)
def test_a_collection_by_name_or_part_of_its_path(name: str) -> None:
    assert is_in_collection(RAFT, name)
    assert not is_in_collection(TEA, name)


@pytest.mark.parametrize("name", ["", "/", "Sys", "Systems/Raft", "Raft/More"])
def test_no_such_collection(name: str) -> None:
    assert not is_in_collection(RAFT, name)


def test_tags_whatever_their_case_and_accents() -> None:
    assert has_tag(RAFT, "to  read")
    assert has_tag(RAFT, "e\u0301tude")
    assert not has_tag(RAFT, "read")
    assert not has_tag(NO_METADATA, "")


def test_groups_are_matched_and_unknown_names_found() -> None:
    assert matches(RAFT, [], [])
    assert matches(RAFT, ["Plants", "Raft"], ["tea", "to read"])
    assert not matches(RAFT, ["Raft"], ["tea"])
    assert not matches(TEA, ["Raft"], ["tea"])
    assert unknown_names([RAFT, TEA], ["raft", "Plants"], ["tea", "coffee"]) == ["Plants", "coffee"]
