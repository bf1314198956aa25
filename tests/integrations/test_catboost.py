"""`CatBoostLearner`: each pull goes on from CatBoost's own snapshot."""

import numpy as np
import pytest
from libraries import ends_as_if_never_killed, library, two_classes

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.catboost import CatBoostLearner

catboost = library("catboost")

TRAIN, VALID = two_classes()
PARAMS = {"loss_function": "Logloss", "thread_count": 1, "random_seed": 3, "depth": 3}
SAMPLED = {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5}
CATEGORIES = catboost.Pool(
    [[float(x), "high" if z > 0.5 else "low"] for x, z in TRAIN[0][:, :2]],
    TRAIN[1],
    cat_features=[1],
)


def learner(metric="Logloss", full_steps=20, **more):
    return CatBoostLearner(PARAMS | more, TRAIN, VALID, metric=metric, full_steps=full_steps)


def learners():
    return {
        "shallow": lambda: learner(depth=1),
        "sampled": lambda: learner(**SAMPLED),
        "fast": lambda: learner(learning_rate=0.9),
    }


def trained(metric, full_steps=20, **more):
    """What CatBoost's own training gives in one go."""
    model = catboost.CatBoost(
        PARAMS | more | {"eval_metric": metric, "iterations": full_steps, "use_best_model": False,
                         "logging_level": "Silent", "allow_writing_files": False}
    )  # fmt: skip
    model.fit(catboost.Pool(*TRAIN), eval_set=catboost.Pool(*VALID))
    return model.get_evals_result()["validation"][metric]


@pytest.mark.parametrize("more", [{}, SAMPLED, {"boosting_type": "Ordered"}], ids=str)
def test_many_pulls_are_one_long_training_bit_for_bit(more):
    one, whole = learner("AUC", **more), trained("AUC", **more)
    assert [one.pull() for _ in range(4)] == whole[:4]
    assert one.pull(steps=16) == whole[-1] and one.rounds == 20
    with pytest.raises(StopIteration):
        one.pull()


def test_of_a_loss_the_score_is_the_negative():
    assert learner().pull(steps=2) == -trained("Logloss")[1]


@pytest.mark.parametrize("more", [{}, SAMPLED, {"boosting_type": "Ordered"}], ids=str)
def test_a_resumed_learner_is_the_same_bit_for_bit(more):
    check = check_learner(lambda: learner(**more), pulls=4)
    assert check.saves and check.exact, str(check)


def test_categories_are_no_exception():
    def build():
        return CatBoostLearner(PARAMS, CATEGORIES, CATEGORIES, metric="AUC", full_steps=12)

    check = check_learner(build, pulls=3)
    assert check.exact, str(check)


def test_a_race_killed_and_resumed_ends_the_same(tmp_path):
    verdict = ends_as_if_never_killed(__file__, learners, tmp_path)
    assert verdict.learner.rounds == verdict.pulls[verdict.name]
    assert verdict.learner.model.predict(VALID[0]).shape == (len(VALID[1]),)


def test_it_can_be_saved_before_its_first_pull(tmp_path):
    learner().save(tmp_path)
    again = learner()
    again.pull()
    again.load(tmp_path)
    assert again.rounds == 0 and again.pull() == learner().pull()


def test_the_learning_rate_is_the_one_of_the_full_training():
    one, rate = learner(full_steps=50), []
    one.pull()
    rate.append(one.model.get_all_params()["learning_rate"])
    whole = catboost.CatBoost(PARAMS | {"iterations": 50, "logging_level": "Silent",
                                        "allow_writing_files": False})  # fmt: skip
    whole.fit(catboost.Pool(*TRAIN), eval_set=catboost.Pool(*VALID), use_best_model=False)
    assert rate == [whole.get_all_params()["learning_rate"]]


def test_the_iterations_of_params_are_the_full_training():
    assert learner(full_steps=None, n_estimators=40).full_steps == 40
    assert learner(full_steps=None).full_steps == 1000  # CatBoost's own
    with pytest.raises(SettingError, match="full_steps=9, but params has 40 rounds: say it once"):
        learner(full_steps=9, iterations=40)


def test_a_metric_of_the_users_own():
    def share_right(model, valid):
        return (model.predict(valid, prediction_type="Class") == valid.get_label()).mean()

    one = CatBoostLearner(PARAMS, TRAIN, VALID, metric=share_right, full_steps=20)
    assert one.pull() == pytest.approx(trained("Accuracy")[0])


def test_it_races_as_an_object_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"shallow": learner(depth=1), "deep": learner(depth=4)}
    verdict = race(given, budget=8, journal=None, progress=False)
    assert verdict.learner is given[verdict.name]
    assert list(tmp_path.iterdir()) == []  # no catboost_info


def test_what_is_wrong_is_said_in_one_line():
    with pytest.raises(LearnerError, match="CatBoostLearner has no evaluation set"):
        CatBoostLearner(PARAMS, TRAIN, metric="AUC")
    with pytest.raises(SettingError, match="metric='acu', but CatBoost knows no such metric"):
        learner("acu")
    with pytest.raises(SettingError, match="metric='AUC', but params has eval_metric='R2'"):
        learner("AUC", eval_metric="R2")
    with pytest.raises(LearnerError, match=r"train=3, but train must be a Pool or \(X, y\)"):
        CatBoostLearner(PARAMS, 3, VALID, metric="AUC")
    with pytest.raises(LearnerError, match=r"train=array.* must be a Pool"):
        CatBoostLearner(PARAMS, np.zeros(3), VALID, metric="AUC")
