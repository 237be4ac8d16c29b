"""A review: themes, repetitions, agreements, differences, open questions, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from folio.bibliography.document import Block, document_markdown
from folio.bibliography.word import read_paragraphs, word_of_blocks
from folio.errors import UsageError
from folio.review.report import Citing, report
from folio.review.review import COMPARING, READING, Review, Reviewer
from tests.helpers.fakes import HashingEmbedder
from tests.helpers.review_papers import Written, write

OTTERS = [
    write(
        f"Otters {place}: counting sea otters in bays",
        ("abstract", f"This paper presents the counting of sea otters in bays from {where} by day."),
        year=2000 + place,
        authors=(f"Ann Otter{chr(97 + place)}",),
    )
    for place, where in enumerate(("buoys", "ships", "planes", "kayaks"))
]
SOUPS = [
    write(
        f"Soups {place}: cooking lentil soup with spice",
        ("abstract", f"We present the cooking of lentil soup with spice and {what} for guests."),
        year=2010 + place,
        authors=(f"Bo Cook{chr(97 + place)}",),
    )
    for place, what in enumerate(("carrots", "onions", "leeks", "celery"))
]


def review(papers: Sequence[Written], title: str = "Otters") -> Review:
    texts = {each.paper.id: each.text for each in papers}
    reviewer = Reviewer(lambda paper: texts[paper.id], HashingEmbedder(dimension=256))
    return reviewer.review([each.paper for each in papers], title)


def markdown(papers: Sequence[Written], *, numbered: bool = False) -> str:
    return document_markdown(report(review(papers), Citing(numbered, "http://folio/")))


def test_papers_on_one_subject_are_one_theme_headed_by_words_that_they_share() -> None:
    made = review([*SOUPS, *OTTERS])
    found = {theme.heading: [entry.paper.title for entry in theme.entries] for theme in made.themes}
    otters, soups = ([each.paper.title for each in group] for group in (OTTERS, SOUPS))
    assert sorted(found.values()) == [otters, soups]  # by year within a theme
    assert all("otter" in heading.casefold() for heading, titles in found.items() if titles == otters)
    assert all("soup" in heading.casefold() for heading, titles in found.items() if titles == soups)


def test_a_paper_on_no_subject_of_the_others_is_in_no_theme() -> None:
    claim = "This paper presents theorems of algebraic geometry over finite fields."
    made = review([*SOUPS, *OTTERS, write("Curves: algebraic geometry", ("abstract", claim), authors=("Cy Curve",))])
    assert [entry.paper.title for entry in made.themes[-1].entries] == ["Curves: algebraic geometry"]
    assert [theme.heading for theme in made.themes][-1] == "Other subjects"
    assert "covers 9 papers, in 2 themes:" in document_markdown(report(made, Citing(False)))


def test_words_that_all_papers_of_a_choice_have_make_no_theme() -> None:
    """Courses are themes by what they teach, not by being courses for students."""
    genre = "Students of the course learn in lessons with notebooks and exercises for classes of students."
    taught = {"Chemistry": "acids and bases in water", "Grammar": "verbs and nouns in clauses"}
    papers = [
        write(f"{subject} {place}", ("abstract", f"This paper presents a course {place} on {what}. {genre}"))
        for subject, what in taught.items()
        for place in range(3)
    ]
    found = [{entry.paper.title.split()[0] for entry in theme.entries} for theme in review(papers).themes]
    assert sorted(map(sorted, found)) == [["Chemistry"], ["Grammar"]]


def test_the_order_of_the_papers_does_not_matter() -> None:
    papers = [*SOUPS, *OTTERS]
    assert markdown(papers) == markdown(papers[::-1])


def test_few_papers_have_no_themes() -> None:
    assert [theme.heading for theme in review(OTTERS[:3]).themes] == [""]


def test_a_sentence_that_two_papers_have_is_shown_once_and_is_no_agreement_of_one_author() -> None:
    same = "Sea otters are counted in bays from buoys and ships by day and by night."
    one = write("One: otters", ("abstract", same), authors=("Ann Otter",))
    two = write("Two: otters", ("abstract", same), authors=("Ann Otter",))
    made = review([one, two])
    assert [entry.paper.title for theme in made.themes for entry in theme.entries] == ["One: otters"]
    assert [paper.title for paper in made.silent] == ["Two: otters"]
    assert made.agreements == ()


def test_different_authors_who_say_the_same_agree_and_their_own_results_do_not() -> None:
    one = write("One: otters", ("abstract", "Sea otters eat urchins and crabs in cold bays."), authors=("Ann Otter",))
    two = write("Two: otters", ("abstract", "Sea otters eat crabs and urchins in the bays."), authors=("Bo Seal",))
    (group,) = review([one, two]).agreements
    assert {quote.paper.title for quote in group.quotes} == {"One: otters", "Two: otters"}
    own = [
        write(f"{name}: otters", ("abstract", f"Our results show sea otters eat {what} in bays."), authors=(name,))
        for name, what in (("Otter", "urchins and crabs"), ("Seal", "crabs and urchins"))
    ]
    assert review(own).agreements == ()


def test_papers_with_different_numbers_for_the_same_thing_differ() -> None:
    one, two = (
        write(f"{name}: otters", ("abstract", f"Sea otters in cold bays weigh {weight} kg."), authors=(name,))
        for name, weight in (("Otter", 30), ("Seal", 45))
    )
    (group,) = review([one, two]).differences
    assert [quote.quote for quote in (*group.some, *group.others)] == [
        "Sea otters in cold bays weigh 30 kg.",
        "Sea otters in cold bays weigh 45 kg.",
    ]


def test_what_papers_leave_open_is_quoted_and_shared_questions_come_first() -> None:
    def paper(name: str, question: str) -> Written:
        claim = f"This paper presents the counting of sea otters by {name}."
        return write(f"{name}: otters", ("abstract", claim), ("conclusion", question), authors=(name,))

    shared = "It remains unclear whether the sea otters sleep in the bays of the north."
    alone = "Future work is needed on the counting of sea otters from the air by night."
    made = review([paper("Otter", shared), paper("Seal", shared), paper("Walrus", alone)])
    groups = [[quote.quote for quote in group] for group in made.left_open]
    assert groups == [[shared, shared]]
    limits = [point.quote.quote for theme in made.themes for entry in theme.entries for point in entry.points]
    assert alone in limits  # and so is not said again


def test_progress_is_told_and_a_review_can_be_cancelled() -> None:
    told: list[tuple[str, int, int]] = []
    texts = {each.paper.id: each.text for each in OTTERS}
    reviewer = Reviewer(lambda paper: texts[paper.id], HashingEmbedder())
    reviewer.review([each.paper for each in OTTERS[:2]], "T", progress=lambda *each: told.append(each))
    assert told == [(READING, 0, 2), (READING, 1, 2), (READING, 2, 2), (COMPARING, 0, 1)]

    def cancel() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        reviewer.review([each.paper for each in OTTERS], "T", check_cancelled=cancel)


def test_a_review_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="No paper was chosen"):
        review([])


def test_markdown_cites_each_quote_and_lists_references() -> None:
    quote, id = "This paper presents the counting of sea otters in bays from buoys by day.", OTTERS[0].paper.id
    assert markdown(OTTERS[:1]) == (
        "# Otters\n\nThis review covers 1 paper.\n\n"
        "*Words in quotation marks are the papers' own, with their page. Folio chose and ordered them.*\n\n"
        "## The papers\n\n### Otters 0: counting sea otters in bays\n\n*Ottera 2000*\n\n"
        f"“{quote}” [\\[Ottera 2000, p. 1\\]](http://folio/#paper/{id}/p/1?from=0&to=73)\n\n"
        "## References\n\n- Ann Ottera (2000). Otters 0: counting sea otters in bays. otters 0.pdf\n"
    )


def test_numbers_are_those_of_the_list_of_references() -> None:
    text = markdown(OTTERS[:2], numbered=True)
    assert "[\\[1, p. 1\\]](" in text
    assert "[\\[2, p. 1\\]](" in text
    assert "- 1. Ann Ottera (2000)." in text.replace("1\\.", "1.")
    assert "- 2. Ann Otterb (2001)." in text.replace("2\\.", "2.")


HOSTILE = "This paper presents the [sea](javascript:x) otters `code` **bold** &lt;b [Seal 2014, p. 3]."


def blocks() -> list[Block]:
    papers = [write("# Title <script>alert(1)</script>: otters", ("abstract", HOSTILE))]
    return report(review(papers), Citing(False, "http://folio/"))


def test_words_of_a_paper_are_only_words_in_markdown() -> None:
    text = document_markdown(blocks())
    assert "### \\# Title \\<script\\>alert(1)\\</script\\>: otters" in text
    assert "\\[sea\\](javascript:x)" in text
    assert "\\`code\\` \\*\\*bold\\*\\*" in text
    assert "[Seal 2014, p. 3]" not in text  # nothing but Folio's citations has their form
    assert "\\&lt;b" in text


def test_word_documents_have_the_same_words_and_no_fields() -> None:
    data = word_of_blocks(blocks())
    lines = read_paragraphs(data, "r.docx")
    assert lines[0] == "Otters"
    assert "# Title <script>alert(1)</script>: otters" in lines
    assert any(line.startswith("“This paper presents the [sea](javascript:x) otters `code`") for line in lines)
    assert lines[-2] == "References"


def test_a_question_without_an_answer_is_said_to_have_none() -> None:
    from folio.table.cell import Cell, Column

    class Finder:
        """Finds an answer in the first paper alone."""

        def fill(self, paper, columns, check_cancelled=lambda: None, *, least_said=0.0):  # type: ignore[no-untyped-def]
            yield from ((place, Cell()) for place, _ in enumerate(columns))

    texts = {each.paper.id: each.text for each in OTTERS}
    reviewer = Reviewer(lambda paper: texts[paper.id], HashingEmbedder(), Finder())  # type: ignore[arg-type]
    made = reviewer.review([each.paper for each in OTTERS[:2]], "T", [Column("Age", "How old do they get?")])
    (focus,) = made.focus
    assert (focus.question, focus.quotes, len(focus.without)) == ("How old do they get?", (), 2)
    text = document_markdown(report(made, Citing(False)))
    assert "## What none of the papers says\n\nNo answer was found in any of them to:\n\n- How old do they get?" in text
