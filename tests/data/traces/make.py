"""Makes the logs in this folder with the installed torch: ``python tests/data/traces/make.py``.

The logs of several ranks are made with the pinned version alone.

The programs run in a folder of their own, with TORCH_TRACE set.  What the reader has no use for is left out, and the
folders of the machine become those of nobody's: checksums are those of what is left.
"""

import hashlib
import json
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

import torch

from breakscan.model.torch_versions import PINNED, minor_version

HERE = Path(__file__).parent
PROJECT = Path("/tmp/project")
FOLDERS = {
    site.getsitepackages()[0]: "/venv/lib/python3.11/site-packages",
    sysconfig.get_path("stdlib"): "/usr/lib/python3.11",
}
KEPT = {"str", "dynamo_start", "dynamo_output_graph", "compilation_metrics", "dynamo_cpp_guards_str"}
ARTIFACTS = {"torch_version", "dynamo_graph_break_reason", "recompile_reasons", "dynamo_error"}
LONG = {"dynamo_config", "compiler_config", "inductor_config", "functorch_config", "stack_trace"}
LONG |= {"exception_stack_trace", "feature_usage", "graph_node_shapes"}


def traced(command: list[str]) -> list[Path]:
    logs = PROJECT / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    environment = {**os.environ, "TORCH_TRACE": str(logs), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *command], cwd=PROJECT, env=environment, check=True, timeout=300)
    return sorted(logs.iterdir())


def shortened(text: str) -> str:
    records = re.split(r"\n(?=[^\t])", text.rstrip("\n"))
    return "".join(f"{short}\n" for record in records if (short := _shortened(record)))


def _shortened(record: str) -> str | None:
    head, *payload = _scrubbed(record).split("\n\t")
    start, _, rest = head.partition("] ")
    metadata = json.loads(rest)
    kind = next(iter(metadata))
    if kind not in KEPT and metadata.get("artifact", {}).get("name") not in ARTIFACTS:
        return None
    metadata[kind] = (
        {key: value for key, value in metadata[kind].items() if key not in LONG and value is not None}
        if isinstance(metadata[kind], dict)
        else metadata[kind]
    )
    if "has_payload" in metadata:
        metadata["has_payload"] = hashlib.md5("\n".join(payload).encode()).hexdigest()
    start = re.sub(r" \d+ ", f" {int(start.split()[2]) % 10000} ", start, count=1)
    return "\n\t".join([f"{start}] {json.dumps(metadata)}", *payload])


def _scrubbed(text: str) -> str:
    for folder, neutral in FOLDERS.items():
        text = text.replace(folder, neutral)
    return re.sub(r" at 0x[0-9a-f]+", " at 0x7f0000000000", text)


def main() -> None:
    PROJECT.mkdir(exist_ok=True)
    for name in ("program.py", "ranks.py"):
        shutil.copy(HERE / name, PROJECT)
    version = minor_version(torch.__version__)
    (log,) = traced(["program.py"])
    (HERE / f"program-{version}.log").write_text(shortened(log.read_text("utf-8")), "utf-8")
    if version == minor_version(PINNED):
        (HERE / "ranks").mkdir(exist_ok=True)
        for number, log in enumerate(traced(["-m", "torch.distributed.run", "--nproc_per_node", "2", "ranks.py"])):
            name = f"dedicated_log_torch_trace_rank_{number}_x.log"
            (HERE / "ranks" / name).write_text(shortened(log.read_text("utf-8")), "utf-8")


main()
