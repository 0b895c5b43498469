"""TRL: ``SFTTrainer`` with PEFT's LoRA and ``torch_compile=True``, on texts of many lengths."""

import tempfile

from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **{f"w{n}": n + 4 for n in range(60)}}
core = Tokenizer(WordLevel(words, unk_token="<unk>"))
core.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
)
texts = [{"text": " ".join(f"w{(row * 7 + n) % 60}" for n in range(5 + row % 9))} for row in range(22)]
with tempfile.TemporaryDirectory() as folder:
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_train_epochs=1,
            torch_compile=True,
            report_to=[],
            use_cpu=True,
            bf16=False,
            logging_steps=2,
            save_strategy="no",
            gradient_checkpointing=False,
        ),
        train_dataset=Dataset.from_list(texts),
        processing_class=tokenizer,
        peft_config=LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
    )
    trainer.train()
