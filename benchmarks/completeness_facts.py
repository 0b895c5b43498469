"""The criteria for reporting a behaviour: the same for every tool, in the words of each of them.

A behaviour is *reported* if one file of a tool's output matches all patterns of ``says``, and names the line that it is
about if there is one.  It is *partly* reported if the patterns match but the line is missing, or if the weaker ``part``
matches: that something of the kind happened.  Patterns are case-sensitive, and ``.`` does not match a newline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from behaviour import Behaviour


class Verdict(str, Enum):
    REPORTED = "yes"
    PARTLY = "partly"
    NOT_REPORTED = "no"


BREAK = r"graph_break_reason_|Graph break in user code|Break Reason \d|torch_dynamo_resume_in|from user code"
"""That a graph broke, or that torch.compile raised because of it, but not why."""
RECOMPILE = r"recompile_reasons_|Recompiling function|recompiled \d"
NO_GRAPH = r"Graph Count: 0|\[Empty graph\] +\[\d"
GIVEN_UP = r"falling back to eager|runs as plain Python|\[\d+/\d+\]\s+Unsupported\b"
"""The last is tlparse's table of failures: a break after which a function goes on is a ``RestartAnalysis`` there."""
PRINT = r"`print`|BRK401"
DATA_DEPENDENT = r"[Dd]ata-dependent branching|branch-on-tensor"
AUTOGRAD = r"compiled_autograd\.ops|compiled_autograd_graph_|[Cc]ompiled autograd: \d"
CACHE_MISS = r"fx_graph_cache_miss|aotautograd_cache_miss|fx_graph \d miss"


@dataclass(frozen=True)
class Fact:
    """``lines`` are the marks of the lines that must be named, all of them."""

    says: tuple[str, ...]
    lines: tuple[str, ...] = ("here",)
    part: str | None = None


