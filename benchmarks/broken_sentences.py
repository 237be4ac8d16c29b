"""How many paragraphs end in the middle of a sentence because something stands between them and their continuation.

python benchmarks/broken_sentences.py ~/papers             the figures of a folder of PDFs
python benchmarks/broken_sentences.py ~/papers --show 20   also 20 of them, drawn at random

The measure looks at the cleaned text only, so that it is the same for every way of reading a page. A paragraph of prose
is cut if it ends with a full line and without a mark that ends a sentence, the next one does not continue it, and a
later one of the same or the next page begins in lower case, after a caption, a note or the edge of a page. Sentences
that go on with a capital letter or a number are not counted, and neither are most of those that a formula interrupts.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.errors import PaperError
from folio.ingest.cleaning import clean
from folio.papers.model import PageMap
from folio.pdf.reader import read_pdf

# Prose has at least this many characters, and at least this share of them are letters.
_MIN_PROSE, _MIN_LETTERS = 100, 0.7
# The last line of a paragraph is full if it has at least this share of the characters of the others.
_FULL = 0.85
# A continuation has at least this many characters.
_MIN_REST = 20
# The most paragraphs between the two halves of a sentence
_MOST_BETWEEN = 12
_PARAGRAPH = re.compile(r"\S(?:[^\n]|\n(?!\n))*")
# A caption, the mark of a note
_INSET = re.compile(
    r"(?:fig(?:ure|\.)?|table|listing|algorithm|scheme|box)\s*[\dIVX]|[\d*∗†‡§¹²³⁴⁵⁶⁷⁸⁹⁰]{1,2}\s?[A-Z“]", re.I
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A sentence that is cut: the end of its paragraph, what stands next, and the paragraph that goes on."""

    page: int  # from 1
    end: str
    next: str
    rest: str


def cuts(text: str, pages: PageMap) -> tuple[int, list[Cut]]:
    """The number of paragraphs of prose in a cleaned text, and those that are cut."""
    spans = [match.span() for match in _PARAGRAPH.finditer(text)]
    paragraphs = [text[start:end].rstrip() for start, end in spans]
    numbers = [pages.page_at(start) for start, _ in spans]
    count, found = 0, []
    for index, paragraph in enumerate(paragraphs):
        if not _is_prose(paragraph, _MIN_PROSE):
            continue
        count += 1
        if _is_unfinished(paragraph) and (rest := _rest(paragraphs, numbers, index)):
            # A paragraph may run over a page break.
            page = pages.page_at(spans[index][1] - 1)
            found.append(Cut(page, paragraph[-60:], paragraphs[index + 1][:60], paragraphs[rest][:60]))
    return count, found


def _rest(paragraphs: Sequence[str], numbers: Sequence[int], index: int) -> int | None:
    """The paragraph in which the sentence goes on that ends `index`; None if it is the next one, or there is none."""
    after = index + 1
    if after < len(paragraphs) and paragraphs[after][0].islower():
        return None
    is_inset = False
    for later in range(after, min(after + _MOST_BETWEEN, len(paragraphs))):
        is_inset = is_inset or numbers[later] > numbers[index]
        if numbers[later] > numbers[index] + 1:
            return None
        if is_inset and paragraphs[later][0].islower() and _is_prose(paragraphs[later], _MIN_REST):
            return later
        is_inset = is_inset or bool(_INSET.match(paragraphs[later]))
    return None


def _is_prose(paragraph: str, characters: int) -> bool:
    filled = [character for character in paragraph if not character.isspace()]
    return len(paragraph) >= characters and sum(map(str.isalpha, filled)) >= _MIN_LETTERS * len(filled)


def _is_unfinished(paragraph: str) -> bool:
    """Whether a paragraph stops in mid-sentence at the edge of its column: its last line is as long as the others."""
    *lines, last = paragraph.split("\n")
    is_full = not lines or len(last) >= _FULL * median(map(len, lines))
    return is_full and (paragraph[-1].isalnum() or paragraph[-1] in ",-(")


def measured(files: Sequence[Path]) -> Iterator[tuple[Path, int, list[Cut]]]:
    for file in files:
        try:
            text, pages = clean(read_pdf(file).pages)
        except PaperError:
            continue
        yield file, *cuts(text, pages)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="PDFs, or folders of them")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="show N of the cut sentences")
    options = parser.parse_args(arguments)
    files = [file for path in options.paths for file in (sorted(path.rglob("*.pdf")) if path.is_dir() else [path])]
    results = list(measured(files))
    paragraphs = sum(count for _, count, _ in results)
    cut = [(file, each) for file, _, found in results for each in found]
    with_cuts = sum(bool(found) for *_, found in results)
    print(f"{len(results)} papers, {paragraphs:,} paragraphs of prose, {len(cut):,} of them cut "
          f"({100 * len(cut) / max(1, paragraphs):.1f} %) in {with_cuts} papers")  # fmt: skip
    for file, each in random.Random(0).sample(cut, min(options.show, len(cut))):
        print(f"\n{file.name}, p. {each.page}\n  ... {each.end!r}\n  next {each.next!r}\n  rest {each.rest!r}")


if __name__ == "__main__":
    main()
