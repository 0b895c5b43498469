"""Guards as torch words them, read into the user's names and values."""

from __future__ import annotations

import pytest

from breakscan.runtime.parsers.guard_text import GuardInWords, GuardKind, read_guard, readable, subject_source

CASES = [
    (
        "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5",
        GuardInWords(GuardKind.SIZE, "x.shape[0]", "x.shape[0] == 4", "4", "5"),
    ),
    (
        "tensor 'L['x']' stride mismatch at index 0. expected 4, actual 1",
        GuardInWords(GuardKind.STRIDE, "x.stride()[0]", "x.stride()[0] == 4", "4", "1"),
    ),
    (
        "tensor 'L['x']' rank mismatch. expected 1, actual 2",
        GuardInWords(GuardKind.TENSOR, "x.dim()", "x.dim() == 1", "1", "2"),
    ),
    (
        "tensor 'L['x']' dtype mismatch. expected Float, actual Double",
        GuardInWords(GuardKind.TENSOR, "x.dtype", "x.dtype == float32", "float32", "float64"),
    ),
    (
        "tensor 'L['self']._parameters['w']' requires_grad mismatch. expected requires_grad=1. Guard failed on a "
        "parameter, consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on "
        "parameters.",
        GuardInWords(GuardKind.PARAMETER, "self.w.requires_grad", "self.w.requires_grad is True", "True", "False"),
    ),
    (
        "tensor 'L['self'].weight' dtype mismatch. expected Float, actual BFloat16. Guard failed on a parameter, "
        "consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.",
        GuardInWords(GuardKind.PARAMETER, "self.weight.dtype", "self.weight.dtype == float32", "float32", "bfloat16"),
    ),
    (
        "Unexpected recompilation: runtime guards failed even though they passed during recompilation-reason analysis.",
        GuardInWords(GuardKind.OTHER, "", "no guard fails when asked again: two threads may have compiled it at once"),
    ),
    (
        "Cache line invalidated because L['___stack0'] got deallocated",
        GuardInWords(
            GuardKind.FREED,
            "the value computed before the break",
            "the value computed before the break is still in memory",
        ),
    ),
    (
        "expected type of 'L['n']' to be a tensor type, ' but found <class 'int'>",
        GuardInWords(GuardKind.TYPE, "n", "n is a tensor", "a tensor", "an int"),
    ),
    (
        "tensor 'L['x']' requires_grad mismatch. expected requires_grad=0",
        GuardInWords(GuardKind.TENSOR, "x.requires_grad", "x.requires_grad is False", "False", "True"),
    ),
    (
        "expected type of 'L['s']' to be a tensor type, ' but found <class 'NoneType'>",
        GuardInWords(GuardKind.TYPE, "s", "s is a tensor", "a tensor", "None"),
    ),
    (
        "L['s'] == 'a#b'                             # return x + len(s)  # work/model.py:3 in f",
        GuardInWords(GuardKind.VALUE, "s", "s == 'a#b'", "'a#b'"),
    ),
    (
        "L['self']._modules['block'].step == 3   # self.step += 1  # model.py:12 in forward",
        GuardInWords(GuardKind.VALUE, "self.block.step", "self.block.step == 3", "3"),
    ),
    ("G['CONFIG'].scale == 2.0", GuardInWords(GuardKind.VALUE, "CONFIG.scale", "CONFIG.scale == 2.0", "2.0")),
    ("len(L['xs']) == 2", GuardInWords(GuardKind.VALUE, "len(xs)", "len(xs) == 2", "2")),
    ("L['s'] is None", GuardInWords(GuardKind.VALUE, "s", "s is None", "None")),
    ("not L['args']", GuardInWords(GuardKind.VALUE, "args", "args is empty or false", "empty or false")),
    ("L['x'] is L['y']", GuardInWords(GuardKind.ALIAS, "x and y", "x is y")),
    (
        "Duplicate tensor found where not expected!",
        GuardInWords(GuardKind.ALIAS, "two inputs", "no two inputs are the same tensor"),
    ),
    (
        "2 <= L['x'].size()[0] <= 5  # if x.shape[0] > 5:  # model.py:3 in f",
        GuardInWords(GuardKind.SIZE, "x.shape[0]", "2 <= x.shape[0] <= 5", "within 2 <= x.shape[0] <= 5"),
    ),
    ("KeyError on L['d']['a']", GuardInWords(GuardKind.PRESENCE, "'a' in d", "'a' in d", "True", "False")),
    (
        "not ___dict_contains('lr', G['cfg'].__dict__)",
        GuardInWords(GuardKind.PRESENCE, "'lr' in cfg", "not 'lr' in cfg", "False", "True"),
    ),
    ("GLOBAL_STATE changed: grad_mode ", GuardInWords(GuardKind.GLOBAL, "grad_mode", "grad_mode is unchanged")),
    (
        "___check_obj_id(L['f'].__code__, 140579410519024), type=<class 'code'>  # f(x)",
        GuardInWords(GuardKind.IDENTITY, "f", "f is the same object", "another object"),
    ),
    (
        "___check_type_id(L['x'], 94), type=<class 'collections.OrderedDict'>",
        GuardInWords(GuardKind.TYPE, "x", "x is an OrderedDict", "an OrderedDict"),
    ),
    (
        "something that no version said so far",
        GuardInWords(GuardKind.OTHER, "something that no version said so far", "something that no version said so far"),
    ),
]


@pytest.mark.parametrize(("text", "guard"), CASES, ids=[text[:30] for text, _ in CASES])
def test_a_guard_is_read(text: str, guard: GuardInWords) -> None:
    assert read_guard(text) == guard


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
    assert readable("dict.__getitem__(L['d'], list(dict.keys(L['d']))[0])") == "list(d.values())[0]"
    assert readable("G['__builtins_dict___3']['len']") == "len"
    assert readable("list(dict.keys(L['kw']))[0] == 'a'") == "list(kw)[0] == 'a'"
