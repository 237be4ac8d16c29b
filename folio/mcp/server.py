"""The server of the Model Context Protocol, over the official SDK: requests come in, threads work on them, results and
progress go out. It knows no tool: tools.py, resources.py and prompts.py have what is offered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, Generic, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as OfferedTool
from pydantic import BaseModel, ValidationError

from folio.answer_types import AnswerStopped
from folio.errors import FolioError
from folio.mcp import prompts, resources
from folio.mcp.shown import WARNING
from folio.mcp.tools import TOOLS, Backend, Tool
from folio.schema.answers import UntitledSchema
from folio.schema.invalid import what_is_wrong
from folio.shown_text import name_line
from folio.system.files import unusable
from folio.version import __version__

logger = logging.getLogger(__name__)

T = TypeVar("T")

INSTRUCTIONS = (
    "Folio searches the user's own library of papers, and nothing else. `ask` gives a checked answer, `search_passages`"
    f" the passages to answer from yourself. Cite what you use by the citation that comes with it. {WARNING}"
)
MOST_AT_ONCE = 8  # requests that work at once; others wait
_LIMITS = frozenset({"title", "maxLength", "minLength", "pattern", "maxItems", "minItems"})  # of JSON schemas
_WAITING_MESSAGES = 100  # of progress, for a client that reads slowly; more are left out


class Cancelled(AnswerStopped):
    """The client has cancelled the request, or has left."""


@dataclass(frozen=True)
class _Failed:
    """Why a request has no result, in words."""

    message: str
    is_internal: bool = False


class _RunningCall:
    """A request at work in a thread. Implements tools.Call."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        """on_message: called in the event loop that makes this."""
        self._loop = asyncio.get_running_loop()
        self._on_message = on_message
        self._cancelled = Event()

    def check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def report(self, message: str) -> None:
        self.check_cancelled()
        self._loop.call_soon_threadsafe(self._on_message, message)

    def cancel(self) -> None:
        self._cancelled.set()


class Requests(Generic[T]):
    """Works on requests in threads. A request that is cancelled ends its thread at the thread's next step."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._slots = CapacityLimiter(MOST_AT_ONCE)
        self._running: set[_RunningCall] = set()

    def close(self) -> None:
        """Tell all threads to stop, and close what they worked on, as soon as they no longer need it."""
        for call in list(self._running):
            call.cancel()
        self._backend.close()

    async def work(self, context: ServerRequestContext[Any], run: Callable[..., T], *arguments: object) -> T | _Failed:
        """run(backend, *arguments, call) in a thread, with its progress sent to the client."""
        send, messages = anyio.create_memory_object_stream[str](_WAITING_MESSAGES)

        def on_message(message: str) -> None:
            with suppress(anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
                send.send_nowait(message)

        call = _RunningCall(on_message)
        self._running.add(call)
        result: T | _Failed
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_report, context, messages)
                work = partial(_contained, run, self._backend, *arguments, call)
                result = await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._slots)
                send.close()  # what was reported is still sent
        finally:
            call.cancel()
            self._running.discard(call)
            send.close()
            messages.close()
        return result


async def _report(context: ServerRequestContext[Any], messages: AsyncIterator[str]) -> None:
    """Send the progress of a request, unless its client asked for none."""
    step = 0
    async for message in messages:
        step += 1
        await context.session.report_progress(step, None, message)


def _contained(run: Callable[..., T], *arguments: object) -> T | _Failed:
    """run(*arguments), or why it failed. A BaseException such as a panic in Rust does not end the server either."""
    try:
        return run(*arguments)
    except FolioError as error:
        return _Failed(f"{error.happened} {error.remedy}")
    except OSError as error:
        shown = unusable(error)
        return _Failed(f"{shown.happened} {shown.remedy}")
    except AnswerStopped:
        return _Failed("The request was cancelled.")
    except BaseException as error:
        logger.error("A request failed: %s: %s", type(error).__name__, error, exc_info=error)
        return _Failed("Folio failed with an internal error. Its own output shows details.", is_internal=True)


