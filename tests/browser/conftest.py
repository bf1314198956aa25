"""A browser for the tests of pages; `make test-browser` runs them, `make test` does not."""

import os
from pathlib import Path

import pytest

ARTIFACTS = Path(__file__).parents[2] / "build" / "browser"  # ignored by git
MISSING = "needs a Chromium: apt-get install chromium-headless-shell, or CHROMIUM=its path"

if not os.environ.get("LATEBLOOMER_BROWSER"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def browser():
    from tests.helpers.chromium import CHROMIUM, Chromium

    if CHROMIUM is None:
        pytest.skip(MISSING)
    made = Chromium()
    yield made
    made.close()


@pytest.fixture
def new_page(browser):
    """A function that opens tabs; all are closed at the end."""
    pages = []

    def make(**settings):
        pages.append(browser.page(**settings))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


@pytest.fixture
def picture(request):
    """A function that names a screenshot after the test and what is seen."""
    return lambda what: ARTIFACTS / f"{request.node.originalname}-{what}.png"
