"""What an answer of ``breakscan mcp`` costs in tokens, beside the same command's terminal report and its JSON.

``python benchmarks/answer_tokens.py [--static PACKAGE]... [--program FILE]...`` from the root of the repository.  Of
each package (a folder of sources, which is the root of the server), ``check`` and ``fix`` are asked for all of it; of
each program, ``explain`` and ``verify``; and ``rule`` for BRK101.  Answers are asked for by the SDK's client over
standard input and output, with default arguments: what an agent sees first.

Tokens are those of o200k_base, by the package bpe-openai, which carries its vocabulary.  Other models count otherwise,
so compare the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from bpe_openai import get_encoding
from mcp import Client, StdioServerParameters, stdio_client

ENCODING = get_encoding("o200k_base")
HOME = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"PYTHONPATH": str(HOME), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Case:
    """A tool with its arguments, and the command line that asks for the same."""

    root: Path
    tool: str
    arguments: dict[str, Any]
    words: list[str]


def tokens(text: str) -> int:
    return len(ENCODING.encode(text))


def cases(packages: list[Path], programs: list[Path]) -> list[Case]:
    made = [Case(HOME, "rule", {"rule": "BRK101"}, ["rule", "BRK101"])]
    for root in packages:
        made.append(Case(root, "check", {}, ["check", "."]))
        made.append(Case(root, "fix", {}, ["fix", "."]))
    for path in programs:
        runs = ("explain", "verify")
        made += [Case(path.parent, tool, {"program": path.name}, [tool, path.name]) for tool in runs]
    return made


async def answered(case: Case) -> tuple[int, int]:
    """The tokens of the text and of the structured content."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "breakscan", "mcp", "--root", str(case.root)], env=ENVIRONMENT
    )
    async with Client(stdio_client(server)) as client:
        result = await client.call_tool(case.tool, case.arguments)
    if result.is_error:
        raise SystemExit(f"{case}: {result.content[0]}")
    (text,) = [one.text for one in result.content if one.type == "text"]
    return tokens(text), tokens(compact(result.structured_content))


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def command(case: Case, format_: str | None) -> int:
    """The tokens of what a command writes: all of it, or the JSON."""
    environment = {**os.environ, **ENVIRONMENT}
    start = [sys.executable, "-m", "breakscan", case.words[0]]
    if format_ is None:
        words, output = [*start, *case.words[1:]], None
    elif case.tool == "rule":
        words, output = [*start, "--format", format_, *case.words[1:]], None
    else:
        output = Path(tempfile.mkdtemp(), "report")
        words = [*start, "--format", format_, "--output", str(output), *case.words[1:]]
    done = subprocess.run(
        words, cwd=case.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return tokens(output.read_text(encoding="utf-8") if output else done.stdout)


async def definitions() -> tuple[int, int]:
    """The tokens of all tools as a client lists them: what a model reads, and with the schemas of answers."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "breakscan", "mcp"], env=ENVIRONMENT)
    async with Client(stdio_client(server)) as client:
        listed = [tool.model_dump(exclude_none=True) for tool in (await client.list_tools()).tools]
    read = [{key: tool[key] for key in ("name", "description", "input_schema")} for tool in listed]
    return tokens(compact(read)), tokens(compact(listed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--static", type=Path, action="append", default=[])
    parser.add_argument("--program", type=Path, action="append", default=[])
    given = parser.parse_args()
    read, listed = anyio.run(definitions)
    print(f"tool definitions: {read} tokens, {listed} with the schemas of answers")
    print("| tool | on | answer, text | answer, structured | terminal | JSON |\n| --- | --- | --- | --- | --- | --- |")
    for case in cases([path.resolve() for path in given.static], [path.resolve() for path in given.program]):
        text, structured = anyio.run(answered, case)
        on = case.arguments.get("program") or case.arguments.get("rule") or case.root.name
        numbers = [text, structured, command(case, None), command(case, "json")]
        print(f"| `{case.tool}` | {on} | {' | '.join(f'{number:,}' for number in numbers)} |", flush=True)


if __name__ == "__main__":
    main()
