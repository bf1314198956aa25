"""
Compare a net with a forest by full trainings
=============================================

An epoch of a net and a tree of a forest are not comparable. The same fraction of each learner's
*full training* is: after the same number of pulls, all learners have had the same fraction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from latebloomer import full_training, race

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X / 16, y, random_state=0)


@full_training(60)  # epochs
def net():
    model = MLPClassifier((48, 48), random_state=0)
    for _ in range(60):
        model.partial_fit(X, y, classes=np.arange(10))
        yield model.score(X_val, y_val), model


@full_training(30)  # trees
def forest():
    model = RandomForestClassifier(0, max_depth=7, warm_start=True, random_state=0)
    for trees in range(1, 31):
        model.set_params(n_estimators=trees).fit(X, y)
        yield model.score(X_val, y_val), model


learners = {"net": net, "forest": forest}
verdict = race(learners, trainings=1.5, score_range=(0, 1), journal=None, progress=False)
print(verdict)

# %%

verdict.plot()
plt.show()
