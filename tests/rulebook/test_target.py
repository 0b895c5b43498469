"""The target version of torch, found without importing torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from breakscan.rulebook.config import ConfigError, Settings, installed_torch, load_settings, resolve_target
from breakscan.rulebook.ledger import ledger_version_for, measured_versions


@pytest.fixture
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on the path, with a torch that cannot be imported."""
    package = tmp_path / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('torch was imported')\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(package.parent)])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return package


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("from typing import Optional\n__version__ = '2.13.0+cpu'\ndebug = False\n", "2.13.0+cpu"),
        ('__version__: str = "2.14.0a0+git1234"\n', "2.14.0a0+git1234"),
        ("debug = True\n", None),
        ("__version__ = '99999999999.1'\n", None),
    ],
)
def test_the_installed_version_is_read_and_not_imported(fake_torch: Path, text: str, version: str | None) -> None:
    (fake_torch / "version.py").write_text(text, encoding="utf-8")
    assert installed_torch() == version


def test_a_folder_that_happens_to_be_called_torch_is_no_torch(fake_torch: Path) -> None:
    assert installed_torch() is None


@pytest.mark.parametrize(
    ("option", "configured", "installed", "torch", "source"),
    [
        ("2.13", "2.12.1", "2.11.0", "2.13", "option"),
        (None, "2.12.1", "2.11.0", "2.12", "config"),
        ("2.14.1+nested", None, "2.11.0", "2.14+nested", "option"),
        (None, None, "9.1.0", "9.1", "installed"),
        (None, None, None, measured_versions()[-1], "newest measured"),
    ],
)
def test_the_first_that_is_known_counts(
    tmp_path: Path,
    fake_torch: Path,
    option: str | None,
    configured: str | None,
    installed: str | None,
    torch: str,
    source: str,
) -> None:
    if configured:
        text = f"[tool.breakscan]\ntarget-torch = '{configured}'\n"
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    if installed:
        (fake_torch / "version.py").write_text(f"__version__ = '{installed}'\n", encoding="utf-8")
    target = resolve_target(load_settings(tmp_path, target_torch=option))
    assert (target.torch, target.source, target.ledger) == (torch, source, ledger_version_for(torch))


def test_an_installed_torch_without_a_compiler_is_no_target(tmp_path: Path, fake_torch: Path) -> None:
    (fake_torch / "version.py").write_text("__version__ = '1.13.1'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"the installed torch 1\.13 has no torch.compile: set target-torch to"):
        resolve_target(Settings(root=tmp_path))
    assert resolve_target(Settings(root=tmp_path, target_torch="2.13")).torch == "2.13"


def test_an_installation_without_verdicts_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("breakscan.rulebook.config.measured_versions", list)
    with pytest.raises(ConfigError, match="reinstall breakscan"):
        resolve_target(Settings(root=tmp_path))


@pytest.mark.process
def test_resolving_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from breakscan.rulebook.config import *;"
        "print(resolve_target(Settings(root=Path('.'))).torch); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines()[1] == "False"
