"""The queue of uploads: POST /uploads queues a PDF, GET /uploads/events tells how far the queue is, ..."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from sse_starlette import EventSourceResponse
from starlette.requests import ClientDisconnect

from folio.errors import FolioError
from folio.web.openapi_responses import event_stream
from folio.web.schema import event
from folio.web.sse import RequestCancelled
from folio.web.upload_queue import UploadQueue
from folio.web.upload_schema import (
    CancelledUploads,
    RetriedUploads,
    UploadId,
    UploadJson,
    UploadName,
    UploadsJson,
)

# Seconds between looks whether the queue has changed
_LOOK_S = 0.25
_BODY = {"required": True, "content": {"application/pdf": {"schema": {"type": "string", "format": "binary"}}}}


def upload_routes(queue: UploadQueue) -> APIRouter:
    routes = APIRouter(tags=["Uploads"])

    @routes.post("/uploads", status_code=202, openapi_extra={"requestBody": _BODY})
    async def queue_upload(request: Request, name: Annotated[UploadName, Query()] = "") -> UploadJson:
        """Queue a PDF, sent as the body. It is kept when this replies, and added when those before it are done: the
        client may leave. A body that ends too early is not queued."""
        incoming = await to_thread.run_sync(queue.receive, name)
        refused: FolioError | OSError | None = None
        try:
            async for block in request.stream():
                if refused is None:
                    try:
                        await to_thread.run_sync(incoming.write, block)
                    except (FolioError, OSError) as error:
                        refused = error  # told when all has come: a connection that is cut has no reply
            if refused is not None:
                raise refused
            return await to_thread.run_sync(incoming.commit)
        except ClientDisconnect:
            raise RequestCancelled from None
        finally:
            incoming.discard()

    @routes.get("/uploads")
    def list_uploads() -> UploadsJson:
        """The queue: what waits, is being added, or failed. What was added is listed until a client was told."""
        return queue.state()

    @routes.get("/uploads/events", response_class=EventSourceResponse, responses=event_stream("uploads", "done"))
    async def follow_uploads() -> EventSourceResponse:
        """The queue each time it changes, as `uploads`; as `done`, the last event, when nothing waits any more."""
        return EventSourceResponse(_follow(queue))

    @routes.delete("/uploads")
    def cancel_uploads(failed: bool = False) -> CancelledUploads:
        """Cancel all that wait or are being added; with `failed`, forget all that failed."""
        return CancelledUploads(cancelled=queue.cancel_all(failed=failed))

    @routes.delete("/uploads/{upload}", status_code=204)
    def cancel_upload(upload: UploadId) -> None:
        """Take one from the queue. One that is being added is stopped at its next step."""
        queue.cancel(upload)

    @routes.post("/uploads/retry")
    def retry_uploads() -> RetriedUploads:
        """Queue all that failed again."""
        return RetriedUploads(retried=queue.retry_all())

    @routes.post("/uploads/{upload}/retry")
    def retry_upload(upload: UploadId) -> UploadJson:
        """Queue one that failed again."""
        return queue.retry(upload)

    return routes


async def _follow(queue: UploadQueue) -> AsyncIterator[dict[str, str]]:
    version: object = None
    sent = None
    while True:
        if version != queue.version:
            version = queue.version
            state = await to_thread.run_sync(queue.state)
            if state != sent:
                yield event("uploads" if state.active else "done", state)
            if not state.active:
                return
            sent = state
        await asyncio.sleep(_LOOK_S)
