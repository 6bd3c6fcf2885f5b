"""A ranking from disk on a cluster: models go to workers by path, and a worker may die.

Needs `distributed`, which the development requirements leave out because it is large.
"""

import os
from functools import partial

import numpy as np
import pytest
import torch

from taskpriors.rank.on_disk import rank_on_disk


def die_once(fn, marker, item):
    "Compute `fn(item)`; the first of all calls that scores a model ends its process instead."
    if getattr(fn, "func", fn).__name__ == "_scores":
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os._exit(1)
    return fn(item)


class Deadly:
    "An executor one of whose workers dies."

    def __init__(self, executor, marker):
        self.executor, self.marker = executor, marker

    def map(self, fn, items):
        return self.executor.map(partial(die_once, fn, self.marker), items)


@pytest.fixture
def files(tmp_path):
    g = torch.Generator().manual_seed(0)
    S = torch.randn(400, 6, generator=g)
    found = {}
    for k in range(4):
        found[f"model {k}"] = tmp_path / f"{k}.npy"
        X = S @ torch.randn(6, 8, generator=g) + 0.3 * k * torch.randn(400, 8, generator=g)
        np.save(found[f"model {k}"], X.numpy())
    return found


def test_a_worker_that_dies_changes_nothing(files, tmp_path):
    distributed = pytest.importorskip("distributed")
    how = dict(n_tasks=16, n_classes=3, cache=False, progress=False)
    here = rank_on_disk(files, **how)
    cluster = dict(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None)
    with distributed.LocalCluster(**cluster) as made, distributed.Client(made) as client:
        deadly = Deadly(client.get_executor(), str(tmp_path / "dead"))
        there = rank_on_disk(files, executor=deadly, **how)
    assert (tmp_path / "dead").exists()
    for name in ("skill", "accuracies", "mean", "variance", "point_errors"):
        torch.testing.assert_close(getattr(there, name), getattr(here, name), rtol=1e-5, atol=1e-6)
