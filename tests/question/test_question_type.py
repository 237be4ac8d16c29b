"""The kind of answer that a question asks for."""

from __future__ import annotations

import time

import pytest

from folio.question.kind import asks_for_number, gives_number, question_type
from folio.question.parts import compared_things
from folio.question.question import Question

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    "question",
    [
        "How many otters sleep in a raft?", "By how much did the glacier retreat?",
        "In which year was the gauge built?", "What percentage of the pups survive?",
        "What was the mean winter ice thickness at the Konkordiaplatz?", "What value of lambda\nwas chosen?",
        "At what temperature does sea water freeze?", "What top-5 accuracies are reported?",
        "Is the tongue retreating? How fast does it?", "what is the serum half-life of T20",
        "what does a physical tank for demonstrations cost in dollars",
    ],
)  # fmt: skip
def test_a_number_is_asked_for(question: str) -> None:
    assert asks_for_number(question)


@pytest.mark.parametrize(
    "question",
    [
        "What learning rate schedule is used?", "What value chain does the report describe?",
        "How does the model count otters?", "How are costs kept low?",
        "How long is the glacier, and how dense is the fur?",  # two sentences may tell
        "Which lake has more otters, and how many are there?", "Why is the number of otters falling?",
        "Who measured the thickness of the ice?", "What do otters eat?", "The number of otters", "",
    ],
)  # fmt: skip
def test_no_number_is_asked_for(question: str) -> None:
    assert not asks_for_number(question)