def make_server(backend: Backend) -> tuple[Server[Any], Requests[Any]]:
    """The server of a library, for any transport, and its requests."""
    requests: Requests[Any] = Requests(backend)
    tools = {tool.name: tool for tool in TOOLS if backend.writes or not tool.writes}
    offered = list(map(_offered, tools.values()))

    async def list_tools(context: ServerRequestContext[Any], asked: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def call_tool(context: ServerRequestContext[Any], asked: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(asked.name)
        if tool is None:
            known = ", ".join(tools)
            raise MCPError(INVALID_PARAMS, f"There is no tool “{name_line(asked.name, 80)}”. There are {known}.")
        try:
            arguments = tool.arguments.model_validate(asked.arguments or {})
        except ValidationError as error:
            return _error(f"{_wrong(error)} The schema of the tool describes every argument.")
        result = await requests.work(context, tool.run, arguments)
        if isinstance(result, _Failed):
            return _error(result.message)
        text = TextContent(type="text", text=tool.show(result))
        return CallToolResult(content=[text], structured_content=result.model_dump(mode="json"))

    server = Server(
        "folio",
        title="Folio",
        version=__version__,
        description="Ask a folder of papers; everything shown cites its page.",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **_resource_handlers(requests),
        **_prompt_handlers(requests),
    )
    server.middleware.clear()  # OpenTelemetry's alone, which an environment could send anywhere
    return server, requests


def _offered(tool: Tool[Any, Any]) -> OfferedTool:
    return OfferedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_input_schema(tool.arguments),
        output_schema=tool.result.model_json_schema(mode="serialization", schema_generator=UntitledSchema),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=False,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )


def _input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema of arguments, the required ones first, without limits on lengths and forms, which are checked here:
    servers of small models make a grammar of each schema, and refuse a large one."""
    schema: dict[str, Any] = _without(_LIMITS, arguments.model_json_schema(schema_generator=UntitledSchema))
    required = schema.get("required", [])
    schema["properties"] = dict(sorted(schema["properties"].items(), key=lambda item: item[0] not in required))
    return schema


def _without(names: frozenset[str], value: Any) -> Any:
    if isinstance(value, list):
        return [_without(names, item) for item in value]
    if not isinstance(value, dict):
        return value
    # A property may have such a name, but its value is a schema.
    return {name: _without(names, item) for name, item in value.items() if name not in names or isinstance(item, dict)}


def _error(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def _wrong(error: ValidationError) -> str:
    """The first thing that is wrong with arguments, in words."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{name_line(place, 80) or 'The arguments'}: {what_is_wrong(first)}."


def _result(result: T | _Failed) -> T:
    """Raises MCPError for a request without a result."""
    if isinstance(result, _Failed):
        raise MCPError(INTERNAL_ERROR if result.is_internal else INVALID_PARAMS, result.message)
    return result


def _resource_handlers(requests: Requests[Any]) -> dict[str, Any]:
    async def list_all(
        context: ServerRequestContext[Any], asked: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        found = _result(await requests.work(context, resources.listed, asked.cursor if asked else None))
        each = [
            Resource(uri=item.uri, name=item.paper, title=item.title, description=item.about, mime_type="text/plain")
            for item in found.items
        ]
        return ListResourcesResult(resources=each, next_cursor=found.next_cursor)

    async def list_templates(
        context: ServerRequestContext[Any], asked: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(uri_template=each.uri, name=each.name, description=each.about, mime_type="text/plain")
                for each in resources.TEMPLATES
            ]
        )

    async def read(context: ServerRequestContext[Any], asked: ReadResourceRequestParams) -> ReadResourceResult:
        text = _result(await requests.work(context, resources.read, str(asked.uri)))
        return ReadResourceResult(
            contents=[TextResourceContents(uri=asked.uri, text=text, mime_type="text/plain")]
        )

    return {"on_list_resources": list_all, "on_list_resource_templates": list_templates, "on_read_resource": read}


def _prompt_handlers(requests: Requests[Any]) -> dict[str, Any]:
    async def list_all(context: ServerRequestContext[Any], asked: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[
                Prompt(
                    name=each.name,
                    title=each.title,
                    description=each.about,
                    arguments=[
                        PromptArgument(name=name, description=field.description, required=field.is_required())
                        for name, field in each.arguments.model_fields.items()
                    ],
                )
                for each in prompts.PROMPTS.values()
            ]
        )

    async def get(context: ServerRequestContext[Any], asked: GetPromptRequestParams) -> GetPromptResult:
        prompt = prompts.PROMPTS.get(asked.name)
        if prompt is None:
            known = ", ".join(prompts.PROMPTS)
            raise MCPError(INVALID_PARAMS, f"There is no prompt “{name_line(asked.name, 80)}”. There are {known}.")
        try:
            arguments: BaseModel = prompt.arguments.model_validate(asked.arguments or {})
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, _wrong(error)) from None
        text = _result(await requests.work(context, prompt.write, arguments))
        return GetPromptResult(
            description=prompt.about,
            messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))],
        )

    return {"on_list_prompts": list_all, "on_get_prompt": get}


@asynccontextmanager
async def stopping(requests: Requests[Any]) -> AsyncIterator[None]:
    """At the end, the threads that still work are told to stop, and what they worked on is closed."""
    try:
        yield
    finally:
        requests.close()
