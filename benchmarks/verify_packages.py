"""Runs ``breakscan verify`` on the rewrites that ``breakscan fix --unsafe`` offers in real packages.

    python benchmarks/verify_packages.py --drivers FOLDER --rows FILE --keep DIR [PACKAGE ...]
        [--output FILE] [--backend NAME] [--at-once N] [--seconds N] [--untimed] [--soften] [--table]

FOLDER holds scripts called PACKAGE_calls.py, which fill the list JOBS of a module common.py beside them: (name, build,
with gradients); common.call(build) gives a callable, its arguments, its keywords.  FILE defines ROWS: name → a function
that returns a model of transformers and the keyword arguments of one call.  Packages must be installed.

For each package:
  1. Each call is run once, cheaply, to learn which files break the graph and which lines run
     (``verify_packages_reach.py``).  ``fix --unsafe`` gives its rewrites in these files, with all functions counted
     as compiled: those whose finding is on lines that ran are reached.
  2. Calls are chosen so that each reached rewrite is verified, starting with those that reach most unverified rewrites.
  3. ``breakscan verify`` verifies each rewrite of a chosen call (``verify_packages_program.py``) alone, and then all.

FILE of ``--output`` grows with each call and is continued: the calls in it are not run again.  ``--keep`` has
intermediate results, and the whole report of each call.  ``--table`` prints the tables of FILE and runs nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscan.fix.planner import WantedRewrites
from breakscan.fix.repair import repair_paths
from breakscan.rulebook.config import load_settings
from breakscan.source.paths import display_path

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "verify_packages.json"
PER_CALL = 180
"""Seconds that a call may take, and more for each rewrite."""
PER_REWRITE = 90
GROUPS = (
    (r"eager, it raises .*", "eager: raises where it returned"),
    (r"eager, .*random numbers.*", "eager: random numbers drawn otherwise"),
    (r"eager, .*gradient.*", "eager: another gradient"),
    (r"eager, .*", "eager: another result or state"),
    (r"compiled, .*", "compiled: another result, gradient or state"),
    (r"the break at .* is still there", "the break is still there"),
    (r"it softens nothing: .*", "it softens nothing"),
    (r"it breaks the graph .*", "more breaks"),
    (r".* functions run eager, .*", "more functions run eager"),
    (r"it is compiled .* more .*", "more recompiles"),
    (r"the rewritten code did not run.*", "the rewritten code did not run"),
    (r"it changes no code", "it changes no code"),
    (r"cannot be compared: the program does not repeat itself.*", "the program does not repeat itself"),
    (r"cannot be compared.*", "cannot be compared"),
    (r"the program (does not run|fails) with it.*", "the program fails with it"),
    (r".* compiled again and again .*", "compiled again and again while it is timed"),
)
Key = tuple[str, int, int, str, str]
"""A rewrite of a finding: path within the folder of packages, line, column, rule, id."""


@dataclass(frozen=True, slots=True)
class Source:
    """A package and the file that lists its calls."""

    package: str
    file: Path
    folder: Path

    @property
    def site(self) -> Path:
        """What paths are told from."""
        return self.folder.parent


@dataclass(slots=True)
class Results:
    """What is known so far, in a file."""

    file: Path
    kept: dict[str, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> None:
        if self.file.exists():
            self.kept = json.loads(self.file.read_text(encoding="utf-8"))
        self.kept.setdefault("environment", {})
        self.kept.setdefault("packages", {})
        self.kept.setdefault("runs", [])

    def save(self) -> None:
        partial = self.file.with_suffix(".part")
        partial.write_text(json.dumps(self.kept, indent=1) + "\n", encoding="utf-8")
        partial.replace(self.file)

    def runs(self, package: str, backend: str) -> list[dict[str, Any]]:
        return [run for run in self.kept["runs"] if run["package"] == package and run["backend"] == backend]


# -- what the calls reach ---------------------------------------------------------------------------------------------


def reach(source: Source, keep: Path) -> list[dict[str, Any]]:
    """The result of ``verify_packages_reach.py`` for each call."""
    told = keep / f"reach-{source.package}.jsonl"
    command = [sys.executable, str(HERE / "verify_packages_reach.py"), *map(str, (source.file, source.folder, told))]
    with (keep / f"reach-{source.package}.log").open("w") as log:
        done = subprocess.run(command, cwd=keep, env=environment(), stdout=log, stderr=log)
    if done.returncode:
        print(f"{source.package}: a call ended the process; later calls are left out ({log.name})", flush=True)
    return [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]


def offers(source: Source, files: set[str], keep: Path, soften: bool) -> list[Key]:
    """What ``fix --unsafe`` offers in these files, and with ``soften`` what ``fix --unsafe --soften`` does."""
    told = keep / f"offers-{source.package}.json"
    if told.exists():
        known = json.loads(told.read_text(encoding="utf-8"))
        if set(known["files"]) == files:
            return [tuple(key) for key in known["offers"]]
    settings = replace(load_settings(keep, None, no_cache=True), regions="all")
    repair = repair_paths([Path(path) for path in sorted(files)], settings, WantedRewrites(unsafe=True, soften=soften))
    found: list[Key] = []
    for one in repair.files:
        path = str(one.path.relative_to(source.site))
        for applied in one.applied:
            site = applied.finding.site
            found.append((path, site.line, site.column, applied.finding.rule, applied.rewrite))
    told.write_text(json.dumps({"files": sorted(files), "offers": found}), encoding="utf-8")
    return found


def edits(offered: Iterable[Key], site: Path) -> dict[Key, Key]:
    """For each rewrite the first one that is the same edit: a function is taken out of compiled code once, whichever of
    its findings asks for that, and an update under a mask is rewritten once for all masks in its line."""
    functions = {path: functions_of(ast.parse((site / path).read_text())) for path in {key[0] for key in offered}}
    firsts: dict[Any, Key] = {}
    found = {}
    for key in sorted(offered):
        path, line, *_, rewrite = key
        whole: Any = key
        if rewrite == "disable-function":
            whole = path, max((one.lineno for one in functions[path] if _holds(one, line)), default=key)
        elif rewrite == "masked-update":
            whole = path, line, rewrite
        found[key] = firsts.setdefault(whole, key)
    return found


def _holds(function: ast.FunctionDef | ast.AsyncFunctionDef, line: int) -> bool:
    return function.lineno <= line <= (function.end_lineno or function.lineno)


def functions_of(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of a file."""
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def reached_by(call: Mapping[str, Any], same: Mapping[Key, Key], site: Path) -> dict[Key, Key]:
    """The edits with a finding that begins in a line that the call runs, and that finding's rewrite."""
    lines = {str(Path(path).relative_to(site)): set(numbers) for path, numbers in call.get("lines", {}).items()}
    return {edit: key for key, edit in same.items() if key[1] in lines.get(key[0], ())}


