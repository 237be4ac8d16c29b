"""`folio notes`, and `/note` in the chat: added by words, listed, exported and deleted."""

from __future__ import annotations

import re
from contextlib import closing

import docx

from folio.cli import notes
from folio.store.indexes import LIBRARY
from folio.store.library import Library
from folio.store.note_places import listed
from tests.helpers.cli_runner import CliResult, CliRunner

FUR = "no other mammal has a DENSER fur"


def run(desk: CliRunner, *arguments: str) -> CliResult:
    return desk._here(notes, arguments)


def without_ids(text: str) -> list[str]:
    """The lines of a list, with "ID DATE" for the id and the date of each note."""
    return re.sub(r"\b[0-9a-f]{8} \d{4}-\d\d-\d\d", "ID DATE", text).splitlines()


def test_notes_are_added_listed_exported_and_deleted(filled: CliRunner) -> None:
    ran = run(filled, "add", "otters", FUR, "--text", "Is it so?\n[otters.pdf p.7]", "--colour", "yellow")
    assert (ran.code, ran.err) == (0, "")
    fur = [
        "ID DATE yellow",
        "  “No other mammal has a denser fur” On Sea Otters, p. 1",
        "  Is it so?",
        "  (otters.pdf p.7)",
    ]
    assert without_ids(ran.out) == fur
    added = run(filled, "add", "alps/glaciers", "Blatten", "--json").object
    assert (added["quotes"][0]["page"], added["file"], added["text"]) == (3, "alps/glaciers.pdf", "")
    blatten = ["ID DATE", "  “Blatten” The Aletsch Glacier, p. 3"]
    for arguments in ((), ("list",), ("--order", "place")):
        assert without_ids(run(filled, *arguments).out) == [*fur, *blatten, "2 notes."]
    assert without_ids(run(filled, "list", "mammal", "so").out) == [*fur, "1 note."]
    assert without_ids(run(filled, "--paper", "glaciers").out) == [*blatten, "1 note."]
    assert run(filled, "--colour", "pink").out == "0 notes.\n"
    assert [note["file"] for note in run(filled, "--json", "--order", "created").objects] == [
        "alps/glaciers.pdf",
        "otters.pdf",
    ]
    for public, page in (("", "http://127.0.0.1:8420/"), ("https://example.org/folio/", "https://example.org/folio/")):
        filled.settings["PUBLIC_URL"] = public
        exported = run(filled, "export", "--paper", "glaciers").out
        where = f"> p. 3. [Open in Folio]({page}#paper/"
        assert exported.startswith(f"# Notes\n\n## The Aletsch Glacier\n\n> “Blatten”\n>\n{where}")
    file = filled.folder / "notes.docx"
    ran = run(filled, "export", str(file))
    assert (ran.code, ran.out, ran.err) == (0, "", f"2 notes written to {file}.\n")
    assert "“Blatten”" in [paragraph.text for paragraph in docx.Document(str(file)).paragraphs]
    assert run(filled, "export", "--format", "bib").out.count("@misc{") == 2
    ran = run(filled, "delete", added["id"][:8])
    assert (ran.code, ran.out) == (0, f"Deleted: note {added['id'][:8]}.\n")
    assert without_ids(run(filled).out) == [*fur, "1 note."]


def test_what_cannot_be_noted_is_explained(filled: CliRunner) -> None:
    for arguments, error in (
        (("add", "otters", "tigers"), "The paper has no words “tigers”."),
        (("add", "otters", "otter"), "The paper has the words “otter” 4 times, on pages 1, 2."),
        (("add", "otters", "otter", "--page", "3"), "Page 3 of the paper has no words “otter”."),
        (("add", "zebras", "fur"), "No paper in the index is called “zebras”."),
        (("delete", "0123"), "There is no such note."),
        (("delete", ""), "There is no such note."),
        (("export", "--format", "docx"), "A Word document is no text to print."),
    ):
        ran = run(filled, *arguments)
        assert ran.code != 0, arguments
        assert (ran.out, ran.err.splitlines()[0]) == ("", error), arguments
        assert len(ran.err.splitlines()) == 2
    assert run(filled).out == "0 notes.\n"
    assert run(filled, "add", "otters", "otter eats", "--page", "2").code == 0


def test_a_statement_of_the_chat_is_kept(filled: CliRunner) -> None:
    question = "How long is the Aletsch glacier?"
    ran = filled.query(typed=f"/note\n{question}\n/note\n/note 1 My words.\n/note mine\n/note 99\n")
    assert ran.err.splitlines()[0] == "Nothing has been asked yet."
    kept = [line for line in ran.err.splitlines() if line.startswith("Kept as note ")]
    assert len(kept) == 3
    assert re.search(r"The last answer has \d+ statements? to keep as a note\.", ran.err)
    with closing(Library(filled.store / LIBRARY)) as library:
        placed = listed(library, order="created")[::-1]
    assert [each.note.text for each in placed] == ["", "My words.", "mine"]
    for each in placed:
        assert "23 kilometres" in each.note.statement
        assert [quote.place for quote in each.quotes] == ["here"] * len(each.quotes)
        assert any("23 kilometres" in quote.quote.quote for quote in each.quotes)
    assert "/note 2 keeps its second statement" in filled.query(typed="/help\n").err
