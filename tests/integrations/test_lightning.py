"""`LightningLearner`: each pull continues one `Trainer`."""

import logging

import pytest

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.lightning import QUIET, LightningLearner
from tests.helpers.libraries import is_exact, library, refuses, same_weights, two_classes

torch = library("torch")
lightning = library("lightning")

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
TRAIN, VALID = (
    torch.utils.data.TensorDataset(*map(torch.from_numpy, part)) for part in two_classes(120)
)
FULL = 20


class Net(lightning.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        layers = torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Dropout(0.3)
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))

    def training_step(self, batch, number):
        return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("val_loss", self.training_step(batch, number))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=steps)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def loaders():
    return (
        torch.utils.data.DataLoader(TRAIN, batch_size=20, shuffle=True),
        torch.utils.data.DataLoader(VALID, batch_size=40),
    )


SETTINGS = {"accelerator": "cpu"}


def averaging(**more):
    return lightning.pytorch.callbacks.EMAWeightAveraging(decay=0.9, **more)


def learner(width=8, seed=1, **more):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return LightningLearner(Net(width), *loaders(), **{"full_steps": FULL} | SETTINGS | more)


def learners():
    return {"narrow": lambda seed: learner(2, seed), "wide": lambda seed: learner(16, seed)}


def one_fit(*callbacks):
    """Return the losses of one long `fit` and the module after it."""
    torch.manual_seed(1)
    losses, module = [], Net()
    watch = lightning.pytorch.callbacks.LambdaCallback(
        on_validation_end=lambda trainer, _: losses.append(trainer.callback_metrics["val_loss"])
    )
    own = {"max_epochs": 4, "callbacks": [*callbacks, watch]}
    lightning.Trainer(**own, **QUIET, **SETTINGS).fit(module, *loaders())
    return losses, module


def test_many_pulls_are_one_long_fit_bit_for_bit():
    """The schedule among them: it is that of the full training in every pull."""
    (losses, _), one = one_fit(), learner(full_steps=4)
    assert [-one.pull(), -one.pull(), -one.pull(steps=2)] == [losses[0], losses[1], losses[3]]
    refuses(StopIteration, "", one.pull)
    assert one.averaged_model is None and set(one.last_scores) == {"model"}


def test_lightning_s_average_is_scored_and_does_not_change_the_training(tmp_path):
    shared = averaging()  # by learners, each of which has its own average
    one, other = (learner(full_steps=4, callbacks=shared) for _ in range(2))
    (plain, raw), (losses, average) = one_fit(), one_fit(averaging())
    assert one.averaged_model is None and one.evaluate() == learner().evaluate()
    scores = [-one.pull(), -other.pull(), -one.pull(), -one.pull(steps=2)]
    assert scores == [losses[0], losses[0], losses[1], losses[3]]
    assert same_weights(one.model, raw) and same_weights(one.averaged_model, average)
    last = {"model": -plain[3], "averaged_model": -losses[3]}
    assert one.last_scores == last and one.evaluate() == -losses[3]
    for place in ("first", "again"):  # the second right after a load
        (tmp_path / place).mkdir()
        one.save(tmp_path / place)
        one.load(tmp_path / place)
        assert same_weights(one.model, raw) and same_weights(one.averaged_model, average)


AVERAGES = [{}, {"update_starting_at_epoch": 1}, {"update_every_n_steps": 3}]


@pytest.mark.parametrize("average", [None, *AVERAGES], ids=str)
def test_a_resumed_learner_is_the_same_bit_for_bit(average):
    is_exact(lambda: learner(callbacks=None if average is None else averaging(**average)))


@pytest.mark.parametrize("hook", ["on_validation_end", "on_train_epoch_end"])
@pytest.mark.parametrize("pulls", [[4], [2], [1, 1]])
def test_a_callback_that_stops_ends_the_learner(hook, pulls):
    def stop(trainer, module):
        trainer.should_stop |= trainer.current_epoch == 1

    one = learner(callbacks=[lightning.pytorch.callbacks.LambdaCallback(**{hook: stop})])
    scores = [one.pull(steps=steps) for steps in pulls]
    assert scores[-1] == pytest.approx(one.evaluate()) and one.steps == 2
    refuses(StopIteration, "", one.pull)


