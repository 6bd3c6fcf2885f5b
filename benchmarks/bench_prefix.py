"""Prefix sampling of 1,000 binary tasks on 8,192 points of a factor of width 512, against the loop
of Algorithm 1.
"""

import time

import numpy as np
import torch

from benchmarks.timing import peak_mib
from taskpriors.prior.prefix import sample_labels, task_diversity


def algorithm_1(Z, T, q, u):
    "One task by the paper's Algorithm 1 in NumPy; `u` holds one uniform number per point."
    n, r = Z.shape
    y, U = np.empty(n, int), np.zeros((r, q), Z.dtype)
    for i in range(n):
        h = (Z[i] @ U) / T
        p = np.exp(h - h.max())
        c = y[i] = min(int((p / p.sum()).cumsum().searchsorted(u[i])), q - 1)
        U[:, c] += Z[i]
    return y


class Prefix:
    n, r, m, temperature = 8192, 512, 1000, 5.0

    def setup(self):
        Z = torch.randn(self.n, self.r, generator=torch.Generator().manual_seed(0))
        self.Z = Z / Z.norm(dim=1, keepdim=True)
        self.u = np.random.default_rng(0).random((self.n, 6))

    def draw(self, q=2):
        return sample_labels(self.Z, self.temperature, q, n_tasks=self.m, seed=0)

    def time_two_classes(self):
        self.draw()

    def time_ten_classes(self):
        self.draw(10)

    def track_extra_memory(self):
        return peak_mib(self.draw)

    track_extra_memory.unit = "MiB"

    def track_speedup_over_the_loop(self):
        """1,000 x the median time of one task in the loop (6 are timed) over the median time of
        `sample_labels`; the two alternate.
        """
        self.draw()
        loop, ours = [], []
        for t in range(6):
            start = time.perf_counter()
            algorithm_1(self.Z.numpy(), self.temperature, 2, self.u[:, t])
            middle = time.perf_counter()
            self.draw()
            loop.append(middle - start), ours.append(time.perf_counter() - middle)
        return self.m * np.median(loop) / np.median(ours)

    track_speedup_over_the_loop.unit = "ratio"


class Diversity:
    params, param_names = [2, 10], ["n_classes"]

    def setup(self, n_classes):
        self.labels = torch.randint(
            n_classes, (1000, 8192), generator=torch.Generator().manual_seed(0)
        )

    def time_task_diversity(self, n_classes):
        task_diversity(self.labels, n_classes=n_classes)
