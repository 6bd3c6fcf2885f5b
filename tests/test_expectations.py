"""What new users expect of commands and pages: forty lines, and forty-five of a first hour.

Each has the test that holds it.

A line that is not met says why; the others name a test of this file or of another, or a notebook
whose cells assert it.
"""

import contextlib
import html
import inspect
import io
import json
import os
import re
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import transforms

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
        "nbs/rank/13_models.ipynb"
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
    "scipy.sparse features are ranked": "nbs/inputs/01_feature_files.ipynb",
    "Texts come from csv, jsonl, txt or a Dataset": "nbs/inputs/07_texts.ipynb",
    "Models of open_clip, pipelines and weights of torchvision are taken": (
        "nbs/inputs/06_accepted_models.ipynb"
    ),
    "label_loop shows points, keeps each answer and ranks again": (
        "test_jupyterlab.py::test_the_label_loop_keeps_each_answer"
    ),
    "The label loop draws how P(best) moves": "nbs/tools/07_label_loop.ipynb",
    "taskpriors/keep never leaves a step that is not behind": "nbs/tools/01_monitor.ipynb",
    "Lightning, transformers and sentence-transformers keep that checkpoint": (
        "nbs/tools/02_monitor_lightning.ipynb"
    ),
    "The kept step loses a point at most in the mean of each family of runs": NOT_MET
    + "study 07: on average it loses .71, .72 and .85 on its three groups of runs, and nowhere a "
    "point more than the last step, but four of fourteen kinds of training lose 1.06 to 1.61",
    "pairs= is evidence of retrieval": "nbs/prior/26_pair_retrieval.ipynb",
    "Pairs that contradict each other are named": "nbs/prior/26_pair_retrieval.ipynb",
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

