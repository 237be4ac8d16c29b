"""Reads a bibliography from disk, and finds the PDFs that it names."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from pathlib import Path

from folio.errors import UsageError
from folio.files import open_regular
from folio.sources import bibtex, csl_json
from folio.sources.entries import Entry, Problem

LARGEST_MB = 100
_READERS = {".bib": bibtex.read, ".bibtex": bibtex.read, ".biblatex": bibtex.read, ".json": csl_json.read}
# UTF-32's begins with UTF-16's, and so comes first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bibliography:
    """A bibliography as it was read."""

    path: Path  # absolute
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()
    # Entry's place in `entries` -> the PDFs that it names and that exist, absolute
    pdfs: dict[int, tuple[Path, ...]] = field(default_factory=dict)

    def named_pdfs(self) -> list[Path]:
        """Every PDF that an entry names, once."""
        return list(dict.fromkeys(path for paths in self.pdfs.values() for path in paths))


def read_bibliography(path: Path) -> Bibliography:
    """Read a .bib file (BibTeX, BibLaTeX) or a .json file (CSL-JSON). Raises UsageError if it is none or too large."""
    absolute = Path(os.path.abspath(path))
    reader = _READERS.get(absolute.suffix.casefold())
    if reader is None:
        raise UsageError(f"{path} is no bibliography that can be read.", "Name a .bib or a CSL-JSON .json file.")
    try:
        with open_regular(absolute) as file:
            data = file.read(LARGEST_MB * 10**6 + 1)
    except OSError as error:
        remedy = "Check the path and its permissions."
        raise UsageError(f"The bibliography {path} cannot be read: {error.strerror}.", remedy) from error
    if len(data) > LARGEST_MB * 10**6:
        raise UsageError(f"The bibliography {path} is larger than {LARGEST_MB} MB.", "Export a smaller one.")
    entries, problems = reader(_decoded(data))
    places = {place: _existing_pdfs(entry, absolute.parent) for place, entry in enumerate(entries) if entry.files}
    pdfs = {place: found for place, found in places.items() if found}
    return Bibliography(absolute, tuple(entries), tuple(problems), pdfs)


def _decoded(data: bytes) -> str:
    """UTF-8; UTF-16 or UTF-32 that says so at its beginning; or Windows-1252, which old programs wrote."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8-sig")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _existing_pdfs(entry: Entry, folder: Path) -> tuple[Path, ...]:
    """The files that an entry names, if they are PDFs by name, regular files and there. Nothing is opened."""
    found: dict[Path, None] = {}
    for written in entry.files:
        # Mendeley leaves out the slash at the beginning of an absolute path.
        for path in (os.path.join(folder, written), os.path.join(os.sep, written)):
            if path.casefold().endswith(".pdf") and _is_file(path):
                found[Path(os.path.abspath(path))] = None
                break
    return tuple(found)


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a null byte, half of a surrogate pair
        return False
