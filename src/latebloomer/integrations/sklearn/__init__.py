"""scikit-learn: a learner of an estimator, and searches that race.

`SklearnLearner` makes a learner of an estimator, `RaceSearchCV` races several, and
`RaceRandomSearchCV` many settings of one.
"""

from latebloomer.errors import extra

extra("sklearn", "scikit-learn adapters", "sklearn")  # says what to install, before what follows

from latebloomer.integrations.sklearn.base_search import NoneLearns  # noqa: E402
from latebloomer.integrations.sklearn.random_search import RaceRandomSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.search import RaceSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner  # noqa: E402

__all__ = ["NoneLearns", "RaceRandomSearchCV", "RaceSearchCV", "SklearnLearner"]
