"""Ask the papers in a browser: a page and an HTTP API, served from this computer.

python serve.py                                for this computer alone, at http://127.0.0.1:8420/
python serve.py --open                         also open it in the browser
python serve.py --port 0                       on a free port
python serve.py --host 0.0.0.0 --token TOKEN   for other computers too: they need the token, sent unencrypted
"""

from __future__ import annotations

import sys

from folio.cli.serve import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
