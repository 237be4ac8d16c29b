"""What is read from PDFs that are made here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest
from pdfs import column, image_page, row_by_row, save

from folio.errors import PaperError
from folio.pdf import read_pdf


def _lines(path: Path, page: int = 0) -> list[str]:
    return [line for line in read_pdf(path).pages[page].text.split("\n") if line]


def _texts(spots: list[tuple[float, float, str]]) -> list[str]:
    return [text for _, _, text in spots]


def _refusal(path: Path) -> PaperError:
    with pytest.raises(PaperError) as caught:
        read_pdf(path)
    assert caught.value.happened.endswith(".")
    assert caught.value.remedy.endswith(".")
    return caught.value


def test_a_page_of_one_column_is_left_as_drawn(tmp_path: Path) -> None:
    body = column(72, 100, "body", 30)
    assert _lines(save(tmp_path / "a.pdf", [body])) == _texts(body)


def test_paragraphs_are_parted_by_a_blank_line(tmp_path: Path) -> None:
    first, second = column(72, 100, "First", 3), column(72, 180, "Second", 2)
    text = read_pdf(save(tmp_path / "a.pdf", [[*first, *second]])).pages[0].text
    assert text == "\n".join(_texts(first)) + "\n\n" + "\n".join(_texts(second))


def test_two_columns_drawn_row_by_row_are_read_column_by_column(tmp_path: Path) -> None:
    left, right = column(60, 100, "left", 40), column(320, 100, "right", 40)
    assert _lines(save(tmp_path / "a.pdf", [row_by_row(left, right)])) == _texts(left) + _texts(right)


def test_two_columns_drawn_in_reverse_are_read_column_by_column(tmp_path: Path) -> None:
    left, right = column(60, 100, "left", 40), column(320, 100, "right", 40)
    assert _lines(save(tmp_path / "a.pdf", [right + left])) == _texts(left) + _texts(right)


def test_three_columns_drawn_row_by_row(tmp_path: Path) -> None:
    starts = {"a": 40, "b": 225, "c": 410}
    columns = [[(x, y, text[:32]) for x, y, text in column(x, 100, name, 40)] for name, x in starts.items()]
    found = _lines(save(tmp_path / "a.pdf", [row_by_row(*columns)]))
    assert found == [text for spots in columns for text in _texts(spots)]


def test_full_width_lines_stand_above_between_and_below_the_columns(tmp_path: Path) -> None:
    full = "This line runs over both of the columns from the left edge to the right one, as abstracts do it"
    upper = row_by_row(column(60, 120, "upper left", 15), column(320, 120, "upper right", 15))
    lower = row_by_row(column(60, 360, "lower left", 15), column(320, 360, "lower right", 15))
    drawn = [(60.0, 90.0, "Title. " + full), *upper, (60.0, 330.0, "Figure. " + full), *lower, (290.0, 700.0, "7")]
    found = _lines(save(tmp_path / "a.pdf", [drawn]))
    expected = ["Title. " + full, *_texts(upper[::2]), *_texts(upper[1::2])]
    expected += ["Figure. " + full, *_texts(lower[::2]), *_texts(lower[1::2]), "7"]
    assert found == expected


def test_the_rows_of_a_table_stay_rows(tmp_path: Path) -> None:
    rows = [[(72.0, 100 + 12.0 * n, f"item {n}"), (330.0, 100 + 12.0 * n, f"{n}.5")] for n in range(30)]
    drawn = [spot for row in rows for spot in row]
    assert _lines(save(tmp_path / "a.pdf", [drawn])) == _texts(drawn)


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_rotated_pages_are_read(tmp_path: Path, angle: int) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((100, 300), "Turned around", rotate=angle)
    page.set_rotation(angle)
    document.save(tmp_path / "a.pdf")
    assert read_pdf(tmp_path / "a.pdf").pages[0].text == "Turned around"


def test_labels_of_roman_and_decimal_numbers_with_a_prefix(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number in range(6):
        document.new_page().insert_text((72, 72), f"Page {number}")
    document.set_page_labels(
        [
            {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 3},
            {"startpage": 2, "prefix": "A-", "style": "D", "firstpagenum": 127},
            {"startpage": 4, "prefix": "", "style": "A", "firstpagenum": 26},
        ]
    )
    document.save(tmp_path / "a.pdf")
    pages = read_pdf(tmp_path / "a.pdf").pages
    assert [page.label for page in pages] == ["iii", "iv", "A-127", "A-128", "Z", "AA"]
    assert [page.number for page in pages] == [1, 2, 3, 4, 5, 6]


def test_a_file_without_labels_has_none(tmp_path: Path) -> None:
    assert [page.label for page in read_pdf(save(tmp_path / "a.pdf", [[(72, 72, "Hello World")]])).pages] == [""]


def test_a_tiny_text_is_not_a_scan(tmp_path: Path) -> None:
    assert read_pdf(save(tmp_path / "a.pdf", [[(72, 72, "Hello World")]])).pages[0].text == "Hello World"


@pytest.mark.parametrize("stray", ["", "x 1"])
def test_pictures_of_pages_are_a_scan(tmp_path: Path, stray: str) -> None:
    document = pymupdf.open()
    for _ in range(3):
        image_page(document).insert_text((20, 20), stray)
    document.save(tmp_path / "a.pdf")
    error = _refusal(tmp_path / "a.pdf")
    assert "scanned: no text layer" in error.happened
    assert "ocrmypdf" in error.remedy


def test_a_picture_among_pages_of_text_is_noted_and_keeps_its_number(tmp_path: Path) -> None:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), "A first page with enough to read")
    image_page(document)
    document.new_page()
    document.new_page().insert_text((72, 72), "A last page with enough to read")
    document.save(tmp_path / "a.pdf")
    pages = read_pdf(tmp_path / "a.pdf").pages
    assert [page.problem for page in pages] == ["", "no text (image only)", "no text", ""]
    assert pages[3].number == 4


def test_a_file_of_empty_pages(tmp_path: Path) -> None:
    assert "no text on any page" in _refusal(save(tmp_path / "a.pdf", [[], []])).happened


@pytest.mark.parametrize(
    ("content", "happened", "remedy"),
    [
        (b"", "empty", "again"),
        (b"<html><body>Not found</body></html>", "not a PDF", "Put the PDF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "not a PDF", "Put the PDF"),
        (b" " * 2000 + b"%PDF-1.7", "not a PDF", "Put the PDF"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS pointer", "git lfs pull"),
        (b"%PDF-1.7\nand nothing else", "damaged", "fetch the file again"),
    ],
)
def test_files_that_are_no_pdf(tmp_path: Path, content: bytes, happened: str, remedy: str) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    error = _refusal(tmp_path / "a.pdf")
    assert happened in error.happened
    assert remedy in error.remedy


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    assert "cannot be opened" in _refusal(tmp_path / "nowhere.pdf").happened


def test_html_that_mentions_a_pdf_is_not_read_as_html(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_text("<html><p>A file begins with %PDF-1.4 if it is one</p></html>")
    assert "damaged" in _refusal(tmp_path / "a.pdf").happened


def _encrypted(path: Path, user: str) -> Path:
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), "Behind a lock there is text")
    document.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw=user)
    return path


def test_a_password_is_asked_for(tmp_path: Path) -> None:
    error = _refusal(_encrypted(tmp_path / "a.pdf", "secret"))
    assert "encrypted" in error.happened
    assert "without a password" in error.remedy


def test_a_file_locked_for_editing_only_is_read(tmp_path: Path) -> None:
    assert read_pdf(_encrypted(tmp_path / "a.pdf", "")).pages[0].text == "Behind a lock there is text"


def test_a_file_cut_short(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [column(72, 100, "body", 40)] * 20)
    path.write_bytes(path.read_bytes()[:400])
    assert "damaged or cut short" in _refusal(path).happened


def test_a_file_without_its_table_is_repaired_and_says_so(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [[(72, 72, "Still readable after all")]])
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"xref")])
    parsed = read_pdf(path)
    assert parsed.pages[0].text == "Still readable after all"
    assert parsed.problems == ("the file is damaged and was repaired while reading",)


def test_one_bad_page_does_not_cost_the_others(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number in range(3):
        document.new_page().insert_text((72, 72), f"Text of page {number + 1}")
    document.xref_set_key(document[1].xref, "Type", "/Font")
    document.xref_set_key(document[1].xref, "MediaBox", "[1 2 3]")
    document.xref_set_key(document[1].xref, "Contents", "(nothing)")
    document.save(tmp_path / "a.pdf")
    pages = read_pdf(tmp_path / "a.pdf").pages
    assert [page.number for page in pages] == [1, 2, 3]
    assert [page.text for page in pages] == ["Text of page 1", "", "Text of page 3"]
    assert pages[1].problem


def test_too_much_text(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [column(72, 100, "body", 40)] * 3)
    with pytest.raises(PaperError, match="more than 2,000 characters"):
        read_pdf(path, max_chars=2000)


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path / "a.pdf", [column(72, 100, "body", 40)] * 20)
    path.write_bytes(path.read_bytes()[:400])
    _refusal(path)
    assert capfd.readouterr() == ("", "")


def test_no_models_are_loaded_to_read_a_page(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [[(72, 72, "Hello World")]])
    program = (
        "import sys; from pathlib import Path; from folio.pdf import read_pdf; assert 'pymupdf' not in sys.modules\n"
        "print(read_pdf(Path(sys.argv[1])).pages[0].text, 'pymupdf.layout' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program, path], cwd=root, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Hello World False\n", "")


def _paper(path: Path, metadata: dict[str, str], authors: str = "Ada Lovelace1, Charles Babbage2") -> Path:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "On Engines That Weave", fontsize=18)
    page.insert_text((72, 122), "Algebraic Patterns", fontsize=18)
    page.insert_text((72, 150), authors, fontsize=12)
    page.insert_text((72, 170), "1 University of London 2 University of Cambridge", fontsize=8)
    page.insert_text((72, 190), "Published: 07 December 1843", fontsize=8)
    for x, y, text in column(72, 220, "body", 30):
        page.insert_text((x, y), text, fontsize=10)
    document.set_metadata(metadata)
    document.save(path)
    return path


def test_front_matter_from_the_first_page(tmp_path: Path) -> None:
    parsed = read_pdf(_paper(tmp_path / "a.pdf", {"title": "Microsoft Word - draft.doc", "author": "admin"}))
    assert parsed.title == "On Engines That Weave Algebraic Patterns"
    assert parsed.authors == ("Ada Lovelace", "Charles Babbage")
    assert parsed.year == 1843


def test_front_matter_from_metadata(tmp_path: Path) -> None:
    metadata = {"title": "Notes on the Engine", "author": "Lovelace, Ada and Menabrea, Luigi"}
    parsed = read_pdf(_paper(tmp_path / "a.pdf", metadata))
    assert (parsed.title, parsed.authors) == ("Notes on the Engine", ("Ada Lovelace", "Luigi Menabrea"))


def test_a_line_that_is_not_all_names_gives_no_authors(tmp_path: Path) -> None:
    assert read_pdf(_paper(tmp_path / "a.pdf", {}, "Ada Lovelace, the Analytical Society")).authors == ()


def test_the_year_the_file_was_made_is_the_last_resort(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", [[(72, 72, "No date in here")]], metadata={"creationDate": "D:20170301120000Z"})
    assert read_pdf(path).year == 2017
