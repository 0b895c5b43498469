"""Tasks for people who change breakscan: ``nox -l`` lists them.  CI runs the same tasks.

``lint``, ``types``, ``fast``, ``tests``, ``slow`` and ``replay`` run in the environment that ``nox`` is installed in:
``python -m pip install -e ".[dev]"``.  The others make environments.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import nox

from breakscan import __version__
from breakscan.model.torch_versions import PINNED, SUPPORTED

FAST = "not torch and not process and not slow"
"""The tests without torch, processes and waiting: about a minute on two cores."""

nox.options.sessions = ["lint", "types", "fast"]
nox.options.error_on_missing_interpreters = True


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """ruff: rules and format; the torch versions that files name."""
    session.run(sys.executable, "-m", "ruff", "check", ".")
    session.run(sys.executable, "-m", "ruff", "format", "--check", ".")
    session.run(sys.executable, "-m", "tools.sync_torch_versions", "--check")


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """mypy.  The benchmarks are scripts, checked for what they take from breakscan; its reports are users' programs."""
    session.run(sys.executable, "-m", "mypy")
    loosely = ("--config-file=", "--explicit-package-bases", "--check-untyped-defs", "--ignore-missing-imports")
    session.run(sys.executable, "-m", "mypy", *loosely, "--exclude=benchmarks/reports/", "benchmarks")


