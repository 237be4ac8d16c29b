"""A chat model as a verifier: one yes-or-no question about each statement, answered in one token.

The messages begin like the answer's, byte for byte: rules, then evidence. The server caches its last prompt, so it
reads only the question about the statement. A model that cannot stop thinking answers after its thought, and then the
word itself decides. MiniCheck (Tang et al. 2024, "MiniCheck: Efficient Fact-Checking of LLMs on Grounding Documents")
gets the form of request that it was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy

from folio.answer import prompts
from folio.answer.fencing import claim_question, minicheck_question
from folio.answer.generative import TEMPLATE_TOKENS
from folio.errors import ContextTooSmall
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import CONTEXT_SIZES, ChatModel
from folio.protocols import Claim, Entailment, PromptStart
from folio.text import estimate_tokens

_MINICHECK = re.compile(r"minicheck", re.I)


class LlmVerifier:
    """Asks a model on Ollama. The probability is that of "yes" against "no" as the first word of its reply."""

    def __init__(
        self,
        server: OllamaServer,
        model: str,
        *,
        shares_prompt: bool = True,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Asks the server about the model. Raises as OllamaServer.require_local does.

        shares_prompt: whether this model also writes the answers; another model gets only the sentences of the claim.
        check_cancelled: called often while waiting for the model; an exception ends the check.
        """
        self._model = ChatModel.open(server, model)
        self._is_minicheck = bool(_MINICHECK.search(self._model.name))
        self._shares_prompt = shares_prompt and not self._is_minicheck
        self._check_cancelled = check_cancelled
        self._room = self._model.room  # for a thought, in the context of the start
        self._start = PromptStart("" if self._is_minicheck else prompts.VERIFIER, "", 0)
        self.name = f"{self._model.name} (Ollama)"

    def for_answer(self, start: PromptStart) -> LlmVerifier:
        """See protocols.Verifier. Returns itself if another model writes the answers."""
        if not self._shares_prompt:
            return self
        verifier = copy(self)
        verifier._start, verifier._room = start, self._model.room
        return verifier

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """See protocols.Verifier. A claim that is too long for the context has no verdict."""
        for claim in claims:
            # A model's JSON may contain lone surrogates; requests cannot.
            question = minicheck_question(claim) if self._is_minicheck else claim_question(claim)
            question = question.encode("utf-8", "replace").decode("utf-8")
            yield Entailment(self._ask(self._start.evidence + question))

    def _ask(self, prompt: str) -> float | None:
        rules = self._start.rules
        context = self._start.context or CONTEXT_SIZES[0]
        if not self._start.context or self._model.room > self._room:  # has grown since the answer began
            context = self._model.context_for(context)
        if estimate_tokens(rules) + estimate_tokens(prompt) + TEMPLATE_TOKENS + self._model.room >= context:
            return None
        try:
            token = self._model.first_token(rules, prompt, context=context, check_cancelled=self._check_cancelled)
        except ContextTooSmall:  # the estimate was too low
            return None
        return token.yes
