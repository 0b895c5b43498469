"""Evaluates calls: resolves the callee, and passes the call to the module that handles it."""

import ast
from dataclasses import replace

from breakscan.check.interpreter import values as av
from breakscan.check.interpreter.builtin_calls import (
    builtin,
    call_own_method,
    computed_name,
    emit_format_fields,
    emit_sort,
)
from breakscan.check.interpreter.call_event import ENTER_ON_STACK, emit_call, emit_skippable, enter_on_stack
from breakscan.check.interpreter.frame import Frame
from breakscan.check.interpreter.parameters import LOGGER, makes_logger, used_as_tensor
from breakscan.check.interpreter.torch_calls import array_number_method, numpy_call, tensor_method, torch_function
from breakscan.check.project.entry_points import disabling_decorator
from breakscan.check.project.imports import Project
from breakscan.check.project.index import BUILTINS, ClassInfo, FunctionInfo
from breakscan.check.project.roots import PARTIAL
from breakscan.model.findings import Condition, ConditionKind, Mode
from breakscan.rulebook.events import EventKind
from breakscan.rulebook.torch_facts.not_measured import DISTINCTIVE_METHODS, RETURN_THE_MODULE, SUGGESTIVE_METHODS
from breakscan.rulebook.torch_facts.table import SETS_THE_REDUCTION
from breakscan.source.walking import is_name

_OPTIMIZER = "torch.optim.Optimizer"


def emit_guessed(frame: Frame, node: ast.Call, name: str, arguments: av.Arguments) -> None:
    """Emits what a method of an unknown value very likely is."""
    if name.startswith("register_") and name.endswith("_hook"):
        callee = f"torch.nn.Module.{name}"
    elif name == "backward":
        callee = "torch.Tensor.backward"
    elif "optim" in _last_name(node):
        callee = f"{_OPTIMIZER}.{name}"
    elif name == "load_state_dict":
        callee = f"torch.nn.Module.{name}"
    else:
        return
    frame.saw_tensor = True
    emit_call(frame, node, callee, arguments, av.Sure.LIKELY)


