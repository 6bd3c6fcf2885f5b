"""What nbdev's own commands do in a copy of the repository: each works, or ends with one sentence
that names ours and changes nothing. Why and how: docs/decisions/nbdev_commands.md.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forks import run_to_the_end

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
INSTALLERS = ("sudo", "curl", "pip")  # what nbdev calls where it finds no Quarto
LITTER = ("_proc/", "_pages/", "nbs/nbdev.yml")  # ignored by git, and never the built site
ANEW = ("taskpriors", "nbdev")  # read the settings of the folder
STOPS = ["nbdev_docs", "nbdev_preview", "nbdev_proc_nbs"]

pytestmark = pytest.mark.long  # each command takes seconds, and few changes reach them
pytest.importorskip("nbdev", reason="nbdev's commands come with the dev extra")


def files_of(folder):
    "Every file by its path, with its bytes, but for caches and what git ignores by name."
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {
        name: p.read_bytes()
        for name, p in found.items()
        if not name.startswith(LITTER) and "__pycache__" not in p.parts
    }


def differing(before, after):
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    "The repository as git sees it, with a built site."
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    folder = tmp_path_factory.mktemp("nbdev") / "copy"
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / "_docs").mkdir()
    (folder / "_docs" / "index.html").write_text("the built site", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def small_copy(copy):
    "The same with one empty notebook a folder: a command that processes them takes seconds."
    folder = copy.with_name("small")
    shutil.copytree(copy, folder)
    seen = set()
    for path in sorted((folder / "nbs").rglob("*.ipynb")):
        if path.parent in seen:
            path.unlink()
            continue
        write_notebook(path)
        seen.add(path.parent)
        if path.parent.name != "core":
            (path.parent / ".notest").touch()  # nbdev's own mark
    return folder


def write_notebook(path, *texts):
    "A notebook of these markdown cells, as nbdev_clean would leave it."
    from execnb.nbio import dict2nb, write_nb

    cells = [
        dict(cell_type="markdown", id=f"cell{k}", metadata={}, source=[text])
        for k, text in enumerate(texts)
    ]
    path.unlink()
    write_nb(dict2nb(dict(cells=cells, metadata={}, nbformat=4, nbformat_minor=5)), path)


@pytest.fixture
def commands(tmp_path):
    """A folder of commands that leave a note when they are called: what would install Quarto, and
    the stand-in for Quarto as a working copy installs it.
    """
    folder = tmp_path / "commands"
    folder.mkdir()
    for name in INSTALLERS:
        note_calls(folder / name)
    shutil.copy(ROOT / "docs" / "quarto", folder / "quarto")
    return folder


def note_calls(path):
    path.write_text('#!/bin/sh\necho "$@" >> "$0.calls"\n', encoding="utf-8")
    path.chmod(0o755)


def run(command, folder, commands, *options):
    "Run a command as a contributor types it, without another Quarto in the path."
    if not (SCRIPTS / command).exists():
        pytest.skip(f"{command} is not beside this Python")
    others = os.environ["PATH"].split(os.pathsep)
    path = [str(commands), *(d for d in others if not (Path(d) / "quarto").exists())]
    env = {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": str(folder),
        "VIRTUAL_ENV": None,  # IPython warns where it names another environment than Python's
    }
    said = run_to_the_end(SCRIPTS / command, *options, cwd=folder, env=env, anew=ANEW)
    return subprocess.CompletedProcess(command, *said)


@pytest.mark.parametrize(
    "command, options",
    [
        ("nbdev_export", []),
        ("nbdev_clean", []),
        ("nbdev_update", []),
        ("nbdev_contributing", []),
        ("nbdev_test", ["--path", "nbs/core/02_signatures.ipynb"]),
    ],
)
def test_what_works_leaves_the_repository_as_it_is(command, options, copy, commands):
    before = files_of(copy)
    done = run(command, copy, commands, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not differing(before, files_of(copy))


def test_a_changed_cell_is_exported_and_a_changed_module_comes_back(copy, commands):
    before = files_of(copy)
    notebook = copy / "nbs" / "core" / "02_signatures.ipynb"
    module = copy / "taskpriors" / "signatures.py"
    text = before["nbs/core/02_signatures.ipynb"].decode()
    assert text.count("def _line_comments(") == 1
    notebook.write_text(text.replace("def _line_comments(", "def all_comments("), encoding="utf-8")
    assert run("nbdev_export", copy, commands).returncode == 0
    exported = module.read_text(encoding="utf-8")
    assert "def all_comments(" in exported
    module.write_text(
        exported.replace("def all_comments(", "def _line_comments("), encoding="utf-8"
    )
    assert run("nbdev_update", copy, commands).returncode == 0
    assert run("nbdev_export", copy, commands).returncode == 0
    assert not differing(before, files_of(copy))


def test_a_failing_cell_fails(copy, commands):
    path = copy / "nbs" / "core" / "02_signatures.ipynb"
    text = path.read_text(encoding="utf-8")
    assert text.count("from fastcore.test") == 1
    failing = text.replace("from fastcore.test", "assert 0\\nfrom fastcore.test")
    path.write_text(failing, encoding="utf-8")
    done = run("nbdev_test", copy, commands, "--path", str(path))
    path.write_text(text, encoding="utf-8")
    assert done.returncode == 1 and "02_signatures.ipynb" in done.stderr


def test_a_version_is_one_line_in_two_files(copy, commands):
    before = files_of(copy)
    assert run("nbdev_bump_version", copy, commands).returncode == 0
    after = files_of(copy)
    names = ["settings.ini", "taskpriors/__init__.py"]
    assert differing(before, after) == names
    for name in names:
        lines = zip(before[name].splitlines(), after[name].splitlines(), strict=True)
        changed = [new for old, new in lines if old != new]
        assert len(changed) == 1 and b"version" in changed[0], (name, changed)
    assert run("nbdev_bump_version", copy, commands, "--unbump").returncode == 0
    assert not differing(before, files_of(copy))


@pytest.mark.parametrize(
    "command, quarto", [*((name, "absent") for name in STOPS), ("nbdev_docs", "installed")]
)
def test_what_needs_quarto_says_what_to_type_and_changes_nothing(
    command, quarto, small_copy, commands
):
    if quarto == "installed":
        note_calls(commands / "quarto")
    before = files_of(small_copy)
    done = run(command, small_copy, commands)
    assert done.returncode == 1 and not done.stdout
    assert done.stderr == (
        f"{command} has changed nothing, because this site is made without Quarto: "
        "`python docs/build.py` builds it in _docs.\n"
    )
    assert not differing(before, files_of(small_copy))
    assert not list(commands.glob("*.calls")), "nothing was installed, and Quarto did not run"


@pytest.mark.parametrize("command", ["nbdev_readme", "nbdev_prepare"])
def test_the_readme_is_written_by_our_builder(command, small_copy, commands):
    before = files_of(small_copy)
    write_notebook(small_copy / "nbs" / "index.ipynb", "# Front\n\n> A sentence.", f"By {command}.")
    done = run(command, small_copy, commands)
    assert done.returncode == 0, done.stdout + done.stderr
    after = files_of(small_copy)
    assert differing(before, after) == ["README.md", "nbs/index.ipynb"]
    assert after["README.md"].decode() == (
        "<!-- made from nbs/index.ipynb by docs/build.py --readme -->\n\n"
        f"# Front\n\nA sentence.\n\nBy {command}.\n"
    )
    assert not list(commands.glob("*.calls"))


def test_the_stand_in_makes_way_for_quarto(commands, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    note_calls(there / "quarto")
    env = os.environ | {"PATH": os.pathsep.join([str(here), str(commands), str(there)])}
    stand_in = [sys.executable, commands / "quarto", "render", "--no-cache"]
    assert subprocess.run(stand_in, env=env).returncode == 0
    assert (there / "quarto.calls").read_text(encoding="utf-8") == "render --no-cache\n"
    env["PATH"] = os.pathsep.join([str(there), str(commands)])
    done = subprocess.run(stand_in, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "`python docs/build.py`" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "kind, scripts", [("editable_wheel", ["docs/quarto"]), ("bdist_wheel", [])]
)
def test_only_a_working_copy_brings_the_stand_in(kind, scripts):
    "What pip asks of setup.py for a contributor and for a user."
    pytest.importorskip("setuptools", reason="needs setuptools")
    code = (
        "import setuptools; from distutils.core import run_setup; "
        f"print(run_setup('setup.py', ['{kind}'], stop_after='init').scripts)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == f"{scripts}\n", done.stdout + done.stderr
