"""`folio ask --online`: from a question that the papers do not answer to papers that are not here.

The searches are shown word by word, and nothing is sent before a yes; papers are downloaded after a second one, and the
question is asked again. Only this way of `folio ask` uses the internet.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from folio.console import errors, progress_bar, say
from folio.errors import FolioError, command
from folio.question.question import Question
from folio.shown_text import counted, name_line, short_line
from folio.text import tokenize

if TYPE_CHECKING:
    from folio.answer_types import Answer
    from folio.app import App
    from folio.deep.checkpoint import SearchOptions
    from folio.services.keep import Candidate
    from folio.services.online_run import OnlineRun

Ask = Callable[[str], tuple["Answer", int]]  # asks and shows; returns the answer and the exit code
_SHOWN, _BY_ITSELF = 10, 3  # works that are shown; that are fetched with --yes
_LONGEST_SENTENCE = 300  # characters
_SERVICES = "arXiv, OpenAlex, Semantic Scholar, Crossref and Europe PMC"


def run(app: App, arguments: argparse.Namespace, options: SearchOptions, ask: Ask, *, saves: bool) -> int:
    """Ask the question; if papers are missing, look for them, fetch them, and ask again. Returns the exit code.

    saves: whether the search may be written to the disk, from where --resume continues it.
    """
    from folio.services import online_run

    steps = _Steps(app, is_agreed=arguments.yes, saves=saves, as_json=arguments.json)
    code = 0
    if arguments.resume:
        begun = online_run.read(online_run.record_path(app.store_folder))
        say(f"Continuing the search for papers about: {name_line(begun.question, 200)}")
    else:
        answer, code = ask(arguments.question)
        if not answer.missing:
            return code
        searches = app.searches_for(answer.standalone_question, answer.missing)
        if not (searches and steps.agree_to_search(searches)):
            return code
        begun = online_run.OnlineRun(answer.standalone_question, arguments.deep, options, searches)
    chosen, fetched = steps.bring_in(begun)
    if fetched:
        _, code = ask(begun.question)
    steps.forget()
    return max(code, 1 if chosen and not fetched else 0)


class _Steps:
    """What happens between the first answer and the second."""

    def __init__(self, app: App, *, is_agreed: bool, saves: bool, as_json: bool) -> None:
        """is_agreed: --yes was given. as_json: standard output is for JSON alone."""
        from folio.services.online import OnlineServices
        from folio.services.online_run import record_path

        self._app = app
        self._is_agreed = is_agreed
        self._saves = saves
        self._as_json = as_json
        self._path = record_path(app.store_folder)
        self._online = OnlineServices(app.internet)
        self._said: set[str] = set()
        self._lock = Lock()

    def agree_to_search(self, searches: Sequence[str]) -> bool:
        """Show the searches; returns whether they may be sent."""
        errors().print("The papers do not answer this. Searches that may find papers that do:")
        for number, words in enumerate(searches, 1):
            errors().print(f"  {number}. {words}", markup=False, highlight=False)
        if self._is_agreed:
            say(f"They are sent to {_SERVICES}.")
            return True
        if not sys.stdin.isatty():
            say("Nothing was sent: Folio cannot ask here whether to. Add --yes.")
            return False
        if _answered(f"Send them to {_SERVICES}? [y/N] ") in ("y", "yes"):
            return True
        say("Nothing was sent.")
        return False

    def bring_in(self, run: OnlineRun) -> tuple[int, int]:
        """Search, fetch and read, from where the run is; returns how many papers were chosen, and how many fetched."""
        from folio.cli.fetch import ingest_fetched

        self._save(run)
        try:
            if run.found is None:
                run = self._search(run)
                self._save(run)
            candidates = self._candidates(run)
            if run.chosen is None:
                offered = _offered(run.question, candidates[:_SHOWN])
                _show(candidates[:_SHOWN], [each.sentence for each in run.found or ()], offered)
                run = replace(run, chosen=self._choose(len(candidates), offered))
                self._save(run)
            wanted = [candidates[place] for place in run.chosen or ()]
            files = self._download(wanted) if wanted else []
            if files:
                with redirect_stdout(sys.stderr) if self._as_json else nullcontext():
                    ingest_fetched(self._app, files)
        except (KeyboardInterrupt, SystemExit, FolioError):
            if self._saves:
                say(f"What is complete is kept; {command('ask --online --resume')} continues.")
            raise
        if wanted and not files:
            say("None of the papers could be downloaded.")
        return len(wanted), len(files)

    def _search(self, run: OnlineRun) -> OnlineRun:
        from folio.papers.work import grouped, merged
        from folio.services.online_run import FoundWork

        groups = grouped(self._online.search_all(run.searches, self._notice, lambda: None))
        ranked = self._app.rank_works(run.question, [merged(group) for group in groups])
        return replace(run, found=tuple(FoundWork(tuple(groups[each.place]), each.sentence) for each in ranked))

    def _candidates(self, run: OnlineRun) -> list[Candidate]:
        """The works with what is here of them, in their order."""
        from folio.services.keep import candidates

        papers, marks = self._app.papers_and_marks()
        return [
            candidate
            for each in run.found or ()
            for candidate in candidates(each.views, papers, self._app.papers_folder, marks)[:1]
        ]

    def _choose(self, found: int, offered: Sequence[int]) -> tuple[int, ...]:
        """The places of the works to fetch. found: the number of works. offered: see _offered."""
        if not offered:
            say("None of them is both new and free to read." if found else "No works were found.")
            return ()
        if self._is_agreed:
            return tuple(offered[:_BY_ITSELF])
        if not sys.stdin.isatty():
            say("Nothing was downloaded: Folio cannot ask here whether to. Add --yes.")
            return ()
        typed = _answered(f"Download the {counted(len(offered), 'paper')} marked +? [y/N, or their numbers] ")
        if typed in ("y", "yes"):
            return tuple(offered)
        numbers = [int(number) - 1 for number in re.findall(r"\d{1,3}", typed)]
        return tuple(dict.fromkeys(place for place in numbers if place in offered))

    def _download(self, wanted: Sequence[Candidate]) -> list[Candidate]:
        done = 0
        with progress_bar() as progress:

            def on_end() -> None:
                nonlocal done
                with self._lock:
                    done += 1
                    progress("downloading", done, len(wanted))

            return self._online.download_all(wanted, self._notice, on_end, lambda: None)

    def _notice(self, text: str) -> None:
        """Print a sentence once. Called from any thread."""
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                say(text)

    def _save(self, run: OnlineRun) -> None:
        from folio.services import online_run

        if not self._saves:
            return
        try:
            online_run.save(self._path, run)
        except (OSError, FolioError) as error:
            self._saves = False
            reason = error.happened if isinstance(error, FolioError) else error.strerror or str(error)
            say(f"If this search for papers is stopped, it cannot be continued: {reason}")

    def forget(self) -> None:
        from folio.services import online_run

        with suppress(OSError):
            if self._saves:
                online_run.remove(self._path)


def _offered(question: str, candidates: Sequence[Candidate]) -> list[int]:
    """The places of the works to offer: new, free to read as far as is known, with a word of the question."""
    terms = Question(question).terms
    return [
        place
        for place, each in enumerate(candidates)
        if not each.paper
        and (each.work.pdfs or each.work.arxiv or each.work.is_open)
        and terms & set(tokenize(f"{each.work.title} {each.work.abstract}"))
    ]


def _answered(question: str) -> str:
    errors().print(question, end="", markup=False)
    return sys.stdin.readline().strip().casefold()


def _show(candidates: Sequence[Candidate], sentences: Sequence[str], offered: Sequence[int]) -> None:
    """Print the works, best first, each with the sentence that decided; those that are offered are marked."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", "", "work", "date", "free", "here", box=None, pad_edge=False, header_style="bold")
    for number, (each, sentence) in enumerate(zip(candidates, sentences, strict=False), 1):
        work = each.work
        title = Text(name_line(f"RETRACTED: {work.title}" if work.is_retracted else work.title, 150), style="bold")
        if sentence:
            title.append(f"\n{short_line(sentence, _LONGEST_SENTENCE)}", style="not bold")
        free = "yes" if work.pdfs or work.is_open else "" if work.is_open is None else "no"
        here = "yes" if each.paper or each.is_here else ""
        mark, dated = "+" if number - 1 in offered else "", work.date or str(work.year or "")
        table.add_row(mark, str(number), title, dated, free, here)
    errors().print(table)
