"""The form of an answer with a quote: its parser, its grounding, and whether the evidence has an answer at all."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from folio.answer.generative import LEAST_STATED, VERY_SURE, GenerativeAnswerer
from folio.answer.parser import ParsedSentence
from folio.answer.quote_reply import QuoteParser
from folio.answer_types import REFUSAL, RejectedSentence, Sentence
from folio.grounding.grounder import Grounder, citations_of
from folio.grounding.sentences import content_words
from tests.helpers.factories import evidence_on
from tests.helpers.ollama_models import QWEN3, Scripted
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import CHAT, REFUSES, Make, ScriptedVerifier
from tests.helpers.scripted_model import EAT, FLOAT

LENGTH = "How long is the Aletsch glacier?"
ALETSCH = "The Aletsch glacier has a length of 23 kilometres."
IT_IS, QUOTE = "Its length is 23 km.", f'Quote: "{ALETSCH}"'
IN_FULL = "Its length is 23 kilometres."
Read = tuple[list[tuple[str, str]], str]


def read(text: str, *, cut: bool = False) -> Read:
    """The sentences of the answer, each with its quote, and the quote that is shown if none of them is."""
    parser = QuoteParser(9)
    assert parser.feed(text) == []
    parts = [part for part in parser.end(cut=cut) if isinstance(part, ParsedSentence)]
    copies = [part for part in parts if part.is_copy]
    assert copies == parts[len(parts) - len(copies) :], "the quote by itself comes last"
    assert len(copies) < 2
    return [(part.text, part.quote) for part in parts if not part.is_copy], copies[0].quote if copies else ""


WHOLE: Read = ([(IT_IS, ALETSCH)], ALETSCH)


@pytest.mark.parametrize(
    "text",
    [
        f"{QUOTE}\nAnswer: {IT_IS}",
        f'quote: "{ALETSCH}"\n\nANSWER: {IT_IS}\n',
        f'**Quote:** "{ALETSCH}"\n**Answer:** {IT_IS}',
        f"**Quote**: “{ALETSCH}”\n**Answer**: {IT_IS}",
        f"- Quote: «{ALETSCH}»\n- Answer: {IT_IS}",
        f"> Quote: '{ALETSCH}'\n\n### Answer: {IT_IS}",
        f"Quote - {ALETSCH}\nAnswer - {IT_IS}",
        f"*Quote* – “{ALETSCH}”\n*Answer* – {IT_IS}",
        f"Quote:\n{ALETSCH}\n\nAnswer:\n{IT_IS}",
        f"Sentence: {ALETSCH}\nAnswer: {IT_IS}",
        f"Here it is.\n\n{QUOTE}\nAnswer: {IT_IS}",
        f"<think>\nAnswer: 99 km?\n</think>\n{QUOTE}\nAnswer: {IT_IS}",
        f"Answer: {IT_IS}\n{QUOTE}",
        f"Answer: {IT_IS} [1]\n{QUOTE}",
        json.dumps({"quote": ALETSCH, "answer": IT_IS}),
        json.dumps({"Quote": f'"{ALETSCH}"', "Answer": IT_IS}),
        f"```json\n{json.dumps({'quote': [ALETSCH], 'answer': IT_IS}, indent=2)}\n```",
    ],
)
def test_a_quote_and_an_answer(text: str) -> None:
    assert read(text) == WHOLE


FIRST, SECOND = "Otters float in kelp.", "They eat urchins."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f'Quote: "{FIRST}"\nQuote: "{SECOND}"\nAnswer: Kelp.',
            ([("Kelp.", f'{FIRST}"\n"{SECOND}')], f'{FIRST}"\n"{SECOND}'),
        ),
        (
            f"Quote 1: {FIRST}\nQuote 2: {SECOND}\nAnswer: Kelp.",
            ([("Kelp.", f"{FIRST}\n{SECOND}")], f"{FIRST}\n{SECOND}"),
        ),
        ("Quote: - a stone\n- a shell\nAnswer: Two.", ([("Two.", "- a stone\n- a shell")], "- a stone\n- a shell")),
        (
            "Table row: | Aletsch | 23.1 |\nAnswer: 23.1 km.",
            ([("23.1 km.", "| Aletsch | 23.1 |")], "| Aletsch | 23.1 |"),
        ),
        ("Table row: | Aletsch | 23.1 |\nAnswer: 23.1.", ([], "| Aletsch | 23.1 |")),  # a number alone is no sentence
        (f"Answer: {FIRST} {SECOND}", ([(FIRST, ""), (SECOND, "")], "")),
        (FIRST, ([(FIRST, "")], "")),
        (f'Quote: "{FIRST}"', ([], FIRST)),
        (f'Quote: "{FIRST}"\nAnswer:', ([], FIRST)),
        ("", ([], "")),
        ("{}", ([], "")),
        (json.dumps({"answer": IT_IS}), ([(IT_IS, "")], "")),
        (json.dumps({"quote": None, "answer": None}), ([], "")),
        (json.dumps({"quote": FIRST}), ([], FIRST)),
        (f'{{"quote": "{FIRST}", "answer": "{SECOND}', ([(SECOND, FIRST)], FIRST)),
    ],
)
def test_replies_of_other_shapes(text: str, expected: Read) -> None:
    assert read(text) == expected


def test_a_reply_in_statements_is_read_too() -> None:
    statements = {"statements": [{"support": [3], "statement": IT_IS}], "answered": True}
    parser = QuoteParser(9)
    assert parser.feed(json.dumps(statements)) == []
    assert parser.end() == [ParsedSentence(IT_IS, support=(3,))]


def test_a_cut_reply_loses_its_unfinished_sentence() -> None:
    assert read(f"{QUOTE}\nAnswer: {IT_IS} It is the larg", cut=True) == WHOLE
    assert read(f"{QUOTE}\nAns", cut=True)[0] == []
    assert read('Quote: "The Aletsch glacier has a len', cut=True) == ([], "The Aletsch glacier has a len")


# Finding the quote

LIST = "Otters use these tools:\n- a flat stone of slate\n- a big shell of a clam\n- a strip of kelp\n\nThat is all."
TABLE = "Table 2: Sizes.\nGlacier    Length (km)\nAletsch    23.1\nGorner    12.4\n"
TWICE = f"{ALETSCH} It is the largest glacier of the Alps. The Aletsch glacier has a length that shrinks each year."


@pytest.mark.parametrize(
    ("copied", "text", "found"),
    [
        (ALETSCH, TWICE, [ALETSCH]),
        ("the aletsch glacier has a length of 23 kilometres", TWICE, [ALETSCH]),
        ("has a length of 23 kilometres", TWICE, [ALETSCH]),  # a part of one
        (
            f"{ALETSCH} It is the largest glacier of the Alps.",
            TWICE,
            [ALETSCH, "It is the largest glacier of the Alps."],
        ),
        (
            "- a flat stone of slate\n- a big shell of a clam",
            LIST,
            ["- a flat stone of slate", "- a big shell of a clam"],
        ),
        ("a flat stone of slate, a big shell of a clam", LIST, ["- a flat stone of slate", "- a big shell of a clam"]),
        ("| Gorner | 12.4 |", TABLE, []),  # a row of two words is too short to find
        ("Wolves built the city of Rome on seven hills.", TWICE, []),
        ("The Gorner glacier is 12 miles wide.", TWICE, []),
        ("", TWICE, []),
        ("\"'", TWICE, []),
    ],
)
def test_what_a_quote_copies(copied: str, text: str, found: list[str]) -> None:
    finding = Grounder(evidence_on(text)).copied(copied)
    assert [sentence.text for sentence in finding.quoted] == found if finding else found == []
    if finding:
        assert (finding.outcome, finding.fault) == ("quoted", None)
        assert {quote.support for quote in citations_of(finding)} == {1.0}
        assert all(quote.quote in text for quote in citations_of(finding))


def test_a_copied_list_keeps_its_lines_and_its_lead() -> None:
    finding = Grounder(evidence_on(LIST)).copied("- a flat stone of slate\n- a big shell of a clam")
    assert finding is not None
    assert finding.text == "Otters use these tools:\n- a flat stone of slate\n- a big shell of a clam"
    assert finding.marks == ()


def test_a_copied_row_has_its_header() -> None:
    table = "Sizes of glaciers follow.\n\nGlacier  Length (km)  Area (km2)  Ice (km3)\nAletsch  23.1  81.7  15.4\n\nSo."
    finding = Grounder(evidence_on(table)).copied("| Aletsch | 23.1 | 81.7 | 15.4 |")
    assert finding is not None
    assert finding.text == "Glacier  Length (km)  Area (km2)  Ice (km3)\nAletsch  23.1  81.7  15.4"


def test_copied_sentences_lie_in_one_piece_of_evidence() -> None:
    finding = Grounder(evidence_on(FLOAT, EAT)).copied(f"{FLOAT} {EAT}")
    assert finding is not None
    assert [sentence.text for sentence in finding.quoted] == [FLOAT]


# Judging the answer

EVIDENCE = evidence_on(
    f"{ALETSCH} Ice of 900 metres lies at the Konkordiaplatz.", f"{FLOAT} {EAT}", "Rome has seven hills."
)


def grounder(question: str) -> Grounder:
    return Grounder(EVIDENCE, content_words(question))


def test_what_an_answer_adds_must_be_in_its_sentences() -> None:
    found = grounder(LENGTH).find(IN_FULL)
    assert (found.outcome, [sentence.text for sentence in found.source.sentences]) == ("reworded", [ALETSCH])
    for wrong in (
        "Its length is 24 km.",
        "Its length is 23 miles.",
        "It is blue like otters.",
        "It lies in Norway near Bergen.",
    ):
        assert grounder(LENGTH).find(wrong).outcome == "left out", wrong


def test_an_answer_has_at_most_two_quotes() -> None:
    said = "The Aletsch glacier has a length of 23 kilometres, otters eat 25 urchins, and Rome has seven hills."
    finding = grounder("What is known?").find(said)
    assert (finding.outcome, len(finding.source.sentences)) == ("left out", 2)
    both = grounder("How long is the glacier, and how thick is its ice?").find(
        "The glacier has 23 kilometres of length and 900 metres of ice."
    )
    assert both.outcome == "reworded"
    assert {sentence.text[:11] for sentence in both.source.sentences} == {"The Aletsch", "Ice of 900 "}


def test_a_wrong_quote_does_not_hold_back_a_right_answer() -> None:
    judge = grounder(LENGTH)
    wrong = judge.copied(EAT)
    assert wrong is not None
    found = judge.find(IN_FULL, [sentence.number for sentence in wrong.quoted])
    assert (found.outcome, [sentence.text for sentence in found.source.sentences]) == ("reworded", [ALETSCH])


def test_a_quote_bears_out_an_answer_with_half_of_its_words() -> None:
    judge = grounder(LENGTH)
    quote = judge.copied(ALETSCH)
    assert quote is not None
    assert judge.bears_out(quote, "23 kilometres, says Funk.")
    assert not judge.bears_out(quote, "Four leagues and two miles, says Funk.")


# Asking the model


def says(yes: float) -> Scripted:
    """A model that finds the answer stated with this probability."""
    return Scripted("yes" if yes > 0.5 else "no", (("yes", math.log(yes)), (" No", math.log(1 - yes))))


class Asked:
    """An answerer in the form of a quote, over evidence on glaciers and otters."""

    def __init__(self, server: OllamaStandIn, make: Make) -> None:
        self.server = server
        self.answerer: GenerativeAnswerer = make(answer_format="quote")

    def parts(self, *replies: str, question: str = LENGTH, stated: Scripted | None = None) -> list[object]:
        self.server.reply = [*[""] * len(self.server.answering), *replies]
        self.server.stated = stated or says(0.95)
        return list(self.answerer.sentences(question, EVIDENCE))

    def shown(
        self, *replies: str, question: str = LENGTH, stated: Scripted | None = None
    ) -> list[tuple[str, list[str]]]:
        """The text and the quotes of each sentence that is shown."""
        parts = self.parts(*replies, question=question, stated=stated)
        return [(part.text, [quote.quote for quote in part.citations]) for part in parts if isinstance(part, Sentence)]

    @property
    def prompts(self) -> list[str]:
        return [str(body["messages"][-1]["content"]) for body in self.server.bodies(CHAT)]


@pytest.fixture
def quoting(ollama_server: OllamaStandIn, make: Make) -> Asked:
    return Asked(ollama_server, make)


def test_an_answer_is_shown_with_its_quote(quoting: Asked) -> None:
    assert quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}") == [(IT_IS, [ALETSCH])]
    assert (quoting.answerer.notice, quoting.answerer.failed) == ("", False)
    assert len(quoting.prompts) == 2


@pytest.mark.parametrize("reply", [QUOTE, f"{QUOTE}\nAnswer: In Norway, it is 23 kilometres."])
def test_the_quote_is_shown_where_no_answer_is(quoting: Asked, reply: str) -> None:
    assert quoting.shown(reply) == [(ALETSCH, [ALETSCH])]


def test_a_quote_that_is_elsewhere_is_not_shown_for_a_wrong_answer(quoting: Asked) -> None:
    """The stand-in quotes the papers instead, and says so."""
    parts = quoting.parts(f'Quote: "{EAT}"\nAnswer: It lies in Norway near Bergen.')
    assert [part.text for part in parts if isinstance(part, RejectedSentence)] == ["It lies in Norway near Bergen."]
    assert [ALETSCH in part.text for part in parts if isinstance(part, Sentence)] == [True]
    assert quoting.answerer.notice.startswith("The model wrote nothing that the papers support.")
    assert len(quoting.server.answering) == 1


@pytest.mark.parametrize(
    "said", [REFUSAL, "Not found.", "Not found in the evidence.", "The evidence does not say how long it is."]
)
def test_a_refusal_shows_no_quote_of_the_model(quoting: Asked, said: str) -> None:
    question = "Who painted the ceiling?"
    stated = Scripted("Perhaps")
    assert quoting.shown(f"{QUOTE}\nAnswer: {said}", question=question, stated=stated) == []
    assert len(quoting.server.answering) == 1


def test_it_is_asked_first_whether_the_evidence_states_the_answer(quoting: Asked) -> None:
    quoting.parts(f"{QUOTE}\nAnswer: {IT_IS}")
    first, second = quoting.server.bodies(CHAT)
    assert (first["options"]["num_predict"], first["logprobs"]) == (1, True)
    assert (second["options"]["num_predict"], second.get("logprobs"), second.get("format")) == (768, None, None)
    assert first["options"]["num_ctx"] == second["options"]["num_ctx"]
    assert first["messages"][0] == second["messages"][0]
    one, two = quoting.prompts
    end = one.rindex("</evidence>\n\n") + len("</evidence>\n\n")
    assert one[:end].encode() == two[:end].encode()
    assert one[end:].startswith(f"Question: {LENGTH}\n\nDoes the evidence state the answer")
    assert two[end:].startswith(f"Question: {LENGTH}\n\nCopy the one sentence")


@pytest.mark.parametrize("count", range(1500, 1800, 10))
def test_both_requests_have_one_context(ollama_server: OllamaStandIn, make: Make, count: int) -> None:
    """The server would load the model again for another, and read the evidence again."""
    ollama_server.stated, ollama_server.reply = Scripted("Perhaps"), lambda messages: REFUSAL
    text = " ".join(["word"] * count)
    list(make(answer_format="quote").sentences(LENGTH, evidence_on(text)))
    first, second = ollama_server.bodies(CHAT)
    assert first["options"]["num_ctx"] == second["options"]["num_ctx"]
    assert len(ollama_server.loads) == 1


def test_an_answer_that_is_not_stated_is_not_asked_for(quoting: Asked) -> None:
    assert quoting.parts(question="Who painted the ceiling?", stated=says(0.05)) == []
    assert (quoting.answerer.notice, quoting.answerer.failed, len(quoting.prompts)) == ("", False, 1)


def sure_of(monkeypatch: pytest.MonkeyPatch, asked: Asked, confidence: float) -> None:
    monkeypatch.setattr(asked.answerer._stand_in, "confidence", lambda question, evidence: confidence)


@pytest.mark.parametrize(("yes", "sure"), [(0.9, 0.1), (0.5, 0.5), (0.3, 0.79)])
def test_the_gate_is_the_mean_of_two_probabilities(
    quoting: Asked, monkeypatch: pytest.MonkeyPatch, yes: float, sure: float
) -> None:
    for confidence in (sure, sure + 2 * LEAST_STATED - yes - sure + 0.01):
        sure_of(monkeypatch, quoting, confidence)
        before = len(quoting.server.answering)
        shown = quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}", stated=says(yes))
        is_stated = (yes + confidence) / 2 >= LEAST_STATED
        assert shown == ([(IT_IS, [ALETSCH])] if is_stated else [])
        assert len(quoting.server.answering) - before == is_stated


def test_a_very_sure_stand_in_quotes_what_the_model_does_not_see(
    quoting: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    sure_of(monkeypatch, quoting, VERY_SURE)
    ((text, quotes),) = quoting.shown(stated=says(0.05))
    assert ALETSCH in text
    assert quotes
    assert quoting.answerer.notice == "The model found no answer. These sentences are quotes from the papers."
    assert quoting.server.answering == []


@pytest.mark.parametrize("version", ["0.12.10", "0.14.0"])
def test_without_log_probabilities_the_answer_is_asked_for(
    ollama_server: OllamaStandIn, quoting: Asked, version: str
) -> None:
    ollama_server.version = version
    stated = Scripted("no", ((" no", -0.1),)) if version == "0.12.10" else Scripted("Perhaps", (("Perhaps", -0.1),))
    assert quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}", stated=stated) == [(IT_IS, [ALETSCH])]
    assert len(quoting.prompts) == 2


def test_a_model_that_thinks_is_only_asked_for_the_answer(ollama_server: OllamaStandIn, make: Make) -> None:
    """It would think twice, and give no probabilities."""
    ollama_server.models["thinks:latest"] = replace(QWEN3, name="thinks:latest", takes_levels_only=True)
    answerer = make("thinks", answer_format="quote")
    ollama_server.reply = lambda messages: f"{QUOTE}\nAnswer: {IT_IS}"
    for _ in range(2):  # what it does is found at the first question
        ollama_server.loaded.clear()
        before = len(ollama_server.bodies(CHAT))
        assert [part.text for part in answerer.sentences(LENGTH, EVIDENCE) if isinstance(part, Sentence)] == [IT_IS]
    assert len(ollama_server.bodies(CHAT)) - before == 1


def test_a_report_is_not_asked_for_as_a_quote(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = lambda messages: f"## Summary\n{ALETSCH} [1]"
    (found,) = make(answer_format="quote").sentences(LENGTH, EVIDENCE, "report")
    assert isinstance(found, Sentence)
    assert (found.text, str(found.section)) == (ALETSCH, "Summary")
    (body,) = ollama_server.bodies(CHAT)
    assert body["format"] is not None


def test_a_verifier_reads_the_evidence_as_the_answer_did(ollama_server: OllamaStandIn, make: Make) -> None:
    verifier = ScriptedVerifier()
    ollama_server.reply = lambda messages: f"{QUOTE}\nAnswer: {IT_IS}"
    list(make(answer_format="quote", verifier=verifier).sentences(LENGTH, EVIDENCE))
    (start,), (claim,) = verifier.starts, verifier.asked
    first, second = ollama_server.bodies(CHAT)
    assert start.rules == first["messages"][0]["content"] == second["messages"][0]["content"]
    assert second["messages"][1]["content"].startswith(start.evidence)
    assert (claim.statement, ALETSCH in claim.premise) == (IT_IS, True)


def test_an_answer_that_the_verifier_refuses_becomes_its_quote(ollama_server: OllamaStandIn, make: Make) -> None:
    ollama_server.reply = lambda messages: f"{QUOTE}\nAnswer: {IT_IS}"
    verifier = ScriptedVerifier({IT_IS: REFUSES})
    parts = list(make(answer_format="quote", verifier=verifier).sentences(LENGTH, EVIDENCE))
    assert [(part.text, part.instead_of) for part in parts if isinstance(part, Sentence)] == [(ALETSCH, IT_IS)]


TWO = f"{LENGTH} How many urchins do otters eat?"


def test_each_of_two_questions_is_asked_by_itself(quoting: Asked) -> None:
    eat = f'Quote: "{EAT}"\nAnswer: Otters eat 25 urchins.'
    shown = quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}", eat, question=TWO)
    assert [quotes for _, quotes in shown] == [[ALETSCH], [EAT]]
    assert quoting.answerer.notice == ""
    assert len(quoting.prompts) == 4
    assert len({prompt.partition("Question:")[0] for prompt in quoting.prompts}) == 1


def test_a_part_without_an_answer_is_named(quoting: Asked) -> None:
    who = "Who painted the ceiling of the Sistine chapel?"
    shown = quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}", "Answer: Not found.", question=f"{LENGTH} {who}")
    assert shown == [(IT_IS, [ALETSCH])]
    assert quoting.answerer.unanswered == (who[:-1],)


def test_a_server_that_failed_is_not_asked_the_next_question(quoting: Asked) -> None:
    stated = Scripted(refused=400, error="the runner is gone")
    shown = quoting.shown(question=TWO, stated=stated)
    assert shown
    assert all(text in quotes[0] or quotes[0] in text for text, quotes in shown)
    assert quoting.answerer.failed
    assert quoting.answerer.notice.endswith("These sentences are quotes from the papers.")
    assert len(quoting.prompts) == 1
    assert quoting.shown(f"{QUOTE}\nAnswer: {IT_IS}") == [(IT_IS, [ALETSCH])]  # and it may return
    assert not quoting.answerer.failed
