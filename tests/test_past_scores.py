"""Tables of past results in canonical forms are read as one matrix; others are refused.

Who writes a table knows the score of each model on each task. Whatever the layout, the unit, the
kind of file and the spelling of the names, the same matrix must come back.
"""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

import taskpriors as tp
from taskpriors.inputs.past_scores import _append_record, read_past_scores, to_record
from taskpriors.papers.study_data import find_shared_data
from taskpriors.rank.options import nested
from taskpriors.transfer.registry import LABEL_ACCURACY

SENTENCE = re.compile(r".+\. Got .+; .+\.", re.S)
MODELS = (
    "vit_base_patch14_dinov2.lvd142m",
    "resnet50.a1_in1k",
    "my_net",
    "openai/clip-vit-base-patch32",
)
SPELLINGS = (
    MODELS,
    ("facebook/dinov2-base", "resnet50", "My Net", "clip-vit-base-patch32"),
    ("dinov2_vitb14", "timm/resnet50.a1_in1k", "features/my_net.npy", "ViT-B-32.openai"),
)
STRANGERS = ("pixels", "efficientnet_lite0")
TASKS = ("CIFAR-10", "CLEVR Counts", "dtd", "EuroSAT")
FACTS = dict(param_count=[25.6, 86.6, 300.0, 7.2, 1.5, 4.4], mean=[0.5] * 6)


def a_truth(rng):
    "Scores of four ranked models and two others, some of them missing."
    scores = rng.uniform(0.2, 0.99, (6, len(TASKS))).round(4)
    scores[rng.random(scores.shape) < 0.15] = np.nan
    scores[0] = scores[1] = 0.75  # no model and no task without a score
    return scores


def laid_out(scores, names, layout):
    "The same scores as a data frame."
    wide = pd.DataFrame(scores, index=list(names), columns=list(TASKS))
    if layout == "wide":
        return wide
    wide = wide.rename_axis("model_name").reset_index()
    return wide.melt("model_name", var_name="dataset", value_name="score")


def passed(frame, kind, layout, folder):
    "A data frame as users pass it."
    if kind == "frame":
        return frame
    named = frame if layout == "long" else frame.rename_axis("name").reset_index()
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="parquet needs pyarrow")
        named.to_parquet(folder / "results.parquet")
        return folder / "results.parquet"
    if kind == "jsonl":
        named.to_json(folder / "results.jsonl", orient="records", lines=True, double_precision=15)
        return folder / "results.jsonl"
    path = folder / f"results.{'tsv' if kind == 'tsv' else 'csv'}"
    named.to_csv(path, index=False, sep={"csv": ",", "tsv": "\t", "semicolons": ";"}[kind])
    return str(path)


@pytest.mark.parametrize("seed", range(120))
def test_every_form_is_the_same_matrix(seed, tmp_path):
    rng = np.random.default_rng(seed)
    scores, order = a_truth(rng), rng.permutation(6)
    names = [str(rng.choice([row[k] for row in SPELLINGS])) for k in range(4)]
    names = np.array([*names, *STRANGERS], dtype=object)
    layout = str(rng.choice(["wide", "long"]))
    kind = str(rng.choice(["frame", "csv", "tsv", "semicolons", "parquet", "jsonl"]))
    factor = int(rng.choice([1, 100]))
    frame = laid_out(factor * scores[order], names[order], layout)
    if layout == "wide" and rng.random() < 0.5:
        facts = {name: np.array(values)[order] for name, values in FACTS.items()}
        frame = frame.assign(**facts)
    past = read_past_scores(passed(frame, kind, layout, tmp_path), MODELS)
    assert past.models == MODELS and sorted(past.tasks) == sorted(TASKS)
    places = [past.tasks.index(task) for task in TASKS]
    assert_close(past.scores[:, places], torch.tensor(scores[:4]), equal_nan=True)
    assert any("Not ranked: 2 of 6 models" in note for note in past.notes)


