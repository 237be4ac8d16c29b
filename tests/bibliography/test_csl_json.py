"""Reading CSL-JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folio.bibliography import csl
from folio.bibliography.entries import Problem
from folio.papers.metadata import AND_OTHERS, PersonName

ITEM: dict[str, Any] = {
    "id": "http://zotero.org/users/1/items/AB",
    "citation-key": "dijk2020",
    "type": "article-journal",
    "title": "On <i>Otters</i>",
    "author": [
        {"family": "Dijk", "given": "Edo", "non-dropping-particle": "van"},
        {"literal": "World Health Organization"},
        {"literal": "others"},
        7,
    ],
    "issued": {"date-parts": [["2020", 3]]},
    "container-title": "Acta",
    "volume": 3,
    "page": "1-9",
    "DOI": "10.1234/abc",
    "keyword": "ice, snow",
}


def test_an_item() -> None:
    (entry,), problems = csl.read(json.dumps([ITEM]))
    about = entry.describe()
    assert problems == []
    assert (entry.key, entry.title, entry.year, entry.first_author) == ("dijk2020", "On Otters", 2020, "van Dijk")
    assert about.authors.value == (PersonName("van Dijk", "Edo"), PersonName("World Health Organization"), AND_OTHERS)
    assert (about.venue.value, about.volume.value, about.pages.value) == ("Acta", "3", "1–9")
    assert (about.doi.value, about.tags.value) == ("10.1234/abc", ("ice", "snow"))


def test_theses_preprints_and_raw_dates() -> None:
    items = [
        {"type": "thesis", "publisher": "ETH", "genre": "PhD thesis", "issued": {"raw": "May 1999"}},
        {"type": "article", "number": "arXiv:1706.03762", "publisher": "arXiv", "URL": "http://arxiv.org/abs/1706.03762"},
    ]  # fmt: skip
    thesis, preprint = (entry.describe() for entry in csl.read(json.dumps({"items": items}))[0])
    assert (thesis.venue.value, thesis.publisher.value, thesis.year.value) == ("ETH", "", 1999)
    assert (preprint.arxiv.value, preprint.publisher.value, preprint.issue.value) == ("1706.03762", "", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[{\n}\n,]", Problem(3, "The file is not JSON: Illegal trailing comma before end of array.")),
        ("", Problem(1, "The file is not JSON: Expecting value.")),
        ("7", Problem(1, "The file is not CSL-JSON: it has no list of items.")),
        ("[7]", Problem(0, "Item 1 is not an object.")),
        ('{"questions": []}', Problem(0, "Item 1 is not of CSL-JSON: it has no id, type or title.")),
        ("[" * 200_000, Problem(0, "The file is not CSL-JSON: its values are too large or too deep.")),
        ("[" + "1" * 10_000 + "]", Problem(0, "The file is not CSL-JSON: its values are too large or too deep.")),
    ],
)
def test_what_is_no_csl_json(text: str, problem: Problem) -> None:
    entries, (found,) = csl.read(text)
    assert entries == []
    assert (found.line, found.happened[:20]) == (problem.line, problem.happened[:20])


def test_values_of_other_types_are_nothing() -> None:
    names = ("title", "author", "issued", "DOI", "URL", "id", "page", "volume", "type", "keyword")
    hostile: tuple[Any, ...] = (None, [], {}, [[]], {"date-parts": [[]]}, [{}], True, 1.5, 10**30, "\x00")
    for value in hostile:
        (entry,), problems = csl.read(json.dumps([dict.fromkeys(names, value)]))
        assert (entry.title, entry.year, entry.describe().authors.value, problems) == ("", None, (), [])
