"""Verdicts that an audit found wrong, each kind by several inputs."""

import numpy as np
import pandas as pd
import pytest
import torch

from taskpriors.inputs.images import load_images
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested

QUIET = dict(n_tasks=20, progress=False, cache=False, references=False)


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
    ranking = rank_models(models, **nested(labels=y, on_disk=on_disk, **QUIET))
    assert ranking.models[ranking.skill.argmax()] == "better"
    assert "No model predicts" not in ranking.verdict and ranking.verdict.startswith(
        "Take better: "
    )


@pytest.mark.parametrize("seed", range(2))
def test_heavy_targets_are_a_signal(seed):
    models, y = heavy_targets(seed)
    ranking = rank_models(models, **nested(labels=y, **QUIET))
    assert "No model predicts" not in ranking.verdict and ranking.verdict.startswith(
        "Take better: "
    )


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_labels_in_another_order_are_no_signal(share, on_disk):
    models, y = rare_classes(0, share=share)
    mixed = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(9))]
    ranking = rank_models(models, **nested(labels=mixed, on_disk=on_disk, **QUIET))
    assert ranking.verdict.startswith(
        "No model predicts the labels better than their most frequent class"
    )


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_level(seed):
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(200, 12, generator=g) @ torch.randn(12, 12, generator=g)
    turn = torch.linalg.qr(torch.randn(12, 12, generator=g))[0]
    copies = dict(a=X, same=X.clone(), turned=X @ turn, scaled=3.7 * X, shifted=X + 0.1)
    for names in (["a", "same"], ["a", "turned", "scaled"], list(copies)):
        ranking = rank_models({name: copies[name] for name in names}, **nested(**QUIET))
        forecast = ranking.forecast
        p = forecast.p_best.mean()  # of the share of as many draws, two may differ by four errors
        apart = 4 * (2 * p * (1 - p) / len(forecast.draws)) ** 0.5
        assert forecast.p_best.max() - forecast.p_best.min() <= apart
        assert forecast.tier.tolist() == [1] * len(names)
        assert not ranking.decided and "alternative" in ranking.verdict.lower()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_scale_of_all_features_changes_nothing_on_disk(dtype):
    models, _ = rare_classes(1, n=300)
    models["third"] = models["better"] @ np.diag([1, 0.5, 0.5, 0.2, 0.2, 0.1]) + 0.1
    plain = None
    for power in (0, -43, -66, 60, 83):  # of two, which round nothing: a label drawn may not flip
        scale = 2.0**power
        rows = {name: (torch.tensor(X) * scale).to(dtype) for name, X in models.items()}
        skill = rank_models(
            rows, **nested(on_disk=True, n_tasks=20, progress=False, cache=False)
        ).skill
        plain = skill if plain is None else plain
        torch.testing.assert_close(skill, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2])
def test_one_label_is_singular(n_labels):
    models, y = rare_classes(3, n=120)
    labels = {k: int(y[k]) for k in range(n_labels)}
    verdict = rank_models(models, **nested(labels=labels, **QUIET)).verdict
    known = "your 1 label," if n_labels == 1 else "your 2 labels,"
    assert f"Without {known} the top-ranked model " in verdict


@pytest.mark.parametrize("freedom", [1.5, 2.5, None])
@pytest.mark.parametrize("labelled", [False, True])
def test_rows_of_heavy_lengths_are_said_in_the_verdict(freedom, labelled):
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(500, 10))
    length = 1.0 if freedom is None else np.abs(rng.standard_t(freedom, (500, 1))) + 0.05
    noisy = [seen + s * rng.normal(size=seen.shape) for s in (0.5, 1.0, 2.0)]
    models = {f"m{k}": length * X for k, X in enumerate(noisy)}
    labels = (seen[:, 0] > 0).astype(int) if labelled else None
    verdict = rank_models(models, **nested(labels=labels, **QUIET)).verdict
    assert ("depend on few examples" in verdict) == (freedom is not None)


@pytest.mark.parametrize("name", ["resnet10t", "test_vit", "test_convnext"])
def test_networks_that_were_never_trained_are_said_to_be(name):
    images = load_images("digits", limit=32)
    options = QUIET | dict(images=images, n_classes=3)
    models = [f"{name}@untrained", "zoo/pixels", "test_resnet@untrained"]
    ranking = rank_models(models, **nested(**options))
    described = ranking.settings["models"]
    assert [described[model].get("untrained", False) for model in models] == [True, False, True]
    is_first = ranking.best != "zoo/pixels"
    assert (f"{ranking.best} is not trained" in ranking.verdict) == is_first
    of_two = rank_models(models[::2], **nested(**options))
    assert "None of the models is trained" in of_two.verdict


