"""A program does under ``breakscan explain`` what it does alone, to the bit, whatever goes wrong in breakscan."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from behaviour import FOLDER as BEHAVIOURS
from programs import Done, Folder

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")]
pytest.importorskip("numpy")

EXAMPLES = Path(__file__).parents[2] / "examples"

SEAL = r'''"""Prints, when a program ends, digests of its results and of the state of its random number generators."""

import atexit, hashlib, os, random, re, sys
import numpy

random.seed(1)
numpy.random.seed(1)


def digest(main):
    torch, seen = sys.modules.get("torch"), hashlib.sha256()

    def add(value):
        if isinstance(value, torch.Tensor):
            add((str(value.dtype), str(tuple(value.shape)), str(value.requires_grad)))
            seen.update(value.detach().contiguous().numpy().tobytes())
            if value.is_leaf and value.grad is not None:
                add(value.grad)
        elif isinstance(value, torch.nn.Module):
            add(value.state_dict())
            add(list(value.parameters()))
        elif isinstance(value, torch.optim.Optimizer):
            add(value.state_dict())
        elif isinstance(value, (list, tuple)):
            for item in value:
                add(item)
        elif isinstance(value, dict):
            for name in value:
                add(name)
                add(value[name])
        elif value is None or type(value) in (bool, int, float, complex, str, bytes):
            # Dynamo's own counters, where a program imports them, name functions by their address.
            seen.update(re.sub("0x[0-9a-f]+", "0x", repr(value)).encode())

    if torch:
        # Dynamo adds its own names there.
        own = set(re.findall(r"\w+", open(sys.argv[0]).read()))
        add({name: value for name, value in vars(main).items() if name in own and not name.startswith("__")})
    return seen.hexdigest()


def seal():
    main = sys.modules["__main__"]
    if os.path.basename(sys.argv[0]) != "program.py":
        # breakscan itself, or a worker of the compiler's.
        return
    print("results", digest(main))
    for name, state in (("torch", "get_rng_state"), ("random", "getstate"), ("numpy.random", "get_state")):
        if name in sys.modules:
            values = getattr(sys.modules[name], state)()
            text = values.numpy().tobytes() if name == "torch" else repr(values).encode()
            print(name, hashlib.sha256(text).hexdigest())
    sys.stdout.flush()


atexit.register(seal)
'''

TRAINING = """import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.BatchNorm1d(16), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
x, y = torch.randn(64, 8), torch.randn(64, 1)
losses = []


@torch.compile(backend="aot_eager")
def step(x, y):
    loss = nn.functional.mse_loss(model(x), y)
    if loss > 100:
        print("it explodes")
    return loss * 1.5


for size in (16, 16, 24, 64):
    optimizer.zero_grad()
    loss = step(x[:size], y[:size])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    print(size, loss.item())
"""

INDUCTOR = """import torch

weight = torch.randn(8, 8, requires_grad=True)


@torch.compile
def f(x):
    return torch.nn.functional.dropout((x @ weight).relu(), 0.5).sum() * torch.rand(())


losses = [f(torch.randn(4, 8)) for _ in range(3)]
sum(losses).backward()
print(losses)
"""

RANDOM = """import random
import numpy as np
import torch

random.seed(3)
np.random.seed(4)
torch.manual_seed(5)
drawn = []
generator = torch.Generator().manual_seed(6)


@torch.compile(backend="aot_eager")
def f(x):
    y = torch.nn.functional.dropout(x, 0.5) + torch.rand(4)
    y = y * random.random()
    print("drawn")
    y = y + np.random.rand()
    with torch.random.fork_rng():
        y = y + torch.randn(4)
    return y[torch.randperm(4)] + torch.rand(4, generator=generator).to(y)


for _ in range(3):
    drawn.append(f(torch.ones(4)))
    drawn.append(torch.bernoulli(torch.full((4,), 0.5)))
"""

WARNINGS = """import logging, sys, warnings
import torch

warnings.simplefilter("always")
logging.basicConfig(format="%(levelname)s %(funcName)s %(lineno)d %(message)s", level=logging.INFO)
log = logging.getLogger(__name__)


@torch.compile(backend="eager")
def f(x, n):
    y = x.sin() * n
    warnings.warn("from compiled code")
    log.info("the sum is %s", y.sum())
    sys.stderr.write("written\\n")
    return y.cos()


results = [f(torch.ones(3), n) for n in (2, 3.5, 4.5, 2)]
torch.ones(3, requires_grad=True).sum().grad
"""

RAISES = """import sys, traceback
import torch


