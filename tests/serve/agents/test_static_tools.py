"""check, fix and rule by the client of the SDK: short answers, and nothing is run."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import jsonschema
from mcp import Client

from tests.cli.test_diff_option import git
from tests.serve.agents.conftest import MODEL

pytestmark = pytest.mark.process


def test_the_tools_say_what_they_do(connected: Callable[..., Any]) -> None:
    tools = {tool.name: tool for tool in connected(lambda client: client.list_tools()).tools}
    assert list(tools) == ["check", "explain", "fix", "verify", "tune", "rule"]
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert {name for name, one in hints.items() if one.read_only_hint} == {"check", "rule"}
    assert {name for name, one in hints.items() if one.destructive_hint} == {"explain", "fix", "verify", "tune"}
    assert {name for name, one in hints.items() if one.open_world_hint} == {"explain", "verify", "tune"}
    assert {name for name, tool in tools.items() if "RUNS CODE" in tool.description} == {"explain", "verify", "tune"}
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)


def test_without_runs_there_is_no_tool_that_runs_code(connected: Callable[..., Any]) -> None:
    async def work(client: Client) -> Any:
        listed = await client.list_tools()
        refused = await client.session.call_tool("explain", {"program": "program.py"})
        return [tool.name for tool in listed.tools], refused

    names, refused = connected(work, "--no-run")
    assert names == ["check", "fix", "rule"]
    assert refused.is_error
    assert "Unknown tool: explain" in refused.content[0].text


def test_check_answers_places_and_what_to_write_instead(project: Path, call: Callable[..., Any]) -> None:
    (project / "broken.py").write_text("def f(:\n", encoding="utf-8")
    result = call("check")
    answer = result.structured_content
    assert json.loads(result.content[0].text) == answer
    first = answer["findings"][0]
    assert first["site"] == "model.py:11:12"
    assert first["rule"] == "BRK101"
    assert "where" in first["rewrites"]
    assert "torch.where" in first["remedies"][0]
    assert answer["errors"][0].startswith("broken.py:1:7: ")


def test_a_rule_comes_with_its_document_and_the_verdicts_of_the_torch(call: Callable[..., Any]) -> None:
    answer = call("rule", {"rule": "tensor-item"}).structured_content
    assert answer["id"] == "BRK201"
    assert "## Compiles" in answer["document"]
    assert answer["verdicts"].keys() == {"plain", "loop", "try", "with"}


def test_what_is_left_out_is_asked_for_with_offset(connected: Callable[..., Any]) -> None:
    async def work(client: Client) -> list[Any]:
        calls = ({"limit": 1}, {"limit": 1, "offset": 1})
        return [(await client.call_tool("check", one)).structured_content for one in calls]

    first, last = connected(work)
    assert [one["site"] for answer in (first, last) for one in answer["findings"]] == [
        "model.py:11:12",
        "model.py:13:9",
    ]
    assert first["more"] == 1
    assert "more" not in last


def test_check_reports_only_what_is_new_since_a_commit(project: Path, call: Callable[..., Any]) -> None:
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        git(project, *words)
    text = MODEL.replace("        return x.sin()", "        x.sum().item()\n        return x.sin()")
    (project / "model.py").write_text(text, encoding="utf-8")
    answer = call("check", {"diff": "main"}).structured_content
    assert [one["rule"] for one in answer["findings"]] == ["BRK201"]
    assert answer["summary"]["known"] == 2


def test_fix_writes_only_if_it_is_asked_to(project: Path, connected: Callable[..., Any]) -> None:
    texts = []

    async def work(client: Client) -> None:
        shown = (await client.call_tool("fix", {"unsafe": True})).structured_content
        texts.append((project / "model.py").read_text(encoding="utf-8"))
        (file,) = shown["files"]
        assert "+        x = torch.where(" in file["diff"]
        assert "written" not in file
        assert [one["finding"]["site"] for one in file["unsafe"]] == ["model.py:11:12"]
        written = (await client.call_tool("fix", {"unsafe": True, "write": True})).structured_content
        assert written["files"][0]["written"] is True
        texts.append((project / "model.py").read_text(encoding="utf-8"))

    connected(work)
    assert texts[0] == MODEL
    assert "torch.where" in texts[1]


def test_nothing_of_the_project_is_run_and_torch_is_not_imported(
    project: Path, tmp_path: Path, connected: Callable[..., Any]
) -> None:
    """Not even where the root holds modules of the names that breakscan imports."""
    trap = f"import os\nos.mkdir({str(tmp_path / 'sprung')!r})\n"
    (tmp_path / "path" / "torch").mkdir(parents=True)
    (tmp_path / "path" / "torch" / "__init__.py").write_text(trap, encoding="utf-8")
    for name in ("breakscan", "click", "json", "torch"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(trap, encoding="utf-8")

    async def work(client: Client) -> list[Any]:
        calls = [("check", {}), ("fix", {}), ("fix", {"write": True}), ("rule", {"rule": "BRK101"})]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    assert not any(result.is_error for result in connected(work, path=[tmp_path / "path"]))
    assert not (tmp_path / "sprung").exists()


def test_links_out_of_the_root_are_not_followed(project: Path, tmp_path: Path, connected: Callable[..., Any]) -> None:
    (tmp_path / "outside.py").write_text(MODEL, encoding="utf-8")
    (project / "link.py").symlink_to(tmp_path / "outside.py")

    async def work(client: Client) -> list[Any]:
        return [await client.call_tool("check", {}), await client.call_tool("fix", {"write": True})]

    for result in connected(work):
        assert "link.py" not in result.content[0].text
    assert (tmp_path / "outside.py").read_text(encoding="utf-8") == MODEL


HOSTILE: list[tuple[str, Any]] = [
    ("check", {"paths": ["../.."]}),
    ("check", {"paths": ["/etc/passwd"]}),
    ("check", {"paths": ["pipe.py"]}),
    ("check", {"paths": ["a\0b"]}),
    ("check", {"paths": ["-x"]}),
    ("check", {"paths": ["x" * 4000]}),
    ("check", {"paths": ["x"] * 5000}),
    ("check", {"paths": "[" * 5000}),
    ("check", {"select": ["BRK999"]}),
    ("check", {"select": ["--write"]}),
    ("check", {"diff": "no-such-branch"}),
    ("check", {"limit": 10**40}),
    ("fix", {"rewrites": ["no-such-rewrite"]}),
    ("fix", {"paths": ["link.py"], "write": True}),
    ("fix", {"write": "perhaps"}),
    ("rule", {"rule": "BRK10"}),
    ("rule", {"rule": "branch-on-tensr"}),
    ("rule", {"rule": "../../etc/passwd"}),
    ("explain", {"program": "../outside.py"}),
    ("explain", {"program": "."}),
    ("explain", {"program": "missing.py"}),
    ("explain", {"program": "a; rm -rf", "as_module": True}),
    ("explain", {"program": "-c", "as_module": True}),
    ("explain", {"program": "program.py", "arguments": ["a\0b"]}),
    ("verify", {"program": "link.py"}),
    ("verify", {"program": "program.py", "seconds": -1}),
    ("verify", {"program": "program.py", "patch": "x", "select": ["BRK101"]}),
    ("tune", {"program": "program.py", "goal": "speed"}),
    ("no-such-tool", {}),
]


def test_hostile_calls_are_errors_with_a_remedy_and_the_server_lives(
    project: Path, tmp_path: Path, connected: Callable[..., Any]
) -> None:
    (tmp_path / "outside.py").write_text("", encoding="utf-8")
    (project / "link.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(project / "pipe.py")

    async def work(client: Client) -> list[Any]:
        results = [await client.session.call_tool(name, arguments) for name, arguments in HOSTILE]
        return [*results, await client.call_tool("rule", {"rule": "BRK101"})]

    *refused, answered = connected(work)
    for (name, arguments), result in zip(HOSTILE, refused, strict=True):
        text = result.content[0].text
        assert result.is_error, (name, arguments, text)
        assert "Traceback" not in text
        assert "fault" not in text, (name, arguments, text)
        assert 10 < len(text) < 3000
    assert not answered.is_error
