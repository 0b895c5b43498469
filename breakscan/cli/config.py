"""``breakscan config``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from breakscan.cli.output import report_stream
from breakscan.cli.report_options import output_option
from breakscan.cli.selection_options import settings_at
from breakscan.rulebook.config import NearestSettings


@click.command()
@click.argument("path", default=".", type=click.Path(exists=True))
@click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of configuration files, for editors, and stop.")
@output_option
def config(path: str, config: Path | None, schema: bool, output: Path | None) -> None:
    """Show the settings that count for PATH, and the file that each comes from.

    PATH is a file, or a folder for the files in it; without it, the working directory. The settings are those of the
    nearest breakscan.toml, or pyproject.toml with a table [tool.breakscan], and of the files that it extends.
    """
    with report_stream(output) as stream:
        if schema:
            from breakscan.rulebook.config.config_file import config_schema

            stream.write(json.dumps(config_schema(), indent=2) + "\n")
            return
        from breakscan.cli.show_settings import settings_lines

        (settings,) = settings_at([path], NearestSettings(config))
        stream.writelines(f"{line}\n" for line in settings_lines(settings, os.getcwd()))
