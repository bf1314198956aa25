"""Hugging Face Transformers: a learner that continues a `Trainer` from its state in memory."""

import gc
import shutil
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from latebloomer.errors import SettingError
from latebloomer.integrations import library_learner as base

__all__ = ["HuggingFaceLearner"]

MODEL, STATES = "model", "states.pt"
PLACE = "trainer_state.json"  # file in which the Trainer looks for its position in a training
ARGUMENTS = "training_args.bin"  # a pickle that is never read


class HuggingFaceLearner(base.AveragingLearner):
    """Wrap a `Trainer` as a learner. One step is an epoch or `every` optimizer steps.

    The score is a metric of `trainer.evaluate()`, negated for a loss, so that higher is better:
    race with `maximize=True`. If the trainer's own `eval_strategy` evaluates at the end of the
    pull, that evaluation is used. The trainer's arguments (`num_train_epochs`, `max_steps`) define
    the full training and its learning-rate schedule, even if the race stops earlier. One long
    `train()`, many pulls and a restored learner give the same model bit for bit if PyTorch is
    deterministic. Adapters (PEFT) and the trainers of TRL work, too. Set the seed in the function
    that builds the model.

    The trainer writes only the checkpoints that its arguments request, into its own `output_dir`,
    and it prints nothing: its printer and its progress bar are removed.

    Parameters
    ----------
    trainer : Any
        A `transformers.Trainer` with an evaluation set. If it has a `model_init`, the model that
        this function has already built is trained, and no other.
    metric : str | None
        Name of a metric that `trainer.evaluate()` reports, with or without `eval_`. Default:
        `metric_for_best_model` of the arguments, else the loss.
    maximize : bool | None
        Whether higher metric values are better. Default: `greater_is_better` of the arguments,
        else derived from the metric's name.
    every : int | None
        Number of optimizer steps in a step of the race. Default: an epoch.
    ema : float | None
        Memory of an exponential moving average of the trainable weights, as a fraction of the full
        training (0.01 is a good value). The score is then the score of the averaged weights, which
        shows early how good the model will be after a learning rate that decays to zero within the
        full training. `model` has the trained weights; `averaged_model` is a copy with the
        average. Default: no average.

    Raises
    ------
    MissingExtra
        Transformers or PyTorch is not installed, or too old.
    LearnerError
        `trainer` is not a `Trainer`, or has no evaluation set.
    SettingError
        `every` is missing although the trainer's arguments set `max_steps`, or the arguments set
        `load_best_model_at_end`.

    Examples
    --------
    ::

        from latebloomer import race
        from latebloomer.integrations.transformers import HuggingFaceLearner
        from transformers import (
            BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed,
        )

        rows = [{"input_ids": [k % 7, 1, k % 3], "labels": int(k % 7 > 3)} for k in range(64)]
        tiny = BertConfig(
            vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16,
        )

        def tuned(rate):
            def build(seed):
                set_seed(seed)
                arguments = TrainingArguments(
                    "out", num_train_epochs=3, learning_rate=rate, report_to=[], use_cpu=True,
                    save_strategy="no",
                )
                trainer = Trainer(
                    BertForSequenceClassification(tiny), arguments,
                    train_dataset=rows[:48], eval_dataset=rows[48:],
                )
                return HuggingFaceLearner(trainer, metric="loss")

            return build

        verdict = race({"slow": tuned(1e-5), "quick": tuned(1e-2)}, budget=4)
    """

    package, title = "transformers", "Hugging Face"

    def __init__(
        self,
        trainer: Any,
        *,
        metric: str | None = None,
        maximize: bool | None = None,
        every: int | None = None,
        ema: float | None = None,
    ) -> None:
        self._library, self._torch = self._import(), self._import("torch")
        base.need_kind(isinstance(trainer, self._library.Trainer), "trainer", trainer, "a Trainer")
        trainer.model_init = None  # it has built the model; each `train()` would build another one
        if every is not None:
            base.at_least_1("every", every, "it is the number of optimizer steps in a step")
        elif trainer.args.max_steps > 0:
            raise SettingError("The trainer counts max_steps. Say how many a step has: every=50.")
        if trainer.args.load_best_model_at_end:
            raise SettingError(
                "remove load_best_model_at_end: pulls train the latest model further"
            )
        self._need_valid(trainer.eval_dataset)
        base.need_no_stopping(trainer.callback_handler.callbacks, "EarlyStoppingCallback")
        self.trainer = trainer
        named = metric or trainer.args.metric_for_best_model or "loss"
        if metric is None and maximize is None:
            maximize = trainer.args.greater_is_better
        self._rank_by(f"eval_{named.removeprefix('eval_')}", maximize)
        epoch, total = _lengths(trainer)
        every = every or epoch
        self.full_steps = ceil(total / every)
        self._settings = {
            "metric": self._metric,
            "every": every,
            "full_steps": self.full_steps,
            "ema": ema,
        }
        self._random = base.RandomStates(self._torch)
        # Stores the position in the training between two pulls.
        self._folder = base.own_folder(self)
        self._pause = _pause(self._library, trainer, self._random, every)
        if ema is not None:
            weights = [
                parameter for parameter in trainer.model.parameters() if parameter.requires_grad
            ]
            self._weights = self._torch.nn.ParameterList(weights)
            self._average = base.average_of(self._torch, self._weights, ema, total)
            self._pause.after_step = partial(self._average.update_parameters, self._weights)
        trainer.add_callback(self._pause)
        for printer in (self._library.PrinterCallback, self._library.ProgressCallback):
            trainer.remove_callback(printer)
        # A Trainer continues only from a checkpoint. This checkpoint has only the position in the
        # training; the model stays the one in memory. There is no public method for this.
        self._load_model = trainer._load_from_checkpoint
        trainer._load_from_checkpoint = lambda *_: None

    @property
    def model(self) -> Any:
        """The model with its trained weights."""
        return self.trainer.model

    def _train(self, last: int) -> Any:
        pause, place = self._pause, str(self._folder) if self.steps else None
        pause.last, pause.ended, pause.cut = last, False, False
        gc.freeze()  # `train()` collects garbage, which would take longer than a short pull
        try:
            with self._random.in_use():
                self.trainer.train(resume_from_checkpoint=place)
        finally:
            gc.unfreeze()
        if pause.cut or not pause.ended:  # a callback of the user has ended the training
            self._end_at(ceil(self.trainer.state.global_step / self._settings["every"]))
        self._random.state = pause.random
        pause.states = [part.state_dict() for part in _parts(self.trainer)]
        self.trainer.state.save_to_json(str(self._folder / PLACE))
        if not self.averages and pause.evaluated[0] == self.trainer.state.global_step:
            return base.need_reported(self._metric, pause.evaluated[1])
        return self._value()

    def _trained_parts(self) -> list[Any]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def _averaged(self) -> Any:
        return self._with_average(lambda: deepcopy(self.model))

    def _scored(self, averaged: bool) -> Any:
        score = self.trainer.evaluate
        return base.need_reported(self._metric, self._with_average(score) if averaged else score())

    def _with_average(self, use: Callable[[], Any]) -> Any:
        """Call a function while the model has the averaged weights."""
        self._swap()
        try:
            return use()
        finally:
            self._swap()

    def _swap(self) -> None:
        for mine, its in zip(self._weights, self._average.parameters(), strict=True):
            mine.data, its.data = its.data, mine.data

    def _write(self, folder: Path) -> None:
        if not self.steps:
            return
        logging = self._library.logging
        bars = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        # Do not push it to the hub.
        self.trainer.save_model(str(folder / MODEL), _internal_call=True)
        if bars:
            logging.enable_progress_bar()
        (folder / MODEL / ARGUMENTS).unlink(missing_ok=True)
        average = self._average and self._average.state_dict()
        self._torch.save({"parts": self._pause.states, "average": average}, folder / STATES)
        shutil.copy(self._folder / PLACE, folder / PLACE)

    def _read(self, folder: Path, steps: int) -> None:
        if steps:
            self._load_model(str(folder / MODEL))
            states = self._torch.load(folder / STATES, map_location="cpu", weights_only=True)
            self._pause.states = states["parts"]
            if self._average is not None:
                self._average.load_state_dict(states["average"])
            shutil.copy(folder / PLACE, self._folder / PLACE)


