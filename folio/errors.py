"""Every error that a user can meet. Each says what happened and what to do about it.

FolioError                 exit code 1
├── UsageError             2   the command or a setting cannot be carried out as given
│   ├── NotKnown           2   there is no such paper, page or conversation
│   └── NetworkOff         2   it would ask services on the internet, which this server may not do
├── StoreError             1   the library or its indexes
│   ├── StoreMissing           nothing has been ingested yet
│   ├── StoreMismatch          made with another embedder, other chunk sizes, another version
│   ├── StoreBusy          2   another process is writing
│   ├── StoreDamaged           the library itself cannot be read
│   ├── StoreRefused           the library cannot hold a value; what was there before is untouched
│   ├── IndexDamaged           a derived index cannot be read; the store rebuilds it, so users see it only if that fails
│   └── DiskFull               no space left
├── ClusterError           1   Ray cannot be started or reached, or its workers end
├── SourceError            1   a service on the internet cannot be reached, refused, or sent something unreadable
├── PaperError             1   one file could not be read; the others are not affected
│   └── PaperLimit             a limit stopped it: a retry may succeed with other settings or programs
│       └── PaperBusy          the computer stopped it, or another program: a retry may succeed
├── PackagesMissing        1   this part of Folio needs packages that are not installed
└── ModelError             1   a model cannot be used
    ├── OllamaError            the server is down, too slow, refused the request or sent something unreadable
    │   └── ModelFailed        the server answers, but could not run the model to the end: a retry may succeed
    ├── ModelMissing           the server, or this computer, does not have the model
    ├── WrongModel             an embedding model that is to chat, or a chat model that is to embed
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
    """A command of `folio` as it is typed where this program runs.

    >>> command("ingest --rebuild", by_scripts=False), command("ingest --rebuild", by_scripts=True)
    ('folio ingest --rebuild', 'python ingest.py --rebuild')
    """
    name, space, arguments = line.partition(" ")
    if not by_scripts:
        return f"folio {line}"
    return f"python {_SCRIPTS[name]}{space}{arguments}" if name in _SCRIPTS else f"python -m folio {line}"


# What to do where there is no index yet; without its full stop
FIRST_INGEST = (
    f"Put PDFs into papers/ and run `{command('ingest')}`"
    if _BY_SCRIPTS
    else f"Put PDFs into a folder and run `{command('ingest FOLDER')}`"
)


def fetch_command(model: str, *, in_checkout: bool = _IN_CHECKOUT) -> str:
    """The command that downloads a model from the Hugging Face hub: an installed Folio has no Makefile."""
    return "make models" if in_checkout else f"hf download {model}"


def install_command(extra: str, *, in_checkout: bool = _IN_CHECKOUT) -> str:
    """The command that installs what a part of Folio needs. extra: its name in pyproject.toml."""
    if not in_checkout:
        return f"pip install 'folio-papers[{extra}]'"
    if extra == "cross-encoders":
        return "make models"
    return "pip install -r requirements.txt" if extra == "torch" else f"pip install -r requirements/{extra}.txt"


def require_packages(extra: str, what: str, *names: str) -> None:
    """Raise PackagesMissing unless these packages are installed. extra: see install_command. what: needs them."""
    if missing := [name for name in names if find_spec(name) is None]:
        raise PackagesMissing(
            f"{what} needs packages that are not installed: {', '.join(missing)}.",
            f"Run `{install_command(extra)}`.",
        )


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


class StoreDamaged(StoreError):
    pass


class IndexDamaged(StoreError):
    def __init__(self, happened: str, remedy: str = f"Run `{command('ingest --repair')}`.") -> None:
        super().__init__(happened, remedy)


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


class PackagesMissing(FolioError):
    pass


class ModelError(FolioError):
    pass


class OllamaError(ModelError):
    pass


class ModelFailed(OllamaError):
    pass


class ThoughtAlone(ModelFailed):
    """A reply was cut in its thought, and has no answer."""


class ModelMissing(ModelError):
    pass


class WrongModel(ModelError):
    pass


class CloudModel(ModelError):
    pass


class ContextTooSmall(ModelError):
    pass
