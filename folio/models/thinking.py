"""Chat models that think before they write: how to ask them not to, and how to split a thought from its reply."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

# The setting: `auto` and `off` ask a model not to think, if possible; `low` asks for a short thought, `on` for any.
ThinkSetting = Literal["auto", "off", "low", "on"]

# Tokens of a reply reserved for the thought, which counts against `num_predict`. A model of 8B needs about 1,200 for a
# question with its evidence, gpt-oss a few hundred at its lowest level.
LOW_ROOM, FULL_ROOM = 2048, 4096
CAPABILITY = "thinking"
# Models with levels, which always think
_LEVELS_ONLY = re.compile(r"gpt-?oss", re.I)
_TAGS = ("<think>", "<thinking>")
_LONGEST_TAG = 18  # characters, with the blanks before it
_OPENING = re.compile(r"\s{0,8}<think(?:ing)?>", re.I)
_CLOSING = re.compile(r"</think(?:ing)?>", re.I)
# A template that writes the opening tag itself, followed only by Go's actions
_ENDS_IN_OPENING = re.compile(r"<think(?:ing)?>\s*(?:\{\{[^{}]*\}\}\s*)*\Z", re.I)


@dataclass(frozen=True, slots=True)
class Thinking:
    """How to ask a model to think or not."""

    field: bool | str | None  # `think` of a request; None: not sent
    room: int = 0  # tokens for the thought, in addition to the reply; 0: no thought expected
    less: ThinkSetting | None = None  # the setting for a shorter thought; None: there is none
    is_begun: bool = False  # whether replies begin inside the thought, because the template writes the tag


NO_THINKING = Thinking(None)


def thinking_of(
    setting: ThinkSetting, name: str, architecture: str, capabilities: frozenset[str] | None, template: str = ""
) -> Thinking:
    """How to ask a model. capabilities, template: from /api/show; None and "" if the server does not say."""
    if CAPABILITY not in (capabilities or ()):
        return Thinking(None, FULL_ROOM, is_begun=True) if _ENDS_IN_OPENING.search(template) else NO_THINKING
    if _LEVELS_ONLY.search(architecture) or _LEVELS_ONLY.search(name):
        return Thinking("medium", FULL_ROOM, "low") if setting == "on" else Thinking("low", LOW_ROOM)
    if setting == "on":
        return Thinking(True, FULL_ROOM, "off")
    return Thinking("low", LOW_ROOM, "off") if setting == "low" else Thinking(False)


def thinking_anyway(thinking: Thinking) -> Thinking:
    """How to ask a model that thinks although it was asked not to: for a short thought, with room for it."""
    return replace(thinking, field="low" if thinking.field is False else thinking.field, room=LOW_ROOM, less=None)


class ThoughtSplitter:
    """Splits an arriving reply into thought and answer, if the server leaves the tags in the text.

    Only tags at the beginning of a reply count. is_begun: the template has written the opening tag.
    """

    def __init__(self, *, is_begun: bool = False) -> None:
        self._held = ""  # perhaps the beginning of a tag
        self._state: Literal["before", "within", "behind"] = "within" if is_begun else "before"
        self._has_opened = is_begun
        self._last = ""  # the end of a reply that began without a tag
        self.closes_unopened = False  # whether a thought ended that never began: the template wrote the opening tag

    def feed(self, piece: str) -> tuple[str, str]:
        """The (thought, answer) text that this piece completes."""
        if self._state == "behind":
            if not self._has_opened:
                self._last = (self._last + piece)[-_LONGEST_TAG - len(piece) :]
                self.closes_unopened = self.closes_unopened or _CLOSING.search(self._last) is not None
            return "", piece
        text, self._held = self._held + piece, ""
        if self._state == "before":
            opening = _OPENING.match(text)
            if opening is None:
                if len(text) <= _LONGEST_TAG and any(tag.startswith(text.lstrip().lower()) for tag in _TAGS):
                    self._held = text
                    return "", ""
                self._state = "behind"
                return "", text
            self._state, text, self._has_opened = "within", text[opening.end() :], True
        closing = _CLOSING.search(text)
        if closing is None:
            at = text.find("<", max(0, len(text) - len("</thinking>") + 1))
            if at >= 0:  # perhaps the beginning of the tag
                self._held, text = text[at:], text[:at]
            return text, ""
        self._state = "behind"
        return text[: closing.start()], text[closing.end() :]

    def end(self) -> tuple[str, str]:
        """The held back (thought, answer) text."""
        held, self._held = self._held, ""
        return (held, "") if self._state == "within" else ("", held)


def without_thoughts(text: str) -> str:
    """A whole reply without its thought; "" for a thought that does not end.

    The opening tag is missing if the model's template wrote it.
    """
    answer = _CLOSING.split(text)[-1].strip()
    return "" if _OPENING.match(answer) else answer
