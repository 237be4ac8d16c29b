"""Write the generated parts of docs/ again: `make docs`.

A generated part stands between two comments, `<!-- generated: NAME -->` and `<!-- end -->`. The module list of
docs/architecture.md comes from the first line of each module's docstring. tests/test_docs.py fails while a page is out
of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def modules() -> str:
    """Every package and module of folio/ with the first line of its docstring; the root first, then by name."""
    package = ROOT / "folio"
    folders = sorted({path.parent for path in package.rglob("*.py")}, key=lambda folder: (folder != package, folder))
    parts = []
    for folder in folders:
        files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        lines = [f"- `{path.relative_to(ROOT).as_posix()}`: {_summary(path)}" for path in files]
        about = folder / "__init__.py"
        intro = ast.get_docstring(ast.parse(about.read_text(encoding="utf-8"))) or ""
        heading = f"### {folder.relative_to(ROOT).as_posix()}/"
        parts.append("\n\n".join(filter(None, [heading, intro, "\n".join(lines)])))
    return "\n\n".join(parts)


def _summary(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


PARTS: dict[str, tuple[str, Callable[[], str]]] = {"modules": ("docs/architecture.md", modules)}


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
