"""`HuggingFaceLearner` with adapters: PEFT writes other files than a whole model does."""

import os

import pytest
from libraries import library

from latebloomer import check_learner, full_training, race
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


def arguments(kind, rate, seed, **more):
    return kind(
        output_dir="unused", num_train_epochs=4, learning_rate=rate, use_cpu=True,
        seed=seed % 2**31, report_to="none", save_strategy="no", logging_strategy="no",
        per_device_train_batch_size=16, **more,
    )  # fmt: skip


def tiny():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.set_seed(0)
    config = transformers.GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=8)
    return transformers.GPT2LMHeadModel(config)


LORA = peft.LoraConfig(
    r=2, target_modules=["c_attn"], fan_in_fan_out=True, lora_dropout=0.1, task_type="CAUSAL_LM"
)


def lora(rate):
    @full_training(4)
    def build(seed):
        trainer = transformers.Trainer(
            peft.get_peft_model(tiny(), LORA),
            arguments(transformers.TrainingArguments, rate, seed),
            train_dataset=TRAIN, eval_dataset=VALID,
        )  # fmt: skip
        return HuggingFaceLearner(trainer, metric="loss")

    return build


def sft(rate):
    """The same, trained by TRL."""
    trl = library("trl", "integrations")
    datasets = library("datasets", "integrations")

    @full_training(4)
    def build(seed):
        rows = [
            datasets.Dataset.from_list([{"input_ids": row["input_ids"].tolist()} for row in part])
            for part in (TRAIN, VALID)
        ]
        words = {str(k): k for k in range(20)}
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=library("tokenizers").Tokenizer(
                library("tokenizers").models.WordLevel(words, unk_token="0")
            ),
            eos_token="19", pad_token="19",
        )  # fmt: skip
        trainer = trl.SFTTrainer(
            tiny(), arguments(trl.SFTConfig, rate, seed, max_length=8, bf16=False),
            train_dataset=rows[0], eval_dataset=rows[1], processing_class=tokenizer,
            peft_config=LORA,
        )  # fmt: skip
        return HuggingFaceLearner(trainer, metric="loss")

    return build


def adapters(model):
    return {name: part for name, part in model.named_parameters() if "lora_B" in name}


@pytest.mark.parametrize("kind", [lora, sft])
def test_a_restored_adapter_is_the_same_bit_for_bit(kind):
    check = check_learner(kind(3e-2), pulls=2)
    assert check.saves and check.exact, str(check)


def test_a_winner_that_was_restored_is_the_trained_adapter():
    learners = {"slow": lora(1e-3), "quick": lora(3e-2)}
    verdict = race(learners, trainings=1.5, journal=None, runner="isolated", progress=False)
    assert verdict.learner.evaluate() == pytest.approx(verdict.score, abs=1e-6)
    assert all(part.norm() > 0 for part in adapters(verdict.learner.model).values())


def test_a_load_that_leaves_the_adapter_out_is_found(monkeypatch):
    def build(seed):
        learner = lora(3e-2)(seed)
        learner._load_model = lambda folder: None
        return learner

    check = check_learner(build, pulls=1)
    assert not check.exact and "of parameters are not those that were saved" in str(check)
