"""The three example programs, and what explain says of them."""

from pathlib import Path
from typing import Any

import pytest
from programs import Folder

pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def explained(folder: Folder, name: str) -> tuple[Any, list[str]]:
    done, report = folder.explain_json(str(EXAMPLES / name), "--backend", "eager")
    assert done.status == 0, done.err.decode()
    return report, (EXAMPLES / name).read_text(encoding="utf-8").splitlines()


def told(report: Any, lines: list[str]) -> dict[str, tuple[str, str | None]]:
    """Verdict and rule of each break of the user's, by the code of its line."""
    return {
        lines[b["site"]["line"] - 1].strip(): (b["verdict"], b["rule"])
        for b in report["breaks"]
        if b["origin"] == "user"
    }


def eager(report: Any) -> set[str]:
    return {frame["function"] for frame in report["frames"] if frame["status"] == "eager"}


def test_vision(folder: Folder) -> None:
    report, lines = explained(folder, "vision.py")
    assert told(report, lines) == {
        "if x.abs().max() > 100:": ("eager", "BRK101"),
        "if torch.isnan(images).any():": ("splits", "BRK108"),
        'logger.debug("features: %s", tuple(features.shape))': ("splits", "BRK402"),
        "return boxes[keep], scores[keep]": ("splits", "BRK303"),
    }
    assert eager(report) == {"Backbone.forward"}
    # One smaller batch at the end recompiles everything.
    assert {r["cause"] for r in report["recompiles"]} == {0}
    assert (report["recompiles"][0]["old"], report["recompiles"][0]["new"]) == ("4", "2")


def test_kv_cache(folder: Folder) -> None:
    report, lines = explained(folder, "kv_cache.py")
    assert told(report, lines) == {
        "if not torch.isfinite(logits).all():": ("splits", "BRK108"),
        "return int(probabilities.argmax(-1).item())": ("splits", "BRK201"),
    }
    # The generator is never compiled; the decoder is compiled for each position until torch gives it up.
    assert eager(report) == {"generate", "Decoder.forward"}
    assert [frame["function"] for frame in report["frames"] if frame["over_limit"]] == ["Decoder.forward"]
    assert len(report["recompiles"]) == 7
    assert report["recompiles"][-1]["guard"] == "self.seen == 9"


def test_training(folder: Folder) -> None:
    report, lines = explained(folder, "training.py")
    assert told(report, lines) == {
        'print("first batch:", tuple(x.shape))': ("splits", "BRK401"),
        "started = time.perf_counter()": ("splits", "BRK404"),
        "if torch.isnan(loss):": ("splits", "BRK101"),
        "optimizer.zero_grad()": ("splits", "BRK615"),
        "loss.backward()": ("splits", "BRK601"),
        "optimizer.step()": ("splits", "BRK615"),
        "worst = errors.max().item()": ("eager", "BRK201"),
        "return loss.item(), time.perf_counter() - started": ("splits", "BRK404"),
    }
    assert eager(report) == {"evaluate"}
