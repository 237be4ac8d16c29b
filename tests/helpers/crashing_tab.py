"""A tab whose process is killed and which is then loaded again, as by the button "Reload" of a crashed tab."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Thread
from time import monotonic, sleep
from typing import Any

from playwright.sync_api import Browser
from playwright.sync_api import Error as PlaywrightError

LIMIT_S = 120


class CrashingTab:
    """Playwright gives up a page that has crashed, so this one is driven by Chromium's own protocol."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser.new_browser_cdp_session()
        self._ids = count(1)
        self._replies: dict[int, Any] = {}
        self._browser.on("Target.receivedMessageFromTarget", self._received)
        targets = self._browser.send("Target.getTargets")["targetInfos"]
        target = next(each for each in targets if each["type"] == "page" and each["url"].startswith(url))
        attached = self._browser.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": False})
        self._session = attached["sessionId"]

    def _received(self, event: dict[str, Any]) -> None:
        message = json.loads(event["message"])
        if "id" in message:
            self._replies[message["id"]] = message

    def send(self, method: str, *, limit_s: float = 5, **values: Any) -> Any:
        """The result of a command; None if the tab's process has died meanwhile."""
        id = next(self._ids)
        message = json.dumps({"id": id, "method": method, "params": values})
        self._browser.send("Target.sendMessageToTarget", {"sessionId": self._session, "message": message})
        end = monotonic() + limit_s
        while id not in self._replies and monotonic() < end:
            self._browser.send("Browser.getVersion")  # what was received is delivered meanwhile
        return self._replies.pop(id, {}).get("result")

    def evaluate(self, code: str) -> Any:
        """The value of JavaScript, which may be a promise; None if it throws."""
        how = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        # What presses buttons is not begun a second time while it still runs, on a slow machine
        result = self.send("Runtime.evaluate", limit_s=LIMIT_S / 2, expression=code, **how)
        return (result or {}).get("result", {}).get("value")

    def wait(self, code: str) -> Any:
        """The value of JavaScript once it is true."""
        end = monotonic() + LIMIT_S
        while not (value := self.evaluate(code)):
            assert monotonic() < end, (code, self.evaluate("document.body.innerText"))
            sleep(0.05)
        return value

    def type_until_killed(self, text: str, after_s: float) -> int:
        """Types characters into the field with the focus; returns how many had arrived when the process was killed."""
        renderers = [
            each["id"]
            for each in self._browser.send("SystemInfo.getProcessInfo")["processInfo"]
            if each["type"] == "renderer"
        ]
        killer = Thread(target=_kill, args=(renderers, after_s))
        arrived = 0
        for character in text:
            if arrived == 1:
                killer.start()  # on a slow machine it would otherwise come before anything is typed
            if arrived and not killer.is_alive():
                break
            if self.send("Input.insertText", limit_s=1 if arrived else LIMIT_S, text=character) is None:
                break
            arrived += 1
        killer.join()
        return arrived

    def reload(self) -> None:
        """Loads the tab again, as soon as the browser has noticed that its process died."""
        end = monotonic() + LIMIT_S
        while self.send("Runtime.evaluate", expression="1", limit_s=0.5) is None:
            assert monotonic() < end
            self.send("Page.reload", limit_s=0.5)


def _kill(processes: list[int], after_s: float) -> None:
    sleep(after_s)
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@contextmanager
def crashing_tab(browser: Browser, url: str) -> Iterator[CrashingTab]:
    context = browser.new_context()
    context.new_page().goto(url)
    yield CrashingTab(browser, url.partition("#")[0])
    with suppress(PlaywrightError):
        context.close()
