"""Evaluation sets: questions with gold papers, pages and quotes, read from a file or folder.

The formats are Folio's own, with conversations; papers under any names (eval_set.json); SQuAD's; BEIR's; MTRAG's. A set
can also be made from the query log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from folio.errors import UsageError, command
from folio.papers.identifiers import bare_arxiv, find_identifier
from folio.papers.model import Paper
from folio.pdf.identifiers import arxiv_id
from folio.search.own_questions import known_questions
from folio.shown_text import name_line, short_line
from folio.store import works
from folio.store.library import Library
from folio.store.query_log import LogEntry
from folio.system.files import write_text
from folio.text import fold, one_line

FORMAT = "docs/evaluation-set.md shows the format"
# The field that identifies an entry's form; an entry without any of them is a question.
TURNS, QUESTIONS, PARAGRAPHS = "turns", "questions", "paragraphs"
LARGEST_MB = 500  # of a file with questions; SQuAD has 42
# The files of a BEIR folder
CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
# The files of a folder of conversations
TURNS_FILE, _PASSAGES_FILE, _REWRITES_FILE = "turns.jsonl", "passages.jsonl", "rewrites.jsonl"
# The annotations of a turn whose passages answer it, wholly or in part; the case does not matter.
_ANSWERED = frozenset({"answerable", "partial"})
USER = "user"

LOGGED = "logged"  # the type of a question from the query log, whose answer was rated good
OPENED = "opened"  # of one whose answer was not rated, and of which a citation was opened
PENDING = "pending"  # the review state of a question that a model wrote and nobody has reviewed
ALL_NEEDED = "multi"  # the type of a question that needs all its gold papers, unless `every` says otherwise
# Common file names of evaluation sets, which are less specific than the name of their folder.
_ANY_SET = {"dev", "train", "test", "val", "valid", "validation", "eval", "set", "data", "questions", "queries", "qa"}
# A first paragraph of at most this many characters is taken as the title.
LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Gold:
    """The place of an answer: a paper, and the position within it as far as it is known."""

    paper: str  # its file name, or the id of a Document; in a set by name, any name (see resolved)
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
    difficulty: str = ""  # as the set names it; reports group by it, too
    topics: tuple[str, ...] = ()  # what the answer should speak of

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
class Rewrite:
    """A follow-up as typed, and as a person rewrote it so that it stands alone."""

    id: str
    history: tuple[str, ...]  # the questions before it, at least one
    question: str
    standalone: str


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
    is_by_name: bool = False  # some papers have other names than their files: see resolved
    unknown: tuple[str, ...] = ()  # names of papers that the library does not have
    left_out: int = 0  # questions none of whose papers the library has
    outside: int = 0  # questions left out because they need papers that are not searched


def load(path: Path, *, split: str = "test") -> EvalSet:
    """Load a set from a file or folder, in any format of docs/evaluation-set.md. split: the split of a BEIR folder.

    Raises UsageError if it is missing or malformed, naming the file, the line and the remedy.
    """
    if path.is_dir():
        return _conversations(path) if is_conversations(path) else _beir(path, split)
    questions: dict[str, Question] = {}
    documents: dict[str, Document] = {}
    pending = conversations = 0
    is_by_name = is_own = False
    require_readable(path)
    for number, (line, value) in enumerate(_entries(path), 1):
        if not isinstance(value, dict):
            fault = f"question {number} is not an object with a question and its papers"
            raise malformed(path, line, fault)
        fields = value
        new_questions: Iterable[Question]
        texts: list[Document] = []
        if TURNS in fields:
            conversations += 1
            conversation = validated(ConversationForm, value, path, line)
            new_questions = _conversation_questions(conversation, conversation.id or f"f{conversations}", path, line)
        elif PARAGRAPHS in fields:
            article = validated(ArticleForm, value, path, line)
            new_questions, texts = _article(article, path, line)
        elif QUESTIONS in fields:
            new_questions, texts = _flat(validated(FlatForm, value, path, line), path, line)
        elif is_expected(fields, among_own=is_own):
            with _located(path, line):
                new_questions, is_by_name = [parse(fields, number)], True
        else:
            form = validated(QuestionForm, value, path, line)
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
        raise UsageError(f"{path} has no questions.", f"Add some; {FORMAT}.")
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
        "gold": [
            {name: value for name in ("paper", "page", "quote", "part") if (value := getattr(gold, name))}
            for gold in question.gold
        ],
    }
    if question.every != (question.type == ALL_NEEDED):
        fields["every"] = question.every
    if question.history:
        fields["history"] = list(question.history)
    if review:
        fields["review"] = review
    return fields


def save(path: Path, questions: Iterable[Question], review: str = "") -> None:
    """Write questions to a file in Folio's format, one per line, atomically. Raises DiskFull."""
    lines = (json.dumps(record(question, review), ensure_ascii=False) for question in questions)
    write_text(path, "".join(f"{line}\n" for line in lines))


