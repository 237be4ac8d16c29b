"""`--bib`: a bibliography beside the PDFs, and PDFs that it names, in whole commands."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

from folio.bibliography.imports import read_bibliography
from folio.cli import main as folio
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import GLACIERS, small_papers, write_pdf

BIB = r"""@article{ice2021, title={The {Aletsch} Glacier}, author={Ice, Ada}, year={2021}, file={:ice.pdf:PDF}}
@article{sleep, title={Otters Asleep}, author={Otter, Bo}, year=1999, file={:../papers/otters.pdf:PDF}}
@book{none, title={No such book}}
@article{broken, title={
"""


def test_metadata_and_pdfs_come_from_a_bibliography(desk: CliRunner) -> None:
    small_papers(desk.papers)
    (desk.papers / "alps" / "glaciers.pdf").unlink()
    folder = desk.folder / "zotero"
    write_pdf(folder / "ice.pdf", GLACIERS)
    bib = folder / "my.bib"
    bib.write_text(BIB, encoding="utf-8")
    ran = desk.ingest("--bib", str(bib))
    assert ran.code == 0
    told = ran.out[ran.out.index("my.bib") :].splitlines()
    assert told[0] == "my.bib: entries: 3, papers matched: 2, changed: 2, PDFs added: 2, not matched: 1."
    assert told[1] == "  No paper for: none"
    assert told[2].startswith("  Could not be read: line 4: The entry cannot be read: Unexpectedly reached end")
    record = {paper["file"]: (paper["title"], paper["year"]) for paper in desk.record()}
    assert record == {"ice.pdf": ("The Aletsch Glacier", 2021), "otters.pdf": ("Otters Asleep", 1999)}
    bib.write_text(BIB.replace("Asleep", "Awake").replace("@article{ice2021", "@comment{ice2021"), encoding="utf-8")
    again = desk.ingest("--bib", str(bib))
    assert "papers matched: 1, changed: 1, no longer in the bibliography: 1, not matched: 1" in again.out
    titles = {paper["file"]: paper["title"] for paper in desk.record()}
    assert (titles["otters.pdf"], "Aletsch Glacier" in titles["ice.pdf"]) == ("Otters Awake", False)
    assert desk.ingest("--verify").code == 0


def test_one_key_of_several_entries_is_said(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin"}
    small_papers(desk.papers)
    bib = desk.folder / "my.bib"
    ice = "@article{Same, title={The Aletsch Glacier}, year={2021}, file={glaciers.pdf}}\n"
    otters = "@book{same, title={On Sea Otters}, year={2020}, file={otters.pdf}}\n@misc{other, title={Another}}\n"
    bib.write_text(ice + otters, encoding="utf-8")
    told = desk.ingest("--bib", str(bib)).out
    assert "  Key of several entries: Same (lines 1, 2)" in told.splitlines()
    items = [{"id": key, "type": "book", "title": title} for key, title in (("a", "On Sea Otters"), ("a", "Ice"))]
    other = desk.folder / "my.json"
    other.write_text(json.dumps(items), encoding="utf-8")
    assert "  Key of several entries: a (2 entries)" in desk.ingest("--bib", str(other)).out.splitlines()
    bib.write_text(otters, encoding="utf-8")
    assert "Key of several entries" not in desk.ingest("--bib", str(bib)).out


def test_what_is_no_bibliography_is_said(desk: CliRunner) -> None:
    small_papers(desk.papers)
    missing = desk.ingest("--bib", str(desk.folder / "no.bib"))
    assert (missing.code, missing.out) == (2, "")
    assert "cannot be read: No such file or directory." in missing.err
    assert desk.ingest("--bib", str(desk.papers / "otters.pdf")).code == 2
    assert desk.ingest("--verify", "--bib", "x.bib").code == 2
    empty = desk.folder / "x.json"
    empty.write_text("{", encoding="utf-8")
    ran = desk.ingest("--bib", str(empty))
    assert ran.code == 1
    assert "Could not be read: line 1: The file is not JSON" in ran.out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp1252"])
def test_a_bibliography_in_another_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    file = tmp_path / "my.bib"
    file.write_bytes(mark + "@article{a,\r\n title={Über Otter}, year=2020}\r\n".encode(encoding))
    found = read_bibliography(file)
    assert [(entry.key, entry.title, entry.year) for entry in found.entries] == [("a", "Über Otter", 2020)]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "It is empty."),
        (b" \n", "It is empty."),
        (bytes(range(256)) * 8, "It has no entry: one begins with @ and its kind, such as @article{."),
        (b"write to a@b.org\n", "It has no entry: one begins with @ and its kind, such as @article{."),
        ("@article{a, title={A}}".encode("utf-16-le"), "It has no entry: one begins with @ and its kind, such as @art"),
    ],
    ids=["empty", "blank", "noise", "prose", "no-mark"],
)
def test_an_unreadable_bibliography_says_why(desk: CliRunner, content: bytes, why: str) -> None:
    small_papers(desk.papers)
    bib = desk.folder / "my.bib"
    bib.write_text("@article{sleep, title={Otters Asleep}, file={:papers/otters.pdf:PDF}}", encoding="utf-8")
    assert desk.ingest("--bib", str(bib)).code == 0
    bib.write_bytes(content)
    ran = desk.ingest("--bib", str(bib))
    assert ran.code == 1
    assert "my.bib: entries: 0, papers matched: 0, changed: 0, not matched: 0." in ran.out
    assert f"  Could not be read: {why}" in ran.out
    assert "Otters Asleep" in {paper["title"] for paper in desk.record()}  # what it said before is not forgotten


def test_the_library_is_exported_and_taken_back(desk: CliRunner, capsys: pytest.CaptureFixture[str]) -> None:
    small_papers(desk.papers)
    (desk.folder / "my.bib").write_text(BIB, encoding="utf-8")
    desk.ingest("--bib", str(desk.folder / "my.bib"))
    for name, value in desk.settings.items():
        desk.monkeypatch.setenv(name, value)
    capsys.readouterr()
    assert folio.main(["papers", "export"]) == 0
    written = capsys.readouterr().out
    assert "@article{sleep,\n  author = {Otter, Bo},\n  title = {{Otters Asleep}},\n  year = {1999},\n" in written
    assert "% title not sure: " in written or "title = {{The Aletsch Glacier}}" in written
    out = desk.folder / "out" / "mine.json"
    assert folio.main(["papers", "export", "--format", "csl-json", "--out", str(out)]) == 0
    items = {item["id"]: item for item in json.loads(out.read_text(encoding="utf-8"))}
    assert (items["sleep"]["title"], items["sleep"]["issued"]) == ("Otters Asleep", {"date-parts": [[1999]]})
    exported = desk.folder / "mine.bib"
    exported.write_text(written, encoding="utf-8")
    again = desk.ingest("--bib", str(exported))
    assert "papers matched: 2" in again.out
    assert {paper["title"] for paper in desk.record()} >= {"Otters Asleep"}
