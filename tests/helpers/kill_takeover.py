"""Opens a library of the release before again and again, and kills it each time at another of its write steps.

    python -m tests.helpers.kill_takeover JOB

JOB is a JSON list of [folder, step], where the folder holds a library; see kill_child.py. Prints a line for each run:
the signal that ended it, or 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from folio.store import takeover
from folio.store.library import Library
from tests.helpers.kill_child import Steps, run_forked


def _run(folder: Path, fatal: int) -> None:
    """In the forked process."""
    steps = Steps(folder, fatal)
    steps.watch()
    sys.setprofile(None)  # no FAISS, no tantivy
    Library(folder / "library.sqlite").close()
    (folder / "steps.json").write_text(json.dumps(steps.names))


def main(argv: list[str]) -> int:
    assert takeover.VERSION  # imported before the fork, so that no run pays for it
    return run_forked(json.loads(Path(argv[0]).read_text()), _run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