def resolved(evalset: EvalSet, library: Library) -> EvalSet:
    """The set with its papers named by their files; the set itself if it already names only files.

    Names of papers that are not in the library go to `unknown`. A question none of whose papers is in the library is
    left out, and counted in `left_out`. Raises UsageError if the library has none of the set's papers.
    """
    if not evalset.is_by_name:
        return evalset
    lookup = PaperLookup(library)
    unknown: dict[str, None] = {}
    questions: list[Question] = []
    for question in evalset.questions:
        gold: list[Gold] = []
        for entry in question.gold:
            papers = lookup.find(entry.paper)
            if papers:
                part = entry.part or lookup.files[papers[0]]
                gold += [replace(entry, paper=lookup.files[paper], part=part) for paper in papers]
            else:
                unknown[entry.paper] = None
        if gold or not question.gold:
            parts = {entry.part for entry in gold}
            questions.append(
                replace(question, gold=tuple(dict.fromkeys(gold)), every=question.every and len(parts) > 1)
            )
    if not any(question.gold for question in questions):
        raise UsageError(
            f"None of the papers that {evalset.path.name} asks about is in the index: {_examples(unknown)}.",
            f"Name their folder: {command(f'evaluate {evalset.path} --papers FOLDER')}.",
        )
    left_out = len(evalset.questions) - len(questions)
    return replace(evalset, questions=tuple(questions), unknown=tuple(unknown), left_out=left_out)


def within(evalset: EvalSet, files: Collection[str]) -> EvalSet:
    """The set with the questions that papers with these files can answer, and those that no paper answers.

    The others are counted in `outside`. Raises UsageError if no question with an answer is left.
    """
    questions: list[Question] = []
    for question in evalset.questions:
        gold = tuple(entry for entry in question.gold if entry.paper in files)
        kept = replace(question, gold=gold)
        if len(kept.gold_groups) == len(question.gold_groups):
            questions.append(kept)
    if not any(question.gold for question in questions):
        raise UsageError(
            f"None of the papers that {evalset.path.name} asks about is in the project.",
            "Name another project, or leave out --project.",
        )
    return replace(evalset, questions=tuple(questions), outside=len(evalset.questions) - len(questions))


class PaperLookup:
    """The papers of one library by all their possible names."""

    def __init__(self, library: Library) -> None:
        self.files: dict[str, str] = {}  # paper id -> the name of a file
        self._named: dict[str, list[str]] = {}  # kind and name -> paper ids
        papers = {paper.id: paper for paper in library.papers()}
        for file in library.files():
            self.files.setdefault(file.sha256, file.name)
            for mark in _file_marks(file.name):
                self._add(mark, file.sha256)
        for paper in papers.values():
            for mark in (*_paper_marks(paper), *_work_marks(library, paper)):
                self._add(mark, paper.id)

    def _add(self, mark: str, paper: str) -> None:
        papers = self._named.setdefault(mark, [])
        if paper not in papers:
            papers.append(paper)

    def find(self, name: str) -> tuple[str, ...]:
        """The ids of the papers with a name: several for versions of one work, none for an unknown name.

        Files come before identifiers, and identifiers before titles. The version of an arXiv id does not matter.
        """
        for mark in _marks_of_name(name):
            if papers := self._named.get(mark):
                return tuple(sorted(papers))
        return ()


def _examples(names: Iterable[str]) -> str:
    first = [name_line(name, 80) for name in islice(names, 4)]
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "")


def _marks_of_name(name: str) -> Iterator[str]:
    yield f"file {name.casefold()}"
    if identifier := find_identifier(name):
        yield _identifier_mark(identifier.kind, identifier.value)
    if arxiv := arxiv_id({}, (), name).value:  # "1706.03762v5.pdf", even if the library's file has another name
        yield _identifier_mark("arxiv", arxiv)
    if title := fold(name):
        yield f"title {title}"


def _identifier_mark(kind: str, value: str) -> str:
    return f"{kind} {bare_arxiv(value) if kind == 'arxiv' else value.casefold()}"


