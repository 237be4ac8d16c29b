"""Follow-ups measured: how they are resolved, and what each reading finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from folio.answer_types import Answer
from folio.evaluate import followups
from folio.evaluate.dataset import Document, EvalSet, Question, Rewrite
from folio.evaluate.followups import AFTER_PREVIOUS, RESOLVED, TYPED, Resolution
from folio.evaluate.report import tables
from folio.evaluate.runner import OpenedStore, Runner, open_text_store
from folio.evaluate.tables import Table
from folio.question import followup
from tests.helpers.fakes import hashing_app
from tests.helpers.scripted_answerer import ScriptedAnswerer

LENGTH = "How long is the Aletsch glacier?"
TEXTS = {
    "ice": "The Aletsch glacier is 23 kilometres long.",
    "thick": "The ice of Aletsch is 800 metres thick.",
    "kelp": "Sea otters float in rafts of kelp, thick as a mat.",
    "moon": "How thick is it? The dust on the moon is.",
}
ASKED = Question("c2", "How thick is it?", "Follow-up", history=(LENGTH,))
REWRITES = (
    Rewrite("r1", (LENGTH,), "How thick is it?", "How thick is the ice of Aletsch?"),
    Rewrite("r2", (LENGTH,), "Who measured the ice of Rhone?", "Who measured the ice of Rhone?"),
    Rewrite("r3", (LENGTH,), "Why?", "Why does the glacier retreat?"),
    Rewrite("r4", (LENGTH,), "Thanks!", "Thanks!"),
)
EVALSET = EvalSet(
    "glaciers",
    Path("glaciers"),
    (ASKED,),
    tuple(Document(name, "", text) for name, text in TEXTS.items()),
    {"c2": {"thick": 1}},
    rewrites=REWRITES,
)


class Resolving(ScriptedAnswerer):
    """An answerer that resolves follow-ups as the built-in one does."""

    def standalone(self, question: str, history: Sequence[Answer]) -> str:
        return followup.standalone(question, history)


def test_a_resolution_counts_words() -> None:
    # r1 gets Aletsch and not ice; r2 nothing; r3 gets Aletsch, which nobody asked for; r4 too
    found = followups.resolution(REWRITES, followup.standalone)
    assert found == Resolution(
        extended=2, added=4, added_from_before=2, brought_in=1, needless=2, complete=2, left_alone=1
    )


def test_what_cannot_be_understood_stays_as_typed() -> None:
    rewrite = Rewrite("r", ("???", LENGTH), "…", "…")
    assert followups.resolution([rewrite], followup.standalone).left_alone == 1


def test_earlier_questions_are_resolved_in_their_order() -> None:
    found = followups.turns([LENGTH, "How thick is it?"], followup.standalone)
    assert [(turn.question, turn.standalone_question) for turn in found] == [
        (LENGTH, LENGTH),
        ("How thick is it?", "How thick is Aletsch?"),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OpenedStore]:
    app = hashing_app(tmp_path, TOP_K_CANDIDATES=4)
    with open_text_store(app, EVALSET, lambda *_: None) as opened:
        yield opened


def test_each_reading_is_a_stage_of_a_run(store: OpenedStore) -> None:
    answerer = Resolving(lambda _: iter(()))
    runner = Runner(EVALSET, store.library, store.retriever, None, answerer)
    run = runner.run(datetime(2026, 1, 1, tzinfo=UTC), {}, {}, lambda *_: None)
    assert run.stages == (TYPED, RESOLVED, AFTER_PREVIOUS, "fused")
    (asked,) = run.asked
    ranks = {stage: asked.ranks[stage]["paper"] for stage in run.stages}
    assert ranks["fused"] == ranks[RESOLVED] == (1,)
    assert ranks[TYPED] != (1,)  # the dust of the moon
    assert run.resolution == followups.resolution(REWRITES, followup.standalone)
    assert run.notes == ()
    titles = [table.title for table in tables(run)]
    assert titles[0] == "Found by document, questions: 1"
    assert "Follow-ups resolved, against rewrites by people: 4" in titles


def test_the_table() -> None:
    found = Resolution(213, 715, 260, 70, 380, 113, 62)
    assert followups.table(found) == Table(
        "Follow-ups resolved, against rewrites by people: 326",
        ("what", "number"),
        (
            ("words brought in", "70 of 715"),
            ("words from the questions before", "260 of 715"),
            ("needless words", "380"),
            ("complete follow-ups left unchanged", "62 of 113"),
        ),
    )
