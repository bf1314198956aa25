"""Row scores and leads on new rows."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from latebloomer.errors import SettingError
from latebloomer.theory.leads import leads, sign_sums
from latebloomer.theory.row_scores import METRICS, mean_of_rows, row_scores

LABELS = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f1_macro": lambda y, p: metrics.f1_score(y, p, average="macro"),
    "f1_weighted": lambda y, p: metrics.f1_score(y, p, average="weighted"),
}
TWO_CLASSES = {
    "roc_auc": metrics.roc_auc_score,
    "neg_log_loss": lambda y, p: -metrics.log_loss(y, p),
    "neg_brier_score": lambda y, p: -metrics.brier_score_loss(y, p),
    "f1": lambda y, p: metrics.f1_score(y, p > 0.5),
}
NUMBERS = {
    "r2": metrics.r2_score,
    "neg_mean_squared_error": lambda y, p: -metrics.mean_squared_error(y, p),
    "neg_root_mean_squared_error": lambda y, p: -metrics.root_mean_squared_error(y, p),
    "neg_mean_absolute_error": lambda y, p: -metrics.mean_absolute_error(y, p),
}


def data(metric, rng, n=400):
    """Return true values and predictions that a metric can score, and scikit-learn's metric."""
    if metric in LABELS:
        y = rng.integers(0, 3, n)
        return y, np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n)), LABELS[metric]
    if metric in TWO_CLASSES:
        y = (rng.random(n) < 0.3).astype(int)
        p = np.round(1 / (1 + np.exp(-(2 * y - 1 + rng.normal(0, 1.5, n)))), 2).clip(0.01, 0.99)
        return y, (p > 0.5).astype(int) if metric == "f1" else p, TWO_CLASSES[metric]
    y = rng.normal(3, 2, n)
    return y, y + rng.normal(0, 1, n), NUMBERS[metric]


