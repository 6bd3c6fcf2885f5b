"""What a new user expects of the commands and pages, forty lines, each with the test that holds it.

A line that is not met says why; the others name a test of this file or of another, or a notebook
whose cells assert it.
"""

import contextlib
import html
import io
import os
import re
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from taskpriors.rank.options import nested
from taskpriors.report.table import legend_lines
from taskpriors.tools.cli import main

ROOT = Path(__file__).resolve().parent.parent
NOT_MET = "not met: "

EXPECTATIONS = {  # what a user does, and expects -> where it is checked
    "The first command ranks without a download": (
        "test_cli.py::test_the_default_ranks_the_zoo_on_the_digits"
    ),
    "README says in one line that the zoo is a toy": "here::test_the_zoo_is_called_a_toy",
    "README has a second example on features of real networks": (
        "here::test_thirty_labels_choose_an_encoder"
    ),
    "No line that is printed by default has a word that only the chapters explain": (
        "here::test_the_first_words_are_plain"
    ),
    "A ranking in a pipe is as wide as COLUMNS says": "here::test_lines_follow_columns",
    "--all is as wide as COLUMNS says": "here::test_lines_follow_columns",
    "next is as wide as COLUMNS says": "here::test_lines_follow_columns",
    "metrics and the card of one are as wide as COLUMNS says": "here::test_lists_follow_columns",
    "The list of a paper's items is as wide as COLUMNS says": "here::test_lists_follow_columns",
    "The help of all commands is as wide as COLUMNS says": "here::test_lists_follow_columns",
    "A mistyped command is answered by the nearest": "here::test_a_typo_names_the_nearest",
    "A mistyped option is answered by the nearest of its command": (
        "test_cli.py::test_a_mistyped_option_names_the_nearest_of_its_command"
    ),
    "A mistyped score, metric or prior is answered by the nearest": (
        "here::test_a_typo_names_the_nearest"
    ),
    "A mistyped path is answered at once": "test_cli.py::test_a_path_with_a_typo_costs_no_import",
    "A failed model has its reason, and the rest is ranked": (
        "test_cli.py::test_a_failing_model_is_reported_and_the_rest_ranked"
    ),
    "Without a network the refusal says so": "test_cli.py::test_no_network",
    "A plan says downloads, memory and operations of any ranking, and what it does not count": (
        "nbs/rank/10_cost.ipynb"
    ),
    "An interrupted command goes on": (
        "test_cli.py::test_a_run_that_ended_early_goes_on_where_it_stopped"
    ),
    "ranking.best is a name": "here::test_best_is_a_name",
    "r1.compare(r2) says what moved and whether it is more than noise": "nbs/rank/09_ranking.ipynb",
    "What to do next is a command that can be typed": "here::test_the_next_step_can_be_typed",
    "Labels come as a column of any name, a series, parquet or json": (
        "test_tables.py::test_a_table_is_read_as_it_is_meant_or_refused"
    ),
    "Groups of points are left out whole": "test_cli.py::test_groups_of_a_table_are_left_out_whole",
    "scipy.sparse features are ranked": "nbs/inputs/00_sparse.ipynb",
    "Texts come from csv, jsonl, txt or a Dataset": "nbs/inputs/07_texts.ipynb",
    "Models of open_clip, pipelines and weights of torchvision are taken": (
        "nbs/inputs/06_accepted_models.ipynb"
    ),
    "label_loop shows points, keeps each answer and ranks again": (
        "test_jupyterlab.py::test_the_label_loop_keeps_each_answer"
    ),
    "The label loop draws how P(best) moves": "nbs/tools/08_label_loop.ipynb",
    "taskpriors/keep never leaves a step that is not behind": "nbs/tools/01_monitor.ipynb",
    "Lightning, transformers and sentence-transformers keep that checkpoint": (
        "nbs/tools/02_monitor_lightning.ipynb"
    ),
    "The kept step loses a point at most in the mean of each family of runs": NOT_MET
    + "study 07: on average it loses .71, .72 and .85 on its three groups of runs, and nowhere a "
    "point more than the last step, but four of fourteen kinds of training lose 1.06 to 1.61",
    "pairs= is evidence of retrieval": "nbs/prior/26_pair_retrieval.ipynb",
    "Pairs that contradict each other are named": "nbs/prior/25_pairs.ipynb",
    "What pairs are worth, as rankings take them, is in a study": "nbs/studies/17_pairs.ipynb",
    "A report of feature files has no empty part": (
        "test_report.py::test_the_page_asks_for_nothing_and_fits"
    ),
    "A report of images can be read on a phone": "test_report.py::test_everybody_can_read_it",
    "A search leads to the page that does it": (
        "test_site.py::test_the_page_that_does_it_is_found_first"
    ),
    "A function names five chapters that use it at most": (
        "test_site.py::test_the_front_door_has_examples_and_users"
    ),
    "A page of start/ says how to log to TensorBoard and wandb": (
        "nbs/start/08_in_a_training_loop.ipynb"
    ),
    "Every page fits a phone": "test_site.py::test_pages_load_quietly_fit_a_phone_and_pass_wcag_aa",
}


