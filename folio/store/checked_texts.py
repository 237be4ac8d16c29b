"""Keeps the texts of papers in memory that were compared with their digests."""

from __future__ import annotations

# Characters of text that are kept in memory once they have been checked; a longer text is kept alone
_TEXTS_KEPT = 2**22


class CheckedTexts:
    """The texts of papers that were used last, by paper and CRC."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, int], str] = {}  # the last used at the end
        self._size = 0

    def get(self, key: tuple[str, int]) -> str | None:
        text = self._texts.pop(key, None)
        if text is not None:
            self._texts[key] = text
        return text

    def add(self, key: tuple[str, int], text: str) -> None:
        self._texts[key] = text
        self._size += len(text)
        while self._size > _TEXTS_KEPT and len(self._texts) > 1:
            self._size -= len(self._texts.pop(next(iter(self._texts))))