def _last_name(node: ast.Call) -> str:
    """``optimizer`` of ``self.optimizer.step()`` and of ``optimizer[i].step()``."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(owner, ast.Subscript):
        owner = owner.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name.lower()


def _fields_named(node: ast.Call) -> tuple[str, ...]:
    """The fields that a call of ``namedtuple`` lists, in one text or several; empty where they are computed."""
    listed = node.args[1] if len(node.args) > 1 else None
    if isinstance(listed, ast.Constant) and isinstance(listed.value, str):
        return tuple(listed.value.replace(",", " ").split())
    if not isinstance(listed, ast.List | ast.Tuple):
        return ()
    names = [n.value for n in listed.elts if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return tuple(names) if len(names) == len(listed.elts) else ()


_IMPORTING = frozenset({"importlib.import_module", "__import__"})


def optional_import(frame: Frame, node: ast.Call, info: FunctionInfo) -> av.Value | None:
    """The module that a call imports by its name, ``scipy, found = optional_import("scipy")``; None for others."""
    calls = [one for one in info.own_calls if info.index.dotted(one.func) in _IMPORTING]
    named = any(is_name(given, info.first_parameter) for one in calls for given in one.args[:1])
    names = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "name")]
    texts = [name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)]
    if not named or not texts or len(texts) != len(names):
        return None
    found = frame.program.names.imported(".".join(texts), frame.index)
    several = any(isinstance(one, ast.Return) and isinstance(one.value, ast.Tuple) for one in info.own_nodes)
    return av.container([found, av.CONSTANT]) if several else found


# The calls of a program's own functions that rules of the project name.  They are followed, and no event otherwise.
def emit_project_call(frame: Frame, node: ast.Call, called: FunctionInfo | ClassInfo, arguments: av.Arguments) -> None:
    """Emits the call if a rule wants it, under the name of the definition or the one that it is imported by."""
    if not frame.program.rules.of_projects:
        return
    for name in (f"{called.index.name}.{called.qualname}", frame.index.dotted(node.func)):
        if name and frame.wants(EventKind.CALL, name):
            emit_call(frame, node, name, arguments, av.Sure.CERTAIN)
            return


# Calls of methods of ``object`` that only C has, through ``super()``: Dynamo does not find them there.
_OF_OBJECT = frozenset(
    "__eq__ __format__ __ge__ __getstate__ __gt__ __hash__ __init_subclass__ __le__ __lt__ __ne__ __reduce__ "
    "__reduce_ex__ __repr__ __sizeof__ __str__".split()
)
_OF_MODULES = frozenset({"__getstate__", "__repr__"})
"""Those that ``nn.Module`` has in Python, or that most modules have a base for."""


def emit_super_slot(frame: Frame, node: ast.Call) -> None:
    """Emits ``super().__hash__()`` and the like, where no base in Python has it, and ``super().f.__wrapped__()``."""
    match node.func:
        case ast.Attribute(ast.Attribute(ast.Call(ast.Name("super"))), "__wrapped__"):
            frame.emit(EventKind.CALL, node, callee="super.__wrapped__")
    func = node.func
    owner = frame.function.owner if frame.function is not None else None
    if owner is None or not isinstance(func, ast.Attribute) or func.attr not in _OF_OBJECT:
        return
    if not isinstance(func.value, ast.Call) or not is_name(func.value.func, "super"):
        return
    project = frame.program.project
    outside = project.outside_bases(owner)
    chain = project.bases_of(owner)
    builtin_bases = {base for one in chain for base in one.bases if base in BUILTINS} - {"object"}  # Dynamo knows these
    if builtin_bases or any(base != "torch.nn.Module" for base in outside):
        return
    found = _OF_OBJECT - _OF_MODULES if outside else _OF_OBJECT
    if func.attr in found and not any(func.attr in base.methods for base in chain[1:]):
        frame.emit(EventKind.CALL, node, callee=f"super.{func.attr}")


TYPED_DICT = "typing.TypedDict"
_VALIDATES = frozenset({"pydantic.BaseModel", "pydantic.RootModel", "pydantic.dataclasses.dataclass"})
_BASES = frozenset({TYPED_DICT, "typing_extensions.TypedDict"})


def has_optional_keys(project: Project, owner: ClassInfo) -> bool:
    """True if a class is a TypedDict in which a key may be missing."""
    if _BASES.isdisjoint(project.outside_bases(owner)):
        return False
    return any(map(_makes_optional, project.bases_of(owner)))


def _makes_optional(owner: ClassInfo) -> bool:
    fields = [node.annotation for node in owner.node.body if isinstance(node, ast.AnnAssign)]
    kinds = [field.value for field in fields if isinstance(field, ast.Subscript)]
    asked = [getattr(kind, "attr", getattr(kind, "id", None)) for kind in kinds]
    partial = any(k.arg == "total" and getattr(k.value, "value", None) is False for k in owner.node.keywords)
    return "NotRequired" in asked or (partial and asked.count("Required") < len(fields))


def apply(frame: Frame, node: ast.Call, callee: av.Value, arguments: av.Arguments) -> av.Value:
    """Returns the result of a call. Emits the call if a rule may match it."""
    if isinstance(callee, av.Defined) and callee.choices:
        with frame.under(Condition(ConditionKind.CHOSEN, ast.unparse(node.func))):
            results = [apply(frame, node, choice, arguments) for choice in callee.choices]
        result = av.join_all(results)
        if isinstance(result, av.Tensor) and any(isinstance(r, av.Constant | av.Size | av.NoneValue) for r in results):
            # Not two paths to the same thing, but two things that do as they like.
            result = replace(result, optional=Condition(ConditionKind.RETURNS_TENSOR, ast.unparse(node.func)))
        return result
    if isinstance(callee, av.Function) and callee.info is not None:
        return _function(frame, node, callee, callee.info, arguments)
    if isinstance(callee, av.Class) and callee.info is not None:
        return _construct_own(frame, node, callee.info, callee.sure, arguments)
    if isinstance(callee, av.Module | av.Instance) and callee.name != PARTIAL:
        return _module_or_instance(frame, node, callee, arguments)
    if isinstance(callee, av.NamedTupleClass):
        parts = [arguments.get(i, name) or av.UNKNOWN for i, name in enumerate(callee.names)]
        made = av.UNKNOWN if arguments.spread else av.container(parts)
        named = tuple(zip(callee.names, parts, strict=True))
        return replace(made, keys=named) if isinstance(made, av.Container) and made.elements else made
    if isinstance(callee, av.Namespace) and callee.name:
        if callee.bound is None:
            return _named(frame, node, callee.name, arguments)
        if isinstance(bound := callee.bound, av.Tensor):
            name = callee.name.rsplit(".", 1)[-1]
            doubted = bound.sure is av.Sure.POSSIBLE and name in DISTINCTIVE_METHODS  # as of an unknown value
            bound = replace(bound, sure=av.Sure.LIKELY) if doubted else bound
            return tensor_method(frame, node, bound, name, arguments)
        return _method(frame, node, callee.bound, callee.name, arguments)
    frame.program.pass_callables(frame, node, arguments.values())
    return _of_parameter(frame, node, arguments) if isinstance(callee, av.Unknown) else av.UNKNOWN


def _of_parameter(frame: Frame, node: ast.Call, arguments: av.Arguments) -> av.Value:
    """The result of calling a parameter: mostly a tensor, if it is given one."""
    if not isinstance(node.func, ast.Name) or node.func.id not in frame.parameters:
        return av.UNKNOWN
    if frame.function is not None and used_as_tensor(frame.api, frame.function, f"{node.func.id}()"):
        return av.tensor(av.Sure.LIKELY)
    if not any(isinstance(value, av.Tensor) and value.sure is av.Sure.CERTAIN for value in arguments.values()):
        return av.UNKNOWN
    return replace(av.tensor(av.Sure.LIKELY), optional=Condition(ConditionKind.RETURNS_TENSOR, node.func.id))


def _function(
    frame: Frame, node: ast.Call, callee: av.Function, info: FunctionInfo, arguments: av.Arguments
) -> av.Value:
    # A plain export runs what Dynamo is kept out of.
    if frame.program.mode is not Mode.EXPORT and (disabled := disabling_decorator(info)):
        emit_call(frame, node, disabled, arguments, av.Sure.CERTAIN)
    given = arguments.with_receiver(callee.bound) if callee.bound is not None else arguments
    emit_project_call(frame, node, info, given)
    result = frame.program.call_function(frame, node, info, given, callee.closure)
    result = (optional_import(frame, node, info) if "import" in info.name else None) or result
    frame.program.call_wrappers(frame, info, given)
    return result


def _construct_own(frame: Frame, node: ast.Call, owner: ClassInfo, sure: av.Sure, arguments: av.Arguments) -> av.Value:
    emit_project_call(frame, node, owner, arguments)
    if not _VALIDATES.isdisjoint((*frame.program.project.outside_bases(owner), *owner.decorators)):
        frame.emit(EventKind.CALL, node, callee="pydantic.BaseModel", sure=sure)
    if has_optional_keys(frame.program.project, owner):
        frame.emit(EventKind.CALL, node, form="optional-keys", callee=TYPED_DICT, sure=sure)
    made = replace(av.instance_of(owner), sure=sure)
    is_module = isinstance(made, av.Module)
    if is_module and frame.program.attributes.makes_parameters(owner):
        frame.emit(EventKind.CONSTRUCT, node, form="module", callee=owner.qualname, operand=made)
    new = frame.program.project.method(owner, "__new__")
    if new is not None and not frame.silent and not frame.program.has_borrowed(new):
        given = arguments.with_receiver(av.Class(info=owner, name=owner.qualname))
        frame.program.call_function(frame, node, new, given)
    init = frame.program.project.method(owner, "__init__")
    # Without a tensor, the __init__ of a module makes parameters at most, which the call shows.
    made_of_tensors = not frame.silent and any(isinstance(value, av.Tensor) for value in arguments.values())
    followed = not is_module or made_of_tensors
    if init is not None and followed and not frame.program.has_borrowed(init):
        frame.program.call_function(frame, node, init, arguments.with_receiver(made))
    fields = frame.program.attributes.dataclass_fields(owner)
    for i, name in enumerate(fields):
        value = arguments.get(i, name)
        if value is not None:
            frame.program.attributes.store(owner, name, value)
    return made


_ANY_MODULE = frozenset({"Module", "Sequential", "ModuleList", "ModuleDict", "AdaptiveLogSoftmaxWithLoss"})
"""Classes that do not determine what calling one of their objects returns."""


def _module_or_instance(
    frame: Frame, node: ast.Call, callee: av.Module | av.Instance, arguments: av.Arguments
) -> av.Value:
    if callee.info is not None:
        method = frame.program.project.method(callee.info, "forward" if isinstance(callee, av.Module) else "__call__")
        if method is not None:
            given = arguments.with_receiver(callee)
            emit_project_call(frame, node, method, given)
            return frame.program.call_function(frame, node, method, given)
        return av.UNKNOWN
    name = callee.name or ""
    emit_call(frame, node, f"{name}.__call__", arguments, av.Sure.CERTAIN)
    if isinstance(callee, av.Module) and callee.element is not None and name.endswith("Sequential"):
        for module in callee.elements or (callee.element,):
            result = apply(frame, node, module, arguments)
            arguments = av.Arguments([result], {})
        return result
    last = name.rsplit(".", 1)[-1]
    if last in ("LSTM", "LSTMCell"):
        return av.container([av.tensor(), av.container([av.tensor(), av.tensor()])])
    if last in ("GRU", "RNN", "MultiheadAttention"):
        return av.container([av.tensor(), av.tensor()])
    if name in frame.api.modules and last not in _ANY_MODULE:
        # A loss is one number, unless an argument or an attribute keeps it for each element.
        is_one = last.endswith("Loss") and not any(word in frame.index.module.text for word in SETS_THE_REDUCTION)
        return av.tensor(dtype="float", zero_dim=is_one or None)
    return av.UNKNOWN


def _method(frame: Frame, node: ast.Call, owner: av.Value, dotted: str, arguments: av.Arguments) -> av.Value:
    """A method of something that is not known to be a tensor."""
    emit_super_slot(frame, node)
    name = dotted.rsplit(".", 1)[-1]
    made = arguments.get(0)
    if name == "__new__" and isinstance(made, av.Class) and made.info is not None:
        return replace(av.instance_of(made.info), sure=made.sure)
    if isinstance(owner, av.Instance) and owner.name:
        dotted = f"{owner.name}.{name}"
        if owner.name.rpartition(".")[0] == "torch.optim":
            frame.saw_tensor = True
            is_named = frame.program.rules.names(EventKind.CALL, dotted)
            dotted = dotted if is_named else f"{_OPTIMIZER}.{name}"
        if dotted == ENTER_ON_STACK and arguments.positional:
            enter_on_stack(frame, node, arguments.positional[0])
            return arguments.positional[0]
        emit_skippable(frame, node, dotted, arguments.with_receiver(owner), owner.sure)
        if dotted in _DRAWS and frame.traced:
            return av.DrawnNumber(owner.sure)
        if owner.name == "re.Pattern" and f"re.{name}" in _MAKES:
            return av.Instance(name="re.Match")
        return owner if dotted == "torch.Generator.manual_seed" else av.UNKNOWN
    if isinstance(owner, av.Container):
        return _container_method(frame, node, owner, name, arguments)
    if isinstance(owner, av.Module):
        if name in _REGISTERS and owner.info is not None:
            _register(frame, node, owner.info, name, arguments)
        frame.program.pass_callables(frame, node, arguments.values())
        emit_call(frame, node, dotted, arguments.with_receiver(owner), owner.sure)
        if name in ("parameters", "buffers"):
            return av.container_of(av.Tensor(parameter=name == "parameters"))
        return owner if name in RETURN_THE_MODULE else av.UNKNOWN
    if isinstance(owner, av.ArrayNumber):
        return array_number_method(frame, node, owner, name, arguments)
    if isinstance(owner, av.Size):
        return av.SIZE
    if isinstance(owner, av.Constant) and name == "format":
        for value in arguments.values():
            if isinstance(value, av.Tensor):
                emit_call(frame, node, "str.format", av.Arguments([value], {}), value.sure)
        emit_format_fields(frame, node, owner.literal, arguments)
    if isinstance(owner, av.Constant | av.NoneValue):
        return av.CONSTANT
    return owner if isinstance(owner, av.TensorNumber) else _method_of_unknown(frame, node, name, arguments)


def _method_of_unknown(frame: Frame, node: ast.Call, name: str, arguments: av.Arguments) -> av.Value:
    """A method of an unknown value, as far as the name suggests a tensor."""
    if name in DISTINCTIVE_METHODS:
        return tensor_method(frame, node, av.tensor(av.Sure.LIKELY), name, arguments)
    if name in SUGGESTIVE_METHODS:
        compared = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Compare)
        # The result of a comparison of numbers has no such method.
        known = av.tensor(av.Sure.LIKELY, "bool") if compared else av.tensor(av.Sure.POSSIBLE)
        return tensor_method(frame, node, known, name, arguments)
    if name == "size":
        return av.SIZE
    emit_guessed(frame, node, name, arguments)
    if name not in _LEVELS:  # a logger may call a lambda for its text, once the graph has ended
        frame.program.pass_callables(frame, node, arguments.values())
    return av.UNKNOWN


_LEVELS = frozenset("trace debug info success warning error critical exception log".split())
_REGISTERS = {
    "add_module": "module",
    "register_buffer": "tensor",
    "register_module": "module",
    "register_parameter": "param",
}
"""Methods of modules that set an attribute, each with the name of the argument that is the value."""


def _register(frame: Frame, node: ast.Call, owner: ClassInfo, method: str, arguments: av.Arguments) -> None:
    name = computed_name(frame, node.args[0]) if node.args else None
    value = arguments.get(1, _REGISTERS[method])
    if name is None or value is None:
        return
    if method.endswith("module"):
        known: av.Value = value if isinstance(value, av.Module) else av.Module(av.Sure.LIKELY)
    else:
        known = value if isinstance(value, av.Tensor | av.NoneValue) else av.Tensor(av.Sure.LIKELY)
    frame.program.attributes.store(owner, name, known)


_ADD = frozenset({"append", "add", "insert", "extend", "update"})


def _container_method(
    frame: Frame, node: ast.Call, owner: av.Container, name: str, arguments: av.Arguments
) -> av.Value:
    func = node.func
    if name in _ADD and arguments.positional and isinstance(func, ast.Attribute):
        added = arguments.positional[-1]
        added = av.item_of(added) if name in ("extend", "update") else added
        if isinstance(func.value, ast.Name):
            parts = (av.item_of(owner), added) if owner.element or owner.elements else (added,)
            grown = replace(owner, elements=None, element=av.any_of(parts))
            frame.names[func.value.id] = grown
        return av.CONSTANT
    if name == "sort":
        emit_sort(frame, node, owner, arguments)
        return av.NONE
    if name in ("pop", "get", "popleft", "setdefault"):
        return av.item_of(owner)
    if name in ("values", "copy"):
        return av.container_of(av.item_of(owner)) if name == "values" else owner
    if name == "items":
        return av.container_of(av.container([av.CONSTANT, av.item_of(owner)]))
    if name == "keys":
        return av.container_of(av.CONSTANT)
    return av.UNKNOWN if isinstance(av.item_of(owner), av.Unknown) else av.CONSTANT


def _named(frame: Frame, node: ast.Call, dotted: str, arguments: av.Arguments) -> av.Value:
    """A call to something imported or built in."""
    if dotted in BUILTINS:
        return builtin(frame, node, dotted, arguments)
    last = dotted.rsplit(".", 1)[-1]
    if makes_logger(last):
        if dotted == "logging.getLogger" and node.args:  # the root logger is found without a break
            emit_call(frame, node, dotted, arguments, av.Sure.CERTAIN)
        return av.Instance(name=LOGGER)
    if dotted.startswith("torch."):
        return torch_function(frame, node, dotted, last, arguments)
    if dotted.startswith("numpy.") and frame.traced:
        return numpy_call(frame, node, dotted, arguments)
    sure = max((v.sure for v in arguments.values() if isinstance(v, av.Tensor)), default=av.Sure.POSSIBLE)
    if dotted.startswith(("math.", "cmath.")):
        emit_call(frame, node, dotted, arguments, av.Sure.CERTAIN)
        if node.args and _is_iterator(frame, node.args[0]):
            frame.emit(EventKind.CALL, node, form="iterator", callee=dotted)
        is_read = any(isinstance(v, av.Tensor | av.TensorNumber) for v in arguments.values())
        return av.TensorNumber(sure) if is_read else av.CONSTANT
    if dotted == "copy.copy" and arguments.positional:
        copied = call_own_method(frame, node, arguments.positional[0], "__copy__")
        if copied is not None:
            return copied
    emit_skippable(frame, node, dotted, arguments)
    if dotted.startswith("scipy.special.") and frame.traced:
        return av.ArrayNumber(av.Sure.LIKELY)  # computed by the interpreter, and traced from there on
    if dotted in ("copy.deepcopy", "copy.copy", "typing.cast"):
        return arguments.positional[-1] if arguments.positional else av.UNKNOWN
    if last == "tqdm" and arguments.positional:
        return av.container_of(av.iterated(arguments.positional[0]))
    if dotted == "collections.namedtuple":
        return av.NamedTupleClass(names=names) if (names := _fields_named(node)) else av.UNKNOWN
    if dotted in _DRAWS and frame.traced:
        return av.DrawnNumber()
    if dotted in ("loguru.logger.opt", "loguru.logger.bind"):
        return av.Namespace(name="loguru.logger")
    made = _MAKES.get(dotted) or (dotted if last[:1].isupper() and not last.isupper() else None)
    if made is not None:
        return av.Instance(av.Sure.LIKELY if made == dotted else av.Sure.CERTAIN, name=made)
    if dotted.startswith(_STANDARD):
        return av.CONSTANT
    if dotted.startswith("loguru."):
        return av.UNKNOWN
    frame.program.pass_callables(frame, node, arguments.values())
    if dotted != PARTIAL:
        return av.UNKNOWN
    # A method or a layer that is bound to arguments is called with tensors.
    frame.saw_tensor |= isinstance(arguments.get(0), av.Unknown | av.Module) and isinstance(node.args[0], ast.Attribute)
    return av.Instance(name=PARTIAL)


def _is_iterator(frame: Frame, node: ast.expr) -> bool:
    """True if an argument is an iterator by its syntax."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.GeneratorExp)
    of_dict = isinstance(node.func, ast.Attribute) and node.func.attr == "values" and not node.args
    return of_dict or frame.index.dotted(node.func) in ("map", "filter", "reversed")


_MAKES = {
    "numpy.random.default_rng": "numpy.random.Generator",
    "re.compile": "re.Pattern",
    "re.match": "re.Match",
    "re.search": "re.Match",
    "re.fullmatch": "re.Match",
}
"""Functions that make an object of a class with another name."""


_DRAWS = frozenset(
    {"random.randint", "random.randrange", "random.uniform"}
    | {f"random.Random.{name}" for name in ("randint", "randrange", "uniform", "random")}
)

_STANDARD = ("time.", "random.", "os.", "warnings.", "logging.", "sys.", "datetime.", "json.", "uuid.", "inspect.")
