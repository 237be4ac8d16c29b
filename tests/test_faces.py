"""Every face shows every field of an answer: the terminal's JSON, the API, kept conversations, exports.

tests/web/test_faces_on_page.py goes through the same table with the page.
"""

from __future__ import annotations

import dataclasses
import html
import re

import pytest
from markdown_it import MarkdownIt

from folio.answer_types import Answer
from folio.schema.answers import AnswerJson, DeepAnswerJson
from folio.schema.web import ChatReply
from folio.web.export import markdown, zotero_note
from tests.helpers.faces import ADDED, ANSWERED, FIELDS, REMARK, REMARKED, REPLIES

# What a dataclass calls otherwise, or has for other objects
CALLED = {"dropped": "dropped_sentences", "scope": "searched"}
SHOWN_BY_NO_FACE = {"offers_model"}  # the notice says it
OF_THE_TERMINAL = {"question", "evidence", "timings_ms"}  # a reply has `message` and `elapsed_ms`


def test_every_face_has_every_field_of_an_answer() -> None:
    names = {CALLED.get(field.name, field.name) for field in dataclasses.fields(Answer)} - SHOWN_BY_NO_FACE
    for face in (DeepAnswerJson, ChatReply):
        assert issubclass(face, AnswerJson)
    assert names <= AnswerJson.model_fields.keys()
    everywhere = AnswerJson.model_fields.keys() - OF_THE_TERMINAL
    assert FIELDS.keys() == everywhere, "say in tests/helpers/faces.py where it is shown"
    assert everywhere == AnswerJson.model_fields.keys() & REPLIES[0].model_dump().keys()


def text_of(face: str) -> str:
    """The replies as a person reads them in an export."""
    kept = [reply.model_dump() for reply in REPLIES]
    exported = zotero_note("A title", kept) if face == "zotero" else MarkdownIt().render(markdown("A title", kept))
    return " ".join(html.unescape(re.sub("<[^>]+>", "", exported)).split())


@pytest.mark.parametrize("face", ["markdown", "zotero"])
@pytest.mark.parametrize("name", [*FIELDS, *ADDED])
def test_an_export_shows_it(name: str, face: str) -> None:
    shown = {**FIELDS, **ADDED}[name]
    if face not in shown.left_out:
        assert shown.words in text_of(face)


def test_kept_replies_of_any_folio_are_read() -> None:
    for reply in REPLIES:
        assert ChatReply.model_validate(reply.model_dump()).model_dump() == reply.model_dump()
        assert ChatReply.model_validate_json(reply.model_dump_json()).model_dump() == reply.model_dump()
    older = REMARKED.model_dump(exclude={"remark", "scope", "model_failed"})
    assert ChatReply.model_validate(older).remark == REMARK
    assert ChatReply.model_validate(ANSWERED.model_dump(exclude={"remark"})).remark == ""
