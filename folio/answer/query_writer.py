"""A chat model writes additional search input for a question: other wordings, or a passage that would answer it.

Its text only finds passages; it is never shown or quoted.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache, partial
from time import monotonic
from typing import Any, Literal

from folio.answer import prompts
from folio.answer.parser import object_schema
from folio.answer.reply_json import JsonModel, StoppedError, lines_of, list_shape, printable_line
from folio.errors import ModelError
from folio.models.model_server import ModelServer
from folio.papers.model import Notice
from folio.protocols import NOTHING_WRITTEN, Written
from folio.text import tokenize

MOST_WORDINGS = 3
LONGEST_WORDING, LONGEST_PASSAGE = 200, 1200  # characters
LEAST_WORDS = 5  # of a usable passage
REPLY_TOKENS = 400
REMEMBERED = 64  # questions whose replies are cached

_WORDINGS = list_shape("queries", 1, MOST_WORDINGS)
_PASSAGE = object_schema(passage={"type": "string"})


class LlmQueryWriter:
    """See protocols.QueryWriter. Reports once that there was no usable reply in time."""

    def __init__(
        self,
        server: ModelServer,
        model: str,
        how: Literal["llm", "hyde"],
        tokens: int,
        seconds: float,
        notice: Notice,
    ) -> None:
        """Nothing is sent to the server yet.

        how: "llm" writes other wordings; "hyde" writes a passage, as Gao et al. 2022, "Precise zero-shot dense
        retrieval without relevance labels". tokens: as for JsonModel. seconds: time limit for one question. notice:
        called once if no reply was usable.
        """
        self._open = partial(JsonModel, server, model, tokens=tokens)
        self._model: JsonModel | None = None
        self._how = how
        self._seconds = seconds
        self._notice = notice
        self._has_reported = False
        self.write = lru_cache(REMEMBERED)(self._write)

    def _write(self, question: str) -> Written:
        """Additional search input. Raises ModelError if the server does not have the model."""
        self._model = model = self._model or self._open()
        end = monotonic() + self._seconds

        def check() -> None:
            if monotonic() >= end:
                raise StoppedError

        is_passage = self._how == "hyde"
        written: Written | None = None
        with suppress(ModelError):  # the answer reports the error and its remedy
            written = model.ask(
                (prompts.PASSAGE if is_passage else prompts.WORDINGS).format(question=question),
                _PASSAGE if is_passage else _WORDINGS,
                _passage if is_passage else lambda reply: _wordings(reply, question),
                reply_tokens=REPLY_TOKENS,
                take_call=lambda: monotonic() < end,
                check=check,
            )
        if written is None and not self._has_reported:
            self._has_reported = True
            self._notice(
                f"QUERY_VARIANTS={self._how}: {model.name} wrote nothing usable in {self._seconds:g} s, so questions"
                " are searched as they are. Set QUERY_VARIANTS=off, or more VARIANTS_SECONDS."
            )
        return written or NOTHING_WRITTEN


def _wordings(reply: Any, question: str) -> Written | None:
    lines = lines_of(reply, "queries", MOST_WORDINGS, LONGEST_WORDING) or []
    others = {tuple(tokenize(line)): line for line in lines}
    others.pop(tuple(tokenize(question)), None)
    return Written(wordings=tuple(others.values())) if others else None


def _passage(reply: Any) -> Written | None:
    text = reply.get("passage") if isinstance(reply, dict) else None
    if not isinstance(text, str):
        return None
    line = printable_line(text, LONGEST_PASSAGE)
    return Written(passage=line) if len(tokenize(line)) >= LEAST_WORDS else None
