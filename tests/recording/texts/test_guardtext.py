"""Guards as torch words them, read into the user's names and values."""

import pytest

from breakscan.explanation.recompiles import Recompile, recompile_sentence
from breakscan.model.findings import Origin, Site
from breakscan.recording.parsers.guards import (
    NONE_FAILED,
    lost_view,
    read_demand,
    read_guard,
    readable,
    subject_source,
)

CASES = """\
tensor 'L['x']' size mismatch at index 0. expected 4, actual 5
  size | argument | x.shape[0] | x.shape[0] == 4 | 4 | 5
tensor 'L['x']' stride mismatch at index 0. expected 4, actual 1
  layout | argument | x.stride()[0] | x.stride()[0] == 4 | 4 | 1
tensor 'L['x']' rank mismatch. expected 1, actual 2
  rank | argument | x.dim() | x.dim() == 1 | 1 | 2
tensor 'L['x']' dtype mismatch. expected Float, actual Double
  dtype | argument | x.dtype | x.dtype == float32 | float32 | float64
tensor 'L['self']._parameters['w']' requires_grad mismatch. expected requires_grad=1. Guard failed on a parameter, …
  requires-grad | attribute | self.w.requires_grad | self.w.requires_grad is True | True | False | is_parameter
tensor 'L['self'].weight' dtype mismatch. expected Float, actual BFloat16. Guard failed on a parameter, consider …
  dtype | attribute | self.weight.dtype | self.weight.dtype == float32 | float32 | bfloat16 | is_parameter
L['x'].stride()[0] == L['x'].size()[1]*L['x'].size()[2]  # (unknown source L['x'].stride()[0], please file …
  layout | argument | x.stride()[0] | x.stride()[0] == x.shape[1] * x.shape[2] | x.shape[1] * x.shape[2] | -
'NoneType' object has no attribute 'size'
  other | none |  | 'NoneType' object has no attribute 'size' | - | -
Unexpected recompilation: runtime guards failed even though they passed during recompilation-reason analysis.
  other | none |  | no guard fails when asked again: two threads may have compiled it at once | - | -
Cache line invalidated because L['___stack0'] got deallocated
  freed | result | the value computed before the break | the value computed before the break is still in memory | - | -
expected type of 'L['n']' to be a tensor type, ' but found <class 'int'>
  tensor-type | argument | n | n is a tensor | a tensor | an int
tensor 'L['x']' requires_grad mismatch. expected requires_grad=0
  requires-grad | argument | x.requires_grad | x.requires_grad is False | False | True
expected type of 'L['s']' to be a tensor type, ' but found <class 'NoneType'>
  tensor-type | argument | s | s is a tensor | a tensor | None
expected type of 'L['s']' to be <class 'torch.Tensor'>, but found <class 'NoneType'>
  tensor-type | argument | s | s is a tensor | a tensor | None
expected type of 'L['s']' to be <class 'torch.nn.parameter.Parameter'>, but found <class 'torch.Tensor'>
  tensor-type | argument | s | s is a tensor | a Parameter | a Tensor
L['s'] == 'a#b'                             # return x + len(s)  # work/model.py:3 in f
  flag | argument | s | s == 'a#b' | 'a#b' | -
L['self']._modules['block'].step == 3   # self.step += 1  # model.py:12 in forward
  number | attribute | self.block.step | self.block.step == 3 | 3 | -
G['CONFIG'].scale == 2.0
  number | attribute | CONFIG.scale | CONFIG.scale == 2.0 | 2.0 | -
len(L['xs']) == 2
  length | argument | len(xs) | len(xs) == 2 | 2 | -
L['s'] is None
  flag | argument | s | s is None | None | -
not L['args']
  length | argument | args | args is empty or false | empty or false | -
L['x'] is L['y']
  alias | argument | x and y | x is y | - | -
Duplicate tensor found where not expected!
  alias | none | two inputs | two inputs are not the same tensor | - | -
2 <= L['x'].size()[0] <= 5  # if x.shape[0] > 5:  # model.py:3 in f
  branch-on-size | argument | x.shape[0] | 2 <= x.shape[0] <= 5 | within 2 <= x.shape[0] <= 5 | - | is_bound
KeyError on L['d']['a']
  keys | argument | 'a' in d | 'a' in d | True | False
not ___dict_contains('lr', G['cfg'].__dict__)
  set-later | attribute | cfg.lr | cfg.lr is missing | missing | -
getattr failed on source L['b']
  other | argument | an attribute of b | an attribute of b is set | set | missing
KeyError on L['self'].name
  set-later | attribute | self.name | self.name is set | set | missing
___check_type_id(L['self'], 94), type=<class '__main__.A'>  # torch.rand(x.shape[0], 1) < p  # a.py:5 in f
  type | argument | self | self is an A | an A | -
GLOBAL_STATE changed: grad_mode
  grad-mode | none | grad_mode | grad_mode is unchanged | - | -
___check_obj_id(L['f'].__code__, 140579410519024), type=<class 'code'>  # f(x)
  function | argument | f | f is the same object | another object | -
___check_type_id(L['x'], 94), type=<class 'collections.OrderedDict'>
  type | argument | x | x is an OrderedDict | an OrderedDict | -
something that no version said so far
  other | none |  | something that no version said so far | - | -
"""
"""Texts of torch, each with the kind, the holder, the subject, the demand, the old and the new value (``-``: none), and
what else holds of the guard."""
_LINES = CASES.splitlines()


