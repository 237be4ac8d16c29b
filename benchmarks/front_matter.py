"""How often titles, authors, years and identifiers of papers are read right, by files of labels.

python benchmarks/front_matter.py LABELS FOLDER [--set look] [--misses]

LABELS has a JSON object a line: `file`, `title`, `authors` in order, `year` (or `titles`, `years`: any of them is
right; without either, the year is not compared), and perhaps `doi`, `arxiv`, `set`, `venue` (words that must stand in
it; "" where the first pages name none) and `types` (of its BibTeX entry). FOLDER has the PDFs. Two files next to this
script were read by hand: mixed-front-matter.jsonl, forty papers of many layouts, and other-front-matter.jsonl, other
papers, books, forms and test files, many of them without a title or an author. Their sets are every second file by
name. A third, blind-front-matter.jsonl, was read by somebody who had not seen the program: 55 files that nothing was
tuned on, all but one of two journals. fronts-front-matter.jsonl was read in three parts (its sets a, b, c) by somebody
who had not seen the program: old, hand-set, report and essay layouts, most of them among the files above; c was run
once, at the end. A label without a year has none printed. latex-front-matter.jsonl has first pages of Debian's
texlive-publishers-doc (FOLDER is its doc/texlive-doc/latex), one of each of 69 classes: manuals and samples of
journals, reports and theses, read by the author of the rules, who saw what the program made of some of them in both
sets.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.bibliography.export import bibtex_type
from folio.errors import PaperError
from folio.papers.metadata import Field
from folio.pdf.reader import read_pdf


class Verdict(NamedTuple):
    """One field of one paper, compared with its label."""

    file: str
    field: str
    expected: str
    found: str
    right: bool
    sure: bool
    origin: str


def fold(text: str) -> str:
    """Text without case, accents, punctuation and spaces, as titles are compared."""
    plain = unicodedata.normalize("NFKD", html.unescape(html.unescape(text)).replace("ı", "i"))
    return "".join(c for c in plain.casefold() if c.isalnum())


def name_key(name: str) -> tuple[str, str]:
    """The last word and the first letter of a name, as authors are compared: publishers shorten what stands between."""
    family, comma, given = html.unescape(html.unescape(name)).replace("\xa0", " ").partition(",")
    words = f"{given} {family}".split() if comma else name.split()
    return (fold(words[-1]), fold(words[0])[:1]) if words else ("", "")


def compare(label: dict[str, Any], parsed: Any) -> Iterator[Verdict]:
    """A verdict for each labelled field. parsed: what read_pdf returns."""
    front = parsed.metadata

    def verdict(field: str, expected: object, found: object, right: bool, read: Field[Any]) -> Verdict:
        given = right or bool(found)
        return Verdict(label["file"], field, str(expected), str(found), right, given and read.sure, read.origin)

    titles = label.get("titles") or [label["title"]]
    title = front.title.value  # without a title, the paper is shown under its file's name
    yield verdict("title", titles, title, fold(title) in map(fold, titles), front.title)
    keys, found = [name_key(name) for name in label["authors"]], [name_key(name) for name in parsed.authors]
    yield verdict("authors", label["authors"], list(parsed.authors), keys == found, front.authors)
    if years := label.get("years") or [label["year"]] if "years" in label or "year" in label else []:
        yield verdict("year", years, parsed.year, parsed.year in years, front.year)
    if "doi" in label:
        doi = label["doi"] or ""
        yield verdict("doi", doi, front.doi.value, (front.doi.value or "").lower() == doi.lower(), front.doi)
    if "arxiv" in label:
        yield verdict("arxiv", label["arxiv"], parsed.arxiv, parsed.arxiv == label["arxiv"], front.arxiv)
    if "venue" in label:
        venue, said = front.venue.value, fold(label["venue"])
        right = said in fold(venue) if said else not venue
        yield verdict("venue", label["venue"], venue, right, front.venue)
    if "types" in label:
        found_type = bibtex_type(front)
        yield verdict("type", label["types"], found_type, found_type in label["types"], Field("", sure=True))


def table(verdicts: list[Verdict]) -> Iterator[str]:
    """Lines with the share that is right of each field, and of what is marked sure."""
    for field in dict.fromkeys(verdict.field for verdict in verdicts):
        of_field = [verdict for verdict in verdicts if verdict.field == field]
        sure = [verdict for verdict in of_field if verdict.sure]
        right, sure_right = (sum(verdict.right for verdict in some) for some in (of_field, sure))
        marked = f"marked sure {len(sure):3}, {_share(sure_right, len(sure))} right"
        yield f"{field:8} right {_share(right, len(of_field))}   {marked}"
    sure = [verdict for verdict in verdicts if verdict.sure]
    yield f"{'sure':8} right {_share(sum(verdict.right for verdict in sure), len(sure))}"


def _share(part: int, whole: int) -> str:
    return f"{part:3} of {whole:3} ({part / whole:.3f})" if whole else "  - of   0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", help="only labels with this value of `set`")
    parser.add_argument("--misses", action="store_true", help="print what is wrong")
    arguments = parser.parse_args()
    labels = [json.loads(line) for line in arguments.labels.read_text(encoding="utf-8").splitlines()]
    labels = [label for label in labels if arguments.set in (None, label.get("set"))]
    verdicts: list[Verdict] = []
    for label in labels:
        try:
            parsed = read_pdf(arguments.folder / label["file"])
        except PaperError as error:  # it is not in an index either
            print(f"Not read: {label['file']}: {error.happened}")
            continue
        verdicts += compare(label, parsed)
    if arguments.misses:
        for verdict in verdicts:
            if not verdict.right:
                mark = "SURE " if verdict.sure else ""
                print(f"{mark}{verdict.field} of {re.sub(r'.*_', '', verdict.file)} [{verdict.origin}]")
                print(f"    expected {verdict.expected}\n    found    {verdict.found}")
    print("\n".join(table(verdicts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
