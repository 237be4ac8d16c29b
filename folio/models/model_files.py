"""The files of a model on this computer: where they are, and whether they are as they were downloaded."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from folio.files import sha256_file, write_json

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
DIGESTS = "sha256.json"  # of the files as they were downloaded; a folder that somebody else filled has none


def find_model(name: str, models: Path) -> Path | None:
    """The folder of a cross-encoder: `name` as a path, in `models`, or in Hugging Face's cache. None if not found.

    Uses no network, and not Hugging Face's package, which takes a quarter of a second to import. A relative path begins
    with a dot: the name of a model must not lead into the current folder, which may be one of papers.
    """
    is_path = name.startswith(".") or Path(name).is_absolute()
    folders = [Path(name)] if is_path else [models / name.rpartition("/")[2]]
    try:
        cached = _hub_cache() / f"models--{name.replace('/', '--')}"
        if (cached / "refs" / "main").is_file():
            folders.append(cached / "snapshots" / (cached / "refs" / "main").read_text(encoding="utf-8").strip())
        return next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except (OSError, ValueError):  # a name that no file can have
        return None


def _hub_cache() -> Path:
    """As in https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables."""
    if folder := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(folder).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home, "hub").expanduser()


def record_digests(folder: Path) -> None:
    """Record the SHA-256 of each file of a model that has just been downloaded, so that a change is noticed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts)
    write_json(folder / DIGESTS, {path.relative_to(folder).as_posix(): sha256_file(path) for path in files})


def changed_file(folder: Path) -> str:
    """The name of a file that is not as it was downloaded, as far as that was recorded; "" if there is none."""
    record = folder / DIGESTS
    if not record.exists():
        return ""
    try:
        return next((name for name, digest in read_json(record).items() if not _is(folder / name, digest)), "")
    except (OSError, ValueError, AttributeError):
        return DIGESTS


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and sha256_file(path) == digest


def read_json(path: Path) -> dict[str, Any]:
    """Raises OSError, ValueError."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
