"""The names that everybody uses for papers whose titles may not have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from folio.papers.metadata import simple_metadata
from folio.papers.model import Paper
from folio.search.names import Aliases
from tests.helpers.factories import hit_on

pytestmark = pytest.mark.fast


def paper(file: str, title: str, *authors: str) -> Paper:
    return replace(hit_on("Text.", file=file).paper, metadata=simple_metadata(title, authors))


TEXTS = {
    "consensus.pdf": "Raft is a consensus algorithm. In Raft, a leader is elected. " * 8
    + "Attention, attention! " * 20,
    "boats.pdf": "This is unlike Raft. We count on a raft of tricks. " * 3 + "Seal saw a seal. " * 30,
    "verified.pdf": "We present the design of Verdi, a framework. Verdi verifies Raft. "
    + "Raft here. Verdi too. " * 12,
    "files.pdf": "We describe the Google File System (GFS). GFS stores chunks. " + "GFS grows; HDFS copies GFS. " * 12,
    "other.pdf": "Models use an LSTM (Long Short-Term Memory). " + "This LSTM and that Detach gate. " * 12,
    "late.pdf": "A paper. " * 500 + "Paxos agrees. " * 40,
    "people.pdf": "Ousterhout wrote this. Ousterhout did. " * 20,
}
SHELF = [
    paper("consensus.pdf", "In Search of an Understandable Consensus Algorithm"), paper("boats.pdf", "On Boats"),
    paper("verified.pdf", "A Framework"), paper("files.pdf", "The Google File System"), paper("other.pdf", "Gates"),
    paper("late.pdf", "Agreement"), paper("people.pdf", "A Life", "John Ousterhout"),
]  # fmt: skip


def known_by(word: str, papers: Sequence[Paper]) -> str | None:
    found = Aliases(lambda _: papers, lambda paper: TEXTS[paper.file])(word)
    return found.file if found else None


@pytest.mark.parametrize(
    ("word", "file"),
    [
        ("raft", "consensus.pdf"),  # the name that it uses most
        ("RAFT", "consensus.pdf"),
        ("gfs", "files.pdf"),  # defined for its title
        ("attention", None),  # used often, but as a word
        ("seal", None),  # half of them are animals
        ("raf", None),  # part of a word
        ("hdfs", None),  # not on its first page
        ("paxos", None),  # not on its first page
        ("ousterhout", None),  # a person
        ("the", None),
        ("", None),
    ],
)
def test_a_paper_is_known_by_its_own_name(word: str, file: str | None) -> None:
    shelf = [each for each in SHELF if each.file != "verified.pdf"]
    assert known_by(word, shelf) == file
    assert known_by(word, []) is None


def test_a_name_belongs_to_the_paper_that_introduces_it() -> None:
    assert known_by("verdi", SHELF) == "verified.pdf"
    assert known_by("raft", SHELF) is None  # two papers use it alike, and none says that it presents it


def test_words_are_looked_up_once() -> None:
    asked: list[str] = []

    def papers_with(word: str) -> Sequence[Paper]:
        asked.append(word)
        return SHELF[:2]

    aliases = Aliases(papers_with, lambda paper: TEXTS[paper.file])
    assert (aliases("Raft"), aliases("raft")) == (SHELF[0], SHELF[0])
    assert asked.count("raft") == 1
