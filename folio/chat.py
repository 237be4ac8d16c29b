"""A conversation: LangChain's ConversationalRetrievalChain over Folio's retriever and answerers.

The chain rewrites a follow-up into a standalone question, has the retriever look for it, and hands the passages to the
combine step. Both of its plug-in points are ours: the question generator and the combine step call the answerer, which
is a chat model or the built-in extractive one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_classic.chains import ConversationalRetrievalChain
from langchain_classic.chains.combine_documents.base import BaseCombineDocumentsChain
from langchain_classic.chains.llm import LLMChain
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.callbacks import CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from folio import prompts
from folio.bridge import FolioRetriever, HitDocument
from folio.errors import UsageError
from folio.retrieve import Found, Retriever, Stopwatch
from folio.types import Answer, Answerer, Hit, Paper, Sentence, Turn

Told = Callable[[Sentence], None]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the evidence that it was given, and the milliseconds that each stage took."""

    answer: Answer
    hits: tuple[Hit, ...]
    timings_ms: dict[str, float]


class StandaloneQuestion(LLMChain):
    """The chain's question generator: the answerer rewrites the follow-up from the turns."""

    rewrite: Callable[[str], str]

    def _call(self, inputs: dict[str, Any], run_manager: CallbackManagerForChainRun | None = None) -> dict[str, str]:
        return {self.output_key: self.rewrite(inputs["question"])}


class CitedAnswer(BaseCombineDocumentsChain):
    """The chain's combine step: the answerer's sentences, told one at a time as they pass."""

    answerer: Any  # an Answerer: a Protocol, which pydantic cannot check

    def combine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        """The Answer to inputs["question"] from these documents, and nothing besides."""
        hits = [document.hit for document in docs if isinstance(document, HitDocument)]
        told: Told = inputs["told"]
        sentences: list[Sentence] = []
        dropped = 0
        for sentence in self.answerer.sentences(inputs["question"], hits) if hits else ():
            if sentence is None:
                dropped += 1
            else:
                sentences.append(sentence)
                told(sentence)
        notice: str = self.answerer.notice if hits else ""
        return Answer(inputs["question"], inputs["question"], tuple(sentences), dropped, notice), {}

    async def acombine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        return self.combine_docs(docs, **inputs)


class Chat:
    """Questions and answers that follow up on each other."""

    def __init__(
        self, retriever: Retriever, answerer: Answerer, *, top_k: int, papers: Sequence[Paper] | None = None
    ) -> None:
        """top_k: passages of evidence for an answer. papers: asked among these only, where they are given."""
        self._retriever = retriever
        self._answerer = answerer
        self._top_k = top_k
        self._papers = papers
        self._turns: list[Turn] = []
        self._found = Found((), {})
        self._clock = Stopwatch()
        self._chain = self._make_chain()

    @property
    def models(self) -> dict[str, str]:
        """What embeds, reranks and answers, by the names that people see."""
        return {**self._retriever.models, "llm": self._answerer.name}

    def ask(self, question: str, told: Told = lambda sentence: None) -> Reply:
        """Answer a question from the papers; `told` gets each sentence as soon as it has passed.

        Raises UsageError for an empty question and ModelError; the conversation is then as it was before.
        """
        question = question.strip()
        if not question:
            raise UsageError("The question is empty.", 'Ask one: python query.py "What is ...?"')
        self._clock = Stopwatch()
        history = [(turn.standalone_question, turn.answer) for turn in self._turns]
        output = self._chain.invoke({"question": question, "chat_history": history, "told": told})
        self._clock.lap("answer")
        answer: Answer = replace(output["answer"], question=question)
        self._turns.append(Turn(question, answer.standalone_question, answer.text))
        return Reply(answer, self._found.hits, {**self._found.timings_ms, **self._clock.laps})

    def start_anew(self) -> None:
        """Forget the conversation."""
        self._turns.clear()

    def _make_chain(self) -> ConversationalRetrievalChain:
        def no_model(_: object) -> str:
            raise AssertionError("the question generator and the combine step answer themselves")

        with warnings.catch_warnings():
            # LangChain 1 marks its classic chains as superseded; they are pinned, and what this tool is asked to run.
            warnings.simplefilter("ignore", LangChainDeprecationWarning)
            return ConversationalRetrievalChain(
                retriever=FolioRetriever(search=self._search),
                question_generator=StandaloneQuestion(
                    llm=RunnableLambda(no_model),
                    prompt=PromptTemplate.from_template(prompts.STANDALONE),
                    rewrite=self._rewrite,
                ),
                combine_docs_chain=CitedAnswer(answerer=self._answerer),
            )

    def _rewrite(self, question: str) -> str:
        standalone = self._answerer.standalone(question, self._turns)
        self._clock.lap("rewrite")
        return standalone

    def _search(self, question: str) -> Sequence[Hit]:
        self._found = self._retriever.search(question, self._top_k, self._papers)
        self._clock.lap("retrieve")
        return self._found.hits
