"""`folio ingest` and ingest.py: reads PDFs into the index, checks the index, and repairs it."""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from folio.cli.command import Parser, run_command, up_to
from folio.console import output, say
from folio.errors import ClusterError, DiskFull, ModelError, ModelServerError, StoreError, UsageError, command
from folio.shown_text import counted, name_line, plain, plain_line

if TYPE_CHECKING:
    from folio.app import App
    from folio.cli.ingest_sources import ZoteroIngest
    from folio.ingest.discovery import Outcome
    from folio.papers.model import SourceFile


MOST_JOBS = 1024


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Read PDFs into the index. Papers that are already in it are skipped.",
        epilog="Settings such as PAPERS_DIR and CHUNK_SIZE come from the environment or .env: see docs/settings.md.",
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="PDFs and folders (default: papers/)")
    jobs = "processes that read PDFs (default: one per core, at most 8; on a cluster, one per free core)"
    parser.add_argument("--jobs", type=up_to(MOST_JOBS), metavar="N", help=jobs)
    on = "read and embed PDFs on a Ray cluster: the one at RAY_ADDRESS, or Ray workers on this computer"
    parser.add_argument("--on", choices=("ray",), help=on)
    parser.add_argument("-v", "--verbose", action="store_true", help="list all warnings of each paper")
    bib = "a bibliography (BibTeX, BibLaTeX or CSL-JSON) with titles, authors and years; its PDFs are read too"
    parser.add_argument("--bib", type=Path, action="append", default=[], metavar="FILE", help=bib)
    parser.add_argument("--prune", action="store_true", help="remove papers whose file is missing")
    zotero = "read the PDFs of a Zotero library where they are (default: the library that Zotero uses)"
    parser.add_argument("--zotero", nargs="?", type=Path, const=False, metavar="DATA_FOLDER", help=zotero)
    collection = "with --zotero: only PDFs in this collection or below it, by name or path; repeatable"
    parser.add_argument("--collection", action="append", default=[], metavar="NAME", help=collection)
    tag = "with --zotero: only PDFs with this tag; repeatable"
    parser.add_argument("--tag", action="append", default=[], metavar="NAME", help=tag)
    watch = "keep the index in step with these folders, and with --zotero, until Ctrl-C: what is new, changed or gone"
    parser.add_argument("--watch", action="store_true", help=watch)
    whole = parser.add_mutually_exclusive_group()
    whole.add_argument("--rebuild", action="store_true", help="read everything again and replace the index")
    whole.add_argument("--verify", action="store_true", help="check that library and indexes agree; change nothing")
    repair = "rebuild the FAISS and BM25 indexes from the library; repair the log, conversations and edits"
    whole.add_argument("--repair", action="store_true", help=repair)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "ingest.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_args(argv)
    return run_command(lambda app: run(app, arguments))


def run(app: App, arguments: argparse.Namespace) -> int:
    """Ingest, verify or repair, as the parsed arguments say; returns the exit code."""
    from folio.store import indexes

    checks = arguments.verify or arguments.repair
    if checks and (arguments.paths or arguments.prune or arguments.bib or arguments.zotero is not None):
        remedy = "Run them without PATH, --prune, --bib and --zotero."
        raise UsageError("--verify and --repair work on the whole index.", remedy)
    if checks and arguments.on:
        raise UsageError("--verify and --repair read no PDFs.", "Run them without --on.")
    if (arguments.collection or arguments.tag) and arguments.zotero is None:
        raise UsageError("--collection and --tag choose from a Zotero library.", "Add --zotero.")
    if checks and not app.has_library():
        app.open_library().close()  # without a store this fails, before the lock would create its folder
    if arguments.watch:
        return _watch(app, arguments)
    if arguments.verify:
        with _lock_if_possible(app):
            return _verify(app)
    with indexes.writing(app.store_folder):
        return _repair(app) if arguments.repair else _ingest(app, arguments)


