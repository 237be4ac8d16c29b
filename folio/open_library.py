"""A library for other programs: what `folio.open()` returns asks and searches it, as the commands do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypedDict, Unpack, cast

from folio.answer.chat import warm_up
from folio.answer_types import Style
from folio.app import App, from_environment
from folio.schema.answers import (
    AnswerJson,
    PassagesJson,
    SentenceJson,
    answer_json,
    deep_answer_json,
    passages_json,
)
from folio.search.filters import PaperFilter
from folio.search.pool import RetrieverPool

if TYPE_CHECKING:
    from folio.answer_types import Answer, Sentence

Names = str | Sequence[str]
OnSentence = Callable[[SentenceJson], object]


class Filters(TypedDict, total=False):
    """Which papers and sections to search, as the options of the commands: one value of each must fit."""

    paper: Names
    """Names of papers, or words of their titles or file names."""
    year: Names | int
    """Years and ranges of years: "2014", "2010-2015", "2020-", "-1999"."""
    author: Names
    venue: Names
    section: Names
    """Kinds of sections, such as "methods", or words of their titles."""
    collection: Names
    tag: Names
    cited_by: Names
    """Names of papers that cite the wanted papers."""
    category: Names
    """Categories of arXiv, "cs.CL", or whole archives: "cs"."""
    project: Names
    """Projects, and collections of Zotero or a bibliography."""


class OpenLibrary:
    """A library to ask and to search, from several threads too. Close it, or use it in a `with` statement."""

    def __init__(self, app: App) -> None:
        """Raises StoreMissing, StoreMismatch and ModelError."""
        warm_up()
        self._app = app
        self._retrievers = RetrieverPool(app.open_library, app.retriever, app.open_indexes)
        with self._retrievers.acquire():
            pass  # what cannot be asked is refused now

    def ask(
        self,
        question: str,
        *,
        deep: bool = False,
        top_k: int | None = None,
        model: str | None = None,
        style: Style = "plain",
        on_sentence: OnSentence | None = None,
        **filters: Unpack[Filters],
    ) -> AnswerJson:
        """The answer to a question, in the form that `folio ask --json` prints. Nothing is logged.

        deep: search in rounds; the answer is a DeepAnswerJson. top_k: number of passages to answer from. model: a model
        of the server, or "builtin"; None for the one in the settings. on_sentence: called with each sentence once it is
        verified; an exception from it ends the answer. Raises NotKnown if no paper fits the filters, UsageError,
        StoreError and ModelError.
        """
        chat = self.chat(top_k=top_k, model=model, style=style, **filters)
        return chat.ask(question, deep=deep, on_sentence=on_sentence)

    def chat(
        self,
        *,
        top_k: int | None = None,
        model: str | None = None,
        style: Style = "plain",
        **filters: Unpack[Filters],
    ) -> OpenChat:
        """A conversation: each of its questions may refer to those before. Arguments: see `ask`."""
        return OpenChat(self._app, self._retrievers, paper_filter(filters), top_k, model, style)

    def search(self, query: str, *, top_k: int | None = None, **filters: Unpack[Filters]) -> PassagesJson:
        """The passages for a query, best first, without a language model. Raises as `ask`."""
        with self._retrievers.acquire() as reader:
            retriever = reader.retriever
            chosen = retriever.select(paper_filter(filters))
            result = retriever.find_typed(query, top_k or self._app.top_k, chosen)
            return passages_json(query, result.hits, retriever.models, result.timings_ms, result.notice)

    def close(self) -> None:
        """Close the files of the index."""
        self._retrievers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OpenChat:
    """A conversation with the papers of an open library. It answers one question at a time."""

    def __init__(
        self,
        app: App,
        retrievers: RetrieverPool,
        wanted: PaperFilter,
        top_k: int | None,
        model: str | None,
        style: Style,
    ) -> None:
        """Arguments: see `OpenLibrary.ask`."""
        self._app = app
        self._retrievers = retrievers
        self._wanted = wanted
        self._top_k = top_k
        self._model = model
        self._style: Style = style
        self._turns: list[Answer] = []

    def ask(self, question: str, *, deep: bool = False, on_sentence: OnSentence | None = None) -> AnswerJson:
        """The answer to the next question. An error leaves the conversation unchanged. See `OpenLibrary.ask`."""

        def show(sentence: Sentence) -> None:
            if on_sentence is not None:
                on_sentence(SentenceJson.model_validate(sentence))

        models = self._app.models
        with self._retrievers.acquire() as reader:
            chat = self._app.chat_over(
                reader.retriever,
                top_k=self._top_k,
                chosen=reader.retriever.select(self._wanted),
                style=self._style,
                model=self._model,
                turns=self._turns,
            )
            search = models.deep_search(chat, evidence=self._top_k, model=self._model) if deep else None
            reply = chat.ask(question, show, find=search.find if search else None)
            answer = answer_json(reply.answer, reply.hits, chat.models, reply.timings_ms)
            if search and search.trace:
                profile = search.weigher(models.meaning).profile(reply.answer, search.trace)
                answer = deep_answer_json(answer, search.trace, profile)
        self._turns.append(reply.answer)
        return answer


def open_library(index: str | os.PathLike[str] | None, settings: Mapping[str, object]) -> OpenLibrary:
    """See folio.open."""
    chosen = dict(settings)
    if index is not None:
        chosen = {"STORE": "local", **chosen, "VECTORSTORE_DIR": os.fspath(index)}
    return OpenLibrary(from_environment(_warn, chosen))


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


def paper_filter(filters: Filters) -> PaperFilter:
    """The filter that these keywords describe. Raises UsageError, NotKnown, and TypeError for another keyword."""
    if unknown := filters.keys() - Filters.__annotations__.keys():
        raise TypeError(f"{sorted(unknown)[0]} is no filter: they are {', '.join(Filters.__annotations__)}")
    given = cast("Mapping[str, Names | int]", filters)
    values = (given.get(name, ()) for name in Filters.__annotations__)
    return PaperFilter.parse(*([str(value)] if isinstance(value, str | int) else value for value in values))
