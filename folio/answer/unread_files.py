"""Names the files that could not be read where nothing was found: one of them may have the answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from folio.shown_text import name_line
from folio.text import tokenize

_MOST = 3  # files that are named


def unread_notice(weights: Mapping[str, float], names: Iterable[str]) -> str:
    """A sentence about the files, of these that could not be read, whose names have the question's rarest word.

    weights: token of the question -> its IDF. names: of the files. "" if no name has that word.
    """
    words = {token: weight for token, weight in weights.items() if not token.isdecimal()}
    rarest = {token for token, weight in words.items() if weight == max(words.values())}
    found = sorted(name for name in set(names) if rarest.intersection(tokenize(PurePath(name).stem)))
    if not found:
        return ""
    listed = ", ".join(f"“{name_line(name)}”" for name in found[:_MOST])
    which = "A file that could not be read" if len(found) == 1 else "Files that could not be read"
    return f"{which} may have the answer, by {'its name' if len(found) == 1 else 'their names'}: {listed}."
