"""Where a move to a folder is filled, and how it ends.

The new library is filled in a file of its own. Its row `moving` in the table meta says that it is not whole; it stays
when the file has taken the library's place, until the indexes and ingested.json have been written too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from folio.errors import StoreError, StoreMissing
from folio.ingest import rebuild
from folio.ingest.local_store import UNFINISHED_MOVE, is_unfinished
from folio.store import lasting_tables, replacement
from folio.store.closing import closed_on_error
from folio.store.database import set_aside
from folio.store.lasting_tables import Lasting
from folio.store.library import Library
from folio.types import Notice


def is_taken(path: Path) -> bool:
    """Whether there is something at a path, sound or not, that a move which has not ended did not bring."""
    if not path.exists():
        return bool(set_aside(path)) and not path.with_name(UNFINISHED_MOVE).exists()
    try:
        with closing(Library(path, only_read=True)) as library:
            holds = library.fingerprint() or _has_rows(library)
            return bool(holds) and not is_unfinished(library)
    except StoreMissing:
        return False
    except StoreError:
        return True


def _has_rows(library: Library) -> bool:
    """Whether it has questions, or knows of works."""
    return any(library.database.query(f"SELECT 1 FROM {table} LIMIT 1") for table in lasting_tables.TABLES)


def begin(path: Path, made_with: dict[str, str]) -> Library:
    """The library to fill: that of an interrupted move if it can be continued, otherwise an empty one."""
    library = rebuild.read_if_sound(path, is_unfinished) and Library(path)
    if not library:
        library = rebuild.open_unfinished(path.with_name(UNFINISHED_MOVE), made_with)
    with closed_on_error(library), library.database.transaction():
        library.database.execute("INSERT OR REPLACE INTO meta VALUES ('moving', '1')")
        library.set_fingerprint(made_with)
    return library


def finish(
    path: Path,
    library: Library,
    lasting: Lasting,
    derive: Callable[[Library], None],
    notice: Notice,
) -> None:
    """Put the library that was filled in its place. derive: writes what is made of it. See StoreBackend.finish_move."""
    lasting_tables.replace(library.database, lasting)
    if library.path != path:
        library.close()
        _replace(path, library.path, notice)
    with closing(Library(path)) as library:
        derive(library)
        library.database.execute("DELETE FROM meta WHERE key = 'moving'")


def _replace(path: Path, new: Path, notice: Notice) -> None:
    """Put the library `new` in the place of the one at `path`, in one transaction or by renaming it."""
    if rebuild.read_if_sound(path, rebuild.sound_files) is not None:
        with closing(Library(path)) as library:
            replacement.replace_everything(library.database, new)
        rebuild.delete(new)
        return
    was_there = path.exists()
    aside = rebuild.take_place(path, new)
    if was_there and aside is not None:
        notice(f"The library that was there could not be used: it was set aside as {aside.name}.")
