"""LangChain's ConversationalRetrievalChain over Folio's retriever and answerers.

The chain rewrites a follow-up into a standalone question, calls the retriever with it, and passes the hits to the
combine step. Both the question generator and the combine step call the answerer: a chat model or the built-in
extractive one. Importing LangChain takes half a second, so chat.py imports this module in the background.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from langchain_classic.chains import ConversationalRetrievalChain
from langchain_classic.chains.combine_documents.base import BaseCombineDocumentsChain
from langchain_classic.chains.llm import LLMChain
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.callbacks import CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from folio.answer import prompts
from folio.answer.evidence import GatheredEvidence
from folio.answer_types import Answer, Checking, RejectedSentence, Sentence, SourceNumbers, Style, Thinking
from folio.protocols import Answerer
from folio.search.langchain import FolioRetriever, HitDocument, Search
from folio.types import Hit

OnSentence = Callable[[Sentence], None]
OnChecking = Callable[[int], None]
Gather = Callable[[Sequence[Hit]], GatheredEvidence]


class StandaloneQuestion(LLMChain):
    """The chain's question generator: the answerer rewrites a follow-up."""

    rewrite: Callable[[str], str]

    def _call(self, inputs: dict[str, Any], run_manager: CallbackManagerForChainRun | None = None) -> dict[str, str]:
        return {self.output_key: self.rewrite(inputs["question"])}


class CitedAnswer(BaseCombineDocumentsChain):
    """The chain's combine step: hits to evidence, evidence to the answerer's sentences."""

    answerer: Any  # an Answerer, but pydantic cannot check a Protocol
    gather: Gather
    style: Style

    def combine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        """The Answer to inputs["question"] from these documents. Calls inputs["on_sentence"] for each sentence.

        inputs["on_checking"] is called with the number of statements that wait for their verifier,
        inputs["on_thinking"] when the model begins to think. Sentences for which inputs["is_repeat"] is true are left
        out.
        """
        gathered = self.gather([document.hit for document in docs if isinstance(document, HitDocument)])
        on_sentence: OnSentence = inputs["on_sentence"]
        on_checking: OnChecking = inputs["on_checking"]
        is_repeat: Callable[[Sentence], bool] = inputs["is_repeat"]
        sentences: list[Sentence] = []
        left_out: list[RejectedSentence] = []
        numbers = SourceNumbers()
        for part in self.answerer.sentences(inputs["question"], gathered.evidence, self.style):
            if isinstance(part, RejectedSentence):
                left_out.append(part)
            elif isinstance(part, Checking):
                on_checking(part.count)
            elif isinstance(part, Thinking):
                inputs["on_thinking"]()
            elif not is_repeat(part):
                sentences.append(numbers.numbered(part))
                on_sentence(sentences[-1])
        notices = [_left_out_notice(gathered.left_out)] if gathered.left_out else []
        if gathered.evidence and self.answerer.notice:
            notices.append(self.answerer.notice)
        question = inputs["question"]
        notice = " ".join(notices)
        answer = Answer(
            question,
            question,
            tuple(sentences),
            gathered.evidence,
            len(left_out),
            notice,
            self.style,
            tuple(left_out),
            bool(gathered.evidence) and self.answerer.failed,
        )
        return answer, {}

    async def acombine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        return self.combine_docs(docs, **inputs)


def _left_out_notice(count: int) -> str:
    passages = "1 passage" if count == 1 else f"{count} passages"
    return f"{passages} did not fit into the evidence. Raise CONTEXT_TOKENS to include more."


def make_chain(
    search: Search, rewrite: Callable[[str], str], gather: Gather, answerer: Answerer, style: Style
) -> ConversationalRetrievalChain:
    """The chain. Its output has an Answer as "answer".

    Its input: question, chat_history, on_sentence, on_checking, on_thinking, is_repeat.
    """

    def no_model(_: object) -> str:
        raise AssertionError("the question generator and the combine step call the answerer")

    # LangChain 1 deprecates its classic chains. Folio uses one on purpose, at a pinned version. For good, because
    # catch_warnings would undo the filters of other threads.
    warnings.simplefilter("ignore", LangChainDeprecationWarning)
    return ConversationalRetrievalChain(
        retriever=FolioRetriever(search=search),
        question_generator=StandaloneQuestion(
            llm=RunnableLambda(no_model), prompt=PromptTemplate.from_template(prompts.STANDALONE), rewrite=rewrite
        ),
        combine_docs_chain=CitedAnswer(answerer=answerer, gather=gather, style=style),
    )