FIRST_HOUR = {  # the same, of three users who try it for an hour
    "The install line of README works, also without a clone": (
        "test_package.py::test_a_bare_environment_ranks"
    ),
    "README says what an install takes, and how to have PyTorch for a CPU": (
        "here::test_readme_says_what_an_install_takes"
    ),
    "The first command needs no download": (
        "test_cli.py::test_the_default_ranks_the_zoo_on_the_digits"
    ),
    "A line appears at once, and one every ten seconds in a pipe": "nbs/tools/08_cli.ipynb",
    "The first answer has no term that it does not explain": (
        "test_terminal_terms.py::test_the_output_explains_its_terms"
    ),
    "--version and --help answer within a second": "test_cli.py::test_help_is_quick",
    "python -m taskpriors works": "test_cli.py::test_python_runs_the_command_as_a_module",
    "--json goes into a pipe, progress to stderr": "here::test_an_answer_goes_into_a_pipe",
    "A fault of the user is a sentence and a status": (
        "test_cli.py::test_bad_input_is_one_sentence"
    ),
    "A typo is answered by the nearest": "here::test_a_typo_names_the_nearest",
    "A run is repeated from its folder, or from a file of options": (
        "here::test_an_answer_goes_into_a_pipe"
    ),
    "Ctrl-C ends in one line, and the run goes on": (
        "test_cli.py::test_a_run_that_ended_early_goes_on_where_it_stopped"
    ),
    "rank --help is short and has examples": "here::test_the_help_of_rank_fits_a_screen",
    "A pipe has no colours and no bars": "here::test_an_answer_goes_into_a_pipe",
    "A plan says memory and downloads, and the run says the time that is left": (
        "nbs/tools/08_cli.ipynb"
    ),
    "A folder of mixed images ranks, and a broken one is named": (
        "test_cli.py::test_an_unreadable_image_is_left_out"
    ),
    "A module with its transform is ranked": "here::test_mixed_images_labels_and_a_module",
    "A wrong name of a model is answered by near ones": "test_cli.py::test_only_unknown_models",
    "Labels come by names of files, in any order": "here::test_mixed_images_labels_and_a_module",
    "The regret with and without labels is measured beside simple rules": (
        "nbs/studies/15_forecast.ipynb"
    ),
    "The label loop works in JupyterLab": (
        "test_jupyterlab.py::test_the_label_loop_keeps_each_answer"
    ),
    "The label loop shows large pictures, takes keys, and writes names": (
        "nbs/tools/07_label_loop.ipynb"
    ),
    "The ranking says how many labels to add, or to stop": "here::test_the_next_step_can_be_typed",
    "Parameters and milliseconds help to decide": "nbs/report/01_words.ipynb",
    "A refusal names the extra to install": (
        "test_package.py::test_an_extra_that_a_refusal_names_exists_and_is_part_of_dev"
    ),
    "Prefixes stand before texts and queries": (
        "test_retrieval.py::test_prefixes_stand_before_texts_and_queries"
    ),
    "Queries and documents come as texts or rows": (
        "test_retrieval.py::test_every_way_to_name_them_is_the_same"
    ),
    "Results of mteb are past results as they are": (
        "test_past_scores.py::test_results_of_mteb_are_read_in_their_frames"
    ),
    "A function that embeds is asked once for each text": (
        "here::test_a_function_embeds_each_text_once"
    ),
    "Copies and empty texts are named by their rows": "here::test_copies_and_empty_texts_are_named",
    "Lightning, transformers and sentence-transformers are watched": (
        "nbs/tools/02_monitor_lightning.ipynb"
    ),
    "A plain loop has a monitor with a state": "nbs/tools/01_monitor.ipynb",
    "The layer to cut at is named": "test_cli.py::test_the_layers_of_a_network_are_ranked",
    "Trackers log the same names in every loop": "here::test_trackers_log_the_same_names",
    "A proof is numbered and unfolds": "test_site.py::test_claims_are_numbered_and_proofs_unfold",
    "The site is built without a dead link": ("test_site.py::test_no_dead_internal_link_or_image"),
    "The search knows the words of users": (
        "test_site.py::test_search_finds_what_users_call_it_and_shows_prose"
    ),
    "One page defines the symbols, and every proof links to it": (
        "here::test_one_page_defines_the_symbols"
    ),
    "rank_models has fifteen parameters at most, and an example": (
        "here::test_completion_and_tables_in_a_notebook"
    ),
    "Completion shows forty and twenty-five names at most": (
        "here::test_completion_and_tables_in_a_notebook"
    ),
    "A ranking is a table and its verdict in a notebook": (
        "here::test_completion_and_tables_in_a_notebook"
    ),
    "A ranking is written as csv, LaTeX and markdown, and loaded": (
        "here::test_completion_and_tables_in_a_notebook"
    ),
    "A script of a user is typed": (
        "test_types.py::test_scripts_and_pages_are_typed_and_wrong_scripts_are_found"
    ),
    "A report fits a phone, and says how it was made": (
        "test_report.py::test_the_page_asks_for_nothing_and_fits"
    ),
    "README has limits, a citation, a policy, and says what is tested": (
        "here::test_readme_says_what_an_install_takes"
    ),
}


def test_each_line_is_checked_somewhere():
    assert len(EXPECTATIONS) == 40 and len(FIRST_HOUR) == 45
    for line, place in [*EXPECTATIONS.items(), *FIRST_HOUR.items()]:
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
        ("metrics", "logmee"): "did you mean logme",
        ("rank", "--images", "digts"): "did you mean --images digits",
    }.items():
        code, _, err = typed(*words)
        assert code == 2 and near in " ".join(err.split()), (words, err[-300:])


def test_completion_and_tables_in_a_notebook(tmp_path):
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
    assert len(inspect.signature(tp.rank_models).parameters) <= 15
    assert ">>> ranking = tp.rank_models(" in tp.rank_models.__doc__
    assert tp.Ranking.load(ranking.save(tmp_path / "ranking")).verdict == ranking.verdict
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
    assert "are toys for trying the library without a download" in readme


