"""The JSON of ``explain``, as ``breakscan/schemas/explain.schema.json`` describes it."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TextIO

from breakscan import __version__
from breakscan.explanation.breaks import BreakSite, FunctionPart, break_page
from breakscan.explanation.compilations import CompiledFrame, compile_time, restarts_in_words
from breakscan.explanation.explanation import Explanation, RankEnding
from breakscan.explanation.frames import UncompiledFrame
from breakscan.explanation.graphs import Generated
from breakscan.explanation.notices import Notice
from breakscan.explanation.prices import run_costs
from breakscan.explanation.recompiles import Recompile
from breakscan.explanation.remedies import break_remedies, frame_remedies
from breakscan.explanation.run_totals import Calls
from breakscan.model.problem import Price, Problem, ProblemKind
from breakscan.model.remedy import Remedy, remedies_in_words
from breakscan.recording.parsers.guards import ParsedGuard
from breakscan.recording.records import CacheLooked, StepsProfiled
from breakscan.report.explain import ExplainReport
from breakscan.rulebook.document import Rule

SCHEMA = 2
_DIGITS = 7  # decimal places of times in seconds: a tenth of a microsecond is less than any clock here can measure
WORDS: Mapping[type, Callable[[Any], str]] = {
    RankEnding: attrgetter("words"),
    Notice: attrgetter("text"),
    ParsedGuard: attrgetter("demand"),
    FunctionPart: attrgetter("words"),
    Rule: attrgetter("id"),
}
"""The classes whose values are written as text."""
Computed = Mapping[type, Mapping[str, Callable[[Any], Any]]]
COMPUTED: Computed = {
    CompiledFrame: {"restarts": restarts_in_words},
    Calls: {"outside_seconds": attrgetter("outside_seconds")},
    Price: {"words": attrgetter("words")},
    BreakSite: {
        "advice": lambda site: remedies_in_words(break_remedies(site)),
        "page": lambda site: break_page(site.gb_id),
    },
    UncompiledFrame: {"advice": lambda frame: remedies_in_words(frame_remedies(frame))},
    Problem: {"is_lost": attrgetter("is_lost"), "takes": attrgetter("takes")},
    Remedy: {"command": attrgetter("command")},
}
"""The keys of a class that are not fields."""
FOR_REMEDIES = ("is_memo", "is_elsewhere", "unrolled", "container", "alone_for", "in_thread", "selected")
_LEFT_OUT: Mapping[type, tuple[str, ...]] = {
    Generated: ("code",),
    Problem: ("stack", "price", "page"),
    BreakSite: tuple("remedies disabled keeps is_whole hooked is_causal in_thread checkpointed fails".split()),
    UncompiledFrame: ("hints", "helps", "only_compiled", "quoted"),
    StepsProfiled: ("key",),
    CacheLooked: ("compile_id", "guards", "parts"),
    Recompile: ("also", "objects", "shared", "hit_limit", "how", "opened", "passed", "made_by", "runs", *FOR_REMEDIES),
}
"""Fields that have no key.  Generated code takes hundreds of kilobytes a graph; breaks and frames have the others, and
the problem of recompiles what they have in common."""
_IN_OTHER_KEYS = {
    "argv", "status", "seconds", "processes", "trace", "torch", "python", "devices", "torch_imported", "disabled_by",
    "entries", "compile_seconds", "began", "around", "export_problems", "export_rules", "profile",
}  # fmt: skip


class Plain:
    """Converts an explanation, and all that is in it, to what JSON can hold; keys are the names of fields."""

    computed: ClassVar[Computed] = COMPUTED
    special: ClassVar[Mapping[type, Callable[[Any, Any], Any]]] = {}
    """Classes that are not written by their fields, with a function of this object and the value."""

    def __call__(self, value: Any) -> Any:
        kind: Any = type(value)
        if kind is str:
            return self.text(value)
        if kind is int or kind is bool or value is None:
            return value
        if kind is float:
            return round(value, _DIGITS) if math.isfinite(value) else None
        if kind is tuple or kind is list:
            return [self(item) for item in value]
        if kind in WORDS:
            return self.text(WORDS[kind](value))
        if kind in self.special:
            return self.special[kind](self, value)
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, Mapping):
            return {str(self(key)): self(item) for key, item in value.items()}
        made = {name: self(getattr(value, name)) for name in _names(kind)}
        return made | {name: self(of(value)) for name, of in self.computed.get(kind, {}).items()}

    def text(self, text: str) -> str:
        """Return the text as it is written."""
        return text


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in _LEFT_OUT.get(kind, ()))


_plain = Plain()


def write_explain_json(report: ExplainReport, stream: TextIO) -> None:
    """Write the explanation as one JSON object, ASCII only, with each entry of a list on its own line, so that long
    reports can be searched and compared by line."""
    made = explain_object(report.explanation)
    for number, (key, value) in enumerate(made.items()):
        stream.write(",\n" if number else "{\n")
        stream.write(f'  "{key}": ')
        if isinstance(value, list) and value:
            stream.write("[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]")
        else:
            stream.write(json.dumps(value))
    stream.write("\n}\n")


def explain_object(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain dictionaries and lists, but for the text of generated code: see
    :attr:`~breakscan.explanation.graphs.Generated.path`."""
    profile = explanation.profile
    return {
        "schema": SCHEMA,
        "tool": {"name": "breakscan", "version": __version__},
        "environment": {
            "torch": explanation.torch or None,
            "python": explanation.python or None,
            "device": explanation.device,
            "devices": list(explanation.devices),
            "torch_imported": explanation.torch_imported,
            "disabled_by": explanation.disabled_by,
        },
        "script": {
            "argv": list(explanation.argv),
            "exit_status": explanation.status,
            "seconds": _plain(explanation.seconds),
            "processes": explanation.processes,
            "trace": explanation.trace,
            "began": _plain(explanation.began),
        },
        "summary": {
            "break_sites": len(explanation.breaks),
            "break_events": explanation.break_events,
            "eager_frames": explanation.eager_frames,
            "eager_calls": sum(one.count for one in explanation.around if one.kind is ProblemKind.EAGER_CALLS),
            "around": sum(one.cause is None for one in explanation.around),
            "exports": sum(one.count for one in explanation.exports),
            "export_failures": len(explanation.export_problems),
            "graphs": len(explanation.graphs),
            "entries": explanation.entries,
            "ops": explanation.ops,
            "recompiles": len(explanation.recompiles),
            "causes": explanation.causes,
            "compile_seconds": round(explanation.compile_seconds, 3),
            "costs": {kind: round(seconds, _DIGITS) for kind, seconds in run_costs(explanation).items()},
        },
        "problems": _plain(explanation.problems),
        "compile_time": _plain(compile_time(explanation.compiles)),
        "profile": profile and {"function": profile.function, **_plain(profile.means)},
        **{name: value for name, value in _plain(explanation).items() if name not in _IN_OTHER_KEYS},
    }
