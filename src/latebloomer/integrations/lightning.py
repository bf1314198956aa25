"""Lightning: a learner that continues one `Trainer` and uses Lightning's own checkpoints."""

import inspect
import shutil
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from latebloomer.errors import SettingError
from latebloomer.integrations import library_learner as base

__all__ = ["LightningLearner"]

FILE = "lightning.ckpt"
OWN = ("max_epochs", "min_epochs", "max_steps", "min_steps", "max_time")  # follow from full_steps
QUIET = {  # defaults for the trainer
    "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False, "num_sanity_val_steps": 0,
}  # fmt: skip
# They try out settings at the start of each `fit`.
FINDERS = "LearningRateFinder", "BatchSizeFinder"
LOGGING = "LearningRateMonitor", "DeviceStatsMonitor"  # callbacks that need a logger


class LightningLearner(base.AveragingLearner):
    """Wrap a `LightningModule` as a learner. One step is an epoch.

    The score is a metric that the module logs, negated for a loss, so that higher is better: race
    with `maximize=True`. The trainer is built with `max_epochs=full_steps`: a learning-rate
    schedule made from `trainer.estimated_stepping_batches` or `max_epochs` has the length of the
    full training, even if the race stops earlier. One long `fit`, many pulls and a restored
    learner give the same model bit for bit if PyTorch is deterministic. Set the seed in the
    function that builds the module.

    If Lightning averages the weights (`callbacks=[EMAWeightAveraging(decay=...)]`, or another
    `WeightAveraging`), the score is the score of the average. The average shows early how good the
    module will be after a learning rate that decays to zero within the full training. Set `decay`
    to 1 - 1 / (0.01 * optimizer steps of a full training). `model` has the trained weights;
    `averaged_model` is a copy with the average.

    Parameters
    ----------
    module : Any
        A `LightningModule`.
    train : Any
        Loader to train on, or a `LightningDataModule` for both loaders.
    valid : Any
        Loader to score on; not needed with a `LightningDataModule`.
    full_steps : int
        Number of epochs in a full training.
    metric : str
        Name of a metric that the module logs.
    maximize : bool | None
        Whether higher metric values are better. Default: derived from the metric's name.
    weights_only : bool
        Whether checkpoints are loaded in a way that cannot run code from the file.
    trainer : Any
        All other arguments are passed to the `Trainer`, such as `accelerator`, `precision` and
        `callbacks`. By default the trainer logs and saves nothing. A `ModelCheckpoint` among the
        callbacks turns saving on, and a callback that needs a logger turns logging on.

    Raises
    ------
    MissingExtra
        Lightning or PyTorch is not installed, or too old.
    LearnerError
        The module is not a `LightningModule`, or there is nothing to score on.
    SettingError
        An argument of the trainer follows from `full_steps`, the metric's name does not tell
        whether higher is better, weights are averaged in a way that cannot be paused, or a
        callback would search for a learning rate or a batch size at every pull.

    Examples
    --------
    ::

        import lightning
        import torch
        from latebloomer import race
        from latebloomer.integrations.lightning import LightningLearner

        X = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).long()
        data = torch.utils.data.TensorDataset(X, y)
        train = torch.utils.data.DataLoader(data, batch_size=32)

        class Net(lightning.LightningModule):
            def __init__(self, width):
                super().__init__()
                self.layers = torch.nn.Sequential(
                    torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
                )

            def training_step(self, batch):
                return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

            def validation_step(self, batch):
                self.log("val_loss", self.training_step(batch))

            def configure_optimizers(self):
                return torch.optim.AdamW(self.parameters(), lr=1e-2)

        def net(width):
            def build(seed):
                torch.manual_seed(seed)
                return LightningLearner(
                    Net(width), train, train, full_steps=4, accelerator="cpu"
                )

            return build

        verdict = race({"narrow": net(2), "wide": net(32)}, budget=6)
    """

    package, title = "lightning", "Lightning"

    def __init__(
        self,
        module: Any,
        train: Any,
        valid: Any = None,
        *,
        full_steps: int,
        metric: str = "val_loss",
        maximize: bool | None = None,
        weights_only: bool = True,
        **trainer: Any,
    ) -> None:
        self._lightning, self._torch = self._import(), self._import("torch")
        kind = self._lightning.LightningModule
        base.need_kind(isinstance(module, kind), "module", module, "a LightningModule")
        for name in trainer.keys() & set(OWN):
            raise SettingError(f"{name} follows from full_steps={full_steps}: remove it")
        why = "Lightning's schedules need the epochs of a full training"
        self.model, self.full_steps = module, base.at_least_1("full_steps", full_steps, why)
        self._rank_by(metric, maximize)
        callbacks = trainer.pop("callbacks", None) or []
        self._callbacks = callbacks if isinstance(callbacks, list) else [callbacks]
        base.need_no_stopping(self._callbacks, "EarlyStopping")
        self._refuse_finders()
        tools = self._lightning.pytorch.callbacks
        kinds = getattr(tools, "WeightAveraging", ())
        self._averagers = tools.StochasticWeightAveraging, kinds
        # The callback that averages the weights, if any: each trainer gets a copy of it.
        self._rule = next(
            (callback for callback in self._callbacks if isinstance(callback, kinds)), None
        )
        self._settings = {"metric": metric, "full_steps": self.full_steps, "ema": bool(self._rule)}
        both = isinstance(train, self._lightning.LightningDataModule)
        self._need_valid(train if both else valid)
        loaders = {"train_dataloaders": train, "val_dataloaders": valid}
        self._fit_data = {"datamodule": train} if both else loaders
        self._valid_data = {"datamodule": train} if both else {"dataloaders": valid}
        self._given, self._weights_only = QUIET | self._needed() | trainer, weights_only
        self._random = base.RandomStates(self._torch, train, valid)
        self._folder = base.own_folder(self)
        self._start()

    def _needed(self) -> dict[str, Any]:
        """Return the trainer's settings that the user's callbacks need."""
        tools = self._lightning.pytorch.callbacks
        saves = any(isinstance(callback, tools.Checkpoint) for callback in self._callbacks)
        logs = any(isinstance(callback, _kinds(tools, LOGGING)) for callback in self._callbacks)
        return {"enable_checkpointing": saves, "logger": logs}

    def _trained_parts(self) -> list[Any]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def _start(self) -> None:
        """Begin with a new trainer."""
        # States of optimizers and schedulers, because each `fit` makes new ones.
        self._states: list[Any] = []
        self._restart: Path | None = None  # checkpoint from which the next `fit` continues
        self._average, self._averaging = None, deepcopy(self._rule)
        if self._averaging is not None:  # it would replace the weights at the end of each `fit`
            self._averaging.on_train_end = lambda *_: None
        self._trainer = self._new_trainer(self._averaging)

    def _new_trainer(self, averaging: Any = None) -> Any:
        own = {
            "on_fit_start": self._check_callbacks,
            "on_train_start": self._restore_parts,
            "on_train_epoch_end": self._stop,
        }
        pauses = self._lightning.pytorch.callbacks.LambdaCallback(**own)
        used = [averaging if callback is self._rule else callback for callback in self._callbacks]
        callbacks = [*filter(None, used), pauses]
        settings = self._given | {"max_epochs": self.full_steps, "callbacks": callbacks}
        return self._lightning.Trainer(**settings)

    def _train(self, last: int) -> Any:
        self._last, self._asked, trainer = last, False, self._trainer
        arguments: dict[str, Any] = {}
        if self._restart is not None:
            arguments["ckpt_path"] = str(self._restart)
            if "weights_only" in inspect.signature(trainer.fit).parameters:
                arguments["weights_only"] = self._weights_only
        elif self.steps:  # else the loader would be started twice
            trainer.fit_loop.load_state_dict(trainer.fit_loop.state_dict())
        with self._random.in_use():
            trainer.fit(self.model, **self._fit_data, **arguments)
        if trainer.interrupted:  # Lightning treats Ctrl-C as the end of a training
            raise KeyboardInterrupt
        self._restart, self._states = None, [part.state_dict() for part in _parts(trainer)]
        if self._averaging is not None:
            self._averaging.setup = lambda *_, **__: None  # it would start a new average
            state: dict[str, Any] = {"state_dict": {}}
            self._averaging.on_save_checkpoint(trainer, self.model, state)
            self._average = state["state_dict"]
        # A callback of the user has ended the training.
        if self._asked or trainer.current_epoch < last:
            self._end_at(trainer.current_epoch)
        late = self._averaging is not None and self._averaging.should_update(epoch_idx=last - 1)
        at_end = trainer.val_check_batch == trainer.num_training_batches
        if late or not at_end or trainer.check_val_every_n_epoch != 1:
            return self._value()  # the model has changed after the validation
        return base.need_reported(self._metric, trainer.callback_metrics)

    def _stop(self, trainer: Any, module: Any) -> None:
        self._asked |= trainer.should_stop  # a callback of the user has asked for it
        trainer.should_stop |= trainer.current_epoch + 1 >= self._last

    def _check_callbacks(self, trainer: Any, module: Any) -> None:
        for callback in trainer.callbacks:  # including callbacks of the module
            if isinstance(callback, self._averagers) and callback is not self._averaging:
                problem = f"{type(callback).__name__} would begin again at every pull"
                raise SettingError(f"{problem}: give one WeightAveraging, in callbacks=")

    def _refuse_finders(self) -> None:
        own = self.model.configure_callbacks()
        for callback in [*self._callbacks, *(own if isinstance(own, Sequence) else [own])]:
            if isinstance(callback, _kinds(self._lightning.pytorch.callbacks, FINDERS)):
                problem = f"{type(callback).__name__} would search again at every pull"
                raise SettingError(f"{problem}: find the value before the race, and remove it")

    def _restore_parts(self, trainer: Any, module: Any) -> None:
        if self._restart is None:  # else Lightning reads them from the checkpoint
            for part, state in zip(_parts(trainer), self._states, strict=False):
                part.load_state_dict(state)

    def _averaged(self) -> Any:
        copied = deepcopy(self.model)
        copied.load_state_dict(self._average)
        return copied

    def _scored(self, averaged: bool) -> Any:
        trainer = self._new_trainer()
        trainer.loggers = []  # scoring logs nothing
        model = self._averaged() if averaged else self.model
        trainer.validate(model, **self._valid_data, verbose=False)
        return base.need_reported(self._metric, trainer.callback_metrics)

    def _write(self, folder: Path) -> None:
        if self._restart is not None:  # the new trainer has no state to save yet
            shutil.copy(self._restart, folder / FILE)
        elif self.steps:
            self._trainer.save_checkpoint(folder / FILE)

    def _read(self, folder: Path, steps: int) -> None:
        self._start()
        if steps:
            self._restart = Path(shutil.copy(folder / FILE, self._folder))
            own = {"map_location": "cpu", "weights_only": self._weights_only}
            state = self._torch.load(self._restart, **own)
            self._average = state["state_dict"] if self._averaging is not None else None
            self.model.load_state_dict(state.get("current_model_state", state["state_dict"]))


def _kinds(callbacks: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the classes of these names that this version of Lightning has."""
    return tuple(getattr(callbacks, name) for name in names if hasattr(callbacks, name))


def _parts(trainer: Any) -> list[Any]:
    return [
        *trainer.optimizers,
        *(schedule.scheduler for schedule in trainer.lr_scheduler_configs),
    ]
