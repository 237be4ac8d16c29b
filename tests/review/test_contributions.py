"""What a paper contributes: sentences that read by themselves, the one that says what the paper does first."""

from __future__ import annotations

import pytest

from folio.papers.sections import Kind
from folio.review.contributions import contribution
from folio.review.excerpts import excerpts, reads_alone
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.review_papers import write

TITLE = "Buoys: counting sea otters by sound"
CLAIM = "This paper presents a network of buoys for counting sea otters by sound."
RESULT = "Our results show that the network of buoys finds 95 percent of sea otters by counting sound."
LIMITS = "Our counting by sound is limited to sea otters that open shells."


def points(*sections: tuple[Kind, str], title: str = TITLE, page: int | None = None) -> list[tuple[str, str]]:
    """(kind, words) of a paper's points."""
    written = write(title, *sections, page=page)
    made = contribution(written.paper, written.text, HashingEmbedder())
    assert all(written.text[each.quote.start : each.quote.end] == each.quote.quote for each in made.points)
    return [(each.kind, each.quote.quote) for each in made.points]


def test_points_are_in_reading_order() -> None:
    found = points(("abstract", CLAIM), ("results", RESULT), ("limitations", LIMITS))
    assert found == [("claim", CLAIM), ("result", RESULT), ("limits", LIMITS)]


@pytest.mark.parametrize(
    "outcome",
    [
        "We were able to replicate most of the counting of sea otters of Byte et al. [1], but not by night.",
        "In the bay, I have successfully reproduced the counting of sea otters of the original paper.",
        "We failed to reproduce the counting of sea otters of the winter.",
    ],
)
def test_whether_a_replication_succeeded_is_its_result_wherever_it_stands(outcome: str) -> None:
    assert points(("abstract", CLAIM), ("other", outcome))[1:] == [("result", outcome)]
    introduced = points(("abstract", CLAIM), ("introduction", outcome))
    assert "result" not in dict(introduced)  # it may speak of others


def test_the_sentence_that_says_what_a_paper_does_comes_before_its_background() -> None:
    background = "Counting sea otters by sound from buoys is of interest to many who count sea otters."
    assert points(("introduction", f"{background} {CLAIM}"))[0] == ("claim", CLAIM)


def test_what_the_title_introduces_opens_an_entry() -> None:
    named = "Buoys is a free program that counts the sea otters of a bay by their sound."
    other = "Counting sea otters by sound is older than the counting of sea otters by sight."
    assert points(("introduction", f"{other} {named}"))[0] == ("claim", named)


def test_a_sentence_on_the_subject_alone_is_said_to_be_that() -> None:
    subject = "Counting sea otters by sound is of interest to many people on the coast."
    assert points(("introduction", subject), title="Counting sea otters by sound") == [("subject", subject)]


def test_the_next_sentence_that_leans_on_the_first_is_shown_with_it() -> None:
    both = f"{CLAIM} It counts the sea otters by sound from buoys in all the bays."
    assert points(("abstract", both)) == [("claim", both)]


def test_a_paper_without_such_a_sentence_has_no_points() -> None:
    assert points(("introduction", "They were counted by it in this way, as Figure 3 shows.")) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "We count the sea otters by sound with these buoys and with others.",  # which ones?
        "We count the sea otters by sound as described above for other animals.",
        "Another goal of this paper is to count the sea otters by sound at night.",
        "This paper also presents a way of counting the sea otters by sound at night.",
        "In short, we count the sea otters by sound and add the numbers of all bays.",
        "The sea otters and the seals are 40 and 30 kg by sound, respectively.",
        "Counting the sea otters by sound is shown in Fig. 3 for all the bays.",
        "The sound s = t + u = v counts the sea otters of a bay by their sound.",  # a formula
        "Counting the sea otters by sound needs buoys in accordance with action (c).",
        "Counting sea otters by sound from buoys Some people count them by sight.",  # a heading joined to a sentence
        "Counting sea otters by sound re- quires buoys in all of the bays.",  # a broken line
        "The program for counting sea otters is at https://otters.example/buoys for all.",
        "Correspondence on counting sea otters should be addressed to Ann Otter in time.",
        "counting sea otters by sound from buoys is what many people do now.",
    ],
)
def test_a_sentence_that_needs_more_than_itself_is_never_quoted(sentence: str) -> None:
    written = write(TITLE, ("abstract", sentence))
    assert list(excerpts(written.paper, written.text)) == []


@pytest.mark.parametrize("kind", ["caption", "footnote", "references", "boilerplate", "appendix", "acknowledgements"])
def test_what_is_no_text_of_the_paper_is_never_quoted(kind: Kind) -> None:
    written = write(TITLE, (kind, CLAIM))
    assert list(excerpts(written.paper, written.text)) == []


def test_a_sentence_on_two_pages_is_not_quoted() -> None:
    assert points(("abstract", CLAIM), page=20) == []


def test_words_that_lean_do_not_read_alone() -> None:
    assert reads_alone("The sea otters were counted from buoys.")
    assert not reads_alone("To be more specific, it is given for the otters.")
    assert not reads_alone("and it counts the otters.")
    assert not reads_alone("It counts the otters.")


@pytest.mark.parametrize("label", ["Abstract: ", "Abstract. ", "Abstract ", "ABSTRACT\n", "Motivation — "])
def test_a_heading_before_a_sentence_is_not_quoted(label: str) -> None:
    assert points(("introduction", f"{label}{CLAIM}")) == [("claim", CLAIM)]


def test_an_abbreviation_that_is_explained_elsewhere_is_not_used_alone() -> None:
    explained = "Global predicate evaluation (GPE) is the counting of sea otters by sound from buoys."
    short = "This paper presents GPE for the counting of sea otters by sound from buoys."
    assert points(("abstract", f"{short} {CLAIM} {explained}"))[0] == ("claim", CLAIM)


def test_a_sentence_with_abbreviations_that_nobody_explains_comes_after_one_without() -> None:
    plain = "This paper presents the counting of sea otters by sound with a network of buoys."
    short = "This paper presents the counting of sea otters by sound with XML, CSV and GPS."
    assert points(("abstract", f"{short} {plain}"))[0] == ("claim", plain)
    assert points(("abstract", f"{plain} {short}"))[0] == ("claim", plain)
    explained = "This paper presents the counting of sea otters by sound with a positioning system (GPS)."
    assert points(("abstract", f"{explained} {short}"))[0] == ("claim", explained)
