"""What audits found wrong and no chapter shows: all of it was silent or ended in a bare error."""

import re
import zipfile

import numpy as np
import pytest
import torch
from torch import nn

import taskpriors as tp
import taskpriors.tools.label_loop as label_loop
from taskpriors.inputs.row_labels import groups_of_points, read_labels
from taskpriors.rank.options import nested

QUICK = dict(n_tasks=20, cache=False, progress=False)
PICTURES = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)


def as_tensor(picture):
    return torch.tensor(np.array(picture.convert("L"))).float()[None] / 255


def candidates(n_models=4, n=200):
    g = torch.Generator().manual_seed(0)
    seen = torch.randn(n, 6, generator=g)
    noise = (0.2 * torch.randn(n, 8, generator=g) for _ in range(n_models))
    return {f"m{k}": seen @ torch.randn(6, 8, generator=g) + own for k, own in enumerate(noise)}


@pytest.mark.parametrize("first", [100, 99])
@pytest.mark.filterwarnings("ignore")  # none of these models knows more than noise would
def test_labels_say_nothing_of_noise(first):
    g = torch.Generator().manual_seed(0)
    noise = {f"m{k}": torch.randn(200, 8, generator=g) for k in range(4)}
    ranking = tp.rank_models(noise, **nested(labels=[0] * first + [1] * (200 - first), **QUICK))
    error = (0.25 / 200) ** 0.5
    assert (ranking.extra["label accuracy"] - 0.5).abs().max() < 4 * error


@pytest.mark.filterwarnings("ignore")
def test_rows_in_another_order_are_said_above_the_verdict():
    models = candidates()
    models["turned"] = models["m0"].flip(0)
    ranking = tp.rank_models(models, **nested(**QUICK))
    (note,) = ranking.settings["candidates"]
    assert note.startswith("turned and the other models predict each other's tasks poorly")
    assert note.endswith("Check that its rows are in the same order.")
    shown = str(ranking)
    assert shown.index("turned and the other models") < shown.index(ranking.verdict[:12])


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n_classes", [2, 7])
def test_labels_of_other_rows_name_no_model(on_disk, n_classes):
    models = candidates()
    g = torch.Generator().manual_seed(n_classes)
    classes = (models["m0"] @ torch.randn(8, n_classes, generator=g)).argmax(1)
    asked = "Are labels and rows in the same order? Without the labels, take m"

    def rank(labels):
        return tp.rank_models(models, labels=labels, **nested(on_disk=on_disk, **QUICK))

    assert asked not in rank(classes).verdict
    for seed in range(3):
        other = torch.randperm(200, generator=g.manual_seed(seed))
        ranking = rank(classes[other])
        assert asked in ranking.verdict and "same order" in ranking.next_step


@pytest.mark.filterwarnings("ignore")
def test_a_constant_model_fails_in_memory_and_from_disk(tmp_path):
    models = candidates(3) | dict(constant=torch.ones(200, 4))
    files = {name: tmp_path / f"{name}.npy" for name in models}
    for name, features in models.items():
        np.save(files[name], features.numpy())
    for ranking in (
        tp.rank_models(models, **nested(**QUICK)),
        tp.rank_models(files, **nested(on_disk=True, **QUICK)),
    ):
        assert list(ranking.failures) == ["constant"]
        assert "must differ between examples" in ranking.failures["constant"]
        assert "constant" not in ranking.models


def test_a_table_of_texts_without_a_header_is_refused(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("the first text,a\nthe second,b\n")
    with pytest.raises(ValueError, match="must have a column named text. Got the first text, a"):
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
        tp.layers_of(WithSides(), PICTURES, transform=as_tensor, layers=["first", layer])


def test_a_function_around_a_network_leaves_its_statistics_alone():
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.BatchNorm1d(5)).train()
    before = network[2].running_mean.clone()
    tp.embed(lambda x: network(x), PICTURES, transform=as_tensor, cache=False, progress=False)
    assert network[2].running_mean.equal(before)
    assert network.training


