"""How errors become HTTP responses: every one has the same JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from folio.errors import (
    DiskFull,
    FolioError,
    ModelError,
    NetworkOff,
    NotKnown,
    PaperError,
    SourceError,
    StoreBusy,
    StoreMismatch,
    StoreMissing,
    UsageError,
)
from folio.files import disk_full, is_full, unusable
from folio.schema_parts import SHA256
from folio.web.questions import Busy
from folio.web.schema import CONVERSATION, NOT_BLANK, YEARS_PATTERN, ErrorBody, error_body
from folio.web.sse import RequestCancelled
from folio.web.upload_schema import UPLOAD

# Status by error class; subclasses come before their base classes.
STATUSES: tuple[tuple[type[FolioError], int], ...] = (
    (NotKnown, 404),
    (NetworkOff, 403),
    (Busy, 409),
    (UsageError, 400),
    (StoreMissing, 409),
    (StoreMismatch, 409),
    (StoreBusy, 409),
    (DiskFull, 507),
    (SourceError, 502),
    (PaperError, 422),
    (ModelError, 503),
)


def handle_errors(web: FastAPI) -> None:
    """Give every error the same JSON form."""

    def respond(status: int, body: ErrorBody) -> JSONResponse:
        return JSONResponse(body.model_dump(), status)

    def respond_to(error: FolioError) -> JSONResponse:
        status = next((status for kind, status in STATUSES if isinstance(error, kind)), 500)
        return respond(status, error_body(error))

    @web.exception_handler(FolioError)
    async def handle_folio_error(_: Request, error: FolioError) -> Response:
        return respond_to(error)

    @web.exception_handler(OSError)
    async def handle_os_error(_: Request, error: OSError) -> Response:
        return respond_to(unusable(error))

    @web.exception_handler(RequestValidationError)
    async def handle_invalid_request(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
        return respond(422, ErrorBody(error=f"{place}: {_invalid(first)}.", remedy="/docs describes every field."))

    @web.exception_handler(HTTPException)
    async def handle_http_error(request: Request, error: HTTPException) -> Response:
        if isinstance(cause := error.__cause__, OSError):  # large bodies are buffered in the temporary folder
            return respond_to(disk_full(Path(gettempdir())) if is_full(cause) else unusable(cause))
        if error.status_code == 400 and request.url.path == "/papers":
            return respond(400, _NO_UPLOAD)
        message = _HTTP.get(error.status_code, str(error.detail))
        response = respond(error.status_code, ErrorBody(error=message, remedy="/docs lists every address."))
        response.headers.update(error.headers or {})
        return response

    @web.exception_handler(RequestCancelled)
    async def handle_cancelled(_: Request, error: RequestCancelled) -> Response:
        return Response(status_code=499)  # nobody reads it


# What a value is not, by the pattern that it does not have: nobody reads a regular expression
PATTERNS = {
    NOT_BLANK: "must not be empty",
    YEARS_PATTERN: "is not a year or a range of years, such as 2014, 2010-2015, 2020- or -1999",
    CONVERSATION: "is not the id of a conversation",
    SHA256: "is not the id of a paper",
    UPLOAD: "is not the id of an upload",
}


def _invalid(error: Mapping[str, Any]) -> str:
    """What is wrong with a field of a request, in words."""
    if error["type"] != "string_pattern_mismatch":
        return str(error["msg"])
    return PATTERNS.get(error["ctx"]["pattern"], "has not the form that it needs")


_HTTP = {
    400: "The request could not be read.",
    404: "There is nothing at this address.",
    405: "This address does not support that method.",
}
_NO_UPLOAD = ErrorBody(
    error="The form could not be read.", remedy="Send one PDF in the field `file`, and no other field or file."
)
