"""``tune`` and the runs of the whole program: real programs and processes."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.proof import Goal, TrialVerdict, Tuning
from breakscan.prove.protocol import RunRequest
from breakscan.prove.runs import EndValues, Runs, step_loop
from breakscan.prove.tune import SAME, TuneQuestion, _Tune, tune
from breakscan.prove.tune_changes import NOT_COMPILED, TunedProgram, changes_of
from breakscan.prove.worker import OutOfTime, UserProgram, WorkerError, Workers
from breakscan.rulebook.config import NearestSettings
from breakscan.rulebook.library import load_library
from breakscan.survey import model_program
from tests.conftest import Valid

pytestmark = pytest.mark.torch

SCALED = """\
import time
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)

    def forward(self, x):
        scale = self.fc(x).abs().max().item()
        return self.fc(x) / (scale + 1)

torch.manual_seed(0)
start = time.perf_counter()
total = 0.0
net = Net()
compiled = torch.compile(net, backend="aot_eager")
for epoch in range(2):
    for step in range(8):
        loss = compiled(torch.randn(8, 16)).square().mean()
        loss.backward()
        total += loss.item()
print(loss.item())
"""
WHOLE = SCALED.replace(".item()\n        return", ".detach()\n        return")


def tuned(folder: Path, text: str, goal: Goal = Goal.STEP, seconds: float = 60.0) -> Tuning:
    """``tune`` in a folder that it is run in."""
    (folder / "train.py").write_text(text)
    settings = NearestSettings(target="compile", no_cache=True)
    question = TuneQuestion(goal, seconds, apply=False, apply_unseen=False, settings=settings)
    return tune(UserProgram(("train.py",)), question, lambda _: None)


@pytest.mark.process
@pytest.mark.slow
def test_a_break_is_removed_by_a_patch(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "train.py").write_text(SCALED)
    command = [sys.executable, "-m", "breakscan", "tune", "--time", "240", "--format", "json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    told = valid(done.stdout, "tune")
    assert (told["step"], told["before"]["breaks"], told["applied"]) == ("train.py:19", 1, [])
    best = told["best"]
    assert best["breaks"]["after"] == 0
    assert best["candidates"]
    assert "run" in best["compared"]
    assert (tmp_path / "train.py").read_text() == SCALED
    subprocess.run(["git", "apply", "-"], input=best["patch"], cwd=tmp_path, text=True, check=True)
    assert (tmp_path / "train.py").read_text() != SCALED


ABSENT = """\
import torch

class Batch:
    def __init__(self, x):
        self.x = x

    def name(self):
        self.names = None
        return self

@torch.compile(backend="aot_eager")
def f(batch):
    return batch.x * (2 if getattr(batch, "names", "missing") is None else 3)

x = torch.ones(4)
for step in range(8):
    f(Batch(x) if step in (2, 5) else Batch(x).name())
"""


@pytest.mark.slow
def test_what_only_the_compiled_calls_show_refuses_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Not for the time of a step: then, not to compile at all may be best.
    found = tuned(tmp_path, ABSENT, Goal.MEMORY, seconds=150.0)
    assert found.before.recompiles
    # The run ends with the same values, and compiles once; the third call, which it does not look at, returns another.
    verdicts = [one.verdict for one in found.tried if one.names == ("names is None where it is not set",)]
    assert verdicts == [TrialVerdict.GAINS, TrialVerdict.DIFFERS]
    assert found.best is None


EXPORTED = """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum().item() > 0:
            x = torch.cat([x, x])
        return x

net = Net()
exported = torch.export.export(net, (torch.{}(4),))
"""
FULL = """\
import torch

@torch.compile(backend="eager", fullgraph=True)
def f(x):
    ys = []
    if x.sum() > 0:
        ys.append(x * 2)
    else:
        ys.append(x * 3)
    n = int(ys[0].max())
    return ys[0] if n > 9 else ys[0] + 1

