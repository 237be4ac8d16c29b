"""Papers made of sections, for reviews: their text, and where each section is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from folio.papers.metadata import simple_metadata
from folio.papers.model import PageMap, Paper
from folio.papers.sections import Kind, PaperSection, SectionMap


@dataclass(frozen=True, slots=True)
class Written:
    """A paper with its text."""

    paper: Paper
    text: str


def write(
    title: str,
    *sections: tuple[Kind, str],
    year: int | None = 2020,
    authors: tuple[str, ...] = (),
    page: int | None = None,
) -> Written:
    """A paper with these sections. page: where its second page begins."""
    texts = [text + "\n\n" for _, text in sections]
    ends = list(accumulate(map(len, texts)))
    spans = zip(sections, texts, ends, strict=True)
    listed = [PaperSection(end - len(text), end, 1, "", kind, kind) for (kind, _), text, end in spans]
    starts = (0,) if page is None else (0, page)
    metadata = simple_metadata(title, authors or ("Ann Otter",), year)
    id = title.encode().hex()[:64].ljust(64, "0")
    label = f"{(authors or ('Ann Otter',))[0].split()[-1]} {year}"
    pages = PageMap(starts, ("",) * len(starts))
    file = f"{title.split(':')[0].lower()}.pdf"
    paper = Paper(id, file, metadata, pages, ends[-1], 0, sections=SectionMap(tuple(listed)), label=label)
    return Written(paper, "".join(texts))
