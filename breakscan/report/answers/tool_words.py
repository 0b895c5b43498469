"""Words of the MCP server about itself, its tools, their arguments and the processes that they run."""

from __future__ import annotations

from breakscan.report.printable import visible

INSTRUCTIONS = (
    "Finds and fixes what breaks torch.compile. The loop: check (static), explain (runs a program), fix (a diff), "
    "verify (runs the program with and without the rewrites), then write. Each answer names the next call. "
    "Paths are relative to the root of the server."
)

TITLES = {
    "check": "Find what breaks torch.compile",
    "explain": "Run a program and show what broke",
    "fix": "Rewrite what breaks",
    "verify": "Run a program with and without rewrites",
    "rule": "Explain a rule",
}

DESCRIPTIONS = {
    "check": (
        "Show where torch.compile will break the graph, recompile or fall back to eager in Python files and notebooks. "
        "Static: imports and runs nothing."
    ),
    "explain": (
        "RUNS CODE: run a Python program and show where torch.compile did break, recompile or fall back to eager, why, "
        "and what it cost. The program runs as the user, with a time limit."
    ),
    "fix": (
        "Rewrite what breaks. Returns a diff and changes nothing, unless write is true. Only rewrites that an eager "
        "program cannot tell apart, unless unsafe is true. Static: imports and runs nothing."
    ),
    "verify": (
        "RUNS CODE: run a Python program several times, as it is and with the rewrites of fix, or with a patch, and "
        "say whether results are equal, breaks are gone and steps are faster. Changes no file, unless write is true."
    ),
    "rule": "Explain a rule: why the compiler cannot do it, what to write instead, examples, and what each torch does.",
}

ARGUMENTS = {
    "paths": "Files or folders below the root; the root without any.",
    "select": "Only these rules: ids, or starts of ids (BRK1).",
    "diff": "Only what is new since the branch left this commit of git, such as main.",
    "limit": "Entries in the answer.",
    "offset": "Entries to skip: the answer says with which to go on.",
    "rewrites": "Only these rewrites, by id.",
    "unsafe": "Also rewrites that change more than speed; each says what.",
    "write": "Change the files.",
    "program": "The Python file to run, below the root; with as_module, the name of a module.",
    "arguments": "Arguments of the program.",
    "as_module": "Run program as python -m does.",
    "compile": "Compile these first, if the program compiles nothing: MODULE:NAME, or :NAME of the program's own.",
    "seconds": "The time limit. What was found until then is reported.",
    "last": "Run nothing: go on with the answer of the last run.",
    "patch": "A unified diff to verify instead of the rewrites.",
    "rule": "An id such as BRK101, or a name such as branch-on-tensor.",
}

REPORT_IT = "Run breakscan --bug-report, and report it with this call."
WAITING = "waiting for another run to end"


def fault_words(what: str) -> str:
    """The message of an error that is breakscan's own."""
    return f"a fault in breakscan: {what}. {REPORT_IT}"


def no_report_words(last: str) -> str:
    """The message for a process that wrote no report, with the last line that it printed."""
    return f"there is no report; the last that was printed is: {last or 'nothing'}"


def too_early_words(limit: float, last: str) -> str:
    """The message where the time limit came before anything could be reported."""
    return (
        f"the time limit of {limit:.0f} s came before there was anything to report; the last that was printed is: "
        f"{last or 'nothing'}. Ask with more seconds, or let the program do fewer steps"
    )


def ended_words(status: int | None, seconds: float, limit: float | None) -> str:
    """The end of a program: ``exit status 0 after 8.9 s``; ``limit`` is the time limit that ended it."""
    if limit is not None:
        return f"ended by the time limit of {limit:.0f} s: ask with more seconds if that is too early"
    if status is None:
        return f"its end is not known, after {seconds:.1f} s"
    how = f"exit status {status}" if status >= 0 else f"killed by signal {-status}"
    return f"{how} after {seconds:.1f} s"


MOST_LINES = 15
SAID = "breakscan: "
"""The start of breakscan's own lines."""


def last_progress(output: str) -> str:
    """The last message of ``verify``."""
    said = [line for line in output.splitlines() if line.startswith(SAID)]
    return visible(said[-1].removeprefix(SAID)) if said else ""


def last_lines(output: str) -> str:
    """The last lines that a program has written, without those of breakscan."""
    lines = [visible(line) for line in output.splitlines() if not line.startswith(SAID)]
    return "\n".join(lines[-MOST_LINES:])
