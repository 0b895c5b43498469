"""``breakscan mcp`` and ``breakscan server``."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from breakscan.cli.options import declared, flag, option


@contextlib.contextmanager
def _required(what: str, extra: str, packages: Sequence[str]) -> Iterator[None]:
    """A context of imports.  Raises ClickException, with the extra to install, if one of the packages is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        said = f"{what}: install breakscan with its extra {extra!r}, as in 'breakscan[{extra}]'"
        raise click.ClickException(said) from error


@click.command()
@declared
def mcp(
    root: Path = option(
        "--root",
        "The only folder whose files the tools read, change and run.  [working directory]",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        default=".",
    ),
    seconds: float = option(
        "--seconds", "The time limit of a program.  [300]", type=click.FloatRange(min=0, min_open=True), default=300.0
    ),
    no_run: bool = flag("--no-run", "Leave out the tools that run programs: explain, verify and tune."),
) -> None:
    """Serve check, explain, fix, verify, tune and rule to coding agents by the Model Context Protocol, on standard
    input and output.

    check, fix and rule run no code; the others run programs with your permissions.  Needs the extra 'mcp'.
    """
    with _required("the MCP server needs the package mcp", "mcp", ("mcp", "mcp_types", "pydantic", "anyio")):
        from breakscan.serve.agents.server import serve
    serve(root, seconds, not no_run)


@click.command()
def server() -> None:
    """Serve findings to an editor by the Language Server Protocol, on standard input and output.

    Needs the extra 'server'.
    """
    with _required("the language server needs pygls", "server", ("pygls", "lsprotocol")):
        from breakscan.serve.editor.language_server import make_server
    make_server().start_io()
    sys.stdout = None  # pygls has closed it
