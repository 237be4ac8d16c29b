"""`python -m folio`: the command `folio`."""

from __future__ import annotations

import sys

from folio.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
