"""A model with a break, trained by the Trainer of Hugging Face's transformers."""

import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 32), nn.Linear(32, 4)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.embedding(input_ids).mean(1)
        if hidden.abs().amax() > 2:
            hidden = hidden / 2
        logits = self.head(hidden)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(0)
rows = [{"input_ids": torch.randint(100, (16,)), "labels": torch.tensor(n % 4)} for n in range(256)]
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        folder,
        max_steps=12,
        per_device_train_batch_size=16,
        torch_compile=True,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(Classifier(), settings, train_dataset=rows).train()
