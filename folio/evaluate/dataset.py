"""Evaluation sets: questions with gold papers, pages and quotes, read from a file or folder."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from folio.errors import UsageError
from folio.evaluate import conversation_set, dataset_formats, expected_papers
from folio.evaluate.conversation_set import Rewrite
from folio.files import no_space, sync
from folio.text import one_line

PENDING = "pending"  # the review state of a question that a model wrote and nobody has reviewed
ALL_NEEDED = "multi"  # the type of a question that needs all its gold papers, unless `every` says otherwise
# Common file names of evaluation sets, which are less specific than the name of their folder.
_ANY_SET = {"dev", "train", "test", "val", "valid", "validation", "eval", "set", "data", "questions", "queries", "qa"}
# A first paragraph of at most this many characters is taken as the title.
LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Gold:
    """The place of an answer: a paper, and the position within it as far as it is known."""

    paper: str  # its file name, or the id of a Document; in a set by name, any name (paper_lookup.py)
    page: int | None = None  # physical, from 1
    quote: str = ""  # verbatim from the paper
    start: int | None = None  # offset of the quote in the text of its Document, in characters
    part: str = ""  # the part of the answer that it has, if two places in one paper are both needed


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the places of its answer."""

    id: str
    text: str
    type: str = ""  # "factual", "number", ...; reports group by it
    answerable: bool = True
    answer: str = ""
    gold: tuple[Gold, ...] = ()
    every: bool = False  # one gold entry per paper or part is needed, instead of any one
    history: tuple[str, ...] = ()  # the earlier questions of the same conversation

    @property
    def gold_groups(self) -> tuple[tuple[Gold, ...], ...]:
        """What an answer needs: one gold entry from each of these groups."""
        groups: dict[str, list[Gold]] = {}
        for gold in self.gold:
            groups.setdefault(gold.part or gold.paper if self.every else "", []).append(gold)
        return tuple(map(tuple, groups.values()))


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a plain text set, in place of a PDF."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A set of questions, and the documents they are about unless these are PDFs."""

    name: str
    path: Path
    questions: tuple[Question, ...]
    documents: tuple[Document, ...] = ()  # empty if the questions are about PDFs
    relevance: dict[str, dict[str, int]] | None = None  # question id -> document id -> grade, in a BEIR set
    pending: int = 0  # questions written by a model and not yet reviewed
    rewrites: tuple[Rewrite, ...] = ()  # follow-ups that people rewrote, in a set of conversations
    is_by_name: bool = False  # some papers have other names than their files: paper_lookup.resolved
    unknown: tuple[str, ...] = ()  # names of papers that the library does not have
    left_out: int = 0  # questions none of whose papers the library has


def load(path: Path, *, split: str = "test") -> EvalSet:
    """Load a set from a file or folder, in any format of docs/evaluation-set.md. split: the split of a BEIR folder.

    Raises UsageError if it is missing or malformed, naming the file, the line and the remedy.
    """
    if path.is_dir():
        return _conversations(path) if conversation_set.is_conversations(path) else _beir(path, split)
    questions: dict[str, Question] = {}
    documents: dict[str, Document] = {}
    pending = conversations = 0
    is_by_name = is_own = False
    dataset_formats.require_readable(path)
    for number, (line, value) in enumerate(_entries(path), 1):
        if not isinstance(value, dict):
            fault = f"question {number} is not an object with a question and its papers"
            raise dataset_formats.malformed(path, line, fault)
        fields = value
        new_questions: Iterable[Question]
        texts: list[Document] = []
        if dataset_formats.TURNS in fields:
            conversations += 1
            conversation = dataset_formats.validated(dataset_formats.ConversationForm, value, path, line)
            new_questions = _conversation_questions(conversation, conversation.id or f"f{conversations}", path, line)
        elif dataset_formats.PARAGRAPHS in fields:
            article = dataset_formats.validated(dataset_formats.ArticleForm, value, path, line)
            new_questions, texts = _article(article, path, line)
        elif dataset_formats.QUESTIONS in fields:
            new_questions, texts = _flat(
                dataset_formats.validated(dataset_formats.FlatForm, value, path, line), path, line
            )
        elif expected_papers.is_expected(fields, among_own=is_own):
            new_questions, is_by_name = [_expected(fields, number, path, line)], True
        else:
            form = dataset_formats.validated(dataset_formats.QuestionForm, value, path, line)
            new_questions = [_question(form, form.id, form.history, path, line)]
            pending += form.review == PENDING
            is_own = True
        for question in new_questions:
            _require_unique(questions, question.id, path, line)
            questions[question.id] = question
        for document in texts:
            _require_unique(documents, document.id, path, line)
            documents[document.id] = document
    if not questions:
        raise UsageError(f"{path} has no questions.", f"Add some; {dataset_formats.FORMAT}.")
    evalset = EvalSet(_name(path), path, tuple(questions.values()), tuple(documents.values()), None, pending)
    return replace(evalset, is_by_name=is_by_name)


