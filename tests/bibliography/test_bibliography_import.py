"""What bibliographies say reaches the papers that they mean, and no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folio.bibliography.imports import Imported, import_bibliography, read_bibliography
from folio.errors import UsageError
from folio.papers.metadata import Field, Metadata, PersonName
from folio.papers.model import Paper
from tests.helpers.libraries import set_pdf_metadata
from tests.helpers.stores import Store

TITLE = "Lattices and How to Find Short Vectors"


def of_pdf(title: str = "", family: str = "", year: int | None = None, *, sure: bool = True, **more: str) -> Metadata:
    """What a PDF says."""
    texts = {"title": title, **more}
    found: dict[str, Any] = {name: Field(value, "page", sure) for name, value in texts.items() if value}
    if family:
        found["authors"] = Field((PersonName(family, "A."),), "page", sure)
    if year:
        found["year"] = Field(year, "page", sure)
    return Metadata(**found)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "store")
    for name in ("lattices", "sponges", "gradients"):
        made.add(name, f"Text about {name}. " * 9)
    yield made
    made.library.close()


def say(store: Store, name: str, about: Metadata) -> None:
    set_pdf_metadata(store.library, paper(store, name).id, about)


def paper(store: Store, name: str) -> Paper:
    (found,) = (each for each in store.library.papers() if each.file == f"{name}.pdf")
    return found


def take(store: Store, folder: Path, text: str, name: str = "my.bib") -> Imported:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return import_bibliography(store.library, read_bibliography(path))


def titles(store: Store) -> dict[str, str]:
    """File -> title, where a bibliography says it."""
    papers = store.library.papers()
    return {each.file: each.title for each in papers if each.metadata.title.origin == "bibliography"}


@pytest.mark.parametrize(
    "entry",
    [
        "doi={10.1000/ABC}",
        "doi={https://doi.org/10.1000/abc}",
        "eprint={2301.01234v3}, archiveprefix={arXiv}",
        "journal={arXiv preprint arXiv:2301.01234}",
        "file={Full Text:elsewhere/Lattices.PDF:application/pdf}",
    ],
)
def test_an_entry_is_matched_by_identifier_or_file_name(store: Store, tmp_path: Path, entry: str) -> None:
    say(store, "lattices", of_pdf("Something else", doi="10.1000/abc", arxiv="2301.01234v1"))
    found = take(store, tmp_path, f"@article{{k, title={{Its true title}}, {entry}}}")
    assert (found.matched, found.changed, found.unmatched) == (1, 1, ())
    assert titles(store) == {"lattices.pdf": "Its true title"}
    assert paper(store, "lattices").metadata.citation_key.value == "k"


@pytest.mark.parametrize(
    ("about", "entry", "matches"),
    [
        (of_pdf(TITLE, "Otter", 2020), "author={Otter, Ada}, year=2020", True),
        (of_pdf(TITLE, "Otter", 2020), "author={van Otter, Ada}, year=2021", True),
        (of_pdf(TITLE.upper(), "Otter", 2020), "year=2020", True),
        (of_pdf(TITLE), "author={Otter, Ada}, year=2020", True),  # the title is sure, and long enough
        (of_pdf(TITLE, sure=False), "author={Otter, Ada}, year=2020", False),
        (of_pdf(TITLE, "Otter", 2020, sure=False), "author={Otter, Ada}, year=1990", True),
        (of_pdf(TITLE, "Otter", 2020), "author={Otter, Ada}, year=1990", False),
        (of_pdf(TITLE, "Otter", 2020), "author={Seal, Bo}, year=2020", False),
        (of_pdf("Other"), "year=2020", False),
    ],
)
def test_a_title_counts_with_the_year_or_the_first_author(
    store: Store, tmp_path: Path, about: Metadata, entry: str, matches: bool
) -> None:
    say(store, "lattices", about)
    found = take(store, tmp_path, f"@article{{k, title={{{{Lattices}} and how to find short vectors}}, {entry}}}")
    assert [each.key for each in found.unmatched] == ["k"] * (not matches)
    assert bool(titles(store)) is matches


def test_what_could_be_two_papers_is_of_none(store: Store, tmp_path: Path) -> None:
    for name in ("lattices", "sponges"):
        say(store, name, of_pdf(TITLE, "Otter", 2020))
    found = take(store, tmp_path, f"@article{{k, title={{{TITLE}}}, author={{Otter, A.}}, year=2020}}")
    ((entry, why),) = found.ambiguous
    assert (entry.key, sorted(why.removeprefix("it could be ").split(" or "))) == ("k", ["lattices.pdf", "sponges.pdf"])
    assert titles(store) == {}


def test_two_entries_of_one_paper(store: Store, tmp_path: Path) -> None:
    say(store, "lattices", of_pdf("Something", doi="10.1000/abc"))
    two = "@misc{a, title={One}, doi={10.1000/abc}}\n@misc{b, title={Two}, doi={10.1000/abc}}\n"
    found = take(store, tmp_path, two)
    assert [(entry.key, why) for entry, why in found.ambiguous] == [("a", "a and b are both of lattices.pdf")]
    assert titles(store) == {}
    # The one that names the file is surer, and the same said twice is no contradiction.
    take(store, tmp_path, f"{two}@misc{{c, title={{Three}}, file={{:lattices.pdf:PDF}}}}")
    assert titles(store) == {"lattices.pdf": "Three"}
    take(store, tmp_path, two.replace("Two", "One"))
    assert titles(store) == {"lattices.pdf": "One"}


def test_the_next_run_takes_what_changed_and_what_is_gone(store: Store, tmp_path: Path) -> None:
    say(store, "lattices", of_pdf("A", doi="10.1000/abc"))
    say(store, "sponges", of_pdf("B", doi="10.1000/def"))
    both = "@misc{a, title={One}, doi={10.1000/abc}}\n@misc{b, title={Two}, doi={10.1000/def}}\n"
    take(store, tmp_path, both)
    again = take(store, tmp_path, both)
    assert (again.matched, again.changed, again.withdrawn) == (2, 0, 0)
    changed = take(store, tmp_path, both.replace("One", "One more"))
    assert (changed.matched, changed.changed, changed.withdrawn) == (2, 1, 0)
    other = take(store, tmp_path, "@misc{c, title={Three}, file={:gradients.pdf:PDF}}", "other.bib")
    assert (other.matched, other.withdrawn) == (1, 0)  # another file forgets nothing of this one
    gone = take(store, tmp_path, "@misc{b, title={Two}, doi={10.1000/def}}")
    assert (gone.matched, gone.changed, gone.withdrawn) == (1, 0, 1)
    assert titles(store) == {"sponges.pdf": "Two", "gradients.pdf": "Three"}
    assert paper(store, "lattices").title == "A"


def test_what_a_person_wrote_counts_more(store: Store, tmp_path: Path) -> None:
    by_hand = Metadata(title=Field("By hand", "person", True))
    store.library.set_metadata(paper(store, "lattices").id, "person", by_hand)
    take(store, tmp_path, "@misc{a, title={One}, year=1999, file={:lattices.pdf:PDF}}")
    found = paper(store, "lattices")
    assert (found.title, found.year) == ("By hand", 1999)


def test_named_pdfs_are_files_that_end_in_pdf(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("files/a;b:c.pdf", "out/x.PDF", "notes.txt", "folder.pdf.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "dir.pdf").mkdir()
    os.mkfifo(tmp_path / "pipe.pdf")
    bib = tmp_path / "files" / "my.bib"
    written = (r":a\;b\:c.pdf:PDF", "../out/x.PDF", str(tmp_path / "out/x.PDF"), "../notes.txt", "../dir.pdf",
               "../pipe.pdf", "missing.pdf", "/etc/passwd", str(tmp_path / "out/x.PDF")[1:])  # fmt: skip
    bib.write_text("".join(f"@misc{{k{n}, file={{{path}}}}}\n" for n, path in enumerate(written)))
    found = read_bibliography(bib)
    x = tmp_path / "out" / "x.PDF"
    assert found.pdfs == {0: (tmp_path / "files" / "a;b:c.pdf",), 1: (x,), 2: (x,), 8: (x,)}
    assert len(found.named_pdfs()) == 2


def test_files_that_are_no_bibliography(tmp_path: Path) -> None:
    for name in ("x.txt", "missing.bib", "folder.bib"):
        (tmp_path / "folder.bib").mkdir(exist_ok=True)
        (tmp_path / "x.txt").touch()
        with pytest.raises(UsageError):
            read_bibliography(tmp_path / name)
    (tmp_path / "latin.bib").write_bytes("@misc{k, title={Größe}}\r\n".encode("cp1252"))
    assert read_bibliography(tmp_path / "latin.bib").entries[0].title == "Größe"
    (tmp_path / "bom.bib").write_bytes("\ufeff@misc{k, title={Größe}}".encode())
    assert read_bibliography(tmp_path / "bom.bib").entries[0].title == "Größe"
    with (tmp_path / "huge.bib").open("wb") as file:
        file.truncate(101 * 10**6)
    with pytest.raises(UsageError, match="larger than 100 MB"):
        read_bibliography(tmp_path / "huge.bib")
