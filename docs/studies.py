"""Check whether the outputs of studies are up to date, and run studies.

    python docs/studies.py                        list the studies that are out of date, and why
    python docs/studies.py --run 05 03            run studies whole, keep their outputs and their
                                                  tables (nbs/studies/tables), and sign
    python docs/studies.py --accept 05 --because "a local was renamed"
                                                  sign as they are: no number can move

A signature in the notebook's metadata holds a digest of every cell and of every function of the
library that the cells reach. It sees code alone: no comment, docstring, annotation or text of an
error, and not the module in which a function stands.

What a cell reaches is found by names, in the text: a name that it imports, what that function's
body names, and so on; a method as soon as its name occurs behind a dot. Who names `metrics` reaches
all functions of the table of metrics. A function that is looked up by another string, other
libraries and the data are not seen.
"""

import argparse
import ast
import copy
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
STUDIES = ROOT / "nbs" / "studies"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {"ctx", "kind", "returns", "type_comment", "type_params", "type_ignores"}
KEY = "signature"  # in the notebook's metadata, and in settings.ini: allowed_metadata_keys


class _Bare(ast.NodeTransformer):
    "Remove everything from a syntax tree that cannot change a number."

    def visit_FunctionDef(self, node):
        node.returns, node.type_comment = None, None
        node.body = [n for n in node.body if not (isinstance(n, ast.AnnAssign) and not n.value)]
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        if node.value is None:
            return ast.Expr(node.target)  # a field; its place among the others counts
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Call(self, node):
        if ast.unparse(node.func) in ("cast", "typing.cast"):
            return self.visit(node.args[1])
        return self.generic_visit(node)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return None
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith("refuse"):
            return ast.Raise()
        return self.generic_visit(node)

    def visit_Raise(self, node):
        return ast.Raise()

    def visit_Assert(self, node):
        return None

    def visit_Import(self, node):
        return None

    visit_ImportFrom = visit_Import


class _BareCell(_Bare):
    "The same for a cell of a study, whose assertions check its text."

    visit_Assert = ast.NodeTransformer.generic_visit


def _text(node):
    "Text of a syntax tree, the same in every version of Python."
    if isinstance(node, list):
        return "[" + ",".join(_text(v) for v in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = ((k, v) for k, v in ast.iter_fields(node) if k not in NO_CODE and v not in (None, []))
    return type(node).__name__ + "(" + ",".join(f"{k}={_text(v)}" for k, v in parts) + ")"


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _names(node):
    "Names in a tree, names behind a dot, and pairs of both as in `module.function`."
    nodes = list(ast.walk(node))
    attributes = [n for n in nodes if isinstance(n, ast.Attribute)]
    dotted = {(n.value.id, n.attr) for n in attributes if isinstance(n.value, ast.Name)}
    return {n.id for n in nodes if isinstance(n, ast.Name)}, {n.attr for n in attributes}, dotted


class Piece(NamedTuple):
    "A definition of a module, or a cell."

    module: str
    name: str  # with its class, as `Ranking.plot`
    digest: str
    names: set  # that it reads
    attributes: set  # names behind a dot
    dotted: set  # pairs of a name and the one behind its dot


def _piece(module, name, node):
    bare = _Bare().visit(node)  # its tree is read once, and may change
    if isinstance(bare, (*FUNCTIONS, ast.ClassDef)):
        decorators = [d for d in bare.decorator_list if ast.unparse(d) != "documented"]
        bare.decorator_list = decorators
    return Piece(module, name, _hash(_text(bare)), *_names(bare))


def _imports(tree, module, is_package=False):
    "Local name -> module and name in it (None is the module itself), of the package alone."
    found = {}
    here = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*above, *(node.module.split(".") if node.module else [])])
            if source.split(".")[0] == "taskpriors":
                found |= {a.asname or a.name: (source, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            for a in node.names:
                if a.name.split(".")[0] == "taskpriors":
                    found[a.asname or "taskpriors"] = (a.name if a.asname else "taskpriors", None)
    return found


class Module(NamedTuple):
    "The definitions and imports of a module."

    pieces: dict  # name -> Piece; of a class, what is outside its methods
    methods: dict  # class -> name -> Piece
    open_classes: set  # classes whose methods other libraries call
    calls: list  # pieces that run at import, such as an entry in a registry
    imports: dict


def _targets(node):
    "Names assigned by a statement at the top level of a module."
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def _read(text, module, is_package, own_classes):
    tree = ast.parse(text)
    found = Module({}, defaultdict(dict), set(), [], _imports(tree, module, is_package))
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            found.pieces[node.name] = _piece(module, node.name, node)
        elif isinstance(node, ast.ClassDef):
            methods = [n for n in node.body if isinstance(n, FUNCTIONS)]
            rest = copy.copy(node)
            rest.body = [n for n in node.body if n not in methods]
            found.pieces[node.name] = _piece(module, node.name, rest)
            for m in methods:
                name = f"{node.name}.{m.name}"
                found.methods[node.name][m.name] = _piece(module, name, m)
            bases = {ast.unparse(b).split(".")[-1] for b in node.bases}
            if bases - own_classes - {"NamedTuple", "Exception", "ValueError"}:
                found.open_classes.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for name in _targets(node):
                found.pieces[name] = _piece(module, name, node)
        elif not _runs_nothing(node):
            name = f"a statement of {module.split('.')[-1]} that runs at import"
            found.calls.append(_piece(module, name, node))
    return found


def _runs_nothing(node):
    "Whether a statement at the top level is a string, an import, or for type checkers."
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, (ast.Import, ast.ImportFrom))


@cache
def package_texts():
    "Map from the modules of the package to their text."
    paths = sorted((ROOT / "taskpriors").rglob("*.py"))
    found = {}
    for path in paths:
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] not in ("_modidx", "__init__") or parts == ("taskpriors", "__init__"):
            name = ".".join(p for p in parts if p != "__init__")
            found[name] = path.read_text(encoding="utf-8")
    return found


