"""`HuggingFaceLearner` with adapters: PEFT writes other files than a whole model does."""

import os

import pytest
from libraries import library

from latebloomer import full_training, race
from latebloomer.integrations.transformers import HuggingFaceLearner

os.environ["HF_HUB_OFFLINE"] = "1"
torch = library("torch")
transformers = library("transformers")
peft = library("peft", "integrations")


def sentences(rows, seed):
    """Sequences that count upwards from a random number, modulo 20."""
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, 20, (rows, 1), generator=generator)
    return [{"input_ids": ids, "labels": ids} for ids in (starts + torch.arange(8)) % 20]


TRAIN, VALID = sentences(64, 0), sentences(32, 1)


def lora(rate):
    @full_training(4)
    def build(seed):
        torch.set_num_threads(1)
        transformers.logging.set_verbosity_error()
        transformers.set_seed(0)
        config = transformers.GPT2Config(
            vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=8
        )
        whole = transformers.GPT2LMHeadModel(config)
        settings = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True)
        arguments = transformers.TrainingArguments(
            "unused", num_train_epochs=4, learning_rate=rate, use_cpu=True, seed=seed % 2**31,
            report_to="none", disable_tqdm=True, save_strategy="no", logging_strategy="no",
            per_device_train_batch_size=16,
        )  # fmt: skip
        model = peft.get_peft_model(whole, settings)
        trainer = transformers.Trainer(model, arguments, train_dataset=TRAIN, eval_dataset=VALID)
        return HuggingFaceLearner(trainer, metric="loss")

    return build


def loss_now(learner):
    return learner.trainer.evaluate()["eval_loss"]


def test_a_winner_that_was_restored_is_the_trained_adapter():
    verdict = race(
        {"slow": lora(1e-3), "quick": lora(3e-2)}, trainings=1.5, journal=None, runner="isolated",
        progress=False,
    )  # fmt: skip
    assert -loss_now(verdict.learner) == pytest.approx(verdict.score, abs=1e-6)
