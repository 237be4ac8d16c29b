"""`folio instructions`, and `--instruction` of `ask`."""

from __future__ import annotations

from folio.answer.instructions import NEEDS_MODEL
from folio.cli import instructions
from tests.helpers.cli_runner import CliResult, CliRunner


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(instructions, arguments)


def test_instructions_are_added_listed_changed_and_deleted(filled: CliRunner) -> None:
    assert [line.partition(":")[0] for line in run(filled).out.splitlines()] == [
        "In two sentences (ready)", "For a newcomer (ready)",
    ]  # fmt: skip
    added = run(filled, "add", "For a clinician", "Name the dose first.")
    assert (added.code, added.err) == (0, "Added “For a clinician”.\n")
    assert run(filled, "list").out.splitlines()[-1] == "For a clinician: Name the dose first."
    own = run(filled, "list", "--json").objects[-1]
    assert (own["name"], own["ready"]) == ("For a clinician", False)
    assert run(filled, "change", "for a CLINICIAN", "Name the risk first.").err == "Changed “For a clinician”.\n"
    assert run(filled, "list", "--json").objects[-1]["text"] == "Name the risk first."
    taken = run(filled, "add", "for a clinician", "x")
    assert (taken.code, "already" in taken.err) == (2, True)
    for arguments in (("delete", "In two sentences"), ("change", "newcomer", "x")):
        assert "comes with Folio" in run(filled, *arguments).err
    assert run(filled, "delete", "For a clinician").err == "Deleted “For a clinician”.\n"
    assert "There is no instruction “For a clinician”." in run(filled, "delete", "For a clinician").err


def test_a_question_is_asked_with_an_instruction(filled: CliRunner) -> None:
    filled.settings["LLM"] = "builtin"
    question = "What do sea otters eat?"
    plain = filled.query(question)
    ran = filled.query(question, "--instruction", "in two sentences")
    assert ran.out == plain.out
    assert "Instruction: In two sentences\n" in ran.err
    assert NEEDS_MODEL.format("In two sentences") in " ".join(ran.err.split())
    printed = filled.query(question, "--instruction", "In two sentences", "--json").object
    assert printed["instruction"]["id"] == "two-sentences"
    unknown = filled.query(question, "--instruction", "shorter")
    assert unknown.code == 2
    assert "There is no instruction “shorter”." in unknown.err
    assert "--instruction and --sources cannot be combined." in filled.query(
        question, "--sources", "--instruction", "x"
    ).err
