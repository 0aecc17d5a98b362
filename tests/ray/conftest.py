import pytest

from ally.execution import ray as on_ray


@pytest.fixture(scope="session")
def cluster():
    """One cluster of two CPUs for all tests of a process."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
    on_ray.connect()
    yield ray
    on_ray.release()
    ray.shutdown()
