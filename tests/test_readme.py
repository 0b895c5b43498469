"""What the README shows is what breakscan prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from briefly import BRIEFLY

from breakscan.reports.verify.words import from_to

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shown(command: str) -> list[str]:
    """The lines that the README shows after a command, without the gaps and the time that it took."""
    block = re.search(rf"```\n\$ {re.escape(command)}\n(.*?)```", README, re.DOTALL)
    assert block is not None
    return [timeless(line) for line in block[1].splitlines() if line.strip() not in ("", "…")]


def timeless(line: str) -> str:
    return re.sub(r"\(\d+\.\d s\)", "(… s)", line)


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}


def static(command: str) -> subprocess.CompletedProcess[str]:
    """A command of the static half, run for the torch that the README speaks of."""
    words = [sys.executable, "-m", *command.split(), "--target-torch", "2.13"]
    return subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_check_prints_what_the_readme_shows() -> None:
    command = "breakscan check examples/vision.py"
    printed = [timeless(line) for line in static(command).stdout.splitlines()]
    assert [line for line in shown(command) if line not in printed] == []


@pytest.mark.process
def test_fix_prints_what_the_readme_shows() -> None:
    command = "breakscan fix examples/vision.py"
    done = static(command)
    printed = (done.stdout + done.stderr).splitlines()
    assert [line for line in shown(command) if line not in printed] == []


@pytest.mark.torch
def test_explain_prints_what_the_readme_shows() -> None:
    pytest.importorskip("torch")
    command = "breakscan explain examples/vision.py --images 42"
    done = subprocess.run(
        [sys.executable, "-m", *command.split(), "--backend", "eager"],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = (done.stdout + done.stderr).splitlines()
    for timed in (
        "examples/vision.py finished with exit status 0 ",
        "   Costs: ",
        "Removing all of them could save at most ",
        "Recompiles cost most: ",
    ):
        assert any(line.startswith(timed) for line in printed)
        printed += [line for line in shown(command) if line.startswith(timed)]
    # Without Inductor, compiling again takes less than what is worth a word.
    again = re.compile(r"   Compiling again took [\d.]+ s of [\d.]+ s spent on compiling\.")
    shown_lines, printed = (
        [re.sub(r", [\d.]+ s of compiling\.$", ".", line) for line in lines] for lines in (shown(command), printed)
    )
    assert sum(map(bool, map(again.fullmatch, shown_lines))) == 1
    assert [line for line in shown_lines if line not in printed and not again.fullmatch(line)] == []


@pytest.mark.slow
@pytest.mark.torch
def test_verify_counts_what_the_readme_shows() -> None:
    """All but the times, which Inductor's compiles make long to wait for."""
    command = "breakscan verify examples/vision.py"
    words = [
        *BRIEFLY,
        "verify",
        "--format",
        "json",
        "examples/vision.py",
        "--backend",
        "eager",
    ]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = {}
    for proof in json.loads(done.stdout)["proofs"]:
        pairs = [proof[key] for key in ("breaks", "graphs")]
        # What is accepted with others has no counts of its own.
        counts = [] if proof["accepted_in"] else [from_to(pair["before"], pair["after"]) for pair in pairs]
        told[proof["label"]] = counts
    # A verdict that is too long for the line of its change has a line of its own.
    rows = [re.split(r" {2,}", line.strip()) for line in shown(command) if re.match(r" (?!change)\S", line)]
    assert {label: [] if "accepted with all" in rest else rest[:2] for label, *rest in rows} == told


@pytest.mark.parametrize("marker", ["main-job", "tests"])
def test_the_two_commands_are_where_ci_looks_for_them(marker: str) -> None:
    assert re.search(rf"<!-- {marker} -->\n```sh\npython -m pip install [^\n]+\n```\n<!-- end -->", README)
