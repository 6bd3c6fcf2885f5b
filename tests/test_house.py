"The house rules that a machine can check: floors, imports, notebooks that carry their outputs, a library that is what the notebooks export."

import ast
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "taskpriors").rglob("*.py"))
NOTEBOOKS = sorted(
    p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
GROUND = {
    "checks": 0,
    "results": 1,
    "blocks": 1,
    "store": 1,
    "kernels": 2,
    "svd": 2,
    "ridge": 2,
    "probes": 3,
    "encoders": 3,
}
HEAVY = {
    "timm",
    "matplotlib",
    "seaborn",
    "pandas",
    "sklearn",
    "torchvision",
    "psutil",
    "tqdm",
    "PIL",
}


def imported(path, top_only=True):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield "." * node.level + node.module


def name_of(path):
    return ".".join(path.relative_to(ROOT / "taskpriors").with_suffix("").parts)


def floor(module):
    head = module.split(".")[0]
    if head == "rank":
        return 100
    if head in ("prior", "synbench", "transfer"):
        return 50
    return GROUND[head]


@pytest.mark.parametrize(
    "path", [p for p in MODULES if p.name not in ("__init__.py", "_modidx.py")], ids=name_of
)
def test_imports_point_down(path):
    here = name_of(path)
    for dep in imported(path, top_only=False):
        if dep.startswith("."):
            level = len(dep) - len(dep.lstrip("."))
            dep = ".".join(["taskpriors", *here.split(".")[:-level], dep.lstrip(".")])
        if not dep.startswith("taskpriors."):
            continue
        there = dep.removeprefix("taskpriors.")
        same_wing = here.split(".")[0] == there.split(".")[0]
        assert floor(there) < floor(here) or (same_wing and floor(here) >= 50), (
            f"{here} imports {there}"
        )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_where_used(path):
    for dep in imported(path):
        head = dep.split(".")[0]
        assert head not in HEAVY, f"{name_of(path)} imports {dep} at the top"
        assert head not in ("nbdev", "fastcore", "pytest"), f"{name_of(path)} imports {dep}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_compile_without_a_warning(path):
    "A backslash in a notebook's title sentence becomes a bad escape in the module's docstring."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(path.read_text(encoding="utf-8"), path.name, "exec")


def test_importing_is_light():
    "Only torch, numpy and scipy may come along."
    code = "import sys, torch, numpy, scipy; a = set(sys.modules); import taskpriors; print(*{m.split('.')[0] for m in set(sys.modules) - a})"
    new = set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout.split()
    )
    assert not new & HEAVY, new


def mixes_imports(source):
    "Does a cell hold an import, at any depth, beside other code?"
    tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))
    has = any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.walk(tree))
    return (
        has
        and any(not isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body)
        and "nbdev_export()" not in source
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_reads_as_agreed(path):
    nb = json.loads(path.read_text(encoding="utf-8"))

    def source(c):
        return "".join(c["source"])

    code = [c for c in nb["cells"] if c["cell_type"] == "code"]
    first = [c for c in nb["cells"] if source(c).strip()]
    studies = path.parent.name == "studies" or path.stem == "index"
    if not studies:
        assert re.fullmatch(r"#\|\s*default_exp \S+", source(first[0]).strip())
    title = source(first[0] if studies else first[1]).strip().splitlines()
    assert title[0].startswith("# ") and title[-1].startswith("> "), (
        "the title cell is an H1 and one > sentence"
    )
    assert len(nb["cells"]) <= 60 and path.stat().st_size <= 300_000
    for c in code:
        lines = [line for line in source(c).splitlines() if line.strip()]
        if re.match(r"#\|\s*exports?\b", source(c)):
            assert len(lines) <= 30, f"an export cell of {len(lines)} lines: {lines[1]}"
        for out in c.get("outputs", []):
            assert out["output_type"] != "error"
            text = "".join(out.get("text", "")) + "".join(out.get("data", {}).get("text/plain", ""))
            assert not re.search(r"/(work|tmp|root|home)/|Warning:|it/s\]|\d%\|", text), text[:200]
        if not re.match(r"#\|\s*export", source(c)):
            assert not mixes_imports(source(c)), (
                f"imports want a (hidden) cell of their own, or nbdev runs this one for the site: {source(c)[:80]}"
            )
    if len(code) > 4:
        assert any(c.get("outputs") for c in code), "never executed"


def test_library_is_what_the_notebooks_export(tmp_path):
    "Export a copy and compare."
    copy = tmp_path / "copy"
    copy.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if files.returncode:
        pytest.skip("not a git checkout")
    for f in files.stdout.splitlines():
        if f.startswith(("nbs/", "taskpriors/", "settings.ini")) and (ROOT / f).is_file():
            (copy / f).parent.mkdir(parents=True, exist_ok=True)
            (copy / f).write_bytes((ROOT / f).read_bytes())
    before = {
        p.relative_to(copy): p.read_text(encoding="utf-8")
        for p in (copy / "taskpriors").rglob("*.py")
    }
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from nbdev.export import nb_export; from nbdev.doclinks import nbdev_export; nbdev_export()",
        ],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    after = {
        p.relative_to(copy): p.read_text(encoding="utf-8")
        for p in (copy / "taskpriors").rglob("*.py")
    }
    assert before == after