def labels_of(n_classes, n_labels, seed, n=160):
    "Classes of some points, that two of three models see well."
    g = np.random.default_rng(seed)
    centres = 3 * g.standard_normal((n_classes, 12))
    y = g.integers(n_classes, size=n)
    seen = centres[y] + g.standard_normal((n, 12))
    models = {f"m{k}": seen + s * g.standard_normal(seen.shape) for k, s in enumerate((0.5, 2, 6))}
    known = np.full(n, -1)
    rows = g.choice(n, n_labels, replace=False)
    known[rows] = y[rows]
    return models, known


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_level_of_labels_at_chance_is_not_believed(on_disk):
    n_untold = 0
    for seed in range(4):
        models, known = labels_of(40, 8, seed)
        options = QUIET | dict(on_disk=on_disk)
        ranking, without = (
            rank_models(models, **nested(labels=y, **options)) for y in (known, None)
        )
        forecast, verdict = ranking.forecast, ranking.verdict
        n_untold += "better than chance yet" in verdict
        if "is the only one of its class" in verdict:
            assert forecast.evidence == ("points",) and "Without your" not in verdict
            torch.testing.assert_close(forecast.p_best, without.forecast.p_best)
            values = [r.regret_with_labels().expected_regret[1:] for r in (ranking, without)]
            ends = [value.min() for value in values]  # with labels of all examples
            assert ends[0] == pytest.approx(ends[1], rel=0.02)  # errors on agreeing tasks differ
            assert values[0].max() <= values[1].max()  # 28 labels instead of 20
        elif "better than chance yet" in verdict:
            assert "so the forecast assumes a typical level of accuracy" in verdict
            assert forecast.evidence == ("points", "labels")
        assert forecast.level == pytest.approx(without.forecast.level)
        assert ranking.regret_with_labels().labels.tolist()[:2] == [8, 28]
    assert n_untold >= 1


def test_labels_of_many_classes_may_all_differ():
    models, _ = labels_of(40, 8, 0)
    n = len(next(iter(models.values())))
    known = [f"class {k}" if k < 30 else None for k in range(n)]
    ranking = rank_models(models, **nested(labels=known, **QUIET))
    assert "Each of your 30 labels is the only one of its class" in ranking.verdict
    known = [f"class {k}" if k < 60 else None for k in range(n)]
    with pytest.raises(ValueError, match="60 classes in 60 labels"):
        rank_models(models, **nested(labels=known, **QUIET))


@pytest.mark.parametrize("n_labels", [20, 160])
def test_labels_that_models_predict_are_used(n_labels):
    models, known = labels_of(3, n_labels, 0)
    ranking = rank_models(models, **nested(labels=known, **QUIET))
    assert ranking.settings["labels"]["signal_p_value"] <= 0.01
    assert "labels" in ranking.forecast.evidence and "chance" not in ranking.verdict


@pytest.mark.parametrize("n_labels", [30, 100, 160])
def test_labels_without_signal_give_no_confident_verdict(n_labels):
    said = []
    for seed in range(6):
        models, _ = labels_of(4, 1, seed)
        g = np.random.default_rng(50 + seed)
        known = np.full(160, -1)
        known[g.choice(160, n_labels, replace=False)] = g.integers(4, size=n_labels)
        ranking = rank_models(models, **nested(labels=known, **QUIET))
        is_many = n_labels >= 100
        start = "No model predicts the labels better than their most frequent class"
        told = "better than chance yet" in ranking.verdict or "Nothing can" in ranking.verdict
        said.append(ranking.verdict.startswith(start) if is_many else told)
        if said[-1] and is_many:
            assert ranking.forecast.draws is None and not ranking.decided
            assert "p_best" not in ranking.to_frame() and "probability 0" not in str(ranking)
            assert ranking.verdict.endswith(f", take {ranking.best}.")
    assert sum(said) >= 5


def test_a_saved_ranking_keeps_what_its_labels_say(tmp_path):
    models, known = labels_of(40, 8, 1)
    ranking = rank_models(models, **nested(labels=known, **QUIET))
    ranking.save(tmp_path / "out")
    assert type(ranking).load(tmp_path / "out").verdict == ranking.verdict


@pytest.mark.parametrize("labelled", [False, True])
def test_one_order_of_models(labelled, tmp_path):
    models, known = labels_of(4, 30, 2)
    ranking = rank_models(models, **nested(labels=known if labelled else None, **QUIET))
    frame = ranking.to_frame()
    assert frame.expected_regret.is_monotonic_increasing and frame.margin.is_monotonic_decreasing
    ranking.save(tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "ranking.csv")
    orders = [frame.model, ranking.forecast.to_frame().model, ranking.p_best().index, written.model]
    assert len({tuple(order) for order in orders}) == 1
    assert frame.model[0] == ranking.best == ranking.forecast.first and frame.tier[0] == 1
    assert ranking.verdict.startswith(
        (f"Take {ranking.best}:", f"Do not choose yet: {ranking.best} ")
    )
    assert ranking.plot().get_title("left") == f"{ranking.best} has the lowest expected regret"
    assert "Models are ordered by expected regret" in str(ranking)


