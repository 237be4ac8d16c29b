"""What is made of a model's words by the parser and the validator, without a server."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from folio.answer.layout import AnswerFormat, Layout
from folio.answer.validation import ValidationResult, Validator, parts_of
from folio.answer_types import Checking, Evidence, RejectedSentence, Sentence, Style
from folio.grounding.grounder import Grounder


def check(
    pieces: Iterable[str],
    evidence: Sequence[Evidence],
    *,
    style: Style = "plain",
    answer_format: AnswerFormat = "prose",
    whole: bool = True,
    max_chars: int = 100_000,
) -> Generator[Sentence | RejectedSentence, None, ValidationResult]:
    """Output in this form over this evidence, without a verifier. whole: False if the model was cut off at the end."""
    layout = Layout("What?", evidence, answer_format, style)
    parts = parts_of(pieces, layout.parser(), max_chars=max_chars, is_cut=lambda: not whole)
    checking = Validator(Grounder(layout.evidence), style=style).check(parts)
    while True:
        try:
            part = next(checking)
        except StopIteration as stopped:
            result: ValidationResult = stopped.value
            return result
        assert not isinstance(part, Checking), "nothing waits where there is no verifier"
        yield part
