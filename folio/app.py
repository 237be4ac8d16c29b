"""The composition root: Settings -> wired objects. Which model is used, and what would be better, is decided here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from config import Settings, SettingsError, load_settings
from folio.errors import ModelMissing, OllamaError, StoreMissing, UsageError
from folio.files import write_json
from folio.models.cross_encoder import CrossEncoderReranker, local_files
from folio.models.ollama import OllamaServer, base_url, is_local
from folio.models.onnx_cache import GRAPHS
from folio.offline import go_offline
from folio.protocols import Answerer, Embedder, Reranker, TokenEmbedder
from folio.search.builtin_reranker import BuiltinReranker
from folio.search.retriever import Retriever, Weights
from folio.store import indexes
from folio.store.fingerprint import Reading, fingerprint, made_here
from folio.store.library import Library
from folio.store.query_log import QueryLog
from folio.types import Notice, SourceFile, Style

if TYPE_CHECKING:
    from folio.answer.chat import Chat
    from folio.ingest import pipeline, progress
    from folio.search.langchain import FolioRetriever


# Seconds that a look at the server takes at most
_GLANCE_S = 2.0


@dataclass(frozen=True)
class App:
    """Everything that a script needs, made from the settings when it is asked for."""

    settings: Settings
    notice: Notice

    @cached_property
    def server(self) -> OllamaServer:
        """The configured Ollama server; nothing is asked of it yet. Raises UsageError for a host that is none."""
        url = base_url(self.settings.OLLAMA_HOST)
        if not is_local(url):
            self.notice(f"Ollama is at {url}, which is not this computer: questions and passages are sent there.")
        return OllamaServer(url, self.settings.OLLAMA_TIMEOUT_S)

    @property
    def reading(self) -> Reading:
        settings = self.settings
        return Reading(settings.CHUNK_SIZE, settings.CHUNK_OVERLAP, settings.PARSER, settings.OCR == "auto")

    def limits(self, jobs: int | None) -> pipeline.Limits:
        """jobs: worker processes that read PDFs; by default one a core, as many as 8."""
        from folio.ingest import pipeline

        wanted = jobs or min(8, os.cpu_count() or 1)
        settings = self.settings
        return pipeline.Limits(wanted, settings.PARSE_TIMEOUT_S, settings.PARSE_MEMORY_MB, settings.MAX_FILE_MB)

    # Which models

    @cached_property
    def _stand_ins(self) -> dict[str, str]:
        """What is built in because nothing better is ready -> what would make it better."""
        return {}

    def at_a_glance(self) -> App:
        """The same, to look at what is ready: a server that says nothing is not waited for."""
        patience = min(_GLANCE_S, self.settings.OLLAMA_TIMEOUT_S)
        return replace(self, settings=self.settings.model_copy(update={"OLLAMA_TIMEOUT_S": patience}))

    @property
    def better(self) -> list[str]:
        """What would make it better, as far as it has been used."""
        return list(dict.fromkeys(self._stand_ins.values()))

    def chat_models(self) -> list[str]:
        """The models that Ollama could answer with; none where it does not run."""
        try:
            return self.server.chat_models()
        except OllamaError:
            return []

    def announce(self) -> None:
        """Say in one line which built-in models stand in, and what would make it better."""
        if self._stand_ins:
            self.notice(f"Built in: {', '.join(self._stand_ins)}. Better: {'; '.join(self.better)}.")
            self._stand_ins.clear()

    def embedder(self, library: Library) -> Embedder:
        """The embedder for a library: what it was made with, else by the settings.

        Raises StoreMismatch when the settings ask for another, ModelError when it cannot be used.
        """
        made_with = library.fingerprint()
        embedder = self._embedder(made_with.get("embedder", ""))
        if made_with:
            indexes.require_fingerprint(library, fingerprint(embedder, self.reading))
        return embedder

    def new_embedder(self) -> Embedder:
        """The embedder that a new store is made with."""
        return self._embedder("")

    def require_same_settings(self, library: Library) -> None:
        """Raises StoreMismatch for what can be told apart without asking a model."""
        made_with = library.fingerprint()
        expected = made_here(self.reading)
        if self.settings.EMBEDDER != "auto":
            expected["embedder"] = self.settings.EMBEDDER
        indexes.require_fingerprint(library, {**made_with, **expected})

    def _embedder(self, made_with: str) -> Embedder:
        from folio.models.ollama_embedder import OllamaEmbedder

        choice = self.settings.EMBEDDER
        if choice == "auto":
            choice = "ollama" if made_with == "ollama" or (not made_with and self._ollama_embeds()) else "builtin"
            if made_with == "builtin":
                pull = f"`ollama pull {self.settings.EMBED_MODEL}`"
                self._stand_ins["the embedder"] = f"{pull} and `python ingest.py --rebuild`"
        if choice == "ollama":
            return OllamaEmbedder(self.server, self.settings.EMBED_MODEL, self.settings.EMBED_BATCH)
        return self.meaning

    def _ollama_embeds(self) -> bool:
        """Whether a new store can be made with Ollama."""
        missing = self.missing_from_ollama(self.settings.EMBED_MODEL)
        if missing:
            self._stand_ins["the embedder all-MiniLM-L6-v2"] = missing
            self.announce()
        return not missing

    def missing_from_ollama(self, model: str) -> str:
        """What would make Ollama serve this model; nothing when it does. Raises CloudModel."""
        try:
            self.server.require_local(model)
        except ModelMissing:
            return f"`ollama pull {model}`"
        except OllamaError:
            return f"start Ollama, then `ollama pull {model}`"
        return ""

    # Ingesting

    def ingest(
        self, files: Sequence[SourceFile], watch: progress.Watch, *, jobs: int | None = None, retry: frozenset[str]
    ) -> Iterator[progress.Outcome]:
        """Bring the store up to date with these files. The caller holds the writer's place."""
        from folio.ingest import pipeline

        library = Library(self.library_path, create=True)
        try:
            self.require_same_settings(library)
            yield from pipeline.ingest(
                library,
                files,
                lambda: self.embedder(library),
                self.reading,
                self.limits(jobs),
                watch,
                batch=self.settings.EMBED_BATCH,
                retry=retry,
            )
        finally:
            library.close()

    def rebuild(
        self, files: Sequence[SourceFile], watch: progress.Watch, *, jobs: int | None = None
    ) -> Iterator[progress.Outcome]:
        """Make the store anew from these files. See rebuild.rebuild."""
        from folio.ingest import rebuild

        # A store that Ollama made is not made worse because the server happens to be down.
        embedder = self._embedder("ollama" if self.made_with().get("embedder") == "ollama" else "")
        yield from rebuild.rebuild(
            self.library_path,
            files,
            embedder,
            self.reading,
            self.limits(jobs),
            watch,
            batch=self.settings.EMBED_BATCH,
            notice=self.notice,
        )

    def prune(self) -> list[progress.Outcome]:
        """Drop the papers whose file is gone. The caller holds the writer's place."""
        from folio.ingest import pipeline

        library = self.open_library()
        try:
            return list(pipeline.prune(library))
        finally:
            library.close()

    def known_files(self) -> dict[Path, str]:
        """The files that the index was made from, by absolute path, with their names."""
        from folio.ingest import rebuild

        return rebuild.known_files(self.library_path, self.settings.INGESTED_JSON)

    def made_with(self) -> dict[str, str]:
        """The fingerprint of the store; empty when there is none that can be read."""
        from folio.ingest import rebuild

        return rebuild.read_if_sound(self.library_path, Library.fingerprint) or {}

    def finish_ingest(self) -> None:
        """Bring the indexes and ingested.json to the library's state."""
        from folio.ingest import pipeline

        if not self.library_path.exists():
            return
        library = Library(self.library_path, create=True)
        try:
            if library.fingerprint():
                indexes.update_indexes(self.settings.VECTORSTORE_DIR, library, self.settings.LEXICAL)
            write_json(self.settings.INGESTED_JSON, pipeline.record(library))
        finally:
            library.close()

    # The store

    @property
    def library_path(self) -> Path:
        return self.settings.VECTORSTORE_DIR / indexes.LIBRARY

    def open_library(self) -> Library:
        """The library of the store. Raises StoreMissing before the first ingest."""
        return Library(self.library_path)

    def query_log(self, library: Library) -> QueryLog:
        return QueryLog(library.database)

    def verify(self) -> list[str]:
        """What is wrong with the store, a sentence each."""
        library = self.open_library()
        try:
            return indexes.verify(self.settings.VECTORSTORE_DIR, library, self.settings.LEXICAL)
        finally:
            library.close()

    def repair(self) -> int:
        """Make both indexes anew from the library; returns how many chunks there are."""
        library = self.open_library()
        try:
            indexes.rebuild_indexes(self.settings.VECTORSTORE_DIR, library, self.settings.LEXICAL)
            return library.chunk_count()
        finally:
            library.close()

    def open_indexes(self, library: Library) -> indexes.Indexes:
        return indexes.open_indexes(self.settings.VECTORSTORE_DIR, library, self.settings.LEXICAL, self.notice)

    def retriever(self, library: Library) -> Retriever:
        """Raises StoreMissing for a library without a paper, StoreMismatch, ModelError."""
        self.require_paper(library)
        self.require_same_settings(library)
        embedder = self.embedder(library)
        return self.retriever_over(library, embedder, lambda: self.open_indexes(library))

    def require_paper(self, library: Library) -> None:
        """Raises StoreMissing for a library without a paper."""
        if not library.chunk_count():
            raise StoreMissing(
                f"The index at {self.settings.VECTORSTORE_DIR} holds no paper yet.",
                "Put PDFs into papers/ and run `python ingest.py`, which also says why a file gave no text.",
            )

    def retriever_over(
        self, library: Library, embedder: Embedder, open_indexes: Callable[[], indexes.Indexes]
    ) -> Retriever:
        """A retriever as the settings have it, over a library that this embedder is known to fit."""
        weights = Weights(self.settings.DENSE_WEIGHT, self.settings.BM25_WEIGHT, self.settings.TOP_K_CANDIDATES)
        reranker = self.reranker()
        if embedder is self.meaning or isinstance(reranker, BuiltinReranker):
            self.meaning.load_in_background()  # while the indexes are opened and BM25 looks
        return Retriever(library, open_indexes, embedder, reranker, weights)

    def reranker(self) -> Reranker | None:
        """Raises ModelMissing when the cross-encoder is asked for by name and is not on this computer."""
        choice, name = self.settings.RERANKER, self.settings.CROSS_ENCODER
        if choice == "none":
            return None
        folder = self.cross_encoder_files() if choice != "builtin" else None
        if folder is not None:
            return CrossEncoderReranker(folder, name, self.graphs)
        if choice == "crossencoder":
            raise ModelMissing(f"The files of {name} are not on this computer.", "Fetch them with `make models`.")
        if choice == "auto":
            self._stand_ins["the reranker"] = f"`make models` fetches {name}"
        return BuiltinReranker(self.meaning)

    # Answering

    def chat(self, library: Library, *, top_k: int, paper: str | None, style: Style = "plain") -> Chat:
        """A conversation with the papers, or with those alone that `paper` names."""
        from folio.answer.chat import Chat, import_aside

        import_aside()
        retriever = self.retriever(library)
        papers = retriever.papers_named(paper) if paper else None
        answerer = self.answerer(retriever)
        self.announce()
        return Chat(retriever, answerer, top_k=top_k, papers=papers, style=style)

    def answerer(
        self, retriever: Retriever, *, model: str | None = None, goes_on: Callable[[], None] = lambda: None
    ) -> Answerer:
        """model: "builtin", or one that Ollama serves; None as the settings have it. goes_on: called at each word that
        a model writes; what it raises ends the answer.

        Raises ModelError when Ollama is asked for by name and cannot answer, CloudModel for a model elsewhere.
        """
        from folio.answer.extractive import ExtractiveAnswerer

        settings = self.settings
        tokens = settings.CONTEXT_TOKENS
        choice = settings.LLM if model is None else "builtin" if model == "builtin" else "ollama"
        model = settings.LLM_MODEL if model is None else model
        extractive = ExtractiveAnswerer(self.meaning, retriever.term_weights, evidence_tokens=tokens)
        if choice == "auto":
            missing = self.missing_from_ollama(model)
            choice = "builtin" if missing else "ollama"
            if missing:
                self._stand_ins["answers quoted from the papers"] = missing
        if choice == "builtin":
            return extractive
        from folio.answer.generative import OllamaAnswerer

        return OllamaAnswerer(
            self.server,
            model,
            evidence_tokens=tokens,
            answer_tokens=settings.ANSWER_TOKENS,
            meaning=self.meaning,
            stand_in=extractive,
            goes_on=goes_on,
        )

    @cached_property
    def meaning(self) -> TokenEmbedder:
        """What reads word by word, and measures whether a sentence means what its quote says: the built-in model.

        Whoever embeds the papers: the limits that its figures are held to were found with it, and it does not keep the
        server from answering.
        """
        from folio.models.minilm import BuiltinEmbedder

        return BuiltinEmbedder(cache=self.graphs)

    @property
    def graphs(self) -> Path:
        """The folder that keeps what is made of a model's weights once."""
        return self.settings.MODELS_DIR / GRAPHS

    # For LangChain programs

    def langchain_retriever(self, top_k: int | None = None) -> FolioRetriever:
        """Folio's search as a LangChain retriever."""
        from folio.search.langchain import FolioRetriever

        retriever = self.retriever(self.open_library())
        return FolioRetriever(search=lambda question: retriever.search(question, top_k or self.settings.TOP_K).hits)

    def langchain_vector_store(self) -> Any:
        """langchain_community's FAISS vector store over the same vectors."""
        from folio.search.langchain import vector_store

        library = self.open_library()
        return vector_store(library, self.embedder(library))

    def cross_encoder_files(self) -> Path | None:
        """The folder that holds the cross-encoder; None when it is not on this computer."""
        return local_files(self.settings.CROSS_ENCODER, self.settings.MODELS_DIR)


def from_environment(notice: Notice) -> App:
    """The app with the settings as they are, offline. Raises UsageError for a setting that cannot be used."""
    go_offline()
    try:
        return App(load_settings(), notice)
    except SettingsError as error:
        raise UsageError(
            f"A setting cannot be used: {error}.", "Set it right in the environment or in .env; config.py explains it."
        ) from error


def connect() -> App:
    """The app for use in another program; what is noteworthy goes to its warnings."""
    return from_environment(lambda text: warnings.warn(text, stacklevel=2))
