"""Moments of Tr(MG): time in half matrix products, and peak memory.

A half product is the upper triangle of Z @ Z.T, n^2 r flops, formed block by block with plain
`torch.mm` into one reused buffer, at whichever block size is fastest. One model needs two of them
(the prior and the model), 32 models 33.
"""

import time

import torch

from benchmarks.timing import peak_mib, ratio
from taskpriors.blocks import pair_blocks
from taskpriors.kernels import kernel_factor
from taskpriors.prior.moments import trace_cumulants, trace_moments
from taskpriors.prior.sketch import sketch_trace_moments
from taskpriors.prior.tails import trace_covariance

SIZES = (256, 384, 512, 1024)


def factor(n, r, seed):
    return torch.randn(n, r, generator=torch.Generator().manual_seed(seed)) / r**0.5


def half_products(factors, size):
    "The upper triangles of all Z @ Z.T, formed and forgotten."
    n = len(factors[0])
    buffer = torch.empty(size * size)
    for rows, cols in pair_blocks(n, size):
        shape = rows.stop - rows.start, cols.stop - cols.start
        out = buffer[: shape[0] * shape[1]].view(shape)
        for Z in factors:
            torch.mm(Z[rows], Z[cols].T, out=out)


def best_half_products(factors):
    "The baseline at its best block size, found on the first two factors."

    def once(size):
        start = time.perf_counter()
        half_products(factors[:2], size)
        return time.perf_counter() - start

    once(SIZES[0])
    best = min(SIZES, key=lambda size: min(once(size) for _ in range(2)))
    return lambda: half_products(factors, best)


class OneModel:
    "n = 8,192, r = 512, one model, one temperature."

    timeout = 600

    def setup(self):
        self.Z, self.M = factor(8192, 512, 0), factor(8192, 512, 1)

    def time_trace_moments(self):
        trace_moments(self.M, self.Z, 0.05, graphs="directed")

    def peakmem_trace_moments(self):
        trace_moments(self.M, self.Z, 0.05, graphs="directed")

    def track_ratio(self):
        return ratio(
            lambda: trace_moments(self.M, self.Z, 0.05, graphs="directed"),
            best_half_products([self.Z, self.M]),
            repeat=5,
        )

    track_ratio.unit = "ratio"

    def track_ratio_high_temperature(self):
        return ratio(
            lambda: trace_moments(self.M, self.Z, 1e3, graphs="directed"),
            best_half_products([self.Z, self.M]),
            repeat=5,
        )

    track_ratio_high_temperature.unit = "ratio"

    def track_extra_memory(self):
        return peak_mib(lambda: trace_moments(self.M, self.Z, 0.05, graphs="directed"))

    track_extra_memory.unit = "MiB"


class ManyModels:
    "32 models share one pass over the prior: 33 half products."

    timeout = 1200

    def setup(self):
        self.Z = factor(8192, 512, 0)
        self.models = {str(k): factor(8192, 512, 1 + k) for k in range(32)}

    def track_ratio(self):
        baseline = best_half_products([self.Z, *self.models.values()])
        return ratio(
            lambda: trace_moments(self.models, self.Z, 0.05, graphs="directed"), baseline, repeat=1
        )

    track_ratio.unit = "ratio"

    def track_extra_memory(self):
        return peak_mib(lambda: trace_moments(self.models, self.Z, 0.05, graphs="directed"))

    track_extra_memory.unit = "MiB"


class ManyPoints:
    "n = 65,536, r = 512: 2.1e9 pairs."

    timeout = 3600

    def setup(self):
        self.Z, self.M = factor(65536, 512, 0), factor(65536, 512, 1)

    def track_extra_memory(self):
        return peak_mib(
            lambda: trace_moments(self.M, self.Z, 0.05, graphs="directed"), interval=0.05
        )

    track_extra_memory.unit = "MiB"


class Relatives:
    "The other statistics, in units of one model's `trace_moments`."

    timeout = 1200

    def setup(self):
        self.Z, self.M = factor(8192, 512, 0), factor(8192, 512, 1)
        self.moments = lambda: trace_moments(self.M, self.Z, 0.05, graphs="directed")

    def track_cumulants(self):
        return ratio(lambda: trace_cumulants(self.M, self.Z, 0.05, graphs="directed"), self.moments)

    track_cumulants.unit = "ratio"

    def track_covariance(self):
        return ratio(
            lambda: trace_covariance({"M": self.M, "Z": self.Z}, self.Z, 0.05, graphs="directed"),
            self.moments,
        )

    track_covariance.unit = "ratio"

    def track_ten_temperatures(self):
        return ratio(
            lambda: trace_moments(self.M, self.Z, torch.logspace(-3, 0, 10), graphs="directed"),
            self.moments,
        )

    track_ten_temperatures.unit = "ratio"


class Sketch:
    "n = 100,000, r = 256, clustered features: the sketch against one pair at a time."

    timeout = 3600

    def setup(self):
        n, r = 100_000, 256
        g = torch.Generator().manual_seed(0)
        fall = torch.arange(1, r + 1) ** -0.5
        centres = torch.randn(100, r, generator=g)
        which = torch.randint(0, 100, (n,), generator=g)
        X = (centres[which] + torch.randn(n, r, generator=g)) * fall
        turn = torch.randn(r, r, generator=g) / r**0.5
        self.Z, self.M = kernel_factor(X), kernel_factor(torch.relu(X @ turn))
        self.T = 0.1 * (self.Z[:2000] @ self.Z[:2000].T).abs().mean().item()

    def sketch(self, rel_tol=0.01):
        return sketch_trace_moments(
            self.M, self.Z, self.T, rel_tol=rel_tol, seed=0, graphs="directed"
        )

    def track_relative_error(self):
        found = self.sketch()
        parts = found.mean_error / found.mean.abs(), found.variance_error / found.variance
        return max(part.item() for part in parts)

    track_relative_error.unit = "ratio"

    def track_pairs_a_second_over_single_pairs(self):
        "Pairs of the sketch a second, over those of rows that are fetched for each pair."
        found = self.sketch(1e-3)
        few = 2**16
        i, j = torch.randint(0, len(self.Z), (2, few), generator=torch.Generator().manual_seed(0))

        def single_pairs():
            for b in torch.arange(few).split(4096):
                K, M = ((F[i[b]] * F[j[b]]).sum(1) for F in (self.Z, self.M))
                (M * torch.tanh(K / self.T / 2)).sum()

        return found.n_pairs / few / ratio(lambda: self.sketch(1e-3), single_pairs, repeat=1)

    track_pairs_a_second_over_single_pairs.unit = "ratio"

    def track_extra_memory(self):
        return peak_mib(self.sketch)

    track_extra_memory.unit = "MiB"
