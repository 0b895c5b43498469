"""Compares what breakscan and similar tools report for behaviours in ``tests/recording/behaviours``, by the same facts.

    python -m venv peers && peers/bin/pip install -r benchmarks/peers.txt
    python benchmarks/completeness.py --peers peers/bin [BEHAVIOUR ...] [--tools TOOL ...] [--keep FOLDER]
    python benchmarks/completeness.py --judge FOLDER

Each program is run once under each tool, in a separate folder, with empty compiler caches.  The output is a Markdown
table with totals: a tool *reported* a behaviour, reported it *partly*, or did not report it; the criteria are in
``completeness_facts.py``, and behaviours without any are left out: ``tests/recording/test_behaviours.py`` tests all of
them.  ``--keep`` keeps the output of the tools, ``--judge`` reads it again and runs nothing.  The tools:

  breakscan           breakscan explain: the terminal report, with all its tables, and the JSON
  torch-logs          TORCH_LOGS=graph_breaks,recompiles, and everything else that the program writes to standard error
  dynamo-explain      torch._dynamo.explain, called with what the program's first call of each compiled target passes
  tlparse-pages       TORCH_TRACE and tlparse: the pages that a person opens, index.html and failures_and_restarts.html
  tlparse             all files that tlparse writes, but for its copy of the log
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests" / "recording"))

from behaviour import Behaviour, behaviours  # noqa: E402
from completeness_facts import FACTS, Verdict, judge  # noqa: E402

SECONDS = 600
EXPLAIN_FIRST_CALLS = """import os, traceback
import torch, torch._dynamo

compile_ = torch.compile


def compile_and_explain(model=None, **options):
    if model is None:
        return lambda model: compile_and_explain(model, **options)
    compiled, called = compile_(model, **options), []

    def call(*args, **kwargs):
        if not called:
            called.append(True)
            try:
                said = str(torch._dynamo.explain(model)(*args, **kwargs))
            except Exception:
                said = traceback.format_exc()
            with open(os.environ["SAID"], "a") as file:
                file.write(said)
        return compiled(*args, **kwargs)

    return call


