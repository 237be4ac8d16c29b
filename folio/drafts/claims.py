"""Checks a claim, one sentence, against the papers that it cites, or against the whole library.

`ClaimChecker.check` is what every face calls: the terminal for the sentences of a draft, and other assistants.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from folio.answer.evidence import gather
from folio.answer.validation import CONTRADICTED, LEAST_CONTRADICTED, LEAST_ENTAILED, NOT_ENTAILED
from folio.answer_types import Citation, Evidence
from folio.drafts.judging import ORDER, Judge, Judgement, Verdict
from folio.drafts.masking import HIDDEN, masked
from folio.errors import EmbedderAway, UsageError
from folio.grounding.conflicts import against
from folio.grounding.grounder import LEAST_NEAR, Fault
from folio.grounding.names import key, quoted
from folio.grounding.sentences import EvidenceSentence, citations
from folio.papers.model import Chunk, Hit, Paper
from folio.protocols import Claim, Verifier
from folio.question.question import Question
from folio.search.retriever import Retriever, SearchRequest
from folio.shown_text import plain_line
from folio.store.library import Library

LONGEST_CLAIM = 2_000  # characters
LONGEST_READ = 600_000  # characters of a cited paper that is read as a whole; of a longer one, what a search finds
PASSAGES = 12  # found by a search
EVIDENCE_TOKENS = 12_000  # of these passages, widened to whole sentences
NEAR_PASSAGES, NEAR_PLACES = 5, 3  # that are looked at for a claim in other words
SURE = 0.9  # probability from which a verifier alone makes a claim supported
LEAST_LIKE_TO_SHOW = 0.75  # coverage below which the place nearest in meaning is shown
_PAPERS_KEPT = 8  # papers whose sentences are kept for the next claim
_CITES = re.compile(r"\\[A-Za-z]*cite[a-z]*\*?(?:\[[^\]]*\])*\{[^{}]*\}|\[[^\[\]]*@[^\[\]]*\]")
_SPACE = re.compile(r" (?=[.,;:!?])")
_SUPPORTS: frozenset[Verdict] = frozenset({"quoted", "supported"})


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, and what papers say of it."""

    claim: str
    verdict: Verdict
    fault: Fault | None  # why it is not supported; None if it is
    citations: tuple[Citation, ...]  # the sentences that support it, or contradict it, or are nearest to it
    against: tuple[Citation, ...] = ()  # of a claim that is supported: sentences of other papers that disagree
    papers: tuple[Paper, ...] = ()  # that were asked for; () for the whole library
    verified_by: str = ""  # the verifier that agreed; "" if none ran

    @property
    def is_supported(self) -> bool:
        return self.verdict in _SUPPORTS

    @property
    def reason(self) -> str:
        """Why it is not supported, in words; "" if it is."""
        return self.fault.reason if self.fault else ""


