"""The judgement of a statement: quoted, reworded or left out, why, and with which quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folio.answer_types import Evidence
from folio.grounding.grounder import Finding, Grounder, citations_of
from tests.grounding.test_sentences import TEXTS, evidence_anywhere
from tests.helpers.factories import evidence_of, evidence_on, hit_on, hits_on

pytestmark = pytest.mark.fast

OTTERS, LONG = "Otters float in rafts of kelp. They eat 25 urchins.", "The Aletsch glacier is 23 kilometres long."
ICE = f"{LONG} It melts."
ALPS = (
    "The Aletsch glacier has a length of 23.1 kilometres and an area of 81.7 square kilometres. It is the largest"
    " glacier of the Alps. Its ice has a thickness of about 900 metres at the Konkordiaplatz. The survey ALS-2011 was"
    " led by Martin Funk. The front of the glacier retreats by 50 metres each year. The rate of retreat increased after"
    " 1980. The glacier does not reach the valley of the Rhone."
)
FUR = (
    "The fur of a sea otter has about 155,000 hairs on each square centimetre of skin. No other mammal has a denser"
    " fur. Sea otters do not hibernate, e.g. in the winter of Alaska. J. R. Kenyon counted 1,260 animals at Amchitka."
)
TRIAL = (
    "We treated 48 patients with 20 mg of atenolol per day for 12 weeks. The blood pressure decreased by 12 % in the"
    " treated group. Atenolol did not reduce the heart rate at rest."
)
KEM = "ML-KEM-768 has a public key of 1,184 bytes and a ciphertext of 1,088 bytes. It must not reuse a seed."
FIT = (
    "The fit of the runs has a slope of −0.35. The sample has 10¹⁰ records of 92.4 ³ bytes. ¹² The search can be"
    " done in only [formula] steps. CO₂ was sampled in the air."
)
SIZES = "Sizes of glaciers follow.\n\nGlacier  Length (km)  Area (km2)\nAletsch  23.1  81.7\nGorner  12.4  53.1\n\nSo."
TIDES = "The mean tidal range is 2.4 m at Port Ellis and 1.1 m at Saltness."
HIVES = "The colonies gained 14 kg on average in June and lost 3 kg in August."
HEAT = "Heavy rain caused a great flood of the valley. If the key is kept secret, the scheme of Bob is secure."


def without_space(text: str) -> str:
    return "".join(text.split()).casefold()


def find(statement: str, *texts: str, support: tuple[int, ...] = (), pieces: tuple[int, ...] = ()) -> Finding:
    return Grounder(evidence_on(*texts)).find(statement, support, pieces)


def quotes(finding: Finding) -> list[tuple[int, int, str]]:
    return [(quote.evidence, quote.page, quote.quote) for quote in citations_of(finding)]


@pytest.mark.parametrize(
    ("statement", "text", "rule", "reason"),
    [
        ("Its ice is about 800 metres thick at the Konkordiaplatz.", ALPS, "number", "the number 800 cannot"),
        ("We treated 48 patients with 20 g of atenolol per day for 12 weeks.", TRIAL, "number", "the number 20 cannot"),
        ("The front of the glacier retreats by 50 km each year.", ALPS, "number", "the number 50 cannot"),
        ("The blood pressure decreased by 15 % in the treated group.", TRIAL, "number", "the number 15 cannot"),
        ("The course has 12 notebooks.", "The course has 17 notebooks and 12 exercises.", "count", "it gives 12 for"),
        ("It has nine notebooks.", "The course has seven notebooks.", "number", "the number nine cannot"),
        ("It has forty-three.", "The course has forty-two notebooks.", "number", "the number forty-three cannot"),
        ("The front of the glacier retreats to 50 metres.", ALPS, "bound", "it gives 50 with another bound"),
        ("The ice has a thickness of exactly 900 metres.", ALPS, "bound", "it gives 900 with another bound"),
        ("ML-KEM-512 has a ciphertext of 1,088 bytes.", KEM, "identifier", "the name ML-KEM-512 cannot"),
        ("Raft.Sign takes two seeds.", "Raft.Sign_internal takes two seeds.", "identifier", "it has a longer name"),
        ("The survey ALS-2011 was led by Martin Keller.", ALPS, "name", "the name Keller cannot"),
        ("An SVM counted 1,260 animals at Amchitka.", FUR, "name", "the name SVM cannot"),
        ("It says “every mammal has a thin fur” of the otter.", FUR, "quoted words", "the words “every mammal"),
        ("Sea otters hibernate in the winter of Alaska.", FUR, "negation", "it says the opposite"),
        ("The glacier reaches the valley of the Rhone.", ALPS, "negation", "it says the opposite"),
        ("The Gorner glacier has a length of 53.1 km.", SIZES, "cell", "its table gives 53.1 in another row"),
        ("The front of the glacier advances by 50 metres each year.", ALPS, "opposite", "it says the opposite"),
        ("The rate of retreat of the glacier is very low.", "The rate of retreat is very high.", "opposite", "it says"),
        ("The sky is blue and the grass is green.", ALPS, "not found", "no evidence says this"),
        ("Boats sink in rivers of mud and kelp.", OTTERS, "not found", "it does not say this"),
        ("The fit of the runs has a slope of 0.35.", FIT, "number", "the number 0.35 cannot"),
        ("The sample has 1,010 records of 92.4 bytes.", FIT, "number", "the number 1,010 cannot"),
        ("The sample has 10¹⁰ records of 92.43 bytes.", FIT, "number", "the number 92.43 cannot"),
        ("The search can be done in only 10 steps.", FIT, "number", "the number 10 cannot"),
        ("The authors say “done in only steps” of it.", FIT, "quoted words", "the words “done in only steps”"),
    ],
)
def test_statements_left_out_with_a_reason(statement: str, text: str, rule: str, reason: str) -> None:
    found = find(statement, text, pieces=(1,))
    assert found.outcome == "left out"
    assert found.fault is not None
    assert (found.fault.rule, found.fault.reason[: len(reason)]) == (rule, reason)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("The Aletsch glacier comes to 23.1 km in all.", ALPS),
        ("ML-KEM-768 has a ciphertext of 1088 B.", KEM), ("The Gorner glacier has a length of 12.4 km.", SIZES),
        ("The fit gives runs a downward slope, which is -0.35.", FIT),
        ("With all runs in the fit, slope fell by 0.35 altogether.", FIT),
        ("It melts.", ICE),  # too short to be near a sentence
        ("Martin Funk counted 1,260 animals at Amchitka.", f"{ALPS} {FUR}"),  # another's name
    ],
)  # fmt: skip
def test_true_in_other_words_is_reworded(statement: str, text: str) -> None:
    found = find(statement, text, pieces=(1,))
    assert (found.outcome, found.fault, found.text, found.marks) == ("reworded", None, statement, ())
    assert all(quote.support < 1 for quote in citations_of(found))


FIXED, CAUSED = "The fit of the runs has a slope of −0.35.", "Heavy rain caused a great flood of the valley."
SENT = "The Aletsch glacier has a length of 23.1 kilometres and an area of 81.7 square kilometres."
GAINED = "The colonies gained 14 kg on average in June and lost 3 kg in August."
SPRINT = "Bolt won the sprint, while Felix won the hurdles."


@pytest.mark.parametrize(
    ("statement", "text", "quote", "marked"),
    [
        # A whole sentence
        ("No other mammal has a denser fur.", FUR, "No other mammal has a denser fur.", None),
        ("no other  mammal has\na denser fur", FUR, "No other mammal has a denser fur.", None),
        ("The fit of the runs has a slope of -0.35.", FIT, FIXED, None),
        ("The search can be done in only [formula] steps.", FIT, "The search can be done in only [formula] steps.",
         None),
        # A part of one
        ("The drug cures the disease.", "No trial showed that the drug cures the disease.",
         "No trial showed that the drug cures the disease.", "drug cures the disease"),
        ("The scheme of Bob is secure.", HEAT, "If the key is kept secret, the scheme of Bob is secure.",
         "scheme of Bob is secure"),
        ("The colonies gained 14 kg on average in June.", HIVES, GAINED, "colonies gained 14 kg on average in June"),
        # Nearly one, or a part: words left out, put in, exchanged
        ("No mammal has a denser fur.", FUR, "No other mammal has a denser fur.", None),
        ("The search can be done in only steps.", FIT, "The search can be done in only [formula] steps.", None),
        ("The colonies gained 3 kg in August.", HIVES, GAINED, None),
        ("All otters float in rafts of kelp.", "Most otters float in rafts of kelp.",
         "Most otters float in rafts of kelp.", None),
        ("Otters eat urchins and crabs.", "In winter, otters eat urchins, and crabs, of course.",
         "In winter, otters eat urchins, and crabs, of course.", "otters eat urchins, and crabs"),
        ("The sample has 10^10 records of 92.4 bytes.", FIT, "The sample has 10¹⁰ records of 92.4 ³ bytes. ¹²", None),
        ("The Aletsch glacier has an area of 81.7 km².", ALPS, SENT, SENT[4:71]),
        ("Port Ellis: 1.1 m", TIDES, TIDES, "Port Ellis and 1.1 m"),
        ("Bolt won the hurdles.", SPRINT, SPRINT, None),
        # The same words in another order
        ("A great flood of the valley caused heavy rain.", HEAT, CAUSED, None),
        ("Martin Funk led the survey ALS-2011.", ALPS, "The survey ALS-2011 was led by Martin Funk.", None),
        ("Amchitka was counted by 1,260 animals of J. R. Kenyon.", FUR,
         "J. R. Kenyon counted 1,260 animals at Amchitka.", None),
    ],
)  # fmt: skip
def test_the_sentence_of_the_page_is_shown_in_place_of_a_statement_near_it(
    statement: str, text: str, quote: str, marked: str | None
) -> None:
    found = find(statement, text, pieces=(1,))
    assert (found.outcome, found.text) == ("quoted", quote)
    assert [quote.support for quote in citations_of(found)] == [1]
    assert [found.text[start:end] for start, end in found.marks] == ([marked] if marked else [])


EXCLUDED = "We treated 48. These were excluded:\n\n- patients under 18 years\n- smokers of any age or sex\n\nIt rains."
FED = "is fed by 3 large glaciers of the Bernese Alps in summer."


@pytest.mark.parametrize(
    ("statement", "text", "shown", "marked"),
    [
        ("Smokers of any age or sex.", EXCLUDED, "These were excluded:\n- smokers of any age or sex",
         "smokers of any age or sex"),
        ("Press the red button twice.", "1.  Press the red button twice.", "1. Press the red button twice.",
         "Press the red button twice"),
        ("Gorner  12.4  53.1 is", SIZES.replace("53.1", "53.1 is"),
         "Glacier  Length (km)  Area (km2)\nGorner  12.4  53.1 is", "Gorner  12.4  53.1"),
    ],
)  # fmt: skip
def test_an_item_or_a_row_is_shown_with_what_introduces_it(statement: str, text: str, shown: str, marked: str) -> None:
    found = find(statement, text, pieces=(1,))
    assert (found.outcome, found.text) == ("quoted", shown)
    assert [found.text[start:end] for start, end in found.marks] == [marked]
    quotes = [without_space(quote.quote) for quote in citations_of(found)]
    assert quotes == [without_space(line) for line in shown.split("\n")]


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("The Aletsch glacier is the second largest glacier of the Alps.", ALPS),
        # What the sentence only refers to; a part of a sentence that is cut, or too long to be shown
        ("That the drug cures the disease.", "No trial showed\n\nthat the drug cures the disease."),
        ("The drug cures the disease.", "The drug cures the disease\n\nonly in mice."),
        (f"The Massa {FED}", f"The Massa is long. It {FED}"),
        ("The trial was stopped early.", f"The trial was stopped early {'and again ' * 60}."),
    ],
)
def test_a_sentence_that_does_not_say_the_same_is_no_quote(statement: str, text: str) -> None:
    assert find(statement, text, pieces=(1,)).outcome == "reworded"


@pytest.mark.parametrize(
    ("support", "pieces"),
    [((), ()), ((), (1,)), ((), (7,)), ((1,), ()), ((3,), ()), ((99, 0, -1), ()), ((3,), (2,)), ((1, 2), (1, 2))],
)
def test_wrong_and_missing_markers_are_corrected(support: tuple[int, ...], pieces: tuple[int, ...]) -> None:
    found = find(LONG, OTTERS, ICE, support=support, pieces=pieces)
    assert (found.outcome, quotes(found)) == ("quoted", [(2, 1, LONG)])


def test_a_merged_statement_cites_each_of_its_sentences() -> None:
    text = "Otters float in rafts of kelp. Much else is known. They eat 25 urchins. It was seen in 1999."
    found = find("Otters float in rafts of kelp, they eat 25 urchins and it was seen in 1999.", text, pieces=(1,))
    merged = ["Otters float in rafts of kelp.", "They eat 25 urchins.", "It was seen in 1999."]
    assert [quote for _, _, quote in quotes(found)] == merged


def test_a_true_statement_is_shown_after_a_wrong_one() -> None:
    grounder = Grounder(evidence_on(OTTERS))
    assert grounder.find("Paris is the capital of France.").outcome == "left out"
    assert grounder.find("Otters eat 25 urchins in kelp.").outcome == "reworded"


TWELVE = (
    "The result was presented at a conference in Greece. The members were not presented with awards. A proposer sends"
    " a request. An acceptor responds to it. A learner learns the value. A leader is elected. Messages can be lost."
    " Values are chosen by a majority. Two values are never chosen. Clocks may drift. Disks are written first. It ends."
)


def test_a_statement_rests_on_few_of_its_sentences() -> None:
    every = tuple(range(1, 13))
    left_out = find("The result was never presented in Greece.", TWELVE, support=every)
    assert (left_out.outcome, left_out.fault and left_out.fault.rule) == ("left out", "negation")
    shown = find("The result was presented in Greece.", TWELVE, support=every)
    assert [quote for _, _, quote in quotes(shown)] == ["The result was presented at a conference in Greece."]
    steps = "A proposer sends.\nAn acceptor responds.\nA learner learns.\nA leader is elected.\nClocks drift.\nIt ends."
    assert len(find(steps, TWELVE, support=every).source.sentences) == 6


def test_pages_rows_and_titles_can_support_a_statement() -> None:
    hit = hit_on("Model Otter was trained on the kelp data with great care.", "It reached 93.1 percent.")
    found = Grounder(evidence_of([hit])).find("Model Otter, trained on the kelp data with care, reached 93.1 percent.")
    assert (1, 2, "It reached 93.1 percent.") in quotes(found)
    assert quotes(find("The Gorner glacier has a length of 12.4 km.", SIZES))[-1] == (1, 1, "Gorner  12.4  53.1")
    assert find("The Gorner glacier has a length of 12.5 km.", SIZES).outcome == "left out"
    statement = "ThermoState uses Pint for units."
    for title, outcome in (("ThermoState: A state manager", "reworded"), ("Another", "left out")):
        evidence = evidence_of(hits_on("The package uses Pint for the units.", title=title))
        assert Grounder(evidence).find(statement, (), (1,)).outcome == outcome


def test_keeping_to_the_evidence_earns_some_trust() -> None:
    loose = "Otters float in large groups of kelp daily."
    grounder = Grounder(evidence_on(OTTERS))
    assert find(loose, OTTERS, pieces=(1,)).outcome == "left out"
    assert [grounder.find(said, (), (1,)).outcome for said in ("They eat 25 urchins.", loose)] == ["quoted", "reworded"]


def test_without_evidence_everything_is_left_out() -> None:
    found = Grounder([]).find(LONG, (1,), (1,))
    assert (found.outcome, found.fault and found.fault.reason) == ("left out", "no evidence says this")
    assert not Grounder([]).mentions("Glaciers")


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Rafts of kelp", True),
        ("On Sea Animals", True),  # the title
        ("Otters in Alaska", False),
        ("The 24 urchins", False),
        ("Danger of extinction", False),
    ],
)
def test_mentions(heading: str, expected: bool) -> None:
    evidence = [*hits_on(OTTERS, title="On Sea Animals"), hit_on(ICE)]
    assert Grounder(evidence_of(evidence)).mentions(heading) is expected


@given(evidence_anywhere(), TEXTS, st.lists(st.integers(-1, 5), max_size=3))
def test_every_quote_is_a_slice_and_what_is_quoted_is_shown(piece: Evidence, statement: str, named: list[int]) -> None:
    for said in (statement, piece.text):
        found = Grounder([piece]).find(said, named, named)
        assert found == Grounder([piece]).find(said, named, named)
        if found.outcome == "left out":
            assert found.fault
            continue
        quotes = citations_of(found)
        assert all(quote.quote == piece.text[quote.start - piece.start : quote.end - piece.start] for quote in quotes)
        if found.outcome == "quoted":  # a sentence over a page's end has a quote on each page
            assert without_space(found.text) == without_space(" ".join(quote.quote for quote in quotes))
            assert all(0 <= start < end <= len(found.text) for start, end in found.marks)
        assert {quote.support == 1 for quote in quotes} == {found.outcome == "quoted"}
