"""Brings Folio's library up to date with Zotero: metadata of papers, and removal of papers that left Zotero."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from folio.errors import UsageError
from folio.papers.lists import matches, unknown_names
from folio.papers.metadata import NO_METADATA, Field, Metadata
from folio.papers.model import Paper, SourceFile
from folio.shown_text import counted, name_line
from folio.store.library import Library
from folio.zotero.annotations import Annotation, AnnotationsTaken, FindAreas, keep_in_step
from folio.zotero.files import RELATIVE
from folio.zotero.library import PDF_TYPE, Attachment, ZoteroLibrary

IN_TRASH = "Removed from the index, because it is in Zotero's trash."
NOT_IN_ZOTERO = "Removed from the index, because it is no longer in Zotero."


@dataclass(frozen=True, slots=True)
class Described:
    """The result of `describe`."""

    new: int = 0  # papers with metadata from Zotero for the first time
    changed: int = 0
    shared: tuple[str, ...] = ()  # files of several items with different metadata


class ZoteroSelection:
    """The PDFs of a Zotero library in one of these collections and with one of these tags. `files`: the existing ones,
    path -> the name shown to people."""

    def __init__(self, zotero: ZoteroLibrary, collections: Sequence[str], tags: Sequence[str]) -> None:
        """Raises UsageError if there is nothing to read."""
        self.zotero = zotero
        self._collections, self._tags = collections, tags
        known = [each.metadata for each in zotero.attachments]
        # An empty library is more likely a mistake than a wish to remove everything.
        if not known and not zotero.trashed:
            others = f", only {counted(len(zotero.others), 'other file')}" if zotero.others else ""
            happened = f"There are no PDFs in the Zotero library {zotero.folder}{others}."
            raise UsageError(happened, "Name another after --zotero.")
        if unknown := unknown_names(known, collections, tags):
            raise UsageError(
                f"No PDF in Zotero is in a collection or has a tag of this name: {', '.join(map(name_line, unknown))}.",
                _names_that_exist(known, of_tags=not collections),
            )
        self.files = selected(zotero, self.is_wanted)

    def is_wanted(self, metadata: Metadata) -> bool:
        return matches(metadata, self._collections, self._tags)


def listed(names: Sequence[str], most: int, as_line: Callable[[str], str] = name_line) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(as_line, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def _names_that_exist(known: Sequence[Metadata], *, of_tags: bool) -> str:
    names = {name for metadata in known for name in (metadata.tags if of_tags else metadata.collections).value}
    if not names:
        return f"Leave the filter out: no PDF in Zotero has a {'tag' if of_tags else 'collection'}."
    return f"{'Tags' if of_tags else 'Collections'} in Zotero: {listed(sorted(names), 10)}."


def selected(zotero: ZoteroLibrary, is_wanted: Callable[[Metadata], bool]) -> dict[Path, str]:
    """The existing files of the wanted attachments, with the names shown to people."""
    wanted = {each.path for each in zotero.attachments if is_wanted(each.metadata)}
    return {path: name for path, name in zotero.names().items() if path in wanted and _exists(path)}


def missing(zotero: ZoteroLibrary, is_wanted: Callable[[Metadata], bool]) -> list[str]:
    """The names of the wanted attachments whose file is missing, each with where it was looked for.

    Also those whose place Zotero does not say: a path that is not valid, or one below an unknown base folder.
    """
    names = zotero.names()
    absent = [each.path for each in zotero.attachments if is_wanted(each.metadata) and not _exists(each.path)]
    placeless = [
        f"{path or 'a file without a name'} (not at a place that Folio can look at)"
        if not path.startswith(RELATIVE)
        else f"{path.removeprefix(RELATIVE)} (Zotero's base folder for linked files is not known)"
        for path in zotero.unusable.values()
    ]
    return [*(f"{names[path]} (looked for in {path.parent})" for path in dict.fromkeys(absent)), *placeless]


def other_files(zotero: ZoteroLibrary, is_wanted: Callable[[Metadata], bool]) -> dict[str, list[str]]:
    """Kind of file -> the names of the wanted attachments that are no PDFs: EPUBs, snapshots of web pages, others."""
    names: dict[str, list[str]] = {}
    for kind, each in zotero.others:
        if is_wanted(each.metadata):
            names.setdefault(kind, []).append(each.path.name)
    return names


def mislabelled(zotero: ZoteroLibrary, is_wanted: Callable[[Metadata], bool]) -> list[str]:
    """The names of the wanted PDFs that Zotero does not call PDFs."""
    return [
        each.path.name for each in zotero.attachments if each.content_type != PDF_TYPE and is_wanted(each.metadata)
    ]


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long, a folder that may not be entered
        return False


def describe(library: Library, zotero: ZoteroLibrary, files: Sequence[SourceFile]) -> Described:
    """Store Zotero's metadata of these files and of the papers that came from Zotero before.

    A file need not be in the library yet: its metadata waits for it. Of several attachments with the same content, the
    first counts. The caller holds the writer lock.
    """
    papers = {file.path: file.sha256 for file in (*library.files(), *files)}
    given = {file.path for file in files}
    known = {paper.id: layer for paper, layer in _from_zotero(library)}
    owners: dict[str, list[Attachment]] = {}
    for each in zotero.attachments:
        paper = papers.get(str(each.path), "")
        if paper and (str(each.path) in given or known.get(paper, NO_METADATA).zotero.value == each.link):
            owners.setdefault(paper, []).append(each)
    before = {paper: known.get(paper) or library.metadata_layers(paper).get("zotero") for paper in owners}
    changed = {paper: own[0].metadata for paper, own in owners.items() if own[0].metadata != before[paper]}
    library.set_metadata_of("zotero", changed)
    new = sum(before[paper] is None for paper in changed)
    works = {paper: {replace(each.metadata, zotero=Field("")) for each in own} for paper, own in owners.items()}
    shared = tuple(own[0].path.name for paper, own in owners.items() if len(works[paper]) > 1)
    return Described(new, len(changed) - new, shared)


def take_annotations(library: Library, zotero: ZoteroLibrary, find_areas: FindAreas) -> AnnotationsTaken:
    """Keep the notes of this Zotero library in step with its annotations. The caller holds the writer lock."""
    papers = {file.path: file.sha256 for file in library.files()}
    annotated: dict[str, list[tuple[str, Path, Sequence[Annotation]]]] = {}
    for each in zotero.attachments:
        if paper := papers.get(str(each.path)):
            annotated.setdefault(paper, []).append((each.link, each.path, each.annotations))
    listed = {each.link for each in zotero.attachments} | zotero.unusable.keys()
    foreign = {
        layer.zotero.value
        for paper, layer in _from_zotero(library)
        if layer.zotero.value not in listed and layer.zotero.value not in zotero.trashed
    }
    return keep_in_step(
        library, annotated, lambda link: link not in listed and link not in foreign, find_areas
    )


def remove(library: Library, zotero: ZoteroLibrary, papers_folder: Path) -> list[tuple[SourceFile, str]]:
    """Remove the papers that came from this Zotero library and have left it; returns their files, each with the reason.

    A paper that is also in `papers_folder`, or was added from elsewhere, stays and only loses Zotero's metadata.
    The caller holds the writer lock.
    """
    present = {each.link for each in zotero.attachments} | zotero.unusable.keys()
    files: dict[str, list[SourceFile]] = {}
    for file in library.files():
        files.setdefault(file.sha256, []).append(file)
    known = [(paper, layer.zotero.value) for paper, layer in _from_zotero(library)]
    stored_elsewhere = {
        paper.id for paper, link in known if any(_is_stored_elsewhere(file, link, zotero) for file in files[paper.id])
    }
    has_left_zotero = _leavers(zotero, present)
    trashed = set(map(str, zotero.trashed.values()))
    removed: list[tuple[SourceFile, str]] = []
    for paper, link in known:
        own = files[paper.id]
        left = list(filter(has_left_zotero, own))
        # A missing linked file does not show which library it was linked in.
        is_foreign = paper.id in stored_elsewhere or (stored_elsewhere and not _is_stored(own, link, zotero))
        has_left = link not in present and (link in zotero.trashed or not is_foreign)
        if has_left and not left and zotero.trashed.get(link) is None and len(own) == 1:
            left = own  # a linked file
        for file in left:
            if not Path(file.path).is_relative_to(papers_folder):
                library.drop(file.path)
                removed.append((file, IN_TRASH if file.path in trashed else NOT_IN_ZOTERO))
        if has_left:
            library.set_metadata(paper.id, "zotero", NO_METADATA)
    return removed


def _leavers(zotero: ZoteroLibrary, present: Set[str]) -> Callable[[SourceFile], bool]:
    """A test whether a file is an attachment in the trash, or was stored for an attachment that is gone."""
    in_use = {str(each.path) for each in zotero.attachments}
    trashed = set(map(str, zotero.trashed.values()))
    keys = {link[-8:] for link in present}
    stored = zotero.folder / "storage"

    def has_left(file: SourceFile) -> bool:
        folder = Path(file.path).parent
        is_gone = folder.parent == stored and folder.name not in keys
        return file.path not in in_use and (file.path in trashed or is_gone)

    return has_left


def _is_stored(files: Sequence[SourceFile], link: str, zotero: ZoteroLibrary) -> bool:
    """Whether one of these files is in the attachment's folder of this Zotero library."""
    return any(Path(file.path).parent == zotero.folder / "storage" / link[-8:] for file in files)


def _is_stored_elsewhere(file: SourceFile, link: str, zotero: ZoteroLibrary) -> bool:
    """Whether a file is in the attachment's folder of another Zotero library."""
    folder = Path(file.path).parent
    return folder.parts[-2:] == ("storage", link[-8:]) and folder.parent.parent != zotero.folder


def _from_zotero(library: Library) -> Iterator[tuple[Paper, Metadata]]:
    """The papers with metadata from Zotero, and that metadata."""
    for paper in library.papers():
        if paper.metadata.zotero.origin:
            layer = library.metadata_layers(paper.id).get("zotero")
            if layer is not None:
                yield paper, layer
