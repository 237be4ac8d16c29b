"""Something small that is done to a store, and killed at one of its write steps; see kill_child.py.

Its main takes WHAT FOLDER STEP. WHAT is "takeover", where FOLDER holds a library of the release before, or "edit",
where it holds papers and a store. Step 0 is never reached; the names of the steps are then written into
FOLDER/steps.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from folio.papers.edits import edited, parse_edits
from folio.store import old_library
from folio.store.library import Library
from tests.helpers.fakes import hashing_app
from tests.helpers.kill_child import Steps

_IMPORTED = old_library  # before the fork, so that no run pays for it


def _take_over(folder: Path) -> None:
    Library(folder / "library.sqlite").close()


def _edit(folder: Path) -> None:
    """What `folio papers edit` does."""
    app, edits = hashing_app(folder), parse_edits(["title=Zanzibar Trees", "year=1999"], [])
    with closing(app.open_library()) as library:
        (paper,) = (paper.id for paper in library.papers() if paper.file == "trees.pdf")
        is_renamed = library.change_metadata(paper, "person", lambda person: edited(person, edits))
    app.finish_edit(is_renamed=is_renamed)


_WHAT: dict[str, Callable[[Path], None]] = {"takeover": _take_over, "edit": _edit}


def main(what: str, folder: str, step: str) -> None:
    steps = Steps(Path(folder), int(step))
    steps.watch()
    sys.setprofile(None)  # FAISS and tantivy write nothing that is looked at
    _WHAT[what](Path(folder))
    Path(folder, "steps.json").write_text(json.dumps(steps.names))
