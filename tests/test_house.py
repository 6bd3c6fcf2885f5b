"""The house rules that a machine can check.

Floors and imports, notebooks that carry their outputs and cite what exists, and a library that is
what the notebooks export.
"""

import ast
import builtins
import importlib.util
import inspect
import json
import keyword
import re
import subprocess
import sys
import warnings
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from for_each import for_each

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "taskpriors").rglob("*.py"))
ROOMS = [path for path in MODULES if path.name not in ("__init__.py", "__main__.py", "_modidx.py")]
NOTEBOOKS = sorted(
    p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
GROUND = {
    "refusals": -1,
    "toml": -1,
    "checks": 0,
    "signatures": 0,
    "results": 1,
    "blocks": 1,
    "store": 1,
    "kernels": 2,
    "svd": 2,
    "pairs": 3,
    "ridge": 2,
    "ridge_tasks": 3,
    "probes": 5,
}
FLOORS = {
    "inputs": 20,
    "prior": 50,
    "synbench": 50,
    "transfer": 50,
    "report": 60,
    "rank": 70,
    "tools": 80,
    "papers": 80,
    "tools.cli": 90,
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
PROMISED = "promised at this path"  # why a module imports a name that it only passes on


def name_of(path):
    return ".".join(path.relative_to(ROOT / "taskpriors").with_suffix("").parts)


def id_of(path):
    return path.relative_to(ROOT / "nbs").with_suffix("").as_posix()


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path):
    "Every node of a module, walked once."
    return tuple(ast.walk(tree_of(path)))


def imported(path):
    "Modules that a module imports at its top, as they are written."
    for node in tree_of(path).body:
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield "." * node.level + node.module


@cache
def house_imports(path):
    "(module of ours, imported names, the line of the import), at any depth of a module."
    here = name_of(path).split(".")
    names = {name_of(p) for p in ROOMS}
    found = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for node in nodes_of(path):
        for alias in node.names if isinstance(node, ast.Import) else ():
            target = alias.name.removeprefix("taskpriors.")
            if target in names:
                found.append((target, target, lines[node.lineno - 1]))
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = [*here[: len(here) - node.level], *([node.module] if node.module else [])]
        elif (node.module or "").split(".")[0] == "taskpriors":
            base = node.module.split(".")[1:]
        else:
            continue
        there = ".".join(base)
        for alias in node.names:
            inner = f"{there}.{alias.name}".lstrip(".")
            target = inner if inner in names else there
            if target in names:
                found.append((target, alias.name, lines[node.lineno - 1]))
    return found


def floor(module):
    head = module.split(".")[0]
    return FLOORS.get(module) or FLOORS.get(head) or GROUND[head]


@for_each("path", ROOMS, name_of)
def test_imports_point_down(path):
    here = name_of(path)
    for there, _, _ in house_imports(path):
        same_wing = here.split(".")[0] == there.split(".")[0]
        assert floor(there) < floor(here) or same_wing, f"{here} imports {there}"


def test_no_import_closes_a_circle():
    "Inside the wings too, and also where an import stands in a function."
    graph = {name_of(p): {there for there, _, _ in house_imports(p)} for p in ROOMS}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as e:
        pytest.fail(f"a circle of imports: {' -> '.join(e.args[1])}")


@for_each("path", ROOMS, name_of)
def test_no_module_hides_an_import(path):
    "A module's `__getattr__` could import upwards unseen; only the front door has one."
    functions = [n.name for n in tree_of(path).body if isinstance(n, ast.FunctionDef)]
    assert "__getattr__" not in functions


def is_the_package(node, path):
    "Does an import name the package itself, by its name or by dots?"
    depth = len(path.relative_to(ROOT / "taskpriors").parts)
    return node.module == "taskpriors" or (node.module is None and node.level == depth)


def entered_by_the_front_door(path):
    "Names that a module reads behind `taskpriors.`, or imports from the package itself."
    nodes = nodes_of(path)
    imports = [node for node in nodes if isinstance(node, ast.Import)]
    package = {a.asname or a.name for node in imports for a in node.names if a.name == "taskpriors"}
    for node in nodes:
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in package:
            yield node.attr
        if isinstance(node, ast.ImportFrom) and is_the_package(node, path):
            yield from (alias.name for alias in node.names)


@for_each("path", ROOMS, name_of)
def test_no_module_enters_by_the_front_door(path):
    "Its names are imported when they are read, so a call through it closes a circle unseen."
    offered = set(importlib.import_module("taskpriors")._FROM)
    assert not offered & set(entered_by_the_front_door(path))


@for_each("path", ROOMS, name_of)
def test_what_crosses_a_wall_has_no_underscore(path):
    for there, name, _ in house_imports(path):
        assert not name.startswith("_"), f"{name_of(path)} imports {name} from {there}"


def optional_arguments(function):
    "Arguments of a function whose default is None."
    a = function.args
    positional = [*a.posonlyargs, *a.args]
    pairs = [*zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True)]
    pairs += zip(a.kwonlyargs, a.kw_defaults, strict=True)
    return [arg for arg, d in pairs if isinstance(d, ast.Constant) and d.value is None]


