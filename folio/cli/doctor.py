"""`folio doctor` and `query.py --doctor`: what is ready and what is not, with the command that fixes each problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command
from folio.console import errors, output
from folio.errors import FIRST_INGEST, EmbedderAway, FolioError, StoreError, command, fetch_command
from folio.models.model_server import CONTEXT_SIZES
from folio.shown_text import counted, plain_line

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from folio.app import App
    from folio.model_choice import ModelChoice, ServedModel
    from folio.models.model_server import ModelInfo, ModelServer
    from folio.protocols import TokenEmbedder
    from folio.store.library import Library


MOST_NAMED = 4  # models of a server that was found


@dataclass(frozen=True, slots=True)
class Row:
    """One checked item. needed: whether the current settings need it to answer questions."""

    what: str
    found: str
    ready: bool
    fix: str = ""
    needed: bool = False


def main(argv: Sequence[str] | None = None, prog: str = "folio doctor") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    parser = Parser(
        prog=prog,
        description="Show what is ready, what is not, and how to fix it.",
        epilog="The exit code is 1 if something required is not ready.",
    )
    add_doctor_options(parser)
    arguments = parser.parse_args(argv)
    return run_command(lambda app: show_doctor(app, find=arguments.find_servers))


def add_doctor_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--find-servers", action="store_true", help="also look for model servers at the usual ports of this computer"
    )


def show_doctor(app: App, *, find: bool = False) -> int:
    """Print the table; returns 1 if something needed is not ready. find: also look for model servers."""
    from rich.table import Table
    from rich.text import Text

    with errors().status("Asking each model for a word; one that is not loaded takes a while."):
        rows = [*examine(app), *(_found_servers() if find else ())]
    table = Table("", "found", "how to fix it", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        style = "green" if row.ready else "red" if row.needed else "yellow"
        mark = "✓" if row.ready else "✗"
        table.add_row(
            Text(f"{mark} {row.what}", style=style),
            Text(plain_line(row.found), overflow="fold"),
            Text(plain_line(row.fix), overflow="fold"),
        )
    output().print(table)
    broken = [row for row in rows if row.needed and not row.ready]
    output().print("\nNot ready." if broken else "\nReady to answer.", style="bold red" if broken else "bold green")
    return 1 if broken else 0


def examine(app: App) -> Iterator[Row]:
    """Every row of the table. A check that fails is a row, not an error."""
    yield from _servers(app.models)
    yield _builtin_embedder(app.models.meaning, needed=app.models.builtin_required)
    yield _reranker(app.models)
    yield _verifier(app.models)
    yield _ocr(wanted=app.reading.ocr)
    yield from _store(app)


def _servers(models: ModelChoice) -> Iterator[Row]:
    """Each server that the settings name, with the models that they want of it."""
    try:
        wanted = list(models.served_models())
    except FolioError as error:
        yield Row("model server", error.happened, False, error.remedy, needed=True)
        return
    servers = {id(model.server): model.server for model in wanted}
    for server in servers.values():
        yield from _server(models, server, [model for model in wanted if model.server is server])


def _found_servers() -> Iterator[Row]:
    """The model servers on this computer, whatever the settings name."""
    from folio.models.discovery import PORTS, find_servers

    found = find_servers()
    for server in found:
        models = ", ".join(server.chat_models[:MOST_NAMED]) or "no chat model"
        name = f" LLM_MODEL={server.chat_models[0]}" if server.chat_models else ""
        yield Row("found", f"{server.program} at {server.url}: {models}", True, f"Set {server.settings}{name}")
    if not found:
        ports = ", ".join(map(str, PORTS))
        yield Row("found", f"no model server at the ports {ports} of this computer", True)


def _server(models: ModelChoice, server: ModelServer, wanted: Sequence[ServedModel]) -> Iterator[Row]:
    needed = any(model.required for model in wanted)
    name = "Ollama" if server.kind == "ollama" else "model server"
    try:
        version = server.version()
    except FolioError as error:
        yield Row(name, error.happened, False, error.remedy, needed)
        return
    if version is None:
        fix = "Install it from ollama.com, then run `ollama serve`" if server.kind == "ollama" else server.words.start
        yield Row(name, f"no server answers at {server.url}", False, fix, needed)
        return
    yield Row(name, f"{'version ' if server.kind == 'ollama' else ''}{version} at {server.url}", True)
    for model in wanted:
        try:
            yield _model(model, models.tried(model))
        except FolioError as error:
            yield Row(model.use, error.happened, False, error.remedy, model.required)


def _model(model: ServedModel, info: ModelInfo) -> Row:
    context = info.context_length
    found = f"{info.name}, context of {context:,} tokens" if context else info.name
    if not context and model.server.kind == "openai" and model.capability == "completion":
        found += f"; the server does not tell its context, so {CONTEXT_SIZES[0]:,} tokens are assumed"
        return Row(model.use, found, True, "Set OPENAI_CONTEXT to the context that the server was started with")
    if context and context < model.tokens:
        remedy = f"Lower CONTEXT_TOKENS so that {model.tokens:,} tokens fit, or choose another model"
        return Row(model.use, found, False, remedy)
    return Row(model.use, found, True)


def _builtin_embedder(embedder: TokenEmbedder, *, needed: bool) -> Row:
    try:
        embedder.embed_query("ready?")
    except FolioError as error:
        return Row("built-in embedder", error.happened, False, error.remedy, needed)
    return Row("built-in embedder", f"{embedder.name}, with the published weights", True)


def _reranker(models: ModelChoice) -> Row:
    name, folder, choice = models.cross_encoder, models.cross_encoder_files(), models.reranker_choice
    if choice in ("none", "builtin"):
        return Row("reranker", "none (RERANKER=none)" if choice == "none" else "built in (RERANKER=builtin)", True)
    if folder is None:
        found = f"{name} is not on this computer"
        if choice == "auto":
            found += "; the built-in reranker is used"
        return Row("reranker", found, False, f"Run `{fetch_command(name)}`", choice == "crossencoder")
    return Row("reranker", f"{name} in {folder}", True)


def _verifier(models: ModelChoice) -> Row:
    choice = models.verifier_choice
    if choice == "none":
        return Row("verifier", "none (VERIFIER=none)", True)
    try:
        verifier = models.verifier()
    except FolioError as error:
        return Row("verifier", error.happened, False, error.remedy, choice != "auto")
    if verifier is None:
        return Row("verifier", "none; without a chat model, answers are quotes", True)
    folder = models.nli_files() if choice != "llm" else None
    return Row("verifier", f"{verifier.name} in {folder}" if folder else verifier.name, True)


def _ocr(*, wanted: bool) -> Row:
    from folio.pdf import ocr

    engine = ocr.engine()
    if not wanted:
        return Row("OCR", f"off (OCR=off); {engine.name} is installed" if engine else "off (OCR=off)", True)
    if engine is None:
        fix = f"{ocr.HOW_TO_INSTALL[0].upper()}{ocr.HOW_TO_INSTALL[1:]}"
        return Row("OCR", "no engine is installed; scanned pages are left out", False, fix)
    return Row("OCR", f"{engine.name} reads scanned pages", True)


def _store(app: App) -> Iterator[Row]:
    try:
        library = app.open_library()
    except FolioError as error:
        yield Row("index", error.happened, False, error.remedy, needed=True)
        return
    try:
        yield from _library(app, library)
    except StoreError as error:
        yield Row("store", error.happened, False, error.remedy, needed=True)
    finally:
        library.close()


def _library(app: App, library: Library) -> Iterator[Row]:
    counts = library.counts()
    papers, unreadable = counts["papers"], counts["failures"]
    found = f"{counted(papers, 'paper')}, {library.chunk_count():,} passages in {app.backend.place}"
    yield Row("index", found, papers > 0, "" if papers else FIRST_INGEST, True)
    if unreadable:
        fix = f"Run `{command('ingest')}` to see why"
        yield Row("unreadable files", f"{unreadable} could not be read", False, fix)
    if not papers:
        return
    try:
        app.require_same_settings(library)
        app.embedder_for_questions(library).identity()
        made_with = library.fingerprint()
        yield Row("built with", ", ".join(f"{key} {value}" for key, value in made_with.items() if value), True)
    except EmbedderAway as error:
        yield Row("built with", f"{error.happened} Until then, only words are searched.", False, error.remedy)
    except FolioError as error:
        yield Row("built with", error.happened, False, error.remedy, needed=True)
    faults = app.backend.index_faults(library)
    fix = f"Run `{command('ingest --repair')}`" if faults else ""
    yield Row("FAISS and BM25", "; ".join(faults) or "up to date", not faults, fix)
