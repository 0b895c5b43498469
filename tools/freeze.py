"""Writes the outputs of breakscan for fixed inputs into a folder, and compares two such folders.

``python -m tools.freeze write FOLDER`` runs the command line of the interpreter given by ``--python`` on programs of
the checkout given by ``--checkout``, and writes one text file per output; ``--only check --only fix/optim`` limits it
to the outputs whose names start so.  ``python -m tools.freeze compare A B`` prints a diff and exits with 1 if there is
a difference.

Times, sizes and paths of the machine are replaced.  Outputs of runs also lose the order of what may be sorted by time;
``report`` on the recordings of the gallery keeps it, as the outputs of a recording are the same each time.  ``write``
keeps the recordings that it makes in ``FOLDER/recordings``: ``--recordings`` reports them again, without running them.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

HOME = "/home/user/breakscan"
"""The folder of the checkout in the recordings of the gallery."""

PACKAGES = ("nn/modules", "distributions", "optim")
"""Folders of torch that are checked as packages."""

EXAMPLES = ("kv_cache", "training", "vision")
BEHAVIOURS = (
    "branch_splits",
    "break_in_loop",
    "cascade",
    "export_depends_on_data",
    "failure_in_trace",
    "forced_eager",
    "graphs_and_runs",
    "guards",
    "hidden_break",
    "optimizer_step",
    "recompile_limit",
    "rest_runs_eager",
    "specialised_size",
)
"""Programs that are run, of ``tests/recording/behaviours``: none compiles kernels, which takes longest."""

LOG_FORMATS = ("github", "sarif", "gitlab")

SMALL_PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        y = x.sin()
    else:
        y = x.cos()
    print("called")
    return y * 2


for _ in range(4):
    f(torch.ones(8))
"""

SURVEY = """stages = ["explain"]

[[program]]
files = "behaviours/b*_splits.py"

[[program]]
files = "behaviours/cascade.py"
"""


@dataclass(frozen=True)
class Step:
    """A command and the output that it makes."""

    output: str
    arguments: tuple[str, ...]
    timed: bool = False
    """The command runs a program, so that times, and what is sorted by them, vary."""

    file: str | None = None
    """The file that has the output, if it is not standard output."""


