"""What kept the pages of a file from being read, and what a person can do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folio.errors import PaperBusy, PaperError, PaperLimit, command
from folio.pdf import limits, ocr
from folio.types import Page

# Problems of pages that a later ingest may be able to read
NOT_READ, NO_TIME = "no text (image only)", "no time was left"
NOT_CHECKED = "not checked for hidden text"
ENCODED = "the text is encoded so that no program can read it"
TOO_MANY = f"and {limits.OCR_PAGES:,} pages of the file were read by OCR already"
# Appended to the reason why OCR stopped on a page, if the next ingest tries again by itself
UNFINISHED = "; tried again by the next ingest"
# The same if OCR would stop again
LIMITED = "; tried again with other limits or another OCR engine"
# A page with an image and fewer letters and digits than this is a scan: scanners leave stray marks.
_STRAY_CHARACTERS = 16
_DAMAGED = "Open it in a PDF reader and save or print it to a new PDF, or download the file again."
_LIMITS = "PARSE_TIMEOUT_S or PARSE_MEMORY_MB"
_INGEST = f"`{command('ingest')}`"
_AGAIN = f"then run {_INGEST} with its path"


def damaged() -> PaperError:
    return PaperError("The file is damaged or cut short: no page of it can be read.", _DAMAGED)


@dataclass(slots=True)
class Obstacles:
    """What went wrong while the pages of a file were read."""

    ocr: bool  # whether OCR may be used
    images: int = 0  # pages with an image and hardly any text
    encoded: int = 0  # pages whose text is illegible, see legibility.py
    hidden: str = ""  # the first message about hidden text
    no_engine: bool = False  # OCR was needed, but no engine is installed
    no_time: bool = False  # the layout model had no time left
    unfinished: bool = False  # OCR did not finish some pages, and may finish them under the same limits
    limited: bool = False  # OCR did not finish some pages, and needs other limits for them
    too_many: bool = False  # more pages need OCR than limits.OCR_PAGES
    unchecked: bool = False  # not all pages were searched for hidden text

    def problems(self) -> Iterator[str]:
        """The problems of the whole file."""
        if self.unchecked:
            yield "its pages are slow to draw, so not all of them were searched for hidden text"
        if self.no_engine and self.images:
            yield f"to read its pages without text, {ocr.HOW_TO_INSTALL}, {_AGAIN}"
        if self.unfinished:
            yield f"to read the pages that OCR did not finish, run {_INGEST} again, or raise PARSE_TIMEOUT_S"
        elif self.limited:
            yield f"to read the pages that OCR did not finish, raise {_LIMITS}, and run {_INGEST} again"
        if self.too_many:
            yield f"to read all of its pages, split the file: OCR reads {limits.OCR_PAGES:,} pages of one"
        if self.no_time:
            yield f"to read all of its pages, raise PARSE_TIMEOUT_S, {_AGAIN}"

    def check_text(self, pages: Sequence[Page], failed: int) -> None:
        """Raises PaperError with the most likely reason if there is nothing to index.

        failed: how many pages could not be read.
        """
        if failed == len(pages):
            raise damaged()
        with_text = sum(bool(page.text) for page in pages)
        worth_reading = sum(not is_nearly_empty(page.text) for page in pages)
        if self.encoded and not worth_reading:
            raise self._not_read("The text of the file is encoded so that no program can read it", "--force-ocr ")
        if self.images and not worth_reading and with_text <= self.images:
            raise self._not_read("The file is scanned: no text layer", "")
        if not with_text:
            all_hidden = f"The file has no visible text; {self.hidden}."
            raise PaperError(
                all_hidden if self.hidden else "The file has no text on any page.",
                "If its pages show text, run OCR, for example `ocrmypdf --force-ocr in.pdf out.pdf`; or leave it out.",
            )

    def _not_read(self, happened: str, option: str) -> PaperError:
        """The error for a file that only OCR can read: PaperLimit if a later ingest may do so."""
        ocrmypdf = f"`ocrmypdf {option}in.pdf out.pdf`"
        if not self.ocr:
            remedy = f"Set OCR=auto, or run OCR, for example {ocrmypdf}, and put the result in the folder."
            return PaperLimit(f"{happened}.", remedy)
        if self.no_engine:
            how = ocr.HOW_TO_INSTALL[0].upper() + ocr.HOW_TO_INSTALL[1:]
            remedy = f"{how}, and run {_INGEST} again; or run {ocrmypdf}."
            return PaperLimit(f"{happened}, and no OCR engine is installed.", remedy)
        if self.unfinished:
            remedy = f"Run {_INGEST} again when less is running, raise PARSE_TIMEOUT_S, or run {ocrmypdf}."
            return PaperBusy(f"{happened}, and OCR did not finish.", remedy)
        if self.limited:
            remedy = f"Raise {_LIMITS}, and run {_INGEST} again; or run {ocrmypdf}."
            return PaperLimit(f"{happened}, and OCR did not finish.", remedy)
        remedy = f"Try another OCR engine, for example {ocrmypdf}, and put the result in the folder; or leave it out."
        return PaperError(f"{happened}, and OCR finds no text in it.", remedy)


def is_nearly_empty(text: str) -> bool:
    # The beginning is enough: long texts have letters there.
    return sum(character.isalnum() for character in text[: 4 * _STRAY_CHARACTERS]) < _STRAY_CHARACTERS
