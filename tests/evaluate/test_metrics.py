"""Every figure on runs that are small enough to work out by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from folio.errors import UsageError
from folio.evaluate.metrics import (
    NAMES,
    AnswerResult,
    CitationResult,
    Figure,
    QuestionResult,
    Threshold,
    difference,
    figures,
    interval,
    latencies,
    ndcg,
    parse_threshold,
    recall,
    reciprocal_rank,
    refusal_curve,
    violations,
)

pytestmark = pytest.mark.fast

RIGHT, WRONG, INVENTED = CitationResult(True, True), CitationResult(False, True), CitationResult(False, False)


def found(*ranks: int | None, id: str = "q", every: bool = False, gains: tuple[float, ...] = ()) -> QuestionResult:
    """A question that needs these things, each with its rank by chunk in the stage "last"."""
    return QuestionResult(id, "", True, every, {"chunk": gains or (1.0,) * len(ranks)}, {"last": {"chunk": ranks}})


def answered(answerable: bool, answer: AnswerResult) -> QuestionResult:
    return QuestionResult("q", "", answerable, False, answer=answer)


def values(asked: list[QuestionResult], stage: str = "last") -> dict[str, float | None]:
    return {name: figure.value for name, figure in figures(asked, stage).items()}


def figure(*over: float) -> Figure:
    return Figure(np.array(over), np.ones(len(over)))


# Rankings


def test_recall_is_the_share_of_what_is_needed() -> None:
    assert recall((1,), 1) == 1
    assert recall((2,), 1) == 0
    assert recall((2, 7, None), 5) == pytest.approx(1 / 3)
    assert recall((5,), 5) == 1


def test_reciprocal_rank_of_the_first_or_the_last_needed() -> None:
    assert reciprocal_rank((4, 2, None), every=False) == 1 / 2
    assert reciprocal_rank((4, 2), every=True) == 1 / 4
    assert reciprocal_rank((4, None), every=True) == 0
    assert reciprocal_rank((None,), every=False) == 0


def test_ndcg_by_hand() -> None:
    assert ndcg((1,), (1.0,), 10) == 1
    assert ndcg((3,), (1.0,), 10) == 1 / log2(4)
    assert ndcg((11,), (1.0,), 10) == 0
    # Grades 2 and 1, found at 2 and 1
    assert ndcg((2, 1), (2.0, 1.0), 10) == pytest.approx((2 / log2(3) + 1) / (2 + 1 / log2(3)))
    # Of 12 relevant ones, ten is all that ten places can hold
    assert ndcg(tuple(range(1, 13)), (1.0,) * 12, 10) == pytest.approx(1)


def test_a_passage_with_two_targets_gains_no_more() -> None:
    assert ndcg((1, 1), (1.0, 1.0), 10) == 1
    assert ndcg((2, 2), (1.0, 1.0), 10) == pytest.approx(2 / log2(3) / (1 + 1 / log2(3)))
    assert ndcg((2, 2), (1.0, 1.0), 10) > ndcg((2, 3), (1.0, 1.0), 10)


def test_ndcg_is_that_of_scikit_learn() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: requirements/development.txt has it")
    from sklearn.metrics import ndcg_score  # a second of imports, which other test processes need not pay

    random = np.random.default_rng(5)
    for _ in range(20):
        grades = random.integers(0, 4, size=15).astype(float)
        scores = random.permutation(15).astype(float)
        if not grades.any():
            continue
        places = {item: rank for rank, item in enumerate(np.argsort(-scores), 1)}
        relevant = [item for item in range(15) if grades[item]]
        ours = ndcg([places[item] for item in relevant], [grades[item] for item in relevant], 10)
        assert ours == pytest.approx(ndcg_score([grades], [scores], k=10))


def test_figures_are_means_over_questions_with_gold() -> None:
    asked = [found(1), found(3), found(None), found(15), QuestionResult("no gold", "", False, False)]
    assert values(asked) == {
        "recall@1": 1 / 4,
        "recall@5": 2 / 4,
        "recall@10": 2 / 4,
        "recall@20": 3 / 4,
        "mrr": pytest.approx((1 + 1 / 3 + 1 / 15) / 4),
        "ndcg@10": pytest.approx((1 + 1 / 2) / 4),
    }
    assert figures(asked, "last")["mrr"].questions == 4
    assert figures(asked, "no such stage") == {}


def test_every_paper_is_needed_where_a_question_says_so() -> None:
    known = values([found(1, 6, every=True)])
    assert known["recall@5"] == 1 / 2
    assert known["recall@10"] == 1
    assert known["mrr"] == 1 / 6
    assert known["ndcg@10"] == pytest.approx((1 + 1 / log2(7)) / (1 + 1 / log2(3)))


def test_units_have_figures_of_their_own() -> None:
    ranks = {"last": {"chunk": (5,), "page": (2,), "paper": (1,)}}
    gains = dict.fromkeys(("chunk", "page", "paper"), (1.0,))
    known = values([QuestionResult("q", "", True, False, gains, ranks)])
    assert (known["mrr"], known["page.mrr"], known["paper.mrr"]) == (1 / 5, 1 / 2, 1)


# Answers


def test_citations_and_refusals_by_hand() -> None:
    asked = [
        answered(True, AnswerResult(False, 2, 2, (RIGHT, WRONG))),
        answered(True, AnswerResult(False, 1, 1, (WRONG, RIGHT, INVENTED))),
        answered(True, AnswerResult(False, 3, 2, ())),
        answered(True, AnswerResult(True)),
        answered(False, AnswerResult(True)),
        answered(False, AnswerResult(True)),
        answered(False, AnswerResult(False, 1, 1, (WRONG,))),
    ]
    assert values(asked) == {
        "citation_rate": 6 / 7,
        "citation_accuracy": 2 / 5,
        "first_citation": 1 / 2,
        "any_citation": 1,
        "quote_fidelity": 5 / 6,
        "refusal_recall": 2 / 3,
        "refusal_precision": 2 / 3,
        "answerable_refused": 1 / 4,
    }


def test_citations_without_a_gold_page_are_neither_right_nor_wrong() -> None:
    known = values([answered(True, AnswerResult(False, 1, 1, (WRONG,), has_gold_page=False))])
    assert known == {"citation_rate": 1, "quote_fidelity": 1, "answerable_refused": 0}


def test_citations_without_a_gold_page_are_judged_by_paper_where_that_is_known() -> None:
    cited = (CitationResult(False, True, in_paper=True), CitationResult(False, True, in_paper=False))
    known = values([answered(True, AnswerResult(False, 1, 1, cited, has_gold_page=False, topics=(1, 4)))])
    of_papers = {name: known[f"paper.{name}"] for name in ("citation_accuracy", "first_citation", "any_citation")}
    assert of_papers == {"citation_accuracy": 0.5, "first_citation": 1, "any_citation": 1}
    assert known["topics"] == 0.25
    assert "citation_accuracy" not in known


def test_gold_shown_and_answer_words_are_counted() -> None:
    asked = [
        answered(True, AnswerResult(False, 1, 1, gold_shown=True, words=80)),
        answered(True, AnswerResult(False, 1, 1, gold_shown=False, words=120)),
        answered(True, AnswerResult(True, gold_shown=False)),
        answered(True, AnswerResult(False, 1, 1, words=100)),  # where the answer stands is not known
        answered(False, AnswerResult(True)),
    ]
    known = values(asked)
    assert (known["gold_shown"], known["answer_words"]) == (1 / 3, 100)


def test_every_figure_has_a_name_that_can_be_required() -> None:
    gains = dict.fromkeys(("chunk", "page", "paper"), (1.0,))
    ranks = {"last": dict.fromkeys(("chunk", "page", "paper"), (1,))}
    good = QuestionResult(
        "q", "", True, False, gains, ranks, {}, AnswerResult(False, 1, 1, (RIGHT,), None, True, True, 9, 2)
    )
    by_paper = AnswerResult(
        False, 1, 1, (CitationResult(False, True, in_paper=True),), has_gold_page=False, topics=(1, 2)
    )
    asked = [good, answered(False, AnswerResult(True)), answered(True, by_paper)]
    assert set(figures(asked, "last")) == set(NAMES)


def test_curve_of_refusals() -> None:
    asked = [
        answered(True, AnswerResult(False, confidence=0.9)),
        answered(True, AnswerResult(False, confidence=0.4)),
        answered(False, AnswerResult(True, confidence=0.2)),
        answered(False, AnswerResult(False, confidence=0.4)),
        answered(False, AnswerResult(True)),  # refused before it came to a confidence: at every threshold
    ]
    points = [(p.threshold, p.answerable, p.unanswerable) for p in refusal_curve(asked)]
    assert points[:3] == [(0.2, 0, 1 / 3), (0.4, 0, 2 / 3), (0.9, 1 / 2, 1)]
    assert points[3][1:] == (1, 1)
    assert len(points) == 4


def test_no_curve_without_confidences_or_without_both_kinds_of_question() -> None:
    assert refusal_curve([answered(True, AnswerResult(False)), answered(False, AnswerResult(True))]) == []
    assert refusal_curve([answered(True, AnswerResult(False, confidence=0.5))]) == []
    assert refusal_curve([QuestionResult("q", "", True, False)]) == []


def test_latencies_are_the_median_and_the_95th_percentile() -> None:
    assert latencies([{"embed": float(n), "bm25": 2.0} for n in range(101)]) == {"embed": (50, 95), "bm25": (2, 2)}


# Intervals


def test_interval_of_a_share_is_that_of_the_normal_approximation() -> None:
    low, high = interval(figure(*[1.0] * 300, *[0.0] * 100))
    half = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert low == pytest.approx(0.75 - half, abs=0.005)
    assert high == pytest.approx(0.75 + half, abs=0.005)


def test_interval_leaves_out_questions_without_a_part() -> None:
    known = figure(1, 0, 1, 1, 0)
    padded = Figure(np.array([1, 0, 0, 1, 1, 0, 0.0]), np.array([1, 1, 0, 1, 1, 1, 0.0]))
    assert interval(known) == interval(known) == interval(padded)


def test_interval_of_equal_values_is_a_point() -> None:
    assert interval(figure(0.5, 0.5, 0.5)) == (0.5, 0.5)
    assert interval(figure(0.25)) == (0.25, 0.25)
    with pytest.raises(ValueError, match="without questions"):
        interval(Figure(np.zeros(2), np.zeros(2)))


def test_difference_is_paired() -> None:
    random = np.random.default_rng(1)
    before = random.random(200)
    gap = difference(figure(*before), figure(*(before + 0.01)))
    assert gap.after - gap.before == pytest.approx(0.01)
    # Every question gained as much: there is no doubt, however far apart the questions are.
    assert gap.interval == pytest.approx((0.01, 0.01))
    assert gap.is_clear


def test_difference_of_chance_is_not_clear() -> None:
    gap = difference(figure(1, 0, 1, 0, 1, 0), figure(0, 1, 1, 0, 1, 1))
    assert gap.interval.low < 0 < gap.interval.high
    assert not gap.is_clear


def test_difference_of_shares_counts_what_either_run_has() -> None:
    before = Figure(np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]))  # one answered question, two citations
    after = Figure(np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 0.0]))
    gap = difference(before, after)
    assert (gap.before, gap.after) == (0.5, 0.75)
    with pytest.raises(ValueError, match="without questions"):
        difference(before, Figure(np.zeros(3), np.zeros(3)))


def test_grades_are_averaged_over_the_answerable_questions_that_have_one() -> None:
    answers = [AnswerResult(False, grade=3), AnswerResult(True, grade=0), AnswerResult(False), AnswerResult(False)]
    asked = [answered(place < 3, answer) for place, answer in enumerate(answers)]
    found = figures(asked, "last")["grade"]
    assert (found.value, found.questions) == (1.5, 2)


# Thresholds


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("recall@5=0.8", Threshold("recall@5", 0.8, at_most=False)),
        ("page.mrr>=.5", Threshold("page.mrr", 0.5, at_most=False)),
        (" answerable_refused <= 0.08 ", Threshold("answerable_refused", 0.08, at_most=True)),
        ("paper.ndcg@10=1", Threshold("paper.ndcg@10", 1.0, at_most=False)),
    ],
)
def test_thresholds_are_parsed(text: str, threshold: Threshold) -> None:
    assert parse_threshold(text) == threshold


def test_an_unknown_name_is_answered_with_all_names() -> None:
    with pytest.raises(UsageError) as raised:
        parse_threshold("recall@7=0.5")
    assert raised.value.happened == "There is no metric recall@7."
    assert all(name in raised.value.remedy for name in NAMES)


@pytest.mark.parametrize("text", ["recall@5", "recall@5<0.8", "", "=0.8", "mrr=", "mrr=good", "mrr=80", "mrr=nan"])
def test_malformed_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


def test_violations_say_by_how_much() -> None:
    figures = {"mrr": figure(0.65), "answerable_refused": figure(0.125), "recall@5": figure(0.8)}
    texts = ("mrr=0.7", "answerable_refused<=0.08", "recall@5=0.8", "quote_fidelity=1")
    thresholds = [parse_threshold(text) for text in texts]
    assert violations(thresholds, figures) == [
        "mrr is 0.6500 and should be at least 0.7 (off by 0.0500).",
        "answerable_refused is 0.1250 and should be at most 0.08 (off by 0.0450).",
        "quote_fidelity should be at least 1, but this set does not measure it.",
    ]
    assert violations([parse_threshold("mrr=0.65"), parse_threshold("mrr<=0.65")], figures) == []
