import pytest


@pytest.fixture
def one_thread():
    from threadpoolctl import threadpool_limits  # which comes with scikit-learn

    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield
