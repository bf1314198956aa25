"""Estimators that ask to stop early: judged on the race's held-out rows, kept at their best."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latebloomer import RaceSearchCV
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.sklearn import SklearnLearner
from tests.helpers.libraries import library, refuses

pytestmark = pytest.mark.usefixtures("one_thread")

X, Y = make_classification(400, 12, n_informative=4, flip_y=0.3, random_state=0)
X_TRAIN, X_HELD, Y_TRAIN, Y_HELD = train_test_split(X, Y, test_size=0.4, random_state=0)
ROUNDS, PATIENCE = 300, 12
CLASSES = {
    "xgboost": ("XGBClassifier", {"early_stopping_rounds": PATIENCE, "n_jobs": 1}),
    "lightgbm": (
        "LGBMClassifier",
        {"early_stopping_round": PATIENCE, "n_jobs": 1, "verbosity": -1, "learning_rate": 0.3},
    ),
    "catboost": (
        "CatBoostClassifier",
        {"od_wait": PATIENCE, "thread_count": 1, "logging_level": "Silent", "learning_rate": 0.3},
    ),
}
BOOSTERS = list(CLASSES)


def booster(name, **settings):
    """Return an estimator that overfits these rows long before its declared rounds."""
    kind, own = CLASSES[name]
    given = {"n_estimators": ROUNDS, "random_state": 0, **own, **settings}
    return getattr(library(name), kind)(**given)


def alone(name, **settings):
    """Return the same estimator without early stopping."""
    off = {"xgboost": "early_stopping_rounds", "lightgbm": "early_stopping_round"}
    return booster(name, **({off[name]: None} if name in off else {}), **settings)


def learner(estimator, **settings):
    given = {"batch": None, "scoring": "neg_log_loss", "random_state": 0}
    given |= {"validation": (X_HELD, Y_HELD)} | settings
    return SklearnLearner(estimator, X_TRAIN, Y_TRAIN, **given)


def steps_of_a_pull(one):
    """Return 3, or 1 if a step has several rounds or is an epoch."""
    return 3 if "boosting: 1 more" in one.how else 1


def pulled(one):
    """Return the scores of all pulls until the learner has finished."""
    scores = []
    while not one.finished:
        scores.append(one.pull(steps_of_a_pull(one)))
    return scores


@pytest.mark.parametrize("name", BOOSTERS)
def test_it_ends_when_its_own_patience_is_over_and_is_kept_at_its_best(name):
    one = learner(booster(name))
    step, steps = one.iterations(1), steps_of_a_pull(one)
    scores = pulled(one)
    best = int(np.argmax(scores[:-1]))
    rounds = (best + 1) * steps * step
    waited = (len(scores) - best - 1) * steps * step
    assert PATIENCE <= waited < PATIENCE + steps * step < ROUNDS
    assert scores[-1] == scores[best] == one.score and one.best_steps * step == rounds
    plain = alone(name).set_params(n_estimators=rounds if name != "catboost" else ROUNDS)
    plain.fit(X_TRAIN, Y_TRAIN)
    if name == "catboost":  # its learning rate may depend on all rounds
        plain.shrink(ntree_end=rounds)
    found = one.model.predict_proba(X_HELD)
    assert np.array_equal(found, plain.predict_proba(X_HELD))
    assert -log_loss(Y_HELD, found) == pytest.approx(one.score)


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_restored_one_ends_alike(name, tmp_path):
    first = learner(booster(name))
    whole = pulled(first)
    one, at = learner(booster(name)), len(whole) - 2  # beyond its best
    for _ in range(at):
        one.pull(steps_of_a_pull(one))
    held = one.model.predict_proba(X_HELD)  # of the best iteration so far
    one.save(tmp_path)
    again = learner(booster(name))
    again.load(tmp_path)
    assert np.array_equal(again.model.predict_proba(X_HELD), held)
    assert pulled(again) == whole[at:] and again.best_steps == first.best_steps


@pytest.mark.parametrize("name", BOOSTERS)
def test_folds_end_together_by_their_mean_score(name):
    one = learner(booster(name), validation=3)
    scores = pulled(one)
    best = int(np.argmax(scores[:-1]))
    assert one.best_steps == (best + 1) * steps_of_a_pull(one) and scores[-1] == scores[best]
    assert len({model.steps for model in one._models}) == 1


NET = MLPClassifier(
    (64,), max_iter=200, learning_rate_init=0.02, early_stopping=True, n_iter_no_change=4, tol=0.0
)
LINEAR = SGDClassifier(loss="log_loss", early_stopping=True, n_iter_no_change=4, tol=0.0)


@pytest.mark.parametrize("model", [NET, LINEAR, make_pipeline(StandardScaler(), NET)], ids=str)
def test_nets_and_linear_models_train_by_epochs_and_come_back_as_they_were_best(model, tmp_path):
    one = learner(clone(model))
    assert "until" in one.how and one.full_steps > 100
    scores = pulled(one)
    best = int(np.argmax(scores[:-1]))
    assert one.steps < one.full_steps and scores[-1] == scores[best]
    other = learner(clone(model))
    for _ in range(best + 2):  # one epoch beyond the best
        other.pull()
    other.save(tmp_path)
    restored = learner(clone(model))
    restored.load(tmp_path)
    for each in (one, other, restored):
        assert each.best_steps == best + 1
        loss = log_loss(Y_HELD, each.model.predict_proba(X_HELD))
        assert -loss == pytest.approx(scores[best])
    assert pulled(restored) == scores[best + 2 :]
    last = one.model[-1] if hasattr(one.model, "steps") else one.model
    assert last.early_stopping  # the user's setting


@pytest.mark.parametrize("name", ["lightgbm"])
def test_the_refit_has_the_best_iteration_on_all_rows(name):
    models = {"booster": booster(name), "bayes": GaussianNB()}
    found = RaceSearchCV(
        models, trainings=3, scoring="neg_log_loss", random_state=0, cv=0.4
    ).fit(X, Y)  # fmt: skip
    assert found.best_name_ == "booster" and found.refit_kind_ == "refit"
    rounds = found.best_iteration_
    assert 0 < rounds < ROUNDS / 2 and found.best_estimator_.n_estimators == rounds
    assert found.verdict_["booster"].best_steps == rounds
    assert found.best_score_ == found.verdict_["booster"].best_score
    seed = found.best_estimator_.random_state
    plain = alone(name, n_estimators=rounds, random_state=seed).fit(X, Y)
    assert np.array_equal(found.predict_proba(X), plain.predict_proba(X))


def test_without_a_refit_the_model_of_the_race_is_the_best_one():
    models = {"booster": booster("lightgbm"), "bayes": GaussianNB()}
    found = RaceSearchCV(
        models, trainings=2, refit=False, scoring="neg_log_loss", random_state=0
    ).fit(X, Y)  # fmt: skip
    assert found.best_estimator_.n_estimators == found.best_iteration_ < ROUNDS / 2
    assert found.best_estimator_.booster_.num_trees() == found.best_iteration_


def test_a_winner_that_the_race_has_not_brought_to_its_best_is_trained_on_before_the_refit():
    """A small budget: the booster still rises when the race ends."""
    slow = booster("lightgbm", learning_rate=0.01)
    models = {"booster": slow, "worse": booster("lightgbm", learning_rate=1e-6)}
    found = RaceSearchCV(models, trainings=1.4, scoring="neg_log_loss", random_state=0).fit(X, Y)
    raced = found.verdict_["booster"]
    assert raced.best_steps == raced.steps and found.best_iteration_ > raced.steps
    assert found.refit_pulls_ <= found.verdict_.settings["pulls_per_training"]


def test_best_iteration_can_be_switched_off_and_on():
    never = learner(booster("lightgbm", n_estimators=60), best_iteration=False)
    scores = pulled_to_the_end(never, 60)
    assert not never.finished and never.score == scores[-1] < max(scores)
    always = learner(RandomForestClassifier(30, random_state=0), best_iteration=True)
    scores = pulled_to_the_end(always, 30)
    assert always.score == max(scores) and always.model.n_estimators == always.best_steps
    assert -log_loss(Y_HELD, always.model.predict_proba(X_HELD)) == pytest.approx(always.score)
    refuses(SettingError, "best_iteration='yes', but best_iteration must be True, False or None",
            learner, GaussianNB(), best_iteration="yes")  # fmt: skip


def pulled_to_the_end(one, steps):
    scores = []
    while one.steps < steps and not one.finished:
        scores.append(one.pull())
    return scores


def test_what_cannot_be_judged_on_held_out_rows_is_refused():
    said = "stops by CatBoost's own test .IncToDec., which a race cannot make: give early_stopping"
    refuses(LearnerError, said, learner, booster("catboost", od_wait=None, od_pval=0.01))


def test_callbacks_and_rounds_of_another_kind_are_refused():
    refuses(LearnerError, "has callbacks=.*, which a race does not call: give early_stopping_ro",
            learner, alone("xgboost", callbacks=[object()]))  # fmt: skip


def test_rounds_of_another_kind_are_refused():
    refuses(LearnerError, "early_stopping_round=2.5, but early_stopping_round must be an integer",
            learner, booster("lightgbm", early_stopping_round=2.5))  # fmt: skip
