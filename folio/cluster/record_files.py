"""The records of papers as files in a folder or an object store, from which all collections can be made again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from folio.cluster.as_written import as_written
from folio.cluster.paper_record import MOST_CHARACTERS, PaperRecord
from folio.cluster.paper_rows import files_from
from folio.errors import FolioError, StoreDamaged, StoreError, StoreMismatch, StoreMissing
from folio.types import SourceFile


class RecordFiles:
    """Files under RECORDS_URI, through fsspec: of each epoch one for each paper and one for its files' names; what
    sources say of papers; and which epoch is the current one."""

    def __init__(self, uri: str) -> None:
        """uri: a folder, or an address that fsspec knows, such as s3://bucket/folder."""
        self.uri = uri
        with self._errors():
            import fsspec

            # Without a cache of listings: other computers write there too, and a repair must see what they wrote.
            self._files, self._root = fsspec.core.url_to_fs(uri, use_listings_cache=False)
        self._is_local = "file" in (self._files.protocol, *self._files.protocol)

    def write_library(self, about: Mapping[str, Any]) -> None:
        """Say which epoch is the current one, and what it was made with."""
        self._write("library.json", json.dumps(about))

    def library(self) -> dict[str, Any]:
        """What `write_library` wrote last. Raises StoreMissing and StoreDamaged."""
        found = self.read_library()
        if found is None:
            raise StoreMissing(
                f"There are no records of papers at {self.uri}.",
                "Set RECORDS_URI to where they are, or read your PDFs again: `python ingest.py --rebuild --yes`.",
            )
        return found

    def read_library(self) -> dict[str, Any] | None:
        """The same; None if it wrote nothing. Raises StoreDamaged."""
        text = self._read("library.json")
        if text is None:
            return None
        with self._checked("library.json"):
            return dict(json.loads(text))

    def require_unused(self) -> None:
        """Raises StoreMismatch if there are records of papers: they are of a library that is not in Milvus."""
        epoch = str((self.read_library() or {}).get("epoch", ""))
        if epoch and self._names(f"{epoch}/files"):
            raise StoreMismatch(
                f"The records at {self.uri} are of a library that is not in Milvus: its collections were dropped, or"
                " MILVUS_URI or MILVUS_PREFIX is another one.",
                "Restore these settings, or run `python ingest.py --repair --yes`, which makes the collections again;"
                " for a library of its own, set RECORDS_URI to another folder.",
            )

    def write(self, epoch: str, record: PaperRecord) -> None:
        """Keep a paper's record, in place of an older one."""
        self._write(f"{epoch}/papers/{record.paper.id}.json", record.to_text())

    def write_files(self, epoch: str, paper: str, files: str) -> None:
        """Keep the names of a paper's files, as JSON."""
        self._write(f"{epoch}/files/{paper}.json", files)

    def delete(self, epoch: str, paper: str) -> None:
        """Delete a paper's record, if there is one."""
        for kind in ("files", "papers"):
            with self._errors(), suppress(FileNotFoundError):
                self._files.rm_file(f"{self._root}/{epoch}/{kind}/{paper}.json")

    def records(self, epoch: str) -> Iterator[tuple[PaperRecord, list[SourceFile]]]:
        """Every paper of an epoch that has files, and these. Raises StoreDamaged."""
        for name in self._names(f"{epoch}/files"):
            text, names = self._read(f"{epoch}/papers/{name}"), self._read(f"{epoch}/files/{name}")
            if text is not None and names is not None:
                with self._checked(f"{epoch}/papers/{name}"):
                    record = PaperRecord.from_text(text)
                with self._checked(f"{epoch}/files/{name}"):
                    files = files_from(names, record.paper.id)
                yield record, files

    def write_metadata(self, paper: str, layers: Mapping[str, Any]) -> None:
        """Keep what sources other than its PDF say of a paper."""
        self._write(f"metadata/{paper}.json", json.dumps(layers, ensure_ascii=False))

    def drop_metadata(self) -> None:
        """Delete what `write_metadata` wrote."""
        self._drop("metadata")

    def metadata(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What `write_metadata` wrote, by paper. Raises StoreDamaged."""
        for name in self._names("metadata"):
            if (text := self._read(f"metadata/{name}")) is not None:
                with self._checked(f"metadata/{name}"):
                    layers = dict(json.loads(text))
                yield name.removesuffix(".json"), layers

    def drop_epoch(self, epoch: str) -> None:
        """Delete all records of an epoch."""
        if epoch:
            self._drop(epoch)

    def _drop(self, folder: str) -> None:
        with self._errors():
            path = f"{self._root}/{folder}"
            if self._files.exists(path):
                self._files.rm(path, recursive=True)

    def _names(self, folder: str) -> list[str]:
        with self._errors():
            path = f"{self._root}/{folder}"
            if not self._files.exists(path):
                return []
            names = [str(found).rpartition("/")[2] for found in self._files.ls(path, detail=False)]
        return sorted(name for name in names if name.endswith(".json"))

    def _write(self, name: str, text: str) -> None:
        """Replaced as a whole: an object is, and a local file is renamed to its name."""
        path = f"{self._root}/{name}"
        with self._errors():
            if not self._is_local:
                self._files.pipe_file(path, text.encode())
                return
            place = Path(path)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = place.with_name(f"{place.name}.{uuid4().hex}.new")  # computers may share the folder
            new.write_text(text, encoding="utf-8")
            os.replace(new, place)

    def _read(self, name: str) -> str | None:
        path = f"{self._root}/{name}"
        with self._errors():
            try:
                if self._files.info(path)["size"] > MOST_CHARACTERS:
                    raise StoreDamaged(f"The record {path} is too large.", "Delete it, and ingest its paper again.")
                content: bytes = self._files.cat_file(path)
            except FileNotFoundError:
                return None
        with self._checked(name):
            return content.decode()

    def _checked(self, name: str) -> AbstractContextManager[None]:
        remedy = "Delete it, and run the same command again; then ingest its paper again."
        return as_written(lambda said: StoreDamaged(f"The record {self.uri}/{name} is damaged: {said[:200]}.", remedy))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except FolioError:
            raise
        except Exception as error:  # fsspec's backends each raise their own
            reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
            raise StoreError(
                f"The records at {self.uri} cannot be used: {reason}.",
                "Check RECORDS_URI, and that you may write there; s3:// needs s3fs and gs:// needs gcsfs.",
            ) from error
