"""Opens a cited page in a PDF viewer or, without one, renders it with its quotes marked."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from rich.text import Text

from folio.bibliography.export import CitedPage
from folio.console import complain, output, say
from folio.errors import PaperError, PaperLimit, UsageError, command
from folio.papers.model import SourceFile
from folio.pdf import render
from folio.shown_text import name_line, plain, plain_line
from folio.system import workers
from folio.system.files import make_folder, no_space, sha256_file

if TYPE_CHECKING:
    from folio.ingest.pipeline import Limits


# Program -> arguments that open a file at a page. The first one installed is used.
VIEWERS: dict[str, tuple[str, ...]] = {
    "evince": ("--page-index={page}", "{file}"),
    "okular": ("-p", "{page}", "{file}"),
    "zathura": ("-P", "{page}", "{file}"),
    "atril": ("--page-index={page}", "{file}"),
    "xreader": ("--page-index={page}", "{file}"),
    "qpdfview": ("--unique", "{file}#{page}"),
    "sioyek": ("--page", "{page}", "{file}"),
    "mupdf": ("{file}", "{page}"),
    "xpdf": ("{file}", "{page}"),
    "SumatraPDF": ("-reuse-instance", "-page", "{page}", "{file}"),
    # Browsers that show PDFs
    "firefox": ("{link}",),
    "firefox-esr": ("{link}",),
    "chromium": ("{link}",),
    "chromium-browser": ("{link}",),
    "google-chrome": ("{link}",),
    "google-chrome-stable": ("{link}",),
    "brave-browser": ("{link}",),
    "microsoft-edge": ("{link}",),
}
# A viewer that fails has exited by then; a working one is still running or has passed the file on.
_STARTED_S = 1.0


def verify(
    sources: Sequence[CitedPage], files: Sequence[SourceFile], viewer: str, limits: Limits, first: int = 1
) -> int:
    """Print a link to each of these pages and open the first one; render all of them if no viewer can open it.

    files: the library's. viewer: as the setting PDF_VIEWER. limits: for rendering a page. first: number of the first
    source. Returns 1 if a page cannot be shown; the reason is printed. Raises UsageError if the viewer cannot be run.
    """
    code = 0
    pages: list[tuple[CitedPage, Path]] = []
    paths: dict[str, Path | None] = {}  # paper -> its file; None once its absence has been reported
    for number, source in enumerate(sources, first):
        if source.paper not in paths:
            try:
                paths[source.paper] = _pdf(source, files)
            except PaperError as error:
                paths[source.paper] = None
                code = complain(error.happened, error.remedy, error.exit_code)
        path = paths[source.paper]
        if path is None:
            continue
        if not pages:
            output().print("\nPages", style="bold")
        pages.append((source, path))
        line = f"{number}. {name_line(source.file)}, {plain_line(source.where)}  {_link(path, source.page)}"
        output().print(Text(line), soft_wrap=True)
    if not pages or _open(viewer, pages[0][1], pages[0][0].page):
        return code
    return max(code, _render(pages, limits))


def _pdf(source: CitedPage, files: Sequence[SourceFile]) -> Path:
    """The PDF of a source's paper, preferably unchanged since it was ingested. Raises PaperError."""
    known = [Path(file.path) for file in files if file.sha256 == source.paper]
    present = [path for path in known if path.is_file()]
    if not known:
        raise PaperError(f"{source.file} is no longer in the index.", f"Add its PDF again: {command('ingest FILE')}.")
    if not present:
        raise PaperError(
            f"{source.file} is no longer in {known[0].parent}.",
            f"Put it back there, or run `{command('ingest')}` on the folder where it is now.",
        )
    unchanged = next((path for path in present if sha256_file(path) == source.paper), None)
    if unchanged is None:
        happened = f"{source.file} has changed since it was ingested, so its pages may differ."
        say(f"{happened} Run `{command('ingest')}` to read it again.")
    return unchanged or present[0]


def _link(path: Path, page: int) -> str:
    return f"{path.as_uri()}#page={page}"


def _open(viewer: str, path: Path, page: int) -> bool:
    """Open a page in a viewer; returns whether that worked."""
    if viewer == "none":
        return False
    if viewer != "auto":
        if fault := _start([_filled(part, path, page) for part in shlex.split(viewer, posix=os.name != "nt")]):
            raise UsageError(
                f"PDF_VIEWER {fault}: {viewer}.",
                'Set it to a command such as "evince --page-index={page} {file}", to auto or to none.',
            )
        return True
    if not _has_screen():
        return False
    default = "open" if sys.platform == "darwin" else "xdg-open"  # opens the default PDF program at the first page
    for name, arguments in {**VIEWERS, default: ("{file}",)}.items():
        program = shutil.which(name)
        if program and not _start([program, *(_filled(part, path, page) for part in arguments)]):
            return True
    if sys.platform == "win32":
        with suppress(OSError):
            os.startfile(path)
            return True
    return False


def _filled(part: str, path: Path, page: int) -> str:
    return part.replace("{page}", str(page)).replace("{link}", _link(path, page)).replace("{file}", str(path))


def _has_screen() -> bool:
    if sys.platform == "win32":
        return True
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _start(command: Sequence[str]) -> str:
    """Start a viewer. Returns how it failed; "" if it keeps running or exits with 0 within a second."""
    try:
        viewer = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in a chat must not stop it
            env={"BROWSER": "x-www-browser", **os.environ},  # otherwise xdg-open also tries terminal browsers
        )
    except (OSError, ValueError):  # ValueError: the command has a NUL
        return "cannot be run"
    try:
        code = viewer.wait(_STARTED_S)
    except subprocess.TimeoutExpired:
        viewer.returncode = code = 0  # do not wait for it
    return f"failed with exit code {code}" if code else ""


def _render(pages: Sequence[tuple[CitedPage, Path]], limits: Limits) -> int:
    """Write a picture of each page with its quotes marked and print its path; returns 1 if one cannot be rendered."""
    code = 0
    folder = make_folder("folio-pages-")
    names = dict(zip(pages, _names([source for source, _ in pages]), strict=True))
    # In a worker process: a hostile page may take forever, or all memory.
    guarded = workers.run_guarded(_picture, pages, jobs=1, timeout_s=limits.timeout_s, memory_mb=limits.memory_mb)
    with closing(guarded) as pictures:
        for (source, path), picture in pictures:
            if isinstance(picture, PaperError):
                page = f"{source.file}, {source.where}: " if isinstance(picture, PaperLimit) else ""
                code = complain(f"{page}{picture.happened}", picture.remedy, picture.exit_code)
                continue
            target = folder / names[source, path]
            with no_space(folder):
                target.touch(mode=0o600)
                target.write_bytes(picture.png)
            output().print(Text(plain(str(target))), soft_wrap=True)
            if not all(picture.highlighted):
                say(f"Some quotes could not be marked on {source.where} of {source.file}.")
    return code


def _picture(cited: tuple[CitedPage, Path]) -> render.PagePicture:
    source, path = cited
    return render.page_png(path, source.page, [quote for quote, _ in source.quotes], dpi=150)


def _names(sources: Sequence[CitedPage]) -> Iterator[str]:
    """A unique file name for the picture of each page."""
    taken: set[str] = set()
    for source in sources:
        stem = re.sub(r"[^\w.-]+", "_", PurePath(source.file).stem).strip("._")[:80] or "paper"
        name, number = f"{stem}-p{source.page}.png", 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}-p{source.page}.png"
        taken.add(name.casefold())
        yield name
