"""What a study shows is what its code makes today: see docs/studies.py."""

import ast
import inspect
import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from pkgutil import resolve_name

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import studies  # noqa: E402

from taskpriors.rank import options  # noqa: E402
from taskpriors.rank.models import rank_models  # noqa: E402

NOTEBOOKS = sorted(studies.STUDIES.glob("*.ipynb"))
GROUND = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch import Tensor
ROUNDS = 3
TABLE = {}
def check(x): refuse("check", "x must be 1")
def mean(x):
    "Mean."
    check(x)
    return sum(x) / len(x) * ROUNDS
def unused(x): return x
"""
UPPER = """
from .ground import TABLE, mean as average
class Score:
    low: float
    def shift(self, by=1): return average([self.low, by])
    def plot(self): return 7
def score(x): return Score(x)
def _add(f): TABLE[f.__name__] = f
_add(score)
"""
CELLS = {
    "a1": "from taskpriors.upper import score\nimport numpy as np",
    "b2": "s = score(2)\nprint(s.shift())",
}


def texts(ground=GROUND, upper=UPPER):
    front = '_NAMES = {"upper": "score Score"}'
    return {"taskpriors": front, "taskpriors.ground": ground, "taskpriors.upper": upper}


def changed(ground=GROUND, upper=UPPER, cells=CELLS):
    "Names whose digest differs from those of the small library above."
    before = studies.code_of(CELLS, texts())
    now = studies.code_of(cells, texts(ground, upper))
    return {k for k in before.keys() | now.keys() if before.get(k) != now.get(k)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_study_shows_what_its_code_makes(path):
    complaint = studies.complaint(path)
    assert complaint is None, complaint


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_table_beside_the_studies_is_written_by_one_of_them(path):
    cells = "".join(studies.code_cells(studies.read_study(path)).values())
    names = [re.sub(r"{.*?}", "*", name) for name in re.findall(r'keep_table\(.*"(.+)"\)', cells)]
    tables = path.parent / "tables"
    found = [{file.name for file in tables.glob(f"{name}.csv")} for name in names]
    assert all(found), "a table that the study writes is not there"
    assert set().union(*found) == {file.name for file in tables.glob(f"{path.stem[:2]}_*")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_answers_of_a_study_are_those_that_its_cells_print(path):
    nb = studies.read_study(path)
    before = json.dumps(nb)
    studies.conclude(nb)
    assert json.dumps(nb) == before


def test_a_digest_holds_what_a_cell_reaches():
    code = studies.code_of(CELLS, texts())
    reached = {"score", "Score", "Score.shift", "mean", "check", "ROUNDS", "TABLE", "_add"}
    at_import = "a statement of upper that runs at import"
    assert set(code) == {"cell a1", "cell b2", at_import} | reached


def test_the_front_door_margins_to_the_same_functions():
    cells = {"a1": "import taskpriors as tp", "b2": "s = tp.score(2)\nprint(s.shift())"}
    of_library = [
        {k: v for k, v in studies.code_of(c, texts()).items() if not k.startswith("cell ")}
        for c in (CELLS, cells)
    ]
    assert of_library[0] == of_library[1]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("/ len(x)", "/ (len(x) - 1)", "mean"),
        ("ROUNDS = 3", "ROUNDS = 4", "ROUNDS"),
        ("by=1", "by=2", "Score.shift"),
        ("low: float", "high: float", "Score"),
        ("return Score(x)", "return Score(-x)", "score"),
        ("_add(score)", "_add(Score)", "a statement of upper that runs at import"),
    ],
)
def test_a_change_of_code_is_named(old, new, name):
    assert (old in GROUND) != (old in UPPER)
    assert changed(GROUND.replace(old, new), UPPER.replace(old, new)) == {name}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"Mean."', '"The mean."'),
        ("def mean(x):", "def mean(x: list[float] | None) -> float:  # of numbers"),
        ("return sum", "total: float\n    assert len(x)\n    return sum"),
        ("ROUNDS = 3", "ROUNDS: int = 3"),
        ('"x must be 1"', '"x must be 1 or 2"'),
        ("import Tensor", "import Tensor, nn"),
        ("return average([self.low, by])", "return cast(float, average([self.low, by]))"),
        ("def unused(x): return x", "def unused(x): return -x"),
        ("return 7", "return 8"),
    ],
)
def test_what_moves_no_number_changes_no_digest(old, new):
    assert (old in GROUND) != (old in UPPER)
    assert changed(GROUND.replace(old, new), UPPER.replace(old, new)) == set()


def test_a_study_that_reads_the_table_of_metrics_reaches_their_functions():
    cells = {"a1": "from taskpriors.transfer.registry import METRICS", "b2": "METRICS['logme']"}
    assert {"METRICS", "metrics", "logme", "leep", "_log_evidence"} <= set(studies.code_of(cells))


def test_a_function_may_move_to_another_module():
    function = re.search(r"(?s)def mean.*?ROUNDS\n", GROUND)[0]
    ground = GROUND.replace(function, "")
    upper = UPPER.replace("TABLE, mean as average", "TABLE, ROUNDS, check")
    upper = upper.replace("average(", "mean(") + function
    assert changed(ground, upper) == {"Score.shift"}  # its text names the function otherwise
    upper = UPPER.replace("mean as average", "ROUNDS, check")
    assert changed(ground, upper + function.replace("def mean", "def average")) > {"mean"}


def test_a_changed_cell_is_named():
    cells = CELLS | {"b2": "s = score(2)\nprint(s.shift(3))"}
    assert changed(cells=cells) == {"cell b2"}
    assert changed(cells=CELLS | {"b2": "s = score(2)  # two\nprint(s.shift())"}) == set()


@pytest.fixture
def copy_of_05(tmp_path):
    path = tmp_path / "05_mieb.ipynb"
    path.write_text((studies.STUDIES / path.name).read_text(encoding="utf-8"), encoding="utf-8")
    return path


def test_a_stale_study_says_why_and_what_to_type(copy_of_05):
    texts = studies.package_texts()
    module = "taskpriors.transfer.agreement"
    other = texts[module] + "\n\ndef rank_agreement(x, y):\n    return 1.0\n"
    complaint = studies.complaint(copy_of_05, texts | {module: other})
    assert "05_mieb" in complaint and "`rank_agreement` changed" in complaint
    assert "--run 05" in complaint and "--accept 05" in complaint


def test_a_study_can_be_accepted_for_a_reason(copy_of_05):
    nb = studies.read_study(copy_of_05)
    nb["metadata"][studies.KEY]["code"]["rank_agreement"] = "00000000"
    studies.write_study(copy_of_05, nb)
    assert studies.complaint(copy_of_05) is not None
    assert studies.said_of(copy_of_05).endswith(" Code that it uses has changed since then.")
    studies.accept(copy_of_05, "a local was renamed")
    assert studies.complaint(copy_of_05) is None
    said = studies.said_of(copy_of_05)
    assert said.startswith("Run with taskpriors") and "a local was renamed" in said


def record_of_study():
    "Metric -> the numbers of its row in the study's table by set, or None where it has none."
    nb = studies.read_study(studies.study("11"))
    cell = next(c for c in nb["cells"] if c["id"] == "98599213")
    html = "".join(cell["outputs"][0]["data"]["text/html"])
    found = {}
    for row in re.findall(r"(?s)<tr.*?</tr>", html):
        name, *shown = re.findall(r"(?s)<t[hd].*?>(.*?)</t[hd]>", row)
        numbers = [re.findall(r"[-+]\d\.\d\d", text) for text in shown]
        found[name] = [[float(x) for x in entry] or None for entry in numbers]
    return {name: row for name, row in found.items() if any(row)}


def test_the_cards_hold_the_record_of_the_study():
    from taskpriors.transfer.registry import read_record

    part = read_record()["studies/11_record"]
    assert len(part["metrics"]) > 40 and len(part["sets"]) == 10
    assert part["metrics"] == record_of_study()


def test_the_reliability_of_rankings_is_what_the_studies_printed():
    file = ROOT / "taskpriors" / "rank" / "reliability.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    alone, reference_set = (
        [studies.text_of(cell) for cell in studies.read_study(studies.study(number))["cells"]]
        for number in ("06", "16")
    )
    assert f"{record['alone']}\n" in alone
    assert any(f"{record['reference_set']} {record['few']}\n" in text for text in reference_set)


def names_of_the_library(nodes):
    "Names in a program -> dotted path in the library that they are imported from."
    named = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            named |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            named |= {a.asname: a.name for a in node.names if a.asname}
    own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return {k: v for k, v in named.items() if v.startswith("taskpriors") and k not in own}


def keywords_of(thing):
    "Keyword arguments that a function or class takes; None if it passes on any."
    if thing is options.nested:
        records = (options.Tasks, options.Compute, options.RankOptions)
        return {f.name for record in records for f in fields(record)} | keywords_of(rank_models)
    if not (inspect.isfunction(thing) or inspect.isclass(thing)):
        return None
    parameters = inspect.signature(thing).parameters.values()
    is_open = any(p.kind is p.VAR_KEYWORD and p.name != "unknown" for p in parameters)
    return None if is_open else {p.name for p in parameters}


def misfits(code):
    "Names of the library that a program uses and that do not exist, and keyword arguments."
    nodes = list(ast.walk(ast.parse(code)))
    named = names_of_the_library(nodes)
    used = {path: set() for path in named.values()}  # dotted path -> keywords of its calls
    for node in nodes:
        if isinstance(node, ast.Constant) and re.fullmatch(r"taskpriors(\.\w+)+", str(node.value)):
            used.setdefault(node.value, set())  # what a mock replaces
        called = node.func if isinstance(node, ast.Call) else node
        words = ast.unparse(called) if isinstance(called, (ast.Name, ast.Attribute)) else ""
        root, _, rest = words.partition(".") if re.fullmatch(r"[\w.]+", words) else ("", "", "")
        if root in named:
            given = node.keywords if isinstance(node, ast.Call) else ()
            path = f"{named[root]}.{rest}".rstrip(".")
            used.setdefault(path, set()).update(k.arg for k in given if k.arg)
    wrong = []
    for path, keywords in used.items():
        try:
            known = keywords_of(resolve_name(path))
        except (AttributeError, ImportError):
            wrong.append(path)
        else:
            wrong += [
                f"{path}({k}=)" for k in sorted(keywords) if known is not None and k not in known
            ]
    return wrong


def test_the_code_of_the_studies_fits_the_library():
    "Slow cells, which no test runs, too: names that they import and keyword arguments exist."
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert not misfits(re.sub(r"^(\s*)[%!].*$", r"\1pass", "\n\n".join(code), flags=re.M)), path


def test_a_name_that_is_gone_is_found():
    code = """
import taskpriors as tp
from taskpriors.rank.options import nested
from taskpriors.tools.monitor import Monitr
tp.rank_models({}, labels=[], options=nested(n_tasks=3, n_task=4), label=[])
tp.Ranking.laod("folder")
mock.patch("taskpriors.tools.monitor.BEHIND", 0.2)
"""
    wrong = ["tools.monitor.Monitr", "rank.options.nested(n_task=)", "rank_models(label=)"]
    wrong += ["rank_models(options=)", "Ranking.laod", "tools.monitor.BEHIND"]
    assert sorted(misfits(code)) == sorted(f"taskpriors.{path}" for path in wrong)
