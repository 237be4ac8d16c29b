"""Whether a paper is in a collection or has a tag, as people name them. Pure.

A collection is named by its name or by a part of its path, "Consensus" or "Systems/Consensus", and what is in the
collections below it counts. Case and the form of accented letters do not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from folio.paper_metadata import Metadata
from folio.text import one_line


def is_in_collection(metadata: Metadata, name: str) -> bool:
    """Whether the paper is in a collection of this name or path, or in one below it."""
    wanted = _steps(name)
    return bool(wanted) and any(wanted in _steps(path) for path in metadata.collections.value)


def has_tag(metadata: Metadata, name: str) -> bool:
    """Whether the paper has this tag."""
    return _folded(name) in map(_folded, metadata.tags.value)


def matches(metadata: Metadata, collections: Sequence[str], tags: Sequence[str]) -> bool:
    """Whether the paper is in one of these collections and has one of these tags; none given means any."""
    return (not collections or any(is_in_collection(metadata, name) for name in collections)) and (
        not tags or any(has_tag(metadata, name) for name in tags)
    )


def unknown_names(papers: Iterable[Metadata], collections: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Those of these names of collections and tags that no paper has."""
    left = [(name, is_in_collection) for name in collections] + [(name, has_tag) for name in tags]
    for metadata in papers:
        left = [(name, holds) for name, holds in left if not holds(metadata, name)]
        if not left:
            break
    return [name for name, _ in left]


def names_of(metadata: Metadata) -> list[str]:
    """The collections that the paper is in, by their paths, and those above them."""
    found = []
    for path in metadata.collections.value:
        steps = path.split("/")
        found += ["/".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return list(dict.fromkeys(found))


def _steps(path: str) -> str:
    """A path to look in for a part of it: "/systems/consensus/"; "" if it has no name."""
    names = [step for step in map(_folded, path.split("/")) if step]
    return f"/{'/'.join(names)}/" if names else ""


def _folded(name: str) -> str:
    # Not text.fold: accents and signs tell collections apart.
    return unicodedata.normalize("NFC", one_line(unicodedata.normalize("NFC", name).casefold()))
