"""Plans the variants to try, and writes their code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from breakscan.explanation.breaks import BreakSite
from breakscan.prove.bench_result import OWN, BenchProblem, BenchRow, MeasurementStatus
from breakscan.prove.candidate import Candidate
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.protocol import (
    AvailableChoices,
    BlockList,
    CallableBlocks,
    CompileChoice,
    CompileOption,
    RegionalCompile,
    ResolvedChoice,
    Stage,
)

LABELS = {
    RegionalCompile.BLOCKS: "repeated blocks",
    RegionalCompile.BLOCKS_AND_REST: "blocks + rest",
    RegionalCompile.NESTED: "nested_compile_region",
}
REGIONAL = "regional"
"""The label of regional compilation where the program has nothing for it."""


def regional_variants() -> list[Candidate]:
    """A variant for each way to compile parts by themselves."""
    return [Candidate(label, regional=regional) for regional, label in LABELS.items()]


def without_parts(variant: Candidate, available: AvailableChoices) -> BenchRow | None:
    """Returns a skipped row for a variant for which the program has no parts, or which torch cannot compile."""
    lists = [one for its in available.blocks for one in its.lists]
    if not lists:
        is_module = any(its.is_module for its in available.blocks)
        return _skipped_parts(variant, ObservationKind.NO_BLOCKS if is_module else ObservationKind.NO_MODULE)
    if variant.regional is RegionalCompile.BLOCKS_AND_REST and not any(
        its.rest for its in available.blocks if its.lists
    ):
        return _skipped_parts(variant, ObservationKind.NO_REST, LABELS[RegionalCompile.BLOCKS])
    if variant.regional is RegionalCompile.NESTED:
        if not available.nested:
            return _skipped_parts(variant, ObservationKind.NO_NESTED_REGIONS)
        if any(one.of_torch for one in lists):
            return _skipped_parts(variant, ObservationKind.BLOCKS_OF_TORCH)
    return None


def _skipped_parts(variant: Candidate, why: ObservationKind, same_as: str | None = None) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, BenchProblem(Stage.NOT_RUN, Observation(why)), same_as)


def code_for(regional: RegionalCompile, available: AvailableChoices) -> str:
    """Returns the lines of code that compile parts by themselves, in place of the program's line."""
    lines = [] if regional is RegionalCompile.NESTED else ["# in place of torch.compile(model):"]
    for its, choice in zip(available.blocks, available.chosen, strict=True):
        lines += lines_for(regional, its, arguments_of(choice, available.modes))
    return "\n".join(dict.fromkeys(lines))


def lines_for(regional: RegionalCompile, its: CallableBlocks, arguments: str, model: str = "model") -> Iterator[str]:
    """Returns the lines for one callable; ``model`` is the expression of its module."""
    if regional is RegionalCompile.NESTED:
        for kind in dict.fromkeys(one.kind for one in its.lists):
            yield f"{kind}.forward = torch.compiler.nested_compile_region({kind}.forward)"
        if its.lists:
            yield f"torch.compile({model}{f', {arguments}' if arguments else ''})"
        return
    for one in its.lists:
        yield f"for block in {_iterated(one, model)}: {_compiled('block', one.of_torch, arguments)}"
    if regional is RegionalCompile.BLOCKS_AND_REST and its.lists:
        for part in its.rest:
            yield _compiled(_expression(part.path, model), part.of_torch, arguments)


def _compiled(module: str, of_torch: bool, arguments: str) -> str:
    """``block.compile()``, which on torch 2.13 and older does nothing for modules of torch."""
    if of_torch:
        return f"{module}.forward = torch.compile({module}.forward{f', {arguments}' if arguments else ''})"
    return f"{module}.compile({arguments})"


def _iterated(one: BlockList, model: str) -> str:
    owner = _expression(one.path, model)
    return owner if one.whole else f"({', '.join(_expression(name, owner) for name in one.names)})"


def _expression(path: str, owner: str) -> str:
    """``model.layers[0].mlp`` for ``layers.0.mlp``."""
    for name in path.split(".") if path else ():
        if name.isdigit():
            owner += f"[{name}]"
        elif name.isidentifier():
            owner += f".{name}"
        else:
            owner += f".get_submodule({name!r})"
    return owner


def arguments_of(choice: CompileChoice | None, modes: Mapping[str, Mapping[str, object]]) -> str:
    """Returns the keyword arguments of ``torch.compile`` that result in a choice, as code."""
    if choice is None:
        return ""
    found: list[str] = []
    if choice.backend != "inductor":
        found.append(f"backend={choice.backend!r}")
    elif choice.options:
        mode = next((name for name, options in modes.items() if options == choice.options), None)
        found.append(f"mode={mode!r}" if mode is not None else f"options={dict(choice.options)!r}")
    found += [f"dynamic={choice.dynamic}"] if choice.dynamic is not None else []
    found += ["fullgraph=True"] if choice.fullgraph else []
    return ", ".join(found).replace("'", '"')


