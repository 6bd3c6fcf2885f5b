"""Every item of the papers that has a recipe runs in miniature, and its full networks exist."""

import pytest

from taskpriors.papers.recipes import paper_items
from taskpriors.papers.reproduce import reproduce

ITEMS = paper_items(miniature=True)
QUICK = ("synbench-table-22", "synbench-table-9", "synbench-table-3")
QUICK += ("pactran-table-4", "pactran-table-7", "pactran-table-8", "pactran-figure-3")
LONG = {  # one item of each action is quick to run; these repeat it
    name
    for name, item in ITEMS.items()
    if item.action in ("scores", "by_size", "robust_probing", "neucrab") and name not in QUICK
}


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.long) if k in LONG else k for k in ITEMS]
)
def test_an_item_runs_in_miniature(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    run = dict(out=tmp_path, miniature=True, cache=str(tmp_path / "cache"), progress=False)
    table = reproduce(name, **run)
    assert len(table) and (tmp_path / f"{name}.csv").exists()
    ours = table[["convention", "derived"]]
    assert ours.notna().any(axis=1).all(), f"{name}: a cell without a number"
