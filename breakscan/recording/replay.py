"""Runs the examples of rules through the installed torch and rules on each: the compiler is the referee.  Each example
is loaded in a module of its own, with fresh compiler and RNG state."""

import ast
import contextlib
import io
import itertools
import linecache
import logging
import multiprocessing
import os
import platform
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from unittest import mock

from breakscan.model.findings import Kind, Mode, Place, Verdict
from breakscan.model.torch_versions import NESTED_FROM, minor_version, version_key
from breakscan.model.words import InputError
from breakscan.recording.hooks.frames import FrameHook, watched_conversion
from breakscan.recording.hooks.hook import wrapped
from breakscan.recording.hooks.trace import structured_trace
from breakscan.recording.parsers.frames import frame_skipped, parse_causes, user_name
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.ledger import ExampleRulings, Ledger, Ruling, digest

_numbers = itertools.count()


class ReplayError(InputError):
    """An example cannot be run.  Names the document, the line of the example and what is wrong."""


Loaded = tuple[Any, list[tuple[Any, ...]]]  # the ``f`` of an example, and the arguments of its calls


def _error(rule: Rule, example: Example, words: str) -> ReplayError:
    return ReplayError(f"{rule.path}:{example.line}: {example.label} {words}")


@contextlib.contextmanager
def checked(rule: Rule, example: Example, place: Place = Place.PLAIN, calls: int | None = None) -> Iterator[Loaded]:
    """As :func:`loaded`, for an example of which so many calls run without the compiler.  Raises ReplayError."""
    with loaded(rule, example, place) as (function, given):
        try:
            for arguments in given[:calls]:
                function(*arguments)
        except Exception as error:
            raise _error(rule, example, f"fails without the compiler: {error!r}") from error
    with loaded(rule, example, place) as again:
        yield again


