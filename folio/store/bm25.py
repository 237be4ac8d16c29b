"""BM25 indexes derived from the library: tantivy by default, or rank-bm25 behind the same interface.

Both get the same tokens (text.tokenize), so that they rank alike.
"""

from __future__ import annotations

import errno
import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from folio.errors import IndexDamaged
from folio.store.index_files import (
    Checksums,
    Hits,
    Identity,
    check,
    checksums,
    engine_errors,
    from_json,
    read_manifest,
    require_possible,
    to_json,
    write_manifest,
)
from folio.store.rows import Passage, Stamp
from folio.system.files import discard, temporary_folder
from folio.text import VERSION, tokenize

if TYPE_CHECKING:
    import tantivy


MANIFEST = "folio.json"
# Version of the index format; version 1 could contain removed passages.
FORMAT = 2
# tantivy's list of segments; a commit replaces it last.
META = "meta.json"
# What it locks while it opens the files of a list
_LOCK = ".tantivy-meta.lock"
NAME = "BM25"
# The most bytes that are checked when an index is opened: 32,000 passages have 8 MiB, which takes 5 ms.
CHECKED_BYTES = 8 * 2**20
# Endings of locks and of files from an interrupted replacement
_NOT_LISTED = (".lock", ".new")


# The most terms of a vocabulary: 12,000 passages have about 60,000.
MOST_TERMS = 100_000


