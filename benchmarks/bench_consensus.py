"""Cross-skill of several models, against the skill of each under tasks of the product of all."""

import time

import torch

from benchmarks.timing import peak_mib, ratio
from taskpriors.kernels import kernel_factor
from taskpriors.prior.calibration import critical_temperature
from taskpriors.prior.consensus import consensus_prior, copy_similarity, cross_skill
from taskpriors.prior.heldout import expected_heldout_error
from taskpriors.prior.prefix import sample_labels
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested


def candidates(k, n, d, seed=0):
    "Features of models that know parts of one world."
    g = torch.Generator().manual_seed(seed)
    world = torch.randn(n, d, generator=g) * torch.logspace(0, -1, d)
    return [world + torch.randn(n, d, generator=g) * (a + 1) / k for a in range(k)]


class CrossSkill:
    timeout = 1800

    def setup(self):
        self.models = candidates(6, 2048, 256)
        self.factors = [kernel_factor(X, scale="frobenius") for X in self.models]

    def time_label_measure(self):
        cross_skill(self.models, self.factors)

    def time_gaussian_measure(self):
        cross_skill(self.models, self.factors, measure="gaussian")

    def time_shared_tasks(self):  # what a ranking under the product does
        Z = torch.cat(self.factors, 1)
        temperature = critical_temperature(Z, 5) / 20
        tasks = sample_labels(Z, temperature, 5, n_tasks=200, n_orders=4, seed=0)
        for X in self.models:
            expected_heldout_error(X, tasks, variance=False)

    def track_label_measure_over_shared_tasks(self):
        return ratio(self.time_label_measure, self.time_shared_tasks)

    track_label_measure_over_shared_tasks.unit = "ratio"


class HundredModels:
    timeout = 1800

    def setup(self):
        self.models = candidates(100, 1024, 64)

    def elect(self):
        factors = [kernel_factor(X) for X in self.models]
        skill = cross_skill(self.models, factors, n_tasks=10)
        consensus_prior(skill, similarity=copy_similarity(factors))

    def track_peak_memory(self):
        return peak_mib(self.elect)

    track_peak_memory.unit = "MiB"


class RankingOfTwelve:
    "A whole ranking by elected judges over one by the product, in CPU time."

    timeout = 3600
    params = [2048, 8192]
    param_names = ["n_points"]

    def setup(self, n):
        self.models = {f"model {k}": X for k, X in enumerate(candidates(12, n, 256))}

    def rank(self, prior):
        rank_models(self.models, **nested(prior=prior, cache=False, progress=False))

    def track_elected_over_product(self, n):
        seconds = {}
        for prior in ("product", "consensus"):
            start = time.process_time()
            self.rank(prior)
            seconds[prior] = time.process_time() - start
        return seconds["consensus"] / seconds["product"]

    track_elected_over_product.unit = "ratio"
