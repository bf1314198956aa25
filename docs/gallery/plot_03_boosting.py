"""
Find the best settings of LightGBM
==================================

Boosters with small and large learning rates: the small ones are slow at first. A step is a
boosting round, and the race spends two full trainings on five boosters.
"""

from functools import partial

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from latebloomer import race
from latebloomer.integrations.lightgbm import LightGBMLearner

X, y = load_breast_cancer(return_X_y=True)
X, X_val, y, y_val = train_test_split(X, y, random_state=0)


def booster(**params):
    params = {"objective": "binary", "num_threads": 1, "verbose": -1} | params
    data = (X, y), (X_val, y_val)
    return partial(LightGBMLearner, params, *data, metric="binary_logloss", full_steps=150)


learners = {
    f"rate {rate}": booster(learning_rate=rate, num_leaves=15)
    for rate in (0.01, 0.03, 0.1, 0.3, 0.6)
}
verdict = race(learners, trainings=2, journal=None, progress=False)
print(verdict)

# %%
# The score is the negative loss.

verdict.plot()
plt.show()