# -- verifying --------------------------------------------------------------------------------------------------------


class Batch:
    """The calls of one package, and which of its rewrites are to be verified."""

    def __init__(self, source: Source, calls: list[dict[str, Any]], results: Results, options: Any) -> None:
        self.source = source
        self.results = results
        self.options = options
        self.keep: Path = options.keep
        self.calls = {call["name"]: call for call in calls if "error" not in call}
        files = {path for call in self.calls.values() for path in call["lines"]}
        self.same = edits(offers(source, files, self.keep, options.soften), source.site)
        self.reached = {name: reached_by(call, self.same, source.site) for name, call in self.calls.items()}
        self.left = {edit for found in self.reached.values() for edit in found}
        results.kept["packages"][source.package] = {
            "version": importlib.metadata.version(source.package),
            "calls": len(calls),
            "run": len(self.calls),
            "with_gradients": sum(call["gradients"] for call in self.calls.values()),
            "files": len(files),
            "offered": dict(Counter(key[4] for key in set(self.same.values()))),
            "reached": sorted(map(list, self.left)),
        }
        self.tried: Counter[str] = Counter()
        for run in results.runs(source.package, options.backend):
            self.take(run)

    def take(self, run: Mapping[str, Any]) -> None:
        """What is verified, or was to be and could not, is not asked for again through the same call."""
        self.left -= {tuple(proof["rewrite"]) for proof in run["proofs"] if proof["rewrite"]}
        self.left -= {tuple(key) for key in run["dependent"]}
        self.tried[run["call"]] += 1

    def best(self) -> tuple[str, set[Key]]:
        """The call that reaches most of what is left, and that; a call is run once."""
        found = {name: self.left & edits.keys() for name, edits in self.reached.items() if not self.tried[name]}
        name = max(found, key=lambda one: (len(found[one]), -len(self.reached[one])), default="")
        return name, found.get(name, set())

    def verify(self, name: str, wanted: set[Key]) -> dict[str, Any]:
        """One call through ``breakscan verify``."""
        call = self.calls[name]
        report = self.keep / f"{self.source.package}-{re.sub(r'[^A-Za-z0-9]+', '_', name)}-{self.options.backend}.json"
        report.unlink(missing_ok=True)
        path = display_path(self.source.site, self.keep)
        chosen = [[os.path.join(path, key[0]), *key[1:]] for key in (self.reached[name][edit] for edit in wanted)]
        program = [str(HERE / "verify_packages_program.py"), str(self.source.file), name, self.options.backend]
        program += [] if call["gradients"] else ["--plain"]
        soften = ["--soften"] if self.options.soften else []
        untimed = ["--untimed"] if self.options.untimed else []
        command = [
            *untimed,
            json.dumps(chosen),
            "verify",
            "--each",
            *soften,
            "--format",
            "json",
            "-o",
            str(report),
            *program,
        ]
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, str(HERE / "verify_packages_verify.py"), *command],
            cwd=self.keep,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        error = None
        try:
            _, said = process.communicate(timeout=PER_CALL + PER_REWRITE * len(wanted))
            if process.returncode not in (0, 1):
                error = self.clean(said.strip().splitlines()[-1] if said.strip() else f"exit {process.returncode}")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            error = "it took too long"
        told = json.loads(report.read_text(encoding="utf-8")) if error is None else {"proofs": [], "notes": []}
        proofs = [self.proof(one) for one in told["proofs"]]
        proved = {tuple(proof["rewrite"]) for proof in proofs if proof["rewrite"]}
        dependent = [key for key in sorted(wanted - proved) if label_of(key) in told.get("dependent", ())]
        return {
            "package": self.source.package,
            "call": name,
            "backend": self.options.backend,
            "gradients": call["gradients"],
            "seconds": round(time.monotonic() - began),
            "error": error,
            "notes": [self.clean(note) for note in told["notes"]],
            "proofs": proofs,
            "dependent": [list(key) for key in dependent],
        }

    def proof(self, one: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a proof."""
        site = one["site"]
        key = None
        if site is not None:
            path = os.path.relpath(os.path.join(self.keep, site["path"]), self.source.site)
            found = (path, site["line"], site["column"], one["rule"], one["rewrite"])
            key = list(self.same.get(found, found))
        changed = {name: one[name] for name in ("breaks", "graphs", "eager_frames", "recompiles")}
        return {
            "rewrite": key,
            "members": len(one["members"]),
            "verdict": "equal" if one["ratio"] and set(one["ratio"].values()) == {1.0} else one["verdict"],
            "reasons": [self.clean(reason) for reason in one["reasons"]],
            "outputs_equal": one["outputs_equal"],
            "safe": one["difference"] is None,
            "unseen": len(one["unseen"]),
            "stressed_outcomes": len(one["stressed_outcomes"]),
            "stress": [[found["inputs"], found["stated"], self.clean(found["says"])] for found in one["stress"]],
            "changed": {name: [was["before"], was["after"]] for name, was in changed.items()},
            "ratio": [round(one["ratio"][name], 3) for name in ("median", "low", "high")] if one["ratio"] else None,
        }

    def clean(self, text: str) -> str:
        """Paths as they are within the folder of packages."""
        return text.replace(f"{self.source.site}/", "").replace(f"{HERE}/", "")


def run_all(batches: list[Batch], results: Results, at_once: int, stop: float) -> None:
    """Verifies until nothing is left, or this second of the clock has come: those calls first that reach most that is
    not verified, of whichever package."""

    def work() -> None:
        while time.monotonic() < stop:
            with results.lock:
                batch = max(batches, key=lambda one: len(one.best()[1]))
                name, wanted = batch.best()
                if not wanted:
                    return
                # Two calls at a time need not verify the same.
                batch.left -= wanted
                batch.tried[name] += 1
            run = batch.verify(name, wanted)
            with results.lock:
                batch.left |= wanted
                batch.take(run)
                results.kept["runs"].append(run)
                results.save()
                words = Counter(proof["verdict"] for proof in run["proofs"] if proof["rewrite"])
                told = run["error"] or ", ".join(f"{number} {word}" for word, number in words.items())
                left = sum(len(one.left) for one in batches)
                print(f"{batch.source.package} {name}: {told}; {run['seconds']} s; {left} left", flush=True)

    with ThreadPoolExecutor(at_once) as pool:
        for one in [pool.submit(work) for _ in range(at_once)]:
            one.result()


def environment() -> dict[str, str]:
    """Quiet, on the CPU, with one thread."""
    quiet = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TORCH_LOGS": "-all", "PYTHONWARNINGS": "ignore"}
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **quiet, "TRANSFORMERS_VERBOSITY": "error", "PYTHONPATH": path}


def label_of(key: Key) -> str:
    """What the report calls it."""
    return f"{Path(key[0]).name}:{key[1]} {key[4]}"


# -- the tables -------------------------------------------------------------------------------------------------------


def group_of(reason: str) -> str:
    """The kind of a reason."""
    return next((name for pattern, name in GROUPS if re.fullmatch(pattern, reason, re.DOTALL)), reason)


def table(kept: Mapping[str, Any], backend: str) -> None:
    """Prints the verdicts on the rewrites, by package and by id, and why they are rejected."""
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    by_id: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[tuple[str, str]] = Counter()
    together: Counter[str] = Counter()
    effects: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for package, about in kept["packages"].items():
        verdicts: dict[Key, Any] = {}
        for run in kept["runs"]:
            if run["package"] == package and run["backend"] == backend:
                for proof in run["proofs"]:
                    if proof["members"]:
                        together[proof["verdict"]] += 1
                    elif proof["rewrite"] and proof["rewrite"][0].startswith(f"{package}/"):
                        verdicts.setdefault(tuple(proof["rewrite"]), proof)
                for key in run["dependent"]:
                    verdicts.setdefault(tuple(key), {"verdict": "only with others"})
        for key in {tuple(one) for one in about["reached"]} | set(verdicts):
            word = verdicts[key]["verdict"] if key in verdicts else "not verified"
            by_package[package][word] += 1
            by_id[key[4]][word] += 1
            shown.update(_shown(verdicts.get(key, {})))
            if "changed" in verdicts.get(key, ()) and word != "rejected":
                (breaks, fewer), (eager, less) = (verdicts[key]["changed"][name] for name in ("breaks", "eager_frames"))
                effects[
                    "fewer breaks" if fewer < breaks else "fewer functions eager" if less < eager else "neither"
                ] += 1
            if word == "rejected":
                reasons[group_of(verdicts[key]["reasons"][0]), key[4]] += 1
        by_package[package]["not reached"] = sum(about["offered"].values()) - len(about["reached"])
        for name, number in about["offered"].items():
            by_id[name]["not reached"] += number - sum(one[4] == name for one in about["reached"])
    words = ("accepted", "no-faster", "equal", "rejected", "only with others", "not verified", "not reached")
    for head, rows in (("package", by_package), ("rewrite", by_id)):
        print(f"\n| {head} | {' | '.join(word.replace('-', ' ') for word in words)} |")
        print("| --- |" + " --- |" * len(words))
        for name, counts in rows.items() if head == "package" else sorted(rows.items()):
            print(f"| {name} | {' | '.join(str(counts[word]) for word in words)} |")
    print("\n| rejected because | rewrites |\n| --- | --- |")
    for group in dict.fromkeys(group for (group, _), _ in reasons.most_common()):
        of = {name: number for (found, name), number in reasons.items() if found == group}
        print(f"| {group} | {', '.join(f'{name} {number}' for name, number in sorted(of.items()))} |")
    print(f"\nof those that are equal: {dict(effects)}")
    print(f"all of a call together: {dict(together)}")
    print(f"of all that are verified: {dict(shown)}")


def _shown(proof: Mapping[str, Any]) -> Iterator[str]:
    """What a proof shows beside its verdict."""
    if "stress" not in proof:
        return
    yield "safe" if proof["safe"] else "unsafe"
    if proof["unseen"]:
        yield "an outcome that no call had"
    if proof["stressed_outcomes"]:
        yield "an outcome that only other inputs had"
    for stated in sorted({stated for _, stated, _ in proof["stress"]}):
        yield f"differs with other inputs, {'as stated' if stated else 'not stated'}"


# -- the command ------------------------------------------------------------------------------------------------------


def sources(options: argparse.Namespace) -> list[Source]:
    """What there is to run, of packages that are installed."""
    drivers = sorted(options.drivers.glob("*_calls.py")) if options.drivers else []
    listed = [(file.stem.removesuffix("_calls"), file) for file in drivers]
    if options.rows and options.rows.exists():
        listed.append(("transformers", options.rows))
    if not listed:
        print("skipped: no drivers and no rows (--drivers FOLDER, --rows FILE)")
    found = []
    for package, file in sorted(listed, key=lambda one: options.only.index(one[0]) if one[0] in options.only else -1):
        if options.only and package not in options.only:
            continue
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            print(f"{package}: skipped, it is not installed")
            continue
        found.append(Source(package, file.resolve(), Path(spec.origin).resolve().parent))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="PACKAGE", help="these packages, in this order")
    parser.add_argument("--drivers", type=Path, metavar="FOLDER")
    parser.add_argument("--rows", type=Path, metavar="FILE")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="FILE", default=OUTPUT)
    parser.add_argument("--backend", default="inductor", help="what the calls are compiled with")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="calls verified at the same time")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N", help="no call is begun after that")
    parser.add_argument("--untimed", action="store_true", help="time nothing: equal or rejected")
    parser.add_argument("--soften", action="store_true", help="also rewrites that only take code out of the graph")
    parser.add_argument("--table", action="store_true", help="print the tables of what is known, and run nothing")
    options = parser.parse_args()
    results = Results(options.output)
    results.load()
    if options.table:
        table(results.kept, options.backend)
        return 0
    listed = sources(options)
    if not listed:
        return 0
    if options.keep is None:
        parser.error("--keep DIR: where what is learnt on the way lies")
    stop = time.monotonic() + options.seconds
    options.keep = options.keep.resolve()
    options.keep.mkdir(parents=True, exist_ok=True)
    (options.keep / "pyproject.toml").write_text('[tool.breakscan]\nregions = "all"\n', encoding="utf-8")
    batches: list[Batch] = []
    for source in listed:
        import torch

        results.kept["environment"] = {"torch": torch.__version__, "python": platform.python_version()}
        batches.append(Batch(source, reach(source, options.keep), results, options))
        results.save()
        print(f"{source.package}: {len(batches[-1].left)} rewrites to verify", flush=True)
    run_all(batches, results, options.at_once, stop)
    table(results.kept, options.backend)
    return 0


if __name__ == "__main__":
    sys.exit(main())
