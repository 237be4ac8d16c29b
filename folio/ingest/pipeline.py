"""The ingest pipeline: files -> pages -> text -> chunks -> vectors -> library.

PDFs are read in guarded worker processes (workers.py) while a thread embeds what has been read and this one lands the
papers whose vectors are all there (embedding_queue.py). The FAISS and BM25 indexes follow at the end (indexes.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from folio import workers
from folio.errors import PaperError, PaperLimit
from folio.ingest import chunking, cleaning
from folio.ingest.discovery import is_gone
from folio.ingest.embedding_queue import EmbeddingQueue
from folio.ingest.progress import IngestProgress, Outcome, Status
from folio.pdf import reader
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, fingerprint
from folio.store.library import Library
from folio.types import Failure, NewPaper, Page, SourceFile

# The share of a file's time that the layout model and OCR may use: what they have read by then is kept.
_SLOW_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Limits:
    """What the reading of one file may take."""

    jobs: int
    timeout_s: float
    memory_mb: int
    max_file_mb: int


def ingest(
    library: Library,
    files: Sequence[SourceFile],
    get_embedder: Callable[[], Embedder],
    reading: Reading,
    limits: Limits,
    watch: IngestProgress,
    *,
    batch: int,
    retry: frozenset[str] = frozenset(),
) -> Iterator[Outcome]:
    """Bring the library up to date with these files; yields what became of each, as it happens.

    get_embedder is called when there is something to embed. batch: passages in one call of the embedder. retry: paths
    that are read again although they failed before, or had pages that OCR may read now. The caller holds the writer's
    place.
    """
    known = {file.path: file.sha256 for file in library.files()}
    failures = {failure.file.path: failure for failure in library.failures()}
    papers = set(known.values())
    new: dict[str, SourceFile] = {}
    moved: list[SourceFile] = []  # or copied: their paper is here under another name
    copies: list[SourceFile] = []  # of files that are new themselves
    for file in files:
        failure = failures.get(file.path)
        if known.get(file.path) == file.sha256 and not (file.path in retry and _may_read_better(library, file)):
            if failure:
                library.forget_failure(file.path)
            yield Outcome(file, "unchanged")
        elif failure and failure.file.sha256 == file.sha256 and file.path not in retry:
            notes = (failure.happened, failure.remedy, "Not tried again: it is the same file as before.")
            yield Outcome(file, "failed", notes=notes)
        elif file.sha256 in papers and known.get(file.path) != file.sha256:
            moved.append(file)
        elif file.sha256 in new:
            copies.append(file)
        else:
            new[file.sha256] = file
    now = {file.path: file.sha256 for file in files}
    yield from _link(library, moved, now)  # before their old names may take in other papers
    watch.planned(list(new.values()))
    failed: dict[str, PaperError] = {}
    first_use = partial(_first_use, library, get_embedder, reading)
    with closing(EmbeddingQueue(library, first_use, batch, watch.embedded)) as landing:
        for read in _read(list(new.values()), reading, limits, landing.awaited):
            if isinstance(read, workers.Finished):
                file, result = read
                if isinstance(result, PaperError):
                    failed[file.sha256] = result
                    yield _record_failure(library, file, result)
                else:
                    landing.take(file, result)
            for landed in landing.go_on(send_less=isinstance(read, workers.Woken)):
                yield _landed(*landed, known)
        for landed in landing.rest():
            yield _landed(*landed, known)
    library.forget_pending()
    for file in copies:
        if file.sha256 in failed:
            yield _record_failure(library, file, failed[file.sha256])
    yield from _link(library, [file for file in copies if file.sha256 not in failed], now)


def prune(library: Library) -> Iterator[Outcome]:
    """Take out every paper whose file is gone. One whose folder is gone too may be on a disk that is not there now."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files}.values():
        if is_gone(Path(file.path)):
            library.drop(file.path)
            yield Outcome(file, "pruned")
        elif not Path(file.path).parent.is_dir():
            yield Outcome(file, "unchanged", notes=("Kept: its whole folder is not there now.",))


def record(library: Library) -> list[dict[str, object]]:
    """What is in the library and what could not be read, as ingested.json shows it."""
    files: dict[str, list[str]] = {}
    for file in library.files():
        files.setdefault(file.sha256, []).append(file.path)
    added = library.added()
    papers: list[dict[str, object]] = [
        {
            "file": paper.file,
            "sha256": paper.id,
            "title": paper.title,
            "authors": list(paper.authors),
            "year": paper.year,
            "arxiv": paper.arxiv,
            "pages": paper.page_count,
            "chunks": paper.chunks,
            "added": added[paper.id],
            "paths": files[paper.id],
            "problems": list(paper.problems),
        }
        for paper in library.papers()
    ]
    failed: list[dict[str, object]] = [
        {"file": f.file.name, "sha256": f.file.sha256, "failed": f.happened, "remedy": f.remedy, "paths": [f.file.path]}
        for f in library.failures()
    ]
    return papers + failed


