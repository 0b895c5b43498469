"""Tests that ``torch.compile`` compiles the code under test.

``assert_compiles`` compiles and calls a function; ``@pytest.mark.fullgraph`` records what a test compiles;
``--breakscan-summary`` records all tests.  If none of these is used, nothing is recorded, and neither torch nor the
rest of breakscan is imported.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from breakscan.api import Report

_MARK = "fullgraph"
_SUMMARY = "breakscan_summary"
_ATTRIBUTE = "breakscan_sites"
"""A section of a test's report, which pytest-xdist workers also send."""
_MOST_TESTS = 3

_TRACED = re.compile(r"^.*\btorch\.__trace:\S+[^\S\n]*(?:\n|\Z)", re.MULTILINE)

_sites = pytest.StashKey[list[dict[str, str]]]()


def assert_compiles(
    function: Callable[..., Any],
    /,
    *args: Any,
    breaks: int = 0,
    recompiles: int = 0,
    fullgraph: bool = False,
    backend: str = "eager",
    then: Sequence[tuple[Any, ...]] = (),
    **kwargs: Any,
) -> Any:
    """Compiles a function or module as if for the first time, calls it, and returns the result.

    ``then`` has the arguments of further calls, the last of which gives the result; ``kwargs`` are passed to each call.
    A compiled callable is called as it is, with its own ``backend`` and ``fullgraph``.

    Fails the test if more than ``breaks`` sites break the graph, if there are more than ``recompiles`` recompiles,
    if a function falls back to eager for another reason, if a call runs eager because of ``torch.compiler.set_stance``
    (but for the first one under ``"eager_then_compile"``),
    or if nothing is compiled.
    """
    __tracebackhide__ = True
    from breakscan.api import explain_calls

    calls = [(each, kwargs) for each in (args, *then)]
    report, result = explain_calls(function, calls, backend=backend, fullgraph=fullgraph)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    _judge(report, f"{name} is not compiled as it should be", breaks, recompiles)
    return result


@pytest.fixture(name="assert_compiles")
def _assert_compiles(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """breakscan.pytest_plugin.assert_compiles; its sites are also listed in the summary."""

    def assert_compiles_in_test(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        from breakscan.api import record

        recording = record()
        try:
            with recording:
                return assert_compiles(function, *args, **kwargs)
        finally:
            _keep(request.node, recording.explain())

    return assert_compiles_in_test


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("breakscan").addoption(
        "--breakscan-summary",
        action="store_true",
        dest=_SUMMARY,
        help="record what every test compiles with torch.compile, and list the sites that break graphs at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(breaks=0, recompiles=None): fail if what the test compiles with torch.compile breaks the graph, "
        "falls back to eager, or recompiles more often, or if nothing is compiled",
    )
    if config.getoption(_SUMMARY) and importlib.util.find_spec("torch") is None:
        raise pytest.UsageError("--breakscan-summary needs torch")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    mark = item.get_closest_marker(_MARK)
    if mark is None and not item.config.getoption(_SUMMARY):
        return (yield)
    from breakscan.api import record

    if mark is not None:
        import torch._dynamo

        # What an earlier test has compiled would not be compiled again, and so not be recorded.
        torch._dynamo.reset()
    recording = record()
    try:
        with recording:
            result = yield
    finally:
        report = recording.explain()
        _keep(item, report)
    if mark is not None:
        _judge(report, "the test is marked fullgraph", *mark.args, **mark.kwargs)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "call" and _sites in item.stash:
        setattr(report, _ATTRIBUTE, item.stash[_sites])
        report.sections = list(_without_trace(report.sections))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    tests: dict[str, list[str]] = {}
    advice: dict[str, str] = {}
    watched = False
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        watched = watched or hasattr(report, _ATTRIBUTE)
        for site in getattr(report, _ATTRIBUTE, ()):
            tests.setdefault(site["line"], []).append(report.nodeid)
            advice[site["line"]] = site["instead"]
    if not watched:
        return
    terminalreporter.section("graph breaks of torch.compile")
    if not tests:
        terminalreporter.write_line("none in the tests that were recorded")
    advised: set[str] = set()
    for line in sorted(tests):
        terminalreporter.write_line(line)
        names = list(dict.fromkeys(tests[line]))
        rest = f" and {len(names) - _MOST_TESTS} more" if len(names) > _MOST_TESTS else ""
        terminalreporter.write_line(f"   {', '.join(names[:_MOST_TESTS])}{rest}")
        if advice[line] and advice[line] not in advised:
            advised.add(advice[line])
            terminalreporter.write_line(f"   Instead: {advice[line].rstrip('.')}.")


def _without_trace(sections: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the captured sections without torch's trace, whose records pytest takes for empty messages."""
    for name, text in sections:
        rest = _TRACED.sub("", text)
        if rest.strip() or rest == text:
            yield name, rest


def _judge(report: Report, what: str, breaks: int = 0, recompiles: int | None = None) -> None:
    """Fails the test for more than it allows; the defaults are those of the marker."""
    __tracebackhide__ = True
    from breakscan.report.explain.assertion_message import objections

    if found := objections(report.explanation, breaks, recompiles):
        pytest.fail("\n".join([f"{what}:", *found]), pytrace=False)


def _keep(item: pytest.Item, report: Report) -> None:
    """Adds to the summary."""
    from breakscan.report.explain.assertion_message import break_lines

    kept = item.stash.setdefault(_sites, [])
    kept += [site for site in break_lines(report.explanation) if site not in kept]