def _file_marks(name: str) -> Iterator[str]:
    """The marks of a file: its name with and without folder and suffix, and an arXiv id in the name."""
    last = PurePath(name)
    yield from (f"file {each.casefold()}" for each in (name, last.name, last.stem))
    if arxiv := arxiv_id({}, (), last.name).value:
        yield _identifier_mark("arxiv", arxiv)


def _paper_marks(paper: Paper) -> Iterator[str]:
    about = paper.metadata
    if about.arxiv.value:
        yield _identifier_mark("arxiv", about.arxiv.value)
    if about.doi.value:
        yield _identifier_mark("doi", about.doi.value)
    if title := fold(paper.title):
        yield f"title {title}"


def _work_marks(library: Library, paper: Paper) -> Iterator[str]:
    """The identifiers of a paper's work, in any version."""
    for version in works.of_paper(library.database, paper.id):
        for mark in version.marks():
            kind, _, value = mark.partition(" ")
            if kind != "title":
                yield _identifier_mark(kind, value)


@dataclass(frozen=True, slots=True)
class LoggedSet:
    """The questions of a set, oldest first, and the log numbers of rated questions that are not in it."""

    questions: tuple[Question, ...]
    bad: tuple[int, ...]  # rated bad, so the place of the answer is unknown
    without_gold: tuple[int, ...]  # rated good, not a refusal, but without a source in a paper of the library
    opened: int = 0  # how many of the questions are known by opened citations alone


def questions_from_log(
    entries: Iterable[tuple[int, LogEntry]],
    files: Mapping[str, str],
    opened: Mapping[int, Sequence[tuple[str, int]]] = MappingProxyType({}),
) -> LoggedSet:
    """The questions whose answers people rated good, or of which they opened citations (search/own_questions.py).

    entries: with their numbers, newest first. files: paper id -> the current name of its file. opened: number -> the
    papers and pages of the citations that were opened.

    A question has its resolved text, because a set has no conversations. Each of its known pages is a gold entry, and
    any of them is enough; a refusal that was rated good makes an unanswerable question.
    """
    known = known_questions(entries, files, opened)
    questions = []
    for each in known.questions:
        gold = tuple(dict.fromkeys(Gold(files[source.paper], source.page, source.quote) for source in each.pages))
        kind = OPENED if each.is_opened else LOGGED
        questions.append(Question(f"q{each.number}", each.text, kind, bool(gold), each.answer, gold))
    opened_only = sum(question.type == OPENED for question in questions)
    return LoggedSet(tuple(questions), known.bad, known.without_pages, opened_only)


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    """The entries of a file with their line numbers; if an object contains them, as in SQuAD, those inside it."""
    for line, value in entries(path):
        with _located(path, line):
            inside = wrapped(value)
        yield from ((line, each) for each in ([value] if inside is None else inside))


@contextmanager
def _located(path: Path, line: int) -> Iterator[None]:
    """Turns an EntryError into a UsageError with the file and the line."""
    try:
        yield
    except EntryError as error:
        raise malformed(path, line, str(error)) from None


def _question(form: TurnForm, id: str, history: Iterable[str], path: Path, line: int, type: str = "") -> Question:
    if form.answerable and not form.gold:
        fault = f"question {id} has no gold entry and is not marked as unanswerable"
        raise malformed(path, line, fault)
    if form.gold and not form.answerable:
        raise malformed(path, line, f"question {id} is marked as unanswerable but has gold entries")
    every = form.type == ALL_NEEDED if form.every is None else form.every
    gold = tuple(Gold(g.paper, g.page, (g.quote or "").strip(), None, g.part) for g in form.gold)
    answer = (form.answer or "").strip()
    return Question(id, form.question, form.type or type, form.answerable, answer, gold, every, tuple(history))


def _conversation_questions(form: ConversationForm, id: str, path: Path, line: int) -> Iterator[Question]:
    """A follow-up question for every turn but the first."""
    earlier: list[str] = []
    for number, turn in enumerate(form.turns, 1):
        if earlier:
            yield _question(turn, f"{id}.{number}", earlier, path, line, "followup")
        earlier.append(turn.question)


