"""Reads rows out of a damaged SQLite file, without SQLite: each page on its own, whatever happened to the others.

SQLite finds rows through the schema and interior pages; if those are damaged, it finds none. But every row of a table
lies in some leaf page with all its values, and the rest of a long row in a chain of overflow pages, so that the leaf
pages are enough. Format: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

Value = None | int | float | str | bytes

_HEADER_BYTES = 100  # of the file, at the start of page 1
_WAL_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_TABLE_LEAF = 0x0D
_USUAL_PAGE_SIZE = 4096
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # by serial type


def leaf_rows(path: Path) -> Iterator[tuple[int, tuple[Value, ...]]]:
    """The rowid and the values of every row that can be read, of all tables; the path's "-wal" file is read too.

    They come page by page. An INTEGER PRIMARY KEY is None in them: it is the rowid. Nothing says which table a row is
    of, nor that its values are what was written: the caller knows by their digest.
    """
    with closing(_Pages(path)) as file:
        free = file.free_pages()
        for number in range(1, file.count + 1):
            if number not in free:
                yield from file.rows(number)


class _Pages:
    """The pages of a database file, those in its write-ahead log instead of older ones."""

    def __init__(self, path: Path) -> None:
        self._data = _mapped(path)
        wal = path.with_name(path.name + "-wal")
        self._wal = _mapped(wal)
        self._size = _page_size(self._data[16:18], self._wal[8:12])
        self._usable = self._size  # Folio reserves no space in its pages
        self._newer = self._wal_frames()
        self.count = max(len(self._data) // self._size, *self._newer, 0)

    def close(self) -> None:
        """Unmap the files: Windows lets a mapped file be neither renamed nor deleted."""
        for data in (self._data, self._wal):
            if isinstance(data, mmap.mmap):
                data.close()

    def _wal_frames(self) -> dict[int, int]:
        """Page number -> where its newest committed content begins in the write-ahead log."""
        newest: dict[int, int] = {}
        uncommitted: dict[int, int] = {}
        # Those of the first frame: a frame with others was left from before the last checkpoint.
        salts = self._wal[_WAL_HEADER_BYTES + 8 : _WAL_HEADER_BYTES + 16]
        step = _FRAME_HEADER_BYTES + self._size
        for start in range(_WAL_HEADER_BYTES, len(self._wal) - step + 1, step):
            number, committed = struct.unpack_from(">II", self._wal, start)
            if self._wal[start + 8 : start + 16] != salts:
                break
            if 0 < number <= (len(self._data) + len(self._wal)) // self._size:
                uncommitted[number] = start + _FRAME_HEADER_BYTES
            if committed:
                newest |= uncommitted
                uncommitted.clear()
        return newest

    def page(self, number: int) -> bytes:
        if number in self._newer:
            return self._wal[self._newer[number] : self._newer[number] + self._size]
        return self._data[(number - 1) * self._size : number * self._size]

    def free_pages(self) -> frozenset[int]:
        """The pages that hold nothing, or what was deleted."""
        found: set[int] = set()
        trunk = _number(self.page(1)[32:36])
        while 0 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self.page(trunk)
            leaves = min(_number(page[4:8]), (self._size - 8) // 4)
            found.update(struct.unpack_from(f">{leaves}I", page, 8))
            trunk = _number(page[:4])
        return frozenset(found)

    def rows(self, number: int) -> Iterator[tuple[int, tuple[Value, ...]]]:
        page = self.page(number)
        header = _HEADER_BYTES if number == 1 else 0
        if len(page) < self._size or page[header] != _TABLE_LEAF:
            return
        cells = min(int.from_bytes(page[header + 3 : header + 5], "big"), self._size // 4)
        for cell in struct.unpack_from(f">{cells}H", page, header + 8):
            try:
                yield self._row(page, cell)
            except (ValueError, IndexError, struct.error):  # damaged: the others are not concerned
                continue

    def _row(self, page: bytes, cell: int) -> tuple[int, tuple[Value, ...]]:
        size, at = _varint(page, cell)
        rowid, at = _varint(page, at)
        return _signed(rowid), _values(self._payload(page, at, size))

    def _payload(self, page: bytes, start: int, size: int) -> bytes:
        """The bytes of a row, from its leaf page and its overflow pages."""
        if size > self.count * self._size:
            raise ValueError("longer than the file")
        local_limit = self._usable - 35
        local = size
        if size > local_limit:
            smallest = (self._usable - 12) * 32 // 255 - 23
            local = smallest + (size - smallest) % (self._usable - 4)
            local = local if local <= local_limit else smallest
        parts = [page[start : start + local]]
        missing, following = size - local, _number(page[start + local : start + local + 4])
        while missing > 0:
            if not 0 < following <= self.count:
                raise ValueError("a chain of pages ends too early")
            overflow = self.page(following)
            parts.append(overflow[4 : 4 + min(missing, self._usable - 4)])
            missing -= self._usable - 4
            following = _number(overflow[:4])
        return b"".join(parts)


def _mapped(path: Path) -> mmap.mmap | bytes:
    """The content of a file, which may be larger than memory; empty if there is none."""
    if not path.exists() or not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _page_size(in_file: bytes, in_wal: bytes) -> int:
    """From the headers of the file and its log, if one of them has a size that there is."""
    for size in (_number(in_file), _number(in_wal)):
        size = 65536 if size == 1 else size
        if 512 <= size <= 65536 and size & (size - 1) == 0:
            return size
    return _USUAL_PAGE_SIZE


def _values(record: bytes) -> tuple[Value, ...]:
    header_end, at = _varint(record, 0)
    body, values = header_end, list[Value]()
    while at < header_end:
        kind, at = _varint(record, at)
        size = _INTEGER_BYTES.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        content = record[body : body + size]
        if len(content) < size:
            raise ValueError("a value ends too early")
        values.append(_value(kind, content))
        body += size
    return tuple(values)


def _value(kind: int, content: bytes) -> Value:
    if kind == 0:
        return None
    if kind in _INTEGER_BYTES:
        return int.from_bytes(content, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", content)[0])
    if kind in (8, 9):
        return kind - 8
    if kind < 12:
        raise ValueError("an unknown type")
    return content.decode() if kind % 2 else content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and where it ends. Raises IndexError."""
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
