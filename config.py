"""Every setting of Folio, with its default and its meaning. `make docs` makes docs/settings.md from this file.

Set them in the environment, or in a file named .env in the user's config folder or in the checkout:

    CHUNK_SIZE=1000 python ingest.py --rebuild
    OLLAMA_HOST=127.0.0.1:11500 python query.py "question"

No other .env is read, because the current folder may contain files of other people.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def _checkout() -> Path | None:
    """The checkout that this file is in; None for an installed Folio."""
    here = Path(__file__).resolve().parent
    return here if (here / "ingest.py").is_file() else None


def _data_folder() -> Path:
    """The checkout; for an installed Folio, the folder of the user's data.

    A user without HOME and without an entry in passwd, as in a container, has none: Settings refuses the folder "~".
    """
    if CHECKOUT is not None:
        return CHECKOUT
    from platformdirs import user_data_path

    try:
        return user_data_path("folio", appauthor=False)
    except RuntimeError:
        return Path("~", "folio")


CHECKOUT = _checkout()
DATA = _data_folder()
# Settings that run a command or let text leave this computer: only in the environment or the user's file, never in the
# checkout's.
PERSONAL = (
    "OLLAMA_HOST", "ALLOW_REMOTE_OLLAMA", "PDF_VIEWER", "ONLINE", "DATABASE_URL", "RAY_ADDRESS", "OLLAMA_HOSTS",
    "OPENAI_BASE_URL", "OPENAI_EMBED_BASE_URL",
)  # fmt: skip

# A name counts as a mistyped setting from this similarity ratio and this many characters.
_CLOSE, _SHORTEST = 0.86, 4
_OF_OTHERS = ("OPENAI_ADMIN_KEY",)  # similar to OPENAI_API_KEY, but of OpenAI's own tools

_MOST = 10_000_000  # limit on every count: memory for 10**12 passages would crash the process


def _require_limited(value: float) -> float:
    if value > _MOST:
        raise ValueError(f"must be at most {_MOST:,}")
    return value


Limited = AfterValidator(_require_limited)
Count = Annotated[int, Field(ge=1), Limited]
Weight = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0), Limited]


class Settings(BaseSettings):
    """All settings, checked. Only app.py and model_choice.py see them."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True, env_ignore_empty=True)

    # Files and folders
    PAPERS_DIR: Path = DATA / "papers"
    """The folder of PDFs that an ingest reads, subfolders included."""
    VECTORSTORE_DIR: Path = DATA / "vectorstore"
    """The index: `library.sqlite`; `user.sqlite` with your questions, conversations and edits, and its daily copies;
    and the FAISS and BM25 files derived from them."""
    INGESTED_JSON: Path = DATA / "ingested.json"
    """A list of the papers in the index, for people to read."""
    CACHE_DIR: Path = DATA / "cache"
    """Where `folio fetch` and the page cache the answers of services on the internet, for a day."""
    MODELS_DIR: Path = DATA / "models"
    """Where `make models` puts the cross-encoders. Its subfolder `onnx/` caches the graphs built from model weights."""

    # Folders that are kept in step
    WATCH: str = ""
    """Folders of PDFs that `serve.py` keeps the index in step with, separated as in PATH (`:`, on Windows `;`);
    `zotero` stands for the Zotero library. `ingest.py --watch` does the same for the folders that it is given."""
    WATCH_POLL_S: Annotated[float, Field(ge=0), Limited] = 0
    """Seconds between two looks at a watched folder. 0: the system tells what changes, except in network folders, which
    are looked through every three seconds or, if that takes long, less often."""

    # Several computers
    STORE: Literal["local", "postgres"] = "local"
    """`local` keeps the library in VECTORSTORE_DIR; `postgres` keeps it in PostgreSQL, where any number of computers
    ingest, ask and serve at once (docs/scale.md); VECTORSTORE_DIR then has this computer's FAISS and BM25 files."""
    DATABASE_URL: Annotated[SecretStr, Field(exclude=True)] = SecretStr("")
    """With STORE=postgres, the database, in libpq's format: `postgresql://user@host/name?sslmode=verify-full`; the
    password may be in it or in `~/.pgpass`. Papers, their PDFs and questions are sent there. Not read from the
    checkout's `.env`."""
    SEARCH: Literal["auto", "local", "server"] = "auto"
    """With STORE=postgres, where the search runs: `local`, in FAISS and BM25 files on this computer, which follow the
    database; `server`, in the database (extension `vector`). `auto`: on the server from a million passages on."""
    RAY_ADDRESS: str = ""
    """With `ingest.py --on ray`, the cluster that reads and embeds papers: `host:port`. This computer must be a part of
    it; papers are sent there. Empty: Ray on this computer alone. Not read from the checkout's `.env`."""

    # Models
    EMBEDDER: Literal["auto", "ollama", "openai", "builtin"] = "auto"
    """The embedder. `auto` uses the one that the index was made with (while its server is away, BM25 searches alone);
    for a new index, Ollama if it is ready, otherwise the built-in model."""
    LLM: Literal["auto", "ollama", "openai", "builtin"] = "auto"
    """The answerer. `auto` uses Ollama if it is ready, otherwise the built-in extractive answerer. `openai` is any
    server with OpenAI's API, such as LM Studio or llama.cpp."""
    RERANKER: Literal["auto", "crossencoder", "builtin", "none"] = "auto"
    """The reranker. `auto` uses the cross-encoder if its files are on this computer, otherwise the built-in reranker;
    `none` keeps the order of the fused scores."""
    VERIFIER: Literal["auto", "llm", "crossencoder", "none"] = "auto"
    """The verifier, which judges whether the cited sentences support a model's statements. `llm` asks a chat model one
    question about each statement; `crossencoder` uses NLI_MODEL, without a server; `none` uses only the rules about
    numbers and names. `auto` uses the chat model if it writes the answers, otherwise the cross-encoder if its files are
    on this computer."""
    STRICT: bool = False
    """Whether answers show only quotes: `true` leaves out statements in a model's own words, even if the papers support
    them."""
    SHOW_UNDERSTOOD: bool = True
    """Whether an answer says how a follow-up was understood ("Understood as: ...")."""
    LEXICAL: Literal["tantivy", "rank_bm25"] = "tantivy"
    """The BM25 engine. `tantivy` opens its index at once; `rank_bm25` builds one in memory at every start."""
    OLLAMA_HOST: str = "127.0.0.1:11434"
    """The Ollama server: a host, host:port or a URL. Not read from the checkout's `.env`."""
    ALLOW_REMOTE_OLLAMA: bool = False
    """Whether OLLAMA_HOST and OPENAI_BASE_URL may be another computer; questions and passages are then sent there. Not
    read from the checkout's `.env`."""
    OLLAMA_HOSTS: str = ""
    """With `ingest.py --on ray`, the Ollama servers that embed, separated by commas; all need the same EMBED_MODEL, and
    ALLOW_REMOTE_OLLAMA if they are other computers. Empty: OLLAMA_HOST, where 127.0.0.1 is each worker's own computer.
    Not read from the checkout's `.env`."""
    OPENAI_BASE_URL: str = "http://127.0.0.1:1234/v1"
    """With LLM=openai or EMBEDDER=openai, the server. Default: LM Studio's. Not read from the checkout's `.env`."""
    OPENAI_API_KEY: Annotated[SecretStr, Field(exclude=True)] = SecretStr("")
    """A key, if that server wants one. It is sent to no other."""
    OPENAI_CONTEXT: Annotated[int, Field(ge=0), Limited] = 0
    """The context in tokens that the chat model there was loaded with. 0: as the server says; 4,096 if it does not."""
    OPENAI_EMBED_BASE_URL: str = ""
    """With EMBEDDER=openai, the server that embeds, if it is another. Not read from the checkout's `.env`."""
    OPENAI_EMBED_CONTEXT: Annotated[int, Field(ge=0), Limited] = 0
    """Tokens that the embedding model reads. 0: as the server says; 512 if it does not. A change needs a new index."""
    EMBED_MODEL: str = "nomic-embed-text"
    """The embedding model on the server. If EMBEDDER=openai and this is not set, the server's only embedding model."""
    EMBED_QUERY_PREFIX: Annotated[str, Field(max_length=300)] = "auto"
    """The text that EMBED_MODEL gets before a question. `auto` uses the text that the model's makers specify, for
    models that Folio knows, and no text for others; `none` uses no text; any other value is the text itself, in quotes
    if it ends in a space: `"query: "`."""
    EMBED_PASSAGE_PREFIX: Annotated[str, Field(max_length=300)] = "auto"
    """The text that EMBED_MODEL gets before a passage, with the same values; `{title}` stands for the title of its
    paper. A change needs a new index."""
    LLM_MODEL: str = "llama3.1:8b"
    """The chat model on the server. If LLM=openai and this is not set, the server's only chat model."""
    CROSS_ENCODER: str = "cross-encoder/ms-marco-MiniLM-L-6-v2"
    """The cross-encoder: a name under MODELS_DIR or in the Hugging Face cache, or the path of a folder: absolute, or
    beginning with a dot."""
    THINK: Literal["auto", "off", "low", "on"] = "auto"
    """Whether models that can think do so before they write. `auto` and `off` turn thinking off, which takes a
    fraction of the time; `low` lets them think a little, `on` as much as they like. gpt-oss always thinks, but only a
    little unless this is `on`. A thought may take 2,048 tokens in addition to ANSWER_TOKENS, or 4,096 with `on`."""
    KEEP_ALIVE: Annotated[str, Field(pattern=r"^(-?[0-9]+|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)?$")] = ""
    """How long Ollama keeps a model loaded after a request: `30m`, `2h`, a number of seconds, or `-1` for always.
    Empty: Ollama's own setting, five minutes by default."""
    VERIFIER_MODEL: str = ""
    """The model on the chat model's server that judges statements. Empty: the chat model, which is fastest because it
    has already read the evidence. `bespoke-minicheck` is made for this task."""
    NLI_MODEL: str = "cross-encoder/nli-MiniLM2-L6-H768"
    """The cross-encoder that judges statements, named as CROSS_ENCODER is: a model with the labels entailment, neutral
    and contradiction, or one that says whether a text supports a sentence."""

    ANSWER_FORMAT: Literal["quote", "statements", "prose"] = "quote"
    """How a model on a server answers. `quote`: it copies the sentence that answers, then answers shortly; one that is
    no judge, or under STRICT, only chooses sentences. `statements`: as JSON, each statement after the numbers of the
    sentences that support it; reports and lists of papers always are. `prose`: as text with citation markers."""

    # Reading, splitting and searching
    PARSER: Literal["fast", "layout"] = "fast"
    """How pages are read. `layout` marks headings and writes tables in Markdown, and takes about 15 times as long as
    `fast`."""
    OCR: Literal["off", "auto"] = "auto"
    """OCR of pages that are images. `auto` reads them with Tesseract or RapidOCR if one is installed; `off` leaves them
    out."""
    INDEX: Literal["single", "dual"] = "single"
    """What is embedded. `single`: passages; `dual`: longer passages, and in each of them fine passages of a few
    sentences, which find details that a long passage only mentions. Takes effect with `--rebuild`."""
    CHUNK_SIZE: Count = 1500
    """Maximum characters in a passage (a chunk): two or three paragraphs, enough to answer from alone. Passages end
    where their section ends. With INDEX=dual, see COARSE_SIZE."""
    CHUNK_OVERLAP: Annotated[int, Field(ge=0), Limited] = 200
    """Characters that neighbouring passages of a section share, so that one of them has the whole sentence at the
    boundary. Not used with INDEX=dual."""
    COARSE_SIZE: Count = 1900
    """With INDEX=dual, the maximum characters in a passage."""
    FINE_SIZE: Count = 300
    """With INDEX=dual, the maximum characters in a fine passage."""
    TOP_K_CANDIDATES: Count = 20
    """Passages taken from FAISS, and as many from BM25, before they are fused and reranked."""
    DUAL_CANDIDATES: Count = 50
    """With INDEX=dual, the number of passages, and of fine passages, taken from FAISS. The number of reranked passages
    is that of INDEX=single."""
    TOP_K: Count = 4
    """Passages kept as evidence for an answer."""
    DENSE_WEIGHT: Weight = 0.7
    """Weight of the embedding score in the fused score."""
    BM25_WEIGHT: Weight = 0.3
    """Weight of the BM25 score in the fused score."""
    FUSION: Literal["weighted", "rrf"] = "weighted"
    """How the two rankings become one: `weighted` adds scores, `rrf` is reciprocal rank fusion."""
    RRF_K: Count = 60
    """With FUSION=rrf, the constant added to each rank: the larger, the less the first places count."""
    RETRIEVAL_MODE: Literal["hybrid", "dense", "lexical"] = "hybrid"
    """What ranks passages: both searches, the embeddings alone or BM25 alone."""
    MIN_HITS: Annotated[int, Field(ge=0), Limited] = 0
    """With RETRIEVAL_MODE=lexical, the fewest passages that BM25 must find; with fewer, the search is hybrid."""
    QUERY_VARIANTS: Literal["off", "llm", "hyde"] = "off"
    """Further queries for a question. `llm`: other wordings from LLM_MODEL; `hyde`: a made-up answer from
    LLM_MODEL, to find passages like it. A search in rounds (`--deep`) rephrases by itself."""
    VARIANTS_SECONDS: Seconds = 20
    """With QUERY_VARIANTS=llm or hyde, the seconds that LLM_MODEL may take; after that, only the question is
    searched."""
    MMR_LAMBDA: Weight = 1.0
    """Weight of a passage's relevance against its similarity to better passages (maximal marginal relevance): 1 keeps
    the order, less gives more varied evidence."""

    # Deep answers (`--deep`)
    SEARCH_PAPERS: Count = 8
    """Papers that one search of a deep answer finds; a later search may take the next ones."""
    EVIDENCE_K: Count = 10
    """Passages that a deep answer scores in a round; also the maximum in its evidence."""
    MIN_CONTEXTS: Count = 3
    """Number of passages with relevance 5 or more that ends a search; each part of a question also needs one."""
    ROUNDS: Count = 3
    """Maximum number of searches for a deep answer."""
    DEEP_MMR_LAMBDA: Weight = 1.0
    """How a deep answer chooses the passages to score: `1` takes the best, less takes more varied ones."""
    PARALLEL: Annotated[int, Field(ge=1, le=32)] = 4
    """Passages that a model on a server scores at once. The server may score fewer at once: OLLAMA_NUM_PARALLEL."""
    DEEP_CALLS: Count = 60
    """Maximum number of model calls of a deep search; the answer itself is not counted."""
    DEEP_SECONDS: Seconds = 600
    """Maximum seconds of a deep search; after that, the answer is written from the passages found so far."""

    # Citations
    CITATION_STYLE: Literal["author-year", "numbered", "arxiv", "file"] = "author-year"
    """How citations name a paper. `author-year`: `[Ongaro & Ousterhout 2014, p. 6]`, or a short title where no author
    is sure; `numbered`: `[1]`, the number of the page in the answer's list of sources, in the terminal and in exported
    Markdown (the page names papers as `author-year` does); `arxiv`: `[arXiv:2301.01234 p.7]`, or the file; `file`:
    `[otters.pdf p.7]`. Where neither author nor title is sure, `author-year` cites as `arxiv` does."""

    # Privacy, the PDF viewer and the server
    QUERY_LOG: bool = True
    """Whether questions and answers are logged in the index, and conversations of the web page kept there."""
    PDF_VIEWER: str = "auto"
    """The viewer that opens a cited page. `auto` uses an installed viewer; `none` draws the page as a picture; or a
    command with `{file}` and, for the page, `{page}`. Not read from the checkout's `.env`."""

    FOLIO_TOKEN: Annotated[SecretStr, Field(exclude=True)] = SecretStr("")
    """The token that clients of `serve.py` must send, if `--token-file` or `--token` gives no other."""
    PUBLIC_URL: Annotated[str, Field(pattern=r"^(https?://[a-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?)?$")] = ""
    """The address at which people open the page if `serve.py` is behind a load balancer: `https://example.org`, or
    `https://example.org/folio/` if it takes `/folio` off. Requests are accepted, but still need a token."""

    # Papers from the internet
    ONLINE: bool = False
    """Whether the page and the API of `serve.py` may search OpenAlex, Semantic Scholar, arXiv and Europe PMC for papers
    and download them, as `serve.py --online` allows for one start. `folio fetch` is always allowed to. Not read from
    the checkout's `.env`."""
    CONTACT_EMAIL: Annotated[str, Field(exclude=True, pattern=r"^([A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+)?$")] = ""
    """Your mail address, which is sent to the services. OpenAlex and Crossref answer faster with it; Unpaywall is used
    only with it. Empty: no address is sent."""
    OPENALEX_API_KEY: Annotated[SecretStr, Field(exclude=True)] = SecretStr("")
    """A key for OpenAlex, if you have one."""
    S2_API_KEY: Annotated[SecretStr, Field(exclude=True)] = SecretStr("")
    """A key for Semantic Scholar, if you have one. Without a key, you share a rate limit with all other users without a
    key, and often wait."""
    SOURCES_STAND_IN: str = ""
    """The address of a server on this computer that stands in for all services, for tests: `http://127.0.0.1:8000`."""

    # Limits
    CONTEXT_TOKENS: Annotated[int, Field(ge=256), Limited] = 6000
    """Maximum tokens of evidence in a prompt. The weakest passages are left out first."""
    ANSWER_TOKENS: Annotated[int, Field(ge=64), Limited] = 768
    """Maximum tokens of an answer. Folio always reserves room for them in the model's context."""
    EMBED_BATCH: Count = 32
    """Passages in one embedding request."""
    OLLAMA_TIMEOUT_S: Seconds = 300
    """Seconds of silence before a request to Ollama, or another model server, fails. A cold model takes tens of
    seconds to load."""
    PARSE_TIMEOUT_S: Seconds = 120
    """Seconds of processor time for reading one PDF, and for OCR of one page; by the clock, five times as many."""
    PARSE_MEMORY_MB: Annotated[int, Field(ge=256), Limited] = 2048
    """Megabytes of memory that reading one PDF may take (enforced on Linux)."""
    MAX_FILE_MB: Count = 500
    """A PDF larger than this many megabytes is not opened."""

    @field_validator("PAPERS_DIR", "VECTORSTORE_DIR", "INGESTED_JSON", "CACHE_DIR", "MODELS_DIR")
    @classmethod
    def _at_home(cls, path: Path) -> Path:
        expanded = Path(os.path.expanduser(path))
        if str(expanded).startswith("~"):
            raise ValueError(f"{path} is in a home folder that is not known; give the whole path of a folder")
        return expanded

    @field_validator("OPENALEX_API_KEY", "S2_API_KEY", "OPENAI_API_KEY")
    @classmethod
    def _can_be_sent(cls, key: SecretStr) -> SecretStr:
        bare = key.get_secret_value().strip()
        if not bare.isascii() or not bare.isprintable() or " " in bare:
            raise ValueError("must be the key from the service, unchanged: letters, digits and punctuation")
        return SecretStr(bare)

    @field_validator("PDF_VIEWER")
    @classmethod
    def _opens_a_file(cls, viewer: str) -> str:
        if (word := viewer.strip().casefold()) in ("auto", "none"):
            return word
        if "{file}" not in viewer:
            raise ValueError("must be auto, none or a command containing {file}")
        try:
            shlex.split(viewer, posix=os.name != "nt")
        except ValueError as error:
            raise ValueError(f"is not a valid command: {error}") from error
        return viewer

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.CHUNK_OVERLAP >= self.CHUNK_SIZE:
            raise ValueError("CHUNK_OVERLAP must be smaller than CHUNK_SIZE")
        if self.FINE_SIZE > self.COARSE_SIZE:
            raise ValueError("FINE_SIZE must not be larger than COARSE_SIZE")
        if self.DENSE_WEIGHT + self.BM25_WEIGHT <= 0:
            raise ValueError("DENSE_WEIGHT and BM25_WEIGHT cannot both be 0")
        return self


