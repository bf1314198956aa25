"""`LightGBMLearner`: rounds on a live booster, the same after a resume."""

import numpy as np
import pytest
from libraries import ends_as_if_never_killed, library, two_classes

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.lightgbm import LightGBMLearner

lightgbm = library("lightgbm")

TRAIN, VALID = two_classes()
PARAMS = {"objective": "binary", "num_threads": 1, "seed": 3, "min_data_in_leaf": 5}
SAMPLED = {"subsample": 0.6, "subsample_freq": 1, "colsample_bytree": 0.7}


def learner(metric="binary_logloss", full_steps=None, **more):
    return LightGBMLearner(PARAMS | more, TRAIN, VALID, metric=metric, full_steps=full_steps)


def learners():
    return {
        "stumps": lambda: learner(num_leaves=2),
        "sampled": lambda: learner(num_leaves=6, **SAMPLED),
        "fast": lambda: learner(num_leaves=6, learning_rate=0.5),
    }


def trained(rounds, metric, **more):
    """What LightGBM's own training gives."""
    train = lightgbm.Dataset(*TRAIN)
    scores = {}
    lightgbm.train(
        PARAMS | more | {"metric": metric, "verbosity": -1}, train, rounds,
        valid_sets=[lightgbm.Dataset(*VALID, reference=train)], valid_names=["v"],
        callbacks=[lightgbm.record_evaluation(scores)],
    )  # fmt: skip
    return scores["v"][metric]


def test_without_sampling_it_is_lightgbms_own_training_bit_for_bit():
    one = learner("auc", num_leaves=6)
    assert [one.pull() for _ in range(8)] == trained(8, "auc", num_leaves=6)
    assert one.rounds == 8


def test_steps_are_rounds_with_one_score():
    assert learner("auc").pull(steps=5) == trained(5, "auc")[-1]


def test_of_a_loss_the_score_is_the_negative():
    assert [learner().pull()] == [-value for value in trained(1, "binary_logloss")]


@pytest.mark.parametrize(
    "more",
    [{}, SAMPLED, {"bagging_fraction": 0.5, "bagging_freq": 3}, {"feature_fraction_bynode": 0.5},
     {"extra_trees": True}, {"data_sample_strategy": "goss", "learning_rate": 0.5}],
    ids=str,
)  # fmt: skip
def test_a_resumed_learner_is_the_same_bit_for_bit(more):
    check = check_learner(lambda: learner(**more), pulls=4)
    assert check.saves and check.exact, str(check)


def test_dart_is_not_exact_and_nearly_so_at_first():
    """Its earlier trees are dropped and weighed anew, which a model on disk does not let it do."""
    check = check_learner(lambda: learner(boosting="dart", drop_rate=0.5, skip_drop=0), pulls=3)
    assert check.saves and not check.exact
    assert np.allclose(check.expected, check.resumed, atol=0.1)


def test_a_race_killed_and_resumed_ends_the_same(tmp_path):
    verdict = ends_as_if_never_killed(__file__, learners, tmp_path)
    assert verdict.learner.rounds == verdict.pulls[verdict.name]


def test_a_full_training_ends():
    one = learner("auc", full_steps=5)
    one.pull(steps=3)
    assert one.pull(steps=3) == trained(5, "auc")[-1]
    with pytest.raises(StopIteration):
        one.pull()


def test_the_rounds_of_params_are_the_full_training():
    assert learner(n_estimators=40).full_steps == 40
    with pytest.raises(SettingError, match="full_steps=9, but params has 40 rounds: say it once"):
        learner(n_estimators=40, full_steps=9)


def test_a_dataset_may_be_shared_by_learners_with_other_settings():
    train = lightgbm.Dataset(*TRAIN, free_raw_data=False)
    valid = lightgbm.Dataset(*VALID, reference=train, free_raw_data=False)
    given = {
        f"{bins} bins": LightGBMLearner(PARAMS | {"max_bin": bins}, train, valid, metric="auc")
        for bins in (4, 63)
    }
    verdict = race(given, budget=8, journal=None, progress=False)
    assert verdict.learner is given[verdict.name]


def test_a_metric_of_the_users_own():
    def share_right(booster, valid):
        X, y = valid
        return ((booster.predict(X) > 0.5) == y).mean()

    one = LightGBMLearner(PARAMS, TRAIN, VALID, metric=share_right)
    assert one.pull() == pytest.approx(1 - trained(1, "binary_error")[-1])


def test_what_is_wrong_is_said_in_one_line():
    with pytest.raises(LearnerError, match="LightGBMLearner has no evaluation set"):
        LightGBMLearner(PARAMS, TRAIN, metric="auc")
    with pytest.raises(SettingError, match="metric='acu', but LightGBM knows no such metric"):
        learner("acu")
    with pytest.raises(SettingError, match="metric='auc', but params has metric='l2': name it"):
        LightGBMLearner(PARAMS | {"metric": "l2"}, TRAIN, VALID, metric="auc")
    with pytest.raises(SettingError, match="gives auc, binary_error, but a race has one score"):
        learner("auc,binary_error")
    with pytest.raises(LearnerError, match=r"valid=3, but valid must be a Dataset or \(X, y\)"):
        LightGBMLearner(PARAMS, TRAIN, 3, metric="auc")
    with pytest.raises(LearnerError, match="boosting='rf' cannot be trained on"):
        learner(boosting="rf", **SAMPLED)
    with pytest.raises(SettingError, match="params stops early"):
        learner(early_stopping_round=3)
    gone = lightgbm.Dataset(*TRAIN, params={"verbosity": -1}).construct()
    with pytest.raises(LearnerError, match="train has let go of its rows"):
        LightGBMLearner(PARAMS, gone, VALID, metric="auc")
