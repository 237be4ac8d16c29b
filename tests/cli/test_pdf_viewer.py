"""Looking a citation up: which viewer is started and how, and the pictures where there is none."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from folio import console
from folio.bibliography.export import CitedPage
from folio.cli import viewer as pdf_viewer
from folio.errors import UsageError
from folio.ingest.pipeline import Limits
from folio.papers.model import SourceFile
from folio.pdf.render import page_png
from folio.system import workers
from tests.helpers.answers import endless
from tests.helpers.factories import GLACIERS, OTTERS, write_pdf
from tests.helpers.fakes import read_here

pytestmark = pytest.mark.environment

if sys.platform == "win32":
    pytest.skip("the stand-ins of viewers are shell scripts", allow_module_level=True)

PNG = b"\x89PNG\r\n\x1a\n"
RUN_GUARDED = workers.run_guarded
QUOTE = "No other mammal has a denser fur."


@dataclass
class Screen:
    """A computer with papers, and with programs that write down what they were started with."""

    folder: Path
    capfd: pytest.CaptureFixture[str]
    seconds: float = 60  # that a page may take to draw

    def __post_init__(self) -> None:
        for folder in (self.programs, self.pictures):
            folder.mkdir()

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def pictures(self) -> Path:
        """The system's temporary folder."""
        return self.folder / "tmp"

    @property
    def drawn(self) -> list[Path]:
        return sorted(self.pictures.glob("*/*"))

    def program(self, name: str, code: int = 0) -> Path:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{self.folder}/{name}.started"\nexit {code}\n')
        path.chmod(0o755)
        return path

    def started(self, name: str) -> list[str] | None:
        """What a program was started with; None where it was not."""
        found = self.folder / f"{name}.started"
        return found.read_text().splitlines() if found.exists() else None

    def verify(
        self, sources: list[CitedPage], files: list[SourceFile], viewer: str = "auto", first: int = 1
    ) -> tuple[int, list[str], list[str]]:
        """The exit code, and the lines on standard output and standard error."""
        self.capfd.readouterr()
        code = pdf_viewer.verify(sources, files, viewer, Limits(1, self.seconds, 1024, 500), first)
        out, err = self.capfd.readouterr()
        heading = "\nPages\n"
        assert out == "" or out.startswith(heading)
        return code, out.removeprefix(heading).splitlines(), err.splitlines()


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Screen:
    """A computer with a screen and no program."""
    found = Screen(tmp_path, capfd)
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PATH", str(found.programs))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(tempfile, "tempdir", str(found.pictures))
    monkeypatch.setattr(workers, "run_guarded", read_here)
    console.output.cache_clear()
    console.errors.cache_clear()
    return found


def read_in(path: Path, name: str = "") -> SourceFile:
    """A file as ingest found it."""
    return SourceFile(str(path), name or path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def cited(file: SourceFile, page: int, *quotes: str) -> CitedPage:
    return CitedPage(file.sha256, file.name, "A Title", page, "", tuple((quote, 1.0) for quote in quotes))


@pytest.fixture
def otters(screen: Screen) -> SourceFile:
    return read_in(write_pdf(screen.folder / "my papers" / "otters #1.pdf", OTTERS))


@pytest.fixture
def glaciers(screen: Screen) -> SourceFile:
    return read_in(write_pdf(screen.folder / "glaciers.pdf", GLACIERS), "alps/glaciers.pdf")


# Viewers


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("evince", "--page-index=2 FILE"), ("okular", "-p 2 FILE"), ("zathura", "-P 2 FILE"),
        ("atril", "--page-index=2 FILE"), ("xreader", "--page-index=2 FILE"), ("qpdfview", "--unique FILE#2"),
        ("sioyek", "--page 2 FILE"), ("mupdf", "FILE 2"), ("xpdf", "FILE 2"),
        ("firefox", "LINK"), ("google-chrome", "LINK"), ("xdg-open", "FILE"),
    ],
)  # fmt: skip
def test_the_viewer_that_is_there_opens_the_page(screen: Screen, otters: SourceFile, name: str, arguments: str) -> None:
    screen.program(name)
    code, out, err = screen.verify([cited(otters, 2, "An adult otter")], [otters])
    assert (code, err) == (0, [])
    link = f"file://{screen.folder}/my%20papers/otters%20%231.pdf#page=2"
    assert out == [f"1. otters #1.pdf, p. 2  {link}"]
    expected = [part.replace("FILE", otters.path).replace("LINK", link) for part in arguments.split()]
    assert screen.started(name) == expected
    assert screen.drawn == []


def test_a_viewer_that_cannot_start_is_passed_over(screen: Screen, otters: SourceFile) -> None:
    screen.program("evince", code=1)
    screen.program("mupdf")
    assert screen.verify([cited(otters, 1)], [otters])[0] == 0
    assert screen.started("mupdf") == [otters.path, "1"]


