"""What the measured table says of operators, and whether the installed torch agrees."""

from __future__ import annotations

from breakscan.torch_facts.operators import Gradient, Often, Shape, operator
from breakscan.torch_facts.promotion import FLOATS, Operand, Priority, python_number
from breakscan.torch_facts.versions import nearest


def test_square_of_bools_is_int64() -> None:
    square = operator("2.13", "torch.square")
    assert square is not None
    assert square.dtype_of_one("bool") == "int64"
    assert square.keeps_dtype() is False
    assert square.keeps_dtype(FLOATS) is True


def test_operands_are_promoted() -> None:
    add, masked_fill = operator("2.13", "add"), operator("2.13", "torch.Tensor.masked_fill")
    assert add is not None
    assert masked_fill is not None
    assert add.result_dtype([Operand("int64"), python_number(2.5)]) == "float32"
    assert add.result_dtype([Operand("float16"), Operand("float32", Priority.ZERO_DIM)]) == "float16"
    assert masked_fill.result_dtype([Operand("int64"), Operand("bool"), python_number(2.5)]) == "int64"


def test_effects_and_shapes() -> None:
    detach, total, nonzero = operator("2.13", "detach"), operator("2.13", "sum"), operator("2.13", "nonzero")
    assert detach is not None
    assert total is not None
    assert nonzero is not None
    assert detach.shares_storage is Often.ALWAYS
    assert detach.gradient is Gradient.NONE
    assert total.plain_shapes == {Shape.ZERO_DIM}
    assert total.shares_storage is Often.NEVER
    assert nonzero.reads_values is Often.ALWAYS


def test_a_name_that_torch_does_not_have_is_unknown() -> None:
    assert operator("2.13", "torch.no_such_function") is None


def test_a_version_without_measurements_reads_the_nearest_before() -> None:
    assert nearest("2.12", ["2.11", "2.13"]) == "2.11"
    assert nearest("2.15", ["2.11", "2.9", "2.13"]) == "2.13"
    assert nearest("2.8", ["2.11", "2.13"]) == "2.11"
