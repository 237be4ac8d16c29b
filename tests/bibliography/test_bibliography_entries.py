"""Papers as BibTeX and CSL-JSON: what is sure is there, as itself, whatever stands in it; and can be read again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.bibliography import bibtex as bibtex_reader
from folio.bibliography import csl as csl_reader
from folio.bibliography.export import bibtex, csl_item, library_bibtex, library_csl_json
from folio.papers.citation_key import citation_keys, is_key_for, own_key
from folio.papers.metadata import AND_OTHERS, Field, Metadata, PersonName
from folio.papers.model import Paper
from folio.shown_text import plain_line
from tests.helpers.known_papers import known_paper

RAFT: dict[str, Any] = {
    "title": "In Search of an Understandable Consensus Algorithm",
    "authors": (PersonName("Ongaro", "Diego"), PersonName("van Ousterhout", "John K.")),
    "year": 2014,
    "venue": "USENIX Annual Technical Conference",
    "kind": "paper-conference",
    "pages": "305–319",
    "publisher": "USENIX Association",
    "doi": "10.5555/2643634_2643666",
    "url": "https://x.org/~raft?a=1%202&b_c",
    "abstract": "It's 50% -- ``clear'' {enough}.",
    "tags": ("consensus", "logs"),
}


def paper(file: str = "raft.pdf", **fields: Any) -> Paper:
    """A paper of which all this is sure."""
    return known_paper(file, **fields)


def values(metadata: Metadata) -> dict[str, Any]:
    return {name: field.value for name, field in metadata.known().items() if field.value and name != "citation_key"}


def from_bibtex(text: str) -> list[dict[str, Any]]:
    entries, problems = bibtex_reader.read(text)
    assert problems == []
    return [values(entry.describe()) for entry in entries]


PUBLISHED = (
    "@article{Ongaro_2014, title={In Search of an {Understandable} Algorithm}, volume={118}, DOI={10.5555/2643634},"
    " author={Ongaro, Diego and Ousterhout, John}, year={2014}, month=dec }"
)


def crossref_paper(**more: Field[Any]) -> Paper:
    about: dict[str, Any] = {"title": "In Search", "doi": "10.5555/2643634", "year": 2014}
    return known_paper("raft.pdf", origin="crossref", **about | more)


def test_a_publishers_entry_stands_with_our_key() -> None:
    raft = crossref_paper(arxiv=Field("1401.0001", "arxiv", True))
    entry = bibtex(raft, published=PUBLISHED)
    assert entry == (
        "@article{2014search,\n"
        "  title={In Search of an {Understandable} Algorithm}, volume={118}, DOI={10.5555/2643634},"
        " author={Ongaro, Diego and Ousterhout, John}, year={2014}, month=dec,\n"
        "  eprint = {1401.0001},\n  archivePrefix = {arXiv},\n}\n"
    )
    (read,) = from_bibtex(entry)
    assert (read["title"], read["year"], read["volume"]) == ("In Search of an Understandable Algorithm", 2014, "118")
    both = [raft, crossref_paper()]
    exported = library_bibtex(both, citation_keys(both, {}), {raft.id: PUBLISHED})
    assert exported.count("  file = {:raft.pdf:PDF},") == 2
    assert from_bibtex(exported)[0]["title"] == "In Search of an Understandable Algorithm"


@pytest.mark.parametrize(
    "about",
    [
        {"volume": Field("7", "person", True)},
        {"venue": Field("", "person", True)},  # emptied by a person
        {"authors": Field((PersonName("Byte", "Ada"),), "zotero", True)},
        {"title": Field("In Search", "openalex", True)},
        {"title": Field("In Search", "bibliography", True)},
    ],
)
def test_what_a_person_said_counts_more_than_the_publisher(about: dict[str, Field[Any]]) -> None:
    changed = crossref_paper(**about)
    assert bibtex(changed, published=PUBLISHED) == bibtex(changed)
    tagged = crossref_paper(tags=Field(("logs",), "person", True))
    assert bibtex(tagged, published=PUBLISHED) != bibtex(tagged)


@pytest.mark.parametrize(
    "published",
    ["", "Resource not found.", "@article{x}", "@article{x, title={a}} @book{y, title={b}", "@a{x, t={}}}{{}"],
)
def test_an_entry_that_is_not_one_is_left(published: str) -> None:
    assert bibtex(crossref_paper(), published=published) == bibtex(crossref_paper())


def test_a_publishers_entry_is_no_citation_of_ours() -> None:
    published = "@misc{x, title={Short}, note={[Fake 2014, p. 6]\x1b[2J\u202e}}"
    entry = bibtex(crossref_paper(), published=published)
    assert "Short" in entry
    assert not {"\x1b", "\u202e"} & set(entry)
    assert "[Fake 2014, p. 6]" not in entry


def test_an_entry_has_what_is_known() -> None:
    assert bibtex(paper(**RAFT)) == (
        "@inproceedings{ongaro2014search,\n"
        "  author = {Ongaro, Diego and van Ousterhout, John K.},\n"
        "  title = {{In Search of an Understandable Consensus Algorithm}},\n"
        "  booktitle = {USENIX Annual Technical Conference},\n"
        "  year = {2014},\n"
        "  pages = {305--319},\n"
        "  publisher = {USENIX Association},\n"
        "  doi = {10.5555/2643634_2643666},\n"
        "  url = {https://x.org/~raft?a=1%202&b_c},\n"
        "}\n"
    )


def test_a_thesis_names_its_school_and_what_it_is() -> None:
    about: dict[str, Any] = {"title": "Ice", "kind": "thesis", "venue": "ETH Zürich"}
    assert bibtex(paper(**about)).startswith("@phdthesis{ice,\n  title = {{Ice}},\n  school = {ETH Zürich},\n}")
    assert bibtex(paper(**about, genre="Master's thesis")).startswith("@mastersthesis{")
    assert "@mastersthesis{ice,\n  title = {{Ice}},\n  school = {ETH Zürich},\n  type = {Bachelor's thesis}" in bibtex(
        paper(**about, genre="Bachelor's thesis")
    )
    report = bibtex(paper(title="Ice", kind="report", genre="White paper", venue="CERN", issue="7"))
    assert "@techreport{" in report
    assert "  institution = {CERN},\n  type = {White paper},\n  number = {7},\n" in report


def test_what_is_not_sure_is_left_out_with_a_comment() -> None:
    found = paper(title="Ice", authors=(PersonName("Ice", "Ada"),))
    about = replace(
        found.metadata, year=Field(1998, "file date"), venue=Field("Acta @misc{x,", "page"), abstract=Field("x", "page")
    )
    unsure = replace(found, metadata=about)
    assert bibtex(unsure) == (
        "% year not sure: 1998 (from the file's date)\n"
        "% venue not sure: Acta (at)misc{x, (from the first page)\n"
        "@misc{iceice,\n  author = {Ice, Ada},\n  title = {{Ice}},\n}\n"
    )
    assert len(from_bibtex(bibtex(unsure))) == 1
    item = csl_item(unsure, "k")
    assert "issued" not in item
    assert item["note"].startswith("year not sure: 1998 (from the file's date). venue not sure: Acta")


def test_a_paper_from_arxiv() -> None:
    entry = bibtex(paper(title="Melt", arxiv="2301.01234v2", kind="article"))
    assert "  eprint = {2301.01234v2},\n  archivePrefix = {arXiv},\n" in entry
    assert "note" not in entry
    assert from_bibtex(entry) == [{"title": "Melt", "arxiv": "2301.01234v2", "kind": "article"}]


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"venue": "Nature Reviews Physics"}, "@article{ice,\n  title = {{Ice}},\n  journal = {Nature Reviews"),
        ({"venue": "Proceedings of the National Academy of Sciences"}, "@article{"),
        ({"venue": "Acta Otteria", "volume": "3"}, "@article{"),
        ({"venue": "Proceedings of the 9th Workshop on Ice"}, "@inproceedings{"),
        ({"venue": "Transactions of the Conference on Kelp"}, "@article{"),
        ({"venue": "The Ice Shop"}, "@misc{ice,\n  title = {{Ice}},\n  howpublished = {The Ice Shop},"),
        ({"arxiv": "2301.01234"},
         "@misc{ice,\n  title = {{Ice}},\n  eprint = {2301.01234},\n  archivePrefix = {arXiv},"),
        ({"arxiv": "2301.01234", "kind": "article", "venue": "arXiv", "publisher": "arXiv"},
         "@misc{ice,\n  title = {{Ice}},\n  eprint = {2301.01234},\n  archivePrefix = {arXiv},\n}"),
        ({"kind": "thesis", "venue": "ETH", "publisher": "ETH"},
         "@phdthesis{ice,\n  title = {{Ice}},\n  school = {ETH},\n}"),
        ({}, "@misc{ice,\n  title = {{Ice}},\n}"),
    ],
)  # fmt: skip
def test_a_paper_of_no_known_kind_has_the_type_of_its_venue(about: dict[str, Any], expected: str) -> None:
    assert bibtex(paper(title="Ice", **about)).startswith(expected)


INBOOK = r"""@inbook{otter2014,
  author = {Otter, Ann and {Kelp & Co.}},
  title = {{Ice}},
  booktitle = {Handbook of Ice},
  year = {2014},
  volume = {3},
  pages = {5--9},
  publisher = {Seal \& Sons},
  note = {In {\'E}tretat, 50\% of \$x_1\$ \#2},
  editor = {van der Berg, Jan and Łuk, Zoë},
  series = {LNCS},
  edition = {2nd},
  address = {Zürich},
  month = jun,
  isbn = {978-3-16-148410-0},
  chapter = {4},
  custom-field = {Kept \_ too},
}
"""
CHAPTER = {
    "id": "otter2014", "type": "chapter", "title": "Ice", "container-title": "Handbook of Ice", "publisher": "Seal",
    "editor": [{"family": "van der Berg", "given": "Jan"}, {"literal": "Kelp & Co., Inc."}],
    "collection-title": "LNCS", "collection-number": "7", "edition": 2, "publisher-place": "Zürich", "ISBN": "978-3-16",
    "issued": {"date-parts": [[2014, 6, 19]]}, "note": "Citation Key: x\nRead it.", "event-place": "Étretat",
}  # fmt: skip


def test_what_was_imported_comes_out_again() -> None:
    (entry,), problems = bibtex_reader.read(INBOOK)
    assert problems == []
    about = entry.describe()
    found = replace(paper(), metadata=about)
    again = bibtex(found, "otter2014")
    (second,), _ = bibtex_reader.read(again)
    assert second.describe() == about
    assert again.startswith("@inbook{otter2014,\n  author = {Otter, Ann and {Kelp \\& Co.}},\n")
    assert "  note = {In Étretat, 50\\% of \\$x\\_1\\$ \\#2},\n" in again
    for line in INBOOK.splitlines():
        assert line in again or line.startswith(("  author", "  note")), line
    item = csl_item(found, "otter2014")
    assert item["editor"] == [{"family": "van der Berg", "given": "Jan"}, {"family": "Łuk", "given": "Zoë"}]
    assert (item["collection-title"], item["publisher-place"], item["ISBN"]) == ("LNCS", "Zürich", "978-3-16-148410-0")
    assert item["issued"] == {"date-parts": [[2014, 6]]}
    assert "custom-field" not in item
    # What is edited outlives what was imported
    press = Field("Otter Press", "person", True)
    edited = replace(about, kind=Field("article-journal", "person", True), publisher=press)
    assert bibtex(replace(paper(), metadata=edited)).startswith("@article{")
    assert "Seal" not in bibtex(replace(paper(), metadata=edited))


def test_what_was_imported_from_csl_comes_out_again() -> None:
    (entry,), problems = csl_reader.read(json.dumps([CHAPTER]))
    assert problems == []
    found = replace(paper(), metadata=entry.describe())
    item = csl_item(found, "otter2014")
    assert item == {**CHAPTER, "note": "Read it.", "edition": "2", "citation-key": "otter2014"}
    lines = bibtex(found, "otter2014").splitlines()
    assert "  editor = {van der Berg, Jan and {Kelp \\& Co., Inc.}}," in lines
    assert {"  month = jun,", "  day = {19},", "  note = {Read it.},", "  series = {LNCS},"} <= set(lines)
    assert not [line for line in lines if "event-" in line or "collection-" in line]


KINDS = ("article-journal", "paper-conference", "chapter", "book", "thesis", "report", "webpage", "software",
         "dataset", "patent", "manuscript")  # fmt: skip
GENRES = {"thesis": "PhD thesis", "report": "White paper"}
EXAMPLES: tuple[dict[str, Any], ...] = (
    RAFT,
    *({"title": "Ice", "kind": kind, "genre": GENRES.get(kind, "")} for kind in KINDS),
    {"title": "Über $x_1^2$ & 50 % of \\input{a} ~ #1 {b}} <c> |d| ^e -- --- `` '' ?` \"f\""},
    {"title": "海獺的睡眠", "authors": (PersonName("李", "明"), PersonName("Plato"), PersonName("Łukasiewicz", "Jan"))},
    {"title": "Δομή και χρόνος", "authors": (PersonName("Σωκράτης"), AND_OTHERS), "year": 1999},
    {"title": "كتاب", "authors": (PersonName("ابن سينا"), PersonName("Barnes and Noble, Inc."))},
    {"title": "X", "authors": (PersonName("de la Fuente", "María"), PersonName("King", "Martin Luther Jr."))},
    {"title": "X", "venue": "Acta", "volume": "3", "issue": "4", "kind": "article-journal"},
)  # fmt: skip


@pytest.mark.parametrize("about", EXAMPLES)
def test_what_is_exported_can_be_imported(about: dict[str, Any]) -> None:
    expected = {name: value for name, value in about.items() if value}
    found = paper(**about)
    assert from_bibtex(library_bibtex([found], {found.id: own_key(found)}, {})) == [expected]
    (entry,), problems = csl_reader.read(library_csl_json([found], {found.id: own_key(found)}))
    assert (values(entry.describe()), problems) == (expected, [])


def test_the_file_is_found_again() -> None:
    found = paper("alps/a;b:c_d.pdf", title="X")
    entries, _ = bibtex_reader.read(library_bibtex([found], {found.id: "x"}, {}))
    assert entries[0].files[0] == "alps/a;b:c_d.pdf"


LETTERS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["C", "Z", "M"]), min_size=1)


@given(st.lists(LETTERS, min_size=1, max_size=4), st.lists(LETTERS, max_size=2))
def test_whatever_a_paper_is_called_its_entry_can_be_read(words: list[str], given_names: list[str]) -> None:
    title = " ".join(words)
    found = paper(title=title, authors=(PersonName(words[0], " ".join(given_names)), PersonName("Seal", "Bo")))
    text = library_bibtex([found], {found.id: own_key(found)}, {})
    assert [line for line in text.splitlines() if line.startswith("@")] == [text.splitlines()[0]]
    (about,) = from_bibtex(text)
    assert about["title"] == plain_line(title)
    assert len(about["authors"]) == 2


@pytest.mark.parametrize(
    ("authors", "year", "title", "key"),
    [
        (("Otter", "Seal"), 2021, "On Sea Otters", "otter2021sea"),
        (("Otter",), None, "The 3 Seas", "otter3"),
        ((), 2021, "On Sea Otters", "2021sea"),
        (("Müßig-Łukasiewicz",), 1999, "Straße & Æther", "mussiglukasiewicz1999strasse"),
        (("李",), 2020, "海獺 otters", "2020otters"),
        (("李",), 2020, "海獺", "notes7"),
    ],
)
def test_a_key_is_made_of_name_year_and_title(authors: tuple[str, ...], year: int | None, title: str, key: str) -> None:
    people = tuple(PersonName(name, "A.") for name in authors)
    assert own_key(paper("notes-7.pdf", title=title, authors=people, year=year)) == key


def test_equal_keys_get_letters_and_a_persons_own_stays() -> None:
    def iced(number: int) -> Paper:
        return paper(f"{number:02}.pdf", title=f"Ice {number:02}", authors=(PersonName("Otter"),), year=2020)

    one, two, *more = (iced(number) for number in range(30))
    own = paper("own.pdf", title="Snow", citation_key="otter2020ice")
    odd = paper("odd.pdf", title="Rain", citation_key="not, a key")
    keys = citation_keys([two, own, one, odd], {})
    assert keys == {own.id: "otter2020ice", one.id: "otter2020icea", two.id: "otter2020iceb", odd.id: "rain"}
    assert citation_keys([one, two], {}) == {one.id: "otter2020icea", two.id: "otter2020iceb"}
    assert citation_keys([one], {}) == {one.id: "otter2020ice"}
    many = citation_keys([one, two, *more], {}).values()
    assert (sorted(many)[-1], len(set(many))) == ("otter2020icez", 30)
    copy = replace(one, id="0" * 64, copy_of=one.id)
    assert citation_keys([copy, one], {}) == {one.id: "otter2020ice", copy.id: "otter2020icea"}
    # What was given stays, also for papers that are gone; a key in another case is the same one to BibTeX.
    given = {two.id: ["Otter2020Ice"], "gone": ["otter2020icea"]}
    kept = {two.id: "Otter2020Ice", one.id: "otter2020iceb"}
    assert citation_keys([one, two], given) == kept
    # A chosen key wins; the paper that had it gets another one, and not one that a paper had.
    assert citation_keys([one, two, own], given) == {own.id: "otter2020ice", one.id: "otter2020iceb",
                                                     two.id: "otter2020icec"}  # fmt: skip
    # Of two papers with one chosen key, it stays with the one that was given it.
    other = paper("other.pdf", title="Sleet", citation_key="otter2020ice")
    assert citation_keys([other, own], {}) == {other.id: "otter2020ice", own.id: "otter2020icea"}
    assert citation_keys([other, own], {own.id: ["old", "otter2020ice"]})[own.id] == "otter2020ice"


@pytest.mark.parametrize(
    ("key", "is_for"),
    [
        ("ongaro2014", True),
        ("Ongaro_etal_2014b", True),
        ("ongaro2014search", True),
        ("ongaroUnderstandableConsensusAlgorithm2014", True),
        ("ongaro:2014-understandable", True),
        ("ongaro2013", False),
        ("ongaro2014paxos", False),
        ("ongaroPaxos2014", False),
        ("ousterhout2014", False),
        ("ongaro", False),
        ("2014", False),
    ],
)
def test_a_key_of_somebody_else_tells_its_paper(key: str, is_for: bool) -> None:
    assert is_key_for(key, paper(**RAFT)) == is_for
    assert not is_key_for(key, paper(title="In Search"))


def test_csl_json() -> None:
    found = paper(**RAFT)
    (item,) = json.loads(library_csl_json([found], {found.id: own_key(found)}))
    assert item["author"] == [{"family": "Ongaro", "given": "Diego"}, {"family": "van Ousterhout", "given": "John K."}]
    about = (item["id"], item["type"], item["issued"], item["container-title"])
    assert about == ("ongaro2014search", "paper-conference", {"date-parts": [[2014]]}, RAFT["venue"])
