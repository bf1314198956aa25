"""PyTorch: a learner made of your own model, optimizer, loader, loss and metric."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError, require
from latebloomer.integrations import library_learner as base
from latebloomer.integrations.schedule_lengths import check_length

__all__ = ["TorchLearner"]

FILE = "torch.pt"
STATISTICS = 50  # batches from which an average's BatchNorm statistics are computed


class TorchLearner(base.AveragingLearner):
    """Wrap a PyTorch model as a learner. One step is an epoch or `batches` batches.

    A batch is `(inputs, targets)`; it is moved to the model's device and used with `loss(outputs,
    targets)`. If a batch is a dict, the model is called with the entries that are named like
    arguments of its `forward`, and the loss with the outputs and the whole batch. The score is
    `metric(model)`. Model, optimizer, scheduler, scaler, the place in the epoch and the random
    states are saved in PyTorch's own format: a restored learner continues bit for bit like the
    original if PyTorch is deterministic. This does not hold for loaders with `persistent_workers`,
    because the random states of such workers cannot be saved. Set the seed in the function that
    builds the model.

    Parameters
    ----------
    model : Any
        A `torch.nn.Module` with parameters.
    optimizer : Any
        An optimizer of `torch.optim`.
    loader : Any
        A `DataLoader`, or another object that returns the batches of an epoch each time it is
        iterated.
    loss : Callable[[Any, Any], Any] | None
        Function of outputs and targets that returns the loss; None if `train_batch` trains.
    metric : Callable[[Any], float]
        Function that takes the model, in evaluation mode and without gradients, and returns the
        score.
    full_steps : int | None
        Number of steps in a full training. Default: no limit.
    batches : int | None
        Number of batches in a step. Default: an epoch.
    scheduler : Any
        Scheduler of learning rates; its length must be the full training. Default: constant rate.
        `ReduceLROnPlateau` is stepped with the metric after each step of the learner.
    schedule_by : str
        When the scheduler is stepped: after each "epoch", or after each "batch" that the optimizer
        steps on. If the length of the schedule fits the other choice, an error is raised.
    maximize : bool
        Whether higher metric values are better. If False, the score is the negated metric.
    autocast : Callable[[], Any]
        Function that returns the context manager in which a loss is computed, such as
        `torch.autocast("cuda")`.
    scaler : Any
        A `GradScaler`, for mixed precision. Default: none.
    accumulate : int
        Number of batches whose gradients are averaged before the optimizer steps. Such a group of
        batches may continue into the next epoch.
    clip : float | None
        Maximum norm of the gradients; larger gradients are scaled down to this norm. Default: no
        limit.
    train_batch : Callable[[Any], Any] | None
        Function that does all of the training on one batch, in place of `loss`.
    state : Any
        State of `train_batch`: an object with `state_dict()` and `load_state_dict()`. It is saved
        together with the gradients.
    ema : float | None
        Memory of an exponential moving average of the weights, as a fraction of the full training
        (0.01 is a good value). The score is then the score of the averaged weights. It shows early
        how good the model will be after a learning rate that decays to zero within the full
        training; it misleads if the rate is constant or if overfitting decides. `model` has the
        trained weights, and `averaged_model` the average. Its BatchNorm statistics are computed
        again from up to 50 batches. Needs `full_steps`. Default: no average.
    weights_only : bool
        Whether checkpoints are loaded in a way that cannot run code from the file.

    Raises
    ------
    MissingExtra
        PyTorch is not installed, or too old.
    LearnerError
        The model, the optimizer, the loader, the metric or the state cannot be used.
    SettingError
        Neither or both of `loss` and `train_batch` are passed, or a setting is outside its range.

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

    package, title = "torch", "PyTorch"

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
        accumulate: int = 1,
        clip: float | None = None,
        train_batch: Callable[[Any], Any] | None = None,
        state: Any = None,
        ema: float | None = None,
        weights_only: bool = True,
    ) -> None:
        self._torch = self._import()
        _check_parts(self._torch, model, optimizer, loader, metric, state)
        uses = {
            "accumulate": accumulate > 1,
            "autocast": autocast is not nullcontext,
            "scaler": scaler is not None,
            "clip": clip is not None,
        }
        base.at_least_1("accumulate", accumulate, "the optimizer steps after that many batches")
        _check_training(loss, train_batch, [name for name, used in uses.items() if used])
        require(clip is None or clip > 0, "clip", clip, "above 0", "it is a norm of gradients")
        require(
            schedule_by in ("epoch", "batch"),
            "schedule_by",
            schedule_by,
            "'epoch' or 'batch'",
            "it says when the scheduler is stepped",
        )
        base.at_least_1("batches", 1 if batches is None else batches, "each step must train")
        self.model, self.full_steps = model, base.checked_full(full_steps)
        self._optimizer, self._loader, self._loss = optimizer, loader, loss
        self._scheduler, self._schedule_by = scheduler, schedule_by
        self._scaler = scaler or self._torch.amp.GradScaler(enabled=False)
        self._batches, self._autocast, self._weights_only = batches, autocast, weights_only
        self._train_batch, self._accumulate, self._clip = train_batch, accumulate, clip
        self._gathered = 0  # number of batches whose gradients the optimizer has not used yet
        self._rank_by(metric, maximize)
        self._by_metric = isinstance(scheduler, self._torch.optim.lr_scheduler.ReduceLROnPlateau)
        if self._by_metric:
            _check_plateau(scheduler, maximize, schedule_by)
        elif self.full_steps is not None:
            check_length(scheduler, schedule_by, *self._lengths(self.full_steps))
        self._average = None if ema is None else self._new_average(ema)
        parts = {
            "model": model,
            "optimizer": optimizer,
            "scheduler": scheduler,
            "scaler": scaler,
            "loader": loader,
            "state": state,
            "average": self._average,
        }
        self._parts = {name: part for name, part in parts.items() if hasattr(part, "state_dict")}
        self._settings = {
            "batches": batches,
            "accumulate": accumulate,
            "clip": clip,
            "parts": [*self._parts],
        }
        self._random = base.RandomStates(self._torch, loader)
        self._epoch = Epoch(loader, self._random)

    def _lengths(self, full_steps: int) -> tuple[float | None, float | None]:
        """Return the epochs and optimizer steps of a full training; None if not known."""
        epoch: int | None = None
        with suppress(TypeError):  # a loader for a stream has no length
            epoch = len(self._loader)
        each = self._batches or epoch
        batches = None if each is None else full_steps * each
        epochs = full_steps if self._batches is None else batches and epoch and batches / epoch
        return epochs, batches and batches / self._accumulate

    def _new_average(self, ema: float) -> Any:
        """Return a running average of weights over about the fraction `ema` of training."""
        steps = None if self.full_steps is None else self._lengths(self.full_steps)[1]
        if steps is None:
            why = "the length of the full training: full_steps, and batches for an endless loader"
            raise SettingError(f"ema={ema} needs {why}")
        return base.average_of(self._torch, self.model, ema, steps)

    def _trained_parts(self) -> list[Any]:
        learned = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        return [*learned, self._optimizer]

    def _train(self, last: int) -> Any:
        with self._random.in_use():
            while self.steps < last:
                self.model.train()
                self._step()
                self.steps += 1
                if self._by_metric or self.steps == last:
                    value = self._value_after_training()
                if self._by_metric:
                    self._scheduler.step(float(value))
            return value

    def _value_after_training(self) -> Any:
        # Compute its BatchNorm statistics, without changing training's random states.
        if self._average is not None:
            before, batches = self._random.now(), islice(self._loader, STATISTICS)
            place = next(self.model.parameters()).device
            try:
                self._torch.optim.swa_utils.update_bn(batches, self._average, place)
            except (AttributeError, TypeError) as error:  # the batch is a dict, for example
                why = "BatchNorm's statistics need batches that begin with the inputs"
                raise LearnerError(f"ema= is given, but {why} ({error})") from error
            self._random.apply(before)
        return self._value()

    def _averaged(self) -> Any:
        return self._average.module

    def _scored(self, averaged: bool) -> Any:
        model = self._averaged() if averaged else self.model
        model.eval()
        with self._torch.no_grad():
            return self._metric(model)

    def _step(self) -> None:
        done = 0
        while self._batches is None or done < self._batches:
            batch = self._epoch.next()
            if batch is not None:
                self._train_on(batch)
                done += 1
                continue
            self._schedule("epoch")
            if self._batches is None:
                return

    def _schedule(self, after: str) -> None:
        if self._scheduler is not None and not self._by_metric and self._schedule_by == after:
            self._scheduler.step()

    def _train_on(self, batch: Any) -> None:
        (self._train_batch or self._use_loss)(batch)
        if self._gathered == 0:  # the optimizer has used all gradients
            self._schedule("batch")
            if self._average is not None:
                self._average.update_parameters(self.model)

    def _use_loss(self, batch: Any) -> None:
        if self._gathered == 0:
            self._optimizer.zero_grad(set_to_none=True)
        place = next(self.model.parameters()).device
        with self._autocast():
            loss = self._loss_of(batch, place) / self._accumulate
        self._scaler.scale(loss).backward()
        self._gathered = (self._gathered + 1) % self._accumulate
        if self._gathered == 0:
            if self._clip is not None:
                self._scaler.unscale_(self._optimizer)
                self._torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._clip)
            self._scaler.step(self._optimizer)
            self._scaler.update()

    def _loss_of(self, batch: Any, place: Any) -> Any:
        """Return the loss of a batch, a pair or a dict."""
        assert self._loss is not None
        if isinstance(batch, Mapping):
            moved = {name: _moved(part, place) for name, part in batch.items()}
            return self._loss(self.model(**self._taken(moved)), moved)
        pair = isinstance(batch, tuple | list) and len(batch) == 2
        needed = "(inputs, targets) or a dict, unless you give train_batch="
        base.need_kind(pair, "batch", batch, needed)
        inputs, targets = (_moved(part, place) for part in batch)
        return self._loss(self.model(inputs), targets)

    def _taken(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the entries of a batch that `forward` accepts; all if it has `**kwargs`."""
        known = inspect.signature(self.model.forward).parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
            return batch
        taken = {name: part for name, part in batch.items() if name in known}
        base.need_kind(
            bool(taken), "batch", batch, f"a dict with an argument of forward ({', '.join(known)})"
        )
        return taken

    # --- checkpoints ---

    def _write(self, folder: Path) -> None:
        state = {name: part.state_dict() for name, part in self._parts.items()}
        keep = self._gathered > 0 or "state" in self._parts
        grads = [parameter.grad for parameter in self.model.parameters()] if keep else []
        state |= {"epoch": self._epoch.state(), "gathered": self._gathered, "gradients": grads}
        self._torch.save(state, folder / FILE)

    def _read(self, folder: Path, steps: int) -> None:
        own = {"map_location": "cpu", "weights_only": self._weights_only}
        state = self._torch.load(folder / FILE, **own)
        for name, part in self._parts.items():
            part.load_state_dict(state[name])
        self._gathered = state["gathered"]
        for parameter, grad in zip(self.model.parameters(), state["gradients"], strict=False):
            parameter.grad = None if grad is None else grad.to(parameter.device)
        self._epoch = Epoch(self._loader, self._random)
        self._epoch.restore(*state["epoch"])


class Epoch:
    """The batches of an epoch and the position in it, which a checkpoint can restore."""

    def __init__(self, loader: Any, random: base.RandomStates) -> None:
        self._loader, self._random = loader, random
        self._left: Iterator[Any] | None = None  # remaining batches of the current epoch
        self._began: Any = None  # random states at the beginning of the epoch
        self._had = 0  # number of its batches already used

    def next(self) -> Any:
        """Return the next batch; None once at the end of each epoch."""
        if self._left is None:
            self._began, self._left, self._had = self._random.now(), iter(self._loader), 0
        batch = next(self._left, None)
        if batch is not None:
            self._had += 1
        elif self._had == 0:
            raise LearnerError(f"loader={brief(self._loader)} returned no batch to train on")
        else:
            self._left = None
        return batch

    def state(self) -> tuple[int, Any]:
        """Return the arguments for `restore`."""
        return (0, None) if self._left is None else (self._had, self._began)

    def restore(self, had: int, began: Any) -> None:
        """Start the epoch from its original random states and skip the batches already used."""
        if had:
            after, self._random.state = self._random.state, began
            with self._random.in_use():
                for _ in range(had):
                    self.next()
            self._random.state = after


def _check_parts(
    torch: Any, model: Any, optimizer: Any, loader: Any, metric: Any, state: Any
) -> None:
    """Raise a `LearnerError` for parts that cannot be used."""
    again = hasattr(loader, "__iter__") and not isinstance(loader, Iterator)
    saves = hasattr(state, "state_dict") and hasattr(state, "load_state_dict")
    batches = "a DataLoader, or return the batches of an epoch each time it is iterated"
    pair = "an object with state_dict() and load_state_dict()"
    base.need_kind(isinstance(model, torch.nn.Module), "model", model, "a torch.nn.Module")
    known = isinstance(optimizer, torch.optim.Optimizer)
    base.need_kind(known, "optimizer", optimizer, "one of torch.optim")
    base.need_kind(again, "loader", loader, batches)
    base.need_kind(callable(metric), "metric", metric, "a function of the model")
    base.need_kind(state is None or saves, "state", state, pair)
    if next(model.parameters(), None) is None:
        raise LearnerError(f"model={brief(model)} has no parameters, so nothing can be trained")


def _check_training(loss: Any, train_batch: Any, unused: list[str]) -> None:
    """Raise an error if no batch can be trained; `unused` are arguments only for `loss`."""
    if (loss is None) == (train_batch is None):
        raise SettingError("give loss, or loss=None and train_batch: one of them trains a batch")
    if train_batch is not None and unused:
        names = " and ".join(f"{name}=" for name in unused)
        raise SettingError(
            f"{names} would have no effect: train_batch does all of the training on a batch. "
            "Use it there; give what it must remember, such as a counter, as state="
        )


def _check_plateau(scheduler: Any, maximize: bool, schedule_by: str) -> None:
    """Raise an error if a `ReduceLROnPlateau` would take better metric values for worse ones."""
    mode = "max" if maximize else "min"
    if scheduler.mode != mode:
        raise SettingError(
            f"ReduceLROnPlateau(mode={scheduler.mode!r}), but maximize={maximize}: it would take "
            f"a better metric for a worse one. Give it mode={mode!r}."
        )
    require(
        schedule_by == "epoch",
        "schedule_by",
        schedule_by,
        "'epoch'",
        "ReduceLROnPlateau is stepped with the metric, after each step",
    )


def _moved(part: Any, place: Any) -> Any:
    return part.to(place, non_blocking=True) if hasattr(part, "to") else part
