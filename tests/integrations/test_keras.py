"""`KerasLearner`: `fit(initial_epoch=...)`, the same after a resume; the backend is torch."""

import os

import pytest
from libraries import is_exact, library, refuses, two_classes

from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.keras import KerasLearner

torch = library("torch")
os.environ["KERAS_BACKEND"] = "torch"  # before it is imported for the first time
keras = library("keras")

TRAIN, VALID = two_classes(120)
FITTING = {"batch_size": 32}


def net(width=4, dropout=0.0, schedule=0.02, seed=1):
    torch.set_num_threads(1)
    keras.utils.set_random_seed(seed)
    layers = [keras.layers.Dense(width, "relu"), keras.layers.BatchNormalization()]
    layers += [keras.layers.Dropout(dropout)] if dropout else []
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(2, "softmax")])
    loss = "sparse_categorical_crossentropy"
    model.compile(keras.optimizers.Adam(schedule), loss, metrics=["accuracy"])
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


def cosine():
    return keras.optimizers.schedules.CosineDecay(0.05, decay_steps=30)


@pytest.mark.parametrize("more", [dict, lambda: {"dropout": 0.4}, lambda: {"schedule": cosine()}])
def test_a_resumed_learner_is_the_same_bit_for_bit(more):
    is_exact(lambda: learner(**more()))


def test_a_callback_that_stops_ends_the_learner():
    stop = keras.callbacks.Callback()
    stop.on_epoch_end = lambda epoch, logs=None: setattr(stop.model, "stop_training", True)
    one = KerasLearner(net(), TRAIN, VALID, callbacks=[stop], **FITTING)
    refuses(StopIteration, "", one.pull, steps=3)


def test_what_is_wrong_is_said_in_one_line():
    made, bare = KerasLearner, keras.Sequential([keras.layers.Dense(2)])
    refuses(LearnerError, "KerasLearner has no evaluation set", made, net(), TRAIN)
    refuses(LearnerError, r"model=3, but model must be a keras\.Model", made, 3, TRAIN, VALID)
    refuses(LearnerError, "not compiled or built", made, bare, TRAIN, VALID)
    refuses(SettingError, "'val_speed' does not say whether higher is", learner, "val_speed")
    said = r"'val_auc' is not reported. Reported are: accuracy, "
    refuses(LearnerError, said, learner("val_auc").pull)
    refuses(SettingError, "epochs is given to fit by", made, net(), TRAIN, VALID, epochs=3)
    averaging = net()
    averaging.optimizer.use_ema = True
    refuses(SettingError, "use_ema replaces the weights", made, averaging, TRAIN, VALID)
