"""Every error that a user can meet. Each says what happened and what to do about it.

FolioError                 exit code 1
├── UsageError             2   a command or a setting is wrong
│   ├── NotKnown           2   no such paper, page or conversation
│   └── NetworkOff         2   needs services on the internet, which this server may not call
├── StoreError             1   the library or its indexes
│   ├── StoreMissing           nothing has been ingested yet
│   ├── StoreMismatch          made with another embedder, other chunk sizes, another version
│   ├── StoreBusy          2   another process is writing
│   ├── StoreAway              the server of a shared library cannot be reached now: a retry may succeed
│   │   └── StoreCut           the connection was lost while something was read or written; nothing was changed
│   ├── StoreProtected         it may not be written, or not even be read, by this user
│   ├── StoreDamaged           the library itself cannot be read
│   │   └── UserFileDamaged    what people made cannot be read: a repair, not a rebuild, brings it back
│   ├── StoreRefused           the library cannot hold a value; nothing was changed
│   ├── IndexDamaged           a derived index cannot be read; users see this only if rebuilding it fails
│   └── DiskFull               no space left
├── ClusterError           1   Ray cannot be started or reached, or its workers ended
├── SourceError            1   a service on the internet cannot be reached, refused, or sent something unreadable
├── PaperError             1   one file could not be read; the others are not affected
│   └── PaperLimit             over a limit: a retry with other settings or programs may succeed
│       └── PaperBusy          the computer or another program got in the way: a retry may succeed
├── PackagesMissing        1   this part of Folio needs packages that are not installed
└── ModelError             1   a model cannot be used
    ├── ModelServerError            the server is down, too slow, refused the request or sent something unreadable
    │   ├── EmbedderAway       the embedder of an index cannot be used now: searches go on by words alone
    │   ├── NoVector           the model has no vector for this text, whenever it is asked
    │   └── ModelFailed        the server could not run the model to the end: a retry may succeed
    │       └── ThoughtAlone   the reply has only a thought and no answer
    ├── ModelMissing           the server, or this computer, does not have the model
    ├── WrongModel             an embedding model used for chat, or a chat model used for embedding
    ├── CloudModel             the model would run on someone else's computer
    └── ContextTooSmall        the prompt does not fit into the model
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_IN_CHECKOUT = Path(__file__).resolve().parents[1].joinpath("ingest.py").is_file()
# A checkout's packages need not be installed, so it may have no command `folio`, but it has these scripts.
_BY_SCRIPTS = _IN_CHECKOUT and Path(sys.argv[0]).stem != "folio"
_SCRIPTS = {
    "ask": "query.py",
    "doctor": "query.py --doctor",
    "evaluate": "evaluate.py",
    "fetch": "fetch.py",
    "ingest": "ingest.py",
    "serve": "serve.py",
}


def command(line: str, *, by_scripts: bool = _BY_SCRIPTS) -> str:
    """A `folio` command, as a user types it here.

    >>> command("ingest --rebuild", by_scripts=False), command("ingest --rebuild", by_scripts=True)
    ('folio ingest --rebuild', 'python ingest.py --rebuild')
    """
    name, space, arguments = line.partition(" ")
    if not by_scripts:
        return f"folio {line}"
    return f"python {_SCRIPTS[name]}{space}{arguments}" if name in _SCRIPTS else f"python -m folio {line}"


# The remedy where there is no index yet, without a full stop
FIRST_INGEST = (
    f"Put PDFs into papers/ and run `{command('ingest')}`"
    if _BY_SCRIPTS
    else f"Put PDFs into a folder and run `{command('ingest FOLDER')}`"
)


def fetch_command(model: str, *, in_checkout: bool = _IN_CHECKOUT) -> str:
    """The command that downloads a model from the Hugging Face hub. An installed Folio has no Makefile."""
    return "make models" if in_checkout else f"hf download {model}"


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra of pyproject.toml."""
    if not _IN_CHECKOUT:
        return f"pip install 'folio-papers[{extra}]'"
    if extra == "cross-encoders":
        return "make models"
    return "pip install -r requirements.txt" if extra == "torch" else f"pip install -r requirements/{extra}.txt"


def require_packages(extra: str, what: str, *names: str) -> None:
    """Raise PackagesMissing unless the packages of these names are installed. what: the feature that needs them."""
    if missing := [name for name in names if find_spec(name) is None]:
        raise PackagesMissing(
            f"{what} needs packages that are not installed: {', '.join(missing)}.",
            f"Run `{install_command(extra)}`.",
        )


def require(holds: bool, rule: str) -> None:
    """Raise ValueError for a value that breaks a contract: a bug, never a user's mistake."""
    if not holds:
        raise ValueError(f"Broken contract: {rule}.")


class FolioError(Exception):
    """An error with one sentence on what happened and one on what to do."""

    exit_code = 1

    def __init__(self, happened: str, remedy: str) -> None:
        super().__init__(happened)
        self.happened = happened
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[FolioError], tuple[str, str]]:
        # Errors cross from the parsing workers to the main process.
        return type(self), (self.happened, self.remedy)


class UsageError(FolioError):
    exit_code = 2


class NotKnown(UsageError):
    pass


class ChangedElsewhere(UsageError):
    """Somebody else has changed what was to be changed."""


class NameTaken(UsageError):
    """Something of the kind has that name already, or there are as many as there may be."""


class NetworkOff(UsageError):
    pass


class StoreError(FolioError):
    pass


class StoreMissing(StoreError):
    pass


class StoreMismatch(StoreError):
    pass


class StoreRefused(StoreError):
    pass


class StoreBusy(StoreError):
    exit_code = 2


class StoreAway(StoreError):
    pass


class StoreCut(StoreAway):
    pass


class StoreProtected(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class UserFileDamaged(StoreDamaged):
    pass


class IndexDamaged(StoreError):
    def __init__(self, happened: str) -> None:
        super().__init__(happened, f"Run `{command('ingest --repair')}`.")


class DiskFull(StoreError):
    pass


class ClusterError(FolioError):
    pass


class SourceError(FolioError):
    pass


class PaperError(FolioError):
    pass


class PaperLimit(PaperError):
    pass


class PaperBusy(PaperLimit):
    pass


class SlowDrawing(PaperLimit):
    """Reading was stopped while a page was drawn to search it for hidden text."""


class PackagesMissing(FolioError):
    pass


class ModelError(FolioError):
    pass


class ModelServerError(ModelError):
    pass


class EmbedderAway(ModelServerError):
    pass


class NoVector(ModelServerError):
    pass


class ModelFailed(ModelServerError):
    pass


class ThoughtAlone(ModelFailed):
    pass


class ModelMissing(ModelError):
    pass


class WrongModel(ModelError):
    pass


class CloudModel(ModelError):
    pass


class ContextTooSmall(ModelError):
    pass