def _ingest(app: App, arguments: argparse.Namespace) -> int:
    from folio.cli import ingest_sources
    from folio.cli.progress import IngestProgressBar
    from folio.ingest import discovery

    began = perf_counter()
    known = app.known_files(thorough=arguments.rebuild)
    app = replace(app, patience_s=math.inf)  # its server was there a moment ago, and may only be restarting
    zotero = _zotero(arguments)
    bibliographies = ingest_sources.read(arguments.bib)
    skips_papers_folder = zotero or (bibliographies and not app.papers_folder.exists())
    pdfs = discovery.find_pdfs(arguments.paths or ([] if skips_papers_folder else [app.papers_folder]))
    pdfs = ingest_sources.named_pdfs(bibliographies) | pdfs
    retry = frozenset(os.path.abspath(path) for path in arguments.paths if path.is_file())
    # An empty folder is more likely a mistake than a wish to prune everything.
    if not pdfs and not zotero and (len(known) > 1 or not arguments.prune):
        where = ", ".join(map(str, arguments.paths)) or app.papers_folder
        raise UsageError(
            f"There are no PDFs in {where}.", f"Put PDFs there, or name a folder: {command('ingest FOLDER')}."
        )
    if zotero:
        pdfs = zotero.files | pdfs
    missing = [path for path in known if not path.exists()]
    if arguments.rebuild:
        pdfs = {path: file.name for path, file in known.items() if path not in missing} | pdfs
    with IngestProgressBar(len(pdfs)) as progress:
        files, outcomes = discovery.hash_files(pdfs, progress)
        if arguments.rebuild and not arguments.prune:
            _refuse_missing([known[path] for path in missing], files)
        jobs, on_ray = arguments.jobs, arguments.on == "ray"
        work = (
            app.rebuild(files, progress, jobs=jobs, on_ray=on_ray)
            if arguments.rebuild
            else app.ingest(files, progress, jobs=jobs, retry=retry, on_ray=on_ray)
        )
        try:
            with app.finishing(), closing(work):
                if zotero and not arguments.rebuild:  # a rebuild may have to repair the library first
                    zotero.describe(app, files)
                for outcome in work:
                    outcomes.append(outcome)
                    progress.done(outcome)
                if zotero and arguments.rebuild:
                    zotero.describe(app, files)
                if zotero:
                    outcomes += zotero.remove(app)
                if arguments.prune:
                    outcomes += app.prune()
                imported = ingest_sources.import_all(app, bibliographies)
        except (KeyboardInterrupt, SystemExit, ModelError, ClusterError) as error:
            progress.stop()
            # A model that cannot be used failed before the first paper, and will fail again.
            if progress.added or isinstance(error, KeyboardInterrupt | SystemExit | ModelServerError):
                count = f"Papers read so far: {progress.added}."
                scan = f" OCR has read {progress.scan}." if progress.scan else ""
                say(f"Stopped. {count}{scan} They are kept; run the same command again to continue.")
            raise
        except StoreError:
            progress.stop()
            if any(outcome.status != "unchanged" for outcome in outcomes):
                _report(app, outcomes, perf_counter() - began, arguments.verbose)
            raise
    code = _report(app, outcomes, perf_counter() - began, arguments.verbose) if outcomes else 0
    _report_versions(app, outcomes)
    code = max(code, ingest_sources.report(bibliographies, imported, outcomes, arguments.verbose))
    if zotero:
        zotero.report(verbose=arguments.verbose)
    if not arguments.prune:
        _report_missing(app.known_files())  # looked up again: a moved file is in the index under its new path
    return code


