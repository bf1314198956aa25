"""`HuggingFaceLearner`: each pull continues one training of the `Trainer`."""

import os
from functools import partial

import pytest

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.transformers import HuggingFaceLearner
from tests.helpers.libraries import is_exact, library, refuses, same_weights

os.environ["HF_HUB_OFFLINE"] = "1"
torch = library("torch")
transformers = library("transformers")


def words(rows, seed):
    """Sentences of eight words; the class is which of the first two is greater."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 30, (rows, 8), generator=generator)
    labels = (ids[:, 0] > ids[:, 1]).long()
    return [{"input_ids": x, "labels": y} for x, y in zip(ids, labels, strict=True)]


TRAIN, VALID = words(80, 0), words(40, 1)


def accuracy(said):
    return {"accuracy": float((said.predictions.argmax(-1) == said.label_ids).mean())}


def trainer(folder="unused", seed=1, epochs=4, width=16, lora=False, **more):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.set_seed(seed)
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=width, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    if lora:
        peft = library("peft")
        own = {"r": 2, "target_modules": ["query"], "lora_dropout": 0.1, "task_type": "SEQ_CLS"}
        model = peft.get_peft_model(model, peft.LoraConfig(**own))
    settings = {"num_train_epochs": epochs, "save_strategy": "no", "learning_rate": 1e-2} | more
    arguments = transformers.TrainingArguments(
        folder, per_device_train_batch_size=16, use_cpu=True, seed=seed, report_to="none",
        logging_strategy="no", **settings,
    )  # fmt: skip
    return transformers.Trainer(
        model, arguments, train_dataset=TRAIN, eval_dataset=VALID, compute_metrics=accuracy
    )


def learner(metric="loss", every=None, ema=None, **more):
    return HuggingFaceLearner(trainer(**more), metric=metric, every=every, ema=ema)


def learners():
    return {
        "narrow": lambda seed: learner(width=4, seed=seed, epochs=20),
        "wide": lambda seed: learner(every=3, seed=seed, epochs=20),
    }


def test_many_pulls_are_one_long_training_bit_for_bit(tmp_path):
    """The schedule among them: it is that of the full training in every pull."""
    whole = trainer(tmp_path, epochs=3)
    whole.train()
    one = learner(epochs=3)
    assert one.full_steps == 3
    one.pull()
    assert one.pull(steps=2) == -whole.evaluate()["eval_loss"]
    by_steps = learner(every=4, epochs=3)
    assert by_steps.full_steps == 4  # 15 optimizer steps: three epochs of five batches
    scores = [by_steps.pull() for _ in range(4)]
    assert scores[-1] == -whole.evaluate()["eval_loss"]
    for over in (one, by_steps):
        refuses(StopIteration, "", over.pull)


def test_a_pull_writes_no_checkpoint_and_prints_nothing(tmp_path, capfd):
    mine, other = tmp_path / "mine", tmp_path / "other"
    one = learner(every=2, folder=str(mine))
    capfd.readouterr()
    one.pull(), one.pull()
    one.save(tmp_path)
    assert not list(tmp_path.rglob("training_args.bin"))  # a pickle
    assert capfd.readouterr() == ("", "")
    assert one.trainer.args.output_dir == str(mine) and not list(mine.glob("*"))
    saves = learner(every=2, folder=str(other), save_strategy="steps", save_steps=3)
    saves.pull(steps=3)
    assert {path.name for path in other.iterdir()} == {"checkpoint-3", "checkpoint-6"}


def stopping(hook, at):
    """A callback that ends a training at a step."""

    def stop(self, args, state, control, **more):
        control.should_training_stop |= state.global_step == at

    return type("Stop", (transformers.TrainerCallback,), {hook: stop})()


@pytest.mark.parametrize(
    ("hook", "at", "every", "steps"),
    [("on_step_end", 7, None, 2), ("on_step_end", 7, 1, 7), ("on_epoch_end", 10, None, 2)],
)
def test_the_trainer_s_own_metric_is_used_and_a_callback_that_stops_ends_it(
    hook, at, every, steps
):
    own = {"metric_for_best_model": "accuracy", "greater_is_better": True}
    made = trainer(**own)
    made.add_callback(stopping(hook, at))
    one = HuggingFaceLearner(made, every=every)
    for _ in range(steps):
        assert one.pull() == one.trainer.evaluate()["eval_accuracy"]
    assert one.trainer.state.global_step == at
    refuses(StopIteration, "", one.pull)


def test_a_pause_within_an_epoch_is_not_its_end(tmp_path):
    saves = learner(every=3, folder=str(tmp_path), save_strategy="epoch")
    saves.pull(), saves.pull()
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-5"}
    plateau = {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "epoch"}
    for own in (plateau, {"eval_strategy": "steps", "eval_steps": 2}):
        one, other = learner(every=1, **own), learner(every=10, **own)
        assert [one.pull() for _ in range(10)][-1] == other.pull()


def changed(part, name, value):
    found = trainer()
    setattr(getattr(found, part, found), name, value)
    return HuggingFaceLearner(found)


def test_what_is_wrong_is_said_in_one_line():
    refuses(LearnerError, r"trainer must be a Trainer", HuggingFaceLearner, 3)
    refuses(LearnerError, "has no evaluation set", changed, "", "eval_dataset", None)
    best = "load_best_model_at_end"
    refuses(SettingError, f"remove {best}", changed, "args", best, True)
    stop = [transformers.EarlyStoppingCallback()]
    refuses(
        SettingError,
        "EarlyStoppingCallback is given, but it",
        changed,
        "callback_handler",
        "callbacks",
        stop,
    )
    refuses(SettingError, r"The trainer counts max_steps. Say how many", learner, max_steps=10)
    refuses(SettingError, "every=0, but every must be at least 1", learner, every=0)
    refuses(SettingError, "ema=2, but ema must be in", learner, ema=2)
    said = r"'eval_auc' is not reported. Reported are: epoch, "
    refuses(LearnerError, said, learner("auc").pull)


def sft(seed):
    """A tiny language model with LoRA, trained by TRL to count upwards from a random number."""
    trl, peft, datasets, tokenizers = (
        library(name) for name in ("trl", "peft", "datasets", "tokenizers")
    )
    torch.set_num_threads(1)
    transformers.set_seed(0)
    size = {"vocab_size": 20, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 8}
    lora = peft.LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, lora_dropout=0.1)
    rows = (torch.arange(96)[:, None] * 7 + torch.arange(8)) % 20
    data = datasets.Dataset.from_list([{"input_ids": row.tolist()} for row in rows])
    words = tokenizers.models.WordLevel({str(k): k for k in range(20)}, unk_token="0")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(words), eos_token="19", pad_token="19"
    )
    arguments = trl.SFTConfig(
        "unused", num_train_epochs=4, learning_rate=3e-2, use_cpu=True, seed=seed % 2**31,
        report_to="none", save_strategy="no", logging_strategy="no", max_length=8, bf16=False,
        per_device_train_batch_size=16,
    )  # fmt: skip
    made = trl.SFTTrainer(
        transformers.GPT2LMHeadModel(transformers.GPT2Config(**size)), arguments,
        train_dataset=data.select(range(64)), eval_dataset=data.select(range(64, 96)),
        processing_class=tokenizer, peft_config=lora,
    )  # fmt: skip
    return HuggingFaceLearner(made, metric="loss")


def adapted(seed):
    return learner(lora=True, seed=seed % 2**31)


@pytest.mark.parametrize("lora", [False, True])
def test_the_score_is_that_of_an_average_that_does_not_change_the_training(lora):
    more = {"lora": lora, "epochs": 3}
    one, plain, by_step = learner(ema=0.3, **more), learner(**more), learner(every=1, **more)
    decay, expected = 1 - 1 / (0.3 * 15), {}  # three epochs of five optimizer steps
    for _ in range(10):
        by_step.pull()
        for name, part in by_step.model.named_parameters():
            before = expected.get(name, part.detach())
            expected[name] = decay * before + (1 - decay) * part.detach()
    scores = [one.pull(), one.pull()]
    assert plain.pull(steps=2) != scores[-1] and same_weights(one.model, plain.model)
    for name, part in one.averaged_model.named_parameters():
        assert torch.allclose(part, expected[name], atol=1e-6), name
    assert one.last_scores == {"model": plain.evaluate(), "averaged_model": scores[-1]}
    one.trainer.model.load_state_dict(one.averaged_model.state_dict())
    assert -one.trainer.evaluate()["eval_loss"] == scores[-1]


def averaged(seed):
    return learner(ema=0.2, every=3, lora=True, seed=seed % 2**31)


def sharded():
    """A learner whose checkpoints have several files of weights, as those of large models have."""
    one = learner()
    one.model.save_pretrained = partial(one.model.save_pretrained, max_shard_size="2KB")
    return one


def test_the_weights_of_a_large_model_are_several_files(tmp_path):
    one = sharded()
    one.pull()
    one.save(tmp_path)
    assert len(list(tmp_path.glob("model/model-*.safetensors"))) > 1


BUILDERS = [learner, lambda: learner(every=3), sharded, adapted, averaged, sft]


@pytest.mark.parametrize("build", BUILDERS)
def test_a_resumed_learner_is_the_same_bit_for_bit(build):
    is_exact(build)


def test_a_winner_that_was_restored_is_the_trained_adapter():
    learners = {"one": lambda: adapted(1), "other": lambda: adapted(2)}
    verdict = race(learners, 6, journal=None, runner="isolated", progress=False)
    assert verdict.learner.evaluate() == pytest.approx(verdict.score, abs=1e-6)
    parameters = verdict.learner.model.named_parameters()
    assert all(part.norm() > 0 for name, part in parameters if "lora_B" in name)


def test_a_load_that_leaves_the_adapter_out_is_found():
    def build(seed):
        one = adapted(seed)
        one._load_model = lambda folder: None
        return one

    assert "of parameters are not those that were saved" in str(check_learner(build, pulls=1))


def test_the_trainer_s_own_evaluation_at_the_end_of_a_pull_is_the_score():
    counts, scores = {}, {}
    for strategy in ("epoch", "no"):
        made = trainer(eval_strategy=strategy)
        counts[strategy], plain = 0, made.evaluate

        def counted(*given, strategy=strategy, plain=plain, **more):
            counts[strategy] += 1
            return plain(*given, **more)

        made.evaluate = counted
        one = HuggingFaceLearner(made, metric="accuracy")
        scores[strategy] = [one.pull() for _ in range(3)]
    assert counts == {"epoch": 3, "no": 3} and scores["epoch"] == scores["no"]


def test_a_model_that_the_trainer_has_made_is_trained_as_the_trainer_would():
    def made():
        given = trainer()
        build = partial(transformers.BertForSequenceClassification, given.model.config)
        return transformers.Trainer(
            None, given.args, train_dataset=TRAIN, eval_dataset=VALID, model_init=build
        )

    whole = made()
    whole.train()
    one = HuggingFaceLearner(made())
    assert [one.pull() for _ in range(4)][-1] == -whole.evaluate()["eval_loss"]


def test_trainers_that_share_a_model_are_found():
    first, second = trainer(), trainer()
    second.model = first.model
    one, other = HuggingFaceLearner(first), HuggingFaceLearner(second)
    one.pull(), other.pull()
    refuses(LearnerError, "trained by another learner", one.pull)
