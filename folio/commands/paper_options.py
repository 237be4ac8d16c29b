"""The options that choose papers, which mean the same in every command: `--author ongaro --year 2010-`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from folio.search.paper_filter import PaperFilter

# Each may be given several times, and then one must fit
FILTERS = ("paper", "year", "author", "venue", "section", "collection", "tag", "cited_by")


def add_paper_options(parser: argparse.ArgumentParser, does: str) -> None:
    """does: what the command does with the papers that fit: "ask"."""
    for name, metavar, text in (
        ("paper", "NAME", "the paper of this name, or papers whose file name or title has these words"),
        ("year", "YEARS", "papers of these years: 2014, 2010-2015, 2020-, -1999"),
        ("author", "NAME", "papers by this author: a family name, or a full name"),
        ("venue", "WORDS", "papers of this journal or conference"),
        ("section", "WORDS", "sections of this kind, such as methods, or with these words in their title"),
        ("collection", "NAME", "papers in this collection, as Zotero or a bibliography has it, or in one below it"),
        ("tag", "NAME", "papers with this tag"),
        ("cited_by", "NAME", "papers that the paper of this name cites, as `folio fetch --expand cites` found"),
    ):
        if name == "section" and does == "list":
            text = "papers with a section of this kind, such as methods, or with these words in its title"
        parser.add_argument(f"--{name.replace('_', '-')}", action="append", metavar=metavar, help=f"{does} only {text}")


def paper_filter(arguments: argparse.Namespace, *, warnings: bool = False, unsure: bool = False) -> PaperFilter:
    """What these options say. warnings, unsure: only papers with something odd, or not sure. Raises UsageError."""
    from folio.search.paper_filter import PaperFilter

    given = (getattr(arguments, name) or () for name in FILTERS)
    return PaperFilter.parse(*given, warnings=warnings or None, unsure=unsure or None)