def test_a_command_of_the_person(screen: Screen, otters: SourceFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY")
    screen.program("mine")
    assert screen.verify([cited(otters, 2)], [otters], "mine --at={page} 'a b' {file}")[0] == 0
    assert screen.started("mine") == ["--at=2", "a b", otters.path]
    screen.program("mine", code=3)
    for viewer, said in (
        ("mine {file}", "PDF_VIEWER failed with exit code 3: mine {file}."),
        ("nobody-has-this {file}", "PDF_VIEWER cannot be run: nobody-has-this {file}."),
        ("mine \0 {file}", "PDF_VIEWER cannot be run: mine \0 {file}."),
    ):
        with pytest.raises(UsageError) as raised:
            screen.verify([cited(otters, 2)], [otters], viewer)
        assert raised.value.happened == said
        assert "to auto or to none" in raised.value.remedy
    assert screen.drawn == []


def test_a_file_name_is_no_template(screen: Screen) -> None:
    odd = read_in(write_pdf(screen.folder / "{link} of {page}.pdf", OTTERS))
    for name in ("xdg-open", "evince"):
        screen.program(name)
        assert screen.verify([cited(odd, 2)], [odd])[0] == 0
    assert screen.started("xdg-open") == [odd.path]
    assert screen.started("evince") == ["--page-index=2", odd.path]


def test_viewers_come_before_browsers_and_the_system(screen: Screen, otters: SourceFile) -> None:
    for name, before in (("xdg-open", None), ("firefox", "xdg-open"), ("xpdf", "firefox"), ("evince", "xpdf")):
        screen.program(name)
        assert screen.verify([cited(otters, 2)], [otters])[0] == 0
        assert screen.started(name) is not None
        (screen.folder / f"{name}.started").unlink()
        assert before is None or screen.started(before) is None
    assert screen.drawn == []


def test_the_system_is_kept_from_a_text_browser(screen: Screen, otters: SourceFile) -> None:
    program = screen.program("xdg-open")
    program.write_text(f'#!/bin/sh\necho "$BROWSER" > "{screen.folder}/xdg-open.started"\n')
    assert screen.verify([cited(otters, 2)], [otters])[0] == 0
    assert screen.started("xdg-open") == ["x-www-browser"]


def test_the_page_is_drawn_where_the_system_knows_no_viewer(screen: Screen, otters: SourceFile) -> None:
    program = screen.program("xdg-open", code=4)
    program.write_text(f"#!/bin/sh\necho no default application >&2\n{program.read_text()}")
    code, out, err = screen.verify([cited(otters, 2)], [otters])
    assert (code, out[1:], err) == (0, [str(screen.drawn[0])], [])
    assert screen.started("xdg-open") == [otters.path]
    assert screen.drawn[0].name == "otters_1-p2.png"


def test_a_text_browser_is_no_viewer(screen: Screen, otters: SourceFile) -> None:
    names = ("lynx", "w3m", "links", "elinks", "www-browser")
    for name in names:
        screen.program(name)
    assert screen.verify([cited(otters, 2)], [otters])[0] == 0
    assert [screen.started(name) for name in names] == [None] * len(names)
    assert len(screen.drawn) == 1


# Pictures


@pytest.mark.parametrize("why", ["no screen", "no program", "as set"])
def test_pages_are_drawn_where_nothing_opens_them(
    screen: Screen, otters: SourceFile, glaciers: SourceFile, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why != "no program":
        screen.program("evince")
    if why == "no screen":
        monkeypatch.delenv("DISPLAY")
    sources = [cited(otters, 1, QUOTE, "The fur of a sea otter"), cited(glaciers, 3, "a gauge that is not there")]
    code, out, err = screen.verify(sources, [otters, glaciers], "none" if why == "as set" else "auto")
    assert code == 0
    first, second = screen.drawn[1], screen.drawn[0]
    assert out[2:] == [str(first), str(second)]
    assert [first.name, second.name] == ["otters_1-p1.png", "glaciers-p3.png"]
    assert first.read_bytes().startswith(PNG)
    assert first.read_bytes() == page_png(Path(otters.path), 1, [QUOTE, "The fur of a sea otter"]).png
    assert first.read_bytes() != page_png(Path(otters.path), 1, []).png
    assert err == ["Some quotes could not be marked on p. 3 of alps/glaciers.pdf."]
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (first.parent, first)] == [0o700, 0o600]
    assert first.parent.parent == screen.pictures
    assert screen.started("evince") is None


def test_pictures_of_papers_with_one_name_have_their_own(screen: Screen) -> None:
    one = read_in(write_pdf(screen.folder / "one" / "paper.pdf", OTTERS))
    other = read_in(write_pdf(screen.folder / "other" / "Paper.pdf", GLACIERS))
    odd = read_in(write_pdf(screen.folder / "\x1b[31m….pdf", GLACIERS[:1]))
    sources = [cited(one, 1), cited(other, 1), cited(odd, 1)]
    code, out, _ = screen.verify(sources, [one, other, odd], "none")
    assert code == 0
    assert [path.rpartition("/")[2] for path in out[3:]] == ["paper-p1.png", "Paper-2-p1.png", "31m-p1.png"]
    assert all(line.isprintable() for line in out)


# Files that are not where they were


def test_a_missing_file_is_named_and_the_next_opened(
    screen: Screen, otters: SourceFile, glaciers: SourceFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(otters.path).unlink()
    screen.program("evince")
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(pdf_viewer, "sha256_file", counted)
    sources = [cited(file, page) for page in (1, 2) for file in (otters, glaciers)]
    code, out, err = screen.verify(sources, [otters, glaciers], first=4)
    assert code == 1
    assert err == [
        f"otters #1.pdf is no longer in {screen.folder}/my papers.",
        "Put it back there, or run `python ingest.py` on the folder where it is now.",
    ]
    assert [line.split("  ")[0] for line in out] == ["5. alps/glaciers.pdf, p. 1", "7. alps/glaciers.pdf, p. 2"]
    assert out[0].endswith("/glaciers.pdf#page=1")
    assert hashed == [Path(glaciers.path)]  # once, however many of its pages are cited
    assert screen.started("evince") == ["--page-index=1", glaciers.path]


def test_a_name_with_a_line_end_stays_on_its_line(screen: Screen) -> None:
    screen.program("evince")
    odd = read_in(write_pdf(screen.folder / "ice\n1. forged.pdf", GLACIERS))
    code, out, _ = screen.verify([cited(odd, 2)], [odd])
    assert (code, len(out)) == (0, 1)
    assert out[0].startswith("1. ice 1. forged.pdf, p. 2  file:")
    Path(odd.path).unlink()
    assert screen.verify([cited(odd, 2)], [odd])[2][0] == f"ice 1. forged.pdf is no longer in {screen.folder}."


def test_a_paper_that_has_left_the_index(screen: Screen, otters: SourceFile) -> None:
    code, out, err = screen.verify([cited(otters, 1)], [])
    assert (code, out) == (1, [])
    assert err == ["otters #1.pdf is no longer in the index.", "Add its PDF again: python ingest.py FILE."]


def test_a_copy_is_opened_for_a_file_gone_or_changed(screen: Screen, otters: SourceFile, glaciers: SourceFile) -> None:
    screen.program("evince")
    copy = screen.folder / "copy.pdf"
    copy.write_bytes(Path(otters.path).read_bytes())
    files = [otters, SourceFile(str(copy), "copy.pdf", otters.sha256)]
    Path(otters.path).write_bytes(Path(glaciers.path).read_bytes())
    code, _, (changed,) = screen.verify([cited(otters, 1)], [otters])  # without the copy
    assert code == 0
    assert changed.startswith("otters #1.pdf has changed since it was ingested")
    assert screen.started("evince") == ["--page-index=1", otters.path]
    assert screen.verify([cited(otters, 2)], files)[::2] == (0, [])
    assert screen.started("evince") == ["--page-index=2", str(copy)]
    Path(otters.path).unlink()
    assert screen.verify([cited(otters, 1)], files)[::2] == (0, [])
    assert screen.started("evince") == ["--page-index=1", str(copy)]


def test_a_page_that_cannot_be_drawn_is_named(screen: Screen, otters: SourceFile, glaciers: SourceFile) -> None:
    code, out, err = screen.verify([cited(otters, 9), cited(glaciers, 1)], [otters, glaciers], "none")
    assert code == 1
    assert out[2:] == [str(path) for path in screen.drawn]
    assert [path.name for path in screen.drawn] == ["glaciers-p1.png"]
    assert err[0].startswith("otters #1.pdf has no page 9")


def test_an_endless_page_is_given_up_and_others_are_drawn(
    screen: Screen, glaciers: SourceFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "run_guarded", RUN_GUARDED)
    screen.seconds = 3
    hostile = read_in(endless(screen.folder / "endless.pdf"))
    code, _, err = screen.verify([cited(hostile, 1), cited(glaciers, 1)], [hostile, glaciers], "none")
    assert code == 1
    assert err == [
        "endless.pdf, p. 1: Reading the file took longer than 3 s.",
        "Raise PARSE_TIMEOUT_S (now 3), or leave the file out of the folder.",
    ]
    assert [path.name for path in screen.drawn] == ["glaciers-p1.png"]
    assert screen.drawn[0].read_bytes() == page_png(Path(glaciers.path), 1, []).png
