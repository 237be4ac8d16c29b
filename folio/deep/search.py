"""A deep search: question -> passages for the answer, as Chat.ask takes them, with a trace and a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from folio.deep import graph, steps
from folio.deep.checkpoint import Checkpoint, CheckpointFile, Progress
from folio.deep.profile import EvidenceWeigher
from folio.deep.state import DeepState, Tools
from folio.deep.types import (
    Assessment,
    Assessor,
    Budget,
    Comparer,
    DeepEvent,
    DeepLimits,
    DeepTrace,
    EvidenceScored,
    OnEvent,
    SearchEnded,
)
from folio.errors import ModelError, UsageError, command
from folio.papers.model import Hit
from folio.protocols import Embedder
from folio.question.question import Question
from folio.search.filters import EVERYTHING, Selection
from folio.search.retriever import Retriever, SearchResult
from folio.shown_text import plain_line
from folio.system.threads import Stopwatch

# How a search ended: by Ctrl-C or an error; without budget, before it had enough; by itself
End = Literal["stopped", "spent", "over"]


class DeepSearch:
    """Searches one library in rounds, one question at a time. `trace` is of the last question."""

    def __init__(
        self,
        retriever: Retriever,
        assessor: Assessor,
        limits: DeepLimits,
        selection: Selection = EVERYTHING,
        check_cancelled: Callable[[], None] = lambda: None,
        checkpoints: CheckpointFile | None = None,
        first: Callable[[Question], SearchResult] | None = None,
        *,
        has_confidence: bool = False,
    ) -> None:
        """check_cancelled: called often; an exception ends the search. checkpoints: the file of each search.

        first: a search whose passages come first in the evidence. has_confidence: no model takes part in its answers.
        """
        self._retriever = retriever
        self._assessor = assessor
        self._limits = limits
        self._selection = selection
        self._check_cancelled = check_cancelled
        self._checkpoints = checkpoints
        self._first = first
        self._has_confidence = has_confidence
        self.reset()

    def reset(self) -> None:
        """Forget the last search: the next question may need none."""
        self.trace: DeepTrace | None = None
        self.end: End = "stopped"
        self._has_begun = False

    @property
    def is_kept(self) -> bool:
        """Whether the last search can be resumed."""
        return self._has_begun and self._checkpoints is not None and self._checkpoints.is_kept

    def finish(self) -> None:
        """The answer is complete, so remove the checkpoint of a search that ended by itself."""
        if self._checkpoints is not None and self.end == "over":
            self._checkpoints.remove()

    def progress_of(self, checkpoint: Checkpoint) -> Progress | None:
        """The progress of a stopped search, for `find`; None if the library has changed since.

        Raises UsageError if another assessor scored its passages, StoreError if the checkpoint cannot be read.
        """
        head = checkpoint.head
        if head.store != self._retriever.state:
            return None
        if head.assessor != self._assessor.name:
            raise UsageError(
                f"The search was started with {plain_line(head.assessor)}, but now {self._assessor.name} scores"
                " passages.",
                f"Make the first one available again (`{command('doctor')}` shows how), or ask the question again.",
            )
        if self._checkpoints is not None:
            self._checkpoints.begin(head)
        return checkpoint.progress(self._retriever)

    def find(
        self, question: Question | str, on_event: OnEvent = lambda event: None, resumed: Progress | None = None
    ) -> SearchResult:
        """The evidence for a question, best first. on_event is called with each new event.

        resumed: continue from this progress, which has its own question, with the rest of its budget, or with a new
        budget if the old one is spent. The trace also has the earlier events; on_event does not get them again.
        Ctrl-C ends the search with the evidence so far, and is raised if there is none. Raises ModelError and
        StoreDamaged.
        """
        self.reset()
        self._has_begun = True
        if resumed is None and self._checkpoints is not None:
            self._checkpoints.begin()
        question = Question.of(question if resumed is None else resumed.state.question)
        start = _with_budget(resumed or Progress("", DeepState(question.text)))
        budget = Budget(self._limits.calls, self._limits.seconds, start.calls, start.seconds)
        write = None
        if self._checkpoints is not None:
            write = partial(self._checkpoints.write, question.text, self._retriever.state, self._assessor.name)
        record = SearchRecord(start, budget, write)

        def report(event: DeepEvent) -> None:
            record.add(event)
            on_event(event)
            if isinstance(event, EvidenceScored) and self._assessor.uses_model:  # a step may take minutes
                record.keep(is_spent=tools.is_spent)

        assessor = RememberingAssessor(self._assessor, start.scored)
        tools = Tools(self._retriever, assessor, self._limits, budget, self._selection, report, self._check_cancelled)
        clock, state, first = Stopwatch(), start.state, list[Hit]()
        record.keep(is_spent=False)
        try:
            self._check_cancelled()
            first = self._first_hits(question, tools)
            for step, state in graph.states(start.state, tools, start.step):
                record.finish(step, state, is_spent=tools.is_spent)
                self._check_cancelled()
            self.end = "spent" if state.is_cut else "over"
        except ModelError:
            record.keep(is_spent=tools.is_spent)
            raise
        except KeyboardInterrupt:
            record.keep(is_spent=tools.is_spent)
            if not state.contexts:
                raise
            report(SearchEnded("stopped"))
            state = replace(state, **steps.answer(state, tools))
        clock.lap("search")
        calls, seconds = start.calls_before + budget.calls, start.seconds_before + budget.seconds
        self.trace = DeepTrace(tuple(record.events), self._assessor.name, state.round, calls, round(seconds, 2))
        chosen = {hit.chunk.id: hit for hit in state.chosen}
        evidence = {hit.chunk.id: replace(chosen.get(hit.chunk.id, hit), found_for=hit.found_for) for hit in first}
        evidence |= {id: hit for id, hit in chosen.items() if id not in evidence}
        hits = tuple(evidence.values())[: self._limits.evidence]
        return SearchResult(hits, clock.laps, {}, self._retriever.notice, steps.missing_parts(state))

    def _first_hits(self, question: Question, tools: Tools) -> list[Hit]:
        """The scored hits of the plain search; they come first, so that the evidence is never worse.

        They are no step and no events: the search scores the same passages again for the part that they answer.
        """
        hits = self._first(question).hits if self._first else ()
        quiet = replace(tools, on_event=lambda event: None)
        return [steps.chosen(context) for context in steps.assess(question.text, 0, hits, quiet)]

    def weigher(self, meaning: Embedder) -> EvidenceWeigher:
        """Makes the evidence profile of its answers. meaning: the built-in embedder."""
        comparer = self._assessor if isinstance(self._assessor, Comparer) else None
        return EvidenceWeigher(
            self._retriever, meaning, self._limits, comparer, has_confidence=self._has_confidence
        )


class SearchRecord:
    """The progress and events of a search, and its checkpoint.

    A step that the budget cuts short counts as unfinished: a resumed search repeats it and scores the rest. If a new
    budget is not even enough for one new score, the step counts as finished; otherwise the search might never end.
    """

    def __init__(self, progress: Progress, budget: Budget, write: Callable[[Progress], None] | None) -> None:
        """write: saves a progress; None for no checkpoint."""
        self.progress = progress
        self.events = list(progress.events)  # of all steps
        self._budget = budget
        self._write = write
        self._scored = {_key(event.part, event.hit): event for event in progress.scored}
        self._is_stuck = True  # no new score since the search was resumed

    def add(self, event: DeepEvent) -> None:
        """Add an event."""
        self.events.append(event)
        if isinstance(event, EvidenceScored) and event.assessment.relevance is not None:
            key = _key(event.part, event.hit)
            self._is_stuck = self._is_stuck and key in self._scored
            self._scored[key] = event

    def finish(self, step: str, state: DeepState, *, is_spent: bool) -> None:
        """End a step. is_spent: the budget allows no more searching."""
        if not state.is_cut and (self._is_stuck or not self._budget.fell_short):
            self._scored.clear()
            self.progress = replace(self.progress, step=step, state=state, events=tuple(self.events))
        self._is_stuck = False
        self.keep(is_spent=is_spent)

    def keep(self, *, is_spent: bool) -> None:
        """Write the checkpoint. is_spent: as for `finish`."""
        self.progress = replace(
            self.progress,
            scored=tuple(self._scored.values()),
            calls=self._budget.calls,
            seconds=self._budget.seconds,
            is_spent=is_spent,
        )
        if self._write is not None:
            self._write(self.progress)


class RememberingAssessor:
    """An assessor that reuses the scores from before the search was stopped."""

    def __init__(self, assessor: Assessor, scored: Sequence[EvidenceScored]) -> None:
        self._assessor = assessor
        self._known = {_key(event.part, event.hit): event.assessment for event in scored}
        self.name, self.uses_model = assessor.name, assessor.uses_model
        self.parts, self.rephrase = assessor.parts, assessor.rephrase

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """The known scores, and new ones for the other passages."""
        new = [hit for hit in hits if _key(question, hit) not in self._known]
        assessments = self._assessor.assess(question, new, budget)
        for hit in hits:
            known = self._known.get(_key(question, hit))
            yield next(assessments) if known is None else known


def _key(part: str, hit: Hit) -> tuple[str, int]:
    return part, hit.chunk.id


def _with_budget(progress: Progress) -> Progress:
    """The progress, with a new budget if the old one is spent."""
    if not progress.is_spent:
        return progress
    calls, seconds = progress.calls_before + progress.calls, progress.seconds_before + progress.seconds
    return replace(progress, calls=0, seconds=0.0, calls_before=calls, seconds_before=seconds, is_spent=False)
