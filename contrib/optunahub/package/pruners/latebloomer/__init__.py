"""Race the configurations of a study: `pip install "latebloomer[optuna]"`."""

from latebloomer.integrations.hosts.optuna_study import race_study

__all__ = ["race_study"]