def planned_parts(available: AvailableChoices) -> Sequence[Candidate]:
    """The variants of regional compilation: a single one where the program has nothing for it."""
    variants = regional_variants()
    if any(its.lists for its in available.blocks):
        return variants
    return [Candidate(REGIONAL, regional=RegionalCompile.BLOCKS)]


INDUCTOR = "inductor"
LADDER = ("eager", "aot_eager", INDUCTOR, "cudagraphs")
"""Backends that are tried first. Each adds a stage of compiling to the one before it."""
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
"""The modes that ``torch.compile`` documents."""
AUTOTUNE = "max-autotune"
_CUDA_GRAPHS = "triton.cudagraphs"
_NEEDS_GPU = ("cudagraphs",)


class UnknownName(Exception):
    """A requested backend or mode does not exist. The message lists the existing ones."""


@dataclass(frozen=True, slots=True)
class WantedVariants:
    """The variants to try.

    ``backends`` and ``modes`` are names, None for all that exist; ``settings`` are tried one by one. Without
    ``autotune``, modes that take minutes are left out; without ``dynamic``, the choice of dynamic shapes is left out.
    ``regional``: if blocks are compiled by themselves; None means: if Inductor is tried.
    """

    backends: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    autotune: bool = True
    dynamic: bool = True
    regional: bool | None = None
    settings: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices that torch offers, and whether a tensor of the calls is on a CUDA device."""

    available: AvailableChoices
    cuda: bool

    @property
    def own(self) -> CompileChoice | None:
        """The program's own choice, if it is the same for all callables."""
        first, *others = self.available.chosen
        return first if all(other == first for other in others) else None

    @property
    def kept(self) -> dict[str, CompileOption]:
        """The arguments that the program passes to ``torch.compile`` besides a backend and its options. All variants
        keep them.
        """
        kept: dict[str, CompileOption] = {}
        fullgraph = {one is not None and one.fullgraph for one in self.available.chosen}
        dynamic = {one.dynamic if one else None for one in self.available.chosen}
        if fullgraph == {True}:
            kept["fullgraph"] = True
        if len(dynamic) == 1 and (value := dynamic.pop()) is not None:
            kept["dynamic"] = value
        return kept


def planned(wanted: WantedVariants, choices: Choices) -> tuple[Candidate, ...]:
    """Returns all variants, the program's own first. Raises UnknownName."""
    _require(wanted.backends, choices.available.all_backends, "backend", "torch._dynamo.register_backend adds one")
    _require(wanted.modes, list(choices.available.modes), "mode", "those of inductor are meant")
    kept = choices.kept
    variants = [Candidate(OWN)]
    for backend in wanted.backends or _backends(choices):
        if backend == INDUCTOR:
            modes = wanted.modes or tuple(mode for mode in MODES if mode in choices.available.modes)
            variants += [
                Candidate(f'mode="{mode}"', {**({} if mode == "default" else {"mode": mode}), **kept})
                for mode in modes
                if wanted.autotune or not mode.startswith(AUTOTUNE)
            ]
            if wanted.dynamic:
                variants += [Candidate(f"dynamic={value}", {**kept, "dynamic": value}) for value in (True, False)]
        else:
            variants.append(Candidate(f'backend="{backend}"', {"backend": backend, **kept}))
    if wanted.regional or (wanted.regional is None and INDUCTOR in (wanted.backends or LADDER)):
        variants += planned_parts(choices.available)
    variants += [with_settings(settings) for settings in wanted.settings]
    return tuple(variants)


def with_settings(settings: Mapping[str, object], other: Candidate | None = None) -> Candidate:
    """Returns a variant, the program's own by default, with settings of the compiler."""
    label = ", ".join(f"{key.removeprefix('dynamo.')}={value!r}" for key, value in settings.items())
    return Candidate(f"{other.name}, {label}" if other else label, other.options if other else None, settings)


def _backends(choices: Choices) -> tuple[str, ...]:
    return (*LADDER, *(name for name in choices.available.backends if name not in LADDER))


def _require(names: Sequence[str] | None, known: Sequence[str], what: str, more: str) -> None:
    for name in names or ():
        if name not in known:
            raise UnknownName(f"there is no {what} {name!r}: torch has {', '.join(sorted(known))} ({more})")


