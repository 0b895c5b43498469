"""accelerate: a training loop with ``Accelerator(dynamo_backend="inductor")``."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, dynamo_backend="inductor")
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
data = DataLoader(TensorDataset(torch.randn(22, 16), torch.randint(0, 2, (22,))), batch_size=4)
model, optimizer, data = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), data)
for _ in range(2):
    for x, y in data:
        with accelerator.autocast():
            loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
model.eval()
with torch.no_grad():
    print(model(torch.randn(5, 16)).shape)
