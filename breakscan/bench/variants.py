"""Which ways are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakscan.bench.result import OWN, BenchRow, MeasurementStatus, Problem, Variant

INDUCTOR = "inductor"
LADDER = ("eager", "aot_eager", INDUCTOR, "cudagraphs")
"""Backends that are tried first: each adds a stage of compiling to the one before it."""
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
"""The modes that ``torch.compile`` documents."""
AUTOTUNE = "max-autotune"
_CUDA_GRAPHS = "triton.cudagraphs"
_NEEDS_GPU = ("cudagraphs",)
NOT_RUN = "not run"


class UnknownName(Exception):
    """A backend or mode that is asked for is not there.  Says which there are."""


@dataclass(frozen=True, slots=True)
class WantedVariants:
    """``backends`` and ``modes`` to try, None for those that there are; ``settings`` that are tried one by one.
    Without ``autotune`` the modes are left out that take minutes, without ``dynamic`` the choice of shapes."""

    backends: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    autotune: bool = True
    dynamic: bool = True
    settings: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is: the names of backends, those that can be asked for by name as well, what each mode of Inductor
    sets; what ``torch.compile`` was told for each callable; and whether a tensor of the calls is on a CUDA device."""

    backends: Sequence[str]
    all_backends: Sequence[str]
    modes: Mapping[str, Mapping[str, Any]]
    told: Sequence[Mapping[str, Any] | None]
    cuda: bool

    @property
    def kept(self) -> dict[str, Any]:
        """What the program asks of ``torch.compile`` beside a backend and its options: it holds for all ways."""
        kept: dict[str, Any] = {}
        for name, usual in (("fullgraph", False), ("dynamic", None)):
            values = {one[name] if one else usual for one in self.told}
            if len(values) == 1 and (value := values.pop()) is not usual:
                kept[name] = value
        return kept


def planned(wanted: WantedVariants, choices: Choices) -> tuple[Variant, ...]:
    """All ways, the program's own first.  Raises UnknownName."""
    _require(wanted.backends, choices.all_backends, "backend", "torch._dynamo.register_backend adds one")
    _require(wanted.modes, list(choices.modes), "mode", "those of inductor are meant")
    kept = choices.kept
    variants = [Variant(OWN)]
    for backend in wanted.backends or _backends(choices):
        if backend == INDUCTOR:
            modes = wanted.modes or tuple(mode for mode in MODES if mode in choices.modes)
            variants += [
                Variant(f'mode="{mode}"', {**({} if mode == "default" else {"mode": mode}), **kept})
                for mode in modes
                if wanted.autotune or not mode.startswith(AUTOTUNE)
            ]
            if wanted.dynamic:
                variants += [Variant(f"dynamic={value}", {**kept, "dynamic": value}) for value in (True, False)]
        else:
            variants.append(Variant(f'backend="{backend}"', {"backend": backend, **kept}))
    variants += [with_settings(settings) for settings in wanted.settings]
    return tuple(variants)


def with_settings(settings: Mapping[str, Any], other: Variant | None = None) -> Variant:
    """The program's own way, or another one, with settings of the compiler."""
    label = ", ".join(f"{key.removeprefix('dynamo.')}={value!r}" for key, value in settings.items())
    return Variant(f"{other.label}, {label}" if other else label, other.options if other else None, settings)


def _backends(choices: Choices) -> tuple[str, ...]:
    return (*LADDER, *(name for name in choices.backends if name not in LADDER))


def _require(names: Sequence[str] | None, known: Sequence[str], what: str, more: str) -> None:
    for name in names or ():
        if name not in known:
            raise UnknownName(f"there is no {what} {name!r}: torch has {', '.join(sorted(known))} ({more})")


def doubles(
    variants: Sequence[Variant], meant: Sequence[Mapping[str, Any] | str | None], choices: Choices
) -> dict[str, BenchRow]:
    """The ways that are not run, by label: what ``torch.compile`` takes for the same as another one, and what needs a
    GPU where there is none.  ``meant`` is what it takes each way for, in order; a text is its error."""
    found: dict[str, BenchRow] = {}
    seen: dict[str, str] = {}
    gpu_free: dict[str, str] = {}
    own = choices.told[0] if len({repr(one) for one in choices.told}) == 1 else None
    for variant, its in zip(variants, meant, strict=True):
        if isinstance(its, str):
            found[variant.label] = BenchRow(variant, MeasurementStatus.FAILED, Problem("torch.compile", its))
            continue
        if not choices.cuda and variant.options and variant.options.get("backend") in _NEEDS_GPU:
            found[variant.label] = _skipped(variant, None, "CUDA graphs need tensors on a CUDA device")
            continue
        told = own if variant.options is None and not variant.settings else its
        if told is None or variant.settings:
            continue
        exactly, nearly = repr(_sorted(told)), repr(_sorted(told, _CUDA_GRAPHS))
        if exactly in seen:
            found[variant.label] = _skipped(variant, seen[exactly], "torch.compile takes it for the same")
        elif not choices.cuda and nearly in gpu_free:
            found[variant.label] = _skipped(
                variant, gpu_free[nearly], "without tensors on a GPU there are no CUDA graphs"
            )
        else:
            seen[exactly] = gpu_free[nearly] = variant.label
    return found


def without_recompiles(variant: Variant, usual: BenchRow | None) -> BenchRow | None:
    """``dynamic=False`` where nothing is compiled again: it would be compiled to what is there already."""
    is_static = bool(variant.options) and variant.options is not None and variant.options.get("dynamic") is False
    if not is_static or usual is None or usual.status is not MeasurementStatus.MEASURED or usual.recompiles:
        return None
    return _skipped(variant, usual.label, "nothing is compiled again, so all shapes are constants already")


def not_run(variant: Variant, why: str) -> BenchRow:
    """A way that was not tried."""
    return _skipped(variant, None, why)


def _skipped(variant: Variant, same_as: str | None, why: str) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, Problem(NOT_RUN, why), same_as)


def _sorted(told: Mapping[str, Any], but: str | None = None) -> dict[str, Any]:
    options = {key: value for key, value in sorted(told["options"].items()) if key != but}
    return {**told, "options": options}
