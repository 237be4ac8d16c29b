from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from folio.answer_types import REFUSAL
from folio.errors import UsageError
from folio.evaluate import dataset
from folio.evaluate.dataset import Document, EvalSet, Gold, Question, questions_from_log
from folio.store.query_log import LogEntry, LoggedSource
from tests.helpers.paths import ROOT, SAMPLE

pytestmark = pytest.mark.fast

SHARED = ROOT.parent / "shared"
SMALL = ROOT / "benchmarks" / "sample.jsonl"

OTTERS = {"paper": "otters.pdf", "page": 2, "quote": "urchins, clams and crabs"}
ICE = {"paper": "ice.pdf", "page": 1, "quote": "a length of 23 kilometres"}
DIET = {"id": "q1", "question": "What do otters eat?", "type": "factual", "answer": "urchins", "gold": [OTTERS]}


def written(path: Path, *values: Any) -> Path:
    """A file with a JSON value on each line."""
    path.write_text("".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in values), encoding="utf-8")
    return path


def beir(folder: Path, corpus: list[Any], queries: list[Any], qrels: str) -> Path:
    (folder / "qrels").mkdir(parents=True)
    written(folder / "corpus.jsonl", *corpus)
    written(folder / "queries.jsonl", *queries)
    (folder / "qrels" / "test.tsv").write_text(qrels)
    return folder


def shared(name: str) -> EvalSet:
    if not (SHARED / name).exists():
        pytest.skip(f"the set ../shared/{name} is not here")
    return dataset.load(SHARED / name)


def fold(text: str) -> str:
    """Letters and digits alone: without hyphens at the ends of lines, ligatures and capitals."""
    whole = re.sub(r"-\s*\n\s*", "", unicodedata.normalize("NFKC", text))
    return re.sub(r"[\W_]+", "", whole.lower())


# Our own format


def test_a_question_a_line(tmp_path: Path) -> None:
    unknown = {"id": 2, "question": " What do seals eat? ", "answerable": False, "note": "a field of its own"}
    loaded = dataset.load(written(tmp_path / "dev.jsonl", DIET, unknown))
    diet = Question(
        "q1", "What do otters eat?", "factual", True, "urchins", (Gold("otters.pdf", 2, "urchins, clams and crabs"),)
    )
    seals = Question("2", "What do seals eat?", "", False)
    assert loaded == EvalSet(f"{tmp_path.name}-dev", tmp_path / "dev.jsonl", (diet, seals))


def test_a_set_is_called_by_its_file_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        "covidqa/dev.json": "covidqa-dev",
        "questions/dev.jsonl": "questions-dev",
        "questions/dev_followups.json": "questions-dev_followups",
        "squad/Train-v2.0.json": "squad-Train-v2.0",
        "mine/questions.jsonl": "mine-questions",
        "benchmarks/sample.jsonl": "sample",
        "papers/devices.jsonl": "devices",
    }
    for file, name in names.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        assert dataset.load(written(tmp_path / file, DIET)).name == name
    monkeypatch.chdir(tmp_path / "covidqa")
    assert dataset.load(Path("dev.json")).name == "covidqa-dev"


def test_an_array_is_read_as_a_question_a_line(tmp_path: Path) -> None:
    rows = [DIET, {**DIET, "id": "q2"}]
    array = tmp_path / "array.json"
    array.write_text("\ufeff" + json.dumps(rows, indent=2), encoding="utf-8")
    assert dataset.load(array).questions == dataset.load(written(tmp_path / "lines.jsonl", *rows)).questions


def test_page_and_quote_are_optional(tmp_path: Path) -> None:
    gold = [{"paper": "otters.pdf"}, {"paper": "ice.pdf", "page": None, "quote": None}]
    (question,) = dataset.load(written(tmp_path / "a.jsonl", {**DIET, "gold": gold})).questions
    assert question.gold == (Gold("otters.pdf"), Gold("ice.pdf"))


