"""Guards as torch words them, read into the user's names and values."""

from __future__ import annotations

import pytest

from breakscan.recording.parsers.guards import (
    Demand,
    DemandKind,
    GuardKind,
    ParsedGuard,
    TensorDemand,
    Within,
    lost_view,
    read_demand,
    read_guard,
    readable,
    subject_source,
)


def holds(code: str) -> Demand:
    return Demand(DemandKind.HOLDS, code=code)


CASES: list[tuple[str, ParsedGuard]] = [
    (
        "tensor 'L['x']' size mismatch at index 0. expected 4, actual 5",
        ParsedGuard(GuardKind.SIZE, "x.shape[0]", holds("x.shape[0] == 4"), "4", "5"),
    ),
    (
        "tensor 'L['x']' stride mismatch at index 0. expected 4, actual 1",
        ParsedGuard(GuardKind.STRIDE, "x.stride()[0]", holds("x.stride()[0] == 4"), "4", "1"),
    ),
    (
        "tensor 'L['x']' rank mismatch. expected 1, actual 2",
        ParsedGuard(GuardKind.TENSOR, "x.dim()", holds("x.dim() == 1"), "1", "2"),
    ),
    (
        "tensor 'L['x']' dtype mismatch. expected Float, actual Double",
        ParsedGuard(GuardKind.TENSOR, "x.dtype", holds("x.dtype == float32"), "float32", "float64"),
    ),
    (
        "tensor 'L['self']._parameters['w']' requires_grad mismatch. expected requires_grad=1. Guard failed on a "
        "parameter, consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on "
        "parameters.",
        ParsedGuard(
            GuardKind.PARAMETER, "self.w.requires_grad", holds("self.w.requires_grad is True"), "True", "False"
        ),
    ),
    (
        "tensor 'L['self'].weight' dtype mismatch. expected Float, actual BFloat16. Guard failed on a parameter, "
        "consider using torch._dynamo.config.force_parameter_static_shapes = False to allow dynamism on parameters.",
        ParsedGuard(
            GuardKind.PARAMETER, "self.weight.dtype", holds("self.weight.dtype == float32"), "float32", "bfloat16"
        ),
    ),
    (
        "L['x'].stride()[0] == L['x'].size()[1]*L['x'].size()[2]  # (unknown source L['x'].stride()[0], please file …",
        ParsedGuard(
            GuardKind.STRIDE,
            "x.stride()[0]",
            holds("x.stride()[0] == x.shape[1] * x.shape[2]"),
            "x.shape[1] * x.shape[2]",
        ),
    ),
    (
        "'NoneType' object has no attribute 'size'",
        ParsedGuard(
            GuardKind.OTHER,
            "'NoneType' object has no attribute 'size'",
            Demand(DemandKind.QUOTED, code="'NoneType' object has no attribute 'size'"),
        ),
    ),
    (
        "Unexpected recompilation: runtime guards failed even though they passed during recompilation-reason analysis.",
        ParsedGuard(GuardKind.OTHER, "", Demand(DemandKind.NOTHING)),
    ),
    (
        "Cache line invalidated because L['___stack0'] got deallocated",
        ParsedGuard(
            GuardKind.FREED,
            "the value computed before the break",
            Demand(DemandKind.IN_MEMORY, "the value computed before the break"),
        ),
    ),
    (
        "expected type of 'L['n']' to be a tensor type, ' but found <class 'int'>",
        ParsedGuard(GuardKind.TYPE, "n", Demand(DemandKind.TENSOR, "n"), "a tensor", "an int"),
    ),
    (
        "tensor 'L['x']' requires_grad mismatch. expected requires_grad=0",
        ParsedGuard(GuardKind.TENSOR, "x.requires_grad", holds("x.requires_grad is False"), "False", "True"),
    ),
    (
        "expected type of 'L['s']' to be a tensor type, ' but found <class 'NoneType'>",
        ParsedGuard(GuardKind.TYPE, "s", Demand(DemandKind.TENSOR, "s"), "a tensor", "None"),
    ),
    (
        "expected type of 'L['s']' to be <class 'torch.Tensor'>, but found <class 'NoneType'>",
        ParsedGuard(GuardKind.TYPE, "s", Demand(DemandKind.TENSOR, "s"), "a tensor", "None"),
    ),
    (
        "expected type of 'L['s']' to be <class 'torch.nn.parameter.Parameter'>, but found <class 'torch.Tensor'>",
        ParsedGuard(GuardKind.TYPE, "s", Demand(DemandKind.TENSOR, "s"), "a Parameter", "a Tensor"),
    ),
    (
        "L['s'] == 'a#b'                             # return x + len(s)  # work/model.py:3 in f",
        ParsedGuard(GuardKind.VALUE, "s", holds("s == 'a#b'"), "'a#b'"),
    ),
    (
        "L['self']._modules['block'].step == 3   # self.step += 1  # model.py:12 in forward",
        ParsedGuard(GuardKind.VALUE, "self.block.step", holds("self.block.step == 3"), "3"),
    ),
    ("G['CONFIG'].scale == 2.0", ParsedGuard(GuardKind.VALUE, "CONFIG.scale", holds("CONFIG.scale == 2.0"), "2.0")),
    ("len(L['xs']) == 2", ParsedGuard(GuardKind.VALUE, "len(xs)", holds("len(xs) == 2"), "2")),
    ("L['s'] is None", ParsedGuard(GuardKind.VALUE, "s", holds("s is None"), "None")),
    ("not L['args']", ParsedGuard(GuardKind.VALUE, "args", Demand(DemandKind.FALSE, "args"), "empty or false")),
    ("L['x'] is L['y']", ParsedGuard(GuardKind.ALIAS, "x and y", holds("x is y"))),
    (
        "Duplicate tensor found where not expected!",
        ParsedGuard(GuardKind.ALIAS, "two inputs", Demand(DemandKind.DISTINCT)),
    ),
    (
        "2 <= L['x'].size()[0] <= 5  # if x.shape[0] > 5:  # model.py:3 in f",
        ParsedGuard(GuardKind.SIZE, "x.shape[0]", holds("2 <= x.shape[0] <= 5"), Within("2 <= x.shape[0] <= 5")),
    ),
    ("KeyError on L['d']['a']", ParsedGuard(GuardKind.PRESENCE, "'a' in d", holds("'a' in d"), "True", "False")),
    (
        "not ___dict_contains('lr', G['cfg'].__dict__)",
        ParsedGuard(GuardKind.PRESENCE, "'lr' in cfg", holds("not 'lr' in cfg"), "False", "True"),
    ),
    (
        "GLOBAL_STATE changed: grad_mode ",
        ParsedGuard(GuardKind.GLOBAL, "grad_mode", Demand(DemandKind.UNCHANGED, "grad_mode")),
    ),
    (
        "___check_obj_id(L['f'].__code__, 140579410519024), type=<class 'code'>  # f(x)",
        ParsedGuard(GuardKind.IDENTITY, "f", Demand(DemandKind.SAME_OBJECT, "f"), "another object"),
    ),
    (
        "___check_type_id(L['x'], 94), type=<class 'collections.OrderedDict'>",
        ParsedGuard(GuardKind.TYPE, "x", Demand(DemandKind.CLASS, "x", "OrderedDict"), "an OrderedDict"),
    ),
    (
        "something that no version said so far",
        ParsedGuard(
            GuardKind.OTHER,
            "something that no version said so far",
            Demand(DemandKind.QUOTED, code="something that no version said so far"),
        ),
    ),
]


@pytest.mark.parametrize(("text", "guard"), CASES, ids=[text[:30] for text, _ in CASES])
def test_a_guard_is_read(text: str, guard: ParsedGuard) -> None:
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


def test_what_a_compiled_function_demands() -> None:
    tensor = (
        "check_tensor(L['self']._modules['l']._parameters['weight'], Parameter, DispatchKeySet(CUDA, BackendSelect), "
        "torch.bfloat16, device=0, requires_grad=True, size=[None, 4], stride=[4, 1])"
    )
    assert read_demand("TENSOR_MATCH", tensor) == TensorDemand(
        "self.l.weight", "Parameter", "bfloat16", "cuda:0", "[None, 4]", "[4, 1]", "True"
    )
    module = "___check_obj_id(G['__import_torch_dot_nn'].F, 0), type=<class 'module'>"
    assert read_demand("ID_MATCH", module) == Demand(DemandKind.SAME_OBJECT, "torch.nn.F")
    assert read_demand("GLOBAL_STATE", "___check_global_state()") == Demand(DemandKind.GLOBAL_STATE)
    hooks = "torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None"
    assert read_demand("LAMBDA_GUARD", hooks) == Demand(DemandKind.SAVED_TENSOR_HOOKS)


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
