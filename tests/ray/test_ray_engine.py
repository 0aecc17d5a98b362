import sys

import numpy as np
import pytest
from lossy_engine import Killer, MortalEngine

import ally
from ally.errors import InputError, MissingPart, NonFiniteInput
from ally.execution.ray import RayEngine
from ally.execution.resolve import resolve_engine
from ally.loop import Loop
from ally.testing.engine import CHECKS, POOL, TrainedOnce, check_ids
from ally.testing.pools import blobs

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.usefixtures("cluster"), pytest.mark.long]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_ray_keeps_the_contract(check):
    check(RayEngine(workers=2))


@pytest.mark.parametrize("shards", [1, 5])
@pytest.mark.parametrize("name", ["ally", "margin", "badge", "coreset", "bait", "maxherding"])
def test_ids_are_those_of_one_process(name, shards):
    check_ids(RayEngine(workers=2, shards=shards), name)


def test_an_actor_that_is_killed_comes_back_and_the_ids_are_the_same():
    killer = Killer(before=frozenset({28}))
    check_ids(MortalEngine(workers=2, shards=5, killer=killer), "badge")
    assert len(killer.killed) == 1
    assert killer.calls[0] > 33


def test_a_sample_that_cannot_be_used_is_named(tmp_path):
    """The workers read a memory map by its path."""
    scene = blobs("classification", 3000, 30)
    X = scene.X.copy()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    ids = [f"s{row}" for row in range(len(X))]
    loop = Loop(mapped, scene.y, model=TrainedOnce(), strategy="margin", engine=RayEngine(workers=2), ids=ids)
    first = loop.ask(2)
    mapped[2500, 1] = np.nan
    mapped.flush()
    with pytest.raises(NonFiniteInput, match=r"row 2500, .* \(the id of sample 2500 is 's2500'\)"):
        loop.ask(2)
    same = Loop(scene.X, scene.y, model=TrainedOnce(), strategy="margin").ask(2)
    assert len(first) == len(same) == 2


def test_engines_by_name():
    assert resolve_engine("ray") == RayEngine()
    assert resolve_engine("ray://head:10001") == RayEngine("ray://head:10001")
    with pytest.raises(InputError, match="workers"):
        RayEngine(workers=0)
    scene = blobs("classification", POOL, 30, features=6)
    here, there = (
        ally.query(scene.X, scene.y, n=3, strategy="coreset", model=TrainedOnce(), engine=engine, random_state=0)
        for engine in ("local", "ray")
    )
    assert here.ids.tolist() == there.ids.tolist()


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPart, match=r"pip install 'ally-learn\[ray\]'"):
        ally.query(np.eye(4), [0, 1, None, None], n=1, engine="ray")