class Mine(Exception):
    pass


def inner(x):
    print("before")
    if x.shape[0] == 3:
        raise Mine("three")
    return x.cos()


@torch.compile(backend="eager")
def f(x):
    return inner(x.sin())


@torch.compile(backend="eager")
def g(x):
    y = x.sin()
    torch._dynamo.graph_break()
    try:
        return f(y)
    except Mine as error:
        raise RuntimeError("wrapped") from error


@torch.compile(backend="eager", fullgraph=True)
def strict(x):
    print("never")
    return x


@torch.compile(backend=lambda module, inputs: 1 / 0)
def failing(x):
    return x.sin()


def stack(module, inputs):
    def run(*given):
        if given[0].shape[0] == 4:
            raise Mine("in a graph")
        return module.forward(*given)
    return run


@torch.compile(backend=stack)
def stacked(x):
    return x.sin()


for call, size in ((f, 3), (g, 3), (strict, 3), (failing, 3), (stacked, 2), (stacked, 4)):
    try:
        print(call(torch.ones(size)))
    except Exception as error:
        traceback.print_exc()
        print(type(error).__name__, str(error).count("\\n"), error.__cause__.__class__.__name__)
g(torch.ones(3))
"""

THREADS = """import threading
import torch

torch.manual_seed(0)
lock = threading.Lock()
results = {}


def work(number):
    def f(x):
        y = x.sin() * number
        if y.sum() > 0:
            y = y.cos()
        return y

    compiled = torch.compile(f, backend="eager")
    generator = torch.Generator().manual_seed(number)
    found = [compiled(torch.rand(size, generator=generator)) for size in (3, 4, 3)]
    with lock:
        results[number] = found


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
results = dict(sorted(results.items()))
print(threading.active_count())
"""

LOADER = """import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Items(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.rand(2) + index, random.random() + np.random.rand()


if __name__ == "__main__":
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    seen = []

    @torch.compile(backend="eager")
    def f(x, r):
        return x.sum(-1) + r

    seed = lambda number: np.random.seed(number)
    for x, r in DataLoader(Items(), batch_size=3, shuffle=True, num_workers=2, worker_init_fn=seed):
        seen.append(f(x, r))
        print(len(x))
"""

SUBPROCESS = """import multiprocessing, os, subprocess, sys

CODE = '''import sys, torch
f = torch.compile(lambda x: print("in a child") or x.sin(), backend="eager")
print(f(torch.ones(2)).tolist(), torch.initial_seed())
sys.exit(7)
'''


def work(number):
    import torch
    torch.manual_seed(number)
    print(torch.compile(lambda x: x.cos() * torch.rand(2), backend="eager")(torch.ones(2)).tolist(), flush=True)


if __name__ == "__main__":
    import torch

    CODE = CODE.replace("import sys, torch", "import sys, torch; torch.manual_seed(0)")
    torch.manual_seed(0)
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    print(done.stdout, done.stderr, done.returncode)
    process = multiprocessing.get_context("spawn").Process(target=work, args=(5,))
    process.start()
    process.join()
    sys.stdout.flush()
    if not os.fork():
        work(6)
        os._exit(0)
    print(os.wait()[1])
    sys.exit(done.returncode)
"""

LOOKS = """import collections, gc, inspect, logging, signal, sys, threading, warnings
import torch
import torch._dynamo
from torch._dynamo.utils import compile_times, counters, guard_failures


def depth():
    return len(inspect.stack()), [frame.function for frame in inspect.stack()[:3]]


@torch._dynamo.disable
def look():
    print(depth())


def backend(module, inputs):
    print(module.code, len(inputs), module.forward.__qualname__)

    def run(*given):
        print("runs")
        return module(*given)

    return run


@torch.compile(backend=backend)
def f(x, flag):
    look()
    for _ in range(2):
        x = x.sin()
    if x.sum() > 100:
        x = x.cos()
    return x if flag else x + 1


for flag in (True, False, True):
    f(torch.ones(3), flag)
print({name: dict(found) for name, found in counters.items()})
print(f.__name__, inspect.signature(f), len(torch._dynamo.utils.graph_break_reasons))
print(sorted(line.partition(",")[0] for line in compile_times("str").splitlines()))
settings = torch._dynamo.config.get_config_copy()
print(sorted((name, value) for name, value in settings.items() if type(value) in (bool, int, float)))
print(sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold())
print(threading.active_count())
print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)])
print(logging.getLogger().handlers, logging.getLogger("torch").handlers, len(warnings.filters))
print(torch.get_num_threads(), torch.is_grad_enabled(), torch.is_inference_mode_enabled())
print(torch._dynamo.explain(lambda x: x.sin() if x.sum() > 0 else x)(torch.ones(3)).graph_break_count)
"""

EXPORTS = """import traceback
import torch
from torch.export import draft_export, export


