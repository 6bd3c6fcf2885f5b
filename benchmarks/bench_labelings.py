"""The label measure: annealing and its checks against plain prefix sampling, 8,192 points, width
512, q = 2, 1,000 particles.
"""

import warnings

import torch

from benchmarks.timing import peak_mib, ratio
from taskpriors.prior.calibration import calibrate_temperature, critical_temperature
from taskpriors.prior.labelings import sample_labelings
from taskpriors.prior.prefix import sample_labels


class Annealing:
    n, r, m = 8192, 512, 1000
    params, param_names = [4.0, 1.5, 1.0, 0.6], ["temperature over the critical one"]

    def setup(self, relative):
        Z = torch.randn(self.n, self.r, generator=torch.Generator().manual_seed(0))
        self.Z = Z / Z.norm(dim=1, keepdim=True)
        self.T = relative * critical_temperature(self.Z, 2)
        warnings.simplefilter("ignore")

    def anneal(self):
        return sample_labelings(self.Z, self.T, 2, n_tasks=self.m, seed=0)

    def prefix(self):
        return sample_labels(self.Z, self.T, 2, n_tasks=self.m, seed=0)

    def time_anneal(self, relative):
        self.anneal()

    def track_anneal_over_prefix(self, relative):
        return ratio(self.anneal, self.prefix)

    track_anneal_over_prefix.unit = "ratio"

    def track_extra_memory(self, relative):
        return peak_mib(self.anneal)

    track_extra_memory.unit = "MiB"


class Calibration:
    def setup(self):
        g = torch.Generator().manual_seed(0)
        self.Z = torch.randn(2000, 64, generator=g) * torch.linspace(2, 0.1, 64)

    def time_calibrate(self):
        calibrate_temperature(self.Z, 2, seed=0)