@pytest.mark.parametrize("more", [{"val_check_interval": 0.5}, {"check_val_every_n_epoch": 2}])
def test_the_score_is_that_of_the_model_at_the_end_of_the_pull(more):
    one = learner(**more)
    assert one.pull() == pytest.approx(one.evaluate()) and one.pull() < 0
    is_exact(lambda: learner(**more))


def test_a_generator_of_the_loader_is_part_of_the_state():
    def build():
        torch.manual_seed(1)
        own = {"generator": torch.Generator().manual_seed(7), "shuffle": True}
        train = torch.utils.data.DataLoader(TRAIN, batch_size=20, **own)
        return LightningLearner(Net(), train, loaders()[1], full_steps=FULL, **SETTINGS)

    is_exact(build)


def test_it_can_be_saved_before_its_first_pull_and_a_data_module_brings_both_loaders(tmp_path):
    class Data(lightning.LightningDataModule):
        def train_dataloader(self):
            return loaders()[0]

        def val_dataloader(self):
            return loaders()[1]

    torch.manual_seed(1)
    first, again = LightningLearner(Net(), Data(), full_steps=FULL, **SETTINGS), learner()
    first.save(tmp_path)
    again.load(tmp_path)
    assert first.pull() == again.pull() == learner().pull()


def test_what_is_wrong_is_said_in_one_line():
    made = LightningLearner
    refuses(LearnerError, "has no evaluation set", made, Net(), loaders()[0], full_steps=3)
    refuses(LearnerError, "module must be a LightningModule", made, 3, *loaders(), full_steps=3)
    refuses(SettingError, "max_epochs follows from full_steps=20", learner, max_epochs=3)
    refuses(SettingError, "full_steps must be a whole number", learner, full_steps=None)
    tools = lightning.pytorch.callbacks
    for wrong in ([tools.StochasticWeightAveraging(0.01)], [averaging(), tools.WeightAveraging()]):
        refuses(SettingError, "would begin again at every pull", learner(callbacks=wrong).pull)
    stop = tools.EarlyStopping("val_loss")
    refuses(SettingError, "EarlyStopping is given, but it counts", learner, callbacks=stop)
    said = r"'val_auc' is not reported. Reported are: val_loss"
    refuses(LearnerError, said, learner(metric="val_auc").pull)
    for finder in (tools.LearningRateFinder(), tools.BatchSizeFinder()):
        said = "would search again at every pull: find the value before the race"
        refuses(SettingError, said, learner, callbacks=[finder])

        class Finds(Net):
            def configure_callbacks(self, finder=finder):
                return [finder]

        refuses(SettingError, said, made, Finds(), *loaders(), full_steps=3)


def test_callbacks_get_the_checkpoints_and_the_logger_that_they_need(tmp_path):
    tools = lightning.pytorch.callbacks

    def build(place):
        monitor, saves = tools.LearningRateMonitor(), tools.ModelCheckpoint(monitor="val_loss")
        more = {"callbacks": [saves, monitor], "default_root_dir": str(tmp_path / place)}
        return learner(**more), saves, monitor

    (one, saves, monitor), plain = build("one"), learner()
    assert [one.pull() for _ in range(3)] == [plain.pull() for _ in range(3)]
    assert saves.best_model_path.startswith(str(tmp_path / "one")) and monitor.lrs
    assert len(list((tmp_path / "one").rglob("*.ckpt"))) == 1
    is_exact(lambda: build("again")[0])


def test_modules_that_share_weights_are_found():
    shared = Net()
    one, other = (LightningLearner(shared, *loaders(), full_steps=9, **SETTINGS) for _ in range(2))
    one.pull(), other.pull()
    refuses(LearnerError, "trained by another learner", one.pull)
