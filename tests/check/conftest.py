"""A checker over source text, for tests that say what is found where."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from asked import IMPORTS

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import Settings


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., CheckResult]:
    """Checks a snippet, with torch, nn and F imported, for torch 2.13."""

    def run(source: str, **settings: object) -> CheckResult:
        path = tmp_path / "model.py"
        path.write_text(IMPORTS + textwrap.dedent(source), encoding="utf-8")
        wanted = {"target_torch": "2.13", **settings}
        return check_paths([path], Settings(root=tmp_path, **wanted))  # type: ignore[arg-type]

    return run


@pytest.fixture
def marked(check: Callable[..., CheckResult]) -> Callable[..., None]:
    """Checks a snippet against the comments in it: ``# !`` and rule ids on every line that has a finding."""

    def run(source: str, **settings: object) -> None:
        source = textwrap.dedent(source)
        wanted = set()
        for number, line in enumerate((IMPORTS + source).splitlines(), 1):
            _, marker, ids = line.partition("# !")
            wanted |= {(number, rule) for rule in ids.split()} if marker else set()
        result = check(source, **settings)
        assert not result.errors
        assert {(f.site.line, f.rule) for f in result.findings} == wanted

    return run


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., CheckResult]:
    """Checks a project, given as the texts of its files by name; ``only`` names those that are asked for."""

    def run(files: dict[str, str], only: list[str] | None = None, **settings: object) -> CheckResult:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        wanted = {"target_torch": "2.13", "regions": "roots", **settings}
        paths = sorted(tmp_path / name for name in only or files)
        result = check_paths(paths, Settings(root=tmp_path, **wanted))  # type: ignore[arg-type]
        assert not result.errors
        return result

    return run
