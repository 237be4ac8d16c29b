"""Values that a person gives to a paper's fields: what is taken, what is refused, and what resets do."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.errors import UsageError
from folio.papers.edits import (
    EDITABLE,
    checked_field,
    edited,
    parse_edit,
    parse_edits,
    parse_field,
    parse_person,
    resets,
    value_text,
)
from folio.papers.metadata import Field, Metadata, PersonName, from_json, to_json
from folio.papers.people import typed_name

THIS_YEAR = date.today().year


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        ("title=On  Sea\tOtters ", "title", "On Sea Otters"), ("title=a = b", "title", "a = b"),
        ("title=", "title", ""), ("title=cafe\u0301", "title", "café"), ("year=1400", "year", 1400),
        (f"year={THIS_YEAR + 1}", "year", THIS_YEAR + 1), ("year=", "year", None),
        ("doi=https://doi.org/10.1145/3597503.3639187", "doi", "10.1145/3597503.3639187"),
        ("doi=doi: 10.1000.10/a(b)<c>", "doi", "10.1000.10/a(b)<c>"),
        ("arxiv=arXiv:2301.01234v2", "arxiv", "2301.01234v2"),
        ("arxiv=https://arxiv.org/abs/math.GT/0309136", "arxiv", "math.GT/0309136"),
        ("arxiv=hep-th/9901001v1", "arxiv", "hep-th/9901001v1"), ("kind=paper-conference", "kind", "paper-conference"),
        ("url=https://example.org/a?b", "url", "https://example.org/a?b"),
        ("citation_key=ongaro2014:raft", "citation_key", "ongaro2014:raft"),
        ("tags=consensus; to read;; consensus", "tags", ("consensus", "to read")),
        ("authors=Otter, Ann; Bo Seal", "authors", (PersonName("Otter", "Ann"), PersonName("Seal", "Bo"))),
        ("authors=", "authors", ()),
        ("authors={European Commission}", "authors", (PersonName("European Commission"),)),
    ],
)  # fmt: skip
def test_an_edit_is_read(written: str, name: str, value: object) -> None:
    assert parse_edit(written) == (name, Field(value, "person", True))


@pytest.mark.parametrize(
    ("written", "happened"),
    [
        ("title", "“title” is not of the form FIELD=VALUE."),
        ("titel=x", "There is no field “titel”. Did you mean title?"),
        ("collections=x", "The field collections cannot be edited."),
        ("zotero=library/items/A", "The field zotero cannot be edited."),
        ("year=14", "“14” is not a year."),
        ("year=٢٠١٤", "“٢٠١٤” is not a year."),
        ("year=1399", f"The year 1399 is not between 1400 and {THIS_YEAR + 1}."),
        (f"year={THIS_YEAR + 2}", f"The year {THIS_YEAR + 2} is not between 1400 and {THIS_YEAR + 1}."),
        ("doi=11.1000/x", "“11.1000/x” cannot be the field doi."),
        ("doi=10.1000/a b", "“10.1000/a b” cannot be the field doi."),
        ("arxiv=2301.123", "“2301.123” cannot be the field arxiv."),
        ("url=javascript:alert(1)", "“javascript:alert(1)” cannot be the field url."),
        ("citation_key=a{b}", "“a{b}” cannot be the field citation_key."),
        ("kind=article-jornal", "“article-jornal” is not a kind of publication."),
        ("title=a\u202eb", "The field title has characters that cannot be shown."),
        ("title=a\x00b", "The field title has characters that cannot be shown."),
        ("title=\ud800", "The field title has characters that cannot be shown."),
        (f"title={'x' * 1001}", "The field title is longer than 1,000 characters."),
        (f"tags={';'.join(map(str, range(101)))}", "There are more than 100 tags."),
        ("authors=Ongaro, Diego, Ousterhout, John", "“Ongaro, Diego, Ousterhout, John” is not the name of one author."),
        ("authors=, Diego", "“, Diego” is not the name of one author."),
        ("authors={}", "“{}” is not the name of one author."),
        (f"authors={'x' * 201}", "The field authors is longer than 200 characters."),
    ],
)
def test_a_wrong_value_is_refused_with_a_remedy(written: str, happened: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_edit(written)
    assert refused.value.happened == happened
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("text", "family", "given"),
    [
        ("Ada Lovelace", "Lovelace", "Ada"), ("Lovelace, Ada", "Lovelace", "Ada"),
        ("Ludwig van Beethoven", "van Beethoven", "Ludwig"),
        ("Charles Louis Xavier Joseph de la Vallée Poussin", "de la Vallée Poussin", "Charles Louis Xavier Joseph"),
        ("bell hooks", "hooks", "bell"), ("Plato", "Plato", ""), ("NASA,", "NASA", ""),
        ("{The RAND Corporation}", "The RAND Corporation", ""), ("王小明", "王小明", ""),
    ],
)  # fmt: skip
def test_a_name_is_split(text: str, family: str, given: str) -> None:
    assert parse_person(text) == PersonName(family, given)


NAMES = st.text("abcÄé –'.", min_size=1, max_size=30).map(lambda text: " ".join(text.split())).filter(bool)


@given(st.builds(PersonName, NAMES, st.one_of(st.just(""), NAMES)))
def test_a_name_that_is_shown_is_read_as_it_was(person: PersonName) -> None:
    again = parse_person(typed_name(person))
    assert again == checked_field("authors", [person]).value[0]


@given(st.text(max_size=60), st.sampled_from(EDITABLE))
def test_any_text_is_refused_or_read_as_shown(text: str, name: str) -> None:
    try:
        found = parse_field(name, text)
    except UsageError:
        return
    assert parse_field(name, value_text(found.value)) == found
    assert from_json(to_json(Metadata(**{name: found}))) == Metadata(**{name: found})


def test_edits_are_added_to_earlier_ones_and_reset() -> None:
    first = edited(Metadata(), dict([parse_edit("title=A"), parse_edit("year=2014")]))
    assert first == Metadata(title=Field("A", "person", True), year=Field(2014, "person", True))
    second = edited(first, {**dict([parse_edit("title=")]), **resets(["year"])})
    assert second == Metadata(title=Field("", "person", True))
    assert edited(second, resets(["all"])) == Metadata()


def test_changes_and_resets_become_one_edit() -> None:
    assert parse_edits(["year=2014"], ["title"]) == {"year": Field(2014, "person", True), "title": None}
    assert parse_edits([], ["all"]) == dict.fromkeys(EDITABLE)
    assert parse_edits(["year=2014"], ["all"])["year"] == Field(2014, "person", True)


@pytest.mark.parametrize(
    ("changes", "reset", "happened"),
    [
        (["year=2014", "year=2015"], [], "The field year is given twice."),
        (["year=2014"], ["year"], "The field year is given twice."),
        ([], ["yaer"], "There is no field “yaer”. Did you mean year?"),
        ([], [], "No change is given."),
    ],
)
def test_a_field_cannot_be_changed_twice_at_once(changes: list[str], reset: list[str], happened: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_edits(changes, reset)
    assert refused.value.happened == happened


def test_names_from_json_are_checked_like_typed_ones() -> None:
    people: list[Any] = [PersonName(" Otter ", "Ann"), "Bo Seal"]
    assert checked_field("authors", people).value == (PersonName("Otter", "Ann"), PersonName("Seal", "Bo"))
    for wrong, happened in (
        (PersonName("", "Ann"), "has no family name"),
        (PersonName("O\u200ftter"), "cannot be shown"),
    ):
        with pytest.raises(UsageError, match=happened):
            checked_field("authors", [wrong])
