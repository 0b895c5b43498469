"""transformers: ``Trainer`` with ``torch_compile=True``; the last batch is smaller, and there is an evaluation."""

import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
model = BertForSequenceClassification(
    BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
)
rows = [{"input_ids": torch.randint(0, 64, (16,)), "labels": torch.tensor(row % 2)} for row in range(22)]
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_train_epochs=1,
            torch_compile=True,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            eval_strategy="epoch",
        ),
        train_dataset=rows,
        eval_dataset=rows[:8],
    )
    trainer.train()
