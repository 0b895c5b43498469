"""Prose is no protocol: nothing decides by comparing with English, and below ``reports/`` nothing makes sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import breakscan

PACKAGE = Path(breakscan.__file__).parent

PARSERS = ("runtime/parsers/", "runtime/traced.py", "runtime/tracelog/")
"""What reads the text that torch writes."""
LEFT = {
    "analysis/compile_uses/timings.py": "text that a program prints beside a time",
    "bench/hinted_settings.py": "a type of break, as torch names it",
    "rewrite_support/messages.py": "fields of printf-style formatting",
    "rulebook/document.py": "Python code in examples",
    "source/toml_text.py": "the line of an error in tomllib's message",
    "reports/explain/words.py": "types of breaks and hints, as torch writes them",
    "reports/shared/observation_words.py": "keys of what is shown",
    "reports/shared/printable.py": "annotations of fields",
    "runtime/explain/context.py": "reprs of Python in the text of torch",
    "runtime/explain/cudagraph_skips.py": "reasons of torch, without their beginning and their stack",
    "runtime/explain/kernel_calls.py": "comments in code that Inductor generated",
    "runtime/explain/recompile_causes.py": "guards, as torch writes them",
    "source/magics.py": "errors of tokenize",
    "survey/example_code.py": "markup of docstrings",
    "verify/patch.py": "the headers of a patch",
    "rewrite_support/generated.py": "the comment at the top of a file that a program writes",
}
"""Further files that compare with text, each with the reason.  A file that no longer does must be removed here."""

AUTHORS = ("rewrites/", "rewrite_support/", "repair/planner.py")
"""Each rewrite states in its own words what it changes, or why it declines."""
ABOVE = ("reports/", "cli/", "api.py", "notebook.py", "pytest_plugin.py")
WRITTEN = {
    "analysis/compile_uses/switches.py": "names of settings, for the messages of rules",
    "analysis/pipeline/cache.py": "what a file of the cache says of itself",
    "analysis/pipeline/check_file.py": "errors of files",
    "analysis/pipeline/rule_trial.py": "code that compiles an example",
    "analysis/pipeline/workers.py": "errors of files",
    "bench/regional.py": "code for the user",
    "bench/variants.py": "a part of an exception's message",
    "config/config_file.py": "errors of settings",
    "config/keys.py": "errors of settings",
    "config/schema.py": "descriptions for editors",
    "config/target.py": "an error of settings",
    "config/settings.py": "what keys mean, for editors",
    "mcp_server/child.py": "code that starts breakscan",
    "rulebook/document.py": "titles of families of rules; a part of an exception's message",
    "runtime/bootstrap/eager_compile.py": "errors, recorded and printed where nothing of breakscan is imported",
    "runtime/bootstrap/sitecustomize.py": "an error, printed where nothing of breakscan is imported",
    "runtime/explain/context.py": "the name of a module of torch's without a name",
    "runtime/gates/lock_file.py": "what a lock file says of itself",
    "baseline/baseline_file.py": "what a baseline says of itself",
    "runtime/hooks/object_facts.py": "values that a recording can hold as text alone",
    "runtime/parsers/break_text.py": "text of torch",
    "runtime/parsers/ended_frames.py": "text of torch",
    "runtime/parsers/generated_code.py": "what stands in the place of code that was left out",
    "runtime/parsers/guard_text.py": "text of torch; what stands for a name or value that the program does not have",
    "runtime/replay/replay.py": "errors of rule documents",
    "runtime/session.py": "parts of exceptions' messages",
    "runtime/torch_internals.py": "notes for those who read the table",
    "runtime/tracelog/processes.py": "the name of a file that a log does not name",
    "source/files.py": "errors of files",
    "source/module.py": "errors of files",
    "source/newer_syntax.py": "errors of files",
    "source/notebook_file.py": "errors of files",
    "source/notebook_text.py": "errors of files",
    "source/suppressions.py": "errors of comments",
    "source/unused_suppressions.py": "what is wrong with a comment",
    "survey/run_unit.py": "why a unit was not run",
    "survey/store_errors.py": "parts of exceptions' messages",
    "survey/unit_process.py": "why a unit has no result of its own",
    "torch_facts/operators.py": "the language of the measured facts",
    "verify/patch.py": "a part of an exception's message",
    "worker/call_result.py": "stands in the place of an error of torch",
    "worker/process.py": "an error of the program",
    "worker/worker.py": "parts of exceptions' messages",
}
"""The files below ``reports/`` that make sentences beside messages of exceptions, each with the reason.  A file that no
longer does must be removed here."""

METHODS = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition index find rfind split rsplit count".split()
)
THREE_WORDS = re.compile(r"[a-z']{2,} [a-z']+ [a-z']{2,}")
METHODS_OF_RE = frozenset("compile match search fullmatch findall finditer split sub".split())


def literals(node: ast.expr) -> Iterator[str]:
    """The strings that an operand consists of: a literal, or a tuple, list or set of them; of an f-string its text."""
    for inner in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]:
        if isinstance(inner, ast.JoinedStr):
            yield "…".join(part.value for part in inner.values if isinstance(part, ast.Constant))
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines and texts of the literals that something is compared with, also by the name of a constant: the keys of
    a dict as well."""
    statements = getattr(tree, "body", [])
    assigned = [node for node in statements if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    constants = {node.targets[0].id: node.value for node in assigned}
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            operands = [node.value]
        elif isinstance(node, ast.Dict):
            operands = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if node.func.attr in METHODS or (of_re and node.func.attr in METHODS_OF_RE):
                operands = node.args[:1]
        for operand in operands:
            named = constants.get(operand.id, operand) if isinstance(operand, ast.Name) else operand
            yield from ((operand.lineno, text) for text in literals(named))


def sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines and texts of literals with three words in a row, without docstrings and messages of exceptions."""
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            left_out |= set(ast.walk(node))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name.endswith("Error") or name in ("split", *METHODS_OF_RE):
                left_out |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield from [(node.lineno, node.value)] if THREE_WORDS.search(node.value) else ()


def is_prose(text: str) -> bool:
    """Whether a text holds a blank between words."""
    return " " in text.strip() and any(character.isalpha() for character in text)


def found_in(path: Path) -> list[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [(line, text) for line, text in compared(tree) if is_prose(text)]


def test_nothing_decides_by_comparing_english() -> None:
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(PARSERS) and (prose := found_in(path)):
            found[name] = prose
    assert found.keys() == LEFT.keys(), {name: found.get(name) for name in found.keys() ^ LEFT.keys()}


def test_a_comparison_with_english_is_found() -> None:
    tree = ast.parse(
        'a == "is off"; b.endswith((" a tensor", "x")); re.match("rest of", c); d == "name"\n'
        're.compile("left out"); e.split(" is a "); {"is on": 1}[f]; g == f"{h} is unchanged"'
    )
    found = [text for _, text in compared(tree) if is_prose(text)]
    assert sorted(found) == sorted(["is off", " a tensor", "rest of", "left out", " is a ", "is on", " is unchanged"])


def test_reports_alone_make_sentences() -> None:
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        made = list(sentences(ast.parse(path.read_text(encoding="utf-8"))))
        if made and not name.startswith((*ABOVE, *AUTHORS)):
            found[name] = made
    assert found.keys() == WRITTEN.keys(), {name: found.get(name) for name in found.keys() ^ WRITTEN.keys()}


def test_a_sentence_is_found() -> None:
    tree = ast.parse(
        '"""This is left out."""\nraise ValueError(f"{a} is left out")\nraise_(TypeError("so is this one"))\n'
        'b = f"{c} ran without a tensor"; d = {"key": "it is there"}; "a b c".split(); e("two words")'
    )
    assert sorted(text for _, text in sentences(tree)) == [" ran without a tensor", "it is there"]
