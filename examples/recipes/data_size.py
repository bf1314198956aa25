"""Data size as the fidelity: a step trains a new model on more rows.

For models that cannot be trained further, such as kernel machines: the curve is a learning curve
over rows, and the last step has all of them. Steps cost more as rows grow, so race with `seconds=`
if the models differ much in that.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from latebloomer import full_training, race

STEPS = 20
X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
TRAIN, VALID = ORDER[:1300], ORDER[1300:]


def growing(model):
    @full_training(STEPS)
    def train():
        for rows in np.linspace(65, len(TRAIN), STEPS).astype(int):  # the same order for all
            model.fit(X[TRAIN[:rows]], Y[TRAIN[:rows]])
            yield model.score(X[VALID], Y[VALID]), model

    return train


LEARNERS = {
    "kernel": growing(SVC(C=10)),
    "linear": growing(SVC(kernel="linear")),
    "neighbors": growing(KNeighborsClassifier(3)),
}

if __name__ == "__main__":
    print(race(LEARNERS, trainings=1.5))
