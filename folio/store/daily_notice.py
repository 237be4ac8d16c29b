"""Records in the store's folder that today's notice about better models was shown."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import date
from pathlib import Path

PREFIX = "announced-"


def is_first_today(folder: Path, today: date | None = None) -> bool:
    """Whether this is the first call today for this folder, over all processes.

    Creating the file of today's date succeeds for only one of several processes. If it cannot be created, as in a
    folder that is missing or read-only, every call counts as the first.
    """
    mark = folder / f"{PREFIX}{(today or date.today()).isoformat()}"
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    with suppress(OSError):
        for old in folder.glob(f"{PREFIX}*"):
            if old != mark:
                old.unlink(missing_ok=True)
    return True
