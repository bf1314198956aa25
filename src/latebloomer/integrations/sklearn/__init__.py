"""scikit-learn: an estimator as a learner, and searches that race.

`SklearnLearner` makes a learner of an estimator, `RaceSearchCV` races several, and
`RaceRandomSearchCV` many settings of one.
"""

from latebloomer.errors import extra

extra("sklearn", "scikit-learn adapters", "sklearn")  # what to install, before what follows

from latebloomer.integrations.sklearn.search_race import NoneLearns  # noqa: E402
from latebloomer.integrations.sklearn.searches import RaceRandomSearchCV, RaceSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner  # noqa: E402

__all__ = ["NoneLearns", "RaceRandomSearchCV", "RaceSearchCV", "SklearnLearner"]
