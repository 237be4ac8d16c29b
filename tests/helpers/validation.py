"""What is made of a model's words: prose through the parser and the validator, without a server."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from folio.answer.output_parser import OutputParser
from folio.answer.validation import Part, ValidationResult, Validator, parts_of
from folio.grounding.grounder import Grounder
from folio.protocols import Verifier
from folio.types import Evidence, Style


def check(
    pieces: Iterable[str],
    evidence: Sequence[Evidence],
    *,
    style: Style = "plain",
    whole: bool = True,
    max_chars: int = 100_000,
    verifier: Verifier | None = None,
    strict: bool = False,
) -> Generator[Part, None, ValidationResult]:
    """Prose over this evidence. whole: False if the model was cut off at the end."""
    parts = parts_of(pieces, OutputParser(len(evidence)), max_chars=max_chars, is_cut=lambda: not whole)
    return Validator(Grounder(evidence), verifier, style, strict).check(parts)
