"""Sub-questions, acronyms spelled out, and near words."""

from __future__ import annotations

import pytest

from folio.agent.rephrasing import near_words, spelled_out
from folio.answer.question_parts import MOST_PARTS, question_parts
from tests.helpers.factories import even_weights
from tests.helpers.fakes import HashingEmbedder


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How thick is the ice?", ()),
        ("How thick is the ice, and how long is a raft?", ("How thick is the ice", "how long is a raft")),
        ("How is Raft tested, and how many servers does it need?", ()),  # a part that does not stand alone
        ("What eats urchins? And where do otters sleep?", ("What eats urchins", "where do otters sleep")),
        ("Compare Raft and Paxos", ("Raft", "Paxos")),
        (
            "How does Raft differ from Paxos in leader election?",
            ("Raft in leader election", "Paxos in leader election"),
        ),
        ("Which logs do Raft and Paxos keep?", ("Which logs do Raft keep", "Which logs do Paxos keep")),
        ("Which land and sea animals use tools?", ()),
        ("", ()),
    ],
)
def test_a_question_has_parts_if_it_compares_or_joins(question: str, parts: tuple[str, ...]) -> None:
    assert question_parts(question) == parts


def test_a_question_has_no_more_than_a_few_parts() -> None:
    assert len(question_parts(" and ".join(f"what does method{n} do" for n in range(50)))) == MOST_PARTS


def test_acronyms_are_spelled_out_as_the_papers_do_and_the_other_way() -> None:
    texts = ["We use a Message Authentication Code (MAC) here.", "The (GPU) is fast. A thing (THG) is none."]
    assert spelled_out("How is the MAC made?", texts) == "How is the MAC made Message Authentication Code"
    assert spelled_out("How is a message authentication code made?", texts).endswith(" MAC")
    assert spelled_out("How fast is the GPU?", texts) == ""
    assert spelled_out("How is a machine made?", texts) == ""


def test_near_words_are_of_the_passages_and_not_of_the_question() -> None:
    embedder = HashingEmbedder(256)
    found = near_words("otter diet", ["The diet of otters: urchins, clams. Urchins again."], embedder, even_weights)
    assert set(found) == {"urchins", "clams", "again"}
    assert near_words("otter diet", [], embedder, even_weights) == ()
