"""Where this checkout is, and the modules of the package."""

import pkgutil
from importlib import import_module
from pathlib import Path

import latebloomer

ROOT = Path(__file__).parents[2]


def modules():
    for found in pkgutil.walk_packages(latebloomer.__path__, "latebloomer."):
        if found.name != "latebloomer.__main__":
            yield import_module(found.name)