def test_readme_says_what_an_install_takes():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert 'pip install "taskpriors[references] @ git+https://' in readme
    for text in ("CPU build of PyTorch", "6.2 GB", "Linux is tested", "When not to trust it"):
        assert text in readme, text
    for link in ("what-may-change-before-10", "13_citing", "/issues)", "CHANGELOG.md"):
        assert link in readme, link


def test_an_answer_goes_into_a_pipe(typed):
    words = ("rank", *FILES, "--n-tasks", "20")
    code, out, err = typed(*words, "--json", "--out", "piped")
    answer = json.loads(out)
    assert code == 0 and answer["verdict"] and len(answer["ranking"]) == 4
    assert "\x1b" not in out + err and "\r" not in out + err
    code, again, _ = typed("rank", "--config", "piped/ranking.json", "--json", "--quiet")
    assert code == 0 and json.loads(again)["ranking"] == answer["ranking"]


def test_mixed_images_labels_and_a_module(tmp_path):
    import taskpriors as tp

    draw = np.random.default_rng(0)
    modes = ("RGB", "RGBA", "L", "CMYK")
    for k in range(40):
        pixels = draw.integers(0, 120, (12 + k % 7, 12, 3)) + 100 * (k % 2)
        image = PIL.Image.fromarray(pixels.astype("uint8")).convert(modes[k % 4])
        image.save(tmp_path / f"{k:02}.{'png' if k % 4 == 1 else 'jpg'}")
    named = {path.name: f"class {int(path.stem) % 2}" for path in sorted(tmp_path.glob("*g"))[:30]}
    (tmp_path / "broken.jpg").write_bytes(b"no image")
    small = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
    torch.manual_seed(0)
    models = dict(
        plain=(torch.nn.Flatten(), small),
        mixed=(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8)), small),
    )
    few = dict(n_tasks=10, progress=False, cache=False, references=False, baselines=False)
    with pytest.warns(UserWarning, match=r"1 of 41 images.*broken\.jpg \([\w: ]*\)"):
        forwards, backwards = (
            tp.rank_models(models, tmp_path, labels=dict(rows), **nested(**few))
            for rows in (named.items(), reversed(named.items()))
        )
    assert forwards.settings["labels"]["n_labels"] == 30
    assert forwards.verdict == backwards.verdict
    frame = forwards.to_frame().set_index("model")
    assert frame["label accuracy"]["plain"] > 0.9


def test_copies_and_empty_texts_are_named():
    import taskpriors as tp

    texts = [f"{k} is a number, {k * k} its square" for k in range(30)]
    texts[20] = texts[3]
    models = dict(
        letters=lambda batch: np.array([[t.count(c) for c in "0123456789"] for t in batch], "f4"),
        half=lambda batch: np.array([[t.count(c) for c in "01234"] for t in batch], "f4"),
    )
    few = dict(n_tasks=10, progress=False, cache=False, references=False, baselines=False)
    ranking = tp.rank_models(models, texts=texts, **nested(**few))
    assert "rows 3 and 20" in ranking.verdict
    with pytest.raises(ValueError, match="at position 7"):
        tp.rank_models(models, texts=[*texts[:7], "", *texts[8:]], **nested(**few))


def test_a_function_embeds_each_text_once(tmp_path):
    "Another ranking tries six texts again; a function that reads another value is another model."
    import taskpriors as tp

    log = tmp_path / "log.txt"

    def counting(digits):
        def embed(batch):
            with log.open("a") as file:
                file.writelines(f"{text}\n" for text in batch)
            return np.array([[t.count(c) for c in digits] for t in batch], "f4")

        return embed

    texts = [f"{k} is a number, {k * k} its square" for k in range(60)]
    few = dict(n_tasks=10, progress=False, cache=tmp_path, references=False, baselines=False)
    asked = []
    for digits in ("0123456789", "0123456789", "012345678"):
        log.write_text("")
        models = dict(counted=counting(digits), other=np.random.default_rng(0).normal(size=(60, 4)))
        tp.rank_models(models, texts=texts, **nested(**few))
        asked.append(log.read_text().splitlines())
    for lines in (asked[0], asked[2]):
        assert set(lines) == set(texts) and len(lines) <= len(texts) + 15
    assert len(set(asked[1])) == len(asked[1]) == 6


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
    answers = [((), "universal_sentences", "0.58"), (labels, "minilm_l6", "0.79")]
    for more, first, probability in answers:
        code, out, _ = typed("rank", "--models", *models, *more, "--quiet")
        assert code == 0 and out.startswith(said.format(first, probability)), out[:300]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "taskpriors rank --models docs/example/*.npy --labels" in readme
    assert "0.58 and 0.50" in readme and "with probability 0.79" in readme


