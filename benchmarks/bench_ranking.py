"""A ranking with its intervals, against the products that it cannot do without.

The reckoning: one decomposition of each model's features, one pass of errors over the tasks and one
sample of tasks from each judge. What a ranking takes beyond that are an election, and
decompositions that an election and a skill do both. `seconds_by_step` says where each second goes.
"""

import contextlib
import importlib
import sys
import time
from unittest import mock

import numpy

from benchmarks.bench_consensus import candidates
from taskpriors.kernels import kernel_factor
from taskpriors.prior.calibration import critical_temperature
from taskpriors.prior.heldout import error_on_basis
from taskpriors.prior.prefix import sample_labels
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested
from taskpriors.ridge import decompose


def cpu(f):
    "Processor time of `f()` in seconds, all threads together."
    start = time.process_time()
    f()
    return time.process_time() - start


STEPS = {  # functions as the modules of a ranking know them, by what they are for
    "kernels": ("kernels.kernel_factor", "rank.distributions.kernel_factor"),
    "tasks of the election": ("prior.consensus.tasks_of_priors",),
    "skills of the election": ("prior.consensus._skills",),
    "tasks": ("rank.distributions.draw_tasks",),
    "skills": ("rank.memory._score",),
}
DECOMPOSING = ("rank.memory", "prior.consensus", "probes")  # who decomposes


def seconds_by_step(run):
    "Processor seconds of each step, and of what is no such step."
    seconds, open_steps = {}, []

    def timed(step, f):
        def call(*args, **kwargs):
            start, inside = time.process_time(), [0.0]
            open_steps.append(inside)
            try:
                return f(*args, **kwargs)
            finally:
                open_steps.pop()
                took = time.process_time() - start
                seconds[step] = seconds.get(step, 0.0) + took - inside[0]
                if open_steps:
                    open_steps[-1][0] += took

        return call

    with contextlib.ExitStack() as patches:
        paths = [(step, path) for step, of_step in STEPS.items() for path in of_step]
        paths += [("decompositions", f"{module}.decompose") for module in DECOMPOSING]
        for step, path in paths:
            module, name = f"taskpriors.{path}".rsplit(".", 1)
            if hasattr(importlib.import_module(module), name):
                plain = getattr(sys.modules[module], name)
                patches.enter_context(mock.patch(f"{module}.{name}", timed(step, plain)))
        timed("anything else", run)()
    return seconds


def unavoidable(models):
    "A decomposition, a sample of tasks and a pass of errors for each model."
    for X in models:
        Z = kernel_factor(X, scale="frobenius")
        how = dict(n_tasks=200, n_orders=50, seed=0)
        tasks = sample_labels(Z, critical_temperature(Z, 5) / 20, 5, **how)
        error_on_basis(decompose(X), tasks, variance=False)


class SixModels:
    timeout = 1800
    sizes = 6, 2000, 400  # models, points, features

    def setup(self):
        self.models = candidates(*self.sizes)

    def rank(self):
        rank_models(self.models, **nested(cache=False, progress=False))

    def time_ranking(self):
        self.rank()

    def track_over_reckoning(self):
        return cpu(self.rank) / cpu(lambda: unavoidable(self.models))

    def track_decompositions_a_model(self):
        calls = []
        plain = numpy.linalg.eigh

        def counted(A, *args, **kwargs):
            calls.append(len(A))
            return plain(A, *args, **kwargs)

        with mock.patch("numpy.linalg.eigh", counted):
            self.rank()
        return sum(size > 100 for size in calls) / len(self.models)

    def track_share_of_the_forecast(self):
        "Of the processor time of a ranking; its forecast is read once and kept."
        started = time.process_time()
        ranking = rank_models(self.models, **nested(cache=False, progress=False))
        ranked = time.process_time() - started
        return cpu(lambda: ranking.forecast) / ranked

    track_share_of_the_forecast.unit = "share of processor time"
    track_over_reckoning.unit = "ratio of processor time"
    track_decompositions_a_model.unit = "decompositions"


class Steps:
    "Processor seconds of one step of a ranking."

    timeout = 1800
    sizes = SixModels.sizes
    params = [*STEPS, "decompositions", "anything else"]
    param_names = ["step"]

    def setup_cache(self):
        models = candidates(*self.sizes)
        return seconds_by_step(lambda: rank_models(models, **nested(cache=False, progress=False)))

    def track_seconds(self, seconds, step):
        return seconds.get(step, 0.0)

    track_seconds.unit = "seconds of processor time"


class StepsOfTwelve(Steps):
    "The same where 25 processor seconds were asked for."

    sizes = 12, 5000, 1000


class RankingOfTwelve:
    "Processor time of this ranking, and over that of one decomposition of each model's features."

    timeout = 1800

    def setup_cache(self):
        models = candidates(*StepsOfTwelve.sizes)
        ranked = cpu(lambda: rank_models(models, **nested(cache=False, progress=False)))
        return ranked, cpu(lambda: [decompose(X) for X in models])

    def track_seconds(self, seconds):
        return seconds[0]

    def track_over_decompositions(self, seconds):
        return seconds[0] / seconds[1]

    track_seconds.unit = "seconds of processor time"
    track_over_decompositions.unit = "ratio of processor time"
