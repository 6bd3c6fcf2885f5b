"Linear probes: 1,000 tasks x 8,192 points x 512 features, and scikit-learn once per task."

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV

from benchmarks.timing import peak_mib, seconds
from taskpriors.probes import logistic_probes, ridge_probes


def tasks(n=8192, d=512, n_tasks=1000, seed=0):
    "Features with a decaying spectrum, and binary tasks that they predict in part."
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, d, generator=g) * torch.logspace(0, -1, d)
    return X, (
        (X @ torch.randn(d, n_tasks, generator=g) + 2 * torch.randn(n, n_tasks, generator=g)).T > 0
    ).long()


class Probes:
    timeout = 1800

    def setup(self):
        self.X, self.y = tasks()

    def time_ridge_leave_one_out(self):
        ridge_probes(self.X, self.y)

    def time_ridge_held_out(self):
        ridge_probes(self.X, self.y, train=0.7)

    def time_logistic_held_out(self):
        logistic_probes(self.X, self.y, train=0.7)

    def track_memory_ridge(self):
        return peak_mib(lambda: ridge_probes(self.X, self.y))

    def track_memory_logistic(self):
        return peak_mib(lambda: logistic_probes(self.X, self.y, train=0.7))

    track_memory_ridge.unit = track_memory_logistic.unit = "MiB"


class AgainstScikitLearn:
    "scikit-learn is timed on a few tasks and scaled to 1,000: its tasks do not share work."

    timeout = 3600
    few = 3

    def setup(self):
        self.X, self.y = tasks()
        self.numpy = self.X.numpy(), self.y.numpy()

    def ridge(self):
        X, y = self.numpy
        for task in y[: self.few]:
            RidgeClassifierCV(alphas=np.logspace(-5, 4.5, 20)).fit(X, task)

    def logistic(self):
        X, y = self.numpy
        for task in y[: self.few]:
            LogisticRegression(max_iter=1000).fit(X[:5734], task[:5734])

    def track_ridge(self):
        return (
            seconds(self.ridge, 1)
            * len(self.y)
            / self.few
            / seconds(lambda: ridge_probes(self.X, self.y), 1)
        )

    def track_logistic(self):
        mask = torch.arange(len(self.X)) < 5734
        return (
            seconds(self.logistic, 1)
            * len(self.y)
            / self.few
            / seconds(lambda: logistic_probes(self.X, self.y, train=mask), 1)
        )

    track_ridge.unit = track_logistic.unit = "ratio"
