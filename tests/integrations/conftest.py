import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture
def one_thread():
    with threadpool_limits(1):  # threads that wait for each other cost more than these fits
        yield
