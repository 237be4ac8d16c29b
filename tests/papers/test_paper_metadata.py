"""The layers of a paper's metadata: which source wins, what is known, and the form in which they are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.papers.identifiers import without_version
from folio.papers.metadata import (
    FIELDS,
    NO_METADATA,
    SOURCES,
    Field,
    Metadata,
    PersonName,
    Source,
    from_json,
    merged,
    simple_metadata,
    to_json,
)
from tests.helpers.known_papers import known

PDF = simple_metadata("Proceedings Template - WORD", ("Ada B. Byte",), 1999, "2301.01234v2")


def test_each_field_comes_from_its_most_trusted_source() -> None:
    assert SOURCES == ("person", "zotero", "bibliography", "online", "pdf")
    layers: dict[Source, Metadata] = {
        "pdf": PDF,
        "bibliography": known("bibliography", title="From a bibliography", year=2001, venue="A Journal", doi="10.1/b"),
        "online": known("openalex", title="From OpenAlex", year=2003, venue="Nowhere", abstract="Short."),
        "zotero": known("zotero", title="From Zotero", year=2002),
        "person": known("person", title="From a person"),
    }
    expected = Metadata(
        title=Field("From a person", "person", True),
        authors=Field((PersonName("Byte", "Ada B."),), "page"),
        year=Field(2002, "zotero", True),
        venue=Field("A Journal", "bibliography", True),
        doi=Field("10.1/b", "bibliography", True),
        arxiv=Field("2301.01234v2", "page"),
        abstract=Field("Short.", "openalex", True),
    )
    assert merged(layers) == expected
    assert merged(dict(reversed(layers.items()))) == expected  # whatever their order
    assert merged({}) == NO_METADATA


def test_what_a_person_emptied_hides_what_others_say() -> None:
    emptied = known("person", title="", authors=(), year=None)
    found = merged({"pdf": PDF, "person": emptied})
    assert (found.title.value, found.authors.value, found.year.value) == ("", (), None)
    assert found.arxiv == PDF.arxiv
    assert found.known().keys() == {"title", "authors", "year", "arxiv"}


def test_metadata_knows_what_its_source_vouches_for() -> None:
    assert Metadata(year=Field(2014, "cited works")).printed_year is None
    assert Metadata(year=Field(2014, "page")).printed_year == 2014
    assert simple_metadata() == NO_METADATA
    assert simple_metadata("A", origin="bibliography").known() == {"title": Field("A", "bibliography")}


@pytest.mark.parametrize(("given", "bare"), [("2301.01234v2", "2301.01234"), ("hep-th/9901001", "hep-th/9901001")])
def test_an_identifier_without_its_version(given: str, bare: str) -> None:
    assert without_version(given) == bare


def test_the_stored_form() -> None:
    metadata = Metadata(
        title=Field("On Otters", "page", True),
        authors=Field((PersonName("Otter", "Ann"), PersonName("NASA")), "bibliography", True),
        year=Field(None, "person", True),
        tags=Field(("a", "b"), "zotero", True),
    )
    assert to_json(metadata) == {
        "title": {"value": "On Otters", "origin": "page", "sure": True},
        "authors": {"value": [["Otter", "Ann"], ["NASA", ""]], "origin": "bibliography", "sure": True},
        "year": {"value": None, "origin": "person", "sure": True},
        "tags": {"value": ["a", "b"], "origin": "zotero", "sure": True},
    }
    assert from_json(json.loads(json.dumps(to_json(metadata)))) == metadata


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PEOPLE: st.SearchStrategy[Any] = st.lists(st.builds(PersonName, TEXTS, TEXTS), max_size=3).map(tuple)
ORIGINS = st.sampled_from(["page", "pdf metadata", "cited works", "bibliography", "zotero", "person"])


def _values(name: str) -> st.SearchStrategy[Any]:
    lists: dict[str, st.SearchStrategy[Any]] = {"authors": PEOPLE, "year": st.none() | st.integers(0, 9999)}
    lists["further"] = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple)
    lists |= dict.fromkeys(("tags", "collections", "categories"), st.lists(TEXTS, max_size=3).map(tuple))
    return lists.get(name, TEXTS)


ANY = st.fixed_dictionaries(
    {}, optional={name: st.builds(Field, _values(name), ORIGINS, st.booleans()) for name in FIELDS}
).map(lambda fields: Metadata(**fields))


@given(ANY)
def test_metadata_is_stored_and_read_as_it_is(metadata: Metadata) -> None:
    assert from_json(json.loads(json.dumps(to_json(metadata), ensure_ascii=False))) == metadata


@given(ANY, ANY)
def test_merging_is_field_by_field(person: Metadata, pdf: Metadata) -> None:
    found = merged({"person": person, "pdf": pdf})
    for name in FIELDS:
        assert getattr(found, name) == getattr(person if name in person.known() else pdf, name)


GOOD: dict[str, Any] = {"value": "x", "origin": "page", "sure": True}


@pytest.mark.parametrize(
    "written",
    [
        {"shoe_size": GOOD}, {"title": {**GOOD, "value": 5}}, {"title": {**GOOD, "value": None}},
        {"title": {**GOOD, "origin": "hearsay"}}, {"title": {**GOOD, "origin": ""}}, {"title": {**GOOD, "sure": 1}},
        {"title": {**GOOD, "more": 1}}, {"title": {"value": "x", "origin": "page"}}, {"title": "x"},
        {"year": {**GOOD, "value": "2014"}}, {"year": {**GOOD, "value": True}}, {"year": {**GOOD, "value": 2014.0}},
        {"authors": {**GOOD, "value": ["Otter"]}}, {"authors": {**GOOD, "value": [["Otter", "Ann", "Jr"]]}},
        {"authors": {**GOOD, "value": [["Otter", 5]]}}, {"authors": {**GOOD, "value": ["Ed"]}},
        {"authors": {**GOOD, "value": [[]]}}, {"authors": {**GOOD, "value": 5}}, {"tags": {**GOOD, "value": [5]}},
        {"tags": {**GOOD, "value": "to read"}},
    ],
)  # fmt: skip
def test_what_was_not_stored_so_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        from_json(written)
