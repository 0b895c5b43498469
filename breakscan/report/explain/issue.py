"""The text of one problem for an issue tracker, as that of the library whose code it is in."""

import re
from collections.abc import Sequence

from breakscan.explanation.breaks import break_page
from breakscan.explanation.context import package_of
from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Verdict
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import place, short_path
from breakscan.report.markdown import code, prose
from breakscan.report.printable import printable, visible

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?")
_ORDER = (ProblemKind.FAILURE, ProblemKind.BREAK, ProblemKind.RECOMPILES, ProblemKind.FUNCTION)
"""The kinds of problems that there is a text for, in the order in which they are taken at one line."""
_MOST_SITES = 10
_FENCE = "````"  # longer than one in a docstring


def issue_text(explanation: Explanation, where: str) -> str:
    """The Markdown of an issue about the problem that ``path:line`` names, or the id of a rule or of PyTorch's.  The
    line can be that of the user's that leads into a library.  Raises ValueError, with the sites, for none or more."""
    known = [one for one in explanation.problems if one.kind in _ORDER and one.cause is None]
    known.sort(key=lambda problem: _ORDER.index(problem.kind))
    found = _at(known, where)
    if len(found) != 1:
        sites = list(dict.fromkeys(f"{short_path(one.site.path)}:{one.site.line}" for one in found or known))
        shown = ", ".join(sites[:_MOST_SITES]) + (", …" if len(sites) > _MOST_SITES else "")
        if found:
            raise ValueError(visible(f"{where} is at several sites: name one of {shown}"))
        raise ValueError(visible(f"nothing is reported at {where}" + (f": there is {shown}" if sites else "")))
    return _text(printable(found[0]), explanation)


def _at(known: Sequence[Problem], where: str) -> list[Problem]:
    """The first problem in each file at such a line."""
    if (named := _PLACE.fullmatch(where)) is None:
        return [one for one in known if where.upper() in (one.rule, one.gb_id)]
    path, line = f"/{named['path'].removeprefix('./')}", int(named["line"])
    there = [one for one in known if one.site.line == line and f"/{one.site.path}".endswith(path)]
    leading = (one for one in known if (to := one.users_line) and to.line == line and f"/{to.path}".endswith(path))
    return list({one.site.path: one for one in reversed(there or list(leading))}.values())


def _text(problem: Problem, explanation: Explanation) -> str:
    library = package_of(problem.site.path)
    version = explanation.libraries.get(library or "")
    named = f"{library} {version}" if version else library
    versions = (named, f"torch {explanation.torch}", f"Python {explanation.python}")
    inside = f", in {code(problem.functions[0])}" if problem.functions else ""
    name = code(problem.gb_type or problem.name)
    where = code(problem.functions[0] if problem.functions else place(problem.site))
    page = f" ([{problem.gb_id}]({problem.page or break_page(problem.gb_id)}))" if problem.gb_id else ""
    said = problem.why if problem.kind is ProblemKind.RECOMPILES else problem.reason
    parts = [
        f"# torch.compile: {'graph break' if problem.gb_type else problem.kind.words} in {where}, {name}",
        ", ".join(prose(visible(one)) for one in versions if one),
        f"**Where:** {code(place(problem.site))}{inside}",
        f"{_FENCE}python\n{problem.code}\n{_FENCE}" if problem.code else "",
        f"**What happens:** {prose(_what_happens(problem))}",
        f"**Why:** {prose(said)}{page}",
    ]
    if rule := explanation.rules.get(problem.rule or ""):
        parts.append(f"**What could be written instead:** {prose(rule.instead)}")
    return "\n\n".join(filter(None, parts)) + "\n"


def _what_happens(problem: Problem) -> str:
    match problem.verdict:
        case Verdict.SPLITS:
            return "torch.compile ends the graph here, and begins another one after it."
        case Verdict.EAGER | Verdict.RECOMPILES:
            return " ".join(problem.consequences) or f"The function {problem.what}."
    return "torch.compile raises here."
