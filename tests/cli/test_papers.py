"""`folio papers`: lists, what is known about a paper, and edits, from the terminal to every place that shows them."""

from __future__ import annotations

from typing import Any

import pytest

from folio.cli import papers
from tests.helpers.cli_runner import CliResult, CliRunner


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(papers, arguments)


def shown(desk: CliRunner, name: str) -> dict[str, Any]:
    return run(desk, "show", name, "--json").object


def test_papers_are_listed(ready: CliRunner) -> None:
    for arguments in ((), ("list",), ("--sort", "file")):
        ran = run(ready, *arguments)
        assert (ran.code, ran.err) == (0, "")
        assert [line.split() for line in ran.out.splitlines()] == [
            ["key", "authors", "year", "title", "file"],
            ["alps/glaciers", "The", "Aletsch", "Glacier", "alps/glaciers.pdf"],
            ["otters", "On", "Sea", "Otters?", "otters.pdf"],
            ["2", "papers.", "?", "means", "not", "sure."],
        ]
    glaciers, otters = run(ready, "list", "--json", "--sort", "title").objects[::-1]
    assert (otters["file"], otters["title"], otters["unsure"]) == ("otters.pdf", "On Sea Otters", ["title"])
    assert (glaciers["key"], glaciers["pages"], glaciers["venue"], glaciers["doi"]) == ("alps/glaciers", 3, "", "")


def test_the_list_is_filtered_and_counted(filled: CliRunner) -> None:
    assert run(filled, "edit", "otters", "year=2014", "venue=Journal of Otters", "authors=Otter, Ann").code == 0
    for wanted in (["--year", "2010-2015"], ["--venue", "otters"], ["--author", "a otter"], ["--year=-2014"]):
        ran = run(filled, "list", *wanted, "--json")
        assert [paper["file"] for paper in ran.objects] == ["otters.pdf"], wanted
    ran = run(filled, "--year", "2015-")
    assert (ran.code, ran.out) == (0, "0 of 2 papers.\n")
    assert run(filled, "--by", "year", "--json").object == {
        "by": "year",
        "counts": [{"value": "2014", "papers": 1}, {"value": "", "papers": 1}],
    }
    counted = run(filled, "--by", "author").out
    assert counted.split() == ["author", "papers", "Ann", "Otter", "1", "none", "1"]
    assert filled.query("--stats", "--by", "author").out == counted
    assert filled.query("--stats", "--by", "venue", "--json").object["counts"][0] == {
        "value": "Journal of Otters",
        "papers": 1,
    }


def test_a_folder_is_no_file_to_export_to(ready: CliRunner) -> None:
    before = set(ready.folder.iterdir())
    ran = run(ready, "export", "--out", str(ready.papers))
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"{ready.papers} cannot be used: Is a directory.")
    assert set(ready.folder.iterdir()) == before


def test_an_export_goes_where_a_person_said(ready: CliRunner) -> None:
    printed = run(ready, "export").out
    kept, link = ready.folder / "kept.bib", ready.folder / "thesis.bib"
    kept.write_text("old")
    kept.chmod(0o640)
    link.symlink_to(kept)
    assert run(ready, "export", "--out", str(link)).code == 0
    assert (link.is_symlink(), kept.read_text(), kept.stat().st_mode & 0o777) == (True, printed, 0o640)


