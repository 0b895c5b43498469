"""Manifests in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.survey.manifest import ManifestError, Models, read_manifest
from breakscan.survey.plan import planned

pytestmark = pytest.mark.process

MANIFEST = """
print("not for the answer")


def build(shape):
    raise AssertionError("planning builds nothing")


manifest = {
    "modes": ("eval", "train"),
    "seconds": 20,
    "model": [{"name": "net", "build": build, "names": (f"{rows}x8" for rows in (2, 4))}],
}
"""


def written(folder: Path, text: str, name: str = "survey.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_names_are_computed_and_functions_stand_for_themselves(tmp_path: Path) -> None:
    read = read_manifest(written(tmp_path, MANIFEST))
    assert read.models == (Models("net", "survey:build", ("2x8", "4x8")),)
    assert (read.modes, read.seconds, read.folder) == (("eval", "train"), 20.0, tmp_path)
    assert len(planned(read)) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("manifests = {}", ": must assign a dictionary to manifest"),
        ("import json\n\nmanifest = {**json.loads('')}", ":3: JSONDecodeError: "),
        ("manifest = {\n", ":1: SyntaxError: "),
        ("import sys\nsys.exit(3)", ":2: SystemExit: 3"),
        ("import atexit\natexit.register(print, 'bye')", " prints at its end: "),
        ("import os\nos._exit(3)", " ended its Python with status 3: "),
        ('manifest = {"model": [{"build": lambda: 1}]}', ": manifest['model']['build'] must be a function or class"),
        ('manifest = {"modes": [object()]}', ": manifest['modes'] cannot hold a value of type object"),
        ('def f(): ...\nmanifest = {"folder": "..", "model": [{"build": f}]}', ": its callables cannot be imported"),
        (
            'manifest = {"modes": ["evl"], "model": [{"build": "a:b"}]}',
            ": modes: must be among eval, train: did you mean eval?",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ManifestError) as raised:
        read_manifest(path)
    assert str(raised.value).startswith(f"{path}{said}")


def test_a_file_that_cannot_be_imported_is_said(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"my-survey\.py: give the file a name"):
        read_manifest(written(tmp_path, MANIFEST, "my-survey.py"))
    with pytest.raises(ManifestError, match=r"gone\.py cannot be read"):
        read_manifest(tmp_path / "gone.py")
