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
from folio.evidence import Gathered, gather
from folio.protocols import Answerer
from folio.retrieve import Found, Retriever, Stopwatch
from folio.types import Answer, Hit, Paper, Sentence, Style, Withheld

Told = Callable[[Sentence], None]
Gather = Callable[[Sequence[Hit]], Gathered]

# Turns of a conversation whose evidence stays a candidate.
REMEMBERED_EVIDENCE = 3


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
    """The chain's combine step: hits to evidence, and the answerer's sentences, told one at a time as they pass."""

    answerer: Any  # an Answerer: a Protocol, which pydantic cannot check
    gather: Gather
    style: Style

    def combine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        """The Answer to inputs["question"] from these documents, and nothing besides."""
        found = self.gather([document.hit for document in docs if isinstance(document, HitDocument)])
        told: Told = inputs["told"]
        sentences: list[Sentence] = []
        dropped = 0
        for sentence in self.answerer.sentences(inputs["question"], found.evidence, self.style):
            if isinstance(sentence, Withheld):
                dropped += 1
            else:
                sentences.append(sentence)
                told(sentence)
        notices = [_left_out(found.left_out)] if found.left_out else []
        if found.evidence and self.answerer.notice:
            notices.append(self.answerer.notice)
        asked = inputs["question"]
        notice = " ".join(notices)
        return Answer(asked, asked, tuple(sentences), found.evidence, dropped, notice, self.style), {}

    async def acombine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        return self.combine_docs(docs, **inputs)


def _left_out(count: int) -> str:
    passages = "1 passage that was found" if count == 1 else f"{count} passages that were found"
    return f"{passages} did not fit into the evidence; raise CONTEXT_TOKENS to have it read."


def remembered(turns: Sequence[Answer]) -> list[int]:
    """The ids of the chunks that the last answers were made from: candidates for the next question in any case."""
    hits = (hit for turn in turns[-REMEMBERED_EVIDENCE:] for evidence in turn.evidence for hit in evidence.hits)
    return list(dict.fromkeys(hit.chunk.id for hit in hits))


class Chat:
    """Questions and answers that follow up on each other; one at a time, so that each conversation has its own."""

    def __init__(
        self,
        retriever: Retriever,
        answerer: Answerer,
        *,
        top_k: int,
        papers: Sequence[Paper] | None = None,
        style: Style = "plain",
    ) -> None:
        """top_k: passages of evidence for an answer. papers: asked among these only, where they are given."""
        self._retriever = retriever
        self._answerer = answerer
        self._top_k = top_k
        self._papers = papers
        self._style = style
        self._turns: list[Answer] = []
        self._found = Found((), {}, {})
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
        question = question.strip().encode(errors="replace").decode()  # the shell hands on bytes that are no UTF-8
        if not question:
            raise UsageError("The question is empty.", 'Ask one: python query.py "What is ...?"')
        self._clock = Stopwatch()
        history = [(turn.standalone_question, turn.text) for turn in self._turns]
        output = self._chain.invoke({"question": question, "chat_history": history, "told": told})
        self._clock.lap("answer")
        answer: Answer = replace(output["answer"], question=question)
        self._turns.append(answer)
        stages = self._clock.laps  # of these, retrieve is made of the retriever's own
        total = round(sum(stages.values()), 2)
        return Reply(answer, self._found.hits, {**self._found.timings_ms, **stages, "total": total})

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
                combine_docs_chain=CitedAnswer(answerer=self._answerer, gather=self._gather, style=self._style),
            )

    def _rewrite(self, question: str) -> str:
        standalone = self._answerer.standalone(question, self._turns)
        self._clock.lap("rewrite")
        return standalone

    def _search(self, question: str) -> Sequence[Hit]:
        self._found = self._retriever.search(question, self._top_k, self._papers, remembered(self._turns))
        self._clock.lap("retrieve")
        return self._found.hits

    def _gather(self, hits: Sequence[Hit]) -> Gathered:
        gathered = gather(hits, self._retriever.text, self._answerer.evidence_tokens)
        self._clock.lap("evidence")
        return gathered
