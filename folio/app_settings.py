"""The settings as the values that the rest of Folio takes. app.py makes objects of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from folio.citation_label import CitationStyle
from folio.sources.internet_access import InternetAccess
from folio.store.fingerprint import Reading

if TYPE_CHECKING:
    from config import Settings
    from folio.ingest import pipeline
    from folio.store import indexes

# Where a library may be kept, as STORE names it
Place = Literal["local", "postgres"]


@dataclass(frozen=True)
class AppSettings:
    """What the settings say."""

    settings: Settings

    @property
    def papers_folder(self) -> Path:
        return self.settings.PAPERS_DIR

    @property
    def store_folder(self) -> Path:
        return self.settings.VECTORSTORE_DIR

    @property
    def place_in_use(self) -> Place:
        """Where the library is that the commands use."""
        return self.settings.STORE

    @property
    def fetched_pdfs(self) -> Path:
        """Where PDFs go that only the library has, which is shared with the computer that read them."""
        return self.store_folder / "pdfs"

    @property
    def record_file(self) -> Path:
        """The list of the store's contents for people: ingested.json."""
        return self.settings.INGESTED_JSON

    @property
    def logs_questions(self) -> bool:
        """Whether questions are written to the log, and conversations kept."""
        return self.settings.QUERY_LOG

    @property
    def server_token(self) -> str | None:
        """The token that clients of the server must send."""
        return self.settings.FOLIO_TOKEN.get_secret_value() or None

    @property
    def public_url(self) -> str:
        """Where a balancer in front of the server is reached; "" without one."""
        return self.settings.PUBLIC_URL

    @property
    def internet(self) -> InternetAccess:
        """What `folio fetch`, and `folio serve` where it may, asks services on the internet with. Nothing else does."""
        mine = self.settings
        keys = (mine.OPENALEX_API_KEY.get_secret_value(), mine.S2_API_KEY.get_secret_value())
        places = (mine.SOURCES_STAND_IN, mine.CACHE_DIR)
        return InternetAccess(mine.CONTACT_EMAIL, *keys, *places, mine.MAX_FILE_MB, mine.ONLINE)

    @property
    def top_k(self) -> int:
        """Default number of passages to find and answer from."""
        return self.settings.TOP_K

    @property
    def shows_understood(self) -> bool:
        """Whether the answer to a follow-up says how it was understood."""
        return self.settings.SHOW_UNDERSTOOD

    @property
    def numbers_citations(self) -> bool:
        """Whether citations are shown as numbers of the list of sources."""
        return self.settings.CITATION_STYLE == "numbered"

    @property
    def citation_style(self) -> CitationStyle:
        """What papers are named by, also where their citations are numbered."""
        style = self.settings.CITATION_STYLE
        return "author-year" if style == "numbered" else style

    @property
    def lexical_engine(self) -> indexes.Engine:
        """The BM25 engine."""
        return self.settings.LEXICAL

    @property
    def embed_batch(self) -> int:
        """Passages in one call of the embedder."""
        return self.settings.EMBED_BATCH

    @property
    def pdf_viewer(self) -> str:
        """The command that opens a cited page, or "auto"."""
        return self.settings.PDF_VIEWER

    def settings_used(self) -> dict[str, str]:
        """Every setting by name, as text, to record with a run."""
        return {name: str(value) for name, value in self.settings.model_dump().items()}

    @property
    def reading(self) -> Reading:
        settings = self.settings
        ocr = settings.OCR == "auto"
        if settings.INDEX == "dual":
            return Reading(settings.COARSE_SIZE, 0, settings.PARSER, ocr, settings.FINE_SIZE)
        return Reading(settings.CHUNK_SIZE, settings.CHUNK_OVERLAP, settings.PARSER, ocr)

    def ollama_servers(self) -> tuple[str, ...]:
        """The servers that embed for workers on other computers. Raises UsageError as server_url does."""
        from folio.models.ollama import server_url

        mine = self.settings
        name, hosts = ("OLLAMA_HOSTS", mine.OLLAMA_HOSTS) if mine.OLLAMA_HOSTS else ("OLLAMA_HOST", mine.OLLAMA_HOST)
        named = [host for host in hosts.split(",") if host.strip()] or [mine.OLLAMA_HOST]
        allowed = mine.ALLOW_REMOTE_OLLAMA
        return tuple(dict.fromkeys(server_url(host, allow_remote=allowed, setting=name) for host in named))

    def limits(self, jobs: int | None) -> pipeline.Limits:
        """The limits for reading PDFs. jobs: worker processes; None means one per core, at most 8."""
        from folio.ingest import pipeline

        wanted = jobs or min(8, os.cpu_count() or 1)
        settings = self.settings
        return pipeline.Limits(wanted, settings.PARSE_TIMEOUT_S, settings.PARSE_MEMORY_MB, settings.MAX_FILE_MB)
