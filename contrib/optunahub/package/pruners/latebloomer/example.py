"""Sixteen configurations, a budget of four full trainings of a hundred epochs."""

import optuna
import optunahub


def objective(trial):
    speed = trial.suggest_float("speed", 1, 50)
    best = trial.suggest_float("best", 0.3, 1)
    for epoch in range(1, 101):
        yield best * epoch / (epoch + speed)


if __name__ == "__main__":
    latebloomer = optunahub.load_module("pruners/latebloomer")
    study = optuna.create_study(direction="maximize")
    verdict = latebloomer.race_study(study, objective, n_configs=16, trainings=4, full_steps=100)
    print(verdict)
    print(study.best_trial.params)
