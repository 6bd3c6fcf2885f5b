"""Every transferability metric is listed with its direction and its symmetries, keeps its promises
in both precisions and both shapes, and changes nothing it is given.
"""

import importlib
import inspect
import json
import math
import pkgutil
import warnings
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from for_each import for_each

import taskpriors.transfer
from taskpriors.transfer.registry import METRICS, Metric, transfer_scores

CHAPTER = Path(__file__).resolve().parent.parent / "nbs" / "transfer" / "15_registry.ipynb"


def transforms_of_the_chapter():
    "Name of a transformation -> function of inputs, by the cell that defines them."
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    names = dict(torch=torch, partial=partial)
    exec(next(s for s in sources if "TRANSFORMS = {" in s), names)
    return names["TRANSFORMS"]


TRANSFORMS = transforms_of_the_chapter()
METRIC_INPUTS = {
    ("features", "labels"),
    ("source_probs", "labels"),
    ("source", "labels"),
    ("features", "other"),
    ("views",),
}
NOT_METRICS = {
    "check_views": "a check of an argument",
    "fit_head": "returns HeadFit",
    "task_mixture": "returns the posteriors of a mixture",
    "loss_curve": "returns LossCurve",
    "hsic": "has no direction of its own: CKA normalises it",
    "metric_costs": "counts operations of metrics",
    "mixture_operations": "counts operations",
}

BLIND = {
    "tmi": "looks within the classes only, which more signal does not change",
    "ncti_vc": "is low at chance too: its chapter shows it",
}


def task(n=60, d=6, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 3
    X = (
        torch.randn(n, d, generator=g, dtype=torch.float64)
        + torch.randn(3, d, generator=g, dtype=torch.float64)[y]
        + 0.5
    )
    P = torch.softmax(X @ torch.randn(d, 5, generator=g, dtype=torch.float64) / d**0.5, 1)
    views = X[:, None] + 0.3 * torch.randn(n, 3, d, generator=g, dtype=torch.float64)
    out = dict(
        features=X,
        labels=y,
        source_probs=P,
        views=views,
        reference=X[:, :3] + torch.randn(n, 3, generator=g, dtype=torch.float64),
    )
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in out.items()}


