"""What is ready and what is not, each with the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from folio.app import App
from folio.console import one_line, output
from folio.errors import FolioError
from folio.models.ollama import ModelInfo
from folio.pdf import ocr
from folio.protocols import TokenEmbedder
from folio.store import indexes
from folio.store.library import Library


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at. `needed`: without it no question can be answered as the settings are."""

    what: str
    found: str
    ready: bool
    mend: str = ""
    needed: bool = False


def show_doctor(app: App) -> int:
    """Print the table; 1 when something that is needed is not ready."""
    rows = list(examine(app))
    table = Table("", "found", "what mends it", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        style = "green" if row.ready else "red" if row.needed else "yellow"
        mark = "✓" if row.ready else "✗"
        table.add_row(
            Text(f"{mark} {row.what}", style=style),
            Text(one_line(row.found), overflow="fold"),
            Text(one_line(row.mend), overflow="fold"),
        )
    output().print(table)
    broken = [row for row in rows if row.needed and not row.ready]
    output().print("\nNot ready." if broken else "\nReady to answer.", style="bold red" if broken else "bold green")
    return 1 if broken else 0


def examine(app: App) -> Iterator[Row]:
    """Every row of the table. What does not answer is a row and not an error."""
    settings = app.settings
    yield from _ollama(app)
    yield _builtin(app.meaning, needed=settings.EMBEDDER == "builtin" or settings.LLM == "builtin")
    yield _reranker(app)
    yield _ocr(app)
    yield from _store(app)


def _ollama(app: App) -> Iterator[Row]:
    settings = app.settings
    needed = "ollama" in (settings.EMBEDDER, settings.LLM)
    try:
        server = app.server
        version = server.version()
    except FolioError as error:
        yield Row("Ollama", error.happened, False, error.remedy, needed)
        return
    if version is None:
        mend = "Install it from ollama.com, then run `ollama serve`"
        yield Row("Ollama", f"nothing answers at {server.url}", False, mend, needed)
        return
    yield Row("Ollama", f"version {version} at {server.url}", True)
    for what, model, wanted in (
        ("embedding model", settings.EMBED_MODEL, settings.EMBEDDER),
        ("chat model", settings.LLM_MODEL, settings.LLM),
    ):
        try:
            yield _model(what, server.require_local(model), settings.CONTEXT_TOKENS + settings.ANSWER_TOKENS)
        except FolioError as error:
            yield Row(what, error.happened, False, error.remedy, wanted == "ollama")


def _model(what: str, model: ModelInfo, tokens: int) -> Row:
    context = model.context_length
    found = f"{model.name}, context of {context:,} tokens" if context else model.name
    if what == "chat model" and context and context < tokens:
        return Row(what, found, False, f"Lower CONTEXT_TOKENS so that {tokens:,} tokens fit, or choose another model")
    return Row(what, found, True)


def _builtin(embedder: TokenEmbedder, *, needed: bool) -> Row:
    try:
        embedder.embed_query("ready?")
    except FolioError as error:
        return Row("built-in embedder", error.happened, False, error.remedy, needed)
    return Row("built-in embedder", f"{embedder.name}, weights as published", True)


def _reranker(app: App) -> Row:
    name = app.settings.CROSS_ENCODER
    folder = app.cross_encoder_files()
    choice = app.settings.RERANKER
    if choice in ("none", "builtin"):
        return Row("reranker", "none, as set" if choice == "none" else "built in, as set", True)
    if folder is None:
        found = f"{name} is not on this computer"
        if choice == "auto":
            found += "; the built-in reranker is used"
        return Row("reranker", found, False, "make models", choice == "crossencoder")
    return Row("reranker", f"{name} in {folder}", True)


def _ocr(app: App) -> Row:
    engine = ocr.engine()
    if app.settings.OCR == "off":
        return Row("OCR", f"off, as set; {engine.name} is installed" if engine else "off, as set", True)
    if engine is None:
        return Row("OCR", "none is installed; pages that are pictures are left out", False, ocr.HOW_TO_INSTALL)
    return Row("OCR", f"{engine.name} reads pages that are pictures", True)


def _store(app: App) -> Iterator[Row]:
    try:
        library = app.open_library()
    except FolioError as error:
        yield Row("store", error.happened, False, error.remedy, needed=True)
        return
    try:
        yield from _opened(app, library)
    finally:
        library.close()


def _opened(app: App, library: Library) -> Iterator[Row]:
    counts = library.counts()
    where = app.settings.VECTORSTORE_DIR
    papers, chunks, failed = counts["papers"], counts["chunks"], counts["failures"]
    found = f"{papers:,} papers, {chunks:,} chunks in {where}"
    yield Row("store", found, papers > 0, "" if papers else "Put PDFs into papers/ and run `python ingest.py`", True)
    if failed:
        yield Row("files without text", f"{failed} could not be read", False, "`python ingest.py` says why")
    if not papers:
        return
    try:
        app.require_same_settings(library)
        app.embedder(library)
        made_with = library.fingerprint()
        yield Row("fingerprint", ", ".join(f"{key} {value}" for key, value in made_with.items() if value), True)
    except FolioError as error:
        yield Row("fingerprint", error.happened, False, error.remedy, needed=True)
    lagging = indexes.faults(where, library, app.settings.LEXICAL)
    mend = "python ingest.py --repair" if lagging else ""
    yield Row("indexes", "; ".join(lagging) or "FAISS and BM25 at the library's state", not lagging, mend)
