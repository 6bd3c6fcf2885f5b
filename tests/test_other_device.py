"""What a user with a GPU types runs on a second device, and gives what the CPU gives."""

import functools

import numpy as np
import pytest
import torch
from other_device import NAME, OtherDevice
from torch import nn

import taskpriors as tp
from taskpriors.papers import robust_probing
from taskpriors.papers.fine_tuning import TuningRecipe, fine_tune
from taskpriors.papers.synbench_scores import synthetic_accuracy
from taskpriors.papers.tuning import fine_tune_with_prior
from taskpriors.rank.options import nested
from taskpriors.synbench.score import image_encoder, synbench_score


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())


SIZE = dict(input_size=(3, 6, 6))
FEW = dict(scales=(1.0, 4.0), n_train=32, n_test=32, batch_size=16, progress=False)


def test_a_synbench_score_moves_its_network_there_and_back(tmp_path):
    here = synbench_score(network(), **SIZE, **FEW)
    module = network()
    with OtherDevice() as other:
        there = synbench_score(module, device=NAME, cache=tmp_path, **SIZE, **FEW)
    assert other.made > 100
    assert next(module.parameters()).device.type == "cpu"
    assert module.training
    torch.testing.assert_close(there.score, here.score)


def test_a_name_of_timm_is_scored_there():
    pytest.importorskip("timm")
    name, few = "test_resnet@untrained", FEW | dict(scales=(4.0,), n_train=16, n_test=8)
    with OtherDevice():
        found = synbench_score(name, device=NAME, input_size=(3, 32, 32), **few)
    assert found.score.isfinite().all()


def test_accuracy_under_attack_is_the_same_there():
    few = FEW | dict(n_steps=2)
    here = synthetic_accuracy(network(), **SIZE, **few)
    with OtherDevice():
        there = synthetic_accuracy(network(), device=NAME, **SIZE, **few)
    torch.testing.assert_close(there, here)


def test_a_head_learns_from_images_that_stay_on_the_cpu():
    g = torch.Generator().manual_seed(0)
    x, y = torch.rand(24, 3, 6, 6, generator=g), torch.arange(24) % 3
    found = []
    for device in (None, NAME):
        with OtherDevice():
            encoder = image_encoder(network(), (3, 6, 6), "model", None, device)
            encoder.network.forward.eval()
            if device:
                encoder.network.forward.to(device)
            features = functools.partial(robust_probing.differentiable, encoder)
            few = dict(n_epochs=1, n_steps=2)
            head = robust_probing.robust_linear_probe(features, x, y, 0.1, **few)
            held = robust_probing.pgd_attack(head.on(features), x, y, 0.2, n_steps=2)
            accuracy = head.accuracy(features, x, y)
        found.append((held.distance, held.success, torch.tensor(accuracy)))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)


def test_a_ranking_in_memory_is_the_same_there():
    g = torch.Generator().manual_seed(0)
    Z = torch.randn(60, 6, generator=g)
    models = {f"model {k}": Z @ torch.randn(6, 5 + k, generator=g) for k in range(3)}
    few = dict(n_tasks=6, metrics="all", cache=False, progress=False)
    here = tp.rank_models(models, **nested(**few))
    with OtherDevice() as other:
        there = tp.rank_models(models, **nested(device=NAME, **few))
    assert other.made > 1000
    assert not there.failures
    torch.testing.assert_close(there.skill, here.skill)
    torch.testing.assert_close(there.accuracies, here.accuracies)


def test_a_network_is_fine_tuned_there():
    g = torch.Generator().manual_seed(0)
    x, y = torch.rand(24, 3, 6, 6, generator=g), torch.arange(24) % 2
    train = torch.arange(24) < 16
    how = dict(rate=0.1, n_steps=3, recipe=TuningRecipe(batch_size=8))
    here = fine_tune(network(), x, y, train, device="cpu", **how)
    with OtherDevice():
        there = fine_tune(network(), x, y, train, device=NAME, **how)
    assert there.loss == pytest.approx(here.loss, rel=1e-5)
    assert there.error == here.error


@pytest.mark.parametrize("statistic", ["trace", "hsic", "heldout"])
def test_the_prior_aware_loss_trains_there(statistic):
    images = torch.randint(256, (24, 6, 6, 3), generator=torch.Generator().manual_seed(0)).byte()
    how = dict(n_epochs=1, batch_size=12, cache=False, progress=False, statistic=statistic)
    how["transform"] = lambda image: torch.tensor(np.array(image)).movedim(-1, 0) / 255
    here = fine_tune_with_prior(network(), images.numpy(), device="cpu", **how)
    with OtherDevice():
        there = fine_tune_with_prior(network(), images.numpy(), device=NAME, **how)
    torch.testing.assert_close(there.losses, here.losses)
