"""A folder of Markdown for Obsidian, Logseq and editors: pages that are written again without touching what a person
wrote in them.

A page is found again by its id in its front matter, wherever the person moved it. What Folio writes ends with a mark;
what stands below it, and fields of the front matter that Folio does not write, are the person's. Links are
`[[name]]`, which both programs follow; the name of a page is unique in the folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from folio.errors import UsageError
from folio.shown_text import plain_line
from folio.system.files import replace, write_text
from folio.text import whole_words

MARK = "<!-- Folio writes what is above this line again. What is below it is yours. -->"
ID, NAME, FIELDS, ALIASES = "folio", "folio-name", "folio-fields", "aliases"
MOST_FILES, LARGEST = 200_000, 5_000_000  # of a folder that is looked through; characters of a page
_LONGEST_NAME = 100  # characters
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|#^\[\]]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.I)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?P<fields>.*?)^---[ \t]*(?:\r?\n|\Z)", re.S | re.M)
_FIELD = re.compile(r"^(?P<name>[^\s:#-][^:\n]*):.*\n?(?:(?:[ \t]+|-[ \t]).*\n?|[ \t]*\n)*", re.M)
_ENDING = ".md"

Value = str | int | Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """A page to write."""

    id: str  # of what it is about: "paper 3f2a…"; it stays the same
    folder: str  # where a new one goes: "papers"
    name: str  # of its file, from `page_name`
    fields: Mapping[str, Value]  # of its front matter; empty ones are left out
    body: str  # Markdown


@dataclass
class Written:
    """What became of the pages."""

    new: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    kept: list[str] = field(default_factory=list)  # pages of what is gone that a person wrote in
    left: list[str] = field(default_factory=list)  # pages that could not be written, each with the reason


@dataclass(frozen=True, slots=True)
class _Found:
    """A page that is in the folder."""

    path: Path
    text: str
    fields: dict[str, str]  # of its front matter: name -> the lines, as they are

    @property
    def id(self) -> str:
        return _scalar(self.fields.get(ID, ""))

    @property
    def own(self) -> str | None:
        """What the person wrote below the mark; None without a mark."""
        _, mark, below = self.text.partition(MARK)
        return below if mark else None

    def own_fields(self, ours: Iterable[str]) -> str:
        """The fields of the person's, as they are; not those that Folio once wrote."""
        names = {*ours, ID, NAME, FIELDS, ALIASES, *_list(self.fields.get(FIELDS, ""))}
        return "".join(lines for name, lines in self.fields.items() if name not in names)


def page_name(title: str, key: str) -> str:
    """The name of a page, without what file systems and links do not allow: "On Sea Otters (otter2021sea)"."""
    plain = " ".join(_FORBIDDEN.sub(" ", plain_line(title)).split())
    end = f" ({_FORBIDDEN.sub(' ', key).strip()[:40]})" if key else ""
    room = _LONGEST_NAME - len(end)
    short = plain if len(plain) <= room else whole_words(plain, room)
    name = f"{short.rstrip('. ')}{end}".lstrip(". ")
    while len(name.encode()) > 200:  # most file systems allow 255 bytes
        name = f"{name[: -len(end) - 8]}{end}" if end else name[:-8]
    return f"_{name}" if _RESERVED.match(name) or not name else name


def link(name: str) -> str:
    """A link to a page of the folder."""
    return f"[[{name}]]"


def write_folder(folder: Path, pages: Sequence[Page], kinds: Sequence[str]) -> Written:
    """Write these pages into a folder, which may have been written before.

    kinds: the first words of the ids of all pages that may be there; a page with another id is not Folio's. A page of
    something that is gone is deleted, unless a person wrote in it. Raises UsageError for a folder that is no folder or
    has too many files, OSError.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file.", "Name a folder, which may be new.")
    folder.mkdir(parents=True, exist_ok=True)
    there, result = _there(folder), Written()
    taken = {_folded(path.stem) for path in _files(folder)}
    for page in pages:
        try:
            _write(folder, page, there.pop(page.id, None), taken, result)
        except (OSError, ValueError) as error:
            result.left.append(f"{page.name}: {getattr(error, 'strerror', None) or error}")
    for found in there.values():
        if found.id.partition(" ")[0] in kinds:
            _remove(found, result)
    return result


def _files(folder: Path) -> list[Path]:
    """All Markdown files of a folder, without hidden folders, in order."""
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += [Path(root, name) for name in sorted(names) if name.casefold().endswith(_ENDING)]
        if len(files) > MOST_FILES:
            raise UsageError(f"{folder} has more than {MOST_FILES:,} pages.", "Name a folder of its own.")
    return files


def _there(folder: Path) -> dict[str, _Found]:
    """The pages that Folio wrote, by id; of a page that was copied, the first."""
    pages: dict[str, _Found] = {}
    for path in _files(folder):
        found = _read(path)
        if found and found.id:
            pages.setdefault(found.id, found)
    return pages


def _read(path: Path) -> _Found | None:
    """A page with front matter; None for any other file, and one that cannot be read."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return None
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    front = _FRONT.match(text)
    if not front:
        return None
    lines = front["fields"].replace("\r\n", "\n")
    return _Found(path, text, {each["name"].strip(): each.group() for each in _FIELD.finditer(lines)})