def doubles(variants: Sequence[Candidate], resolved: Sequence[ResolvedChoice], choices: Choices) -> dict[str, BenchRow]:
    """Returns the variants that are not run, by label.

    These are variants that ``torch.compile`` treats like another one, those that need a GPU if there is none, and
    those that compile blocks by themselves if there are none.
    ``resolved`` is the choice of each variant, in order.
    """
    found: dict[str, BenchRow] = {}
    seen: dict[_ChoiceKey, str] = {}
    without_graphs: dict[_ChoiceKey, str] = {}
    for variant, its in zip(variants, resolved, strict=True):
        label = variant.name
        if variant.regional is not None:
            if (row := without_parts(variant, choices.available)) is not None:
                found[label] = row
            continue
        if its.error is not None:
            problem = BenchProblem(Stage.TORCH_COMPILE, Observation(ObservationKind.ERROR, its.error))
            found[label] = BenchRow(variant, MeasurementStatus.FAILED, problem)
            continue
        if not choices.cuda and variant.options and variant.options.get("backend") in _NEEDS_GPU:
            found[label] = _skipped(variant, None, ObservationKind.NEEDS_CUDA)
            continue
        choice = choices.own if variant.options is None and not variant.settings else its.choice
        if choice is None or variant.settings:
            continue
        exactly, nearly = _key(choice), _key(choice, without=_CUDA_GRAPHS)
        if exactly in seen:
            found[label] = _skipped(variant, seen[exactly], ObservationKind.SAME_CHOICE)
        elif not choices.cuda and nearly in without_graphs:
            found[label] = _skipped(variant, without_graphs[nearly], ObservationKind.NO_CUDA_GRAPHS)
        else:
            seen[exactly] = without_graphs[nearly] = label
    return found


_ChoiceKey = tuple[str, int, tuple[tuple[str, str], ...], bool | None, bool]


def _key(choice: CompileChoice, without: str | None = None) -> _ChoiceKey:
    """Returns a key that is equal for choices that differ at most in the option ``without``. Here, ``1`` is not
    ``True``.
    """
    options = tuple((name, repr(value)) for name, value in sorted(choice.options.items()) if name != without)
    return choice.backend, choice.function, options, choice.dynamic, choice.fullgraph


def is_static(variant: Candidate) -> bool:
    """Return True if all shapes are constants in a variant."""
    return variant.options is not None and variant.options.get("dynamic") is False


def without_recompiles(variant: Candidate, usual: BenchRow | None) -> BenchRow | None:
    """Returns a skipped row for a static variant if nothing is compiled again: the code is then already compiled for
    static shapes.
    """
    if not is_static(variant) or usual is None or usual.status is not MeasurementStatus.MEASURED or usual.recompiles:
        return None
    return _skipped(variant, usual.label, ObservationKind.CONSTANT_SHAPES)


def interrupted(variant: Candidate) -> BenchRow:
    """Returns a variant that was not tried because of an interrupt."""
    return _skipped(variant, None, ObservationKind.INTERRUPTED)


def _skipped(variant: Candidate, same_as: str | None, why: ObservationKind) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, BenchProblem(Stage.NOT_RUN, Observation(why)), same_as)


_NAMED = re.compile(r"config\.(?P<name>[a-z]\w*)\b`?\s*(?:=|to)\s*`?(?P<value>True|False)\b")
_RISKY = "silent incorrectness"
_NOT_NAMED = {"Unsupported Tensor.backward() call": {"dynamo.trace_autograd_ops": True}}
"""Settings that Dynamo's hints leave out, by the type of the break."""


def flags_for(breaks: Iterable[BreakSite]) -> dict[str, object]:
    """Returns the settings that the hints of these breaks name, with their values."""
    found: dict[str, object] = {}
    for site in breaks:
        hints = " ".join(site.hints)
        if _RISKY not in hints:
            found |= {f"dynamo.{one['name']}": one["value"] == "True" for one in _NAMED.finditer(hints)}
        found |= _NOT_NAMED.get(site.gb_type, {})
    return found


def as_written(settings: Mapping[str, object]) -> str:
    """Returns a setting as a line of code: ``torch._dynamo.config.capture_scalar_outputs = True``."""
    lines = []
    for key, value in settings.items():
        room, _, name = key.partition(".")
        lines.append(f"torch._{room}.config.{name} = {value!r}")
    return "; ".join(lines)


def write_for(
    row: BenchRow, callables: Mapping[str, int], asked: bool, available: AvailableChoices | None = None
) -> str | None:
    """Returns the code for a variant; None if the program already compiles this way, unless ``--compile`` asked for it.

    ``available`` has the blocks of the program, which the code of a variant with a region names.
    """
    if row.variant.regional is not None:
        return code_for(row.variant.regional, available) if available is not None else None
    settings = as_written(row.variant.settings)
    options = row.variant.options
    if options is None and not asked:
        return settings or None
    names = list(callables)
    subject = names[0] if len(names) == 1 and names[0].isidentifier() and names[0][:1].islower() else "model"
    arguments = "".join(
        f', {key}="{value}"' if isinstance(value, str) else f", {key}={value}" for key, value in (options or {}).items()
    )
    call = f"torch.compile({subject}{arguments})"
    return f"{settings}; {call}" if settings else call
