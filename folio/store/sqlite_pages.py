"""Reads records out of an SQLite file page by page, without SQLite: what still stands in a damaged file.

The format is documented at https://www.sqlite.org/fileformat.html. Every page that looks like one with records is read
for itself, so that a damaged header, schema or inner page hides no other page. Which table a record belongs to is not
known. Deleted records do not come back: Folio has SQLite overwrite them (secure_delete).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

# Types of pages with records: the leaf of a table; leaf and inner page of an index or of a table without row ids
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x0A, 0x02
_DEFAULT_PAGE = 4096
# Bytes of the header of the file, of its write-ahead log, and of a frame in the log
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
_NUMBERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # serial type of an integer -> its bytes

Value = int | float | str | bytes | None


def records(path: Path) -> Iterator[tuple[int | None, list[Value]]]:
    """The records of a file and its write-ahead log that can be read: the row id, or None, and the values."""
    content = path.read_bytes() if path.exists() else b""
    log_path = path.with_name(f"{path.name}-wal")
    log = log_path.read_bytes() if log_path.exists() else b""
    size = _page_size(content, log)
    pages = {number: content[at : at + size] for number, at in enumerate(range(0, len(content), size), 1)}
    pages |= _logged_pages(log, size)
    for number, page in pages.items():
        yield from _records_of(pages, number, page)


def _page_size(content: bytes, log: bytes) -> int:
    """From the header of the file or, if that is damaged, of its log; a power of two from 512 to 65,536."""
    in_file = int.from_bytes(content[16:18], "big")
    in_log = int.from_bytes(log[8:12], "big")
    sizes = (65_536 if in_file == 1 else in_file, in_log)
    return next((size for size in sizes if 512 <= size <= 65_536 and size & (size - 1) == 0), _DEFAULT_PAGE)


def _logged_pages(log: bytes, size: int) -> dict[int, bytes]:
    """Page number -> its content, for what was committed to the write-ahead log."""
    committed: dict[int, bytes] = {}
    begun: dict[int, bytes] = {}
    salt = log[16:24]
    for at in range(_LOG_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        number, pages_after_commit = struct.unpack(">II", log[at : at + 8])
        if log[at + 8 : at + 16] != salt:  # left from before the log began anew
            break
        begun[number] = log[at + _FRAME_HEADER : at + _FRAME_HEADER + size]
        if pages_after_commit:
            committed |= begun
            begun = {}
    return committed


def _records_of(pages: dict[int, bytes], number: int, page: bytes) -> Iterator[tuple[int | None, list[Value]]]:
    start = _FILE_HEADER if number == 1 else 0
    if len(page) < start + 8 or page[start] not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INNER):
        return
    header = 12 if page[start] == _INDEX_INNER else 8
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for place in range(count):
        pointer = start + header + 2 * place
        at = int.from_bytes(page[pointer : pointer + 2], "big")
        try:
            yield _record(pages, page, page[start], at)
        except (ValueError, IndexError, LookupError, struct.error):
            continue  # one cell that cannot be read hides no other


def _record(pages: dict[int, bytes], page: bytes, kind: int, at: int) -> tuple[int | None, list[Value]]:
    """The record of the cell at this offset. Raises ValueError, LookupError or struct.error."""
    if kind == _INDEX_INNER:
        at += 4  # the page of the smaller keys
    length, at = _varint(page, at)
    row = None
    if kind == _TABLE_LEAF:
        row, at = _varint(page, at)
    payload = _payload(pages, page, at, length, is_table=kind == _TABLE_LEAF)
    header_end, place = _varint(payload, 0)
    types = []
    while place < header_end:
        serial_type, place = _varint(payload, place)
        types.append(serial_type)
    values = []
    for serial_type in types:
        value, place = _value(payload, place, serial_type)
        values.append(value)
    if place != length:
        raise ValueError("a record does not have the length that it states")
    return row, values


def _payload(pages: dict[int, bytes], page: bytes, at: int, length: int, *, is_table: bool) -> bytes:
    """The bytes of a record, with those that lie on overflow pages. Raises LookupError for a missing page."""
    size = len(page)
    most = size - 35 if is_table else (size - 12) * 64 // 255 - 23
    if length <= most:
        return page[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    local = least + (length - least) % (size - 4)
    local = local if local <= most else least
    payload = page[at : at + local]
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while len(payload) < length:
        overflow = pages[following]
        payload += overflow[4 : 4 + length - len(payload)]
        following = int.from_bytes(overflow[:4], "big")
        if not following and len(payload) < length:
            raise ValueError("a record is cut short")
    return payload


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the offset after it."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | data[place] & 0x7F
        if data[place] < 0x80:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9


def _value(data: bytes, at: int, serial_type: int) -> tuple[Value, int]:
    """A value of a record, and the offset after it. Raises ValueError."""
    if serial_type in (8, 9):
        return serial_type - 8, at
    if serial_type == 0:
        return None, at
    length = _NUMBERS.get(serial_type, 8) if serial_type < 12 else (serial_type - 12) // 2
    part = data[at : at + length]
    if len(part) < length or serial_type in (10, 11):
        raise ValueError("a record is cut short")
    if serial_type == 7:
        return float(struct.unpack(">d", part)[0]), at + length
    if serial_type < 12:
        return int.from_bytes(part, "big", signed=True), at + length
    return (part if serial_type % 2 == 0 else part.decode()), at + length
