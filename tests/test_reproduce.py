"""Every item of the papers that has a recipe runs in miniature, and its full networks exist."""

import pytest

from taskpriors.papers.recipes import paper_items, published_table
from taskpriors.papers.reproduce import reproduce

ITEMS = paper_items(miniature=True)
QUICK = ("synbench-table-22", "synbench-table-9", "synbench-table-3")
TOGETHER = [name for name, item in ITEMS.items() if item.paper == "Task Priors"]
TOGETHER += ["pactran-table-4", "pactran-table-5", "pactran-table-7", "pactran-table-8"]
TOGETHER += ["pactran-figure-1", "pactran-figure-3", "pactran-figure-12"]
LONG = {  # one item of each action is quick to run; these repeat it
    name
    for name, item in ITEMS.items()
    if item.action in ("scores", "by_size", "robust_probing", "neucrab") and name not in QUICK
}


BESIDE_PRINT = [  # a printed number of each item that has some
    ("task-priors-figure-4", "Spearman of the variance of Tr(GK)", "variance of probe accuracy"),
    ("task-priors-figure-4-points", "Spearman of the mean of Tr(GK)", "mean probe accuracy"),
    ("task-priors-figure-5-points", "Spearman of the mean of Tr(GK)", "mean MIEB accuracy"),
    ("pactran-table-5", "PT-Gauss grid", "Caltech101"),
    ("pactran-table-7", "width, checkpoints of all widths", "mean over tasks"),
    ("pactran-table-8", "H-score", "N = 40"),
    ("pactran-figure-1", "N-LEEP", "tau"),
]
ALONE = [name for name in ITEMS if name not in TOGETHER]


def run_small(name, out):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    run = dict(out=out, miniature=True, cache=str(out / "cache"), progress=False)
    table = reproduce(name, **run)
    assert len(table) and (out / f"{name}.csv").exists()
    ours = table[["convention", "derived"]]
    assert ours.notna().any(axis=1).all(), f"{name}: a cell without a number"
    return table.set_index(["row", "column"])


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.long) if k in LONG else k for k in ALONE]
)
def test_an_item_runs_in_miniature(name, tmp_path):
    run_small(name, tmp_path)


def test_items_run_in_miniature_and_no_two_share_a_table_or_a_picture(tmp_path):
    tables = {name: run_small(name, tmp_path) for name in TOGETHER}
    for ending in ("csv", "png"):
        files = sorted(tmp_path.glob(f"*.{ending}"))
        contents = {file.read_bytes(): file.stem for file in files}
        assert len(contents) == len(files), f"{ending}: only {', '.join(contents.values())} differ"
    without_picture = {name for name in TOGETHER if not (tmp_path / f"{name}.png").exists()}
    assert without_picture == {"pactran-table-8"}
    for name, row, column in BESIDE_PRINT:
        item = ITEMS[name]
        printed = published_table(item.paper, item.published).set_index(["row", "column"])
        assert printed.loc[(row, column), "value"], name
        assert (row, column) in tables[name].index, f"{name}: no cell for {row}, {column}"


def test_figure_4_compares_the_variance_with_the_variance():
    table = published_table("Task Priors", "Figure 4").set_index("row")["column"]
    assert table["Spearman of the variance of Tr(GK)"] == "variance of probe accuracy"


def test_each_item_of_task_priors_has_its_temperature():
    items = paper_items()
    temperature = {
        k: items[f"task-priors-figure-{k}"].settings["temperature"] for k in (2, 3, 4, 5, 8)
    }
    assert set(temperature.values()) == {1e-5}
    assert items["task-priors-figure-6"].settings["temperature"] == 0.01


def test_figure_1_of_pactran_is_at_the_size_of_the_table_that_its_caption_cites():
    assert paper_items()["pactran-figure-1"].settings["per_class"] == [2]
    caption = published_table("PACTran", "Figure 1").set_index("row")["value"].astype(float)
    table = published_table("PACTran", "Table 4")
    table = table[table["column"] == "Cifar-10"].set_index("row")["value"].astype(float)
    assert (caption - table[caption.index].round(2)).abs().max() < 1e-9