@for_each("path", ROOMS, name_of)
def test_a_type_says_that_none_may_come(path):
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            for arg in optional_arguments(node):
                kind = "None" if arg.annotation is None else ast.unparse(arg.annotation)
                assert "None" in kind, f"{node.name}: {arg.arg} is {kind}, and may be None"


def public_functions(path):
    "(name, function) of each function without an underscore, and of each such method of a class."
    for node in tree_of(path).body:
        if getattr(node, "name", "_").startswith("_"):
            continue
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef)]
            for method in methods:
                if not method.name.startswith("_") or method.name in ("__init__", "__call__"):
                    yield f"{node.name}.{method.name}", method


@for_each("path", ROOMS, name_of)
def test_public_parameters_and_results_have_types(path):
    "What may come, and what comes back: `py.typed` promises it."
    for name, function in public_functions(path):
        a = function.args
        given = [*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg]
        bare = [x.arg for x in given if x is not None and x.annotation is None]
        assert set(bare) <= {"self", "cls"}, f"{name}: {bare} have no type"
        assert function.returns is not None, f"{name} does not say what it returns"


@cache
def exporters():
    "Module -> the notebook that exports it."
    found = {}
    for path in NOTEBOOKS:
        for kind, source in cells(path):
            match = re.match(r"#\|\s*default_exp\s+([\w.]+)", source) if kind == "code" else None
            if match:
                found[match[1]] = path
    return found


@for_each("path", ROOMS, name_of)
def test_no_notebook_stands_before_one_that_it_continues(path):
    "In its folder. A name that is only passed on, `promised at this path`, continues nothing."
    here = exporters()[name_of(path)]
    for module, name, line in house_imports(path):
        there = exporters()[module]
        if there.parent == here.parent and PROMISED not in line:
            assert there.name < here.name, f"{here.name} uses {name} of {there.name}"


@for_each("path", MODULES, name_of)
def test_heavy_libraries_are_imported_where_used(path):
    for dep in imported(path):
        head = dep.split(".")[0]
        assert head not in HEAVY, f"{name_of(path)} imports {dep} at the top"
        assert head not in ("nbdev", "fastcore", "pytest"), f"{name_of(path)} imports {dep}"


@for_each("path", MODULES, name_of)
def test_modules_compile_without_a_warning(path):
    "A backslash in a notebook's title sentence becomes a bad escape in the module's docstring."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(path.read_text(encoding="utf-8"), path.name, "exec")


def test_importing_is_light():
    "Only torch, numpy and scipy may come along."
    code = (
        "import sys, torch, numpy, scipy; before = set(sys.modules); import taskpriors; "
        "print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    new = set(done.stdout.split())
    assert not new & HEAVY, new


@cache
def notebook(path):
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def cells(path):
    "The cells of a notebook: (type, source)."
    return [(c["cell_type"], "".join(c["source"])) for c in notebook(path)["cells"]]


@cache
def parsed(source):
    "The nodes of a code cell without its magics; the first is its tree."
    tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))
    return tuple(ast.walk(tree))


def mixes_imports(source):
    "Does a cell hold an import, at any depth, beside other code?"
    nodes = parsed(source)
    imports = ast.Import, ast.ImportFrom
    has = any(isinstance(node, imports) for node in nodes)
    return has and any(not isinstance(node, imports) for node in nodes[0].body)


@for_each("path", NOTEBOOKS, id_of)
def test_a_notebook_opens_with_its_result(path):
    filled = [(kind, source) for kind, source in cells(path) if source.strip()]
    if any("default_exp" in source for kind, source in filled if kind == "code"):
        assert re.fullmatch(r"#\|\s*default_exp \S+", filled.pop(0)[1].strip())
    title = filled[0][1].strip().splitlines()
    assert title[0].startswith("# "), "the title cell is an H1 and one > sentence"
    assert title[-1].startswith("> "), "the title cell is an H1 and one > sentence"


@for_each("path", NOTEBOOKS, id_of)
def test_imports_stand_alone(path):
    "nbdev runs a cell with an import when it builds the site, whatever else the cell holds."
    for kind, source in cells(path):
        exempt = re.match(r"#\|\s*export", source) or "nbdev_export()" in source
        if kind == "code" and not exempt:
            assert not mixes_imports(source), f"an import beside other code: {source[:80]}"


def is_exported(source):
    return re.match(r"#\|\s*export", source) is not None


@for_each("path", NOTEBOOKS, id_of)
def test_outputs_are_clean(path):
    code = [c for c in notebook(path)["cells"] if c["cell_type"] == "code"]
    for out in (out for c in code for out in c.get("outputs", [])):
        assert out["output_type"] != "error"
        text = "".join(out.get("text", "")) + "".join(out.get("data", {}).get("text/plain", ""))
        found = re.search(r"/(work|tmp|root|home)/|Warning:|it/s\]|\d%\|", text)
        assert not found, text[:200]
    if len(code) > 4:
        assert any(c.get("outputs") for c in code), "never executed"