class SettingsError(Exception):
    """A setting has an invalid value; the message names it."""


def personal_file() -> Path | None:
    """The user's own .env: ~/.config/folio/.env on Linux. It may set all settings. None without a home folder."""
    from platformdirs import user_config_path

    try:
        return user_config_path("folio", appauthor=False) / ".env"
    except RuntimeError:
        return None


Origin = Literal["environment", "file", "checkout", "default"]


def origins_of_settings() -> dict[str, Origin]:
    """Where each setting was set: the environment comes before personal_file(), and that before the checkout's .env.

    A file that cannot be read sets none.
    """
    from dotenv import dotenv_values

    found: dict[str, Origin] = dict.fromkeys(Settings.model_fields, "default")
    files: list[tuple[Path | None, Origin]] = [(CHECKOUT / ".env" if CHECKOUT else None, "checkout")]
    files.append((personal_file(), "file"))
    for file, origin in files:
        with suppress(OSError, UnicodeDecodeError):
            values = dotenv_values(file) if file and os.path.isfile(file) else {}
            found |= {name.upper(): origin for name, value in values.items() if value and name.upper() in found}
    given = [name.upper() for name, value in os.environ.items() if value and name.upper() in found]
    return found | dict.fromkeys(given, "environment")


def changed_settings(settings: Settings, changes: Mapping[str, str | None]) -> Settings:
    """Settings with other values in place of some; None for the default. Raises SettingsError naming an invalid one."""
    kept = {name: getattr(settings, name) for name in settings.model_fields_set if name not in changes}
    given = {name: value for name, value in changes.items() if value is not None}
    try:
        return Settings(_env_file=None, **kept, **given)  # type: ignore[call-arg, arg-type]
    except ValidationError as error:
        raise _settings_error(error) from error


