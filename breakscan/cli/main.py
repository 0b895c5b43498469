"""The command group.  A command's module is imported when the command runs, which keeps the start fast."""

import importlib

import click

from breakscan import __version__

COMMANDS = {
    "tune": ("breakscan.cli.tune", "Find the fastest equal program, and show it as a patch."),
    "fix": ("breakscan.cli.fix", "Rewrite what breaks the graph, as a diff or in the files."),
    "verify": ("breakscan.cli.verify", "Run a program with and without rewrites, and compare results and speed."),
    "bench": ("breakscan.cli.bench", "Time a program eager and compiled with other backends, modes and settings."),
    "explain": ("breakscan.cli.explain", "Run a program, and show where torch.compile broke, why, and the cost."),
    "check": ("breakscan.cli.check", "Show where torch.compile will break the graph, recompile or fall back to eager."),
    "rule": ("breakscan.cli.rules", "Explain a rule: why, what to write instead, and torch's verdicts."),
    "rules": ("breakscan.cli.rules", "List the rules, or replay their examples through the installed torch."),
    "report": ("breakscan.cli.report", "Report a run from a saved recording or a TORCH_TRACE log."),
    "upgrade": ("breakscan.cli.upgrade", "Run a program on another torch as well, and show what changes."),
    "diff": ("breakscan.cli.diff", "Show what has changed from one run to another."),
    "survey": ("breakscan.cli.survey", "Run breakscan over many programs and models, and report them in one table."),
    "server": ("breakscan.cli.serve", "Serve findings to an editor, by the Language Server Protocol."),
    "mcp": ("breakscan.cli.serve", "Serve check, explain, fix, verify, tune and rule to coding agents, by MCP."),
    "config": ("breakscan.cli.config", "Show the settings that apply to a file, and where they come from."),
}
SECTIONS = (
    ("Make a program faster", ("tune", "fix", "verify", "bench")),
    ("Find what is not compiled", ("explain", "check", "rule", "rules")),
    ("Compare and gate runs", ("report", "diff", "upgrade", "survey")),
    ("Editors, agents, settings", ("server", "mcp", "config")),
)
"""The commands by task, as the help lists them."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line of help, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name][0]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from breakscan.rulebook.document import nearest

            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for task, names in SECTIONS:
            with formatter.section(task):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="breakscan", message="%(prog)s %(version)s")
def cli() -> None:
    """Show where torch.compile breaks the graph, recompiles or falls back to eager, why, and what to write instead."""
