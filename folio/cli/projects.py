"""`folio projects`: makes projects of papers, rules, conversations and notes, lists, shows and changes them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from folio.cli.command import FILTERS, Parser, add_paper_options, run_subcommand, write_json
from folio.console import output
from folio.errors import UsageError, command
from folio.shown_text import counted, name_line, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.search.filters import ProjectPapers, Shelf
    from folio.store.library import Library
    from folio.store.projects import Member

_RULE = tuple(name for name in FILTERS if name not in ("paper", "project"))
_PARTS = ("conversation", "note", "table")
_PUT_IN = "put in"


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Keep papers, conversations, notes and tables together. `folio ask --project NAME` asks the papers"
        " of a project. The collections of Zotero and of bibliographies are projects, too, which are changed there.",
        epilog="Without COMMAND, the projects are listed. Name a PAPER by its key, its file, words of its title, the"
        " name of what it introduces, or the beginning of its id.",
    )
    parser.add_commands(
        ("list", "list projects and collections", _add_list, _list),
        ("show", "show what a project has", _add_show, _show),
        ("new", "make a project", _add_new, _new),
        ("add", "add papers and other parts to a project", _add_add, _add),
        ("remove", "take papers and other parts out of a project", _add_remove, _remove),
        ("rename", "rename a project", _add_rename, _rename),
        ("delete", "delete a project, and nothing that is in it", _add_delete, _delete),
    )
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "folio projects") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    return run_subcommand(parser(prog), argv, default="list")


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the project's name")


def _add_json(parser: argparse.ArgumentParser, text: str = "print only JSON") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _add_parts(parser: argparse.ArgumentParser, does: str) -> None:
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"{does} this paper")
    if does == _PUT_IN:
        add_paper_options(parser, "a rule:", but=("paper", "project"))
    else:  # the help of `new` says it
        for name in _RULE:
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, action="append", metavar="VALUE", help="of a rule: see new")
    for kind in _PARTS:
        parser.add_argument(f"--{kind}", action="append", default=[], metavar="ID", help=f"{does} this {kind}")


def _members(library: Library, arguments: argparse.Namespace) -> list[Member]:
    """The parts that the arguments name. All filters together are one rule. Raises NotKnown, UsageError."""
    from folio.search.filters import rule_filter
    from folio.search.names import paper_in
    from folio.store.projects import Member, rule_item

    papers = [paper_in(library, name) for name in arguments.papers]
    rule = {name: getattr(arguments, name) for name in _RULE if getattr(arguments, name)}
    rule_filter({name: tuple(values) for name, values in rule.items()})
    return [
        *(Member("paper", paper.id, paper.title or paper.file) for paper in papers),
        *([Member("rule", rule_item(rule))] if rule else []),
        *(Member("conversation", id) for id in arguments.conversation),
        *(Member("note", id) for id in arguments.note),
        *(Member("table", id) for id in arguments.table),
    ]


def _found(library: Library, name: str) -> tuple[Shelf, ProjectPapers]:
    """The project with this name. Raises NotKnown."""
    from folio.search.filters import Shelf

    with library.reading():
        shelf = Shelf(library)
        return shelf, shelf.projects([name])[0]


def _own(library: Library, name: str) -> tuple[Shelf, ProjectPapers]:
    """The same. Raises UsageError for a collection."""
    from folio.search.filters import require_own

    shelf, found = _found(library, name)
    require_own(found)
    return shelf, found


def _add_list(parser: argparse.ArgumentParser) -> None:
    _add_json(parser, "print only JSON, one object per line")


def _list(app: App, arguments: argparse.Namespace) -> int:
    from folio.schema.projects import project_summary
    from folio.search.filters import Shelf

    with closing(app.open_library()) as library, library.reading():
        found = Shelf(library).every_project()
    for each in found:
        if arguments.json:
            write_json(project_summary(each))
        else:
            origin = "" if each.own else ", a collection"
            _print(f"{name_line(each.name)} ({counted(len(each.papers), 'paper')}{origin})")
    if not arguments.json and not found:
        _print(f"There is no project yet. `{command('projects new NAME PAPER ...')}` makes one.")
    return 0


def _print(text: str) -> None:
    output().print(text, markup=False, highlight=False)


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    _add_json(parser)


def _show(app: App, arguments: argparse.Namespace) -> int:
    from folio.schema.projects import project_details
    from folio.schema.web import ConversationSummary
    from folio.search.filters import notes_of
    from folio.store.note_places import NoteFilter, listed

    with closing(app.open_library()) as library, closing(app.conversations()) as conversations:
        shelf, found = _found(library, arguments.name)
        noted = listed(library, NoteFilter(among=notes_of(found)))
        ids = found.own.items("conversation") if found.own else []
        kept = [each for each in conversations.summaries() if each.id in ids]
    if arguments.json:
        summaries = [ConversationSummary.model_validate(each) for each in kept]
        write_json(project_details(found, shelf.papers, summaries, len(noted)))
        return 0
    _print(f"{name_line(found.name)}: {counted(len(found.papers), 'paper')}, {counted(len(noted), 'note')}.")
    if found.own:
        _show_own(found)
    for paper in shelf.papers:
        if paper.id in found.papers:
            _print(f"  {name_line(paper.file)}  {name_line(paper.title)}")
    for each in kept:
        _print(f"Conversation {each.id}: {name_line(each.title)}")
    return 0


def _show_own(found: ProjectPapers) -> None:
    """Print what a person said about a project, its rules, and papers that it has no more."""
    from folio.search.filters import rule_filter
    from folio.search.scope import in_words

    project = found.own
    assert project is not None
    if project.about:
        _print(plain_line(project.about))
    for rule in project.rules:
        _print(f"Rule: papers {in_words(rule_filter(rule))}.")
    for each in project.members:
        if each.kind == "paper" and each.item not in found.by_hand:
            _print(f"  Not in the library now: {name_line(each.title or each.item[:12])}")
    if tables := project.items("table"):
        _print(f"Tables: {', '.join(map(name_line, tables))}")


def _add_new(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("--about", default="", metavar="WORDS", help="what it is for")
    parser.add_argument("--copy", metavar="NAME", help="begin with what this project or collection has")
    _add_parts(parser, _PUT_IN)
    _add_json(parser)


def _new(app: App, arguments: argparse.Namespace) -> int:
    from folio.search.filters import copied_members
    from folio.store import projects

    with closing(app.open_library()) as library:
        copied = copied_members(_found(library, arguments.copy)[1]) if arguments.copy else []
        members = [*copied, *_members(library, arguments)]
        made = projects.add(library.database, arguments.name, arguments.about, members)
        return _say(library, made.id, "Made", as_json=arguments.json)


def _say(library: Library, id: str, what: str, *, as_json: bool) -> int:
    """Print a project after a change."""
    from folio.schema.projects import project_summary

    _, found = _found(library, id)
    if as_json:
        write_json(project_summary(found))
    else:
        _print(f"{what}: {name_line(found.name)} ({counted(len(found.papers), 'paper')}).")
    return 0


def _add_add(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    _add_parts(parser, "add")
    _add_json(parser)


def _add(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import projects

    with closing(app.open_library()) as library:
        _, found = _own(library, arguments.name)
        members = _require_some(_members(library, arguments))
        projects.change_members(library.database, found.id, added=members)
        return _say(library, found.id, "Changed", as_json=arguments.json)


def _require_some(members: list[Member]) -> list[Member]:
    """Raises UsageError."""
    if not members:
        raise UsageError("Nothing is named.", "Name papers, or give a filter, such as --tag, as a rule.")
    return members


def _add_remove(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    _add_parts(parser, "take out")
    _add_json(parser)


def _remove(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import projects

    with closing(app.open_library()) as library:
        shelf, found = _own(library, arguments.name)
        members = _require_some(_members(library, arguments))
        kept_out = shelf.kept_out(found, members)
        projects.change_members(library.database, found.id, added=kept_out, removed=members)
        return _say(library, found.id, "Changed", as_json=arguments.json)


def _add_rename(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    parser.add_argument("new_name", metavar="NEW", help="its new name")


def _rename(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import projects

    with closing(app.open_library()) as library:
        _, found = _own(library, arguments.name)
        projects.change(library.database, found.id, name=arguments.new_name)
        return _say(library, found.id, "Renamed", as_json=False)


def _add_delete(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)


def _delete(app: App, arguments: argparse.Namespace) -> int:
    from folio.store import projects

    with closing(app.open_library()) as library:
        _, found = _own(library, arguments.name)
        projects.remove(library.database, found.id)
    _print(f"Deleted: {name_line(found.name)}. What was in it stays.")
    return 0
