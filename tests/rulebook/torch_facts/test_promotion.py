"""Type promotion is that of the installed torch."""

from itertools import product

import pytest

from breakscan.rulebook.torch_facts.operators import DTYPES
from tools.promotion import Operand, Priority, dtype_class, promoted, python_number

NUMBERS = (True, 2, 2.5, 1j)
OPERANDS = [
    *(Operand(name, priority) for name in DTYPES for priority in (Priority.ZERO_DIM, Priority.DIMENSIONED)),
    *(python_number(number) for number in NUMBERS),
]


@pytest.mark.torch
@pytest.mark.parametrize("default", ["float32", "float64"])
def test_every_pair_of_operands_is_promoted_as_torch_does_it(default: str) -> None:
    torch = pytest.importorskip("torch")
    numbers = {python_number(number): number for number in NUMBERS}

    def value(operand: Operand):
        if operand.priority is Priority.NUMBER:
            return numbers[operand]
        return torch.ones(() if operand.priority is Priority.ZERO_DIM else (2,), dtype=getattr(torch, operand.dtype))

    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        wrong = [
            (one, other)
            for one, other in product(OPERANDS, OPERANDS)
            if not one.priority is other.priority is Priority.NUMBER
            and promoted([one, other], default) != str(torch.result_type(value(one), value(other)))[6:]
        ]
    finally:
        torch.set_default_dtype(before)
    assert wrong == []


@pytest.mark.torch
def test_three_tensors_are_promoted_as_torch_does_it() -> None:
    torch = pytest.importorskip("torch")
    names = ("bool", "uint8", "int8", "int32", "float16", "bfloat16", "float32", "complex64")
    tensors = [one for one in OPERANDS if one.dtype in names and one.priority is not Priority.NUMBER]
    compared = 0
    for three in product(tensors, repeat=3):
        made = [torch.ones((2,) * (one.priority - 1), dtype=getattr(torch, one.dtype)) for one in three]
        try:
            expected = str(torch.addcmul(*made).dtype)[6:]
        except RuntimeError:  # bools are refused
            continue
        if expected != "complex32":  # is not measured
            compared += 1
            assert promoted(three) == expected
    assert compared > 3000


def test_classes_of_dtypes() -> None:
    assert [dtype_class(name) for name in ("half", "long", "bool", "complex64", "qint8")] == [
        *("float", "int", "bool", "complex"),
        None,
    ]
