"""Where things are that tests look at."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "papers" / "folio-sample.pdf"
SHARED = ROOT.parent / "shared"  # real papers and questions, beside the checkout where they are at all
DATA = ROOT / "tests" / "data"
CASES = DATA / "cases"  # small PDFs of kinds of pages that people report


@cache
def models_folder() -> Path:
    """A MODELS_DIR for all tests of this process: the graph that is made of the built-in model is made once."""
    folder = Path(tempfile.mkdtemp(prefix="folio-models-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
