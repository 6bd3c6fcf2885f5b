"""Expected held-out error over all tasks of a prior, against trace_moments and against training
probes.
"""

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifierCV

from benchmarks.timing import peak_mib, ratio, seconds
from taskpriors.prior.heldout import expected_heldout_error


def representations(n=8192, d=512, seed=0):
    "Features with a decaying spectrum, and the factor of a prior that knows some of them."
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, d, generator=g) * torch.logspace(0, -1, d)
    Z = X + torch.randn(n, d, generator=g) * torch.logspace(0, -1, d)
    return X, Z, 30.0


class HeldoutError:
    timeout = 1800

    def setup(self):
        self.args = representations()

    def time_mean(self):
        expected_heldout_error(*self.args, variance=False)

    def time_mean_and_variance(self):
        expected_heldout_error(*self.args)

    def track_mean_over_trace_moments(self):
        from taskpriors.prior.moments import trace_moments

        return ratio(self.time_mean, lambda: trace_moments(*self.args, graphs="directed"))

    def track_variance_over_trace_moments(self):
        from taskpriors.prior.moments import trace_moments

        return ratio(
            self.time_mean_and_variance, lambda: trace_moments(*self.args, graphs="directed")
        )

    track_mean_over_trace_moments.unit = track_variance_over_trace_moments.unit = "ratio"


class AgainstTrainedProbes:
    "scikit-learn is timed on a few tasks and scaled to 1,000: its tasks do not share work."

    timeout = 3600
    few = 3

    def setup(self):
        self.args = representations()
        g = torch.Generator().manual_seed(1)
        X, Z, _ = self.args
        self.y = (Z @ torch.randn(Z.shape[1], self.few, generator=g) > 0).T.long().numpy()

    def train(self):
        for y in self.y:
            RidgeClassifierCV(alphas=np.logspace(-5, 4.5, 20)).fit(self.args[0].numpy(), y)

    def track_1000_probes(self):
        return (
            seconds(self.train, 1)
            * 1000
            / self.few
            / seconds(lambda: expected_heldout_error(*self.args), 1)
        )

    track_1000_probes.unit = "ratio"


class Large:
    "n = 65,536: memory above the inputs, in MiB."

    timeout = 3600

    def setup(self):
        self.args = representations(65_536)

    def track_memory(self):
        return peak_mib(lambda: expected_heldout_error(*self.args), interval=0.01)

    track_memory.unit = "MiB"
