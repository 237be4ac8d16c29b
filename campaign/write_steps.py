"""Commands that are killed before one of their write steps, or whose steps are counted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from campaign.desk import Desk, Work


def killed_at(desk: Desk, step: int) -> Callable[[Work], int]:
    """Runs the work until just before its write step of this number, from 1."""

    def around(work: Work) -> int:
        from tests.helpers.kill_child import Steps

        Steps(desk.root, step).watch()
        return work()

    return around


def counted(desk: Desk) -> Callable[[Work], int]:
    """Runs the work to its end, and writes the number of its write steps to steps.json."""

    def around(work: Work) -> int:
        from tests.helpers.kill_child import Steps

        steps = Steps(desk.root, 0)
        steps.watch()
        leave = os._exit

        def left(code: int) -> None:
            sys.setprofile(None)
            os._exit = leave
            (desk.root / "steps.json").write_text(json.dumps(len(steps.names)))
            leave(code)

        os._exit = left  # type: ignore[assignment]
        return work()

    return around
