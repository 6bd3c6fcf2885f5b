"""No function for users moves a global random generator, whether it computes or finds a cache.

A user who seeds torch, numpy or random before an experiment gets the same numbers afterwards, no
matter which of our functions ran in between.
"""

import importlib
import random
from operator import attrgetter
from tempfile import mkdtemp

import every_call
import numpy as np
import pytest
import test_refusals
import torch
from for_each import for_each
from test_contract import promised_functions

importlib.import_module("sklearn.mixture")  # its first import draws from `random`


def every_valid_call():
    "Module, name, function and arguments of each function that has a call, promised or not."
    for table in (test_refusals.CALLS, every_call.CALLS):
        for module, calls in table.items():
            found = importlib.import_module(f"taskpriors.{module}")
            for name, kwargs in calls.items():
                yield module, name, attrgetter(name)(found), kwargs


CASES = {f"{m}.{name}": (f, kw) for m, name, f, kw in every_valid_call()}


def states():
    "The states of the three global generators."
    return torch.get_rng_state().numpy().tobytes(), repr(np.random.get_state()), random.getstate()


@pytest.mark.filterwarnings("ignore")
@for_each("f, kwargs", CASES)
def test_global_generators_keep_their_states(f, kwargs, tmp_path, monkeypatch):
    monkeypatch.setenv("TASKPRIORS_CACHE", mkdtemp(dir=tmp_path))
    if f.__name__ == "explore":
        pytest.importorskip("ipywidgets")
    before = states()
    for attempt in ("computes", "finds its cache, if it has one"):
        f(**kwargs)
        moved = [
            name
            for name, old, new in zip(("torch", "numpy", "random"), before, states(), strict=True)
            if old != new
        ]
        assert not moved, f"the state of {moved} moved when the call {attempt}"


def test_every_promised_function_is_called_or_excused():
    called = {(module, name) for module, name, _, _ in every_valid_call()}
    functions = {(module, name) for module, name, _ in promised_functions()}
    excused = {
        (module, name)
        for module, name in functions
        if {module, f"{module}.{name}"} & set(every_call.ABSENT)
    }
    assert functions <= called | excused, sorted(functions - called - excused)
    assert not called & excused
    known = {module for module, _ in functions} | {f"{m}.{name}" for m, name in functions}
    assert set(every_call.ABSENT) <= known, set(every_call.ABSENT) - known
