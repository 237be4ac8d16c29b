"""Damaged files: what of them is missing is named, and what cannot be read is refused as damaged."""

from __future__ import annotations

from collections.abc import Callable

import pymupdf
import pytest

from folio.errors import PaperError
from folio.papers.model import ParsedPdf
from folio.pdf.damage import TORN
from folio.pdf.reader import read_content
from tests.helpers.paths import CASES

_DAMAGE = CASES / "damage"
_CANNOT = "The file is damaged or cut short: no page of it can be read."


def _read(name: str) -> ParsedPdf:
    return read_content((_DAMAGE / name).read_bytes(), name)


def _report(**options: bool) -> bytes:
    """Three pages, each of one stream that says it in its own words."""
    document = pymupdf.open()
    for number in range(3):
        page = document.new_page()
        for line in range(40):
            page.insert_text((72, 80 + 15 * line), f"Page {number}, line {line}: {line * 37 % 101} of {line**3} herons")
        page.clean_contents()
    return bytes(document.tobytes(**{"deflate": True, **options}))


def _stream(content: bytes, number: int) -> tuple[int, int]:
    """Where the longest streams of a file begin and end; number: of the page."""
    found, at = [], 0
    while (at := content.find(b"stream\n", at + 1)) > 0:
        if content[at - 3 : at] != b"end":
            found.append((at + 7, content.index(b"endstream", at)))
    longest = sorted(sorted(found, key=lambda span: span[0] - span[1])[:3])
    return longest[number]


def _zeroed(content: bytes, number: int) -> bytes:
    start, end = _stream(content, number)
    middle = (start + end) // 2
    return content[:middle] + bytes(120) + content[middle + 120 :]


@pytest.mark.parametrize(
    ("name", "torn"),
    [
        ("half.pdf", {2, 3}),
        ("zero_block.pdf", {1}),
        ("clean.pdf", set()),
        ("junk_after.pdf", set()),
        ("no_eof.pdf", set()),
        ("linear.pdf", set()),
    ],
)
def test_pages_that_lost_text_are_named(name: str, torn: set[int]) -> None:
    assert {page.number for page in _read(name).pages if TORN in page.problem} == torn


@pytest.mark.parametrize("options", [{}, {"deflate": False}, {"use_objstms": True}])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_zeroed_block_in_a_page(options: dict[str, bool], number: int) -> None:
    content = _report(**options)
    assert not any(page.problem for page in read_content(content, "a.pdf").pages)
    pages = read_content(_zeroed(content, number), "a.pdf").pages
    assert [TORN in page.problem for page in pages] == [index == number for index in range(3)]


def test_content_with_another_checksum_is_whole() -> None:
    content = _report()
    start, end = _stream(content, 1)
    data_end = start + len(content[start:end].rstrip())
    changed = content[: data_end - 1] + bytes([content[data_end - 1] ^ 1]) + content[data_end:]
    assert not any(page.problem for page in read_content(changed, "a.pdf").pages)


def test_a_page_whose_object_is_missing() -> None:
    content = _report()
    with pymupdf.open(stream=content, filetype="pdf") as document:
        name = f"{document[1].xref} 0 obj".encode()
    assert content.count(b"\n" + name) == 1
    pages = read_content(content.replace(b"\n" + name, b"\n" + name.replace(b"obj", b"xxx")), "a.pdf").pages
    assert [page.problem for page in pages] == ["", TORN, ""]
    assert [bool(page.text) for page in pages] == [True, False, True]


@pytest.mark.parametrize("share", [0.5, 0.65, 0.8])
def test_a_file_cut_short_says_which_pages_lost_text(share: float) -> None:
    content = _report()
    whole = [page.text for page in read_content(content, "a.pdf").pages]
    pages = read_content(content[: int(share * len(content))], "a.pdf").pages
    lost = [page.number for page, text in zip(pages, whole, strict=True) if page.text != text]
    assert lost
    assert [page.number for page in pages if TORN in page.problem] == lost


def _as_text(content: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n")


def _as_utf8(content: bytes) -> bytes:
    return content.decode(errors="replace").encode()


@pytest.mark.parametrize("mangle", [_as_text, _as_utf8])
def test_a_file_sent_as_text_is_damaged_not_scanned(mangle: Callable[[bytes], bytes]) -> None:
    with pytest.raises(PaperError) as caught:
        read_content(mangle(_report()), "a.pdf")
    assert caught.value.happened == _CANNOT
    assert "download the file again" in caught.value.remedy
    with pytest.raises(PaperError) as caught:
        _read("crlf.pdf")
    assert caught.value.happened == _CANNOT


@pytest.mark.parametrize(
    "head",
    [
        b"<html><head><title>Sign in</title>",
        b"\n\n<!DOCTYPE html>\n<html lang='en'>",
        b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- saved -->\n<!DOCTYPE HTML PUBLIC '-//W3C//DTD'>",
    ],
)
def test_a_web_page_is_named_as_one(head: bytes) -> None:
    with pytest.raises(PaperError, match="is a web page, not a PDF") as caught:
        read_content(head + b"<body>Your session has expired", "a.pdf")
    assert "signed in" in caught.value.remedy
    with pytest.raises(PaperError, match=r"The file is not a PDF\."):
        read_content(b"Dear reader, <html> is a tag", "a.pdf")


def test_an_image_that_ends_early_is_no_lost_text() -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 72), "A page whose picture is torn says everything it has to say.")
    picture = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 80, 80))
    picture.clear_with(90)
    image = page.insert_image(pymupdf.Rect(72, 100, 272, 300), pixmap=picture)
    document.update_stream(image, document.xref_stream_raw(image)[:20], compress=False)
    document.xref_set_key(image, "Filter", "/FlateDecode")
    assert not any(TORN in page.problem for page in read_content(document.tobytes(), "a.pdf").pages)
