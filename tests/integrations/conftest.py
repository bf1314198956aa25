from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests below this folder: `make test-integrations` runs them."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("libraries")


@pytest.fixture
def one_thread():
    from threadpoolctl import threadpool_limits  # which comes with scikit-learn

    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield
