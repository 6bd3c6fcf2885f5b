"""Every function for users meets every bad input, and so do the steps that take data like one.

It answers in one sentence, *function: rule. Got value; remedy.*, and leaves its arguments as they
were. A step below those functions answers without a name. The same data in another form give the
same answer.

`CALLS` holds one valid call per function; the bad values are chosen by the name of the parameter.
A new function of the contract that takes data and is neither in `CALLS` nor in `EXEMPT` fails
`test_nothing_is_forgotten`; a function that nobody was promised may have a call as well.
"""

import importlib
import inspect
import re
from dataclasses import fields, is_dataclass
from functools import partial

import pytest
import torch
from for_each import for_each
from test_contract import promised_functions

N, D = 24, 4
SENTENCE = re.compile(r"^[\w.]+: .+\. Got .*; .+\.$", re.S)
DATA = {"features", "Z", "M", "labels", "prior"}  # parameters by which a function takes data


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=gen(seed), dtype=torch.float64)


X, X2 = randn(N, D), randn(N, D, seed=1)
Z = (X - X.mean(0)) / 4
Y = torch.randint(0, 2, (3, N), generator=gen(2))
y = torch.arange(N) % 3
P = torch.softmax(randn(N, 5, seed=3), 1)

IMAGES = torch.rand(N, 1, 2, 2, generator=gen(4))


def flat(x):
    return x.flatten(1)


def linear(x):
    return flat(x) @ torch.tensor([[1.0, -1.0]]).expand(4, 2).to(x)


