"""`folio ask` and query.py: answers one question, several, or a chat; ranks passages or papers; shows statistics."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from folio.cli.command import BY, FILTERS, Parser, add_paper_options, paper_filter, run_command, up_to, write_json
from folio.cli.table import FILES, add_files
from folio.console import complain, output, say
from folio.errors import ModelError, UsageError, command

if TYPE_CHECKING:
    from folio.answer.chat import Chat, Reply
    from folio.answer_types import Answer
    from folio.app import App
    from folio.cli.session import ChatSession
    from folio.deep.checkpoint import CheckpointFile, SearchOptions
    from folio.papers.lists import By
    from folio.question.spelling import Respelling
    from folio.store.library import Library


MOST_PASSAGES = 10_000  # of --top-k: the search allocates room for all of them
# Options for how an answer is made and shown
_ANSWERING = ("style", "show_evidence", "show_dropped", "show_raw", "top_k", *FILTERS, "no_log", "model",
              "instruction", "verbose")  # fmt: skip
# Option -> the options that may be combined with it. "question" is the question itself.
COMBINES_WITH = {
    "doctor": ("find_servers",),
    "forget": (),
    "feedback": (),
    "stats": ("by", "json"),
    "sources": ("question", "batch", "top_k", *FILTERS, "json", "no_log", "verbose"),
    "papers": ("question", "batch", "top_k", *FILTERS, "json", "no_log"),
    "deep": ("question", "batch", "resume", "verify", "json", "online", "yes", *_ANSWERING),
    "online": ("question", "deep", "resume", "yes", "json", *_ANSWERING),
    "yes": ("question", "deep", "resume", "online", "json", *_ANSWERING),
    "resume": ("deep", "online", "yes", "verify", "json", "show_evidence", "show_dropped", "show_raw", "no_log",
               "model", "instruction", "verbose"),
    "verify": ("question", "deep", "resume", *_ANSWERING),
    "batch": ("deep", "sources", "papers", "json", *_ANSWERING),
    "table": (*(name for name in FILTERS if name != "section"), "model", "json", *FILES),
}


def parser(prog: str) -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        description="Ask the papers in the index. Without a question, a chat begins.",
        epilog="Settings such as LLM, RERANKER and TOP_K come from the environment or .env: see docs/settings.md.",
    )
    parser.add_argument("question", nargs="*", help="what you want to know; quotes are not needed")
    parser.add_argument(
        "--deep",
        action="store_true",
        help="search in rounds: papers first, then passages, again if too little is found",
    )
    resume = "continue the deep search that was stopped, with --online the search for papers"
    parser.add_argument("--resume", action="store_true", help=resume)
    online = "if papers are missing: look for them after a yes, and ask again"
    parser.add_argument("--online", action="store_true", help=online)
    parser.add_argument("--yes", action="store_true", help="with --online: do not ask")
    parser.add_argument("--style", choices=["plain", "report"], help="sentences, or a report with headings")
    parser.add_argument("--show-evidence", action="store_true", help="also show the text that the answer was made from")
    parser.add_argument(
        "--show-dropped", action="store_true", help="also show the statements that were left out, and why"
    )
    parser.add_argument("--show-raw", action="store_true", help="also show the model's reply as it came")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="open or render the cited pages; without a question, those of the last answer",
    )
    parser.add_argument("--sources", action="store_true", help="only rank passages, without a language model")
    parser.add_argument("--papers", action="store_true", help="only rank papers, without a language model")
    parser.add_argument(
        "--top-k",
        type=up_to(MOST_PASSAGES),
        metavar="K",
        help="number of passages to find and answer from, or of papers (default: TOP_K)",
    )
    model = "the model on the server that answers this time, as LLM and LLM_MODEL do; or builtin, which quotes"
    parser.add_argument("--model", metavar="NAME", help=model)
    wording = "word the answer as this instruction asks (see `folio instructions`); it needs a chat model"
    parser.add_argument("--instruction", metavar="NAME", help=wording)
    add_paper_options(parser, "ask")
    parser.add_argument("--batch", metavar="FILE", help="ask the questions in FILE, one per line; - for standard input")
    table = "put the questions in FILE, one column a line, to each paper: `folio table` lists and shows such tables"
    parser.add_argument("--table", metavar="FILE", help=table)
    add_files(parser, "with --table: ")
    parser.add_argument("--json", action="store_true", help="print only JSON, one object per line")
    verbose = "also print, on standard error, the models used, the scores of passages and the time of each stage"
    parser.add_argument("-v", "--verbose", action="store_true", help=verbose)
    parser.add_argument("--no-log", action="store_true", help="do not write the question to the log")
    parser.add_argument("--feedback", choices=["good", "bad"], help="rate the last logged answer")
    parser.add_argument(
        "--forget", action="store_true", help="delete all logged questions, conversations and chat history"
    )
    parser.add_argument("--stats", action="store_true", help="show the size of the index and statistics on questions")
    parser.add_argument("--by", choices=BY, help="with --stats: count the papers by this field")
    parser.add_argument("--doctor", action="store_true", help="show what is ready and what is not")
    parser.add_argument(
        "--find-servers", action="store_true", help="with --doctor: look for model servers at the usual local ports"
    )
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "query.py") -> int:
    """Run the command; returns its exit code. prog: the name shown in --help and usage errors."""
    arguments = parser(prog).parse_intermixed_args(argv)  # allows options between the question's words
    arguments.question = " ".join(arguments.question) if arguments.question else None
    return run_command(lambda app: _run(app, arguments))


def _run(app: App, arguments: argparse.Namespace) -> int:
    _check_options(arguments)
    if arguments.doctor:
        from folio.cli.doctor import show_doctor

        return show_doctor(app, find=arguments.find_servers)
    if arguments.table is not None:
        from folio.cli.table import fill_from

        return fill_from(app, arguments.table, arguments)
    questions = _questions(arguments)
    if arguments.model is not None:
        app = app.with_model(arguments.model)
    if arguments.online:
        return _ask_online(app, arguments)
    with closing(app.open_library()) as library:
        from folio.cli import session

        if arguments.stats:
            return _show_statistics(app, library, arguments.by, as_json=arguments.json)
        if arguments.feedback:
            session.mark(app.query_log(library), arguments.feedback)
            return 0
        if arguments.forget:
            session.forget(app, library)
            return 0
        if arguments.sources:
            return _search(app, library, questions or [], arguments)
        if arguments.papers:
            return _rank_papers(app, library, questions or [], arguments)
        if arguments.resume:
            return _resume(app, library, arguments)
        if questions is None and arguments.verify:
            return session.verify_logged(app, library)
        return _ask(app, library, questions, arguments)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that cannot be combined or that need a question."""
    given = [name for name, value in vars(arguments).items() if value not in (None, False)]
    for name, allowed in COMBINES_WITH.items():
        for other in given if name in given else ():
            if other not in (name, *allowed):
                raise UsageError(f"{_named(other)} and {_named(name)} cannot be combined.", "Use one of them.")
    if files := [name for name in FILES if name in given and arguments.table is None]:
        remedy = "Name a file of questions: " + command(f"ask --table questions.txt --{files[0]} FILE")
        raise UsageError(f"--{files[0]} needs --table.", remedy)
    asks = arguments.resume or any(getattr(arguments, name) is not None for name in ("question", "batch", "table"))
    if arguments.yes and not arguments.online:
        raise UsageError("--yes needs --online.", "Ask like this: " + command('ask --online --yes "What is ...?"'))
    if arguments.online and arguments.question is None and not arguments.resume:
        raise UsageError("--online needs a question.", "Give one: " + command('ask --online "What is ...?"'))
    if arguments.by and not arguments.stats:
        raise UsageError("--by needs --stats.", f"Count papers like this: {command('ask --stats --by year')}.")
    if arguments.find_servers and not arguments.doctor:
        raise UsageError("--find-servers needs --doctor.", f"Run `{command('doctor --find-servers')}`.")
    if (arguments.json or arguments.sources) and not asks and not arguments.stats:
        raise UsageError("--json and --sources need a question.", "Give one: " + command('ask --json "What is ...?"'))
    if arguments.papers and not asks:
        raise UsageError("--papers needs words to look for.", "Give some: " + command('ask --papers "dense retrieval"'))
    if arguments.verify and not asks and len(given) > 1:
        option = next(_named(name) for name in given if name != "verify")
        raise UsageError(
            f"--verify with {option} needs a question.",
            "Give one; --verify alone opens the last answer.",
        )


