"""A folder of Markdown is written again without touching what a person wrote in it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from folio.bibliography import folder
from folio.bibliography.folder import MARK, Page, page_name, write_folder
from folio.errors import UsageError

pytestmark = pytest.mark.fast

ABOUT: dict[str, folder.Value] = {"title": "On “Otters”: a\nstudy", "year": 2021, "doi": ""}
OTTERS = Page("paper 1", "papers", "On Otters (otter2021)", ABOUT, "# A")
SEALS = Page("paper 2", "papers", "On Seals (seal2020)", {"title": "On Seals"}, "# B")
MINE = "\n\nMy words, [[On Seals (seal2020)]].\n"


def write(place: Path, *pages: Page) -> folder.Written:
    return write_folder(place, pages, ("paper",))


def files(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_pages_are_written_once(tmp_path: Path) -> None:
    assert write(tmp_path / "vault", OTTERS, SEALS).new == 2
    path = tmp_path / "vault" / "papers" / "On Otters (otter2021).md"
    text = path.read_text(encoding="utf-8")
    assert text.startswith('---\nfolio: "paper 1"\n')
    assert '\ntitle: "On “Otters”: a study"\nyear: 2021\n---\n# A\n\n' in text
    assert text.endswith(f"{MARK}\n")
    before = path.stat().st_mtime_ns
    assert write(tmp_path / "vault", OTTERS, SEALS) == folder.Written()
    assert path.stat().st_mtime_ns == before


def test_what_a_person_wrote_stays_when_all_else_changes(tmp_path: Path) -> None:
    write(tmp_path, OTTERS, SEALS)
    path = tmp_path / "papers" / "On Otters (otter2021).md"
    own = "rating: 5\nread:\n  - once\n  - twice\n"
    text = path.read_text(encoding="utf-8").replace("year: 2021\n", f"year: 2021\n{own}")
    path.write_bytes((text + MINE).replace("\n", "\r\n").encode())  # as an editor on Windows saves it
    moved = tmp_path / "mine" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    titled = replace(OTTERS, name="On Sea Otters (otter2021)", fields={"title": "On Sea Otters"}, body="# New")
    done = write(tmp_path, titled, SEALS)
    assert (done.changed, done.renamed, done.new) == (1, 1, 0)
    assert files(tmp_path) == ["mine/On Sea Otters (otter2021).md", "papers/On Seals (seal2020).md"]
    text = (tmp_path / "mine" / "On Sea Otters (otter2021).md").read_bytes().decode()
    assert text.endswith(f"{MARK}\r\n" + MINE.replace("\n", "\r\n"))
    assert "rating: 5\nread:\n  - once\n  - twice\n---\n# New\n" in text
    assert 'aliases: ["On Otters (otter2021)"]\n' in text
    assert "year: 2021" not in text
    assert write(tmp_path, titled, SEALS) == folder.Written()


def test_a_name_that_the_person_gave_stays(tmp_path: Path) -> None:
    write(tmp_path, OTTERS)
    (tmp_path / "papers" / "On Otters (otter2021).md").rename(tmp_path / "papers" / "Fur.md")
    assert write(tmp_path, replace(OTTERS, name="On Sea Otters (otter2021)", body="# New")).renamed == 0
    assert files(tmp_path) == ["papers/Fur.md"]
    assert "# New" in (tmp_path / "papers" / "Fur.md").read_text(encoding="utf-8")


def test_a_file_of_the_persons_own_is_never_replaced(tmp_path: Path) -> None:
    own = tmp_path / "papers" / "on otters (otter2021).md"
    own.parent.mkdir()
    own.write_text("mine", encoding="utf-8")
    write(tmp_path, OTTERS)
    assert files(tmp_path) == ["papers/On Otters (otter2021) 2.md", "papers/on otters (otter2021).md"]
    assert own.read_text(encoding="utf-8") == "mine"
    assert write(tmp_path, OTTERS) == folder.Written()


@pytest.mark.parametrize("own", ["", "\nMy words.\n"])
def test_a_page_of_what_is_gone_is_deleted_unless_the_person_wrote_in_it(tmp_path: Path, own: str) -> None:
    write(tmp_path, OTTERS, SEALS)
    path = tmp_path / "papers" / "On Otters (otter2021).md"
    path.write_text(path.read_text(encoding="utf-8") + own, encoding="utf-8")
    other = tmp_path / "other.md"
    other.write_text('---\nfolio: "something else"\n---\n', encoding="utf-8")
    done = write(tmp_path, SEALS)
    assert (done.removed, len(done.kept), path.exists(), other.exists()) == (not own, bool(own), bool(own), True)


def test_a_field_of_the_persons_keeps_the_page_of_what_is_gone(tmp_path: Path) -> None:
    write(tmp_path, OTTERS)
    path = tmp_path / "papers" / "On Otters (otter2021).md"
    path.write_text(path.read_text(encoding="utf-8").replace("year: 2021", "year: 2021\nrating: 5"), encoding="utf-8")
    assert write(tmp_path).kept == [path.name]


def test_a_page_without_the_mark_is_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, OTTERS)
    path = tmp_path / "papers" / "On Otters (otter2021).md"
    text = path.read_text(encoding="utf-8").replace(MARK, "")
    path.write_text(text, encoding="utf-8")
    done = write(tmp_path, replace(OTTERS, body="# New"))
    assert (done.left[0].partition(":")[0], path.read_text(encoding="utf-8")) == (path.name, text)
    assert write(tmp_path).kept == [path.name]


def test_a_renaming_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, OTTERS)
    titled = replace(OTTERS, name="On Sea Otters (otter2021)")

    def cut_off(old: Path, new: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder, "replace", cut_off)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, titled)
    assert write(tmp_path, titled).renamed == 1
    assert files(tmp_path) == ["papers/On Sea Otters (otter2021).md"]


def test_an_editor_may_write_the_front_matter_in_its_own_way(tmp_path: Path) -> None:
    write(tmp_path, OTTERS)
    path = tmp_path / "papers" / "On Otters (otter2021).md"
    text = path.read_text(encoding="utf-8").replace('folio: "paper 1"', "folio: paper 1")
    text = text.replace('folio-fields: ["title", "year"]', "folio-fields:\n  - title\n  - year\naliases:\n  - Fur")
    path.write_text(text, encoding="utf-8")
    assert write(tmp_path, OTTERS).changed == 1
    assert 'aliases: ["Fur"]\n' in path.read_text(encoding="utf-8")
    assert write(tmp_path).removed == 1


def test_hostile_files_do_not_stop_it(tmp_path: Path) -> None:
    (tmp_path / "binary.md").write_bytes(b"---\nfolio: \xff\n---\n")
    (tmp_path / "open.md").write_text("---\n" + "a: b\n" * 100_000, encoding="utf-8")
    os.symlink("/etc/passwd", tmp_path / "link.md")
    assert write(tmp_path, OTTERS).new == 1
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        write(tmp_path / "file", OTTERS)


@pytest.mark.parametrize(
    ("title", "key", "name"),
    [
        ("On Sea Otters: a / study?", "o1", "On Sea Otters a study (o1)"), ("...", "", "_"), ("CON", "", "_CON"),
        ("../../etc/passwd", "o1", "etc passwd (o1)"), ("[[x]] #y | z^", "o1", "x y z (o1)"), ("", "o1", "(o1)"),
    ],
)  # fmt: skip
def test_a_name_can_be_a_file_and_a_link(title: str, key: str, name: str) -> None:
    assert page_name(title, key) == name
    assert len(page_name("よ" * 500, "o1").encode()) <= 200
    assert page_name("otters and " * 50, "o1").endswith("otters (o1)")