@pytest.mark.parametrize(("text", "read"), [*zip(_LINES[::2], _LINES[1::2], strict=True)])
def test_a_guard_is_read(text: str, read: str) -> None:
    guard = read_guard(text)
    flags = [name for name in ("is_bound", "is_view", "is_parameter") if getattr(guard, name)]
    told = (guard.kind.value, guard.holder.value, guard.subject, guard.demand, guard.old, guard.new, *flags)
    assert " | ".join("-" if one is None else one for one in told) == read.strip()


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("L['s'] == 'a'  # comment", "L['s']"),
        ("2 <= L['x'].size()[0] <= 5", "L['x'].size()[0]"),
        ("not L['args']", "L['args']"),
        ("___check_obj_id(L['f'].__code__, 14), type=<class 'code'>", "L['f'].__code__"),
        ("tensor 'L['x']' size mismatch at index 0. expected 4, actual 5", None),
        ("GLOBAL_STATE changed: grad_mode", None),
        ("", None),
    ],
)
def test_the_expression_to_ask_for_is_found(text: str, source: str | None) -> None:
    assert subject_source(text) == source


def test_scopes_of_dynamos_are_left_out() -> None:
    assert readable("L['self']._modules['a']._parameters['weight']") == "self.a.weight"
    assert readable("___stack0.size()[1]") == "the value computed before the break.shape[1]"
    assert readable("L['__resume_frame_values'][2]") == "the value computed before the break"
    assert readable("L['__nested_frame_values'][0][1]") == "the value computed before the break"
    assert readable("dict.__getitem__(L['d'], list(dict.keys(L['d']))[0])") == "list(d.values())[0]"
    assert readable("G['__builtins_dict___3']['len']") == "len"
    assert readable("list(dict.keys(L['kw']))[0] == 'a'") == "list(kw)[0] == 'a'"


def test_what_a_compiled_function_demands() -> None:
    tensor = (
        "check_tensor(L['self']._modules['l']._parameters['weight'], Parameter, DispatchKeySet(CUDA, BackendSelect), "
        "torch.bfloat16, device=0, requires_grad=True, size=[None, 4], stride=[4, 1])"
    )
    assert read_demand("TENSOR_MATCH", tensor) == (
        "self.l.weight is a bfloat16 Parameter on cuda:0 of size [any, 4] and stride [4, 1], with requires_grad=True"
    )
    module = "___check_obj_id(G['__import_torch_dot_nn'].F, 0), type=<class 'module'>"
    assert read_demand("ID_MATCH", module) == "torch.nn.F is the same object"
    assert read_demand("GLOBAL_STATE", "___check_global_state()").startswith("grad mode, autocast")
    hooks = "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None"
    assert read_demand("LAMBDA_GUARD", hooks) == "the hooks on saved tensors are as they were"


def test_what_python_raises_of_a_lost_view_is_about_the_view() -> None:
    text = "'NoneType' object has no attribute 'size'"
    of_x, of_y = (read_demand("SHAPE_ENV", f"2 <= L['{name}']._base.size()[0]") for name in "xy")
    lost = lost_view(text, [of_x])
    assert lost is not None
    assert (lost.view, lost.old, lost.new) == ("x", "a view of another tensor", "no view")
    both = lost_view(text, [of_x, of_y])
    assert both is not None
    assert both.subject == "an input"
    assert lost_view(text, [read_demand("SHAPE_ENV", "2 <= L['x'].size()[0]")]) is None
    assert lost_view("L['x'] is None", [of_x]) is None


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        ("L['n'] == 2", ("2", "3"), "n was 2, then 3"),
        ("GLOBAL_STATE changed: grad_mode ", (None, None), "grad_mode changed"),
        (
            "Cache line invalidated because L['f'] got deallocated", (None, None),
            "f was freed, and with it the version that was compiled for it",
        ),
        (
            "___check_obj_id(L['f'].__code__, 14), type=<class 'code'>", ("another object", "the function g"),
            "f is another object than before (the function g)",
        ),
        ("2 <= L['n']", ("within 2 <= n", "1"), "2 <= n held, then n was 1"),
        ("2 <= L['n']", ("within 2 <= n", None), "a compiled version asks that 2 <= n"),
        ("f(L['n'])", (None, "3"), "a compiled version asks that f(n), and is 3 now"),
        ("no text of torch's", (None, None), "no compiled version fits (torch says: no text of torch's)"),
        ("Unexpected recompilation: …", (None, None), NONE_FAILED.demand),
    ],
)  # fmt: skip
def test_what_changed(text: str, values: tuple[str | None, str | None], sentence: str) -> None:
    guard, site = read_guard(text), Site("train.py", 4, 1, 4, 9)
    recompile = Recompile(None, "f", site, Origin.USER, None, guard, guard.subject, *values, "0/1", 0)
    assert recompile_sentence([recompile]) == sentence
