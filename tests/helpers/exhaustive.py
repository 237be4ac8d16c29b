"""Whether tests that sample a long list go through all of it: with EXHAUSTIVE=1 in the environment."""

from __future__ import annotations

import os

EXHAUSTIVE = bool(os.environ.get("EXHAUSTIVE"))