TRACKED = {f"taskpriors/{name}" for name in ("skill", "se", "rankme", "alpha_req", "deviation")}
TRACKED |= {"taskpriors/keep"}


def test_trackers_log_the_same_names(tmp_path):
    "A loop of one's own logs to TensorBoard what Lightning logs to its loggers without code."
    import taskpriors as tp

    lightning = pytest.importorskip("lightning")
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from taskpriors.tools.monitor_lightning import MonitorCallback

    draw = torch.Generator().manual_seed(0)
    images = torch.rand(60, 1, 8, 8, generator=draw)

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 6))

        def forward(self, x):
            return self.body(x)

        def training_step(self, batch, _):
            return self(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    def scalars(folder):
        return set(EventAccumulator(str(folder)).Reload().Tags()["scalars"])

    few = dict(n_tasks=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lightning on few workers and small logs
        loggers = CSVLogger(tmp_path, "csv"), TensorBoardLogger(tmp_path, "board")
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=2,
            callbacks=[MonitorCallback(tp.Monitor(images, **few))],
            logger=loggers,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        network = Net()
        trainer.fit(network, torch.utils.data.DataLoader(images[:32], 16))
        own = tp.Monitor(images, **few)
    own(network, step=0)
    with tensorboard.SummaryWriter(tmp_path / "own") as writer:
        for name, value in own.history[-1].numbers().items():
            writer.add_scalar(f"taskpriors/{name}", value, 0)
    header = Path(loggers[0].log_dir, "metrics.csv").read_text(encoding="utf-8").splitlines()[0]
    assert set(header.split(",")) >= TRACKED
    assert scalars(loggers[1].log_dir) >= TRACKED
    assert scalars(tmp_path / "own") == TRACKED


def _formulas(path):
    "All formulas in the prose of a notebook, without spaces, and with one spelling of the trace."
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    found = "\n".join(re.findall(r"\$+([^$]+)\$+", prose))
    return re.sub(r"\s", "", found).replace(r"\mathrm{", r"\operatorname{")


def test_one_page_defines_the_symbols(monkeypatch):
    "Each symbol occurs in a chapter that its row links to; pages with a proof link to the page."
    page = ROOT / "nbs" / "start" / "17_notation.ipynb"
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| $")]
    assert len(rows) > 30
    for symbols, meaning, chapters in rows:
        links = re.findall(r"\]\(([^)]+)\)", chapters)
        there = "\n".join(_formulas((page.parent / link).resolve()) for link in links)
        assert meaning and links, symbols
        for symbol in re.findall(r"\$([^$]+)\$", symbols):
            name = re.sub(r"\s", "", symbol)
            argument = re.fullmatch(r"(\\?\w+)\(\w\)", name)  # its letter differs by chapter
            assert (f"{argument[1]}(" if argument else name) in there, f"{symbol}: {links}"
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from adapt import adapt

    cell = nbformat.v4
    title = cell.new_raw_cell("---\ntitle: A result\ndescription: One sentence.\n---")
    for place, proof in (("prior/04_moments", True), ("core/06_kernels", False)):
        body = cell.new_markdown_cell("*Proof.* By definition. $\\square$" if proof else "Text.")
        notebook = cell.new_notebook(cells=[title.copy(), body])
        shown = adapt(notebook, ROOT / "nbs" / f"{place}.ipynb", {})
        linked = any("notation" in c.source for c in shown.cells)
        assert linked == proof, place