def read_modules(texts):
    "Map from modules to their definitions; `texts` is the result of `package_texts()`."
    trees = [ast.parse(text) for text in texts.values()]
    own = {n.name for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    found = {name: _read(text, name, name == "taskpriors", own) for name, text in texts.items()}
    for node in ast.parse(texts["taskpriors"]).body:
        if isinstance(node, ast.Assign) and _targets(node) == ["_NAMES"]:  # the front door
            for module, names in ast.literal_eval(node.value).items():
                source = f"taskpriors.{module}"
                found["taskpriors"].imports.update((n, (source, n)) for n in names.split())
    if "taskpriors.transfer.metrics" in found:
        _add_metrics(found["taskpriors.transfer.metrics"])
    return found


def _add_metrics(module):
    "Add the functions that the object `metrics` finds by the names in its file."
    from taskpriors.toml import packaged_toml

    rows = packaged_toml("transfer/metrics.toml")
    moves = {
        name: [row[k] for k in ("needs", "better", "invariances")] for name, row in rows.items()
    }
    homes = ((name, f"taskpriors.transfer.{row['module']}") for name, row in rows.items())
    module.imports.update((name, (home, name)) for name, home in homes)
    piece = module.pieces["metrics"]
    digest = _hash(piece.digest + json.dumps(moves))
    module.pieces["metrics"] = piece._replace(digest=digest, names=piece.names | set(rows))


class _Reach:
    "Follows names from the cells of a study through the library."

    def __init__(self, modules):
        self.modules = modules
        self.seen = {}  # (module, name) -> Piece
        self.attributes = set()
        self.waiting = []  # classes reached: (module, class)

    def resolve(self, source, name):
        "Reach a name that a module or package offers."
        if name is None or f"{source}.{name}" in self.modules:
            return
        module = self.modules.get(source)
        if module is None:
            return
        if name in module.pieces:
            self.add(module.pieces[name])
        elif name in module.imports and module.imports[name] != (source, name):
            self.resolve(*module.imports[name])

    def add(self, piece):
        if (piece.module, piece.name) in self.seen:
            return
        self.seen[piece.module, piece.name] = piece
        module = self.modules[piece.module]
        for call in module.calls:
            self.seen[piece.module, call.name + call.digest] = call
            self.follow(call, module.imports)
        if piece.name in module.methods:
            self.waiting.append((piece.module, piece.name))
        self.follow(piece, module.imports)

    def follow(self, piece, imports):
        self.attributes |= piece.attributes
        for name in piece.names:
            if name in imports:
                self.resolve(*imports[name])
            elif piece.module in self.modules:
                self.resolve(piece.module, name)
        for name, attribute in piece.dotted:
            source, own = imports.get(name, (None, None))
            if source is not None:
                self.resolve(source if own is None else f"{source}.{own}", attribute)

    def add_methods(self):
        "Reach the methods whose names occur; returns whether there were any new ones."
        before = len(self.seen)
        for module, name in list(self.waiting):
            found = self.modules[module]
            for m, piece in found.methods[name].items():
                if m in self.attributes or m.startswith("__") or name in found.open_classes:
                    self.add(piece)
        return len(self.seen) > before


@cache
def _own_modules():
    return read_modules(package_texts())


def code_of(cells, texts=None):
    """Name -> digest of every cell and of every definition of the library that cells reach.

    `cells` is id -> text, `texts` module -> text. Definitions of one name count as one.
    """
    modules = _own_modules() if texts is None else read_modules(texts)
    trees = {id: ast.parse(text) for id, text in cells.items()}
    reach, imports, digests = _Reach(modules), {}, {}
    for tree in trees.values():
        imports |= _imports(tree, "")
    for id, tree in trees.items():
        bare = _BareCell().visit(tree)
        digests[f"cell {id}"] = _hash(_text(bare))
        reach.follow(Piece("", id, "", *_names(bare)), imports)
    while reach.add_methods():
        pass
    same_name = defaultdict(set)
    for piece in reach.seen.values():
        same_name[piece.name].add(piece.digest)
    return digests | {k: _hash(" ".join(sorted(same_name[k]))) for k in sorted(same_name)}


def code_cells(nb):
    "Id -> text of the cells that run in a study."
    return {
        c["id"]: "".join(c["source"])
        for c in nb["cells"]
        if c["cell_type"] == "code" and "nbdev_export()" not in "".join(c["source"])
    }


def read_study(path):
    return json.loads(path.read_text(encoding="utf-8"))


def write_study(path, nb):
    text = json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def changes(nb, texts=None):
    "Changes since a study was signed, as words."
    before = nb["metadata"][KEY]["code"]
    now = code_of(code_cells(nb), texts)
    numbers = {c["id"]: k for k, c in enumerate(nb["cells"])}
    names = [k for k in sorted(before.keys() | now.keys()) if before.get(k) != now.get(k)]

    def words(name):
        if name.startswith("cell "):
            place = numbers.get(name[5:])
            return "a cell is gone" if place is None else f"its cell [{place}] changed"
        how = "is new" if name not in before else "is gone" if name not in now else "changed"
        return f"{name} {how}" if " " in name else f"`{name}` {how}"

    return [words(name) for name in names]


def complaint(path, texts=None):
    "A sentence that says why a study is out of date and what to type; None if it is not."
    nb, number = read_study(path), path.stem[:2]
    if KEY not in nb["metadata"]:
        return f"studies/{path.stem} is not signed: type `python docs/studies.py --run {number}`."
    found = changes(nb, texts)
    if not found:
        return None
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return (
        f"studies/{path.stem} shows outputs of other code ({', '.join(found[:4])}{more}): type "
        f"`python docs/studies.py --run {number}`, or, if no number can move, "
        f'`python docs/studies.py --accept {number} --because "why not"`.'
    )


def study(number):
    "The notebook of a study with this number."
    found = sorted(STUDIES.glob(f"{number}_*.ipynb"))
    if len(found) != 1:
        numbers = " ".join(p.stem[:2] for p in sorted(STUDIES.glob("*.ipynb")))
        raise SystemExit(f"docs/studies.py: no study {number}; there are {numbers}.")
    return found[0]


def released():
    "The version of the library, read from its source."
    return re.search(r'__version__ = "(.+?)"', package_texts()["taskpriors"])[1]


def sign(nb, code):
    "Write the versions and digests with which the outputs were made into a notebook."
    made = dict(version=released(), date=str(date.today()), torch=version("torch"))
    nb["metadata"][KEY] = dict(made, code=code)


def accept(path, reason):
    "Sign the present outputs; they remain those of the version that made them."
    nb = read_study(path)
    signature = nb["metadata"].get(KEY)
    if signature is None:
        raise SystemExit(f"docs/studies.py: {path.stem} was never signed, so it must be run.")
    accepted = dict(version=released(), date=str(date.today()), reason=reason)
    signature.update(accepted=accepted, code=code_of(code_cells(nb)))
    write_study(path, nb)


def said_of(path):
    "Sentence for readers: the versions that made the outputs, and whether code has changed."
    nb = read_study(path)
    signature = nb["metadata"].get(KEY)
    if signature is None:
        return "Not signed: some outputs may be older than the code shown here."
    said = "Run with taskpriors {version} and torch {torch} on {date}.".format(**signature)
    accepted = signature.get("accepted")
    if changes(nb):
        said += " Code that it uses has changed since then."
    elif accepted:
        said += " Code that it uses has changed since then, up to version {version}".format(
            **accepted
        )
        said += " ({date}): {reason}.".format(**accepted)
    return said


def kept_under(path, code):
    """The name of a cache that sees the code: of the library, and of the cells that define.

    A cell that only prints or draws is left out, so that its change makes nothing again.
    """
    cells = code_cells(read_study(path))
    define = {f"cell {id}" for id, text in cells.items() if re.search(r"(?m)^(def|class) ", text)}
    seen = {k: v for k, v in code.items() if k in define or not k.startswith("cell ")}
    return f"{path.stem}-{_hash(json.dumps(seen, sort_keys=True))}"


def baseline_features(pack, index):
    "Features of the untrained baselines of a ranking on some images of a pack."
    from PIL import Image

    from taskpriors.inputs.images import load_images
    from taskpriors.papers import study_files
    from taskpriors.rank.baselines import embed_baselines
    from taskpriors.rank.options import RankOptions

    pictures = study_files.load_images(pack, 224)[0][index.long()]
    source = load_images([Image.fromarray(picture.numpy()) for picture in pictures])
    found = embed_baselines(source, {}, RankOptions())
    if found.failures:
        raise SystemExit(f"docs/studies.py: {found.failures}")
    columns = {"raw pixels": "raw_grey_16x16", "untrained network": "untrained_resnet18_128"}
    return {columns[name]: model.features for name, model in found.results.items()}


def write_features(shared, folder):
    """Features of the trained networks on the image sets, as the study of NeuCRaB computes them.

    Several studies read them from the folder that TASKPRIORS_FEATURES names.
    """
    import importlib.util

    import torch
    from safetensors.torch import load_file, save_file

    def save(path, found):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in found.items()}, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)

    names = dict(importlib=importlib, sys=sys, torch=torch)
    for text in code_cells(read_study(study("04"))).values():
        if re.search(r"(?m)^def (shared_module|compute_features)\(", text):
            exec(text, names)
    for images in sorted((shared / "images").glob("*.npz")):
        for weights in sorted((shared / "weights").glob("*.safetensors")):
            path = folder / images.stem / weights.name
            if not path.exists():
                save(path, names["compute_features"](shared, images.stem, weights.stem))
        path = folder / "baselines" / f"{images.stem}.safetensors"
        if not path.exists():
            index = load_file(next((folder / images.stem).glob("*.safetensors")))["index"]
            save(path, baseline_features(images, index))


