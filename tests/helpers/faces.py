"""What every face shows of an answer: for each field of the schema, words that must be there, or why they are not.

A face is one way in which people or programs get an answer. A new field of AnswerJson needs a line here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from folio.answer_types import REFUSAL, Answer, Scope
from folio.schema.answers import answer_json
from folio.schema.web import ChatReply, ScopeJson, ScopePaperJson, chat_reply
from folio.store.instructions import Instruction
from tests.helpers.answers import HITS, ICE_PAPER, MODELS, OUTCOMES, REFUSED, TIMINGS

REMARK = "Hello. Ask a question about your papers."
WARNING = "Warning: this answer cites a paper that was retracted."
WORDING = Instruction("0" * 16, "For a clinician", "Name the dose first.")
CONVERSATION = "A" * 16
ONLY_ICE = ScopeJson(
    papers=[ScopePaperJson(paper=ICE_PAPER.id, file=ICE_PAPER.file, title=ICE_PAPER.title)], year=["2020-"]
)


def reply_of(answer: Answer, turn: int = 1, scope: ScopeJson | None = None) -> ChatReply:
    """The reply of the web API with this answer."""
    made = answer_json(answer, HITS, MODELS, TIMINGS, WORDING)
    return chat_reply(answer.question, made, CONVERSATION, turn, 12.5, scope)


IN_PROJECT = Scope(12, project="Alpine ice", rest="from 2020")
ANSWERED = reply_of(
    replace(
        OUTCOMES,
        standalone_question="How long is the glacier of Aletsch?",
        notice="It was cut: see `some code`.",
        scope=IN_PROJECT,
    ),
    scope=ScopeJson(project=["Alpine ice"], year=["2020-"]),
).model_copy(update={"warnings": [WARNING]})
REFUSED_HERE = reply_of(REFUSED, 2, ONLY_ICE)
REMARKED = reply_of(Answer("hello", "hello", (), remark=REMARK), 3)
REPLIES = (ANSWERED, REFUSED_HERE, REMARKED)


class Shown(NamedTuple):
    """Words of REPLIES by which a field is seen, and the faces that leave it out, each with the reason."""

    words: str
    left_out: dict[str, str] = {}  # noqa: RUF012


_NOTES = "a note is of what holds"
_SEEN = "it is seen in other fields"
FIELDS: dict[str, Shown] = {
    "standalone_question": Shown("How long is the glacier of Aletsch?", {"zotero": "it has what was asked"}),
    "style": Shown("plain", dict.fromkeys(("markdown", "zotero", "page"), "it is seen in the headings")),
    "answer": Shown(REFUSAL),
    "searched": Shown(IN_PROJECT.line),
    "refused": Shown(REFUSAL),
    "remark": Shown(REMARK),
    "sentences": Shown("It lies in the Bernese Alps."),
    "dropped_sentences": Shown("2", dict.fromkeys(("markdown", "zotero", "page"), _SEEN)),
    "left_out": Shown("It is 99 kilometres long.", {"zotero": _NOTES}),
    "notice": Shown("It was cut: see some code."),
    "missing": Shown(REFUSED.missing[0], dict.fromkeys(("markdown", "zotero", "page"), "the refusal says so")),
    "warnings": Shown(WARNING),
    "model_failed": Shown("failed", dict.fromkeys(("markdown", "zotero", "page"), "the notice says so")),
    "instruction": Shown("For a clinician"),
    "citations": Shown("alps/ice.pdf p.1"),
    "hits": Shown("pp. 1–2", dict.fromkeys(("markdown", "zotero"), "an export has what was said")),
    "models": Shown("by hand", dict.fromkeys(("markdown", "zotero"), "an export has what was said")),
}
# What the web API adds
ADDED: dict[str, Shown] = {
    "message": Shown("Who painted it?"),
    "scope": Shown("2020-"),
}
