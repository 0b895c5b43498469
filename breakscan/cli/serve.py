"""``breakscan mcp`` and ``breakscan server``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from breakscan.cli.options import declared, option

PACKAGES = ("mcp", "mcp_types", "pydantic", "anyio")


@click.command()
@declared
def mcp(
    root: Path = option(
        "--root",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        default=".",
        help="The only folder whose files the tools read, change and run.  [working directory]",
    ),
    seconds: float = option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True),
        default=300.0,
        help="The time limit of a program.  [300]",
    ),
    no_run: bool = option(
        "--no-run", is_flag=True, help="Leave out the tools that run programs: explain, verify and tune."
    ),
) -> None:
    """Serve check, explain, fix, verify, tune and rule to coding agents by the Model Context Protocol, on standard
    input and output.

    check, fix and rule run no code; the others run programs with your permissions.  Needs the extra 'mcp'.
    """
    try:
        from breakscan.serve.agents.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in PACKAGES:
            raise
        raise click.ClickException(
            "the MCP server needs the package mcp: install breakscan with its extra 'mcp', as in 'breakscan[mcp]'"
        ) from error
    serve(root, seconds, not no_run)


@click.command()
def server() -> None:
    """Serve findings to an editor by the Language Server Protocol, on standard input and output.

    Needs the extra 'server'.
    """
    try:
        from breakscan.serve.editor.language_server import make_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException(
            "the language server needs pygls: install breakscan with its extra 'server', as in 'breakscan[server]'"
        ) from error
    make_server().start_io()
    sys.stdout = None  # pygls has closed it
