"""What `check_memory` predicts is what a call takes, and no count takes the machine down.

Each call runs in a fork of a process that has only imported everything. There the highest resident
memory is compared with the largest request: what the call had already, and what it asked for.
"""

import ctypes
import functools
import gc
import os
import re
import resource
import sys
import time

import pytest
import torch
from forks import call_in_a_fork

import taskpriors.checks as checks
from taskpriors.inputs.embed import embed_features
from taskpriors.inputs.image_source import ImageSource
from taskpriors.kernels import (
    _rbf_factor,
    center,
    cholesky_factor,
    kernel_factor,
    kernel_matrix,
    product_factor,
)
from taskpriors.pairs import pass_over_pairs
from taskpriors.papers import robust_probing
from taskpriors.papers.comparisons import compare_agreement
from taskpriors.papers.figures import plot_tasks
from taskpriors.prior import (
    calibration,
    edges,
    heldout,
    labelings,
    loss_equivalence,
    moments,
    prefix,
    regression,
    tails,
)
from taskpriors.prior.calibration import edge_temperature
from taskpriors.prior.task_prior import TaskPrior
from taskpriors.probes import logistic_probes, ridge_probes
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested
from taskpriors.ridge import decompose, simplex_codes
from taskpriors.svd import feature_svd
from taskpriors.synbench import gaussians
from taskpriors.synbench.score import (
    SynBenchResult,
    SynBenchSettings,
    score_by_n,
    synbench_score,
)
from taskpriors.transfer.agreement import rank_agreement
from taskpriors.transfer.code_length import loss_curve
from taskpriors.transfer.discriminants import h_score
from taskpriors.transfer.evidence import logme
from taskpriors.transfer.neighbours import knn_accuracy, uniformity
from taskpriors.transfer.spectrum import cka, hsic, lidar, rankme

PAGE = os.sysconf("SC_PAGE_SIZE")
HUGE = 2**40


def normal(n, d, seed=0, dtype=torch.float32):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def tasks(m, n, q):
    return torch.randint(q, (m, n), generator=torch.Generator().manual_seed(0))


def gram(n, r, dtype=torch.float32):
    Z = normal(n, r, dtype=dtype)
    return Z @ Z.T


def task(**options):
    return gaussians.synthetic_task(1.0, (3, 64, 64), **options)


def drawn():
    return labelings.sample_labelings(normal(1_500, 4), 9999.0, 2, n_tasks=16, seed=0)


