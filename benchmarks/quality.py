"""Folio against the plain design on one set of questions: the same papers, the same gold, the same judge.

python benchmarks/quality.py questions.jsonl --papers ~/papers
python benchmarks/quality.py articles.json                           a set that brings its own texts
python benchmarks/quality.py questions.jsonl --papers ~/papers --out runs/    keeps both runs: evaluate.py --compare

Rankings alone: nothing is answered. A passage counts by the rules of docs/evaluation-set.md, whichever of the two found
it; follow-ups are searched for as they stand, since the plain design cannot rewrite them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

# Run as a file, a script sees only the modules in its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.plain import BM25_WEIGHT, CANDIDATES, CHUNK_OVERLAP, CHUNK_SIZE, DENSE_WEIGHT, PlainDesign, PlainHit
from folio.app import App
from folio.cli.command import command, positive_int
from folio.commands import evaluate
from folio.console import one_line, output, progress_bar
from folio.errors import UsageError
from folio.evaluate import dataset, report, runner, stores
from folio.evaluate.dataset import EvalSet, Question
from folio.evaluate.metrics import QuestionResult, difference, figures
from folio.evaluate.quote_match import fold, holds
from folio.evaluate.relevance import Place, Ranks, RelevanceJudge, Targets, rank_of
from folio.evaluate.runner import DEPTH, Run
from folio.types import Progress

SHOWN = {"recall@1": "R@1", "recall@5": "R@5", "recall@20": "R@20", "mrr": "MRR", "ndcg@10": "nDCG@10"}


def ranks_of(judge: RelevanceJudge, targets: Targets, hits: Sequence[PlainHit]) -> Ranks:
    """The rank, from 1, of the first of these hits that has each thing, by unit, as RelevanceJudge.ranks has it."""
    order = _paper_order(judge, hits)
    ranks: Ranks = {}
    for unit in targets.units:
        found = []
        for places in targets.groups:
            if unit == "paper":
                known = [rank for place in places if (rank := rank_of(order, place.paper))]
            else:
                has = _stands_on if unit == "page" else _holds
                known = [rank for rank, hit in enumerate(hits, 1) if any(has(judge, hit, place) for place in places)]
            found.append(min(known, default=None))
        ranks[unit] = tuple(found)
    return ranks


def _paper_order(judge: RelevanceJudge, hits: Sequence[PlainHit]) -> list[str]:
    """The ids of papers, each once, in the order of its best hit; a file that Folio has not is a paper of its name."""
    known = (judge.papers.get(hit.paper) for hit in hits)
    return list(dict.fromkeys(paper.id if paper else hit.paper for paper, hit in zip(known, hits, strict=True)))


def _is_of(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    paper = judge.papers.get(hit.paper)
    return paper is not None and paper.id == place.paper


def _holds(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    if not _is_of(judge, hit, place):
        return False
    if place.span:
        start, end = place.span
        return 2 * (min(end, hit.end) - max(start, hit.start)) >= end - start
    return holds(fold(hit.text), place.quote)


def _stands_on(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    if not _is_of(judge, hit, place):
        return False
    folded = fold(hit.text)
    return any(judge.source_pages.contains_part(judge.papers[hit.paper], page, folded) for page in sorted(place.pages))


def asked_of(asked: EvalSet, run: Run) -> EvalSet:
    """The set without the questions that a model failed on: both are measured by the same ones."""
    found = {question.id for question in run.asked}
    return replace(asked, questions=tuple(question for question in asked.questions if question.id in found))


def ask_plain(design: PlainDesign, asked: EvalSet, judge: RelevanceJudge, progress: Progress) -> Run:
    """The plain design's run over a set, in the form of Folio's own."""
    began = perf_counter()
    design.search(asked.questions[0].text, 1)  # the model warms up before the clock runs
    outcomes = []
    for done, question in enumerate(asked.questions, 1):
        outcomes.append(_ask(design, asked, judge, question))
        progress("Asking the plain design", done, len(asked.questions))
    return Run(
        name=f"{asked.name}, plain design",
        made=datetime.now(UTC),
        source=str(asked.path),
        is_text=bool(asked.documents),
        models={"embedder": "all-MiniLM-L6-v2 (sentence-transformers)", "reranker": "none"},
        store={"chunks": str(len(design.chunks))},
        settings={
            "CHUNK_SIZE": str(CHUNK_SIZE),
            "CHUNK_OVERLAP": str(CHUNK_OVERLAP),
            "TOP_K_CANDIDATES": str(CANDIDATES),
            "DENSE_WEIGHT": str(DENSE_WEIGHT),
            "BM25_WEIGHT": str(BM25_WEIGHT),
        },
        stages=("dense", "bm25", "fused"),
        asked=tuple(outcomes),
        faults=(),
        notes=(),
        seconds=round(perf_counter() - began, 1),
    )


def _ask(design: PlainDesign, asked: EvalSet, judge: RelevanceJudge, question: Question) -> QuestionResult:
    targets, _ = judge.targets(question)
    started = perf_counter()
    stages = {stage: hits[:DEPTH] for stage, hits in design.stages(question.text).items()}
    timings = {"search": round((perf_counter() - started) * 1000, 2)}
    outcome = QuestionResult(question.id, question.type, question.answerable, question.every, {}, {}, timings)
    if asked.relevance is not None:
        return _graded(outcome, judge, asked.relevance.get(question.id, {}), stages)
    ranks = {stage: ranks_of(judge, targets, hits) for stage, hits in stages.items()}
    return replace(outcome, gains={unit: (1.0,) * len(targets.groups) for unit in targets.units}, ranks=ranks)


def _graded(
    outcome: QuestionResult, judge: RelevanceJudge, grades: Mapping[str, int], stages: Mapping[str, Sequence[PlainHit]]
) -> QuestionResult:
    """As Runner does: a document ranks by its best passage and gains its grade."""
    relevant = {name: grade for name, grade in grades.items() if grade > 0}
    if not relevant:
        return outcome
    wanted = [judge.papers[name].id if name in judge.papers else "" for name in relevant]
    orders = {stage: _paper_order(judge, hits) for stage, hits in stages.items()}
    ranks = {stage: {"paper": tuple(rank_of(order, id) for id in wanted)} for stage, order in orders.items()}
    return replace(outcome, gains={"paper": tuple(map(float, relevant.values()))}, ranks=ranks)


def table(plain: Run, folio: Run) -> report.Table:
    """Both designs' figures, and Folio less the plain one and less its BM25 with the paired 95 % interval."""
    ours = figures(folio.asked, folio.stages[-1])
    rivals = {
        "plain design": figures(plain.asked, "fused"),
        "its BM25 alone": figures(plain.asked, "bm25"),
        "its dense alone": figures(plain.asked, "dense"),
    }
    # By passage where the gold tells passages, by page where it tells pages, else by paper.
    prefix = next(prefix for prefix in ("", "page.", "paper.") if f"{prefix}mrr" in ours)
    names = {f"{prefix}{name}": shown for name, shown in SHOWN.items()}
    rows = [
        (label, *(f"{found[name].value:.3f}" for name in names)) for label, found in {**rivals, "Folio": ours}.items()
    ]
    for label in ("plain design", "its BM25 alone"):
        gaps = [difference(rivals[label][name], ours[name]) for name in names]
        rows.append((f"Folio less {label}", *(f"{gap.after - gap.before:+.3f}" for gap in gaps)))
        rows.append(("", *(f"{gap.interval.low:+.3f} to {gap.interval.high:+.3f}" for gap in gaps)))
    unit = {"": "passage", "page.": "page", "paper.": "paper"}[prefix]
    title = f"{folio.name}: {ours[f'{prefix}mrr'].questions} questions with gold, by {unit}; 95 % paired bootstrap"
    return report.Table(title, ("", *names.values()), tuple(rows))


