"""Asks for every labelled algorithm, listing or procedure, and measures whether all of its steps are shown, in order.

python benchmarks/algorithms.py data/                               asks about every file of benchmarks/algorithms.jsonl
python benchmarks/algorithms.py data/ --only standards --misses     one folder; prints what was shown instead
python benchmarks/algorithms.py data/ --identifiers                 bare identifiers: rank of the page that defines them

Pages that define an identifier which is no algorithm are in benchmarks/identifiers.jsonl.

data/ is a folder with standards/, papers/, mixed/, pages/papers/; files that are missing are left out and named.

A label has facts only, read from the pages: file, label ("Algorithm 19"), name, pages, number of steps, the first and
the last step's words, and for numbered steps the first number. Everything must be in one statement of the answer: the
numbers of the steps (or the words of the first and last step) in order, and little after the last step.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.chat import Chat
from folio.answer_types import Answer
from folio.app import App
from folio.cli import evaluate
from folio.cli.command import positive_int, run_command
from folio.console import output, say
from folio.evaluate import runner
from folio.grounding.names import identifiers
from folio.papers.model import Paper
from folio.protocols import Answerer
from folio.store import indexes
from folio.store.library import Library
from folio.text import fold, one_line

LABELS = Path(__file__).with_name("algorithms.jsonl")
IDENTIFIERS = Path(__file__).with_name("identifiers.jsonl")
# Kind of question -> its words, and whether it is asked about the paper alone, as the label is no unique name
TEMPLATES: dict[str, tuple[str, bool]] = {
    "steps": ("What are the steps of {label} ({name})?", False),
    "how": ("How does {name} work?", False),
    "show": ("Show the pseudocode of {name}.", False),
    "name": ("{name}", False),
    "label": ("{label}", True),
    "steps of label": ("List the steps of {label}.", True),
}
MOST_AFTER = 150  # characters that may be shown after the last step: the end of a line, a comment, a caption below


@dataclass(frozen=True, slots=True)
class Label:
    """An algorithm of a page."""

    file: str  # below data/
    label: str  # "Algorithm 19"; "" for none
    name: str  # "ML-KEM.KeyGen"; "" for none
    pages: tuple[int, ...]
    steps: int
    first: str  # words of the first step and of the last; signs, accents and spaces do not count
    last: str
    begins: int = 1  # the number of the first step; 0 if they have none
    numbered: bool = True


def load(path: Path) -> list[Label]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Label(**{**json.loads(line), "pages": tuple(json.loads(line)["pages"])}) for line in lines if line]


def fault(label: Label, answer: Answer) -> str:
    """Why an answer does not show the algorithm; "" if it does."""
    if not answer.sentences:
        return "refused"
    faults = [_fault_of(label, sentence.text) for sentence in answer.sentences]
    return "" if "" in faults else faults[0]


def _fault_of(label: Label, text: str) -> str:
    place = 0
    if label.numbered:
        for number in range(label.begins, label.begins + label.steps):
            match = re.compile(rf"^\s*\(?0?{number}(?:\s*[:.)]|\s|$)", re.M).search(text, place)
            if match is None:
                return f"no step {number}"
            place = match.end()
    folded = fold(text)
    first = folded.find(fold(label.first))
    if first < 0:
        return "first step's words"
    last = folded.rfind(fold(label.last))
    if last < first:
        return "last step's words"
    after = len(folded) - last - len(fold(label.last))
    return "" if after <= MOST_AFTER else f"{after} characters after the last step"


def _ask(app: App, data: Path, labels: Sequence[Label], limit: int | None, shows_misses: bool) -> None:
    files = sorted({label.file for label in labels})
    with _Store(app, data, files) as (store, papers, answerer, top_k):
        names = Counter(label.name for label in labels)
        results: dict[str, list[bool]] = {}
        for label in evaluate.spread(labels, limit):
            for kind, (words, alone) in TEMPLATES.items():
                if ("{name}" in words and (not label.name or names[label.name] > 1)) or (
                    "{label}" in words and not label.label
                ):
                    continue
                asked = words.format(label=label.label, name=label.name)
                chat = Chat(store.retriever, answerer, top_k=top_k, papers=[papers[label.file]] if alone else None)
                reply = chat.ask(asked)
                found = fault(label, reply.answer)
                ranks = [
                    rank
                    for rank, hit in enumerate(reply.hits, 1)
                    if hit.paper.id == papers[label.file].id and set(hit.pages) & set(label.pages)
                ]
                results.setdefault(kind, []).append(not found)
                results.setdefault("any", []).append(not found)
                results.setdefault(f"page in 4: {kind}", []).append(bool(ranks) and ranks[0] <= 4)
                if found and shows_misses:
                    shown = one_line(" / ".join(sentence.text for sentence in reply.answer.sentences))
                    place = f"rank {ranks[0]}" if ranks else "not found"
                    say(f"- {label.file.rpartition('/')[2]} | {asked} | {found} | {place} | {shown[:160]}")
        for kind, shown_all in sorted(results.items(), key=lambda each: each[0].startswith("page")):
            output().print(f"{kind:32} {sum(shown_all)} of {len(shown_all)} ({sum(shown_all) / len(shown_all):.3f})")


def _identifiers(
    app: App, data: Path, labels: Sequence[Label], folders: Sequence[str], shows_misses: bool
) -> None:
    """R@1 and R@4 of a page that defines a bare identifier, with and without the reranker."""
    places: dict[str, list[tuple[str, frozenset[int]]]] = {}
    for line in IDENTIFIERS.read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        places[one["identifier"]] = [(file, frozenset(pages)) for file, pages in one["places"]]
    for label in labels:
        if identifiers(label.name) and " " not in label.name:
            places.setdefault(label.name, []).append((label.file, frozenset(label.pages)))
    places = {name: [place for place in own if place[0].startswith(tuple(folders))] for name, own in places.items()}
    places = {name: own for name, own in places.items() if own}
    files = [pdf for folder in folders for pdf in _pdfs(data, folder)]
    with _Store(app, data, files) as (store, papers, _, _):
        for reranks in (True, False):
            ranks = [_rank(store, papers, name, own, reranks, shows_misses) for name, own in places.items()]
            shares = ", ".join(f"R@{k} {sum(rank <= k for rank in ranks) / len(ranks):.3f}" for k in (1, 4, 10))
            mrr = sum(1 / rank for rank in ranks) / len(ranks)
            output().print(f"{'reranked' if reranks else 'fused':10} n={len(ranks)} {shares}, MRR {mrr:.3f}")


def _rank(
    store: runner.OpenedStore,
    papers: dict[str, Paper],
    identifier: str,
    places: Sequence[tuple[str, frozenset[int]]],
    reranks: bool,
    shows_misses: bool,
) -> float:
    """The rank of the first hit on one of these pages; infinite if there is none."""
    hits = store.retriever.search(identifier, 20, rerank=reranks).hits
    right = [any(hit.paper.id == papers[file].id and pages & set(hit.pages) for file, pages in places) for hit in hits]
    rank = right.index(True) + 1 if True in right else 0
    if shows_misses and rank != 1 and hits:
        first = f"{hits[0].paper.file} p. {hits[0].pages} {one_line(hits[0].text)[:90]}"
        say(f"- {'reranked' if reranks else 'fused'} | {identifier} | {rank or 'not found'} | {first}")
    return rank or math.inf


def _pdfs(data: Path, folder: str) -> Iterator[str]:
    yield from (f"{folder}/{pdf.name}" for pdf in sorted((data / folder).glob("*.pdf")))


class _Store:
    """The store of some files of data/, made if it is missing, with its papers by file and the answerer."""

    def __init__(self, app: App, data: Path, files: Sequence[str]) -> None:
        self._files = files
        named = hashlib.sha256("\n".join(files).encode()).hexdigest()[:8]
        folder = app.store_folder / indexes.EVALUATIONS / f"algorithms-{named}"
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if not (folder / Path(file).name).exists():
                (folder / Path(file).name).symlink_to((data / file).resolve())
        self._app = runner.app_for_papers(app, folder)
        evaluate._ingest(self._app, folder)

    def __enter__(self) -> tuple[runner.OpenedStore, dict[str, Paper], Answerer, int]:
        self._library: Library = self._app.open_library()
        store = runner.OpenedStore(self._library, self._app.retriever(self._library), {})
        by_name = {file.name.rpartition("/")[2]: file.sha256 for file in self._library.files()}
        ids = {file: by_name[Path(file).name] for file in self._files if Path(file).name in by_name}
        known = {paper.id: paper for paper in self._library.papers()}
        papers = {file: known[id] for file, id in ids.items() if id in known}
        return store, papers, self._app.models.answerer(store.retriever), self._app.top_k

    def __exit__(self, *_: object) -> None:
        self._library.close()


def _run(app: App, arguments: argparse.Namespace) -> int:
    data: Path = arguments.data
    if arguments.identifiers:
        folders = arguments.only if arguments.only != [""] else ["mixed", "papers", "standards"]
        _identifiers(app, data, load(arguments.labels), folders, arguments.misses)
        return 0
    labels = [label for label in load(arguments.labels) if label.file.startswith(tuple(arguments.only))]
    missing = sorted({label.file for label in labels if not (data / label.file).exists()})
    for file in missing:
        say(f"Left out, as it is missing: {file}")
    _ask(app, data, [label for label in labels if label.file not in missing], arguments.limit, arguments.misses)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with the PDFs")
    parser.add_argument("--labels", type=Path, default=LABELS, help="another file of labels")
    parser.add_argument("--only", nargs="+", default=[""], metavar="FOLDER", help="only files in these folders")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="ask about N of the algorithms")
    parser.add_argument("--misses", action="store_true", help="print what is shown instead")
    parser.add_argument("--identifiers", action="store_true", help="measure bare identifiers")
    arguments = parser.parse_args()
    return run_command(lambda app: _run(app, arguments))


if __name__ == "__main__":
    sys.exit(main())