def _named(name: str) -> str:
    return "a question" if name == "question" else f"--{name.replace('_', '-')}"


def _questions(arguments: argparse.Namespace) -> list[str] | None:
    """The questions to ask; None for a chat. Raises UsageError for an empty question or an unreadable file."""
    if arguments.batch is not None:
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
        raise UsageError("The question is empty.", "Ask one: " + command('ask "What is ...?"'))
    return [arguments.question.strip()]


def _resume(app: App, library: Library, arguments: argparse.Namespace) -> int:
    """Continue the deep search that was stopped, with the options it began with."""
    from folio.deep.checkpoint import checkpoint_path, damaged, read

    checkpoint = read(checkpoint_path(app.store_folder))
    if len(checkpoint.head.options.filters) > len(FILTERS):
        raise damaged()
    _take(arguments, checkpoint.head.options)
    session, _ = _session(app, library, arguments)
    return _finish(session, session.resume(checkpoint), arguments)


def _take(arguments: argparse.Namespace, options: SearchOptions) -> None:
    """Give the arguments the options that a search began with."""
    arguments.style, arguments.top_k = options.style, options.evidence
    for name, values in zip_longest(FILTERS, options.filters, fillvalue=()):  # an older Folio has fewer filters
        setattr(arguments, str(name), list(values))