def place_of_settings() -> str:
    """Where a person sets them, in words."""
    file = personal_file()
    return f"the environment or in {file}" if file else "the environment"


def load_settings(notice: Callable[[str], None], chosen: Mapping[str, object] = MappingProxyType({})) -> Settings:
    """The settings from the environment, then personal_file(), then the checkout's .env.

    chosen: settings by name, which come before all of these. notice: gets a line about a .env in the current folder,
    which is not read, and about unknown names. Raises SettingsError naming the first invalid setting, or a file that
    cannot be read or has a setting that it may not have.
    """
    for name in chosen:
        if name not in Settings.model_fields:
            raise SettingsError(f"{name} is not a setting{_suggestion(name.upper())}")
    in_checkout = CHECKOUT / ".env" if CHECKOUT else None
    personal = personal_file()
    files = [file for file in (in_checkout, personal) if file and os.path.isfile(file)]  # the last one wins
    for file in files:
        _check_file(file, () if file != in_checkout else PERSONAL, notice)
    _report_mistyped(notice)
    if os.path.isfile(".env") and not any(os.path.samefile(".env", file) for file in files):
        place = personal or "the environment"
        notice(f"The file .env in the current folder is not read. Your settings go into {place}.")
    try:
        return Settings(_env_file=files, **chosen)  # type: ignore[call-arg, arg-type]
    except ValidationError as error:
        raise _settings_error(error) from error