@dataclass(frozen=True)
class Checkout:
    """The breakscan that an interpreter imports, and the programs that it is run on, copied to a folder."""

    python: str
    source: Path
    inputs: Path
    recordings: Path | None

    @cached_property
    def installed(self) -> tuple[Path, Path]:
        """The folders of breakscan and torch."""
        code = "import json, breakscan; from importlib.util import find_spec as f"
        code += "; print(json.dumps([f(n).submodule_search_locations[0] for n in ('breakscan', 'torch')]))"
        breakscan, torch = json.loads(self._python("-c", code).stdout)
        return Path(breakscan), Path(torch)

    def copy_inputs(self) -> None:
        """Copies all inputs, so that their paths are the same for every checkout."""
        homes = [self.source / "tests" / room / "behaviours" for room in ("recording", "record", "runtime")]
        shutil.copytree(next(filter(Path.is_dir, homes)), self.inputs / "behaviours")
        shutil.copytree(self.source / "examples", self.inputs / "examples")
        for name in PACKAGES:
            shutil.copytree(self.installed[1] / name, self.inputs / "packages" / Path(name).name)
        for archive in (self.source / "docs/gallery").glob("*.tar.xz"):
            with tarfile.open(archive) as tar:
                tar.extractall(self.inputs / "gallery", filter="data")
        if self.recordings:
            shutil.copytree(self.recordings, self.inputs / "recorded")
        self.inputs.joinpath("small.py").write_text(SMALL_PROGRAM, encoding="utf-8")
        self.inputs.joinpath("survey.toml").write_text(SURVEY, encoding="utf-8")

    def output(self, step: Step) -> str:
        """Runs a step and returns its normalised output."""
        done = self._python("-m", "breakscan", *step.arguments)
        text = done.stdout
        if step.file:
            path = self.inputs / step.file
            text = path.read_text(encoding="utf-8") if path.is_file() else done.stderr
        text = normalise(self.without_paths(text), timed=step.timed)
        if done.stderr and not step.timed:
            text += f"\n--- standard error\n{normalise(self.without_paths(done.stderr), timed=False)}"
        return f"{text.rstrip()}\n--- exit status {done.returncode}\n"

    def without_paths(self, text: str) -> str:
        """Replaces paths that differ between machines and checkouts."""
        text = text.replace(str(self.inputs), "INPUTS").replace(self.inputs.name, "INPUTS")
        text = text.replace(str(self.installed[0].parent), "CHECKOUT")
        return re.sub(r"[^\s\"'=(:<>]*/site-packages\b", "SITE", text)

    def keep_recordings(self, target: Path) -> None:
        """Keeps the recordings of the programs that were run."""
        for path in filter(Path.is_file, (self.inputs / "recordings").rglob("*")):
            kept = target / path.relative_to(self.inputs / "recordings")
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(path.read_text(encoding="utf-8").replace(str(self.inputs), HOME), encoding="utf-8")

    def help_steps(self, *command: str) -> Iterator[Step]:
        """The help of a command and of its subcommands."""
        yield Step("-".join(["help/breakscan", *command]), (*command, "--help"))
        lines = self._python("-m", "breakscan", *command, "--help").stdout.partition("\nCommands:\n")[2]
        for name in re.findall(r"^  (\S+)", lines, re.M):
            yield from self.help_steps(*command, name)

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TORCH", "PYTHON"))}
        environment |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
        for name in ("BREAKSCAN_CACHE_DIR", "BREAKSCAN_RUNS", "TORCHINDUCTOR_CACHE_DIR"):
            environment[name] = str(self.inputs / "caches" / name)
        words = [self.python, *arguments]
        return subprocess.run(words, cwd=self.inputs, env=environment, capture_output=True, encoding="utf-8")


def tasks(checkout: Checkout) -> Iterator[tuple[Step, ...]]:
    """All steps; those of one tuple run one after the other."""
    yield from ((step,) for step in [*static_steps(), *checkout.help_steps()])
    for folder, formats in (("gallery", LOG_FORMATS), ("recorded", ())):
        for path in sorted((checkout.inputs / folder).glob("*/")):
            yield from ((step,) for step in report_steps(f"{folder}/{path.name}", formats))
    pair = ("diff", "gallery/vision", "gallery/generation", "--source-root", f"{HOME}={checkout.inputs}")
    yield from ((Step(f"gallery/diff.{name}", (*pair, "--format", name)),) for name in ("terminal", "json", "markdown"))
    verify = ("verify", "--format", "json", "--output", "verify.json", "small.py")
    yield (Step("verify/small.json", verify, True, "verify.json"),)
    survey = ("survey", "run", "survey.toml", "--store", "survey.db", "--jobs", "1", "--format", "json")
    reports = [("survey", "report", "survey.db", "--format", name) for name in ("terminal", "markdown")]
    yield (
        Step("survey/run.json", survey, True),
        *(Step(f"survey/report.{words[-1]}", words, True) for words in reports),
    )
    for program in [*(f"examples/{name}.py" for name in EXAMPLES), *(f"behaviours/{name}.py" for name in BEHAVIOURS)]:
        yield tuple(explain_steps(program))


