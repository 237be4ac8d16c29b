"""The file formats of evaluation sets, parsed and validated: Folio's own, conversations, SQuAD's, BEIR's, MTRAG's.

dataset.py turns them into an EvalSet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from folio.errors import UsageError

FORMAT = "docs/evaluation-set.md shows the format"
# The field that identifies an entry's form; an entry without any of them is a question.
TURNS, QUESTIONS, PARAGRAPHS = "turns", "questions", "paragraphs"
LARGEST_MB = 500  # of a file with questions; SQuAD has 42
# The files of a BEIR folder
CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Offset = Annotated[int, Field(ge=0)]


class Form(BaseModel):
    """The base of all forms. Ignores unknown fields, so that a set may contain further notes."""

    model_config = ConfigDict(coerce_numbers_to_str=True)  # many sets have numbers as ids


FormT = TypeVar("FormT", bound=Form)


# Folio's own format


class GoldForm(Form):
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


# SQuAD (https://rajpurkar.github.io/SQuAD-explorer/), and a flat form of it with one answer per question


class SpanForm(Form):
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


# BEIR (https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset)


class CorpusForm(Form):
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


# Conversations by people over passages, and their rewrites (MTRAG, https://github.com/IBM/mt-rag-benchmark)


class SpokenForm(Form):
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