def _parts(trainer: Any) -> list[Any]:
    """Return the parts other than the model that have a state."""
    parts = (trainer.optimizer, trainer.lr_scheduler, trainer.accelerator.scaler)
    return [part for part in parts if part is not None]


def _pause(transformers: Any, trainer: Any, random: base.RandomStates, every: int) -> Any:
    """Return a callback that pauses a training after `last` steps and continues it later."""

    class Pause(transformers.TrainerCallback):  # type: ignore[misc]
        last = 0
        states: list[Any] = []  # noqa: RUF012 (replaced, never changed)
        ended = cut = False  # ended by this callback; cut short by a callback of the user
        random: Any = None  # states of the generators at the pause
        # Replaced by a function that updates an average of the weights, if any.
        after_step = staticmethod(lambda: None)
        # Step and metrics of the Trainer's own latest evaluation.
        evaluated: tuple[int, dict[str, Any]] = (-1, {})
        _continues = False

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self._continues = bool(self.states)
            for part, saved in zip(_parts(trainer), self.states, strict=False):
                part.load_state_dict(saved)

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if float(state.epoch).is_integer():
                self.on_step_begin()

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            if self._continues:  # skipping batches has drawn random numbers
                random.apply(random.state)
                self._continues = False

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.after_step()
            if not float(state.epoch).is_integer():
                self._end(state, control)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if float(state.epoch).is_integer():
                self._end(state, control)
            elif self.ended:  # a pause is not an end
                control.should_log = control.should_evaluate = control.should_save = False

        def _end(self, state: Any, control: Any) -> None:
            self.cut = control.should_training_stop
            if state.global_step >= min(self.last * every, state.max_steps):
                control.should_training_stop = self.ended = True

        def on_evaluate(
            self, args: Any, state: Any, control: Any, metrics: dict[str, Any], **_: Any
        ) -> None:
            self.evaluated = state.global_step, metrics

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self.random = random.now()

    return Pause()


def _lengths(trainer: Any) -> tuple[int, int]:
    """Return the number of optimizer steps in an epoch and in the full training."""
    args = trainer.args
    if args.max_steps > 0:
        return 0, args.max_steps
    epoch = max(1, ceil(len(trainer.get_train_dataloader()) / args.gradient_accumulation_steps))
    return epoch, ceil(args.num_train_epochs * epoch)
