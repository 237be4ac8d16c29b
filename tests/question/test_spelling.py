"""Spelling: words that the index does not have are corrected; names and identifiers are not."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from folio.answer.chat import Chat
from folio.answer.extractive import WITHOUT_MODEL, ExtractiveAnswerer
from folio.question.question import Question
from folio.question.spelling import Respelling, respelled
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever
from folio.system import workers
from folio.text import tokenize
from tests.helpers.factories import write_pdf
from tests.helpers.fakes import WordReader, hashing_app, read_here

pytestmark = pytest.mark.fast

TEXT = (
    "The Google File System stores chunks. Google runs the file system. A consensus algorithm elects a leader, and"
    " simulations of the architecture measure its performance. Simulations were measured. Transformers translate."
    " Vaswani trained transformers. Raft is a consensus algorithm by Ongaro; simulators trust the architecture."
    " Resaliente is a name."
    " RoBERTa is a transformer, Herbivore hides its users. They consider a collection of a million slides in order."
)
TIMES = {"vaswani": 9, "googl": 20}  # in how many passages; other words are in three
VOCABULARY = {"doesn": 9} | {
    token: TIMES.get(token, 3) for token in tokenize(TEXT) if token.isalpha() and len(token) > 3
}
ENGLISH = {"system", "salient", "trusty"}


def put_right(question: str) -> Respelling:
    return respelled(
        question,
        lambda token: token in Counter(tokenize(TEXT)),
        lambda word: word in ENGLISH,
        lambda: VOCABULARY,
        lambda stems: {stem: [TEXT, "It doesn't."] for stem in stems},
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gogle file systm", "Google file system"), ("Gogle file systm?", "Google file system?"),
        ("how is perfomance measurd?", "how is performance measured?"),
        ("What are simulatios of the architecure?", "What are simulations of the architecture?"),  # by their stems
        ("can I trsut it", "can I trust it"), ("concensus algoritm", "consensus algorithm"),
        ("What did Vaswanni train?", "What did Vaswani train?"),  # a frequent word
        # Names with capitals inside; a name that has the stem of what was typed
        ("how is robrta trained", "how is RoBERTa trained"), ("what is herbivor", "what is Herbivore"),
    ],
)  # fmt: skip
def test_misspelt_words_are_corrected(typed: str, meant: str) -> None:
    assert put_right(typed).question == meant


@pytest.mark.parametrize(
    "question",
    [
        "What is the Google file system?",
        "What is a trusty leader?",  # an English word that no paper has
        "what is resalient",  # an English word behind a prefix
        "Collider bias",  # two letters off "consider", and its letters stand so in other words
        "two Herbivores",
        "what doesnt the leader trust",  # "doesn't", of which a paper's words have "doesn"
        "Who is Ongara?",  # a name, close to a word that is not frequent
        "What is RAFTS or GOGLE?",  # acronyms
        "What is RoBERTa or GoogLe?",
        "Is gogle2 or gogle-fs or gogle.com or 10.1145/gogle known?", 'What is "gogle file systm"?',
        "What is “gogle” or 'gogle' or `gogle`?",
        "rafd or filw",  # too short: close to too much
        "Where is the fritz?",  # nothing is close
        "Does goofle or leaker work?",  # in a short word no letter is another one
        "Ist das Größenordnungen systém?", "", "?", "\ud800 \x00",
    ],
)  # fmt: skip
def test_unchanged_words(question: str) -> None:
    assert put_right(question) == Respelling(question)
    assert put_right(question).note == ""


def test_the_note_has_the_words_around(tmp_path: Path) -> None:
    found = put_right("Say what is the gogle file systm please")
    assert (found.typed, found.meant) == ("gogle file systm", "Google file system")
    assert found.note == "Searched for “Google file system” as well as “gogle file systm”."


def test_a_vocabulary_is_read_for_a_few_unknown_words() -> None:
    def unwanted() -> dict[str, int]:
        raise AssertionError("the vocabulary was read")

    known = respelled("the google file system", lambda token: True, lambda word: False, unwanted, lambda stems: {})
    assert known.typed == ""
    assert put_right(" ".join(["gogle"] * 50)).question == " ".join(["Google"] * 8 + ["gogle"] * 42)


@pytest.mark.parametrize("engine", ["tantivy", "rank_bm25"])
def test_a_search_and_a_chat_understand_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(workers, "run_guarded", read_here)
    app = hashing_app(tmp_path, CHUNK_SIZE=400, CHUNK_OVERLAP=0, LEXICAL=engine)
    for name, text in {
        "ice": "The Aletsch glacier is 23 kilometres long and ends above Blatten.",
        "flow": "The glacier moves by 200 metres each year, measured at a stake.",
        "bees": "Bees dance in order to tell where flowers are.",
    }.items():
        write_pdf(app.settings.PAPERS_DIR / f"{name}.pdf", [text])
    app.run()
    with closing(app.open_library()) as library:
        retriever = Retriever(
            library, lambda: app.open_indexes(library), app.hashing, None, FusionSettings(0.7, 0.3, 9)
        )
        spelt = retriever.respelled("how long is the glacer?")
        assert spelt == Respelling("how long is the glacier?", "glacer", "glacier")
        app.hashing.queries.clear()
        found = retriever.search(Question(spelt.question, "how long is the glacer?"), 1)
        assert app.hashing.queries == ["how long is the glacier?", "how long is the glacer?"]
        assert [hit.paper.file for hit in found.hits] == ["ice.pdf"]
        assert all(hit.lexical for hit in found.hits)
        extractive = ExtractiveAnswerer(app.hashing, WordReader(), retriever.term_weights, evidence_tokens=2000)
        chat, typed = Chat(retriever, extractive, top_k=2), "how many kilometres long is the glacer?"
        answer = chat.ask(typed).answer
        assert (answer.question, answer.standalone_question) == (typed, typed)  # a correction is one more reading
        assert answer.notice == f"Searched for “glacier” as well as “glacer”. {WITHOUT_MODEL}"
        assert chat.ask("how many metres does the glacier move each year?").answer.notice == ""
