"""Questions with gold papers, pages and quotes, as the evaluation reads them from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from folio.errors import UsageError
from folio.evaluate import dataset_formats
from folio.files import no_space, sync

PENDING = "pending"  # the review of a question that a model wrote and no person has read
ALL_NEEDED = "multi"  # the type of a question that needs every paper, unless it says otherwise
# What files of sets are called the world over: one of these names tells less than the folder it lies in.
_ANY_SET = {"dev", "train", "test", "val", "valid", "validation", "eval", "set", "data", "questions", "queries", "qa"}
# Characters of a text's first paragraph that may still be its title.
LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Gold:
    """Where an answer stands: a paper, by file name, and as much as is known of where in it."""

    paper: str  # or the id of a Document
    page: int | None = None  # physical, from 1
    quote: str = ""  # words of the paper
    start: int | None = None  # where the quote begins in the text of its Document, in characters
    part: str = ""  # what of the answer it holds, where two places of one paper are both needed


@dataclass(frozen=True, slots=True)
class Question:
    """A question and where its answer stands."""

    id: str
    text: str
    type: str = ""  # "factual", "number", ...; what a report groups by
    answerable: bool = True
    answer: str = ""
    gold: tuple[Gold, ...] = ()
    every: bool = False  # one gold entry of each paper, or part, is needed, where else any gold entry will do
    history: tuple[str, ...] = ()  # the questions asked before it in the same conversation

    @property
    def needs(self) -> tuple[tuple[Gold, ...], ...]:
        """The things that an answer needs, each as the gold entries of which any will do."""
        groups: dict[str, list[Gold]] = {}
        for gold in self.gold:
            groups.setdefault(gold.part or gold.paper if self.every else "", []).append(gold)
        return tuple(map(tuple, groups.values()))


@dataclass(frozen=True, slots=True)
class Document:
    """A text of a plain text set, which stands where a PDF stands else."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A set of questions, and the texts that they are asked of where these are no PDFs."""

    name: str
    path: Path
    questions: tuple[Question, ...]
    documents: tuple[Document, ...] = ()  # empty: the questions are asked of PDFs
    relevance: dict[str, dict[str, int]] | None = None  # question id -> document id -> grade, where a set has no quotes
    pending: int = 0  # questions that a model wrote and no person has looked at


def load(path: Path, *, split: str = "test") -> EvalSet:
    """The set in a file or folder, in any of the forms of docs/evaluation-set.md; split: of a BEIR folder.

    Raises UsageError for what is not there or is malformed: it names the file, the line and what to do.
    """
    if path.is_dir():
        return _beir(path, split)
    questions: dict[str, Question] = {}
    documents: dict[str, Document] = {}
    pending = conversations = 0
    for line, value in _unpacked(path):
        fields = value if isinstance(value, dict) else {}
        found: Iterable[Question]
        told: list[Document] = []
        if dataset_formats.TURNS in fields:
            conversations += 1
            conversation = dataset_formats.checked(dataset_formats.ConversationForm, value, path, line)
            found = _turns(conversation, conversation.id or f"f{conversations}", path, line)
        elif dataset_formats.PARAGRAPHS in fields:
            found, told = _article(dataset_formats.checked(dataset_formats.ArticleForm, value, path, line), path, line)
        elif dataset_formats.QUESTIONS in fields:
            found, told = _flat(dataset_formats.checked(dataset_formats.FlatForm, value, path, line), path, line)
        else:
            form = dataset_formats.checked(dataset_formats.QuestionForm, value, path, line)
            found = [_question(form, form.id, form.history, path, line)]
            pending += form.review == PENDING
        for question in found:
            _once(questions, question.id, path, line)
            questions[question.id] = question
        for document in told:
            _once(documents, document.id, path, line)
            documents[document.id] = document
    if not questions:
        raise UsageError(f"{path} has no question in it.", f"Put some in; {dataset_formats.FORMAT}.")
    return EvalSet(_name(path), path, tuple(questions.values()), tuple(documents.values()), None, pending)


def _name(path: Path) -> str:
    """The name of a file's set: "covidqa-dev" of covidqa/dev.json, "sample" of benchmarks/sample.jsonl."""
    folder = path.resolve().parent.name
    first = re.split(r"[\W_]+", path.stem.lower())[0]
    return f"{folder}-{path.stem}" if folder and first in _ANY_SET else path.stem


def record(question: Question, review: str = "") -> dict[str, Any]:
    """A question as our format has it; review: PENDING for what no person has read yet."""
    fields: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "type": question.type,
        "answerable": question.answerable,
        "answer": question.answer,
        "gold": [_gold_record(gold) for gold in question.gold],
    }
    if question.every != (question.type == ALL_NEEDED):
        fields["every"] = question.every
    if question.history:
        fields["history"] = list(question.history)
    if review:
        fields["review"] = review
    return fields


def _gold_record(gold: Gold) -> dict[str, Any]:
    fields = {"paper": gold.paper, "page": gold.page, "quote": gold.quote, "part": gold.part}
    return {name: value for name, value in fields.items() if value}


