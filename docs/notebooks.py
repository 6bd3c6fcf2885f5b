"The list of notebooks, their pages, and the checks of their cells."

import ast
import json
import os
import re
import warnings
from collections import namedtuple
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROC = ROOT / "_pages"  # nbdev keeps its own notebooks in _proc
DIRECTIVES = {
    "default_exp",
    "export",
    "exporti",
    "exports",
    "hide",
    "echo",
    "output",
    "code-fold",
    "slow",
    "gpu",
    "network",
    "eval",
    "fig-alt",
    "fig-cap",
    "label",
}
STATUS = ("proved", "implemented", "reproduced", "partly", "refuted")
Item = namedtuple("Item", "paper what status label")


class BuildError(Exception):
    "An error in a cell of a notebook."

    def __init__(self, path, cell, reason):
        where = f", cell {cell}" if cell else ""
        super().__init__(f"{Path(path).relative_to(ROOT).as_posix()}{where}: {reason}")


FOLDERS = {  # in reading order, with their headings in the sidebar
    "start": "Start here",
    "prior": "Task priors",
    "synbench": "SynBench",
    "transfer": "Transferability",
    "rank": "Ranking models",
    "report": "Reports and figures",
    "tools": "Training, layers, command line",
    "papers": "Reproducing the papers",
    "studies": "Studies",
    "inputs": "Images, texts and features",
    "core": "Core",
}
RESULTS = {  # what a reader of proofs opens first, by the names in the sidebar
    "prior/loss_equivalence": "Loss equivalence",
    "prior/edges": "Independent edges",
    "prior/moments": "Mean and variance",
    "prior/prefix": "Prefix sampler",
    "synbench/robust_bayes": "Robust Bayes classifier",
}
DERIVED = {  # of a folder that is machinery for the most part, the pages that derive something
    "rank": (
        "error_model",
        "forecast",
        "reliability",
        "reference_set",
        "ranking",
        "models",
    ),
    "tools": ("monitor", "layers", "cli"),
    "inputs": (),
    "core": (),
}
MACHINERY = (  # of the other folders, the pages that only say how something is computed
    "prior/pair_sums",
    "prior/ridge_tasks",
    "prior/cross_skill",
    "prior/ridge_on_disk",
    "prior/low_rank_prior",
)
BUILT = {  # folders with machinery, from the ground up, with the headings under `HOW_BUILT`
    "core": "Core",
    "inputs": "Images, texts and features",
    "prior": "Sums over a prior",
    "rank": "Steps of a ranking",
    "tools": "Parts of the commands",
}
FIVE, HOW_BUILT = "Five results to read first", "Implementation"


def is_machinery(path):
    "Whether a notebook describes an implementation, which a reader of proofs can skip."
    folder, page = path.parent.name, page_of(path)
    if folder in DERIVED:
        return page.removeprefix(f"{folder}/") not in DERIVED[folder]
    return page in MACHINERY


@cache
def notebook_of():
    "Page -> its notebook."
    paths = sorted((ROOT / "nbs").rglob("*.ipynb"))
    return {page_of(p): p for p in paths if ".ipynb_checkpoints" not in p.parts}


def results():
    "The notebooks to read first."
    return [notebook_of()[page] for page in RESULTS if page in notebook_of()]


def read_in(folder):
    "The other notebooks of a folder for readers, in the order of their numbers."
    here = [p for p in notebook_of().values() if p.parent.name == folder]
    return [p for p in here if not is_machinery(p) and p not in results()]


def built_in(folder):
    "The notebooks of a folder about its implementation, in the order of their numbers."
    return [p for p in notebook_of().values() if p.parent.name == folder and is_machinery(p)]


@cache
def chapters():
    "All notebooks in reading order: the front page, notebooks for readers, the implementation."
    start, *others = FOLDERS
    found = read_in("nbs") + read_in(start) + results()
    found += [path for folder in others for path in read_in(folder)]
    return (*found, *(path for folder in BUILT for path in built_in(folder)))


@cache
def page_of(path):
    "The page of a notebook: its path without the number, `prior/04_moments` -> `prior/moments`."
    rel = Path(path).resolve().relative_to(ROOT / "nbs")
    return (rel.parent / re.sub(r"^\d+_", "", rel.stem)).as_posix()


@cache
def module_of(path):
    "The module that a notebook exports, as `prior.moments`, or None."
    for kind, source in cells(path):
        found = re.match(r"#\|\s*default_exp\s+([\w.]+)", source) if kind == "code" else None
        if found:
            return found[1]


