"""``breakscan completion``."""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_BREAKSCAN_COMPLETE"
"""What click looks for when a shell asks for completions."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def completion(ctx: click.Context, /, shell: str | None) -> None:
    """Print the script by which SHELL completes breakscan's commands, options and rules.

    Without SHELL, that of the environment variable SHELL.  To use it:

    \b
    bash, in ~/.bashrc:  eval "$(breakscan completion bash)"
    zsh, in ~/.zshrc:    eval "$(breakscan completion zsh)"
    fish:  breakscan completion fish > ~/.config/fish/completions/breakscan.fish
    """
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    of_shell = get_completion_class(name)
    assert of_shell is not None
    click.echo(of_shell(ctx.find_root().command, {}, "breakscan", VARIABLE).source())