def call(metric, inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return metric(*(inputs[k] for k in metric.needs))


def public_metrics():
    "Functions of the wing that take what metrics take and are annotated to return a float."
    for info in pkgutil.iter_modules(taskpriors.transfer.__path__):
        mod = importlib.import_module(f"taskpriors.transfer.{info.name}")
        for name, f in vars(mod).items():
            here = inspect.isfunction(f) and f.__module__ == mod.__name__
            if not here or name.startswith("_"):
                continue
            required = tuple(
                k for k, p in inspect.signature(f).parameters.items() if p.default is p.empty
            )
            if required in METRIC_INPUTS or (
                required == ("features",) and inspect.signature(f).return_annotation is float
            ):
                yield name, f


def test_every_metric_of_the_wing_is_listed():
    found = dict(public_metrics())
    assert len(found) > 20
    assert not {k for k in found if k not in METRICS and k not in NOT_METRICS}
    listed = {m.function for m in METRICS.values()}
    assert {found[k] for k in found if k not in NOT_METRICS} <= listed


def named(value):
    "How a failure names a metric or what is asked of it."
    return getattr(value, "name", str(value))


@for_each("metric", METRICS.values(), named)
def test_a_line_is_complete(metric):
    assert (
        isinstance(metric.higher_is_better, bool)
        and metric.cost
        and metric.source
        and metric.function.__doc__
    )
    assert set(metric.needs) <= set(task()) and metric.invariances | metric.changes
    assert metric.trivial or (metric.invariances and metric.changes)
    assert (
        metric.invariances | metric.changes <= set(TRANSFORMS)
        and not metric.invariances & metric.changes
    )
    least = "shuffled labels" if "labels" in metric.needs else "noise"
    assert least in (metric.invariances if metric.name == "width" else metric.changes)


SHAPES = {"more points": dict(n=60, d=6), "more features": dict(n=60, d=90)}
CLAIMS = [
    (m, kind, t)
    for m in METRICS.values()
    for kind in ("invariances", "changes")
    for t in sorted(getattr(m, kind))
]


def inputs_of(metric, shape=None, dtype=torch.float64):
    "What a metric needs of a task, in the order of its arguments."
    inputs = task(**SHAPES.get(shape, {}), dtype=dtype)
    return {k: inputs[k] for k in metric.needs}


@cache
def value_of(metric, shape=None, dtype=torch.float64):
    return call(metric, inputs_of(metric, shape, dtype))


@for_each("metric, kind, name", CLAIMS, named)
def test_symmetries_hold(metric, kind, name):
    inputs = inputs_of(metric)
    before, after = value_of(metric), call(metric, TRANSFORMS[name](inputs))
    if kind == "changes":
        assert not math.isclose(after, before, rel_tol=1e-5, abs_tol=1e-7)
    else:
        assert after == pytest.approx(before, rel=1e-4, abs=1e-5)


@for_each(
    "metric, name, shape, dtype",
    [
        (m, t, shape, dtype)
        for m, k, t in CLAIMS
        for shape, dtype in (
            ("more points", torch.float32),
            ("more features", torch.float64),
            ("more features", torch.float32),
        )
        if k == "invariances"
    ],
    named,
)
def test_invariances_hold_in_both_shapes_and_precisions(metric, name, shape, dtype):
    inputs = inputs_of(metric, shape, dtype)
    rough = dict(rel=1e-4, abs=1e-5) if dtype == torch.float64 else dict(rel=5e-3, abs=5e-3)
    assert call(metric, TRANSFORMS[name](inputs)) == pytest.approx(
        value_of(metric, shape, dtype), **rough
    )


@for_each("metric, shape", product(METRICS.values(), SHAPES), named)
def test_finite_pure_and_of_one_mind(metric, shape):
    """No NaN, no change of the input or the global random state; numpy and torch, float32 and
    float64 agree.
    """
    inputs = task(**SHAPES[shape])
    copies, state = (
        {k: v.clone() for k, v in inputs.items()},
        (torch.get_rng_state(), np.random.get_state()[1].copy()),
    )
    value = call(metric, inputs)
    assert isinstance(value, float) and math.isfinite(value)
    assert all(torch.equal(v, copies[k]) for k, v in inputs.items())
    assert (
        torch.equal(state[0], torch.get_rng_state())
        and (state[1] == np.random.get_state()[1]).all()
    )
    assert call(metric, {k: v.numpy() for k, v in inputs.items()}) == value
    assert call(
        metric,
        {k: v.clone().requires_grad_() if v.is_floating_point() else v for k, v in inputs.items()},
    ) == pytest.approx(value, rel=1e-9)
    narrow = {k: v.float() if v.is_floating_point() else v for k, v in inputs.items()}
    assert call(metric, narrow) == pytest.approx(value, rel=2e-3, abs=1e-3)


WITH_LABELS = [m for m in METRICS.values() if "labels" in m.needs]


@for_each("metric", WITH_LABELS, named)
def test_small_classes(metric):
    "A class with one point and a class with none."
    inputs = task()
    y = inputs["labels"].clone()
    y[y == 2] = 1
    y[7], y[8] = 9, 0
    assert math.isfinite(call(metric, inputs | dict(labels=y)))


BAD_LABELS = {
    "two classes": torch.zeros(60),
    "same examples": torch.arange(59) % 2,
    "at least 0": torch.arange(60) - 3,
    "whole numbers": torch.rand(60),
}


@for_each("metric, says", product(WITH_LABELS, BAD_LABELS), named)
def test_bad_labels_are_refused(metric, says):
    with pytest.raises(ValueError, match=says):
        call(metric, task() | dict(labels=BAD_LABELS[says]))


@for_each("metric", METRICS.values(), named)
def test_nan_is_refused(metric):
    for k in set(metric.needs) - {"labels"}:
        bad = task()[k].clone()
        bad[3] = float("nan")
        with pytest.raises(ValueError, match="row 3"):
            call(metric, task() | {k: bad})


@for_each(
    "metric",
    [m for m in METRICS.values() if m.needs == ("features", "labels") and m.name not in BLIND],
    named,
)
def test_direction(metric):
    "More signal is better, as the table has it."
    g = torch.Generator().manual_seed(1)
    y, centres, noise = (
        torch.arange(240) % 4,
        torch.randn(4, 12, generator=g),
        torch.randn(240, 12, generator=g),
    )
    strong, weak = (
        call(metric, dict(features=s * centres[y] + noise, labels=y)) for s in (1.0, 0.3)
    )
    assert (strong > weak) == metric.higher_is_better and strong != weak


def test_a_metric_without_symmetries_is_an_error():
    "A metric cannot be made without them."
    with pytest.raises(TypeError):
        Metric("new", lambda features, labels: 0.0, ("features", "labels"), True)


def test_kept_refusals_and_values_cover_all_that_was_asked():
    inputs = task()
    inputs["features"] = torch.eye(3, dtype=torch.float64)[inputs["labels"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        out = transfer_scores(inputs["features"], inputs["labels"], on_error="keep")
    asked = [k for k, m in METRICS.items() if set(m.needs) <= {"features", "labels"}]
    assert sorted([*out.values, *out.refused]) == sorted(asked) and "logme" in out.refused
    assert not any(math.isnan(v) for v in out.values.values())


def edge_inputs():
    "Name -> features and labels at the limits of what can be scored."
    g = torch.Generator().manual_seed(3)
    X = torch.randn(24, 5, generator=g, dtype=torch.float64)
    y, two = torch.arange(24) % 3, torch.arange(24) % 2
    one_hot = torch.eye(3, dtype=torch.float64)[y]
    wide = torch.randn(12, 40, generator=g, dtype=torch.float64)
    alone = torch.where(torch.arange(24) == 0, 7, two)
    constant, linear, copies = X.clone(), X.clone(), X.clone()
    constant[:, 2], linear[:, 4], copies[12:] = 3.0, X[:, 0] - 2 * X[:, 1], X[:12]
    outlier, zero_row = X.clone(), X.clone()
    outlier[0], zero_row[5] = 1e6, 0.0
    names = dict(
        a_singleton_class=(X, alone),
        a_missing_class=(X, 5 * y),
        all_but_one_point_in_one_class=(X, (torch.arange(24) == 3).long()),
        a_class_for_each_point=(X, torch.arange(24)),
        two_points_a_class=(X, torch.arange(24) % 12),
        as_many_points_as_classes_less_one=(X, torch.arange(24).clamp(max=22)),
        separable=(X + 50 * one_hot[:, [0, 1, 2, 0, 1]], y),
        the_labels_themselves=(one_hot, y),
        labels_by_chance=(X, y[torch.randperm(24, generator=g)]),
        a_constant_column=(constant, y),
        all_columns_constant=(torch.ones(24, 5, dtype=torch.float64), y),
        columns_that_depend=(linear, y),
        one_column=(X[:, :1], y),
        a_column_of_two_values=(two[:, None].double(), y),
        two_columns=(X[:, :2], y),
        more_columns_than_points=(wide, torch.arange(12) % 3),
        as_many_columns_as_points=(wide[:, :12], torch.arange(12) % 3),
        three_points=(X[:3], torch.tensor([0, 1, 1])),
        four_points=(X[:4], torch.tensor([0, 1, 1, 0])),
        copies_of_points=(copies, y),
        points_on_a_grid=(torch.cartesian_prod(torch.arange(6.0), torch.arange(4.0)), y),
        a_zero_row=(zero_row, y),
        an_outlier=(outlier, y),
        tiny=(X * 1e-120, y),
        huge=(X * 1e120, y),
        far_from_the_origin=(X + 1e8, y),
        half_precision=(X.half(), y),
        whole_numbers=((10 * X).round().long(), y),
    )
    return names


@pytest.mark.parametrize("name", edge_inputs())
def test_edge_inputs_have_a_finite_value_or_are_refused_in_one_sentence(name):
    features, labels = edge_inputs()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = transfer_scores(features, labels, on_error="keep")
    asked = [k for k, m in METRICS.items() if set(m.needs) <= {"features", "labels"}]
    assert sorted([*out.values, *out.refused]) == sorted(asked)
    unbounded = {"eps_sample_complexity"}  # infinite where the loss stays above eps
    assert not [k for k, v in out.values.items() if not math.isfinite(v) and k not in unbounded]
    assert not [why for why in out.refused.values() if ". Got " not in why or len(why) > 300]
