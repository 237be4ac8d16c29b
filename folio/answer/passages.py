"""The passages to answer a question from: of which papers, and how many for each part of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import zip_longest

from folio.answer import library_questions
from folio.answer.library_lists import Shelf
from folio.answer.library_questions import papers_described
from folio.answer.whole_paper import whole_paper_hits
from folio.answer_types import Answer, Evidence, Selected
from folio.papers.model import Hit, Paper
from folio.papers.versions import is_superseded
from folio.question.question import Question, asks_elsewhere
from folio.search.filters import SectionFilter
from folio.search.retriever import Retriever, SearchRequest, SearchResult

WHOLE_PAPER_PASSAGES = 6  # minimum for a question about a paper as a whole
PASSAGES_PER_PART = 4  # for each part of a question
# For a question such as "which papers use X": papers to read, and passages searched for the best one of each
LISTED_PAPERS, LISTED_PASSAGES = 12, 36
FRONT_PAGES = 2  # pages searched for authors, year and venue
SELECTED_PASSAGES = 3  # passages with selected words, which are left out when other places are asked for
REMEMBERED_EVIDENCE = 3  # earlier turns whose evidence is a candidate for the next question


def remembered(turns: Sequence[Answer]) -> list[int]:
    """The ids of the chunks that the last answers are based on: candidates for the next question."""
    hits = (hit for turn in turns[-REMEMBERED_EVIDENCE:] for evidence in turn.evidence for hit in evidence.hits)
    return list(dict.fromkeys(hit.chunk.id for hit in hits))


@dataclass(frozen=True, slots=True)
class PassageSearch:
    """Chooses the passages to answer from."""

    retriever: Retriever
    top_k: int  # passages per answer
    papers: Sequence[Paper] | None = None  # search only these
    sections: SectionFilter | None = None  # search only these
    rerank: bool = True

    def within(self, papers: Sequence[Paper]) -> PassageSearch:
        """The search of these papers; of all of its own if there are none."""
        return replace(self, papers=papers) if papers else self

    def search(self, question: Question, turns: Sequence[Answer] = ()) -> SearchResult:
        """The passages for a standalone question. turns: what was answered before, whose evidence may answer a
        follow-up too.

        A question about one paper as a whole gets the sections that answer it. Each part of a question, such as each
        side of a comparison, gets passages of its own.
        """
        with self.retriever.reading():
            return self._search_by_type(question, turns)

    def search_others(self, last: Answer, question: Question, turns: Sequence[Answer] = ()) -> SearchResult:
        """The passages for a question without those that its last answer quotes. turns: see search."""
        shown = last.citations
        result = replace(self, top_k=self.top_k + len(shown)).search(question, turns)

        def is_new(hit: Hit) -> bool:
            start, end = hit.span
            return not any(hit.paper.id == q.paper.id and start < q.end and q.start < end for q in shown)

        return replace(result, hits=tuple(filter(is_new, result.hits))[: self.top_k])

    def _search_by_type(self, question: Question, turns: Sequence[Answer]) -> SearchResult:
        if question.topic:
            among, notice = library_questions.narrowed(question, self.shelf(question))
            return self._search_for_papers(Question(question.topic), among if notice else self.papers)
        paper = None if self.sections else self._whole_paper(question)
        if paper:
            result = self._search_in(question, (paper,))
            passages, most = self.retriever.passages(paper), max(self.top_k, WHOLE_PAPER_PASSAGES)
            hits = whole_paper_hits(question, passages, result.hits, most)
            return _joined({question.text: replace(result, hits=tuple(hits))})
        if question.parts:
            papers = self._papers_of_parts(question)
            return _joined({p.text: self._search_in(p, papers[p.text], PASSAGES_PER_PART) for p in question.parts})
        first, *others = question.readings or (question.text,)
        request = SearchRequest(
            question if first == question.text else Question(first, question.typed),
            self.top_k,
            self.papers,
            self.sections,
            also=remembered(turns) if question.readings else (),
            readings=others,
            rerank=self.rerank,
        )
        return _joined({question.text: self.retriever.find(request)})

    def search_about(self, question: Question, selected: Selected) -> SearchResult:
        """The passages for a question about selected words. Other places are asked for without that of the words; who
        disagrees is in another paper."""
        if not asks_elsewhere(question.text):
            return self._search_in(question.worded, self.papers)
        papers = self.papers
        if question.asks_who_disagrees:
            papers = [paper for paper in self.current_papers() if paper.id != selected.paper.id]
        result = self._search_in(question.worded, papers, self.top_k + SELECTED_PASSAGES)
        others = [hit for hit in result.hits if not selected.overlaps(hit.paper, *hit.span)]
        return replace(result, hits=tuple(others[: self.top_k]))

    def _search_for_papers(self, topic: Question, papers: Sequence[Paper] | None) -> SearchResult:
        """The best passage of each of the best of these papers on a topic, the best paper first."""
        ranked = self.retriever.search_papers(topic.text, LISTED_PAPERS, papers=papers, sections=self.sections)
        result = self._search_in(topic, [hit.paper for hit in ranked], LISTED_PASSAGES)
        best = {hit.paper.id: hit for hit in (*(one.passage for one in ranked if one.passage), *reversed(result.hits))}
        hits = [replace(best[one.paper.id], score=one.score) for one in ranked if one.paper.id in best]
        return replace(result, hits=tuple(hits))

    def _papers_of_parts(self, question: Question) -> dict[str, Sequence[Paper] | None]:
        """For each part, the one paper that it names or (in a comparison) describes; otherwise all papers."""
        among = self.current_papers()
        papers: dict[str, Sequence[Paper] | None] = {}
        for part in question.parts:
            thing = question.thing_of(part)
            meant = self.named_or_described(part.text, f"the {thing} paper" if thing else "", among)
            papers[part.text] = meant if len(meant) == 1 else self.papers
        return papers

    def named_or_described(self, names: str, describes: str, among: Sequence[Paper]) -> Sequence[Paper]:
        """The papers that the first text names; if it names none, those that the second one describes."""
        ids = {paper.id for paper in among}
        named = [paper for paper in self.retriever.paper_names().meant(names) if paper.id in ids]
        return named or papers_described(describes, among)

    def selected_papers(self) -> Sequence[Paper]:
        """The papers to search: the selected ones, or all."""
        return self.retriever.papers() if self.papers is None else self.papers

    def current_papers(self) -> Sequence[Paper]:
        """The selected papers, or all but older versions."""
        papers = self.selected_papers()
        return papers if self.papers is not None else [paper for paper in papers if not is_superseded(paper)]

    def _whole_paper(self, question: Question) -> Paper | None:
        """The one paper that a question is about as a whole; None if there is none or several match."""
        if question.type.kind != "paper":
            return None
        among = self.current_papers()
        if len(among) == 1:
            return among[0]
        meant = self.named_or_described(question.text, question.text, among)
        return meant[0] if len(meant) == 1 else None

    def _search_in(self, question: Question, papers: Sequence[Paper] | None, top_k: int = 0) -> SearchResult:
        """Search these papers for a question or a part of one, without other readings or wordings."""
        many, sections = top_k or self.top_k, self.sections
        return self.retriever.find(SearchRequest(question, many, papers, sections, rerank=self.rerank, written=False))


    def among(self, papers: Iterable[Paper]) -> tuple[Paper, ...]:
        """Those of these papers that are searched."""
        papers = tuple(papers)
        ids = {paper.id for paper in self.selected_papers()} if papers else set[str]()  # they may have to be read
        return tuple(paper for paper in papers if paper.id in ids)

    def shelf(self, question: Question, papers: Sequence[Paper] = ()) -> Shelf:
        """What a question about the library is asked about: these papers, by default the selected ones, or all.

        Of several copies it is one, and those that the question names.
        """
        retriever, among = self.retriever, papers or self.selected_papers()
        if not papers and self.papers is None and any(paper.is_copy for paper in among):
            named = retriever.paper_names().meant(question.text)
            among = [paper for paper in among if not paper.is_copy or paper in named]
        return Shelf(
            among,
            retriever.paper_names,
            lambda words: self.named_or_described(words, f"{words} paper", among),
            self._front_of,
            retriever.uses,
            retriever.mentions,
            retriever.cited_papers,
            date.today(),
        )

    def _front_of(self, paper: Paper) -> Evidence | None:
        """The first pages of a paper; None if it has no passage."""
        hits = self.retriever.passages(paper, 1)
        _, end = paper.pages.bounds(min(FRONT_PAGES, paper.page_count), paper.length)
        text = self.retriever.text(paper.id, 0, end)
        return Evidence(1, paper, 0, end, text, tuple(hits)) if hits and text else None


def _joined(results: Mapping[str, SearchResult]) -> SearchResult:
    """One result from those of each part of a question: the best hit of each part in turn, then the second best.

    The timings are added up; everything else comes from the first result.
    """
    hits: dict[int, Hit] = {}
    for same_rank in zip_longest(*(result.hits for result in results.values())):
        for part, hit in zip(results, same_rank, strict=True):
            if hit is not None:
                known = hits.get(hit.chunk.id, hit)
                hits[hit.chunk.id] = replace(known, found_for=(*known.found_for, part))
    first = next(iter(results.values()))
    laps = {stage: sum(one.timings_ms.get(stage, 0.0) for one in results.values()) for stage in first.timings_ms}
    return replace(first, hits=tuple(hits.values()), timings_ms=laps)
