"""Plans the variants to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakscan.prove.bench_result import OWN, BenchProblem, BenchRow, MeasurementStatus
from breakscan.prove.candidate import Candidate
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.protocol import Choices, CompileChoice, CompileOption, Stage

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

    ``backends`` and ``modes`` are names, None for all that exist. Without ``autotune``, modes that take minutes are
    left out; without ``dynamic``, dynamic shapes are.
    """

    backends: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    autotune: bool = True
    dynamic: bool = True


def _choice_of(variant: Candidate, choices: Choices) -> CompileChoice | None:
    """The choice that a variant results in; None where the program's own is not the same for all callables."""
    given: Mapping[str, Any] | None = variant.options
    if given is None:
        first, *others = choices.chosen
        return first if all(other == first for other in others) else None
    options = choices.modes.get(given.get("mode", "default"), {})
    return CompileChoice(given.get("backend", INDUCTOR), options, given.get("dynamic"), given.get("fullgraph", False))


def _kept(choices: Choices) -> dict[str, CompileOption]:
    """The arguments that the program passes to ``torch.compile`` besides a backend and its options. All variants keep
    them.
    """
    kept: dict[str, CompileOption] = {}
    fullgraph = {one is not None and one.fullgraph for one in choices.chosen}
    dynamic = {one.dynamic if one else None for one in choices.chosen}
    if fullgraph == {True}:
        kept["fullgraph"] = True
    if len(dynamic) == 1 and (value := dynamic.pop()) is not None:
        kept["dynamic"] = value
    return kept


def planned(wanted: WantedVariants, choices: Choices) -> tuple[Candidate, ...]:
    """Returns all variants, the program's own first. Raises UnknownName."""
    _require(wanted.backends, choices.all_backends, "backend", "torch._dynamo.register_backend adds one")
    _require(wanted.modes, list(choices.modes), "mode", "those of inductor are meant")
    kept = _kept(choices)
    variants = [Candidate(OWN)]
    for backend in wanted.backends or dict.fromkeys((*LADDER, *choices.backends)):
        if backend == INDUCTOR:
            modes = wanted.modes or tuple(mode for mode in MODES if mode in choices.modes)
            variants += [
                Candidate(f'mode="{mode}"', {**({} if mode == "default" else {"mode": mode}), **kept})
                for mode in modes
                if wanted.autotune or not mode.startswith(AUTOTUNE)
            ]
            if wanted.dynamic:
                variants.append(Candidate("dynamic=True", {**kept, "dynamic": True}))
        else:
            variants.append(Candidate(f'backend="{backend}"', {"backend": backend, **kept}))
    return tuple(variants)


def _require(names: Sequence[str] | None, known: Sequence[str], what: str, more: str) -> None:
    for name in names or ():
        if name not in known:
            raise UnknownName(f"there is no {what} {name!r}: torch has {', '.join(sorted(known))} ({more})")


def doubles(variants: Sequence[Candidate], choices: Choices) -> dict[str, BenchRow]:
    """Returns the variants that are not run, by label: those that ``torch.compile`` treats like another one, and those
    that need a GPU if there is none."""
    found: dict[str, BenchRow] = {}
    seen: dict[_ChoiceKey, str] = {}
    without_graphs: dict[_ChoiceKey, str] = {}
    for variant in variants:
        label = variant.name
        if not choices.cuda and variant.options and variant.options.get("backend") in _NEEDS_GPU:
            found[label] = _skipped(variant, None, ObservationKind.NEEDS_CUDA)
            continue
        choice = _choice_of(variant, choices)
        if choice is None:
            continue
        exactly, nearly = _key(choice), _key(choice, without=_CUDA_GRAPHS)
        if exactly in seen:
            found[label] = _skipped(variant, seen[exactly], ObservationKind.SAME_CHOICE)
        elif not choices.cuda and nearly in without_graphs:
            found[label] = _skipped(variant, without_graphs[nearly], ObservationKind.NO_CUDA_GRAPHS)
        else:
            seen[exactly] = without_graphs[nearly] = label
    return found


_ChoiceKey = tuple[str, tuple[tuple[str, str], ...], bool | None, bool]


def _key(choice: CompileChoice, without: str | None = None) -> _ChoiceKey:
    """Returns a key that is equal for choices that differ at most in the option ``without``. Here, ``1`` is not
    ``True``.
    """
    options = tuple((name, repr(value)) for name, value in sorted(choice.options.items()) if name != without)
    return choice.backend, options, choice.dynamic, choice.fullgraph


def interrupted(variant: Candidate) -> BenchRow:
    """Returns a variant that was not tried because of an interrupt."""
    return _skipped(variant, None, ObservationKind.INTERRUPTED)


def _skipped(variant: Candidate, same_as: str | None, why: ObservationKind) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, BenchProblem(Stage.NOT_RUN, Observation(why)), same_as)


def write_for(row: BenchRow, callables: Sequence[str], asked: bool) -> str | None:
    """Returns the code for a variant; None if the program already compiles this way, unless ``--compile`` asked for
    it."""
    options = row.variant.options
    if options is None and not asked:
        return None
    name = callables[0]
    subject = name if len(callables) == 1 and name.isidentifier() and name[:1].islower() else "model"
    arguments = "".join(
        f', {key}="{value}"' if isinstance(value, str) else f", {key}={value}" for key, value in (options or {}).items()
    )
    return f"torch.compile({subject}{arguments})"