CALLS = {
    "kernels": {
        "center": dict(Z=X),
        "kernel_matrix": dict(Z=X),
        "kernel_factor": dict(features=X),
        "cholesky_factor": dict(K=X @ X.T),
        "product_factor": dict(priors=[(X, 1.0), (X2, 2.0)]),
    },
    "probes": {
        "ridge_probes": dict(features=X, labels=Y),
        "logistic_probes": dict(features=X, labels=Y, train=0.5),
        "label_accuracy": dict(features=X, labels=y),
    },
    "prior.loss_equivalence": {
        "optimal_probe": dict(features=X, targets=X2),
        "optimal_probe_loss": dict(features=X, targets=X2),
        "label_graph": dict(labels=y),
        "probe_loss": dict(features=X, targets=X2, W=torch.zeros(D, D), b=torch.zeros(D)),
        "relative_objective": dict(features=X, labels=Y),
    },
    "prior.edges": {
        "edge_probabilities": dict(Z=Z, temperature=1.0),
        "log_partition": dict(Z=Z, temperature=1.0),
        "graph_log_prob": dict(G=torch.eye(N), Z=Z, temperature=1.0),
        "sample_graphs": dict(Z=Z, temperature=1.0, n_graphs=2, seed=0),
        "least_eigenvalue": dict(Z=Z, temperature=1.0),
    },
    "prior.moments": {
        "trace_moments": dict(M=X, prior=Z, temperature=1.0),
        "trace_cumulants": dict(M=X, prior=Z, temperature=1.0),
    },
    "prior.sketch": {
        "sketch_trace_moments": dict(
            M=X, prior=Z, temperature=1.0, rel_tol=0.5, max_pairs=2**20, seed=0
        ),
    },
    "prior.tails": {
        "trace_covariance": dict(models={"a": X, "b": X2}, prior=Z, temperature=1.0),
        "outperform_probability": dict(A=X, B=X2, prior=Z, temperature=1.0),
    },
    "prior.prefix": {
        "sample_labels": dict(Z=Z, temperature=1.0, n_classes=2, n_tasks=3, seed=0),
        "task_diversity": dict(labels=Y),
    },
    "prior.labelings": {
        "sample_labelings": dict(Z=Z, temperature=4.0, n_classes=2, n_tasks=64, seed=0),
        "enumerate_labelings": dict(Z=Z[:6], temperature=1.0, n_classes=2),
    },
    "prior.calibration": {
        "calibrate_temperature": dict(Z=Z, n_classes=2, seed=0),
        "critical_temperature": dict(Z=Z, n_classes=2),
    },
    "prior.heldout": {
        "expected_heldout_error": dict(features=X, prior=Z, temperature=1.0),
        "precision_at_k": dict(features=X, prior=Z, temperature=1.0, k=3),
    },
    "prior.regression": {
        "expected_regression_error": dict(features=X, prior=Z),
        "target_error": dict(features=X, targets=Z),
    },
    "prior.consensus": {
        "cross_skill": dict(features=[X, X2], factors=[Z], n_classes=2, n_tasks=3),
        "consensus_prior": dict(cross=torch.tensor([[1.0, 0.5], [0.4, 1.0]])),
    },
    "papers.robust_probing": {
        "pgd_attack": dict(logits=linear, images=IMAGES, labels=y % 2, eps=0.1, n_steps=2),
        "robust_linear_probe": dict(
            features_fn=flat, images=IMAGES, labels=y % 2, eps=0.1, n_epochs=1, n_steps=1
        ),
    },
    "synbench.robust_bayes": {"robust_bayes": dict(mu=torch.ones(3), Sigma=torch.eye(3), eps=0.1)},
    "transfer.leep": {
        "leep": dict(source_probs=P, labels=y),
        "nleep": dict(features=X, labels=y),
        "nce": dict(source=P.argmax(1), labels=y),
        "task_mixture": dict(features=X, labels=y),
    },
    "transfer.evidence": {
        "logme": dict(features=X, labels=y),
    },
    "transfer.heads": {
        "fit_head": dict(features=X, labels=y, beta=1.0),
    },
    "transfer.pactran": {
        "npactran_dirichlet": dict(features=X, labels=y),
        "npactran_gamma": dict(features=X, labels=y),
        "pactran_gaussian": dict(features=X, labels=y),
        **{k: dict(source_probs=P, labels=y) for k in ("pactran_dirichlet", "pactran_gamma")},
    },
    "papers.hyperparameters": {"gaussian_grid": dict(features=X, labels=y)},
    "papers.operations": {"mixture_operations": dict(features=X, labels=y)},
    "papers.fine_tuning": {
        "best_head_error": dict(features=X, labels=y, train=torch.arange(N) < 12),
    },
    "transfer.discriminants": {
        k: dict(features=X, labels=y)
        for k in (
            "h_score",
            "regularized_h_score",
            "sfda",
            "ped",
            "gbc",
            "transrate",
            "linear",
            "linear_valid",
        )
    },
    "transfer.code_length": {
        k: dict(features=X, labels=y) for k in ("validation_loss", "mdl", "loss_curve")
    }
    | {k: dict(features=X, labels=y, eps=9.0) for k in ("sdl", "eps_sample_complexity")},
    "transfer.spectrum": {
        "rankme": dict(features=X),
        "hsic": dict(features=X, other=X2),
        "cka": dict(features=X, other=X2),
        **{
            k: dict(features=X)
            for k in (
                "nesum",
                "alpha_gap",
                "width",
                "random_number",
            )
        },
    },
    "transfer.neighbours": {
        "knn_accuracy": dict(features=X, labels=y),
        "cluster_learnability": dict(features=X, n_clusters=3),
        "twonn": dict(features=X),
        "uniformity": dict(features=X),
    },
    "transfer.separation": {
        **{
            k: dict(features=X, labels=y)
            for k in (
                "centroid_accuracy",
                "lda_accuracy",
                "lda_score",
                "parc",
                "ncti_seli",
                "ncti_ncc",
                "ncti_vc",
                "concept_variation",
            )
        },
        "energy_score": dict(features=X),
    },
    "pairs": {"pass_over_pairs": dict(features=X)},
    "transfer.registry": {
        "transfer_scores": dict(features=X, labels=y, metrics=["logme", "sfda"]),
        "metric_functions": dict(labels=y),
    },
    "transfer.agreement": {"rank_agreement": dict(scores=X[:, 0], truth=X[:, 1])},
}
EXEMPT = {
    "prior.posterior": "a label of -1 is not known, which is no error; its notebook tests it",
    **dict.fromkeys(("inputs", "rank", "tools"), "tests/test_cli.py and their notebooks"),
}


