"""A deep search: a question to the passages that an answer is made from, as Chat.ask takes them, and how they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from folio.deep import steps
from folio.deep.checkpoint import Checkpoint, CheckpointFile, Progress
from folio.deep.profile import EvidenceWeigher
from folio.deep.steps import DeepState, Tools
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

# What a deep search has done so far, and its checkpoint, which is kept up to date with it.


class SearchRecord:
    """Goes on from `progress`, and replaces it.

    A step for which the budget falls short is not taken for finished: a resumed search takes it again, and scores what
    was left. If a new budget is not enough for the first step and one new score, it is taken for finished after all;
    else the search could be resumed for ever.
    """

    def __init__(self, progress: Progress, budget: Budget, write: Callable[[Progress], None] | None) -> None:
        """write: keeps a progress; None if nobody does."""
        self.progress = progress
        self.events = list(progress.events)  # of all steps
        self._budget = budget
        self._write = write
        self._scored = {_key(event.part, event.hit): event for event in progress.scored}
        self._is_stuck = True  # nothing was done since it goes on

    def add(self, event: DeepEvent) -> None:
        """Something happened."""
        self.events.append(event)
        if isinstance(event, EvidenceScored) and event.assessment.relevance is not None:
            key = _key(event.part, event.hit)
            self._is_stuck = self._is_stuck and key in self._scored
            self._scored[key] = event

    def finish(self, step: str, state: DeepState, *, is_spent: bool) -> None:
        """A step ended. is_spent: the budget allows no more searching."""
        if not state.is_cut and (self._is_stuck or not self._budget.fell_short):
            self._scored.clear()
            self.progress = replace(self.progress, step=step, state=state, events=tuple(self.events))
        self._is_stuck = False
        self.keep(is_spent=is_spent)

    def keep(self, *, is_spent: bool) -> None:
        """Write the checkpoint. is_spent: as of `finish`."""
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
    """An assessor that is not asked about passages again that it scored before the search was stopped."""

    def __init__(self, assessor: Assessor, scored: Sequence[EvidenceScored]) -> None:
        self._assessor = assessor
        self._known = {_key(event.part, event.hit): event.assessment for event in scored}
        self.name = assessor.name
        self.uses_model = assessor.uses_model

    def parts(self, question: str, budget: Budget) -> list[str] | None:
        """See deep_types.Assessor."""
        return self._assessor.parts(question, budget)

    def assess(self, question: str, hits: Sequence[Hit], budget: Budget) -> Iterator[Assessment]:
        """See deep_types.Assessor."""
        new = [hit for hit in hits if _key(question, hit) not in self._known]
        assessments = self._assessor.assess(question, new, budget)
        for hit in hits:
            known = self._known.get(_key(question, hit))
            yield next(assessments) if known is None else known

    def rephrase(self, question: str, asked: Sequence[str], budget: Budget) -> list[str]:
        """See deep_types.Assessor."""
        return self._assessor.rephrase(question, asked, budget)


def _key(part: str, hit: Hit) -> tuple[str, int]:
    return part, hit.chunk.id


# How a search ended: by Ctrl-C or an error; with its budget, while it lacked something; by itself
End = Literal["stopped", "spent", "over"]


class DeepSearch:
    """Searches one library in rounds. One question at a time; `trace` is of the last one."""

    def __init__(
        self,
        retriever: Retriever,
        assessor: Assessor,
        limits: DeepLimits,
        selection: Selection = EVERYTHING,
        check_cancelled: Callable[[], None] = lambda: None,
        checkpoints: CheckpointFile | None = None,
        first: Callable[[Question], SearchResult] | None = None,
    ) -> None:
        """check_cancelled: called often; what it raises ends the search. checkpoints: where each search is kept.

        first: a search whose passages come first in the evidence; None for none.
        """
        self._retriever = retriever
        self._assessor = assessor
        self._limits = limits
        self._selection = selection
        self._check_cancelled = check_cancelled
        self._checkpoints = checkpoints
        self._first = first
        self.reset()

    def reset(self) -> None:
        """A question is asked, for which perhaps nothing is searched."""
        self.trace: DeepTrace | None = None
        self.end: End = "stopped"
        self._has_begun = False

    @property
    def is_kept(self) -> bool:
        """Whether the last search can be resumed."""
        return self._has_begun and self._checkpoints is not None and self._checkpoints.is_kept

    def finish(self) -> None:
        """The answer is complete. A search that ended by itself is no longer kept."""
        if self._checkpoints is not None and self.end == "over":
            self._checkpoints.remove()

    def progress_of(self, checkpoint: Checkpoint) -> Progress | None:
        """How far a search had come that `find` is to go on with; None if the library has changed since.

        Raises UsageError if something else scored its passages, StoreError if the checkpoint cannot be read.
        """
        head = checkpoint.head
        if head.store != self._retriever.state:
            return None
        if head.assessor != self._assessor.name:
            raise UsageError(
                f"The search was begun with {plain_line(head.assessor)}, and now {self._assessor.name} scores"
                " passages.",
                f"Make that ready again (`{command('doctor')}` shows how), or ask the question again.",
            )
        if self._checkpoints is not None:
            self._checkpoints.begin(head)
        return checkpoint.progress(self._retriever)

    def find(
        self, question: Question | str, on_event: OnEvent = lambda event: None, resumed: Progress | None = None
    ) -> SearchResult:
        """The evidence for a question, best first. on_event is called as it happens.

        resumed: go on from there, whatever the question, with what is left of the budget; with all of it if it was
        spent. What was found before is in the trace; on_event is not told again.

        Ctrl-C ends the search, and gives what was found before it; with nothing found it is raised.
        Raises ModelError and StoreDamaged.
        """
        self.reset()
        self._has_begun = True
        if resumed is None and self._checkpoints is not None:
            self._checkpoints.begin()
        question = Question.of(question if resumed is None else resumed.state.question)
        begun = _with_budget(resumed or Progress("", DeepState(question.text)))
        budget = Budget(self._limits.calls, self._limits.seconds, begun.calls, begun.seconds)
        record = SearchRecord(begun, budget, self._writer(question.text))

        def happened(event: DeepEvent) -> None:
            record.add(event)
            on_event(event)
            if isinstance(event, EvidenceScored) and self._assessor.uses_model:  # minutes may pass until the step ends
                record.keep(is_spent=tools.is_spent)

        assessor = RememberingAssessor(self._assessor, begun.scored)
        tools = Tools(self._retriever, assessor, self._limits, budget, self._selection, happened, self._check_cancelled)
        clock, state, first = Stopwatch(), begun.state, list[Hit]()
        record.keep(is_spent=False)
        try:
            self._check_cancelled()
            first = self._plainly_found(question, tools)
            for step, state in steps.states(begun.state, tools, begun.step):
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
            record.add(SearchEnded("stopped"))
            on_event(SearchEnded("stopped"))
            state = replace(state, **steps.answer(state, tools))
        clock.lap("search")
        calls, seconds = begun.calls_before + budget.calls, begun.seconds_before + budget.seconds
        self.trace = DeepTrace(tuple(record.events), self._assessor.name, state.round, calls, round(seconds, 2))
        chosen = {hit.chunk.id: hit for hit in state.chosen}
        found = {hit.chunk.id: replace(chosen.get(hit.chunk.id, hit), found_for=hit.found_for) for hit in first}
        evidence = found | {id: hit for id, hit in chosen.items() if id not in found}
        return SearchResult(tuple(evidence.values())[: self._limits.evidence], clock.laps, {})

    def _plainly_found(self, question: Question, tools: Tools) -> list[Hit]:
        """What the plain search finds, scored; it comes first in the evidence, so that this is never worse.

        It is no step of the search, and not told: the same passages are scored again for the part that they answer.
        """
        hits = self._first(question).hits if self._first else ()
        quiet = replace(tools, on_event=lambda event: None)
        return [steps.chosen(context) for context in steps.assess(question.text, 0, hits, quiet)]

    def weigher(self, meaning: Embedder) -> EvidenceWeigher:
        """Says what the evidence of its answers is worth. meaning: the built-in embedder."""
        comparer = self._assessor if isinstance(self._assessor, Comparer) else None
        return EvidenceWeigher(self._retriever, meaning, self._limits, comparer)

    def _writer(self, question: str) -> Callable[[Progress], None] | None:
        if self._checkpoints is None:
            return None
        return partial(self._checkpoints.write, question, self._retriever.state, self._assessor.name)


def _with_budget(progress: Progress) -> Progress:
    """The progress with a new budget if the old one was spent."""
    if not progress.is_spent:
        return progress
    calls, seconds = progress.calls_before + progress.calls, progress.seconds_before + progress.seconds
    return replace(progress, calls=0, seconds=0.0, calls_before=calls, seconds_before=seconds, is_spent=False)
