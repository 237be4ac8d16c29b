"""`folio doctor`: what is ready and what is not; `query.py --doctor` in a checkout."""

from __future__ import annotations

from collections.abc import Sequence

from folio.cli.command import run_command
from folio.cli.parser import Parser


def main(argv: Sequence[str] | None = None, prog: str = "folio doctor") -> int:
    Parser(
        prog=prog,
        description="Show what is ready, what is not, and how to fix it.",
        epilog="The exit code is 1 if something required is not ready.",
    ).parse_args(argv)
    from folio.cli.doctor import show_doctor

    return run_command(show_doctor)