def static_steps() -> Iterator[Step]:
    """Commands that run no program: ``check``, ``fix``, ``rule``, ``rules``, ``config``."""
    every = ("--regions", "all", "--no-cache", "--jobs", "1")
    for path in ("examples", "behaviours", *(f"packages/{Path(name).name}" for name in PACKAGES)):
        for name in ("full", "json", *(("concise", *LOG_FORMATS) if path == "examples" else ())):
            yield Step(f"check/{Path(path).name}.{name}", ("check", *every, "--format", name, path))
    yield Step("check/default.concise", ("check", "--no-cache", "--format", "concise", "examples", "behaviours"))
    add = ("check", *every, "--baseline", "baseline.json", "--baseline-add", "examples")
    yield Step("check/baseline.file", add, file="baseline.json")
    for path in ("examples", "behaviours", "packages/distributions"):
        for name in ("diff", "json"):
            arguments = ("fix", *every, "--unsafe", "--format", name, path)
            yield Step(f"fix/{Path(path).name}.{name}", arguments)
    yield Step("fix/safe.diff", ("fix", "--no-cache", "examples", "behaviours"))
    for name in ("text", "json"):
        yield Step(f"rule/BRK101.{name}", ("rule", "BRK101", "--format", name))
    yield Step("rule/rules.table", ("rules",))
    yield Step("rule/rules.json", ("rule", "BRK7", "--format", "json"))
    yield Step("rule/config", ("config", "examples"))


def report_steps(recording: str, more_formats: tuple[str, ...]) -> Iterator[Step]:
    """``report`` on a recording, in many formats."""
    command = ("report", recording, "--source-root", f"{HOME}=.")
    for name in ("terminal", "json", "markdown", "html", *more_formats):
        yield Step(f"{recording}.{name}", (*command, "--format", name))
    yield Step(f"{recording}.all", (*command, "--show", "all"))


def explain_steps(program: str) -> Iterator[Step]:
    """``explain`` on a program: JSON, and of one program each format that reports a run."""
    name, options = Path(program).stem, ("--backend", "eager") if program.startswith("examples/") else ()
    save: tuple[str, ...] = ("--save", f"recordings/{name}")
    for format_ in ("json", "terminal", "markdown") if name == BEHAVIOURS[0] else ("json",):
        output = f"explain/{name}.{format_}"
        command = ("explain", "--format", format_, "--output", f"{name}.{format_}", *save, program, *options)
        yield Step(output, command, True, f"{name}.{format_}")
        save = ()


TIME = re.compile(r"\d[\d,]*(?:\.\d+)? ?(?:ns|µs|us|ms|s|min|h)\b(?: \d+ (?:s|min)\b)?")
SIZE = re.compile(r"\d[\d,]*(?:\.\d+)? ?(?:[kMGT]i?)?(?:B|bytes)\b")
NUMBER = re.compile(r"\d+(?:\.\d+)?%|(?<![\w.])\d+\.\d+(?![\w.])|\d{12,}")
MEASURED = re.compile(r"bytes|memory|pid|seconds|began|ended")
TREES = ("parts", "compile_time")
"""Keys of what time was spent on: what is too short to be measured is missing there."""


def normalise(text: str, *, timed: bool) -> str:
    """Replaces what differs between two runs.  JSON, also in a page, is indented, with sorted keys."""
    island = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    try:
        document = json.loads(island[1] if island else text)
    except ValueError:
        return _timed_text(text) if timed else re.sub(r"\(\d[\d.]* m?s\)", "(TIME)", text)
    document = _without_times_in(document) if timed else document
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)


def _timed_text(text: str) -> str:
    """One sentence a line, since times move the ends of lines; paragraphs and rows sorted, since times order them."""
    parts = (part.strip("\n") for part in re.split(r"\n\s*\n", _without_times(text)))
    tables = ("|", "<", "#")
    return "\n\n".join(sorted(_sorted_rows(part) if part.startswith(tables) else _sentences(part) for part in parts))


def _sentences(paragraph: str) -> str:
    return re.sub(r"(?<=\.) ", "\n", " ".join(paragraph.split()))


def _sorted_rows(table: str) -> str:
    return "\n".join(sorted(table.splitlines()))


def _without_times(text: str) -> str:
    return NUMBER.sub("NUMBER", SIZE.sub("SIZE", TIME.sub("TIME", text)))


