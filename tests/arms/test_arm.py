"""The process of a program, from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from breakscan.arms.arm import Arm, Change, Program

pytestmark = pytest.mark.torch

SCRIPT = """\
import os

for name in ("TORCHINDUCTOR_CACHE_DIR", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
    print(os.environ[name])
"""


def test_arms_have_caches_and_an_allocator_of_which_no_chance_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "it.py"
    script.write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "shared")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "12345")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    with Arm(Program((str(script),)), Change(), tmp_path / "arm") as arm:
        arm.ready()
    cache, mapped, trimmed = arm.output().split()
    assert cache == os.fspath(tmp_path / "arm" / "cache" / "inductor")
    assert mapped == "33554432"
    assert trimmed == "12345", "what the user has set, stays"
