"""Lightning: a learner that goes on from Lightning's own checkpoints (`ckpt_path`)."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.full_training import (
    checked_full,
    direction_of,
    library,
    need_logged,
    own_folder,
    read_label,
    sign,
    steps_left,
    write_label,
)
from latebloomer.integrations.random_states import RandomStates

__all__ = ["LightningLearner"]

CHECKPOINT, RANDOM = "lightning.ckpt", "random.pt"
OWN = (
    "max_epochs",
    "min_epochs",
    "max_steps",
    "min_steps",
    "max_time",
)  # of the trainer's settings
QUIET = {  # unless the user says otherwise
    "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
    "enable_model_summary": False, "num_sanity_val_steps": 0,
}  # fmt: skip


class LightningLearner:
    """A `LightningModule`: a step is an epoch, the score a metric that the module logs.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`. The
    trainer is made with `max_epochs=full`: a learning-rate schedule made from
    `trainer.estimated_stepping_batches` or `max_epochs` is that of the full training, wherever the
    race stops. Each pull goes on from a checkpoint of Lightning's, random states beside it: one
    long `fit`, many pulls and a resumed learner are the same bit for bit where PyTorch is
    deterministic.

    Parameters
    ----------
    module : Any
        A `LightningModule`.
    train : Any
        A loader to train on, or a `LightningDataModule` for all.
    valid : Any
        A loader to score on; not needed with a `LightningDataModule`.
    full_steps : int
        Epochs of a full training.
    metric : str
        A name that the module logs.
    maximize : bool | None
        Whether the metric is better when higher; by its name if None.
    weights_only : bool
        Whether checkpoints are loaded so that no code can run from them.
    trainer : Any
        All other settings go to the `Trainer`: `accelerator`, `precision`, `callbacks`.

    Raises
    ------
    MissingExtra
        Lightning or PyTorch is not installed, or too old.
    LearnerError
        The module is none of Lightning's, or there is nothing to score on.
    SettingError
        A setting of the trainer is said twice, or the metric's name does not say which way is
        better.

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

        learners = {
            f"width {width}": LightningLearner(Net(width), train, train, full_steps=4, accelerator="cpu")
            for width in (2, 32)
        }
        verdict = race(learners, budget=6)
    """

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
        self._lightning = library("lightning", "Lightning learners", "lightning")
        self._torch = library("torch", "Lightning learners", "lightning")
        if not isinstance(module, self._lightning.LightningModule):
            raise LearnerError(f"module={brief(module)}, but module must be a LightningModule")
        for name in OWN:
            if name in trainer:
                raise SettingError(
                    f"{name} is given to the trainer by full_steps={full_steps}: leave it out"
                )
        self.model, self.full_steps, self._metric = module, checked_full(full_steps), metric
        if self.full_steps is None:
            raise SettingError(
                "full_steps=None, but Lightning's schedules need the epochs of a training"
            )
        self._sign = sign(metric, maximize, direction_of)
        whole = isinstance(train, self._lightning.LightningDataModule)
        self._data: dict[str, Any] = (
            {"datamodule": train}
            if whole
            else {"train_dataloaders": train, "val_dataloaders": valid}
        )
        if not whole and valid is None:
            raise LearnerError("LightningLearner has no evaluation set: give a loader as valid")
        self._trainer, self._weights_only = QUIET | trainer, weights_only
        self._checkpoint = own_folder(self) / CHECKPOINT
        self._random = RandomStates(self._torch)
        self.epochs = 0

    def pull(self, steps: int = 1) -> float:
        """Train on by epochs; the metric after the last."""
        last = self.epochs + steps_left(steps, self.epochs, self.full_steps)
        with self._random.in_use():
            trainer = self._fit(last)
            trainer.save_checkpoint(self._checkpoint)
        if trainer.current_epoch < last:  # a callback of the user's has ended it
            raise StopIteration
        self.epochs = last
        return self._sign * float(need_logged(self._metric, trainer.callback_metrics))

    def _fit(self, last: int) -> Any:
        callbacks = [*self._trainer.get("callbacks", []), self._stop_after(last)]
        trainer = self._lightning.Trainer(
            **self._trainer | {"max_epochs": self.full_steps, "callbacks": callbacks}
        )
        going_on = {"ckpt_path": str(self._checkpoint)} if self.epochs else {}
        if going_on and "weights_only" in inspect.signature(trainer.fit).parameters:
            going_on |= {"weights_only": self._weights_only}  # type: ignore[dict-item]
        trainer.fit(self.model, **self._data, **going_on)
        if trainer.interrupted:  # Lightning takes Ctrl-C for the end of a training
            raise KeyboardInterrupt
        return trainer

    def _stop_after(self, last: int) -> Any:
        def on_train_epoch_end(trainer: Any, module: Any) -> None:
            trainer.should_stop |= trainer.current_epoch + 1 >= last

        return self._lightning.pytorch.callbacks.LambdaCallback(
            on_train_epoch_end=on_train_epoch_end
        )

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write Lightning's own checkpoint and the random states."""
        if self.epochs:
            shutil.copy(self._checkpoint, Path(folder) / CHECKPOINT)
        self._torch.save(self._random.state, Path(folder) / RANDOM)
        write_label(folder, self, [self._metric, self.full_steps], self.epochs)

    def load(self, folder: Path) -> None:
        """Become what was saved; with `weights_only` no code can run from it."""
        self.epochs = read_label(folder, self, [self._metric, self.full_steps])
        self._random.state = self._torch.load(Path(folder) / RANDOM, weights_only=True)
        if self.epochs:
            shutil.copy(Path(folder) / CHECKPOINT, self._checkpoint)
            state = self._torch.load(
                self._checkpoint, map_location="cpu", weights_only=self._weights_only
            )
            self.model.load_state_dict(state["state_dict"])
