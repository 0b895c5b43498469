"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from breakscan.cli.main import cli
from tools.site.markdown_tables import code, table


def commands_page() -> str:
    """Every command, with its help, arguments and options."""
    parts = [
        "# Commands\n",
        "What `breakscan COMMAND --help` prints. The pages under *Guides* explain what the commands are for.\n",
        *(part for context in _commands() for part in _command(context)),
    ]
    return "\n".join(parts)


def _commands() -> Iterator[click.Context]:
    """The commands, each after the group that it is in."""
    whole = click.Context(cli, info_name="breakscan", **cli.context_settings)
    yield whole
    for name in cli.list_commands(whole):
        command = cli.get_command(whole, name)
        assert command is not None
        if command.hidden:
            continue
        context = click.Context(command, parent=whole, info_name=name)
        yield context
        if isinstance(command, click.Group):
            for inner in command.commands.values():
                yield click.Context(inner, parent=context, info_name=inner.name)


def _command(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}\n"
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    # A form feed ends what is for users.
    yield _prose(inspect.cleandoc((command.help or "").partition("\f")[0])) + "\n"
    if isinstance(command, click.Group):
        names = command.list_commands(context)
        found = [(name, command.get_command(context, name)) for name in names]
        rows = [
            (
                f"[`{context.command_path} {name}`](#{context.command_path.replace(' ', '-')}-{name})",
                _prose(one.get_short_help_str(200)),
            )
            for name, one in found
            if one is not None and not one.hidden
        ]
        yield table(("command", "what it does"), rows)
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(code(names), _prose(" ".join(words.split()))) for names, words in filter(None, records)]
    yield table(("option", "meaning"), rows)


def _prose(text: str) -> str:
    """Help as Markdown: text of a terminal has no markup."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("[", "\\[").replace("<", "&lt;")