y = f(torch.arange(4.0))
"""


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (EXPORTED.format("ones"), ["at `x.sum().item() > 0`, torch._check that it is true"]),
        (EXPORTED.format("zeros"), ["at `x.sum().item() > 0`, torch._check that it is false"]),
        (FULL, ["at `x.sum() > 0`, torch.where", "at `n > 9`, torch._check that it is false"]),
    ],
)
def test_of_a_program_that_fails_the_changes_with_which_it_runs_are_found(
    text: str, changes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = tuned(tmp_path, text)
    assert found.error
    assert found.best is not None
    assert [name for one in found.best.changes for name in one.names] == changes
    assert found.best.held_back == ()
    assert found.best.assumes


def test_a_program_that_fails_without_the_compiler_too_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkerError, match="ZeroDivisionError"):
        tuned(tmp_path, f"{WHOLE}1 / 0\n")


ENDLESS = f"{SCALED}import os\nopen('ran', 'x') if not os.path.exists('ran') else time.sleep(600)\n"


HIDDEN = """\
import torch

@torch.compile(backend="aot_eager")
def positive(rows):
    found = []
    for row in rows:
        keep = row > 0
        if not keep.any():
            found.append(row[:0])
            continue
        found.append(row[keep] * 2)
    return found

torch.manual_seed(0)
for step in range(12):
    rows = torch.randn(3, 4)
    rows[step % 3] = -1.0
    total = sum(one.sum() for one in positive(rows))
print(total.item())
"""


@pytest.mark.process
@pytest.mark.slow
def test_a_break_that_another_one_hides_is_removed_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tuning = tuned(tmp_path, HIDDEN, seconds=120.0)
    assert tuning.before.problems == (1, 1, 1)
    assert (0, 0, 0) in [one.figures.problems for one in tuning.tried if one.figures is not None]


def test_tune_ends_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The first run is over, the second one has begun.
    found = tuned(tmp_path, ENDLESS, seconds=12.0)
    assert found.before.breaks
    assert (found.best, found.tried, found.eager) == (None, (), None)
    assert found.notes


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCALED)
    return Runs(Workers(UserProgram(("train.py",)), tmp_path, ForkServerProcess(), load_library(())))


def test_steps_of_the_loop_are_timed_up_to_the_same_one_and_values_compared(runs: Runs, tmp_path: Path) -> None:
    path = str(tmp_path / "train.py")
    looked = runs.run({}, RunRequest(), 300)
    outer, inner = looked.report.found
    assert (outer.path, inner.path) == (path, path)
    assert outer.line + 1 == inner.line

    runs.loops, runs.originals = looked.report.found, {path: SCALED}
    base = runs.run({}, RunRequest(seconds=300), 300, keep=True)
    assert [len(steps) for steps in base.report.loops] == [2, 16]
    assert base.figures(step_loop(base.report.loops)).breaks
    assert base.report.stop is None
    cut = runs.run({}, RunRequest(stop=(1, 6)), 300)
    assert cut.report.stop == (1, 6)
    assert [len(steps) for steps in cut.report.loops] == [0, 6]
    # Where time is up, an outer loop that goes round is stopped, as a change may compile the inner one.
    slow = "range(9)", "\n    time.sleep(4 if epoch == 3 else 0)\n    for step"
    text = SCALED.replace("range(2)", slow[0]).replace("\n    for step", slow[1])
    assert runs.run({path: text}, RunRequest(seconds=3.5), 300).report.stop == (0, 4)
    assert runs.run({path: text}, RunRequest(seconds=0.0), 300).report.stop == (1, 0)

    eager = runs.run({}, RunRequest(eager=True), 300, known=base)
    assert not eager.figures(1).graphs
    comparison = EndValues([eager.distances], base.dtypes)
    assert comparison.is_possible
    # Values that are gone are not equal.
    assert comparison.difference({}) is not None
    same = runs.run({path: WHOLE}, RunRequest(), 300, known=base)
    distances = same.distances
    assert not same.figures(1).breaks
    assert comparison.difference(distances) is None
    # A sum is compared, a time is not.
    assert "total" in (comparison.difference({**distances, "total": 0.1}) or "")
    assert comparison.difference({**distances, "start": 0.1}) is None
    # A gradient that flows through the scale is seen, and an error of one percent.
    leaking = runs.run(
        {path: SCALED.replace(".item()\n        return", "\n        return")}, RunRequest(), 300, known=base
    )
    assert "grad" in (comparison.difference(leaking.distances) or "")
    wrong = runs.run({path: WHOLE.replace("scale + 1", "scale + 1.02")}, RunRequest(), 300, known=base)
    assert comparison.difference(wrong.distances) is not None


def test_the_results_of_a_model_of_a_survey_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(Path(model_program.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    zoo = tmp_path / "zoo.py"
    zoo.write_text("import torch\n\ndef build():\n    return torch.nn.ReLU(), (torch.randn(4),)\n", encoding="utf-8")
    program = UserProgram(("train.py", "zoo:build", "--backend", "eager"))
    runs = Runs(Workers(program, tmp_path, ForkServerProcess(), load_library(())))
    runs.loops = runs.run({}, RunRequest(), 300).report.found
    runs.originals = {str(path): path.read_text(encoding="utf-8") for path in (zoo, tmp_path / "train.py")}
    last = RunRequest(stop=(0, model_program.CALLS))
    base = runs.run({}, last, 300, keep=True)
    comparison = EndValues([runs.run({}, last, 300, known=base).distances], base.dtypes)
    wrong = runs.run({str(zoo): runs.originals[str(zoo)].replace("ReLU", "Tanh")}, last, 300, known=base)
    assert "returned" in (comparison.difference(wrong.distances) or "")


TWINS = """\
import functools
import torch

