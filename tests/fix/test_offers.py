"""What ``fix`` would edit, asked for some places only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breakscan.fix.offer import Offer
from breakscan.fix.offers import best_offer
from breakscan.rulebook.config import load_settings

NET = """import torch
from torch import nn


class Clamps(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, images: torch.Tensor):
        x = torch.relu(self.conv(images))
        if x.abs().max() > 100:
            x = x.clamp(-100, 100)
        return x


class Prints(nn.Module):
    def forward(self, images: torch.Tensor):
        print(images)
        return images[images > 0].tolist()
"""
SAFE, UNSAFE, NONE = (12, "BRK101"), (19, "BRK401"), (20, "BRK303")


@pytest.mark.parametrize(
    ("places", "offer"),
    [
        ([NONE, UNSAFE, SAFE], Offer.SAFE),
        ([NONE, UNSAFE], Offer.UNSAFE),
        ([NONE], None),
        ([(12, "BRK401")], None),
        ([], None),
    ],
)
def test_the_best_edit_at_some_places(
    places: list[tuple[int, str]], offer: Offer | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET, encoding="utf-8")
    settings = replace(load_settings(tmp_path), target_torch="2.13")
    asked = [("net.py", line, rule) for line, rule in places]
    assert best_offer([tmp_path / "net.py"], settings, asked) == offer
    assert (tmp_path / "net.py").read_text(encoding="utf-8") == NET
