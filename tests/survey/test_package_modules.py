"""The public modules of a package: which there are, and calls of them that run."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from package_text import write_package

torch = pytest.importorskip("torch")

from breakscan.survey.guessed_calls import NoArgumentsError  # noqa: E402
from breakscan.survey.no_downloads import no_downloads  # noqa: E402
from breakscan.survey.package_modules import build, found_call, loaded  # noqa: E402
from breakscan.survey.package_names import names  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "small_layers"]:
        del sys.modules[name]


def test_each_public_class_once_under_its_shortest_name(package: Path) -> None:
    assert names("small_layers") == [
        "small_layers.Branchy",  # defined below, and offered by the package
        "small_layers.broken",  # cannot be imported
        "small_layers.layers.Attention",
        "small_layers.layers.Classifier",
        "small_layers.layers.Configured",
        "small_layers.layers.Deep",
        "small_layers.layers.ImageEncoder",
        "small_layers.layers.Loss",
        "small_layers.layers.Many",
        "small_layers.layers.Stuck",
        "small_layers.layers.Tokens",
        "small_layers.layers.Wide",
    ]
    assert "torch.nn.Linear" in names("torch.nn")


def test_the_call_of_an_example_is_the_first_choice(package: Path) -> None:
    here = Path.cwd()
    found, by_example = found_call(loaded("small_layers.Branchy"))
    assert by_example
    assert found.module.width == 5
    assert (found.positional[0].shape, found.keywords) == ((3, 5), {"scale": 2.0})
    assert found.positional[0].sum() != 0, "what the call changed in place"
    assert (Path.cwd(), list(here.glob("note.txt"))) == (here, [])
    assert torch.get_default_dtype() is torch.float32


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("Attention", [(2, 16, 8), (2, 16)]),
        ("Classifier", [(2, 16, 48)]),
        ("ImageEncoder", [(2, 3, 24, 24)]),
        ("Configured", [(2, 16, 32)]),
        ("Deep", [(2, 16, 8), (2, 16)]),
        ("Loss", [(2, 8), (2,)]),
        ("Many", [(2, 8), (2, 8)]),
        ("Tokens", [(2, 16)]),
        ("Wide", [(2, 16, 32)]),
    ],
)
def test_what_no_example_shows_is_guessed(package: Path, name: str, shapes: list[tuple[int, ...]]) -> None:
    found, by_example = found_call(loaded(f"small_layers.layers.{name}"))
    assert not by_example
    assert [tuple(one.shape) for one in (*found.positional, *found.keywords.values())] == shapes
    again = found_call(loaded(f"small_layers.layers.{name}"))[0]
    assert _same(found.positional, again.positional)
    assert _same(tuple(found.module.parameters()), tuple(again.module.parameters()))


def _same(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_what_does_not_run_says_so(package: Path) -> None:
    with pytest.raises(NoArgumentsError) as raised:
        build("small_layers.layers.Stuck")
    assert str(raised.value) == "no arguments found with which it runs: RuntimeError: stuck"
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        build("small_layers.broken")


def test_nothing_is_loaded_from_elsewhere() -> None:
    with no_downloads():
        with pytest.raises(OSError, match="loads nothing from example\\.com"):
            socket.create_connection(("example.com", 443))
        assert socket.getaddrinfo("localhost", 80)


@pytest.mark.process
def test_a_survey_of_a_package(package: Path) -> None:
    text = 'backends = ["eager"]\n[[package]]\nname = "small_layers"\nonly = ["*.Branchy"]\n'
    (package / "survey.toml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "breakscan", "survey", "run", "survey.toml", "--format", "json"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=300)
    told = {one["name"]: one for one in json.loads(done.stdout)["units"]}
    assert {name: (one["status"], one["breaks"]) for name, one in told.items()} == {"small_layers.Branchy": ("ok", 1)}
