"""The prior over edges and over views.

The log normaliser is timed in units of the half matrix product that it cannot avoid, and the
linear-time moments of views beside the quadratic ones.
"""

import torch

from benchmarks.bench_moments import best_half_products, factor
from benchmarks.timing import peak_mib, ratio
from taskpriors.prior.edges import log_partition
from taskpriors.prior.moments import trace_moments
from taskpriors.prior.objective import TaskPriorLoss
from taskpriors.prior.views import partition_moments, view_factor, view_labels


class LogPartition:
    "n = 8,192, r = 512."

    timeout = 600

    def setup(self):
        self.Z = factor(8192, 512, 0)

    def time_log_partition(self):
        log_partition(self.Z, 0.05, graphs="directed")

    def track_ratio(self):
        return ratio(
            lambda: log_partition(self.Z, 0.05, graphs="directed"), best_half_products([self.Z])
        )

    track_ratio.unit = "ratio"

    def track_memory(self):
        return peak_mib(lambda: log_partition(self.Z, 0.05, graphs="directed"))

    track_memory.unit = "MiB"


class Views:
    "4,096 points, 1,024 samples with 4 views; the dense factor has 1,024 columns."

    timeout = 600

    def setup(self):
        self.M, self.labels = factor(4096, 256, 0), view_labels(1024, 4)
        self.prior = view_factor(1024, 4).to_dense()

    def time_partition_moments(self):
        partition_moments(self.M, self.labels, 0.1, graphs="directed")

    def track_speedup(self):
        return ratio(
            lambda: trace_moments(self.M, self.prior, 0.1, graphs="directed"),
            lambda: partition_moments(self.M, self.labels, 0.1, graphs="directed"),
        )

    track_speedup.unit = "ratio"


class Objective:
    "A step of the loss on a minibatch of 256 of 4,096 points, forwards and backwards."

    params, param_names = ["trace", "heldout"], ["statistic"]

    def setup(self, statistic):
        self.loss = TaskPriorLoss(factor(4096, 64, 0), 0.05, statistic=statistic)
        self.features = factor(256, 128, 1).requires_grad_()
        self.index = torch.arange(0, 4096, 16)

    def time_step(self, statistic):
        torch.autograd.grad(self.loss(self.features, self.index), self.features)
