"""The fuzzer of the rewrites makes a program that fails small, and writes it as a case."""

from __future__ import annotations

from pathlib import Path

import cases
import pytest

pytest.importorskip("torch")
pytest.importorskip("benchmarks.rewrite_fuzzer")
pytestmark = pytest.mark.torch

from benchmarks.rewrite_fuzzer.cases import case, input_expression, write_case  # noqa: E402
from benchmarks.rewrite_fuzzer.comparing import Comparison, Fault, compare  # noqa: E402
from benchmarks.rewrite_fuzzer.inputs import arguments  # noqa: E402
from benchmarks.rewrite_fuzzer.programs import draw  # noqa: E402
from benchmarks.rewrite_fuzzer.shrinking import Shrunk, shrink, shrink_fault  # noqa: E402

PROGRAM = """import torch


@torch.no_grad()
def f(x, y):
    b = y
    try:
        a = x * 1
        if x.sum() > 0:
            a = a + y
        for _ in range(2):
            b = b.roll(1)
    finally:
        b = b * 2
    return a, b
"""
BRANCH = """import torch


def f(x: torch.Tensor, y):
    b = y * 2
    if x.sum() > 0:
        x = x.sqrt()
    return x, b
"""


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of texts that are tried
def test_what_the_predicate_does_not_need_is_deleted() -> None:
    def fails(text: str) -> bool:
        made: dict[str, object] = {}
        exec(text, made)
        return callable(made["f"]) and "b.roll(1)" in text

    assert shrink(PROGRAM, fails) == "def f():\n    b.roll(1)"


def test_a_text_that_does_not_fail_stays() -> None:
    assert shrink(PROGRAM, lambda text: False) == PROGRAM


def test_a_fault_is_shrunk_to_its_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if the rewrites stated nothing: then each difference of a branch that is now computed is a fault.
    monkeypatch.setattr("benchmarks.rewrite_fuzzer.comparing.effects_of", lambda differences, **options: frozenset())
    found = compare(BRANCH, unsafe=True, inputs=["int64 positive", "int64 zero"])
    assert {one.kind for one in found.faults} >= {"dtype of first result"}
    small = shrink_fault(BRANCH, found, unsafe=True)
    assert small.rewrite == "where"
    assert len(small.text) < len(BRANCH)
    assert "b = " not in small.text
    assert small.found.faults[0].kind.split()[0] == found.faults[0].kind.split()[0]


@pytest.mark.parametrize(("label", "given"), list(arguments()), ids=lambda one: one if isinstance(one, str) else "")
def test_inputs_are_written_out(label: str, given: tuple[object, object]) -> None:
    import torch

    made = eval(input_expression(given), {"torch": torch})  # type: ignore[arg-type]
    assert (made[0] is made[1]) == (given[0] is given[1])
    for old, new in zip(given, made, strict=True):
        assert isinstance(old, torch.Tensor)
        assert type(old) is type(new)
        assert (old.dtype, old.shape, old.stride()) == (new.dtype, new.shape, new.stride())
        assert (old.requires_grad, old.is_leaf) == (new.requires_grad, new.is_leaf)
        assert torch.equal(old.nan_to_num(7), new.nan_to_num(7))
        assert torch.equal(old.signbit(), new.signbit())
    shared = [len({one.untyped_storage().data_ptr() for one in pair}) for pair in (given, made) if given[0].numel()]
    assert len(set(shared)) <= 1


def test_a_case_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault("nan", "value of first result", "1", "2", ((), ()))
    for name in ("one", "two"):
        write_case(
            tmp_path, "where", case(Shrunk("def f(x, y):\n    pass", "where", Comparison(faults=(fault,))), name)
        )
    monkeypatch.setattr(cases, "FOLDER", tmp_path)
    first, second = cases.cases()
    assert (first.rewrite, first.name, second.name) == ("where", "one", "two")
    assert first.before == "def f(x, y):\n    pass\n"
    assert first.reason == ""
    assert "nan" in first.inputs


def test_programs_parse() -> None:
    for number in range(500):
        compile(draw(number, 0).text, "program", "exec")


SUPPRESSED = """import contextlib
import torch


def f(x: torch.Tensor, y: torch.Tensor):
    b = x
    with contextlib.suppress(RuntimeError):
        labels = y.long()
        b = labels.bincount(minlength=1)
    return b
"""
REDIRECTED = """import contextlib
import io
import torch


def f(x: torch.Tensor, y: torch.Tensor):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        print(x.sum())
    return shown.getvalue()
"""


@pytest.mark.parametrize(("text", "rewrite"), [(SUPPRESSED, "scatter-counts"), (REDIRECTED, "compiled-print")])
def test_what_follows_from_a_stated_difference_is_stated(text: str, rewrite: str) -> None:
    """An exception that a context manager suppresses, and output that the program reads itself."""
    found = compare(text, unsafe=True, only=rewrite, inputs=["float16 positive"])
    assert found.rewrites == (rewrite,)
    assert found.differs
    assert found.faults == ()


PATCHED = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sin()


Model.compile = lambda self, optimizer: None
model = Model()
torch.compile(model)


def f(x, y):
    return model(x)
"""


def test_a_program_that_can_no_longer_be_loaded_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare(PATCHED, unsafe=True, only="module-compile", inputs=["float16 positive"])
    assert found.differs
    assert found.faults == ()
    monkeypatch.setattr("benchmarks.rewrite_fuzzer.comparing.effects_of", lambda differences, **options: frozenset())
    found = compare(PATCHED, unsafe=True, only="module-compile", inputs=["float16 positive"])
    assert found.faults[0].kind == "exception of the first call"


COPIED = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        a = x
        i = y.argmax()
        b = a[i]
        return b

model = Model()

def f(x, y):
    return model(y=y, x=x)
"""


def test_a_copy_in_place_of_a_view_has_strides_of_its_own() -> None:
    found = compare(COPIED, unsafe=True, only="index-one-element", inputs=["2-d transposed"])
    assert found.differs
    assert found.faults == ()
