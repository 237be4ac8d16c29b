"""The sample paper that Folio ships with: it is searched only while it is the only one, or when Folio is named."""

from __future__ import annotations

import re

# The SHA-256 of papers/folio-sample.pdf, which is its id in a library. scripts/make_sample.py makes that file.
SAMPLE_ID = "377fb8174cfddaec8cbf10b33de9f5784705d4f0468979abd3735d4bdef3841c"
_NAME = re.compile(r"\bfolio\b", re.I)


def names_sample(question: str) -> bool:
    """Whether a question names Folio, the subject of its sample paper, or the file."""
    return _NAME.search(question) is not None
