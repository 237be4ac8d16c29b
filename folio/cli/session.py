"""A session in the terminal: answers shown as they arrive and logged, a chat with commands, cited pages opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from folio.answer.chat import log_entry
from folio.answer_types import Checking, Thinking, warnings
from folio.bibliography.export import CitedPage, cited_pages, merge_by_page
from folio.cli import show
from folio.cli.command import write_json
from folio.cli.show import show_profile
from folio.console import complain, errors, output, say
from folio.errors import FolioError, ModelError, UsageError, command
from folio.shown_text import counted, name_line, plain_line
from folio.store.query_log import Feedback, QueryLog

if TYPE_CHECKING:
    from rich.status import Status

    from folio.answer.chat import Chat, Reply
    from folio.answer_types import Quote, Sentence
    from folio.app import App
    from folio.deep.checkpoint import Checkpoint, CheckpointFile, Progress
    from folio.deep.search import DeepSearch, End
    from folio.deep.types import DeepEvent, DeepTrace, EvidenceProfile
    from folio.papers.model import Hit
    from folio.store.library import Library


# The line that a terminal shows while an answer is being made; it is gone when a sentence is printed.

_READING, _THINKING = "Reading the papers ...", "The model is thinking ..."


class WaitingStatus:
    """Until the first sentence, that the papers are read, for a model may take long to load, or that it thinks; and
    whenever statements wait for their verifier, how many. On a pipe, or if quiet, nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self._reading = _READING  # "" once a sentence has been printed
        self._count = 0  # statements that wait
        self._status: Status | None = None
        if not quiet and errors().is_terminal:
            self._status = errors().status(_READING)

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self._hide()

    def on_progress(self, part: Checking | Thinking) -> None:
        """The model has begun to think, or another number of statements waits for the verifier."""
        if isinstance(part, Checking):
            self.checking(part.count)
        else:
            self.thinking()

    def checking(self, count: int) -> None:
        """The number of statements waiting for their verifier is now `count`."""
        self._count = count
        self._show()

    def thinking(self) -> None:
        """The model has begun to think."""
        self._reading = self._reading and _THINKING
        self._show()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the line while a sentence is printed."""
        self._reading = ""
        self._hide()
        yield
        self._show()

    def _show(self) -> None:
        if self._status is None:
            return
        if not self._reading and not self._count:
            self._status.stop()
            return
        self._status.update(f"checking {self._count} more" if self._count else self._reading)
        self._status.start()

    def _hide(self) -> None:
        if self._status is not None:
            self._status.stop()


HELP = (
    "/sources lists the passages behind the last answer, /evidence the text it was made from, /dropped the statements"
    " that were left out of it, /verify 2 opens its second source; /good and /bad rate it; /new starts a new"
    " conversation, /quit ends the chat. /deep and a question searches for it in rounds. Ctrl-C stops an answer;"
    " /resume goes on with a search in rounds that was stopped."
)


NOTHING_CITED = "The answer has no citations, so there is no page to open."
# What is said of a search that can be resumed, by how it ended; one that is over has an answer that its model left
_ENDS: dict[End, str] = {
    "stopped": "The search was stopped; {} goes on with it",
    "spent": "The budget of the search is spent; {} goes on with a new one",
    "over": "The search is kept; {} answers from it again",
}
# Chat commands about the last answer
COMMANDS = ("/sources", "/evidence", "/dropped", "/verify", "/good", "/bad")


class ChatSession:
    """Puts questions to a chat, shows and logs the answers, and opens the pages they cite."""

    def __init__(
        self,
        app: App,
        library: Library,
        chat: Chat,
        *,
        as_json: bool,
        evidence: bool,
        dropped: bool,
        logged: bool,
        verbose: bool,
        checkpoints: Callable[[], CheckpointFile],
        deep: bool = False,
    ) -> None:
        """evidence, dropped: show it, and what was left out, with every answer. logged: write questions to the log.

        verbose: say how each answer came about.

        deep: search for every question in rounds. checkpoints: where such a search is kept until it is done.
        """
        self._app = app
        self._library = library
        self._chat = chat
        self._as_json = as_json
        self._evidence = evidence
        self._dropped = dropped
        self._logged = logged
        self._verbose = verbose
        self._log: QueryLog | None = None
        self._deep = deep
        self._checkpoint_file = checkpoints
        self._marks = show.Marks(numbered=app.numbers_citations)
        self._search: DeepSearch | None = None
        self._profile: EvidenceProfile | None = None  # of the last answer

    def ask(
        self, question: str, *, in_chat: bool = False, deep: bool = False, resumed: Progress | None = None
    ) -> Reply:
        """Answer one question: show sentences as they are verified, then the sources. Raises ModelError.

        deep: search for it in rounds, and show what is found. resumed: go on with this search.
        """
        asked = datetime.now(UTC).isoformat(timespec="seconds")
        before: Sentence | None = None
        warned: set[str] = set()
        with WaitingStatus(quiet=self._as_json) as waiting:

            def on_sentence(sentence: Sentence) -> None:
                nonlocal before
                with waiting.hidden():
                    if not self._as_json:
                        cited = (*sentence.citations, *sentence.against)
                        for paper, text in warnings(citation.paper for citation in cited).items():
                            if paper not in warned:
                                show.show_warning(output(), text)
                            warned.add(paper)
                        show.show_sentence(output(), sentence, before, self._marks)
                before = sentence

            search = self._deep_search() if deep or self._deep else None
            find = partial(search.find, on_event=self._show_event, resumed=resumed) if search else None
            with self._telling_how_to_go_on(search, in_chat):
                reply = self._chat.ask(question, on_sentence, on_progress=waiting.on_progress, find=find)
                self._profile = self._profile_of(reply, search)
        if self._as_json:
            from folio.schema.answers import answer_json, deep_answer_json

            shown = answer_json(reply.answer, reply.hits, self._chat.models, reply.timings_ms)
            write_json(deep_answer_json(shown, search.trace, self._profile) if search and search.trace else shown)
        else:
            self._show_sources(reply, in_chat, is_deep=search is not None)
        if self._verbose:
            say_details(self._chat.models, reply.hits, reply.timings_ms)
        if self._logged:
            self._log_reply(reply, asked, search.trace if search else None)
        if search and not reply.answer.model_failed:
            search.finish()
        self._say_kept(search, in_chat)
        return reply

    def _profile_of(self, reply: Reply, search: DeepSearch | None) -> EvidenceProfile | None:
        """What is said of the evidence of a deep answer as a whole."""
        if search is None or search.trace is None:
            return None
        return search.weigher(self._app.models.meaning).profile(reply.answer, search.trace)

    def resume(self, checkpoint: Checkpoint, *, in_chat: bool = False) -> Reply:
        """Answer the question of a deep search that goes on. Raises UsageError and StoreError, and as `ask` does."""
        search, question = self._deep_search(), checkpoint.head.question
        progress = search.progress_of(checkpoint)
        if progress is None:
            say("The index has changed since the search was stopped, so it begins again.")
        if not self._as_json:
            show.show_question(output(), question)
        self._chat.reset()  # the question stands alone, and another conversation would change it
        return self.ask(question, in_chat=in_chat, deep=True, resumed=progress)

    @contextmanager
    def _telling_how_to_go_on(self, search: DeepSearch | None, in_chat: bool) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._say_kept(search, in_chat)
            raise
        except ModelError as error:
            if search is None or not search.is_kept:
                raise
            raise type(error)(error.happened, f"{error.remedy} Then {_resume_command(in_chat)} goes on.") from error

    def _say_kept(self, search: DeepSearch | None, in_chat: bool) -> None:
        if search and search.is_kept:
            say(f"{_ENDS[search.end].format(_resume_command(in_chat))}.")

    def _deep_search(self) -> DeepSearch:
        if self._search is None:
            kept = self._checkpoint_file()
            self._search = self._app.models.deep_search(self._chat, evidence=kept.options.evidence, checkpoints=kept)
        self._search.reset()
        return self._search

    def _show_event(self, event: DeepEvent) -> None:
        if not self._as_json:
            from folio.cli.show import event_line

            errors().print(event_line(event), style="dim")

    def _show_sources(self, reply: Reply, in_chat: bool, *, is_deep: bool) -> None:
        answer = reply.answer
        if self._app.shows_understood and plain_line(answer.standalone_question) != plain_line(answer.question):
            say(f"Understood as: {plain_line(answer.standalone_question)}")
        if answer.remark:
            output().print(answer.remark, markup=False, highlight=False)
        elif answer.refused:
            output().print(answer.text)
            closest = ", ".join(dict.fromkeys(f"{name_line(hit.paper.file)} {hit.where}" for hit in reply.hits))
            if closest:
                # --sources searches once, and would find others than a search in rounds
                shows = "/sources" if in_chat else "--show-evidence" if is_deep else "--sources"
                below = is_deep and self._evidence and not in_chat
                say(f"The closest passages are in {closest}{'' if below else f'; {shows} shows them'}.")
        else:
            show.show_legend(output(), answer.sentences)
            shown = [sentence.text for sentence in answer.sentences]
            self._marks.take(self._cited(reply))
            if self._profile:
                show_profile(output(), self._profile, answer, self._marks)
                shown += [quote.quote for quote in self._profile.quotes]
            show.show_sources(output(), self._cited(reply), shown, self._marks)
            if answer.style == "report":
                show.show_references(output(), self._cited(reply))
        if self._evidence:
            show.show_evidence(output(), answer.evidence, self._marks)
        if self._dropped:
            show.show_left_out(output(), answer, self._marks)
        if answer.notice:
            say(answer.notice)
        if answer.dropped:
            one = answer.dropped == 1
            shows = f" {'/dropped' if in_chat else '--show-dropped'} shows {'it' if one else 'them'}."
            count = counted(answer.dropped, "unsupported sentence")
            say(f"{count} {'was' if one else 'were'} left out.{'' if self._dropped else shows}")

    def _cited(self, reply: Reply) -> tuple[Quote, ...]:
        """What the last answer cites, then what is quoted of its evidence besides."""
        return (*reply.answer.citations, *(self._profile.quotes if self._profile else ()))

    def _log_reply(self, reply: Reply, asked: str, trace: DeepTrace | None) -> None:
        """Log a question. A failure is reported and does not affect the answer."""
        try:
            self._log = self._log or self._app.query_log(self._library)
            entry = log_entry(reply, asked, self._chat.models["llm"])
            if trace is not None:
                from folio.schema.answers import logged_trace

                entry = replace(entry, trace=logged_trace(trace))
            self._log.add(entry)
        except (FolioError, OSError) as error:
            reason = error.happened if isinstance(error, FolioError) else error.strerror or str(error)
            if self._library.is_read_only:
                reason = "the folder of the index cannot be written, so nothing is logged."
                self._log, self._logged = None, False
            say(f"The question could not be written to the log: {reason}")

    def _mark(self, feedback: Feedback) -> None:
        if self._log is None:
            set_off = not self._logged and not self._library.is_read_only
            off = "" if not set_off else " --no-log or QUERY_LOG=false keeps questions out of it."
            say(f"The question is not in the log.{off}")
        else:
            mark(self._log, feedback)

    def verify(self, reply: Reply, number: int | None = None) -> int:
        """Open the cited pages of an answer, or only that of source `number`. Raises FolioError."""
        cited = cited_pages(self._cited(reply))
        if number is not None and not 1 <= number <= len(cited):
            say(f"The last answer has {counted(len(cited), 'source')}." if cited else NOTHING_CITED)
            return 0
        if number is not None:
            return open_pages(self._app, self._library, cited[number - 1 : number], first=number)
        return open_pages(self._app, self._library, cited)

    def converse(self) -> int:
        """Chat until /quit or the end of the input."""
        last: Reply | None = None
        if sys.stdin.isatty():
            say(f"Ask a question. {HELP}")
        for line in _lines(self._app, keep=self._logged):
            try:
                match line.split():
                    case []:
                        continue
                    case ["/quit" | "/exit" | "/q"]:
                        break
                    case ["/new"]:
                        self._chat.reset()
                        last = None
                        say("New conversation.")
                    case ["/deep", _, *_]:
                        last = self.ask(line.split(maxsplit=1)[1].strip(), in_chat=True, deep=True)
                    case ["/resume"]:
                        last = self.resume(self._kept_search(), in_chat=True)
                    case [command, *more] if command.startswith("/"):
                        self._run_command(command, more, last)
                    case _:
                        last = self.ask(line, in_chat=True)
            except KeyboardInterrupt:
                say("Stopped.")
            except FolioError as error:
                complain(error.happened, error.remedy, error.exit_code)
        return 0

    def _kept_search(self) -> Checkpoint:
        """Raises UsageError if there is none, or one that was asked otherwise."""
        from folio.deep.checkpoint import checkpoint_path, read

        checkpoint = read(checkpoint_path(self._app.store_folder))
        if checkpoint.head.options != self._checkpoint_file().options:
            raise UsageError(
                "The search that was stopped was asked with other options than this chat.",
                f"End the chat, then `{command('ask --resume')}` goes on with it.",
            )
        return checkpoint

    def _run_command(self, command: str, more: Sequence[str], last: Reply | None) -> None:
        """Run a chat command about the last answer."""
        if command not in COMMANDS or (more and not (command == "/verify" and more[0].isdecimal())):
            say(HELP)
        elif last is None:
            say("Nothing has been asked yet.")
        elif command == "/sources":
            show.show_hits(output(), last.hits)
        elif command == "/evidence":
            show.show_evidence(output(), last.answer.evidence, self._marks)
        elif command == "/dropped":
            show.show_left_out(output(), last.answer, self._marks)
        elif command == "/verify":
            self.verify(last, int(more[0]) if more else None)
        else:
            self._mark("good" if command == "/good" else "bad")


def say_details(models: Mapping[str, str], hits: Sequence[Hit], timings_ms: Mapping[str, float]) -> None:
    """Say on standard error how an answer came about: the models, the passages with their scores, each stage's time."""
    say(f"Models: {', '.join(f'{use} {name}' for use, name in models.items())}.")
    for rank, hit in enumerate(hits, 1):
        say(f"Passage {rank}: {name_line(hit.paper.file)}, {hit.where}: {show.scores(hit)}")
    say(f"Time: {', '.join(f'{stage} {took:,.0f} ms' for stage, took in timings_ms.items())}.")


