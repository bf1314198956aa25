"""scikit-learn: `SklearnLearner` makes a learner of an estimator, `RaceSearchCV` races many."""

from latebloomer.errors import extra

extra("sklearn", "scikit-learn adapters", "sklearn")  # says what to install, before what follows

from latebloomer.race.adapters.estimator import SklearnLearner  # noqa: E402
from latebloomer.race.adapters.search import NoneLearns, RaceSearchCV  # noqa: E402

__all__ = ["NoneLearns", "RaceSearchCV", "SklearnLearner"]
