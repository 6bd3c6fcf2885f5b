"""Metrics against the libraries of others: recorded numbers always, the library where it is there.

GOLDEN was recorded with scikit-dimension 0.5.0 (TwoNN, GRIDE) and pymfe 0.4.4 (concept variation,
INT) under Python 3.11 and NumPy 2.4 on the points below. Neither library is among our requirements.
DADApy 0.3.4 was tried too and did not build against NumPy 2; scikit-dimension says that its GRIDE
follows DADApy's conventions. TwoNN has no stated difference. GRIDE has one: scikit-dimension counts
N - 1 logarithms of d in the likelihood where the distribution of N ratios has N, so it solves
another equation, and ours at N - 1 is found here from our own neighbours.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

from taskpriors.transfer.intrinsic_dimension import gride, twonn
from taskpriors.transfer.neighbours import nearest_neighbours
from taskpriors.transfer.separation import concept_variation, interclass_distance

GOLDEN = dict(
    twonn_fit=3.1238425128953917,
    twonn_mle=3.1209738954103745,
    gride_1=3.1209738954104287,
    gride_2=2.895507092750293,
    gride_8=2.656145531728087,
    conceptvar=0.6418185987995226,
    int=3.8720901934659295,
)


def points():
    rng = np.random.default_rng(0)
    return rng.random((300, 3)) @ np.linalg.qr(rng.normal(size=(10, 10)))[0][:3]


def classes():
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    return rng.normal(size=(90, 6)) + 0.8 * rng.normal(size=(3, 6))[y], y


def gride_of_fewer(X, n1, count):
    "Root of GRIDE's equation with `count` logarithms of d."
    table = nearest_neighbours(X, 2 * n1).distances
    logs = (table[:, 2 * n1 - 1] / table[:, n1 - 1]).log().numpy()

    def slope(d):
        shells = (logs / -np.expm1(-d * logs)).sum()
        return count / d + (n1 - 1) * shells - (2 * n1 - 1) * logs.sum()

    return brentq(slope, 0.1, 100)


def ours():
    X = points()
    Z, y = classes()
    return dict(
        twonn_fit=twonn(X, method="fit", discard=0.1),
        twonn_mle=twonn(X),
        gride_1=twonn(X),
        gride_2=gride_of_fewer(X, 2, 299),
        gride_8=gride_of_fewer(X, 8, 299),
        conceptvar=concept_variation(Z, y),
        int=interclass_distance(Z, y),
    )


def theirs():
    skdim = pytest.importorskip("skdim")
    concept = pytest.importorskip("pymfe.concept").MFEConcept
    clustering = pytest.importorskip("pymfe.clustering").MFEClustering
    X = points()
    Z, y = classes()
    return dict(
        twonn_fit=skdim.id.TwoNN(discard_fraction=0.1).fit(X).dimension_,
        twonn_mle=skdim.id.TwoNN(discard_fraction=0.0, method="mle").fit(X).dimension_,
        gride_1=skdim.id.GRIDE(n1=1).fit(X).dimension_,
        gride_2=skdim.id.GRIDE(n1=2).fit(X).dimension_,
        gride_8=skdim.id.GRIDE(n1=8).fit(X).dimension_,
        conceptvar=concept.ft_conceptvar(Z, y).mean(),
        int=clustering.ft_int(Z, y),
    )


@pytest.mark.parametrize("name", GOLDEN)
def test_recorded_numbers_of_other_libraries(name):
    assert ours()[name] == pytest.approx(GOLDEN[name], rel=1e-9)


def test_other_libraries_say_what_was_recorded():
    assert {k: float(v) for k, v in theirs().items()} == pytest.approx(GOLDEN, rel=1e-9)


def test_our_gride_is_within_the_stated_difference():
    for n1 in (2, 8):
        assert 0 < gride(points(), scale=n1) / GOLDEN[f"gride_{n1}"] - 1 < 2 / 300
