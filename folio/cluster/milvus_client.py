"""A connection to Milvus: rows in and out of collections. The one module that imports pymilvus."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from folio.errors import FolioError, StoreBusy, StoreError
from folio.types import Vectors

Row = dict[str, Any]
# "key" and "id" are texts and numbers that rows are looked up by
Kind = Literal["key", "id", "text", "number", "vector", "tokens"]

# Bytes in a text field, Milvus's own limit; and of a key
MOST_BYTES, KEY_BYTES = 65_535, 200
# Rows that one request reads or writes, and ids in one filter
BATCH = 500
# Results that one search may have, Milvus's own limit
MOST_RESULTS = 16_384
# How many neighbours HNSW keeps in mind, at least (its parameter ef): with 36, 20 random vectors of 600 were found at a
# recall of 0.985.
_EF = 200
# What a row of a collection that is not searched has for the vector that Milvus asks of each
_NO_VECTOR = [1.0, 0.0]
_MISSING = "Install them: pip install -r requirements-cluster.txt, or pip install 'folio-papers[cluster]'."


class MissingCollection(StoreError):
    """A request named a collection that is not there."""


class Milvus:
    """A server, or a file of Milvus Lite. Thread-safe. Raises StoreError and its subclasses, never pymilvus's own."""

    def __init__(self, uri: str, token: str, timeout_s: float) -> None:
        """uri: http://host:19530, or the path of a file, ending in .db, for Milvus Lite in this process."""
        self.uri = uri
        self.is_lite = "://" not in uri
        self._timeout_s = timeout_s
        try:
            with _only_what_is_passed():
                import pymilvus
                import scipy.sparse  # noqa: F401 - pymilvus does when it is first used; two threads at once would fail

                if self.is_lite:
                    import milvus_lite  # noqa: F401
        except ImportError as error:
            raise StoreError(f"STORE=milvus needs packages that are not installed: {error.name}.", _MISSING) from error
        self._loaded: set[str] = set()
        for logger in ("pymilvus", "milvus_lite"):  # what went wrong is said once, as an error
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
        self._types = pymilvus.DataType
        self._function = pymilvus.Function(
            "bm25", pymilvus.FunctionType.BM25, input_field_names=["body"], output_field_names=["sparse"]
        )
        with self._errors():
            if self.is_lite:
                Path(uri).parent.mkdir(parents=True, exist_ok=True)
            self._client = pymilvus.MilvusClient(uri, token=token, timeout=timeout_s)
        if self.is_lite:
            Path(uri).chmod(0o700)

    # Collections

    def collections(self) -> set[str]:
        """The names of all collections."""
        with self._errors():
            return set(self._client.list_collections(timeout=self._timeout_s))

    def create(self, name: str, fields: Mapping[str, Kind], dimension: int = 0) -> None:
        """Create a collection; the first field is its key. dimension: of its field `vector`, where it has one.

        A field of kind "tokens" must be named `body`: Milvus makes the sparse vectors of BM25 of it.
        """
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        indexes = self._client.prepare_index_params()
        types = self._types
        for place, (field, kind) in enumerate(fields.items()):
            if kind in ("number", "id"):
                schema.add_field(field, types.INT64, is_primary=not place)
            elif kind == "vector":
                schema.add_field(field, types.FLOAT_VECTOR, dim=dimension)
                graph = {"M": 16, "efConstruction": 200}
                indexes.add_index(field, index_type="HNSW", metric_type="COSINE", params=graph)
            elif kind == "tokens":
                # Lite has no whitespace tokenizer; the words in `body` are made so that both split them alike.
                analyzer = {"tokenizer": "standard" if self.is_lite else "whitespace"}
                text = {"max_length": MOST_BYTES, "enable_analyzer": True, "analyzer_params": analyzer}
                schema.add_field(field, types.VARCHAR, **text)
                schema.add_field("sparse", types.SPARSE_FLOAT_VECTOR)
                schema.add_function(self._function)
                weights = {"bm25_k1": 1.2, "bm25_b": 0.75}  # as in tantivy
                indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=weights)
            else:
                bytes_ = KEY_BYTES if kind == "key" else MOST_BYTES
                schema.add_field(field, types.VARCHAR, max_length=bytes_, is_primary=not place)
            if kind in ("key", "id") and place:
                indexes.add_index(field, index_type="INVERTED")
        if "vector" not in fields.values():
            schema.add_field("nothing", types.FLOAT_VECTOR, dim=len(_NO_VECTOR))
            indexes.add_index("nothing", index_type="FLAT", metric_type="COSINE")
        with self._errors():
            # One shard: all rows of one request become visible at once.
            self._client.create_collection(
                name, schema=schema, num_shards=1, consistency_level="Bounded", timeout=self._timeout_s
            )
            # Of an empty collection: nothing to wait for
            self._client.create_index(name, indexes, sync=False, timeout=self._timeout_s)

    def create_missing(self, name: str, fields: Mapping[str, Kind]) -> None:
        """Create a collection unless it is there, or another server creates it at the same time."""
        try:
            if name not in self.collections():
                self.create(name, fields)
        except StoreError:
            if name not in self.collections():
                raise

    def _load(self, name: str) -> None:
        """Have a collection ready to be read: Milvus Lite forgets at its end which ones were."""
        if name not in self._loaded:
            with self._errors():
                self._client.load_collection(name, timeout=self._timeout_s)
            self._loaded.add(name)

    def drop(self, name: str) -> None:
        """Drop a collection, if it is there."""
        self._loaded.discard(name)
        with self._errors():
            self._client.drop_collection(name, timeout=self._timeout_s)

    def dimension(self, name: str) -> int:
        """The dimension of the field `vector` of a collection."""
        with self._errors():
            found = self._client.describe_collection(name, timeout=self._timeout_s)
        dimensions = [field["params"]["dim"] for field in found["fields"] if field["name"] == "vector"]
        return int(dimensions[0]) if dimensions else 0

    def flush(self, name: str) -> None:
        """Have everything written to disk and indexed."""
        with self._errors():
            self._client.flush(name)

    # Rows

    def write(self, name: str, rows: Sequence[Row], *, is_searched: bool = False) -> None:
        """Insert rows or replace those with the same keys; at most BATCH rows become visible at once.

        is_searched: whether they have a vector.
        """
        whole = rows if is_searched else [{**row, "nothing": _NO_VECTOR} for row in rows]
        for at in range(0, len(whole), BATCH):
            with self._errors():
                self._client.upsert(name, list(whole[at : at + BATCH]), timeout=self._timeout_s)

    def delete(self, name: str, where: str) -> None:
        """Delete the rows that a filter finds."""
        self._load(name)
        with self._errors():
            self._client.delete(name, filter=where, timeout=self._timeout_s)

    def delete_of(self, name: str, field: str, values: Iterable[str]) -> None:
        """Delete the rows in which a field has one of these values."""
        wanted = sorted(values)
        for at in range(0, len(wanted), BATCH):
            self.delete(name, one_of(field, wanted[at : at + BATCH]))

    def rows(self, name: str, where: str, fields: Sequence[str], *, strong: bool = False) -> Iterator[Row]:
        """The rows that a filter finds, in no order. strong: wait until all that was written before is seen."""
        self._load(name)
        asked = {
            "filter": where,
            "output_fields": list(fields),
            "consistency_level": "Strong" if strong else "Bounded",
            "timeout": self._timeout_s,
        }
        with self._errors():
            first = self._client.query(name, limit=BATCH + 1, **asked)
        if len(first) <= BATCH:
            yield from map(dict, first)
            return
        with self._errors():
            found = self._client.query_iterator(name, batch_size=BATCH, **asked)
        try:
            while True:
                with self._errors():
                    batch = found.next()
                if not batch:
                    return
                yield from (dict(row) for row in batch)
        finally:
            found.close()

    def rows_of(
        self, name: str, field: str, values: Iterable[str | int], fields: Sequence[str], *, strong: bool = False
    ) -> Iterator[Row]:
        """The rows in which a field has one of these values."""
        wanted = sorted(set(values), key=str)
        for at in range(0, len(wanted), BATCH):
            yield from self.rows(name, one_of(field, wanted[at : at + BATCH]), fields, strong=strong)

    def search(self, name: str, query: Vectors | str, limit: int, where: str, fields: Sequence[str]) -> list[Row]:
        """The rows nearest to a vector, or best for words by BM25, best first, each with its `score`.

        The score of a vector is its cosine.
        """
        self._load(name)
        words = isinstance(query, str)
        with self._errors():
            (found,) = self._client.search(
                name,
                data=[query if isinstance(query, str) else query.tolist()],
                anns_field="sparse" if words else "vector",
                limit=min(limit, MOST_RESULTS),
                filter=where,
                output_fields=list(fields),
                search_params={"params": {} if words else {"ef": max(_EF, limit)}},
                timeout=self._timeout_s,
            )
        return [{**hit["entity"], "score": float(hit["distance"])} for hit in found]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What pymilvus raises, as Folio's errors."""
        try:
            yield
        except FolioError:
            raise
        except Exception as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> StoreError:
        said = " ".join(str(getattr(error, "message", "") or error).split())[:200]
        if re.search(r"unauthenticated|auth check|permission.?denied|privilege|api.?key", _whole(error), re.I):
            return StoreError(
                f"Milvus at {self.uri} refused MILVUS_TOKEN.",
                "Set MILVUS_TOKEN to USER:PASSWORD or to an API key that may use this database.",
            )
        if re.search(r"collection not found|can.t find collection|collection .*not (exist|found)", said, re.I):
            return MissingCollection(
                f"A collection of the library is missing in Milvus at {self.uri}: {said}.",
                "Run `python ingest.py --repair --yes`, which makes all collections again from RECORDS_URI.",
            )
        if self.is_lite and "Open local milvus" in said:
            return StoreBusy(
                f"{self.uri} cannot be opened: another process is using it, or Milvus Lite did not write it.",
                "End that process, or set MILVUS_URI to another file; several processes need a Milvus server.",
            )
        if re.search(r"connect|unavailable|deadline|timed? ?out|retry", said, re.I):
            return StoreError(
                f"Milvus at {self.uri} does not answer.",
                "Check MILVUS_URI, and that the server is running; then run the same command again.",
            )
        return StoreError(
            f"Milvus at {self.uri} failed: {said}.", "Run the same command again; the server's log may say more."
        )


