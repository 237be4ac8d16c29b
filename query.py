"""Ask the papers.

    python query.py "What is a zero trust architecture?"     one question
    python query.py                                          a chat with follow-ups
    python query.py --sources "zero trust"                   passages only, no language model
    python query.py --batch questions.txt --json             one question a line, one JSON object a line
    python query.py --doctor                                 what is ready, and what mends the rest
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from folio.cli import count

if TYPE_CHECKING:
    from folio.app import App
    from folio.chat import Chat, Reply
    from folio.types import Sentence

HELP = "/sources shows the passages behind the last answer, /new starts anew, /quit ends. Ctrl-C stops an answer."


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="query.py",
        description="Ask the papers in the index. Without a question, a chat begins.",
        epilog="Settings such as LLM, RERANKER and TOP_K are in config.py; the environment overrides them.",
    )
    found.add_argument("question", nargs="?", help="what you want to know")
    found.add_argument("--sources", action="store_true", help="rank passages only; no language model is called")
    found.add_argument("--top-k", type=count, metavar="K", help="passages to find and answer from (default: TOP_K)")
    found.add_argument("--paper", metavar="NAME", help="ask only papers whose file name or title has NAME in it")
    found.add_argument("--batch", metavar="FILE", help="ask the questions in FILE, one a line; - is standard input")
    found.add_argument("--json", action="store_true", help="print JSON, one object a line, and nothing else")
    found.add_argument("--doctor", action="store_true", help="show what is ready and what is not")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    from folio.cli import command

    return command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    if arguments.doctor:
        from folio.doctor import show_doctor

        return show_doctor(app)
    questions = _questions(arguments)
    if questions is None and (arguments.json or arguments.sources):
        from folio.errors import UsageError

        raise UsageError("--json and --sources need a question.", 'Give one: python query.py --json "What is ...?"')
    library = app.open_library()
    try:
        if arguments.sources:
            return _search(app, library, questions or [], arguments)
        chat = app.chat(library, top_k=arguments.top_k or app.settings.TOP_K, paper=arguments.paper)
        if questions is None:
            return _converse(app, chat)
        if len(questions) == 1:
            _answer(chat, questions[0], as_json=arguments.json)
            return 0
        return _answer_each(chat, questions, as_json=arguments.json)
    finally:
        library.close()


def _answer_each(chat: Chat, questions: Sequence[str], *, as_json: bool) -> int:
    """Unrelated questions. One that a model fails on is told, and the others are asked all the same."""
    from folio.cli import complain
    from folio.errors import ModelError

    code = 0
    for number, question in enumerate(questions):
        if not as_json:
            print("\n" * bool(number), end="")
            _say_question(question)
        chat.start_anew()
        try:
            _answer(chat, question, as_json=as_json)
        except ModelError as error:
            code = complain(error.happened, error.remedy, error.exit_code)
            if as_json:
                _print_json({"question": question, "error": error.happened, "remedy": error.remedy})
    return code


def _questions(arguments: argparse.Namespace) -> list[str] | None:
    """The questions of the command line; None for a chat. Raises UsageError for an empty one or a missing file."""
    from folio.errors import UsageError

    remedy = 'Ask one: python query.py "What is ...?"'
    if arguments.batch is not None:
        if arguments.question is not None:
            raise UsageError("Both a question and --batch were given.", "Give one of the two.")
        try:
            with open(0 if arguments.batch == "-" else arguments.batch, encoding="utf-8-sig") as file:
                questions = [line.strip() for line in file if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise UsageError(f"{arguments.batch} cannot be read: {reason}.", "Give a text file.") from error
        if not questions:
            raise UsageError(f"There is no question in {arguments.batch}.", "Put one on each line.")
        return questions
    if arguments.question is None:
        return None
    if not arguments.question.strip():
        raise UsageError("The question is empty.", remedy)
    return [arguments.question.strip()]


def _search(app: App, library: Any, questions: Sequence[str], arguments: argparse.Namespace) -> int:
    from folio import show
    from folio.cli import output

    retriever = app.retriever(library)
    app.announce()
    papers = retriever.papers_named(arguments.paper) if arguments.paper else None
    for question in questions:
        found = retriever.search(question, arguments.top_k or app.settings.TOP_K, papers)
        if arguments.json:
            _print_json(show.hits_json(question, found.hits, retriever.models, found.timings_ms))
            continue
        if len(questions) > 1:
            _say_question(question)
        show.show_hits(output(), found.hits)
        if not found.hits:
            output().print("No passage was found.")
    return 0


def _answer(chat: Chat, question: str, *, as_json: bool, in_chat: bool = False) -> Reply:
    """One answer, its sentences shown as they pass, then its sources."""
    from folio import show
    from folio.cli import output, say

    with _waiting(as_json) as stop_waiting:

        def told(sentence: Sentence) -> None:
            stop_waiting()
            if not as_json:
                show.show_sentence(output(), sentence)

        reply = chat.ask(question, told)
    answer = reply.answer
    if as_json:
        _print_json(show.answer_json(answer, reply.hits, chat.models, reply.timings_ms))
        return reply
    if answer.refused:
        output().print(answer.text)
        closest = ", ".join(dict.fromkeys(f"{hit.paper.file} {hit.where}" for hit in reply.hits))
        if closest:
            say(f"The closest passages are in {closest}; {'/sources' if in_chat else '--sources'} shows them.")
    else:
        show.show_sources(output(), answer.citations)
    if answer.notice:
        say(answer.notice)
    if answer.dropped:
        count = f"{answer.dropped} sentence{'s' * (answer.dropped > 1)}"
        say(f"{count} that no passage supports {'was' if answer.dropped == 1 else 'were'} left out.")
    return reply


def _converse(app: App, chat: Chat) -> int:
    """A chat until /quit or the end of the input."""
    from folio import show
    from folio.cli import complain, output, say
    from folio.errors import FolioError

    last: Reply | None = None
    if sys.stdin.isatty():
        say(f"Ask a question. {HELP}")
    for line in _lines(app):
        match line.strip():
            case "":
                continue
            case "/quit" | "/exit" | "/q":
                break
            case "/new":
                chat.start_anew()
                last = None
                say("A new conversation.")
            case "/sources":
                show.show_hits(output(), last.hits if last else ())
                if last is None:
                    say("Nothing has been asked yet.")
            case command if command.startswith("/"):
                say(HELP)
            case question:
                try:
                    last = _answer(chat, question, as_json=False, in_chat=True)
                except KeyboardInterrupt:
                    say("Stopped.")
                except FolioError as error:
                    complain(error.happened, error.remedy, error.exit_code)
    return 0


def _lines(app: App) -> Iterator[str]:
    """What the person types: with editing and history in a terminal, else line by line."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(app.settings.VECTORSTORE_DIR / "chat_history"))
    )
    while True:
        try:
            yield session.prompt("\n> ")
        except KeyboardInterrupt:  # an empty line, as in a shell
            continue
        except EOFError:
            return


@contextmanager
def _waiting(quiet: bool) -> Iterator[Any]:
    """A word that work goes on, in a terminal, until the first sentence: a model may take long to load."""
    from folio.cli import errors

    if quiet or not errors().is_terminal:
        yield lambda: None
        return
    with errors().status("Reading the papers ...") as status:
        yield status.stop


def _say_question(question: str) -> None:
    from folio.cli import output, plain

    output().print(plain(question), style="bold")


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    sys.exit(main())
