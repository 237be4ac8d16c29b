"""Where things are that tests look at."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "papers" / "folio-sample.pdf"
SHARED = ROOT.parent / "shared"  # real papers and questions, beside the checkout where they are at all
