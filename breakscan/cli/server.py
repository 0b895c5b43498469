"""``breakscan server``."""

from __future__ import annotations

import sys

import click


@click.command()
def server() -> None:
    """Serve findings to an editor by the Language Server Protocol, on standard input and output.

    Needs the extra: pip install 'breakscan[server]'.
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