def read_paper(file: SourceFile, reading: Reading, max_file_mb: int, seconds: float = math.inf) -> NewPaper:
    """One file, read, cleaned and split. Runs in a worker process. Raises PaperError.

    seconds: how long the layout model and OCR may take; pages that they do not get to are named.
    """
    path = Path(file.path)
    size = path.stat().st_size / 1e6
    if size > max_file_mb:
        raise PaperLimit(
            f"It is {size:,.0f} MB large, and MAX_FILE_MB is {max_file_mb}.",
            "Split the file, or raise MAX_FILE_MB if you trust it.",
        )
    parsed = reader.read_pdf(path, layout=reading.parser == "layout", ocr=reading.ocr, seconds=seconds)
    text, pages = cleaning.clean(parsed.pages)
    spans = chunking.split(text, reading.chunk_size, reading.chunk_overlap)
    if not spans:
        raise PaperError("No text is left after cleaning.", "Run OCR on it, for example `ocrmypdf in.pdf out.pdf`.")
    problems = (*parsed.problems, *_odd_pages(parsed.pages))
    about = (parsed.title, parsed.authors, parsed.year)
    return NewPaper(file.sha256, *about, text, pages, spans, problems, parsed.arxiv)


def _landed(file: SourceFile, paper: NewPaper, known: Mapping[str, str]) -> Outcome:
    status: Status = "replaced" if file.path in known else "added"
    return Outcome(file, status, len(paper.pages.starts), len(paper.spans), paper.problems)


def _first_use(library: Library, get_embedder: Callable[[], Embedder], reading: Reading) -> Embedder:
    embedder = get_embedder()
    if not library.fingerprint():
        library.set_fingerprint(fingerprint(embedder, reading))
    return embedder


def _may_read_better(library: Library, file: SourceFile) -> bool:
    """Whether a paper has pages that another try may read. One that two files hold is not replaced under one name."""
    paper = library.papers_by_id([file.sha256])[0]
    alone = sum(other.sha256 == file.sha256 for other in library.files()) == 1
    return alone and any(
        reason in problem for problem in paper.problems for reason in (reader.NOT_READ, reader.NO_TIME)
    )


def _odd_pages(pages: Sequence[Page]) -> Iterator[str]:
    """What was odd about pages, those with the same problem together: "pp. 2-4, 9: no text"."""
    numbers: dict[str, list[int]] = {}
    for page in pages:
        if page.problem:
            numbers.setdefault(page.problem, []).append(page.number)
    for problem, found in numbers.items():
        runs: list[list[int]] = []
        for number in found:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
        yield f"{'p.' if len(found) == 1 else 'pp.'} {named}: {problem}"


def _read(
    files: Sequence[SourceFile], reading: Reading, limits: Limits, extra_futures: Callable[[], Sequence[Future[Any]]]
) -> Iterator[workers.Finished[SourceFile, NewPaper] | workers.Woken]:
    return workers.run_guarded(
        partial(read_paper, reading=reading, max_file_mb=limits.max_file_mb, seconds=_SLOW_SHARE * limits.timeout_s),
        files,
        jobs=limits.jobs,
        timeout_s=limits.timeout_s,
        memory_mb=limits.memory_mb,
        extra_futures=extra_futures,
    )


def _link(library: Library, files: Sequence[SourceFile], now: dict[str, str]) -> Iterator[Outcome]:
    """Files whose papers are in the library already: copies, or the same files under new names.

    now: path -> SHA-256 of every file of this ingest; a path may hold another paper by now.
    """
    if not files:
        return
    wanted = {file.sha256 for file in files}
    held = [other for other in library.files() if other.sha256 in wanted]
    gone = [other.path for other in held if not Path(other.path).exists()]
    library.link(files, gone)
    for file in files:
        others = [other for other in held if other.sha256 == file.sha256]
        kept = [o for o in others if o.path not in gone and now.get(o.path, o.sha256) == o.sha256]
        note = f"The same file as {kept[0].name}." if kept else f"Moved from {others[0].name}."
        yield Outcome(file, "duplicate", notes=(note,))


def _record_failure(library: Library, file: SourceFile, error: PaperError) -> Outcome:
    # What may go well the next time is recorded without the file's hash, so that the file counts as new then.
    known = replace(file, sha256="") if isinstance(error, PaperLimit) else file
    library.record_failure(Failure(known, error.happened, error.remedy))
    return Outcome(file, "failed", notes=(error.happened, error.remedy))
