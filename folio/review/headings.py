"""A model's heading for a theme. A heading names a subject and claims nothing: one that might is not used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from folio.answer_types import Quote


@dataclass(frozen=True, slots=True)
class ModelHeading:
    """A heading that passed the checks, and the model that wrote it."""

    heading: str
    model: str


# The quotes of a theme -> its heading; None if the model gave none that may be used
NameTheme = Callable[[Sequence[Quote]], ModelHeading | None]
