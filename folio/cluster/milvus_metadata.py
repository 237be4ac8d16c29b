"""What sources other than their PDFs say of papers in Milvus; also of papers that are not in the library (yet)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from folio.cluster.library_state import note
from folio.cluster.milvus_filters import is_key
from folio.cluster.milvus_writer import MilvusWriter
from folio.cluster.paper_rows import fitting
from folio.errors import StoreRefused
from folio.paper_metadata import Metadata, Source, merged, to_json, without_version
from folio.store import metadata_layers, works
from folio.store.database import Database
from folio.store.metadata_layers import Version
from folio.types import NewPaper

# Papers that are claimed together
_AT_ONCE = 100
NEW_PAPER = "Leave out what you were adding, and run the same command again."


class MilvusMetadata(MilvusWriter):
    """The part of PaperStore that writes what is said of papers."""

    def _write_absent(self, source: Source, said: Mapping[str, Metadata]) -> set[str]:
        """Replace what a source says of those papers that are not in the library; returns the others."""
        here = set(self.rows_of_papers(said))
        absent = sorted(said.keys() - here)
        for at in range(0, len(absent), _AT_ONCE):
            papers = absent[at : at + _AT_ONCE]
            with self.changing(*papers), self._inside():
                here |= self.rows_of_papers(papers).keys()  # somebody has added them meanwhile
                for paper in papers:
                    if paper not in here:
                        self._write_layer(paper, source, said[paper])
        if absent:
            note(self.milvus, self.names, self.which, "described")
            self.look_again()
        return here

    @contextmanager
    def changing_works(self) -> Iterator[Database]:
        """See PaperStore."""
        self.create_shared()
        with self._works.changing(self._read_state().works) as database:
            yield database
        self.look_again()

    def _said_of(self, paper: str) -> dict[Source, Metadata]:
        """What sources other than the PDF say of a paper."""
        return {source: said for source, said in self.metadata_layers(paper).items() if source != "pdf"}

    def _write_layer(self, paper: str, source: Source, metadata: Metadata) -> None:
        if not is_key(paper):
            raise StoreRefused(f"The library cannot hold the paper {paper[:80]!r}.", NEW_PAPER)
        said = {name: each for name, each in self._said_of(paper).items() if name != source}
        key = f"{paper}.{source}"
        if metadata.known():
            said[source] = metadata
            fields = fitting(json.dumps(to_json(metadata), ensure_ascii=False))
            updated = datetime.now(UTC).isoformat(timespec="seconds")
            row = {"key": key, "paper": paper, "source": source, "fields": fields, "updated": updated}
            self.milvus.write(self.names.metadata, [row])
        else:
            self.milvus.delete(self.names.metadata, f'key == "{key}"')
        if self.which != "moving":  # until it ends, these records are of the library that it replaces
            self.records.write_metadata(paper, {name: to_json(each) for name, each in said.items()})

    def _inherit(self, old: str, new: NewPaper) -> None:
        """Give a paper what people said of the one whose file it takes over, if it is a version of that."""
        layers = self.metadata_layers(old)
        rows = self.rows_of_papers([old])
        if not rows or not (layers.keys() - {"pdf"} or metadata_layers.is_work(self._database, old)):
            return
        said = self._said_of(new.id)
        before = Version(old, merged(layers), self._whole_texts(rows)[old])
        after = Version(new.id, merged({**said, "pdf": new.metadata}), new.text)
        if not metadata_layers.same_paper(before, after):
            return
        with self.changing_works() as database:
            works.inherit(database, old, new.id)
        for source, each in layers.items():
            if source != "pdf" and source not in said:
                arxiv = replace(each.arxiv, value=without_version(each.arxiv.value))  # the version is the old file's
                self._write_layer(new.id, source, replace(each, arxiv=arxiv))
        if self._snapshot is not None:
            self._snapshot.layers.pop(new.id, None)