def _name(path: Path) -> str:
    """A set's name: "covidqa-dev" for covidqa/dev.json, "sample" for benchmarks/sample.jsonl."""
    folder = path.resolve().parent.name
    first = re.split(r"[\W_]+", path.stem.lower())[0]
    return f"{folder}-{path.stem}" if folder and first in _ANY_SET else path.stem


def record(question: Question, review: str = "") -> dict[str, Any]:
    """A question in Folio's format. review: PENDING if nobody has reviewed it yet."""
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
    """Write questions to a file in Folio's format, one per line, atomically. Raises DiskFull."""
    lines = (json.dumps(record(question, review), ensure_ascii=False) for question in questions)
    temporary = path.with_name(f"{path.name}.new")
    with no_space(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        sync(temporary)
        temporary.replace(path)


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    """The entries of a file with their line numbers; if an object contains them, as in SQuAD, those inside it."""
    for line, value in dataset_formats.entries(path):
        try:
            inside = expected_papers.wrapped(value)
        except expected_papers.EntryError as error:
            raise dataset_formats.malformed(path, line, str(error)) from None
        yield from ((line, each) for each in ([value] if inside is None else inside))


def _question(
    form: dataset_formats.TurnForm, id: str, history: Iterable[str], path: Path, line: int, type: str = ""
) -> Question:
    if form.answerable and not form.gold:
        fault = f"question {id} has no gold entry and is not marked as unanswerable"
        raise dataset_formats.malformed(path, line, fault)
    if form.gold and not form.answerable:
        raise dataset_formats.malformed(path, line, f"question {id} is marked as unanswerable but has gold entries")
    every = form.type == ALL_NEEDED if form.every is None else form.every
    gold = tuple(Gold(g.paper, g.page, (g.quote or "").strip(), None, g.part) for g in form.gold)
    answer = (form.answer or "").strip()
    return Question(id, form.question, form.type or type, form.answerable, answer, gold, every, tuple(history))


def _expected(fields: dict[str, Any], number: int, path: Path, line: int) -> Question:
    try:
        read = expected_papers.parse(fields, number)
    except expected_papers.EntryError as error:
        raise dataset_formats.malformed(path, line, str(error)) from None
    gold = tuple(Gold(place.paper, place.page, place.quote) for place in read.places)
    every = len({place.paper for place in read.places}) > 1
    return Question(read.id, read.question, read.type, bool(gold), read.answer, gold, every)


def _conversation_questions(
    form: dataset_formats.ConversationForm, id: str, path: Path, line: int
) -> Iterator[Question]:
    """A follow-up question for every turn but the first."""
    earlier: list[str] = []
    for number, turn in enumerate(form.turns, 1):
        if earlier:
            yield _question(turn, f"{id}.{number}", earlier, path, line, "followup")
        earlier.append(turn.question)


def _article(form: dataset_formats.ArticleForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
    questions, documents = [], []
    for number, context in enumerate(form.paragraphs, 1):
        name = form.title or f"line {line}"
        document = Document(context.document_id or f"{name} {number}", form.title, context.context)
        documents.append(document)
        for entry in context.qas:
            spans = [] if entry.is_impossible else [(span.text, span.answer_start) for span in entry.answers]
            questions.append(_span_question(entry, spans, document, path, line))
    return questions, documents


def _flat(form: dataset_formats.FlatForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
    first, _, remainder = form.text.partition("\n\n")
    title = form.title or (one_line(first) if remainder and len(first) <= LONGEST_TITLE else "")
    document = Document(form.document, title, form.text)
    questions = []
    for entry in form.questions:
        has_answer = bool(entry.answer.strip()) and not entry.is_impossible
        spans = [(entry.answer, entry.start or 0)] if has_answer else []
        questions.append(_span_question(entry, spans, document, path, line))
    return questions, [document]


def _span_question(
    entry: dataset_formats.AskedForm | dataset_formats.FlatAskedForm,
    spans: Iterable[tuple[str, int]],
    document: Document,
    path: Path,
    line: int,
) -> Question:
    """A question whose gold entries are spans of a document. A wrong offset is moved to the nearest occurrence."""
    gold = []
    for span_text, start in spans:
        words = span_text.strip()
        offset = _nearest(document.text, words, start)
        if offset is None:
            fault = f"the answer of question {entry.id} is not in document {document.id}"
            raise dataset_formats.malformed(path, line, fault)
        gold.append(Gold(document.id, None, words, offset))
    if not gold and not entry.is_impossible:
        fault = f"question {entry.id} has no answer and is not marked is_impossible"
        raise dataset_formats.malformed(path, line, fault)
    answer = gold[0].quote if gold else ""
    return Question(entry.id, entry.question, "", bool(gold), answer, tuple(dict.fromkeys(gold)))


def _nearest(text: str, words: str, start: int) -> int | None:
    """The offset of the occurrence of these words nearest to `start`."""
    before = text.rfind(words, 0, start + len(words))
    after = text.find(words, start)
    offsets = [at for at in (before, after) if at >= 0]
    return min(offsets, key=lambda at: abs(at - start)) if offsets else None


def _beir(folder: Path, split: str) -> EvalSet:
    relevance: dict[str, dict[str, int]] = {}
    for _, judged in dataset_formats.judgements(folder, split):
        relevance.setdefault(judged.query, {})[judged.document] = judged.grade
    documents: dict[str, Document] = {}
    for line, text in dataset_formats.validated_entries(dataset_formats.CorpusForm, folder / dataset_formats.CORPUS):
        _require_unique(documents, text.id, folder / dataset_formats.CORPUS, line)
        documents[text.id] = Document(text.id, (text.title or "").strip(), text.text)
    questions: dict[str, Question] = {}
    for line, query in dataset_formats.validated_entries(dataset_formats.QueryForm, folder / dataset_formats.QUERIES):
        _require_unique(questions, query.id, folder / dataset_formats.QUERIES, line)
        questions[query.id] = Question(query.id, query.text)
    unknown = [query for query in relevance if query not in questions]
    if unknown or not relevance:
        judged_of = f"query {unknown[0]}, which is not in {dataset_formats.QUERIES}" if unknown else "no query"
        raise UsageError(f"The split {split} of {folder} judges {judged_of}.", "Get both files from the same source.")
    judged_questions = tuple(question for id, question in questions.items() if id in relevance)
    return EvalSet(folder.resolve().name, folder, judged_questions, tuple(documents.values()), relevance)


def _conversations(folder: Path) -> EvalSet:
    """The follow-ups of a folder of conversations, each passage one document."""
    conversations = conversation_set.load(folder)
    turns = conversations.followups
    questions = tuple(Question(turn.id, turn.question, turn.kind, history=turn.history) for turn in turns)
    documents = tuple(Document(passage.id, passage.title, passage.text) for passage in conversations.passages)
    relevance = {turn.id: dict.fromkeys(turn.gold, 1) for turn in turns}
    return EvalSet(folder.resolve().name, folder, questions, documents, relevance, rewrites=conversations.rewrites)


def _require_unique(seen: Container[str], id: str, path: Path, line: int) -> None:
    if id in seen:
        raise dataset_formats.malformed(path, line, f"the id {id} is used twice")