@for_each("path", NOTEBOOKS, id_of)
def test_chapters_are_cited_by_title(path):
    for kind, source in cells(path):
        if kind != "markdown":
            continue
        assert not re.search(r"\b[Cc]hapters? \d", source), source[:100]
        for target in re.findall(r"\]\(((?!https?:)[^)\s#]+\.ipynb)", source):
            assert (path.parent / target).exists(), f"a link to {target}, which does not exist"


def identifiers(nodes):
    "Every name that a piece of code defines, uses, takes or reads."
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield from re.split(r"\W", f"{node.name}.{node.asname or ''}")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"[A-Za-z_]\w*", node.value)


@cache
def house_words():
    "Names of the library, of Python, of nbdev's directives and of the tests."
    words = {name for path in MODULES for name in identifiers(nodes_of(path))}
    words |= {part for path in ROOMS for part in name_of(path).split(".")}
    words |= {name for p in (ROOT / "tests").glob("*.py") for name in identifiers(nodes_of(p))}
    for path in (ROOT / "benchmarks").glob("*.py"):
        words |= {path.stem, *identifiers(nodes_of(path))}
    record = json.loads((ROOT / "taskpriors/transfer/record.json").read_text(encoding="utf-8"))
    words |= {name for study in record.values() for name in study["metrics"]}  # also of chapters
    words |= {*dir(builtins), *keyword.kwlist, "taskpriors", "benchmarks", "tests"}
    return words | {"slow", "gpu", "network", "export", "hide", "pip", "install", "dev"}


def is_there(word, words):
    parts = word.removesuffix("()").split(".")
    if all(part in words for part in parts if part) or (ROOT / word).exists():
        return True
    return parts[0] in sys.stdlib_module_names or importlib.util.find_spec(parts[0]) is not None


@for_each("path", NOTEBOOKS, id_of)
def test_a_name_in_backticks_exists(path):
    words = set(house_words())
    for kind, source in cells(path):
        if kind == "code":
            words |= set(identifiers(parsed(source)))
    for kind, source in cells(path):
        if kind != "markdown":
            continue
        prose = re.sub(r"(?s)```.*?```", "", source)
        for word in re.findall(r"(?<!`)`([A-Za-z_][\w.]*(?:\(\))?)`(?!`)", prose):
            assert is_there(word, words), f"`{word}` is nowhere in the code"


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

    def library():
        files = (copy / "taskpriors").rglob("*.py")
        return {p.relative_to(copy): p.read_text(encoding="utf-8") for p in files}

    before = library()
    code = "from nbdev.doclinks import nbdev_export; nbdev_export()"
    subprocess.run([sys.executable, "-c", code], cwd=copy, check=True, capture_output=True)
    assert before == library()


def test_ruff_finds_nothing():
    "The dialect: format and rules, over notebooks, library, tests, benchmarks and docs."
    pytest.importorskip("ruff", reason="the dialect is checked where the dev extra is installed")
    for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[:2000]


def test_mypy_finds_nothing():
    "Types, over the library; what is followed and what is not stands in `pyproject.toml`."
    pytest.importorskip("mypy", reason="types are checked where the dev extra is installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[:2000] + done.stderr[:500]


def asked_of_a_model(path):
    "Calls that ask what a model is: its class, what it can do, or whether it is called."
    types = {node.name for node in tree_of(SOURCES).body if isinstance(node, ast.ClassDef)}
    types |= {"Encoder", "Mapping", "Iterable"}  # a model that was opened, and how several stand
    for node in nodes_of(path):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in QUESTIONS:
            continue
        subject, *kinds = map(ast.unparse, node.args)
        named = {k for kind in kinds for k in re.findall(r"\w+", kind)} - {"sources"}
        if subject in ("model", "models") and not (named and named <= types):
            yield ast.unparse(node)


SOURCES = ROOT / "taskpriors" / "inputs" / "sources.py"
QUESTIONS = ("isinstance", "issubclass", "callable", "hasattr")
TAKES_MODELS = [
    p for p in ROOMS if name_of(p).split(".")[0] in ("inputs", "rank", "tools", "synbench")
]


@for_each("path", TAKES_MODELS, name_of)
def test_one_module_asks_what_a_model_is(path):
    "`source_of` answers with a type of ours, and the others look at the type."
    if path != SOURCES:
        assert not list(asked_of_a_model(path))
        defined = {n.name for n in nodes_of(path) if isinstance(n, ast.FunctionDef)}
        assert not {
            n for n in defined if re.match(r"_?is_(model|file|feature|url|onnx|name)", n)
        } - {"is_url"}


def test_the_question_is_asked_in_one_module():
    assert list(asked_of_a_model(SOURCES))


@for_each("path", ROOMS, name_of)
def test_annotations_can_be_read(path):
    "The site shows signatures, and reads each annotation where the function stands."
    module = pytest.importorskip("taskpriors." + name_of(path), exc_type=ImportError)
    for name, thing in vars(module).items():
        if name.startswith("_") or getattr(thing, "__module__", None) != module.__name__:
            continue
        methods = vars(thing).values() if inspect.isclass(thing) else ()
        for function in (thing, *methods):
            if inspect.isfunction(function):
                inspect.signature(function, eval_str=True)