FORMS = {  # what is no canonical form, and what its refusal says
    "errors": (lambda x: (1 - x).add_suffix("_err"), "pass 1 - error"),
    "tasks in rows": (lambda x: x.T, "scores of ranked models"),
    "a dictionary": (lambda x: x.to_dict(), "pass pandas.DataFrame(scores)"),
    "a series": (lambda x: x.dtd, "pass pandas.DataFrame(scores)"),
    "several levels": (lambda x: x.stack().to_frame("score"), "pass frame.reset_index()"),
    "percent signs": (lambda x: x.map("{:.1%}".format), "str.rstrip('%').astype(float)"),
    "a saved ranking": (
        lambda x: x.assign(worst_decile=0.1, skill=0.2),
        "pass ranking.to_record(TASK)",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_another_form_is_refused_with_what_to_pass(form):
    change, says = FORMS[form]
    frame = pd.DataFrame(0.5, index=list(MODELS), columns=list(TASKS))
    with pytest.raises((ValueError, TypeError), match=re.escape(says)) as refusal:
        read_past_scores(change(frame), MODELS)
    assert SENTENCE.fullmatch(str(refusal.value)), str(refusal.value)


DEFECTS = {
    "a cell in another unit": lambda x: x.assign(dtd=100 * x.dtd),
    "a task below zero": lambda x: x.assign(dtd=x.dtd - 1),
    "a task above a hundred": lambda x: x.assign(dtd=1000 * x.dtd),
    "a word": lambda x: x.astype(object).replace(0.75, "good"),
    "a mean called accuracy": lambda x: x.assign(accuracy=x.mean(axis=1)),
    "no ranked model": lambda x: x.set_axis(list("uvwxyz")),
    "one model twice": lambda x: pd.concat([x, x + 0.01]),
    "no tasks": lambda x: x[[]],
    "no rows": lambda x: x.iloc[:0],
    "two names of one model": lambda x: x.rename({"pixels": "my net"}).rename({"my_net": "My-Net"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_refused_in_a_sentence(defect):
    names = [*MODELS, *STRANGERS]
    frame = pd.DataFrame(a_truth(np.random.default_rng(0)), index=names, columns=list(TASKS))
    with pytest.raises((ValueError, TypeError)) as refusal:
        read_past_scores(DEFECTS[defect](frame), MODELS)
    assert SENTENCE.fullmatch(str(refusal.value)), str(refusal.value)


@pytest.mark.parametrize(
    "record", [None, 7, [], {}, "", "absent.csv", ["absent"], [None], object()]
)
def test_what_is_no_record_is_refused_in_a_sentence(record):
    with pytest.raises((ValueError, TypeError, OSError)) as refusal:
        read_past_scores(record, MODELS)
    assert SENTENCE.fullmatch(str(refusal.value)), str(refusal.value)


def test_ranks_are_refused_through_the_front_door():
    draws = np.random.default_rng(0)
    models = {name: draws.normal(size=(40, 4)) for name in "abc"}
    places = pd.DataFrame(dict(dtd=[1, 2, 3], food=[2, 1, 3]), index=list("abc"))
    quiet = nested(n_tasks=8, references=False, progress=False, cache=False)
    with pytest.raises(ValueError, match=r"must not be ranks. Got 1 to 3.*1 - \(ranks - 0.5\)"):
        tp.rank_models(models, past_results=places, **quiet)
    scores = 1 - (places - 0.5) / 3
    assert tp.rank_models(models, past_results=scores, **quiet).evidence.past.shape == (3, 2)


def test_tables_complete_each_other_and_may_not_contradict():
    one, two = (pd.Series(x, name="dtd").to_frame() for x in ({"a": 0.5}, {"b": 0.75, "a": 0.5}))
    past = read_past_scores([one, two], ("a", "b"))
    assert past.tasks == ("dtd",) and past.scores[:, 0].tolist() == [0.5, 0.75]
    with pytest.raises(ValueError, match="Got 0.5 and 0.6 for a on 'dtd'"):
        read_past_scores([one, two.replace(0.5, 0.6)], ("a", "b"))


@pytest.mark.parametrize("form", ["long", "wide"])
def test_results_of_mteb_are_read_in_their_frames(form):
    rows = [
        dict(model_name=model, task_name=task, split="test", subset=subset, score=low + more)
        for model, low in (("intfloat/e5-small", 0.25), ("BAAI/bge-small-en-v1.5", 0.5))
        for task in ("Banking77", "Emotion")
        for subset, more in (("en", 0.0), ("fr", 0.25))
    ]
    frame = pd.DataFrame(rows)
    if form == "wide":
        levels = ["task_name", "split", "subset"]
        frame = frame.pivot_table(index=levels, columns=["model_name"], values="score")
        frame = frame.reset_index()
    for record in (frame, SimpleNamespace(to_dataframe=lambda: frame)):
        past = read_past_scores(record, ("e5-small", "bge-small-en-v1.5"))
        assert past.tasks == ("Banking77", "Emotion")
        assert past.scores.tolist() == [[0.375, 0.375], [0.625, 0.625]]
        assert any("4 scores" in note and "means over repetitions" in note for note in past.notes)


def test_finished_rankings_become_tasks(tmp_path):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 90)
    centres = rng.normal(size=(3, 6))
    for task, labels in {
        "all": classes,
        "few": np.where(np.arange(90) < 40, classes, -1),
        "none": None,
    }.items():
        features = {
            name: (strength * centres[classes] + rng.normal(size=(90, 6))).astype("float32")
            for name, strength in (("good", 2.0), ("fair", 0.5), ("poor", 0.1))
        }
        ranking = tp.rank_models(features, **nested(labels=labels, n_tasks=10, progress=False))
        if labels is None:
            with pytest.raises(ValueError, match="rank with labels="):
                to_record(ranking, task)
            continue
        rows = to_record(ranking, task)
        past = read_past_scores(rows, ranking.models)
        assert past.tasks == (task,)
        assert_close(past.scores[:, 0], ranking.extra[LABEL_ACCURACY].double())
        _append_record(tmp_path / "mine.csv", rows)
    grown = read_past_scores(tmp_path / "mine.csv", ("poor", "new", "good"))
    assert grown.tasks == ("all", "few") and grown.scores[1].isnan().all()
    assert (grown.scores[2] > grown.scores[0]).all()


def test_runs_that_finish_together_are_all_in_the_record(tmp_path):
    ranking = SimpleNamespace(models=("a", "b"), extra={LABEL_ACCURACY: torch.tensor([0.5, 0.75])})
    path = tmp_path / "record.csv"
    with ThreadPoolExecutor(8) as pool:
        rows = [to_record(ranking, f"task {k}") for k in range(24)]
        list(pool.map(lambda frame: _append_record(path, frame), rows))
    past = read_past_scores(path, ranking.models)
    assert sorted(past.tasks) == sorted(f"task {k}" for k in range(24))
    assert past.scores.tolist() == [[0.5] * 24, [0.75] * 24]


REAL = {  # table -> models as a ranking may call them, and how many tasks and scores they have
    "timm_results-imagenet.csv": (("resnet50", "facebook/convnext-base-224", "my_net"), 1, 2),
    "clip_paper_table10_linear_probe_clip_rows.csv": (("RN50", "ViT-L/14@336"), 27, 54),
    "tllib_model_ranking.csv": (("googlenet", "inception_v3", "densenet201"), 8, 24),
    "linear_probe_reference.csv": (("mcunet_5fps_imagenet",), 3, 3),
    "open_clip_openclip_classification_results.csv": (
        ("openai/clip-vit-base-patch32", "google/siglip-base-patch16-224", "dinov2_vitb14"),
        35,
        70,
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_published_tables_are_read(name):
    path = (find_shared_data() or Path("absent")) / "tables" / name
    if not path.is_file():
        pytest.skip("needs the tables of TASKPRIORS_DATA")
    models, n_tasks, n_scores = REAL[name]
    past = read_past_scores(path, models)
    assert (len(past.tasks), int(past.scores.isfinite().sum())) == (n_tasks, n_scores)
    assert past.scores.nan_to_num(0.5).min() > 0 and past.scores.nan_to_num(0.5).max() < 1


def test_the_table_of_mieb_is_read():
    path = (find_shared_data() or Path("absent")).parent / "mieb" / "mieb_scores.csv"
    if not path.is_file():
        pytest.skip("needs mieb_scores.csv beside the folder of TASKPRIORS_DATA")
    truth = pd.read_csv(path).set_index("model")
    models = ("vit_base_patch14_dinov2.lvd142m", "clip-vit-base-patch32", "ViT-B-16-SigLIP.webli")
    past = read_past_scores(path, models)
    rows = [
        "facebook/dinov2-base",
        "openai/clip-vit-base-patch32",
        "google/siglip-base-patch16-224",
    ]
    assert len(past.tasks) == 22
    expected = truth.loc[rows, list(past.tasks)].to_numpy(dtype="float64")
    np.testing.assert_array_equal(past.scores, expected)


def test_a_folder_of_mteb_and_its_leaderboard_are_the_same_past_results(tmp_path):
    rng = np.random.default_rng(0)
    scores = {"intfloat/e5-small-v2": (0.61, 0.42), "BAAI/bge-small-en-v1.5": (0.72, 0.31)}
    features = {name: rng.normal(size=(60, 6)) for name in scores}
    for name, values in scores.items():
        place = tmp_path / "results" / name.replace("/", "__") / "0fd1"
        place.mkdir(parents=True)
        (place / "model_meta.json").write_text(json.dumps(dict(name=name, revision="0fd1")))
        for task, value in zip(("SciFact", "ArguAna"), values, strict=True):
            part = dict(main_score=value, ndcg_at_10=value, hf_subset="default", languages=["eng"])
            record = dict(mteb_version="2.1.0", scores=dict(test=[part]), task_name=task)
            (place / f"{task}.json").write_text(json.dumps(record))
    board = pd.DataFrame(scores, index=["SciFact", "ArguAna"]).T.mul(100).reset_index()
    board.insert(0, "Rank (Borda)", [1, 2])
    board["Model"] = [
        f"[{k.split('/')[1]}](https://huggingface.co/{k})" for k in board.pop("index")
    ]
    board.assign(**{"Zero-shot": "100%", "Mean (Task)": 50.0}).to_csv(tmp_path / "board.csv")
    how = dict(compute=tp.Compute(progress=False, cache=False))
    read = [
        tp.rank_models(features, past_results=tmp_path / name, **how)
        for name in ("results", "board.csv")
    ]
    for ranking in read:
        assert set(ranking.settings["record"]["tasks"]) == {"SciFact", "ArguAna"}
        order = [ranking.settings["record"]["tasks"].index(k) for k in ("SciFact", "ArguAna")]
        expected = torch.tensor([scores[name] for name in ranking.models], dtype=torch.float64)
        assert_close(ranking.evidence.past[:, order], expected)
        assert ranking.forecast.evidence[1:]  # beside the examples
    other = tmp_path / "results" / "intfloat__e5-small-v2" / "77aa"
    other.mkdir()
    (other / "SciFact.json").write_text(json.dumps(dict(record, task_name="SciFact")))
    with pytest.raises(ValueError, match="Got 0.31 and 0.61 for intfloat/e5-small-v2"):
        tp.rank_models(features, past_results=str(tmp_path / "results"), **how)