def _watch(app: App, arguments: argparse.Namespace) -> int:
    """Keep the index in step until Ctrl-C or SIGTERM, the normal ways to stop."""
    from folio.cli.progress import IngestProgressBar
    from folio.store import indexes
    from folio.sync import Hooks, Sync, ZoteroChoice

    if arguments.prune or arguments.rebuild or arguments.verify or arguments.repair or arguments.bib or arguments.on:
        remedy = "Run --prune, --rebuild, --verify, --repair, --bib and --on by themselves."
        raise UsageError("--watch keeps the index in step, and does nothing else.", remedy)
    folders = arguments.paths or ([app.papers_folder] if arguments.zotero is None else [])
    if unknown := [folder for folder in folders if not folder.exists() and not _is_known(app, folder)]:
        raise UsageError(f"There is no file or folder {unknown[0]}.", "Check the path, or put PDFs into papers/.")
    zotero = ZoteroChoice(arguments.zotero or None, arguments.collection, arguments.tag)
    hooks = Hooks(
        lambda: indexes.writing(app.store_folder),
        IngestProgressBar,
        lambda outcomes: _report_changes(app, outcomes, arguments.verbose),
        jobs=arguments.jobs,
    )
    sync = Sync(app, folders, None if arguments.zotero is None else zotero, hooks, app.watched.poll_s)
    names = [*map(str, folders), *([] if arguments.zotero is None else ["Zotero"])]
    where = ", ".join(map(plain_line, names))
    try:
        sync.run(lambda: say(f"In step with {where}. Ctrl-C stops it."), strict=True)
    except (KeyboardInterrupt, SystemExit):
        say("Stopped. What was read is kept.")
    return 0


def _is_known(app: App, folder: Path) -> bool:
    """Whether the index has papers from a folder."""
    return any(path.is_relative_to(os.path.abspath(folder)) for path in app.known_files())


def _report_changes(app: App, outcomes: Sequence[Outcome], verbose: bool) -> None:
    """Print what has become of files that changed."""
    changed = [outcome for outcome in outcomes if outcome.status != "unchanged"]
    for outcome in changed:
        sizes = f"{counted(outcome.pages, 'page')}, {counted(outcome.chunks, 'passage')}" if outcome.chunks else ""
        told = ". ".join(filter(None, [sizes, _note(outcome, verbose)]))
        status = {"pruned": "removed", "duplicate": "linked"}.get(outcome.status, outcome.status)
        line = f"{status}: {plain_line(outcome.file.name)}{f' ({plain(told)})' if told else ''}"
        output().print(line, markup=False, highlight=False, style="red" if status == "failed" else "")
    _report_versions(app, changed)


def _report_missing(known: Mapping[Path, SourceFile]) -> None:
    """Print what --prune would do about papers none of whose files is there; those with another file stay."""
    from folio.ingest.discovery import is_gone

    there = {file.sha256 for path, file in known.items() if path.exists()}
    missing = [path for path, file in known.items() if file.sha256 not in there]
    gone = [path for path in missing if is_gone(path)]
    if gone:
        say(f"Indexed files that are missing: {len(gone)}. --prune removes their papers.")
    if len(missing) > len(gone):
        say(f"Indexed files whose whole folder is missing: {len(missing) - len(gone)}. Their papers stay in the index.")


def _refuse_missing(missing: Sequence[SourceFile], files: Sequence[SourceFile]) -> None:
    """Raise UsageError if a rebuild would lose a paper. `files` has a renamed file under its new name."""
    present = {file.sha256 for file in files}
    lost = [file for file in missing if file.sha256 not in present]
    if lost:
        raise UsageError(
            f"Indexed files that are missing: {len(lost)}, including {lost[0].name}.",
            f"Restore them, or rebuild the index without them: {command('ingest --rebuild --prune')}.",
        )


def _zotero(arguments: argparse.Namespace) -> ZoteroIngest | None:
    """The Zotero library of --zotero. Raises UsageError."""
    if arguments.zotero is None:
        return None
    from folio.cli.ingest_sources import ZoteroIngest

    return ZoteroIngest(arguments.zotero or None, arguments.collection, arguments.tag)