@dataclass
class ClaimChecker:
    """Checks claims against a library.

    verifier: a model that must agree before a claim is supported. It also reads the nearest places for a claim that
    no place says in similar words, where nothing else speaks against it; there it must be SURE.
    """

    library: Library
    retriever: Retriever
    verifier: Verifier | None = None
    _judges: OrderedDict[tuple[str, int], Judge] = field(default_factory=OrderedDict, init=False)

    def check(self, claim: str, papers: Sequence[Paper] = ()) -> CheckedClaim:
        """What these papers say of a claim, which is one sentence; () for the whole library.

        A claim is supported if one place of one paper says all of it. Raises UsageError for a claim that is empty or
        too long, ModelError and StoreDamaged.
        """
        words = without_citations(claim)
        if not words:
            raise UsageError("There is no sentence to check.", "Give one sentence, in quotation marks.")
        if len(words) > LONGEST_CLAIM:
            raise UsageError(
                f"The sentence has more than {LONGEST_CLAIM:,} characters.", "Check one sentence at a time."
            )
        judged = [(judge, judge.judge(words)) for judge in self._judges_for(words, papers)]
        judge, best = max(judged, key=lambda each: (ORDER[each[1].verdict], each[1].coverage), default=(None, NOWHERE))
        verified_by = ""
        if best.verdict == "supported" and judge is not None:
            best, verified_by = self._verified(words, best, judge)
        elif best.verdict == "not found":
            judge, best, verified_by = self._by_meaning(words, papers, judge, best)
        are_whole = bool(papers) and all(map(_is_read_whole, papers))
        if best.verdict == "not found" and are_whole and (part := _misquoted(words, [each for each, _ in judged])):
            best = replace(best, fault=Fault("quotation", f"the paper does not have the words “{part}”"))
        cited = tuple(_citations(best))
        others = against(words, cited, judge.printed()) if judge is not None and best.verdict in _SUPPORTS else ()
        return CheckedClaim(words, best.verdict, best.fault, cited, others, tuple(papers), verified_by)

    def _judges_for(self, claim: str, papers: Sequence[Paper]) -> Iterator[Judge]:
        """A judge for each cited paper that is read as a whole, and one for what a search finds in the others."""
        short = list(filter(_is_read_whole, papers))
        for paper in short:
            yield self._judge_of(paper)
        if len(short) < len(papers) or not papers:
            yield self._found(claim, PASSAGES, [paper for paper in papers if paper not in short])

    def _found(self, claim: str, count: int, papers: Sequence[Paper]) -> Judge:
        """A judge by the passages of these papers that a search finds for a claim; () for the whole library."""
        among = list(papers) or None
        request = SearchRequest(Question(claim), count, among, rerank=False, defined=False, written=False)
        return Judge(gather(self.retriever.find(request).hits, self.library.text, EVIDENCE_TOKENS).evidence)

    def _judge_of(self, paper: Paper) -> Judge:
        """A judge by the whole text of a paper; of the last papers it is kept."""
        known = paper.id, paper.length
        if known not in self._judges:
            text = self.library.text(paper.id, 0, paper.length)
            whole = Hit(Chunk(0, paper.id, 0, paper.length), paper, text, 1.0)
            is_there = bool(text) and len(text) == paper.length
            self._judges[known] = Judge([Evidence(1, paper, 0, paper.length, text, (whole,))] if is_there else [])
            if len(self._judges) > _PAPERS_KEPT:
                self._judges.popitem(last=False)
        self._judges.move_to_end(known)
        return self._judges[known]

    def _by_meaning(
        self, claim: str, papers: Sequence[Paper], judge: Judge | None, best: Judgement
    ) -> tuple[Judge | None, Judgement, str]:
        """The place nearest in meaning to a claim that none says in similar words, and the verifier that agrees.

        Without a verifier, the place is only shown.
        """
        near, places = self._nearest(claim, papers)
        verifier = self.verifier if places and self.verifier and self.verifier.is_judge() else None
        for sentence in places if verifier else ():
            found = near.judge_at(claim, sentence)
            if verifier and found.says_otherwise:
                asked = Claim(claim, near.around(found.sentences), sentence.evidence.paper.title)
                if (next(verifier.entails([asked])).entails or 0.0) >= SURE:
                    return near, replace(found, verdict="supported", fault=None), verifier.name
        if places and best.coverage < LEAST_LIKE_TO_SHOW:
            return near, replace(near.judge_at(claim, places[0]), verdict="not found", fault=ELSEWISE), ""
        return judge, best, ""

    def _nearest(self, claim: str, papers: Sequence[Paper]) -> tuple[Judge, list[EvidenceSentence]]:
        """The sentences of these papers that are nearest in meaning to a claim, best first, and their judge."""
        near = self._found(claim, NEAR_PASSAGES, papers)
        sentences = [sentence for sentence in near.sentences if len(sentence.text.split()) >= LEAST_NEAR]
        try:
            vectors = self.retriever.embedder.embed_passages([sentence.text for sentence in sentences])
            cosines = vectors @ self.retriever.embedder.embed_query(claim)
        except EmbedderAway:
            return near, []
        order = sorted(range(len(sentences)), key=lambda place: -float(cosines[place]))
        return near, [sentences[place] for place in order[:NEAR_PLACES]]

    def _verified(self, claim: str, best: Judgement, judge: Judge) -> tuple[Judgement, str]:
        """The judgement if the verifier agrees, and its name; "not found" or "contradicted" if it does not."""
        verifier = self.verifier
        if verifier is None or not verifier.is_judge():
            return best, ""
        title = best.sentences[0].evidence.paper.title
        verdict = next(verifier.entails([Claim(claim, judge.around(best.sentences), title)]))
        if verdict.entails is None:
            return best, ""
        if verdict.entails >= LEAST_ENTAILED:
            return best, verifier.name
        if verdict.contradicts >= LEAST_CONTRADICTED:
            return Judgement("contradicted", best.sentences, CONTRADICTED, best.coverage), ""
        return Judgement("not found", best.sentences, NOT_ENTAILED, best.coverage), ""


def _is_read_whole(paper: Paper) -> bool:
    return paper.length <= LONGEST_READ


def _misquoted(claim: str, judges: Sequence[Judge]) -> str:
    """The first quotation of a claim that is not word for word in the papers; "" for none."""
    parts = list(quoted(claim))
    texts = [key(piece.text) for judge in judges for piece in judge.evidence] if parts else []
    return next((part for part in parts if not any(key(part) in text for text in texts)), "")


def without_citations(claim: str) -> str:
    """A sentence without the markers of what it cites, on one line."""
    marked = masked(_CITES.sub(HIDDEN, claim)).replace("~", " ")
    return _SPACE.sub("", plain_line(re.sub(f"{HIDDEN}+", " ", marked)))


ELSEWISE = Fault("wording", "no place says this in similar words; this one is nearest in meaning")
NOWHERE = Judgement("not found", fault=Fault("not found", "no paper here speaks of this"))


def _citations(judged: Judgement) -> Iterator[Citation]:
    """The sentences of a judgement, as they are printed. Their support is 1 only for a quote."""
    support = 1.0 if judged.verdict == "quoted" else min(0.99, max(0.01, judged.coverage))
    for sentence in judged.sentences:
        yield from citations(sentence.evidence, sentence.start, sentence.end, support)
