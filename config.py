"""Every setting of Folio, with its default and its reason.

Each can be set in the environment or in a file named .env in the folder you run from:

    CHUNK_SIZE=1000 python ingest.py --rebuild
    OLLAMA_HOST=127.0.0.1:11500 python query.py "question"
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parent

Count = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0)]


class Settings(BaseSettings):
    """The settings as they are in force. Only app.py and the scripts see them."""

    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, use_attribute_docstrings=True, env_ignore_empty=True
    )

    # Where things are
    PAPERS_DIR: Path = ROOT / "papers"
    """The folder of PDFs that `python ingest.py` reads, folders below it included."""
    VECTORSTORE_DIR: Path = ROOT / "vectorstore"
    """The index: library.sqlite, and the FAISS and BM25 files derived from it."""
    INGESTED_JSON: Path = ROOT / "ingested.json"
    """A list of what is in the index, for people to read."""
    MODELS_DIR: Path = ROOT / "models"
    """Where `make models` puts the cross-encoder; in its `onnx/`, what is made of a model's weights once."""

    # Which models
    EMBEDDER: Literal["auto", "ollama", "builtin"] = "auto"
    """Who embeds: auto takes what the store was made with; for a new one Ollama where it is ready, else built in."""
    LLM: Literal["auto", "ollama", "builtin"] = "auto"
    """Who answers: auto takes Ollama where it is ready, else the built-in extractive answerer."""
    RERANKER: Literal["auto", "crossencoder", "builtin", "none"] = "auto"
    """Who reranks: auto takes the cross-encoder when its files are on this computer."""
    LEXICAL: Literal["tantivy", "rank_bm25"] = "tantivy"
    """The BM25 engine: tantivy opens at once; rank_bm25 is rebuilt in memory at every start."""
    OLLAMA_HOST: str = "127.0.0.1:11434"
    """The Ollama server: host, host:port or a URL."""
    EMBED_MODEL: str = "nomic-embed-text"
    """The embedding model that Ollama serves."""
    LLM_MODEL: str = "llama3.1:8b"
    """The chat model that Ollama serves."""
    CROSS_ENCODER: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    """The cross-encoder: a name under MODELS_DIR or in the Hugging Face cache, or a folder."""

    # How papers are read, split and found
    PARSER: Literal["fast", "layout"] = "fast"
    """How pages are read: fast, or layout: it marks headings, writes tables in Markdown and takes 15 times as long."""
    OCR: Literal["off", "auto"] = "auto"
    """Whether pages that are pictures are read by Tesseract or RapidOCR, where one is installed."""
    CHUNK_SIZE: Count = 1500
    """Characters in a chunk at most: two or three paragraphs, enough to answer from alone."""
    CHUNK_OVERLAP: Annotated[int, Field(ge=0)] = 200
    """Characters that neighbouring chunks share, so that a sentence at the seam stands whole in one of them."""
    TOP_K_CANDIDATES: Count = 20
    """Passages taken from each of FAISS and BM25, and then reranked."""
    TOP_K: Count = 4
    """Passages kept as evidence."""
    DENSE_WEIGHT: Weight = 0.7
    """Share of the embedding's score in the fused score."""
    BM25_WEIGHT: Weight = 0.3
    """Share of BM25's score in the fused score."""

    # What is kept, what is opened
    QUERY_LOG: bool = True
    """Whether questions and their answers are written to the log in the index, for --stats and --feedback; and whether
    conversations of the web app are kept there."""
    PDF_VIEWER: str = "auto"
    """What opens a cited page: auto takes a viewer that is there; none draws the page; or a command with {file} and,
    for the page, {page}."""

    # How much, how long
    CONTEXT_TOKENS: Annotated[int, Field(ge=256)] = 6000
    """Tokens of evidence in a prompt at most; weaker passages are left out first."""
    ANSWER_TOKENS: Annotated[int, Field(ge=64)] = 768
    """Tokens of an answer at most; room for them is kept in the model's context."""
    EMBED_BATCH: Count = 32
    """Passages in one embedding request."""
    OLLAMA_TIMEOUT_S: Seconds = 300
    """Seconds of silence after which Ollama counts as stuck: a cold model takes tens of seconds to load."""
    PARSE_TIMEOUT_S: Seconds = 120
    """Seconds that one PDF may take to read."""
    PARSE_MEMORY_MB: Annotated[int, Field(ge=256)] = 2048
    """Memory that the reading of one PDF may take (enforced on Linux)."""
    MAX_FILE_MB: Count = 500
    """A PDF larger than this is not opened."""

    @field_validator("PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "MODELS_DIR")
    @classmethod
    def _at_home(cls, path: Path) -> Path:
        return path.expanduser()

    @field_validator("PDF_VIEWER")
    @classmethod
    def _opens_a_file(cls, viewer: str) -> str:
        if (word := viewer.strip().casefold()) in ("auto", "none"):
            return word
        if "{file}" not in viewer:
            raise ValueError("must be auto, none or a command that has {file} in it")
        try:
            shlex.split(viewer, posix=os.name != "nt")
        except ValueError as error:
            raise ValueError(f"is no command: {error}") from error
        return viewer

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.CHUNK_OVERLAP >= self.CHUNK_SIZE:
            raise ValueError("CHUNK_OVERLAP must be smaller than CHUNK_SIZE")
        if self.DENSE_WEIGHT + self.BM25_WEIGHT <= 0:
            raise ValueError("DENSE_WEIGHT and BM25_WEIGHT cannot both be 0")
        return self


class SettingsError(Exception):
    """A setting has a value that it cannot take; the text names it."""


def load_settings() -> Settings:
    """The settings from the environment and .env. Raises SettingsError naming the first that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "settings"
        raise SettingsError(f"{name}: {first['msg'].removeprefix('Value error, ')}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f".env cannot be read: {error}") from error
