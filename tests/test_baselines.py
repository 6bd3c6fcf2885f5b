"""Baselines stand beside a ranking, change nothing of the models, and never break one.

The untrained network is a small one here; its chapter looks at the ResNet-18.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

import taskpriors as tp
from taskpriors.inputs.images import load_images
from taskpriors.rank import baselines
from taskpriors.rank.options import nested
from taskpriors.rank.ranking import Ranking
from taskpriors.tools.cli import _build_parser

QUIET = dict(references=False, n_tasks=12, n_classes=3, cache=False, progress=False)
N = 120
CLOCK = ["seconds", "milliseconds"]


@pytest.fixture(autouse=True)
def small_network(monkeypatch):
    def build():
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            layers = nn.AvgPool2d(16), nn.Flatten(), nn.Linear(3 * 64, 20), nn.ReLU()
            return nn.Sequential(*layers).eval().requires_grad_(False)

    monkeypatch.setattr(baselines, "_untrained_network", build)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", limit=N, progress=False)


def classes_of(digits, every):
    return np.where(np.arange(N) % every == 0, digits.labels.numpy(), -1)


def views(digits, noise=(0.3, 0.5, 0.9)):
    "Features of three models, the first of which sees most of the classes."
    g = np.random.default_rng(0)
    codes = np.eye(10)[digits.labels.numpy()] @ g.normal(size=(10, 6))
    return {f"m{k}": codes + s * g.normal(size=codes.shape) for k, s in enumerate(noise)}


LABELS = {"none": lambda digits: None, "some": lambda d: classes_of(d, 3)}
LABELS |= {"all": lambda d: d.labels.numpy(), "targets": lambda d: d.labels.numpy() + 0.5}


@pytest.mark.parametrize("which", LABELS)
def test_models_are_ranked_as_without_baselines(digits, which):
    options = dict(QUIET, labels=LABELS[which](digits))
    plain = tp.rank_models(views(digits), digits, **nested(baselines=False, **options))
    beside = tp.rank_models(views(digits), digits, **nested(**options))
    assert not plain.baselines and len(beside.baselines) == 2
    frames = [r.to_frame().drop(columns=CLOCK, errors="ignore") for r in (plain, beside)]
    assert frames[0].equals(frames[1])
    settings = dict(beside.settings)
    assert [*settings.pop("baselines")] == [baselines._RAW_PIXELS, baselines._UNTRAINED]
    assert settings == plain.settings
    assert beside.verdict.endswith(plain.verdict)
    assert (beside.models, beside.failures) == (plain.models, plain.failures)
    known = [math.isnan(one.probability_ahead) for one in beside.baselines]
    assert known == [which == "targets"] * 2


@pytest.mark.parametrize("which", LABELS)
def test_a_saved_ranking_keeps_its_baselines(digits, which, tmp_path):
    ranking = tp.rank_models(views(digits), digits, **nested(labels=LABELS[which](digits), **QUIET))
    again = Ranking.load(ranking.save(tmp_path / "out"))
    assert again.baseline_lines == ranking.baseline_lines and again.verdict == ranking.verdict
    for line in ranking.baseline_lines:
        assert line in str(again) and line in again._repr_html_()
        assert line in again.report(tmp_path / "page.html").read_text(encoding="utf-8")


def test_earlier_tasks_and_pairs_are_evidence_of_the_joined_list(digits, tmp_path):
    models = views(digits)
    record = {"m0": [0.9, 0.8], "m1": [0.7, 0.6], "m2": [0.5, 0.6]}
    record = [
        dict(model=m, task=t, score=s) for m, row in record.items() for t, s in enumerate(row)
    ]
    y = digits.labels.numpy()
    pairs = [(i, j, y[i] == y[j]) for i in range(0, 60, 2) for j in range(i + 2, 60, 14)]
    import pandas as pd

    for options in (
        dict(past_results=pd.DataFrame(record)),
        dict(pairs=pairs, scoring="retrieval"),
    ):
        ranking = tp.rank_models(models, digits, **nested(**options, **QUIET))
        plain = tp.rank_models(models, digits, **nested(baselines=False, **options, **QUIET))
        assert torch.equal(ranking.forecast.margin, plain.forecast.margin)
        assert len(ranking.baselines) == 2
        again = Ranking.load(ranking.save(tmp_path / "out", overwrite=True))
        assert again.baselines == ranking.baselines


def test_rows_on_disk_have_the_same_baselines(digits, tmp_path, monkeypatch):
    models = views(digits)
    for name, X in models.items():
        np.save(tmp_path / f"{name}.npy", X)
    files = {name: tmp_path / f"{name}.npy" for name in models}
    wide = "must have more than 257 rows"
    for which in ("none", "some"):
        options = dict(QUIET, labels=LABELS[which](digits))
        there = tp.rank_models(files, digits, **nested(on_disk=True, rank=40, **options))
        names = [one.name for one in there.baselines]
        assert names == [baselines._UNTRAINED], "120 points are too few for 256 pixels there"
        assert any(
            baselines._RAW_PIXELS in note and wide in note for note in there.settings["notes"]
        )
        with monkeypatch.context() as patch:  # margins are those among all that are scored
            patch.delitem(baselines._OF_KIND["images"], baselines._RAW_PIXELS)
            here = tp.rank_models(models, digits, **nested(**options))
        (one,), (other,) = here.baselines, there.baselines
        assert abs(one.skill - other.skill) < 1e-5
        assert abs(one.margin_behind_first - other.margin_behind_first) < 1e-2
        assert abs(one.probability_ahead - other.probability_ahead) < 0.01


def test_without_inputs_there_are_none(digits):
    ranking = tp.rank_models(views(digits), **nested(**QUIET))
    assert ranking.baselines == () and ranking.baseline_lines == []
    assert "baselines" not in ranking.settings


def test_a_broken_baseline_is_noted(digits, monkeypatch):
    def broken():
        raise OSError("no weights are here")

    monkeypatch.setattr(baselines, "_untrained_network", broken)
    ranking = tp.rank_models(views(digits), digits, **nested(**QUIET))
    assert [one.name for one in ranking.baselines] == [baselines._RAW_PIXELS]
    note = "untrained network, which is not ranked, was left out: no weights are here"
    assert note in ranking.settings["notes"] and ranking.failures == {}


def test_what_is_ranked_has_no_second_one_beside_it(digits):
    named = {baselines._RAW_PIXELS: "zoo/pixels", "test_vit": "test_vit@untrained"}
    ranking = tp.rank_models(named, digits, **nested(**QUIET))
    assert ranking.baselines == ()
    ranking = tp.rank_models(
        ["zoo/pixels", "zoo/blocks", "zoo/gradients"], digits, **nested(**QUIET)
    )
    assert [one.name for one in ranking.baselines] == [baselines._UNTRAINED]


def test_one_model_is_compared_with_baselines(digits):
    alone = {"m0": views(digits)["m0"]}
    for labels in (None, classes_of(digits, 3), digits.labels.numpy()):
        ranking = tp.rank_models(alone, digits, **nested(labels=labels, **QUIET))
        assert len(ranking.baselines) == 2
        assert all(0 <= one.probability_ahead <= 1 for one in ranking.baselines)


def test_a_baseline_that_is_better_opens_the_verdict(digits):
    g = np.random.default_rng(0)
    hidden = g.normal(size=(N, 4))  # which the models share, and which says nothing of the digits
    blind = {f"m{k}": hidden @ g.normal(size=(4, 6)) for k in range(3)}
    ranking = tp.rank_models(blind, digits, **nested(labels=classes_of(digits, 2), **QUIET))
    assert " may be better than the top-ranked model (probability " in ranking.verdict
    assert "label more examples before you choose. " in ranking.verdict
    good = tp.rank_models(views(digits), digits, **nested(labels=digits.labels.numpy(), **QUIET))
    assert good.verdict.startswith("Take m0") and "may be better" not in good.verdict


def test_texts_have_hashed_pieces_beside_them():
    animals = [f"the {a} {w}" for a in ("cat", "dog", "cow") for w in ("sat", "ran", "ate")] * 3
    lengths = {f"m{k}": np.random.default_rng(k).normal(size=(27, 4)) for k in range(3)}
    ranking = tp.rank_models(
        lengths, **nested(texts=[f"{t} {k}" for k, t in enumerate(animals)], **QUIET)
    )
    assert [one.name for one in ranking.baselines] == [baselines._HASHED]


def test_a_plan_counts_them(digits):
    planned, without = (
        tp.plan_models(["zoo/pixels"], digits, **nested(baselines=shown)) for shown in (True, False)
    )
    assert planned.operations > without.operations


def test_the_command_can_leave_them_out():
    parse = _build_parser().parse_args
    assert parse(["rank", "--no-baselines"]).baselines is False
    assert "baselines" not in vars(parse(["rank"]))
    assert "baselines" not in vars(parse(["layers", "--model", "zoo/pixels"]))


def test_baselines_must_be_a_flag(digits):
    with pytest.raises(TypeError, match="baselines must be True or False"):
        tp.rank_models(views(digits), digits, **nested(baselines="yes"))
