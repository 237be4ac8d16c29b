"""A chat model on Ollama: called at temperature 0, on the configured host only, its errors translated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from folio.errors import ModelError
from folio.models.ollama import OllamaServer, client_kwargs
from folio.models.ollama_errors import broke_off, translate

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk


@dataclass(frozen=True, slots=True)
class ChatModel:
    """One model on one server; name includes the tag."""

    server: OllamaServer
    name: str

    def stream(
        self,
        rules: str,
        prompt: str,
        *,
        context: int,
        longest: int,
        shape: dict[str, Any] | None = None,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> Iterator[AIMessageChunk]:
        """The model's reply, piece by piece as it arrives; the last piece has "done_reason" in its metadata.

        rules: the system message; not sent if empty. context: the context length to load the model with, in tokens.
        longest: the most tokens in a reply. shape: a JSON Schema that the reply must follow. check_cancelled: called
        often, also while the model loads and sends nothing; an exception that it raises ends the reply and the
        server's work on it. Raises ModelError, and OllamaError if the reply breaks off.
        """
        from langchain_core.messages import HumanMessage, SystemMessage
        from langchain_ollama import ChatOllama

        from folio.models.cancellable_http import CancellableTransport

        cancellations: list[Exception] = []

        def check() -> None:
            try:
                check_cancelled()
            except Exception as error:
                cancellations.append(error)
                raise

        model = ChatOllama(
            model=self.name,
            base_url=self.server.url,
            temperature=0,
            num_ctx=context,
            num_predict=longest,
            format=shape,
            client_kwargs=client_kwargs(self.server.timeout_s),
            sync_client_kwargs={"transport": CancellableTransport(check)},
        )
        ended = False
        try:
            for piece in model.stream([*([SystemMessage(rules)] if rules else []), HumanMessage(prompt)]):
                ended = ended or bool(piece.response_metadata.get("done_reason"))
                yield piece
        except ModelError:
            raise
        except Exception as error:  # from langchain-ollama, ollama or httpx
            if error in cancellations:
                raise
            raise translate(error, self.name, self.server.url) from error
        if not ended:
            raise broke_off(self.name, self.server.url)
