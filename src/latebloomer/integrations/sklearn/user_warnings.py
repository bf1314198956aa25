"""Warnings that point to the user's own line."""

import inspect
import warnings

LIBRARIES = ("latebloomer", "sklearn")  # a warning never points to their lines


def warn_user(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn at the line outside of this library and scikit-learn that led to this call.

    How many calls lie between depends on scikit-learn's version, which may wrap `fit`.
    """
    frame, level = inspect.currentframe(), 1
    while frame is not None and _package(frame.f_globals.get("__name__", "")) in LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def _package(module: str) -> str:
    return module.partition(".")[0]
