"""Chores that chat programs have a model do besides answering: titles, tags, follow-ups, search queries, completions.

Open WebUI, LibreChat and others send them like questions: an instruction with the conversation in it, often with the
JSON object that they expect. They come with every answer, so they are answered at once, without a search. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from folio.question.followup import subject
from folio.shown_text import short_line
from folio.text import one_line

# A prompt in the form of Open WebUI's
_TASK = re.compile(r"\s*#{1,4}\s*Task\b", re.I)
_HISTORY = re.compile(r"<(chat_history|conversation)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CONTEXT = re.compile(r"<context>.*</context>", re.DOTALL)
_QUERY_TAGS = re.compile(r"</?user_query>")
# The object that a prompt expects: its name, and whether its value is a list
_OBJECT = re.compile(r'\{\s*"(?P<name>\w+)"\s*:\s*(?P<list>\[)?')
# An instruction to name a conversation
_NAMING = re.compile(
    r"\b(?:analy[sz]e|create|generate|give|make|provide|suggest|summari[sz]e|write)\b.{0,160}\b(?:title|name)\b",
    re.I | re.DOTALL,
)
_OF_CHAT = re.compile(r"\b(?:chat|conversation|dialogue?|discussion)\b", re.I)
_ONLY = re.compile(
    r"\b(?:only|just)\b[^.\n]{0,40}\btitle\b|\btitle\b[^.\n]{0,40}\b(?:only|nothing else|no other)\b", re.I
)
_INSTRUCTION = 1500  # characters of a message that may be one
# Who speaks, in a conversation that is written as text
_ROLE = re.compile(r"^[ \t*]*(?P<role>user|human|assistant|ai|bot|model)[ \t*]*:[ \t*]*", re.I | re.MULTILINE)
_OF_PERSON = ("user", "human")
_LONGEST_TITLE, _LONGEST_TAG = 60, 40  # characters
NO_TITLE, NO_TAG = "New conversation", "General"


def chore_reply(system: str, texts: Sequence[str]) -> str | None:
    """The reply to a chore; None for anything else. system: the system's messages; texts: the person's.

    A list that would need a search is empty, as the prompts allow; so is a text that would have to be made up.
    """
    if len(texts) != 1:
        return None
    (text,) = texts
    history, context = _HISTORY.search(text), _CONTEXT.search(text)
    if _TASK.match(text) and history and not (context and context.start() < history.start()):
        return _reply(text[: history.start()], _questions(history[2]))
    instruction = text[:_INSTRUCTION]
    if (first := _ROLE.search(instruction)) and _names_chat(instruction[: first.start()]):
        return _reply(instruction[: first.start()], _questions(text[first.start() :]))
    if len(system) <= _INSTRUCTION and _names_chat(system) and _ONLY.search(system):
        return _reply(system, _questions(text))
    return None


def without_context(text: str) -> tuple[str, bool]:
    """The question of a prompt that has passages of other documents before it, and whether it has any."""
    context = _CONTEXT.search(text) if _TASK.match(text) else None
    return (_QUERY_TAGS.sub("", text[context.end() :]).strip(), True) if context else (text, False)


def _names_chat(instruction: str) -> bool:
    return bool(_NAMING.search(instruction) and _OF_CHAT.search(instruction))


def _questions(history: str) -> list[str]:
    """What the person said in a conversation; all of it if it does not say who speaks."""
    marks = list(_ROLE.finditer(history))
    ends = [*(mark.start() for mark in marks[1:]), len(history)]
    said = [history[mark.end() : end] for mark, end in zip(marks, ends, strict=False) if _is_of_person(mark)]
    return [words for words in map(one_line, said if marks else [history]) if words]


def _is_of_person(mark: re.Match[str]) -> bool:
    return mark["role"].lower() in _OF_PERSON


def _reply(instruction: str, questions: Sequence[str]) -> str:
    """What an instruction asks for, about a conversation with these questions."""
    wanted = _OBJECT.search(instruction)
    if wanted is None:
        return _title(questions)
    value: str | list[str] = [] if wanted["list"] else ""
    if wanted["name"] in ("title", "name"):
        value = _title(questions)
    elif wanted["name"] == "tags":
        topic = subject(questions[0]) if questions else ""
        value = [topic if 0 < len(topic) <= _LONGEST_TAG else NO_TAG]
    elif wanted["name"] == "queries":
        value = list(questions[-1:])
    return json.dumps({wanted["name"]: value}, ensure_ascii=False)


def _title(questions: Sequence[str]) -> str:
    return short_line(questions[0], _LONGEST_TITLE).rstrip("?!. ") if questions else NO_TITLE
