"""Questions that the web app suggests: examples from the library, and follow-ups to an answer."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Any

from folio.answer.chat import Chat
from folio.answer.suggestions import Ask, Examples, TextOf, followups
from folio.app import App
from folio.errors import StoreMissing
from folio.papers.model import Paper
from folio.search.names import SAMPLE_ID
from folio.search.pool import Reader, RetrieverPool
from folio.store.conversations import Conversations, path_to

_MOST_KEPT = 256  # answers whose follow-ups are kept


class Suggestions:
    """Keeps what it found while the library stays the same. Thread-safe; looks for one thing at a time."""

    def __init__(self, app: App, retrievers: RetrieverPool, conversations: Conversations) -> None:
        self._app = app
        self._retrievers = retrievers
        self._conversations = conversations
        self._lock = Lock()
        self._examples: tuple[Hashable, Examples] | None = None
        self._followups: OrderedDict[Hashable, list[str]] = OrderedDict()

    def examples(self) -> list[str]:
        """A few questions that the library answers; none if there are none, or not yet. Raises ModelError.

        Looks for a limited time; the next call goes on.
        """
        with suppress(StoreMissing), self._lock, self._retrievers.acquire() as reader:
            stamp = reader.library.papers_stamp()
            if self._examples is None or self._examples[0] != stamp:
                known = self._examples[1].answered if self._examples else ()
                papers = _shuffled(reader.library.papers(), stamp)
                self._examples = (stamp, Examples(papers, _text_of(reader), known))  # others are being added
            found = self._examples[1]
            if not found.is_complete:
                found.look(self._ask(reader))
            return found.questions
        return []

    def followups(self, conversation: str, turn: int) -> list[str]:
        """At most a few questions that other passages of the papers cited by an answer answer.

        Raises NotKnown, ModelError.
        """
        path = path_to(self._conversations.turns(conversation), turn)
        replies = [each.reply for each in path if each.question is None]
        cited = [citation["paper"] for citation in _citations(path[-1].reply)]
        if not cited:
            return []
        with suppress(StoreMissing), self._lock, self._retrievers.acquire() as reader:
            key = (reader.library.papers_stamp(), conversation, turn)
            if key not in self._followups:
                self._followups[key] = followups(
                    reader.library.papers_by_id(cited),
                    _text_of(reader),
                    self._ask(reader),
                    [str(reply.get("message", "")) for reply in replies],
                    [str(citation["quote"]) for reply in replies for citation in _citations(reply)],
                )
                while len(self._followups) > _MOST_KEPT:
                    self._followups.popitem(last=False)
            return self._followups[key]
        return []

    def _ask(self, reader: Reader) -> Ask:
        """Asks the built-in answerer, each question by itself."""
        answerer = self._app.models.answerer(reader.retriever, model="builtin")
        return lambda question: Chat(reader.retriever, answerer, top_k=self._app.top_k).ask(question).answer


def _citations(reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The citations of a stored reply; none in a reply of an older version without them."""
    return [citation for citation in reply.get("citations", ()) if "paper" in citation and "quote" in citation]


def _text_of(reader: Reader) -> TextOf:
    return lambda paper, start, end: reader.library.text(paper.id, start, end)


def _shuffled(papers: Sequence[Paper], seed: Hashable) -> list[Paper]:
    """The papers in an order that depends on the seed alone, without the sample paper if there are others."""
    others = [paper for paper in papers if paper.id != SAMPLE_ID] or list(papers)
    return sorted(others, key=lambda paper: sha256(f"{seed} {paper.id}".encode()).digest())