def vocabulary_of(terms: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The words among these terms with their document frequencies; see protocols.LexicalIndex."""
    return {term: count for term, count in terms if count > 1 and 4 <= len(term) <= 40 and term.isalpha()}


def _body(passage: Passage) -> list[str]:
    """The indexed tokens, with the paper's title: questions name the paper more often than its paragraphs do."""
    return tokenize(f"{passage.title}\n{passage.text}")


# Free bytes below which tantivy cannot write anything
_MIN_FREE = 2**20
# The most seconds to wait for a file that tantivy still writes after an error
_TEXTS_S = 5.0


@contextmanager
def _opened(folder: Path, names: Iterable[str]) -> Iterator[tantivy.Index]:
    """An index on disk, to get a searcher from. names: its files.

    tantivy starts a thread that takes a lock in the folder of an index, at some moment after it was opened. It would
    create the file of that lock again while somebody deletes the folder. So this opens links to the files, and removes
    them; the searcher works on without. The lock is one of them, so that a writer keeps the files meanwhile, unless it
    cannot be taken, as in a folder that is read-only.
    """
    import tantivy

    with temporary_folder("folio-bm25-") as links:
        try:
            for name in (*names, _LOCK):
                (links / name).symlink_to((folder / name).absolute())
        except OSError:  # Windows lets few users make links
            with _named_for_tantivy(folder) as place:
                yield tantivy.Index.open(place)
            return
        try:
            index = tantivy.Index.open(str(links))
        except ValueError as error:
            if "Lockfile" not in str(error):
                raise
            (links / _LOCK).unlink()
            index = tantivy.Index.open(str(links))
        yield index


@contextmanager
def _named_for_tantivy(folder: Path) -> Iterator[str]:
    """A path to the folder that can be encoded in UTF-8, as tantivy requires; a temporary link if necessary.

    In the locale C, Python represents a name with non-ASCII characters by surrogates. The link is not needed once the
    index is open.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        with temporary_folder("folio-bm25-") as links:
            link = links / "index"
            link.symlink_to(folder.absolute(), target_is_directory=True)
            yield str(link)
    else:
        yield str(folder)


@contextmanager
def _os_errors(folder: Path | None) -> Iterator[None]:
    """Turn tantivy's ValueError back into the OSError that caused it.

    Sometimes tantivy reports only that its writer thread was killed; on a full disk, that is the reason.
    """
    try:
        yield
    except ValueError as error:
        number = re.search(r"os error (\d+)|code: (\d+)", str(error))
        if number is not None:
            raise OSError(int(number[1] or number[2]), str(error)) from error
        if folder is not None and "killed" in str(error) and shutil.disk_usage(folder).free < _MIN_FREE:
            raise OSError(errno.ENOSPC, str(error)) from error
        raise


def listed_files(folder: Path) -> dict[str, Checksums]:
    """The files in the manifest of a saved index, with their checksums. Raises IndexDamaged."""
    with engine_errors(NAME):
        return _files(read_manifest(folder / MANIFEST))


def _files(manifest: dict[str, Any]) -> dict[str, Checksums]:
    return {Path(name).name: from_json(sums) for name, sums in manifest["files"].items()}


def rarity(documents_with: int, documents: int) -> float:
    """Inverse document frequency as in BM25 (Robertson and Spärck Jones), shifted so that it is never negative."""
    return math.log(1 + (documents - documents_with + 0.5) / (documents_with + 0.5))


class TantivyIndex:
    """BM25 by tantivy, in a folder or in memory. Passages can be added, but never removed.

    tantivy counts a removed passage in its statistics until its segment is merged, and then only estimates them, so
    scores would depend on the history of the index. Without removals they depend on the passages alone.

    A commit is atomic. The manifest with the stamp is written after it; after a kill between the two, `load` finds the
    index damaged.
    """

    def __init__(self, index: Any, stamp: Stamp, folder: Path | None = None) -> None:
        self.stamp = stamp
        self._index = index
        self._folder = folder
        self._is_writable = True
        self.files: frozenset[Identity] = frozenset()  # when the index was opened
        self._sums: dict[str, Checksums] = {}
        self._reload()
        self._words: dict[str, int] | None = None

    @classmethod
    def create(cls, stamp: Stamp, folder: Path | None = None) -> TantivyIndex:
        """An empty index. Deletes an existing one in the folder, except files that Windows keeps for a reader."""
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True, indexed=True, fast=True)
        builder.add_text_field("paper", tokenizer_name="raw", index_option="basic")
        builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
        if folder is None:
            return cls(tantivy.Index(builder.build()), stamp)
        discard(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with _os_errors(folder), _named_for_tantivy(folder) as place:
            return cls(tantivy.Index(builder.build(), path=place, reuse=False), stamp, folder)

    @classmethod
    def load(cls, folder: Path, *, thorough: bool = False) -> TantivyIndex:
        """Open a saved index. Raises IndexDamaged if its files differ from their checksums in the manifest.

        thorough: read every file to its end, even if there is more than CHECKED_BYTES.
        """
        with engine_errors(NAME):
            manifest = read_manifest(folder / MANIFEST)
            if (manifest["format"], manifest["tokenizer"]) != (FORMAT, VERSION):
                raise IndexDamaged("the BM25 index was made by another version of Folio")
            files = _files(manifest)
            # A writer may commit meanwhile; META then differs from the manifest, which the second check notices.
            identities = check(folder, files, None if thorough else CHECKED_BYTES)
            with _opened(folder, files) as opened:
                index = cls(opened, Stamp(manifest["epoch"], manifest["generation"]), folder)
            check(folder, {META: files[META]})
            index.files, index._sums, index._is_writable = identities, files, False
            return index

    def _reload(self) -> None:
        self._index.config_reader(reload_policy="manual")  # a reader keeps the generation that it opened
        self._index.reload()
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return int(self._searcher.num_docs)

    def ids(self) -> set[int]:
        import tantivy

        with engine_errors(NAME):
            all_query = tantivy.Query.all_query()
            hits = self._searcher.search(all_query, limit=max(1, len(self)), count=False).hits
            ids = self._searcher.fast_field_values("id", [address for _, address in hits])
            return {int(i) for i in ids if i is not None}

    def add(self, passages: Iterable[Passage], stamp: Stamp) -> None:
        """Add passages that are not in the index, in one commit. Raises OSError and IndexDamaged."""
        import tantivy

        foreign = self._foreign_files()
        with engine_errors(NAME, OSError), _os_errors(self._folder):
            if self._folder is not None and not self._is_writable:
                with _named_for_tantivy(self._folder) as place:
                    self._index, self._is_writable = tantivy.Index.open(place), True
            self._commit(passages)
            self._reload()
        self._words = None
        self.stamp = stamp
        if self._folder is not None:
            self._write_manifest(self._folder, foreign)

    def _foreign_files(self) -> set[str]:
        """The files of earlier indexes that Windows kept for a reader; deletes those that it has released."""
        if self._folder is None:
            return set()
        names = {path.name for path in self._folder.iterdir() if path.is_file()}
        foreign = {name for name in names if name not in self._sums and not name.endswith((".json", *_NOT_LISTED))}
        for name in foreign:
            discard(self._folder / name)
        return foreign

    def _commit(self, passages: Iterable[Passage]) -> None:
        import tantivy

        writer = self._index.writer(heap_size=64_000_000, num_threads=1)
        try:
            for passage in passages:
                document = tantivy.Document(paper=passage.paper_id, body=" ".join(_body(passage)))
                document.add_integer("id", passage.id)
                writer.add_document(document)
            writer.commit()
        except BaseException:
            # An error keeps the writer alive as long as somebody holds it. Its thread would go on writing files into a
            # folder that the caller may delete, and its lock would refuse the next writer.
            for end in (writer.rollback, writer.wait_merging_threads, self._wait_for_texts):
                with suppress(BaseException):  # it may have ended itself, as on a full disk
                    end()
            raise
        writer.wait_merging_threads()

    def _wait_for_texts(self) -> None:
        """Wait until tantivy has ended the file with the texts of a segment that it gave up.

        A thread that nothing joins writes it: it is empty until then.
        """
        until = time.monotonic() + _TEXTS_S
        while self._folder and any(path.stat().st_size == 0 for path in self._folder.glob("*.store")):
            if time.monotonic() > until:
                return
            time.sleep(0.005)

    def _write_manifest(self, folder: Path, foreign: set[str]) -> None:
        """foreign: names of files of other indexes."""
        for temporary in folder.glob(".tmp*"):  # of a tantivy commit that was killed
            temporary.unlink(missing_ok=True)
        excluded = {MANIFEST, *foreign}
        paths = [
            path for path in sorted(folder.iterdir()) if path.name not in excluded and path.suffix not in _NOT_LISTED
        ]
        # Known files are not read again: tantivy writes each file once, under a new name, except its own lists.
        known_sums = {name: sums for name, sums in self._sums.items() if not name.endswith(".json")}
        self._sums = {path.name: known_sums.get(path.name) or checksums(path) for path in paths}
        listed = {name: to_json(sums) for name, sums in self._sums.items()}
        write_manifest(
            folder / MANIFEST, {**asdict(self.stamp), "format": FORMAT, "tokenizer": VERSION, "files": listed}
        )

    def rarity(self, token: str) -> float:
        """See protocols.LexicalIndex."""
        return rarity(self.passages_with(token), len(self))

    def passages_with(self, token: str) -> int:
        """See protocols.LexicalIndex."""
        with engine_errors(NAME):
            return int(self._searcher.doc_freq("body", token))

    def vocabulary(self) -> dict[str, int]:
        """See protocols.LexicalIndex."""
        if self._words is None:
            with engine_errors(NAME):
                self._words = vocabulary_of(self._searcher.terms_with_prefix("body", "", limit=MOST_TERMS))
        return self._words

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """See protocols.LexicalIndex."""
        return self._best(list(dict.fromkeys(tokenize(query))), k, papers)

    def passages_of(self, token: str, k: int) -> list[int]:
        """See protocols.LexicalIndex."""
        return [chunk for chunk, _ in self._best([token], k, None)]

    def _best(self, tokens: Sequence[str], k: int, papers: frozenset[str] | None) -> list[tuple[int, float]]:
        if not tokens or k < 1 or len(self) == 0:
            return []
        # Two sums of the same numbers differ by less than this share: the error of a float32 addition is up to 2^-24.
        rounding = len(tokens) * 2.0**-23
        with engine_errors(NAME):
            hits = self._search(tokens, k, papers, rounding)
            return tied(require_possible(NAME, hits, len(self)), rounding)[:k]

    def _search(self, tokens: Sequence[str], k: int, papers: frozenset[str] | None, rounding: float) -> Hits:
        """The best k hits and all that tie with the last of them, in no particular order."""
        import tantivy

        schema, should, must = self._index.schema, tantivy.Occur.Should, tantivy.Occur.Must
        matching = tantivy.Query.boolean_query(
            [(should, tantivy.Query.term_query(schema, "body", token, "freq")) for token in tokens]
        )
        if papers is not None:
            within = tantivy.Query.term_set_query(schema, "paper", sorted(papers))
            constant = tantivy.Query.const_score_query(within, 0.0)
            matching = tantivy.Query.boolean_query([(must, matching), (must, constant)])
        limit = k + 1
        while True:
            hits = self._searcher.search(matching, limit=limit, count=False).hits
            if len(hits) < limit or hits[-1][0] < hits[k - 1][0] * (1 - rounding):
                break
            limit *= 2  # get every hit that ties with the last: ties are broken by id
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [(int(i), float(score)) for i, (score, _) in zip(ids, hits, strict=True)]


def tied(hits: Iterable[tuple[int, float]], rounding: float) -> Hits:
    """Ids with scores, best first, ties by id. Scores that differ by at most the share `rounding` become equal.

    tantivy adds up the scores of a query's words in an order that depends on its segments, in single precision.
    """
    tied: Hits = []
    last = best = math.inf
    for chunk, score in sorted(hits, key=lambda pair: -pair[1]):
        if score < last * (1 - rounding):
            best = score
        tied.append((chunk, best))
        last = score
    return sorted(tied, key=lambda pair: (-pair[1], pair[0]))


class OkapiIndex:
    """BM25 by rank-bm25's BM25Okapi, built in memory at every start."""

    def __init__(self, passages: Iterable[Passage], stamp: Stamp) -> None:
        import numpy as np
        from rank_bm25 import BM25Okapi

        rows = [(passage.id, passage.paper_id, _body(passage)) for passage in passages]
        self.stamp = stamp
        self._ids = np.asarray([chunk_id for chunk_id, _, _ in rows], dtype=np.int64)
        self._papers = [paper for _, paper, _ in rows]
        self._document_frequency = Counter(token for _, _, body in rows for token in set(body))
        self._bm25 = None
        if self._document_frequency:
            self._bm25 = BM25Okapi([body for _, _, body in rows], k1=1.2, b=0.75)  # as in tantivy
            # The library's own IDF is zero or negative for a token in half of the passages or more.
            self._bm25.idf = {token: self.rarity(token) for token in self._document_frequency}

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> set[int]:
        return set(self._ids.tolist())

    def rarity(self, token: str) -> float:
        """See protocols.LexicalIndex."""
        return rarity(self.passages_with(token), len(self))

    def passages_with(self, token: str) -> int:
        """See protocols.LexicalIndex."""
        return self._document_frequency[token]

    def vocabulary(self) -> dict[str, int]:
        """See protocols.LexicalIndex."""
        terms = sorted(self._document_frequency.items(), key=lambda term: (-term[1], term[0]))
        return vocabulary_of(terms[:MOST_TERMS])

    def search(self, query: str, k: int, papers: frozenset[str] | None = None) -> list[tuple[int, float]]:
        """See protocols.LexicalIndex."""
        return self._best(list(dict.fromkeys(tokenize(query))), k, papers)

    def passages_of(self, token: str, k: int) -> list[int]:
        """See protocols.LexicalIndex."""
        return [chunk for chunk, _ in self._best([token], k, None)]

    def _best(self, tokens: Sequence[str], k: int, papers: frozenset[str] | None) -> list[tuple[int, float]]:
        import numpy as np

        if self._bm25 is None or not tokens or k < 1:
            return []
        scores = np.asarray(self._bm25.get_scores(tokens), dtype=np.float64)
        if papers is not None:
            scores[[paper not in papers for paper in self._papers]] = 0.0
        order = np.lexsort((self._ids, -scores))[:k]
        return [(int(self._ids[i]), float(scores[i])) for i in order if scores[i] > 0]
