"""What every command shares: a parser with suggestions, the options that choose papers, and how a command runs.

A command gets the app made from the settings, writes UTF-8, and ends an error with two lines and an exit code.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from folio.console import complain, say
from folio.errors import FolioError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from folio.app import App
    from folio.search.filters import PaperFilter


def up_to(most: int) -> Callable[[str], int]:
    """A parser for argparse of a whole number from 1 to `most`."""

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
    _open_closed_streams()
    # The ollama package creates a client at import, with the proxies of the environment, and fails for a SOCKS proxy.
    # Folio uses no proxy. A program that needs its proxies calls folio.app.connect, which leaves them alone.
    os.environ.update(NO_PROXY="*", no_proxy="*")
    os.umask(0o077)  # only this user may read what a command writes
    _end_on_sigterm()
    try:
        from folio.app import from_environment
        from folio.store import user_file

        _write_utf8()
        try:
            return run(from_environment(say))
        finally:
            user_file.copy_changed()
    except FolioError as error:
        return complain(error.happened, error.remedy, error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # a reader such as head has closed the pipe
        sys.stderr.close()
        return 1
    except OSError as error:
        from folio.system.files import unusable

        shown = unusable(error)
        return complain(shown.happened, shown.remedy, shown.exit_code)


def _open_closed_streams() -> None:
    """Put the null device where a stream was closed, as with `2>&-`.

    Otherwise the next file that is opened would get its number, and what a library prints would go into that file.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _end_on_sigterm() -> None:
    """Let SIGTERM, the system's way to stop a program, end the command in order: no process or lock stays behind."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)


def run_subcommand(parser: argparse.ArgumentParser, argv: Sequence[str] | None, *, default: str) -> int:
    """Run a subcommand, `default` if none is named; returns its exit code.

    The parser of each subcommand sets `run`, which takes the app and the arguments. argv: default: sys.argv.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, default)
    arguments = parser.parse_args(words)
    return run_command(lambda app: arguments.run(app, arguments))


def _write_utf8() -> None:
    """The locale's encoding may lack letters of the papers: a pipe gets UTF-8, a terminal "?" for each of them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def write_json(value: BaseModel) -> None:
    """Print a model as one line of JSON."""
    from folio.schema.answers import line

    sys.stdout.write(f"{line(value)}\n")
    sys.stdout.flush()


def write_or_print(file: Path | None, content: bytes, written: str) -> int:
    """Write a document into a file and say so, or print it if no file was named; returns the exit code.

    content: UTF-8, if no file was named. written: begins what is said: "12 papers written to". Raises DiskFull.
    """
    from folio.shown_text import plain_line
    from folio.system.files import write_output

    if file is None:
        sys.stdout.write(content.decode())
        return 0
    write_output(file, content)
    say(f"{written} {plain_line(str(file))}.")
    return 0


def format_of(file: Path | None, wanted: str | None, formats: Sequence[str], usual: str, example: str) -> str:
    """The format that was asked for, or that of the file's ending, or the usual one.

    example: a name for a Word document. Raises UsageError for a Word document without a file.
    """
    ending = "" if file is None else file.suffix.removeprefix(".").lower()
    format = wanted or (ending if ending in formats else usual)
    if format == "docx" and file is None:
        raise UsageError("A Word document is no text to print.", f"Name a FILE, such as {example}.")
    return format


# Options that choose papers, the same in every command. One given several times fits papers that match any value.
FILTERS = ("paper", "year", "author", "venue", "section", "collection", "tag", "cited_by", "category", "project")


def add_paper_options(parser: argparse.ArgumentParser, does: str, but: Sequence[str] = ()) -> None:
    """does: what the command does with the papers that fit, such as "ask". but: options that it does not have."""
    for name, metavar, text in (
        ("paper", "NAME", "the paper with this name, or papers whose file name or title has these words"),
        ("year", "YEARS", "papers of these years: 2014, 2010-2015, 2020-, -1999"),
        ("author", "NAME", "papers by this author: a family name, or a full name"),
        ("venue", "WORDS", "papers from this journal or conference"),
        ("section", "WORDS", "sections of this kind, such as methods, or with these words in their title"),
        ("collection", "NAME", "papers in this collection of Zotero or a bibliography, or in one below it"),
        ("tag", "NAME", "papers with this tag"),
        ("cited_by", "NAME", "papers that the paper with this name cites, as `folio fetch --expand cites` found"),
        ("category", "NAME", "papers of this arXiv category, cs.CL, or archive, cs"),
        ("project", "NAME", "papers of this project, or collection: `folio projects` lists them"),
    ):
        if name in but:
            continue
        if name == "section" and does == "list":
            text = "papers with a section of this kind, such as methods, or with these words in its title"
        only = "" if but else " only"
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, action="append", metavar=metavar, help=f"{does}{only} {text}")


def paper_filter(arguments: argparse.Namespace, *, warnings: bool = False, unsure: bool = False) -> PaperFilter:
    """The filter that these options describe. warnings: only papers that have warnings; unsure: only papers with a
    field that is not sure. Raises UsageError."""
    from folio.search.filters import PaperFilter

    values = (getattr(arguments, name) or () for name in FILTERS)
    return PaperFilter.parse(*values, warnings=warnings or None, unsure=unsure or None)


_CHOICE = re.compile(r"invalid choice: (?P<given>'[^']*'|\"[^\"]*\") \(choose from (?P<choices>.*)\)")

BY = ("author", "year", "venue", "category", "section", "warning")  # as papers.lists.By, which --help need not import


class Parser(argparse.ArgumentParser):
    """argparse's parser, whose errors also suggest the option or word that was probably meant.

    Python 3.14's `suggest_on_error` does so for choices only, and older versions not at all.
    """

    _words: Sequence[str] | None = None  # the words to parse; None for a subcommand that was not named

    def add_commands(self, *commands: tuple[str, str, Callable[[Parser], None], Callable[[App, Any], int]]) -> None:
        """Add subcommands for run_subcommand: the name of each, what it does, what adds its arguments, what runs it."""
        subparsers = self.add_subparsers(title="commands", metavar="COMMAND")
        for name, purpose, add_arguments, run in commands:
            subparser = subparsers.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
            add_arguments(subparser)
            subparser.set_defaults(run=run)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage and this message, and exit with 2."""
        super().error(message + self._suggest(message))

    def _suggest(self, message: str) -> str:
        if message.startswith(("unrecognized arguments", "the following arguments are required")):
            known = [name for name in self._option_names() if name.startswith("--")]
            options = [word.partition("=")[0] for word in self._words or () if word.startswith("--")]
            return _suggestion([word for word in options if not any(name.startswith(word) for name in known)], known)
        if match := _CHOICE.search(message):
            return _suggestion([match["given"][1:-1]], [word.strip(" '\"") for word in match["choices"].split(",")])
        return ""

    def _option_names(self) -> list[str]:
        """The options of this parser and of the subcommand that was named."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    names += parser._option_names() if parser._words is not None else []
        return names


def _suggestion(given: Sequence[str], known: Sequence[str]) -> str:
    """ " (did you mean --verify?)" for the given words that are close to a known one; else ""."""
    from difflib import get_close_matches  # imported only after an error

    near = dict.fromkeys(
        match
        for word in given
        for match in get_close_matches(word, known, n=1, cutoff=0.7 if word.startswith("-") else 0.6)
    )
    return f" (did you mean {', '.join(near)}?)" if near else ""