def surroundings(path, code):
    "Environment variables of a run: this checkout, a cache for its code, and the features."
    from taskpriors.papers.study_data import find_shared_data
    from taskpriors.store import cache_dir

    here = dict(
        PYTHONPATH=str(ROOT),
        TASKPRIORS_CACHE=str(cache_dir() / "studies" / kept_under(path, code)),
    )
    cells = "".join(code_cells(read_study(path)).values())
    if not re.search("find_shared_data|FEATURES", cells):  # it reads no data of others
        return here
    shared = find_shared_data()
    if shared is None:
        raise SystemExit("docs/studies.py: studies need TASKPRIORS_DATA, a folder of real data.")
    folder = os.environ.get("TASKPRIORS_FEATURES")
    if not folder:
        folder = cache_dir() / "studies" / "features"
        write_features(shared, folder)
    return dict(
        here,
        TASKPRIORS_DATA=str(shared),
        TASKPRIORS_FEATURES=str(folder),
    )


def run(path):
    "Run a study whole, from a fresh kernel; keep its outputs and sign them."
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    nb = read_study(path)
    code = code_of(code_cells(nb))
    ran = nbformat.read(path, 4)
    ran.cells = [c for c in ran.cells if c.id in code_cells(nb)]
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(ran, timeout=None, kernel_name="python3", resources=resources)
    with tempfile.TemporaryDirectory() as tables:
        env = dict(surroundings(path, code), TASKPRIORS_TABLES=tables)
        try:
            client.execute(env=os.environ | env)
        except CellExecutionError as e:
            bad = next(c.id for c in ran.cells if any(o.output_type == "error" for o in c.outputs))
            place = [c["id"] for c in nb["cells"]].index(bad)
            said = f"{path.stem}, cell [{place}]: {e.ename}: {e.evalue}; nothing was written"
            raise SystemExit(f"docs/studies.py: {said}") from e
        keep(path, code, ran)
        shutil.copytree(tables, path.parent / "tables", dirs_exist_ok=True)


