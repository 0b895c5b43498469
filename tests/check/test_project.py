"""Compiled code is followed into other files."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from breakscan.check.pipeline.check_file import FileChecker
from breakscan.check.project import imports
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import Settings

BREAKS = "def helper(x):\n    if x.sum() > 0:\n        return x\n    return -x\n"
HELPER = "import torch\n\n\n" + BREAKS
TRAIN = "import torch\nfrom ops import helper\n\n\n@torch.compile\ndef step(x: torch.Tensor):\n    return helper(x)\n"


def places(result: CheckResult, folder: Path) -> set[tuple[str, int]]:
    return {(Path(f.site.path).relative_to(folder).as_posix(), f.site.line) for f in result.findings}


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("from ops import helper", "helper(x)"),
        ("from ops import helper as h", "h(x)"),
        ("import ops", "ops.helper(x)"),
        ("import ops as o", "o.helper(x)"),
        ("from ops import *", "helper(x)"),
    ],
)
def test_a_function_of_another_file(project, tmp_path: Path, statement: str, call: str) -> None:
    train = f"import torch\n{statement}\n\n\n@torch.compile\ndef step(x: torch.Tensor):\n    return {call}\n"
    assert places(project({"train.py": train, "ops.py": HELPER}), tmp_path) == {("ops.py", 5)}


@pytest.mark.parametrize(
    ("statement", "more"),
    [
        ("from .ops import helper", {}),
        ("from pkg.ops import helper", {}),
        ("from . import ops\nhelper = ops.helper", {}),
        ("from .api import helper", {"pkg/api.py": "from .ops import helper\n"}),
        ("from .api import helper", {"pkg/api.py": "from .ops import *\n"}),
        ("from . import helper", {"pkg/__init__.py": "from .ops import helper\n"}),
        ("from .sub import helper", {"pkg/sub/__init__.py": "from ..ops import helper\n"}),
    ],
)
def test_packages_relative_imports_and_re_exports(
    project, tmp_path: Path, statement: str, more: dict[str, str]
) -> None:
    train = f"import torch\n{statement}\n\n\n@torch.compile\ndef step(x: torch.Tensor):\n    return helper(x)\n"
    files = {"pkg/__init__.py": "", "pkg/ops.py": HELPER, "pkg/train.py": train, **more}
    assert places(project(files), tmp_path) == {("pkg/ops.py", 5)}


@pytest.mark.parametrize("statement", ["from ...ops import helper", "from pkg.ops import helper", "import beside"])
def test_a_folder_in_a_package_without_a_file_of_its_own(project, tmp_path: Path, statement: str) -> None:
    call = "beside.helper(x)" if "beside" in statement else "helper(x)"
    train = f"import torch\n{statement}\n\n\n@torch.compile\ndef step(x: torch.Tensor):\n    return {call}\n"
    inner = "pkg/models/beside.py" if "beside" in statement else "pkg/ops.py"
    place = "pkg/models/train.py" if "beside" in statement else "pkg/models/ranking/train.py"
    files = {"pkg/__init__.py": "", "pkg/models/ranking/__init__.py": "", inner: HELPER, place: train}
    assert places(project(files), tmp_path) == {(inner, 5)}


MODEL = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def forward(self, x):
            if x.isnan().any():
                x = torch.zeros_like(x)
            return x
"""


@pytest.mark.parametrize(
    "body",
    [
        "model = torch.compile(Block())",
        "model = Block().to('cuda')\nmodel.compile()",
        "def run(model: Block):\n    return torch.compile(model)",
        "def make() -> Block:\n    ...\nmodel = torch.compile(make())",
        "def make():\n    block = Block()\n    return block\nmodel = torch.compile(make())",
        "def run(x):\n    torch.export.export(Block(), (x,))",
    ],
)
def test_a_module_that_another_file_compiles(project, tmp_path: Path, body: str) -> None:
    train = f"import torch\nfrom model import Block\n\n{body}\n"
    result = project({"train.py": train, "model.py": MODEL})
    assert places(result, tmp_path) == {("model.py", 7)}
    (finding,) = result.findings
    assert finding.region is not None
    assert (Path(finding.region.path).name, finding.region.entry) == ("train.py", "Block.forward")
    again = project({"train.py": train, "model.py": MODEL}, regions="auto").findings
    assert [one.region for one in again] == [finding.region]


