"""Every remedy that the API can give is in the page's words: none names a command."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import folio
from folio.errors import command, fetch_command, install_command
from folio.schema.remedies import COMMAND, on_page

ROOT = Path(folio.__file__).parent
# What only a terminal says: commands with what they import alone
TERMINAL = {
    "cli", "evaluate", "mcp", "services/online_run.py", "services/updates.py", "deep/checkpoint.py", "errors.py",
    "ingest/watch.py", "schema/answers.py", "schema/remedies.py",
}  # fmt: skip


def sources() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name not in TERMINAL and name.split("/")[0] not in TERMINAL:
            yield path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def named(path: Path) -> dict[str, ast.expr]:
    """Name -> what it is set to in a module, or in a function of it."""
    return {
        node.targets[0].id: node.value
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


@cache
def known(path: Path, name: str, *, by_scripts: bool) -> str | None:
    """The text of a name of a module, where it is made of commands."""
    value = named(path).get(name)
    # A name that is set to something with itself in it is no text of commands.
    if value is None or any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value)):
        return None
    if not isinstance(value, ast.JoinedStr | ast.Constant | ast.BinOp | ast.Call):
        return None
    text = text_of(value, path, by_scripts=by_scripts)
    return text if COMMAND.search(text) or "tesseract" in text else None


def text_of(node: ast.expr, path: Path, *, by_scripts: bool) -> str:
    """What an expression gives, with X for what is not known."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr():
            return "".join(text_of(part, path, by_scripts=by_scripts) for part in node.values)
        case ast.FormattedValue(value=value):
            return text_of(value, path, by_scripts=by_scripts)
        case ast.BinOp(left=left, right=right, op=ast.Add()):
            return text_of(left, path, by_scripts=by_scripts) + text_of(right, path, by_scripts=by_scripts)
        case ast.Call(func=ast.Name(id="command"), args=[argument]):
            return command(text_of(argument, path, by_scripts=by_scripts), by_scripts=by_scripts)
        case ast.Call(func=ast.Name(id="fetch_command")):
            return fetch_command("X/Y", in_checkout=by_scripts)
        case ast.Call(func=ast.Name(id="install_command")):
            return install_command("torch")
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Name(id=name)), args=[argument]):
            form = known(path, name, by_scripts=by_scripts)
            return form.format(text_of(argument, path, by_scripts=by_scripts)) if form else "X"
        case ast.Name(id="FIRST_INGEST"):
            where, line = ("papers/", "ingest") if by_scripts else ("a folder", "ingest FOLDER")
            return f"Put PDFs into {where} and run `{command(line, by_scripts=by_scripts)}`"
        case ast.Name(id=name):
            return known(path, name, by_scripts=by_scripts) or "X"
        case ast.Attribute(value=ast.Name(id="ocr"), attr=name):
            return known(ROOT / "pdf" / "ocr.py", name, by_scripts=by_scripts) or "X"
    return "X"


def texts() -> list[tuple[str, str]]:
    """Each text of the engine that names a command, with its place: as an installed Folio says it, and a checkout."""
    found: dict[str, str] = {}
    for path in sources():
        tree = tree_of(path)
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        strings = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr | ast.Constant | ast.BinOp) and id(node) not in docstrings
        ]
        inner = {id(part) for node in strings for part in ast.walk(node) if part is not node}
        bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings of fields
        for node in strings:
            if id(node) in inner or id(node) in bare:
                continue
            for by_scripts in (False, True):
                text = text_of(node, path, by_scripts=by_scripts)
                if COMMAND.search(text) and not text.strip("`").startswith(("folio", "python", "ocrmypdf")):
                    found.setdefault(text, f"{path.relative_to(ROOT)}:{node.lineno}")
    return sorted((place, text) for text, place in found.items())


def fault(text: str) -> str:
    """What is wrong with a text as the page shows it; "" if nothing."""
    remedy = on_page(text)
    if COMMAND.search(remedy.text):
        return f"still names a command: {remedy.text!r}"
    if not remedy.is_whole:
        return f"is cut to {remedy.text!r}: it needs words of its own"
    return "" if remedy.text or text.startswith(" ") else "is empty"  # a remark at the end of another may be


# One test of them all: each worker would read the whole engine to name those of each.
def test_no_text_of_the_engine_names_a_command_on_the_page() -> None:
    found = texts()
    assert len(found) > 40
    faults = [(place, text, fault(text)) for place, text in found]
    assert [each for each in faults if each[2]] == []


def test_a_text_that_names_a_command_on_the_page_is_a_fault() -> None:
    assert fault("Nothing to run.") == ""
    assert fault("`make everything` is what helps.") != ""


@pytest.mark.parametrize(
    ("text", "shown", "action"),
    [
        ("Run `python ingest.py --rebuild` to rebuild it, or restore the previous settings.",
         "Rebuild the index in Settings, or restore the previous settings.", "rebuild"),
        ("Put PDFs into papers/ and run `python ingest.py`.", "Add PDFs, or choose a folder in Settings.", "add"),
        ("Get it with `ollama pull llama3.1:8b`.", "Get llama3.1:8b in Settings.", "models"),
        ("start Ollama, then run `ollama pull nomic-embed-text`",
         "start Ollama, then get nomic-embed-text in Settings", "models"),
        ("Put the original file back, or run `folio ingest` again.",
         "Put the original file back, or read your folders again in Settings.", "read"),
        ("Ask one: folio ask \"What is ...?\"", "Ask one.", ""),
        ("Do this. Then `make everything`.", "Do this.", ""),
        ("`make everything`.", "Settings may help.", ""),
        ("Nothing to run.", "Nothing to run.", ""),
    ],
)  # fmt: skip
def test_words_and_buttons(text: str, shown: str, action: str) -> None:
    remedy = on_page(text)
    assert (remedy.text, remedy.action) == (shown, action)
