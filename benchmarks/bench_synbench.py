"""SynBench: robust Bayes against a conic solver, synthetic images against one draw per sample, and
where a score spends its time.
"""

import time

import numpy as np
import torch

from taskpriors.synbench.gaussians import synthetic_task
from taskpriors.synbench.robust_bayes import robust_bayes
from taskpriors.synbench.score import synbench_score

from .timing import peak_mib, ratio

EPS = tuple(k / 10 for k in range(9))
SHAPE = (3, 224, 224)


def cpu_ratio(f, g, repeat=5):
    """Least processor time of `f()` over that of `g()`: unlike wall time, hardly touched by other
    processes.
    """

    def least(f):
        f()
        times = []
        for _ in range(repeat):
            start = time.process_time()
            f()
            times.append(time.process_time() - start)
        return min(times)

    return least(f) / least(g)


def gaussians(d=768, condition=1e3, seed=0):
    g = torch.Generator().manual_seed(seed)
    F = torch.linalg.qr(torch.randn(d, d, generator=g, dtype=torch.float64))[0]
    S = (F * torch.logspace(0, -torch.tensor(condition).log10(), d, dtype=torch.float64)) @ F.T
    return torch.randn(d, generator=g, dtype=torch.float64) / d**0.5, (S + S.T) / 2


def conic(mu, S, eps):
    """z of the definition by cvxpy and SCS, as the released code does it; the direction Sigma^-1
    (mu - z).
    """
    import cvxpy as cp

    P = torch.linalg.inv(S)
    z = cp.Variable(len(mu))
    cp.Problem(
        cp.Minimize(cp.quad_form(mu.numpy() - z, cp.psd_wrap(((P + P.T) / 2).numpy()))),
        [cp.norm(z) <= eps],
    ).solve(solver="SCS")
    return P @ (mu - torch.from_numpy(z.value))


class RobustBayes:
    "d = 768, nine eps, eigendecomposition included."

    timeout = 600

    def setup(self):
        self.mu, self.S = gaussians()

    def nine(self):
        return robust_bayes(self.mu, self.S, EPS, eps_scale="relative")

    def time_nine_eps(self):
        self.nine()

    def track_speed_over_one_conic_solve_per_eps(self):
        "Bar: at least 20."
        one = float(self.mu.norm()) * 0.4
        try:
            import cvxpy  # noqa: F401 - only asks whether it is there
        except ImportError:
            raise NotImplementedError("cvxpy is not installed") from None
        return 9 * ratio(lambda: conic(self.mu, self.S, one), self.nine, repeat=1)

    track_speed_over_one_conic_solve_per_eps.unit = "ratio"

    def track_angle_to_the_conic_solution(self):
        "1 - cosine; bar: at most 1e-5."
        eps = float(self.mu.norm()) * 0.4
        try:
            w = conic(self.mu, self.S, eps)
        except ImportError:
            raise NotImplementedError("cvxpy is not installed") from None
        return 1 - float(torch.cosine_similarity(w, robust_bayes(self.mu, self.S, eps).w, dim=0))

    track_angle_to_the_conic_solution.unit = "1 - cosine"


