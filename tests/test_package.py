"""What is published: the wheel and the source archive hold what the library reads, install in an
environment that has the declared requirements and nothing else, and agree with their descriptions.
"""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
READ = {".py", ".pyi", ".typed", ".toml", ".csv", ".json", ".html", ".js", ".mplstyle"}
CONDA = {"torch": "pytorch", "matplotlib": "matplotlib-base"}  # names that differ there


def settings():
    parser = ConfigParser(delimiters=["="])
    parser.read(ROOT / "settings.ini", encoding="utf-8")
    return parser["DEFAULT"]


def requirements():
    "Those of this Python."
    found = map(Requirement, settings()["requirements"].split())
    return [r for r in found if r.marker is None or r.marker.evaluate()]


def committed(folder):
    "Paths of the files of a folder that git knows, from the root."
    command = ["git", "ls-files", folder]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def python(code, cwd, *path):
    "What a fresh interpreter prints that sees these folders after its own."
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    code = f"import site; [site.addsitedir(p) for p in {[*map(str, path)]}]; {code}"
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    "Folder of the source archive, and of the wheel that is built from it."
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "clone"
    for name in committed("."):
        if not name.startswith(("nbs/", "tests/", "benchmarks/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel_and_source_hold_what_the_library_reads(built):
    (wheel,) = built.glob("*.whl")
    (source,) = built.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        of_wheel = {n for n in archive.namelist() if not n.partition("/")[0].endswith("-info")}
    with tarfile.open(source) as archive:
        of_source = {n.partition("/")[2] for n in archive.getnames()}
    library = committed("taskpriors")
    assert {Path(name).suffix or Path(name).name for name in library} == READ
    assert of_wheel == library <= of_source
    assert {"CHANGELOG.md", "LICENSE", "README.md", "setup.py", "settings.ini"} <= of_source


def test_the_index_takes_wheel_and_source(built):
    files = [*map(str, built.glob("taskpriors-*"))]
    command = [sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


def link_requirements(folder):
    "Into an empty site: the declared requirements with all that they require, as links."
    waiting, seen = [(r.name, r.extras) for r in requirements()], set()
    while waiting:
        name, extras = waiting.pop()
        if (name, tuple(extras)) in seen:
            continue
        seen.add((name, tuple(extras)))
        found = metadata.distribution(name)
        for line in found.requires or ():
            r = Requirement(line)
            if r.marker is None or any(r.marker.evaluate(dict(extra=e)) for e in ("", *extras)):
                waiting.append((r.name, r.extras))
        tops = {file.parts[0] for file in found.files or ()}
        for top in tops - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))


@pytest.mark.long
def test_a_bare_environment_ranks(built, tmp_path):
    "The wheel beside the declared requirements alone ranks two files, with a parquet refused."
    site, work = tmp_path / "site", tmp_path / "work"
    site.mkdir()
    work.mkdir()
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    link_requirements(site)
    g = np.random.default_rng(0)
    hidden = g.normal(size=(200, 4))
    for name in "ab":
        np.save(work / f"{name}.npy", hidden @ g.normal(size=(4, 6)))
    (work / "c.parquet").touch()
    rank = f"--models a.npy file://{work}/b.npy --n-tasks 8 --cache ../cache --quiet".split()
    code = f"import taskpriors.tools.cli as c; c.main(['rank', *{rank}])"
    done = python(code, work, site)
    assert done.returncode == 0 and "P(best)" in done.stdout, done.stdout + done.stderr
    code = "import taskpriors as t; print(t.__file__); t.rank_models({'c': 'c.parquet'})"
    done = python(code, work, site)
    assert done.stdout.strip() == str(site / "taskpriors" / "__init__.py")
    assert "pip install 'taskpriors[data]'" in done.stderr


def test_an_editable_install_wins_over_the_folder_of_the_clone(tmp_path):
    "In the folder above a clone, `taskpriors` is the package and not the clone."
    clone = tmp_path / "taskpriors"
    for name in ("setup.py", "settings.ini", "pyproject.toml", "README.md", "docs/quarto"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((ROOT / name).read_bytes())
    (clone / "taskpriors").mkdir()
    (clone / "taskpriors" / "__init__.py").write_text("here = 'the package'\n")
    code = "from setuptools import build_meta as b; b.build_editable('..')"
    command = [sys.executable, "-W", "ignore", "-c", code]
    subprocess.run(command, cwd=clone, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = "import taskpriors; print(getattr(taskpriors, 'here', taskpriors))"
    assert "Namespace" in python(code, tmp_path).stdout
    assert python(code, tmp_path, tmp_path / "site").stdout == "the package\n"


def test_descriptions_agree_with_the_settings():
    cfg = settings()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == cfg["version"] and citation["repository-code"] == cfg["git_url"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    assert (
        f'version = "{cfg["version"]}"' in recipe and cfg["console_scripts"].split("=")[1] in recipe
    )
    needed = re.findall(
        r"(?m)^    - (\S+)(?: (\S+))?$", recipe.partition("  run:")[2].partition("test:")[0]
    )
    declared = map(Requirement, cfg["requirements"].split())
    theirs = {(CONDA.get(r.name, r.name), str(r.specifier)) for r in declared}
    assert set(needed) == theirs | {("python", f">={cfg['min_python']}")}


def test_an_extra_that_a_refusal_names_exists_and_is_part_of_dev():
    cfg = settings()
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "taskpriors").rglob("*.py")]
    named = set(re.findall(r"taskpriors\[(\w+)\]", "".join(texts)))
    assert {"data", "explore", "sentence"} <= named <= set(cfg["extras"].split())
    dev = {Requirement(r).name for r in cfg["dev_requirements"].split()}
    dev |= {r.name for r in requirements()} | {"fsspec"}  # torch brings it
    for extra in cfg["extras"].split():
        assert {Requirement(r).name for r in cfg[f"{extra}_requirements"].split()} <= dev, extra
