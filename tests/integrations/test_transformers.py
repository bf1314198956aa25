"""`HuggingFaceLearner`: each pull goes on from the `Trainer`'s own checkpoint."""

import os

import pytest
from libraries import ends_as_if_never_killed, library

from latebloomer import check_learner
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.transformers import HuggingFaceLearner

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


def trainer(folder="unused", seed=1, epochs=4, width=16, **more):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.set_seed(seed)
    config = transformers.BertConfig(
        vocab_size=30, hidden_size=width, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16,
    )  # fmt: skip
    settings = {"num_train_epochs": epochs, "save_strategy": "no"} | more
    return transformers.Trainer(
        transformers.BertForSequenceClassification(config),
        transformers.TrainingArguments(
            folder, per_device_train_batch_size=16, learning_rate=1e-2, use_cpu=True, seed=seed,
            report_to="none", logging_strategy="no", **settings,
        ),
        train_dataset=TRAIN, eval_dataset=VALID, compute_metrics=accuracy,
    )  # fmt: skip


def learner(metric="loss", every=None, **more):
    return HuggingFaceLearner(trainer(**more), metric=metric, every=every)


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
        with pytest.raises(StopIteration):
            over.pull()


@pytest.mark.parametrize("every", [None, 3])
def test_a_resumed_learner_is_the_same_bit_for_bit(every):
    check = check_learner(lambda: learner(every=every), pulls=2)
    assert check.saves and check.exact, str(check)


def test_a_race_killed_and_resumed_ends_the_same(tmp_path):
    verdict = ends_as_if_never_killed(__file__, learners, tmp_path)
    assert verdict.learner.steps == verdict.pulls[verdict.name]


def test_what_is_loaded_has_its_weights_at_once_and_no_pickle(tmp_path):
    one, other = learner(seed=1), learner(seed=2)
    one.pull()
    one.save(tmp_path)
    assert not list(tmp_path.rglob("training_args.bin"))
    other.load(tmp_path)
    for mine, its in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_a_pull_writes_no_checkpoint_and_prints_nothing(tmp_path, capfd):
    mine, other = tmp_path / "mine", tmp_path / "other"
    one = learner(every=2, folder=str(mine))
    capfd.readouterr()
    one.pull()
    one.pull()
    one.save(tmp_path)
    assert capfd.readouterr() == ("", "")
    assert one.trainer.args.output_dir == str(mine) and not list(mine.glob("*"))
    saves = learner(every=2, folder=str(other), save_strategy="steps", save_steps=3)
    saves.pull(steps=3)
    assert {path.name for path in other.iterdir()} == {"checkpoint-3", "checkpoint-6"}


def test_the_trainer_s_own_metric_is_used(tmp_path):
    one = HuggingFaceLearner(trainer(metric_for_best_model="accuracy", greater_is_better=True))
    assert one.pull() == one.trainer.evaluate()["eval_accuracy"]


def test_a_callback_that_stops_ends_the_learner():
    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            control.should_training_stop = state.global_step == 7

    one = learner()
    one.trainer.add_callback(Stop())
    one.pull()
    with pytest.raises(StopIteration):
        one.pull()
    assert one.steps == 1


def test_what_is_wrong_is_said_in_one_line():
    with pytest.raises(
        LearnerError, match=r"trainer=3, but trainer must be a transformers\.Trainer"
    ):
        HuggingFaceLearner(3)
    blind = trainer()
    blind.eval_dataset = None
    with pytest.raises(LearnerError, match="HuggingFaceLearner has no evaluation set"):
        HuggingFaceLearner(blind)
    with pytest.raises(SettingError, match=r"The trainer counts max_steps. Say how many"):
        learner(max_steps=10)
    with pytest.raises(SettingError, match="every=0, but every must be at least 1"):
        learner(every=0)
    with pytest.raises(SettingError, match="load_best_model_at_end is set, but a pull"):
        best = trainer(eval_strategy="epoch", save_strategy="epoch")
        best.args.load_best_model_at_end = True
        HuggingFaceLearner(best)
    remade = trainer()
    remade.model_init = trainer
    with pytest.raises(LearnerError, match="The trainer has model_init"):
        HuggingFaceLearner(remade)
    with pytest.raises(LearnerError, match=r"'eval_auc' is not reported. Reported are: epoch, "):
        learner("auc").pull()
