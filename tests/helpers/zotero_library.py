"""A Zotero data folder made by hand: the tables as Zotero 5 to 7 has them, and the stored files."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The columns that matter; SQLite keeps any value in any of them.
SCHEMA = """
CREATE TABLE version (schema TEXT PRIMARY KEY, version INT NOT NULL);
CREATE TABLE libraries (libraryID INTEGER PRIMARY KEY, type TEXT NOT NULL);
CREATE TABLE groups (groupID INTEGER PRIMARY KEY, libraryID INT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL, dateAdded TIMESTAMP, dateModified TIMESTAMP,
    libraryID INT NOT NULL, key TEXT NOT NULL, version INT NOT NULL DEFAULT 0);
CREATE TABLE itemAttachments (itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT, contentType TEXT, path TEXT);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT UNIQUE);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID));
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE itemCreators (itemID INT NOT NULL, creatorID INT NOT NULL, creatorTypeID INT NOT NULL,
    orderIndex INT NOT NULL);
CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT NOT NULL, parentCollectionID INT,
    libraryID INT NOT NULL, key TEXT NOT NULL);
CREATE TABLE collectionItems (collectionID INT NOT NULL, itemID INT NOT NULL, orderIndex INT NOT NULL DEFAULT 0);
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE itemTags (itemID INT NOT NULL, tagID INT NOT NULL, type INT NOT NULL);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE deletedCollections (collectionID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP);
"""
# Since Zotero 6
ANNOTATIONS = """
CREATE TABLE IF NOT EXISTS itemAnnotations (itemID INTEGER PRIMARY KEY, parentItemID INT NOT NULL,
    type INTEGER NOT NULL, authorName TEXT, text TEXT, comment TEXT, color TEXT, pageLabel TEXT,
    sortIndex TEXT NOT NULL, position TEXT NOT NULL, isExternal INT NOT NULL);