def test_a_script_in_a_package_imports_what_lies_next_to_it(project, tmp_path: Path) -> None:
    train = "import torch\nfrom model import Block\n\nmodel = torch.compile(Block())\n"
    files = {"pkg/__init__.py": "", "pkg/model.py": MODEL, "pkg/train.py": train}
    assert not places(project(files), tmp_path)
    files["pkg/train.py"] += "if __name__ == '__main__':\n    model(torch.rand(2))\n"
    assert places(project(files), tmp_path) == {("pkg/model.py", 7)}


def test_submodules_bases_and_super_of_other_files(project, tmp_path: Path) -> None:
    files = {
        "base.py": """
            import torch
            from torch import nn

            class Base(nn.Module):
                def forward(self, x):
                    return self.scale(x)

                def scale(self, x):
                    return x * x.max().item()
        """,
        "parts.py": """
            import torch
            from base import Base

            class Part(Base):
                def forward(self, x):
                    y = super().forward(x)
                    print(y)
                    return y
        """,
        "train.py": """
            import torch
            from torch import nn
            from parts import Part

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.parts = nn.ModuleList([Part() for _ in range(3)])

                def forward(self, x):
                    for part in self.parts:
                        x = part(x)
                    return x

            net = torch.compile(Net())
        """,
    }
    assert places(project(files), tmp_path) == {("base.py", 10), ("parts.py", 8)}


def test_a_method_that_a_subclass_of_another_file_defines(project, tmp_path: Path) -> None:
    files = {
        "base.py": """
            from torch import nn

            class Base(nn.Module):
                def forward(self, x):
                    return self.apply_it(x + 1)
        """,
        "train.py": """
            import torch
            from base import Base

            class Net(Base):
                def apply_it(self, x):
                    return x if x.sum() > 0 else -x

            net = torch.compile(Net())
        """,
    }
    assert places(project(files), tmp_path) == {("train.py", 7)}


def test_one_of_several_classes_of_a_registry(project, tmp_path: Path) -> None:
    files = {
        "acts.py": """
            import torch
            from torch import nn

            class Soft(nn.Module):
                def forward(self, x):
                    return torch.sigmoid(x)

            class Hard(nn.Module):
                def forward(self, x):
                    return x if x.min() > 0 else x.relu()

            ACTS = {"soft": Soft, "hard": Hard}
        """,
        "train.py": """
            import torch
            from torch import nn
            from acts import ACTS

            class Net(nn.Module):
                def __init__(self, config):
                    super().__init__()
                    self.act = ACTS[config.act]()

                def forward(self, x):
                    return self.act(x)

            net = torch.compile(Net(config))
        """,
    }
    assert places(project(files), tmp_path) == {("acts.py", 11)}


def test_what_a_decorator_puts_around_a_function_is_traced(project, tmp_path: Path) -> None:
    files = {
        "deco.py": """
            import functools
            import time

            def timed(label):
                def decorate(function):
                    @functools.wraps(function)
                    def wrapper(*args, **kwargs):
                        start = time.perf_counter()
                        return function(*args, **kwargs)
                    return wrapper
                return decorate
        """,
        "train.py": """
            import torch
            from deco import timed

            @timed("inner")
            def inner(x):
                return x.sin()

            @torch.compile
            def step(x: torch.Tensor):
                return inner(x)
        """,
    }
    assert places(project(files), tmp_path) == {("deco.py", 9)}


def test_a_tensor_that_is_passed_to_another_file_where_it_is_annotated_as_a_number(project, tmp_path: Path) -> None:
    files = {
        "schedule.py": """
            class Schedule:
                def step(self, t: int, x):
                    return x if t > 0 else -x
        """,
        "train.py": """
            import torch
            from schedule import Schedule

            @torch.compile
            def sample(schedule: Schedule, times: torch.Tensor, x: torch.Tensor):
                for t in times:
                    x = schedule.step(t, x)
                return x
        """,
    }
    assert places(project(files), tmp_path) == {("schedule.py", 4)}