class Samples:
    """Images of 3 x 224 x 224, in batches of 32; `n` is 256 here, since the cost is per sample.

    One `torch.normal` call per sample already fills a whole image at the speed of torch's
    generator, on one thread, so only more threads and a faster generator could gain anything. How
    much they could gain is measured as well, in processor time on one thread, multiplied by the
    threads: a normal number takes 32 random bits, and `track_limit_of_random_bits` draws only these
    bits, with numpy's fastest generator; `track_limit_of_writing_zeros` draws nothing and writes
    the memory. The generators of numpy and torch cannot exceed the first of the two.
    """

    timeout = 600
    n = 256

    def setup(self):
        self.plain, self.hepta = (
            synthetic_task(1.0, SHAPE),
            synthetic_task(1.0, SHAPE, covariance="heptadiagonal"),
        )

    def draw(self, task):
        for _ in task.batches(self.n, batch_size=32):
            pass

    def one_call_per_sample(self):
        "As the released code: one call with a mean and a deviation per pixel."
        mean, std = self.plain.mu.float() + 0.5, torch.ones(self.plain.mu.shape)
        for _ in range(self.n):
            torch.normal(mean, std)

    def time_gaussian_i(self):
        self.draw(self.plain)

    def time_gaussian_h(self):
        self.draw(self.hepta)

    def track_speed_over_one_normal_call_per_sample(self):
        "Bar: at least 20."
        return ratio(self.one_call_per_sample, lambda: self.draw(self.plain))

    track_speed_over_one_normal_call_per_sample.unit = "ratio"

    def random_bits(self):
        "32 bits for each number, in chunks that stay in the cache."
        g, chunk = np.random.Generator(np.random.SFC64(0)), 2**15
        for _ in range(self.n * len(self.plain.mu) // 2 // chunk):
            g.integers(0, 2**64 - 1, chunk, dtype=np.uint64, endpoint=True)

    def zeros(self):
        for _ in range(self.n // 32):
            torch.zeros(32, len(self.plain.mu))

    def limit(self, least):
        "Processor time of the calls over that of `least` on one thread, times the threads."
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return threads * cpu_ratio(self.one_call_per_sample, least)
        finally:
            torch.set_num_threads(threads)

    def track_limit_of_random_bits(self):
        "What the ratio above could be at most if drawing the bits were all the work."
        return self.limit(self.random_bits)

    track_limit_of_random_bits.unit = "ratio"

    def track_limit_of_writing_zeros(self):
        "What it could be if nothing were drawn, and the memory only written."
        return self.limit(self.zeros)

    track_limit_of_writing_zeros.unit = "ratio"

    def track_heptadiagonal_over_plain(self):
        "Bar: at most 5."
        return ratio(lambda: self.draw(self.hepta), lambda: self.draw(self.plain))

    track_heptadiagonal_over_plain.unit = "ratio"

    def track_peak_of_a_heptadiagonal_batch(self):
        "Bar: below 2,048 MiB; a 150,528 x 150,528 matrix would take 86,400."
        return peak_mib(lambda: self.draw(self.hepta))

    track_peak_of_a_heptadiagonal_batch.unit = "MiB"


class Score:
    "A full pass of a small vision transformer at 224 x 224 for one scale."

    timeout = 600
    n = 512

    def setup(self):
        import timm

        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.model = timm.create_model(
                "vit_tiny_patch16_224", pretrained=False, num_classes=0
            ).eval()

    def run(self, model):
        return synbench_score(
            model,
            input_size=SHAPE,
            n_train=self.n,
            n_test=self.n,
            scales=(5.0,),
            batch_size=256,
            progress=False,
        )

    def track_share_of_time_in_the_forward_passes(self):
        "Bar: at least 0.85."
        spent = [0.0]

        def timed(x):
            start = time.perf_counter()
            z = self.model(x)
            spent[0] += time.perf_counter() - start
            return z

        start = time.perf_counter()
        self.run(timed)
        return spent[0] / (time.perf_counter() - start)

    track_share_of_time_in_the_forward_passes.unit = "share"

    def track_peak_above_the_model(self):
        "Bar: below 2,048 MiB at batch 256, the model's own activations included."
        return peak_mib(lambda: self.run(self.model))

    track_peak_above_the_model.unit = "MiB"


class Probing:
    """A score against probing: a small vision transformer, 2 x 128 images of one scale, and as many
    images of a labelled set of 100 classes with one logistic head of at most 100 steps.
    """

    timeout = 600
    n = 128
    images_of_a_score = 50 * (2048 + 2048)  # the paper's settings

    def setup(self):
        import timm

        g = torch.Generator().manual_seed(0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.model = timm.create_model(
                "vit_tiny_patch16_224", pretrained=False, num_classes=0
            ).eval()
        self.images = torch.rand(2 * self.n, *SHAPE, generator=g)
        self.labels = torch.arange(2 * self.n) % 100

    def score(self):
        synbench_score(
            self.model,
            input_size=SHAPE,
            n_train=self.n,
            n_test=self.n,
            scales=(5.0,),
            batch_size=256,
            progress=False,
        )

    def probe(self):
        from sklearn.linear_model import LogisticRegression

        with torch.no_grad():
            X = torch.cat([self.model(x) for x in self.images.split(256)]).numpy()
        LogisticRegression(max_iter=100).fit(X / X.std(), self.labels.numpy())

    def track_cost_of_an_image_of_a_score_over_one_of_a_probe(self):
        "Bar: at most 1.5."
        return ratio(self.score, self.probe)

    track_cost_of_an_image_of_a_score_over_one_of_a_probe.unit = "ratio"

    def track_thousands_of_images_whose_probing_costs_as_much(self):
        "A score is 50 times faster than probing only where the sets have 50 times as many."
        return ratio(self.score, self.probe) * self.images_of_a_score / 1000

    track_thousands_of_images_whose_probing_costs_as_much.unit = "thousands of images"
