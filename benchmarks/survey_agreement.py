"""Whether a survey of transformers agrees, model by model, with the published sweep of PyTorch's people.

    python benchmarks/survey_agreement.py STORE GOLDEN_SET

STORE is of ``survey run`` with ``breakscan.survey.transformers_models``, made with the versions that the sweep names;
GOLDEN_SET is ``corpus/golden_set.json`` of https://github.com/penguinwu/oss-model-graph-break-corpus.  Needs
transformers.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from breakscan.survey.store import Store
from breakscan.survey.unit_row import row_of

PUBLISHED = {"full_graph": "whole", "graph_break": "breaks"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("golden_set", type=Path)
    options = parser.parse_args()
    published = {
        (model["name"], mode): PUBLISHED[model[mode]["status"]]
        for model in json.loads(options.golden_set.read_text())["models"]
        for mode in ("eval", "train")
        if model.get(mode, {}).get("status") in PUBLISHED
    }
    pairs: dict[str | None, Counter[tuple[str, str]]] = {"eval": Counter(), "train": Counter()}
    with Store(options.store, must_exist=True) as store:
        for one in store.surveyed(store.latest()):
            row, mode = row_of(one), one.unit.mode
            names = MODEL_MAPPING_NAMES.get(one.unit.argument or "", "")
            theirs = published.get((names if isinstance(names, str) else names[0], mode or ""))
            if theirs is None or row.breaks is None:
                continue
            ours = "whole" if row.is_whole else "breaks"
            pairs[mode][ours, theirs] += 1
            if ours != theirs:
                print(f"{one.unit.name} ({mode}): {ours} here, {theirs} there")
    for mode, counts in pairs.items():
        total, same = sum(counts.values()), sum(number for (ours, theirs), number in counts.items() if ours == theirs)
        broken = [sum(number for pair, number in counts.items() if pair[side] == "breaks") for side in (0, 1)]
        print(f"{mode}: {same} of {total} alike; {broken[0]} break here, {broken[1]} there")


if __name__ == "__main__":
    main()
