"""The search for the operation at which compiled code differs from eager."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breakscan.prove.compiled_parts import _PartBackend
from breakscan.prove.protocol import CompiledPart
from tests.conftest import Valid

pytestmark = pytest.mark.torch
PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "compiled_vs_eager"


def compared(program: Path, valid: Valid, *options: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "breakscan", "verify", "--format", "json", *options, program.name]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, timeout=580)
    assert done.stdout, done.stderr
    return done.returncode, valid(done.stdout, "verify")["compiled"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "stage", "operation", "line", "since", "setting"),
    [
        ("half_cast", "Inductor", "Tensor.to", 8, 8, "torch._inductor.config.emulate_precision_casts"),
        ("uint8_abs", "Inductor", "Tensor.sum", 9, 8, None),
        ("unfold_gap", "AOTAutograd", "Tensor.add_", 9, 8, None),
    ],
)
def test_a_difference_is_traced_to_an_operation(
    program: str, stage: str, operation: str, line: int, since: int, setting: str | None, valid: Valid, tmp_path: Path
) -> None:
    repro = tmp_path / "repro.py"
    status, told = compared(PROGRAMS / "differs" / f"{program}.py", valid, "--repro", str(repro))
    assert status == 1
    assert not told["agrees"]
    assert told["differences"]
    assert told["stage"] == stage
    assert told["operation"] == {"name": operation, "path": f"{program}.py", "line": line}
    assert told["since"]["line"] == since
    assert (told["setting"] and told["setting"]["name"]) == setting
    assert told["program"]
    alone = subprocess.run([sys.executable, repro], capture_output=True, text=True, timeout=300)
    assert "AssertionError" in alone.stderr


@pytest.mark.slow
def test_a_program_that_agrees(valid: Valid) -> None:
    status, told = compared(PROGRAMS / "agrees" / "mlp.py", valid)
    assert (status, told["agrees"], told["stage"], told["operation"]) == (0, True, None, None)


def steps(x: Any, weight: Any, calls: Any) -> Any:
    import torch

    hidden = torch.relu(x @ weight)
    with torch.no_grad():
        scale = hidden.abs().amax()
    values, places = hidden.sort(dim=1)
    calls.add_(1)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = values @ weight
    return mixed.float() / scale, places, calls.t(), weight


@pytest.mark.slow
def test_any_part_of_a_graph_can_be_compiled_by_itself() -> None:
    import torch

    torch.manual_seed(0)
    x, weights = torch.randn(4, 4), torch.randn(4, 4)

    def run(function: Any) -> list[torch.Tensor]:
        weight, calls = weights.clone().requires_grad_(), torch.zeros(2, 3)
        result = function(x, weight, calls)
        result[0].sum().backward()
        assert result[2].data_ptr() == calls.data_ptr()
        assert result[3] is weight
        assert weight.grad is not None
        return [*result[:3], calls, weight.grad]

    expected = run(steps)
    whole = _PartBackend(CompiledPart("eager", 0, 0))
    run(torch.compile(steps, backend=whole))
    ends = [0, *(number for number, one in enumerate(whole.operations, 1) if one.ends_part)]
    assert [one.ends_part for one in whole.operations].count(False) >= 4
    compiled = 0
    for first in ends:
        for last in (end for end in ends if end > first):
            torch._dynamo.reset()
            results = run(torch.compile(steps, backend=_PartBackend(CompiledPart("aot_eager", first, last))))
            assert all(map(torch.equal, results, expected)), (first, last)
            compiled += 1
    assert compiled > 20
