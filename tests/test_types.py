"Type checkers see the names that `taskpriors` loads when they are first used."

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="the checker comes with the dev extra")
ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
from pathlib import Path

import taskpriors as tp

ranking = tp.rank_models(
    ["resnet18", "convnext_tiny"],
    "photographs",
    labels="labels.csv",
    references=False,
    tasks=tp.Tasks(n_tasks=64, n_classes=3),
    compute=tp.Compute(device="cpu", cache=False),
)
best: str = ranking.best
page: Path = ranking.report("ranking.html")
probability: float = ranking.compare("resnet18", "convnext_tiny").probability
print(best, page, probability, ranking.verdict, ranking.forecast.expected_regret)
"""


STRICT = """
check_untyped_defs disallow_any_generics disallow_incomplete_defs disallow_subclassing_any
disallow_untyped_calls disallow_untyped_decorators disallow_untyped_defs extra_checks
strict_equality warn_return_any warn_unused_ignores
"""


def complaints(folder, *names):
    """What mypy says of files in a folder, by their lines, with what `--strict` asks of one module.

    The library is checked as `pyproject.toml` says, so that a check of its types leaves its cache
    for this one. What mypy remembers of a file has the path at which it was read first.
    """
    modules = [name.removesuffix(".py") for name in names]
    strict = "".join(f"{option} = true\n" for option in STRICT.split())
    house = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    config = folder / "pyproject.toml"
    section = f"\n[[tool.mypy.overrides]]\nmodule = {modules}\n{strict}"
    config.write_text(house + section, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", f"--config-file={config}"]
    command += [str(folder / name) for name in names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return re.findall(r"^(?:.*[/\\])?(\w+\.py:\d+: error: .*)$", done.stdout, re.M)


def test_the_stub_lists_what_the_package_offers():
    command = [sys.executable, "docs/stub.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def page_scripts():
    "Name -> code of the pages for users, one script a page."
    pages = [ROOT / "nbs" / "index.ipynb", *sorted((ROOT / "nbs" / "start").glob("*.ipynb"))]
    scripts = {}
    for page in pages:
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        text = "\n\n".join(re.sub(r"^(\s*)[%!].*$", r"\1pass", cell, flags=re.M) for cell in code)
        scripts[f"page_{page.stem}.py"] = text
    return scripts


@pytest.mark.long
def test_scripts_and_pages_are_typed_and_wrong_scripts_are_found(tmp_path):
    """A checker passes a user's script and finds what is wrong in others. No page passes a keyword
    or reads a name that it does not find. It reads the library once for all of them.
    """
    wrong = {
        "wrong_keyword.py": (SCRIPT.replace("references=False", "n_taskz=3"), "n_taskz"),
        "wrong_place.py": (SCRIPT.replace("references=False", "n_tasks=3"), "arg-type"),
        "wrong_option.py": (SCRIPT.replace("n_classes=3", "n_clases=3"), "n_clases"),
        "wrong_kind.py": (SCRIPT.replace('device="cpu"', "device=[3]"), "device"),
        "wrong_result.py": (SCRIPT.replace("best: str", "best: int"), "best"),
        "wrong_page.py": ("import taskpriors\n\ntaskpriors.nowhere", "[attr-defined]"),
    }
    scripts = {"right.py": SCRIPT, **page_scripts()}
    scripts |= {name: text for name, (text, _) in wrong.items()}
    for name, text in scripts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = complaints(tmp_path, *scripts)
    assert not [line for line in found if line.startswith("right.py")], found
    for name, (_, word) in wrong.items():
        assert any(line.startswith(name) for line in found), f"{name}, for {word}: {found}"
    kinds = ("[call-arg]", "[attr-defined]")
    assert not [line for line in found if line.endswith(kinds) and line.startswith("page_")]