def _article(form: ArticleForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
    questions, documents = [], []
    for number, context in enumerate(form.paragraphs, 1):
        name = form.title or f"line {line}"
        document = Document(context.document_id or f"{name} {number}", form.title, context.context)
        documents.append(document)
        for entry in context.qas:
            spans = [] if entry.is_impossible else [(span.text, span.answer_start) for span in entry.answers]
            questions.append(_span_question(entry, spans, document, path, line))
    return questions, documents


def _flat(form: FlatForm, path: Path, line: int) -> tuple[list[Question], list[Document]]:
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
    entry: AskedForm | FlatAskedForm,
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
            raise malformed(path, line, fault)
        gold.append(Gold(document.id, None, words, offset))
    if not gold and not entry.is_impossible:
        fault = f"question {entry.id} has no answer and is not marked is_impossible"
        raise malformed(path, line, fault)
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
    for _, judged in judgements(folder, split):
        relevance.setdefault(judged.query, {})[judged.document] = judged.grade
    documents = _corpus(folder / CORPUS)
    questions: dict[str, Question] = {}
    for line, query in validated_entries(QueryForm, folder / QUERIES):
        _require_unique(questions, query.id, folder / QUERIES, line)
        questions[query.id] = Question(query.id, query.text)
    unknown = [query for query in relevance if query not in questions]
    if unknown or not relevance:
        judged_of = f"query {unknown[0]}, which is not in {QUERIES}" if unknown else "no query"
        raise UsageError(f"The split {split} of {folder} judges {judged_of}.", "Get both files from the same source.")
    judged_questions = tuple(question for id, question in questions.items() if id in relevance)
    return EvalSet(folder.resolve().name, folder, judged_questions, tuple(documents.values()), relevance)


def _corpus(path: Path) -> dict[str, Document]:
    """The documents of a file by their ids."""
    documents: dict[str, Document] = {}
    for line, text in validated_entries(CorpusForm, path):
        _require_unique(documents, text.id, path, line)
        documents[text.id] = Document(text.id, (text.title or "").strip(), text.text)
    return documents


def is_conversations(folder: Path) -> bool:
    """Whether a folder has conversations by people, in MTRAG's layout."""
    return (folder / TURNS_FILE).is_file()


def _conversations(folder: Path) -> EvalSet:
    """The answered follow-ups of a folder of conversations, each passage one document, and its rewrites.

    Raises UsageError for a file that is missing or malformed, and for gold that is no passage.
    """
    documents = _corpus(folder / _PASSAGES_FILE)
    path = folder / TURNS_FILE
    questions: list[Question] = []
    relevance: dict[str, dict[str, int]] = {}
    for line, turn in validated_entries(SpokenTurnForm, path):
        _require_unique(relevance, turn.id, path, line)
        if unknown := [id for id in turn.gold if id not in documents]:
            raise malformed(path, line, f"its gold {unknown[0]} is not in {_PASSAGES_FILE}")
        before = _not_empty(spoken.text for spoken in turn.history if spoken.speaker.casefold() == USER)
        if before and turn.gold and turn.answerability.casefold() in _ANSWERED:
            questions.append(Question(turn.id, turn.question, turn.kind, history=before))
            relevance[turn.id] = dict.fromkeys(turn.gold, 1)
    if not questions:
        raise UsageError(f"{path} has no answered follow-up with gold.", f"Add some; {FORMAT}.")
    rewrites = _rewrites(folder / _REWRITES_FILE)
    name = folder.resolve().name
    return EvalSet(name, folder, tuple(questions), tuple(documents.values()), relevance, rewrites=rewrites)


def _rewrites(path: Path) -> tuple[Rewrite, ...]:
    """The rewrites of a file; none if there is no file."""
    if not path.is_file():
        return ()
    rewrites: dict[str, Rewrite] = {}
    for line, form in validated_entries(RewriteForm, path):
        _require_unique(rewrites, form.id, path, line)
        if before := _not_empty(form.history):
            rewrites[form.id] = Rewrite(form.id, before, form.question, form.standalone)
    return tuple(rewrites.values())


def _not_empty(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without surrounding white space, and without empty ones."""
    return tuple(text.strip() for text in texts if text.strip())


def _require_unique(seen: Container[str], id: str, path: Path, line: int) -> None:
    if id in seen:
        raise malformed(path, line, f"the id {id} is used twice")


def entries(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of a JSON file with the line on which each begins: JSON Lines, or the items of one array.

    Raises UsageError for a file that cannot be read or is not valid JSON.
    """
    text = _read(path)
    decoder = json.JSONDecoder()
    at, line, counted = 0, 1, 0
    end = len(text)

    def skip(separators: str = "") -> None:
        nonlocal at
        while at < end and (text[at].isspace() or text[at] in separators):
            at += 1

    skip()
    inside = text[at : at + 1] == "["
    if inside:
        at += 1
    while True:
        skip("," if inside else "")
        line, counted = line + text.count("\n", counted, at), at
        if at >= end and inside:
            raise malformed(path, line, "the array at its start is not closed")
        if at >= end or (inside and text[at] == "]"):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            at_line = text.count("\n", 0, error.pos) + 1
            raise malformed(path, at_line, f"invalid JSON ({error.msg[0].lower()}{error.msg[1:]})") from None
        except RecursionError:
            raise malformed(path, line, "it is nested too deeply") from None
        except ValueError:  # from int()
            raise malformed(path, line, "it has a number of thousands of digits") from None
        yield line, value


def validated(form: type[FormT], value: object, path: Path, line: int) -> FormT:
    """Validate a value as this form. Raises UsageError naming the file, the line and the invalid field."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the entry"
        raise malformed(path, line, f"{field}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


def validated_entries(form: type[FormT], path: Path) -> Iterator[tuple[int, FormT]]:
    """The entries of a file, validated as this form, with their lines. Raises UsageError."""
    return ((line, validated(form, value, path, line)) for line, value in entries(path))


def judgements(folder: Path, split: str) -> Iterator[tuple[int, JudgementForm]]:
    """The relevance judgements of one split of a BEIR folder (tab-separated query, document, grade), with their lines.

    Raises UsageError.
    """
    path = folder / QRELS / f"{split}.tsv"
    if not path.is_file():
        splits = ", ".join(sorted(file.stem for file in folder.glob(f"{QRELS}/*.tsv")))
        needs = f"A folder must be a BEIR set, with {CORPUS}, {QUERIES} and {QRELS}/; {FORMAT}."
        raise UsageError(
            f"{folder} has no judgements for the split {split}: there is no {path}.",
            f"Choose one of its splits: {splits}." if splits else needs,
        )
    for line, row in enumerate(_read(path).split("\n"), 1):
        fields = row.split("\t")
        if not row.strip() or (line == 1 and fields[-1].strip() == "score"):
            continue
        if len(fields) != 3:
            raise malformed(path, line, f"it has {len(fields)} fields, not query, document and grade")
        named = dict(zip(("query", "document", "grade"), fields, strict=True))
        yield line, validated(JudgementForm, named, path, line)


def malformed(path: Path, line: int, fault: str) -> UsageError:
    """The error for a line of a file; fault is a clause without a full stop."""
    return UsageError(f"{path}, line {line}: {fault}.", f"Correct this line; {FORMAT}.")


def require_readable(path: Path) -> None:
    """Raises UsageError for a file that is too large to be a set of questions."""
    with suppress(OSError):  # reading the file will report the error
        if path.stat().st_size > LARGEST_MB * 10**6:
            raise UsageError(f"{path} has more than {LARGEST_MB} MB.", f"Name a set of questions; {FORMAT}.")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}.", f"Save it as UTF-8; {FORMAT}.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{path} cannot be read: {reason}.", f"Check the path; {FORMAT}.") from None


# The format of `eval_set.json`: questions with the papers that should answer them, under any names.
# The possible names of each field. If an entry has several of them, the first that is not null counts.
QUESTION = ("question", "query", "user_input", "prompt")
ANSWER = (
    "answer", "expected_answer", "ground_truth", "ground_truths", "ground_truth_answer", "gold_answer",
    "reference_answer", "ideal_answer", "reference",
)  # fmt: skip
ID = ("id", "question_id", "query_id", "qid", "_id")
TYPE = ("type", "question_type", "category")
DIFFICULTY = ("difficulty", "difficulty_level")
TOPICS = ("expected_topics", "topics")
QUOTE = ("quote",)
IMPOSSIBLE = ("unanswerable", "is_unanswerable", "is_impossible", "should_refuse", "should_decline", "out_of_scope")
POSSIBLE = ("answerable", "is_answerable")
# The words in the names of fields with papers, the most specific first, and further words in them: relevant_doc_ids
PAPER_WORDS = ("arxiv", "doi", "paper", "document", "doc", "pdf", "file", "filename", "source", "citation")
FURTHER_WORDS = frozenset(
    "expected relevant gold golden correct ground truth reference target supporting required cited"
    " id name title path url link number num".split()
)
WANTED = frozenset(("expected", "relevant", "gold", "golden"))  # gold_ids, expected_ids
# The fields of an object that contains the questions, also in the other formats of sets
TEXT, DATA = "text", "data"
ABOUT_THE_SET = frozenset(("metadata", "meta", "_meta", "_metadata", "info"))
LONGEST_QUESTION = 10_000  # characters
LONGEST_ANSWER = 100_000
LONGEST_TOPIC, MOST_TOPICS = 500, 50
LONGEST_NAME = 500
MOST_PAPERS = 1_000  # of one question
MOST_PAGES = 100
MOST_ANSWERS = 20
_LONGEST_LIST = 160  # characters of the names of fields
_PAGES = re.compile(r"(\d{1,6})(?:\s?[-–]\s?(\d{1,6}))?")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class EntryError(ValueError):
    """An entry that is not in this format. The message is a clause that begins with the entry's number."""


def wrapped(value: object) -> list[Any] | None:
    """The entries in an object that contains them, {"metadata": {...}, "questions": [...]}; None for an entry itself.

    Questions that name no paper get the object's paper, {"paper": "otters.pdf", "questions": [...]}. Raises EntryError
    if the questions are not a list.
    """
    if not isinstance(value, dict) or not value.keys().isdisjoint((*QUESTION, "gold", TURNS, PARAGRAPHS, TEXT)):
        return None
    lists = [name for name, inside in value.items() if _has_questions(inside)]
    name = next((name for name in (QUESTIONS, DATA, *lists) if name in value), "")
    if not name:  # the first line of a JSON Lines file may describe the set
        return [] if value and value.keys() <= ABOUT_THE_SET else None
    questions = value[name]
    if not isinstance(questions, list):
        raise EntryError(f"{name} is not a list of questions")
    common = {key: inside for key, inside in value.items() if key != name and _rank(key) < PAPER_WORDS.index("source")}
    return [
        {**common, **entry} if isinstance(entry, dict) and not _names_papers(entry) else entry for entry in questions
    ]


def is_expected(fields: Mapping[str, Any], *, among_own: bool) -> bool:
    """Whether an object is an entry of this format, and not of Folio's own format, which has gold entries and an id.

    among_own: whether the file has had entries of Folio's own format; an entry without papers is then one of those.
    """
    if "gold" in fields:
        return False
    is_own = among_own or ("id" in fields and fields.get("answerable") is False)
    return _names_papers(fields) or "query" in fields or not is_own


def parse(fields: Mapping[str, Any], number: int) -> Question:
    """The question of an entry. number: its position in the file, from 1. Raises EntryError."""
    place = f"question {number}"
    question = _text(fields, QUESTION, place, LONGEST_QUESTION)
    if not question:
        names = f"{', '.join(QUESTION[:-1])} or {QUESTION[-1]}"
        raise EntryError(f"{place} has no text in {names}; it has {_listed(fields)}")
    answer = _text(fields, ANSWER, place, LONGEST_ANSWER)
    answerable = _is_answerable(fields, place)
    named = _gold(fields, place)
    gold = named if answerable else ()  # the papers of an unanswerable question are only its topic
    if answerable and not gold:
        raise EntryError(
            f"{place} names no paper: it has {_listed(fields)}, but no name in a field such as papers, arxiv_id, source"
            ' or gold, and no "answerable": false'
        )
    type = _text(fields, TYPE, place, LONGEST_NAME)
    every = len({entry.paper for entry in gold}) > 1
    about = fields["metadata"] if isinstance(fields.get("metadata"), dict) else {}
    difficulty = _text({**about, **fields}, DIFFICULTY, place, LONGEST_NAME)
    topics = _topics(fields, place) if gold else ()
    return Question(
        _id(fields, number), question, type, bool(gold), answer, gold, every, difficulty=difficulty, topics=topics
    )


def _topics(fields: Mapping[str, Any], place: str) -> tuple[str, ...]:
    name = next((name for name in TOPICS if isinstance(fields.get(name), list)), "")
    listed = fields[name][:MOST_TOPICS] if name else []
    return tuple(dict.fromkeys(filter(None, (_clean(topic, name, place, LONGEST_TOPIC) for topic in listed))))


def _is_answerable(fields: Mapping[str, Any], place: str) -> bool:
    answerable = True
    for name in (*POSSIBLE, *IMPOSSIBLE):
        value = fields.get(name)
        if value is None:
            continue
        if not isinstance(value, bool):
            raise EntryError(f"{place}: {name} is neither true nor false")
        answerable = answerable and value is (name in POSSIBLE)
    return answerable


def _id(fields: Mapping[str, Any], number: int) -> str:
    name, value = next(((name, fields[name]) for name in ID if fields.get(name) is not None), ("", None))
    if value is None:
        return f"q{number}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise EntryError(f"question {number}: {name} is neither text nor a whole number")
    return _clean(str(value), name, f"question {number}", LONGEST_NAME) or f"q{number}"


def _text(fields: Mapping[str, Any], names: tuple[str, ...], place: str, longest: int) -> str:
    """The first of these fields that is not null; "" if there is none. Several answers are joined by "; "."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        texts = value if isinstance(value, list) and names is ANSWER else [value]
        return "; ".join(filter(None, (_clean(text, name, place, longest) for text in texts[:MOST_ANSWERS])))
    return ""


def _rank(name: str) -> int:
    """The rank of a field by its name: lower means more likely to have papers; len(PAPER_WORDS) means it has none."""
    words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
    nouns = [PAPER_WORDS.index(word) for word in words if word in PAPER_WORDS]
    if words and all(word in FURTHER_WORDS or word in PAPER_WORDS for word in words):
        if nouns:
            return min(nouns)
        if WANTED & set(words) and words[-1] == "id":
            return 0
    return len(PAPER_WORDS)


def _names_papers(fields: Mapping[str, Any]) -> bool:
    return "gold" in fields or any(_rank(name) < len(PAPER_WORDS) for name in fields)


def _gold(fields: Mapping[str, Any], place: str) -> tuple[Gold, ...]:
    """The papers in the most likely field.

    A quote in another field counts only for a single paper, and so do pages, unless they name the paper of each.
    """
    named = sorted((name for name in fields if _rank(name) < len(PAPER_WORDS)), key=_rank)
    name = next((name for name in named if fields[name] is not None), "")
    value = fields.get(name)
    listed = value if isinstance(value, list) else [] if value is None else [value]
    if len(listed) > MOST_PAPERS:
        raise EntryError(f"{place}: {name} has {len(listed):,} papers; at most {MOST_PAPERS:,} are taken")
    gold = [entry for item in listed for entry in _one_paper(item, name, place)]
    if len({entry.paper for entry in gold}) == 1 and all(entry == Gold(entry.paper) for entry in gold):
        gold = _within(fields, gold[0].paper, place)
    elif all(isinstance(item, str) for item in listed):
        gold = [entry for paper, pages in _pages_of_each(fields, listed, gold) for entry in _on(paper, pages, place)]
    return tuple(dict.fromkeys(gold))


def _one_paper(value: object, field: str, place: str) -> list[Gold]:
    """A paper by its name, or as an object with a name and perhaps a page: {"file": "otters.pdf", "page": 3}."""
    if not isinstance(value, dict):
        name = _clean(value, field, place, LONGEST_NAME)
        if not name:
            raise EntryError(f"{place}: {field} has an empty name")
        return [Gold(name)]
    keys = [*sorted((key for key in value if _rank(key) < len(PAPER_WORDS)), key=_rank), "title", "name", "id"]
    names = (_clean(value[key], f"{field}.{key}", place, LONGEST_NAME) for key in keys if value.get(key) is not None)
    name = next(filter(None, names), "")
    if not name:
        raise EntryError(f"{place}: {field} has a paper without a name; it has {_listed(value)}")
    return _within(value, name, place)


def _within(fields: Mapping[str, Any], paper: str, place: str) -> list[Gold]:
    """A paper with each of the pages in these fields; any of them counts as correct."""
    quote = _text(fields, QUOTE, place, LONGEST_ANSWER)
    return [Gold(paper, page, quote) for page in _pages(fields, place) or (None,)]


def _pages_of_each(
    fields: Mapping[str, Any], listed: Sequence[str], gold: Sequence[Gold]
) -> Iterator[tuple[str, object]]:
    """Each of several papers with its pages: {"otters.pdf": [3]}, or a list for each, or a page for each; else None."""
    value = next((fields[name] for name in ("pages", "page") if fields.get(name) is not None), None)
    for number, (name, entry) in enumerate(zip(listed, gold, strict=True)):
        if isinstance(value, dict):
            yield entry.paper, value.get(name)
        else:
            is_parallel = isinstance(value, list) and len(value) == len(gold)
            yield entry.paper, value[number] if is_parallel and isinstance(value, list) else None


def _on(paper: str, pages: object, place: str) -> list[Gold]:
    return _within({"pages": pages}, paper, place)


def _pages(fields: Mapping[str, Any], place: str) -> list[int]:
    for name, value in fields.items():
        words = [word.removesuffix("s") for word in map(str.casefold, _WORD.findall(name))]
        if (
            value is None
            or "page" not in words
            or not all(w == "page" or w in FURTHER_WORDS or w == "source" for w in words)
        ):
            continue
        pages: list[int] = []
        for each in value if isinstance(value, list) else [value]:
            match = _PAGES.fullmatch(str(each).strip()) if isinstance(each, str | int) else None
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= first <= last < first + MOST_PAGES or len(pages) > MOST_PAGES:
                raise EntryError(f"{place}: {name} is not a page of the file, counted from 1")
            pages += range(first, last + 1)
        return pages
    return []


def _clean(value: object, name: str, place: str, longest: int) -> str:
    """A text on one line."""
    if isinstance(value, float):
        raise EntryError(f"{place}: {name} has a number, which loses its last zeros; put it in quotes")
    if not isinstance(value, str):
        raise EntryError(f"{place}: {name} is not text")
    if len(value) > longest:
        raise EntryError(f"{place}: {name} has {len(value):,} characters; at most {longest:,} are taken")
    if re.search("[\ud800-\udfff]", value):
        raise EntryError(f"{place}: {name} has half a character")
    return one_line(re.sub(r"[\x00-\x1f\x7f]", " ", value))


def _has_questions(value: object) -> bool:
    return isinstance(value, list) and any(
        isinstance(entry, dict) and not entry.keys().isdisjoint(QUESTION) for entry in value
    )


def _listed(fields: Mapping[str, Any]) -> str:
    """The names of an object's fields, for an error message."""
    return short_line(", ".join(map(str, fields)), _LONGEST_LIST) if fields else "no fields"


Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Offset = Annotated[int, Field(ge=0)]


class Form(BaseModel):
    """The base of all forms. Ignores unknown fields, so that a set may contain further notes."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # many sets have numbers as ids


FormT = TypeVar("FormT", bound=Form)


class GoldForm(Form):
    """Folio's own format."""

    paper: Words
    page: Annotated[int, Field(ge=1)] | None = None
    quote: str | None = None
    part: str = ""


class TurnForm(Form):
    question: Words
    type: str = ""
    answerable: bool = True
    answer: str | None = None
    gold: list[GoldForm] = []
    every: bool | None = None


class QuestionForm(TurnForm):
    id: Words
    history: list[Words] = []
    review: str = ""


class ConversationForm(Form):
    id: Words | None = None
    turns: Annotated[list[TurnForm], Field(min_length=2)]


class SpanForm(Form):
    """SQuAD (https://rajpurkar.github.io/SQuAD-explorer/), and a flat form of it with one answer per question."""

    text: Words
    answer_start: Offset


class AskedForm(Form):
    id: Words
    question: Words
    answers: list[SpanForm] = []
    is_impossible: bool = False


class ContextForm(Form):
    # Not stripped: offsets count from its first character.
    context: Annotated[str, Field(min_length=1)]
    document_id: Words | None = None
    qas: list[AskedForm]


class ArticleForm(Form):
    title: str = ""
    paragraphs: list[ContextForm]


class FlatAskedForm(Form):
    id: Words
    question: Words
    answer: str = ""
    start: Offset | None = None
    is_impossible: bool = False


class FlatForm(Form):
    document: Words
    title: str = ""
    text: Annotated[str, Field(min_length=1)]
    questions: list[FlatAskedForm]


class CorpusForm(Form):
    """BEIR (https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset)."""

    id: Annotated[Words, Field(alias="_id")]
    title: str | None = None
    text: str = ""


class QueryForm(Form):
    id: Annotated[Words, Field(alias="_id")]
    text: Words


class JudgementForm(Form):
    query: Words
    document: Words
    grade: int


class SpokenForm(Form):
    """Conversations by people over passages, and their rewrites (MTRAG, https://github.com/IBM/mt-rag-benchmark)."""

    speaker: Words
    text: str


class SpokenTurnForm(Form):
    id: Words
    question: Words
    history: list[SpokenForm] = []
    gold: list[Words] = []
    answerability: str = ""
    kind: str = ""


class RewriteForm(Form):
    id: Words
    question: Words
    standalone: Words
    history: list[str] = []