def _write(folder: Path, page: Page, found: _Found | None, taken: set[str], result: Written) -> None:
    if found is None:
        path = folder / page.folder / f"{_free(page.name, taken)}{_ENDING}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, _text(page, path.stem, (), "", "\n"))
        result.new += 1
        return
    own = found.own
    if own is None:
        result.left.append(f"{found.path.name}: the line that ends Folio's part is gone, so it was left as it is")
        return
    stem, aliases = found.path.stem, _list(found.fields.get(ALIASES, ""))
    # A page that the person named is theirs to name. Its last alias is its name if a renaming was cut off.
    was_ours = stem in (_scalar(found.fields.get(NAME, "")), *aliases[-1:])
    if was_ours and stem != page.name and not _is_numbered(stem, page.name):
        taken.discard(_folded(stem))
        aliases = list(dict.fromkeys([*aliases, stem]))
        stem = _free(page.name, taken)
    text = _text(page, stem if was_ours else "", aliases, found.own_fields(page.fields), own)
    if text != found.text:
        if found.path.read_bytes().decode("utf-8") != found.text:
            raise ValueError("it was being changed, so it was left as it is; run the command again")
        write_text(found.path, text)
        result.changed += 1
    if stem != found.path.stem:
        target = found.path.with_name(f"{stem}{_ENDING}")
        if target.exists() and not target.samefile(found.path):  # a name may differ by case alone
            raise ValueError(f"{target.name} is there already")
        replace(found.path, target)
        result.renamed += 1


def _remove(found: _Found, result: Written) -> None:
    """Delete the page of something that is gone, unless the person wrote in it."""
    ours = {ID, NAME, FIELDS, ALIASES, *_list(found.fields.get(FIELDS, ""))}
    if found.own is None or found.own.strip() or set(found.fields) - ours:
        result.kept.append(found.path.name)
        return
    found.path.unlink()
    result.removed += 1


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number if another page has it."""
    number, free = 1, name
    while _folded(free) in taken:
        number += 1
        free = f"{name} {number}"
    taken.add(_folded(free))
    return free


def _is_numbered(stem: str, name: str) -> bool:
    return bool(re.fullmatch(rf"{re.escape(name)} \d+", stem))


def _folded(name: str) -> str:
    return name.casefold()


def _text(page: Page, name: str, aliases: Sequence[str], own_fields: str, own: str) -> str:
    """A whole page. name: of its file, if Folio gave it, else ""."""
    fields = {key: value for key, value in page.fields.items() if value not in ("", 0) and value != []}
    lines = [f"{ID}: {_quoted(page.id)}", f"{NAME}: {_quoted(name)}"]
    lines += [f"{FIELDS}: {_quoted_list(list(fields))}"]
    lines += [f"{ALIASES}: {_quoted_list(aliases)}"] if aliases else []
    lines += [f"{key}: {_yaml(value)}" for key, value in fields.items()]
    front = "\n".join(lines) + "\n" + own_fields
    body = page.body.replace(MARK, MARK[1:])
    return f"---\n{front}---\n{body.strip()}\n\n{MARK}{own}"


def _yaml(value: Value) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return str(value) if isinstance(value, int) else _quoted_list(value)


def _quoted(text: str) -> str:
    """A string of YAML, which JSON's are."""
    return json.dumps(plain_line(text), ensure_ascii=False)


def _quoted_list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, values))}]"


def _scalar(lines: str) -> str:
    """The value of a field that Folio wrote, also as programs write it again: without quotes."""
    written = lines.partition(":")[2].strip()
    try:
        value = json.loads(written)
    except ValueError:
        value = written.strip("'\"")
    return value if isinstance(value, str) else ""


def _list(lines: str) -> list[str]:
    """The values of a list of YAML, in one line or in several."""
    written = lines.partition(":")[2].strip()
    try:
        value = json.loads(written)
    except ValueError:
        listed = re.findall(r"^[ \t]*-[ \t]+(.*)$", lines, re.M)
        items = written.strip("[]").split(",") if written.startswith("[") else listed
        value = [item.strip().strip("'\"") for item in items]
    return [item for item in value if isinstance(item, str) and item] if isinstance(value, list) else []