FACTS = {
    # What broke, and its consequences.
    "branch_splits": Fact((rf"{DATA_DEPENDENT}|generic_jump",), part=BREAK),
    "break_in_loop": Fact((PRINT, GIVEN_UP), part=rf"{BREAK}|{NO_GRAPH}"),
    "break_in_try": Fact((PRINT, GIVEN_UP), part=rf"{BREAK}|{NO_GRAPH}"),
    "disabled_function": Fact((r"torch\.compiler\.disable",), part=BREAK),
    "dynamic_shape": Fact((r"Dynamic shape operator|nonzero.default|BRK301",), part=BREAK),
    "framework_break": Fact((r"Graph breaks inside torch",), (), part=BREAK),
    "fullgraph_raises": Fact((PRINT,), part=BREAK),
    "hidden_break": Fact((PRINT, GIVEN_UP), part=rf"{BREAK}|{NO_GRAPH}"),
    "item_waits": Fact((r"Tensor\.item\(\)|\.item\(\)|tensor-item",), part=BREAK),
    "keep_going": Fact((PRINT,), ("here", "second"), part=BREAK),
    "killed": Fact((PRINT,), part=BREAK),
    "rest_runs_eager": Fact((PRINT, GIVEN_UP), ("second",), part=BREAK),
    "spawned_child": Fact((PRINT,), part=BREAK),
    "unsupported_with": Fact(
        (r"[Uu]nsupported context manager|unsupported-with|`with lock:` runs", GIVEN_UP), part=rf"{BREAK}|{NO_GRAPH}"
    ),
    # One entry, not one for each compilation that met it.
    "print_three_calls_deep": Fact((PRINT, r"1 site breaks the graph 3 times|splits the graph 3×"), part=BREAK),
    # What a break costs.
    "gap_is_priced": Fact((r"\d\d(\.\d+)? ms a pass",), part=BREAK),
    # What was not compiled, and why.
    "backend_fails_silently": Fact((r"no such kernel",)),
    "backend_raises": Fact((r"no such kernel",), ()),
    "failure_in_trace": Fact((r"not of that shape",), ("fails",)),
    "lowering_fails": Fact((r"no such kernel",), ("fails",)),
    "ddp_over_sequential": Fact((r"Nothing was compiled|not one graph|Graph Count: 0",), ()),
    "forced_eager": Fact((r"force_eager",), ()),
    "generator": Fact((r"[Gg]enerators? (cannot|function|is not)|trace generator",), part=NO_GRAPH),
    "never_called": Fact((r"never called",), ()),
    "nothing_to_compile": Fact((r"nothing to compile|Graph Count: 0|[Nn]o ops traced|no tensor",), ()),
    "recompile_limit": Fact((r"recompile.?limit",), ()),
    "switched_off": Fact((r"TORCH_COMPILE_DISABLE",), (), part=NO_GRAPH),
    # What could not be exported, and what was.
    "aot_compile_fails": Fact((DATA_DEPENDENT,), part=BREAK),
    "export_depends_on_data": Fact((DATA_DEPENDENT, r"u0 > 3"), ("size", "value"), part=rf"{DATA_DEPENDENT}|u0 > 3"),
    "export_good": Fact((r"torch\.export\.export|\bexport\(Net",), ("plain", "strict")),
    "export_sizes_and_operators": Fact(
        (r"batch = 4", r"behaviour(?:::|\.)copy"), ("view", "operator"), part=r"batch = 4|behaviour(?:::|\.)copy"
    ),
    "export_unknown_types": Fact((r"\bPlain\b",), ("call",)),
    # What was recompiled, and at which call.
    "cascade": Fact((r"from 1 cause",), part=RECOMPILE),
    "changed_dtype": Fact((r"Float\b.*Double\b|float32.*float64",), part=RECOMPILE),
    "counter_attribute": Fact((r"self\.steps",), part=RECOMPILE),
    "grad_mode": Fact((r"grad_mode",), part=RECOMPILE),
    "optimizer_step": Fact((r"\['lr'\]",), ("step",), part=RECOMPILE),
    "size_change": Fact((r"expected 4, actual 5|was 4, then 5",), part=RECOMPILE),
    "text_argument": Fact((r"'a'.*'b'",), (), part=RECOMPILE),
    # What the compiler generated.
    "cache_hit": Fact((r"fx_graph_cache_hit|fx_graph( \d miss,)? 1 hit",), ()),
    "cache_miss_guards": Fact((r"for other sizes|miss[^\n]*guards|guards[^\n]*miss",), (), part=CACHE_MISS),
    "cache_miss": Fact((r"fx_graph_cache_miss|fx_graph 1 miss",), ()),
    "compile_phases": Fact(
        (r"[Ii]nductor[^\n]{0,160}?\d+\.\d+|[Ii]nductor \d+ (ms|s)",), (), part=r"_compile\.compile_inner"
    ),
    "compiled_autograd_again": Fact((rf"{AUTOGRAD}|\(backward\)",), ("first", "second", "third"), part=AUTOGRAD),
    "compiled_autograd": Fact((AUTOGRAD,), ()),
    "ddp_buckets": Fact((r'"split_by_ddp": \[[^]]|optimize_ddp_split|DDPOptimizer intentional graph-break',), ()),
    "graphs_and_runs": Fact((r"\bf +2 +7 +\d",), part=r"sin\(\);|Graph Count: 1"),
    "guards": Fact((r"TENSOR_MATCH|is a float32 Tensor on cpu", r"scale"), part=r"TENSOR_MATCH|cpp_guards_str_"),
    "kernels": Fact(
        (r"extern_kernels\.mm", r"cpp_fused_add_sin", r"aten\.linalg_qr\.default"), (), part=r"inductor_output_code_"
    ),
    "saved_for_backward": Fact(
        (r"saved for backward\b|SavedForBackwards|.saved.: ?\[\s*\S+ ",), (), part=r"aot_forward_graph_"
    ),
    "specialised_size": Fact((r"[Ss]peciali[sz]ed?\b.*\b6\b|== 6",)),
}


def judge(behaviour: Behaviour, files: Sequence[str]) -> Verdict:
    """The report of a behaviour in the files of a tool's output."""
    fact = FACTS[behaviour.name]
    saying = [text for text in files if all(re.search(pattern, text) for pattern in fact.says)]
    if any(all(_names(text, behaviour, mark) for mark in fact.lines) for text in saying):
        return Verdict.REPORTED
    partly = saying or (fact.part and any(re.search(fact.part, text) for text in files))
    return Verdict.PARTLY if partly else Verdict.NOT_REPORTED


def _names(text: str, behaviour: Behaviour, mark: str) -> bool:
    """True if a text names the marked line; for a function, any line from its first decorator on is accepted."""
    last = behaviour.line(mark)
    lines = behaviour.path.read_text(encoding="utf-8").splitlines()
    first = last
    while lines[last - 1].startswith("def ") and lines[first - 2].startswith("@"):
        first -= 1
    numbers = "|".join(str(number) for number in range(first, last + 1))
    return bool(re.search(rf"\b{behaviour.path.stem}\.py(:|\\?\",? line |,? line )({numbers})\b", text))