def test_every_gold_paper_may_be_needed(tmp_path: Path) -> None:
    multi = {"type": "multi"}
    for more, every in (({}, False), (multi, True), ({"every": True}, True), ({**multi, "every": False}, False)):
        entry = {**DIET, "gold": [OTTERS, ICE], **more}
        (question,) = dataset.load(written(tmp_path / "a.jsonl", entry)).questions
        assert question.every == every


def test_what_a_question_needs() -> None:
    one, two, three = Gold("a.pdf", 1), Gold("a.pdf", 2), Gold("b.pdf", 3)
    left, right = Gold("a.pdf", 1, part="left"), Gold("a.pdf", 2, part="right")
    assert Question("q", "?").gold_groups == ()
    assert Question("q", "?", gold=(one, three, two)).gold_groups == ((one, three, two),)
    assert Question("q", "?", gold=(one, three, two), every=True).gold_groups == ((one, two), (three,))
    assert Question("q", "?", gold=(left, right), every=True).gold_groups == ((left,), (right,))


def test_history_and_review(tmp_path: Path) -> None:
    rows = [
        {**DIET, "history": ["What is an otter?"], "review": "pending"},
        {**DIET, "id": "q2", "review": "done"},
        {**DIET, "id": "q3", "review": "pending"},
    ]
    loaded = dataset.load(written(tmp_path / "a.jsonl", *rows))
    assert loaded.questions[0].history == ("What is an otter?",)
    assert loaded.pending == 2


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    questions = (
        Question("a", "Wie groß?", "synthesis", True, "23", (Gold("x.pdf", 1, "q q", part="1"), Gold("x.pdf")), True),
        Question("b", "And then?", "followup", True, "", (Gold("y.pdf", 3),), history=("Before?",)),
        Question("c", "Never?", answerable=False),
        Question("d", "Any?", "multi", gold=(Gold("x.pdf"), Gold("y.pdf"))),
        Question("e", "Both?", "multi", gold=(Gold("x.pdf"), Gold("y.pdf")), every=True),
    )
    path = tmp_path / "sets" / "mine.jsonl"
    dataset.save(path, questions, dataset.PENDING)
    assert dataset.load(path) == EvalSet("mine", path, questions, pending=5)
    assert [file.name for file in path.parent.iterdir()] == ["mine.jsonl"]
    dataset.save(path, questions)
    assert dataset.load(path).pending == 0
    assert "groß" in path.read_text(encoding="utf-8")


# Conversations


def test_each_later_turn_is_a_question_with_its_history(tmp_path: Path) -> None:
    turns = [
        {"question": "What do otters eat?", "gold": [OTTERS]},
        {"question": "And seals?", "answerable": False},
        {"question": "How long is it?", "gold": [ICE], "answer": "23 km", "type": "number"},
    ]
    loaded = dataset.load(written(tmp_path / "a.json", [{"turns": turns}, {"id": "talk", "turns": turns[:2]}]))
    first = "What do otters eat?"
    ice = (Gold("ice.pdf", 1, "a length of 23 kilometres"),)
    assert loaded.questions == (
        Question("f1.2", "And seals?", "followup", False, history=(first,)),
        Question("f1.3", "How long is it?", "number", True, "23 km", ice, history=(first, "And seals?")),
        Question("talk.2", "And seals?", "followup", False, history=(first,)),
    )


# Texts with spans


def test_squad(tmp_path: Path) -> None:
    context = " Otters eat urchins. Seals eat fish."
    asked = [
        {"id": "1", "question": "Eat?", "answers": [{"text": "urchins", "answer_start": 12}] * 2},
        {"id": "2", "question": "Fly?", "answers": [], "is_impossible": True, "plausible_answers": []},
    ]
    paragraphs = [{"context": context, "qas": asked}, {"context": "More.", "document_id": 7, "qas": []}]
    data = {"version": "v2.0", "data": [{"title": "Sea", "paragraphs": paragraphs}]}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(data, indent=1))
    assert dataset.load(path) == EvalSet(
        "squad",
        path,
        (
            Question("1", "Eat?", "", True, "urchins", (Gold("Sea 1", None, "urchins", 12),)),
            Question("2", "Fly?", "", False),
        ),
        (Document("Sea 1", "Sea", context), Document("7", "Sea", "More.")),
    )


