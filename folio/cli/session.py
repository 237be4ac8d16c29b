"""A session in the terminal: shows and logs answers as they arrive, runs a chat with commands, opens cited pages."""

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
from folio.console import complain, errors, output, say
from folio.errors import FolioError, ModelError, StoreDamaged, UsageError, command
from folio.schema.answers import event_json, event_line, logged_trace
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


HELP = (
    "/sources lists the passages behind the last answer, /evidence the text it was made from, /dropped the statements"
    " that were left out of it, /raw the model's reply as it came, /verify 2 opens its second source; /note 2 keeps its"
    " second statement as a note; /good and /bad rate it; /new starts a new conversation, /quit ends the chat. /deep"
    " before a question searches in rounds. Ctrl-C stops an answer; /resume continues a search in rounds that was"
    " stopped."
)
NOTHING_CITED = "The answer has no citations, so there is no page to open."
# How a search ended that can be resumed; "over": it is complete, but the model failed before it had answered
_ENDS: dict[End, str] = {
    "stopped": "The search was stopped; {} continues it",
    "spent": "The budget of the search is spent; {} continues it with a new one",
    "over": "The search is saved; {} answers from it again",
}
# Chat commands about the last answer
COMMANDS = ("/sources", "/evidence", "/dropped", "/raw", "/verify", "/note", "/good", "/bad")


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
        raw: bool,
        logged: bool,
        verbose: bool,
        checkpoints: Callable[[], CheckpointFile],
        deep: bool = False,
    ) -> None:
        """evidence, dropped, raw: show the evidence, the statements left out and the model's reply with every answer.
        logged: write questions to the log. verbose: print models, scores and times. deep: search in rounds for every
        question. checkpoints: makes the file that such a search is saved in until it is done.
        """
        self._app = app
        self._library = library
        self._chat = chat
        self._as_json = as_json
        self._evidence = evidence
        self._dropped = dropped
        self._raw = raw
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

        deep: search in rounds, and show each step. resumed: the search to continue.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
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
            with self._explaining_resume(search, in_chat):
                reply = self._chat.ask(question, on_sentence, on_progress=waiting.on_progress, find=find)
                self._profile = None
                if search and search.trace:
                    self._profile = search.weigher(self._app.models.meaning).profile(reply.answer, search.trace)
        if self._as_json:
            from folio.schema.answers import answer_json, deep_answer_json

            models, wording = self._chat.models, self._chat.instruction
            shown = answer_json(reply.answer, reply.hits, models, reply.timings_ms, wording)
            write_json(deep_answer_json(shown, search.trace, self._profile) if search and search.trace else shown)
        else:
            self._show_sources(reply, in_chat, is_deep=search is not None)
        if self._verbose:
            say_details(self._chat.models, reply.hits, reply.timings_ms)
        if self._logged:
            self._log_reply(reply, at, search.trace if search else None)
        if search and not reply.answer.model_failed:
            search.finish()
        self._explain_saved(search, in_chat)
        return reply

    def resume(self, checkpoint: Checkpoint, *, in_chat: bool = False) -> Reply:
        """Continue a deep search and answer its question. Raises UsageError and StoreError, and as `ask` does."""
        search, question = self._deep_search(), checkpoint.head.question
        progress = search.progress_of(checkpoint)
        if progress is None:
            say("The index has changed since the search was stopped, so the search starts over.")
        if not self._as_json:
            show.show_question(output(), question)
        self._chat.reset()  # the question stands alone: another conversation must not change it
        return self.ask(question, in_chat=in_chat, deep=True, resumed=progress)

    @contextmanager
    def _explaining_resume(self, search: DeepSearch | None, in_chat: bool) -> Iterator[None]:
        """If the answer is stopped or fails, say how to resume its search."""
        try:
            yield
        except KeyboardInterrupt:
            self._explain_saved(search, in_chat)
            raise
        except ModelError as error:
            if search is None or not search.is_kept:
                raise
            resume = _resume_command(in_chat)
            raise type(error)(error.happened, f"{error.remedy} Then {resume} continues the search.") from error

    def _explain_saved(self, search: DeepSearch | None, in_chat: bool) -> None:
        if search and search.is_kept:
            say(f"{_ENDS[search.end].format(_resume_command(in_chat))}.")

    def _deep_search(self) -> DeepSearch:
        if self._search is None:
            file = self._checkpoint_file()
            self._search = self._app.models.deep_search(self._chat, evidence=file.options.evidence, checkpoints=file)
        self._search.reset()
        return self._search

    def _show_event(self, event: DeepEvent) -> None:
        if not self._as_json:
            errors().print(event_line(event_json(event)), style="dim")

    def _show_sources(self, reply: Reply, in_chat: bool, *, is_deep: bool) -> None:
        answer = reply.answer
        if self._app.shows_understood and plain_line(answer.standalone_question) != plain_line(answer.question):
            say(f"Understood as: {plain_line(answer.standalone_question)}")
        if self._chat.instruction is not None:
            say(f"Instruction: {name_line(self._chat.instruction.name)}")
        if answer.remark:
            output().print(answer.remark, markup=False, highlight=False)
        elif answer.refused:
            output().print(answer.text, markup=False, highlight=False)
            files = (f"{name_line(hit.paper.file, show.LONGEST_FILE)} {hit.where}" for hit in reply.hits)
            closest = ", ".join(dict.fromkeys(files))
            if closest:
                # --sources searches once, and would find other passages than a search in rounds
                option = "/sources" if in_chat else "--show-evidence" if is_deep else "--sources"
                is_below = is_deep and self._evidence and not in_chat
                say(f"The closest passages are in {closest}{'' if is_below else f'; {option} shows them'}.")
        else:
            show.show_legend(output(), answer.sentences)
            shown = [sentence.text for sentence in answer.sentences]
            self._marks.take(self._cited(reply))
            if self._profile:
                from folio.cli.show_profile import show_profile

                show_profile(output(), self._profile, answer, self._marks)
                shown += [quote.quote for quote in self._profile.quotes]
            show.show_sources(output(), self._cited(reply), shown, self._marks)
            if answer.style == "report":
                show.show_references(output(), self._cited(reply))
        if answer.scope and answer.scope.is_restricted and answer.sentences:
            say(f"Asked: {answer.scope.line}.")
        if self._evidence:
            show.show_evidence(output(), answer.evidence, self._marks)
        if self._dropped:
            show.show_left_out(output(), answer, self._marks)
        if self._raw:
            show.show_raw(output(), reply.raw)
        if answer.notice:
            say(answer.notice)
        if answer.dropped:
            is_one = answer.dropped == 1
            hint = f" {'/dropped' if in_chat else '--show-dropped'} shows {'it' if is_one else 'them'}."
            count = counted(answer.dropped, "unsupported sentence")
            say(f"{count} {'was' if is_one else 'were'} left out.{'' if self._dropped else hint}")

    def _cited(self, reply: Reply) -> tuple[Quote, ...]:
        """The citations of the last answer, then the quotes of its evidence profile."""
        return (*reply.answer.citations, *(self._profile.quotes if self._profile else ()))

    def _log_reply(self, reply: Reply, at: str, trace: DeepTrace | None) -> None:
        """Log a question. A failure is reported and does not affect the answer."""
        try:
            self._log = self._log or self._app.query_log(self._library)
            entry = log_entry(reply, at, self._chat.models["llm"])
            self._log.add(replace(entry, trace=logged_trace(trace)) if trace else entry)
        except (FolioError, OSError) as error:
            reason = error.happened if isinstance(error, FolioError) else error.strerror or str(error)
            if self._library.is_read_only:
                reason = "the folder of the index cannot be written, so nothing is logged."
                self._log, self._logged = None, False
            elif isinstance(error, StoreDamaged):
                reason = f"{reason} {error.remedy}"
            say(f"The question could not be written to the log: {reason}")

    def _mark(self, feedback: Feedback) -> None:
        if self._log is None:
            is_off = not self._logged and not self._library.is_read_only
            why = " --no-log or QUERY_LOG=false turns the log off." if is_off else ""
            say(f"The question is not in the log.{why}")
        else:
            mark(self._log, feedback)

    def verify(self, reply: Reply, number: int | None = None) -> int:
        """Open the cited pages of an answer, or only that of source `number`. Raises FolioError."""
        cited = cited_pages(self._cited(reply))
        if number is None:
            return _open_pages(self._app, self._library, cited)
        if not 1 <= number <= len(cited):
            say(f"The last answer has {counted(len(cited), 'source')}." if cited else NOTHING_CITED)
            return 0
        return _open_pages(self._app, self._library, cited[number - 1 : number], first=number)

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
                        last = self.resume(self._saved_search(), in_chat=True)
                    case [command, *more] if command.startswith("/"):
                        self._run_command(command, more, last)
                    case _:
                        last = self.ask(line, in_chat=True)
            except KeyboardInterrupt:
                say("Stopped.")
            except FolioError as error:
                complain(error.happened, error.remedy, error.exit_code)
        return 0

    def _saved_search(self) -> Checkpoint:
        """The deep search that was stopped. Raises UsageError if there is none, or if its options differ."""
        from folio.deep.checkpoint import checkpoint_path, read

        checkpoint = read(checkpoint_path(self._app.store_folder))
        if checkpoint.head.options != self._checkpoint_file().options:
            raise UsageError(
                "The search that was stopped has other options than this chat.",
                f"End the chat, then `{command('ask --resume')}` continues the search.",
            )
        return checkpoint

    def _run_command(self, command: str, more: Sequence[str], last: Reply | None) -> None:
        """Run a chat command about the last answer."""
        takes = command == "/note" or (command == "/verify" and more and more[0].isdecimal())
        if command not in COMMANDS or (more and not takes):
            say(HELP)
        elif last is None:
            say("Nothing has been asked yet.")
        elif command == "/sources":
            show.show_hits(output(), last.hits)
        elif command == "/evidence":
            show.show_evidence(output(), last.answer.evidence, self._marks)
        elif command == "/dropped":
            show.show_left_out(output(), last.answer, self._marks)
        elif command == "/raw":
            show.show_raw(output(), last.raw)
        elif command == "/verify":
            self.verify(last, int(more[0]) if more else None)
        elif command == "/note":
            self._keep_note(last, more)
        else:
            self._mark("good" if command == "/good" else "bad")

    def _keep_note(self, reply: Reply, more: Sequence[str]) -> None:
        """Keep a statement of an answer with its quotes. more: its number, if not the first; words for the note."""
        from folio.store import notes
        from folio.store.note_places import quote_at

        has_number = bool(more) and more[0].isdecimal()
        number = int(more[0]) if has_number else 1
        statements = [sentence for sentence in reply.answer.sentences if sentence.citations]
        if not 1 <= number <= len(statements):
            count = counted(len(statements), "statement") if statements else "no statement"
            say(f"The last answer has {count} to keep as a note.")
            return
        statement = statements[number - 1]
        quotes = [quote_at(self._library, cited.paper, cited.start, cited.end) for cited in statement.citations]
        text = " ".join(more[1:] if has_number else more)
        note = notes.add(self._library.database, quotes, statement=statement.text, text=text)
        say(f"Kept as note {note.id[:8]}: {plain_line(statement.text)}")


