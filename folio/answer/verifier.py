"""A chat model as a verifier: one yes-or-no question about each statement, answered in one token.

The messages begin like the answer's, byte for byte: rules, then evidence. The server caches its last prompt, so it
reads only the question about the statement. A model that cannot stop thinking answers after its thought, and then the
word itself decides. MiniCheck (Tang et al. 2024, "MiniCheck: Efficient Fact-Checking of LLMs on Grounding Documents")
gets the form of request that it was trained on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from time import monotonic

from folio.answer import prompts
from folio.answer.fencing import claim_question, minicheck_question
from folio.answer.trials import LEAST_RIGHT, trials
from folio.answer.validation import LEAST_ENTAILED
from folio.errors import ContextTooSmall
from folio.models.chat_model import ChatModel
from folio.models.model_server import CONTEXT_SIZES, TEMPLATE_TOKENS, ModelServer
from folio.protocols import Claim, Entailment, PromptStart
from folio.system.files import write_json
from folio.text import estimate_tokens

SLOW_S = 0.5  # seconds for one trial from which a person is told of them
_MINICHECK = re.compile(r"minicheck", re.I)


class LlmVerifier:
    """Asks a model on a server. The probability is that of "yes" against "no" as the first word of its reply."""

    def __init__(
        self,
        server: ModelServer,
        model: str,
        *,
        kept: Path | None = None,
        shares_prompt: bool = True,
        check_cancelled: Callable[[], None] = lambda: None,
        notice: Callable[[str], None] = lambda text: None,
        usual_tokens: int = 0,
    ) -> None:
        """Asks the server about the model. Raises as ModelServer.require_local does.

        kept: a JSON file with the outcome of each model's trial, by digest; without one, the model is not tried.
        notice: gets a sentence if a trial takes its time. usual_tokens: as for ChatModel.
        shares_prompt: whether this model also writes the answers; another model gets only the sentences of the claim.
        check_cancelled: called often while waiting for the model; an exception ends the check.
        """
        self._model = ChatModel.open(server, model, usual_tokens)
        self._kept, self._notice = kept, notice
        self._is_minicheck = bool(_MINICHECK.search(self._model.name))
        self._shares_prompt = shares_prompt and not self._is_minicheck
        self._check_cancelled = check_cancelled
        self._room = self._model.room  # for a thought, in the context of the start
        self._start = PromptStart("" if self._is_minicheck else prompts.VERIFIER, "", 0)
        self.name = self._model.title

    def is_judge(self) -> bool:
        """See protocols.Verifier. The outcome of the trial is kept with the model's digest."""
        if self._kept is None:
            return True
        known = _read(self._kept)
        if self._model.digest not in known:
            known |= {self._model.digest: self._tried()}
            with suppress(OSError):  # it is tried again next time
                write_json(self._kept, known)
        return known[self._model.digest]

    def _tried(self) -> bool:
        """Whether the model is right on enough of the trials; stops when that is known."""
        claims = list(trials())
        right = wrong = 0
        begun = monotonic()
        for is_true, verdict in zip((true for _, true in claims), self.entails([c for c, _ in claims]), strict=True):
            is_right = verdict.entails is not None and (verdict.entails >= LEAST_ENTAILED) == is_true
            right, wrong = right + is_right, wrong + (not is_right)
            if right + wrong == 1 and (seconds := monotonic() - begun) > SLOW_S:
                left = f"up to {seconds * len(claims):.0f} seconds"
                self._notice(f"Trying once whether {self._model.name} tells true statements from false: {left}.")
            if right == LEAST_RIGHT or wrong > len(claims) - LEAST_RIGHT:
                break
        return right >= LEAST_RIGHT

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


def _read(kept: Path) -> dict[str, bool]:
    """What came of the trials; {} for a missing or damaged file."""
    try:
        known = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: one for name, one in known.items() if isinstance(one, bool)} if isinstance(known, dict) else {}
