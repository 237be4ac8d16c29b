"""Excerpts: how they are cut, and which are shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from folio.answer.blocks import blocks, leans
from folio.answer.excerpts import LEAST_WORDS, MOST_POINTERS, MOST_WORDS, SPREAD, Excerpt, pointers
from folio.answer.ranking import WEIGHTS, read_blocks, scored_excerpts
from folio.answer_types import Evidence, Sentence
from folio.papers.model import Tokens
from folio.papers.sections import Kind, PaperSection, SectionMap
from folio.question.question import Question
from folio.search.late_interaction import matches
from tests.helpers.factories import even_weights, evidence_of, evidence_on, hit_on, hits_on
from tests.helpers.fakes import HashingEmbedder, WordReader
from tests.helpers.known_papers import extractive


def sectioned(*parts: tuple[str, Kind, str]) -> Evidence:
    """A paper of these sections, each with its title, its kind and its text, as one piece of evidence."""
    text = ""
    sections: list[PaperSection] = []
    for title, kind, body in parts:
        start = len(text)
        text += f"{title}\n{body}\n\n"
        sections.append(PaperSection(start, len(text), 1, "", title, kind))
    hit = hit_on(text.strip())
    paper = replace(hit.paper, sections=SectionMap(tuple(sections)))
    return Evidence(1, paper, 0, len(text.strip()), text.strip(), (replace(hit, paper=paper),))


def test_sample_text_in_an_appendix_answers_only_questions_about_it() -> None:
    invented = "I invented the commercial telegraph in a small town and sold it to the railway."
    recipe = "Stir the flour into the commercial telegraph soup and sell it to the railway."
    for title, text, shown in (
        ("A Further proofs", invented, False),
        ("B Generated samples", recipe, False),
        ("C Further proofs", recipe, True),
    ):
        told = sectioned(("1 Results", "results", "The otters were counted from boats."), (title, "appendix", text))
        found = closest("Who sold the commercial telegraph to the railway?", [told])
        assert any("railway" in one.text for one in found) is shown
        assert any("railway" in one.text for one in closest("Which sample is about the railway telegraph?", [told]))


def test_a_sentence_that_a_break_cuts_after_et_al_is_no_sentence() -> None:
    text = "Otters sleep in the kelp of the bay, as was shown by Seal et al.\n\nThe bay is deep and very cold at night."
    found = closest("Where do otters sleep in the bay?", evidence_on(text))
    assert [one.text for one in found] == ["The bay is deep and very cold at night."]


def closest(question: str, evidence: Sequence[Evidence]) -> list[Sentence]:
    return list(extractive(1024).closest(question, evidence))


def shown(question: str, *evidence: Evidence) -> list[str]:
    return [sentence.text for sentence in closest(question, evidence)]


def that_can_answer(evidence: Evidence) -> list[str]:
    return [
        evidence.text[part.start : part.end] for block in blocks(evidence) for part in block.parts if part.can_answer
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        *((said, True) for said in (
            "Therefore, this is indeed a CRDT.", "It floats.", "This shows that otters float.",
            "However, seals do not.", "These results hold.", "In contrast, seals dive.", "For example, the pups sleep.",
            "They sleep.",
            "Unfortunately, for great rafts these counts fail.", "The latter sleeps.", "But nobody knows.",
            "“This” is quoted.", "Such rafts drift.",
        )),
        *((said, False) for said in (
            "Otters float.", "This paper shows that otters float.", "It is known that otters float.",
            "Both otters and seals dive.", "In 1922 the gauge was built.", "Items of lists follow.",
        )),
    ],
)  # fmt: skip
def test_a_sentence_that_refers_back_leans(sentence: str, expected: bool) -> None:
    assert leans(sentence) is expected


def test_an_excerpt_includes_the_sentence_it_refers_to() -> None:
    text = (
        "The counter keeps one entry for each of its replicas. Merging takes the larger entry of both sides."
        " Therefore, this is indeed a CRDT. The weather of the valley is dry in autumn. Nobody swims in winter there."
    )
    found = shown("What is a CRDT?", *evidence_on(text))
    assert "Therefore, this is indeed a CRDT." in found[0]
    assert not any(map(leans, found))


def test_neither_contents_nor_a_question_nor_a_caption_answers() -> None:
    contents = "".join(f"2.{number} Rafts of otters . . . . . . . . . {number}\n" for number in range(3, 9))
    said = "Otters hold on to kelp and to one another at night. Their rafts drift with the tide of the bay."
    question, why = "What do rafts of otters do?", f"Why do rafts of otters drift? {said}"
    assert not any(". . ." in text for text in shown(question, *evidence_on(contents, why)))
    evidence = sectioned(
        ("Rafts", "other", said), ("Figure 3", "caption", "Figure 3: What the rafts of the otters do.")
    )
    for asked, pieces in ((question, [evidence]), ("Why do rafts of otters drift?", evidence_on(why))):
        marked = [one.text[start:end] for one in closest(asked, pieces) for start, end in one.marks]
        assert marked
        assert all("Figure" not in mark and "?" not in mark for mark in marked)
    assert any("Figure 3" in text for text in shown("Which figure shows what the rafts of the otters do?", evidence))


def test_the_sentence_with_the_definition_is_marked() -> None:
    given = "A raft is a group of resting otters that hold on to kelp."
    before = "The raft of the raft people carries rafts of kelp on many a raft trip, and everyone has used a raft."
    text = f"{before} {given} The trips of the raft people end in autumn with the storms."
    found, *_ = closest("What is a raft?", evidence_on(text))
    assert [found.text[start:end] for start, end in found.marks] == [given]


def test_a_sentence_around_a_figure_is_not_quoted() -> None:
    text = (
        "Urchins eat the kelp of the bay, and the otters of the\n\nFigure 4: The otters of the bay.\n\n"
        "bay eat the urchins within a day. So the kelp of the bay grows, and fish come back to the bay."
    )
    evidence = evidence_on(text)[0]
    start = text.index("Figure 4")
    caption = PaperSection(start, text.index("\n\nbay"), 0, "", "Figure 4", "caption")
    evidence = replace(evidence, paper=replace(evidence.paper, sections=SectionMap((caption,))))
    said = ["Figure 4: The otters of the bay.", "So the kelp of the bay grows, and fish come back to the bay."]
    assert that_can_answer(evidence) == said
    assert all("within a day" not in found for found in shown("What do the otters of the bay eat?", evidence))


@pytest.mark.parametrize(
    ("sentence", "answers"),
    [
        ("� drawn by the otter has edges that form a cycle around the kelp.", False),
        ("kelp-eating urchins of the bay are eaten by the otters there.", False),
        ("mLEARn is a library in which otters learn to count the urchins.", True),
        ("• otters that dive for urchins, and for the clams below the kelp.", True),
    ],
)
def test_text_from_mid_sentence_does_not_answer(sentence: str, answers: bool) -> None:
    (evidence,) = evidence_on(f"The bay is cold and full of kelp.\n\n{sentence} The kelp of the bay is very old.")
    assert any(sentence[:20] in each for each in that_can_answer(evidence)) == answers


def test_links_and_references_do_not_answer() -> None:
    text = (
        "• Review\n• Otters\n• Archive\n\n→Otter, A., and Seal, B. (2001). Otters and kelp in many seas.\n\n"
        "Otter et al., (2018). How otters hold on to kelp in many seas.\n\n"
        "Otters hold on to kelp while they rest."
    )
    found = shown("How do otters hold on to kelp?", *evidence_on(text))
    assert "Otters hold on to kelp while they rest." in found[0]
    assert not any("Review" in excerpt or "→" in excerpt or "(2018)" in excerpt for excerpt in found)


def test_licences_are_shown_only_on_request() -> None:
    evidence = sectioned(
        ("Rafts", "other", "Otters of the society float in rafts of kelp."),
        ("Copyright", "boilerplate", "Copyright by the society of otters, released under a licence of the society."),
    )
    assert not any("Copyright" in excerpt for excerpt in shown("What do otters of the society do?", evidence))
    assert any("Copyright" in excerpt for excerpt in shown("Under which licence are the otters released?", evidence))


@pytest.mark.parametrize(("count", "where", "row"), [(60, f"  {'of the bay ' * 3}", 30), (9, "", 7)])
def test_a_table_row_has_its_caption_header_and_neighbours(count: int, where: str, row: int) -> None:
    head = ["Table 2: Seconds to order each graph.", f"Graph  {'Where  ' if where else ''}Gorder  Random"]
    rows = [f"graph{number}{where}  {number}0  {number}5" for number in range(1, count)]
    question = f"How many seconds does Gorder need for graph{row}?"
    (found, *_) = shown(question, *evidence_on("\n".join([*head, *rows])))
    lines = [" ".join(line.split()) for line in found.splitlines()]
    assert lines[:2] == [" ".join(line.split()) for line in head]
    assert " ".join(rows[row - 1].split()) in lines
    assert 5 < len(lines) < 20


def test_two_blanks_after_a_sentence_make_no_table() -> None:
    said = "An otter eats a quarter of its weight\neach day."
    text = f"The otters eat urchins.  Without otters, they\nsaid, “kelp goes.”  {said}  It dives for that."
    [block] = blocks(evidence_on(text)[0])
    assert (block.kind, len(block.parts)) == ("prose", 4)
    (found, *_) = shown("How much does an otter eat each day?", *evidence_on(text))
    assert " ".join(said.split()) in found


CLAMS = "Otters eat clams and crabs. Clams are opened with a stone."


def test_an_excerpt_stays_in_its_section() -> None:
    parts = [["Otters live in the bay of Monterey.", "The bay is cold and deep."], CLAMS.split(". ")]
    evidence = sectioned(("Habitat", "other", " ".join(parts[0])), ("Diet", "other", CLAMS))
    found = [[evidence.text[part.start : part.end] for part in block.parts] for block in blocks(evidence)]
    assert found == [parts[0], [f"{parts[1][0]}.", parts[1][1]]]


POINT = "A policy enforcement point opens and ends connections between a subject and the bay."
RAFTS = sectioned(("Rafts", "other", "Otters hold on to kelp. Kelp keeps the rafts of otters together at night."))
CUT = RAFTS.text.index("hold on")
LIST = "The diet of the otter has these parts:\n1. urchins of the deep water\n2. clams and crabs\n3. slow fish"
STEPS = [f"{n}: let otter {n} dive for urchins, clams, crabs and whatever else is there" for n in range(1, 15)]
DIVE = "\n".join(["Algorithm 2 The dive of the otters", *STEPS, "15: return the urchins"])
SAID = "Algorithm 2 says how the otters of the bay dive for urchins, one after the other, in all steps."
ROWS = (
    "Graph  pokec  flickr\nGorder  79  110\nRCM  3  5\nRabbit  41  52\nTable 2. Seconds to order\neach of the graphs."
)


@pytest.mark.parametrize(
    ("question", "evidence", "first"),
    [
        # Neither a question behind it, nor a row that repeats what is asked, nor half a sentence
        ("How much do otters eat each day?",
         sectioned(("", "other", "Otters eat a quarter of their weight in urchins each day. Is that much for it?")),
         "Otters eat a quarter of their weight in urchins each day."),
        ("What is a policy enforcement point?",
         evidence_on(f"BAY  Big Area of the Yard\nPEP  Policy Enforcement Point\nSEA  Every Animal\n\n{POINT}")[0],
         POINT),
        ("What keeps the rafts of otters together?",
         replace(RAFTS, start=CUT, text=RAFTS.text[CUT:]),
         "Kelp keeps the rafts of otters together at night."),
        # A list with what introduces it, an algorithm and a table with the caption below it, whole
        ("What are the parts of the diet of the otter?",
         evidence_on(f"Otters live in the bay and sleep at night.\n\n{LIST}\n\nThe bay is deep. It is cold.")[0], LIST),
        ("What are the steps of Algorithm 2?", evidence_on(f"{SAID}\n\n{DIVE}")[0], DIVE),
        ("What does table 2 say of RCM?", evidence_on(f"{ROWS} The best\nare in bold.")[0], ROWS),
        # The section that answers
        ("What do otters eat?", sectioned(("Diet", "other", CLAMS), ("References", "references",
         "A study of what otters eat. The diet of otters that eat clams.")), CLAMS),
        ("What is the main idea of the paper?", sectioned(
            ("Abstract", "abstract", "We present a count of otters by drone. The count takes a day."),
            ("Methods", "methods", "Ideas of drones are old. Papers of many people have them.")),
         "We present a count of otters by drone. The count takes a day."),
    ],
)  # fmt: skip
def test_the_first_excerpt_answers(question: str, evidence: Evidence, first: str) -> None:
    assert shown(question, evidence)[0] == first


def test_an_answer_is_short_without_repetition() -> None:
    text = " ".join(f"Otter number {n} of the bay eats {n} clams and sleeps near rock {n * 7}." for n in range(10, 60))
    found = shown("What do the otters of the bay eat?", *evidence_on(text))
    assert 1 <= len(found) <= 1 + MOST_POINTERS
    assert LEAST_WORDS <= len(found[0].split()) <= MOST_WORDS
    sentences = [part for excerpt in found for part in excerpt.split(". ")]
    assert len(set(sentences)) == len(sentences)


def test_a_comparison_is_shown_side_by_side_by_paper() -> None:
    raft = hits_on("Raft elects a leader with timeouts. A leader of Raft has a log.", file="raft.pdf", title="")
    paxos = hits_on("Paxos has proposers. A majority of the acceptors of Paxos chooses.", file="paxos.pdf", title="")
    found = closest("Compare Raft and Paxos", evidence_of([*paxos, *raft]))
    assert [str(sentence.section) for sentence in found] == ["Closest passages/raft.pdf", "Closest passages/paxos.pdf"]


class ContextEmbedder(HashingEmbedder):
    """Its states of tokens have half of what the whole text is about, as those of a transformer do."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        found = []
        for tokens in super().tokens(texts):
            mixed = tokens.states + tokens.states.mean(axis=0)
            found.append(Tokens(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), tokens.spans))
        return found