def _resume_command(in_chat: bool) -> str:
    return "/resume" if in_chat else f"`{command('ask --resume')}`"


def mark(log: QueryLog, feedback: Feedback) -> None:
    """Rate the last logged question and print it. Raises UsageError if there is none, StoreError."""
    entry = log.mark(feedback)
    output().print(f"Rated {feedback}: {plain_line(entry.question)}")


def forget(app: App, library: Library) -> None:
    """Delete the question log, all conversations, stopped searches and the chat history. Raises StoreError."""
    from folio.deep.checkpoint import checkpoint_path, remove_all
    from folio.services import online_run

    with closing(app.backend.conversations()) as stored:
        conversations = stored.clear()
    questions = app.query_log(library).clear()
    _history(app).unlink(missing_ok=True)
    stopped = ", a deep search that was stopped" if remove_all(checkpoint_path(app.store_folder)) else ""
    if online_run.remove(online_run.record_path(app.store_folder)):
        stopped += ", a search for papers that was stopped"
    counts = f"{counted(questions, 'question')}, {counted(conversations, 'conversation')}"
    output().print(f"Deleted: {counts}{stopped}, and the chat history.")


def verify_logged(app: App, library: Library) -> int:
    """Open the cited pages of the last logged answer. Raises UsageError if there is none."""
    entry = app.query_log(library).last()
    if entry is None:
        raise UsageError("Nothing has been asked yet.", "Ask: " + command('ask --verify "What is ...?"'))
    show.show_question(output(), entry.question)
    parts = (CitedPage(cited.paper, cited.file, "", cited.page, "", ((cited.quote, 1),)) for cited in entry.sources)
    return _open_pages(app, library, merge_by_page(parts))


