"""A model's heading for a theme. A heading names a subject and claims nothing: one that might is not used.

The model sees the quotes of a theme, fenced as evidence. Its heading has few words, each in the quotes or the titles,
no number, no verb and no judgement; otherwise the theme is headed by words of the quotes, as without a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from folio.answer import prompts
from folio.answer.fencing import excerpt_block
from folio.answer.parser import object_schema
from folio.answer.reply_json import JsonModel, printable_line
from folio.answer_types import Quote
from folio.errors import ModelError
from folio.models.model_server import ModelServer
from folio.shown_text import page_words
from folio.text import STOP_WORDS, one_line, tokenize

MOST_WORDS, LONGEST = 6, 60  # words and characters of a heading
_MOST_SHOWN = 8  # quotes, the first of each paper
_REPLY_TOKENS = 48
_SHAPE = object_schema(heading={"type": "string"})
_NAME = re.compile(r"[^\W\d_][\w’'/&-]*(?:,? [^\W\d_][\w’'/&-]*)*")
# Words with which a heading would claim something: verbs, denials, comparisons, judgements
_CLAIMS = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|should|must|may|might|not?|never|none"
    r"|without|than|more|most|less|least|better|best|worse|worst|only|always|all|every|success\w*|fail\w*|super\w+|novel"
    r"|efficient\w*|effective\w*|fast\w*|strong\w*|weak\w*|good|bad|important|improv\w+|increas\w+|decreas\w+"
    r"|reduc(?:e|es|ed|ing)|outperform\w*|prov(?:e|es|ed|en|ing)|show\w*|caus(?:e|es|ed|ing)|enabl\w+|achiev\w+"
    r"|guarant\w+|ensur\w+|prevent\w*|need\w*|require\w*|allow\w*|make\w*|help\w*|lead\w*|beat\w*|solv\w+)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class ModelHeading:
    """A heading that passed the checks, and the model that wrote it."""

    heading: str
    model: str


# The quotes of a theme -> its heading; None if the model gave none that may be used
NameTheme = Callable[[Sequence[Quote]], ModelHeading | None]


class HeadingWriter:
    """A chat model that names themes. Once its server fails, it names no more."""

    def __init__(
        self, server: ModelServer, model: str, *, tokens: int, check_cancelled: Callable[[], None] = lambda: None
    ) -> None:
        """Asks the server about the model. Raises as JsonModel does. tokens: as for JsonModel.

        check_cancelled: called often; an exception that it raises ends the call.
        """
        self._model = JsonModel(server, model, tokens=tokens)
        self._check_cancelled = check_cancelled
        self._has_failed = False

    def __call__(self, quotes: Sequence[Quote]) -> ModelHeading | None:
        if self._has_failed:
            return None
        firsts = list({quote.paper.id: quote for quote in reversed(quotes)}.values())[::-1][:_MOST_SHOWN]
        shown = ((each, page_words((each.page, each.page))) for each in firsts)
        blocks = [excerpt_block(each.paper, page, one_line(each.quote)) for each, page in shown]
        prompt = prompts.HEADING.format(evidence="\n".join(blocks))
        try:
            heading = self._model.ask(
                prompt,
                _SHAPE,
                lambda reply: _checked(reply, quotes),
                reply_tokens=_REPLY_TOKENS,
                take_call=lambda: True,
                check=self._check_cancelled,
            )
        except ModelError:
            self._has_failed = True
            return None
        return ModelHeading(heading, self._model.title) if heading else None


def _checked(reply: Any, quotes: Sequence[Quote]) -> str | None:
    heading = reply.get("heading") if isinstance(reply, dict) else None
    if not isinstance(heading, str):
        return None
    line = printable_line(heading, LONGEST + 1).strip(" .")
    return f"{line[:1].upper()}{line[1:]}" if may_head(line, quotes) else None


def may_head(heading: str, quotes: Sequence[Quote]) -> bool:
    """Whether a heading only names what the quotes are about: words that they or their titles have, one of them in
    several papers if there are several."""
    words = heading.split()
    if not 1 <= len(words) <= MOST_WORDS or len(heading) > LONGEST:
        return False
    if not _NAME.fullmatch(heading) or _CLAIMS.search(heading):
        return False
    papers: dict[str, set[str]] = {}
    for quote in quotes:
        papers.setdefault(quote.paper.id, set()).update(tokenize(f"{quote.paper.title} {quote.quote}"))
    counts = Counter(token for tokens in papers.values() for token in tokens)
    said = {token for word in words if word.casefold() not in STOP_WORDS for token in tokenize(word)}
    shared = max((counts[token] for token in said), default=0)
    return all(counts[token] for token in said) and shared >= min(2, max(1, len(papers)))
