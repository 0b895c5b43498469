"""What a worker compiled, according to its recording."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from breakscan.explain.explanation import Explanation
from breakscan.explain.from_processes import explain_processes
from breakscan.prove.worker.worker import Worker
from breakscan.record.recording import compiled
from breakscan.record.records import Record
from breakscan.rulebook.document import Rule
from breakscan.source.paths import display_path
from breakscan.source.source_files import SourceFiles


def explained(
    worker: Worker, rules: Iterable[Rule], texts: Mapping[tuple[str, int], str]
) -> tuple[Explanation, Sequence[Sequence[Record]]]:
    """The explanation of what was recorded in a worker until now, and the records.  ``texts`` are lines that differ
    from those on disk, by path and number."""
    processes = [process for process in worker.records() if compiled(process)]
    cwd = os.getcwd()
    files = SourceFiles.trusted()
    files.know(texts)
    explanation = explain_processes(
        processes,
        argv=worker.program.argv,
        outcome=None,
        rules=rules,
        show=lambda path: display_path(path, cwd),
        torch_imported=True,
        files=files,
    )
    return explanation, processes


def kernels_of_step(explanation: Explanation, steps: float) -> dict[str, int]:
    """Kernels by kind; ``steps`` is how often each callable was called while it was recorded."""
    kernels: dict[str, float] = defaultdict(float)
    for graph in explanation.graphs:
        for made in graph.generated:
            for kernel in made.kernels:
                kernels[kernel.kind.value] += kernel.calls * (graph.runs or 0) / steps
    return {kind: max(1, round(count)) for kind, count in kernels.items() if count}