def in_files(models, folder):
    for name, features in models.items():
        np.save(folder / f"{name}.npy", features.numpy())
    return {name: folder / f"{name}.npy" for name in models}


AGAIN = dict(
    exact=lambda X, g: X,
    noise=lambda X, g: X + 1e-4 * torch.randn(X.shape, generator=g),
    half=lambda X, g: X.half().float(),
    scaled=lambda X, g: X * (1 + 1e-5),
)


@pytest.mark.parametrize("kind", AGAIN)
@pytest.mark.parametrize("labelled", [False, True])
def test_copies_of_points_in_files_are_left_out_as_in_memory(kind, labelled, tmp_path):
    g = torch.Generator().manual_seed(1)
    models = {k: torch.cat([X[:140], AGAIN[kind](X[:60], g)]) for k, X in candidates(3).items()}
    labels = (models["m0"][:, 0] > 0).long() if labelled else None
    here = tp.rank_models(models, **nested(labels=labels, **QUICK))
    there = tp.rank_models(
        in_files(models, tmp_path), **nested(labels=labels, on_disk=True, **QUICK)
    )
    assert "120 of 200 examples are duplicates or near-duplicates" in there.verdict
    assert there.settings["copies"] == here.settings["copies"]
    assert there.groups.equal(here.groups)
    torch.testing.assert_close(there.skill, here.skill, rtol=0, atol=2e-6)
    once = tp.rank_models(in_files(candidates(3), tmp_path), **nested(on_disk=True, **QUICK))
    assert once.groups is None and once.settings["copies"] == ""


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n_labelled", [0, 8])
def test_labels_are_not_spent_on_one_group_twice(on_disk, n_labelled, tmp_path):
    models, groups = candidates(3, 120), torch.arange(120) % 24
    labels = [("cat", "dog")[k % 2] if k < n_labelled else None for k in range(120)]
    files = in_files(models, tmp_path) if on_disk else models
    options = dict(labels=labels) if n_labelled else {}
    ranking = tp.rank_models(files, **nested(groups=groups, on_disk=on_disk, **options, **QUICK))
    n_open = 24 - n_labelled
    first = groups[ranking.next_labels(n_open)].tolist()
    assert sorted(first) == list(range(n_labelled, 24))
    everything = ranking.next_labels(120 - n_labelled).tolist()
    assert len(set(everything)) == 120 - n_labelled and min(everything) >= n_labelled
    notes = " ".join(ranking.settings["notes"])
    assert "from different groups as long as some groups have no labels" in notes


WRAPPED = dict(
    compiled=lambda network: torch.compile(network, backend="eager"),
    parallel=nn.DataParallel,
    averaged=torch.optim.swa_utils.AveragedModel,
    compiled_and_parallel=lambda network: nn.DataParallel(torch.compile(network, backend="eager")),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapped_network_gives_what_the_network_gives(kind):
    timm = pytest.importorskip("timm")
    network = timm.create_model("resnet10t", num_classes=7).train()
    pictures = np.random.default_rng(0).integers(0, 256, (20, 64, 64, 3), dtype=np.uint8)
    prepared = dict(transform=lambda im: torch.tensor(np.array(im)).permute(2, 0, 1) / 255)
    options = dict(prepared, cache=False, progress=False, batch_size=7)
    plain = tp.embed(network, pictures, **options)
    statistics = network.bn1.running_mean.clone()
    wrapped = WRAPPED[kind](network)
    torch.testing.assert_close(tp.embed(wrapped, pictures, **options), plain)
    by_function = tp.embed(lambda x: wrapped(x), pictures, **options)
    assert plain.shape == (20, 512) and by_function.shape == (20, 7)
    assert network.bn1.running_mean.equal(statistics) and network.training


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["series", "dictionary", "frame", "csv", "jsonl"])
def test_groups_and_labels_find_rows_of_frames_by_name(form, tmp_path):
    pd = pytest.importorskip("pandas")
    models, names = candidates(3, 60), [f"im_{k}.png" for k in range(60)]
    frames = {k: pd.DataFrame(X.numpy(), index=names) for k, X in models.items()}
    groups, mixed = [f"p{k % 12}" for k in range(60)], np.random.default_rng(0).permutation(60)
    moved, of = [names[k] for k in mixed], [groups[k] for k in mixed]
    table = pd.DataFrame(dict(file=moved, patient=of, label=[f"c{k % 3}" for k in mixed]))
    table.to_csv(tmp_path / "groups.csv", index=False)
    rows = table[["file", "patient"]]
    rows.to_json(tmp_path / "groups.jsonl", orient="records", lines=True)
    forms = dict(
        series=pd.Series(of, index=moved),
        dictionary=dict(zip(moved, of, strict=True)),
        frame=table,
        csv=tmp_path / "groups.csv",
        jsonl=tmp_path / "groups.jsonl",
    )
    named = tp.rank_models(frames, **nested(groups=forms[form], **QUICK))
    torch.testing.assert_close(
        named.skill, tp.rank_models(models, **nested(groups=groups, **QUICK)).skill
    )


