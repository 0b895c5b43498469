"""The file of a reproduction: what it shows in comments, the code, the calls."""

from __future__ import annotations

from breakscan.explain.explanation import Explanation
from breakscan.explain.repro.code_names import LAZY_ANNOTATIONS
from breakscan.explain.repro.problem import RecordedProblem
from breakscan.explain.repro.program import MinimalProgram
from breakscan.model.words import short_path
from breakscan.report.explain.upstream_pages import break_page
from breakscan.report.printable import visible


def repro_text(problem: RecordedProblem, program: MinimalProgram, explanation: Explanation) -> str:
    """The program as a file of Python."""
    where = f"{short_path(problem.site.path)}:{problem.site.line}"
    cause = " ".join(filter(None, (problem.gb_id, problem.gb_type or problem.rule)))
    head = [f"Reproduces what torch {explanation.torch} did at {where} ({problem.outcome}: {cause})."]
    head += [page] if (page := break_page(problem.gb_id)) else []
    head.append("Made by breakscan of a recorded run. Values are stand-ins of the recorded kinds and sizes.")
    if program.unknown:
        head.append(f"Not recorded: {', '.join(program.unknown)}.")
    if program.own_backend is not None:
        head.append(f"The program's own backend, {program.own_backend}, is replaced by eager.")
    parts = [
        "\n".join(f"# {visible(line)}" for line in head),
        "\n".join((LAZY_ANNOTATIONS, "", *program.imports)),
    ]
    if program.placeholder is not None:
        parts.append(f"{program.placeholder} = None  # put in what the program passed")
    parts += program.definitions
    parts.append("\n".join(("torch.manual_seed(0)", *program.calls)))
    return "\n\n\n".join(parts) + "\n"