def module_of_page(page):
    "The module of the notebook that becomes a page, or None."
    return module_of(notebook_of()[page]) if page in notebook_of() else None


def target_of(module, name):
    "Link target of a name; Sphinx ignores case, so the target of a class is marked."
    return f"taskpriors.{module}.{name}" + (
        "-class" if name[0].isupper() and "." not in name else ""
    )


@cache
def _body(module):
    "The statements of a module."
    path = ROOT / "taskpriors" / (module.replace(".", "/") + ".py")
    return ast.parse(path.read_text(encoding="utf-8")).body


@cache
def promised(module):
    "The public names of a module: its `__all__`."
    for node in _body(module):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


@cache
def exported(module):
    """Functions and classes of a module in order, with the first line of their docstrings.

    A name with an underscore is left out; what nobody was promised has a place in its chapter, too.
    """
    found = []
    for node in _body(module):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        found.append((node.name, node))
        if isinstance(node, ast.ClassDef):
            found += [(f"{node.name}.{m.name}", m) for m in explained_methods(node)]
    return [(name, (ast.get_docstring(node) or "").split("\n")[0]) for name, node in found]


def explained_methods(node):
    "Public methods of a class whose parameters have lines of their own with comments."
    for m in node.body:
        if isinstance(m, ast.FunctionDef) and not m.name.startswith("_"):
            if m.args.args and m.args.args[0].lineno > m.lineno:
                yield m


def target_of_anchor(module, anchor):
    "The same for an anchor of nbdev, which is in lower case."
    names = [name for name, _ in exported(module)]
    return target_of(
        module,
        next(
            (n for n in names if n == anchor),
            next((n for n in names if n.lower() == anchor.lower()), anchor),
        ),
    )


def check_notebook(path):
    "Raise BuildError for the first cell that cannot be converted to a page."
    try:
        nb = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as e:
        raise BuildError(path, None, f"not a notebook ({e})") from e
    for k, cell in enumerate(nb["cells"], 1):
        source = "".join(cell["source"])
        exports = re.match(r"#\|\s*default_exp\s+([\w.]+)", source)
        if exports and not (ROOT / "taskpriors" / (exports[1].replace(".", "/") + ".py")).exists():
            raise BuildError(path, k, f"its module {exports[1]} is not there: run nbdev_export")
        if cell["cell_type"] == "code":
            _check_code(path, k, source, cell.get("outputs", []))
        if cell["cell_type"] == "markdown":
            _check_markdown(path, k, source)


def _check_code(path, k, source, outputs):
    for name in re.findall(r"^#\|\s*([\w-]+)", source, re.M):
        if name not in DIRECTIVES:
            raise BuildError(path, k, f"unknown directive '#| {name}'")
    try:
        ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.M))
    except SyntaxError as e:
        raise BuildError(path, k, f"syntax error in line {e.lineno}: {e.msg}") from e
    for out in outputs:
        if out["output_type"] == "error":
            raise BuildError(
                path, k, f"an error among the outputs: {out['ename']}: {out['evalue'][:100]}"
            )
        if "image/png" in out.get("data", {}) and "fig-alt:" not in source:
            raise BuildError(path, k, "a figure without '#| fig-alt: what it shows'")


def _check_markdown(path, k, source):
    shown_items(source, path, k)
    for _alt, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)", source):
        if (
            not re.match(r"https?:|data:|attachment:", target)
            and not (path.parent / target).exists()
        ):
            raise BuildError(path, k, f"a missing figure: {target}")
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s#]+\.(?:ipynb|md))", source):
        if not re.match(r"https?:", target) and not (path.parent / target).exists():
            raise BuildError(path, k, f"a dead link: {target}")


