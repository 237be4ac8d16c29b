"""The parser of all commands: argparse's, which also names the option or word that was probably meant."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

_CHOICE = re.compile(r"invalid choice: (?P<given>'[^']*'|\"[^\"]*\") \(choose from (?P<choices>.*)\)")

BY = ("author", "year", "venue", "section", "warning")  # paper_lists.BY, which --help need not import


class Parser(argparse.ArgumentParser):
    """Python 3.14's `suggest_on_error` does this for choices alone, and older versions for nothing."""

    _words: Sequence[str] | None = None  # what it is given; None for a subcommand that was not named

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        self._words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage and this message, and exit with 2."""
        super().error(message + self._meant(message))

    def _meant(self, message: str) -> str:
        if message.startswith(("unrecognized arguments", "the following arguments are required")):
            known = [name for name in self._option_names() if name.startswith("--")]
            options = [word.partition("=")[0] for word in self._words or () if word.startswith("--")]
            return _suggestion([word for word in options if not any(name.startswith(word) for name in known)], known)
        if found := _CHOICE.search(message):
            return _suggestion([found["given"][1:-1]], [word.strip(" '\"") for word in found["choices"].split(",")])
        return ""

    def _option_names(self) -> list[str]:
        """The options of this parser, and of the subcommand that was named."""
        names = list(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    names += parser._option_names() if parser._words is not None else []
        return names


def _suggestion(given: Sequence[str], known: Sequence[str]) -> str:
    """ " (did you mean --verify?)" for the words among these that are close to a known one."""
    from difflib import get_close_matches  # only where something is wrong

    near = dict.fromkeys(
        match
        for word in given
        for match in get_close_matches(word, known, n=1, cutoff=0.7 if word.startswith("-") else 0.6)
    )
    return f" (did you mean {', '.join(near)}?)" if near else ""