def _resume_command(in_chat: bool) -> str:
    return "/resume" if in_chat else f"`{command('ask --resume')}`"


def mark(log: QueryLog, feedback: Feedback) -> None:
    """Rate the last logged question and print it. Raises UsageError if there is none, StoreError."""
    entry = log.mark(feedback)
    output().print(f"Rated {feedback}: {plain_line(entry.question)}")


def forget(app: App, library: Library) -> None:
    """Delete the question log, all conversations, a stopped deep search and the chat history. Raises StoreError."""
    from folio.deep.checkpoint import checkpoint_path, remove_all

    with closing(app.backend.conversations()) as kept:
        conversations = kept.clear()
    questions = app.query_log(library).clear()
    _history(app).unlink(missing_ok=True)
    stopped = ", a deep search that was stopped" if remove_all(checkpoint_path(app.store_folder)) else ""
    counts = f"{counted(questions, 'question')}, {counted(conversations, 'conversation')}"
    output().print(f"Deleted: {counts}{stopped}, and the chat history.")


def verify_logged(app: App, library: Library) -> int:
    """Open the cited pages of the last logged answer. Raises UsageError if there is none."""
    entry = app.query_log(library).last()
    if entry is None:
        raise UsageError("Nothing has been asked yet.", "Ask: " + command('ask --verify "What is ...?"'))
    show.show_question(output(), entry.question)
    parts = (CitedPage(cited.paper, cited.file, "", cited.page, "", ((cited.quote, 1),)) for cited in entry.sources)
    return open_pages(app, library, merge_by_page(parts))