def scored(question: str, *texts: str) -> list[Excerpt]:
    embedder, evidence = ContextEmbedder(1024), evidence_on(*texts)
    weights = even_weights(question)
    found = matches(embedder, question, [(piece.paper.title, piece.text) for piece in evidence], weights)
    read = read_blocks(WordReader(), Question(question), evidence, found)
    return scored_excerpts(embedder, Question(question), read)


def test_neighbours_do_not_change_a_sentences_score() -> None:
    said = (
        "The keeper of the lighthouse feeds forty animals at dawn, one by one, before the first boat leaves its berth"
        " for the islands in the north of the bay."
    )
    before = ("Snow fell on the pass, and nobody came.", "Otters feed at dawn, the otters say at dawn.")
    texts = [f"{sentence}\n\n{said}" for sentence in before]
    alone = [one for one in scored("Who feeds the otters at dawn?", *texts) if one.text == said]
    first, second = sorted(alone, key=lambda one: one.block.evidence.number)
    assert first.share / second.share == pytest.approx(math.exp(WEIGHTS.rank * (1 - 1 / 2) / SPREAD))


def test_only_places_that_may_answer_are_shown() -> None:
    clear = "The old harbour of Varna is eleven metres deep. Ships of the coast spend the winter there."
    other = "The market of the town sells salt and wine to anyone. Nobody has counted how many sacks are sold."
    found = scored("How deep is the old harbour of Varna?", clear, other)
    assert (found[0].text, found[0].core_text) == (clear, "The old harbour of Varna is eleven metres deep.")
    assert pointers(found) == []
    again = "A chart of 1880 has the old harbour of Varna nine metres deep. Its author is not known by name."
    found = scored("How deep is the old harbour of Varna?", clear, other, again)
    assert {found[0].text, *(one.text for one in pointers(found))} == {clear, again}


