"""Serves the tools by the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import TypeAdapter

from breakscan import __version__
from breakscan.report.answers.answer import answer_object, answer_text
from breakscan.report.answers.tool_words import DESCRIPTIONS, INSTRUCTIONS, TITLES, fault_words
from breakscan.report.printable import visible
from breakscan.rulebook.document import nearest
from breakscan.serve.agents.arguments import RootFolder, ToolFailure, input_schema, read_arguments
from breakscan.serve.agents.tools import ToolKind, Tools

logger = logging.getLogger(__name__)


def serve(root: Path, seconds: float, with_runs: bool) -> None:
    """Serves until the client closes standard input.  ``with_runs`` offers the tools that run programs."""
    try:
        anyio.run(_serve, RootFolder(root), seconds, with_runs)
    except BaseException as error:
        if not _is_lost_connection(error):
            raise


async def _serve(root: RootFolder, seconds: float, with_runs: bool) -> None:
    server = make_server({kind.name: kind for kind in Tools(root, seconds).kinds(with_runs)})
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def make_server(kinds: Mapping[str, ToolKind]) -> Server[Any]:
    """A server with these tools."""

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool_of(kind) for kind in kinds.values()])

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        async def progress(done: float, said: str) -> None:
            await context.session.report_progress(done, None, said or None)

        try:
            kind = kinds.get(params.name)
            if kind is None:
                hint = nearest(params.name, list(kinds))
                raise ToolFailure(f"there is no tool {visible(params.name)}{hint}; there are {', '.join(kinds)}")
            answer = await kind.call(read_arguments(kind.takes, params.arguments or {}), progress)
        except ToolFailure as failure:
            return _failed(str(failure))
        except Exception as error:
            logger.exception("%s failed", params.name)
            return _failed(fault_words(type(error).__name__))
        return CallToolResult(
            content=[TextContent(type="text", text=answer_text(answer))], structured_content=answer_object(answer)
        )

    return Server(
        "breakscan", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _is_lost_connection(error: BaseException) -> bool:
    """Whether the client has gone without closing its end: there is nobody left to tell."""
    inner = getattr(error, "exceptions", None)  # an ExceptionGroup, which Python 3.10 does not have
    return all(map(_is_lost_connection, inner)) if inner else isinstance(error, BrokenPipeError)


def tool_of(kind: ToolKind) -> Tool:
    """A tool as clients list it."""
    return Tool(
        name=kind.name,
        title=TITLES[kind.name],
        description=DESCRIPTIONS[kind.name],
        input_schema=input_schema(kind.takes),
        output_schema=_output_schema(kind),
        annotations=ToolAnnotations(
            read_only_hint=not (kind.runs_code or kind.writes),
            destructive_hint=kind.runs_code or kind.writes,
            idempotent_hint=not kind.runs_code,
            open_world_hint=kind.runs_code,
        ),
    )


def _output_schema(kind: ToolKind) -> dict[str, Any]:
    schema = TypeAdapter(kind.answers).json_schema(mode="serialization")
    return {"type": "object", **schema}


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
