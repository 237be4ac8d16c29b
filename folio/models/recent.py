"""Remembers what a model made of the texts that it saw last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class Recent(Generic[Key, Made]):
    """What was made for the keys that were used last; threads may share it.

    lru_cache cannot do this: what is new is made in one batch, and the limit may be of another size than a number.
    """

    def __init__(self, most: int, size: Callable[[Made], int] = lambda made: 1) -> None:
        """most: the sum of the sizes of all that is kept."""
        self._most = most
        self._size = size
        self._kept = OrderedDict[Key, Made]()  # the most recently used last
        self._lock = threading.Lock()

    def get(self, keys: Sequence[Key], make: Callable[[list[Key]], Sequence[Made]]) -> list[Made]:
        """What belongs to each key. make: called without the lock, for the keys that are not kept, each once."""
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
        if new := [key for key in dict.fromkeys(keys) if key not in known]:
            known.update(zip(new, make(new), strict=True))
        with self._lock:
            for key in keys:
                self._kept[key] = known[key]
                self._kept.move_to_end(key)
            while sum(map(self._size, self._kept.values())) > self._most:
                self._kept.popitem(last=False)
        return [known[key] for key in keys]