def with_row(T, value):
    T = T.clone()
    T[len(T) // 2] = value
    return T


def bad_features(good):
    return [
        (with_row(good, float("nan")), "nan"),
        (with_row(good, float("inf")), "inf"),
        (good[:1], "one point"),
        (good[:, 0], "a vector"),
        ("path.npy", "a string"),
    ]


def bad_factor(good):
    return [*bad_features(good), (good[:-1], "a point short")]


def bad_kernel(good):
    indefinite, nan = -good, with_row(good, float("nan"))
    return [(indefinite, "indefinite"), (good[:, :-1], "not square"), (nan, "nan")]


def bad_models(good):
    short = {**good, "b": next(iter(good.values()))[:-1]}
    return [({}, "no model"), (short, "a point short")]


def bad_labels(good):
    strings = ["cat"] * N
    return [(good - 1, "negative"), (good.double() + 0.5, "halves"), (strings, "strings")]


def bad_temperature(good):
    numbers = [(0, "zero"), (-1.0, "negative"), (float("nan"), "nan"), (float("inf"), "inf")]
    return [*numbers, ("hot", "a string")]


def bad_probabilities(good):
    nan = with_row(good, float("nan"))
    return [(good * 2, "rows sum to two"), (-good, "negative"), (nan, "nan")]


def bad_count(good):
    return [(0, "zero"), (1.5, "a fraction")]


def bad_split(good):
    return [(0.0, "nobody"), (1.0, "everybody"), (torch.ones(N), "no mask")]


BAD = {
    **dict.fromkeys(("features", "Z", "prior"), bad_features),
    **dict.fromkeys(("M", "A", "B"), bad_factor),
    **dict.fromkeys(("n_tasks", "n_graphs", "n_samples", "n_views", "block_size", "k"), bad_count),
    "K": bad_kernel,
    "models": bad_models,
    "labels": bad_labels,
    "temperature": bad_temperature,
    "source_probs": bad_probabilities,
    "n_classes": lambda good: [(0, "zero"), (2.5, "a fraction")],
    "seed": lambda good: [("x", "a string"), (-1, "negative")],
    "executor": lambda good: [(3, "a number")],
    "graphs": lambda good: [("sideways", "unknown")],
    "train": bad_split,
}
NEEDS_A_GOOD_ONE = ("features", "Z", "M", "A", "B", "prior", "source_probs")


def bad_values(name, good):
    "Wrong values for a parameter of this name."
    if name not in BAD or (name in NEEDS_A_GOOD_ONE and not isinstance(good, torch.Tensor)):
        return []
    return BAD[name](good)


def cases():
    for module, calls in CALLS.items():
        try:
            mod = importlib.import_module(f"taskpriors.{module}")
        except ModuleNotFoundError:
            mod = None
        for name, kwargs in calls.items():
            yield module, name, mod and getattr(mod, name, None), kwargs


FUNCTIONS = {f"{m}.{name}": (f, kw) for m, name, f, kw in cases()}


@for_each("f, kwargs", FUNCTIONS)
def test_a_valid_call_works_and_changes_nothing(f, kwargs):
    before = {k: v.clone() for k, v in kwargs.items() if isinstance(v, torch.Tensor)}
    state = torch.get_rng_state()
    f(**kwargs)
    for k, v in before.items():
        assert torch.equal(v, kwargs[k]), f"{k} was changed"
    assert torch.equal(state, torch.get_rng_state()), "the global random state moved"


def other_forms(t):
    "The same numbers, handed over in another way."
    frozen = t.numpy().copy()
    frozen.flags.writeable = False
    strided = torch.stack([t, t], -1)[..., 0]
    yield from ((t.numpy(), "numpy"), (frozen, "read-only numpy"), (strided, "strided"))
    if t.is_floating_point():
        yield t.clone().requires_grad_(), "with a gradient"


def numbers(x):
    "All numbers in a result, in order."
    if isinstance(x, torch.Tensor):
        return [x.detach().double()]
    if isinstance(x, (int, float)):
        return [torch.tensor(float(x), dtype=torch.float64)]
    if is_dataclass(x):
        return [v for f in fields(x) for v in numbers(getattr(x, f.name))]
    if isinstance(x, dict):
        return [v for k in x for v in numbers(x[k])]
    return [v for y in x for v in numbers(y)] if isinstance(x, (list, tuple)) else []


@pytest.fixture
def every_warning():
    torch.set_warn_always(True)  # not only the first of its kind
    yield
    torch.set_warn_always(False)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.usefixtures("every_warning")
@for_each("f, kwargs", FUNCTIONS)
def test_the_form_of_the_data_changes_nothing(f, kwargs):
    expected = numbers(f(**kwargs))
    assert expected or f.__name__ == "metric_functions"  # which returns functions
    for name, good in kwargs.items():
        for value, what in other_forms(good) if isinstance(good, torch.Tensor) else ():
            got = numbers(f(**kwargs | {name: value}))
            for a, b in zip(got, expected, strict=True):
                said = partial("{}, {}: {}".format, name, what)
                torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9, equal_nan=True, msg=said)


def bad_calls():
    for module, name, f, kwargs in cases():
        for param in inspect.signature(f).parameters if f else ():
            if param in ("k", "seed") and param not in kwargs:
                continue  # read in some modes only
            for value, what in bad_values(param, kwargs.get(param)):
                yield f"{module}.{name} {param} {what}", (f, kwargs | {param: value})


@for_each("f, kwargs", dict(bad_calls()))
def test_a_bad_call_is_refused_in_one_sentence(f, kwargs):
    with pytest.raises((ValueError, TypeError, MemoryError)) as e:
        f(**kwargs)
    assert SENTENCE.match(str(e.value)), str(e.value)


def test_nothing_is_forgotten():
    forgotten, excused = [], set()
    for module, name, f in promised_functions():
        takes_data = DATA & set(inspect.signature(f).parameters)
        if not takes_data or name in CALLS.get(module, {}):
            continue
        reasons = {module.split(".")[0], module, f"{module}.{name}"} & set(EXEMPT)
        excused |= reasons
        if not reasons:
            forgotten.append(f"{module}.{name}")
    assert not forgotten, forgotten
    assert not set(EXEMPT) - excused, "no promised function needs this excuse"
