"""A chat model that Ollama serves, as it is asked: at temperature 0, by the configured host alone, its errors told."""

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
    """One model of one server; name: with its tag."""

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
        """What the model says, in pieces as they come; the last one has "done_reason" in its metadata.

        rules: the system's message; none where it is empty. context: tokens that the model is loaded with. longest:
        tokens of the reply. shape: the JSON Schema that the reply is held to. check_cancelled: called often, also while
        the model loads and says nothing; what it raises ends the reply, and the server's work on it. Raises ModelError,
        and OllamaError where the reply breaks off.
        """
        from langchain_core.messages import HumanMessage, SystemMessage
        from langchain_ollama import ChatOllama

        from folio.models.cancellable_http import transport

        left: list[Exception] = []

        def still_goes_on() -> None:
            try:
                check_cancelled()
            except Exception as error:
                left.append(error)
                raise

        model = ChatOllama(
            model=self.name,
            base_url=self.server.url,
            temperature=0,
            num_ctx=context,
            num_predict=longest,
            format=shape,
            client_kwargs=client_kwargs(self.server.timeout_s),
            sync_client_kwargs={"transport": transport(still_goes_on)},
        )
        ended = False
        try:
            for piece in model.stream([*([SystemMessage(rules)] if rules else []), HumanMessage(prompt)]):
                ended = ended or bool(piece.response_metadata.get("done_reason"))
                yield piece
        except ModelError:
            raise
        except Exception as error:  # whatever the client meets on the way is told in our words
            if error in left:
                raise
            raise translate(error, self.name, self.server.url) from error
        if not ended:
            raise broke_off(self.name, self.server.url)
