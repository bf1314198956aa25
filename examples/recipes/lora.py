"""Fine-tuning with adapters: PEFT's LoRA in a Trainer of Transformers; TRL's trainers work alike.

A tiny random model takes the place of a real one. A checkpoint holds the adapter alone, and a
restored learner is the same bit for bit.
"""

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from latebloomer import full_training, race
from latebloomer.integrations.transformers import HuggingFaceLearner

EPOCHS = 6
STARTS = torch.randint(0, 20, (96, 1), generator=torch.Generator().manual_seed(0))
ROWS = [{"input_ids": ids, "labels": ids} for ids in (STARTS + torch.arange(8)) % 20]


def lora(rank, rate):
    @full_training(EPOCHS)
    def build(seed):
        set_seed(seed % 2**31)
        config = GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=8)
        settings = LoraConfig(r=rank, target_modules=["c_attn"], fan_in_fan_out=True)
        model = get_peft_model(GPT2LMHeadModel(config), settings)
        arguments = TrainingArguments(
            "out", num_train_epochs=EPOCHS, learning_rate=rate, report_to=[], save_strategy="no",
            use_cpu=True,
        )  # fmt: skip
        trainer = Trainer(model, arguments, train_dataset=ROWS[:64], eval_dataset=ROWS[64:])
        return HuggingFaceLearner(trainer, metric="loss")

    return build


LEARNERS = {"rank 2": lora(2, 1e-2), "rank 8": lora(8, 1e-2), "slow": lora(8, 1e-4)}

if __name__ == "__main__":
    print(race(LEARNERS, trainings=1.5))