@pytest.mark.parametrize(
    ("arguments", "happened"),
    [
        (["list", "--year", "now"], "“now” is not a year or a range of years."),
        (["list", "--section", "intro"], "No section is called “intro”."),
        (["list", "--author", "Walrus"], "No paper in the index is by “Walrus”."),
        (["list", "--tag", "walrus"], "No paper in the index has the tag “walrus”."),
        (["list", "--paper", "walrus"], "No paper in the index is called “walrus”."),
        (["show", "walrus"], "No paper in the index is called “walrus”."),
        (["edit", "otters", "year=3000"], "The year 3000 is not between 1400 and "),
        (["edit", "otters"], "No change is given."),
        (["edit", "otters", "--reset", "shoes"], "There is no field “shoes”."),
    ],
)
def test_mistakes_are_refused_in_two_lines(arguments: list[str], happened: str, ready: CliRunner) -> None:
    ran = run(ready, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(happened)
    assert len(ran.err.splitlines()) == 2


def test_everything_known_about_a_paper_is_shown(filled: CliRunner) -> None:
    assert run(filled, "edit", "otters", "doi=10.1000/otters").code == 0
    ran = run(filled, "show", "sea otters")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[:4] == [
        "On Sea Otters",
        "title On Sea Otters from the file's metadata, not sure",
        "doi 10.1000/otters edited",
        "citation key otters made by Folio",
    ]
    assert lines[4:5] == ["key otters in citations"]
    assert "files otters.pdf" in lines
    found = shown(filled, "otters")
    assert found["fields"]["doi"] == {"value": "10.1000/otters", "origin": "person", "sure": True}
    assert found["fields"]["title"] == {"value": "On Sea Otters", "origin": "pdf metadata", "sure": False}
    assert found["fields"]["year"] == {"value": None, "origin": "", "sure": False}
    assert (found["files"], found["sections"]) == (["otters.pdf"], [])


def test_an_edit_is_seen_everywhere_at_once(filled: CliRunner) -> None:
    ran = run(
        filled, "edit", "otters.pdf", "title=Kelp Rafts of the Pacific", "year=2014", "authors=Otter, Ann; Bo Seal"
    )
    assert (ran.code, ran.err) == (0, "")
    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "otters.pdf",
        "title On Sea Otters (from the file's metadata, not sure) → Kelp Rafts of the Pacific (edited)",
        "year (not known) → 2014 (edited)",
        "authors (not known) → Otter, Ann; Seal, Bo (edited)",
    ]
    record = next(entry for entry in filled.record() if entry["file"] == "otters.pdf")
    assert (record["title"], record["year"], record["authors"]) == (
        "Kelp Rafts of the Pacific", 2014, ["Ann Otter", "Bo Seal"],
    )  # fmt: skip
    # The new title is in no passage: BM25 finds it in the index, which has followed.
    hits = filled.query("--sources", "--json", "Pacific").object["hits"]
    assert {hit["title"] for hit in hits if hit["bm25"]} == {"Kelp Rafts of the Pacific"}
    assert filled.ingest("--verify").code == 0
    answered = filled.query("--json", "How many hairs has the fur of a sea otter?").object
    assert {cited["title"] for cited in answered["citations"]} == {"Kelp Rafts of the Pacific"}
    said = filled.query("--style", "report", "How many hairs has the fur of a sea otter?").out
    assert "Ann Otter and Bo Seal (2014). Kelp Rafts of the Pacific." in said
    assert run(filled, "list", "--json", "--year", "2014").object["title"] == "Kelp Rafts of the Pacific"


def test_edits_are_reset_and_fields_emptied(filled: CliRunner) -> None:
    assert run(filled, "edit", "otters", "title=A", "year=2014", "doi=10.1000/a").code == 0
    ran = run(filled, "edit", "otters", "--reset", "title")
    assert "A (edited) → On Sea Otters (from the file's metadata, not sure)" in " ".join(ran.out.split())
    assert shown(filled, "otters")["fields"]["year"]["value"] == 2014
    again = run(filled, "edit", "otters", "--reset", "all", "--json").object
    assert (again["title"], again["year"], again["doi"]) == ("On Sea Otters", None, "")
    assert run(filled, "edit", "otters", "--reset", "all").out.splitlines() == ["otters.pdf", "Nothing has changed."]
    assert run(filled, "edit", "otters", "title=").code == 0
    assert shown(filled, "otters")["fields"]["title"] == {"value": "", "origin": "person", "sure": True}
    assert run(filled, "show", "otters").out.splitlines()[0] == "otters.pdf"
    assert filled.ingest("--verify").code == 0


def test_an_edit_cannot_forge_a_citation_or_control_the_terminal(filled: CliRunner) -> None:
    assert run(filled, "edit", "otters", "title=On Ice [glaciers p.7]", "venue=[alps/glaciers p.1]").code == 0
    for arguments in (("show", "otters"), ("list",), ("edit", "otters", "year=2014", "--reset", "title")):
        assert "[" not in run(filled, *arguments).out
    assert run(filled, "edit", "otters", "title=\x1b[2J").err.startswith("The field title has characters that cannot")


# query.py --papers: ranked papers


def test_papers_are_ranked_with_the_reason(ready: CliRunner) -> None:
    ran = ready.query("--papers", "how", "long", "is", "the", "Aletsch", "glacier")
    assert ran.code == 0
    first, why, second, _ = ran.out.splitlines()
    assert first == "1. The Aletsch Glacier"
    assert why.startswith("   alps/glaciers.pdf · ")
    assert why.endswith("its words: Aletsch, glacier · in the text: pp. 1–3")
    assert second == "2. otters.pdf  On Sea Otters"


def test_one_object_for_each_query(ready: CliRunner) -> None:
    found = ready.query("--papers", "--json", "--top-k", "1", "kelp rafts").object
    assert (found["query"], found["notice"]) == ("kelp rafts", "")
    (paper,) = found["papers"]
    assert (paper["file"], paper["match"]["label"], paper["match"]["pages"]) == ("otters.pdf", "otters.pdf", [1, 2])


def test_filters_choose_among_them(ready: CliRunner) -> None:
    found = ready.query("--papers", "--json", "--paper", "otters", "glacier").object
    assert [paper["file"] for paper in found["papers"]] == ["otters.pdf"]
