"""A ranking with its intervals, against the products that it cannot do without.

The reckoning: one decomposition of each model's features and one pass of errors over the tasks, one
sample of tasks from each judge, and the same on the four halves of two halvings. A half has half of
the points. What a ranking takes beyond that are elections on each half, probes, and decompositions
that an election and a skill do both.
"""

import time
from unittest import mock

import torch

from benchmarks.bench_judges import company
from taskpriors.kernels import kernel_factor
from taskpriors.prior.calibration import critical_temperature
from taskpriors.prior.heldout import expected_heldout_error
from taskpriors.prior.prefix import sample_labels
from taskpriors.rank.models import rank_models


def cpu(f):
    "Processor time of `f()` in seconds, all threads together."
    start = time.process_time()
    f()
    return time.process_time() - start


def unavoidable(models):
    "A decomposition, a sample of tasks and a pass of errors for each model."
    for X in models:
        Z = kernel_factor(X, scale="frobenius")
        how = dict(n_tasks=200, n_orders=50, seed=0)
        tasks = sample_labels(Z, critical_temperature(Z, 5) / 20, 5, **how)
        expected_heldout_error(X, tasks, variance=False)


class SixModels:
    timeout = 1800

    def setup(self):
        self.models = company(6, 2000, 400)

    def rank(self):
        rank_models(self.models, cache=False, progress=False)

    def reckoning(self):
        unavoidable(self.models)
        for _ in range(4):
            unavoidable([X[::2] for X in self.models])

    def time_ranking(self):
        self.rank()

    def track_over_reckoning(self):
        return cpu(self.rank) / cpu(self.reckoning)

    def track_decompositions_a_model(self):
        calls = []
        plain = torch.linalg.eigh

        def counted(A, *args, **kwargs):
            calls.append(len(A))
            return plain(A, *args, **kwargs)

        with mock.patch("torch.linalg.eigh", counted):
            self.rank()
        return sum(size > 100 for size in calls) / len(self.models)

    track_over_reckoning.unit = "ratio of processor time"
    track_decompositions_a_model.unit = "decompositions"
