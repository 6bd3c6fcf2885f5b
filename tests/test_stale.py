"""A cache returns the features of the model as it is: forty ways to change a model, each of which
must miss, and what must still hit.
"""

import functools
import json
import os
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from forks import run_to_the_end
from torch import nn

from taskpriors.inputs.embed import embed_features
from taskpriors.inputs.images import load_images
from taskpriors.synbench.score import synbench_score

ROOT = Path(__file__).resolve().parent.parent
IMAGES = load_images(limit=40)
D = 64  # pixels of an image


class Net(nn.Module):
    "A linear map with everything that a state may hold, and things that no state holds."

    def __init__(self, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.fc = nn.Linear(D, 5)
        self.fc.weight = nn.Parameter(torch.randn(5, D, generator=g))
        self.fc.bias = nn.Parameter(torch.zeros(5))
        self.register_buffer("stored", torch.ones(5))
        self.register_buffer("passing", torch.ones(5), persistent=False)
        self.plain = torch.ones(5)
        self._private = torch.ones(5)
        self.many = [torch.ones(5)]
        self.factor = 1.0
        self._factor = 1.0
        self.helper = None

    def forward(self, x):
        out = self.fc(x.flatten(1)) * self.stored * self.passing * self.plain * self._private
        out = out * self.many[0] * self.factor * self._factor
        return out if self.helper is None else self.helper(out)


class Holder:
    "An object that holds a network or a matrix and is no module."

    factor = 1.0

    def __init__(self, net):
        self.net = net
        self._hidden = net
        self.parts = {"net": net}

    def __call__(self, x):
        return self.net(x)

    def hidden(self, x):
        return self._hidden(x)

    def listed(self, x):
        return self.parts["net"](x)

    def by_class(self, x):
        return x.flatten(1) * Holder.factor


class Shift:
    "A transform that holds a tensor."

    def __init__(self, by):
        self.by = by
        self._by = by.clone()

    def __call__(self, image):
        return pixels(image) + self.by + self._by


def pixels(image):
    return torch.from_numpy(np.array(image)).float().mean(-1) / 255


# Global state that the functions below read.
network, helper_factor, table = Net(), 1.0, {"weight": torch.ones(D)}
settings = types.SimpleNamespace(factor=1.0, net=Net())


def helper(x):
    return x * helper_factor


def deep(x):
    return helper(x)


def by_network(x):
    return network(x)


def by_helper(x):
    return deep(x.flatten(1))


def by_table(x):
    return x.flatten(1) * table["weight"]


def by_settings(x):
    return settings.net(x) * settings.factor


def by_default(x, k=torch.ones(D)):  # noqa: B008 - the default is what changes
    return x.flatten(1) * k


def by_environment(x):
    return x.flatten(1) * float(os.environ.get("TASKPRIORS_TEST_FACTOR", "1"))


def by_attribute(x):
    return x.flatten(1) * by_attribute.factor


by_attribute.factor = 1.0


def closure(matrix):
    def product(x):
        return x.flatten(1) @ matrix

    return product


def set_to(target, **values):
    "A change: attributes of an object get new values."

    def change():
        for k, v in values.items():
            setattr(target, k, v)

    return change


def add_to(tensor, at=...):
    "A change in place: one number, or all of them."

    def change():
        with torch.no_grad():
            tensor[at] += 0.5

    return change


def train(net):
    "A change: one step of gradient descent."

    def change():
        step = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(3, 8, 8)).square().mean().backward()
        step.step()

    return change


def negate(module, inputs, out):
    return -out


def set_global(name, value):
    return lambda: globals().__setitem__(name, value)


def of_module(change):
    "A case: a fresh network, and how to change it."
    net = Net()
    return net, pixels, change(net)


def of_holder(name, change):
    holder = Holder(Net())
    return getattr(holder, name), pixels, change(holder)


def of_transform(change):
    shift = Shift(torch.zeros(8, 8))
    return Net(), shift, change(shift)


def of_matrix(kind, at):
    matrix = torch.eye(D)
    add = add_to(matrix, at)
    if kind == "closure":
        return closure(matrix), pixels, add
    if kind == "partial":
        return functools.partial(torch.mul, matrix[0]), flat, add
    if kind == "lambda":
        return lambda x: x.flatten(1) @ matrix, pixels, add
    numbers = matrix.numpy()  # shares memory with the tensor
    return lambda x: torch.from_numpy(x.flatten(1).numpy() @ numbers), pixels, add


def flat(image):
    return pixels(image).flatten()


def with_file(tmp_path):
    file = tmp_path / "weights.npy"
    np.save(file, np.ones(D, np.float32))

    def model(x):
        return x.flatten(1) * torch.from_numpy(np.load(file))

    return model, pixels, lambda: np.save(file, np.full(D, 2.0, np.float32))


def rewired(net):
    "A method of the instance replaces that of the class."
    return set_to(net, forward=lambda x: x.flatten(1)[:, :5])