def keep(path, code, ran):
    """Write the outputs of a run into the notebook and the answers into its table, and sign.

    A run that left a part out is not kept, nor one whose code has changed meanwhile.
    """
    nb = read_study(path)
    if code != code_of(code_cells(nb)):
        raise SystemExit(f"docs/studies.py: {path.stem} or the library changed during its run.")
    texts = [t for c in ran.cells for o in c.outputs for t in [o.get("text", "")]]
    skipped = [t for t in texts if t.startswith("skipped")]
    if skipped:
        raise SystemExit(f"docs/studies.py: {path.stem} left a part out: {skipped[0].strip()}")
    outputs = {c.id: split_lines(joined(c.outputs)) for c in ran.cells}
    for cell in nb["cells"]:
        if cell["id"] in outputs:
            cell["outputs"] = outputs[cell["id"]]
    conclude(nb)
    sign(nb, code)
    write_study(path, nb)


def text_of(cell):
    "The text that a cell printed."
    found = [o.get("text", "") for o in cell.get("outputs", []) if o.get("name") == "stdout"]
    return "".join("".join(text) for text in found)


def answers(nb):
    "Lines printed below `conclusions:`, one for each row of the table at the top."
    texts = [text_of(c) for c in nb["cells"] if c["cell_type"] == "code"]
    found = [t for t in texts if t.startswith("conclusions:\n")]
    return found[0].strip().split("\n")[1:] if found else []