def process_one(source):
    """Let nbdev mark where the exported names of a notebook are documented, and hide its cells.

    Returns the reason if it fails. No cell runs: `adapt` writes what is said of a name from its
    module.
    """
    from execnb.nbio import read_nb, write_nb
    from nbdev.doclinks import NbdevLookup
    from nbdev.process import NBProcessor
    from nbdev.processors import FilterDefaults, exec_show_docs

    NbdevLookup.linkify = NbdevLookup.link_line = lambda self, text: (
        text
    )  # adapt.py links names, whether or not the package is installed
    os.environ["IN_TEST"] = "1"
    target = PROC / source.relative_to(ROOT / "nbs")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        nb = read_nb(source)
        for cell in nb.cells:  # nbdev documents `export` alone
            if cell.cell_type == "code":
                cell.source = re.sub(r"^#\|\s*exporti\b", "#| export", cell.source)
        steps = [step for step in FilterDefaults().procs() if step is not exec_show_docs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            NBProcessor(nb=nb, procs=steps).process()
        write_nb(nb, target)
    except Exception as e:
        return f"{type(e).__name__}: {e}"


@cache
def cells(path):
    "The cells of a notebook in the repository: (type, source)."
    return [
        (c["cell_type"], "".join(c["source"]))
        for c in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]


@cache
def catalogue():
    """The items of the papers, one a line in docs/papers.txt.

    After ` -- ` why one is left out or done in part, after ` => ` the command that computes it.
    """
    items, paper = {}, None
    for line in (ROOT / "docs" / "papers.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            paper = line[2:].strip()
            items[paper] = {}
        elif line.strip():
            what, _, text = line.partition(":")
            items[paper][what.strip()] = text.strip()
    return items


def shown_items(source, path, cell=None):
    "The items that a markdown cell shows: `<!-- shows: Task Priors, Theorem 2.6, proved -->`."
    found = []
    for paper, what, status in re.findall(
        r"<!--\s*shows:\s*([^,]+?),\s*([^,]+?),\s*(\w+)\s*-->", source
    ):
        if what not in catalogue().get(paper, {}):
            raise BuildError(path, cell, f"'{paper}, {what}' is not in docs/papers.txt")
        if status not in STATUS:
            raise BuildError(path, cell, f"status '{status}' is not one of {', '.join(STATUS)}")
        found.append(
            Item(
                paper,
                what,
                status,
                "shows-" + re.sub(r"\W+", "-", f"{paper} {what} {page_of(path)}").lower(),
            )
        )
    return found


def marks():
    "Map from items of the papers to the marks of their cells, each with its notebook."
    shown = {}
    for path in chapters():
        for k, (kind, source) in enumerate(cells(path), 1):
            if kind == "markdown":
                for item in shown_items(source, path, k):
                    shown.setdefault((item.paper, item.what), []).append((item, path))
    return shown


GRADES = (  # from the strongest on, as the map counts them
    "proved",
    "refuted",
    "compared with the paper",
    "not yet compared",
    "implemented only",
    "not computational",
    "not reproducible",
)


@cache
def recipes_of(command):
    "The recipes that the commands of an item name."
    from taskpriors.papers.recipes import paper_items

    names = re.findall(r"taskpriors reproduce ([\w-]+)", command)
    return tuple(paper_items()[name] for name in names)


def has_number(recipe, *, here):
    """Whether a recipe compares a computed number with a printed one.

    With `here`, only recipes that need neither networks nor images count; without it, only those
    that need the networks of the paper.
    """
    from taskpriors.papers.reproduce import printed_numbers

    if here == bool(recipe.networks or recipe.data) or recipe.stand_ins:
        return False
    if recipe.action in ("metric_operations", "printed_caption"):
        return False  # of another implementation; and two printed numbers
    return bool(printed_numbers(recipe))


def is_computed_here(text, statuses):
    "Whether a cell or a command compares a number with a printed one without any network."
    recipes = recipes_of(text.partition(" => ")[2])
    return "reproduced" in statuses or any(has_number(r, here=True) for r in recipes)


def grade(text, statuses):
    "Grade of an item, from its line in docs/papers.txt and the statuses of its cells."
    for status in ("proved", "refuted"):
        if status in statuses:
            return status
    if is_computed_here(text, statuses):
        return "compared with the paper"
    line, _, command = text.partition(" => ")
    if any(has_number(r, here=False) for r in recipes_of(command)):
        return "not yet compared"
    if statuses or command:
        return "implemented only"
    reason = line.partition(" -- ")[2]
    is_text = reason.endswith(("nothing to compute", "a drawing"))
    return "not computational" if is_text else "not reproducible"


def graded_items():
    "Map from papers to the line and the statuses of each item."
    shown = marks()
    return {
        paper: [
            (text, [item.status for item, _ in shown.get((paper, what), [])])
            for what, text in items.items()
        ]
        for paper, items in catalogue().items()
    }


def counted_items():
    "Map from papers to the number of items with each grade."
    counts = {}
    for paper, items in graded_items().items():
        found = [grade(*item) for item in items]
        counts[paper] = {name: found.count(name) for name in GRADES}
    return counts


def n_computed_here():
    "Number of items that are compared with the paper without a network, including refuted ones."
    return sum(is_computed_here(*item) for items in graded_items().values() for item in items)
