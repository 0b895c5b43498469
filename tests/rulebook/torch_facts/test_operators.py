"""The measured table of operators, and its agreement with the installed torch."""

from pathlib import Path

import pytest

from breakscan.model.torch_versions import SUPPORTED
from breakscan.rulebook.torch_facts import operators
from breakscan.rulebook.torch_facts.operators import (
    Gradient,
    Often,
    Operator,
    Shape,
    forms,
    is_covered,
    nearest,
    operator,
)


def known(name: str) -> Operator:
    found = operator("2.13", name)
    assert found is not None
    return found


def test_forms_of_calls() -> None:
    assert forms(["t", "n"]) == {"nt"}
    assert forms(["t", "ns"]) == {"nt", "st"}
    assert is_covered("ntt", {"ttt"})
    assert not is_covered("tt", {"nt", "ttt"})
    assert not is_covered("st", {"tt"})


def test_only_some_calls_read_values_or_raise() -> None:
    where, narrow, norm = known("torch.where"), known("narrow"), known("norm")
    assert where.reads_in({"t"})
    assert not where.reads_in({"ntt"})
    assert narrow.reads_in({"nntt"})
    assert not narrow.reads_in({"nnnt"})
    assert norm.raises_in({"st"})
    assert not norm.raises_in({"nt"})
    assert known("gather").raises_in({"ntt"})
    assert known("torch.take_along_dim").raises_in({"ntt"})
    assert known("tolist").reads_in({"t"})
    assert not known("data_ptr").reads_in({"t"})


@pytest.mark.parametrize(
    ("name", "fact", "value"),
    [
        ("detach", "shares_storage", Often.ALWAYS),
        ("detach", "gradient", Gradient.NONE),
        ("sum", "plain_shapes", {Shape.ZERO_DIM}),
        ("sum", "shares_storage", Often.NEVER),
        ("nonzero", "reads_values", Often.ALWAYS),
        ("multinomial", "draws_random", Often.ALWAYS),
        *((f"torch.{name}", "draws_random", Often.SOMETIMES) for name in ("rand", "randint", "rrelu")),
        ("torch.nn.functional.alpha_dropout", "draws_random", Often.SOMETIMES),
        ("empty_like", "draws_random", Often.NEVER),
        ("add", "alike", {1}),
        ("masked_fill", "alike", {2}),
        ("pow", "alike", set()),
        *((name, "costly", True) for name in ("matmul", "det")),
        *((name, "costly", False) for name in ("norm", "softmax", "gather")),
        *((name, "keeps_values", True) for name in ("contiguous", "long")),
        ("relu", "keeps_values", False),
        ("flatten", "keeps_vectors", True),
        ("clone", "keeps_vectors", False),
    ],
)
def test_facts(name: str, fact: str, value: object) -> None:
    assert getattr(known(name), fact) == value


def test_square_of_bools_is_int64() -> None:
    assert known("torch.square").results_by_dtype["bool"] == ("int64",)
    assert known("torch.square").keeps_dtype() is False


def test_each_version_has_its_own_facts() -> None:
    """A number and a tensor as a clamp's bound differ for NaN on 2.11, in the gradient at the bound from 2.14 on."""
    for version in SUPPORTED:
        clamp = operator(version, "clamp")
        assert clamp is not None
        assert clamp.alike == ({1} if version in ("2.12", "2.13") else frozenset())
    narrow = operator("2.15", "narrow")
    assert narrow is not None
    assert narrow.reads_values is Often.NEVER


def test_every_supported_version_has_all_files() -> None:
    data = Path(operators.__file__).parent / "data"
    for folder in (data, data / "operators"):
        assert {path.stem for path in folder.glob("*.json")} == set(SUPPORTED)


def test_each_version_knows_which_arguments_a_batch_norm_writes() -> None:
    for version in SUPPORTED:
        norm = operator(version, "torch.nn.functional.batch_norm")
        assert norm is not None
        assert norm.writes == {1, 2}


def test_a_version_without_measurements_reads_the_nearest_before() -> None:
    assert nearest("2.12", ["2.11", "2.13"]) == "2.11"
    assert nearest("2.15", ["2.11", "2.9", "2.13"]) == "2.13"
    assert nearest("2.8", ["2.11", "2.13"]) == "2.11"