def open_pages(app: App, library: Library, cited: Sequence[CitedPage], first: int = 1) -> int:
    """Open these pages, numbered from `first`; returns 1 if one cannot be shown. Raises UsageError."""
    from folio.cli import viewer
    from folio.papers.model import SourceFile

    if not cited:
        say(NOTHING_CITED)
        return 0
    files = library.files()
    here = {file.sha256 for file in files if Path(file.path).is_file()}
    for paper, file in {page.paper: page.file for page in cited if page.paper not in here}.items():
        if fetched := library.copy_of(paper, app.fetched_pdfs):
            files.append(SourceFile(str(fetched), file, paper))
    return viewer.verify(cited, files, app.pdf_viewer, app.limits(1), first)


def _history(app: App) -> Path:
    return app.store_folder / "chat_history"


def _lines(app: App, *, keep: bool) -> Iterator[str]:
    """Input lines; with editing and history in a terminal. keep: store the history on disk."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    file = _history(app)
    writable = os.access(file if file.exists() else app.store_folder, os.W_OK)
    history = FileHistory(str(file)) if keep and writable else InMemoryHistory()
    session: PromptSession[str] = PromptSession(history=history)
    while True:
        try:
            yield session.prompt("\n> ")
        except KeyboardInterrupt:  # clears the line, as in a shell
            continue
        except EOFError:
            return
