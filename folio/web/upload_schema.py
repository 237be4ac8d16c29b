"""What the web API says of uploads: files that the server has, and adds to the library one after the other."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from folio.ingest.progress import Status
from folio.schema_parts import Count, Sha256, Strict

UPLOAD = "^[0-9]{19}-[0-9a-f]{8}$"
UploadId = Annotated[str, Field(pattern=UPLOAD, description="Opaque; sorts by time of arrival.")]
# A folder's path before a file's name is allowed, and ignored.
UploadName = Annotated[str, Field(max_length=4000, description="The file's name.")]
UploadState = Literal["waiting", "reading", "embedding", "stopping", "added", "failed"]


class UploadJson(Strict):
    """A file in the queue. One that was added leaves it soon after a client was told; one that failed stays."""

    id: UploadId
    file: str
    """Its name, as it is saved unless another file has that name."""
    state: UploadState
    done: Count
    """Passages that were embedded."""
    of: Count
    """Passages that it has; 0 until it was read."""
    status: Status | None
    """Of a file that was added: whether it is new, replaces an older version, or was there before."""
    paper: Sha256 | None
    """The paper's id, once it was added."""
    title: str
    pages: Count
    notes: list[str]
    error: str
    """Why it failed; empty if it did not."""
    remedy: str


class UploadsJson(Strict):
    """The queue of uploads."""

    uploads: list[UploadJson]
    """In the order of their arrival, which is the order in which they are added."""
    active: bool
    """Whether some wait or are being added."""
    notice: str
    """Why nothing is being added at the moment, although some wait; empty otherwise."""


class CancelledUploads(Strict):
    cancelled: Count
    """How many were taken from the queue, or will be as soon as they can be stopped."""


class RetriedUploads(Strict):
    retried: Count
