"""Chooses the embedder, reranker, answerer and verifier from the settings, and says what would improve answers.

`auto` takes the best model that is ready; a model that the settings name is never replaced by another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from folio.deep.types import Assessor, DeepLimits
from folio.errors import ModelError, ModelMissing, ModelServerError, command, fetch_command
from folio.models.bert_onnx import GRAPHS, find_model
from folio.models.cross_encoder import CrossEncoderReranker, NliVerifier
from folio.models.model_server import Capability, ModelInfo, ModelServer, is_local
from folio.models.ollama import OllamaServer, server_url
from folio.papers.model import Notice
from folio.protocols import Answerer, Embedder, PassageReader, QueryWriter, Reranker, TokenEmbedder, Verifier
from folio.search.builtin_reranker import BuiltinReranker, ReaderReranker
from folio.search.fusion import FusionSettings
from folio.search.retriever import Retriever

if TYPE_CHECKING:
    from config import Settings
    from folio.answer.chat import Chat
    from folio.answer.extractive import ExtractiveAnswerer
    from folio.answer.layout import AnswerFormat
    from folio.answer.verifier import LlmVerifier
    from folio.deep.checkpoint import CheckpointFile
    from folio.deep.search import DeepSearch
    from folio.models.openai_server import OpenAIServer
    from folio.review.headings import HeadingWriter

BUILTIN = "builtin"  # names the built-in answerer
SERVERS = ("ollama", "openai")  # as LLM and EMBEDDER name them
# In the store's folder, before a date: the file that records that the day's notice about better models was shown
PREFIX = "announced-"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that the settings name."""

    server: ModelServer
    use: str  # "embedding model", "chat model"
    capability: Capability
    name: str
    required: bool  # whether the settings name the server
    tokens: int  # context that a request may take; 0 where it does not matter


