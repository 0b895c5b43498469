"""Runs the examples of rules through the installed torch and rules on each: the compiler is the referee."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from breakscan.model.findings import Kind, Mode, Place, Verdict
from breakscan.model.torch_versions import minor_version
from breakscan.record.replay.exports import rulings_on_export
from breakscan.record.replay.loading import check_runs, loaded
from breakscan.record.replay.observing import ExampleRun, observe, observe_as_is
from breakscan.rulebook.document import Example, Rule
from breakscan.rulebook.ledger import ExampleRulings, Ledger, Ruling, digest

_COMPILES_ITSELF = re.compile(r"\.compile\(.*backend=")


def replay(rules: Iterable[Rule], progress: Callable[[Rule], None] | None = None) -> Ledger:
    """A ledger of every example of the rules on the installed torch.

    Raises ReplayError for an example that fails without the compiler.
    """
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
    rulings: dict[tuple[Mode, Place], Ruling] = {}
    if rule.kind is Kind.WRONG_RESULT:
        rulings[Mode.DEFAULT, Place.PLAIN] = _ruling_on_results(rule, example)
    elif rule.kind is Kind.MISUSE or _COMPILES_ITSELF.search(example.source):
        rulings[Mode.DEFAULT, Place.PLAIN] = _ruling_as_is(observe_as_is(rule, example))
    elif rule.kind is Kind.GRAPH_BREAK:
        for mode, place in itertools.product((Mode.DEFAULT, Mode.FULLGRAPH), places):
            rulings[mode, place] = _rule_on(observe(rule, example, mode, place), mode)
        if export:
            rulings.update(rulings_on_export(rule, example))
    elif rule.kind is Kind.EXPORT:
        rulings.update(rulings_on_export(rule, example))
    else:
        rulings[Mode.DEFAULT, Place.PLAIN] = _rule_on(observe(rule, example, Mode.DEFAULT, Place.PLAIN), None)
    return ExampleRulings(digest(example), example.form, rulings)


def disagreements(rule: Rule, rulings: ExampleRulings, label: str) -> list[str]:
    """Where the compiler contradicts the document, in words; empty where they agree.

    An example under *Breaks* must not compile cleanly by default, one under *Compiles* must.
    """
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


def _rule_on(seen: ExampleRun, mode: Mode | None) -> Ruling:
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


def _ruling_as_is(seen: ExampleRun) -> Ruling:
    if seen.error is None and seen.graphs == 0:
        return Ruling(Verdict.UNUSED)
    return _rule_on(seen, Mode.DEFAULT)


def _ruling_on_results(rule: Rule, example: Example) -> Ruling:
    """Whether Inductor gives what plain Python gives, at every call.  Its caches start empty."""
    import torch

    with loaded(rule, example, Place.PLAIN) as (function, calls), torch.compiler.set_stance("force_eager"):
        check_runs(rule, example, function, calls)
    with loaded(rule, example, Place.PLAIN) as (function, calls), torch.compiler.set_stance("force_eager"):
        expected = [function(*arguments) for arguments in calls]
    with loaded(rule, example, Place.PLAIN) as (function, calls), _empty_caches():
        compiled: Any = function if ".compile(" in example.source else torch.compile(function)
        try:
            torch.testing.assert_close([compiled(*arguments) for arguments in calls], expected)
        except AssertionError:
            return Ruling(Verdict.WRONG)
        except Exception:
            return Ruling(Verdict.RAISES)
    return Ruling(Verdict.COMPILES)


@contextlib.contextmanager
def _empty_caches() -> Iterator[None]:
    """Inductor finds nothing that was compiled before."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
