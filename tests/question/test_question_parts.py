"""The parts of a question."""

from __future__ import annotations

import pytest

from folio.question.parts import MOST_PARTS, last_question, question_parts
from folio.question.question import Question

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How thick is the ice?", ()),
        ("How thick is the ice, and how long is a raft?", ("How thick is the ice", "how long is a raft")),
        ("How is Raft tested, and how many servers does it need?",
         ("How is Raft tested", "how many servers does it need")),
        ("Which markup are slides in, in which language is Raft written, and which one inspired Paxos?",
         ("Which markup are slides in", "in which language is Raft written", "which markup inspired Paxos")),
        ("How does Raft, which is a protocol, work, and what is Paxos?",
         ("How does Raft, which is a protocol, work", "what is Paxos")),
        ("Where do otters sleep, and what changed?", ("Where do otters sleep", "what changed")),
        ("Where do otters sleep, and when?", ("Where do otters sleep", "when")),
        ("What is Raft? Is Paxos safer than Zab?", ("What is Raft", "Is Paxos safer than Zab")),
        ("What do otters and seals eat in winter, and from which rocky coast do birds dive?",
         ("What do otters and seals eat in winter", "from which rocky coast do birds dive")),
        ("What is the diet of otters and of seals?", ("What is the diet of otters", "What is the diet of seals")),
        ("How are otters counted with nets, and how with a drone?",
         ("How are otters counted with nets", "How are otters counted with a drone")),
        ("How long does Raft take compared to the first rounds of Paxos?",
         ("How long does Raft take", "How long the first rounds of Paxos")),
        ("What is the difference between Raft at Stanford and Paxos in elections?",
         ("Raft at Stanford in elections", "Paxos in elections")),
        (
            "How many servers do the Raft papers, Paxos and the ZAB protocol need?",
            ("How many servers do the Raft papers protocol need", "How many servers do Paxos protocol need",
             "How many servers do the ZAB protocol need"),
        ),
        ("What eats urchins? And where do otters sleep?", ("What eats urchins", "where do otters sleep")),
        ("Compare Raft and Paxos", ("What is Raft", "What is Paxos")),
        ("Compare Raft, Paxos, Zab and Chain Replication in elections.",
         ("Raft in elections", "Paxos in elections", "Zab in elections", "Chain Replication in elections")),
        ("How does Raft differ from Paxos in leader election?",
         ("Raft in leader election", "Paxos in leader election")),
        ("Which logs do Raft and Paxos keep?", ("Which logs do Raft keep", "Which logs do Paxos keep")),
        ("How many nets and how much rope did the crew of the raft use?",
         ("How many nets did the crew of the raft use", "how much rope did the crew of the raft use")),
        ("What rate and what depth were chosen for the otters?",
         ("What rate were chosen for the otters", "what depth were chosen for the otters")),
        ("How many otters were seen and how many eat urchins?", ("How many otters were seen", "how many eat urchins")),
        ("Which otters sleep and which do not?", ()),
        ("Otters in winter, which of them sleep and which don't?", ()),
        ("In the notes on rafts, which wood is best, and for how long does a raft float?",
         ("In the notes on rafts, which wood is best", "In the notes on rafts, for how long does a raft float")),
        ("Rafts float for years; why do otters avoid the rafts?", ()),
        ("According to Otter, what is a raft and why are rafts built?",
         ("According to Otter, what is a raft", "According to Otter, why are rafts built")),
        ("Describe a raft, and how long does a raft float?", ("Describe a raft", "how long does a raft float")),
        ("Is Raft safe in winter, and how is Paxos tested?", ("Is Raft safe in winter", "how is Paxos tested")),
        ("Which land and sea animals use tools?", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_a_question_has_parts_if_it_compares_or_joins(question: str, parts: tuple[str, ...]) -> None:
    assert question_parts(question) == parts


@pytest.mark.parametrize(
    ("question", "second"),
    [
        ("What is Raft, and who tested it in winter?", "who tested Raft in winter"),
        ("What does the raft carry, and who built it?", "who built the raft"),
        ("What does folio-web show, and how many people can use its web version?",
         "how many people can use folio-web’s web version"),
        ("What do otters eat, and when do they sleep?", "when do otters sleep"),
        ("What does Raft keep, and how does the disk write its log?", "how does the disk write its log"),
        ("How does Raft elect a leader, and does it scale?", "does Raft scale"),
        ("Is Python used? Does it help?", "Does Python help"),
        ("Why does treesiftr build its trees by parsimony, and how many people can use its web version?",
         "how many people can use treesiftr’s web version"),
        ("How thick is the ice at the Konkordiaplatz, and how old is it?", "how old is the ice"),
        ("whats a moraine and hows it made", "how is a moraine made"),
        ("Who is the author of the Zab paper, and where does he work?", "where does the author of the Zab paper work"),
        ("How many lessons are in the first course and how many in the last one?", "how many lessons in the last one"),
        ("How many pupils took part, and how much of the fee was paid?", "how much of the fee was paid"),
    ],
)  # fmt: skip
def test_a_later_question_has_the_thing_of_the_first_for_its_pronoun(question: str, second: str) -> None:
    assert Question(question).questions[1:] == (second,)


def test_a_question_has_no_more_than_a_few_parts() -> None:
    assert len(question_parts(" and ".join(f"what does method{n} do" for n in range(50)))) == MOST_PARTS


ABSTRACT = "We study how glaciers move. " * 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ABSTRACT}How fast do they move? We do not know.", "How fast do they move?"),
        (f"{ABSTRACT}Does it say where. Which river is it", "Which river is it"),
        (ABSTRACT.strip(), ABSTRACT.strip()),  # no question
        ("We know that. How fast?", "We know that. How fast?"),  # not long
    ],
)
def test_a_long_text_has_a_last_question(text: str, expected: str) -> None:
    assert last_question(text) == expected


@pytest.mark.parametrize(
    ("question", "second"),
    [
        ("How does the system store data and how do users read it?", "how do users read it (system store data)"),
        (
            "How deep do the argo floats sink, and which battery do they carry",
            "which battery do they carry (deep argo floats sink)",
        ),
        ("What was measured in the study and who paid for this?", "who paid for this (measured study)"),
        ("Who drew the otters, and in which year?", "in which year (drew otters)"),
        ("What is the price of one raft; are they safe?", "are they safe (price one raft)"),
    ],
)
def test_a_later_question_whose_thing_is_not_clear_has_the_words_of_the_first(question: str, second: str) -> None:
    assert Question(question).questions[1:] == (second,)
