"""Code that counts as compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.check.pipeline.check import check_paths
from breakscan.rulebook.config import Settings


@pytest.mark.parametrize(
    "root",
    [
        "@torch.compile\ndef step(x): return x.sum().item()  # ! BRK201",
        "@torch.compile(mode='max-autotune')\ndef step(x): return x.sum().item()  # ! BRK201",
        "from functools import partial\n@partial(torch.compile, dynamic=True)\n"
        "def step(x): return x.sum().item()  # ! BRK201",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(step)",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(dynamic=True)(step)",
        "def step(x): return x.sum().item()  # ! BRK201\nfast = torch.compile(model=step)",
        "from torch import compile as c\n@c\ndef step(x): return x.sum().item()  # ! BRK201",
    ],
)
def test_roots_in_all_their_spellings(marked, root: str) -> None:
    """A file that compiles something itself says what is compiled: its other modules are not assumed to be."""
    other = """
class Other(nn.Module):
    def forward(self, x):
        return x.sum().item()
"""
    marked(root + "\n" + other)


@pytest.mark.parametrize(
    "use", ["net = torch.compile(Net())", "net = Net().cuda()\nnet.compile()", "net = Net()\nfast = torch.compile(net)"]
)
def test_a_compiled_module_is_compiled_from_its_forward(marked, use: str) -> None:
    marked("class Net(nn.Module):\n    def forward(self, x):\n        return x.sum().item()  # ! BRK201\n" + use)


def test_finding_names_the_region_it_is_compiled_from(check) -> None:
    [finding] = check("""
        def helper(t):
            return t.sum().item()

        @torch.compile
        def step(x):
            return helper(x)
    """).findings
    assert finding.function == "helper"
    assert finding.region is not None
    assert (finding.region.line, finding.region.how) == (8, "@torch.compile")


TRANSFORMS = """
import torchvision.transforms.functional as TF
from torchvision import transforms as T


class Flip(T.RandomHorizontalFlip):
    def forward(self, image):
        if torch.rand(1) < self.p:
            return TF.hflip(image)
        return image


class Resize(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def sizes(self, image):
        return [self.size, int(torch.rand(1) * self.size)]

    def forward(self, image):
        return TF.resize(image, self.sizes(image))


class Smaller(Resize):
    def sizes(self, image):
        return [int(torch.rand(1) * 9)] * 2


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def forward(self, x):
        return self.layer(TF.resize(x, [9, 9])) / x.sum().item()  # ! BRK201


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(TF.resize(x, [9, 9])) / x.sum().item()  # ! BRK201
"""


def test_transforms_of_images_are_not_assumed_to_be_compiled(check, marked) -> None:
    marked(TRANSFORMS)
    assert {f.function for f in check(TRANSFORMS, regions="modules").findings} == {
        *("Flip.forward", "Resize.sizes", "Smaller.sizes", "Net.forward", "Wrapper.forward")
    }


def test_transforms_that_a_model_uses_are_compiled_with_it(check) -> None:
    model = """
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.flip = Flip()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(self.flip(x))
"""
    found = {f.function for f in check(TRANSFORMS + model).findings}
    assert "Flip.forward" in found
    assert "Smaller.sizes" not in found


AUGMENTATIONS = """
import random

import torch
from torch import nn


class Flip(nn.Module):
    def forward(self, x):
        return x.flip(-1) if random.random() < 0.5 else x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) if random.random() < 0.5 else x
"""


@pytest.mark.parametrize(
    ("name", "functions"), [("augment.py", {"Net.forward"}), ("layers.py", {"Flip.forward", "Net.forward"})]
)
def test_augmentations_are_not_assumed_to_be_compiled(name: str, functions: set[str], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(AUGMENTATIONS, encoding="utf-8")
    found = check_paths([path], Settings(root=tmp_path, target_torch="2.13")).findings
    assert {f.function for f in found} == functions


FITS = """
import torch
from torch import nn


class Temperature(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, batches):
        optimizer = torch.optim.LBFGS([self.temperature])
        for x, y in batches:
            loss = nn.functional.cross_entropy(self.model(x) / self.temperature, y)
            print(loss.item())


class Scaled(Temperature):
    def forward(self, x):
        print(x)
        return self.model(x) / self.temperature
"""


def test_a_forward_that_creates_an_optimizer_is_not_assumed_to_be_compiled(tmp_path: Path) -> None:
    path = tmp_path / "calibration.py"
    path.write_text(FITS, encoding="utf-8")
    found = check_paths([path], Settings(root=tmp_path, target_torch="2.13")).findings
    assert {f.function for f in found} == {"Scaled.forward"}
