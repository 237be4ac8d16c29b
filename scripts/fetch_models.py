"""Fetch the better models that Folio can use, while there is a network.

    make models
    LLM_MODEL=llama3.2:3b python scripts/fetch_models.py

The Ollama server pulls EMBED_MODEL and LLM_MODEL, and VERIFIER_MODEL if there is one. The files of CROSS_ENCODER and,
if the settings let it verify, of NLI_MODEL go to folders of MODELS_DIR. The graphs that they run as are built from
their weights, once. This is the only program of Folio that lets anything but the Ollama server be
contacted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from config import Settings, SettingsError, load_settings, place_of_settings
from folio.errors import FolioError, ModelError, UsageError
from folio.models.bert_onnx import GRAPHS, find_model, record_digests
from folio.models.cross_encoder import CrossEncoderReranker, NliVerifier
from folio.models.ollama import OllamaServer, server_url

# What a cross-encoder is loaded from; the same weights lie there in other formats too.
CROSS_ENCODER_FILES = ["*.json", "*.txt", "model*.safetensors"]
OTHER_FORMATS = ["onnx/*", "openvino/*"]

console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def pull(settings: Settings, model: str) -> None:
    """Have the Ollama server pull a model. Raises FolioError."""
    url = server_url(settings.OLLAMA_HOST, allow_remote=settings.ALLOW_REMOTE_OLLAMA)
    server = OllamaServer(url, settings.OLLAMA_TIMEOUT_S)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(model, total=None)

        def show(status: str, done: int, total: int) -> None:
            progress.update(task, description=f"{model}: {status}", completed=done, total=total or None)

        server.pull(model, show)


def download_cross_encoder(setting: str, name: str, folder: Path) -> None:
    """Download a cross-encoder's files; the folder appears once they are all there. Raises ModelError, UsageError.

    setting: which names it.
    """
    import huggingface_hub

    partial_folder = folder.with_name(f"{folder.name}.partial")  # an interrupted download goes on from here
    try:
        huggingface_hub.snapshot_download(
            name,
            local_dir=partial_folder,
            allow_patterns=CROSS_ENCODER_FILES,
            ignore_patterns=OTHER_FORMATS,
            token=False,  # the model is public: nobody needs to learn who asks for it
        )
        record_digests(partial_folder)
        partial_folder.rename(folder)
    except huggingface_hub.errors.HFValidationError as error:
        raise UsageError(
            f"{setting} is {name!r}, which is neither a folder nor the name of a model.",
            f"Set it to a folder, or to a name such as {Settings.model_fields[setting].default}.",
        ) from error
    except Exception as error:  # the hub's client passes on what its HTTP client, its storage client and the disk raise
        raise ModelError(
            f"{name} could not be downloaded from the Hugging Face hub: {_first_sentence(error)}.",
            "Check the network, the free space and that HF_HUB_OFFLINE is not set, then run `make models` again.",
        ) from error


def make_graphs(settings: Settings) -> None:
    """Build the ONNX graphs of the models on this computer, so that no question waits for it. Raises FolioError."""
    graphs = settings.MODELS_DIR / GRAPHS
    if folder := find_model(settings.CROSS_ENCODER, settings.MODELS_DIR):
        CrossEncoderReranker(folder, settings.CROSS_ENCODER, graphs).load()
    if _nli_verifies(settings) and (folder := find_model(settings.NLI_MODEL, settings.MODELS_DIR)):
        NliVerifier(folder, settings.NLI_MODEL, graphs).load()


def _nli_verifies(settings: Settings) -> bool:
    return settings.VERIFIER in ("auto", "crossencoder")


def fetch(settings: Settings) -> list[FolioError]:
    """Fetch each model, even if another one failed, then build their graphs. Returns the failures."""
    jobs: list[tuple[str, Callable[[], None]]] = []
    verifier_model = settings.VERIFIER_MODEL if settings.VERIFIER in ("auto", "llm") else ""
    for model in dict.fromkeys((settings.EMBED_MODEL, settings.LLM_MODEL, verifier_model)):
        if model:
            what = f"{model}: Ollama at {settings.OLLAMA_HOST} downloads it"
            jobs.append((what, partial(pull, settings, model)))
    for setting in ("CROSS_ENCODER", *(("NLI_MODEL",) if _nli_verifies(settings) else ())):
        name: str = getattr(settings, setting)
        if find_model(name, settings.MODELS_DIR):
            console.print(f"{name}: already on this computer")
            continue
        folder = settings.MODELS_DIR / name.rpartition("/")[2]
        what = f"{name}: Folio downloads it from the Hugging Face hub into {folder}"
        jobs.append((what, partial(download_cross_encoder, setting, name, folder)))
    graphs = settings.MODELS_DIR / GRAPHS
    what = f"the cross-encoders: Folio builds their ONNX graphs in {graphs}"
    jobs.append((what, partial(make_graphs, settings)))
    failures: list[FolioError] = []
    for what, job in jobs:
        console.print(what)
        try:
            job()
        except FolioError as error:
            failures.append(error)
            _report(error)
        else:
            console.print("  done")
    return failures


def _report(error: FolioError) -> None:
    console.print(f"  {error.happened}\n  {error.remedy}")


def _first_sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].partition(". ")[0].rstrip(".")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Pull EMBED_MODEL, LLM_MODEL and VERIFIER_MODEL with Ollama, and download CROSS_ENCODER and"
        " NLI_MODEL into MODELS_DIR.",
        epilog="The names are settings: see docs/settings.md.",
    )
    parser.parse_args(argv)
    try:
        failures = fetch(load_settings(console.print))
    except SettingsError as error:
        remedy = f"Correct it in {place_of_settings()}; docs/settings.md explains it."
        _report(UsageError(f"A setting is invalid: {error}.", remedy))
        return UsageError.exit_code
    except KeyboardInterrupt:
        console.print("Stopped. Downloads are kept; run `make models` again to continue.")
        return 130
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
