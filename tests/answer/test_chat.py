"""Conversations: LangChain's ConversationalRetrievalChain over both answerers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from config import Settings
from folio.answer.chat import (
    IN_ENGLISH,
    NO_ANSWER,
    NO_MORE,
    NOT_SHORTER,
    REMARKS,
    Chat,
    Reply,
    log_entry,
)
from folio.answer.confidence import LEAST_CONFIDENCE
from folio.answer.extractive import WITHOUT_MODEL
from folio.answer.passages import REMEMBERED_EVIDENCE
from folio.answer_types import ALSO, CLOSEST, REFUSAL, Evidence, Selected, Sentence, Style
from folio.errors import ModelError, UsageError
from folio.model_choice import ModelChoice
from folio.models.chat_model import TRIES
from folio.question.question import Question
from folio.search.filters import PaperFilter
from folio.store.query_log import LogEntry, LoggedSource
from folio.system import workers
from tests.helpers.answers import ANSWER, HITS, REFUSED, TIMINGS
from tests.helpers.factories import shelf, write_pdf
from tests.helpers.fakes import CoverageReranker, HashingApp, HashingEmbedder, hashing_app, read_here
from tests.helpers.ollama_models import LLAMA, Json
from tests.helpers.ollama_server import OllamaStandIn

LENGTH, THICK = "What length has the Aletsch glacier?", "How thick is the Aletsch glacier?"
LONG_AND_LARGE = f"{LENGTH[:-1]}, and how many square kilometres of the Bernese Alps does it cover?"
ITS_ICE, TYPED = "And what thickness has its ice at the Konkordiaplatz?", "And how thick is it?"
SISTINE = "Who painted the ceiling of the Sistine chapel in Rome?"
IS_LONG = "The Aletsch glacier has a length of 23 kilometres and covers 82 square kilometres of the Bernese Alps."
IS_THICK = "At the Konkordiaplatz the ice of the Aletsch glacier has a thickness of 800 metres."
Start = Callable[..., Chat]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> HashingApp:
    """The tool over two papers, which no chat changes."""
    return shelf(tmp_path_factory.mktemp("shelf"))


@pytest.fixture
def start(papers: HashingApp) -> Iterator[Start]:
    """Starts a chat over the two papers; settings by name."""
    with ExitStack() as stack:

        def chat(*, top_k: int = 3, paper: str | None = None, style: Style = "plain", **chosen: str) -> Chat:
            settings = Settings(_env_file=None, **{**papers.settings.model_dump(), **chosen})  # type: ignore[call-arg]
            app = HashingApp(settings, lambda text: None, HashingEmbedder(256))
            library = stack.enter_context(closing(app.open_library()))
            return app.chat(library, top_k=top_k, wanted=PaperFilter.parse([paper] if paper else []), style=style)

        yield chat


@pytest.fixture
def with_ollama(start: Start, ollama_server: OllamaStandIn) -> Start:
    return lambda **settings: start(LLM="ollama", OLLAMA_HOST=ollama_server.url, **settings)


def quoted(sentences: tuple[Sentence, ...]) -> list[tuple[str, int, str]]:
    return [(c.paper.file, c.page, " ".join(c.quote.split())) for sentence in sentences for c in sentence.citations]


def searched(chat: Chat) -> list[str]:
    """Every question that was looked for, in order."""
    queries: list[str] = chat.retriever.embedder.queries  # type: ignore[attr-defined]
    return queries


def test_a_question_is_answered_with_quotes_and_its_evidence(start: Start) -> None:
    told: list[Sentence] = []
    chat = start()
    reply = chat.ask(f"  {LENGTH} ", told.append)
    answer = reply.answer
    assert (answer.question, answer.sentences, answer.refused) == (LENGTH, tuple(told), False)
    (file, page, quote), *_ = quoted(answer.sentences)
    assert (file, page, quote.endswith(IS_LONG), IS_LONG in answer.text) == ("glaciers.pdf", 1, True, True)
    assert len(reply.hits) == 3
    assert sorted(e.paper.file for e in answer.evidence) == ["glaciers.pdf", "glaciers.pdf", "otters.pdf"]
    assert {hit for evidence in answer.evidence for hit in evidence.hits} == set(reply.hits)
    assert (answer.dropped, answer.notice, answer.style) == (0, WITHOUT_MODEL, "plain")
    assert [hit.score for hit in reply.hits] == sorted((hit.score for hit in reply.hits), reverse=True)
    assert {"embed", "dense", "bm25", "retrieve", "evidence", "answer"} <= reply.timings_ms.keys()
    assert chat.models == {"embedder": "hashing", "reranker": "built in", "llm": "extractive (built in)"}


def test_a_follow_up_is_searched_in_all_its_readings(start: Start) -> None:
    chat = start()
    chat.ask(LENGTH)
    answer = chat.ask(ITS_ICE).answer
    meant = "What thickness has Ice of the Alps’ ice at the Konkordiaplatz?"
    assert searched(chat) == [LENGTH, f"Aletsch {ITS_ICE}", meant, ITS_ICE, f"{LENGTH} {ITS_ICE}"]
    assert (answer.question, answer.standalone_question) == (ITS_ICE, meant)
    assert any(page == 2 and IS_THICK in quote for _, page, quote in quoted(answer.sentences))
    assert LENGTH not in answer.text


def test_an_earlier_conversation_continues(start: Start) -> None:
    earlier, chat = start(), start()
    turns = [earlier.ask(LENGTH).answer]
    resumed = Chat(chat.retriever, chat._answerer, top_k=3, turns=turns)
    assert replace(resumed.ask(ITS_ICE).answer, scope=None) == replace(earlier.ask(ITS_ICE).answer, scope=None)
    assert len(turns) == 1


def test_hits_are_reported_once_before_the_sentences(start: Start) -> None:
    chat = start()
    for question in (LENGTH, THICK):  # the first is searched for before the chain is there
        heard: list[object] = []
        reply = chat.ask(question, heard.append, lambda hits, heard=heard: heard.append(tuple(hits)))  # type: ignore[misc]
        assert heard == [reply.hits, *reply.answer.sentences]


def test_an_unclear_question_is_asked_back_without_a_search(start: Start) -> None:
    chat = start()
    chat.ask(LENGTH)
    reply = chat.ask("???")
    assert searched(chat) == [LENGTH]
    assert (reply.answer.refused, reply.answer.evidence, reply.hits) == (True, (), ())
    assert reply.answer.notice == "It is not clear what “???” asks. Please ask it as a whole question."
    assert "800 metres" in chat.ask("How thick is its ice at the Konkordiaplatz?").answer.text  # it goes on


def test_the_last_answer_does_not_answer_the_next_question_again(start: Start) -> None:
    chat = start()
    before = {sentence.text for sentence in chat.ask(LENGTH).answer.sentences}
    assert any(IS_LONG in text for text in before)
    assert before.isdisjoint(sentence.text for sentence in chat.ask("Who painted it?").answer.sentences)
    for _ in range(2):  # what holds an answer to the follow-up too, and the same question asked again
        assert IS_LONG in chat.ask("How many square kilometres does it cover?").answer.text


def test_a_single_paper_can_be_searched(start: Start) -> None:
    reply = start(paper="SEA otters").ask(LENGTH)
    assert {hit.paper.file for hit in reply.hits} == {"otters.pdf"}
    with pytest.raises(UsageError, match=r"No paper in the index is called “otter\.pdf”\. Similar names: otters"):
        start(paper="otter.pdf")


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused_and_not_remembered(start: Start, question: str) -> None:
    chat = start()
    with pytest.raises(UsageError, match="The question is empty"):
        chat.ask(question)
    assert chat._turns == []


def test_a_rewritten_follow_up_is_searched_and_never_shown(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [f"{IS_LONG[:-1]} [1].", THICK, f"{IS_THICK} [1]"]
    chat = with_ollama()
    chat.ask(LENGTH)
    told: list[Sentence] = []
    reply = chat.ask(TYPED, told.append)
    assert searched(chat) == [LENGTH, THICK, f"Aletsch {TYPED}", TYPED, f"{LENGTH} {TYPED}"]
    assert (reply.answer.question, reply.answer.standalone_question) == (TYPED, THICK)
    assert ([sentence.text for sentence in told], reply.answer.text) == ([IS_THICK], IS_THICK)
    assert quoted(reply.answer.sentences) == [("glaciers.pdf", 2, IS_THICK)]
    first, rewriting, answering = (body["messages"][-1]["content"] for body in ollama_server.answering)
    assert f"Question: {LENGTH}" in first
    assert f"Q: {LENGTH}\nA: {IS_LONG}" in rewriting
    assert (f"Question: {THICK}" in answering, TYPED in answering) == (True, False)
    assert chat.models["llm"] == "llama3.1:8b (Ollama)"
    assert {"rewrite", "retrieve", "answer"} <= reply.timings_ms.keys()


@pytest.mark.parametrize(
    ("written", "question", "text", "dropped", "notice"),
    [
        ([f"Paris is in France [1]. {IS_LONG} [2] Rome was built by wolves."], LENGTH, IS_LONG, 2, ""),
        (["Michelangelo painted the ceiling [1]. It was Michelangelo [1]."], SISTINE, REFUSAL, 2, ""),
        ([f"{IS_LONG} [1] The passages do not mention its colour."], "How long is the Aletsch glacier, and how blue?",
         IS_LONG, 0, "Nothing was found about “how blue”. The model found no evidence for part of the question."),
    ],
)  # fmt: skip
def test_a_models_words_become_an_answer(
    with_ollama: Start, ollama_server: OllamaStandIn, written: list[str], question: str, text: str, dropped: int,
    notice: str,
) -> None:  # fmt: skip
    ollama_server.reply = list(written)
    answer = with_ollama(ANSWER_FORMAT="statements").ask(question).answer
    assert (answer.text, answer.refused, answer.dropped, answer.notice) == (text, text == REFUSAL, dropped, notice)
    assert len(ollama_server.bodies("/api/chat")) == len(written)


def test_an_unsupported_answer_is_replaced_by_quotes(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = ["Paris is in France [1]. Rome was built by wolves."]
    told: list[Sentence] = []
    answer = with_ollama(ANSWER_FORMAT="statements").ask(LONG_AND_LARGE, told.append).answer
    assert IS_LONG in answer.sentences[0].text
    assert (answer.dropped, answer.sentences) == (2, tuple(told))
    assert answer.notice == "The model wrote nothing that the papers support. These sentences are quotes from them."


@pytest.mark.parametrize("style", ["plain", "report"])
@pytest.mark.parametrize("llm", ["builtin", "ollama"])
def test_the_same_question_has_the_same_answer(
    start: Start, ollama_server: OllamaStandIn, llm: str, style: str
) -> None:
    ollama_server.reply = lambda messages: f"Paris is in France [1]. {IS_LONG} [2] {IS_THICK} [1][2]"
    chat = start(LLM=llm, OLLAMA_HOST=ollama_server.url, style=style)
    chat.ask(THICK)  # what a model would add is said with the first answer
    chat.reset()
    first = chat.ask(LENGTH)
    chat.reset()
    second = chat.ask(LENGTH)
    assert not first.answer.refused
    assert (first.answer.sentences, first.hits) == (second.answer.sentences, second.hits)


@pytest.mark.parametrize("llm", ["builtin", "ollama"])
def test_evidence_that_did_not_fit_is_counted(start: Start, ollama_server: OllamaStandIn, llm: str) -> None:
    ollama_server.reply = lambda messages: f"{IS_LONG} [1]"
    reply = start(top_k=4, CONTEXT_TOKENS="256", LLM=llm, OLLAMA_HOST=ollama_server.url).ask(LENGTH)
    given = {hit for evidence in reply.answer.evidence for hit in evidence.hits}
    assert (len(reply.hits), len(given)) == (4, 2)
    assert given == set(reply.hits[:2])
    left_out = "2 passages did not fit into the evidence. Raise CONTEXT_TOKENS to include more."
    assert reply.answer.notice.removesuffix(f" {WITHOUT_MODEL}") == left_out


# Follow-ups and the evidence of earlier turns

HAY = "Snow lies on the roofs until May, cows are driven to high meadows in June, and hay is cut twice in a summer."
WARDEN = "The warden of Blatten reads the old gauge of the Massa, built in 1922 by the people, each Monday before noon."
DECOYS = {
    "gauge": " ".join([WARDEN, *[HAY] * 6]),
    "day": "When was the end of the day, and what was the hour of the night?",
    "when": "When was the was of the when?",
    "dials": "Gauges gauged by gauging gauges.",
    "staffs": "Gauging of gauges, gauged gauging by men.",
}
READS, BUILT = "Which people read the gauge of Blatten every Monday before noon?", "When was the gauge built?"


@pytest.fixture
def decoys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ollama_server: OllamaStandIn) -> Iterator[Chat]:
    """A chat over papers of which two by each search come before the one that answers."""
    monkeypatch.setattr(workers, "run_guarded", read_here)
    monkeypatch.setattr(ModelChoice, "reranker", lambda _: CoverageReranker())
    sizes: dict[str, Any] = {"CHUNK_SIZE": 2000, "CHUNK_OVERLAP": 0, "TOP_K": 2, "TOP_K_CANDIDATES": 2, "LLM": "ollama"}
    # So many dimensions that words which are not alike have nothing in common
    app = hashing_app(tmp_path, HashingEmbedder(4096), OLLAMA_HOST=ollama_server.url, **sizes)
    for name, text in DECOYS.items():
        write_pdf(app.settings.PAPERS_DIR / f"{name}.pdf", [text], f"On {name}")
    app.run()
    with closing(app.open_library()) as library:
        yield app.chat(library, top_k=2)


def files(evidence: Sequence[Evidence]) -> list[str]:
    return [piece.paper.file for piece in evidence]


def test_earlier_evidence_answers_what_the_search_would_miss(decoys: Chat, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = lambda messages: REFUSAL
    assert files(decoys.ask(BUILT).answer.evidence) == ["dials.pdf", "staffs.pdf"]
    decoys.reset()

    said = "The gauge of the Massa was built in 1922 by the people of the valley."
    ollama_server.reply = lambda messages: BUILT if len(messages) == 1 else f"{WARDEN} [1] {said} [1]"
    first = decoys.ask(READS)
    assert files(first.answer.evidence)[0] == "gauge.pdf"
    second = decoys.ask("And when was it built?")
    assert second.answer.standalone_question == BUILT
    assert files(second.answer.evidence)[0] == "gauge.pdf"
    assert ("gauge.pdf", 1, WARDEN) in quoted(second.answer.sentences)
    assert said in second.answer.text

    decoys.reset()
    assert files(decoys.ask(BUILT).answer.evidence) == ["dials.pdf", "staffs.pdf"]  # it is forgotten


@pytest.mark.parametrize("between", range(REMEMBERED_EVIDENCE + 1))
def test_evidence_is_remembered_for_a_few_turns(decoys: Chat, ollama_server: OllamaStandIn, between: int) -> None:
    asked = iter([*["What was the hour of the night?"] * between, BUILT])
    ollama_server.reply = lambda messages: next(asked) if len(messages) == 1 else REFUSAL
    decoys.ask(READS)
    for _ in range(between):
        decoys.ask("And then?")
        decoys._turns[-1] = replace(decoys._turns[-1], evidence=())  # its evidence would be handed on
    # It names its own subject, so the questions before the last are not searched
    found = files(decoys.ask(BUILT.replace("gauge", "Gauge")).answer.evidence)
    assert ("gauge.pdf" in found) is (between < REMEMBERED_EVIDENCE)


def test_the_second_one_is_filled_in_without_a_model(start: Start) -> None:
    chat, diet = start(), "The diet of the sea otter is made of urchins, clams and crabs."
    answer = chat.ask("What is the diet of the sea otter made of?").answer
    assert diet in answer.text
    chat._turns[-1] = replace(chat._turns[-1], sentences=(replace(answer.sentences[0], text=diet, marks=()),))
    second = "Explain the second one."
    answer = chat.ask(second).answer
    assert (answer.question, answer.standalone_question) == (second, "Explain clams.")
    assert searched(chat)[1] == "Explain clams."
    chat.reset()
    assert chat.ask(second).answer.standalone_question == second


def test_a_report_arrives_section_by_section(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    ollama_server.reply = [
        f"## Summary\n- {IS_LONG} [1]\n## Analysis\n### The ice of the Aletsch glacier\n{IS_THICK} [1]"
    ]
    told: list[Sentence] = []
    answer = with_ollama(style="report").ask(LENGTH, told.append).answer
    assert (answer.style, answer.sentences) == ("report", tuple(told))
    sections = [("Summary", IS_LONG), ("Analysis/The ice of the Aletsch glacier", IS_THICK)]
    assert [(str(sentence.section), sentence.text) for sentence in told] == sections


@pytest.mark.parametrize("where", ["rewriting", "answering"])
def test_an_error_leaves_the_conversation_unchanged(
    with_ollama: Start, ollama_server: OllamaStandIn, where: str
) -> None:
    chat = with_ollama()
    chat.ask(LENGTH)
    before = list(chat._turns)

    def removed(messages: list[Json]) -> str:
        del ollama_server.models[LLAMA.name]  # after the question was rewritten: what is left is to answer it
        return THICK

    if where == "rewriting":
        ollama_server.faults.fails = TRIES
    else:
        ollama_server.reply = removed
    with pytest.raises(ModelError):
        chat.ask(TYPED)
    assert chat._turns == before
    ollama_server.models[LLAMA.name] = LLAMA
    ollama_server.reply = lambda messages: THICK if len(messages) == 1 else f"{IS_THICK} [1]"
    reply = chat.ask(TYPED)
    assert reply.answer.text == IS_THICK
    turns = [(turn.question, turn.standalone_question) for turn in chat._turns]
    assert turns == [(LENGTH, LENGTH), (TYPED, THICK)]


def test_a_lost_server_may_return(with_ollama: Start, ollama_server: OllamaStandIn) -> None:
    chat = with_ollama()
    ollama_server.faults.dropped = TRIES
    failed = chat.ask(LENGTH).answer
    assert (failed.model_failed, IS_LONG in failed.sentences[0].text, failed.dropped) == (True, True, 0)
    assert {sentence.outcome for sentence in failed.sentences} == {"quoted"}
    assert "broke off" in failed.notice
    assert failed.notice.endswith(" These sentences are quotes from the papers.")
    ollama_server.reply = [LENGTH, f"{IS_LONG} [1]"]
    answered = chat.ask(LENGTH).answer
    assert (answered.model_failed, answered.text, answered.notice) == (False, IS_LONG, "")


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
@pytest.mark.parametrize("llm", ["builtin", "ollama"])
def test_a_callback_that_raises_stops_only_the_answer(
    start: Start, ollama_server: OllamaStandIn, llm: str, error: type[BaseException]
) -> None:
    def leave(_: object) -> None:
        raise error

    chat = start(LLM=llm, OLLAMA_HOST=ollama_server.url)
    ollama_server.reply = lambda messages: f"{IS_LONG} [1] {IS_THICK} [1]"
    calls: list[dict[str, Any]] = [{"on_sentence": leave}, {"on_hits": leave}]
    for listeners in calls:
        with pytest.raises(error):
            chat.ask(LENGTH, **listeners)
        assert chat._turns == []
    answer = chat.ask(LENGTH).answer
    assert (answer.refused, answer.standalone_question, len(chat._turns)) == (False, LENGTH, 1)


def test_a_reply_is_made_of_plain_values(start: Start) -> None:
    chat, began = start(), perf_counter()
    timings = chat.ask(LENGTH).timings_ms
    assert 0 < timings["answer"] < timings["total"] <= (perf_counter() - began) * 1000
    assert timings["total"] == pytest.approx(timings["retrieve"] + timings["evidence"] + timings["answer"], abs=0.1)
    assert json.loads(json.dumps(timings)) == timings
    assert start().ask(f"{LENGTH} \udcff").answer.question == f"{LENGTH} ?"


# As the log of questions keeps it

ASKED = "2026-01-02T03:04:05+00:00"


def test_the_log_keeps_the_answer_its_evidence_and_its_pages() -> None:
    quotes = [(quote.paper.id, quote.paper.file, quote.page, quote.quote) for quote in ANSWER.citations]
    assert [(file, page) for _, file, page, _ in quotes] == [("alps/ice.pdf", n) for n in (1, 1, 2)] + [("melt.pdf", 1)]
    assert log_entry(Reply(ANSWER, HITS, TIMINGS, 0.75), ASKED, "by hand") == LogEntry(
        asked=ASKED,
        question="How long is the Aletsch glacier?",
        standalone_question="How long is the Aletsch glacier?",
        chunks=(1, 2),
        answer="It is 23 kilometres long and lies in the Alps. Its tongue retreats by 40 metres each year.",
        sources=tuple(LoggedSource(*quote) for quote in quotes),
        timings_ms=TIMINGS,
        model="by hand",
        confidence=0.75,
    )
    entry = log_entry(Reply(REFUSED, HITS, TIMINGS), ASKED, "by hand")
    assert (entry.question, entry.standalone_question) == ("Who painted it?", "Who painted the Aletsch glacier?")
    assert (entry.answer, entry.sources, entry.chunks) == (REFUSAL, (), (1,))


def test_a_reply_has_the_answerers_confidence(start: Start) -> None:
    chat = start()
    reply = chat.ask(LENGTH)
    assert (reply.confidence or 0) >= LEAST_CONFIDENCE
    assert chat.ask("hello").confidence is None  # nothing was searched


@pytest.mark.parametrize(("said", "begins"), [("hello", "Hello."), ("Thanks!", "You are welcome.")])
def test_a_greeting_gets_a_helpful_line_and_no_search(start: Start, said: str, begins: str) -> None:
    chat = start()
    reply = chat.ask(said)
    assert (reply.answer.text[: len(begins)], reply.answer.refused, reply.hits) == (begins, False, ())
    assert searched(chat) == []


def test_questions_about_the_library_are_answered_by_papers(start: Start) -> None:
    chat = start()
    assert chat.ask("How many papers are there?").answer.text == "The library has 2 papers."
    told: list[Sentence] = []
    reply = chat.ask("Who wrote On Sea Otters?", told.append)
    assert reply.answer.sentences == tuple(told)
    assert searched(chat) == []
    answer = start(top_k=1).ask("Which papers deal with the length of glaciers?").answer
    assert [str(sentence.section) for sentence in answer.sentences] == ["From the papers/Ice of the Alps"]
    assert "1 paper is listed. All 2 were ranked" in answer.notice
    assert start().ask("Which papers deal with trains?").answer.refused


@pytest.mark.parametrize("rest", [LENGTH, "Which whisky is best for chess players?"])
def test_what_the_library_knows_stands_beside_what_the_papers_say(start: Start, rest: str) -> None:
    told: list[Sentence] = []
    question = f"Which papers do not mention glaciers? {rest}"
    answer = start().ask(question, told.append).answer
    is_found = rest == LENGTH
    assert answer.sentences == tuple(told)
    assert answer.citations[0].paper.file == "otters.pdf"
    assert {quote.paper.file for quote in answer.citations[1:]} == ({"glaciers.pdf"} if is_found else set())
    assert "Nothing about “glaciers” was found in 1 of 2 papers" in answer.notice
    assert (f"Nothing was found about “{rest[:-1]}”." in answer.notice) is not is_found
    assert answer.missing == (() if is_found else (rest[:-1],))
    assert answer.standalone_question == question


@pytest.mark.parametrize("last", ["who painted it in Kamchatka", "who painted this in Kamchatka"])
def test_what_is_left_beside_the_library_is_named_in_its_own_words(start: Start, last: str) -> None:
    known = "Which papers do not mention glaciers"
    for question in (f"{known}, and {last}?", f"{known}, what length has the Aletsch glacier, and {last}?"):
        answer = start().ask(question).answer
        assert answer.citations[0].paper.file == "otters.pdf"
        assert f"Nothing was found about “{last}”." in answer.notice


def test_a_remark_on_a_paper_stands_beside_what_the_papers_say(start: Start) -> None:
    answer = start().ask(f"How many pages has On Sea Otters? {LENGTH}").answer
    assert "“On Sea Otters” has 2 pages." in answer.notice
    assert {quote.paper.file for quote in answer.citations} == {"glaciers.pdf"}


def test_papers_are_listed_by_what_is_known_of_them_and_what_they_do_not_mention(start: Start) -> None:
    chat = start()
    without = chat.ask("Which papers do not mention glaciers?").answer
    assert {quote.paper.file for quote in without.citations} == {"otters.pdf"}
    assert "Nothing about “glaciers” was found in 1 of 2 papers" in without.notice
    assert chat.ask("how many papers did I add today?").answer.text == "The library has 2 papers " + added_today()
    assert chat.ask("which papers have I read").answer.text == "The library has no papers that you have opened."
    lines = chat.ask("Summarise everything").answer
    assert {quote.paper.file for quote in lines.citations} == {"glaciers.pdf", "otters.pdf"}
    assert lines.notice.endswith("2 papers.")
    assert chat.ask("papers that do not mention glaciers").answer.citations
    assert chat.ask("how many pages does it have").answer.text.startswith("“On Sea Otters” has ")


def added_today() -> str:
    return f"added from {date.today()}."


def test_questions_that_name_papers_or_things(start: Start) -> None:
    chat = start()
    reply = chat.ask("What is On Sea Otters about?")
    assert {hit.paper.file for hit in reply.hits} == {"otters.pdf"}
    assert min(hit.chunk.start for hit in reply.hits) == 0  # its first page
    answer = start().ask("Compare the Aletsch glacier and Hamlet").answer
    assert {quote.paper.file for quote in answer.citations} == {"glaciers.pdf"}
    assert "Nothing was found about Hamlet." in answer.notice
    assert ["Hamlet" in part for part in answer.missing] == [True]
    assert "Aletsch" not in answer.missing[0]
    asked = "How do glaciers differ from otters, and what do sea otters eat, and what length has the Aletsch glacier?"
    assert start().ask(asked).answer.question == asked


def test_a_refusal_names_the_closest_sentence(start: Start) -> None:
    answer = start().ask(THICK).answer
    assert (answer.refused, answer.notice) == (True, f"The closest passage says: “{IS_THICK}” [glaciers.pdf p.2]")
    assert start().ask(SISTINE).answer.notice == ""


def test_the_first_heading_is_never_also(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = start()
    told = chat.ask(LENGTH).answer.sentences
    again = [replace(told[0], section=CLOSEST), replace(told[-1], section=ALSO)]
    monkeypatch.setattr(chat._answerer, "sentences", lambda *_: iter(again))
    monkeypatch.setattr(chat, "_is_repeat", lambda sentence, turn: sentence is again[0])
    assert [str(one.section) for one in chat.ask(LENGTH).answer.sentences] == ["Closest passages"]


def test_a_model_is_offered_once(start: Start) -> None:
    chat = start()
    notices = [chat.ask(question).answer.notice for question in (LENGTH, THICK)]
    chat.reset()
    assert [WITHOUT_MODEL in notice for notice in (*notices, chat.ask(LENGTH).answer.notice)] == [True, False, False]


@pytest.mark.parametrize(
    "question",
    [
        "Sea otters vs the Aletsch glacier - of which diet and of which length is each?",
        "What is the diet of the sea otter compared to the length of the Aletsch glacier?",
        "How do the sea otters and the ice of the alps differ in diet and length?",
    ],
)
def test_each_compared_paper_has_an_excerpt_under_its_name(start: Start, question: str) -> None:
    answer = start(top_k=1).ask(question).answer
    places = {(said.section.subheading, quote.paper.file) for said in answer.sentences for quote in said.citations}
    assert places == {("On Sea Otters", "otters.pdf"), ("Ice of the Alps", "glaciers.pdf")}


def test_it_and_the_authors_are_the_paper_of_the_last_answer(start: Start) -> None:
    chat = start()
    chat.ask(LENGTH)
    for question in (ITS_ICE, "What do the authors say about the gauge?", "limitations?"):
        reply = chat.ask(question)
        assert "Ice of the Alps" in reply.answer.standalone_question
        assert {hit.paper.file for hit in reply.hits} == {"glaciers.pdf"}
        assert [paper.file for paper in reply.papers] == ["glaciers.pdf"]
    assert "Only “Ice of the Alps” was searched" in chat.ask("What diet does it have?").answer.notice


@pytest.mark.parametrize("question", ["what do sea otters eat", "how does a sea otter open shells?"])
def test_a_question_that_stands_alone_is_answered_as_without_a_history(start: Start, question: str) -> None:
    chat, fresh = start(), start()
    chat.ask(LENGTH)
    now, alone = chat.ask(question), fresh.ask(question)
    assert now.answer.standalone_question == question
    assert (now.hits, now.answer.sentences) == (alone.hits, alone.answer.sentences)


def test_requests_about_the_last_answer_and_remarks_are_not_searched(start: Start) -> None:
    chat = start()
    assert chat.ask("shorter").answer.remark == NO_ANSWER
    first = chat.ask(LONG_AND_LARGE).answer
    told: list[Sentence] = []
    count = len(searched(chat))
    again = chat.ask("say that again", told.append).answer
    assert again.sentences == first.sentences == tuple(told)
    assert again.standalone_question == LONG_AND_LARGE
    shorter = chat.ask("make it shorter, please").answer
    assert (shorter.text, shorter.citations[0].quote.split()) == (IS_LONG, IS_LONG.split())
    assert chat.ask("in one sentence").answer.remark == NOT_SHORTER
    for said in ("ok", "that's wrong", "in German, please"):
        assert chat.ask(said).answer.remark == REMARKS[Question(said).type.kind]
    assert len(searched(chat)) == count
    assert "Ice of the Alps" in chat.ask(ITS_ICE).answer.standalone_question  # the conversation goes on


def test_more_sources_are_other_passages_for_the_last_question(start: Start) -> None:
    chat = start()
    first = chat.ask(LENGTH).answer
    found = chat._passages.search_others(first, Question(LENGTH), chat._turns).hits
    quoted = [(quote.paper.id, quote.start, quote.end) for quote in first.citations]
    assert quoted
    assert not any(hit.paper.id == id and hit.span[0] < b and a < hit.span[1] for hit in found for id, a, b in quoted)
    assert chat.ask("more sources").answer.remark == NO_MORE
    chat.ask("list the papers")
    assert chat.ask("more sources").answer.remark == NO_MORE  # the list is not shown again


@pytest.mark.parametrize("asked", ["Evidence", "show me all papers", "references"])
def test_keywords_are_no_request_for_more(start: Start, asked: str) -> None:
    assert start().ask(asked).answer.remark != NO_ANSWER


def test_a_request_about_selected_words_is_no_request_about_the_last_answer(start: Start) -> None:
    chat = start()
    quote = chat.ask(LENGTH).answer.citations[0]
    words = Selected(quote.paper, quote.start, quote.end, quote.quote)
    chat.reset()
    found = chat.ask("find more evidence for this", selected=words)
    assert found.answer.remark != NO_ANSWER
    assert found.hits


def test_a_follow_up_does_not_leave_the_selected_papers(start: Start) -> None:
    chat = start()
    assert {quote.paper.file for quote in chat.ask(LENGTH).answer.citations} == {"glaciers.pdf"}
    otters = [paper for paper in chat._passages.current_papers() if paper.file == "otters.pdf"]
    chat._passages = replace(chat._passages, papers=otters)
    for question in ("What length does it have?", "What is the ice?", "Was sagt glaciers.pdf über die Zunge?"):
        assert {hit.paper.file for hit in chat.ask(question).hits} <= {"otters.pdf"}


def test_a_question_in_another_language_says_so_and_finds_names(start: Start) -> None:
    reply = start().ask("Was sagt glaciers.pdf über die Zunge?")
    assert reply.answer.notice.startswith(IN_ENGLISH)
    assert {hit.paper.file for hit in reply.hits} == {"glaciers.pdf"}
    assert {sentence.section for sentence in reply.answer.sentences} <= {CLOSEST}
    assert start().ask("Wie lang ist der Gletscher?").answer.remark == IN_ENGLISH
    assert start().ask("氷河の長さは何ですか？").answer.remark == IN_ENGLISH


def test_a_long_text_is_understood_by_its_last_question(start: Start) -> None:
    chat = start()
    answer = chat.ask(f"{' '.join(['We studied the ice of many valleys and their rivers.'] * 100)} {LENGTH}").answer
    assert searched(chat) == [LENGTH]
    assert answer.standalone_question == LENGTH
    assert IS_LONG in answer.text


def test_what_the_papers_do_not_answer_is_named(start: Start) -> None:
    painted = "Who painted the ceiling of the Sistine chapel?"
    refused = start().ask(painted).answer
    assert (refused.refused, refused.missing) == (True, (painted,))
    assert start().ask(LENGTH).answer.missing == ()
    assert start().ask("How many papers are there?").answer.missing == ()
    assert start().ask("hello").answer.missing == ()