def test_what_a_small_helper_returns_depends_on_the_call(project, tmp_path: Path) -> None:
    files = {
        "common.py": "def default(value, other):\n    return other if value is None else value\n",
        "train.py": """
            import torch
            from common import default

            @torch.compile
            def step(x: torch.Tensor, mask=None, causal=None):
                mask = default(mask, torch.ones_like(x))
                causal = default(causal, True)
                if causal:
                    x = x * mask
                return x
        """,
    }
    assert places(project(files), tmp_path) == set()


def test_only_the_files_that_are_asked_for_are_reported(project, tmp_path: Path) -> None:
    files = {"train.py": TRAIN, "ops.py": HELPER}
    assert places(project(files, only=["train.py"]), tmp_path) == set()


def test_a_comment_in_the_other_file_silences_the_finding_there(project, tmp_path: Path) -> None:
    quiet = HELPER.replace("> 0:", "> 0:  # breakscan: ignore[BRK101] rare")
    result = project({"train.py": TRAIN, "also.py": TRAIN, "ops.py": quiet})
    assert (places(result, tmp_path), result.suppressed) == (set(), 1)


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "from b import f\n", "b.py": "from a import f\n"},
        {"a.py": "from b import *\n", "b.py": "from a import *\n"},
        {"a.py": "from b import B\nclass A(B): pass\n", "b.py": "from a import A\nclass B(A): pass\n"},
        {
            "a.py": "from b import g\ndef f(x):\n    return g(x)\n",
            "b.py": "from a import f\ndef g(x):\n    return f(x)\n",
        },
    ],
)
def test_rings_come_to_an_end(project, files: dict[str, str]) -> None:
    body = "\nimport torch\n@torch.compile\ndef step(x: torch.Tensor):\n    return f(x) + A().forward(x)\n"
    project({name: text + body for name, text in files.items()}, regions="all")


def test_a_changed_file_costs_itself_and_what_draws_on_it(project, tmp_path: Path) -> None:
    files = {"train.py": TRAIN, "ops.py": HELPER, "other.py": HELPER}
    first = project(files)
    entries = {entry: entry.stat().st_ino for entry in (tmp_path / ".breakscan_cache").iterdir() if not entry.suffix}
    assert project(files).findings == first.findings
    assert {e: e.stat().st_ino for e in entries} == entries
    mended = project({"ops.py": HELPER.replace("if x.sum() > 0:", "if x.shape[0] > 0:")}, only=list(files))
    assert places(mended, tmp_path) == set()
    assert sum(e.stat().st_ino != inode for e, inode in entries.items()) == 2


def test_a_file_that_appears_is_noticed(project, tmp_path: Path) -> None:
    assert places(project({"train.py": TRAIN}), tmp_path) == set()
    assert places(project({"train.py": TRAIN, "ops.py": HELPER}), tmp_path) == {("ops.py", 5)}


SETTING = "torch._dynamo.config.capture_scalar_outputs = True\n"
READS = "def read(x: torch.Tensor):\n    return x.sum().item()\n"


def test_a_setting_made_by_a_file_that_is_drawn_in_holds(project, tmp_path: Path) -> None:
    train = "import torch\nfrom ops import read\n\nstep = torch.compile(read)\n"
    assert places(project({"train.py": train, "ops.py": f"import torch\n{READS}"}), tmp_path) == {("ops.py", 3)}
    assert not places(project({"train.py": train, "ops.py": f"import torch\n{SETTING}{READS}"}), tmp_path)


