"""Each worker of a DataLoader compiles for itself, and new workers do so in each epoch.

expect: [(p["kind"], p["functions"], p["count"], p["remedies"][0]["kind"]) for p in problems] == [("compiled-anew", ["collate"], 4, "region")] and script["processes"] == 4
"""

import torch
from torch.utils.data import DataLoader


@torch.compile(backend="eager")
def collate(items):
    return torch.stack(items) * 2


if __name__ == "__main__":
    loader = DataLoader([torch.ones(2)] * 4, batch_size=1, num_workers=2, collate_fn=collate)
    for _ in range(2):
        list(loader)
