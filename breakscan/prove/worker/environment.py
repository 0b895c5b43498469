"""The environment variables of a worker process."""

from __future__ import annotations

import os
from pathlib import Path

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(64 << 20)}
"""The values to which glibc's thresholds grow, in bytes, in a program that has freed large tensors (``man mallopt``).

Below these values, what a process happens to have freed decides whether it returns memory at each step and faults it in
again: of two equal eager processes one took up to 1.8 times as long as the other.
"""


def worker_environment() -> dict[str, str]:
    """The environment of this process, with :data:`ALLOCATOR`, and without compiler caches on other machines."""
    return {
        **ALLOCATOR,
        **os.environ,
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
        "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_LOCAL_PGO": "0",
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
    }


def caches_in(folder: Path) -> dict[str, str]:
    """The variables that put the compiler caches into a folder."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TRITON_CACHE_DIR": str(folder / "triton")}