def save(path: Path, questions: Iterable[Question], review: str = "") -> None:
    """Replace a file by these questions in our format, one a line; `load` reads them again. Raises DiskFull."""
    lines = (json.dumps(record(question, review), ensure_ascii=False) for question in questions)
    beside = path.with_name(f"{path.name}.new")
    with no_space(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        sync(beside)
        beside.replace(path)


def _unpacked(path: Path) -> Iterator[tuple[int, Any]]:
    """The entries of a file with their lines; the articles of SQuAD's one object are entries too."""
    for line, value in dataset_formats.entries(path):
        if isinstance(value, dict) and isinstance(value.get("data"), list):
            yield from ((line, article) for article in value["data"])
        else:
            yield line, value


def _question(
    form: dataset_formats.TurnForm, id: str, history: Iterable[str], path: Path, line: int, type: str = ""
) -> Question:
    if form.answerable and not form.gold:
        fault = f"question {id} has no gold entry, and does not say that it is not answerable"
        raise dataset_formats.malformed(path, line, fault)
    if form.gold and not form.answerable:
        raise dataset_formats.malformed(path, line, f"question {id} is said to be not answerable and has gold entries")
    every = form.type == ALL_NEEDED if form.every is None else form.every
    gold = tuple(Gold(g.paper, g.page, (g.quote or "").strip(), None, g.part) for g in form.gold)
    answer = (form.answer or "").strip()
    return Question(id, form.question, form.type or type, form.answerable, answer, gold, every, tuple(history))


def _turns(form: dataset_formats.ConversationForm, id: str, path: Path, line: int) -> Iterator[Question]:
    """Every turn but the first, which needs no other."""
    asked: list[str] = []
    for number, turn in enumerate(form.turns, 1):
        if asked:
            yield _question(turn, f"{id}.{number}", asked, path, line, "followup")
        asked.append(turn.question)


def _article(form: dataset_formats.ArticleForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
    questions, documents = [], []
    for number, context in enumerate(form.paragraphs, 1):
        name = form.title or f"line {line}"
        document = Document(context.document_id or f"{name} {number}", form.title, context.context)
        documents.append(document)
        for asked in context.qas:
            spans = [] if asked.is_impossible else [(span.text, span.answer_start) for span in asked.answers]
            questions.append(_spanned(asked, spans, document, path, line))
    return questions, documents


def _flat(form: dataset_formats.FlatForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
    first, _, rest = form.text.partition("\n\n")
    title = form.title or (" ".join(first.split()) if rest and len(first) <= LONGEST_TITLE else "")
    document = Document(form.document, title, form.text)
    questions = []
    for asked in form.questions:
        given = bool(asked.answer.strip()) and not asked.is_impossible
        spans = [(asked.answer, asked.start or 0)] if given else []
        questions.append(_spanned(asked, spans, document, path, line))
    return questions, [document]


def _spanned(
    asked: dataset_formats.AskedForm | dataset_formats.FlatAskedForm,
    spans: Iterable[tuple[str, int]],
    document: Document,
    path: Path,
    line: int,
) -> Question:
    """A question whose gold are spans of a document. A start that is off is set right by the nearest such words."""
    gold = []
    for given, start in spans:
        words = given.strip()
        found = _nearest(document.text, words, start)
        if found is None:
            fault = f"the answer of question {asked.id} does not stand in document {document.id}"
            raise dataset_formats.malformed(path, line, fault)
        gold.append(Gold(document.id, None, words, found))
    if not gold and not asked.is_impossible:
        fault = f"question {asked.id} has no answer, and does not say that it is_impossible"
        raise dataset_formats.malformed(path, line, fault)
    answer = gold[0].quote if gold else ""
    return Question(asked.id, asked.question, "", bool(gold), answer, tuple(dict.fromkeys(gold)))


def _nearest(text: str, words: str, start: int) -> int | None:
    """Where these words stand in a text, as near to `start` as they do."""
    before = text.rfind(words, 0, start + len(words))
    after = text.find(words, start)
    found = [at for at in (before, after) if at >= 0]
    return min(found, key=lambda at: abs(at - start)) if found else None


def _beir(folder: Path, split: str) -> EvalSet:
    relevance: dict[str, dict[str, int]] = {}
    for _, judged in dataset_formats.judgements(folder, split):
        relevance.setdefault(judged.query, {})[judged.document] = judged.grade
    documents: dict[str, Document] = {}
    for line, text in dataset_formats.listed(dataset_formats.CorpusForm, folder / dataset_formats.CORPUS):
        _once(documents, text.id, folder / dataset_formats.CORPUS, line)
        documents[text.id] = Document(text.id, (text.title or "").strip(), text.text)
    questions: dict[str, Question] = {}
    for line, query in dataset_formats.listed(dataset_formats.QueryForm, folder / dataset_formats.QUERIES):
        _once(questions, query.id, folder / dataset_formats.QUERIES, line)
        questions[query.id] = Question(query.id, query.text)
    unknown = [query for query in relevance if query not in questions]
    if unknown or not relevance:
        judged_of = f"query {unknown[0]}, which {dataset_formats.QUERIES} does not have" if unknown else "no query"
        raise UsageError(f"The split {split} of {folder} has judgements of {judged_of}.", "Get both from one source.")
    asked = tuple(question for id, question in questions.items() if id in relevance)
    return EvalSet(folder.resolve().name, folder, asked, tuple(documents.values()), relevance)


def _once(seen: Container[str], id: str, path: Path, line: int) -> None:
    if id in seen:
        raise dataset_formats.malformed(path, line, f"the id {id} is used a second time")