CALLS = {  # what to run, at a size where it takes 100 to 550 MB
    "center": lambda: (center, normal(100_000, 256)),
    "kernel_matrix": lambda: (kernel_matrix, normal(7_000, 8)),
    "kernel_factor cosine": lambda: (kernel_factor, normal(40_000, 512)),
    "kernel_factor linear": lambda: (kernel_factor, normal(40_000, 512), "linear"),
    "kernel_factor projection": lambda: (kernel_factor, normal(60_000, 128), "projection"),
    "cholesky_factor": lambda: (cholesky_factor, gram(2_400, 8)),
    "cholesky_factor float64": lambda: (cholesky_factor, gram(2_000, 2_000, torch.float64)),
    "rbf_factor": lambda: (functools.partial(_rbf_factor, rank=24), normal(10_000, 512)),
    "rbf_factor rank": lambda: (functools.partial(_rbf_factor, rank=150), normal(40_000, 16)),
    "product_factor": lambda: (product_factor, [(normal(40_000, 256), 1.0)] * 2),
    "optimal_probe": lambda: (
        loss_equivalence.optimal_probe,
        normal(60_000, 128),
        normal(60_000, 2),
    ),
    "probe_loss": lambda: (
        loss_equivalence.probe_loss,
        normal(60_000, 8),
        normal(60_000, 512),
        torch.zeros(8, 512),
        torch.zeros(512),
    ),
    "label_graph": lambda: (loss_equivalence.label_graph, tasks(1, 6_000, 3)),
    "edge_probabilities": lambda: (edges.edge_probabilities, normal(5_000, 8), 9.0),
    "log_partition": lambda: (
        functools.partial(edges.log_partition, block_size=4096),
        normal(4_096, 8),
        9.0,
    ),
    "graph_log_prob": lambda: (
        functools.partial(edges.graph_log_prob, block_size=2_000),
        torch.ones(1, 4_000, 4_000, dtype=torch.bool),
        normal(4_000, 8),
        9.0,
    ),
    "sample_graphs": lambda: (edges.sample_graphs, normal(1_800, 8), 9.0, 10),
    "sample_graphs undirected": lambda: (
        functools.partial(edges.sample_graphs, graphs="undirected"),
        normal(1_600, 8),
        9.0,
        12,
    ),
    "trace_moments": lambda: (
        functools.partial(moments.trace_moments, block_size=3_000),
        normal(3_000, 8),
        normal(3_000, 8, 1),
        9.0,
    ),
    "trace_cumulants": lambda: (
        functools.partial(moments.trace_cumulants, block_size=1_500),
        normal(1_500, 8),
        normal(1_500, 8, 1),
        9.0,
    ),
    "sample_labels": lambda: (
        functools.partial(prefix.sample_labels, n_tasks=2_000),
        normal(5_000, 16),
        99.0,
        3,
    ),
    "task_diversity": lambda: (prefix.task_diversity, tasks(1_500, 200, 2)),
    "sample_labelings anneal": lambda: (
        functools.partial(labelings.sample_labelings, n_tasks=6_000, gibbs_sweeps=0),
        normal(1_000, 16),
        9_999.0,
        3,
    ),
    "sample_labelings gibbs": lambda: (
        functools.partial(
            labelings.sample_labelings, n_tasks=4_000, method="gibbs", gibbs_sweeps=1
        ),
        normal(2_000, 16),
        9_999.0,
        3,
    ),
    "enumerate_labelings": lambda: (labelings.enumerate_labelings, normal(19, 4), 9.0, 2),
    "pair_marginals": lambda: (drawn().pair_marginals,),
    "heldout error, edges": lambda: (
        heldout.expected_heldout_error,
        normal(6_000, 512),
        normal(6_000, 16, 1),
        99.0,
    ),
    "heldout error, labels": lambda: (
        heldout.expected_heldout_error,
        normal(20_000, 128),
        tasks(50, 20_000, 10),
    ),
    "heldout error, labels, float64": lambda: (
        heldout.expected_heldout_error,
        normal(20_000, 64, dtype=torch.float64),
        tasks(50, 20_000, 10),
    ),
    "regression error": lambda: (
        regression.expected_regression_error,
        normal(40_000, 64),
        normal(40_000, 64, 1),
    ),
    "decompose": lambda: (decompose, normal(80_000, 256)),
    "decompose wide": lambda: (decompose, normal(1_000, 8_000)),
    "simplex_codes": lambda: (simplex_codes, 4_000),
    "ridge_probes": lambda: (ridge_probes, normal(20_000, 64), tasks(60, 20_000, 10)),
    "ridge_probes train": lambda: (
        functools.partial(ridge_probes, alpha=1.0, train=0.5),
        normal(60_000, 128),
        tasks(10, 60_000, 10),
    ),
    "logistic_probes": lambda: (
        functools.partial(logistic_probes, train=0.5, max_iter=12),
        normal(20_000, 16),
        tasks(40, 20_000, 10),
    ),
    "TaskPrior.from_labels": lambda: (TaskPrior.from_labels, tasks(10, 60_000, 10), 1.0),
    "TaskPrior.from_views": lambda: (TaskPrior.from_views, 2_500, 3, 1.0),
    "task.sample": lambda: (task().sample, 4_000),
    "task.rows heptadiagonal": lambda: (task(covariance="heptadiagonal").rows, 0, 2_000),
    "feature_svd": lambda: (feature_svd, normal(60_000, 128)),
    "feature_svd wide": lambda: (feature_svd, normal(64, 60_000)),
    "feature_svd float64": lambda: (feature_svd, normal(60_000, 128, dtype=torch.float64)),
    "rankme": lambda: (rankme, normal(60_000, 128)),
    "h_score": lambda: (h_score, normal(10_000, 500), tasks(1, 10_000, 10)[0]),
    "logme": lambda: (logme, normal(200_000, 128), tasks(1, 200_000, 10)[0]),
    "lidar": lambda: (lidar, normal(60_000, 128).view(20_000, 3, 128)),
    "hsic": lambda: (hsic, normal(60_000, 128), normal(60_000, 96, 1)),
    "hsic wide": lambda: (hsic, normal(600, 4_000), normal(600, 5_000, 1)),
    "cka": lambda: (cka, normal(60_000, 128), normal(60_000, 96, 1)),
    "uniformity": lambda: (uniformity, normal(3_000, 4_000)),
    "pass_over_pairs": lambda: (pass_over_pairs, normal(14_000, 64)),
    "pass_over_pairs wide": lambda: (pass_over_pairs, normal(3_000, 2_000)),
    "knn_accuracy": lambda: (knn_accuracy, normal(4_000, 1_024), tasks(1, 4_000, 10)[0]),
    "precision_at_k": lambda: (
        functools.partial(heldout.precision_at_k, block_size=3_000),
        normal(4_000, 32),
        normal(4_000, 8, 1),
        9.0,
    ),
    "trace_covariance": lambda: (
        functools.partial(tails.trace_covariance, block_size=1_200),
        dict(a=normal(2_400, 8), b=normal(2_400, 8, 1)),
        normal(2_400, 8, 2),
        9.0,
    ),
    "edge_temperature": lambda: (
        functools.partial(edge_temperature, n_points=5_000),
        normal(5_000, 8),
    ),
}


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * PAGE


