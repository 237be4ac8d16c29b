"""Folio compared with the plain design: the same questions, papers, gold and judge.

python benchmarks/quality.py questions.jsonl --papers ~/papers
python benchmarks/quality.py articles.json                           a set with its own texts
python benchmarks/quality.py questions.jsonl --papers ~/papers --out runs/    saves both runs, for evaluate.py --compare

Only rankings are measured; nothing is answered. Passages of both designs are judged by the rules of
docs/evaluation-set.md. Follow-ups are searched as written, because the plain design cannot rewrite them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.plain import BM25_WEIGHT, CANDIDATES, CHUNK_OVERLAP, CHUNK_SIZE, DENSE_WEIGHT, PlainDesign, PlainHit
from folio.app import App
from folio.cli import evaluate
from folio.cli.command import positive_int, run_command
from folio.console import output, progress_bar
from folio.errors import UsageError
from folio.evaluate import dataset, runner, tables
from folio.evaluate.dataset import EvalSet, Question
from folio.evaluate.metrics import QuestionResult, difference, figures
from folio.evaluate.relevance import Place, Ranks, RelevanceJudge, Targets, fold_quote, holds, rank_of
from folio.evaluate.runner import DEPTH, Run
from folio.papers.model import Progress
from folio.shown_text import plain_line

METRICS = {"recall@1": "R@1", "recall@5": "R@5", "recall@20": "R@20", "mrr": "MRR", "ndcg@10": "nDCG@10"}


def target_ranks(judge: RelevanceJudge, targets: Targets, hits: Sequence[PlainHit]) -> Ranks:
    """By unit, the rank (from 1) of the first hit that has each target, as in RelevanceJudge.ranks."""
    order = _paper_order(judge, hits)
    ranks: Ranks = {}
    for unit in targets.units:
        found = []
        for places in targets.groups:
            if unit == "paper":
                known = [rank for place in places if (rank := rank_of(order, place.paper))]
            else:
                test = _is_on_page if unit == "page" else _has_answer
                known = [rank for rank, hit in enumerate(hits, 1) if any(test(judge, hit, place) for place in places)]
            found.append(min(known, default=None))
        ranks[unit] = tuple(found)
    return ranks


def _paper_order(judge: RelevanceJudge, hits: Sequence[PlainHit]) -> list[str]:
    """Paper ids, each once, in the order of their best hits; the file name if Folio's library has no such paper."""
    papers = (judge.papers.get(hit.paper) for hit in hits)
    return list(dict.fromkeys(paper.id if paper else hit.paper for paper, hit in zip(papers, hits, strict=True)))