def test_a_setting_of_one_program_does_not_reach_another(project, tmp_path: Path) -> None:
    """Results cached for a file that both import must not contain what the first of them set."""
    base = "import torch\nSCALE = 2\n"
    head = "import torch\nfrom base import SCALE\n"
    root = "@torch.compile\ndef step(x: torch.Tensor):\n    return x.sum().item() * SCALE\n"
    files = {"base.py": base, "a.py": head + SETTING + root, "b.py": head + root}
    assert places(project(files), tmp_path) == {("b.py", 5)}


def test_a_function_elsewhere_is_read_again_when_a_tensor_comes(project, tmp_path: Path) -> None:
    ops = """
        class Block(nn.Module):
            def forward(self, x):
                self.scale = self.pick(3)
                self.scale = self.pick(x)
                return x

            def pick(self, value):
                if value > 0:
                    return 1
                return 2
    """
    train = "import torch\nfrom ops import Block\n\nnet = torch.compile(Block())\nnet(torch.ones(3))\n"
    files = {"train.py": train, "ops.py": "import torch\nfrom torch import nn\n" + textwrap.dedent(ops)}
    assert ("ops.py", 11) in places(project(files), tmp_path)


SHARED = {
    "a function that a decorator makes at the top level": {
        "log.py": """
            def only(function):
                def wrapped(*args):
                    return function(*args)
                return wrapped

            def _warn(text):
                print(text)

            warn = only(_warn)
        """,
        "root.py": """
            import torch
            from log import warn

            @torch.compile
            def step(x: torch.Tensor):
                warn("step")
                return x + 1
        """,
    },
    "a function that a function returns": {
        "log.py": """
            def printer(prefix):
                def write(text):
                    print(prefix, text)
                return write

            def chosen(loud):
                return printer("loud")
        """,
        "root.py": """
            import torch
            from log import chosen

            @torch.compile
            def step(x: torch.Tensor):
                chosen(True)("step")
                return x + 1
        """,
    },
}


@pytest.mark.parametrize("files", SHARED.values(), ids=SHARED)
def test_a_file_finds_what_it_finds_alone_after_others_too(project, tmp_path: Path, files: dict[str, str]) -> None:
    again = {f"{name}.py": files["root.py"] for name in ("second", "third")}
    project({**files, **again})
    checker = FileChecker(Settings(root=tmp_path, target_torch="2.13", regions="roots"))
    for name in ("root.py", *again):
        found = checker.check_file(tmp_path / name).findings
        assert {(Path(f.site.path).name, f.rule) for f in found} == {("log.py", "BRK401")}, name


IMPORTED_TWICE = {
    "values.py": "def value(x):\n    return x + 1\n",
    "ops.py": "from values import value\n\n\ndef scaled(x):\n    return value(x) * 2\n",
    # It looks up `value` by itself before `ops` does.
    "a_root.py": """
        import torch
        from ops import scaled
        from values import value

        @torch.compile
        def step(x: torch.Tensor):
            return value(x) + scaled(x)
    """,
    "b_root.py": """
        import torch
        from ops import scaled

        @torch.compile
        def step(x: torch.Tensor):
            y = scaled(x)
            if y:
                return x
            return y
    """,
}


def test_a_cached_result_depends_on_files_that_an_earlier_file_imports_too(project, tmp_path: Path) -> None:
    cached = {"no_cache": False, "cache_dir": tmp_path / "cache"}
    assert places(project(IMPORTED_TWICE, **cached), tmp_path) == {("b_root.py", 8)}
    constant = "def value(x):\n    return 1\n"
    assert places(project({**IMPORTED_TWICE, "values.py": constant}, **cached), tmp_path) == set()


DECLARED_ELSEWHERE = {
    "kinds.py": "import torch\n\nKind = torch.Tensor\n",
    "ops.py": "from kinds import Kind\n\n\ndef pick(x: Kind):\n    if x:\n        return x\n    return 2\n",
    **{
        f"{name}_root.py": """
            import torch
            from ops import pick

            @torch.compile
            def step(x):
                return pick(unknown(x))
        """
        for name in "ab"
    },
}


