"""The file formats of labelled answers, parsed and validated: judged answers, FaithBench's, SummEdits'.

labelled_answers.py turns them into LabelledAnswer objects.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from folio.evaluate.dataset_formats import Form, Offset, Words

# The files of a SummEdits folder
DOCUMENTS, SUMMARIES = "documents.jsonl", "summaries.jsonl"

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]  # not stripped: offsets count from its first character
Pages = Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1, max_length=2)]


# Judged answers: Folio's own


class EvidenceForm(Form):
    text: Text
    number: int | None = None
    file: str = ""
    title: str = ""
    pages: Pages = Field(default_factory=lambda: [1])


def _as_evidence(value: Any) -> Any:
    """Evidence may be a plain text."""
    return {"text": value} if isinstance(value, str) else value


class SentenceForm(Form):
    text: Words
    label: str
    kind: str | None = None


class JudgedForm(Form):
    model: str = ""
    question: Words
    evidence: Annotated[list[Annotated[EvidenceForm, BeforeValidator(_as_evidence)]], Field(min_length=1)]
    answer: str | None = None
    sentences: Annotated[list[SentenceForm], Field(min_length=1)]
    corrupted: str | None = None
    corrupted_sentences: list[SentenceForm] = Field(default_factory=list)


# FaithBench (https://github.com/vectara/FaithBench)


class AnnotationForm(Form):
    start: Offset
    end: Offset
    label: list[str]


class FaithBenchForm(Form):
    source: Text
    summary: Text
    model: str
    annotations: list[AnnotationForm]


# SummEdits (https://github.com/salesforce/factualNLG)


class DocumentForm(Form):
    id: Annotated[Words, Field(alias="_id")]
    text: Text


class SummaryForm(Form):
    document: Words
    summary: Text
    consistent: bool
    domain: str = ""
    edits: list[str] = Field(default_factory=list)
