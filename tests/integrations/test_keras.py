"""`KerasLearner`: `fit(initial_epoch=...)`, the same after a resume; the backend is torch."""

import os

import pytest

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.keras import KerasLearner
from tests.helpers.libraries import is_exact, library, refuses, same_weights, two_classes

torch = library("torch")
os.environ["KERAS_BACKEND"] = "torch"  # before it is imported for the first time
keras = library("keras")

TRAIN, VALID = two_classes(120)
FITTING = {"batch_size": 32}


def net(width=4, dropout=0.0, schedule=0.02, seed=1, **more):
    torch.set_num_threads(1)
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(width, "relu"), keras.layers.BatchNormalization()]
    layers += [keras.layers.Dropout(dropout)] if dropout else []
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(2, "softmax")])
    loss = "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.Adam(schedule, **more), loss, metrics=["accuracy"])
    return model


def learner(metric="val_loss", full_steps=None, **more):
    return KerasLearner(net(**more), TRAIN, VALID, metric=metric, full_steps=full_steps, **FITTING)


def learners():
    return {
        "narrow": lambda seed: learner(width=2, seed=seed),
        "dropout": lambda seed: learner(dropout=0.4, seed=seed),
    }


def test_many_pulls_are_one_long_fit_bit_for_bit():
    data = {"validation_data": VALID, "verbose": 0, **FITTING}
    whole = net(dropout=0.3).fit(*TRAIN, epochs=3, **data).history
    one = learner("val_accuracy", 3, dropout=0.3)
    assert [one.pull() for _ in range(3)] == whole["val_accuracy"]
    refuses(StopIteration, "", one.pull)
    assert learner(full_steps=3, dropout=0.3).pull(steps=4) == -whole["val_loss"][-1]


EMA = {"use_ema": True, "ema_momentum": 0.9}


def test_the_optimizer_s_average_is_scored_and_does_not_change_the_training():
    data = {"validation_data": VALID, "verbose": 0, **FITTING}
    plain = net()
    own = plain.fit(*TRAIN, epochs=3, **data).history["val_loss"]
    whole, swap = net(**EMA), keras.callbacks.SwapEMAWeights()  # it ends with averaged weights
    losses = whole.fit(*TRAIN, epochs=3, callbacks=[swap], **data).history["val_loss"]
    new, one = learner(**EMA), learner(**EMA)
    assert new.evaluate() == learner().evaluate() and same_weights(new.averaged_model, new.model)
    assert [-one.pull(), -one.pull(), -one.pull()] == losses
    assert same_weights(one.model, plain) and same_weights(one.averaged_model, whole)
    assert one.last_scores == {"model": -own[-1], "averaged_model": -losses[-1]}
    assert same_weights(one.model, plain)  # also after the average was scored and copied
    one.model.fit(*TRAIN, **data)  # Keras' own `fit` ends with averaged weights again
    assert same_weights(one.model, one.averaged_model)


def cosine():
    return keras.optimizers.schedules.CosineDecay(0.05, decay_steps=30)


MORE = [dict, lambda: {"dropout": 0.4}, lambda: {"schedule": cosine()}]
AVERAGED = [lambda: EMA, lambda: EMA | {"ema_overwrite_frequency": 3}]


@pytest.mark.parametrize("more", MORE + AVERAGED)
def test_a_resumed_learner_is_the_same_bit_for_bit(more):
    is_exact(lambda: learner(**more()))


def test_the_loss_on_training_rows_may_be_the_score():
    is_exact(lambda: learner("loss"))


class Stop(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.model.stop_training = epoch == 1


@pytest.mark.parametrize("pulls", [[3], [2], [1, 1]])
def test_a_callback_that_stops_ends_the_learner_and_it_stays_so(pulls, tmp_path):
    def build():
        return KerasLearner(net(), TRAIN, VALID, callbacks=[Stop()], **FITTING)

    one = build()
    scores = [one.pull(steps=steps) for steps in pulls]
    assert scores[-1] == one.evaluate() and one.steps == 2
    one.save(tmp_path)
    again = build()
    again.load(tmp_path)
    for ended in (one, again):
        refuses(StopIteration, "", ended.pull)


def test_what_is_wrong_is_said_in_one_line():
    made, bare = KerasLearner, keras.Sequential([keras.layers.Dense(2)])
    refuses(LearnerError, "KerasLearner has no evaluation set", made, net(), TRAIN)
    refuses(LearnerError, r"model=3, but model must be a keras\.Model", made, 3, TRAIN, VALID)
    refuses(LearnerError, "not compiled or built", made, bare, TRAIN, VALID)
    refuses(SettingError, "'val_speed' does not say whether higher is", learner, "val_speed")
    said = r"'val_auc' is not reported. Reported are: accuracy, "
    refuses(LearnerError, said, learner("val_auc").pull)
    refuses(SettingError, "epochs is set by the learner", made, net(), TRAIN, VALID, epochs=3)
    for kind in (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau):
        said, given = f"{kind.__name__} is given, but it counts", type("Mine", (kind,), {})
        refuses(SettingError, said, made, net(), TRAIN, VALID, callbacks=[given()])
    refuses(SettingError, "steps_per_epoch is set", made, net(), TRAIN, VALID, steps_per_epoch=2)
    swap = {"callbacks": [keras.callbacks.SwapEMAWeights()]}
    refuses(
        SettingError, "SwapEMAWeights is set by the learner", made, net(), TRAIN, VALID, **swap
    )


def test_a_log_has_a_line_for_each_epoch(tmp_path):
    log = keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    one = KerasLearner(net(), TRAIN, VALID, callbacks=[log], **FITTING)
    for steps in (1, 2, 1):
        one.pull(steps)
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["epoch", "0", "1", "2", "3"]


def test_learners_that_share_a_model_are_found():
    shared = net()
    one, other = (KerasLearner(shared, TRAIN, VALID, **FITTING) for _ in range(2))
    one.pull(), other.pull()
    refuses(LearnerError, "trained by another learner", one.pull)
