"""What audits found wrong and no chapter shows: all of it was silent or ended in a bare error."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import taskpriors as tp

QUICK = dict(n_tasks=20, cache=False, progress=False)
PICTURES = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)


def as_tensor(picture):
    return torch.tensor(np.array(picture.convert("L"))).float()[None] / 255


def company(n_models=4, n=200):
    g = torch.Generator().manual_seed(0)
    seen = torch.randn(n, 6, generator=g)
    noise = (0.2 * torch.randn(n, 8, generator=g) for _ in range(n_models))
    return {f"m{k}": seen @ torch.randn(6, 8, generator=g) + own for k, own in enumerate(noise)}


@pytest.mark.parametrize("first", [100, 99])
@pytest.mark.filterwarnings("ignore")  # none of these models knows more than noise would
def test_labels_say_nothing_of_noise(first):
    g = torch.Generator().manual_seed(0)
    noise = {f"m{k}": torch.randn(200, 8, generator=g) for k in range(4)}
    ranking = tp.rank_models(noise, labels=[0] * first + [1] * (200 - first), **QUICK)
    error = (0.25 / 200) ** 0.5
    assert (ranking.extra["label accuracy"] - 0.5).abs().max() < 4 * error


@pytest.mark.filterwarnings("ignore")
def test_rows_in_another_order_are_said_above_the_verdict():
    models = company()
    models["turned"] = models["m0"].flip(0)
    ranking = tp.rank_models(models, **QUICK)
    (note,) = ranking.settings["company"]
    assert note.startswith("turned and the others learn next to nothing")
    assert note.endswith("are its rows in another order?")
    shown = str(ranking)
    assert shown.index("turned and the others") < shown.index("Take ")


@pytest.mark.parametrize("rank", [tp.rank_models, partial(tp.rank_models, on_disk=True)])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_labels_of_other_rows_name_no_model(rank, n_classes):
    models = company()
    g = torch.Generator().manual_seed(n_classes)
    classes = (models["m0"] @ torch.randn(8, n_classes, generator=g)).argmax(1)
    asked = "are labels and rows in the same order? Without them take m"
    assert asked not in rank(models, labels=classes, **QUICK).verdict
    for seed in range(3):
        other = torch.randperm(200, generator=g.manual_seed(seed))
        ranking = rank(models, labels=classes[other], **QUICK)
        assert asked in ranking.verdict and "same order" in ranking.next_step


@pytest.mark.filterwarnings("ignore")
def test_a_constant_model_fails_in_memory_and_from_disk(tmp_path):
    models = company(3) | dict(constant=torch.ones(200, 4))
    files = {name: tmp_path / f"{name}.npy" for name in models}
    for name, features in models.items():
        np.save(files[name], features.numpy())
    for ranking in (tp.rank_models(models, **QUICK), tp.rank_models(files, on_disk=True, **QUICK)):
        assert list(ranking.failures) == ["constant"]
        assert "must differ between points" in ranking.failures["constant"]
        assert "constant" not in ranking.models


def test_a_table_of_texts_without_a_header_is_refused(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("the first text,a\nthe second,b\n")
    with pytest.raises(ValueError, match="must have the column text. Got the first text, a"):
        tp.load_texts(path)


class WithSides(nn.Module):
    "Its layers `sides` and `silent` return a dictionary and nothing."

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(64, 5), nn.Linear(5, 4)
        self.sides, self.silent = _Dict(), _Nothing()

    def forward(self, x):
        h = self.first(x.flatten(1))
        self.sides(h)
        self.silent(h)
        return self.last(h)


class _Dict(nn.Module):
    def forward(self, h):
        return dict(h=h)


class _Nothing(nn.Module):
    def forward(self, h):
        return None


@pytest.mark.parametrize(("layer", "kind"), [("sides", "dict"), ("silent", "NoneType")])
def test_a_layer_that_returns_no_tensor_is_named(layer, kind):
    match = f"layers must return a tensor, .* Got {kind} of '{layer}'"
    with pytest.raises(TypeError, match=match):
        tp.rank_layers(WithSides(), PICTURES, transform=as_tensor, layers=["first", layer], **QUICK)


def test_a_function_around_a_network_leaves_its_statistics_alone():
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.BatchNorm1d(5)).train()
    before = network[2].running_mean.clone()
    tp.embed(lambda x: network(x), PICTURES, transform=as_tensor, cache=False, progress=False)
    assert network[2].running_mean.equal(before)
    assert network.training