def conclude(nb):
    "Write the printed answers into the table at the top; a `-` keeps a row."
    said = answers(nb)
    if not said:
        return
    markdown = (c for c in nb["cells"] if c["cell_type"] == "markdown")
    cell = next(c for c in markdown if "\n|---" in "".join(c["source"]))
    lines = "".join(cell["source"]).split("\n")
    rows = [k for k, line in enumerate(lines) if line.startswith("| ")][1:]
    for k, answer in zip(rows, said, strict=True):
        question = lines[k].split(" | ")[0]
        lines[k] = lines[k] if answer == "-" else f"{question} | {answer} |"
    cell["source"] = "\n".join(lines).splitlines(keepends=True)


def joined(outputs):
    "Join consecutive texts of a stream; a table between two texts keeps its place."
    found = []
    for out in outputs:
        if found and "text" in out and out.get("name") == found[-1].get("name"):
            found[-1]["text"] += out["text"]
        else:
            found.append(out)
    return found


def split_lines(outputs):
    "Outputs in the form of a notebook file, without counts and with texts as lists of lines."
    import nbformat

    cell = nbformat.v4.new_code_cell(outputs=outputs)
    text = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    outputs = json.loads(text)["cells"][0]["outputs"]
    for out in outputs:
        out["metadata"] = {} if "metadata" in out else None
        if "execution_count" in out:
            out["execution_count"] = None
        for kind, data in out.get("data", {}).items():
            if kind.startswith("image") and "svg" not in kind:
                out["data"][kind] = "".join(data).rstrip()
    return [{k: v for k, v in o.items() if k != "metadata" or v is not None} for o in outputs]


def main():
    form = argparse.RawDescriptionHelpFormatter
    args = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    args.add_argument("--run", nargs="*", metavar="NN", help="run these studies, or all stale ones")
    args.add_argument("--accept", nargs="+", metavar="NN", help="sign these, with --because")
    args.add_argument("--because", metavar="REASON", help="why no number moves")
    args = args.parse_args()
    stale = [p for p in sorted(STUDIES.glob("*.ipynb")) if complaint(p)]
    if args.accept:
        if not args.because:
            raise SystemExit("docs/studies.py: --accept asks for a reason: --because REASON.")
        for number in args.accept:
            accept(study(number), args.because)
    elif args.run is not None:
        for path in [study(number) for number in args.run] or stale:
            run(path)
    else:
        print("\n".join(complaint(p) for p in stale) or "No study is stale.")
        raise SystemExit(bool(stale))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
