"A step of the monitor, besides the forward pass: 5,000 points of 512 features."

import torch

from benchmarks.timing import seconds
from taskpriors.tools.monitor import Monitor


class Step:
    "Skill with its error, RankMe and the deviation, over 64 tasks."

    timeout = 1800

    def setup_cache(self):
        "Sampling the tasks once takes longer than a step."
        g = torch.Generator().manual_seed(0)
        X = torch.randn(5000, 512, generator=g) * torch.logspace(0, -1, 512)
        reference = X @ torch.randn(512, 64, generator=g)
        return Monitor(reference=reference), X

    def time_step(self, cache):
        monitor, X = cache
        monitor(X, step=0)

    def track_seconds(self, cache):
        return seconds(lambda: self.time_step(cache))

    track_seconds.unit = "s"