def highest():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) * 1024


def forget_highest():
    "From here on the highest resident memory is that of what follows."
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def give_back_at_once():
    """Freed blocks of 128 KB and more go back to the system.

    glibc raises that size, up to 32 MB, to the largest block it has seen freed; from then on such
    blocks stay with the process, and a peak would depend on what was freed in which order.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        M_MMAP_THRESHOLD = -3
        libc.mallopt(M_MMAP_THRESHOLD, 128 * 1024)


def measured(name):
    """Memory that a call needs beyond its arguments, and the most that it says it will need.

    The highest resident memory of a process never falls, and the heap of one that has run other
    tests holds what they freed: this runs in a process that has only imported everything.
    """
    torch.set_num_threads(1)
    give_back_at_once()
    call, *arguments = CALLS[name]()
    gc.collect()
    forget_highest()
    base = resident()
    said = 0

    def ask(n_bytes, *args, component=checks.check_memory, **kwargs):
        nonlocal said
        said = max(said, resident() - base + n_bytes)
        component(n_bytes, *args, **kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("taskpriors") and hasattr(module, "check_memory"):
            module.check_memory = ask
    before = highest()
    call(*arguments)
    return highest() - base, said, before - base


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", CALLS)
def test_a_prediction_is_within_half_of_the_peak(name):
    answer = call_in_a_fork(measured, name)
    assert not isinstance(answer, str), answer
    peak, said, before = answer
    assert before < 0.6 * peak, "the arguments took more than the call"
    ratio = said / peak
    assert 1 / 1.5 < ratio < 1.5, f"{said / 2**20:.0f} MB said, {peak / 2**20:.0f} MB used"


IMAGES = torch.zeros(4, 3, 8, 8)
FEW = tasks(1, 40, 2)[0]


def flat(x):
    return x.flatten(1).float()


def linear(x):
    return flat(x)[:, :2]


def scores():
    right = torch.ones(1, 1, 8, dtype=torch.bool)
    half = torch.full((1,), 0.9, dtype=torch.float64)
    return SynBenchResult(
        model="m",
        n_features=2,
        settings=SynBenchSettings(eps=(0.0,), scales=(1.0,)),
        seed=0,
        reference_accuracy=half,
        reference_bound=half,
        correct=right,
        margin=right.float(),
    )


def attack(f, **options):
    return lambda: f(linear, IMAGES, torch.zeros(4).long(), **options)


def agree(f, n, **options):
    rows = normal(n, 20)
    return lambda: f(*rows, n_resamples=HUGE, **options)


def blocks_of(size, f, *factors, **options):
    return lambda: f(*factors, 9.0, block_size=size, **options)


TALL = normal(100_000, 2)
TOO_MANY = {  # a count that no machine can carry
    "embed num_workers": lambda: embed_features(
        flat, IMAGES.permute(0, 2, 3, 1), transform=flat, cache=False, num_workers=HUGE
    ),
    "ImageSource n_threads": lambda: ImageSource([IMAGES[0].numpy()], "x", n_threads=HUGE),
    "anneal gibbs_sweeps": lambda: labelings.sample_labelings(
        normal(9, 2), 9.0, 2, n_tasks=4, gibbs_sweeps=HUGE
    ),
    "gibbs gibbs_sweeps": lambda: labelings.sample_labelings(
        normal(9, 2), 9.0, 2, n_tasks=10**7, gibbs_sweeps=10**6, method="gibbs"
    ),
    "sample_labels n_tasks": lambda: prefix.sample_labels(normal(9, 2), 9.0, 2, n_tasks=HUGE),
    "sample_labels n_classes": lambda: prefix.sample_labels(normal(9, 2), 9.0, HUGE),
    "sample_labelings n_tasks": lambda: labelings.sample_labelings(
        normal(9, 2), 9.0, 2, n_tasks=HUGE
    ),
    "calibrate_temperature n_tasks": lambda: calibration.calibrate_temperature(
        normal(9, 2), 2, n_tasks=HUGE
    ),
    "TaskPrior.sample n_tasks": lambda: TaskPrior(normal(9, 2), 9.0).sample(2, HUGE),
    "TaskPrior.sample n_particles": lambda: TaskPrior(normal(9, 2), 9.0).sample(n_particles=HUGE),
    "enumerate_labelings labelings": lambda: labelings.enumerate_labelings(normal(9, 2), 9.0, 99),
    "sample_graphs n_graphs": lambda: edges.sample_graphs(
        normal(9, 2), 9.0, HUGE, graphs="directed"
    ),
    "TaskPrior.from_views n_samples": lambda: TaskPrior.from_views(HUGE, 2, 1.0),
    "TaskPrior.from_views n_views": lambda: TaskPrior.from_views(2, HUGE, 1.0),
    "pgd_attack restarts": attack(robust_probing.pgd_attack, eps=0.1, restarts=HUGE),
    "pgd_attack n_steps": attack(robust_probing.pgd_attack, eps=0.1, n_steps=HUGE),
    "robust_linear_probe n_epochs": attack(
        robust_probing.robust_linear_probe, eps=0.1, n_epochs=HUGE
    ),
    "robust_linear_probe n_steps": attack(
        robust_probing.robust_linear_probe, eps=0.1, n_steps=HUGE
    ),
    "rank_agreement n_resamples": agree(rank_agreement, 2, method="weighted_tau"),
    "compare_agreement n_resamples": agree(compare_agreement, 3),
    "interval n_draws": lambda: scores().interval(n_draws=HUGE),
    "synbench_score n_train": lambda: synbench_score(flat, input_size=(3, 8, 8), n_train=HUGE),
    "synbench_score n_test": lambda: synbench_score(flat, input_size=(3, 8, 8), n_test=HUGE),
    "score_by_n sizes": lambda: score_by_n(flat, [8, HUGE], input_size=(3, 8, 8)),
    "synthetic_task shape": lambda: gaussians.synthetic_task(1.0, HUGE),
    "heptadiagonal shape": lambda: gaussians.heptadiagonal((1, 2**20, 2**20)),
    "task.rows stop": lambda: task().rows(0, HUGE),
    "task.sample n": lambda: task().sample(HUGE),
    "task.batches n": lambda: next(task().batches(HUGE)),
    "simplex_codes n_classes": lambda: simplex_codes(HUGE),
    "ridge_probes n_classes": lambda: ridge_probes(normal(40, 2), FEW, n_classes=HUGE),
    "loss_curve n_points": lambda: loss_curve(normal(40, 2), FEW, n_points=HUGE),
    "rank_models n_tasks": lambda: rank_models(**nested(n_tasks=HUGE)),
    "plot_tasks n_tasks": lambda: plot_tasks(normal(40, 2), n_tasks=HUGE),
    "edge_temperature n_points": lambda: edge_temperature(TALL, n_points=HUGE),
    "trace_moments block_size": blocks_of(HUGE, moments.trace_moments, TALL, TALL),
    "trace_moments small blocks": blocks_of(1, moments.trace_moments, TALL, TALL),
    "log_partition block_size": blocks_of(HUGE, edges.log_partition, TALL),
    "precision_at_k block_size": blocks_of(HUGE, heldout.precision_at_k, TALL, TALL),
    "expected_heldout_error block_size": blocks_of(
        HUGE, heldout.expected_heldout_error, TALL, TALL
    ),
    "uniformity block_size": lambda: uniformity(TALL, block_size=HUGE),
}


def allow(what, most):
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def refusal(name):
    "What the call says where two more gigabytes and twenty seconds of a processor may be used."
    with open("/proc/self/statm") as f:
        mapped = int(f.read().split()[0]) * PAGE
    allow(resource.RLIMIT_AS, mapped + 2**31)
    allow(resource.RLIMIT_CPU, int(time.process_time()) + 20)
    forget_highest()
    base = resident()
    try:
        TOO_MANY[name]()
    except (ValueError, MemoryError) as e:
        return str(e), highest() - base
    return "no refusal", highest() - base


def refusals_of_all():
    return {name: refusal(name) for name in TOO_MANY}


@functools.cache
def all_refusals():
    "In one process, one after the other; a sentence if one of them ends it."
    return call_in_a_fork(refusals_of_all)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", TOO_MANY)
def test_a_count_that_nothing_can_carry_is_refused_before_any_work(name):
    answers = all_refusals()
    answer = call_in_a_fork(refusal, name) if isinstance(answers, str) else answers[name]
    assert not isinstance(answer, str), answer
    message, grown = answer
    assert re.fullmatch(r"([\w.]+: )?.+\. Got .+; .+\.", message), message
    assert name.split()[-1] in message or "GiB may be allocated" in message, message
    assert len(message) < 300
    assert grown < 2**26, f"{grown / 2**20:.0f} MB were allocated"


def test_workers_are_bounded_by_the_cores():
    most = checks._WORKERS_PER_CORE * checks._usable_cores()
    assert checks.check_load(most, "num_workers", workers=True) == most
    with pytest.raises(ValueError, match=f"at most {most}. Got {most + 1};"):
        checks.check_load(most + 1, "num_workers", workers=True)


def left_of_a_quarter_gigabyte():
    "The memory that is left, as a process whose address space may grow by so much sees it."
    with open("/proc/self/statm") as f:
        mapped = int(f.read().split()[0]) * PAGE
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2**28, mapped + 2**28))
    left = checks.available_memory()
    Z = normal(9_000, 2)
    with pytest.raises(MemoryError, match="edge_probabilities: at most 0.2. GiB may be"):
        edges.edge_probabilities(Z, 1.0)
    return left


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_limit_of_the_address_space_is_the_memory_that_is_left():
    left = call_in_a_fork(left_of_a_quarter_gigabyte)
    assert not isinstance(left, str), left
    assert 0.9 * 2**28 < left <= 2**28