def _ask_online(app: App, arguments: argparse.Namespace) -> int:
    """Answer a question, and look for papers that are not here if it has no answer."""
    from folio.cli import online
    from folio.services.online_run import read, record_path

    if arguments.resume:
        begun = read(record_path(app.store_folder))
        _take(arguments, begun.options)
        arguments.deep = begun.is_deep

    def ask(question: str) -> tuple[Answer, int]:
        with closing(app.open_library()) as library:
            session, _ = _session(app, library, arguments)
            reply = session.ask(question)
            return reply.answer, _finish(session, reply, arguments)

    saves = app.logs_questions and not arguments.no_log
    return online.run(app, arguments, _search_options(arguments), ask, saves=saves)


def _ask(app: App, library: Library, questions: Sequence[str] | None, arguments: argparse.Namespace) -> int:
    """Answer one question or several, or start a chat."""
    session, chat = _session(app, library, arguments)
    if questions is None:
        app.check_indexes_in_background()
        return session.converse()
    if len(questions) > 1:
        return _ask_each(session, chat, questions, as_json=arguments.json)
    return _finish(session, session.ask(questions[0]), arguments)


def _finish(session: ChatSession, reply: Reply, arguments: argparse.Namespace) -> int:
    """Open the cited pages if --verify was given; returns the exit code."""
    code = session.verify(reply) if arguments.verify else 0
    return 1 if reply.answer.model_failed else code


def _session(app: App, library: Library, arguments: argparse.Namespace) -> tuple[ChatSession, Chat]:
    from folio.answer.instructions import find
    from folio.cli.session import ChatSession

    instruction = find(library.database, arguments.instruction) if arguments.instruction is not None else None
    chat = app.chat(
        library,
        top_k=arguments.top_k or app.top_k,
        wanted=paper_filter(arguments),
        style=arguments.style or "plain",
        instruction=instruction,
    )
    logged = app.logs_questions and not arguments.no_log
    # A search that is not logged is not saved either; of a batch, only the last question could be resumed.
    saves = logged and arguments.batch is None and not library.is_read_only
    session = ChatSession(
        app,
        library,
        chat,
        as_json=arguments.json,
        evidence=arguments.show_evidence,
        dropped=arguments.show_dropped,
        raw=arguments.show_raw,
        logged=logged,
        verbose=arguments.verbose,
        deep=arguments.deep,
        checkpoints=partial(_checkpoint_file, app, arguments, writes=saves),
    )
    return session, chat


def _checkpoint_file(app: App, arguments: argparse.Namespace, *, writes: bool) -> CheckpointFile:
    """The file that a deep search is saved in until it is done."""
    from folio.deep.checkpoint import CheckpointFile, checkpoint_path

    path = checkpoint_path(app.store_folder)
    return CheckpointFile(path, _search_options(arguments), writes=writes, notice=say)


def _search_options(arguments: argparse.Namespace) -> SearchOptions:
    from folio.deep.checkpoint import SearchOptions

    filters = tuple(tuple(getattr(arguments, name) or ()) for name in FILTERS)
    return SearchOptions(arguments.style or "plain", arguments.top_k, filters)


