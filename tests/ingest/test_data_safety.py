"""No data is lost: missing folders, odd names, limits, a busy store, pipes in another encoding."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing

import pytest

from folio.errors import StoreBusy
from folio.store.library import Library
from folio.store.user_file import copies, set_aside
from tests.helpers.cli_runner import CliRunner
from tests.helpers.damage import zero_pages
from tests.helpers.factories import OTTERS, small_papers, write_pdf
from tests.helpers.ollama_server import OllamaStandIn


def files(desk: CliRunner) -> list[str]:
    return [paper["file"] for paper in desk.record()]


def test_prune_keeps_files_whose_folder_is_missing(filled: CliRunner) -> None:
    shutil.rmtree(filled.papers / "alps")
    write_pdf(filled.papers / "third.pdf", ["A third paper on nothing that the two others say anything about."])
    ran = filled.ingest("--prune")
    assert ran.code == 0
    assert "Kept, because its whole folder is missing." in ran.out
    assert files(filled) == ["alps/glaciers.pdf", "otters.pdf", "third.pdf"]
    (filled.papers / "otters.pdf").unlink()
    assert "removed" in filled.ingest("--prune").out
    assert files(filled) == ["alps/glaciers.pdf", "third.pdf"]


def test_prune_in_a_folder_without_any_pdf_drops_nothing(filled: CliRunner) -> None:
    shutil.rmtree(filled.papers)
    filled.papers.mkdir()
    ran = filled.ingest("--prune")
    assert ran.code == 2
    assert ran.err.startswith("There are no PDFs in ")
    assert files(filled) == ["alps/glaciers.pdf", "otters.pdf"]


def test_a_rebuild_keeps_papers_of_missing_files_without_prune(filled: CliRunner) -> None:
    (filled.papers / "otters.pdf").unlink()
    ran = filled.ingest("--rebuild")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "Indexed files that are missing: 1, including otters.pdf.",
        "Restore them, or rebuild the index without them: python ingest.py --rebuild --prune.",
    ]
    assert files(filled) == ["alps/glaciers.pdf", "otters.pdf"]
    assert filled.ingest("--rebuild", "--prune").code == 0
    assert files(filled) == ["alps/glaciers.pdf"]


def test_a_rebuild_after_damage_reads_papers_outside_the_folder(filled: CliRunner) -> None:
    elsewhere = filled.folder / "elsewhere"
    write_pdf(elsewhere / "far.pdf", ["A paper that lies outside of the folder of papers, and is not to be lost."])
    assert filled.ingest(str(elsewhere)).code == 0
    (filled.store / "library.sqlite").write_bytes(b"SQLite format 3\0" + b"torn" * 2000)
    assert filled.ingest("--rebuild").code == 0
    assert sorted(name.removeprefix("alps/") for name in files(filled)) == ["far.pdf", "glaciers.pdf", "otters.pdf"]


def test_a_missing_file_is_reported_by_the_next_ingest(filled: CliRunner) -> None:
    (filled.papers / "otters.pdf").unlink()
    ran = filled.ingest()
    assert ran.out.startswith("Nothing new: the one paper is already in the index")
    assert "files that are missing: 1. --prune removes their papers." in ran.err


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not allow such a name")
def test_a_name_that_is_not_utf8_fails_only_that_file(desk: CliRunner) -> None:
    small_papers(desk.papers)
    write_pdf(desk.papers / "x.pdf", OTTERS)
    os.rename(desk.papers / "x.pdf", os.fsencode(desk.papers) + b"/caf\xe9.pdf")
    ran = desk.ingest()
    assert ran.code == 1
    assert "Its name is not valid UTF-8. Rename it." in ran.out
    assert files(desk) == ["alps/glaciers.pdf", "otters.pdf"]


def test_a_raised_limit_retries_large_files_but_not_broken_ones(desk: CliRunner) -> None:
    small_papers(desk.papers)
    with (desk.papers / "otters.pdf").open("ab") as file:
        file.write(b"%" * 2_000_000)
    (desk.papers / "torn.pdf").write_bytes(b"%PDF-1.7\ntorn")
    desk.settings["MAX_FILE_MB"] = "1"
    assert "MAX_FILE_MB is 1" in desk.ingest().out
    again = desk.ingest().out
    assert "MAX_FILE_MB is 1" in again
    assert again.count("Not tried again: the file has not changed.") == 1
    assert "the file, the settings and the OCR engine have not changed." in " ".join(again.split())
    desk.settings["MAX_FILE_MB"] = "10"
    assert "MAX_FILE_MB" not in desk.ingest().out
    assert [paper["file"] for paper in desk.record() if "pages" in paper] == ["alps/glaciers.pdf", "otters.pdf"]


def test_a_file_has_one_path_however_it_is_named(filled: CliRunner) -> None:
    ran = filled.ingest("papers/alps/../otters.pdf", "papers/../papers/alps")
    assert ran.out.startswith("Nothing new: all 2 papers")
    assert [len(paper["paths"]) for paper in filled.record()] == [1, 1]


def test_linked_folders_are_searched_and_cycles_end(desk: CliRunner) -> None:
    small_papers(desk.folder / "real")
    (desk.papers / "linked").symlink_to(desk.folder / "real")
    (desk.folder / "real" / "back").symlink_to(desk.papers)
    assert desk.ingest().code == 0
    assert files(desk) == ["linked/alps/glaciers.pdf", "linked/otters.pdf"]


def test_a_link_to_a_folder_that_is_gone_is_named(desk: CliRunner) -> None:
    (desk.papers / "more").symlink_to(desk.folder / "gone", target_is_directory=True)
    (desk.papers / ".hidden").symlink_to(desk.folder / "gone")
    ran = desk.ingest()
    assert ran.code == 1
    said = " ".join(ran.out.split())
    assert f"It is a link to {desk.folder / 'gone'}, which is not there. Put it back, or delete the link." in said
    assert ".hidden" not in said


def test_a_library_that_another_program_holds_is_not_called_damaged(filled: CliRunner) -> None:
    path = filled.store / "library.sqlite"
    with (
        closing(Library(path)) as other,
        closing(Library(path)) as library,
        other.database.transaction(),
        pytest.raises(StoreBusy) as caught,
        library.database.transaction("both", 0.05),
    ):
        pytest.fail("both write at once")
    assert "Another process is writing to the library" in caught.value.happened
    assert "rebuild" not in caught.value.remedy


def test_output_is_utf8_on_a_pipe_of_another_encoding(filled: CliRunner) -> None:
    ran = filled.spawn("query.py", "--sources", "Aletsch glacier", more={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    assert "Aletsch" in ran.out
    assert "·" in ran.out


def test_damaged_user_data_is_restored_by_a_repair_and_by_nothing_else(filled: CliRunner) -> None:
    for question in ("How do otters sleep?", "How long is the Aletsch glacier?"):
        assert filled.query(question).code == 0
    user = filled.store / "user.sqlite"
    (copy,) = copies(user)
    zero_pages(user, "queries")
    before = user.read_bytes(), copy.read_bytes()
    listed = sorted(filled.store.iterdir())
    assert filled.ingest("--verify").code == 1
    assert sorted(filled.store.iterdir()) == listed
    commands = (
        (filled.ingest, "--verify"),
        (filled.ingest, "--rebuild"),
        (filled.query, "--stats"),
        (filled.query, "How do otters sleep?"),
    )
    for run, argument in (*commands, *commands):
        ran = run(argument)
        assert (ran.code != 0 or "could not be written to the log" in ran.err), ran
        assert "--repair" in ran.out + ran.err
        assert (user.read_bytes(), copy.read_bytes(), set_aside(user)) == (*before, [])
    ran = filled.ingest("--repair")
    assert ran.code == 1
    assert ": 2 questions. Missing: " in ran.err
    assert filled.ingest("--verify").code == 0
    assert "questions 2," in " ".join(filled.query("--stats").out.split())


def test_verify_and_repair_take_no_other_arguments(filled: CliRunner) -> None:
    for arguments in (["--verify", "--prune"], ["--repair", "papers"]):
        ran = filled.ingest(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("--verify and --repair work on the whole index.")


def test_a_batch_continues_after_a_question_that_failed(filled: CliRunner, ollama_server: OllamaStandIn) -> None:
    filled.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url}
    filled.settings |= {"ANSWER_FORMAT": "statements", "VERIFIER": "none"}  # one request a question

    def reply(messages: list[dict[str, object]]) -> str:
        ollama_server.faults.error_after = None if "otters" in str(messages[-1]["content"]).split("Question:")[1] else 0
        return "Sea otters sleep on their backs [1]."

    ollama_server.reply = reply
    questions = filled.folder / "questions.txt"
    questions.write_text("How long is the glacier?\nHow do otters sleep?\n", encoding="utf-8")
    ran = filled.query("--batch", str(questions), "--json")
    assert ran.code == 1
    first, second = ran.objects
    assert first["question"] == "How long is the glacier?"
    assert (first["model_failed"], second["model_failed"]) == (True, False)
    assert first["notice"].startswith("Ollama could not keep llama3.1:8b running")
    assert second["answer"] == "Sea otters sleep on their backs and float in rafts of kelp."  # the page's sentence


def test_a_cut_answer_shows_whole_sentences_and_a_notice(filled: CliRunner, ollama_server: OllamaStandIn) -> None:
    whole = "Sea otters sleep on their backs and float in rafts of kelp [1]."
    ollama_server.reply = lambda messages: f"{whole} " + "The fur of a sea otter has hairs and " * 60
    filled.settings |= {"LLM": "ollama", "OLLAMA_HOST": ollama_server.url, "ANSWER_TOKENS": "64"}
    ran = filled.query("--paper", "otters", "How do sea otters sleep?")
    assert ran.code == 0
    assert ran.out.splitlines()[0] == f"{whole.removesuffix(' [1].')}. [otters.pdf p.1]"
    assert "The fur" not in ran.out.split("Sources")[0]
    assert "The answer was cut off at 64 tokens. Raise ANSWER_TOKENS for longer answers." in ran.err


def test_a_moved_file_is_not_said_to_be_missing(filled: CliRunner) -> None:
    (filled.papers / "otters.pdf").rename(filled.papers / "alps" / "beasts.pdf")
    ran = filled.ingest()
    assert "Moved from otters.pdf." in ran.out
    assert "--prune" not in ran.out + ran.err
    (filled.papers / "alps" / "beasts.pdf").unlink()
    ran = filled.ingest()
    assert "Indexed files that are missing: 1. --prune removes their papers." in ran.out + ran.err


def test_what_is_said_about_missing_files_is_what_prune_does(filled: CliRunner) -> None:
    copied = filled.papers / "again" / "otters.pdf"
    copied.parent.mkdir()
    shutil.copy(filled.papers / "otters.pdf", copied)
    assert filled.ingest().code == 0
    (filled.papers / "otters.pdf").unlink()  # the other copy is still there
    ran = filled.ingest()
    assert "missing" not in ran.out + ran.err
    shutil.rmtree(filled.papers / "alps")
    ran = filled.ingest()
    assert "Indexed files whose whole folder is missing: 1. Their papers stay in the index." in ran.err
    assert "--prune" not in ran.out + ran.err
    filled.ingest("--prune")
    assert len(files(filled)) == 2
    moved = filled.folder / "moved"
    filled.papers.rename(moved)
    filled.settings["PAPERS_DIR"] = str(moved)
    ran = filled.ingest()
    assert "Moved from" in ran.out
    assert "--prune" not in ran.out + ran.err
