"""Every item of the papers that has a recipe runs in miniature, and its full networks exist."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from taskpriors import checks
from taskpriors.inputs.images import load_images
from taskpriors.papers import actions, pactran_actions, recipes
from taskpriors.papers.actions import Cell
from taskpriors.papers.recipes import item_table, paper_items, published_table
from taskpriors.papers.reproduce import NOT_COMPARABLE, compare_cells, printed_numbers, reproduce

ROOT = Path(__file__).resolve().parent.parent
ITEMS = paper_items(miniature=True)
QUICK = ("synbench-table-22", "synbench-table-9", "synbench-table-3")
TOGETHER = [name for name, item in ITEMS.items() if item.paper == "Task Priors"]
HERE = [name for name, item in ITEMS.items() if not (item.networks or item.data)]
TOGETHER += ["pactran-table-4", "pactran-table-5", "pactran-table-7", "pactran-table-8"]
TOGETHER += ["pactran-figure-1", "pactran-figure-3", "pactran-figure-12"]
LONG = {  # one item of each action is quick to run; these repeat it
    name
    for name, item in ITEMS.items()
    if item.action in ("scores", "by_size", "attack_distances", "robust_probing", "neucrab")
    and name not in QUICK
}


BESIDE_PRINT = [  # a printed number of each item that has some
    ("task-priors-figure-4", "Spearman of the variance of Tr(GK)", "variance of probe accuracy"),
    ("task-priors-figure-4-points", "Spearman of the mean of Tr(GK)", "mean probe accuracy"),
    ("task-priors-figure-5-points", "Spearman of the mean of Tr(GK)", "mean MIEB accuracy"),
    ("pactran-table-5", "PT-Gauss grid", "Caltech101"),
    ("pactran-table-7", "width, checkpoints of all widths", "mean over tasks"),
    ("pactran-figure-1", "N-LEEP", "tau"),
]
ALONE = [name for name in ITEMS if name not in TOGETHER and name not in HERE]


def run_small(name, out):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    run = dict(out=out, miniature=True, cache=str(out / "cache"), progress=False)
    table = reproduce(name, **run)
    assert len(table) and (out / f"{name}.csv").exists()
    ours = table[table["differs"] != "not computed"][["convention", "derived"]]
    assert len(ours) and ours.notna().any(axis=1).all(), f"{name}: a cell without a number"
    return table.set_index(["row", "column"])


NO_PRINT = {"task-priors-figure-2-points", "task-priors-figure-3-points"}  # points, no number


CONTRADICTED = {  # cells that differ from print, of items that need no network
    "synbench-figure-4": {"ImageNet-c acc."},
    "synbench-figure-7": {"LogME, n = 2048"},
    "synbench-figure-8": {"50 tasks"},
    "synbench-table-5": {"ViT-B/16-in21k"},
    "synbench-table-15": set(),
    "synbench-table-16": set(),
    "synbench-table-17": set(),
    "synbench-section-1-tasks": set(),
    "synbench-section-1-radius": set(),
    "synbench-figure-5-rows": set(),
    "pactran-figure-1-rows": set(),
    "pactran-c-6": {"features over metrics"},
    "pactran-b-7": set(),
    "synbench-table-11-channels": {"CIFAR10"},
}


@pytest.mark.parametrize("name", HERE)
def test_an_item_that_needs_no_network_has_its_numbers_beside_print(name, tmp_path):
    table = reproduce(name, out=tmp_path, progress=False)
    beside = table[(table["published"] != "") & (table["differs"] != "not computed")]
    assert len(beside) or name in NO_PRINT, name
    assert beside[["convention", "derived"]].notna().any(axis=1).all()
    if name in CONTRADICTED:
        assert set(table.loc[table["differs"] == "derived", "row"]) == CONTRADICTED[name]


def test_what_contradicts_print_is_looked_for_where_no_network_is_needed():
    assert set(CONTRADICTED) <= set(HERE)


def test_every_item_with_networks_says_what_is_unlike_the_release(monkeypatch):
    "In the notes, the plan and the mark of a number that differs."
    monkeypatch.setattr(recipes, "plan_item", lambda item, count=True: pd.DataFrame())
    for name, item in paper_items().items():
        told = [note for note in item.notes if note.startswith("Beside the released code: ")]
        assert len(told) == bool(item.networks or item.data), name
        if told:
            assert all(aspect in told[0] for aspect in item.differing), name
            assert " ".join(told[0].split()) in " ".join(repr(recipes.plan_of(item)).split())
        printed = [at for at, text in printed_numbers(item).items() if not text.startswith(">")]
        if printed and item.differing and not item.stand_ins:
            table = compare_cells([Cell(*printed[0], 1e9, 1e9)], item)
            (mark,) = table.loc[table["convention"] == 1e9, "differs"]
            assert mark.endswith(f"(unlike the release: {', '.join(item.differing)})"), name


def test_a_picture_says_which_convention_it_shows():
    import matplotlib.pyplot as plt

    from taskpriors.papers.reproduce import _with_convention

    for name in ("task-priors-figure-6", "pactran-figure-3", "synbench-table-1"):
        item = paper_items()[name]
        ax = plt.figure().add_subplot()
        text = _with_convention(ax, item).figure.get_supxlabel()
        assert text.startswith(item.picture) and item.picture, name
        assert all(aspect in text for aspect in item.differing), name


@pytest.mark.parametrize("name", [k for k in ALONE if k not in LONG])
def test_an_item_runs_in_miniature(name, tmp_path):
    run_small(name, tmp_path)


SAME_TABLE = {  # in a small run: the same numbers drawn, a part of them, or one toy for nine sets
    "SynBench": [
        {"synbench-table-8", "synbench-figure-5"},
        {"synbench-table-2", "synbench-table-10"},
    ],
    "PACTran": [{f"pactran-figure-{k}" for k in (3, 4, 5, 6, 7, 8, 10)}],
}


@pytest.mark.long
@pytest.mark.parametrize("paper", SAME_TABLE)
def test_every_item_runs_in_miniature_and_has_a_table_and_a_picture_of_its_own(paper, tmp_path):
    "Those of Task Priors all run in the test below; no two papers have tables of the same rows."
    names = [name for name, item in ITEMS.items() if item.paper == paper]
    for name in names:
        run_small(name, tmp_path)
    by_content = {}
    for file in tmp_path.glob("*.*"):
        if file.suffix in (".csv", ".png"):
            by_content.setdefault(file.read_bytes(), set()).add(file.name)
    shared = [{Path(k).stem for k in names} for names in by_content.values() if len(names) > 1]
    assert sorted(map(sorted, shared)) == sorted(map(sorted, SAME_TABLE[paper]))
    drawn = {name for name in names if (tmp_path / f"{name}.png").exists()}
    assert {name for name in names if "figure" in name and name not in HERE} <= drawn
    assert all(
        name.endswith(".csv") for names in by_content.values() for name in names if len(names) > 1
    )


def test_each_item_runs_in_a_test_of_tables_and_pictures():
    alone = {name for name, item in ITEMS.items() if item.paper not in SAME_TABLE}
    assert alone and alone <= set(TOGETHER)


@pytest.mark.long
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
        column = "digits" if item.small and column in item.full.data else column
        assert (row, column) in tables[name].index, f"{name}: no cell for {row}, {column}"


def test_figure_4_compares_the_variance_with_the_variance():
    table = published_table("Task Priors", "Figure 4").set_index("row")["column"]
    assert table["Spearman of the variance of Tr(GK)"] == "variance of probe accuracy"


def test_each_item_of_task_priors_has_its_temperature():
    items = paper_items()
    temperature = {
        k: items[f"task-priors-figure-{k}"].settings["temperature"] for k in (2, 3, 4, 5, 6, 8)
    }
    assert set(temperature.values()) == {1e-5}


def test_figure_1_of_pactran_is_at_the_size_of_the_table_that_its_caption_cites():
    assert paper_items()["pactran-figure-1"].settings["per_class"] == [2]
    caption = published_table("PACTran", "Figure 1").set_index("row")["value"].astype(float)
    table = published_table("PACTran", "Table 4")
    table = table[table["column"] == "Cifar-10"].set_index("row")["value"].astype(float)
    assert (caption - table[caption.index].round(2)).abs().max() < 1e-9


def cells_of(name, tmp_path, called=(), **settings):
    "A full item with these of its networks, and its cells by small networks and settings."
    item = paper_items()[name]
    item = replace(item, networks={k: item.networks[k] for k in called})
    small = ITEMS[name]
    sizes = {k: v for k, v in small.settings.items() if k in ("scales", "n_train", "n_test")}
    for k in ("attack_steps", "train_images", "test_images", "learner_steps", "n_images", "pixels"):
        if k in small.settings:
            sizes[k] = small.settings[k]
    few = dict(eps=item.settings.get("eps"), per_class=item.settings.get("per_class"))
    kept = {k: v for k, v in few.items() if v is not None}
    networks = dict.fromkeys(item.networks, "test_vit@untrained")
    data = {k: small.data["digits"] | {} for k in item.data}
    settings = item.settings | sizes | kept | settings
    settings.pop("attack", None)
    run = replace(item, networks=networks, data=data, settings=settings, limit=small.limit)
    options = dict(batch_size=64, cache=str(tmp_path), progress=False)
    cells, _ = actions.ACTIONS[item.action](actions.Job(run, networks, {}, options))
    return item, cells


def not_computed(table, called=""):
    "What is printed for a network and not beside ours."
    return table[(table["differs"] == "not computed") & table["row"].str.startswith(called)]


def test_table_9_has_a_row_per_network_and_its_four_numbers(tmp_path):
    item, cells = cells_of(
        "synbench-table-9", tmp_path, ["ViT-B/16", "Resnet50-SimCLRv2"], sizes=[48]
    )
    table = compare_cells(cells, item)
    assert (table["published"] != "").sum() == len(printed_numbers(item)) == 40  # all stand there
    for network in item.networks:
        of_network = table[(table["row"] == network) & (table["published"] != "")]
        assert of_network["convention"].notna().all() and len(of_network) == 4


def test_tables_7_and_19_correlate_our_scores_with_the_printed_accuracies(tmp_path):
    called = ["ViT-B/16", "ViT-L/16", "ViT-B/32"]
    _, cells = cells_of("synbench-table-7", tmp_path, called, sizes=[48])
    assert {c.unlike for c in cells if c.column == "Pearson"} <= {"over 3 of 5 networks"}
    for name, printed in (("synbench-table-7", "0.92"), ("synbench-table-19", "0.88")):
        item = paper_items()[name]
        scores = [
            Cell(f"SynBench, n = {size}", m, 0.1 * k, 0.1 * k)
            for size in item.settings["sizes"]
            for k, m in enumerate(item.networks)
        ]
        of_paper = published_table("SynBench", item.published)
        table = compare_cells(actions.accuracy_correlations(scores, of_paper), item)
        row = table[(table["row"] == "SynBench, n = 32768") & (table["column"] == "Pearson")]
        assert row["published"].item() == printed and -1 < row["derived"].item() < 1


@pytest.mark.long
def test_table_10_has_scores_by_radius_and_the_changes_at_the_advised_one(tmp_path):
    item, cells = cells_of("synbench-table-10", tmp_path, ["ViT-B/16"], train_images=20)
    table = compare_cells(cells, item)
    assert not len(not_computed(table, "ViT-B/16, "))
    advised = table[table["column"] == "advised eps"].set_index("row")
    printed = advised["published"][advised["published"] != ""]
    assert printed.tolist() == ["+0.1", "+2.7", "+0.7", "+2.5"]
    rows = table[table["row"].str.startswith("ViT-B/16, CIFAR10")].set_index("row")
    scores = rows.loc["ViT-B/16, CIFAR10, SynBench"].set_index("column")["derived"]
    best = scores.drop("advised eps").idxmax()
    assert f"eps = {scores['advised eps']:g}" == best
    changes = rows.loc["ViT-B/16, CIFAR10, RA change"].set_index("column")["derived"]
    assert changes["advised eps"] == changes[best]


def test_operations_stand_in_the_rows_and_sizes_of_table_8(tmp_path, monkeypatch):
    "Twenty classes of two, five and ten points; the nine features of OKVQA have no counterpart."
    import numpy as np
    from PIL import Image

    g = np.random.default_rng(0)
    for part in ("train", "test"):
        for k in range(22):
            for i in range(10 if part == "train" else 3):
                place = tmp_path / part / f"{k:02}" / f"{i}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(g.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(place)
    item = paper_items()["pactran-table-8"]
    networks = {"resnetv2_50": "zoo/pixels"}
    opened = [load_images(str(tmp_path / part)) for part in ("train", "test")]
    monkeypatch.setattr(actions, "image_parts", lambda job, name: opened)
    options = dict(batch_size=64, cache=str(tmp_path / "cache"), progress=False)
    job = actions.Job(replace(item, networks=networks), networks, {}, options)
    table = compare_cells(pactran_actions.ACTIONS["neucrab"](job)[0], item)
    beside = table[table["published"].str.endswith("(features of other widths)")]
    assert set(beside["column"]) == {"N = 40", "N = 100", "N = 200"}
    missing = set(table[table["differs"] == "not computed"]["row"])
    need_probs = {"LEEP", "PT-Dir", "PT-Gam"}  # of a network that classifies
    features = {f"Penultimate Feature {k}" for k in ("(6, 3)", "(9, 5)", "(12, 7)")}
    assert missing == need_probs | features and len(beside) == 42 - 3 * len(missing)


def test_distances_of_other_features_stand_beside_the_fid_and_say_so(tmp_path):
    item, cells = cells_of("synbench-table-11", tmp_path, ["Inception"])
    table = compare_cells(cells, item)
    of_fid = table[table["column"].str.startswith("FID")]
    assert of_fid["published"].str.endswith("(other weights of Inception)").all()
    assert len(of_fid) == 6 and (of_fid["differs"] == "").all()
    of_pixels = table[table["column"].str.startswith("Frechet distance of pixels")]
    assert len(of_pixels) == 6 and (of_pixels["published"] == "").all()
    assert not len(not_computed(table))


@pytest.mark.parametrize("name", ITEMS)
def test_a_plan_says_what_is_fetched_how_long_it_takes_and_what_is_not_shown(name, monkeypatch):
    "A plan of every item, on a machine that has no network yet."
    architecture = recipes._architecture
    monkeypatch.setattr(recipes, "is_cached", lambda name: name.startswith("zoo/"))
    monkeypatch.setattr(recipes, "free_disk", lambda: 100.0)

    def uncounted(name, *, count):  # the counter runs in its chapter
        return architecture(name, count=False)._replace(gflop=1.0)

    monkeypatch.setattr(recipes, "_architecture", uncounted)
    item = paper_items()[name]
    plan = reproduce(name, plan=True)
    text = " ".join(repr(plan).split())
    assert max(map(len, repr(plan).splitlines())) <= 80
    assert all(note in text for note in item.notes)
    if item.networks:
        assert "not in the cache yet" in text and " on a GPU (" in text
    for data, source in item.data.items():
        if "file" in source:
            assert f"{data} must be passed by --folder" in text
        elif "folder" in source:
            assert f"Images: {data} must be passed" in text
        else:
            assert f"Images: {data}, " in text and "to fetch once" in text


def test_no_miniature_has_a_printed_number_of_other_data(tmp_path):
    for name, item in ITEMS.items():
        if not item.small:
            assert item.needs == "nothing but printed numbers", name
            continue
        assert item.notes[0].startswith("This small run")
        assert re.search(r"\breplaces?\b", " ".join(item.notes)), name
        cells = [Cell(row, column, 0.0, 0.0) for row, column in printed_numbers(item)]
        assert set(compare_cells(cells, item)["published"]) <= {NOT_COMPARABLE}, name


def test_list_plan_output_file_and_map_say_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from pages import _paper_row

    name = "pactran-table-4"
    item = paper_items()[name]
    assert item.notes[0] == "10 networks of timm replace the 16 checkpoints of the paper."
    row = _paper_row("Table 4", f"metrics => taskpriors reproduce {name}", [], {})
    for note in item.notes:
        assert note in item_table().loc[name, "notes"]
        assert note in " ".join(repr(reproduce(name, plan=True)).split())
        assert note in row
    table = reproduce("synbench-table-18", out=tmp_path)
    text = (tmp_path / "synbench-table-18.txt").read_text(encoding="utf-8")
    assert text.splitlines() == table.attrs["notes"] == paper_items()["synbench-table-18"].notes
    for line in (ROOT / "docs" / "papers.txt").read_text(encoding="utf-8").splitlines():
        if "=> taskpriors reproduce" in line:
            assert " -- " not in line, f"its reason stands in the recipe: {line}"
            named = re.findall(r"taskpriors reproduce ([\w-]+)", line)
            assert named and set(named) <= set(ITEMS), line


def test_a_network_of_ones_own_takes_the_place_of_one_that_is_not_published(tmp_path):
    passed = "Resnet50-SimCLRv2=test_resnet@untrained"
    plan = reproduce("synbench-table-7", network=passed, plan=True)
    of_table = plan.networks.set_index("network")["weights"]
    assert of_table["Resnet50-SimCLRv2"] == "test_resnet@untrained"
    text = " ".join(repr(plan).split())
    assert "Resnet50-SimCLRv2 is test_resnet@untrained, named by --network." in text
    assert "Left out: Resnet101-SimCLRv2" in text
    with pytest.raises(ValueError, match="NAME=FILE, where NAME is a network of the item"):
        reproduce("synbench-table-7", network="Resnet51=x", plan=True)
    weights = tmp_path / "own.safetensors"
    import timm
    from safetensors.torch import save_file

    torch.manual_seed(1)
    save_file(timm.create_model("test_vit", num_classes=0).state_dict(), weights)
    run = dict(miniature=True, progress=False, cache=str(tmp_path / "cache"))
    one = reproduce(
        "synbench-table-22", out=tmp_path, network=f"small ViT=test_vit@{weights}", **run
    )
    other = reproduce("synbench-table-22", out=tmp_path, **run)
    assert one["derived"][0] != other["derived"][0] and one["derived"][1] == other["derived"][1]


def test_a_plan_names_the_device():
    assert "Networks run on cuda." in repr(reproduce("synbench-table-22", plan=True, device="cuda"))
    assert "--device names another place" in repr(reproduce("synbench-table-22", plan=True))


def test_features_beyond_the_memory_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(recipes, "is_cached", lambda name: True)
    monkeypatch.setattr(checks, "available_memory", lambda device: 2**30)
    with pytest.raises(MemoryError, match="one data set"):
        with pytest.warns(UserWarning, match="leaves out"):
            reproduce("pactran-table-4")


@pytest.mark.long
def test_the_truth_of_a_recipe_can_be_that_of_fine_tuning(tmp_path):
    names = ("pixels", "blocks", "gradients", "projection")
    kinds = ("vit", "resnet", "efficientnet", "vit2")
    network = [f"{n}=test_{k}@untrained" for n, k in zip(names, kinds, strict=True)]
    run = dict(miniature=True, network=network, progress=False, cache=str(tmp_path / "cache"))
    of_heads = reproduce("pactran-figure-6", out=tmp_path / "heads", **run)
    tuned = reproduce("pactran-figure-6", out=tmp_path / "tuned", fine_tune=True, **run)
    assert len(tuned) and len(of_heads)
    with pytest.raises(
        ValueError, match="fine_tune applies only to PACTran items with test errors"
    ):
        reproduce("synbench-table-22", fine_tune=True, miniature=True)
