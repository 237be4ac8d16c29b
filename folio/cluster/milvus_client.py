"""A connection to Milvus: rows in and out of collections. The one module that imports pymilvus."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Literal, TypeVar

from folio.cluster import lite_files
from folio.cluster.milvus_errors import AlreadyThere, MissingCollection, NoAnswer, NotLoaded, UnknownError, translated
from folio.cluster.milvus_filters import one_of
from folio.errors import FolioError, StoreError
from folio.types import Vectors

T = TypeVar("T")
Row = dict[str, Any]
# "key" and "id" are texts and numbers that rows are looked up by, "keys" several such texts
Kind = Literal["key", "keys", "id", "text", "number", "vector", "tokens"]

# Bytes in a text field, Milvus's own limit; and of a key
MOST_BYTES, KEY_BYTES = 65_535, 200
# Keys in a field of them, Milvus's own limit
_MOST_KEYS = 4_096
# Rows that one request reads or writes, and ids in one filter
BATCH = 500
# Results that one search may have, Milvus's own limit
MOST_RESULTS = 16_384
# How many neighbours a search keeps in mind, at least (ef of HNSW, search_list of DISKANN): with 36, HNSW found 20
# random vectors of 600 at a recall of 0.985.
_EFFORT = 200
# Bytes of vectors and their graph up to which a collection gets HNSW, which a query node holds in memory: some 10
# million passages of 768 numbers, 20 million of 384. DISKANN keeps most of it on its disk.
HNSW_BYTES = 2**35
# Bytes of the graph for each vector: 2 M edges of 4 bytes with M of 16, and its upper layers
_EDGE_BYTES = 160
# What a row of a collection that is not searched has for the vector that Milvus asks of each
_NO_VECTOR = [1.0, 0.0]
# Requests after which Milvus Lite writes a collection to its disk: for each question, it copies all rows that are not
_FLUSH_AFTER = 200
# Seconds before a request is repeated, at first and at most
_WAIT_S, _MOST_WAIT_S = 0.1, 2.0
# Milliseconds between attempts to connect; gRPC's own two minutes would keep readers from a server that is back
_RECONNECT = {"grpc.initial_reconnect_backoff_ms": 200, "grpc.max_reconnect_backoff_ms": 1_000}
# Milvus Lite opens a collection twice for two threads that ask for it first, and what one of them writes is lost. So
# its requests follow one another.
_LITE = Lock()
_MISSING = "Install them: pip install -r requirements-cluster.txt, or pip install 'folio-papers[cluster]'."


class Milvus:
    """A server, or a file of Milvus Lite. Thread-safe. Raises StoreError and its subclasses, never pymilvus's own."""

    def __init__(self, uri: str, token: str, timeout_s: float) -> None:
        """uri: http://host:19530, or the path of a file, ending in .db, for Milvus Lite in this process."""
        self.uri = uri
        self.is_lite = "://" not in uri
        self._timeout_s = timeout_s
        self._turn: AbstractContextManager[object] = _LITE if self.is_lite else nullcontext()
        try:
            with _only_what_is_passed():
                import pymilvus
                import scipy.sparse  # noqa: F401 - pymilvus does when it is first used; two threads at once would fail

                if self.is_lite:
                    import milvus_lite  # noqa: F401
        except ImportError as error:
            raise StoreError(f"STORE=milvus needs packages that are not installed: {error.name}.", _MISSING) from error
        self._loaded: set[str] = set()
        self._upserts = Counter[str]()  # requests, by collection
        self._index_types: dict[str, str] = {}  # of the field `vector`, by collection
        for logger in ("pymilvus", "milvus_lite"):  # what went wrong is said once, as an error
            logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
        self._types = pymilvus.DataType
        self._function = pymilvus.Function(
            "bm25", pymilvus.FunctionType.BM25, input_field_names=["body"], output_field_names=["sparse"]
        )
        with self._errors():
            if self.is_lite:
                Path(uri).parent.mkdir(parents=True, exist_ok=True)
            self._client = pymilvus.MilvusClient(uri, token=token, timeout=timeout_s, grpc_options=_RECONNECT)
            if self.is_lite:  # its server has the folder to itself now, and has not read it yet
                with self._turn:
                    lite_files.delete_written_logs(Path(uri))
        if self.is_lite:
            Path(uri).chmod(0o700)

    # Collections

    def collections(self) -> set[str]:
        """The names of all collections."""
        return set(self._do(lambda: self._client.list_collections(timeout=self._timeout_s)))

    @cached_property
    def is_lite_server(self) -> bool:
        """Whether Milvus Lite answers, from a file or at an address."""
        return "lite" in str(self._do(lambda: self._client.get_server_version(timeout=self._timeout_s))).lower()

    def create(self, name: str, fields: Mapping[str, Kind], dimension: int = 0, vectors: int = 0) -> None:
        """Create a collection and its indexes, or those of them that are missing. The first field is its key.

        dimension: of its field `vector`, where it has one. vectors: how many it is going to have, as far as is known.
        A field of kind "tokens" must be named `body`: Milvus makes the sparse vectors of BM25 of it.
        """
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        indexes = self._client.prepare_index_params()
        types = self._types
        for place, (field, kind) in enumerate(fields.items()):
            if kind in ("number", "id"):
                schema.add_field(field, types.INT64, is_primary=not place)
            elif kind == "keys":
                of = {"element_type": types.VARCHAR, "max_length": KEY_BYTES, "max_capacity": _MOST_KEYS}
                schema.add_field(field, types.ARRAY, **of)
            elif kind == "vector":
                schema.add_field(field, types.FLOAT_VECTOR, dim=dimension)
                indexes.add_index(field, metric_type="COSINE", **self._vector_index(vectors, dimension))
            elif kind == "tokens":
                # Lite has no whitespace tokenizer; the words in `body` are made so that both split them alike.
                analyzer = {"tokenizer": "standard" if self.is_lite_server else "whitespace"}
                text = {"max_length": MOST_BYTES, "enable_analyzer": True, "analyzer_params": analyzer}
                schema.add_field(field, types.VARCHAR, **text)
                schema.add_field("sparse", types.SPARSE_FLOAT_VECTOR)
                schema.add_function(self._function)
                weights = {"bm25_k1": 1.2, "bm25_b": 0.75}  # as in tantivy
                indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=weights)
            else:
                bytes_ = KEY_BYTES if kind == "key" else MOST_BYTES
                schema.add_field(field, types.VARCHAR, max_length=bytes_, is_primary=not place)
            # Lite has no index of keys.
            if (kind in ("key", "id") and place) or (kind == "keys" and not self.is_lite_server):
                indexes.add_index(field, index_type="INVERTED")
        if "vector" not in fields.values():
            schema.add_field("nothing", types.FLOAT_VECTOR, dim=len(_NO_VECTOR))
            indexes.add_index("nothing", index_type="FLAT", metric_type="COSINE")
        if name not in self.collections():
            # One shard: all rows of one request become visible at once.
            whole = {"num_shards": 1, "consistency_level": "Bounded", "timeout": self._timeout_s}
            with suppress(AlreadyThere):
                self._do(lambda: self._create_collection(name, schema=schema, **whole))
        # A process that was killed may have left it without indexes.
        there = set(self._do(lambda: self._client.list_indexes(name, timeout=self._timeout_s)))
        for index in indexes:
            if index.field_name not in there:
                with suppress(AlreadyThere):
                    self._create_index(name, type(indexes)([index]))

    def create_missing(self, name: str, fields: Mapping[str, Kind]) -> None:
        """Create a collection unless it is there, or another server creates it at the same time."""
        if name not in self.collections():
            self.create(name, fields)

    def _create_collection(self, name: str, **options: Any) -> None:
        if self.is_lite:
            lite_files.delete_unfinished(Path(self.uri), name)
        self._client.create_collection(name, **options)

    def _create_index(self, name: str, index: Any) -> None:
        """Of an empty collection: there is nothing to wait for."""
        self._do(lambda: self._client.create_index(name, index, sync=False, timeout=self._timeout_s))

    def _vector_index(self, vectors: int, dimension: int) -> dict[str, Any]:
        """HNSW, or DISKANN for more vectors than a query node's memory should hold. Milvus Lite has HNSW alone."""
        in_memory = vectors * (4 * dimension + _EDGE_BYTES)
        if in_memory > HNSW_BYTES and not self.is_lite_server:
            return {"index_type": "DISKANN", "params": {}}
        return {"index_type": "HNSW", "params": {"M": 16, "efConstruction": 200}}

    def _effort(self, name: str, limit: int) -> dict[str, int]:
        """How far a search for so many neighbours looks: by a name for each kind of index."""
        if name not in self._index_types:
            found = self._do(lambda: self._client.describe_index(name, "vector", timeout=self._timeout_s))
            self._index_types[name] = str((found or {}).get("index_type"))
        effort = "search_list" if self._index_types[name] == "DISKANN" else "ef"
        return {effort: max(_EFFORT, limit)}

    def _loaded_for(self, name: str, request: Callable[[], T]) -> T:
        """What a request to a collection answers. Milvus Lite forgets at its end which ones were loaded to be read.

        So the request is repeated if it has ended and begun again: none of them does harm when it is done twice.
        """

        def loaded() -> T:
            if name not in self._loaded:
                self._load(name)
                self._loaded.add(name)
            try:
                return self._do(request)
            except NotLoaded:
                self._loaded.discard(name)
                raise

        return self._repeated(loaded, NotLoaded)

    def _load(self, name: str) -> None:
        load = partial(self._client.load_collection, name, timeout=self._timeout_s)
        try:
            self._do(load)
        except UnknownError:
            if not self.is_lite:
                raise
            lite_files.delete_indexes(Path(self.uri), name)
            self._do(load)

    def drop(self, name: str) -> None:
        """Drop a collection, if it is there."""
        self._loaded.discard(name)
        self._index_types.pop(name, None)
        with suppress(MissingCollection):
            self._do(lambda: self._client.drop_collection(name, timeout=self._timeout_s))

    def dimension(self, name: str) -> int:
        """The dimension of the field `vector` of a collection."""
        found = self._do(lambda: self._client.describe_collection(name, timeout=self._timeout_s))
        dimensions = [field["params"]["dim"] for field in found["fields"] if field["name"] == "vector"]
        return int(dimensions[0]) if dimensions else 0

    def flush(self, name: str) -> None:
        """Have everything written to disk and indexed."""
        self._do(lambda: self._client.flush(name, timeout=self._timeout_s))

    # Rows

    def write(self, name: str, rows: Sequence[Row], *, is_searched: bool = False) -> None:
        """Insert rows or replace those with the same keys; at most BATCH rows become visible at once.

        is_searched: whether they have a vector.
        """
        whole = rows if is_searched else [{**row, "nothing": _NO_VECTOR} for row in rows]
        for at in range(0, len(whole), BATCH):
            self._upsert(name, list(whole[at : at + BATCH]))

    def _upsert(self, name: str, rows: list[Row]) -> None:
        self._do(lambda: self._client.upsert(name, rows, timeout=self._timeout_s))
        self._upserts[name] += 1
        if self.is_lite and self._upserts[name] % _FLUSH_AFTER == 0:
            self.flush(name)

    def delete(self, name: str, where: str) -> None:
        """Delete the rows that a filter finds."""
        self._loaded_for(name, lambda: self._client.delete(name, filter=where, timeout=self._timeout_s))

    def delete_of(self, name: str, field: str, values: Iterable[str]) -> None:
        """Delete the rows in which a field has one of these values."""
        wanted = sorted(values)
        for at in range(0, len(wanted), BATCH):
            self.delete(name, one_of(field, wanted[at : at + BATCH]))

    def rows(
        self, name: str, where: str, fields: Sequence[str], *, strong: bool = False, at_once: int = BATCH
    ) -> Iterator[Row]:
        """The rows that a filter finds, in no order. strong: wait until all that was written before is seen.

        at_once: how many one request may read.
        """
        asked = {
            "filter": where,
            "output_fields": list(fields),
            "consistency_level": "Strong" if strong else "Bounded",
            "timeout": self._timeout_s,
        }
        first = self._loaded_for(name, lambda: self._client.query(name, limit=at_once + 1, **asked))
        if len(first) <= at_once:
            yield from map(dict, first)
            return
        found = self._do(lambda: self._client.query_iterator(name, batch_size=at_once, **asked))
        try:
            while batch := self._do(found.next):
                yield from (dict(row) for row in batch)
        finally:
            found.close()

    def rows_of(
        self,
        name: str,
        field: str,
        values: Iterable[str | int],
        fields: Sequence[str],
        *,
        strong: bool = False,
        at_once: int = BATCH,
    ) -> Iterator[Row]:
        """The rows in which a field has one of these values."""
        wanted = sorted(set(values), key=str)
        for at in range(0, len(wanted), BATCH):
            where = one_of(field, wanted[at : at + BATCH])
            yield from self.rows(name, where, fields, strong=strong, at_once=at_once)

    def count(self, name: str, where: str) -> int:
        """How many rows a filter finds."""
        asked = {"output_fields": ["count(*)"], "consistency_level": "Bounded", "timeout": self._timeout_s}
        (found,) = self._loaded_for(name, lambda: self._client.query(name, filter=where, **asked))
        return int(found["count(*)"])

    def some(self, name: str, where: str, fields: Sequence[str], most: int) -> list[Row]:
        """At most so many of the rows that a filter finds. That there are none is asked twice: Bounded may lag."""
        asked = {"limit": most, "output_fields": list(fields), "timeout": self._timeout_s}
        for level in ("Bounded", "Strong"):
            query = partial(self._client.query, name, filter=where, consistency_level=level, **asked)
            if found := self._loaded_for(name, query):
                return [dict(row) for row in found]
        return []

    def search(
        self,
        name: str,
        query: Vectors | str,
        limit: int,
        where: str,
        fields: Sequence[str],
        *,
        strong: bool = False,
    ) -> list[Row]:
        """The rows nearest to a vector, or best for words by BM25, best first, each with its `score`.

        The score of a vector is its cosine. strong: as in `rows`.
        """
        words = isinstance(query, str)
        asked = {
            "data": [query if isinstance(query, str) else query.tolist()],
            "anns_field": "sparse" if words else "vector",
            "limit": min(limit, MOST_RESULTS),
            "filter": where,
            "output_fields": list(fields),
            "search_params": {"params": {} if words else self._effort(name, limit)},
            "consistency_level": "Strong" if strong else "Bounded",
            "timeout": self._timeout_s,
        }
        (found,) = self._loaded_for(name, lambda: self._client.search(name, **asked))
        return [{**hit["entity"], "score": float(hit["distance"])} for hit in found]

    def _do(self, request: Callable[[], T]) -> T:
        """What a request answers. One without an answer is repeated until the time for it is over.

        Whether it was done is not known then, but all of them may be done twice: rows are replaced by their keys, and
        what is deleted, created or dropped twice is so once.
        """

        def done() -> T:
            with self._errors(), self._turn:
                return request()

        return self._repeated(done, NoAnswer)

    def _repeated(self, attempt: Callable[[], T], passing: type[StoreError]) -> T:
        """What an attempt returns. One that ends with an error that may pass is repeated until the time is over."""
        until, wait = monotonic() + self._timeout_s, _WAIT_S
        while True:
            try:
                return attempt()
            except passing:
                if monotonic() + wait > until:
                    raise
            sleep(wait)
            wait = min(2 * wait, _MOST_WAIT_S)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What pymilvus raises, as Folio's errors."""
        try:
            yield
        except FolioError:
            raise
        except Exception as error:
            raise translated(error, self.uri, is_lite=self.is_lite) from error


@contextmanager
def _only_what_is_passed() -> Iterator[None]:
    """Inside, pymilvus can be imported: it would read a .env above its folder, and fail for MILVUS_URI as a path."""
    mine = [name for name in os.environ if name.startswith("MILVUS_")]
    hidden = {name: os.environ.pop(name) for name in mine}
    disabled = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its library in C would write to the terminal
    try:
        yield
    finally:
        os.environ |= hidden
        del os.environ["PYTHON_DOTENV_DISABLED"]
        if disabled is not None:
            os.environ["PYTHON_DOTENV_DISABLED"] = disabled
