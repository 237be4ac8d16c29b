"""Without an answer, the notice names unreadable files that may have it, judging by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from folio.answer.chat import unread_notice
from folio.answer_types import ALSO, CLOSEST, FROM_PAPERS, Evidence, Section, Sentence
from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import write_pdf
from tests.helpers.scripted_answerer import cited, script_answers

WEIGHTS = {"throughput": 1.5, "chubbi": 6.0, "servic": 2.0, "2014": 9.0}
FOUR = [f"chubby {n}.pdf" for n in (4, 1, 3, 2)]
ONE = "A file that could not be read may have the answer, judging by its name:"
SEVERAL = "Files that could not be read may have the answer, judging by their names:"


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


def test_refusals_and_closest_passages_name_them_and_answers_do_not(
    desk: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.settings |= {"EMBEDDER": "builtin", "LLM": "builtin"}
    write_pdf(desk.papers / "sponges.pdf", ["Sponges of the reef filter the water of the bay, day and night."])
    for name in ("chubby-lock-service", "sponges-again"):
        (desk.papers / f"{name}.pdf").write_bytes(b"%PDF-1.7 torn " + name.encode())
    assert desk.ingest().code == 1

    def notice(*arguments: str) -> str:
        return str(desk.query(*arguments, "--no-log", "--json").object["notice"])

    clients, named = "How many clients does one Chubby cell serve?", f"{ONE} “chubby-lock-service.pdf”."
    assert named in notice(clients)
    assert "could not be read" not in notice("What do sponges filter?")
    assert "could not be read" not in notice(clients, "--paper", "sponges")
    for first, is_named in ((CLOSEST, True), (FROM_PAPERS, False)):

        def script(evidence: Sequence[Evidence], first: Section = first) -> Iterator[Sentence]:
            for heading in (first, ALSO):
                yield Sentence("Sponges filter water.", (cited(evidence, "filter"),), section=heading)

        script_answers(monkeypatch, script)
        assert (named in notice(clients)) is is_named
