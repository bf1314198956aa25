"""PyTorch: a learner of your own model, optimiser, loader, loss and metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError, need_whole, require
from latebloomer.integrations.full_training import checked_full, library, steps_left
from latebloomer.integrations.random_states import RandomStates

__all__ = ["TorchLearner"]

FILE = "torch.pt"


class TorchLearner:
    """A model in training: a step is an epoch or `batches` batches, the score `metric(model)`.

    A batch is `(inputs, targets)`, moved to where the model is, and trained on with
    `loss(outputs, targets)`. Model, optimiser, scheduler, scaler, the place in the epoch and the
    random states are saved in PyTorch's own format: a resumed learner is the same bit for bit
    where PyTorch is deterministic. Loaders whose worker processes live on (`persistent_workers`)
    keep random states that nobody can save. Seed where you build.

    Parameters
    ----------
    model : Any
        A `torch.nn.Module` with parameters.
    optimizer : Any
        Of `torch.optim`.
    loader : Any
        A `DataLoader`, or what else gives the batches of an epoch each time it is gone through.
    loss : Callable[[Any, Any], Any] | None
        Of outputs and targets; None where `train_batch` is given.
    metric : Callable[[Any], float]
        Of the model, which is in evaluation mode, without gradients.
    full_steps : int | None
        Steps of a full training; trained on without end if None.
    batches : int | None
        Batches that a step has; an epoch if None.
    scheduler : Any
        Of learning rates; set it to the full training.
    schedule_by : str
        When the scheduler is stepped: after each "epoch" or "batch".
    maximize : bool
        False where the metric is better when lower; the score is then its negative.
    autocast : Callable[[], Any]
        Makes the context in which a loss is computed, such as `torch.autocast("cuda")`.
    scaler : Any
        A `GradScaler`.
    train_batch : Callable[[Any], Any] | None
        A function of a batch that does all of the training on it.
    weights_only : bool
        Whether checkpoints are loaded so that no code can run from them.

    Raises
    ------
    MissingExtra
        PyTorch is not installed, or too old.
    LearnerError
        The model, the optimiser, the loader or the metric cannot be trained or used.
    SettingError
        Neither `loss` nor `train_batch` is given, or both; a number or a word is out of range.

    Examples
    --------
    ::

        import torch
        from latebloomer import race
        from latebloomer.integrations.torch import TorchLearner

        X = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).long()
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(X[:192], y[:192]), batch_size=32, shuffle=True
        )

        def accuracy(model):
            return (model(X[192:]).argmax(1) == y[192:]).float().mean()

        def net(width):
            def build(seed):
                torch.manual_seed(seed)
                model = torch.nn.Sequential(
                    torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2)
                )
                optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
                loss = torch.nn.functional.cross_entropy
                return TorchLearner(model, optimizer, loader, loss, accuracy, full_steps=10)

            return build

        verdict = race({"narrow": net(2), "wide": net(64)}, budget=15)
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        loader: Any,
        loss: Callable[[Any, Any], Any] | None,
        metric: Callable[[Any], float],
        *,
        full_steps: int | None = None,
        batches: int | None = None,
        scheduler: Any = None,
        schedule_by: str = "epoch",
        maximize: bool = True,
        autocast: Callable[[], Any] = nullcontext,
        scaler: Any = None,
        train_batch: Callable[[Any], Any] | None = None,
        weights_only: bool = True,
    ) -> None:
        self._torch = library("torch", "PyTorch learners", "torch")
        _check(self._torch, model, optimizer, loader, loss, metric, train_batch)
        require(schedule_by in ("epoch", "batch"), "schedule_by", schedule_by,
                "'epoch' or 'batch'", "it says when the scheduler is stepped")  # fmt: skip
        if batches is not None:
            require(need_whole("batches", batches) >= 1, "batches", batches, "at least 1",
                    "each step must train on something")  # fmt: skip
        self.model, self.full_steps = model, checked_full(full_steps)
        self._optimizer, self._loader, self._loss, self._metric = optimizer, loader, loss, metric
        self._scheduler, self._schedule_by, self._scaler = scheduler, schedule_by, scaler
        self._batches, self._autocast, self._weights_only = batches, autocast, weights_only
        self._train_batch = train_batch or self._usual_batch
        self._sign = 1.0 if maximize else -1.0
        self.steps = 0
        self._random = RandomStates(self._torch)
        self._epoch = Epoch(loader, self._random)

    def pull(self, steps: int = 1) -> float:
        """Train on; the metric after it."""
        count = steps_left(steps, self.steps, self.full_steps)
        with self._random.in_use():
            self.model.train()
            for _ in range(count):
                self._step()
            self.steps += count
            self.model.eval()
            with self._torch.no_grad():
                return self._sign * float(self._metric(self.model))

    def _step(self) -> None:
        done = 0
        while self._batches is None or done < self._batches:
            batch = self._epoch.next()
            if batch is None:  # the epoch is over
                if self._schedule_by == "epoch" and self._scheduler is not None:
                    self._scheduler.step()
                if self._batches is None:
                    return
                continue
            self._train_batch(batch)
            done += 1
            if self._schedule_by == "batch" and self._scheduler is not None:
                self._scheduler.step()

    def _usual_batch(self, batch: Any) -> None:
        place = next(self.model.parameters()).device
        inputs, targets = (part.to(place, non_blocking=True) for part in batch)
        self._optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            loss = self._loss(self.model(inputs), targets)  # type: ignore[misc]
        if self._scaler is None:
            loss.backward()
            self._optimizer.step()
        else:
            self._scaler.scale(loss).backward()
            self._scaler.step(self._optimizer)
            self._scaler.update()

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write all that training has changed in PyTorch's own format."""
        state = {name: part.state_dict() for name, part in self._parts().items()}
        state |= {"steps": self.steps, "epoch": self._epoch.state(), "random": self._random.state}
        self._torch.save(state, Path(folder) / FILE)

    def load(self, folder: Path) -> None:
        """Become what was saved; with `weights_only` no code can run from it."""
        state = self._torch.load(
            Path(folder) / FILE, map_location="cpu", weights_only=self._weights_only
        )
        missing = self._parts().keys() ^ (state.keys() - {"steps", "epoch", "random"})
        if missing:
            raise LearnerError(
                f"the checkpoint and this learner differ in {', '.join(sorted(missing))}: give "
                "the learner that was saved"
            )
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        self.steps, self._random.state = state["steps"], state["random"]
        self._epoch = Epoch(self._loader, self._random)
        self._epoch.restore(state["epoch"])

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own, by name."""
        parts = {
            "model": self.model, "optimizer": self._optimizer, "scheduler": self._scheduler,
            "scaler": self._scaler, "loader": self._loader,
        }  # fmt: skip
        return {name: part for name, part in parts.items() if hasattr(part, "state_dict")}


class Epoch:
    """The loader's batches, and the place in them; a checkpoint finds it again."""

    def __init__(self, loader: Any, random: RandomStates) -> None:
        self._loader, self._random = loader, random
        self._left: Iterator[Any] | None = None  # batches of the running epoch
        self._began: list[Any] = []  # random states at its beginning
        self._had = 0  # batches of it

    def next(self) -> Any:
        """The next batch; None once at the end of each epoch."""
        if self._left is None:
            self._begin()
        batch = next(self._left, None)  # type: ignore[arg-type]
        if batch is None and self._had == 0:
            raise LearnerError(
                f"loader={brief(self._loader)} gave no batch, so nothing is trained"
            )
        self._had += 1
        if batch is None:
            self._left = None
        return batch

    def _begin(self) -> None:
        self._began = [self._random.now(), self._generator_state()]
        self._left, self._had = iter(self._loader), 0

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        had = 0 if self._left is None else self._had
        return {"had": had, "began": self._began if had else [], "now": self._generator_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a place: begin the epoch as it was begun and pass over its first batches."""
        self._set_generator(state["now"])
        if not state["had"]:
            return
        after = self._random.state
        self._random.state, generator = state["began"]
        with self._random.in_use():
            self._set_generator(generator)
            self._begin()
            for _ in range(state["had"]):
                self.next()
        self._random.state = after
        self._set_generator(state["now"])

    def _generator_state(self) -> Any:
        generator = getattr(self._loader, "generator", None)
        return None if generator is None else generator.get_state()

    def _set_generator(self, state: Any) -> None:
        if state is not None:
            self._loader.generator.set_state(state)


def _check(
    torch: Any, model: Any, optimizer: Any, loader: Any, loss: Any, metric: Any, train_batch: Any
) -> None:
    """Raise a `LearnerError` or a `SettingError` for what cannot be trained."""
    if not isinstance(model, torch.nn.Module):
        raise LearnerError(f"model={brief(model)}, but model must be a torch.nn.Module")
    if next(model.parameters(), None) is None:
        raise LearnerError(f"model={brief(model)} has no parameters, so nothing can be trained")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise LearnerError(f"optimizer={brief(optimizer)}, but optimizer must be of torch.optim")
    if not hasattr(loader, "__iter__") or isinstance(loader, Iterator):
        raise LearnerError(
            f"loader={brief(loader)}, but loader must be a DataLoader, or give the batches of an "
            "epoch each time it is gone through"
        )
    if (loss is None) == (train_batch is None):
        raise SettingError("give loss, or loss=None and train_batch: one of them trains a batch")
    if not callable(metric):
        raise LearnerError(f"metric={brief(metric)}, but metric must be a function of the model")