torch.compile = compile_and_explain
"""
"""A ``sitecustomize``, so that processes which the program starts have it too."""


class Workplace:
    """A new folder with the program in it.  ``python`` is the one that has torch."""

    def __init__(self, behaviour: Behaviour, folder: Path, python: str, peers: str | None) -> None:
        self.behaviour, self.folder, self.python, self.peers = behaviour, folder, python, peers
        shutil.copy(behaviour.path, folder)

    def run(self, *command: str, **env: str) -> str:
        """Runs the program under a command, with these variables; returns its standard error."""
        dropped = ("COLUMNS", "FORCE_COLOR", "PYTHONPATH", "TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_JOB_ID")
        program = {k: str(self.folder) if v == "." else v for k, v in self.behaviour.env.items()}
        environment = {
            **{name: value for name, value in os.environ.items() if name not in dropped},
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "cache"),
            **program,
            **env,
        }
        done = subprocess.run(
            [self.python, *command, self.behaviour.path.name],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return done.stderr


Said = dict[str, str]
"""The output of a tool, by the name of the file."""


def breakscan(at: Workplace) -> Said:
    options = ["--show", "all", "--output", "report.txt", "--save", "run", *at.behaviour.options]
    at.run("-m", "breakscan", "explain", *options, COLUMNS="500")
    again = ["-m", "breakscan", "report", "--format", "json", "--output", "report.json", "run"]
    subprocess.run([at.python, *again], cwd=at.folder, check=True)
    return {name: (at.folder / name).read_text(encoding="utf-8") for name in ("report.txt", "report.json")}


def torch_logs(at: Workplace) -> Said:
    return {"stderr.txt": at.run(TORCH_LOGS="graph_breaks,recompiles")}


def dynamo_explain(at: Workplace) -> Said:
    site = at.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(EXPLAIN_FIRST_CALLS, encoding="utf-8")
    said = at.folder / "said.txt"
    said.touch()
    errors = at.run(PYTHONPATH=str(site), SAID=str(said))
    return {"explained.txt": said.read_text(encoding="utf-8"), "stderr.txt": errors}


def tlparse(at: Workplace) -> Said:
    trace = at.folder / "trace"
    at.run(TORCH_TRACE=str(trace))
    said: Said = {}
    command = shutil.which("tlparse", path=at.peers)
    assert command, "tlparse is not installed: give --peers"
    for number, log in enumerate(sorted(trace.glob("*.log")) if trace.exists() else []):
        out = at.folder / f"tl_out_{number}"
        subprocess.run([command, str(log), "-o", str(out), "--no-browser"], check=True, capture_output=True)
        for path in sorted(out.rglob("*")):
            if path.is_file() and not path.name.startswith("raw"):
                name = f"{number}/{path.relative_to(out).as_posix()}"
                said[name] = path.read_text(encoding="utf-8", errors="replace")
    return said


TOOLS: dict[str, Callable[[Workplace], Said]] = {
    "breakscan": breakscan,
    "torch-logs": torch_logs,
    "dynamo-explain": dynamo_explain,
    "tlparse": tlparse,
}
PAGES = ("index.html", "failures_and_restarts.html")
COLUMNS = ("breakscan", "torch-logs", "dynamo-explain", "tlparse-pages", "tlparse")


def collect(folder: Path, python: str, peers: str | None, behaviour: Behaviour, tool: str) -> None:
    """Runs one behaviour under one tool, and keeps its output."""
    with tempfile.TemporaryDirectory() as place:
        said = TOOLS[tool](Workplace(behaviour, Path(place), python, peers))
    path = folder / behaviour.name / f"{tool}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said, indent=1), encoding="utf-8")
    print(f"{behaviour.name} under {tool}", file=sys.stderr, flush=True)


def verdict(folder: Path, behaviour: Behaviour, column: str) -> Verdict | None:
    """None if it was not run."""
    path = folder / behaviour.name / f"{column.removesuffix('-pages')}.json"
    if not path.exists():
        return None
    said: Said = json.loads(path.read_text(encoding="utf-8"))
    if column == "tlparse-pages":
        said = {name: text for name, text in said.items() if name.rpartition("/")[2] in PAGES}
    return judge(behaviour, [readable(text) if name.endswith(".html") else text for name, text in said.items()])


def readable(text: str) -> str:
    """A page without its markup."""
    return html.unescape(re.sub(r"<(style|script)\b.*?</\1>|<[^>]+>", "", text, flags=re.DOTALL))


def table(folder: Path, chosen: Iterable[Behaviour]) -> str:
    counts: dict[str, Counter[Verdict]] = {column: Counter() for column in COLUMNS}
    lines = [f"| behaviour | {' | '.join(COLUMNS)} |", f"| --- |{' --- |' * len(COLUMNS)}"]
    for behaviour in chosen:
        row = []
        for column in COLUMNS:
            found = verdict(folder, behaviour, column)
            if found:
                counts[column][found] += 1
            row.append(found.value if found else "")
        lines.append(f"| {behaviour.name} | {' | '.join(row)} |")
    for word in Verdict:
        totals = " | ".join(str(counts[column][word]) for column in COLUMNS)
        lines.append(f"| **{word.name.lower().replace('_', ' ')}** | {totals} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="BEHAVIOUR")
    parser.add_argument(
        "--python", default=sys.executable, help="the Python that runs the programs; it needs breakscan"
    )
    parser.add_argument("--peers", metavar="FOLDER", help="where tlparse is, unless on the PATH")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), metavar="TOOL")
    parser.add_argument("--jobs", type=int, default=1, help="programs at the same time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the tools wrote")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="judge what was kept, and run nothing")
    options = parser.parse_args()
    chosen = [b for b in behaviours() if b.name in (options.only or FACTS)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.judge or options.keep or Path(temporary)
        if not options.judge:
            with ThreadPoolExecutor(options.jobs) as pool:
                run = partial(collect, folder, options.python, options.peers)
                list(pool.map(lambda pair: run(*pair), [(b, tool) for b in chosen for tool in options.tools]))
        print(table(folder, chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