"""
HIGHLIGHT, NOTE, IMAGE, INK, UNDERLINE = 1, 2, 3, 4, 5
USER, GROUP, FEED = 1, 2, 3  # libraries; the group's own number is 12
PDF = "application/pdf"
_ALPHABET = "23456789ABCDEFGHIJKLMNPQRSTUVWXYZ"


def key_of(number: int) -> str:
    """A key of eight letters and digits."""
    digits = ""
    for _ in range(8):
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    return digits


class MadeZotero:
    """A data folder to fill. Nothing is on disk for others to see before `save`."""

    def __init__(self, folder: Path, version: Any = 120) -> None:
        self.folder = folder
        self.database = folder / "zotero.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        self.sqlite = sqlite3.connect(self.database)
        self.sqlite.executescript(SCHEMA)
        self.sqlite.execute("INSERT INTO version VALUES ('userdata', ?)", (version,))
        self.sqlite.executemany("INSERT INTO libraries VALUES (?, ?)", [(1, "user"), (2, "group"), (3, "feed")])
        self.sqlite.execute("INSERT INTO groups VALUES (12, 2, 'The lab')")
        self._last = 0
        self._ids: dict[tuple[str, Any], int] = {}

    def save(self) -> MadeZotero:
        self.sqlite.commit()
        return self

    def close(self) -> None:
        self.sqlite.commit()
        self.sqlite.close()

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _id(self, table: str, value: Any) -> int:
        """The number of a name in a table of names."""
        known = self._ids.get((table, value))
        if known is None:
            known = self._ids[table, value] = self._new()
            self.sqlite.execute(f"INSERT INTO {table} VALUES (?, ?)", (known, value))
        return known

    def key(self, item: int) -> str:
        return key_of(item)

    def item(
        self,
        kind: str = "journalArticle",
        creators: Sequence[tuple[Any, ...]] = (),
        tags: Sequence[Any] = (),
        collections: Sequence[int] = (),
        library: int = USER,
        **fields: Any,
    ) -> int:
        """An item; creators are (role, first name, last name) or (role, single name), in order."""
        item = self._new()
        kind_id = self._id("itemTypes", kind)
        self.sqlite.execute(
            "INSERT INTO items (itemID, itemTypeID, libraryID, key) VALUES (?, ?, ?, ?)",
            (item, kind_id, library, self.key(item)),
        )
        for name, value in fields.items():
            self.set_field(item, name, value)
        for order, (role, *names) in enumerate(creators):
            creator = self._new()
            first, last, mode = ("", names[0], 1) if len(names) == 1 else (*names, 0)
            self.sqlite.execute("INSERT INTO creators VALUES (?, ?, ?, ?)", (creator, first, last, mode))
            role_id = self._id("creatorTypes", role)
            self.sqlite.execute("INSERT INTO itemCreators VALUES (?, ?, ?, ?)", (item, creator, role_id, order))
        for place, name in enumerate(tags):
            self.sqlite.execute("INSERT INTO itemTags VALUES (?, ?, ?)", (item, self._id("tags", name), place % 2))
        for collection in collections:
            self.put(item, collection)
        return item

    def set_field(self, item: int, name: str, value: Any) -> None:
        value_id = self._new()
        self.sqlite.execute("INSERT INTO itemDataValues VALUES (?, ?)", (value_id, value))
        field = self._id("fields", name)
        self.sqlite.execute("INSERT OR REPLACE INTO itemData VALUES (?, ?, ?)", (item, field, value_id))

    def attach(
        self,
        parent: int | None,
        path: Any = "storage:paper.pdf",
        content: bytes | None = None,
        link_mode: Any = 0,
        library: int = USER,
        content_type: str = PDF,
    ) -> str:
        """An attachment, stored with this content if any; returns its key."""
        item = self.item("attachment", library=library)
        key = self.key(item)
        row = (item, parent, link_mode, content_type, path)
        self.sqlite.execute("INSERT INTO itemAttachments VALUES (?, ?, ?, ?, ?)", row)
        if content is not None:
            stored = self.folder / "storage" / key / path.removeprefix("storage:")
            stored.parent.mkdir(parents=True)
            stored.write_bytes(content)
        return key

    def annotate(
        self,
        attachment: str,
        words: Any = None,
        *,
        page: Any = 1,
        comment: Any = None,
        colour: Any = "#ffd400",
        kind: Any = HIGHLIGHT,
        rects: Any = ((72, 700, 300, 712),),
        tags: Sequence[Any] = (),
        offset: int = 0,
        library: int = USER,
        position: Any = None,
    ) -> str:
        """An annotation of an attachment, on a page from 1; returns its key."""
        self.sqlite.executescript(ANNOTATIONS)
        item = self.item("annotation", tags=tags, library=library)
        times = "2024-05-06 07:08:09", "2024-06-07 08:09:10", item
        self.sqlite.execute("UPDATE items SET dateAdded = ?, dateModified = ? WHERE itemID = ?", times)
        place = json.dumps({"pageIndex": page - 1, "rects": rects}) if position is None else position
        order = f"{page - 1 if position is None else 0:05}|{offset:06}|00100"
        row = (item, self.id_of(attachment), kind, "", words, comment, colour, "", order, place, 0)
        self.sqlite.execute(f"INSERT INTO itemAnnotations VALUES ({', '.join('?' * len(row))})", row)
        return self.key(item)

    def id_of(self, key: str) -> int:
        (found,) = self.sqlite.execute("SELECT itemID FROM items WHERE key = ?", (key,)).fetchone()
        return int(found)

    def collection(self, name: Any, above: Any = None, library: int = USER) -> int:
        collection = self._new()
        row = (collection, name, above, library, self.key(collection))
        self.sqlite.execute("INSERT INTO collections VALUES (?, ?, ?, ?, ?)", row)
        return collection

    def put(self, item: int, collection: int) -> None:
        self.sqlite.execute("INSERT INTO collectionItems (collectionID, itemID) VALUES (?, ?)", (collection, item))

    def trash(self, item: int) -> None:
        self.sqlite.execute("INSERT INTO deletedItems (itemID) VALUES (?)", (item,))

    def erase(self, key: str) -> None:
        """Delete an attachment for good, as when the trash is emptied."""
        self.sqlite.executescript(ANNOTATIONS)
        item = self.id_of(key)
        for table in ("deletedItems", "itemAttachments", "itemAnnotations", "items"):
            self.sqlite.execute(f"DELETE FROM {table} WHERE itemID = ?", (item,))


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Everything in a folder: path -> time of the last change, and a hash of the content."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted([folder, *folder.rglob("*")])
    }
