"""
Race tuners of different algorithms
===================================

Each learner is an Optuna study; a pull is one trial, and the score is its best value so far.
"""

import matplotlib.pyplot as plt
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from latebloomer import race
from latebloomer.integrations.optuna import TunerLearner

optuna.logging.set_verbosity(optuna.logging.WARNING)
X, y = load_breast_cancer(return_X_y=True)


def accuracy(model):
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=3).mean()


def svm(trial):
    cost = trial.suggest_float("C", 1e-3, 1e3, log=True)
    return accuracy(SVC(C=cost, gamma=trial.suggest_float("gamma", 1e-5, 10, log=True)))


def neighbors(trial):
    return accuracy(KNeighborsClassifier(trial.suggest_int("n_neighbors", 1, 30)))


def tree(trial):
    return accuracy(DecisionTreeClassifier(max_depth=trial.suggest_int("depth", 1, 12)))


learners = {
    objective.__name__: lambda seed, objective=objective: TunerLearner(objective, seed=seed)
    for objective in (svm, neighbors, tree)
}
verdict = race(learners, budget=60, journal=None, progress=False)
print(verdict.name, verdict.learner.study.best_params)

# %%

verdict.plot()
plt.show()