def test_each_of_forty_lines_is_checked_somewhere():
    assert len(EXPECTATIONS) == 40
    for line, place in EXPECTATIONS.items():
        file, _, name = place.partition("::")
        if place.startswith(NOT_MET):
            assert len(place) > len(NOT_MET) + 20, line
        elif name:
            path = Path(__file__) if file == "here" else ROOT / "tests" / file
            assert f"\ndef {name}(" in path.read_text(encoding="utf-8"), line
        else:
            assert re.search(r"\b(assert|test_eq|expect_fail)", (ROOT / file).read_text()), line


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    "A function that types a command in a folder with three files of features; its three answers."
    folder = tmp_path_factory.mktemp("user")
    draw = np.random.default_rng(0)
    base = draw.normal(size=(80, 6))
    for k, name in enumerate(("a-long-name-of-a-network", "second", "third", "fourth")):
        np.save(folder / f"{name}.npy", base[:, : 3 + k].astype("float32"))
    np.savetxt(folder / "labels.csv", np.r_[np.arange(40) % 2], "%d", header="label", comments="")

    def run(*words):
        out, err = io.StringIO(), io.StringIO()
        env = dict(COLUMNS="80", TASKPRIORS_CACHE=str(folder / "cache"))
        with (
            mock.patch.dict(os.environ, env),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            here = Path.cwd()
            os.chdir(folder)
            try:
                code = main([*words])
            except SystemExit as stop:
                code = stop.code
            finally:
                os.chdir(here)
        return code, out.getvalue(), err.getvalue()

    return run


FILES = ("a-long-name-of-a-network.npy", "second.npy", "third.npy", "fourth.npy")
RANK = ("rank", "--models", *FILES, "--n-tasks", "20", "--quiet")


def widest(text):
    return max(
        len(line) for line in text.splitlines() if " " in line.strip() and "http" not in line
    )


@pytest.fixture(scope="module")
def ranked(typed):
    code, out, err = typed(*RANK, "--all")
    assert code == 0, err
    return out


def test_lines_follow_columns(typed, ranked):
    assert widest(ranked) <= 80
    code, out, _ = typed(*RANK)
    assert code == 0 and widest(out) <= 80
    code, out, _ = typed("next", "ranking", "--n-labels", "5")
    assert code == 0 and widest(out) <= 80


def test_lists_follow_columns(typed):
    for words in (("metrics",), ("metrics", "logme"), ("reproduce",), ("--help",)):
        code, out, _ = typed(*words)
        assert code == 0 and widest(out) <= 80, words
    for command in ("rank", "layers", "synbench", "neucrab", "tune", "next", "data", "cache"):
        for words in ("--help", "--help-all")[: 2 if command in ("rank", "layers") else 1]:
            assert widest(typed(command, words)[1]) <= 81, command  # choices are one word


def test_the_help_of_rank_fits_a_screen(typed):
    code, out, _ = typed("rank", "--help")
    assert code == 0 and widest(out) <= 80 and len(out.splitlines()) <= 24
    assert out.count("\n  taskpriors rank ") == 3 and "--help-all" in out
    assert len(typed("rank", "--help-all")[1].splitlines()) > 100


def test_a_typo_names_the_nearest(typed):
    for words, near in {
        ("rnak",): "did you mean rank",
        ("rank", "--temperture", "3"): "did you mean --temperature",
        (*RANK, "--prior", "consensu"): "did you mean consensus",
        (*RANK, "--scoring", "retrival"): "did you mean retrieval",
        ("metrics", "logmee"): "see logme",
        ("rank", "--images", "digts"): "did you mean --images digits",
    }.items():
        code, _, err = typed(*words)
        assert code == 2 and near in " ".join(err.split()), (words, err[-300:])


def test_completion_and_tables_in_a_notebook():
    import taskpriors as tp

    assert len([name for name in dir(tp) if not name.startswith("_")]) <= 40
    X = np.random.default_rng(0).normal(size=(60, 6))
    ranking = tp.rank_models(
        dict(whole=X, half=X[:, :3]),
        **nested(n_tasks=10, progress=False, cache=False, references=False),
    )
    assert len(dir(ranking)) <= 18 and {"best", "verdict", "forecast"} <= set(dir(ranking))
    for shown in (ranking, ranking.forecast):
        page = shown._repr_html_()
        for line in legend_lines(["p_best", "expected_regret", "margin"]):
            assert html.escape(line) in page
    frame = ranking.to_frame()
    assert "whole" in frame.to_latex() and "| whole" in frame.to_markdown(index=False)


def test_best_is_a_name():
    import taskpriors as tp

    X = np.random.default_rng(0).normal(size=(60, 6))
    ranking = tp.rank_models(
        dict(whole=X, half=X[:, :3]),
        **nested(n_tasks=10, progress=False, cache=False, references=False),
    )
    assert ranking.best in ("whole", "half")


def test_the_next_step_can_be_typed(ranked):
    said = " ".join(ranked.split())
    assert re.search(r"Next: .*(taskpriors next ranking|--labels)", said), said[-600:]


def test_the_first_words_are_plain(typed, ranked):
    out = typed(*RANK)[1]
    for word in ("candidates", "seat", "elect", "distribution"):
        assert not re.search(rf"\b{word}", out), word


def test_the_zoo_is_called_a_toy():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "are a toy for trying everything without a download" in readme


def test_models_need_no_option(typed):
    def words(out):  # each ranking has a folder of its own
        return re.sub(r"\branking-\d+", "ranking", out).split()

    code, out, err = typed("rank", *FILES, "--n-tasks", "20", "--quiet")
    assert code == 0 and words(out) == words(typed(*RANK)[1]), err
    code, _, err = typed("rank", FILES[0], "--models", *FILES[1:])
    assert code == 2 and "models are given twice" in err


def test_thirty_labels_choose_an_encoder(typed):
    "README's example, whose verdicts are cited there."
    example = ROOT / "docs" / "example"
    models = [str(path) for path in sorted(example.glob("*.npy"))]
    labels = "--labels", str(example / "thirty_labels.csv")
    said = "Take {}: best on your task with probability {}"
    answers = [((), "universal_sentences", "0.50"), (labels, "minilm_l6", "0.92")]
    for more, first, probability in answers:
        code, out, _ = typed("rank", "--models", *models, *more, "--quiet")
        assert code == 0 and out.startswith(said.format(first, probability)), out[:300]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "taskpriors rank --models docs/example/*.npy --labels" in readme
    assert "0.50 against 0.47" in readme and "with probability 0.92" in readme
