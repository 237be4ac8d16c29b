"""How a command runs: the app made from the settings, errors as two lines and an exit code, output in UTF-8."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from folio.console import complain, say
from folio.errors import FolioError

if TYPE_CHECKING:
    from folio.app import App


def up_to(most: int) -> Callable[[str], int]:
    """What parses an option as a whole number from 1 to `most`, for argparse."""

    def parse(text: str) -> int:
        digits = text.strip().lstrip("0")
        if not text.isdecimal() or not digits:
            raise argparse.ArgumentTypeError("must be a whole number, 1 or more")
        if len(digits) > len(str(most)) or int(digits) > most:
            raise argparse.ArgumentTypeError(f"must be at most {most:,}")
        return int(digits)

    return parse


positive_int = up_to(10**9)


def run_command(run: Callable[[App], int]) -> int:
    """Run a command with the current settings; errors become two lines and an exit code."""
    # The ollama package creates a client at import, with the proxies of the environment, and fails for a SOCKS proxy.
    # Folio uses no proxy. A program that needs its proxies calls folio.app.connect, which leaves them alone.
    os.environ.update(NO_PROXY="*", no_proxy="*")
    os.umask(0o077)  # whatever a command writes is for this user alone
    _end_on_sigterm()
    try:
        from folio.app import from_environment

        _write_utf8()
        return run(from_environment(say))
    except FolioError as error:
        return complain(error.happened, error.remedy, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has closed it
        sys.stderr.close()
        return 1
    except OSError as error:
        from folio.files import unusable

        shown = unusable(error)
        return complain(shown.happened, shown.remedy, shown.exit_code)


def _end_on_sigterm() -> None:
    """SIGTERM, the system's way to stop a program, ends this one in order: processes and locks do not stay behind."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def run_subcommand(parser: argparse.ArgumentParser, argv: Sequence[str] | None, *, default: str) -> int:
    """Run one of a command's own commands, `default` if none is named; returns its exit code.

    The parser of each sets `run`, which takes the app and the arguments. argv: None takes the program's.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, default)
    arguments = parser.parse_args(words)
    return run_command(lambda app: arguments.run(app, arguments))


def _write_utf8() -> None:
    """Papers have letters that the locale's encoding may lack: a pipe gets UTF-8, a terminal a "?" in their place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")
