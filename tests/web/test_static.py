"""The page's files: no external resources, no inline code, no markup made from text, valid references, contrast."""

from __future__ import annotations

import re
from itertools import permutations, product
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


# Styles stay in their room. A room is a folder with a style sheet; style.css and narrow.css are for all rooms.

SHEETS = sorted(STATIC.glob("*/*.css"))
PARTS = re.compile(r"([^{};]*)([{};])")
CLASS = re.compile(r"\.([A-Za-z][\w-]*)")
GIVEN = re.compile(r"""(?:class(?:Name)?(?::| =) ?|makeButton\(\s*|classList\.\w+\()(?:"([^"]*)"|`([^`]*)`)""")


def selectors(sheet: Path) -> list[tuple[str, str]]:
    """Each selector of a sheet, after the one that it is nested in, which is "" for most."""
    found: list[tuple[str, str]] = []
    nested: list[str] = []
    for before, sign in PARTS.findall(re.sub(r"/\*.*?\*/", "", text(sheet), flags=re.S)):
        if sign == "{":
            nested.append(" ".join(before.split()))
            outer = [each for each in nested[:-1] if not each.startswith("@")]
            if not nested[-1].startswith(("@", ":where(")) and not any("keyframes" in each for each in nested):
                found += [("".join(outer), each.strip()) for each in re.split(r",(?![^(]*\))", nested[-1])]
        elif sign == "}":
            nested.pop()
    return found


def meet(one: str, other: str) -> bool:
    """Whether rules nested in these may hold for the same element."""
    return not (one and other) or bool(set(re.findall(r"#[\w-]+", one)) & set(re.findall(r"#[\w-]+", other)))


def given_by() -> dict[str, set[str]]:
    """Class -> the rooms whose modules give it to elements."""
    given: dict[str, set[str]] = {}
    for module in MODULES:
        if module.parent.name in ("base", "shell", STATIC.name):
            continue  # they are of no room
        for name in " ".join(map("".join, GIVEN.findall(text(module)))).split():
            given.setdefault(name, set()).add(module.parent.name)
    return given


def test_each_rule_of_a_room_holds_in_the_room_alone() -> None:
    given = given_by()

    def is_anchored(room: str, selector: str) -> bool:
        anchor = re.split(r"[ >+~]", selector)[0]
        return anchor.startswith("#") or any(given.get(name, {room}) == {room} for name in CLASS.findall(anchor))

    loose = [
        (sheet.name, selector)
        for sheet in SHEETS
        for outer, selector in selectors(sheet)
        if not outer and not is_anchored(sheet.parent.name, selector)
    ]
    assert loose == []


def test_a_class_has_one_meaning_where_two_sheets_meet() -> None:
    """An element of one sheet, such as .page-mark.note, has no class that another sheet styles wherever it is."""
    sheets = {sheet: selectors(sheet) for sheet in [STATIC / "style.css", *SHEETS]}
    met = []
    for (one, styled), (other, met_by) in permutations(sheets.items(), 2):
        alone = {(name[1], outer) for outer, each in styled if (name := re.fullmatch(r"\.([\w-]+)", each))}
        own = {name for _, each in met_by for name in CLASS.findall(each)} - {
            name for _, each in styled for name in CLASS.findall(each)
        }
        for outer, each in met_by:
            for compound in map(set, map(CLASS.findall, re.split(r"[ >+~]", each))):
                met += [
                    (one.name, other.name, each)
                    for name, held in alone
                    if name in compound and compound & own
                    if meet(held, outer)
                ]
    assert met == []