def compare(app: App, arguments: argparse.Namespace) -> int:
    asked = dataset.load(arguments.eval_set)
    if bool(asked.documents) == bool(arguments.papers):
        happened = "brings its own texts" if asked.documents else "asks about PDFs, and no folder was named"
        remedy = "Leave out --papers." if asked.documents else "Name it: --papers FOLDER."
        raise UsageError(f"{arguments.eval_set} {happened}.", remedy)
    asked = replace(asked, questions=asked.questions[: arguments.limit])
    # Folio first: it makes the store that both are judged with.
    folio = evaluate.ask(app, asked, papers=arguments.papers, answers=False)
    asked = asked_of(asked, folio)
    texts = [(document.id, document.title, document.text) for document in asked.documents]
    try:
        design = PlainDesign.from_texts(texts) if texts else PlainDesign.from_papers(arguments.papers)
    except ValueError as error:
        raise UsageError(f"There is no text in {arguments.papers}.", "Name a folder of PDFs that have some.") from error
    with progress_bar() as progress:
        ready = (
            stores.open_text_store(app, asked, progress)
            if texts
            else stores.open_paper_store(stores.app_for_papers(app, arguments.papers))
        )
        with ready as store:
            plain = ask_plain(design, asked, RelevanceJudge(asked, store.library), progress)
    report.print_tables(output(), [table(plain, folio)])
    if arguments.out:
        paths = {arguments.out / "plain.json": plain, arguments.out / "folio.json": folio}
        for path, run in paths.items():
            runner.save(path, run)
        output().print(f"Saved: {', '.join(one_line(str(path)) for path in paths)}")
    return evaluate.report_failures(folio)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure Folio's rankings against the plain design's.")
    parser.add_argument("eval_set", type=Path, metavar="EVAL_SET", help="questions: a file, or a BEIR folder")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="the PDFs that they ask about")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="ask the first N questions")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="save both runs there, for evaluate.py --compare")
    arguments = parser.parse_args(argv)
    return command(lambda app: compare(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