def _without_times_in(value: Any, key: str = "") -> Any:
    """A JSON value.  A list whose items have times is sorted, since it may be sorted by them."""
    if isinstance(value, dict):
        return {name: "TREE" if name in TREES else _without_times_in(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        items = [_without_times_in(item) for item in value]
        texts = [json.dumps(item, sort_keys=True) for item in items if isinstance(item, dict | list)]
        return [json.loads(text) for text in sorted(texts)] if any('"NUMBER"' in text for text in texts) else items
    if isinstance(value, float) or (type(value) is int and (value >= 10**6 or MEASURED.search(key))):
        return "NUMBER"
    return _without_times(value) if isinstance(value, str) else value


def schema_keys(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The dotted paths of the keys of a JSON schema, with their types."""
    for name, inner in [*schema.get("properties", {}).items(), *schema.get("$defs", {}).items()]:
        kind = next((inner[key] for key in ("$ref", "const", "enum", "type") if key in inner), "")
        yield f"{path}{name}: {json.dumps(kind)}"
        yield from schema_keys(inner, f"{path}{name}.")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from schema_keys(schema[key], f"{path}[].")
    for inner in [*schema.get("anyOf", []), *schema.get("oneOf", [])]:
        yield from schema_keys(inner, path)


def write(checkout: Checkout, folder: Path, only: list[str], jobs: int) -> None:
    """Writes the outputs whose names start with one of ``only``."""

    def run(steps: tuple[Step, ...]) -> None:
        for step in steps:
            _write(folder, step.output, checkout.output(step))

    wanted = [steps for steps in tasks(checkout) if any(_is_wanted(step.output, only) for step in steps)]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, wanted))
    for path in checkout.installed[0].rglob("*.schema.json"):
        if _is_wanted(name := f"schemas/{path.name.removesuffix('.schema.json')}", only):
            _write(folder, name, "\n".join(sorted(schema_keys(json.loads(path.read_text(encoding="utf-8"))))) + "\n")
    checkout.keep_recordings(folder / "recordings")


def _write(folder: Path, output: str, text: str) -> None:
    path = folder / f"{output}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _is_wanted(output: str, only: list[str]) -> bool:
    return not only or output.startswith(tuple(only))


def compare(before: Path, after: Path, only: list[str]) -> Iterator[str]:
    """The lines of a unified diff of two folders."""
    names = {str(path.relative_to(folder)) for folder in (before, after) for path in folder.rglob("*.txt")}
    for name in sorted(name for name in names if _is_wanted(name, only)):
        old, new = (_lines(folder / name) for folder in (before, after))
        yield from difflib.unified_diff(old, new, str(before / name), str(after / name), lineterm="")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.freeze", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writes = commands.add_parser("write", help="write outputs into a folder")
    writes.add_argument("folder", type=Path)
    writes.add_argument("--python", default=sys.executable, help="the interpreter that imports breakscan")
    writes.add_argument("--checkout", type=Path, default=Path(), help="where the programs are  [working directory]")
    writes.add_argument("--recordings", type=Path, help="the recordings of another folder, to be reported as well")
    writes.add_argument("--jobs", type=int, default=2, help="commands that run at the same time  [2]")
    compares = commands.add_parser("compare", help="print a diff of two folders")
    compares.add_argument("before", type=Path)
    compares.add_argument("after", type=Path)
    for command in (writes, compares):
        command.add_argument(
            "--only", action="append", default=[], help="outputs whose names start so; may be repeated"
        )
    arguments = parser.parse_args()
    if arguments.command == "compare":
        lines = list(compare(arguments.before, arguments.after, arguments.only))
        print("\n".join(lines) or "no difference")
        return bool(lines)
    with tempfile.TemporaryDirectory(prefix="breakscan-freeze-") as inputs:
        checkout = Checkout(
            arguments.python, arguments.checkout.resolve(), Path(inputs).resolve(), arguments.recordings
        )
        checkout.copy_inputs()
        write(checkout, arguments.folder, arguments.only, arguments.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
