"""How long the page's main thread works at a stretch: time of the processor, so other programs do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.helpers.browser import Tab

_CATEGORIES = ["toplevel", "devtools.timeline"]
_TASKS = ("RunTask", "ThreadControllerImpl::RunTask")


def longest_tasks(tab: Tab, act: Callable[[], object]) -> list[float]:
    """Milliseconds of the tasks that the page's main thread does while something is done, the longest first."""
    devtools = tab.context.new_cdp_session(tab.page)
    events: list[dict[str, Any]] = []
    ended: list[object] = []
    devtools.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    devtools.on("Tracing.tracingComplete", lambda data: ended.append(data))
    devtools.send(
        "Tracing.start", {"transferMode": "ReportEvents", "traceConfig": {"includedCategories": _CATEGORIES}}
    )
    act()
    devtools.send("Tracing.end")
    while not ended:
        tab.page.wait_for_timeout(50)
    devtools.detach()
    places = Counter((event["pid"], event["tid"]) for event in events if event["name"] == "FunctionCall")
    (page, _), *_ = places.most_common(1)
    tasks = (
        event["tdur"] / 1000
        for event in events
        if event["name"] in _TASKS and (event["pid"], event["tid"]) == page and "tdur" in event
    )
    return sorted(tasks, reverse=True)
