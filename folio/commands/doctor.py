"""`folio doctor`: what is ready and what is not; `query.py --doctor` in a checkout."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None, prog: str = "folio doctor") -> int:
    argparse.ArgumentParser(
        prog=prog,
        description="Show what is ready, what is not, and how to fix it.",
        epilog="The exit code is 1 if something required is not ready.",
    ).parse_args(argv)
    from folio.cli.command import command
    from folio.cli.doctor import show_doctor

    return command(show_doctor)
