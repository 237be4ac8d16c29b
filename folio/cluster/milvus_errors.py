"""Errors of Milvus: what pymilvus raises, told by what its messages say."""

from __future__ import annotations

import re

from folio.errors import StoreBusy, StoreDamaged, StoreError

REPAIR = "Run `python ingest.py --repair --yes`, which makes all collections again from RECORDS_URI."
_AGAIN = "Run the same command again."
# What a server says while it starts, or while its parts find each other again: texts of Milvus's merr/errors.go
_STARTING = (
    r"recover|not fully loaded|not ready|initializing|no available shard|shard leader|rate limit|quota exceeded"
    r"|(channel|node) not (available|found)|not find any channel|(node|channel)\S* (is )?(offline|lacks)"
)


class MissingCollection(StoreError):
    """A request named a collection that is not there."""


class NoAnswer(StoreError):
    """A server that cannot be reached, or does not answer in time."""


class AlreadyThere(StoreError):
    """A collection or an index is there: the answer to the request that made it was lost."""


class NotLoaded(StoreError):
    """A collection is not ready to be read."""


class UnknownError(StoreError):
    """An error that Folio knows nothing of."""


def translated(error: Exception, uri: str, *, is_lite: bool) -> StoreError:
    """What pymilvus has raised, as an error of Folio's."""
    said = " ".join(str(getattr(error, "message", "") or error).split())[:200]
    if re.search(r"unauthenticated|auth check|permission.?denied|privilege|api.?key", _whole(error), re.I):
        return StoreError(
            f"Milvus at {uri} refused MILVUS_TOKEN.",
            "Set MILVUS_TOKEN to USER:PASSWORD or to an API key that may use this database.",
        )
    if re.search(_STARTING, said, re.I):
        return NoAnswer(f"Milvus at {uri} is not ready: {said}.", "Run the same command again when it is.")
    if re.search(r"collection not found|can.t find collection|collection \S+ (does not exist|not found)", said, re.I):
        return MissingCollection(
            f"A collection of the library is missing in Milvus at {uri}: {said}.",
            REPAIR,
        )
    if re.search(r"field.*(not (exist|found)|unknown)|(unknown|undefined|missing).* field", said, re.I):
        return StoreDamaged(f"A field of the library is missing in Milvus at {uri}: {said}.", REPAIR)
    if re.search(r"already exists?\b", said, re.I):
        return AlreadyThere(f"Milvus at {uri} failed: {said}.", _AGAIN)
    if re.search(r"not loaded|call load\(\)", said, re.I):
        return NotLoaded(f"Milvus at {uri} failed: {said}.", _AGAIN)
    if is_lite and "Open local milvus" in said:
        return StoreBusy(
            f"{uri} cannot be opened: another process is using it, or Milvus Lite did not write it.",
            "End that process, or set MILVUS_URI to another file; several processes need a Milvus server.",
        )
    if re.search(r"connect|unavailable|deadline|timed? ?out|retry", said, re.I):
        return NoAnswer(
            f"Milvus at {uri} does not answer.",
            "Check MILVUS_URI (http:// or https://, and the port), and that the server is running; then run the"
            " same command again.",
        )
    return UnknownError(f"Milvus at {uri} failed: {said}.", f"{_AGAIN} The server's log may say more.")


def _whole(error: BaseException) -> str:
    """What an error says, and those that led to it. pymilvus raises errors from themselves."""
    found = {id(error): error}
    while (cause := error.__cause__ or error.__context__) is not None and id(cause) not in found:
        found[id(cause)] = error = cause
    contexts = [each.__context__ for each in found.values() if each.__context__ is not None]
    return " ".join(map(str, (*found.values(), *contexts)))