def _is_in_paper(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    paper = judge.papers.get(hit.paper)
    return paper is not None and paper.id == place.paper


def _has_answer(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    """Whether a hit contains the place's quote, or half of its span."""
    if not _is_in_paper(judge, hit, place):
        return False
    if place.span:
        start, end = place.span
        return 2 * (min(end, hit.end) - max(start, hit.start)) >= end - start
    return holds(fold_quote(hit.text), place.quote)


def _is_on_page(judge: RelevanceJudge, hit: PlainHit, place: Place) -> bool:
    """Whether a hit's text is on a page of the place."""
    if not _is_in_paper(judge, hit, place):
        return False
    folded = fold_quote(hit.text)
    return any(judge.source_pages.contains_part(judge.papers[hit.paper], page, folded) for page in sorted(place.pages))


def without_failed(evalset: EvalSet, run: Run) -> EvalSet:
    """The set without the questions on which a model failed, so that both designs are asked the same ones."""
    answered = {question.id for question in run.asked}
    return replace(evalset, questions=tuple(question for question in evalset.questions if question.id in answered))


def ask_plain(design: PlainDesign, evalset: EvalSet, judge: RelevanceJudge, progress: Progress) -> Run:
    """Ask the plain design every question of a set. The run has the form of Folio's own."""
    began = perf_counter()
    design.search(evalset.questions[0].text, 1)  # warm up: load the model before timing
    results = []
    for done, question in enumerate(evalset.questions, 1):
        results.append(_ask(design, evalset, judge, question))
        progress("Asking the plain design", done, len(evalset.questions))
    return Run(
        name=f"{evalset.name}, plain design",
        made=datetime.now(UTC),
        source=str(evalset.path),
        is_text=bool(evalset.documents),
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
        asked=tuple(results),
        faults=(),
        notes=(),
        seconds=round(perf_counter() - began, 1),
    )


def _ask(design: PlainDesign, evalset: EvalSet, judge: RelevanceJudge, question: Question) -> QuestionResult:
    targets, _ = judge.targets(question)
    started = perf_counter()
    stages = {stage: hits[:DEPTH] for stage, hits in design.stages(question.text).items()}
    timings = {"search": round((perf_counter() - started) * 1000, 2)}
    result = QuestionResult(question.id, question.type, question.answerable, question.every, {}, {}, timings)
    if evalset.relevance is not None:
        return _graded(result, judge, evalset.relevance.get(question.id, {}), stages)
    ranks = {stage: target_ranks(judge, targets, hits) for stage, hits in stages.items()}
    return replace(result, gains={unit: (1.0,) * len(targets.groups) for unit in targets.units}, ranks=ranks)


def _graded(
    result: QuestionResult, judge: RelevanceJudge, grades: Mapping[str, int], stages: Mapping[str, Sequence[PlainHit]]
) -> QuestionResult:
    """Score by document, as Runner does: its rank is that of its best passage and its gain is its grade."""
    relevant = {name: grade for name, grade in grades.items() if grade > 0}
    if not relevant:
        return result
    ids = [judge.papers[name].id if name in judge.papers else "" for name in relevant]
    orders = {stage: _paper_order(judge, hits) for stage, hits in stages.items()}
    ranks = {stage: {"paper": tuple(rank_of(order, id) for id in ids)} for stage, order in orders.items()}
    return replace(result, gains={"paper": tuple(map(float, relevant.values()))}, ranks=ranks)


def comparison_table(plain: Run, folio: Run) -> tables.Table:
    """The metrics of both designs, and Folio minus the plain design and minus its BM25, with paired 95 % intervals."""
    ours = figures(folio.asked, folio.stages[-1])
    baselines = {
        "plain design": figures(plain.asked, "fused"),
        "its BM25 alone": figures(plain.asked, "bm25"),
        "its dense alone": figures(plain.asked, "dense"),
    }
    # By passage if the gold has quotes or spans, else by page if it has pages, else by paper.
    prefix = next(prefix for prefix in ("", "page.", "paper.") if f"{prefix}mrr" in ours)
    columns = {f"{prefix}{name}": label for name, label in METRICS.items()}
    rows = [
        (label, *(f"{found[name].value:.3f}" for name in columns))
        for label, found in {**baselines, "Folio": ours}.items()
    ]
    for label in ("plain design", "its BM25 alone"):
        differences = [difference(baselines[label][name], ours[name]) for name in columns]
        rows.append((f"Folio minus {label}", *(f"{d.after - d.before:+.3f}" for d in differences)))
        rows.append(("", *(f"{d.interval.low:+.3f} to {d.interval.high:+.3f}" for d in differences)))
    unit = {"": "passage", "page.": "page", "paper.": "paper"}[prefix]
    title = f"{folio.name}: {ours[f'{prefix}mrr'].questions} questions with gold, by {unit}; 95 % paired bootstrap"
    return tables.Table(title, ("", *columns.values()), tuple(rows))


def compare(app: App, arguments: argparse.Namespace) -> int:
    evalset = dataset.load(arguments.eval_set)
    if bool(evalset.documents) == bool(arguments.papers):
        happened = "has its own texts" if evalset.documents else "asks about PDFs, and no folder was given"
        remedy = "Leave out --papers." if evalset.documents else "Add --papers FOLDER."
        raise UsageError(f"{arguments.eval_set} {happened}.", remedy)
    evalset = replace(evalset, questions=evalset.questions[: arguments.limit])
    # Folio first, because it builds the store that both are judged with.
    folio = evaluate.ask(app, evalset, papers=arguments.papers, answers=False)
    evalset = without_failed(evalset, folio)
    texts = [(document.id, document.title, document.text) for document in evalset.documents]
    try:
        design = PlainDesign.from_texts(texts) if texts else PlainDesign.from_papers(arguments.papers)
    except ValueError as error:
        raise UsageError(f"There is no text in {arguments.papers}.", "Name a folder of PDFs with text.") from error
    with progress_bar() as progress:
        opened = (
            runner.open_text_store(app, evalset, progress)
            if texts
            else runner.open_paper_store(runner.app_for_papers(app, arguments.papers))
        )
        with opened as store:
            evalset = dataset.resolved(evalset, store.library)
            plain = ask_plain(design, evalset, RelevanceJudge(evalset, store.library), progress)
    tables.print_tables(output(), [comparison_table(plain, folio)])
    if arguments.out:
        paths = {arguments.out / "plain.json": plain, arguments.out / "folio.json": folio}
        for path, run in paths.items():
            runner.save(path, run)
        output().print(f"Saved: {', '.join(plain_line(str(path)) for path in paths)}")
    return evaluate.report_failures(folio.failed, len(folio.asked))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare Folio's rankings with the plain design's.")
    parser.add_argument("eval_set", type=Path, metavar="EVAL_SET", help="questions: a file, or a BEIR folder")
    parser.add_argument("--papers", type=Path, metavar="FOLDER", help="the PDFs that the questions are about")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="ask the first N questions")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="save both runs here, for evaluate.py --compare")
    arguments = parser.parse_args(argv)
    return run_command(lambda app: compare(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
