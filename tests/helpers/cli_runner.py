"""Whole commands as a person runs them, in this process or in one of their own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import evaluate
import fetch
import ingest
import query
import serve
from config import Settings
from folio import console
from folio.models.minilm import Ids, OnnxEncoder
from folio.papers.model import Vectors
from folio.system import workers
from tests.helpers.fakes import read_here
from tests.helpers.ollama_server import closed_url
from tests.helpers.paths import ROOT, models_folder

LIMIT_S = 120  # for one command in its own process
_run = OnnxEncoder.run


@lru_cache(maxsize=512)
def _output(encoder: OnnxEncoder, ids: bytes, types: bytes | None) -> Vectors:
    output = _run(encoder, np.frombuffer(ids, np.int32), None if types is None else np.frombuffer(types, np.int32))
    output.flags.writeable = False
    return output


def run_once(encoder: OnnxEncoder, ids: Ids, types: Ids | None = None) -> Vectors:
    """OnnxEncoder.run, of each text once: most commands of the tests read the same small papers and questions."""
    return _output(encoder, ids.tobytes(), None if types is None else types.tobytes())


@dataclass(frozen=True)
class CliResult:
    """What a command ended with and printed."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects on standard output, which must hold nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        (found,) = self.objects
        return found


@dataclass
class CliRunner:
    """A folder with papers, an index and an empty home, and the two scripts at work on it.

    `ingest` and `query` run in this process, and read PDFs in it too unless `workers` is set; `spawn` runs a script in
    a process of its own, as a person does. Settings go into `settings`.
    """

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    workers: bool = False

    def __post_init__(self) -> None:
        self.papers = self.folder / "papers"
        self.store = self.folder / "vectorstore"
        self.papers.mkdir(parents=True, exist_ok=True)
        (self.folder / "home").mkdir(exist_ok=True)
        self.settings = {
            "PAPERS_DIR": str(self.papers),
            "VECTORSTORE_DIR": str(self.store),
            "INGESTED_JSON": str(self.folder / "ingested.json"),
            "CACHE_DIR": str(self.folder / "cache"),
            "MODELS_DIR": str(models_folder()),
            "CROSS_ENCODER": "nobody/has-this",
            "NLI_MODEL": "nobody/has-that",
            "OLLAMA_HOST": closed_url(),
            "RERANKER": "builtin",
            **self.settings,
        }

    def environment(self) -> dict[str, str]:
        """The environment of a new user, with the settings."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR")}
        home = self.folder / "home"
        return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "COLUMNS": "120", **self.settings}

    def ingest(self, *arguments: str) -> CliResult:
        return self._here(ingest, arguments)

    def query(self, *arguments: str, typed: str = "") -> CliResult:
        return self._here(query, arguments, typed)

    def evaluate(self, *arguments: str) -> CliResult:
        return self._here(evaluate, arguments)

    def fetch(self, *arguments: str, typed: str = "") -> CliResult:
        return self._here(fetch, arguments, typed)

    def measure(self, script: ModuleType, *arguments: str) -> CliResult:
        """A script of benchmarks/."""
        return self._here(script, arguments)

    def serve(self, *arguments: str) -> CliResult:
        """With arguments that it refuses: else it would serve until Ctrl-C."""
        return self._here(serve, arguments)

    def spawn(self, script: str, *arguments: str, typed: str = "", more: Mapping[str, str] | None = None) -> CliResult:
        """A script in its own process, with every warning an error of Folio's own making."""
        command = [sys.executable, str(ROOT / script), *arguments]
        return self.run(command, {**self.environment(), **(more or {})}, typed)

    def run(self, command: Sequence[str], environment: Mapping[str, str], typed: str | None = "") -> CliResult:
        """Any command in its own process. typed: None for the standard input of the tests."""
        ran = subprocess.run(
            command,
            input=typed,
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return CliResult(ran.returncode, ran.stdout, ran.stderr)

    def record(self) -> list[dict[str, Any]]:
        """What ingested.json says."""
        found: list[dict[str, Any]] = json.loads(Path(self.settings["INGESTED_JSON"]).read_text(encoding="utf-8"))
        return found

    def _here(self, script: Any, arguments: Sequence[str], typed: str = "") -> CliResult:
        umask = os.umask(0)
        os.umask(umask)
        with self.monkeypatch.context() as patch, ExitStack() as undo:
            undo.callback(os.umask, umask)  # which the command sets
            for name in Settings.model_fields:
                patch.delenv(name, raising=False)
            for name, value in {**HUB_AND_TRACING, **self.environment()}.items():
                patch.setenv(name, value)
            patch.chdir(self.folder)
            patch.setattr(OnnxEncoder, "run", run_once)
            if not self.workers:
                patch.setattr(workers, "run_guarded", read_here)
            patch.setattr(sys, "stdin", io.StringIO(typed))
            console.output.cache_clear()
            console.errors.cache_clear()
            if self.capsys is None:
                return CliResult(script.main(list(arguments)), "", "")
            self.capsys.readouterr()
            code = script.main(list(arguments))
            return CliResult(code, *self.capsys.readouterr())


# What a command sets in the environment: put back when one that ran in this process has ended.
HUB_AND_TRACING = dict.fromkeys(
    (
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "HF_HUB_DISABLE_TELEMETRY",
        "ORT_DISABLE_TELEMETRY",
        "NO_PROXY",
        "no_proxy",
        "LANGSMITH_TRACING",
        "LANGSMITH_TRACING_V2",
        "LANGCHAIN_TRACING",
        "LANGCHAIN_TRACING_V2",
        "TOKENIZERS_PARALLELISM",
        "PYTHONSAFEPATH",
    ),
    "",
)
