"""LangChain's ConversationalRetrievalChain over Folio's search and answerers.

The chain rewrites a follow-up as a standalone question, calls the retriever with it, and passes the passages to the
combining step. Its "question" is one frozen value (chat.Turn) with everything that belongs to the question, so no state
is kept outside. Importing LangChain takes half a second: chat.py does it in the background.
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
from folio.papers.model import Hit
from folio.search.langchain import FolioRetriever, HitDocument

# The chain's three steps: turn -> turn with a standalone question; turn -> passages; turn + passages -> reply
Rewrite = Callable[[Any], Any]
Retrieve = Callable[[Any], Sequence[Hit]]
Combine = Callable[[Any, Sequence[Hit]], Any]


class StandaloneQuestion(LLMChain):
    """The chain's question generator."""

    rewrite: Rewrite

    def _call(self, inputs: dict[str, Any], run_manager: CallbackManagerForChainRun | None = None) -> dict[str, Any]:
        return {self.output_key: self.rewrite(inputs["question"])}


class CitedAnswer(BaseCombineDocumentsChain):
    """The chain's combining step."""

    combine: Combine

    def combine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        hits = [document.hit for document in docs if isinstance(document, HitDocument)]
        return self.combine(inputs["question"], hits), {}

    async def acombine_docs(self, docs: list[Document], **inputs: Any) -> tuple[Any, dict[str, Any]]:
        return self.combine_docs(docs, **inputs)


def make_chain(rewrite: Rewrite, retrieve: Retrieve, combine: Combine) -> ConversationalRetrievalChain:
    """The chain of these steps. Input: question, chat_history. The output has the reply as "answer"."""

    def no_model(_: object) -> str:
        raise AssertionError("the question generator and the combining step call the answerer")

    # LangChain 1 deprecates its classic chains; Folio uses one on purpose, at a pinned version. The filter stays,
    # because catch_warnings would undo the filters of other threads.
    warnings.simplefilter("ignore", LangChainDeprecationWarning)
    return ConversationalRetrievalChain(
        retriever=FolioRetriever(search=retrieve),
        question_generator=StandaloneQuestion(
            llm=RunnableLambda(no_model), prompt=PromptTemplate.from_template(prompts.STANDALONE), rewrite=rewrite
        ),
        combine_docs_chain=CitedAnswer(combine=combine),
    )
