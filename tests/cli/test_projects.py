"""`folio projects`, `folio papers tag`, and `--project`: made, asked, changed and deleted in a terminal."""

from __future__ import annotations

from folio.cli import export, log, notes, papers, projects
from tests.helpers.cli_runner import CliResult, CliRunner


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(projects, arguments)


def done(ran: CliResult) -> str:
    assert (ran.code, ran.err) == (0, ""), ran.err
    return ran.out


def test_a_project_is_made_asked_changed_and_deleted(filled: CliRunner) -> None:
    assert done(run(filled)).startswith("There is no project yet. `")
    assert done(run(filled, "new", "Sea", "otters", "--about", "For [b]the[/b] review.")) == "Made: Sea (1 paper).\n"
    rule = ("--tag", "cold", "--year", "2010-")
    assert done(run(filled, "add", "sea", "glaciers", *rule)) == "Changed: Sea (2 papers).\n"
    assert done(run(filled, "show", "Sea")).splitlines() == [
        "Sea: 2 papers, 0 notes.",
        "For [b]the[/b] review.",
        "Rule: papers from 2010, tagged cold.",
        "  alps/glaciers.pdf  The Aletsch Glacier",
        "  otters.pdf  On Sea Otters",
    ]
    assert done(run(filled, "remove", "Sea", "glaciers")) == "Changed: Sea (1 paper).\n"
    assert run(filled, "list", "--json").object["papers"] == 1
    asked = filled.query("--project", "sea", "What is the length of the Aletsch glacier?")
    assert asked.out.splitlines()[0] == "Not found in the one paper of Sea."
    found = filled.query("--project", "Sea", "What is the diet of the sea otter made of?")
    assert "urchins" in found.out
    assert "Asked: 1 paper in Sea." in found.err
    assert "of 1 paper in Sea" in done(filled._here(log, ["show"]))
    assert [line for line in done(filled._here(papers, ["list", "--project", "Sea"])).splitlines() if "pdf" in line]
    filled._here(notes, ["add", "glaciers", "Blatten"])
    filled._here(notes, ["add", "otters", "rafts of kelp"])
    assert done(filled._here(notes, ["list", "--project", "Sea"])).endswith("1 note.\n")
    folder = filled.folder / "sea"
    done(filled._here(export, [str(folder), "--project", "sea"]))
    pages = [page.name for page in folder.rglob("*.md")]
    assert len(pages) == 1
    assert "rafts of kelp" in next(folder.rglob("*.md")).read_text()
    assert done(run(filled, "rename", "Sea", "Ocean")) == "Renamed: Ocean (1 paper).\n"
    assert done(run(filled, "delete", "ocean")) == "Deleted: Ocean. What was in it stays.\n"
    gone = filled.query("--project", "Ocean", "Why?")
    assert (gone.code, gone.err.splitlines()[0]) == (2, "No project is called “Ocean”.")


def test_papers_get_tags_and_collections_which_are_projects(filled: CliRunner) -> None:
    assert done(filled._here(papers, ["tag", "cold", "glaciers"])) == "Changed: 1 paper.\n"
    assert done(filled._here(papers, ["tag", "Animals/Sea", "otters", "--in"])) == "Changed: 1 paper.\n"
    assert done(run(filled)).splitlines() == ["Animals (1 paper, a collection)", "Animals/Sea (1 paper, a collection)"]
    made = run(filled, "new", "Cold things", "--tag", "cold", "--copy", "animals")
    assert done(made) == "Made: Cold things (2 papers).\n"
    assert done(filled._here(papers, ["untag", "COLD", "--tag", "cold"])) == "Changed: 1 paper.\n"
    assert done(filled._here(papers, ["untag", "animals/sea", "--collection", "Sea", "--in"])) == "Changed: 1 paper.\n"
    assert done(run(filled)) == "Cold things (0 papers)\n"


def test_what_cannot_be_a_project_is_explained(filled: CliRunner) -> None:
    filled._here(papers, ["tag", "Animals", "otters", "--in"])
    done(run(filled, "new", "Sea"))
    for arguments, error in (
        (("new", "SEA"), "There is a project called “SEA” already."),
        (("new", " "), "The project has no name."),
        (("new", "Ice", "zebras"), "No paper in the index is called “zebras”."),
        (("new", "Ice", "--year", "x"), "“x” is not a year or a range of years."),
        (("add", "Sea"), "Nothing is named."),
        (("delete", "Animals"), "“Animals” is a collection of Zotero or a bibliography."),
        (("show", "Seas"), "No project is called “Seas”. Similar names: Sea."),
    ):
        ran = run(filled, *arguments)
        assert (ran.code, ran.err.splitlines()[0]) == (2, error)
    for words, error in ((["tag", "x"], "No paper is named."), (["tag", "a//b", "otters", "--in"], "“a//b” is not")):
        assert filled._here(papers, words).err.startswith(error)
