"""Where a move to Milvus is filled, and how it ends.

The collections of a new epoch are filled while the old ones serve; metadata and failures are kept apart until the end.
Then the old library goes, and what it shared with the new one is replaced. Until one row makes the new epoch the
current one there is no library, and a question is told so: the same command goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from folio.cluster import history_copy
from folio.cluster.collections import METADATA, Names
from folio.cluster.epochs import create_epoch, drop_epoch, drop_unused
from folio.cluster.history_rows import HistoryRows
from folio.cluster.library_state import (
    WORKS_STAMP,
    LibraryState,
    about,
    delete_text,
    forget_state,
    read_state,
    write_state,
)
from folio.cluster.milvus_client import Milvus
from folio.cluster.milvus_library import MilvusLibrary
from folio.paper_metadata import to_json
from folio.store import works
from folio.store.closing import closed_on_error
from folio.store.lasting_tables import Lasting
from folio.store.paper_store import PaperStore

# The row of the library that the new one replaces: its epoch, and the keys of its term statistics
_REPLACES = "moving.replaces"


def is_taken(milvus: Milvus, names: Names) -> bool:
    """Whether there is a library, or questions are left of one, that a move would replace."""
    try:
        if read_state(milvus, names).epoch:
            return True
        is_half_moved = bool(read_state(milvus, names, "moving").epoch)
    except (ValueError, TypeError, LookupError):  # it cannot be read
        return True
    return not is_half_moved and bool({names.history, names.works} & milvus.collections())


def begin(library: MilvusLibrary, current: Callable[[], LibraryState], made_with: dict[str, str]) -> MilvusLibrary:
    """A library of the state "moving", ready to be filled, with what an interrupted move has brought.

    current: reads the state of the library that serves.
    """
    with closed_on_error(library):
        library.hold_library()
        _begin(library, current(), made_with)
    return library


def _begin(library: MilvusLibrary, current: LibraryState, made_with: dict[str, str]) -> None:
    milvus, names, state = library.milvus, library.names, library.state()
    if state.epoch and state.epoch == current.epoch:  # that move has ended
        _forget(library)
    elif state.epoch and not (
        state.fingerprint == made_with
        and state.is_of_now
        and names.of_epoch(dual=state.is_dual).keys() <= milvus.collections()
    ):
        drop_epoch(milvus, names, library.records, state.epoch)
        _forget(library)
    library.look_again()
    if not library.state().epoch:
        if not current.epoch:
            library.records.require_unused()
        epoch = create_epoch(milvus, names.prefix, made_with)
        write_state(milvus, library.names, LibraryState(epoch, made_with), "moving")
        library.look_again()
    milvus.create(library.names.metadata, METADATA)


def finish(
    library: MilvusLibrary,
    current: LibraryState,
    history: HistoryRows,
    lasting: Lasting,
    record: Callable[[PaperStore], None],
) -> None:
    """Make the epoch that was filled the current one; see StoreBackend.finish_move. Each step may be done again."""
    milvus, state = library.milvus, library.state()
    names = Names(library.names.prefix)
    if current.epoch:
        milvus.write(
            names.store, [{"key": _REPLACES, "value": f"{current.epoch} {current.statistics} {current.outdated}"}]
        )
        forget_state(milvus, names, "current")
    library.records.write_library(about(state.epoch, state.fingerprint))
    for row in list(milvus.rows_of(names.store, "key", [_REPLACES], ["value"], strong=True)):
        epoch, *statistics = str(row["value"]).split()
        drop_epoch(milvus, names, library.records, epoch)
        for key in statistics:
            delete_text(milvus, names, key)
    _replace_shared(library, names)
    _replace_lasting(library, history, lasting)
    record(library)
    write_state(milvus, names, state, "current")
    _forget(library)
    library.is_current()
    drop_unused(milvus, names, library.records, used={state.epoch})


def _replace_shared(library: MilvusLibrary, names: Names) -> None:
    """Let the failures and the metadata that were moved take the place of those that are there."""
    milvus, moving = library.milvus, library.names
    library.create_shared()
    rows = list(milvus.rows(names.store, f'key like "{moving.failures}%"', ["key", "value"], strong=True))
    milvus.delete(names.store, f'key like "{names.failures}%"')
    milvus.write(
        names.store,
        [{**row, "key": names.failures + str(row["key"]).removeprefix(moving.failures)} for row in rows],
    )
    rows = list(milvus.rows(moving.metadata, 'key >= ""', list(METADATA), strong=True))
    milvus.delete(names.metadata, 'key >= ""')
    milvus.write(names.metadata, rows)
    library.records.drop_metadata()
    for paper in library.described():
        said: dict[str, Any] = {
            name: to_json(each) for name, each in library.metadata_layers(paper).items() if name != "pdf"
        }
        library.records.write_metadata(paper, said)


def _replace_lasting(library: MilvusLibrary, history: HistoryRows, lasting: Lasting) -> None:
    """Let what outlives papers take the place of what is there."""
    milvus, names = library.milvus, library.names
    for name in {names.history, names.works} & milvus.collections():
        milvus.drop(name)
    milvus.delete(names.store, f'key == "{WORKS_STAMP}"')
    history_copy.keep_all(history, lasting.asked)
    with library.changing_works() as database:
        works.insert_rows(database, lasting.works)


def _forget(library: MilvusLibrary) -> None:
    """Nothing is being moved any more."""
    if library.state().epoch:
        library.milvus.drop(library.names.metadata)
    forget_state(library.milvus, Names(library.names.prefix), "moving")