def careless(graph, inputs):
    numbers = [one for one in inputs if not isinstance(one, torch.Tensor)]
    numbers += [one for one in graph.graph.nodes if one.target == "item"]
    return lambda *given: [one * (1.0002 if numbers else 1) for one in graph(*given)]

def nudged(x):
    return x * (1.0002 if torch.compiler.is_compiling() else 1.0)

def checked(function):
    @functools.wraps(function)
    def wrapper(self, x):
        return nudged(function(self, x))
    return wrapper

def scaled(x):
    return nudged(x) / (x.detach().abs().max().item() + 1)

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x):
        return scaled(self.fc(x))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    @checked
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

torch.manual_seed(0)
net = torch.compile(Net(), backend=careless)
for step in range(5):
    y = net(torch.randn(4 + step // 3, 8))
    end = y.detach().mean() if step < 4 else torch.ones(())
y = None
"""


def test_changes_that_compute_something_else_are_seen_without_inductor(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TWINS)
    path = str(tmp_path / "train.py")
    runs.originals = {path: TWINS}
    looked = runs.run({}, RunRequest(), 300)
    runs.loops = looked.report.found
    request = RunRequest(graphs_only=True)
    plain = runs.run({}, request, 300, keep=True)
    values = EndValues([runs.run({}, request, 300, known=plain).distances], plain.dtypes)
    differ = {}
    for change in changes_of(TunedProgram(looked.explanation, runs.originals, looked.report, Goal.STEP)):
        texts = change.write(runs.originals)
        assert texts is not None
        difference = values.difference(runs.run(texts, request, 300, known=plain).distances, SAME)
        differ[change.name] = difference is not None and " in step " in difference
    regions = ("compile Net.forward below its decorators", "torch.compiler.disable at scaled", "repeated blocks")
    others = ("capture_scalar_outputs = True", "torch.compile(..., dynamic=True)", NOT_COMPILED)
    assert differ == dict.fromkeys((*regions, *others), True)


SIGNS = """\
import torch
from torch._inductor import config

def careless(graph):
    for node in graph.nodes if config.max_autotune else ():
        if node.target is torch.ops.aten.sin.default:
            node.target = torch.ops.aten.cos.default

config.post_grad_custom_post_pass = careless
scale = torch.nn.Parameter(torch.ones(()))
fast = torch.compile(lambda x: (scale * x).sin())
with torch.no_grad():
    for _ in range(12):
        fast(torch.rand(8))
        scale += 0.1
"""


@pytest.mark.slow
def test_modes_that_compute_something_else_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tried = tuned(tmp_path, SIGNS, seconds=150.0).tried
    [reason] = [one.reason for one in tried if one.verdict is TrialVerdict.DIFFERS and "mode=" in one.names[0]]
    assert "of fast() at train.py:14" in str(reason)


SLEEPY = """\
import time
import torch

def backend(graph, inputs):
    return lambda *given: (time.sleep(0.003), graph(*given))[1]

@torch.compile(backend=backend)
def f(x):
    return x.sin() if x.sum() > 0 else x.cos()

for step in range(30):
    f(torch.ones(4))
"""


@pytest.mark.slow
def test_nothing_compiled_is_proved_before_others_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(tuning: _Tune) -> None:
        assert tuning._spare_eager()
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_Tune, "_speed_up", interrupted)
    best = tuned(tmp_path, SLEEPY, seconds=200.0).best
    assert best is not None
    assert ([one.names for one in best.changes], best.held_back) == ([(NOT_COMPILED,)], ())
    assert "-@torch.compile(backend=backend)" in best.patch


LAYERS = """\
import torch

@torch.compile(backend="eager")
def layer(x):
    return x.sin()

def tower(x):
    for _ in range(3):
        x = layer(x)
    return x

for step in range(4):
    tower(torch.rand(4))
"""


def test_a_loop_that_is_watched_can_be_compiled(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LAYERS)
    path = str(tmp_path / "train.py")
    runs.originals = {path: LAYERS}
    looked = runs.run({}, RunRequest(), 300).report
    runs.loops, runs.calls = looked.found, looked.calls
    request = RunRequest(stop=(0, 3))
    base = runs.run({}, request, 300, keep=True)
    head, layer, tower = LAYERS.partition('@torch.compile(backend="eager")\n')
    text = head + tower.replace("def tower", f"{layer}def tower")
    changed = runs.run({path: text}, request, 300, known=base)
    assert changed.report.stop == (0, 3)
    assert [len(steps) for steps in changed.report.loops] == [3, 0]
    assert (changed.figures(0).breaks, changed.figures(0).graphs) == (0, 1)
    # No name holds what is returned, and within compiled code nothing is looked at.
    values = EndValues([dict.fromkeys(base.dtypes, 0.0)], base.dtypes)
    assert values.difference(changed.distances) is None
    assert values.compares(changed.distances)
    assert not values.compares({path: 0.0 for path in changed.distances if "tower" not in path})
    wrong = runs.run({path: text.replace("sin", "cos")}, request, 300, known=base)
    assert " of tower() at train.py:13 differs" in (values.difference(wrong.distances) or "")


def test_weights_alone_show_nothing_of_what_calls_return() -> None:
    weights, result = {"net.weight": 0.0}, "output of call 2 of net() at train.py:9"
    dtypes = dict.fromkeys([*weights, result], "torch.float32")
    known, random = weights | {result: 1e-7}, weights | {result: 0.7}
    assert EndValues([known], dtypes).compares(known)
    assert not EndValues([known], dtypes).compares(weights)
    assert not EndValues([random], dtypes).compares(random)
    # Their gradients do.
    assert EndValues([random], dtypes, trains=True).compares(weights)


def test_a_process_that_crashes_is_started_once_more(runs: Runs, tmp_path: Path) -> None:
    crash = "\nimport os\nif not os.path.exists('crashed'):\n    os.mkdir('crashed')\n    os.kill(os.getpid(), 11)\n"
    (tmp_path / "train.py").write_text(LAYERS + crash)
    assert runs.run({}, RunRequest(), 300).report.found
    (tmp_path / "train.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    with pytest.raises(WorkerError, match="SIGSEGV"):
        runs.run({}, RunRequest(), 300)


def test_a_run_ends_when_its_time_is_up(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\ntime.sleep(600)\n")
    with pytest.raises(WorkerError, match="1 s"):
        runs.run({}, RunRequest(), 1.0)
    runs.workers.until = time.monotonic() + 1.0
    with pytest.raises(OutOfTime):
        runs.run({}, RunRequest(), 300)
