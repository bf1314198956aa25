"""Hugging Face Transformers: a learner that goes on from the `Trainer`'s own checkpoints."""

from __future__ import annotations

import shutil
from math import ceil
from pathlib import Path
from typing import Any

from latebloomer._util.text import brief
from latebloomer.errors import LearnerError, SettingError, need_whole, require
from latebloomer.integrations.full_training import (
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

__all__ = ["HuggingFaceLearner"]

ARGUMENTS = "training_args.bin"  # a pickle, which nothing reads


class HuggingFaceLearner:
    """A `Trainer`: a step is an epoch or `every` optimiser steps, the score one of its metrics.

    Of a loss the score is the negative, so that higher is better: race with `maximize=True`. The
    full training is that of the trainer's own arguments (`num_train_epochs`, `max_steps`), and so
    is the learning-rate schedule, wherever a race stops. Each pull goes on from a checkpoint of
    the trainer's (in a folder of the learner's own): one long `train()`, many pulls and a resumed
    learner are the same bit for bit where PyTorch is deterministic.

    Parameters
    ----------
    trainer : Any
        A `transformers.Trainer` with an evaluation set.
    metric : str | None
        A name that `trainer.evaluate()` reports, with or without `eval_`; if None that of the
        arguments (`metric_for_best_model`), else the loss.
    maximize : bool | None
        Whether the metric is better when higher; by `greater_is_better` or its name if None.
    every : int | None
        Optimiser steps that a step of the race has; an epoch if None.

    Raises
    ------
    MissingExtra
        Transformers or PyTorch is not installed, or too old.
    LearnerError
        It is no `Trainer`, or has no evaluation set.
    SettingError
        `every` is not said where the trainer counts `max_steps`, or the arguments keep only
        parts of a state.

    Examples
    --------
    ::

        from latebloomer import race
        from latebloomer.integrations.transformers import HuggingFaceLearner
        from transformers import (
            BertConfig, BertForSequenceClassification, Trainer, TrainingArguments,
        )

        rows = [{"input_ids": [k % 7, 1, k % 3], "labels": int(k % 7 > 3)} for k in range(64)]
        tiny = BertConfig(
            vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16,
        )

        def tuned(rate):
            def build():
                arguments = TrainingArguments(
                    "out", num_train_epochs=3, learning_rate=rate, report_to=[], disable_tqdm=True,
                    use_cpu=True,
                )
                trainer = Trainer(
                    BertForSequenceClassification(tiny), arguments,
                    train_dataset=rows[:48], eval_dataset=rows[48:],
                )
                return HuggingFaceLearner(trainer, metric="loss")

            return build

        verdict = race({"slow": tuned(1e-5), "quick": tuned(1e-2)}, budget=4)
    """

    def __init__(
        self,
        trainer: Any,
        *,
        metric: str | None = None,
        maximize: bool | None = None,
        every: int | None = None,
    ) -> None:
        transformers = library("transformers", "Hugging Face learners", "transformers")
        _check(transformers, trainer, every)
        self.trainer, self._every = trainer, every
        named = metric or trainer.args.metric_for_best_model or "loss"
        self._metric = named if named.startswith("eval_") else f"eval_{named}"
        better = trainer.args.greater_is_better if metric is None else None
        self._sign = sign(self._metric, better if maximize is None else maximize, direction_of)
        self.full_steps = _full_training(trainer, every)
        self._folder = own_folder(self)
        trainer.args.output_dir = str(self._folder)  # else learners overwrite each other's
        self._stop = _stop_callback(transformers, every)
        trainer.add_callback(self._stop)
        self._random = RandomStates(library("torch", "Hugging Face learners", "transformers"))
        self._checkpoint: Path | None = None
        self.steps = 0

    @property
    def model(self) -> Any:
        """The model as trained so far."""
        return self.trainer.model

    def pull(self, steps: int = 1) -> float:
        """Train on; the metric after it."""
        last = self.steps + steps_left(steps, self.steps, self.full_steps)
        self._stop.last, before = last, self._checkpoint
        with self._random.in_use():
            self.trainer.train(resume_from_checkpoint=str(before) if before else None)
            place = self._folder / f"checkpoint-{self.trainer.state.global_step}"
            if not place.is_dir():  # a callback of the user's has ended it
                raise StopIteration
            said = self.trainer.evaluate()
        self.steps, self._checkpoint = last, place
        if before is not None and before != place:
            shutil.rmtree(before, ignore_errors=True)
        return self._sign * float(need_logged(self._metric, said))

    # --- outliving the process ---

    def save(self, folder: Path) -> None:
        """Write the trainer's own checkpoint."""
        if self._checkpoint is not None:
            without = shutil.ignore_patterns(ARGUMENTS)
            target = Path(folder) / self._checkpoint.name
            shutil.copytree(self._checkpoint, target, ignore=without)
        write_label(folder, self, [self._metric, self._every, self.full_steps], self.steps)

    def load(self, folder: Path) -> None:
        """Become what was saved."""
        self.steps = read_label(folder, self, [self._metric, self._every, self.full_steps])
        self._checkpoint = None
        for saved in Path(folder).glob("checkpoint-*"):
            self._checkpoint = self._folder / saved.name
            shutil.copytree(saved, self._checkpoint, dirs_exist_ok=True)
            weights = saved / "model.safetensors"
            if weights.is_file():  # now, for who wants the model; training reads them again
                library("safetensors.torch", "Hugging Face learners", "transformers").load_model(
                    self.trainer.model, weights
                )


def _stop_callback(transformers: Any, every: int | None) -> Any:
    """What ends a training after `last` steps, with a checkpoint."""

    class StopAfter(transformers.TrainerCallback):  # type: ignore[misc]
        last = 0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            over = every is not None and state.global_step >= self.last * every
            return self._end(control) if over or state.global_step >= state.max_steps else control

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            over = every is None and round(state.epoch) >= self.last
            return self._end(control) if over else control

        def _end(self, control: Any) -> Any:
            control.should_training_stop = control.should_save = True
            return control

    return StopAfter()


def _full_training(trainer: Any, every: int | None) -> int:
    """The steps of the training that the arguments describe."""
    args = trainer.args
    if every is None:
        return ceil(args.num_train_epochs)
    if args.max_steps > 0:
        return ceil(args.max_steps / every)
    each = max(1, ceil(len(trainer.get_train_dataloader()) / args.gradient_accumulation_steps))
    return ceil(ceil(args.num_train_epochs * each) / every)


def _check(transformers: Any, trainer: Any, every: Any) -> None:
    """Raise a `LearnerError` or a `SettingError` for what cannot race."""
    if not isinstance(trainer, transformers.Trainer):
        raise LearnerError(f"trainer={brief(trainer)}, but trainer must be a transformers.Trainer")
    if trainer.eval_dataset is None:
        raise LearnerError("HuggingFaceLearner has no evaluation set: Trainer(eval_dataset=...)")
    if every is not None:
        require(need_whole("every", every) >= 1, "every", every, "at least 1",
                "it is how many optimiser steps a step has")  # fmt: skip
    elif trainer.args.max_steps > 0:
        raise SettingError("the trainer counts max_steps, so say how many a step has: every=50")
    if trainer.args.load_best_model_at_end or trainer.args.save_only_model:
        raise SettingError(
            "load_best_model_at_end or save_only_model is set, but each pull goes on from the "
            "newest state as a whole: leave both out"
        )
