"""A chat model that is asked for JSON of a given shape, bounded in tokens, tries and time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from folio.answer import prompts
from folio.answer.generative import TEMPLATE_TOKENS
from folio.answer.markup import printable
from folio.answer.reply_json import reply_value
from folio.errors import ContextTooSmall, ModelFailed, ThoughtAlone
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import ChatModel
from folio.text import estimate_tokens, one_line, tokenize

T = TypeVar("T")

TRIES = 2  # of a reply that is not as asked for


class StoppedError(Exception):
    """Raised by a check to give a call up."""


class JsonModel:
    """One model on one server."""

    def __init__(self, server: OllamaServer, model: str, *, tokens: int) -> None:
        """Asks the server about the model. Raises as OllamaServer.require_local does.

        tokens: of the longest prompt of an answer and its reply; the model is loaded with the same context for both,
        where it can be.
        """
        self._model = ChatModel.open(server, model, tokens)
        self._tokens = min(tokens, self._model.largest - self._model.room)
        self.name = self._model.name

    def fits(self, prompt: str, reply_tokens: int) -> bool:
        """Whether a prompt and its reply fit into the context."""
        needed = estimate_tokens(prompts.RULES) + estimate_tokens(prompt) + TEMPLATE_TOKENS + reply_tokens
        return needed <= self._tokens

    def ask(
        self,
        prompt: str,
        shape: dict[str, Any],
        read: Callable[[Any], T | None],
        *,
        reply_tokens: int,
        take_call: Callable[[], bool],
        check: Callable[[], None],
    ) -> T | None:
        """What `read` makes of the reply; None if it made nothing of TRIES replies, or there was none.

        take_call: called before each try; False ends it. check: called often; StoppedError gives it up. Raises
        ModelError if the server fails, ModelFailed only if it does so in the last try.
        """
        prompt = prompt.encode("utf-8", "replace").decode()
        if not self.fits(prompt, reply_tokens):
            return None
        failed: ModelFailed | None = None
        for _ in range(TRIES):
            if not take_call():
                return None
            try:
                found, failed = read(reply_value(self._reply(prompt, shape, reply_tokens, check), shape)), None
            except (StoppedError, ContextTooSmall):
                return None
            except ThoughtAlone:  # and it would be so again
                if self._model.only_thinks:
                    raise
                return None
            except ModelFailed as error:
                found, failed = None, error
            if found is not None:
                return found
        if failed is not None:
            raise failed
        return None

    def _reply(self, prompt: str, shape: dict[str, Any], longest: int, check: Callable[[], None]) -> str:
        check()
        context = self._model.context_for(self._tokens)
        return self._model.write(
            prompts.RULES, prompt, context=context, longest=longest, shape=shape, check_cancelled=check
        )


def list_shape(field: str, least: int, most: int, longest: int) -> dict[str, Any]:
    """The schema of an object with a list of short texts. longest: characters of one."""
    items = {"type": "string", "maxLength": longest}
    texts = {"type": "array", "items": items, "minItems": least, "maxItems": most}
    return {"type": "object", "properties": {field: texts}, "required": [field]}


def lines_of(found: Any, field: str, most: int, longest: int) -> list[str] | None:
    """The first texts of such an object, each one printable line with words in it; None if it has no list."""
    texts = found.get(field) if isinstance(found, dict) else None
    if not isinstance(texts, list):
        return None
    lines = [printable_line(text, longest) for text in texts if isinstance(text, str)]
    return [line for line in lines if tokenize(line)][:most]


def printable_line(text: str, longest: int) -> str:
    """A text as one printable line, cut off."""
    return one_line(printable(text[: 8 * longest]))[:longest]
