"""Answers in the papers' own sentences; no model writes anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import mean

import pytest

from folio.answer.chat import Returning
from folio.answer.confidence import LEAST_CONFIDENCE, LENGTH_WEIGHT, LONG_QUESTION, NAMES_WEIGHT, READ_WEIGHT
from folio.answer.extractive import FOLLOWUP_MARGIN, WITHOUT_MODEL, ExtractiveAnswerer
from folio.answer_types import Answer, Evidence, Sentence, Style
from folio.models.minilm import BuiltinEmbedder
from folio.models.reader import Reader
from folio.papers.model import PageMap
from folio.papers.sections import Kind, PaperSection, SectionMap
from folio.protocols import Answerer, TermWeights
from folio.question import followup
from folio.question.question import Question
from folio.text import sentence_spans
from tests.helpers.factories import GLACIERS, OTTERS, even_weights, evidence_of, evidence_on, hit_on, hits_on
from tests.helpers.fakes import HashingEmbedder, WordReader
from tests.helpers.known_papers import extractive

pytestmark = pytest.mark.fast

STYLES: tuple[Style, ...] = ("plain", "report")
RETREAT = "By how much does the Aletsch glacier retreat each year?"
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."


def confident(answerer: ExtractiveAnswerer, question: Question | str, *told: Evidence) -> tuple[list[Sentence], float]:
    """The answer from this evidence, or else from `papers`, and how sure it is."""
    parts = Returning(answerer.sentences(question, told or papers()))
    sentences = list(parts)
    return sentences, parts.returned or 0.0


def papers() -> list[Evidence]:
    return evidence_of([hit_on(*OTTERS, file="otters.pdf"), hit_on(*GLACIERS, file="glaciers.pdf")])


def asked(question: str, evidence: Sequence[Evidence], style: Style = "plain") -> list[Sentence]:
    return list(extractive().sentences(question, evidence, style))


def texts(sentences: Sequence[Sentence]) -> list[str]:
    return [sentence.text for sentence in sentences]


def test_two_questions_in_one_have_an_excerpt_each() -> None:
    thick, diet = "How thick is the ice at the Konkordiaplatz", "what is the diet of the sea otter"
    first, second = asked(f"{thick}, and {diet}?", papers())
    assert IS_THICK in first.text
    assert "urchins, clams and crabs" in second.text
    assert [{c.paper.file for c in found.citations} for found in (first, second)] == [{"glaciers.pdf"}, {"otters.pdf"}]
    same = f"{thick}, and what thickness has the ice at the Konkordiaplatz?"
    assert sum(IS_THICK in text for text in texts(asked(same, papers()))) == 1


@pytest.mark.parametrize("known_first", [True, False])
def test_of_two_questions_the_one_without_an_answer_is_named(known_first: bool) -> None:
    both = ["how thick is the ice at the Konkordiaplatz", "which whisky is best for chess players"]
    first, second = both if known_first else reversed(both)
    answerer = extractive()
    found = list(answerer.sentences(f"{first}, and {second}?", papers()))
    assert [IS_THICK in text for text in texts(found)] == [True]
    assert (str(found[0].section), answerer.unanswered) == ("From the papers", (both[1],))
    assert texts(list(answerer.sentences(f"{first}, and {second}?", papers(), "report"))) == texts(found)
    list(answerer.sentences(f"{both[0]}?", papers()))
    assert answerer.unanswered is None


@pytest.mark.parametrize(
    "second",
    [
        "what do they eat in Kamchatka",  # a name that the papers do not have
        "which road leads there",  # its thing is not clear: asked with the words of the first question
        "whats its whisky called",
    ],
)
def test_a_second_question_is_not_filled_with_what_answers_the_first(second: str) -> None:
    answerer = extractive()
    asked_both = Question(f"how thick is the ice at the Konkordiaplatz, and {second}")
    (found,) = answerer.sentences(asked_both, papers())
    assert IS_THICK in found.text
    assert answerer.unanswered == (asked_both.questions[1],)


def test_what_a_question_denies_is_no_answer_to_it() -> None:
    question = "Which courses on spatial analysis of glaciers in the Alps do not use R?"
    said = "The course on spatial analysis of glaciers in the Alps {} R for its maps and tables."
    for verb, heading in (("does not use", "From the papers"), ("will use", "Closest passages")):
        assert {str(one.section) for one in asked(question, evidence_on(said.format(verb)))} == {heading}


def test_a_name_that_no_evidence_has_leaves_only_the_closest_passages() -> None:
    said = evidence_on("The proof of Haskell Curry shows that types of programs are propositions of logic.")
    question = "What does the proof of {} Curry show about types of programs and propositions of logic?"
    for first, heading in (("Haskell", "From the papers"), ("Stephen", "Closest passages")):
        found = asked(question.format(first), said)
        assert {str(one.section) for one in found} == {heading}
    numbered = "What thickness has the ice of the Aletsch glacier at the Konkordiaplatz in SP 800-207?"
    assert str(asked(numbered, papers())[0].section) == "Closest passages"


def test_the_first_excerpt_has_the_names_of_the_question() -> None:
    sleep = "sleep at night in the warm water of the kelp bay, tied to it by their fur and by their paws."
    hits = [hit_on(f"{who} {sleep}", file=f"{number}.pdf") for number, who in enumerate(("They all", "The Kalan"))]
    found = asked("Where at night in the warm water sleep the Kalan, tied by their fur and paws?", evidence_of(hits))
    assert "Kalan" in found[0].text


def test_a_refused_question_has_a_nearest_sentence_on_its_subject() -> None:
    nearest = extractive().nearest(Question("How cold is the ice of the Aletsch glacier?"), papers())
    assert nearest is not None
    assert "Aletsch" in nearest.quote
    assert extractive().nearest(Question("Which whisky is best for chess players?"), papers()) is None


def test_compared_things_have_several_places_each() -> None:
    said = (
        "Otters sleep in the kelp of the bay at night, tied to it by their fur.",
        "In storms the otters sleep behind the rocks of the coast, where the water is still.",
        "Seals sleep on the sand of the long beaches, where no bear comes near them.",
        "When the tide is high the seals sleep in the open water, upright like a bottle.",
    )
    hits = [hit_on(text, file=f"{text.split()[0]}{number}.pdf") for number, text in enumerate(said)]
    found = asked("How do otters and seals differ in where they sleep?", evidence_of(hits))
    assert sorted(texts(found)) == sorted(said)
    assert ["otters" in text.lower() for text in texts(found)] == [True, True, False, False]


def test_one_paper_has_two_places_for_each_compared_thing() -> None:
    paragraphs = [
        f"{name} sleep in the {place} at night. "
        + " ".join(f"Of {place} {place}{day} is {name}{place}{day} and {place * 2}{day}." for day in range(8))
        for name, places in (("Otters", ("kelp", "surf", "bay")), ("Seals", ("sand", "rocks", "ice")))
        for place in places
    ]
    found = asked("How do otters and seals differ in where they sleep?", evidence_on("\n\n".join(paragraphs)))
    assert [text.split()[0] for text in texts(found)] == ["Otters", "Otters", "Seals", "Seals"]
    assert {one.section.subheading for one in found} == {""}


def test_a_sentence_without_the_number_is_only_close() -> None:
    question = "How much did it cost to make the otters course on the kelp forests of the northern bay in winter?"
    made = "To make the otters course on the kelp forests of the northern bay in winter did cost{} much."
    reached = "The otters course on the kelp forests of the northern bay reached 450 people in winter."
    for price, heading in ((" 3 million euros, too", "From the papers"), ("", "Closest passages")):
        first, *_ = asked(question, evidence_on(f"{made.format(price)} {reached}"))
        assert str(first.section) == heading


def test_evidence_of_a_deep_search_answers_only_its_own_part() -> None:
    diet, thick = "What is the diet of the sea otter?", "How thick is the ice of the Aletsch glacier?"
    otters, glaciers = papers()
    found = replace(otters, hits=tuple(replace(hit, found_for=(diet, thick)) for hit in otters.hits))
    assert {quote.paper.file for one in asked(diet, [found, glaciers]) for quote in one.citations} == {"otters.pdf"}
    assert asked(thick, [found, glaciers])[0].citations[0].paper.file == "glaciers.pdf"


def test_sentences_are_quoted_word_for_word_from_their_page() -> None:
    answerer: Answerer = extractive()
    assert (answerer.name, answerer.notice, answerer.evidence_tokens) == ("extractive (built in)", WITHOUT_MODEL, 6000)
    evidence = papers()
    found, *_ = asked("How thick is the ice of the Aletsch glacier at the Konkordiaplatz?", evidence)
    citation = next(quote for quote in found.citations if IS_THICK in quote.quote)
    assert (citation.paper.file, citation.page, citation.evidence, citation.support) == ("glaciers.pdf", 2, 2, 1.0)
    assert IS_THICK in found.text
    assert (found.against, str(found.section), found.short) == ((), "From the papers", found.marks[0])
    assert [found.text[start:end] for start, end in found.marks] == ["800 metres"]
    for sentence in asked("What of the otter, the glacier and the ice?", evidence):
        for citation in sentence.citations:
            source = evidence[citation.evidence - 1]
            first, last = source.paper.pages.bounds(citation.page, source.paper.length)
            assert first <= citation.start < citation.end <= last
            assert source.text[citation.start : citation.end] == citation.quote
        assert " ".join(quote.quote for quote in sentence.citations) == sentence.text
        assert {start for start, _ in sentence_spans(source.text)} >= {sentence.citations[0].start}


def test_an_excerpt_over_two_pages_cites_both() -> None:
    pages = ("The gauge of the river Massa stands at\nBlatten,", "where it was built in 1922.")
    text = "\n".join(pages)
    (piece,) = evidence_of(hits_on(text, file="gauge.pdf"))
    piece = replace(piece, paper=replace(piece.paper, pages=PageMap((0, len(pages[0]) + 1), ("", ""))))
    (found,) = asked("Where does the gauge of the river Massa stand, built in 1922?", [piece])
    assert [(quote.page, quote.quote) for quote in found.citations] == [(1, pages[0]), (2, pages[1])]
    assert found.text == " ".join(text.split())  # a line break in a quote is a space in the answer


@pytest.mark.parametrize("question", ["Who painted the ceiling of the Sistine chapel?", "xyzzy plugh?", "", "?"])
@pytest.mark.parametrize("style", STYLES)
def test_without_fitting_excerpts_there_is_no_sentence(question: str, style: Style) -> None:
    assert asked(question, papers(), style) == []


def test_without_evidence_there_is_no_sentence() -> None:
    assert asked("What do otters eat?", []) == []
    assert asked("What do otters eat?", evidence_on("Otters\n\nEat", "1 2 3")) == []


def test_the_same_sentence_in_two_papers_is_shown_once() -> None:
    evidence = evidence_of([hit_on(OTTERS[0], file="a.pdf"), hit_on(OTTERS[0], file="b.pdf")])
    found = asked("How do sea otters sleep and float in rafts of kelp?", evidence)
    assert [sentence.citations[0].paper.file for sentence in found] == ["a.pdf"]
    assert found[0].against == ()


def test_a_summary_has_a_part_for_each_kind_of_section() -> None:
    said: dict[Kind, str] = {
        "abstract": "We present a census of sea otters in kelp forests along the coast. It took three long summers.",
        "introduction": "Our main contribution is a census of sea otters that counts every single animal at night.",
        "methods": "Our method is a camera on a small boat, and an observer with a lamp and a notebook for the count.",
        "results": "The main results of this paper are that 400 otters live in the bay, and that they sleep in rafts.",
    }
    (piece,) = evidence_of(hits_on("\n\n".join(said.values()), file="otters.pdf"))
    starts = {kind: piece.text.index(part) for kind, part in said.items()}
    sections = tuple(PaperSection(at, at + len(said[kind]), 1, "", kind, kind) for kind, at in starts.items())
    piece = replace(piece, paper=replace(piece.paper, sections=SectionMap(sections)))
    found = asked("Summarize the paper about otters", [piece])
    headings = [f"From the papers/{part}" for part in ("Abstract", "Contributions", "Method", "Results")]
    assert [(str(one.section), one.text) for one in found] == list(zip(headings, said.values(), strict=True))


def exact(term_weights: Callable[[Question], TermWeights]) -> ExtractiveAnswerer:
    """Over so many dimensions that words which are not alike have nothing in common."""
    return ExtractiveAnswerer(HashingEmbedder(4096), WordReader(), term_weights, evidence_tokens=6000)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("more", "refused"), [(-0.01, True), (0.01, False)])
def test_a_question_that_the_evidence_hardly_covers_is_refused(style: Style, more: float, refused: bool) -> None:
    # The evidence covers "otter" alone; there is no name, and the question has two terms.
    whole = 1 + NAMES_WEIGHT + LENGTH_WEIGHT
    said = LEAST_CONFIDENCE - READ_WEIGHT * 0.5  # the reader that knows words finds half of them
    covered = said * whole - NAMES_WEIGHT - LENGTH_WEIGHT * 2 / LONG_QUESTION + more
    weights = {"otter": covered**0.5, "sleep": (1 - covered) ** 0.5}  # they count by their squares
    answerer = exact(lambda question: weights)
    evidence = evidence_on("Sea otters float in rafts of kelp.", "Glaciers of the Alps retreat each year.")
    parts = Returning(answerer.sentences("Where do otters sleep?", evidence, style))
    found = list(parts)
    assert parts.returned == pytest.approx(LEAST_CONFIDENCE + more / whole, abs=1e-6)
    first = texts(found) if style == "plain" else texts(found)[:1]  # a report goes on with what is less likely
    assert first == ([] if refused else ["Sea otters float in rafts of kelp."])


def test_a_follow_up_is_refused_by_all_its_readings() -> None:
    answerer, evidence, first = extractive(), papers(), "How thick is the ice at the Konkordiaplatz?"
    before = Answer(first, first, tuple(asked(first, evidence)), tuple(evidence))

    def sure(question: str) -> float:
        return confident(answerer, question)[1]

    typed = "What thickness has it at the Konkordiaplatz?"
    meant = answerer.standalone(typed, [before])
    senses = followup.senses(typed, meant, [first])
    assert len(set(senses)) > 1
    _, found = confident(answerer, Question(meant, senses=tuple(senses)))
    assert found == pytest.approx(min(1.0, mean(map(sure, senses)) + FOLLOWUP_MARGIN))
    own = "What do sea otters of the Monterey Bay eat?"  # it is read as it stands
    assert followup.senses(own, answerer.standalone(own, [before]), [first]) == [own]


def test_a_number_that_no_sentence_gives_is_refused() -> None:
    words, evidence = "otters of the bay float in rafts at night", "Otters of the bay float in rafts at night. "
    assert asked(f"Do {words}?", evidence_on(evidence))
    assert confident(extractive(), f"How many {words}?", *evidence_on(evidence)) == ([], 0.0)
    assert asked(f"How many {words}?", evidence_on(evidence.replace("Otters", "40 otters")))


def test_with_the_built_in_model_another_subject_is_refused() -> None:
    answerer = ExtractiveAnswerer(BuiltinEmbedder(), WordReader(), even_weights, evidence_tokens=6000)
    (eats, *_), sure = confident(answerer, "What does an otter eat?")
    assert "The diet of the sea otter is made of urchins, clams and crabs." in eats.text
    assert sure > LEAST_CONFIDENCE + 0.2
    found, sure = confident(answerer, "Who painted the ceiling of the Sistine chapel?")
    assert found == []
    assert sure < LEAST_CONFIDENCE - 0.2


FORTY, FIFTY = (
    "The Aletsch glacier retreats by 40 metres each year.",
    "Each year the Aletsch glacier retreats by 50 metres.",
)


@pytest.mark.parametrize("style", STYLES)
def test_a_conflicting_number_of_another_paper_is_shown(style: Style) -> None:
    found = asked(RETREAT, evidence_on(f"{FORTY} It is long.", f"{FIFTY} Ice melts."), style)
    assert texts(found) == [f"{FORTY} It is long."]
    (against,) = found[0].against
    assert (against.paper.file, against.page, against.quote, against.evidence) == ("paper2.pdf", 1, FIFTY, 2)
    assert 0 < against.support <= 1


@pytest.fixture(scope="module")
def by_meaning() -> ExtractiveAnswerer:
    """With the built-in models, which know that what lives at a depth is found deep."""
    return ExtractiveAnswerer(BuiltinEmbedder(), Reader(), even_weights, evidence_tokens=6000)


@pytest.mark.parametrize(
    ("question", "one", "two", "how", "marked"),
    [
        (
            "How deep do perch live?",
            "Perch live at depths of up to 25 metres.",
            "In small lakes perch are found at a depth of 12 metres.",
            "condition",
            "12 metres",
        ),
        (
            "What percentage of wounds become infected?",
            "Of all wounds, 30 % become infected.",
            "Infection occurs in 12 % of wounds.",
            "number",
            "12 %",
        ),
    ],
)
def test_another_value_for_what_is_asked_is_shown_once(
    by_meaning: ExtractiveAnswerer, question: str, one: str, two: str, how: str, marked: str
) -> None:
    found = list(by_meaning.sentences(question, evidence_on(f"{one} They are many.", f"{two} So it is said.")))
    (other,) = found[0].against
    assert (texts(found), other.quote, other.differs) == ([f"{one} They are many."], two, how)
    assert marked in {two[start:end] for start, end in other.marks}


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Perch live at depths of up to 25 metres.", "Trout are found at a depth of 12 metres."),
        ("Perch live at depths of up to 25 metres.", "Perch grow to a length of 40 centimetres."),
        ("Perch live at depths of up to 25 metres.", "Perch are found at a depth of 25 m."),
    ],
)
def test_a_value_of_something_else_disagrees_with_nothing(by_meaning: ExtractiveAnswerer, one: str, two: str) -> None:
    found = by_meaning.sentences("How deep do perch live?", evidence_on(f"{one} They are many.", f"{two} It is said."))
    assert [sentence.against for sentence in found if sentence.against] == []


def test_agreement_other_subjects_and_one_paper_are_no_conflict() -> None:
    rhone = "The Rhone glacier retreats by 30 metres each year."
    assert [sentence.against for sentence in asked(RETREAT, evidence_on(FORTY, rhone))] == [()]
    again = "Each year the Aletsch glacier retreats by 40 metres."
    assert [(s.text, s.against) for s in asked(RETREAT, evidence_on(FORTY, again))] == [(FORTY, ())]
    found = asked(RETREAT, evidence_on(f"{FORTY} {FIFTY}"))
    assert (texts(found), [sentence.against for sentence in found]) == ([f"{FORTY} {FIFTY}"], [()])


def test_pieces_of_one_paper_are_together_in_order() -> None:
    pages = (
        "The ice of the Aletsch glacier is thick. " + "Nobody knows why that should be so. " * 3,
        "The ice of the Aletsch glacier is blue in deep cracks, so people say. " + "Nobody knows why that should be. ",
        "The ice of the Aletsch glacier flows to the valley of the river Rhone. " + "Nobody knows when it began. ",
    )
    (whole,) = evidence_of(hits_on(*pages, file="ice.pdf", title="Ice"))
    early = "The ice of the Aletsch glacier was the goal of early climbers."
    (other,) = evidence_of(hits_on(early, file="b.pdf", title="Climbs"))
    places = [(number, whole.text.index(pages[page]), pages[page]) for number, page in ((1, 2), (3, 0), (4, 1))]
    parts = [replace(whole, number=n, start=at, end=at + len(text), text=text) for n, at, text in places]
    found = asked("What of the ice of the Aletsch glacier?", [parts[0], replace(other, number=2), *parts[1:]], "report")
    details = [(str(s.section), s.citations[0].page) for s in found if str(s.section) != "Summary"]
    for section in {section for section, _ in details}:
        numbers = [number for number, (name, _) in enumerate(details) if name == section]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        told = [page for name, page in details if name == section]
        assert told == sorted(told)


def test_a_paper_without_a_title_is_headed_by_its_file() -> None:
    places = "Bern Brig Fiesch Naters Visp Sion Martigny Sierre Leuk Raron".split()
    tails = "in June|by train|for milk|with sheep|on foot|at night|over bridges|under snow|past huts|near rocks"
    text = "\n\n".join(
        f"The ice of the glacier is seen from {place} {tail}. Guests of {place} arrive {tail}, and stay {number} days."
        for number, (place, tail) in enumerate(zip(places, tails.split("|"), strict=True), 11)
    )
    evidence = evidence_of(hits_on(text, file="alps/ice.pdf", title=""))
    found = asked("What of the glacier and the ice?", evidence, "report")
    assert {str(sentence.section) for sentence in found} == {"Summary", "Analysis/alps/ice.pdf"}


def test_a_report_does_not_repeat_its_summary() -> None:
    question = "otter urchin kelp harbour winter storm"
    sums = [f"The {animal} of otter and urchin eats kelp." for animal in ("shoal", "flock", "swarm")]
    spread = "An otter met an urchin at noon. The kelp in the harbour is gone. This winter had a storm."
    rest = ["Nobody came by train.", "Bread was sold there.", "The mill stood idle."]
    evidence = evidence_on(*(f"{said} {more}" for said, more in zip(sums, rest, strict=True)), spread)
    found = asked(question, evidence, "report")
    summary = [one.text for one in found if one.section.heading == "Summary"]
    analysis = [one.text for one in found if one.section.heading != "Summary"]
    assert [one.section.heading for one in found] == ["Summary"] * len(summary) + ["Analysis"] * len(analysis)
    assert summary
    assert analysis
    assert not any(one in other or other in one for one in summary for other in analysis)


USED = "What grace periods cost depends on the grace period scheme: in our tests a grace period took 20 ms."


@pytest.mark.parametrize("question", ["what is a grace period", "What do they mean by grace periods?"])
def test_what_defines_the_asked_term_comes_before_what_is_more_like_the_question(question: str) -> None:
    definition = "A grace period is the time until each reader has been seen to be idle once."
    other = "Readers may be on any core, and the writer waits for each of them in turn."
    first, *_ = asked(question, evidence_on(f"{USED} {USED.replace('20', '30')}", f"{other} {definition} {other}"))
    assert definition in first.text
    assert first.marks
    (start, end), *_ = first.marks
    assert first.text[start:end] == definition
    # "Why" asks for no definition: the words of the question count.
    first, *_ = asked("Why does a grace period cost so much?", evidence_on(USED, f"{other} {definition} {other}"))
    assert USED in first.text
