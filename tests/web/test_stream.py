"""Events of a request: what a client that has left, and one whose answer fails, leave in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from anyio import CapacityLimiter

from folio.schema.web import SavedEvent
from folio.web.stream import EventStream, RequestThreads


def events_of(work: Callable[[EventStream], None]) -> list[str]:
    """The kinds of events that a client gets of a request with this work."""

    async def read() -> list[str]:
        stream = EventStream(RequestThreads())
        return [sent["event"] async for sent in stream.run(lambda: work(stream), CapacityLimiter(1))]

    return asyncio.run(read())


def ends_after_its_client_left(stream: EventStream) -> None:
    stream.cancel()
    stream.send("done", SavedEvent(file="a.pdf"))  # goes nowhere


def fails(_: EventStream) -> None:
    raise RuntimeError("a bug with a name")


@pytest.mark.parametrize(
    ("work", "sent", "logged"),
    [
        (ends_after_its_client_left, [], []),
        (fails, ["error"], ["A request failed: RuntimeError: a bug with a name"]),
        (lambda _: None, ["error"], ["A request failed: its work ended without a result."]),
    ],
    ids=["the client left", "a bug", "no result"],
)
def test_a_failed_request_is_logged_with_its_reason(
    caplog: pytest.LogCaptureFixture, work: Callable[[EventStream], None], sent: list[str], logged: list[str]
) -> None:
    with caplog.at_level(logging.ERROR, "folio.web.stream"):
        assert events_of(work) == sent
    assert [record.getMessage() for record in caplog.records] == logged
