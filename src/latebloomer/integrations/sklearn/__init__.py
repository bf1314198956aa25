"""scikit-learn: `SklearnLearner` makes a learner of an estimator, `RaceSearchCV` races many."""

from latebloomer.errors import extra

extra("sklearn", "scikit-learn adapters", "sklearn")  # says what to install, before what follows

from latebloomer.integrations.sklearn.search import NoneLearns, RaceSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner  # noqa: E402

__all__ = ["NoneLearns", "RaceSearchCV", "SklearnLearner"]