def _report(app: App, outcomes: Sequence[Outcome], seconds: float, verbose: bool) -> int:
    """Print what became of the files; returns the exit code."""
    from rich.table import Table
    from rich.text import Text

    counts = Counter(outcome.status for outcome in outcomes)
    new = [outcome for outcome in outcomes if outcome.status in ("added", "replaced")]
    skipped = counts["unchanged"] + counts["duplicate"]
    if not new and not counts["failed"] and not counts["pruned"] and not counts["duplicate"]:
        papers = len({outcome.file.sha256 for outcome in outcomes})
        verb = "the one paper is" if papers == 1 else f"all {papers} papers are"
        output().print(f"Nothing new: {verb} already in the index ({seconds:.1f} s).")
        return 0
    table = Table("", "papers", "pages", "passages", box=None, pad_edge=False, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for status in ("added", "replaced"):
        papers_of = [outcome for outcome in new if outcome.status == status]
        pages, chunks = sum(o.pages for o in papers_of), sum(o.chunks for o in papers_of)
        table.add_row(status, str(len(papers_of)), f"{pages:,}", f"{chunks:,}")
    table.add_row("skipped", str(skipped), "", "")
    table.add_row("failed", str(counts["failed"]), "", "", style="red" if counts["failed"] else "")
    if counts["pruned"]:
        table.add_row("removed", str(counts["pruned"]), "", "")
    output().print(table)
    notes = Table(box=None, pad_edge=False, show_header=False)
    for outcome in outcomes:
        if outcome.notes or outcome.status == "pruned":
            text = _note(outcome, verbose) or "Removed from the index, because its file is missing."
            style = "red" if outcome.status == "failed" else ""
            notes.add_row(Text(plain_line(outcome.file.name), style=style, overflow="fold"), Text(plain(text)))
    if notes.row_count:
        output().print("\nNotes:")
        output().print(notes)
    output().print(f"\n{seconds:.1f} s. Contents of the index: {plain(str(app.record_file))}")
    return 1 if counts["failed"] else 0


def _report_versions(app: App, outcomes: Sequence[Outcome]) -> None:
    """Print which papers are versions of each other, if one of them is new."""
    from folio.papers.versions import is_superseded

    new = {outcome.file.sha256 for outcome in outcomes if outcome.status in ("added", "replaced")}
    versions = app.versions_among(new) if new else []
    said: dict[tuple[str, str], list[str]] = {}  # one line for all copies of a paper
    for paper in versions:
        if paper.flag:
            said.setdefault((paper.copy_of or paper.id, paper.flag.text), []).append(name_line(paper.file))
    for (_, text), files in said.items():
        output().print(f"{', '.join(files)}: {text}.", markup=False)
    if any(paper.is_copy for paper in versions):
        output().print("Answers use one of several copies, unless you choose another with --paper.")
    if any(is_superseded(paper) and not paper.is_copy for paper in versions):
        output().print("Answers use the newer version, unless you choose the older one with --paper.")


def _note(outcome: Outcome, verbose: bool) -> str:
    """The notes on a file: all of them if verbose; of a paper that was read, only the first and advice otherwise."""
    first, *rest = outcome.notes or ("",)
    if verbose or outcome.status not in ("added", "replaced"):
        return ("\n" if verbose else " ").join((first, *rest))
    advice = [note for note in rest if note.startswith("to read ")]
    more = len(rest) - len(advice)
    return "; ".join((first, *advice)) + (f" ({more} more with -v)" if more else "")


@contextmanager
def _lock_if_possible(app: App) -> Iterator[None]:
    """Hold the writer lock; on a read-only disk, where there can be none, print a notice and continue."""
    from folio.store import indexes

    with ExitStack() as stack:
        try:
            stack.enter_context(indexes.writing(app.store_folder))
        except (OSError, DiskFull):
            say(f"{app.store_folder} cannot be written, so it is checked without a lock against other writers.")
        yield


def _verify(app: App) -> int:
    from folio.store.database import DAMAGED

    problems = app.verify()
    for problem in problems:
        output().print(problem, markup=False)
    if problems:
        output().print(f"Run `{command('ingest --repair')}`." if app.backend.is_sound() else DAMAGED)
        return 1
    output().print("The index is consistent: library, vectors and BM25 agree.")
    return 0


def _repair(app: App) -> int:
    repaired = app.repair()
    passages = f"{repaired.passages:,} passages"
    output().print(f"Rebuilt FAISS and BM25 from the library: {passages}. Nothing was embedded again.")
    return max(_verify(app), int(not repaired.is_complete))
