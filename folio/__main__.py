"""`python -m folio`: the command `folio`."""

from __future__ import annotations

import sys

from folio.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
