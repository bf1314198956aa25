"""`LightningLearner`: each pull goes on from Lightning's own checkpoint."""

import logging

import pytest
from libraries import is_exact, library, refuses, two_classes

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.lightning import QUIET, LightningLearner

torch = library("torch")
lightning = library("lightning")

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
TRAIN, VALID = (
    torch.utils.data.TensorDataset(*map(torch.from_numpy, part)) for part in two_classes(120)
)
FULL = 20


class Net(lightning.LightningModule):
    average = None

    def __init__(self, width=8, average=False):
        super().__init__()
        layers = torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Dropout(0.3)
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))
        if average:  # as docs/limits.md describes it
            own = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
            self.average = torch.optim.swa_utils.AveragedModel(self.layers, multi_avg_fn=own)

    def on_train_batch_end(self, *_):
        if self.average is not None:
            self.average.update_parameters(self.layers)

    def loss(self, batch, layers):
        return torch.nn.functional.cross_entropy(layers(batch[0]), batch[1])

    def training_step(self, batch, number):
        return self.loss(batch, self.layers)

    def validation_step(self, batch, number):
        self.log("val_loss", self.loss(batch, self.average or self.layers))

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


def learner(width=8, seed=1, average=False, **more):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return LightningLearner(
        Net(width, average), *loaders(), **{"full_steps": FULL} | SETTINGS | more
    )


def learners():
    return {"narrow": lambda seed: learner(2, seed), "wide": lambda seed: learner(16, seed)}


def test_many_pulls_are_one_long_fit_bit_for_bit():
    """The schedule among them: it is that of the full training in every pull."""
    losses, one = [], learner(full_steps=4)
    torch.manual_seed(1)
    watch = lightning.pytorch.callbacks.LambdaCallback(
        on_validation_end=lambda trainer, _: losses.append(trainer.callback_metrics["val_loss"])
    )
    trainer = lightning.Trainer(max_epochs=4, callbacks=[watch], **QUIET, **SETTINGS)
    trainer.fit(Net(), *loaders())
    assert [-one.pull(), -one.pull(), -one.pull(steps=2)] == [losses[0], losses[1], losses[3]]
    refuses(StopIteration, "", one.pull)


@pytest.mark.parametrize("average", [False, True])
def test_a_resumed_learner_is_the_same_bit_for_bit(average):
    is_exact(lambda: learner(average=average))


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
    average = lightning.pytorch.callbacks.WeightAveraging()
    refuses(SettingError, "WeightAveraging replaces the", learner, callbacks=[average])
    said = r"'val_auc' is not reported. Reported are: val_loss"
    refuses(LearnerError, said, learner(metric="val_auc").pull)
