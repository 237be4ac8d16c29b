"""Answers and their order, on all sets side by side: one table, with paired intervals against an earlier run.

python benchmarks/answers.py data/ --out runs/now                       asks everything, and saves each set's run
python benchmarks/answers.py data/ --out runs/now --before runs/before  compares with runs saved before
python benchmarks/answers.py data/ --out runs/now --only newcomers dev  some of the sets
python benchmarks/answers.py --out runs/now --before runs/before        only compares, question by question

data/ is a folder with questions/, papers/, mixed/, covidqa/, evidence/, pages/, qasper/ and mtrag/; a set whose files
are missing is left out and named. benchmarks/newcomers.jsonl comes with Folio, and so do others for --newcomers:
newcomers-kept, newcomers-second, newcomers-second-kept and newcomers-third-kept. LOG.md says which sets a weight was
chosen on; the others stay unseen until then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.chat import Chat
from folio.answer_types import Answer
from folio.app import App
from folio.cli import evaluate
from folio.cli.command import positive_int, run_command
from folio.cli.evaluate import spread
from folio.console import output, progress_bar, say
from folio.evaluate import dataset, runner
from folio.evaluate.dataset import Document, EvalSet, Gold, Question
from folio.evaluate.metrics import Figure, difference, figures
from folio.evaluate.runner import Run
from folio.evaluate.tables import Table, print_tables
from folio.store import indexes

NEWCOMERS = Path(__file__).with_name("newcomers.jsonl")
EVERY = 10**9  # questions
METRICS = {
    "recall@1": "R@1", "recall@5": "R@5", "mrr": "MRR", "page.recall@5": "page R@5", "paper.recall@5": "paper R@5",
    "paper.mrr": "paper MRR", "gold_shown": "gold shown",
    "first_citation": "first page", "any_citation": "any page", "answerable_refused": "refused wrongly",
    "refusal_recall": "refused rightly", "answer_words": "words", "marked_f1": "marked F1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Set:
    """A set: its questions, the papers they are about (none: its own texts), and how many are asked."""

    name: str
    questions: Path
    papers: tuple[str, ...] = ()  # folders of data/
    most: int | None = None
    answers: bool = True


SETS = (
    Set("newcomers", NEWCOMERS, ("papers", "mixed")),
    Set("dev", Path("questions/dev.jsonl"), ("papers",)),
    Set("covidqa", Path("covidqa/dev.json"), most=200),
    Set("evidence", Path("evidence/dev.json")),
    Set("pages", Path("pages/dev.jsonl"), ("pages/papers",)),
    Set("qasper", Path("qasper/dev.jsonl"), most=120),
    Set("mtrag", Path("mtrag"), most=150, answers=False),
)


def ask(app: App, chosen: Set, data: Path, most: int) -> Run | None:
    """The run of a set; None where its files are missing."""
    path = data / chosen.questions
    folders = [data / folder for folder in chosen.papers]
    if not all(each.exists() for each in (path, *folders)):
        say(f"{chosen.name}: left out, as {path} or its papers are missing.")
        return None
    asked = _qasper(path) if chosen.name == "qasper" else dataset.load(path)
    asked = replace(asked, questions=tuple(spread(asked.questions, most)))
    papers = _joined(app, folders) if len(folders) > 1 else next(iter(folders), None)
    return evaluate.ask(app, asked, papers=papers, answers=chosen.answers and chosen.name != "qasper")


def _joined(app: App, folders: Sequence[Path]) -> Path:
    """One folder with links to the PDFs of several."""
    joined = app.store_folder / indexes.EVALUATIONS / "-".join(folder.name for folder in folders)
    joined.mkdir(parents=True, exist_ok=True)
    for folder in folders:
        for pdf in folder.resolve().glob("*.pdf"):
            if not (joined / pdf.name).exists():
                (joined / pdf.name).symlink_to(pdf)
    return joined


def _qasper(path: Path) -> EvalSet:
    """QASPER's questions on the pools of paragraphs of their papers, with the sentences that people marked."""
    questions, documents = [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        pool = json.loads(line)
        text = "\n\n".join(pool["paragraphs"])
        documents.append(Document(pool["paper"], "", text))
        for asked in pool["questions"]:
            marked = [sentence.strip() for sentence in asked["sentences"] if sentence.strip() in text]
            gold = tuple(Gold(pool["paper"], None, words, text.index(words)) for words in marked if words)
            if gold:
                questions.append(Question(asked["id"], asked["question"], gold=gold, every=False))
    return EvalSet("qasper-dev", path, tuple(questions), tuple(documents))


def marked_f1(app: App, path: Path, most: int) -> Figure:
    """By question, how well the words shown agree with those that people marked in the paper's paragraphs: F1."""
    asked = _qasper(path)
    scores = []
    with progress_bar() as progress, runner.open_text_store(app, asked, progress) as store:
        papers = {file.name: file.sha256 for file in store.library.files()}
        for question in spread(asked.questions, most):
            paper = store.library.papers_by_id([papers[question.gold[0].paper]])
            chat = Chat(store.retriever, app.models.answerer(store.retriever), top_k=app.top_k, papers=paper)
            scores.append(_f1(chat.ask(question.text).answer, question.gold))
    return Figure(np.array(scores), np.ones(len(scores)))


def _f1(answer: Answer, gold: Sequence[Gold]) -> float:
    shown = {at for quote in answer.citations for at in range(quote.start, quote.end)}
    marked = {at for each in gold for at in range(each.start or 0, (each.start or 0) + len(each.quote))}
    both = len(shown & marked)
    return 2 * both / (len(shown) + len(marked)) if both else 0.0


def _of(run: Run) -> dict[str, Figure]:
    return figures(run.asked, run.stages[-1] if run.stages else "")


Measured = Mapping[str, Mapping[str, Figure]]  # set -> metric -> figure


def table(now: Measured, before: Measured) -> Table:
    """A line for each set and metric: before, now, and the paired 95 % interval of the difference."""
    return Table("Answers and their order", ("set", "figure", "n", "before", "now", "95 %"), tuple(_rows(now, before)))


def _rows(now: Measured, before: Measured) -> Iterator[tuple[str, ...]]:
    for name, found in now.items():
        for metric, label in METRICS.items():
            figure = found.get(metric)
            if figure is None or figure.value is None:
                continue
            old = before.get(name, {}).get(metric)
            if old is None or old.value is None or len(old.numerator) != len(figure.numerator):
                yield name, label, str(figure.questions), "", f"{figure.value:.3f}", ""
                continue
            gap = difference(old, figure)
            interval = f"{gap.interval.low:+.3f} to {gap.interval.high:+.3f}{' *' if gap.is_clear else ''}"
            yield name, label, str(figure.questions), f"{gap.before:.3f}", f"{gap.after:.3f}", interval


def _saved(folder: Path | None) -> Measured:
    if folder is None:
        return {}
    found: dict[str, dict[str, Figure]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem == "marked":
            scores = np.array(json.loads(path.read_text(encoding="utf-8")))
            found.setdefault("qasper", {})["marked_f1"] = Figure(scores, np.ones(len(scores)))
        else:
            found.setdefault(path.stem, {}).update(_of(runner.load(path)))
    return found


def _run(app: App, arguments: argparse.Namespace) -> int:
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)
    for each in SETS if arguments.data else ():
        if arguments.only and each.name not in arguments.only:
            continue
        if each.name == "newcomers" and arguments.newcomers:
            each = replace(each, questions=arguments.newcomers.resolve())
        most = min(arguments.limit or each.most or EVERY, each.most or EVERY)
        run = ask(app, each, arguments.data, most)
        if run is not None:
            runner.save(folder / f"{each.name}.json", run)
            if each.name == "qasper":
                scores = marked_f1(app, arguments.data / each.questions, most).numerator
                (folder / "marked.json").write_text(json.dumps(scores.tolist()), encoding="utf-8")
    print_tables(output(), [table(_saved(folder), _saved(arguments.before))])
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure answers and their order on all sets side by side.")
    parser.add_argument("data", type=Path, nargs="?", help="the folder with the sets")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where each set's run is saved")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="runs to compare with")
    parser.add_argument(
        "--only", nargs="+", metavar="SET", choices=[each.name for each in SETS], help="only these sets"
    )
    parser.add_argument(
        "--newcomers", type=Path, metavar="FILE", help="other questions than benchmarks/newcomers.jsonl"
    )
    parser.add_argument("--limit", type=positive_int, metavar="N", help="at most N questions of a set")
    arguments = parser.parse_args(argv)
    return run_command(lambda app: _run(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
