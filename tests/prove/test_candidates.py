"""What is to be proved: the rewrites of code that runs, each by itself and all together."""

from dataclasses import replace
from pathlib import Path

import pytest

from breakscan.fix.planner import FROM_RECORDING, WantedRewrites
from breakscan.model.findings import Site
from breakscan.model.observations import FunctionSeen, Observations, TensorSeen, ValueSeen
from breakscan.prove.rewrites import ChangeError, Rewrites, diff_of, of_settings
from breakscan.prove.worker import ALL
from breakscan.rulebook.config import load_settings
from breakscan.source.regular_files import content_digest

TEXT = """\
import torch


@torch.compile
def f(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x + 1
    else:
        x = x + 2
    y = x * 3
    if y.mean() > 0:
        y = y * 2
    else:
        y = y * 5
    return y


@torch.compile
def g(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x + 1
    else:
        x = x + 2
    return x
"""
FIRST = "    x = torch.where(x.sum() > 0, x + 1, x + 2)\n"
SECOND = "    y = torch.where(y.mean() > 0, y * 2, y * 5)\n"


def written(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Rewrites:
    monkeypatch.chdir(folder)
    (folder / "net.py").write_text(text, encoding="utf-8")
    settings = load_settings(folder, target_torch="2.13", no_cache=True)
    return Rewrites((folder / "net.py",), settings, WantedRewrites())


def test_what_the_run_saw_of_values_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("@torch.compile\n", "").replace(": torch.Tensor) -> torch.Tensor", ")")
    plain = written(tmp_path, monkeypatch, text)
    path = plain.files[0]
    executed = {str(path): [5, 6, 9, 10, 11]}
    assert plain.plan(executed, []).alone == ()
    x = ValueSeen(("torch.Tensor",), tensor=TensorSeen(("float32",), (2,), None, ("cpu",), (False,), ()))
    seen = {content_digest(path.read_bytes()): {"f": FunctionSeen({"x": x}, 3, True)}}
    settings = replace(plain.settings, observations=Observations(seen, {}, ""))
    planned = replace(plain, settings=settings).plan(executed, [])
    assert [one.label for one in planned.alone] == [f"net.py:{line} where" for line in (5, 10)]
    assert all(FROM_RECORDING in one.differences for one in planned.alone)


@pytest.fixture
def rewrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewrites:
    return written(tmp_path, monkeypatch, TEXT)


FIRST_LABEL, SECOND_LABEL = (f"net.py:{line} where" for line in (6, 11))


def test_each_rewrite_by_itself_and_all_together(rewrites: Rewrites) -> None:
    path = str(rewrites.files[0])
    planned = rewrites.plan({path: [6, 7, 10, 11, 12, 15]}, [Site("net.py", 6, 8, 6, 19)])
    one, other = planned.alone
    assert (one.label, other.label) == (FIRST_LABEL, SECOND_LABEL)
    assert FIRST in one.texts[path][1]
    assert SECOND not in one.texts[path][1]
    assert SECOND in other.texts[path][1]
    assert FIRST not in other.texts[path][1]
    assert [len(one.targets), len(other.targets)] == [1, 0]
    whole = rewrites.together(planned.alone, ALL)
    assert whole is not None
    assert FIRST in whole.texts[path][1]
    assert SECOND in whole.texts[path][1]
    assert whole.members == (FIRST_LABEL, SECOND_LABEL)
    assert planned.unreached == ("net.py:20 where",)
    assert whole.texts[path][1].endswith(TEXT[TEXT.index("def g") :])
    assert diff_of(one, {path: "net.py"}).startswith("--- a/net.py\n+++ b/net.py\n@@ -3,10 +3,7 @@\n")


SKIPS = """\
import torch


@torch.compile
def g(x: torch.Tensor) -> torch.Tensor:
    if (x < 0).any():
        x = torch.where(x < 0, 0.0, x)
    return x * 2
"""


def test_the_rewrite_that_is_named_is_the_one_that_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrites = written(tmp_path, monkeypatch, SKIPS)
    path = str(rewrites.files[0])
    (one,) = rewrites.plan({path: range(1, 9)}, []).alone
    assert one.rewrite == "early-exit"
    other = rewrites.together([replace(one, rewrite="where")], ALL)
    assert other is not None
    assert "    x = torch.where((x < 0).any(), torch.where(x < 0, 0.0, x), x)\n" in other.texts[path][1]
    assert rewrites.together([replace(one, rewrite="masked-update")], ALL) is None


TWICE = """\
import torch


def classes(x: torch.Tensor) -> int:
    ids = torch.unique(x)
    return ids.size(0) + len(torch.unique(x + 1))


@torch.compile
def f(x: torch.Tensor) -> torch.Tensor:
    return x * classes(x)
"""


def test_rewrites_that_come_to_the_same_text_are_proved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrites = written(tmp_path, monkeypatch, TWICE)
    planned = rewrites.plan({str(rewrites.files[0]): range(1, 20)}, [])
    texts = [str(one.texts) for one in planned.alone]
    assert len(texts) == len(set(texts))
    assert "net.py:5+6 disable-function" in [one.label for one in planned.alone]


DEPENDENT = """\
import torch


@torch.compile
def f(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        if x.mean() > 1:
            x = x + 1
        else:
            x = x + 2
    else:
        x = x + 3
    return x
"""


def test_a_rewrite_that_needs_another_first_is_proved_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrites = written(tmp_path, monkeypatch, DEPENDENT)
    planned = rewrites.plan({str(rewrites.files[0]): range(1, 14)}, [])
    assert [one.label for one in planned.alone] == ["net.py:7 where"]
    assert [one.label for one in planned.dependent] == ["net.py:6 where"]


def test_settings_are_read() -> None:
    words = [
        "capture_scalar_outputs=True",
        "torch._inductor.config.max_autotune=True",
        "inductor.cpp.threads=1",
        "x=a b",
    ]
    assert of_settings(words).settings == {
        "dynamo.capture_scalar_outputs": True,
        "inductor.max_autotune": True,
        "inductor.cpp.threads": 1,
        "dynamo.x": "a b",
    }
    # The calls do not show what freezing assumes.
    assert of_settings(["torch._inductor.config.freezing=True"]).difference
    assert not of_settings(["inductor.freezing=False"]).difference
    for word in ("x", "=1", "a b=1"):
        with pytest.raises(ChangeError, match="is not of the form key=value"):
            of_settings([word])
