"""``breakscan survey --engine ray`` on clusters of two nodes, which Ray starts on this machine."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

cluster_utils = pytest.importorskip("ray.cluster_utils")
pytestmark = [pytest.mark.torch, pytest.mark.process, pytest.mark.slow]

MANIFEST = """
backends = ["eager"]
modes = ["eval", "train"]
seconds = 90

[[model]]
name = "zoo"
build = "zoo:build"
names = "zoo:names"

[[model]]
build = "zoo:fails"
"""


@pytest.fixture
def cluster() -> Iterator[Any]:
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    yield cluster
    cluster.shutdown()


@pytest.fixture
def project(project: Path) -> Path:
    (project / "survey.toml").write_text(MANIFEST, encoding="utf-8")
    return project


def started(project: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "breakscan", "survey", "run", "survey.toml", "--format", "json", *options]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def found(out: str) -> list[tuple[Any, ...]]:
    names = ("name", "conditions", "status", "breaks", "eager", "recompiles", "graphs")
    return [tuple(one[name] for name in names) for one in json.loads(out)["units"]]


def test_the_results_are_those_of_this_machine_and_a_node_that_is_lost_loses_nothing(
    project: Path, cluster: Any
) -> None:
    node = cluster.add_node(num_cpus=1)
    process = started(project, "--engine", "ray", "--address", cluster.address, "--store", "ray.db")
    time.sleep(12)  # tasks run on both nodes
    cluster.remove_node(node, allow_graceful=False)
    out, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert len([line for line in said.splitlines() if line.startswith("[")]) == 6
    local, _ = started(project, "--store", "local.db").communicate(timeout=400)
    assert found(out) == found(local)
    assert [one[2] for one in found(out)].count("ok") == 4
    again, nothing = started(project, "--store", "ray.db").communicate(timeout=100)
    assert (found(again), nothing) == (found(out), "")


def test_a_cluster_that_is_not_there(project: Path) -> None:
    out, said = started(project, "--engine", "ray", "--address", "127.0.0.1:1").communicate(timeout=200)
    assert out == ""
    assert said.startswith("Error: no Ray cluster at 127.0.0.1:1: ")
