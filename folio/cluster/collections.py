"""The collections of a library in Milvus: their names and fields.

Names begin with a prefix, so that a server holds several libraries. `store`, `metadata`, `history` and `works`
outlive a rebuild; the others belong to one epoch, and a rebuild fills those of a new one while the old ones serve.
`history` and `works` are created when there is something to be kept there. A move (milvus_move.py) brings metadata too,
which it keeps in a collection of its epoch until it ends.

A paper's rows carry the version that they were written under, and its row in `papers` names the version that counts. It
is written last: until then the other rows are of no paper. Rows of versions that no paper names are swept away later.
"""

from __future__ import annotations

from dataclasses import dataclass

from folio.cluster.milvus_client import Kind

# Of what is written. A later version's is refused, an earlier one's is made again from the records of papers, whose
# own format has not changed since RECORDS.
FORMAT, RECORDS = 3, 1
# Key -> value: the state of the library, failures, term statistics, versions that are being written
STORE: dict[str, Kind] = {"key": "key", "value": "text"}
# What sources other than the PDF say of papers
METADATA: dict[str, Kind] = {"key": "key", "paper": "key", "source": "key", "fields": "text", "updated": "key"}
# The log of questions and the conversations: see history_rows.py
HISTORY: dict[str, Kind] = {
    "key": "key",
    "kind": "key",
    "number": "id",
    "conversation": "key",
    "place": "number",
    "part": "number",
    "parts": "number",
    "about": "text",
    "value": "text",
}
# What services say of works, in documents: see shared_works.py
WORKS: dict[str, Kind] = {"key": "key", "changed": "id", "part": "number", "parts": "number", "value": "text"}
PAPERS: dict[str, Kind] = {
    "id": "key",
    "version": "key",
    "visible": "number",  # 0 for a paper that was removed
    "files": "text",  # JSON: [path, name] of each: see files_from
    "paths": "keys",  # a hash of each path: more of them than the field can hold do not fit into `files`
    "added": "key",
    "crc": "number",  # of the text
    "passages": "number",
    "fine": "number",  # how many fine passages it has
    "year": "id",  # 0 if it is not known
    "names": "text",  # the words of its authors' names, between bars: |diego|ongaro|
    "alike": "key",  # a hash of what citations name it by, and of its arXiv id: papers that share one get letters
    "work": "key",
    "vector_hash": "key",  # of the text that `vector` was made of; "" for none
    "vector": "vector",
}
# JSON in parts: page offsets and labels, sections, problems, what the PDF says
STRUCTURE: dict[str, Kind] = {"key": "key", "version": "key", "part": "number", "value": "text"}
# The text: a row for each page, several for a long one
PAGES: dict[str, Kind] = {"key": "key", "version": "key", "start": "number", "text": "text"}
# A chunk. `year` is its paper's, and outlives no edit of it: the paper then gets another version.
_CHUNK: dict[str, Kind] = {
    "key": "key",
    "chunk": "id",
    "paper": "key",
    "version": "key",
    "start": "number",
    "end": "number",
    "text_hash": "key",
    "year": "id",
    "kinds": "key",  # of the sections that it lies in, in part at least, between bars: |abstract|results|
    "apart": "key",  # the kind that most of it is of, if it is no evidence (sections.APART); "" otherwise
}
CHUNKS: dict[str, Kind] = {**_CHUNK, "body": "tokens", "vector": "vector"}
# Only with INDEX=dual. In one collection, each search for passages would walk a graph that is mostly fine ones.
FINE: dict[str, Kind] = {**_CHUNK, "parent": "id", "vector": "vector"}
# Vectors of papers that are still being embedded
PENDING: dict[str, Kind] = {"text_hash": "key", "vector": "vector"}
_OF_AN_EPOCH = {"papers": PAPERS, "structure": STRUCTURE, "pages": PAGES, "chunks": CHUNKS, "pending": PENDING}


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a library's collections."""

    prefix: str
    epoch: str = ""
    is_moving: bool = False  # whether a move is filling this epoch

    @property
    def store(self) -> str:
        return f"{self.prefix}_store"

    @property
    def metadata(self) -> str:
        return self._of_epoch("metadata") if self.is_moving else f"{self.prefix}_metadata"

    @property
    def history(self) -> str:
        return f"{self.prefix}_history"

    @property
    def works(self) -> str:
        return f"{self.prefix}_works"

    @property
    def papers(self) -> str:
        return self._of_epoch("papers")

    @property
    def structure(self) -> str:
        return self._of_epoch("structure")

    @property
    def pages(self) -> str:
        return self._of_epoch("pages")

    @property
    def chunks(self) -> str:
        return self._of_epoch("chunks")

    @property
    def fine(self) -> str:
        return self._of_epoch("fine")

    @property
    def pending(self) -> str:
        return self._of_epoch("pending")

    @property
    def failures(self) -> str:
        """What the keys of files that could not be read begin with, in `store`."""
        return "moving.failure." if self.is_moving else "failure."

    def of_epoch(self, *, dual: bool) -> dict[str, dict[str, Kind]]:
        """The collections of the epoch and their fields. dual: with fine passages."""
        own = {**_OF_AN_EPOCH, "fine": FINE} if dual else _OF_AN_EPOCH
        return {self._of_epoch(name): fields for name, fields in own.items()}

    def shared(self) -> dict[str, dict[str, Kind]]:
        """The collections that outlive it and their fields."""
        return {self.store: STORE, self.metadata: METADATA}

    def _of_epoch(self, name: str) -> str:
        return f"{self.prefix}_{self.epoch}_{name}"