@pytest.mark.parametrize(
    ("text", "question", "gives"),
    [
        ("The ice has a thickness of 800 metres.", "How thick is the ice?", True),
        ("Half of it, or twenty otters, float.", "How many otters float?", True),
        ("It fell by 12 % in 2019.", "How much did it fall?", True),
        ("The survey began in 1922.", "How many otters were seen?", False),
        ("The survey began in 1922.", "In which year did the survey begin?", True),
        ("As Table 3 and [12] show, otters float (Section 2).", "How many otters float?", False),
        ("The network is called R2D2.", "What accuracy does it reach?", False),
        ("Otters float in rafts.", "How many otters float?", False),
    ],
)
def test_a_text_gives_a_number_where_it_counts_or_measures(text: str, question: str, gives: bool) -> None:
    assert gives_number(text, question) is gives


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("hello", "greeting"), ("Hi there!", "greeting"), ("good morning", "greeting"),
        ("Hi, what is BERT?", "definition"), ("thanks", "thanks"), ("Thank you very much!", "thanks"),
        ("What is the paper about?", "paper"), ("Summarise the GFS paper", "paper"),
        ("What are the main contributions of LLaMA?", "paper"), ("What does the paper conclude?", "paper"),
        ("What are the limitations of this study?", "paper"), ("main findings of the otter survey", "paper"),
        ("Compare Raft and Paxos.", "comparison"), ("How does BERT differ from GPT?", "comparison"),
        ("What is the difference between a lease and a lock?", "comparison"),
        ("How many otters float?", "number"), ("What is the chunk size of GFS?", "number"),
        ("GFS chunk size", "number"),
        ("When was the gauge built?", "date"), ("In what year was it built?", "date"),
        ("Who measured the ice?", "person"), ("Whose data were used?", "person"),
        ("Where do otters sleep?", "place"), ("In which country is the glacier?", "place"),
        ("What is a CRDT?", "definition"), ("what is bert", "definition"),
        ("What does the C in ReScience C stand for?", "definition"),
        ("Why do otters float?", "why"), ("What causes the retreat?", "why"),
        ("List the steps of key generation.", "list"), ("What are the phases of the moon in winter?", "list"),
        ("How does Raft elect a leader?", "how"),
        ("Do otters eat clams?", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_questions_have_kinds(question: str, kind: str) -> None:
    assert question_type(question).kind == kind


@pytest.mark.parametrize(
    ("question", "aspect"),
    [
        ("What is this paper about?", "about"), ("tl;dr", "summary"),
        ("Give me an overview of the Raft paper", "summary"),
        ("What is the main idea of Raft?", "about"), ("What does the paper propose?", "about"),
        ("What are the key contributions?", "contributions"), ("what is new in LLaMA", "contributions"),
        ("What are the main results?", "results"), ("What otters did they count?", ""),
        ("limitations of GFS", "limitations"), ("What do the authors conclude?", "conclusion"),
    ],
)  # fmt: skip
def test_a_question_about_a_whole_paper_has_an_aspect(question: str, aspect: str) -> None:
    assert question_type(question).aspect == aspect


@pytest.mark.parametrize(
    ("question", "things"),
    [
        ("Compare Raft and Paxos for logs.", ("Raft", "Paxos")),
        ("What is the difference between the Aletsch glacier and the Rhone one?", ("Aletsch glacier", "Rhone one")),
        ("GFS vs HDFS", ("GFS", "HDFS")),
        ("GFS vs HDFS vs NFS: which is faster?", ("GFS", "HDFS", "NFS")),
        ("How does GFS differ from HDFS, NFS and S3?", ("GFS", "HDFS", "NFS", "S3")),
        ("What is the difference between GFS, HDFS, and the NFS in speed, and which is best?", ("GFS", "HDFS", "NFS")),
        ("Compare GFS and HDFS, focusing on speed and cost.", ("GFS", "HDFS")),
        ("GFS vs HDFS - which language is each written in?", ("GFS", "HDFS")),
        ("how do tao and walter differ in the consistency they promise", ("tao", "walter")),
        ("What do the otter and the seal have in common?", ("otter", "seal")),
        ("which takes longer, the conda workshop or the scipy course?", ("conda workshop", "scipy course")),
        ("Which of them swims, and does it dive, or sleep?", ()),
        ("What did they use, in the crystal study vs the junction one?", ("crystal study", "junction one")),
        ("How do otters and seals swim?", ()),
        ("rounds needed by Aliph, in the table that compares BFT protocols with Shuttle", ()),
        ("What came out where they compare Raft with Paxos?", ()),
    ],
)
def test_a_comparison_names_things(question: str, things: tuple[str, ...]) -> None:
    assert compared_things(question) == things
    assert (question_type(question).kind == "comparison") == bool(things)


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("what is a grace period in memory reclamation", "grace period"), ("whats coin age?", "coin age"),
        ('what is "blowup" for a memory allocator', "blowup"), ("What is meant by proof of work?", ""),
        ("What is proof of work?", "proof of work"), ("Hi, what is BERT?", "BERT"),
        ("what do they mean by proxy data for satellites", "proxy data"),
        ("accidental complexity meaning?", "accidental complexity"),
        ("What does the paper on spacetime say a white hole is?", "white hole"),
        ("Define lazy evaluation.", "lazy evaluation"), ("how are deques defined here", "deques"),
        ("How is a stable property defined?", "stable property"),
        ("What is a dominating set of a graph?", "dominating set"),
        ("What is the chunk size?", ""), ("What is stored in femLibrary?", ""), ("What is the aim of the paper?", ""),
        ("What is the tidal range at the two places?", ""), ("What was compared in the trial?", ""),
        ("What is Raft's main advantage?", ""), ("What are they?", ""), ("Why is a grace period needed?", ""),
    ],
)  # fmt: skip
def test_the_term_whose_definition_is_asked_for(question: str, term: str) -> None:
    assert Question(question).term == term


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ok", "ok"), ("Hm, I see.", "ok"), ("great, got it", "ok"), ("that makes sense", "ok"),
        ("wrong", "wrong"), ("That’s not right!", "wrong"), ("that doesn't answer my question", "wrong"),
        ("in German", "translated"), ("auf Deutsch bitte", "translated"), ("can you say that in French?", "translated"),
        ("shorter", "shorter"), ("make it short please", "shorter"), ("in one sentence", "shorter"),
        ("more sources", "more"), ("are there other papers for this?", "more"), ("any more evidence?", "more"),
        ("say that again", "again"), ("can you repeat that?", "again"), ("once more", "again"),
        # Questions
        ("Is that true?", "other"), ("Tell me more", "other"), ("Why not?", "why"), ("What is wrong?", "other"),
        ("more sources on glaciers", "other"), ("What is German about it?", "other"), ("summarize it", "paper"),
    ],
)  # fmt: skip
def test_remarks_and_requests_about_the_last_answer_are_no_questions(said: str, kind: str) -> None:
    assert question_type(said).kind == kind


def test_capitals_of_a_title_are_no_names() -> None:
    assert Question("What Is the Batch Size Used For Training?").names == ()
    assert Question("WHAT DOES RAFT DO").names == ()
    assert Question("How much does GPT-4 cost US banks?").names == ("GPT-4", "US")


def test_a_long_text_is_looked_through_quickly() -> None:
    for sign in "'(a ":
        began = time.process_time()
        assert Question(sign * 10_000).term == ""
        assert time.process_time() - began < 1
