"""Whether and how much a chat model thinks before it writes, and how many tokens a thought may take."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

# The setting: `auto` and `off` tell a model not to think where it can be told, `low` to think little, `on` to think.
ThinkSetting = Literal["auto", "off", "low", "on"]

# Tokens of a reply that are kept for the thought, which counts against `num_predict`. A model of 8B takes about 1,200
# for a question with its evidence, gpt-oss a few hundred at its lowest level.
LOW_ROOM, FULL_ROOM = 2048, 4096
CAPABILITY = "thinking"
# Models that take levels and cannot be told not to think
_LEVELS_ONLY = re.compile(r"gpt-?oss", re.I)
_TAGS = ("<think>", "<thinking>")
_LONGEST_TAG = 18  # characters, with the blanks before it
_OPENING = re.compile(r"\s{0,8}<think(?:ing)?>", re.I)
_CLOSING = re.compile(r"</think(?:ing)?>", re.I)
# A template that writes the opening tag itself, with nothing behind it but Go's actions
_ENDS_IN_OPENING = re.compile(r"<think(?:ing)?>\s*(?:\{\{[^{}]*\}\}\s*)*\Z", re.I)


@dataclass(frozen=True, slots=True)
class Thinking:
    """What a model is told about thinking."""

    field: bool | str | None  # `think` of a request; None: it is not sent
    room: int = 0  # tokens for the thought, besides the reply; 0: none is expected
    less: ThinkSetting | None = None  # the setting under which it would be told to think less; None: there is none
    is_begun: bool = False  # whether replies begin within the thought, because the template has written the tag


NO_THINKING = Thinking(None)


def thinking_of(
    setting: ThinkSetting, name: str, architecture: str, capabilities: frozenset[str] | None, template: str = ""
) -> Thinking:
    """What a model is told. capabilities, template: as /api/show has them; None, "" if the server does not say."""
    if CAPABILITY not in (capabilities or ()):
        return Thinking(None, FULL_ROOM, is_begun=True) if _ENDS_IN_OPENING.search(template) else NO_THINKING
    if _LEVELS_ONLY.search(architecture) or _LEVELS_ONLY.search(name):
        return Thinking("medium", FULL_ROOM, "low") if setting == "on" else Thinking("low", LOW_ROOM)
    if setting == "on":
        return Thinking(True, FULL_ROOM, "off")
    return Thinking("low", LOW_ROOM, "off") if setting == "low" else Thinking(False)


def although_told_not_to(told: Thinking) -> Thinking:
    """What a model is told that thinks all the same: to think little, with room for it."""
    return replace(told, field="low" if told.field is False else told.field, room=LOW_ROOM, less=None)


class ThoughtSplitter:
    """Parts a reply into thought and answer while it arrives, where the server leaves the tags in the text.

    Only tags that a reply begins with count. is_begun: the template has written the opening one.
    """

    def __init__(self, *, is_begun: bool = False) -> None:
        self._held = ""  # what may become a tag
        self._state: Literal["before", "within", "behind"] = "within" if is_begun else "before"

    def feed(self, piece: str) -> tuple[str, str]:
        """(thought, answer) that this piece completes."""
        if self._state == "behind":
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
            self._state, text = "within", text[opening.end() :]
        closing = _CLOSING.search(text)
        if closing is None:
            at = text.find("<", max(0, len(text) - len("</thinking>") + 1))
            if at >= 0:  # perhaps the beginning of the tag
                self._held, text = text[at:], text[:at]
            return text, ""
        self._state = "behind"
        return text[: closing.start()], text[closing.end() :]

    def end(self) -> tuple[str, str]:
        """What was held back."""
        held, self._held = self._held, ""
        return (held, "") if self._state == "within" else ("", held)


def without_thoughts(text: str) -> str:
    """A whole reply without the thought that it begins with; of a thought that does not end, nothing is left.

    The opening tag may be missing, where the model's template has written it.
    """
    answer = _CLOSING.split(text)[-1].strip()
    return "" if _OPENING.match(answer) else answer