def test_a_cached_result_depends_on_the_files_that_say_what_a_parameter_is(project, tmp_path: Path) -> None:
    cached = {"no_cache": False, "cache_dir": tmp_path / "cache"}
    assert ("ops.py", 5) in places(project(DECLARED_ELSEWHERE, **cached), tmp_path)
    numbers = {**DECLARED_ELSEWHERE, "kinds.py": "Kind = int\n", "a_root.py": "import torch\n"}
    assert places(project(numbers, **cached), tmp_path) == set()


def test_what_is_known_of_a_file_is_dropped_with_a_file_that_it_comes_from(
    project, tmp_path: Path, monkeypatch
) -> None:
    kinds = """
        from torch import nn

        class Kind(nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    return x
                return 2
    """
    root = "import torch\nfrom ops import pick\n\n\n@torch.compile\ndef step(x, net):\n    return pick(net, x)\n"
    ops = "from kinds import Kind\n\n\ndef pick(net: Kind, x):\n    return net(x)\n\n\ndef other(x):\n    return x\n"
    files = {"kinds.py": kinds, "ops.py": ops, "a.py": root, "c.py": root, "b.py": root.replace("pick", "other")}
    project(files)
    # When the third file is checked, the trees of the second and of `ops` are still there, but not that of `kinds`.
    monkeypatch.setattr(imports, "MOST_LINES_KEPT", 19)
    monkeypatch.setattr(imports, "FILES_BETWEEN_COUNTS", 0)
    checker = FileChecker(Settings(root=tmp_path, target_torch="2.13", regions="roots"))
    found = [checker.check_file(tmp_path / name).findings for name in ("a.py", "b.py", "c.py")]
    assert [[(Path(f.site.path).name, f.site.line) for f in of_one] for of_one in found] == [
        [("kinds.py", 6)],
        [],
        [("kinds.py", 6)],
    ]


def test_what_was_not_found_for_a_file_that_drew_in_too_many_is_looked_for_again(
    project, tmp_path: Path, monkeypatch
) -> None:
    # The first draws in itself, `other` and `ops`: there is no room for `kinds`.
    monkeypatch.setattr(imports, "MOST_FILES_A_FILE", 3)
    files = {**DECLARED_ELSEWHERE, "other.py": "X = 1\n"}
    files["a_root.py"] = "from other import X\n" + textwrap.dedent(files["a_root.py"]).replace("unknown(x)", "X")
    project(files)
    checker = FileChecker(Settings(root=tmp_path, target_torch="2.13", regions="roots"))
    assert checker.check_file(tmp_path / "a_root.py").findings == []
    found = checker.check_file(tmp_path / "b_root.py").findings
    assert [(Path(f.site.path).name, f.site.line) for f in found] == [("ops.py", 5)]


def test_modules_of_one_class_that_hold_different_modules(project, tmp_path: Path) -> None:
    model = """
        import torch
        from torch import nn

        class Quiet(nn.Module):
            def forward(self, x):
                return x + 1

        class Loud(nn.Module):
            def forward(self, x):
                print(x)
                return x

        class Model(nn.Module):
            def __init__(self, quiet):
                super().__init__()
                self.net = nn.Sequential(Quiet()) if quiet else nn.Sequential(Loud())

            def forward(self, x):
                return self.net(x)

        model = torch.compile(Model(False))
    """
    assert places(project({"model.py": model}), tmp_path) == {("model.py", 11)}


def test_modules_that_a_builder_passes_to_a_constructor(project) -> None:
    parts = """
        from torch import Tensor, nn

        class Pick(nn.Module):
            def forward(self, x: Tensor, mask: Tensor):
                return x[mask]
    """
    model = """
        import parts
        import torch

        class Net(torch.nn.Module):
            def __init__(self, pick: torch.nn.Module):
                super().__init__()
                self.pick = pick

            def forward(self, x):
                return self.pick(x, x > 0)

        def build():
            pick = parts.Pick()
            return Net(pick=pick)

        net = torch.compile(build())
    """
    found = project({"parts.py": parts, "model.py": model}, regions="auto").findings
    assert [(Path(one.site.path).name, one.rule) for one in found] == [("parts.py", "BRK303")]
