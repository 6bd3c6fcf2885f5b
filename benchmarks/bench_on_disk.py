"""Ranking from disk: one pass over a model against its matrix products alone, the tasks of a judge
against the products they cannot do without, and memory that does not grow with the features.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import peak_mib, ratio
from taskpriors.inputs.row_blocks import open_rows
from taskpriors.prior.low_rank_prior import low_rank_prior
from taskpriors.prior.ridge_on_disk import _row_fits, _RowTasks, scores_of_rows
from taskpriors.rank import distributions
from taskpriors.rank.options import RankOptions, Tasks


class OnePass:
    "50,000 points of 256 features in a float16 file, 100 tasks of five classes."

    n, d, m = 50_000, 256, 100

    def setup(self):
        g = torch.Generator().manual_seed(0)
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "features.npy"
        self.X = torch.randn(self.n, self.d, generator=g)
        np.save(self.path, self.X.half().numpy())
        self.labels = torch.randint(0, 5, (self.m, self.n), generator=g, dtype=torch.uint8)

    def teardown(self):
        self.folder.cleanup()

    def products(self):
        "The unavoidable products: the Gram matrix in float64 and the cross products in float32."
        codes = torch.ones(4096, 4 * self.m)
        for X in self.X.split(4096):
            wide = X.double()
            wide.T @ wide
            X.T @ codes[: len(X)]

    def track_sums_over_products(self):
        rows = open_rows(self.path)
        tasks = _RowTasks.of(self.labels, self.n)
        return ratio(lambda: _row_fits(rows, tasks), self.products)

    track_sums_over_products.unit = "ratio"

    def track_heldout_error_over_products(self):
        return ratio(lambda: scores_of_rows(open_rows(self.path), self.labels), self.products)

    track_heldout_error_over_products.unit = "ratio"

    def track_extra_memory(self):
        return peak_mib(lambda: scores_of_rows(open_rows(self.path), self.labels))

    track_extra_memory.unit = "MiB"

    def time_low_rank_prior(self):
        low_rank_prior({"a": self.path, "b": self.path}, 64)


class ManyRows(OnePass):
    """200,000 points of 512 features in a float16 file, 200 tasks of five classes.

    Measured on two cores that others used, one thread, CPU time: 1.47 times the products here, of
    which the pass itself is 1.09, and 1.33 times at 1,000,000 points (33.6 s and 25.2 s). The rest
    is the sample of points judged, whose cost does not grow with the points.
    """

    n, d, m = 200_000, 512, 200


class OneJudge:
    "The 17 tasks of five classes of one of twelve judges, over 100,000 points of rank 128."

    n, r = 100_000, 128

    def setup(self):
        g = torch.Generator().manual_seed(0)
        self.Z = torch.randn(self.n, self.r, generator=g) * torch.arange(1, 129) ** -0.7
        self.T = torch.linalg.matrix_norm(self.Z, 2).item() ** 2 / 50
        self.dealt = distributions.allocate_tasks(
            [1.0] * 12, RankOptions(tasks=Tasks(n_tasks=200)), self.n, seed=0
        )

    def products(self):
        "What 50 points add to the sums, and what the sums say of the next 50, along each order."
        Z = self.Z.view(-1, 1, 50, self.r).expand(-1, 17, -1, -1)
        sums, codes = torch.zeros(17, 4, self.r), torch.ones(17, 4, 50)
        for rows in Z:
            sums @ rows.mT
            sums += codes @ rows

    def track_tasks_of_judge_over_products(self):
        return ratio(
            lambda: self.dealt.draw(self.Z, self.T, 0),
            self.products,
        )

    track_tasks_of_judge_over_products.unit = "ratio"
