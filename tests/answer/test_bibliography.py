"""Cited pages, references and BibTeX: what is known of a paper is there, as itself, whatever stands in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer.bibliography import CitedPage, bibtex, cited_pages, merge_by_page, reference
from folio.types import PageMap
from tests.helpers.answers import ICE_PAPER, MELT_PAPER, REPORT, paper_of

# Cited pages


def test_every_cited_page_once_with_all_of_its_quotes() -> None:
    assert [(source.file, source.where, len(source.quotes)) for source in cited_pages(REPORT.citations)] == [
        ("alps/ice.pdf", "p. 1 (printed iv)", 2),
        ("alps/ice.pdf", "p. 2", 1),
        ("melt.pdf", "p. 1", 1),
    ]


def test_pages_are_joined_wherever_they_come_from() -> None:
    assert merge_by_page(
        [
            CitedPage("a", "a.pdf", "", 1, "", (("one", 1.0),)),
            CitedPage("b", "b.pdf", "", 1, "", (("two", 1.0),)),
            CitedPage("a", "a.pdf", "", 1, "", (("three", 0.5), ("one", 1.0))),
        ]
    ) == (
        CitedPage("a", "a.pdf", "", 1, "", (("one", 1.0), ("three", 0.5))),
        CitedPage("b", "b.pdf", "", 1, "", (("two", 1.0),)),
    )


# References


@pytest.mark.parametrize(
    ("pages", "line"),
    [
        ((), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf"),
        ((2,), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf, p. 2"),
        ((1, 2), "Ada Ice and Bo Berg (2021). Ice of the Alps. alps/ice.pdf, pp. 1, 2"),
    ],
)
def test_a_reference_names_pages_where_there_are_some(pages: tuple[int, ...], line: str) -> None:
    assert reference(ICE_PAPER, pages) == line


def test_a_paper_from_arxiv_is_referred_to_by_its_number() -> None:
    assert reference(MELT_PAPER, [1]) == "Cy Melt. Melt. arXiv:2301.01234v2, p. 1"


def test_a_reference_is_one_line() -> None:
    paper, _ = paper_of("x\n.pdf", "Words.", title="A\n\nB ", authors=(" C\tD",))
    assert reference(paper, [1]) == "C D. A B. x .pdf, p. 1"


# BibTeX

_ENTRY = re.compile(r"@misc\{([a-z0-9]+),\n((?:  [A-Za-z]+ = \{.*\},\n)*)\}\n")


def read(entry: str) -> tuple[str, dict[str, str]]:
    """An entry's key and fields, as BibTeX reads them: each field ends where as many braces have closed as opened."""
    whole = _ENTRY.fullmatch(entry)
    assert whole, entry
    fields = dict[str, str]()
    for line in whole[2].splitlines():
        name, _, value = line.strip().partition(" = ")
        depth = [value[: at + 1].count("{") - value[: at + 1].count("}") for at in range(len(value))]
        assert depth.index(0) == len(value) - 2, line  # behind it the comma
        fields[name] = value[1:-2]
    return whole[1], fields


_COMMANDS = {
    r"\textbackslash{}": "\\",
    r"\textbraceleft{}": "{",
    r"\textbraceright{}": "}",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
}
_TOKEN = re.compile(r"\\[a-z]+\{\}|\\[$&#_%]|[^\\$&#_%{}~^<>|]")


def typeset(field: str) -> str:
    """What LaTeX prints for it."""
    parts = _TOKEN.findall(field)
    assert "".join(parts) == field, field  # nothing in it means anything else to LaTeX
    return "".join(_COMMANDS.get(part, part.removeprefix("\\")) for part in parts)


def test_an_entry_has_what_is_known() -> None:
    assert bibtex(ICE_PAPER) == (
        "@misc{ice2021ice,\n"
        "  author = {Ada Ice and Bo Berg},\n"
        "  title = {{Ice of the Alps}},\n"
        "  year = {2021},\n"
        "  note = {alps/ice.pdf},\n"
        "}\n"
    )
    assert read(bibtex(ICE_PAPER, 1))[1]["note"] == "alps/ice.pdf, p. 1 (printed iv)"
    assert read(bibtex(ICE_PAPER, 2))[1]["note"] == "alps/ice.pdf, p. 2"


