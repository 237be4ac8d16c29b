"""The last result of a person's own questions, kept in a file over a restart.

The file holds no question: those that were missed are named by their places among the questions that were measured.
It belongs to a key, and says nothing of any other: the same questions with the same known pages, the same index, the
same settings and the same version of Folio.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from folio.errors import FolioError
from folio.schema.own_questions import OwnResultJson
from folio.schema.papers import Count, Strict
from folio.search.own_questions import KnownQuestion
from folio.store.rows import Stamp
from folio.system.files import write_json
from folio.version import __version__

logger = logging.getLogger(__name__)

FILE = "own-questions.json"  # in CACHE_DIR


class _Kept(Strict):
    key: str
    missed: list[Count]
    """Places among the questions, from 0."""
    result: OwnResultJson
    """Without its missed questions."""


def result_key(
    asked: Sequence[KnownQuestion], stamp: tuple[Stamp, int], settings: Mapping[str, str], version: str = __version__
) -> str:
    """A value that changes with whatever a result depends on."""
    index, described = stamp
    questions = [[each.text, each.is_opened, [[page.paper, page.page] for page in each.pages]] for each in asked]
    parts = [version, index.epoch, index.generation, described, sorted(settings.items()), questions]
    return sha256(json.dumps(parts).encode()).hexdigest()


def keep_result(folder: Path, key: str, asked: Sequence[KnownQuestion], result: OwnResultJson) -> None:
    """Replace what was kept before. Where the folder cannot be written to, nothing is kept."""
    texts = set(result.missed)
    missed = [place for place, question in enumerate(asked) if question.text in texts]
    kept = _Kept(key=key, missed=missed, result=result.model_copy(update={"missed": []}))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / FILE, kept.model_dump())
    except (OSError, FolioError) as error:
        logger.warning("The result of your questions is not kept: %s", error)


def kept_result(folder: Path, key: str, asked: Sequence[KnownQuestion]) -> OwnResultJson | None:
    """What was kept with this key; None without it, also where the file cannot be read."""
    with suppress(OSError, ValidationError):
        kept = _Kept.model_validate_json((folder / FILE).read_bytes())
        if kept.key == key and all(place < len(asked) for place in kept.missed):
            return kept.result.model_copy(update={"missed": [asked[place].text for place in kept.missed]})
    return None