@pytest.mark.long
def test_models_of_noise_have_no_verdict():
    "Of a hundred rankings of independent noise about one is taken for structure."
    caught = 0
    for seed in range(100):
        g = np.random.default_rng(seed)
        n, widths = (60, 120, 400)[seed % 3], [(8, 16), (4, 4, 4, 4), (32, 2)][seed // 3 % 3]
        models = {f"m{k}": g.normal(size=(n, d)) for k, d in enumerate(widths)}
        more = dict(references=dict(eye=g.normal(size=(n, 6)))) if seed % 4 == 0 else {}
        flat = nested(n_tasks=4, n_classes=2, cache=False, progress=False, **more)
        ranking = rank_models(models, **flat)
        if ranking.settings["shared_structure"]["p_value"] > 0.01:
            caught += 1
            assert ranking.verdict.startswith("No recommendation"), ranking.verdict
            assert ranking.forecast.draws is None and "same order" in ranking.next_step
    assert caught >= 96, caught


def test_a_model_whose_rows_are_shuffled_is_named():
    g = np.random.default_rng(0)
    hidden = g.normal(size=(200, 5))
    models = {f"m{k}": hidden @ g.normal(size=(5, 9)) + g.normal(size=(200, 9)) for k in range(4)}
    models["m3"] = models["m3"][g.permutation(200)]
    ranking = rank_models(models, **nested(n_tasks=8, cache=False, progress=False))
    assert "m3 shares no structure with the other models: are its rows" in str(ranking)
    assert not ranking.verdict.startswith("No recommendation")


def sharing(seed, n, n_models=3):
    "Models that see two, four, ... of the same facts, with noise."
    g = np.random.default_rng(seed)
    facts = g.normal(size=(n, 8))
    seen = [facts[:, : 2 * k + 2] @ g.normal(size=(2 * k + 2, 12)) for k in range(n_models)]
    return {f"m{k}": X + g.normal(size=(n, 12)) for k, X in enumerate(seen)}


def noises(seed, n):
    g = np.random.default_rng(seed)
    return {f"noise{k}": g.normal(size=(n, d)) for k, d in enumerate((8, 16, 8, 16))}


def test_references_that_share_structure_say_nothing_of_noise():
    caught = 0
    for seed in range(20):
        models, references = noises(seed, 120), sharing(100 + seed, 120)
        flat = nested(**QUIET | dict(n_tasks=4, references=references))
        ranking = rank_models(models, **flat)
        caught += ranking.verdict.startswith("No recommendation") and not ranking.decided
    assert caught >= 18, caught


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n", [60, 400])
def test_models_that_share_structure_keep_their_probabilities(n, on_disk):
    for seed in range(5):
        ranking = rank_models(sharing(seed, n), **nested(on_disk=on_disk, **QUIET))
        assert ranking.settings["shared_structure"] == dict(p_value=0.005, alone=[])
        assert ranking.forecast.draws is not None and "Nothing" not in ranking.verdict


def test_labels_and_past_results_inform_where_models_share_nothing():
    n = 200
    models, y = noises(3, n), np.arange(n) % 2
    sees = models | dict(sees=np.random.default_rng(1).normal(size=(n, 4)) + 3 * y[:, None])
    assert rank_models(sees, **nested(labels=y, **QUIET)).best == "sees"
    assert rank_models(sees, **nested(labels=y, **QUIET)).forecast.draws is not None
    at_chance = {k: int(y[k]) for k in range(12)}
    ranking = rank_models(models, **nested(labels=at_chance, **QUIET))
    assert ranking.verdict.startswith("No recommendation")
    scores = 0.5 + 0.1 * np.random.default_rng(0).random((4, 6))
    past = pd.DataFrame(scores, index=list(models))
    assert rank_models(models, past_results=past, **nested(**QUIET)).forecast.draws is not None


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_column_that_is_the_label_is_named(on_disk):
    models, y = rare_classes(0, n=400, share=0.5)
    models["cheat"] = np.c_[models["worse"], 3.0 * y]
    known = np.where(np.arange(400) % 4 == 0, y, -1)
    for labels in (y.numpy(), known):
        ranking = rank_models(models, **nested(labels=labels, on_disk=on_disk, **QUIET))
        assert "Column 6 (from 0) of cheat is the label itself; remove it." in ranking.verdict
    del models["cheat"]
    ranking = rank_models(models, **nested(labels=known, on_disk=on_disk, **QUIET))
    assert "label itself" not in ranking.verdict


def test_a_word_for_unknown_is_asked_about():
    models, y = rare_classes(0, n=300, share=0.5)
    words = np.array(["cat", "dog"])[y]
    for word, says in (("?", "[None if y == '?' else y for y in labels]"), ("unknown", "leave th")):
        labels = np.where(np.arange(300) % 3 == 0, words, word)
        with pytest.raises(
            ValueError, match="must not contain words that may mean a missing label"
        ) as refusal:
            rank_models(models, **nested(labels=labels, **QUIET))
        assert says in str(refusal.value)
    mixed = np.random.default_rng(0).permutation(words)
    labels = np.where(np.arange(300) % 3 == 0, mixed, "later")
    ranking = rank_models(models, **nested(labels=labels, **QUIET))
    assert "67% of the labels are 'later'; leave these cells empty if it means" in ranking.verdict
