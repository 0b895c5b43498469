"""What holds for all tests."""

import contextlib
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, settings
from referencing import Registry, Resource

import breakscan as package

SCHEMAS = Path(package.__file__).parent / "schemas"
Valid = Callable[[str, str], Any]

# How long an example takes says how busy the machine is.
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

# A shell that starts the tests in the background has them ignore Ctrl-C, and all programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """With ``-m "not torch ..."`` the tests run as they would where torch is not installed: its import is slow."""
    if str(config.getoption("markexpr")).startswith("not torch"):
        sys.modules["torch"] = None  # type: ignore[assignment]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that starts processes says so: the fast tests leave it out."""
    if any(item.get_closest_marker(name) for name in ("process", "torch", "slow")):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", _refuse)
        return (yield)


def _refuse(self: subprocess.Popen[Any], command: object, *_: object, **__: object) -> None:
    pytest.fail(f"it starts {command!r}: mark it 'process'")


@pytest.fixture(scope="session", autouse=True)
def _own_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Recordings are kept in the cache of the user, who is not to find those of tests there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BREAKSCAN_RUNS", str(tmp_path_factory.mktemp("runs")))
        yield


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser, for the tests of pages."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no chromium")
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
    still = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=[*quiet, *still])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def valid() -> Valid:
    """Takes a text and the name of a schema (``bench``), and returns what the text holds, which the schema allows."""
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob("*.json")}
    resources = ((name, Resource.from_contents(schema)) for name, schema in files.items())
    registry: Any = Registry().with_resources(resources)
    for schema in files.values():
        jsonschema.Draft202012Validator.check_schema(schema)

    def valid(text: str, name: str) -> Any:
        told = json.loads(text)
        jsonschema.Draft202012Validator(files[f"{name}.schema.json"], registry=registry).validate(told)
        return told

    return valid
