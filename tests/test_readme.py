"""What the README and the tour show is what breakscan prints."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from briefly import BRIEFLY

from breakscan.report.verify import from_to
from breakscan.rulebook.ledger import measured_versions

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")


def shown(command: str, page: str = TOUR) -> list[str]:
    """The lines that a page shows after a command, without the gaps and the time that it took."""
    block = re.search(rf"```\n\$ {re.escape(command)}\n(.*?)```", page, re.DOTALL)
    assert block is not None
    return [timeless(line) for line in block[1].splitlines() if line.strip() not in ("", "…")]


def timeless(line: str) -> str:
    return re.sub(r"\(\d+\.\d s\)", "(… s)", line)


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "COLUMNS"}


def static(command: str, torch: str = "2.13") -> subprocess.CompletedProcess[str]:
    """A command of the static half, run for the torch that the tour speaks of."""
    words = [sys.executable, "-m", *command.split(), "--target-torch", torch]
    return subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.parametrize(("page", "torch"), [(README, measured_versions()[-1]), (TOUR, "2.13")], ids=["readme", "tour"])
def test_check_prints_what_is_shown(page: str, torch: str) -> None:
    """The README shows what a fresh installation prints, which has no torch: the newest that was measured counts."""
    command = "breakscan check examples/vision.py"
    printed = [timeless(line) for line in static(command, torch).stdout.splitlines()]
    # The number of edits is for a terminal alone.
    lines = [line for line in shown(command, page) if not line.startswith("'breakscan fix'")]
    assert len(lines) >= 10
    assert [line for line in lines if line not in printed] == []


def test_the_readme_is_one_screen_that_begins_with_a_command() -> None:
    lines = README.splitlines()
    assert len(lines) <= 80
    assert "```sh" in lines[:25]


@pytest.mark.process
def test_fix_prints_what_the_tour_shows() -> None:
    command = "breakscan fix examples/vision.py"
    done = static(command)
    printed = (done.stdout + done.stderr).splitlines()
    assert [line for line in shown(command) if line not in printed] == []


@pytest.mark.torch
def test_explain_prints_what_the_tour_shows() -> None:
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
        "   Takes: ",
        r"[\d.]+ of [\d.]+ .?s a call of Detector.forward pass outside graphs",
        "backward are not in it",
    ):
        assert any(re.match(timed, line) for line in printed)
        printed += [line for line in shown(command) if re.match(timed, line)]
    # Without Inductor, compiling again takes less than what is worth a word.
    again = re.compile(r"   Compiling again took [\d.]+ s of [\d.]+ s spent on compiling\.")
    shown_lines, printed = (
        [re.sub(r", [\d.]+ s of compiling\.$", ".", line) for line in lines] for lines in (shown(command), printed)
    )
    assert sum(map(bool, map(again.fullmatch, shown_lines))) == 1
    assert [line for line in shown_lines if line not in printed and not again.fullmatch(line)] == []


@pytest.mark.slow
@pytest.mark.torch
def test_verify_counts_what_the_tour_shows() -> None:
    """All but the times, which Inductor's compiles make long to wait for."""
    command = "breakscan verify examples/vision.py"
    words = [*BRIEFLY, "verify", "--format", "json", "examples/vision.py", "--backend", "eager"]
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = {
        proof["label"]: [from_to(proof[key]["before"], proof[key]["after"]) for key in ("breaks", "graphs")]
        for proof in json.loads(done.stdout)["proofs"]
        if not proof["accepted_in"]
    }
    # A verdict that is too long for the line of its change has a line of its own.  What is accepted with others has no
    # counts, unless all together were too noisy to be accepted.
    rows = [re.split(r" {2,}", line.strip()) for line in shown(command) if re.match(r" (?!change)\S", line)]
    assert {label: rest[:2] for label, *rest in rows if rest[1:]}.items() <= told.items()
    assert told.keys() <= {label for label, *_ in rows}


@pytest.mark.parametrize("marker", ["main-job", "tests"])
def test_the_two_commands_are_where_ci_looks_for_them(marker: str) -> None:
    assert re.search(rf"<!-- {marker} -->\n```sh\npython -m pip install [^\n]+\n```\n<!-- end -->", README)