@pytest.mark.parametrize(
    ("sentence", "answers"),
    [
        ("Section 2 outlines the OpenReplica approach to replication of objects.", False),
        ("In this section, we describe the protocols for the arrival of nodes.", False),
        ("In Section 3.1 we briefly discuss how the servers elect a leader.", False),
        ("Chapter 7 compares the throughput of the two systems.", False),
        ("This section presents the results of the measurements.", False),
        ("The rest of this paper is structured as follows.", False),
        ("This paper is organized as follows.", False),
        ("Section 2 shows that the two protocols are equivalent.", True),
        ("This paper presents a protocol for the arrival of nodes.", True),
        ("Sections of the aorta were stained and compared by two readers.", True),
        ("In this study, we describe how the servers elect a leader.", True),
    ],
)
def test_announcements_do_not_answer(sentence: str, answers: bool) -> None:
    (evidence,) = evidence_on(f"Otters float in kelp, and servers elect a leader. {sentence}")
    (block,) = blocks(evidence)
    assert [part.can_answer for part in block.parts] == [True, answers]


def test_an_excerpt_is_a_paragraph_without_announcements() -> None:
    filler = " ".join(f"Boat {n} of the harbour carries salt to island {n}." for n in range(3))
    paragraphs = (
        f"The lock of the canal was dug by hand. {filler}",
        f"The harbour of Varna is eleven metres deep. {filler} It is dredged every spring by two old ships.",
        f"The depth has three reasons that the papers of the town name: {filler}",
    )
    (best, *_) = scored("How deep is the harbour of Varna?", "\n\n".join(paragraphs))
    assert best.text == paragraphs[1]
    announced = "The harbour of Varna is eleven metres deep. The ships that enter it are these:"
    (best, *_) = scored("How deep is the harbour of Varna?", announced)
    assert best.text == "The harbour of Varna is eleven metres deep."


def test_a_long_paragraph_is_cut_where_a_sentence_stands_alone() -> None:
    before = " ".join(f"Boat {n} carries salt to the islands in the north of the bay." for n in range(8))
    after = " ".join(f"Mill {n} grinds wheat for the bakers in the south of the town." for n in range(20))
    answer = "The harbour of Varna was measured twice. It is eleven metres deep in the harbour of Varna."
    (best, *_) = scored("How deep is the harbour of Varna?", f"{before} {answer} {after}")
    assert best.text.startswith(answer)
    assert best.words <= MOST_WORDS


def test_numbered_lines_of_code_without_a_label_are_no_menu() -> None:
    code = "1: n ← 0\n2: dive\n3: wake\n4: end\n5: return n"
    (evidence,) = evidence_on(f"Otters wake so.\n\n{code}")
    (shown_list,) = (block for block in blocks(evidence) if block.kind == "list")
    assert evidence.text[shown_list.parts[0].start : shown_list.end] == code