def _ask_each(session: ChatSession, chat: Chat, questions: Sequence[str], *, as_json: bool) -> int:
    """Answer unrelated questions, each even if a model failed on the one before; returns 1 if a model failed."""
    from folio.cli.show import show_question

    code = 0
    for number, question in enumerate(questions):
        if not as_json:
            print("\n" * bool(number), end="")
            show_question(output(), question)
        chat.reset()
        try:
            code = 1 if session.ask(question).answer.model_failed else code
        except ModelError as error:
            code = complain(error.happened, error.remedy, error.exit_code)
            if as_json:
                from folio.schema.answers import ErrorJson

                write_json(ErrorJson(question=question, error=error.happened, remedy=error.remedy))
    return code


def _search(app: App, library: Library, questions: Sequence[str], arguments: argparse.Namespace) -> int:
    """Show passages, without an answer."""
    from folio.cli import show
    from folio.cli.session import say_details
    from folio.question.question import Question
    from folio.search.retriever import SearchRequest

    retriever = app.retriever(library)
    app.models.announce()
    chosen = retriever.select(paper_filter(arguments))
    for question in questions:
        spelt = retriever.respelled(question)
        words = Question(spelt.question, question if spelt.typed else "")
        result = retriever.find(SearchRequest(words, arguments.top_k or app.top_k, chosen.papers, chosen.sections))
        if arguments.json:
            from folio.schema.answers import passages_json

            write_json(passages_json(question, result.hits, retriever.models, result.timings_ms, result.notice))
        else:
            _introduce(question, spelt, len(questions))
            if result.notice:
                say(result.notice)
            show.show_hits(output(), result.hits)
            if not result.hits:
                output().print("No passages found.")
        if arguments.verbose:
            say_details(retriever.models, result.hits, result.timings_ms)
    return 0


def _rank_papers(app: App, library: Library, queries: Sequence[str], arguments: argparse.Namespace) -> int:
    """Show the papers that match each query best."""
    from folio.cli.show_papers import show_found
    from folio.schema.papers import PapersFoundJson, found_paper_json, papers_notice

    retriever = app.retriever(library)
    app.models.announce()
    chosen = retriever.select(paper_filter(arguments))
    for query in queries:
        spelt = retriever.respelled(query)
        limit = arguments.top_k or app.top_k
        hits = retriever.search_papers(spelt.question, limit, papers=chosen.papers, sections=chosen.sections)
        notice = retriever.notice or papers_notice(retriever.papers_without_vector())
        if arguments.json:
            added = library.added()
            papers = [found_paper_json(hit, added[hit.paper.id]) for hit in hits]
            write_json(PapersFoundJson(query=query, papers=papers, notice=notice))
            continue
        _introduce(query, spelt, len(queries))
        if notice:
            say(notice)
        show_found(output(), hits)
    return 0


def _introduce(question: str, spelling: Respelling, count: int) -> None:
    """Print a question if there are several, and how its words were corrected."""
    from folio.cli.show import show_question

    if count > 1:
        show_question(output(), question)
    if spelling.typed:
        say(spelling.note)


def _show_statistics(app: App, library: Library, by: By | None, *, as_json: bool) -> int:
    """Print statistics of the index and the log, or the number of papers for each value of the field `by`."""
    from statistics import mean

    from folio.cli import show
    from folio.cli.papers import print_counts
    from folio.schema.answers import StatsJson
    from folio.schema.papers import With
    from folio.store import indexes

    if by:
        print_counts(library.papers(), by, as_json=as_json)
        return 0
    with library.reading():
        every, sizes, fine_sizes = library.papers(), library.chunk_sizes(), library.chunk_sizes("fine")
    papers = [paper for paper in every if not paper.is_copy]
    pages = [paper.page_count for paper in papers]
    counts = With(
        app.query_log(library).counts(),
        papers=len(papers),
        copies=len(every) - len(papers),
        pages=sum(pages),
        mean_pages=mean(pages or [0]),
        mean_length=mean([paper.length for paper in papers] or [0]),
        chunks=sizes.chunks,
        mean_chunk=sizes.mean,
        fine_chunks=fine_sizes.chunks,
        mean_fine_chunk=fine_sizes.mean,
        bytes=indexes.size(app.store_folder),
    )
    stats = StatsJson.model_validate(counts)
    if as_json:
        write_json(stats)
    else:
        show.show_stats(output(), stats)
    return 0
