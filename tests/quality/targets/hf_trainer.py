"""An ordinary script with the transformers Trainer, nothing of it changed: `python hf_trainer.py OUT`."""

# ruff: noqa: ANN001, ANN204 - written as a user writes

import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

out = Path(sys.argv[1])


class Tokens(torch.utils.data.Dataset):
    """Sixty-four short sequences of tokens."""

    def __init__(self):
        """Draw them, the same in every run."""
        self.rows = torch.randint(0, 64, (64, 16), generator=torch.Generator().manual_seed(3))

    def __len__(self):
        """Count them."""
        return len(self.rows)

    def __getitem__(self, position):
        """Return one as input and label."""
        return {"input_ids": self.rows[position], "labels": self.rows[position]}


torch.manual_seed(0)
config = GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2)
arguments = TrainingArguments(
    output_dir=str(out),
    max_steps=24,
    save_steps=6,
    save_total_limit=2,
    per_device_train_batch_size=4,
    logging_steps=1,
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    seed=5,
)
trainer = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Tokens())
trainer.train(resume_from_checkpoint=get_last_checkpoint(str(out)))
trainer.save_model(str(out / "final"))
