"""Regional compilation: which parts of a module are compiled by themselves, and how that is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from breakscan.prove.bench.result import BenchRow, MeasurementStatus, Problem, Variant
from breakscan.prove.worker.observation import Observation, ObservationKind
from breakscan.prove.worker.protocol import (
    AvailableChoices,
    BlockList,
    CallableBlocks,
    CompileChoice,
    RegionalCompile,
    Stage,
)

LABELS = {
    RegionalCompile.BLOCKS: "repeated blocks",
    RegionalCompile.BLOCKS_AND_REST: "blocks + rest",
    RegionalCompile.NESTED: "nested_compile_region",
}
REGIONAL = "regional"
"""The label of regional compilation where the program has nothing for it."""


def regional_variants() -> list[Variant]:
    """A variant for each way to compile parts by themselves."""
    return [Variant(label, regional=regional) for regional, label in LABELS.items()]


def without_parts(variant: Variant, available: AvailableChoices) -> BenchRow | None:
    """Returns a skipped row for a variant for which the program has no parts, or which torch cannot compile."""
    lists = [one for its in available.blocks for one in its.lists]
    if not lists:
        is_module = any(its.is_module for its in available.blocks)
        return _skipped(variant, ObservationKind.NO_BLOCKS if is_module else ObservationKind.NO_MODULE)
    if variant.regional is RegionalCompile.BLOCKS_AND_REST and not any(
        its.rest for its in available.blocks if its.lists
    ):
        return _skipped(variant, ObservationKind.NO_REST, LABELS[RegionalCompile.BLOCKS])
    if variant.regional is RegionalCompile.NESTED:
        if not available.nested:
            return _skipped(variant, ObservationKind.NO_NESTED_REGIONS)
        if any(one.of_torch for one in lists):
            return _skipped(variant, ObservationKind.BLOCKS_OF_TORCH)
    return None


def _skipped(variant: Variant, why: ObservationKind, same_as: str | None = None) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, Problem(Stage.NOT_RUN, Observation(why)), same_as)


def code_for(regional: RegionalCompile, available: AvailableChoices) -> str:
    """Returns the lines of code that compile parts by themselves, in place of the program's line."""
    lines = [] if regional is RegionalCompile.NESTED else ["# in place of torch.compile(model):"]
    for its, choice in zip(available.blocks, available.chosen, strict=True):
        lines += _lines(regional, its, arguments_of(choice, available.modes))
    return "\n".join(dict.fromkeys(lines))


def _lines(regional: RegionalCompile, its: CallableBlocks, arguments: str) -> Iterator[str]:
    if regional is RegionalCompile.NESTED:
        for kind in dict.fromkeys(one.kind for one in its.lists):
            yield f"{kind}.forward = torch.compiler.nested_compile_region({kind}.forward)"
        if its.lists:
            yield f"torch.compile(model{f', {arguments}' if arguments else ''})"
        return
    for one in its.lists:
        yield f"for block in {_iterated(one)}: {_compiled('block', one.of_torch, arguments)}"
    if regional is RegionalCompile.BLOCKS_AND_REST and its.lists:
        for part in its.rest:
            yield _compiled(_expression(part.path), part.of_torch, arguments)


def _compiled(module: str, of_torch: bool, arguments: str) -> str:
    """``block.compile()``, which on torch 2.13 and older does nothing for modules of torch."""
    if of_torch:
        return f"{module}.forward = torch.compile({module}.forward{f', {arguments}' if arguments else ''})"
    return f"{module}.compile({arguments})"


def _iterated(one: BlockList) -> str:
    owner = _expression(one.path)
    return owner if one.whole else f"({', '.join(_expression(name, owner) for name in one.names)})"


def _expression(path: str, owner: str = "model") -> str:
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


def planned_parts(available: AvailableChoices) -> Sequence[Variant]:
    """The variants of regional compilation: a single one where the program has nothing for it."""
    variants = regional_variants()
    if any(its.lists for its in available.blocks):
        return variants
    return [Variant(REGIONAL, regional=RegionalCompile.BLOCKS)]