def test_an_entry_of_arxiv_has_its_number_there() -> None:
    key, fields = read(bibtex(MELT_PAPER))
    assert key == "meltmelt"
    assert fields == {
        "author": "Cy Melt",
        "title": "{Melt}",
        "eprint": "2301.01234v2",
        "archivePrefix": "arXiv",
    }
    assert read(bibtex(MELT_PAPER, 1))[1] == {**fields, "note": "p. 1"}


def test_what_is_not_known_is_left_out() -> None:
    paper, _ = paper_of("seas/otter_notes.pdf", "Words.")
    assert read(bibtex(paper)) == ("seasotternotes", {"note": r"seas/otter\_notes.pdf"})


@pytest.mark.parametrize(
    ("authors", "year", "title", "key"),
    [
        (("Ada Otter", "Bo Seal"), 2021, "On Sea Otters", "otter2021sea"),
        (("Ada Otter",), None, "The 3 Seas", "otter3"),
        ((), 2021, "On Sea Otters", "2021sea"),
        (("Øyvind Müßig-Łukasiewicz",), 1999, "Straße & Æther", "mussiglukasiewicz1999strasse"),
        (("李 明",), 2020, "海獺 otters", "2020otters"),
        (("Ada Otter et al.",), 2020, "Of the and", "otter2020"),
        (("李 明",), 2020, "海獺", "notes7"),
        ((" ",), None, "", "notes7"),
    ],
)
def test_a_key_is_made_of_name_year_and_title(authors: tuple[str, ...], year: int | None, title: str, key: str) -> None:
    paper, _ = paper_of("notes-7.pdf", "Words.", authors=authors, year=year, title=title)
    assert read(bibtex(paper))[0] == key


def test_a_key_where_nothing_is_in_ascii() -> None:
    paper, _ = paper_of("海獺.pdf", "Words.")
    assert read(bibtex(paper))[0] == f"paper{paper.id[:8]}"


@pytest.mark.parametrize(
    ("authors", "field"),
    [
        (("Ada Otter", "Bo & Co", "C. van den Seal"), r"Ada Otter and Bo \& Co and C. van den Seal"),
        (("National Institute of Standards and Technology",), "{National Institute of Standards and Technology}"),
        (("Otter, Inc.", "Bo Seal"), "{Otter, Inc.} and Bo Seal"),
        (("Alexandra Band",), "Alexandra Band"),
        (("Ada Otter", "Bo Seal et al."), "Ada Otter and Bo Seal and others"),
        (("Ada\nOtter", "et al."), "Ada Otter and others"),
    ],
)
def test_authors_are_told_apart(authors: tuple[str, ...], field: str) -> None:
    paper, _ = paper_of("x.pdf", "Words.", authors=authors)
    assert read(bibtex(paper))[1]["author"] == field


def test_what_means_something_to_latex_is_escaped() -> None:
    paper, _ = paper_of("a_b%.pdf", "Words.", title=r"50% of $x_1^2 & \input{secret} ~ #1 {a}} <b>|c|")
    fields = read(bibtex(paper))[1]
    assert fields["note"] == r"a\_b\%.pdf"
    assert fields["title"] == (
        r"{50\% of \$x\_1\textasciicircum{}2 \& \textbackslash{}input\textbraceleft{}secret\textbraceright{}"
        r" \textasciitilde{} \#1 \textbraceleft{}a\textbraceright{}\textbraceright{}"
        r" \textless{}b\textgreater{}\textbar{}c\textbar{}}"
    )


@given(st.text(), st.text(), st.text(), st.text())
def test_whatever_a_paper_is_called_its_entry_can_be_read(name: str, title: str, file: str, label: str) -> None:
    paper, _ = paper_of(f"{file}.pdf", "Words.", authors=(name,), title=title, pages=PageMap((0,), (label,)))
    key, fields = read(bibtex(paper, 1))
    assert key.isascii()
    assert "p. 1" in typeset(fields["note"])
    assert "title" not in fields or typeset(fields["title"][1:-1])


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_a_title_in_ascii_is_typeset_as_it_is(title: str) -> None:
    paper, _ = paper_of("x.pdf", "Words.", title=title)
    field = read(bibtex(paper))[1].get("title", "{}")
    assert typeset(field[1:-1]) == " ".join(title.split())
