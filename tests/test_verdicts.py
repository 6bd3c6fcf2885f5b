"""Verdicts that an audit found wrong, each kind by several inputs."""

import numpy as np
import pandas as pd
import pytest
import torch

from taskpriors.rank.models import rank_models

QUIET = dict(n_tasks=20, progress=False, cache=False, judges=False)


def two_models(seed, n, signal):
    "Six features each; the first of one sees the signal well, that of the other badly."
    g = torch.Generator().manual_seed(seed)
    noise = torch.randn(2, n, 6, generator=g, dtype=torch.float64)
    noise[0, :, 0] += 1.9 * signal
    noise[1, :, 0] += 0.6 * signal
    return dict(worse=noise[1].numpy(), better=noise[0].numpy())


def rare_classes(seed, n=1000, share=0.05):
    g = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, generator=g) < share).long()
    return two_models(seed, n, y), y


def heavy_targets(seed, n=600):
    g = torch.Generator().manual_seed(100 + seed)
    y = torch.randn(n, 2, generator=g, dtype=torch.float64)
    return two_models(seed, n, y[:, 0]), y.exp()


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_rare_class_is_a_signal(seed, on_disk):
    models, y = rare_classes(seed)
    ranking = rank_models(models, labels=y, on_disk=on_disk, **QUIET)
    assert ranking.models[ranking.skill.argmax()] == "better"
    assert "No model predicts" not in ranking.verdict and ranking.verdict.startswith(
        "Take better: "
    )


@pytest.mark.parametrize("seed", range(2))
def test_heavy_targets_are_a_signal(seed):
    models, y = heavy_targets(seed)
    ranking = rank_models(models, labels=y, **QUIET)
    assert "No model predicts" not in ranking.verdict and ranking.verdict.startswith(
        "Take better: "
    )


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_labels_in_another_order_are_no_signal(share, on_disk):
    models, y = rare_classes(0, share=share)
    mixed = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(9))]
    ranking = rank_models(models, labels=mixed, on_disk=on_disk, **QUIET)
    assert ranking.verdict.startswith(
        "No model predicts the labels better than their largest class"
    )


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_level(seed):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(200, 12, generator=g) @ torch.randn(12, 12, generator=g)
    turn = torch.linalg.qr(torch.randn(12, 12, generator=g))[0]
    copies = dict(a=X, same=X.clone(), turned=X @ turn, scaled=3.7 * X, shifted=X + 0.1)
    for names in (["a", "same"], ["a", "turned", "scaled"], list(copies)):
        ranking = rank_models({name: copies[name] for name in names}, **QUIET)
        forecast, law = ranking.forecast, ranking.on_law.tiers()
        p = forecast.p_best.mean()  # of the share of as many draws, two may differ by four errors
        apart = 4 * (2 * p * (1 - p) / len(forecast.draws)) ** 0.5
        assert forecast.p_best.max() - forecast.p_best.min() <= apart
        assert forecast.tier.tolist() == law.tier.tolist() == [1] * len(names)
        assert not ranking.settled and "rival" in ranking.verdict.lower()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_scale_of_all_features_changes_nothing_on_disk(dtype):
    models, _ = rare_classes(1, n=300)
    models["third"] = models["better"] @ np.diag([1, 0.5, 0.5, 0.2, 0.2, 0.1]) + 0.1
    plain = None
    for power in (0, -43, -66, 60, 83):  # of two, which round nothing: a label drawn may not flip
        scale = 2.0**power
        rows = {name: (torch.tensor(X) * scale).to(dtype) for name, X in models.items()}
        skill = rank_models(rows, on_disk=True, n_tasks=20, progress=False, cache=False).skill
        plain = skill if plain is None else plain
        torch.testing.assert_close(skill, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "form", [list, np.array, torch.tensor, lambda x: np.array(x).astype(str), pd.Series]
)
def test_groups_come_in_any_form(form):
    models, _ = rare_classes(2, n=120)
    ranking = rank_models(models, **QUIET)
    number = [k // 4 for k in range(120)]
    plain = str(ranking.on_law.compare("worse", "better", groups=number))
    assert str(ranking.on_law.compare("worse", "better")) != plain
    for groups in (form(number), [np.int64(k) for k in number], [f"g{k}" for k in number]):
        assert str(ranking.on_law.compare("worse", "better", groups=groups)) == plain


@pytest.mark.parametrize("n_labels", [1, 2])
def test_one_label_is_singular(n_labels):
    models, y = rare_classes(3, n=120)
    labels = {k: int(y[k]) for k in range(n_labels)}
    verdict = rank_models(models, labels=labels, **QUIET).verdict
    known = "your 1 label it" if n_labels == 1 else "your 2 labels it"
    assert f"Without {known} " in verdict


@pytest.mark.parametrize("freedom", [1.5, 2.5, None])
@pytest.mark.parametrize("labelled", [False, True])
def test_rows_of_heavy_lengths_are_said_in_the_verdict(freedom, labelled):
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(500, 10))
    length = 1.0 if freedom is None else np.abs(rng.standard_t(freedom, (500, 1))) + 0.05
    noisy = [seen + s * rng.normal(size=seen.shape) for s in (0.5, 1.0, 2.0)]
    models = {f"m{k}": length * X for k, X in enumerate(noisy)}
    labels = (seen[:, 0] > 0).astype(int) if labelled else None
    verdict = rank_models(models, labels=labels, **QUIET).verdict
    assert ("A few points carry the errors" in verdict) == (freedom is not None)


@pytest.mark.parametrize("name", ["resnet10t", "test_vit", "test_convnext"])
def test_networks_that_were_never_trained_are_said_to_be(name):
    images = np.random.default_rng(0).integers(0, 256, (24, 16, 16, 3), dtype=np.uint8)
    options = QUIET | dict(images=images, n_classes=3)
    models = [f"{name}@untrained", "zoo/pixels", "test_resnet@untrained"]
    ranking = rank_models(models, **options)
    described = ranking.settings["models"]
    assert [described[model].get("untrained", False) for model in models] == [True, False, True]
    is_first = ranking.best != "zoo/pixels"
    assert (f"{ranking.best} was never trained" in ranking.verdict) == is_first
    of_two = rank_models(models[::2], **options)
    assert "No model here was trained" in of_two.verdict
