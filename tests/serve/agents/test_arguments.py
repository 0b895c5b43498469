"""Arguments of calls: read, or refused in words that help."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
from mcp.server.mcpserver.exceptions import ToolError

from breakscan.serve.agents.server import RootFolder, make_server


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an asynchronous function, in a thread: a browser of other tests leaves a loop in this one."""
    with ThreadPoolExecutor() as threads:
        return threads.submit(anyio.run, function, *arguments).result()


def call(folder: Path, tool: str, **arguments: Any) -> Any:
    return run(make_server(RootFolder(folder), 1.0, True).call_tool, tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("check", {"path": ["x"]}, "path\n.*Extra inputs are not permitted"),
        ("check", {"limit": 0}, "limit\n"),
        ("check", {"limit": "many"}, "limit\n"),
        ("check", {"paths": {"a": 1}}, "paths\n"),
        ("check", {"paths": [""]}, r"paths\.0\n"),
        ("check", {"diff": "--output=x"}, "diff\n"),
        ("rule", {}, "rule\n"),
        ("rule", {"rule": "--help"}, "rule\n"),
        ("explain", {}, "name a program"),
        ("explain", {"program": "a.py", "last": True}, "name a program"),
        ("explain", {"program": "a.py", "seconds": float("nan")}, "seconds\n"),
        ("check", {"paths": '["a.py", "b.py"]'}, r"cannot read a\.py"),
        ("check", {"paths": "a.py"}, r"cannot read a\.py"),
        ("check", {"paths": "3"}, "cannot read 3"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, tool: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        call(tmp_path, tool, **arguments)


def test_schemas_are_short_and_describe_each_argument(tmp_path: Path) -> None:
    for tool in run(make_server(RootFolder(tmp_path), 1.0, True).list_tools):
        assert all(one["description"] for one in tool.input_schema["properties"].values())
        assert tool.input_schema["additionalProperties"] is False
        assert len(json.dumps(tool.input_schema)) < 2200
