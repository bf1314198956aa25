"""`XGBoostLearner`: rounds on a live booster, the same after a resume."""

from functools import partial

import pytest
from libraries import ends_as_if_never_killed, library, two_classes

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, SettingError, UnknownName
from latebloomer.integrations.xgboost import XGBoostLearner

xgboost = library("xgboost")

TRAIN, VALID = two_classes()
PARAMS = {"objective": "binary:logistic", "nthread": 1, "seed": 3, "eta": 0.1}
SAMPLED = {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bynode": 0.7}


def learner(metric="auc", full_steps=None, **more):
    return XGBoostLearner(PARAMS | more, TRAIN, VALID, metric=metric, full_steps=full_steps)


def learners():
    return {
        "shallow": lambda: learner("logloss", max_depth=1),
        "sampled": lambda: learner("logloss", max_depth=3, **SAMPLED),
        "fast": lambda: learner("logloss", max_depth=3, eta=0.5),
    }


def trained(rounds, metric, **more):
    """What XGBoost's own training gives."""
    train, valid = (xgboost.DMatrix(X, label=y) for X, y in (TRAIN, VALID))
    scores = {}
    xgboost.train(
        PARAMS | more | {"eval_metric": metric}, train, rounds, evals=[(valid, "v")],
        evals_result=scores, verbose_eval=False,
    )  # fmt: skip
    return scores["v"][metric]


def test_without_sampling_it_is_xgboosts_own_training_bit_for_bit():
    one = learner("auc", max_depth=3)
    assert [one.pull() for _ in range(8)] == trained(8, "auc", max_depth=3)
    assert one.rounds == 8


def test_steps_are_rounds_with_one_score():
    one = learner("auc")
    assert one.pull(steps=5) == trained(5, "auc")[-1]


def test_of_a_loss_the_score_is_the_negative():
    assert [learner("logloss").pull()] == [-value for value in trained(1, "logloss")]


@pytest.mark.parametrize(
    "more",
    [{}, SAMPLED, {"booster": "dart", "rate_drop": 0.5},
     {"tree_method": "exact", "subsample": 0.5}, {"num_parallel_tree": 3, "subsample": 0.5},
     {"booster": "gblinear"}],
    ids=str,
)  # fmt: skip
def test_a_resumed_learner_is_the_same_bit_for_bit(more):
    check = check_learner(lambda: learner("logloss", **more), pulls=4)
    assert check.saves and check.exact, str(check)


def test_another_learner_in_between_changes_nothing():
    alone = learner(**SAMPLED)
    scores = [alone.pull() for _ in range(4)]
    one, other = learner(**SAMPLED), learner(**SAMPLED, max_depth=2)
    assert [(one.pull(), other.pull())[0] for _ in range(4)] == scores


def test_a_race_killed_and_resumed_ends_the_same(tmp_path):
    verdict = ends_as_if_never_killed(__file__, learners, tmp_path)
    assert verdict.learner.model.num_boosted_rounds() == verdict.pulls[verdict.name]


def test_a_full_training_ends():
    one = learner(full_steps=5)
    assert one.full_steps == 5
    assert one.pull(steps=3) is not None and one.pull(steps=3) == trained(5, "auc")[-1]
    with pytest.raises(StopIteration):
        one.pull()


def test_a_metric_of_the_users_own():
    def share_right(booster, valid):
        return ((booster.predict(valid) > 0.5) == valid.get_label()).mean()

    right = 1 - trained(1, "error")[-1]
    one = XGBoostLearner(PARAMS, TRAIN, VALID, metric=share_right)
    assert one.pull() == pytest.approx(right)
    down = XGBoostLearner(PARAMS, TRAIN, VALID, metric=share_right, maximize=False)
    assert down.pull() == pytest.approx(-right)


def test_a_race_by_trainings_knows_the_rounds_of_a_partial():
    given = {
        name: partial(XGBoostLearner, PARAMS | more, TRAIN, VALID, metric="auc", full_steps=rounds)
        for name, more, rounds in [("a", {"max_depth": 1}, 20), ("b", {"max_depth": 3}, 60)]
    }
    verdict = race(given, trainings=0.8, journal=None, progress=False)
    share = verdict.pulls[verdict.name] / 20
    full_steps = given[verdict.name].keywords["full_steps"]
    more = {"max_depth": 1 if verdict.name == "a" else 3}
    assert verdict.learner.rounds == share * full_steps
    assert verdict.score == trained(verdict.learner.rounds, "auc", **more)[-1]


def test_it_races_as_an_object_too():
    given = {"shallow": learner(max_depth=1), "deep": learner(max_depth=4)}
    verdict = race(given, budget=10, journal=None, progress=False)
    assert verdict.learner is given[verdict.name]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    one = learner(max_depth=2)
    one.pull()
    one.save(tmp_path)
    with pytest.raises(
        LearnerError, match=r"the checkpoint's settings is .* give the learner that"
    ):
        learner(max_depth=3).load(tmp_path)


def test_what_is_wrong_is_said_in_one_line():
    with pytest.raises(LearnerError, match="XGBoostLearner has no evaluation set"):
        XGBoostLearner(PARAMS, TRAIN, metric="auc")
    with pytest.raises(UnknownName, match="no metric of XGBoost is called 'acu'; did you mean"):
        learner("acu")
    with pytest.raises(SettingError, match="metric=None, but a race needs a score"):
        learner(None)
    with pytest.raises(SettingError, match="metric='auc', but params has eval_metric='error'"):
        learner("auc", eval_metric="error")
    with pytest.raises(SettingError, match="metric must be one name, or a function"):
        learner(["auc", "error"])
    with pytest.raises(LearnerError, match=r"train=3, but train must be a DMatrix or \(X, y\)"):
        XGBoostLearner(PARAMS, 3, VALID, metric="auc")
    with pytest.raises(SettingError, match="full_steps=0, but full_steps must be at least 1"):
        learner(full_steps=0)
