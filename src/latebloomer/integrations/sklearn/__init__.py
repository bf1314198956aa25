"""scikit-learn: an estimator as a learner, and searches that race.

`SklearnLearner` makes a learner of an estimator. `RaceSearchCV` races several estimators, and
`RaceRandomSearchCV` races many settings of one estimator. `tabular_models` returns models for a
table with text, categories, dates and missing values.
"""

from latebloomer.errors import extra

extra("sklearn", "scikit-learn adapters", "sklearn")  # raises an error that says what to install

from latebloomer.integrations.sklearn.named_search import RaceSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.random_search import RaceRandomSearchCV  # noqa: E402
from latebloomer.integrations.sklearn.search_race import NoneLearns  # noqa: E402
from latebloomer.integrations.sklearn.sklearn_learner import SklearnLearner  # noqa: E402
from latebloomer.integrations.sklearn.table_encoder import TableEncoder  # noqa: E402
from latebloomer.integrations.sklearn.tables import tabular_models  # noqa: E402

__all__ = ["NoneLearns", "RaceRandomSearchCV", "RaceSearchCV", "SklearnLearner"]
__all__ += ["TableEncoder", "tabular_models"]