def _open_pages(app: App, library: Library, cited: Sequence[CitedPage], first: int = 1) -> int:
    """Open these pages, numbered from `first`; returns 1 if one cannot be shown. Raises UsageError."""
    from folio.cli import viewer
    from folio.papers.model import SourceFile

    if not cited:
        say(NOTHING_CITED)
        return 0
    files = library.files()
    present = {file.sha256 for file in files if Path(file.path).is_file()}
    for paper, file in {page.paper: page.file for page in cited if page.paper not in present}.items():
        if copy := app.backend.copy_of(library, paper, app.fetched_pdfs):
            files.append(SourceFile(str(copy), file, paper))
    return viewer.verify(cited, files, app.pdf_viewer, app.limits(1), first)


_READING, _THINKING = "Reading the papers ...", "The model is thinking ..."


class WaitingStatus:
    """The line that a terminal shows while an answer is made: nothing on a pipe, or if quiet.

    Until the first sentence it says that the papers are read or that the model thinks; after that, how many statements
    wait for the verifier.
    """

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
        """The model has begun to think, or the number of statements that wait has changed."""
        if isinstance(part, Checking):
            self._count = part.count
        else:
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


def say_details(models: Mapping[str, str], hits: Sequence[Hit], timings_ms: Mapping[str, float]) -> None:
    """Print on standard error the models, the passages with their scores, and the time of each stage."""
    say(f"Models: {', '.join(f'{use} {name}' for use, name in models.items())}.")
    for rank, hit in enumerate(hits, 1):
        say(f"Passage {rank}: {name_line(hit.paper.file)}, {hit.where}: {show.scores(hit)}")
    say(f"Time: {', '.join(f'{stage} {took:,.0f} ms' for stage, took in timings_ms.items())}.")


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