def branches(x):
    if x.sum() > 0:
        return x + 1
    return x


class Net(torch.nn.Module):
    def forward(self, x):
        return branches(x.sin())


x = torch.ones(3)
if FIRST:
    print(draft_export(Net(), (x,))._report)
for strict in (False, True):
    try:
        export(Net(), (x,), strict=strict)
    except RuntimeError as error:
        traceback.print_exc()
        print([frame.name for frame in traceback.extract_tb(error.__traceback__)])
drafted = draft_export(Net(), (x,))
print(drafted, drafted._report)
y = drafted.module()(x)
export(Net(), (x, x))
"""

PROGRAMS = {
    "training": (TRAINING, (), {}),
    "inductor": (INDUCTOR, (), {}),
    "random": (RANDOM, (), {}),
    "warnings": (WARNINGS, (), {}),
    "logs": (WARNINGS, (), {"TORCH_LOGS": "graph_breaks,recompiles,graph_code"}),
    "raises": (RAISES, (), {}),
    "raises verbosely": (RAISES, (), {"TORCHDYNAMO_VERBOSE": "1"}),
    "threads": (THREADS, (), {}),
    "loader": (LOADER, (), {}),
    "subprocess": (SUBPROCESS, (), {}),
    "looks": (LOOKS, (), {}),
    "example training": (EXAMPLES / "training.py", ("--backend", "eager"), {}),
    "example kv_cache": (EXAMPLES / "kv_cache.py", ("--backend", "eager", "--steps", "4"), {}),
    "compiled autograd": (BEHAVIOURS / "compiled_autograd.py", (), {}),
    "recompile limit": (BEHAVIOURS / "recompile_limit.py", (), {}),
    "backend fails silently": (BEHAVIOURS / "backend_fails_silently.py", (), {}),
    "exports": (EXPORTS.replace("FIRST", "False"), (), {}),
    "drafts": (EXPORTS.replace("FIRST", "True"), (), {}),
    "fullgraph raises": (BEHAVIOURS / "fullgraph_raises.py", (), {}),
}


def mostly_slow(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Parameters of a test that takes ten seconds each: all but some run nightly only."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]


def steady(text: bytes) -> str:
    """Without what differs from run to run: times, process ids, addresses, names that torch makes unique, and the
    blanks that it puts behind them."""
    shown = text.decode()
    shown = re.sub(r"\b([VIWE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+ ", r"\1 ", shown)
    shown = re.sub(r"0x[0-9a-f]{6,}|\b\d{10,13}\.\d+", "0x", shown)
    shown = re.sub(r" +# ", "  # ", shown)
    shown = re.sub(r"(compiled_fn_\d+)_[0-9a-f_]+", r"\1", shown)
    # The number or the random name of the file that torch has just opened.
    shown = re.sub(r"tlparse \S+", "tlparse N", shown)
    return re.sub(r"\b(\w+_dynamo_\w+|___?check_obj_id\([^)]*|___?check_type_id\([^)]*)\d{9,}", r"\1", shown)


def assert_same(plain: Done, explained: Done) -> None:
    assert steady(explained.out) == steady(plain.out)
    assert explained.status == plain.status
    own, rule, _ = steady(explained.err).partition("───")
    assert own == steady(plain.err)
    assert rule


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, "training", "raises"))
def test_a_program_does_what_it_does_alone(folder: Folder, name: str) -> None:
    text, arguments, env = PROGRAMS[name]
    source = text if isinstance(text, str) else text.read_text(encoding="utf-8")
    folder.write(
        "program.py", re.sub("(?m)^( *)import torch$", r"\1import torch; torch.manual_seed(1)", source, count=1)
    )
    folder.write("site/sitecustomize.py", SEAL)
    env = {**env, "PYTHONPATH": str(folder.path / "site"), "TORCHINDUCTOR_CACHE_DIR": str(folder.path / "cache")}
    plain = folder.python("program.py", *arguments, env=env)
    explained = folder.explain("program.py", *arguments, env=env)
    assert b"results " in plain.out
    assert_same(plain, explained)
    assert "/breakscan/" not in explained.report


SABOTAGE = """import os
from breakscan.recording import recording
from breakscan.recording.hooks.hook import Hooks