@dataclass(frozen=True)
class ModelChoice:
    """The models that the settings choose, built on first use."""

    settings: Settings
    notice: Notice
    # Built-in model in use -> how to get a better one, as a clause
    _stand_ins: dict[str, str] = field(default_factory=dict, init=False, compare=False)
    # Embedding models about which a notice was given
    _noted: set[str] = field(default_factory=set, init=False, compare=False)
    # By folder; kept, because loading one takes seconds
    _nli_verifiers: dict[Path, NliVerifier] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def ollama(self) -> OllamaServer:
        """The configured Ollama server. Sends nothing to it yet.

        Raises UsageError for an invalid address, and for another computer unless the settings allow it.
        """
        url = server_url(self.settings.OLLAMA_HOST, allow_remote=self.settings.ALLOW_REMOTE_OLLAMA)
        settings = self.settings
        return OllamaServer(url, settings.OLLAMA_TIMEOUT_S, settings.THINK, keep_alive=self.keep_alive)

    @cached_property
    def openai(self) -> OpenAIServer:
        """The configured OpenAI-compatible server. As `ollama`."""
        return self._openai("OPENAI_BASE_URL", self.settings.OPENAI_CONTEXT)

    @cached_property
    def openai_embedder(self) -> OpenAIServer:
        """The one that embeds: the same, unless the settings name another. As `ollama`."""
        name = "OPENAI_EMBED_BASE_URL" if self.settings.OPENAI_EMBED_BASE_URL else "OPENAI_BASE_URL"
        return self._openai(name, self.settings.OPENAI_EMBED_CONTEXT)

    def _openai(self, setting: str, context: int) -> OpenAIServer:
        from folio.models.openai_server import OpenAIServer, server_url

        settings = self.settings
        url = server_url(getattr(settings, setting), allow_remote=settings.ALLOW_REMOTE_OLLAMA, setting=setting)
        self._announce_if_remote(url)
        key = settings.OPENAI_API_KEY.get_secret_value()
        return OpenAIServer(url, settings.OLLAMA_TIMEOUT_S, settings.THINK, key=key, context=context)

    @property
    def chat_server(self) -> ModelServer:
        """The server of chat models. Raises UsageError as `ollama` does."""
        return self.openai if self.settings.LLM == "openai" else self.ollama

    def embed_server(self, kind: str) -> ModelServer:
        """The server of embedding models. kind: "ollama" or "openai". Raises UsageError as `ollama` does."""
        return self.openai_embedder if kind == "openai" else self.ollama

    @property
    def keep_alive(self) -> str | int | None:
        """How long Ollama keeps a model loaded; None for the server's own setting."""
        kept = self.settings.KEEP_ALIVE
        return int(kept) if kept.lstrip("-").isdecimal() else kept or None

    @property
    def fusion(self) -> FusionSettings:
        """How a search fuses and orders its results."""
        settings = self.settings
        return FusionSettings(
            dense=settings.DENSE_WEIGHT,
            lexical=settings.BM25_WEIGHT,
            candidates=settings.TOP_K_CANDIDATES,
            dual_candidates=settings.DUAL_CANDIDATES,
            method=settings.FUSION,
            rrf_k=settings.RRF_K,
            mode=settings.RETRIEVAL_MODE,
            min_hits=settings.MIN_HITS,
            mmr_lambda=settings.MMR_LAMBDA,
        )

    def announce_remote(self) -> None:
        """Give a notice if a server in use is another computer. Raises UsageError as `ollama` does."""
        self._announce_if_remote(self.ollama.url)
        if self.settings.LLM == "openai":
            _ = self.openai
        if self.settings.EMBEDDER == "openai":
            _ = self.openai_embedder

    def _announce_if_remote(self, url: str) -> None:
        if not is_local(url):
            self.notice(f"Questions and passages go to {url}, another computer.")

    # What would improve answers

    @property
    def better(self) -> list[str]:
        """What would improve answers, for the models used so far."""
        return list(dict.fromkeys(self._stand_ins.values()))

    def announce(self) -> None:
        """Give a notice, once a day for each index, if built-in models are in use: how to get better ones."""
        ways = self.better
        self._stand_ins.clear()
        if not ways or not is_first_today(self.settings.VECTORSTORE_DIR):
            return
        way = "start Ollama" if any(way.startswith("start Ollama") for way in ways) else "; ".join(ways)
        doctor = f"`{command('doctor')}`"
        self.notice(f"Using built-in models. For better answers, {way} ({doctor} shows how).")

    # The models of servers

    def served_models(self) -> Iterator[ServedModel]:
        """The models on servers that the settings name. Raises UsageError as `ollama` does."""
        settings = self.settings
        prompt = settings.CONTEXT_TOKENS + settings.ANSWER_TOKENS
        embeds, chats = self.embed_server(settings.EMBEDDER), self.chat_server
        named = settings.EMBEDDER in SERVERS
        if settings.LLM != "openai" or settings.EMBEDDER != BUILTIN:
            embedder = self.embed_model(embeds.kind)
            yield ServedModel(embeds, "embedding model", "embedding", embedder, named, 0)
        yield ServedModel(chats, "chat model", "completion", self.chat_model, settings.LLM in SERVERS, prompt)
        if settings.VERIFIER_MODEL and settings.VERIFIER in ("auto", "llm"):
            required = settings.VERIFIER == "llm"
            yield ServedModel(chats, "verifier model", "completion", settings.VERIFIER_MODEL, required, 0)

    @property
    def chat_model(self) -> str:
        """The chat model that the settings name; "" for the only one of an OpenAI-compatible server."""
        is_default = self.settings.LLM == "openai" and "LLM_MODEL" not in self.settings.model_fields_set
        return "" if is_default else self.settings.LLM_MODEL

    def embed_model(self, kind: str) -> str:
        """The embedding model, as `chat_model`. kind: see `embed_server`."""
        is_default = kind == "openai" and "EMBED_MODEL" not in self.settings.model_fields_set
        return "" if is_default else self.settings.EMBED_MODEL

    @property
    def named_models(self) -> list[str]:
        """The models that the settings name for Ollama."""
        settings = self.settings
        return list(filter(None, (settings.EMBED_MODEL, settings.LLM_MODEL, settings.VERIFIER_MODEL)))

    def cross_encoders(self) -> list[tuple[str, Path, str]]:
        """The cross-encoders whose files are here, with their folders and their use: "ranking", "checking"."""
        settings = self.settings
        named = ((settings.CROSS_ENCODER, "ranking"), (settings.NLI_MODEL, "checking"))
        return [(name, folder, use) for name, use in named if (folder := find_model(name, settings.MODELS_DIR))]

    def require_ready(self) -> None:
        """Raise ModelError unless the server has the chat model, where the settings say that one answers; UsageError as
        `ollama` does."""
        if self.settings.LLM in SERVERS:
            server = self.chat_server
            server.require_local(self.chat_model or server.only_model("completion"), "completion")

    def chat_models(self) -> list[str]:
        """The server's chat models; empty if it is not running."""
        try:
            return self.chat_server.chat_models()
        except ModelError:
            return []

    def missing_from_ollama(self, model: str, capability: Capability) -> str:
        """How to make Ollama serve this model, as a clause; "" if it already does. Raises CloudModel, WrongModel."""
        try:
            self.ollama.require_local(model, capability)
        except ModelMissing:
            return f"run `ollama pull {model}`"
        except ModelServerError:
            return f"start Ollama, then run `ollama pull {model}`"
        return ""

    def tried(self, model: ServedModel) -> ModelInfo:
        """What the server says of a model, after one short call as a question makes it. Raises ModelError.

        No call is made of a model that the settings do not use.
        """
        info, settings = model.server.require_local(model.name, model.capability), self.settings
        if model.capability == "embedding" and settings.EMBEDDER != BUILTIN:
            self._server_embedder(model.server.kind).embed_query("Ready?")
        elif model.capability == "completion" and settings.LLM != BUILTIN:
            from folio.models.chat_model import ChatModel

            chat = ChatModel.open(model.server, model.name, self._usual_tokens)
            pieces = chat.stream("", "Ready?", context=chat.context_for(self._usual_tokens), longest=1)
            next(pieces, None)  # closed when it is dropped, and with it the request
        return info

    # Embedding

    def embedder(self, made_with: str) -> Embedder:
        """The embedder for a store. Raises ModelError when the embedder that the settings name cannot be used.

        made_with: "ollama", "openai" or "builtin", from the store's fingerprint; "" for a new store.
        """
        choice: str = self.settings.EMBEDDER
        if choice == "auto":
            takes_ollama = not made_with and self._ollama_embeds()
            choice = made_with if made_with in SERVERS else "ollama" if takes_ollama else BUILTIN
            if made_with == "builtin":
                pull = f"run `ollama pull {self.settings.EMBED_MODEL}`"
                self._stand_ins["the embedder"] = f"{pull} and `{command('ingest --rebuild')}`"
        return self._server_embedder(choice) if choice in SERVERS else self.meaning

    def _server_embedder(self, kind: str) -> Embedder:
        """kind: see `embed_server`. Raises ModelError."""
        from folio.models.server_embedder import ServerEmbedder

        settings = self.settings
        embedder = ServerEmbedder(
            self.embed_server(kind),
            self.embed_model(kind),
            settings.EMBED_BATCH,
            query_prefix=prefix_of(settings.EMBED_QUERY_PREFIX),
            passage_prefix=prefix_of(settings.EMBED_PASSAGE_PREFIX),
        )
        name = self.embed_model(kind) or embedder.model
        if embedder.prefixes_unknown and name not in self._noted:
            self._noted.add(name)
            self.notice(
                f"Folio does not know what {name} reads before a question and a passage. If its card"
                " names prefixes, set EMBED_QUERY_PREFIX and EMBED_PASSAGE_PREFIX; if it needs none, set one to none."
            )
        return embedder

    def _ollama_embeds(self) -> bool:
        """Whether a new store can be made with Ollama."""
        missing = self.missing_from_ollama(self.settings.EMBED_MODEL, "embedding")
        if missing:
            self._stand_ins["the embedder all-MiniLM-L6-v2"] = missing
            self.announce()
        return not missing

    @cached_property
    def meaning(self) -> TokenEmbedder:
        """The built-in model: it embeds tokens, and compares the meaning of a sentence and of its quote.

        It is used whatever embeds the papers: the thresholds were measured with it, and Ollama stays free to answer.
        """
        from folio.models.minilm import BuiltinEmbedder

        return BuiltinEmbedder()

    @cached_property
    def reader(self) -> PassageReader:
        """The built-in reader of questions and passages."""
        from folio.models.reader import Reader

        return Reader()

    @property
    def builtin_required(self) -> bool:
        """Whether the settings ask for the built-in model by name."""
        return "builtin" in (self.settings.EMBEDDER, self.settings.LLM)

    @property
    def graphs(self) -> Path:
        """The folder where the models' ONNX graphs are cached."""
        return self.settings.MODELS_DIR / GRAPHS

    # Reranking

    @property
    def cross_encoder(self) -> str:
        """The cross-encoder that the settings name."""
        return self.settings.CROSS_ENCODER

    @property
    def reranker_choice(self) -> str:
        return self.settings.RERANKER

    def cross_encoder_files(self) -> Path | None:
        """The folder of the reranking cross-encoder; None when it is not on this computer."""
        return find_model(self.settings.CROSS_ENCODER, self.settings.MODELS_DIR)

    def reranker(self) -> Reranker | None:
        """The reranker; None if the settings switch it off. Raises ModelMissing if a named cross-encoder is missing."""
        choice, name = self.settings.RERANKER, self.settings.CROSS_ENCODER
        if choice == "none":
            return None
        folder = self.cross_encoder_files() if choice != "builtin" else None
        if folder is not None:
            return CrossEncoderReranker(folder, name, self.graphs)
        if choice == "crossencoder":
            raise _no_files(name, "RERANKER=builtin")
        if choice == "auto":
            self._stand_ins["the reranker"] = f"run `{fetch_command(name)}`"
        return ReaderReranker(BuiltinReranker(self.meaning), self.reader)

    @cached_property
    def query_writer(self) -> QueryWriter | None:
        """The model that writes query variants, if the settings ask for it. Sends nothing to the server yet."""
        settings, how = self.settings, self.settings.QUERY_VARIANTS
        if how != "llm" and how != "hyde":
            return None
        from folio.answer.query_writer import LlmQueryWriter

        tokens, seconds = self._usual_tokens, settings.VARIANTS_SECONDS
        return LlmQueryWriter(self.chat_server, self.chat_model, how, tokens, seconds, self.notice)

    # Answering

    def answerer(
        self,
        retriever: Retriever,
        *,
        model: str | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
        answer_format: AnswerFormat | None = None,
        instruction: str = "",
    ) -> Answerer:
        """The answerer over a retriever's store. answer_format: None for the settings'.

        model: "builtin", or the name of a model on the chat server; None for the settings'. check_cancelled: called
        for each word that a model writes; an exception that it raises ends the answer. instruction: what the person
        asks of the wording, for a model.

        Raises ModelError when a named model cannot answer, CloudModel when it runs on another computer.
        """
        settings = self.settings
        tokens = settings.CONTEXT_TOKENS
        extractive = self.extractive(retriever)
        model = self.answer_model(model)
        if model == BUILTIN:
            return extractive
        from folio.answer.generative import GenerativeAnswerer

        return GenerativeAnswerer(
            self.chat_server,
            model,
            evidence_tokens=tokens,
            answer_tokens=settings.ANSWER_TOKENS,
            stand_in=extractive,
            verifier=self._verifier(model, writes=True, check_cancelled=check_cancelled),
            answer_format=answer_format or settings.ANSWER_FORMAT,
            strict=settings.STRICT,
            check_cancelled=check_cancelled,
            usual_tokens=self._usual_tokens,
            instruction=instruction,
        )

    def extractive(self, retriever: Retriever) -> ExtractiveAnswerer:
        """The built-in answerer over a retriever's store."""
        from folio.answer.extractive import ExtractiveAnswerer

        tokens = self.settings.CONTEXT_TOKENS
        return ExtractiveAnswerer(self.meaning, self.reader, retriever.term_weights, evidence_tokens=tokens)

    def answer_model(self, model: str | None = None) -> str:
        """The model that answers: "builtin", or its name on the server. model: as for `answerer`."""
        if model is not None:
            return model
        settings = self.settings
        if settings.LLM == "auto" and (missing := self.missing_from_ollama(settings.LLM_MODEL, "completion")):
            self._stand_ins["answers quoted from the papers"] = missing
            return BUILTIN
        return BUILTIN if settings.LLM == "builtin" else self.chat_model

    def answering_name(self) -> str:
        """As `answer_model`, with the name where a server's only model answers. Raises ModelError."""
        return self.answer_model() or self.chat_server.only_model("completion")

    @property
    def _usual_tokens(self) -> int:
        """Tokens of the longest prompt of an answer with its reply: the model is loaded once, with room for them."""
        from folio.answer.layout import NOTES_TOKENS

        return self.settings.CONTEXT_TOKENS + NOTES_TOKENS + self.settings.ANSWER_TOKENS

    # Searching in rounds

    def deep_search(
        self,
        chat: Chat,
        *,
        evidence: int | None = None,
        model: str | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
        checkpoints: CheckpointFile | None = None,
    ) -> DeepSearch:
        """A search in rounds for a chat's `ask`. evidence: number of passages to answer from.

        model: as for `answerer`, with the same errors. checkpoints: where the search is saved while it runs.
        """
        from folio.deep.search import DeepSearch

        settings = self.settings
        assessor, retriever = self._assessor(chat.retriever, model, check_cancelled), chat.retriever.without_writer()
        limits = DeepLimits(
            settings.SEARCH_PAPERS,
            evidence or settings.EVIDENCE_K,
            settings.MIN_CONTEXTS,
            settings.ROUNDS if assessor.uses_model else 1,  # without a model, more rounds found nothing new (LOG.md)
            settings.DEEP_MMR_LAMBDA,
            settings.DEEP_CALLS,
            settings.DEEP_SECONDS,
        )
        first = None if assessor.uses_model else chat.search
        is_built_in = chat.quotes_only and not assessor.uses_model
        return DeepSearch(
            retriever,
            assessor,
            limits,
            chat.selection,
            check_cancelled,
            checkpoints,
            first,
            has_confidence=is_built_in,
        )

    def _assessor(self, retriever: Retriever, model: str | None, check_cancelled: Callable[[], None]) -> Assessor:
        from folio.deep.builtin_assessor import BuiltinAssessor

        settings, name = self.settings, model or self.chat_model
        asks = (settings.LLM in SERVERS and model is None) or self._model_answers(model)
        # A model that is no judge gives every passage the same score, one call each (LOG.md)
        if asks and self._judge(name, self._usual_tokens, check_cancelled).is_judge():
            from folio.deep.llm import LlmAssessor

            return LlmAssessor(
                self.chat_server,
                name,
                parallel=settings.PARALLEL,
                tokens=self._usual_tokens,
                check_cancelled=check_cancelled,
            )
        return BuiltinAssessor(self.meaning, retriever.term_weights)

    def heading_writer(self, check_cancelled: Callable[[], None] = lambda: None) -> HeadingWriter | None:
        """The model that names the themes of a review; None where quotes answer. Raises ModelError."""
        model = self.answer_model()
        if model == BUILTIN:
            return None
        from folio.review.headings import HeadingWriter

        tokens = self._usual_tokens
        return HeadingWriter(self.chat_server, model, tokens=tokens, check_cancelled=check_cancelled)

    # Verifying

    @property
    def verifier_choice(self) -> str:
        return self.settings.VERIFIER

    def nli_files(self) -> Path | None:
        """The folder of the verifying cross-encoder; None when it is not on this computer."""
        return find_model(self.settings.NLI_MODEL, self.settings.MODELS_DIR)

    def verifier(
        self, model: str | None = None, check_cancelled: Callable[[], None] = lambda: None
    ) -> Verifier | None:
        """The verifier of what a model writes; None if there is none. model, check_cancelled: as for `answerer`.

        Raises ModelError if a named verifier cannot be used.
        """
        writes = self.settings.VERIFIER == "auto" and self._model_answers(model)
        writer = self.chat_model if model is None or model == BUILTIN else model
        return self._verifier(writer, writes=writes, check_cancelled=check_cancelled)

    def _verifier(self, writer: str, *, writes: bool, check_cancelled: Callable[[], None]) -> Verifier | None:
        """The verifier of what this chat model writes. writes: whether the model is ready on its server."""
        settings = self.settings
        choice, name = settings.VERIFIER, settings.NLI_MODEL
        if choice == "none":
            return None
        if choice == "crossencoder" or (choice == "auto" and not writes):
            folder = self.nli_files()
            if folder is not None:
                return self._nli_verifiers.setdefault(folder, NliVerifier(folder, name, self.graphs))
            if choice == "crossencoder":
                raise _no_files(name, "VERIFIER=none")
            return None
        judge = settings.VERIFIER_MODEL or writer
        usual_tokens = self._usual_tokens if judge == writer else 0
        return self._judge(judge, usual_tokens, check_cancelled, shares_prompt=judge == writer)

    def _judge(
        self, name: str, usual_tokens: int, check_cancelled: Callable[[], None], *, shares_prompt: bool = False
    ) -> LlmVerifier:
        from folio.answer.verifier import LlmVerifier

        return LlmVerifier(
            self.chat_server,
            name,
            kept=self.settings.CACHE_DIR / "judges.json",
            shares_prompt=shares_prompt,
            check_cancelled=check_cancelled,
            notice=self.notice,
            usual_tokens=usual_tokens,
        )

    def _model_answers(self, model: str | None) -> bool:
        """Whether `answerer` would use a model on a server that is ready. Raises CloudModel, WrongModel."""
        if model == BUILTIN or (model is None and self.settings.LLM == BUILTIN):
            return False
        try:
            self.chat_server.require_local(model or self.chat_model, "completion")
        except (ModelMissing, ModelServerError):
            return False
        return True


def is_first_today(folder: Path, today: date | None = None) -> bool:
    """Whether this is today's first call for this folder, over all processes.

    Only one of several processes can create the file of today's date. If no process can, as in a folder that is
    missing or read-only, every call counts as the first.
    """
    mark = folder / f"{PREFIX}{(today or date.today()).isoformat()}"
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    with suppress(OSError):
        for old in folder.glob(f"{PREFIX}*"):
            if old != mark:
                old.unlink(missing_ok=True)
    return True


def prefix_of(chosen: str) -> str | None:
    """The prefix that a setting gives; None for the model's own."""
    return {"auto": None, "none": ""}.get(chosen.strip().casefold(), chosen)


def _no_files(name: str, otherwise: str) -> ModelMissing:
    remedy = f"Get them with `{fetch_command(name)}`, or set {otherwise}."
    return ModelMissing(f"The files of {name} are not on this computer.", remedy)
