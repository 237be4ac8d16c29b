"""The page of a paper: what it is about, what it cites, what here cites it, what is like it, and where it was cited."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import closing
from threading import Lock

import numpy as np

from folio.answer.about import about_quotes
from folio.app import App
from folio.papers.model import Paper
from folio.papers.references import Marks, References, entries
from folio.schema import web as schema
from folio.schema.papers import With
from folio.store import notes, works
from folio.store.conversations import Conversations
from folio.store.library import Library
from folio.store.rows import Stamp
from folio.web.papers import require_papers
from folio.web.questions import is_listed

MOST_SIMILAR = 8
_LEAST_SIMILAR = 0.35  # cosine of the vectors of two papers; below, they have hardly a subject in common
_MOST_KEPT = 64  # papers whose quotes are kept


class PaperPages:
    """Makes the pages of papers. Keeps what it read while the library has the same papers. Thread-safe."""

    def __init__(self, app: App, conversations: Conversations) -> None:
        self._app = app
        self._conversations = conversations
        self._lock = Lock()
        self._epoch = ""
        self._references: dict[str, References] = {}  # of the papers read so far in this epoch
        self._quotes: OrderedDict[tuple[Stamp, str], list[schema.AboutQuoteJson]] = OrderedDict()

    def about(self, paper: str) -> schema.PaperAbout:
        """Raises NotKnown, ModelError."""
        with closing(self._app.open_library()) as library, library.reading() as stamp:
            (stored,) = require_papers(library, [paper])
            papers = library.papers()
            references = self._read_references(library, stamp, papers)
            return schema.PaperAbout(
                abstract=stored.metadata.abstract.value,
                quotes=self._about_quotes(library, stamp, stored),
                references=_listed(library, stored, references[paper], papers),
                cited_here_by=_citing(library, stored, references, papers),
                similar=_similar(library, stored, papers),
                conversations=[
                    schema.CitingConversation.model_validate(summary)
                    for summary in self._conversations.citing(paper)
                    if is_listed(summary)
                ],
                notes=notes.count(library.database, paper),
            )

    def _about_quotes(self, library: Library, stamp: Stamp, paper: Paper) -> list[schema.AboutQuoteJson]:
        key = (stamp, paper.id)
        with self._lock:
            if key in self._quotes:
                return self._quotes[key]
        text = library.text(paper.id, 0, paper.length)
        chosen = about_quotes(paper, text, self._app.models.meaning)
        quotes = [
            schema.AboutQuoteJson.model_validate(
                With(quote, kind=kind, section=paper.sections.shown(quote.start, quote.end))
            )
            for kind, quote in chosen
        ]
        with self._lock:
            self._quotes[key] = quotes
            while len(self._quotes) > _MOST_KEPT:
                self._quotes.popitem(last=False)
        return quotes

    def _read_references(self, library: Library, stamp: Stamp, papers: Sequence[Paper]) -> Mapping[str, References]:
        """Paper id -> its references, of all papers. Only papers that are new since the last call are read."""
        with self._lock:
            if self._epoch != stamp.epoch:
                self._epoch, self._references = stamp.epoch, {}
            for paper in papers:
                if paper.id not in self._references:
                    has_list = any(section.kind == "references" for section in paper.sections.sections)
                    text = library.text(paper.id, 0, paper.length) if has_list else ""
                    self._references[paper.id] = References(entries(paper, text) if has_list else ())
            here = {paper.id for paper in papers}
            for gone in self._references.keys() - here:
                del self._references[gone]
            return dict(self._references)


def _listed(
    library: Library, paper: Paper, references: References, papers: Sequence[Paper]
) -> list[schema.ReferenceJson]:
    """The references of a paper, with the papers of the library that they cite."""
    cited = {
        place: other
        for other in papers
        if other.id != paper.id and (place := references.find(Marks(other))) is not None
    }
    by_id = {other.id: other for other in papers}
    titles: dict[int, str] = {}
    for mark, place in references.marks.items():
        kind = "doi" if mark.startswith("10.") else "arxiv"
        if place not in cited and (stored := works.with_mark(library.database, f"{kind} {mark}")):
            titles[place] = stored[0].work.title
            ids = [id for id in works.papers_of(library.database, stored[0].id) if id in by_id and id != paper.id]
            if ids:
                cited[place] = by_id[ids[0]]
    return [
        schema.ReferenceJson(
            text=entry.text,
            paper=cited[place].id if place in cited else "",
            title=cited[place].title if place in cited else titles.get(place, ""),
            year=entry.year,
            start=entry.start,
            end=entry.end,
            page=paper.pages.page_at(entry.start),
        )
        for place, entry in enumerate(references.entries)
    ]


def _citing(
    library: Library, paper: Paper, references: Mapping[str, References], papers: Sequence[Paper]
) -> list[schema.LikePaperJson]:
    """The papers of the library that cite a paper: by their own references, or as services say."""
    marks = Marks(paper)
    stored = {citing for citing, cited in works.library_edges(library.database) if cited == paper.id}
    citing = [
        other
        for other in papers
        if other.id != paper.id and (other.id in stored or references[other.id].find(marks) is not None)
    ]
    return [_like(other) for other in sorted(citing, key=lambda other: (-(other.year or 0), other.title))]


def _similar(library: Library, paper: Paper, papers: Sequence[Paper]) -> list[schema.SimilarPaperJson]:
    """The papers with the nearest vectors; none if the paper has no vector."""
    vectors = library.paper_vectors()
    own = vectors.get(paper.id)
    others = [other for other in papers if other.id != paper.id and other.id in vectors]
    if own is None or not others:
        return []
    cosines = np.stack([vectors[other.id].vector for other in others]) @ own.vector
    nearest = sorted(zip(cosines.tolist(), others, strict=True), key=lambda pair: (-pair[0], pair[1].id))
    return [
        schema.SimilarPaperJson(**dict(_like(other)), score=cosine)
        for cosine, other in nearest[:MOST_SIMILAR]
        if cosine >= _LEAST_SIMILAR
    ]


def _like(paper: Paper) -> schema.LikePaperJson:
    return schema.LikePaperJson(paper=paper.id, title=paper.title, year=paper.year)