MIDDLE = (36, 36)  # a pixel in the middle of the image; the one in the corner is dark
CASES = {
    "global network replaced": lambda _: (by_network, pixels, set_global("network", Net(1))),
    "global network trained": lambda _: (by_network, pixels, train(network)),
    "global network in a lambda": lambda _: (
        lambda x: network(x),
        pixels,
        set_global("network", Net(2)),
    ),
    "global number of a helper of a helper": lambda _: (
        by_helper,
        pixels,
        set_global("helper_factor", 2.0),
    ),
    "global helper replaced": lambda _: (by_helper, pixels, set_global("helper", torch.square)),
    "global table, tensor in place": lambda _: (by_table, pixels, add_to(table["weight"])),
    "global table, entry replaced": lambda _: (
        by_table,
        pixels,
        lambda: table.update(weight=torch.full((D,), 3.0)),
    ),
    "global settings, number": lambda _: (by_settings, pixels, set_to(settings, factor=2.0)),
    "global settings, network": lambda _: (by_settings, pixels, set_to(settings, net=Net(3))),
    "attribute of a class": lambda _: of_holder("by_class", lambda h: set_to(Holder, factor=2.0)),
    "attribute of a function": lambda _: (by_attribute, pixels, set_to(by_attribute, factor=2.0)),
    "default argument in place": lambda _: (by_default, pixels, add_to(by_default.__defaults__[0])),
    "environment variable": lambda _: (
        by_environment,
        pixels,
        lambda: os.environ.update(TASKPRIORS_TEST_FACTOR="2"),
    ),
    "file that is read": with_file,
    "object's network replaced": lambda _: of_holder("__call__", lambda h: set_to(h, net=Net(1))),
    "object's network trained": lambda _: of_holder("__call__", lambda h: train(h.net)),
    "callable object": lambda _: (h := Holder(Net()), pixels, set_to(h, net=Net(1))),
    "object's private network": lambda _: of_holder("hidden", lambda h: set_to(h, _hidden=Net(1))),
    "object's dictionary": lambda _: of_holder(
        "listed", lambda h: lambda: h.parts.update(net=Net(1))
    ),
    "bound method replaced": lambda _: of_holder(
        "__call__", lambda h: set_to(h.net, forward=lambda x: x.flatten(1))
    ),
    "weight, one number": lambda _: of_module(lambda n: add_to(n.fc.weight, (2, 36))),
    "weights trained": lambda _: of_module(train),
    "bias replaced": lambda _: of_module(lambda n: set_to(n.fc, bias=nn.Parameter(torch.ones(5)))),
    "stored buffer": lambda _: of_module(lambda n: add_to(n.stored)),
    "buffer that is not stored": lambda _: of_module(lambda n: add_to(n.passing)),
    "tensor attribute in place": lambda _: of_module(lambda n: add_to(n.plain)),
    "tensor attribute replaced": lambda _: of_module(lambda n: set_to(n, plain=torch.zeros(5))),
    "private tensor attribute": lambda _: of_module(lambda n: add_to(n._private)),
    "tensor in a list": lambda _: of_module(lambda n: add_to(n.many[0])),
    "setting": lambda _: of_module(lambda n: set_to(n, factor=2.0)),
    "private setting": lambda _: of_module(lambda n: set_to(n, _factor=2.0)),
    "helper attribute": lambda _: of_module(lambda n: set_to(n, helper=torch.sin)),
    "submodule replaced": lambda _: of_module(
        lambda n: set_to(n, fc=nn.Sequential(n.fc, nn.ReLU()))
    ),
    "forward hook": lambda _: of_module(lambda n: lambda: n.register_forward_hook(negate)),
    "hook before a layer": lambda _: of_module(
        lambda n: lambda: n.fc.register_forward_pre_hook(lambda m, x: (2 * x[0],))
    ),
    "forward of the instance": lambda _: of_module(rewired),
    "forward of the class": lambda patch: of_module(
        lambda n: lambda: patch.setattr(Net, "forward", lambda self, x: -self.fc(x.flatten(1)))
    ),
    "closure over a matrix, middle": lambda _: of_matrix("closure", MIDDLE),
    "lambda over a matrix, middle": lambda _: of_matrix("lambda", MIDDLE),
    "closure over an array, middle": lambda _: of_matrix("array", MIDDLE),
    "partial over a vector": lambda _: of_matrix("partial", (0, slice(None))),
    "closure over a matrix, a dark pixel": lambda _: of_matrix("closure", (0, 0)),
    "transform's tensor": lambda _: of_transform(lambda t: add_to(t.by, (4, 4))),
    "transform's private tensor": lambda _: of_transform(lambda t: add_to(t._by, (4, 4))),
    "transform's global": lambda _: (Net(), lambda im: helper(pixels(im)), add_helper),
}


def add_helper():
    globals()["helper_factor"] += 1.0


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    "What the cases change outside their own objects is put back."
    for name, value in dict(
        network=Net(), helper=helper, helper_factor=1.0, table={"weight": torch.ones(D)}
    ).items():
        monkeypatch.setitem(globals(), name, value)
    monkeypatch.setattr(Holder, "factor", 1.0)
    monkeypatch.setattr(by_attribute, "factor", 1.0)
    monkeypatch.setattr(settings, "factor", 1.0)
    monkeypatch.setattr(settings, "net", Net())
    monkeypatch.setenv("TASKPRIORS_TEST_FACTOR", "1")


