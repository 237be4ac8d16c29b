"""Answerers on a scripted Ollama server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from folio.answer.extractive import ExtractiveAnswerer
from folio.answer.generative import GenerativeAnswerer
from folio.answer.layout import AnswerFormat
from folio.models.ollama import OllamaServer
from folio.protocols import Verifier
from tests.helpers.factories import even_weights
from tests.helpers.fakes import HashingEmbedder, WordReader
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.replies import Make
from tests.helpers.scripted_model import ScriptedModel


@pytest.fixture(params=["statements", "prose"])
def answer_format(request: pytest.FixtureRequest) -> AnswerFormat:
    """The forms of an answer with many statements, one after the other; `every_form` adds that with a quote."""
    form: AnswerFormat = request.param
    return form


@pytest.fixture
def make(ollama_server: OllamaStandIn) -> Make:
    """Makes an answerer that asks the scripted server."""

    def answerer(
        model: str = "llama3.1:8b",
        *,
        timeout_s: float = 60,
        url: str = "",
        evidence_tokens: int = 6000,
        answer_tokens: int = 768,
        check_cancelled: Callable[[], None] = lambda: None,
        answer_format: AnswerFormat = "prose",
        verifier: Verifier | None = None,
        strict: bool = False,
        instruction: str = "",
    ) -> GenerativeAnswerer:
        meaning = HashingEmbedder(256)
        return GenerativeAnswerer(
            OllamaServer(url or ollama_server.url, timeout_s),
            model,
            evidence_tokens=evidence_tokens,
            answer_tokens=answer_tokens,
            stand_in=ExtractiveAnswerer(meaning, WordReader(), even_weights, evidence_tokens=evidence_tokens),
            verifier=verifier,
            check_cancelled=check_cancelled,
            answer_format=answer_format,
            strict=strict,
            instruction=instruction,
        )

    return answerer


@pytest.fixture
def model(ollama_server: OllamaStandIn, make: Make, answer_format: AnswerFormat) -> ScriptedModel:
    """The scripted model, in each form of an answer."""
    return ScriptedModel(ollama_server, make, answer_format)
