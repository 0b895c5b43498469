"""Tests that ``torch.compile`` compiles the code under test.

``assert_compiles`` compiles and calls a function; ``@pytest.mark.fullgraph`` records what a test compiles;
``--breakscan-summary`` records all tests.  If none of these is used, nothing is recorded, and neither torch nor the
rest of breakscan is imported."""

import csv
import importlib.util
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from breakscan.api import Report

_MARK = "fullgraph"
_UPDATE = "--breakscan-update-expected"
_COLUMNS = ("name", "accuracy", "graph_breaks", "recompiles")
_SUMMARY = "breakscan_summary"
_ATTRIBUTE = "breakscan_sites"  # a section of a test's report, which pytest-xdist workers also send
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

    Fails the test if more than ``breaks`` sites break the graph, if there are more than ``recompiles`` recompiles, if a
    function falls back to eager for another reason, if a call runs eager because of ``torch.compiler.set_stance`` (but
    for the first one under ``"eager_then_compile"``), or if nothing is compiled."""
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


class TorchCompileTesterMixin:
    """Tests that a model compiles, with the names and the methods that those of diffusers have.

    A subclass sets ``model_class``, and defines ``get_init_dict`` and ``get_dummy_inputs``; or
    ``prepare_init_args_and_inputs_for_common``, which returns both."""

    model_class: Any = None
    different_shapes_for_compilation: Sequence[tuple[int, int]] | None = None
    torch_device = "cpu"
    backend = "eager"

    def get_init_dict(self) -> dict[str, Any]:
        return self.prepare_init_args_and_inputs_for_common()[0]  # type: ignore[attr-defined, no-any-return]

    def get_dummy_inputs(self) -> dict[str, Any]:
        return self.prepare_init_args_and_inputs_for_common()[1]  # type: ignore[attr-defined, no-any-return]

    @pytest.mark.fullgraph(recompiles=0)
    def test_torch_compile_recompilation_and_graph_break(self) -> None:
        model = self._model()
        model.compile(backend=self.backend)
        self._call(model, *[self.get_dummy_inputs()] * 2)

    @pytest.mark.fullgraph(recompiles=0)
    def test_torch_compile_repeated_blocks(self) -> None:
        model, names = self._model(), getattr(self.model_class, "_repeated_blocks", None)
        if not names:
            pytest.skip("the model has no _repeated_blocks")
        for block in [one for one in model.modules() if type(one).__name__ in names]:
            block.compile(backend=self.backend)
        self._call(model, *[self.get_dummy_inputs()] * 2)

    @pytest.mark.fullgraph(recompiles=0)
    def test_compile_on_different_shapes(self) -> None:
        if not self.different_shapes_for_compilation:
            pytest.skip("different_shapes_for_compilation is not set")
        from torch.fx.experimental import _config

        model, inputs = self._model(), cast("Callable[..., Any]", self.get_dummy_inputs)
        model.compile(backend=self.backend, dynamic=True)
        # A height and a width that are equal once may differ, as in the tests of diffusers.
        patch: Any = _config.patch  # type: ignore[attr-defined]
        with patch(use_duck_shape=False):
            self._call(
                model, *(inputs(height=high, width=wide) for high, wide in self.different_shapes_for_compilation)
            )

    def _model(self) -> Any:
        return self.model_class(**self.get_init_dict()).to(self.torch_device).eval()

    def _call(self, model: Any, *inputs: dict[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for each in inputs:
                model(**each)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("breakscan")
    group.addoption(
        _UPDATE,
        action="store_true",
        help="write the numbers of graph breaks and recompiles that fullgraph(expected=FILE) expects as they are",
    )
    group.addoption(
        "--breakscan-summary",
        action="store_true",
        dest=_SUMMARY,
        help="record what every test compiles with torch.compile, and list the sites that break graphs at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(breaks=0, recompiles=None, expected=None): fail if what the test compiles breaks the graph, "
        "falls back to eager, or recompiles more often, or if nothing is compiled; expected is a CSV file with the "
        "breaks and recompiles of each test",
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
        allowed = dict(mark.kwargs)
        if "expected" in allowed:
            allowed |= _expected(item, report, item.path.parent / allowed.pop("expected"))
        _judge(report, "the test is marked fullgraph", *mark.args, **allowed)
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


def _judge(report: "Report", what: str, breaks: int = 0, recompiles: int | None = None) -> None:
    """Fails the test for more than it allows; the defaults are those of the marker."""
    __tracebackhide__ = True
    from breakscan.report.explain.assertion_message import objections

    if found := objections(report.explanation, breaks, recompiles):
        pytest.fail("\n".join([f"{what}:", *found]), pytrace=False)


def _expected(item: pytest.Item, report: "Report", file: Path) -> dict[str, Any]:
    """The numbers that a file, in the form of PyTorch's expected accuracies, has for a test: by its parameters, or else
    its name.  Fails the test if there are fewer now."""
    __tracebackhide__ = True
    from breakscan.report.explain.assertion_message import break_lines

    name = item.callspec.id if hasattr(item, "callspec") else item.name
    now = (len(break_lines(report.explanation)), len(report.explanation.recompiles))
    rows: dict[str, dict[str, str]] = {}
    if file.exists():
        with file.open(encoding="utf-8", newline="") as stream:
            rows = {row["name"]: row for row in csv.DictReader(stream, skipinitialspace=True)}
    if item.config.getoption(_UPDATE):
        rows[name] = dict(zip(_COLUMNS, (name, "pass", *map(str, now)), strict=True))
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, _COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[name] for name in sorted(rows))
    row = rows.get(name, {})
    expected = [int(row[column]) if row.get(column) else None for column in _COLUMNS[2:]]
    fewer = [
        f"{column} {was} → {new}"
        for column, was, new in zip(_COLUMNS[2:], expected, now, strict=True)
        if was and new < was
    ]
    if fewer:
        pytest.fail(
            f"{file.name} expects more of {name} than there is: {', '.join(fewer)}; {_UPDATE} writes it", pytrace=False
        )
    return {"breaks": expected[0] or 0, "recompiles": expected[1]}


def _keep(item: pytest.Item, report: "Report") -> None:
    """Adds to the summary, and to the properties that --junitxml writes."""
    from breakscan.report.explain.assertion_message import break_lines

    kept = item.stash.setdefault(_sites, [])
    kept += [site for site in break_lines(report.explanation) if site not in kept]
    others = [one for one in item.user_properties if one[0] not in _COLUMNS[2:]]
    recompiles = len(report.explanation.recompiles) + sum(
        int(str(value)) for name, value in item.user_properties if name == _COLUMNS[3]
    )
    item.user_properties[:] = [*others, (_COLUMNS[2], len(kept)), (_COLUMNS[3], recompiles)]
