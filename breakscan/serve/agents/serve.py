"""The server of the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import json
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

from breakscan import __version__
from breakscan.report.printable import visible
from breakscan.rulebook.document import nearest
from breakscan.serve.agents.arguments import RootFolder, ToolFailure, input_schema, read_arguments
from breakscan.serve.agents.command import fault_words
from breakscan.serve.agents.tools import ToolKind, Tools

logger = logging.getLogger(__name__)

_INSTRUCTIONS = (
    "Finds and fixes what breaks torch.compile. The loop: check (static), explain (runs a program), fix (a diff), "
    "verify (runs the program with and without the rewrites), then write; or tune, which finds the fastest equal "
    "program by itself. Then run the project's tests, and check again. rule explains what to write by hand where there "
    "is no rewrite. Where an answer has more, ask again with offset, and with last instead of a program. Paths are "
    "relative to the root of the server."
)


def serve(root: Path, seconds: float, with_runs: bool) -> None:
    """Serve until the client closes standard input.  ``with_runs`` offers the tools that run programs."""
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
    """Return a server with these tools."""

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
        text = json.dumps(answer, ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=answer)

    return Server(
        "breakscan", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _is_lost_connection(error: BaseException) -> bool:
    """Return True if the client has gone without closing its end."""
    inner = getattr(error, "exceptions", None)  # an ExceptionGroup, which Python 3.10 does not have
    return all(map(_is_lost_connection, inner)) if inner else isinstance(error, BrokenPipeError)


def tool_of(kind: ToolKind) -> Tool:
    """Return a tool as clients list it."""
    return Tool(
        name=kind.name,
        description=kind.description,
        input_schema=input_schema(kind.takes),
        annotations=ToolAnnotations(
            read_only_hint=not (kind.runs_code or kind.writes),
            destructive_hint=kind.runs_code or kind.writes,
            idempotent_hint=not kind.runs_code,
            open_world_hint=kind.runs_code,
        ),
    )


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