kind, _, name = os.environ["FAULT"].partition(":")
guarded, append = Hooks.guarded, recording.RecordingWriter._append
left = int(name) if kind == "full" else 0


def guarded_and_broken(self, hook, function):
    def fail(*args, **kwargs):
        raise RuntimeError("on purpose")

    installs = function.__name__ == "install"
    fails = installs if kind == "install" else hook.name == name and not installs
    return guarded(self, hook, fail if fails else function)


def append_until_full(self, record):
    global left
    left -= 1
    if left < 0:
        raise OSError(28, "No space left on device")
    append(self, record)


if kind in ("call", "install"):
    Hooks.guarded = guarded_and_broken
elif kind == "full":
    recording.RecordingWriter._append = append_until_full
"""

EVERYTHING = """import contextlib
import torch


@torch.compile(backend="eager")
def f(x, n):
    y = x.sin()
    torch._dynamo.graph_break()
    for _ in range(n):
        y = y + torch.ones(3)
        if y.sum() > 10:
            y = y / 2
    return y


@torch.compile(backend="eager")
def g(x, flag):
    return x.sin() if flag == "a" else x.cos()


@torch.compile(backend="eager")
def nothing(n):
    return n + 1


@torch.compile(backend=lambda module, inputs: 1 / 0)
def failing(x):
    return x.sin()


class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


with contextlib.suppress(RuntimeError):
    torch.export.export(Net(), (torch.ones(3),))
results = [f(torch.ones(3), 2), g(torch.ones(3), "a"), g(torch.ones(3), "b"), nothing(3)]
with contextlib.suppress(torch._dynamo.exc.BackendCompilerFailed):
    failing(torch.ones(3))
print("done", torch.rand(2))
"""
FAILING = "trace breaks recompiles frames graphs runs targets skips guards values exports".split()


def sabotaged(folder: Folder, fault: str) -> Done:
    """The program under breakscan with something broken, when it did what it does alone."""
    folder.write("program.py", EVERYTHING.replace("import torch\n", "import torch; torch.manual_seed(1)\n", 1))
    folder.write("site/sitecustomize.py", SEAL)
    env = {"PYTHONPATH": str(folder.path / "site"), "FAULT": fault}
    plain = folder.python("program.py", env=env)
    folder.write("site/sitecustomize.py", SEAL + SABOTAGE)
    explained = folder.explain("program.py", env=env)
    assert plain.status == 0
    assert_same(plain, explained)
    return Done(explained.status, explained.out, " ".join(explained.report.split()).encode())


@pytest.mark.parametrize("hook", mostly_slow(FAILING, "breaks"))
def test_a_hook_that_raises_is_named_and_never_reaches_the_program(folder: Folder, hook: str) -> None:
    done = sabotaged(folder, f"call:{hook}")
    if b"lacks what breakscan hooks into for " + hook.encode() in done.err:
        pytest.skip("this torch has no such hook")
    assert f"breakscan's hook for {hook} failed, so ".encode() in done.err
    assert b"(RuntimeError: on purpose)" in done.err


def test_hooks_that_cannot_be_installed_are_named_and_never_reach_the_program(folder: Folder) -> None:
    done = sabotaged(folder, "install:")
    for hook in FAILING:
        assert f"breakscan's hook for {hook} failed, so ".encode() in done.err


@pytest.mark.parametrize("records", mostly_slow([0, 1, 20], 1))
def test_a_full_disk_is_told_and_never_reaches_the_program(folder: Folder, records: int) -> None:
    done = sabotaged(folder, f"full:{records}")
    assert b"not all was recorded, so anything may be missing" in done.err
    assert b"(No space left on device)" in done.err


NESTED = """import torch


class Inner(torch.nn.Module):
    def forward(self, x):
        return x.sin()


@torch.compile(backend="eager")
def f(x):
    for _ in range(1):
        print("breaks")
        x = torch.compile(Inner(), backend="eager")(x)
    return x


f(torch.ones(3))
print({name: dict(found) for name, found in torch._dynamo.utils.counters.items()})
"""


def test_the_compiler_never_compiles_a_hook(folder: Folder) -> None:
    """In a function that runs eager, Dynamo compiles the functions that it calls."""
    folder.write("program.py", NESTED)
    plain = folder.python("program.py")
    done, report = folder.explain_json("program.py")
    assert done.out == plain.out
    assert all("recording/hooks" not in str(report[part]) for part in ("breaks", "frames", "compiles", "graphs"))
