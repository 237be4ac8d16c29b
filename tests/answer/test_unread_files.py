"""Where nothing was found, the files are named that could not be read and may have it, by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from folio.answer.unread_files import unread_notice
from folio.answer_types import ALSO, CLOSEST, FROM_PAPERS, Evidence, Section, Sentence
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import make_pdf
from tests.helpers.scripted_answerer import cited, script_answers

WEIGHTS = {"throughput": 1.5, "chubbi": 6.0, "servic": 2.0, "2014": 9.0}
FOUR = [f"chubby {n}.pdf" for n in (4, 1, 3, 2)]
ONE = "A file that could not be read may have the answer, by its name:"
SEVERAL = "Files that could not be read may have the answer, by their names:"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], ""),
        (["raft.pdf", "service-throughput.pdf", "2014.pdf"], ""),
        (["x/google_Chubby.pdf", "raft.pdf"], f"{ONE} “x/google_Chubby.pdf”."),
        (["a chubby one.pdf", "ChubbyService.pdf"], f"{SEVERAL} “ChubbyService.pdf”, “a chubby one.pdf”."),
        (FOUR, f"{SEVERAL} “chubby 1.pdf”, “chubby 2.pdf”, “chubby 3.pdf”."),
        (["chubby\n\x1b[31m.pdf"], f"{ONE} “chubby �[31m.pdf”."),
    ],
)
def test_the_files_with_the_rarest_word_are_named(names: list[str], said: str) -> None:
    assert unread_notice(WEIGHTS, names) == said


def test_a_question_of_numbers_alone_names_none() -> None:
    assert unread_notice({"2014": 9.0}, ["2014.pdf"]) == ""
    assert unread_notice({}, ["a.pdf"]) == ""


def test_a_refusal_names_them_and_an_answer_does_not(desk: CliRunner) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    make_pdf(desk.papers / "sponges.pdf", "sponges")
    (desk.papers / "chubby-lock-service.pdf").write_bytes(b"%PDF-1.7 torn")
    (desk.papers / "sponges-again.pdf").write_bytes(b"%PDF-1.7 torn too")
    assert desk.ingest().code == 1
    asked = desk.query("How many clients does one Chubby cell serve?", "--no-log", "--json")
    assert f"{ONE} “chubby-lock-service.pdf”." in asked.object["notice"]
    assert "could not be read" not in desk.query("What do sponges filter?", "--no-log", "--json").object["notice"]
    scoped = desk.query("How many clients does one Chubby cell serve?", "--no-log", "--json", "--paper", "sponges")
    assert "could not be read" not in scoped.object["notice"]


@pytest.mark.parametrize(("headings", "named"), [((CLOSEST, ALSO), True), ((FROM_PAPERS, ALSO), False)])
def test_closest_passages_name_them_too_whatever_else_is_shown(
    desk: CliRunner, monkeypatch: pytest.MonkeyPatch, headings: Sequence[Section], named: bool
) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    write_pdf(desk.papers / "sponges.pdf", ["Sponges of the reef filter the water of the bay, day and night."])
    (desk.papers / "chubby-lock-service.pdf").write_bytes(b"%PDF-1.7 torn")
    assert desk.ingest().code == 1

    def script(evidence: Sequence[Evidence]) -> Iterator[Sentence]:
        for heading in headings:
            yield Sentence("Sponges filter water.", (cited(evidence, "filter"),), section=heading)

    script_answers(monkeypatch, script)
    asked = desk.query("How many clients does one Chubby cell serve?", "--no-log", "--json")
    assert (f"{ONE} “chubby-lock-service.pdf”." in asked.object["notice"]) is named
