"""The page's files: no external resources, no inline code, no markup made from text, valid references, contrast."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

pytestmark = pytest.mark.fast

STATIC = ROOT / "folio" / "web" / "static"
INDEX = (STATIC / "index.html").read_text(encoding="utf-8")
STYLE = (STATIC / "style.css").read_text(encoding="utf-8")
# docs.js only starts Swagger UI.
MODULES = sorted(path for path in STATIC.rglob("*.js") if path.stem != "docs")
TEXTS = sorted(path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".png")
CODE = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_external_resources(path: Path) -> None:
    namespace = "http://www.w3.org/2000/svg"
    assert not re.search(r"https?://|url\(|@import|//cdn", text(path).replace(namespace, ""))


def test_html_complies_with_the_content_security_policy() -> None:
    assert not re.search(r"\s(style|on\w+)=|javascript:|<style", INDEX)
    assert all(re.search(r'src="assets/\w+\.js"', tag) for tag in re.findall(r"<script[^>]*>", INDEX))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_makes_no_markup_from_text(path: Path) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\beval\b"
    assert not re.search(forbidden + r"|new Function", text(path))


def test_referenced_files_ids_and_icons_exist() -> None:
    assert {name for name in re.findall(r'"assets/([\w./]+)"', INDEX) if not (STATIC / name).exists()} == set()
    ids = re.findall(r'\sid="([^"]+)"', INDEX)
    assert len(ids) == len(set(ids))
    made = set(re.findall(r'\bid: "([\w./]+)"', CODE)) | set(re.findall(r'\brenderSelect\("([\w-]+)"', CODE))
    named = set(re.findall(r'byId\("([\w./]+)"\)', CODE))
    named |= set(re.findall(r'(?:for|aria-controls|aria-labelledby|aria-describedby|popovertarget)="([^"]+)"', INDEX))
    assert named <= set(ids) | made
    icons = set(re.findall(r'href="#(i-\w+)"', INDEX)) | {
        f"i-{name}" for name in re.findall(r'makeIcon\("(\w+)"\)', CODE)
    }
    assert icons <= set(ids)


# Contrast, https://www.w3.org/TR/WCAG22/#contrast-minimum


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


GROUNDS = ("ground", "paper", "raised")
# (text colour, background, required contrast)
PAIRS = [
    *((name, ground, 4.5) for name, ground in product(("ink", "faint", "accent", "warning", "danger"), GROUNDS)),
    *(("edge", ground, 3.0) for ground in GROUNDS),
    *(
        (*pair.split(), 4.5)
        for pair in (
            "ink accent-soft", "faint accent-soft", "accent accent-soft", "on-accent accent", "warning warning-soft",
            "ink warning-soft", "danger danger-soft", "ink danger-soft", "ink marker", "ground ink",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("written", "ground", "needed"), PAIRS)
def test_colours_have_enough_contrast(written: str, ground: str, needed: float, theme: int) -> None:
    colours = dict(re.findall(r"--([\w-]+): light-dark\(([^)]*)\);", STYLE))
    one, other = (colours[name].split(", ")[theme] for name in (written, ground))
    assert _contrast(one, other) >= needed


# Classes that parts of the page take from another part on purpose; the style sheets share one namespace.
SHARED = frozenset(
    "at check chosen colours drop drop-note drop-title field fields find-status gap here keys-columns keys-dialog "
    "keys-head keys-list library-head stage unsure working".split()
)


def test_no_part_of_the_page_is_styled_by_another_part_by_accident() -> None:
    def styled(path: Path) -> set[str]:
        """Classes that a rule styles wherever they are."""
        selectors = ",".join(re.findall(r"([^{}]+)\{", text(path))).split(",")
        return {each[1] for each in (re.fullmatch(r"\.([\w-]+)", selector.strip()) for selector in selectors) if each}

    def given(path: Path) -> set[str]:
        pairs = re.findall(r'class: "([^"]*)"|classList\.\w+\("([^"]*)"', text(path))
        return set(" ".join(map(" ".join, pairs)).split())

    general = styled(STATIC / "style.css") | SHARED
    met = [
        (sheet.name, module.relative_to(STATIC).as_posix(), name)
        for sheet, module in product(STATIC.glob("*/*.css"), MODULES)
        if sheet.parent != module.parent != STATIC
        for name in sorted((styled(sheet) & given(module)) - general)
    ]
    assert met == []