@nox.session(venv_backend="none")
def fast(session: nox.Session) -> None:
    """The fast tests: no torch, no processes."""
    session.run(sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", FAST, *session.posargs)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """All tests but the slow ones."""
    session.run(sys.executable, "-m", "pytest", "-q", "-n", "2", *session.posargs)


@nox.session(venv_backend="none")
def slow(session: nox.Session) -> None:
    """The slow tests: whole proofs and benches, and every example of every rule in every place."""
    session.run(sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "slow", *session.posargs)


@nox.session(venv_backend="none")
def replay(session: nox.Session) -> None:
    """Writes the verdicts of the installed torch: ``nox -s replay -- BRK101`` for one rule."""
    session.run(sys.executable, "-m", "breakscan", "rules", "replay", *session.posargs)


@nox.session(python=["3.10", "3.13", "3.14"])
def static(session: nox.Session) -> None:
    """The fast tests on the oldest and the newest Python, without torch.

    Those directly in ``tests`` read the repository, which is the same on each Python.
    """
    session.install("-q", ".[test]")
    which = ("-m", FAST, "--ignore-glob", "tests/test_*.py")
    session.run("python", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *which, *session.posargs)


@nox.session(venv_params=["--clear"])
def wheel(session: nox.Session) -> None:
    """Builds the wheel, installs it into an empty environment, and uses it there."""
    folder = session.create_tmp()
    session.run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ".", external=True, silent=True)
    session.install("-q", "--no-index", "--find-links", folder, "--no-deps", "breakscan")
    session.install("-q", "breakscan", "--find-links", folder)
    session.cd(folder)
    session.run("breakscan", "--version")
    session.run("breakscan", "rules", "--format", "json", silent=True)
    session.run("breakscan", "rule", "BRK101", silent=True)
    session.run("python", "-c", WHEEL_HOLDS)


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the documentation site into ``build/site``; a link or an anchor that leads nowhere is an error."""
    session.install("-q", ".[docs]")
    words = ("mkdocs", "build", "--strict", "--site-dir", "build/site")
    session.run("python", "-m", *words, *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def release(session: nox.Session) -> None:
    """Builds what is released and checks it, with a list of its parts (CycloneDX); and the files of .github.

    ``nox -s release -- FOLDER`` keeps ``packages/`` and ``sbom.cdx.json`` there.
    """
    session.install("-q", ".[release]")
    folder = Path(session.posargs[0] if session.posargs else session.create_tmp()).absolute()
    packages = folder / "packages"
    session.run("python", "-m", "build", "--outdir", str(packages), ".", silent=True)
    built = sorted(map(str, packages.iterdir()))
    session.run("twine", "check", "--strict", *built)
    empty = folder / "empty"
    session.run("python", "-m", "venv", "--without-pip", "--clear", str(empty))
    python = str(empty / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    wheel = next(name for name in built if name.endswith(".whl"))
    session.run("python", "-m", "pip", "--python", python, "install", "--quiet", wheel)
    bom = ("--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(folder / "sbom.cdx.json"))
    session.run("cyclonedx-py", "environment", *bom, python)
    shutil.rmtree(empty)
    # The version is not in pyproject.toml, so the list does not have it.
    parts = json.loads((folder / "sbom.cdx.json").read_text(encoding="utf-8"))
    parts["metadata"]["component"]["version"] = __version__
    (folder / "sbom.cdx.json").write_text(json.dumps(parts, indent=2) + "\n", encoding="utf-8")
    github = Path(".github")
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *_yaml(github / "workflows"))
    forms = [name for name in _yaml(github / "ISSUE_TEMPLATE") if Path(name).stem != "config"]
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *forms)
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")


@nox.session(venv_backend="none")
def vscode(session: nox.Session) -> None:
    """Builds, tests and packages the extension for VS Code; its tests talk to the server of this Python."""
    npm = shutil.which("npm")
    if npm is None:
        session.skip("there is no npm: the extension for VS Code needs Node.js 20")
    session.chdir("editors/vscode")
    session.run(npm, "ci", "--no-audit", "--no-fund", "--silent", external=True)
    for task in ("types", "build", "test", "package"):
        session.run(npm, "run", "--silent", task, external=True, env={"BREAKSCAN_PYTHON": sys.executable})


def _yaml(folder: Path) -> list[str]:
    return sorted(map(str, folder.glob("*.yml")))


@nox.session(venv_backend="none")
def changelog(session: nox.Session) -> None:
    """Whether CHANGELOG.md has an entry for what the branch changes: ``nox -s changelog -- main``."""
    session.run(sys.executable, "-m", "tools.changelog_entry", *session.posargs)


@nox.session
def primer(session: nox.Session) -> None:
    """What the working tree changes in ``check`` of released projects: ``nox -s primer -- main``."""
    session.install("-q", "-e", ".", "unearth==0.19.0")
    session.run("python", "-m", "tools.primer", *(session.posargs or ["main"]))


RECORDER = (
    "tests/recording/test_torch_internals.py",
    "tests/recording/test_recorder.py",
    "tests/recording/test_behaviours.py",
)
"""The tests that show whether the private functions of torch that the recorder uses are still there."""

WHEEL_HOLDS = """
from importlib import resources
from breakscan.rulebook.ledger import measured_versions
from breakscan.rulebook.library import load_library
from breakscan import __version__
from breakscan.model.torch_versions import PINNED, minor_version
assert len(load_library()) >= 30 and minor_version(PINNED) in measured_versions()
assert (resources.files("breakscan") / "py.typed").is_file()
"""


@nox.session
@nox.parametrize("version", SUPPORTED)
def measure(session: nox.Session, version: str) -> None:
    """Fills the verdict ledger and the torch facts of one version of torch, and runs the recorder's tests on it."""
    session.install("-q", f"torch=={PINNED if PINNED.startswith(version) else version + '.*'}")
    session.install("-q", "-e", ".[test]", "expecttest", "numpy")
    stale = session.run("python", "-m", "tools.stale_ledgers", version, silent=True, success_codes=[0, 1]) or ""
    rules = [line.split()[1] for line in str(stale).splitlines() if line.startswith(f"{version} ")]
    if rules:
        # Status 1: this torch contradicts a document that speaks of the pinned version, and the ledger says so.
        session.run("breakscan", "rules", "replay", "--output", "rules/ledger", *rules, success_codes=[0, 1])
    session.run("python", "-m", "tools.generate_torch_facts")
    session.run("python", "-m", "tools.measure_operators")
    session.run("python", "-m", "tools.measure_numpy")
    session.run("python", "-m", "tools.measure_skipped")
    session.run("python", "-m", "pytest", "-q", *RECORDER)
