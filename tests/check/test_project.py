"""Compiled code is followed into other files."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from breakscan.check.pipeline.check_file import FileChecker
from breakscan.check.project import imports
from breakscan.model.findings import CheckResult
from breakscan.rulebook.config import Settings

SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
FILE = re.compile(r"^```python (\S+) ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
PROJECTS = dict(SECTION.findall(Path(__file__).with_name("projects.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", PROJECTS)
def test_findings_in_projects(project, tmp_path: Path, name: str) -> None:
    files = FILE.findall(PROJECTS[name])
    marked = {
        (path, number, rule)
        for path, _, text in files
        for number, line in enumerate(text.splitlines(), 1)
        for rule in re.findall(r"BRK\d+", line.partition("# ! ")[2])
    }
    settings = dict(word.split("=") for word in files[0][1].split())
    result = project({path: text for path, _, text in files}, **settings)
    assert {(f.site.path.removeprefix(f"{tmp_path}/"), f.site.line, f.rule) for f in result.findings} == marked


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
