"""How a script runs: the app from the settings, errors as two lines and an exit code, output in UTF-8."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from folio.console import complain, say
from folio.errors import FolioError

if TYPE_CHECKING:
    from folio.app import App


def positive_int(text: str) -> int:
    """An option's whole number from 1, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("a whole number from 1")
    return int(text)


def command(run: Callable[[App], int]) -> int:
    """Run a script's work with the settings as they are; errors become two lines and an exit code."""
    # The ollama package makes a client when it is imported, with the environment's proxies, and fails where one is
    # SOCKS. Folio itself uses none; a program that has its own use for them calls folio.app.connect, and keeps them.
    os.environ.update(NO_PROXY="*", no_proxy="*")
    try:
        from folio.app import from_environment

        _write_utf8()
        return run(from_environment(say))
    except FolioError as error:
        return complain(error.happened, error.remedy, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has gone
        sys.stderr.close()
        return 1
    except OSError as error:
        from folio.files import unusable

        told = unusable(error)
        return complain(told.happened, told.remedy, told.exit_code)


def _write_utf8() -> None:
    """Papers hold letters that a pipe's or a terminal's own encoding may lack: a pipe gets UTF-8, a terminal a "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")
