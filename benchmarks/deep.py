"""Measures a deep search against a single one: how many of the places that a question needs are in the evidence.

    PAPERS_DIR=... VECTORSTORE_DIR=... python benchmarks/deep.py benchmarks/several-papers-dev.jsonl

The sets are of docs/evaluation-set.md, on papers of JOSE, ReScience C and NIST. `several-papers-dev.jsonl` and
`two-papers.jsonl` were looked at while the search was made, `several-papers-kept.jsonl` was not. The single search is
the chat's own, with TOP_K passages and with as many as the deep one gives; that one is measured with one round, with
two and so on. Figures are means over questions: "places" of the share of places found, "all" of the questions with
every place. The last lines count the pages that a search finds and the single one of its size misses, and the reverse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from time import perf_counter

# A script run as a file can import only from its own folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folio.answer.chat import Chat
from folio.app import App, from_environment
from folio.evaluate import dataset
from folio.evaluate.relevance import RelevanceJudge
from folio.search.retriever import SearchResult
from folio.store.library import Library

Search = Callable[[str], SearchResult]


@dataclass
class Measured:
    """One way to search."""

    search: Search
    found: dict[str, list[list[bool]]] = field(default_factory=dict)  # unit -> for each question, its places
    passages: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def ask(self, question: str) -> list[int]:
        """The ids of the passages, best first."""
        began = perf_counter()
        hits = self.search(question).hits
        self.seconds += perf_counter() - began
        self.passages.append(len(hits))
        return [hit.chunk.id for hit in hits]

    def shown(self) -> str:
        units = (
            f"{unit}: places {mean(map(mean, places)):.3f}, all {mean(map(all, places)):.3f}"
            for unit, places in self.found.items()
        )
        count = len(self.passages)
        return f"{mean(self.passages):.1f} passages, {self.seconds / count:.2f} s; {'; '.join(units)}"


def searches(app: App, library: Library) -> dict[str, Search]:
    """Each way to search, by its name; the single search of the deep one's size comes second."""
    most = app.settings.EVIDENCE_K
    single = {f"single, {count}": _own(app.chat(library, top_k=count)) for count in (app.top_k, most)}
    rounds = range(1, app.settings.ROUNDS + 1)
    return single | {f"deep, {most}, rounds {count}": _deep(app, library, count) for count in rounds}


def _own(chat: Chat) -> Search:
    """What a chat finds for a first question."""

    def search(question: str) -> SearchResult:
        chat.reset()
        return SearchResult(chat.ask(question).hits, {}, {})

    return search


def _deep(app: App, library: Library, rounds: int) -> Search:
    models = replace(app.models, settings=app.settings.model_copy(update={"ROUNDS": rounds}))
    return models.deep_search(app.chat(library, top_k=app.top_k)).find


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, nargs="+")
    parser.add_argument("--each", action="store_true", help="also show which questions lack a page")
    arguments = parser.parse_args()
    app = from_environment(print)
    library = app.open_library()
    ways = {name: Measured(search) for name, search in searches(app, library).items()}
    for path in arguments.set:
        evalset = dataset.resolved(dataset.load(path), library)
        judge = RelevanceJudge(evalset, library)
        for question in evalset.questions:
            targets, problems = judge.targets(question)
            for problem in problems:
                print(problem.text)
            for name, way in ways.items():
                for unit, ranks in judge.ranks(targets, way.ask(question.text)).items():
                    way.found.setdefault(unit, []).append([rank is not None for rank in ranks])
                    if arguments.each and unit == "page" and None in ranks:
                        print(f"{name}: {question.id} {ranks} {question.text}")
    single = list(ways.values())[1].found["page"]
    for name, way in ways.items():
        print(f"{name}: {way.shown()}")
    for name, way in ways.items():
        both = zip(way.found["page"], single, strict=True)
        pairs = [pair for one, other in both for pair in zip(one, other, strict=True)]
        more, less = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
        print(f"{name}: of {len(pairs)} pages, {more} that the single one misses, and not {less} that it finds")


if __name__ == "__main__":
    main()
