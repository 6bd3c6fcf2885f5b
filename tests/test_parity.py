"""Metrics against the libraries of others: recorded numbers always, the library where it is there.

GOLDEN was recorded with scikit-dimension 0.5.0 (TwoNN) and pymfe 0.4.4 (concept variation) under
Python 3.11 and NumPy 2.4 on the points below. Neither library is among our requirements.
"""

import numpy as np
import pytest

from taskpriors.transfer.neighbours import twonn
from taskpriors.transfer.separation import concept_variation

GOLDEN = dict(
    twonn_fit=3.1238425128953917,
    twonn_mle=3.1209738954103745,
    conceptvar=0.6418185987995226,
)


def points():
    rng = np.random.default_rng(0)
    return rng.random((300, 3)) @ np.linalg.qr(rng.normal(size=(10, 10)))[0][:3]


def classes():
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    return rng.normal(size=(90, 6)) + 0.8 * rng.normal(size=(3, 6))[y], y


def ours():
    X = points()
    Z, y = classes()
    return dict(
        twonn_fit=twonn(X, method="fit", discard=0.1),
        twonn_mle=twonn(X),
        conceptvar=concept_variation(Z, y),
    )


def theirs():
    skdim = pytest.importorskip("skdim")
    concept = pytest.importorskip("pymfe.concept").MFEConcept
    X = points()
    Z, y = classes()
    return dict(
        twonn_fit=skdim.id.TwoNN(discard_fraction=0.1).fit(X).dimension_,
        twonn_mle=skdim.id.TwoNN(discard_fraction=0.0, method="mle").fit(X).dimension_,
        conceptvar=concept.ft_conceptvar(Z, y).mean(),
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_recorded_numbers_of_other_libraries(name):
    assert ours()[name] == pytest.approx(GOLDEN[name], rel=1e-9)


def test_other_libraries_say_what_was_recorded():
    assert {k: float(v) for k, v in theirs().items()} == pytest.approx(GOLDEN, rel=1e-9)
