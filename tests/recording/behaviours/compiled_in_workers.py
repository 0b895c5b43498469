"""Each worker of a DataLoader compiles for itself, and new workers do so in each epoch.

expect: [(p["kind"], p["functions"], p["count"], p["remedies"][0]["kind"]) for p in problems] == [("compiled-anew", ["Sequential"], 4, "region")] and script["processes"] == 4
"""

import torch
from torch.utils.data import DataLoader

net = torch.compile(torch.nn.Sequential(torch.nn.Flatten(0)), backend="eager")


def collate(items):
    return net(torch.stack(items))


if __name__ == "__main__":
    loader = DataLoader([torch.ones(2)] * 4, batch_size=1, num_workers=2, collate_fn=collate)
    for _ in range(2):
        list(loader)
