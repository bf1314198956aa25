"""Race the configurations of a study: `pip install "latebloomer[optuna]"`."""

from latebloomer.integrations.optuna import race_study

__all__ = ["race_study"]