def _settings_error(error: ValidationError) -> SettingsError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    is_of_form = first["type"] != "string_pattern_mismatch"
    happened = first["msg"].removeprefix("Value error, ") if is_of_form else f"it cannot be {first['input']!r}"
    return SettingsError(f"{name}: {happened}")


def _check_file(file: Path, refused: tuple[str, ...], notice: Callable[[str], None]) -> None:
    """Raise SettingsError if a .env cannot be read or has a refused setting; notice its unknown names."""
    from dotenv import dotenv_values

    try:
        names = {name.upper() for name in dotenv_values(file)}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
    for name in refused:
        if name in names:
            raise SettingsError(f"{name}: {file} must not set it")
    if unknown := [name + _suggestion(name) for name in sorted(names - set(Settings.model_fields))]:
        notice(f"Not a setting in {file}: {', '.join(unknown)}. docs/settings.md lists them.")


def _report_mistyped(notice: Callable[[str], None]) -> None:
    """Notice environment variables with names very close to a setting, which those of other programs rarely have."""
    names = {name.upper() for name, value in os.environ.items() if value}
    for name in sorted(names - set(Settings.model_fields)):
        meant = _closest(name)
        if meant and meant not in names:
            notice(f"{name} in the environment is not a setting{_suggestion(name)}.")


def _suggestion(name: str) -> str:
    meant = _closest(name)
    return f" (did you mean {meant}?)" if meant else ""


@cache
def _closest(name: str) -> str:
    """The setting that a name in capitals probably means; "" if none is close."""
    bare = name.removeprefix("FOLIO_")
    if bare in Settings.model_fields:
        return bare
    # A short name is close to too many settings, such as OS to OCR. UV_CACHE_DIR, of another program, has 0.857.
    if len(name) < _SHORTEST or name in _OF_OTHERS:
        return ""
    return next(iter(get_close_matches(name, Settings.model_fields, n=1, cutoff=_CLOSE)), "")
