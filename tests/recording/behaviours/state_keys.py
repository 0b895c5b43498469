"""A checkpoint with the names of a compiled model, of which the plain model takes none.

expect: [(p["kind"], p["reason"], p["severity"], p["site"]["line"]) for p in problems] == [("state-keys", "saved", "warning", line("saves")), ("state-keys", "loaded", "error", line("loads"))]
"""

import io

import torch
from torch import nn

net, file = torch.compile(nn.Linear(2, 2), backend="eager"), io.BytesIO()
net(torch.ones(1, 2))
torch.save({"model": net.state_dict(), "epoch": 1}, file)  # saves
file.seek(0)
state = torch.load(file)["model"]
nn.Linear(2, 2).load_state_dict(state, strict=False)  # loads
net.load_state_dict(state)
torch.save(net._orig_mod.state_dict(), io.BytesIO())