@pytest.mark.parametrize("given", ["names", "file", "copies", None])
def test_the_sheet_of_points_to_label_shows_their_groups(given, tmp_path):
    pd = pytest.importorskip("pandas")
    g = np.random.default_rng(0)
    X = g.normal(size=(60, 8))
    names = [f"patient {k // 6}" for k in range(60)]
    if given == "copies":
        X[1::2] = X[::2]
    table = tmp_path / "groups.csv"
    order = g.permutation(60)
    pd.DataFrame(dict(row=order, group=[names[k] for k in order])).to_csv(table, index=False)
    groups = dict(names=names, file=table).get(given)
    models = dict(a=X, b=X[:, :5] + 1, c=X @ g.normal(size=(8, 3)))
    tp.rank_models(models, **nested(groups=groups, out=tmp_path / "ranking", **QUICK))
    sheet = pd.read_csv(
        label_loop.next_sheet(tmp_path / "ranking", n_labels=9, out=tmp_path / "next.csv")
    )
    if groups is None:
        assert sheet.columns.tolist() == ["row", "inputs", "label"]
        return
    assert sheet.columns.tolist() == ["row", "inputs", "group", "label"]
    assert (sheet["group"] == sheet["row"] // 6).all() and sheet["group"].is_unique
    sheet.assign(label=sheet["row"] % 2).to_csv(tmp_path / "next.csv", index=False)
    again = tp.rank_models(models, **nested(groups=groups, labels=tmp_path / "next.csv", **QUICK))
    assert "9 labels" in again.verdict


@pytest.mark.parametrize("held", ["itself", "in a function", "loaded"])
@pytest.mark.parametrize("layer", [nn.BatchNorm2d(8), nn.Dropout(0.5)])
def test_a_network_traced_in_training_mode_is_traced_again(held, layer, tmp_path):
    network = nn.Sequential(nn.Conv2d(1, 8, 3), layer, nn.Flatten()).train()

    def embedded():
        traced = torch.jit.trace(network, torch.rand(4, 1, 8, 8), check_trace=False)
        if held == "loaded":
            traced.save(tmp_path / "traced.pt")
            traced = torch.jit.load(tmp_path / "traced.pt")
        model = (lambda x: traced(x)) if held == "in a function" else traced
        return tp.embed(model, PICTURES, transform=as_tensor, cache=False, progress=False)

    said = "must (not depend on the rest of the batch|be the same in each call)"
    with pytest.raises(ValueError, match=said):
        embedded()
    network.eval()
    inputs = torch.stack([torch.tensor(x).float()[None] / 255 for x in PICTURES])
    torch.testing.assert_close(embedded(), network(inputs).detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["video", "pairs far apart", "no copies", "in files"])
def test_near_copies_among_many_points_are_counted(kind, tmp_path):
    g = np.random.default_rng(0)
    X = g.normal(size=(9000, 6))
    if kind == "video":
        X = X[:900].repeat(10, 0) + 1e-4 * g.normal(size=X.shape)
    elif kind != "no copies":
        X[4500:] = X[:4500] + 1e-4 * g.normal(size=(4500, 6))
    models = {k: torch.tensor(X @ g.normal(size=(6, 6))) for k in "ab"}
    on_disk = kind == "in files"
    files = in_files(models, tmp_path) if on_disk else models
    ranking = tp.rank_models(files, **nested(on_disk=on_disk, **QUICK))
    notes = " ".join(ranking.settings["notes"])
    if on_disk:
        assert (
            "Near copies, such as frames of a video, are not searched for among more than 8,192"
            in notes
        )
    elif kind == "no copies":
        assert "only in a random sample of 4,096 of the 9,000 examples: none were" in notes
    else:
        said = re.search(r"(\d+) were found such as rows (\d+) and (\d+)", notes.replace(",", ""))
        n_copies, i, j = map(int, said.groups())
        expected = 4096 if kind == "video" else 4096**2 / 9000
        assert abs(n_copies - expected) < 4 * 4096**0.5
        assert i // 10 == j // 10 if kind == "video" else j - i == 4500


@pytest.mark.parametrize("kind", ["zip", "sheet of Excel", "gzip", "parquet"])
def test_a_packed_table_under_another_ending_is_refused(kind, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(dict(row=range(200), label=["a", "b"] * 100))
    path = tmp_path / "labels.csv"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "sheet of Excel":
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("xl/workbook.xml", "<workbook/>")
    else:
        frame.to_csv(path, index=False, compression=kind)
    with pytest.raises(ValueError, match="labels.csv must"):
        tp.rank_models(candidates(), **nested(labels=path, **QUICK))


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_tables_of_other_libraries_place_labels_and_groups(library):
    made_of = pytest.importorskip(library)
    table = made_of.DataFrame if library == "polars" else made_of.table
    rows = torch.randperm(200, generator=torch.Generator().manual_seed(0)).tolist()
    truth, groups = [f"c{k % 2}" for k in range(200)], [k // 5 for k in range(200)]
    labels = table(dict(row=rows, label=[truth[k] for k in rows]))
    grouped = table(dict(row=rows, group=[groups[k] for k in rows]))
    assert read_labels(labels, None, 200).classes.tolist() == [k % 2 for k in range(200)]
    assert groups_of_points(grouped, None, 200) == groups


@pytest.mark.parametrize(
    "unlike",
    [lambda X: X.astype(object), lambda X: X.astype(str), lambda X: X.astype(np.longdouble)],
)
def test_the_remedy_for_an_array_of_other_things_works(unlike):
    X = unlike(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(TypeError, match=r"pass numbers: X.astype\(float\)"):
        tp.embed(X, None)
    assert tp.embed(X.astype(float), None).shape == (20, 3)


OUTPUTS = dict(
    sparse=lambda rows: rows.relu().to_sparse(),
    complex=lambda rows: torch.fft.fft(rows),
    tuple=lambda rows: (rows, rows.mean()),
    none=lambda rows: None,
    meta=None,
)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_what_an_encoder_returns_is_features_or_refused(kind):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    says = {"complex": "of real numbers", "tuple": "Got tuple;", "none": "Got NoneType;"}
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 5, device="meta")) if kind == "meta" else None

    def outputs(x):
        return OUTPUTS[kind](network(x))

    def embedded():
        return tp.embed(
            model or outputs, PICTURES, transform=as_tensor, cache=False, progress=False
        )

    if kind == "sparse":
        inputs = torch.tensor(PICTURES).float() / 255
        torch.testing.assert_close(embedded(), network(inputs).relu().detach())
        return
    with pytest.raises(
        (TypeError, ValueError), match=says.get(kind, "must have its weights in memory")
    ):
        embedded()