@contextmanager
def _only_what_is_passed() -> Iterator[None]:
    """Inside, pymilvus can be imported: it would read a .env above its folder, and fail for MILVUS_URI as a path."""
    mine = [name for name in os.environ if name.startswith("MILVUS_")]
    hidden = {name: os.environ.pop(name) for name in mine}
    disabled = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        yield
    finally:
        os.environ |= hidden
        del os.environ["PYTHON_DOTENV_DISABLED"]
        if disabled is not None:
            os.environ["PYTHON_DOTENV_DISABLED"] = disabled


def _whole(error: BaseException) -> str:
    """What an error says, and those that led to it. pymilvus raises errors from themselves."""
    found = {id(error): error}
    while (cause := error.__cause__ or error.__context__) is not None and id(cause) not in found:
        found[id(cause)] = error = cause
    contexts = [each.__context__ for each in found.values() if each.__context__ is not None]
    return " ".join(map(str, (*found.values(), *contexts)))


def one_of(field: str, values: Iterable[str | int]) -> str:
    """A filter: the field has one of these values. Its texts must be keys, of letters, digits and plain signs."""
    return f"{field} in [{', '.join(json.dumps(value) for value in values)}]"


def is_key(value: str) -> bool:
    """Whether a text can stand in a filter, and be the name of a file."""
    return re.fullmatch(r"\w[\w.-]{0,149}", value, re.ASCII) is not None
