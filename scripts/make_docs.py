"""Write the generated parts of docs/ and LOG.md again: `make docs`.

A generated part is between two comments, `<!-- generated: NAME -->` and `<!-- end -->`. It comes from the import
contracts in pyproject.toml, config.py, the commands' parsers and the headings of LOG.md.
tests/test_docs.py fails while a page is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pydantic import SecretStr

from config import Settings
from folio.cli import (
    ask,
    check,
    cite,
    evaluate,
    export,
    fetch,
    ingest,
    instructions,
    log,
    mcp,
    notes,
    papers,
    review,
    serve,
)
from folio.deep.graph import drawn

ROOT = Path(__file__).resolve().parent.parent

PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "ingest": partial(ingest.parser, "ingest.py"),
    "query": partial(ask.parser, "query.py"),
    "fetch": partial(fetch.parser, "fetch.py"),
    "papers": partial(papers.parser, "folio papers"),
    "instructions": partial(instructions.parser, "folio instructions"),
    "notes": partial(notes.parser, "folio notes"),
    "check": partial(check.parser, "folio check"),
    "cite": partial(cite.parser, "folio cite"),
    "export": partial(export.parser, "folio export"),
    "review": partial(review.parser, "folio review"),
    "log": partial(log.parser, "folio log"),
    "serve": partial(serve.parser, "serve.py"),
    "mcp": partial(mcp.parser, "folio mcp"),
    "evaluate": partial(evaluate.parser, "evaluate.py"),
}


# docs/architecture.md


def imports() -> str:
    """Who may import whom, and the libraries that a single module may import, from the contracts in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = [re.split(" [|:] ", layer) for contract in contracts for layer in contract.get("layers", ())]
    forbidden: dict[str, set[str]] = {}
    alone = []
    for contract in contracts:
        for source in contract.get("source_modules", ()):
            names = {name.removeprefix("folio.") for name in contract["forbidden_modules"]}
            forbidden.setdefault(source.removeprefix("folio."), set()).update(names)
        for exception in contract.get("ignore_imports", ()):
            module, _, library = exception.partition(" -> ")
            file = f"{module.replace('.', '/')}.py" if "." in module else f"{module}/__init__.py"
            alone.append([f"`{library}`", f"`{file}`"])
    rows = []
    for place, layer in enumerate(layers[:-1]):
        below = [name for lower in layers[place + 1 : -1] for name in lower]
        alike: dict[tuple[str, ...], list[str]] = {}  # what may be imported -> who may
        for name in layer:
            alike.setdefault(tuple(other for other in below if other not in forbidden.get(name, ())), []).append(name)
        for allowed, importers in alike.items():
            what = "every row below" if below and len(allowed) == len(below) else _code(*allowed, "the root modules")
            rows.append([_code(*importers), what])
    rows.append([f"the root modules: {_code(*layers[-1])}", "each other"])
    return f"{_table(['who', 'may import'], rows)}\n\n{_table(['library', 'imported only by'], alone)}"


def _code(*names: str) -> str:
    return ", ".join(name if " " in name else f"`{name}`" for name in names)


# docs/settings.md


def settings() -> str:
    """Every setting with its default, its values and its meaning, grouped as in config.py."""
    field = re.compile(r"^    (?:# (?P<group>.+)|(?P<name>[A-Z][A-Z0-9_]*): .*)$", re.MULTILINE)
    groups: dict[str, list[list[str]]] = {}
    group = ""
    for found in field.finditer((ROOT / "config.py").read_text(encoding="utf-8")):
        group = found["group"] or group
        if found["name"] in Settings.model_fields:
            info = Settings.model_fields[found["name"]]
            meaning = " ".join((info.description or "").split())
            groups.setdefault(group, []).append([f"`{found['name']}`", _value(info.default), _values(info), meaning])
    heads = ["setting", "default", "values", "meaning"]
    return "\n\n".join(f"## {group}\n\n{_table(heads, rows)}" for group, rows in groups.items())


def _value(default: object) -> str:
    """A default as a person would write it; a path relative to the checkout."""
    if isinstance(default, Path):
        return f"`{default.relative_to(ROOT).as_posix()}{'/' * (not default.suffix)}`"
    written = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{written}`" if written else "empty"


def _values(info: Any) -> str:
    """The values that a setting takes: its choices, or its range."""
    if get_origin(info.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(info.annotation))
    signs = {"ge": "from", "gt": "above", "le": "to"}
    limits = [(word, getattr(limit, sign, None)) for limit in info.metadata for sign, word in signs.items()]
    kinds = {bool: "`true`, `false`", Path: "path", str: "text", SecretStr: "text", int: "integer", float: "number"}
    return " ".join([kinds[info.annotation], *(f"{word} {limit}" for word, limit in limits if limit is not None)])


# docs/commands.md


def options(name: str) -> str:
    """Every argument of a command with its help text, as its parser has them."""
    parser = PARSERS[name]()
    choices = next((a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
    if choices is None:
        return _options(f"`python {parser.prog}`" if parser.prog.endswith(".py") else parser.prog, parser)
    return "\n\n".join(_options(f"folio {name} {command}", choices[command]) for command in choices)


def _options(title: str, parser: argparse.ArgumentParser) -> str:
    rows = []
    for action in parser._actions:  # argparse has no other way to list them
        if isinstance(action, argparse._HelpAction | argparse._VersionAction):
            continue
        takes = "" if action.nargs == 0 else " " + _argument(action)
        rows.append([f"`{', '.join(action.option_strings)}{takes}`".replace("` ", "`"), action.help or ""])
    return _table([title, "meaning"], rows)


def _argument(action: argparse.Action) -> str:
    if action.choices:
        return f"{{{','.join(map(str, action.choices))}}}"
    word = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    optional = not action.option_strings and action.nargs in ("?", "*")
    many = " ..." if action.nargs in ("*", "+") else ""
    return f"[{word}{many}]" if optional else f"{word}{many}"


def _table(heads: list[str], rows: Iterable[list[str]]) -> str:
    cells = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells)


# LOG.md


def log_index() -> str:
    """Every entry of the log as a link, by year and day."""
    heading = re.compile(r"^## (\d{4})-(\d\d-\d\d): (.+)$", re.MULTILINE)
    years: dict[str, list[str]] = {}
    for year, day, title in heading.findall((ROOT / "LOG.md").read_text(encoding="utf-8")):
        years.setdefault(year, []).append(f"- {day} [{title}](#{anchor(f'{year}-{day}: {title}')})")
    return "\n\n".join(f"**{year}**\n\n" + "\n".join(lines) for year, lines in years.items())


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "imports": ("docs/architecture.md", imports),
    "graph": ("docs/architecture.md", drawn),
    "settings": ("docs/settings.md", settings),
    "log-index": ("LOG.md", log_index),
    **{name: ("docs/commands.md", partial(options, name)) for name in PARSERS},
}


def pages() -> dict[Path, str]:
    """Each page with generated parts, as it should read."""
    texts: dict[Path, str] = {}
    for name, (page, make) in PARTS.items():
        path = ROOT / page
        text = texts.get(path) or path.read_text(encoding="utf-8")
        pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        found = pattern.search(text)
        if not found:
            raise SystemExit(f"{page} has no part for {name}.")
        texts[path] = f"{text[: found.end(1)]}\n{make()}\n\n{text[found.start(2) :]}"
    return texts


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
