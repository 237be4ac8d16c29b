"""A chat model as a verifier: one yes-or-no question about each statement, answered in one token.

The messages begin as the answer's did, byte for byte: rules, then evidence. The server keeps what it has read of its
last request, so only the question about the statement is read anew. A model that cannot help thinking says yes or no
behind its thought, in which case the word itself decides. MiniCheck (Tang et al. 2024, "MiniCheck: Efficient
Fact-Checking of LLMs on Grounding Documents") was trained on one form of request, and gets that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy

from folio.answer import prompts
from folio.answer.fencing import claim_question, minicheck_question
from folio.answer.generative import TEMPLATE_TOKENS
from folio.errors import ContextTooSmall
from folio.models.ollama import OllamaServer
from folio.models.ollama_chat import CONTEXT_SIZES, ChatModel, FirstToken
from folio.protocols import Claim, Entailment, PromptStart
from folio.text import estimate_tokens

# "yes" and "no" must have at least this probability together. Below it the model was about to write something else,
# such as a thought or a refusal, and the ratio of two such rare words says nothing.
MIN_PROBABILITY = 0.01
_NO_LETTER = re.compile(r"[\W_]+")
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

        shares_prompt: whether it is the model that writes the answers. Another one has not read the evidence, and is
        asked without it. check_cancelled: called often while waiting for the model; what it raises ends the check.
        """
        self._model = ChatModel.open(server, model)
        self._is_minicheck = bool(_MINICHECK.search(self._model.name))
        self._shares_prompt = shares_prompt and not self._is_minicheck
        self._check_cancelled = check_cancelled
        self._room = self._model.room  # that the context of the start has for a thought
        self._start = PromptStart("" if self._is_minicheck else prompts.VERIFIER, "", 0)
        self.name = f"{self._model.name} (Ollama)"

    def for_answer(self, start: PromptStart) -> LlmVerifier:
        """See protocols.Verifier. Itself if another model writes the answers."""
        if not self._shares_prompt:
            return self
        verifier = copy(self)
        verifier._start, verifier._room = start, self._model.room
        return verifier

    def entails(self, claims: Sequence[Claim]) -> Iterator[Entailment]:
        """See protocols.Verifier. A claim that the context cannot hold is not asked about, and so not known."""
        for claim in claims:
            # JSON may hold lone surrogates, and so may what a model wrote; requests cannot.
            question = minicheck_question(claim) if self._is_minicheck else claim_question(claim)
            question = question.encode("utf-8", "replace").decode("utf-8")
            yield Entailment(self._ask(self._start.evidence + question))

    def _ask(self, prompt: str) -> float | None:
        rules = self._start.rules
        # Without an answer whose context it shares, the smallest one.
        context = self._start.context or CONTEXT_SIZES[0]
        if not self._start.context or self._model.room > self._room:  # more than the answer was begun with
            context = self._model.context_for(context)
        if estimate_tokens(rules) + estimate_tokens(prompt) + TEMPLATE_TOKENS + self._model.room >= context:
            return None
        try:
            token = self._model.first_token(rules, prompt, context=context, check_cancelled=self._check_cancelled)
        except ContextTooSmall:  # the estimate was too low
            return None
        return _probability(token)


def _probability(token: FirstToken) -> float | None:
    """Of yes against no; None if the model said neither. Without alternatives the word that was written decides."""
    sums = {"yes": 0.0, "no": 0.0}
    for text, logprob in token.alternatives or ((token.text, 0.0),):
        word = _NO_LETTER.sub("", text).casefold()
        if word in sums:
            sums[word] += math.exp(logprob)
    total = sums["yes"] + sums["no"]
    return sums["yes"] / total if total >= MIN_PROBABILITY else None