@pytest.mark.parametrize("metric", METRICS)
def test_the_score_is_scikit_learns_and_the_mean_of_its_parts(metric, rng):
    y, prediction, reference = data(metric, rng)
    kept = row_scores(metric, y, prediction)
    assert kept.score == pytest.approx(reference(y, prediction), abs=1e-12)
    assert kept.parts.mean() == pytest.approx(kept.score, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_the_parts_are_what_leaving_a_row_out_changes(metric, rng):
    # The influence of row i on a smooth metric is (n - 1) (s - s without i), up to O(1/n).
    y, prediction, _ = data(metric, rng)
    kept = row_scores(metric, y, prediction)
    n = len(y)
    left_out = np.array(
        [row_scores(metric, np.delete(y, i), np.delete(prediction, i)).score for i in range(40)]
    )
    influence = (n - 1) * (kept.score - left_out)
    spread = max(kept.parts.std(), 1e-3)
    assert np.abs(influence - (kept.parts[:40] - kept.score)).max() < 0.08 * spread + 12 / n


def test_a_function_is_scored_by_the_jackknife_and_its_error_is_that_of_the_formula(rng):
    y, prediction, _ = data("accuracy", rng, 4000)
    other = np.where(rng.random(4000) < 0.8, y, prediction)
    named = [sign_sums([row_scores("accuracy", y, p)]) for p in (other, prediction)]
    function = [
        sign_sums([row_scores(lambda t, p: float((t == p).mean()), y, p)])
        for p in (other, prediction)
    ]
    assert function[0].score == named[0].score
    ratio = leads(0, function)[1].error / leads(0, named)[1].error
    # An error from 40 blocks has 39 degrees of freedom: a relative sd of 1 / sqrt(78) = .11, and
    # of the 256 sums .06; Student's quantile adds .03. Five standard deviations: once in 10^6.
    assert abs(ratio - 1.03) < 5 * np.hypot(0.113, 0.0625)


def test_delongs_variance_by_hand():
    # Positives .35 and .8, negatives .1 and .4: components (.5, 1) and (1, .5), AUC .75.
    # S10 = S01 = .125; with sums of squares over n (not n - 1): .0625/2 + .0625/2 = .0625.
    kept = row_scores("roc_auc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    assert np.square(kept.parts - kept.score).sum() / 4**2 == pytest.approx(0.0625)


def test_sums_of_signs_give_the_standard_error_of_a_lead(rng):
    y, prediction, _ = data("roc_auc", rng, 2000)
    other = np.clip(prediction + rng.normal(0, 0.05, 2000), 0, 1)
    a, b = (row_scores("roc_auc", y, p) for p in (prediction, other))
    exact = np.sqrt(np.square((a.parts - b.parts) - (a.score - b.score)).sum()) / 2000
    lead = leads(0, [sign_sums([a]), sign_sums([b])])[1]
    # A mean of 256 squared normals has a relative sd of .088, its root .044: 5 sd, once in 10^6.
    assert lead.error == pytest.approx(exact, rel=5 * 0.0442)
    assert lead.lead == pytest.approx(a.score - b.score)


def test_two_models_that_agree_on_all_rows_are_as_uncertain_as_one_row():
    right = mean_of_rows([1, 0, 1, 1] * 50)
    lead = leads(0, [sign_sums([right]), sign_sums([right])])[1]
    assert lead.lead == 0 and lead.error == pytest.approx(1 / 200) and not lead.is_better


def test_folds_are_pooled_and_the_refit_widens_the_error(rng):
    parts = [rng.random(300), rng.random(300)]
    one = [sign_sums([mean_of_rows(p)]) for p in parts]
    thirds = [np.arange(300)[k::3] for k in range(3)]
    three = [sign_sums([mean_of_rows(p[rows], rows) for rows in thirds]) for p in parts]
    assert three[0].score == pytest.approx(one[0].score)
    # k = 3: sqrt(1 + 3/2); the folds' own means take 3 degrees of freedom of 300.
    ratio = leads(0, three)[1].error / leads(0, one)[1].error
    assert ratio == pytest.approx(np.sqrt(2.5), rel=0.02)


def test_rows_in_two_folds_are_refused():
    rows = np.arange(10)
    with pytest.raises(SettingError, match="occurs twice"):
        sign_sums([mean_of_rows(rows, rows), mean_of_rows(rows, rows)])


def test_models_of_other_rows_have_no_lead(rng):
    a, b = mean_of_rows(rng.random(50)), mean_of_rows(rng.random(50), np.arange(1, 51))
    assert leads(0, [sign_sums([a]), sign_sums([b]), None]) == {}


def test_groups_are_the_units_that_vary(rng):
    # Rows of a group are equal: 50 independent numbers, not 500.
    groups = np.repeat(np.arange(50), 10)
    parts = [np.repeat(rng.random(50), 10) for _ in range(2)]
    kept = []
    for own in parts:
        y = np.zeros(500)
        kept.append(sign_sums([row_scores("neg_mean_absolute_error", y, own, groups=groups)]))
    difference = parts[0][::10] - parts[1][::10]
    plain = difference.std(ddof=1) / np.sqrt(50) * stats.t.ppf(0.975, 49) / 1.959964
    assert leads(0, kept)[1].error == pytest.approx(plain, rel=5 * 0.0442)


@pytest.mark.parametrize("arms", [3, 10])
def test_leads_of_a_selected_winner_cover_the_truth(arms, rng):
    """At least 93 % of the intervals of selected winners hold the true lead."""
    rows, runs, covered, total = 400, 150, 0, 0
    for _ in range(runs):
        shared = rng.normal(size=rows)
        true = rng.normal(0, 0.01, arms)
        models = [mean_of_rows(m + shared + rng.normal(0, 0.3, rows)) for m in true]
        kept = [sign_sums([model]) for model in models]
        winner = int(np.argmax([one.score for one in kept]))
        for lead in leads(winner, kept).values():
            covered += abs(lead.lead - (true[winner] - true[lead.rival])) <= lead.margin
            total += 1
    # Rivals of a run are correlated: count a run as one trial of its mean coverage (variance of a
    # Bernoulli trial at most). A true coverage of .93 falls below this once in 10^6.
    assert covered / total > 0.93 - 4.76 * np.sqrt(0.93 * 0.07 / runs)


def test_signs_do_not_depend_on_the_order_of_rows(rng):
    parts, rows = rng.random(100), rng.permutation(1000)[:100]
    back = np.argsort(rows)
    a = sign_sums([mean_of_rows(parts, rows)])
    b = sign_sums([mean_of_rows(parts[back], rows[back])])
    assert np.allclose(a.sums, b.sums, atol=1e-5) and a.same_rows == b.same_rows
    assert len(a.sums) == 256 and all(x != y for x, y in pairwise(a.sums))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: row_scores("roc_auc", [1, 1], [0.2, 0.3]),
            "two classes among the validation rows",
        ),
        (lambda: row_scores("rok_auc", [0, 1], [0.2, 0.3]), "did you mean 'roc_auc'"),
        (lambda: row_scores("accuracy", [0, 1], [0]), "one prediction for each"),
        (lambda: mean_of_rows([[1, 2]]), "one finite number for each"),
        (lambda: mean_of_rows([1, float("nan")]), "one finite number for each"),
    ],
)
def test_wrong_row_scores_are_explained(call, words):
    with pytest.raises(SettingError, match=words):
        call()
