"""The ingest pipeline: files -> pages -> text -> chunks -> vectors -> library.

Guarded worker processes read the PDFs (workers.py) while a thread embeds their passages. The caller's thread adds each
paper to the library once all its vectors are there (embedding_queue.py). The FAISS and BM25 indexes are updated at the
end (indexes.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
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

# Share of a file's time limit that the layout model and OCR may use; what they have read by then is kept.
_SLOW_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading one file, and the number of worker processes."""

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
    progress: IngestProgress,
    *,
    batch: int,
    retry: frozenset[str] = frozenset(),
) -> Iterator[Outcome]:
    """Bring the library up to date with these files; yields an outcome for each file as it is done.

    get_embedder is called when there is something to embed. batch: passages per call of the embedder. retry: paths to
    read again although they failed before, or had pages that OCR may be able to read now. The caller holds the writer
    lock.
    """
    known = {file.path: file.sha256 for file in library.files()}
    plan = _plan(library, files, known, retry)
    yield from plan.outcomes
    now = {file.path: file.sha256 for file in files}
    yield from _link(library, plan.moved, now)  # before new papers take over their old paths
    new = list(plan.new.values())
    progress.planned(new)
    failed: dict[str, PaperError] = {}
    make_embedder = partial(_make_embedder, library, get_embedder, reading)
    with closing(EmbeddingQueue(library, make_embedder, batch, progress.embedded)) as queue:
        for read in _read_papers(new, reading, limits, queue.pending_futures):
            if isinstance(read, workers.Finished):
                file, result = read
                if isinstance(result, PaperError):
                    failed[file.sha256] = result
                    yield _record_failure(library, file, result)
                else:
                    queue.put(file, result)
            for added in queue.advance(allow_partial=isinstance(read, workers.Woken)):
                yield _added_outcome(*added, known)
        for added in queue.finish():
            yield _added_outcome(*added, known)
    library.forget_pending()
    for file in plan.copies:
        if file.sha256 in failed:
            yield _record_failure(library, file, failed[file.sha256])
    yield from _link(library, [file for file in plan.copies if file.sha256 not in failed], now)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with the files of an ingest."""

    outcomes: list[Outcome] = field(default_factory=list)  # of files that need no work
    new: dict[str, SourceFile] = field(default_factory=dict)  # SHA-256 -> the file to read
    moved: list[SourceFile] = field(default_factory=list)  # moved or copied: their paper is in the library already
    copies: list[SourceFile] = field(default_factory=list)  # of files in `new`


def _plan(library: Library, files: Sequence[SourceFile], known: Mapping[str, str], retry: Container[str]) -> _Plan:
    """known: path -> SHA-256 of the files in the library."""
    plan = _Plan()
    failures = {failure.file.path: failure for failure in library.failures()}
    papers = set(known.values())
    for file in files:
        failure = failures.get(file.path)
        if known.get(file.path) == file.sha256 and not (file.path in retry and _may_read_better(library, file)):
            if failure:
                library.forget_failure(file.path)
            plan.outcomes.append(Outcome(file, "unchanged"))
        elif failure and failure.file.sha256 == file.sha256 and file.path not in retry:
            notes = (failure.happened, failure.remedy, "Not tried again: the file has not changed.")
            plan.outcomes.append(Outcome(file, "failed", notes=notes))
        elif file.sha256 in papers and known.get(file.path) != file.sha256:
            plan.moved.append(file)
        elif file.sha256 in plan.new:
            plan.copies.append(file)
        else:
            plan.new[file.sha256] = file
    return plan


def prune(library: Library) -> Iterator[Outcome]:
    """Remove every file that is gone, and its paper; if the whole folder is gone, keep it: a disk may be absent."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files}.values():
        if is_gone(Path(file.path)):
            library.drop(file.path)
            yield Outcome(file, "pruned")
        elif not Path(file.path).parent.is_dir():
            yield Outcome(file, "unchanged", notes=("Kept, because its whole folder is missing.",))


def record(library: Library) -> list[dict[str, object]]:
    """The papers of the library and the files that could not be read, in the format of ingested.json."""
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
    """Read, clean and split one file. Runs in a worker process. Raises PaperError.

    seconds: time limit for the layout model and OCR; pages that they do not reach are reported.
    """
    path = Path(file.path)
    size = path.stat().st_size / 1e6
    if size > max_file_mb:
        raise PaperLimit(
            f"The file has {size:,.0f} MB, and MAX_FILE_MB is {max_file_mb}.",
            "Split the file, or raise MAX_FILE_MB if you trust it.",
        )
    parsed = reader.read_pdf(path, layout=reading.parser == "layout", ocr=reading.ocr, seconds=seconds)
    text, pages = cleaning.clean(parsed.pages)
    spans = chunking.split(text, reading.chunk_size, reading.chunk_overlap)
    if not spans:
        raise PaperError("No text is left after cleaning.", "Run OCR on it, for example `ocrmypdf in.pdf out.pdf`.")
    problems = (*parsed.problems, *_page_problems(parsed.pages))
    metadata = (parsed.title, parsed.authors, parsed.year)
    return NewPaper(file.sha256, *metadata, text, pages, spans, problems, parsed.arxiv)


def _added_outcome(file: SourceFile, paper: NewPaper, known: Mapping[str, str]) -> Outcome:
    status: Status = "replaced" if file.path in known else "added"
    return Outcome(file, status, len(paper.pages.starts), len(paper.spans), paper.problems)


def _make_embedder(library: Library, get_embedder: Callable[[], Embedder], reading: Reading) -> Embedder:
    embedder = get_embedder()
    if not library.fingerprint():
        library.set_fingerprint(fingerprint(embedder, reading))
    return embedder


def _may_read_better(library: Library, file: SourceFile) -> bool:
    """Whether a paper has pages that may be read now. A paper of several files is not read again for one of them."""
    paper = library.papers_by_id([file.sha256])[0]
    has_one_file = sum(other.sha256 == file.sha256 for other in library.files()) == 1
    return has_one_file and any(
        reason in problem for problem in paper.problems for reason in (reader.NOT_READ, reader.NO_TIME)
    )


def _page_problems(pages: Sequence[Page]) -> Iterator[str]:
    """The problems of pages, grouped: "pp. 2-4, 9: no text"."""
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
        listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
        yield f"{'p.' if len(found) == 1 else 'pp.'} {listed}: {problem}"


def _read_papers(
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
    """Link files whose papers are in the library already: copies, or files that were moved.

    now: path -> SHA-256 of every file of this ingest; a known path may hold another paper by now.
    """
    if not files:
        return
    papers = {file.sha256 for file in files}
    linked = [other for other in library.files() if other.sha256 in papers]
    gone = [other.path for other in linked if not Path(other.path).exists()]
    library.link(files, gone)
    for file in files:
        others = [other for other in linked if other.sha256 == file.sha256]
        kept = [o for o in others if o.path not in gone and now.get(o.path, o.sha256) == o.sha256]
        note = f"The same file as {kept[0].name}." if kept else f"Moved from {others[0].name}."
        yield Outcome(file, "duplicate", notes=(note,))


def _record_failure(library: Library, file: SourceFile, error: PaperError) -> Outcome:
    # A file over a limit may succeed next time: recorded without its hash, it counts as new then.
    recorded = replace(file, sha256="") if isinstance(error, PaperLimit) else file
    library.record_failure(Failure(recorded, error.happened, error.remedy))
    return Outcome(file, "failed", notes=(error.happened, error.remedy))
