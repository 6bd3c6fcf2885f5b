"""The prior over edges.

The log normaliser is timed in units of the half matrix product that it cannot avoid.
"""

import torch

from benchmarks.bench_moments import best_half_products, factor
from benchmarks.timing import peak_mib, ratio
from taskpriors.prior.edges import log_partition
from taskpriors.prior.objective import TaskPriorLoss


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


class Objective:
    "A step of the loss on a minibatch of 256 of 4,096 points, forwards and backwards."

    params, param_names = ["trace", "heldout"], ["statistic"]

    def setup(self, statistic):
        self.loss = TaskPriorLoss(factor(4096, 64, 0), 0.05, statistic=statistic)
        self.features = factor(256, 128, 1).requires_grad_()
        self.index = torch.arange(0, 4096, 16)

    def time_step(self, statistic):
        torch.autograd.grad(self.loss(self.features, self.index), self.features)