def test_texts_with_one_answer_a_question(tmp_path: Path) -> None:
    text = "On Otters\n\nOtters eat urchins. Seals do not eat urchins."
    asked = [
        {"id": 1, "question": "Eat?", "answer": " urchins", "start": text.rindex("urchins")},  # off by the space
        {"id": 2, "question": "Fly?", "is_impossible": True, "answer": "", "start": 0},
    ]
    path = written(tmp_path / "flat.json", [{"document": 15, "text": text, "questions": asked}])
    loaded = dataset.load(path)
    gold = Gold("15", None, "urchins", text.rindex("urchins"))
    assert loaded.documents == (Document("15", "On Otters", text),)
    assert loaded.questions == (Question("1", "Eat?", "", True, "urchins", (gold,)), Question("2", "Fly?", "", False))


# BEIR


CORPUS = [{"_id": 1, "title": "Otters", "text": "They eat urchins."}, {"_id": "2", "text": "Ice."}]
QUERIES = [{"_id": "a", "text": "otters"}, {"_id": "b", "text": "seals", "metadata": {}}, {"_id": "c", "text": "ice"}]


def test_beir_has_the_queries_that_are_judged_in_the_split(tmp_path: Path) -> None:
    folder = beir(tmp_path / "sea", CORPUS, QUERIES, "query-id\tcorpus-id\tscore\nc\t2\t2\nc\t1\t0\na\t1\t1\n")
    assert dataset.load(folder) == EvalSet(
        "sea",
        folder,
        (Question("a", "otters"), Question("c", "ice")),
        (Document("1", "Otters", "They eat urchins."), Document("2", "", "Ice.")),
        {"c": {"2": 2, "1": 0}, "a": {"1": 1}},
    )
    (folder / "qrels" / "train.tsv").write_text("b\t1\t1\n")
    assert [question.id for question in dataset.load(folder, split="train").questions] == ["b"]


# What is malformed


NO_GOLD = {"id": "q2", "question": "And?"}
GOOD = json.dumps(DIET)


@pytest.mark.parametrize(
    ("content", "line", "fault"),
    [
        (f"{GOOD}\n{{'id': 1}}\n", 2, "invalid JSON"),
        (f'{GOOD}\n\n{{"id": "q2", "question": "And?",\n "gold": [}}\n', 4, "invalid JSON"),
        (f"[\n{GOOD}\n", 3, "the array at its start is not closed"),
        (f"{GOOD}\n7\n", 2, "question 2 is not an object with a question and its papers"),
        (f"{GOOD}\n{json.dumps({'question': 'And?'})}", 2, "id: field required"),
        (f"{GOOD}\n{json.dumps({**DIET, 'id': 'x', 'question': ' '})}", 2, "question: string should have at least 1"),
        (f"{GOOD}\n{json.dumps({**DIET, 'id': 'x', 'gold': [{'page': 1}]})}", 2, "gold.0.paper: field required"),
        (f"[{GOOD},\n{json.dumps({**DIET, 'gold': [{**OTTERS, 'page': 0}]})}]", 2, "gold.0.page: input should be gre"),
        (f"{GOOD}\n{json.dumps(NO_GOLD)}", 2, "question q2 has no gold entry and is not marked as unansw"),
        (json.dumps({**DIET, "answerable": False}), 1, "question q1 is marked as unanswerable but has gold entr"),
        (f"{GOOD}\n{GOOD}\n", 2, "the id q1 is used twice"),
        (f"{GOOD}\n" + '{"id": "x", "question": "\\ud800?", "answerable": false}', 2, "question: input should be a"),
        (json.dumps({"turns": [{"question": "Alone?", "gold": [OTTERS]}]}), 1, "turns: list should have at least 2"),
        (json.dumps({"document": 1, "text": "Ice.", "questions": [{"id": 1, "question": "?", "answer": "Fire"}]}), 1,
         "the answer of question 1 is not in document 1"),
        (json.dumps({"document": 1, "text": "Ice.", "questions": [{"id": 1, "question": "?"}]}), 1,
         "question 1 has no answer and is not marked is_impossible"),
        (json.dumps({"data": [{"paragraphs": [{"qas": []}]}]}), 1, "paragraphs.0.context: field required"),
        ("[" * 200_000, 1, "it is nested too deeply"),
    ],
)  # fmt: skip
def test_a_malformed_set_is_told_by_file_and_line(tmp_path: Path, content: str, line: int, fault: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UsageError) as raised:
        dataset.load(path)
    assert raised.value.happened.startswith(f"{path}, line {line}: {fault}")
    assert raised.value.remedy == "Correct this line; docs/evaluation-set.md shows the format."


