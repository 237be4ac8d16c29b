"""Runs as JSON files, with the field names as keys; each file has the version of its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from folio.errors import UsageError
from folio.files import write_json

Run = TypeVar("Run")


def save_run(path: Path, run: object) -> None:
    """Save a run as JSON, replacing the file. Raises DiskFull."""
    write_json(path, TypeAdapter(type(run)).dump_python(run, mode="json"))


def load_run(path: Path, kind: type[Run], form: tuple[str, int], name: str, remedy: str) -> Run:
    """Load a saved run.

    form: the field with the version of the form, and the version that is supported. name: "a saved run", for the
    message. Raises UsageError if the file is missing or is not such a run.
    """
    field, version = form
    try:
        text = path.read_text(encoding="utf-8")
        if json.loads(text)[field] != version:
            raise UsageError(f"{path} was saved by another version of evaluate.py.", "Run that evaluation again.")
        return TypeAdapter(kind).validate_json(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from error
    except (ValueError, TypeError, KeyError, ValidationError) as error:
        raise UsageError(f"{path} is not {name}.", remedy) from error
