"""The generated table knows what torch's functions return."""

import inspect

import pytest

from breakscan.model.torch_versions import SUPPORTED
from breakscan.rulebook.torch_facts.table import load_api


@pytest.mark.parametrize("version", SUPPORTED)
def test_each_version_says_how_many_results_of_which_dtype(version: str) -> None:
    api = load_api(version)
    assert api.result_dtypes("max", "float", frozenset({"dim"})) == ["float", "int"]
    assert api.fields["max"] == ("values", "indices")
    assert api.result_dtypes("unique", "bool", frozenset({"return_counts"})) == ["bool", "int"]
    assert api.result_dtypes("unique", "bool", frozenset({"return_counts", "return_inverse"})) == ["bool", "int", "int"]
    assert api.result_dtypes("linalg.svd", None) == ["float", "float", "float"]
    assert api.result_dtypes("split", "int") == []
    assert api.element_dtype("split", "int") == "int"


def test_dtype_classes_follow_the_input_or_are_fixed() -> None:
    api = load_api("2.13")
    assert [api.dtype_class("sum", given) for given in ("float", "int", "bool", None)] == ["float", "int", "int", None]
    assert api.dtype_class("isnan", None) == "bool"
    assert api.dtype_class("argmax", "float") == "int"
    assert api.dtype_class("nn.functional.softmax", None) == "float"
    assert api.dtype_class("tensor", None) is None


def test_a_whole_tensor_is_reduced_with_so_many_tensors_given() -> None:
    api = load_api("2.13")
    assert api.is_whole("max", 1)
    assert not api.is_whole("max", 2)
    assert api.is_whole("nn.functional.mse_loss", 2)
    assert not api.is_whole("trapezoid", 1)
    assert not api.is_whole("inner", 2)
    assert "sin" in api.broadcasts
    assert "sort" not in api.broadcasts


@pytest.mark.torch
def test_no_public_function_on_tensors_is_missing() -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    if not torch.__version__.startswith("2.13."):
        pytest.skip("the table in question is that of torch 2.13")
    known = load_api("2.13").functions
    helpers = {"boolean_dispatch", "handle_torch_function", "assert_int_or_pair"}
    names = {
        f"torch.nn.functional.{name}"
        for name in dir(functional)
        if not name.startswith(("_", "has_torch_function")) and name not in helpers
        if inspect.isroutine(getattr(functional, name))
        if getattr(functional, name).__module__ not in ("typing", "importlib", "builtins")
    }
    for namespace in ("linalg", "fft", "special"):
        public = {name: one for name, one in vars(getattr(torch, namespace)).items() if not name.startswith("_")}
        names |= {f"torch.{namespace}.{name}" for name, one in public.items() if inspect.isbuiltin(one)}
    assert len(names) > 200
    assert not sorted(names - set(known))