@contextlib.contextmanager
def loaded(rule: Rule, example: Example, place: Place = Place.PLAIN) -> Iterator[Loaded]:
    """An example in a fresh module, with fresh compiler and RNG state."""
    import torch

    source = _placed(example.source, place)
    name = f"example_{next(_numbers)}_{rule.id}_{example.label.replace('/', '_')}_{place.value}"
    filename = str(Path(tempfile.gettempdir()) / f"{name}.py")
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = ModuleType(name)
    sys.modules[name] = module  # a dataclass looks its own module up
    namespace = module.__dict__
    torch._dynamo.reset()
    python_rng, grad = random.getstate(), torch.is_grad_enabled()
    config: Any = torch._dynamo.config
    flags = config.get_config_copy()  # examples show what a setting changes, sets of functions included
    try:
        with torch.random.fork_rng(), _quiet():
            torch.manual_seed(0)
            try:
                exec(compile(source, filename, "exec", dont_inherit=True), namespace)
                calls = _calls(example, namespace)
                function = namespace["f"]
            except Exception as error:
                raise _error(rule, example, f"cannot be set up: {error!r}") from error
            yield function, calls
    finally:
        random.setstate(python_rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # setting a deprecated flag, if only to what it was, warns
            config.load_config(flags)
        torch.set_grad_enabled(grad)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        linecache.cache.pop(filename, None)
        del sys.modules[name]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing that an example, or torch about it, prints, logs or warns of is shown."""
    loggers = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.split(".")[0] == "torch" and name != "torch.__trace"
    ]
    handlers = [logger.handlers for logger in loggers]
    for logger in loggers:
        logger.handlers = [logging.NullHandler()] if logger.handlers else []
    shut = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(shut), contextlib.redirect_stderr(shut):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, kept in zip(loggers, handlers, strict=True):
            logger.handlers = kept


def _calls(example: Example, namespace: dict[str, Any]) -> list[tuple[Any, ...]]:
    if "make_calls" in namespace:
        return [tuple(arguments) for arguments in namespace["make_calls"]()]
    if "make_inputs" in namespace:
        return [tuple(namespace["make_inputs"]())]
    import torch

    return [eval(f"({example.inputs},)", {"torch": torch, **namespace})]


def _placed(source: str, place: Place) -> str:
    """The example with the body of ``f`` moved into a loop, a ``try`` or a ``with``."""
    if place is Place.PLAIN:
        return source
    tree = ast.parse(source)
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f"), None)
    if function is None:
        return source
    body, last = list(function.body), None
    if isinstance(body[-1], ast.Return) and body[-1].value is not None:
        # The return follows the loop: inside, the loop would never repeat, and Dynamo would see no loop.
        store = ast.Name("_result", ast.Store())
        body[-1], last = ast.Assign([store], body[-1].value), ast.Return(ast.Name("_result", ast.Load()))
    shape = {
        Place.LOOP: "for _ in range(2):\n    pass",
        Place.TRY: "try:\n    pass\nexcept ZeroDivisionError:\n    raise",
        Place.WITH: "with _place():\n    pass",
    }[place]
    wrapper = ast.parse(shape).body[0]
    assert isinstance(wrapper, ast.For | ast.Try | ast.With)
    wrapper.body = body
    function.body = [wrapper, *([last] if last else [])]
    helper = "import contextlib\n@contextlib.contextmanager\ndef _place():\n    yield\n" if place is Place.WITH else ""
    return helper + ast.unparse(ast.fix_missing_locations(tree)) + "\n"


@dataclass(slots=True)
class ExampleRun:
    graphs: int = 0
    gb: list[str] = field(default_factory=list)
    broke: bool = False
    recompiled: bool = False
    gave_up: bool = False
    error: BaseException | None = None


def observe(rule: Rule, example: Example, mode: Mode, place: Place) -> ExampleRun:
    """Compiles ``f`` with the backend that runs graphs as they are, and calls it."""
    import torch

    with checked(rule, example, place) as (function, calls):
        compiled: Any = torch.compile(function, backend="eager", fullgraph=mode is Mode.FULLGRAPH)
        return _watched(function.__code__, lambda: [compiled(*arguments) for arguments in calls])


def observe_as_is(rule: Rule, example: Example) -> ExampleRun:
    """Calls ``f``, which compiles by itself.  A misuse runs with every backend replaced by the eager one.  Other
    examples name their backend, for it can be the cause of what they show."""
    import torch

    stance: Any = torch.compiler.set_stance
    forced = {"force_backend": "eager"} if rule.kind is Kind.MISUSE else {}
    with loaded(rule, example) as (function, calls), stance("default", **forced):
        return _watched(function.__code__, lambda: [function(*arguments) for arguments in calls])


def _watched(code: CodeType, run: Callable[[], object]) -> ExampleRun:
    seen = ExampleRun()

    def record(metadata: Any, payload: str | None) -> None:
        if "dynamo_output_graph" in metadata:
            seen.graphs += 1
        name = metadata.get("artifact", {}).get("name")
        if name == "dynamo_graph_break_reason":
            seen.broke = True
            seen.gave_up |= frame_skipped(payload or "")
            seen.gb += _gb_ids(payload or "")
        elif name == "recompile_reasons":
            seen.recompiled = True

    def outcome(ended: CodeType, error: Exception | str, _: object) -> None:
        is_own = ended.co_filename == code.co_filename and user_name(ended.co_name) == code.co_name
        if is_own and isinstance(error, Exception):
            seen.gave_up = True
            seen.gb += _gb_ids(str(error))

    with structured_trace(record), wrapped(FrameHook.wraps, lambda _, original: watched_conversion(original, outcome)):
        try:
            run()
        except Exception as error:
            seen.error = error
            seen.gb += _gb_ids(str(error))
    return seen


def _gb_ids(text: str) -> list[str]:
    return [cause.gb_id for cause in parse_causes(text) if cause.gb_id]


def exported_program(function: Callable[..., Any], arguments: tuple[Any, ...], *, strict: bool) -> Callable[..., Any]:
    """The program that ``torch.export.export`` makes of a function, which it takes as the ``forward`` of a module.
    Raises what ``torch.export.export`` raises."""
    import torch

    if isinstance(function, torch.nn.Module):
        module = function
    else:

        class Exported(torch.nn.Module):
            def forward(self, *arguments: Any) -> Any:
                return function(*arguments)

        module = Exported()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program: Callable[..., Any] = torch.export.export(module, arguments, strict=strict).module()
    return program


@cache
def _load() -> None:
    """Imports what an export imports, once for all processes that are forked."""
    import torch

    for strict in (False, True):
        exported_program(torch.sin, (torch.zeros(1),), strict=strict)


_SEEDS = range(1, 9)  # enough that a number which is drawn while exporting is not drawn again each time


def rulings_on_export(rule: Rule, example: Example) -> dict[tuple[Mode, Place], Ruling]:
    """The rulings on a plain and on a strict export of an example, each in a process that is forked where the system
    can do so: one that fails can leave its modes and dispatch keys behind, and torch 2.11 can crash after that.  Raises
    ReplayError for an example that fails without the compiler, or whose export crashes the process."""
    modes = (Mode.EXPORT, Mode.EXPORT_STRICT)
    if "fork" not in multiprocessing.get_all_start_methods():
        return {(mode, Place.PLAIN): _ruling_on_export(rule, example, mode) for mode in modes}
    _load()
    rulings = {}
    try:
        for mode in modes:
            with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("fork")) as pool:
                rulings[mode, Place.PLAIN] = pool.submit(_ruling_on_export, rule, example, mode).result()
    except BrokenProcessPool as error:
        raise _error(rule, example, "cannot be exported: the process crashes") from error
    return rulings


def _ruling_on_export(rule: Rule, example: Example, mode: Mode) -> Ruling:
    """Return whether ``f`` can be exported, and whether the program then gives what ``f`` gives with the same seeds.
    Only the first call counts: an exported program holds for the sizes that it was exported with."""
    with checked(rule, example, calls=1) as (function, calls):
        try:
            _seed(0)
            exported = exported_program(function, calls[0], strict=mode is Mode.EXPORT_STRICT)
        except Exception as error:
            return Ruling(Verdict.RAISES, tuple(dict.fromkeys(_gb_ids(str(error)))))
    for seed in _SEEDS:
        with loaded(rule, example) as (function, calls):
            _seed(seed)
            expected = function(*calls[0])
        with loaded(rule, example) as (_, calls):
            _seed(seed)
            try:
                result = exported(*calls[0])
            except Exception:
                return Ruling(Verdict.RAISES)
        if not _same(result, expected):
            return Ruling(Verdict.WRONG)
    return Ruling(Verdict.COMPILES)


def _seed(seed: int) -> None:
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


def _same(one: Any, other: Any) -> bool:
    import torch

    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        try:
            plain = (each.as_subclass(torch.Tensor) for each in (one, other))  # each load has its own classes
            torch.testing.assert_close(*plain, equal_nan=True, check_device=False)
        except (AssertionError, RuntimeError):  # a fake tensor that got into the program cannot be compared
            return False
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return bool(one.keys() == other.keys()) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


_COMPILES_ITSELF = re.compile(r"\.compile\(.*backend=")


def replay(rules: Iterable[Rule], progress: Callable[[Rule], None] | None = None) -> Ledger:
    """A ledger of every example of the rules on the installed torch.  Raises ReplayError for one that fails eager."""
    import torch

    examples: dict[str, dict[str, ExampleRulings]] = {}
    for rule in rules:
        if progress:
            progress(rule)
        if rule.examples:
            examples[rule.id] = {e.label: replay_example(rule, e) for e in rule.examples}
    return Ledger(minor_version(torch.__version__), ".".join(platform.python_version_tuple()[:2]), examples)


def replay_example(
    rule: Rule, example: Example, places: Iterable[Place] = Place, *, export: bool = True
) -> ExampleRulings:
    """The rulings on one example: default and fullgraph in each of the places that make sense for its kind, and for
    what breaks a graph what ``torch.export.export`` does, unless ``export`` is false."""
    import torch

    is_placed = rule.kind is Kind.GRAPH_BREAK and not _COMPILES_ITSELF.search(example.source)
    where = [] if rule.kind is Kind.EXPORT else list(places) if is_placed else [Place.PLAIN]
    by_default = {place: _by_default(rule, example, place) for place in where}
    rulings = {(Mode.DEFAULT, place): ruling for place, ruling in by_default.items()}
    if is_placed:
        rulings |= {(Mode.FULLGRAPH, place): _observed(rule, example, Mode.FULLGRAPH, place) for place in where}
    if rule.kind is Kind.EXPORT or (is_placed and export):
        rulings |= rulings_on_export(rule, example)
    nested: dict[Place, Ruling] = {}
    config: Any = torch._dynamo.config
    if version_key(torch.__version__) >= version_key(NESTED_FROM):
        with config.patch(nested_graph_breaks=True):
            nested = {place: _by_default(rule, example, place) for place in where}
    changed = {place: ruling for place, ruling in nested.items() if ruling != by_default[place]}
    return ExampleRulings(digest(example), example.form, rulings, changed)


def _by_default(rule: Rule, example: Example, place: Place) -> Ruling:
    if rule.kind is Kind.WRONG_RESULT:
        return _ruling_on_results(rule, example)
    if rule.kind is Kind.MISUSE or _COMPILES_ITSELF.search(example.source):
        seen = observe_as_is(rule, example)
        is_unused = seen.error is None and seen.graphs == 0
        return Ruling(Verdict.UNUSED) if is_unused else _rule_on(seen, Mode.DEFAULT)
    return _observed(rule, example, Mode.DEFAULT, place)


def _observed(rule: Rule, example: Example, mode: Mode, place: Place) -> Ruling:
    return _rule_on(observe(rule, example, mode, place), mode)


def disagreements(rule: Rule, rulings: ExampleRulings, label: str) -> list[str]:
    """The contradictions between the compiler and the document, in words; empty where they agree.  An example under
    *Breaks* must not compile cleanly by default, one under *Compiles* must."""
    ruling = rulings.main
    says = f"{ruling.verdict.value}{' ' + ' '.join(ruling.gb) if ruling.gb else ''}"
    if label.startswith("breaks/") and ruling.verdict is Verdict.COMPILES:
        return [f"{rule.id} {label}: torch compiles it"]
    if label.startswith("compiles/") and ruling.verdict is not Verdict.COMPILES:
        return [f"{rule.id} {label}: torch says {says}"]
    known = set(rule.gb)
    if label.startswith("breaks/") and known and ruling.gb and known.isdisjoint(ruling.gb):
        return [f"{rule.id} {label}: Dynamo says {says}, the document [recorded] {' '.join(sorted(known))}"]
    return []


def _rule_on(seen: ExampleRun, mode: Mode) -> Ruling:
    gb = tuple(dict.fromkeys(seen.gb))
    if seen.error is not None:
        return Ruling(Verdict.RAISES, gb)
    if seen.gave_up and mode is not Mode.FULLGRAPH:
        return Ruling(Verdict.EAGER, gb)
    if seen.broke:
        return Ruling(Verdict.SPLITS, gb)
    if seen.recompiled:
        return Ruling(Verdict.RECOMPILES)
    return Ruling(Verdict.COMPILES)


def _ruling_on_results(rule: Rule, example: Example) -> Ruling:
    """Return whether Inductor gives what plain Python gives, at every call.  Its caches start empty."""
    import torch

    with torch.compiler.set_stance("force_eager"), checked(rule, example) as (function, calls):
        expected = [function(*arguments) for arguments in calls]
    with (
        loaded(rule, example) as (function, calls),
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": folder}),
    ):
        compiled: Any = function if ".compile(" in example.source else torch.compile(function)
        try:
            torch.testing.assert_close([compiled(*arguments) for arguments in calls], expected)
        except AssertionError:
            return Ruling(Verdict.WRONG)
        except Exception:
            return Ruling(Verdict.RAISES)
    return Ruling(Verdict.COMPILES)