def test_a_set_that_is_missing_empty_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl cannot be read: No such file"):
        dataset.load(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UsageError, match=r"empty\.jsonl has no questions"):
        dataset.load(tmp_path / "empty.jsonl")
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\xff")
    with pytest.raises(UsageError, match=r"picture\.json is not UTF-8 text"):
        dataset.load(tmp_path / "picture.json")


def test_a_beir_folder_that_does_not_fit_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no judgements for the split test") as raised:
        dataset.load(tmp_path)
    assert raised.value.remedy.startswith("A folder must be a BEIR set, with corpus.jsonl, queries.jsonl and qrels/")
    folder = beir(tmp_path / "sea", CORPUS, QUERIES, "a\t1\t1\n")
    with pytest.raises(UsageError) as raised:
        dataset.load(folder, split="dev")
    assert raised.value.remedy == "Choose one of its splits: test."
    for qrels, fault in [
        ("a\t1\n", "test.tsv, line 1: it has 2 fields, not query, document and grade"),
        ("query-id\tcorpus-id\tscore\na\t1\tgood\n", "test.tsv, line 2: grade: input should be a valid integer"),
        ("z\t1\t1\n", "judges query z, which is not in queries.jsonl"),
        ("\n", "judges no query"),
    ]:
        (folder / "qrels" / "test.tsv").write_text(qrels)
        with pytest.raises(UsageError, match=re.escape(fault)):
            dataset.load(folder)
    (folder / "qrels" / "test.tsv").write_text("a\t1\t1\n")
    written(folder / "corpus.jsonl", *CORPUS, CORPUS[0])
    with pytest.raises(UsageError, match=r"corpus\.jsonl, line 3: the id 1 is used twice"):
        dataset.load(folder)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(UsageError, match=r"corpus\.jsonl cannot be read"):
        dataset.load(folder)


# The set that ships


def test_the_small_set_asks_in_many_ways() -> None:
    loaded = dataset.load(SMALL)
    answerable = [question for question in loaded.questions if question.answerable]
    assert (len(answerable), len(loaded.questions) - len(answerable)) == (12, 4)
    assert len({question.type for question in answerable}) >= 7
    assert [question.id for question in answerable if question.history] == ["s12"]
    assert [len(question.gold_groups) for question in answerable if question.every] == [2]


def test_every_quote_of_the_small_set_stands_on_its_page() -> None:
    with pymupdf.open(SAMPLE) as paper:
        pages = [fold(page.get_text()) for page in paper]
    for question in dataset.load(SMALL).questions:
        for gold in question.gold:
            assert gold.paper == SAMPLE.name
            assert gold.page is not None
            assert len(fold(gold.quote)) >= 20
            assert fold(gold.quote) in pages[gold.page - 1], question.id


# Real sets


def test_the_questions_on_real_papers() -> None:
    loaded = shared("questions/dev.jsonl")
    assert len(loaded.questions) == 125
    assert sum(question.answerable for question in loaded.questions) == 100
    assert {question.id: len(question.gold_groups) for question in loaded.questions if question.every} == {
        "d096": 2, "d097": 2, "d098": 2, "d099": 1, "d100": 2,
    }  # fmt: skip