@pytest.mark.parametrize("kind", CASES)
def test_a_changed_model_is_not_found(kind, tmp_path, monkeypatch):
    given = tmp_path if kind == "file that is read" else monkeypatch
    model, transform, change = CASES[kind](given)

    def run(cache=tmp_path / "cache"):
        how = dict(transform=transform, cache=cache, name="m", progress=False)
        return embed_features(model, IMAGES, **how)

    before = run()
    assert run().cached, "the same model hits"
    change()
    after, truth = run(), run(cache=False)
    assert not after.cached
    assert torch.equal(after.features, truth.features)
    if kind != "closure over a matrix, a dark pixel":
        assert not torch.equal(after.features, before.features), "the case must change something"


MODULES = [
    "weight, one number",
    "buffer that is not stored",
    "tensor attribute in place",
    "private tensor attribute",
    "tensor in a list",
    "setting",
    "private setting",
    "helper attribute",
    "forward hook",
    "hook before a layer",
    "forward of the instance",
    "forward of the class",
]


@pytest.mark.parametrize("kind", MODULES)
def test_a_changed_model_has_no_stored_scale(kind, tmp_path, monkeypatch):
    model, _, change = CASES[kind](monkeypatch)
    few = dict(input_size=(1, 8, 8), n_train=60, n_test=60, scales=(1.0,), progress=False)

    def stored():
        synbench_score(model, cache=tmp_path, **few)
        return len(list(tmp_path.glob("synbench/*")))

    assert [stored(), stored()] == [1, 1], "the same model hits"
    change()
    assert stored() == 2


SAME = {
    "again": lambda net: {},
    "another object": lambda net: dict(model=Net()),
    "another size of batch": lambda net: dict(batch_size=7),
    "training mode": lambda net: dict(model=net.train()),
    "images opened again": lambda net: dict(images=load_images(limit=40)),
    "worker processes": lambda net: dict(num_workers=1),
}


@pytest.mark.parametrize("kind", SAME)
def test_the_same_model_is_found(kind, tmp_path):
    net = Net()
    how = dict(model=net, images=IMAGES, transform=pixels, cache=tmp_path, progress=False)
    first = embed_features(**how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = embed_features(**{**how, **SAME[kind](net)})
    assert again.cached and torch.equal(first.features, again.features)


# `work.py CACHE` embeds and scores one convolutional network and says whether it was found.
WORK = """
import json, sys, torch
from pathlib import Path
from taskpriors.inputs.embed import embed_features
from taskpriors.inputs.images import load_images
from taskpriors.synbench.score import synbench_score

torch.rand(int(sys.argv[2]))  # another random state in each process
cache = Path(sys.argv[1])
got = embed_features("resnet10t@untrained", load_images(limit=12), cache=cache, progress=False)
few = dict(input_size=(3, 32, 32), n_train=40, n_test=40, scales=(1.,), eps=(0.,), progress=False)
synbench_score("resnet10t@untrained", cache=cache, **few)
print(json.dumps([got.cached, got.key, len(list(cache.glob("synbench/*")))]))
"""


def test_another_process_finds_it_with_any_number_of_threads(tmp_path):
    told = []
    for threads in (1, 1, 2):
        env = {"OMP_NUM_THREADS": threads}
        code, out, err = run_to_the_end("-c", WORK, tmp_path, len(told), env=env)
        assert code == 0, err
        told.append(json.loads(out))
    assert [cached for cached, _, _ in told] == [False, True, True]
    assert len({key for _, key, _ in told}) == 1
    assert [folders for _, _, folders in told] == [1, 1, 1]


@pytest.mark.parametrize("where", ["model", "transform"])
def test_a_random_model_is_refused_and_nothing_is_cached(where, tmp_path):
    def noisy(x):
        return x + torch.rand(1)

    model, transform = (noisy, flat) if where == "model" else (flat_net, lambda im: noisy(flat(im)))
    how = dict(transform=transform, cache=tmp_path, progress=False)
    for _ in range(2):
        with pytest.raises(ValueError, match="must be the same in each call"):
            embed_features(model, IMAGES, **how)
    assert not list(tmp_path.rglob("*"))


def flat_net(x):
    return x * 2


def test_a_model_that_takes_small_batches_only_is_cached(tmp_path):
    def small_batches(x):
        if len(x) > 4:
            raise RuntimeError("at most four")
        return x

    how = dict(transform=flat, cache=tmp_path, batch_size=4, progress=False)
    first, again = (embed_features(small_batches, IMAGES, **how) for _ in range(2))
    assert first.features.shape == (40, D) and not first.cached and again.cached
    with pytest.raises(RuntimeError, match="small_batches must accept batches"):
        embed_features(small_batches, IMAGES, **how | dict(batch_size=5))
