"""What the papers say of time: the sampler's O(nrq), a model's mean and variance in milliseconds,
and the closed form against probes on sampled tasks.
"""

from functools import partial

import torch

from benchmarks.timing import ratio, seconds
from taskpriors.prior.moments import trace_moments
from taskpriors.prior.prefix import sample_labels
from taskpriors.probes import logistic_probes, ridge_probes


def factor(n, r, seed=0):
    Z = torch.randn(n, r, generator=torch.Generator().manual_seed(seed))
    return Z / Z.norm(dim=1, keepdim=True)


class SamplerScaling:
    "200 tasks: time with twice the points, columns or classes, over the time without."

    n, r, q, m = 4096, 256, 5, 200

    def draw(self, n, r, q):
        Z = factor(n, r)
        return lambda: sample_labels(Z, 5.0, q, n_tasks=self.m, seed=0)

    def setup(self):
        self.base = self.draw(self.n, self.r, self.q)

    def track_twice_the_points(self):
        return ratio(self.draw(2 * self.n, self.r, self.q), self.base)

    def track_twice_the_columns(self):
        return ratio(self.draw(self.n, 2 * self.r, self.q), self.base)

    def track_twice_the_classes(self):
        "A task of q classes has q - 1 columns of scores: 8 for 4."
        return ratio(self.draw(self.n, self.r, 2 * self.q - 1), self.base)

    track_twice_the_points.unit = "ratio"
    track_twice_the_columns.unit = "ratio"
    track_twice_the_classes.unit = "ratio"


class Milliseconds:
    "A task of Algorithm 1, and the mean and variance of a model, on 8,192 points of width 512."

    def setup(self):
        self.Z, self.M = factor(8192, 512), factor(8192, 512, 1)

    def track_task_among_1000(self):
        draw = lambda: sample_labels(self.Z, 5.0, 2, n_tasks=1000, seed=0)  # noqa: E731
        return 1000 * seconds(draw) / 1000

    def track_task_alone(self):
        return 1000 * seconds(lambda: sample_labels(self.Z, 5.0, 2, seed=0))

    def track_moments(self):
        return 1000 * seconds(lambda: trace_moments(self.M, self.Z, 0.05, graphs="directed"))

    def track_moments_of_1024_points(self):
        Z, M = self.Z[:1024], self.M[:1024]
        return 1000 * seconds(lambda: trace_moments(M, Z, 0.05, graphs="directed"))

    track_task_among_1000.unit = "ms"
    track_task_alone.unit = "ms"
    track_moments.unit = "ms"
    track_moments_of_1024_points.unit = "ms"


class Probing:
    "512 sampled tasks on 8,192 points of width 512: drawing them and fitting probes, over moments."

    timeout = 1200

    def setup(self):
        self.Z, self.X = factor(8192, 512), factor(8192, 512, 1)

    def moments(self):
        return trace_moments(self.X, self.Z, 0.05, graphs="directed")

    def tasks(self):
        return sample_labels(self.Z, 5.0, 2, n_tasks=512, seed=0)

    def track_ridge_over_closed_form(self):
        return ratio(lambda: ridge_probes(self.X, self.tasks()), self.moments)

    def track_logistic_over_closed_form(self):
        return ratio(
            lambda: logistic_probes(self.X, self.tasks(), train=0.5), self.moments, repeat=1
        )

    def track_one_by_one_over_closed_form(self):
        "512 times one probe of scikit-learn, on half of the points."
        from sklearn.linear_model import LogisticRegression

        X, y = self.X[::2].numpy(), self.tasks()[0, ::2].numpy()
        fit = partial(LogisticRegression().fit, X, y)
        return 512 * ratio(fit, self.moments)

    track_ridge_over_closed_form.unit = "ratio"
    track_logistic_over_closed_form.unit = "ratio"
    track_one_by_one_over_closed_form.unit = "ratio"
