"""Puts the command `folio` of this checkout into the environment that runs this script, as `make ask` does.

The checkout itself is not installed: the command runs what is in its folder.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A shell reads the second line, which may name a path with blanks or of any length; for Python it begins a string.
COMMAND = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys

sys.path.insert(0, {root!r})
from folio.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""


def install(folder: Path) -> Path:
    """Write the command into a folder of programs; returns its file."""
    path = folder / "folio"
    path.unlink(missing_ok=True)  # not through a link
    path.write_text(COMMAND.format(python=sys.executable, root=str(ROOT)), encoding="utf-8")
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    install(Path(sysconfig.get_path("scripts")))