def test_the_conversations_on_real_papers() -> None:
    loaded = shared("questions/dev_followups.json")
    assert [question.id for question in loaded.questions] == [f"f{number}.2" for number in range(1, 11)]
    assert loaded.questions[0].text == "And from how many countries did they come?"
    assert loaded.questions[0].history == ("How many interactive students followed Neuromatch Academy in 2021?",)


def test_the_spans_in_biomedical_texts() -> None:
    loaded = shared("covidqa/dev.json")
    assert (len(loaded.questions), len(loaded.documents)) == (778, 54)
    texts = {document.id: document.text for document in loaded.documents}
    golds = [gold for question in loaded.questions for gold in question.gold]
    assert len(golds) == 778
    assert all(texts[gold.paper].startswith(gold.quote, gold.start) for gold in golds)
    assert sum(bool(document.title) for document in loaded.documents) == 52


@pytest.mark.parametrize(("name", "documents", "queries", "judged"), [("scifact", 5183, 300, 339),
                                                                      ("cranfield", 1400, 225, 1837)])  # fmt: skip
def test_the_judged_collections(name: str, documents: int, queries: int, judged: int) -> None:
    loaded = shared(f"textqrels/{name}")
    assert (loaded.name, len(loaded.documents), len(loaded.questions)) == (name, documents, queries)
    assert loaded.relevance is not None
    assert sum(map(len, loaded.relevance.values())) == judged
    assert set(loaded.relevance) == {question.id for question in loaded.questions}


# Sets from rated answers of the log


FILES = {"a" * 64: "alps/renamed.pdf"}
QUOTE = "The glacier is 23 km long."
RATED_GOOD = LogEntry(
    asked="2026-01-02T03:04:05+00:00",
    question="And how long is it?",
    standalone_question="How long is the Aletsch glacier?",
    chunks=(1,),
    answer=QUOTE,
    sources=(LoggedSource("a" * 64, "alps/glaciers.pdf", 3, QUOTE),),
    timings_ms={},
    model="extractive",
    feedback="good",
)
RATED_REFUSAL = replace(RATED_GOOD, standalone_question="Who lent the money?", answer=REFUSAL, sources=())


def test_good_answers_become_gold_and_good_refusals_unanswerable() -> None:
    made = questions_from_log([(8, RATED_REFUSAL), (3, RATED_GOOD)], FILES)
    assert made.questions == (
        Question(
            "q3", "How long is the Aletsch glacier?", "logged", True, QUOTE, (Gold("alps/renamed.pdf", 3, QUOTE),)
        ),
        Question("q8", "Who lent the money?", "logged", answerable=False),
    )
    assert (made.bad, made.without_gold) == ((), ())


def test_unrated_answers_are_left_out_and_named() -> None:
    def asks(question: str, **others: object) -> LogEntry:
        return replace(RATED_GOOD, standalone_question=question, **others)  # type: ignore[arg-type]

    gone = LoggedSource("b" * 64, "gone.pdf", 1, QUOTE)
    entries = [
        (9, asks("Not rated?", feedback="")),
        (7, asks("Bad?", feedback="bad")),
        (6, asks("Refused wrongly?", feedback="bad", answer=REFUSAL, sources=())),
        (5, asks("How many papers are there?", answer="Two.", sources=())),
        (4, asks("Of a paper that is gone?", sources=(gone,))),
        (2, asks("Of two papers?", sources=(gone, *RATED_GOOD.sources))),
    ]
    made = questions_from_log(entries, FILES)
    assert [(question.id, len(question.gold)) for question in made.questions] == [("q2", 1)]
    assert (made.bad, made.without_gold) == ((7, 6), (5, 4))


def test_the_newest_rating_of_a_question_counts() -> None:
    again = replace(RATED_GOOD, standalone_question="how long is the aletsch glacier", feedback="bad")
    unrated = replace(again, feedback="")
    assert questions_from_log([(9, unrated), (5, again), (3, RATED_GOOD)], FILES).bad == (5,)
    made = questions_from_log([(9, unrated), (5, RATED_GOOD), (3, again)], FILES)
    assert ([question.id for question in made.questions], made.bad) == (["q5"], ())
