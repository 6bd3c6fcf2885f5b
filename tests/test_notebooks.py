"""Every notebook, once, from a fresh kernel.

It runs, it warns of nothing, it prints what the committed outputs say, and it draws what the
committed figures show. Cells flagged slow run under `-m long`, each notebook's with the other cells
that they need; those flagged gpu or network are for those who have the machine, and what a study
prints depends on data that not everybody has.
"""

import ast
import base64
import contextlib
import io
import os
import queue
import re
import signal
import symtable
import tempfile
from pathlib import Path

import numpy as np
import pytest
from forks import Python

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted(
    p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
NUMBER = re.compile(r"[-+−]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|[-+−]?\.\d+(?:e[-+]?\d+)?")
SLOW = re.compile(r"^#\|\s*slow\b", re.M)
ELSEWHERE = re.compile(r"^#\|\s*(gpu|network|eval:\s*false)\b", re.M)
BLOCK = 16  # pixels; figures are compared by the mean grey of such squares
SAME = 0.12  # largest difference of what another version of matplotlib may draw


def id_of(path):
    return path.relative_to(ROOT / "nbs").with_suffix("").as_posix()


def is_run(cell, slow):
    if cell.cell_type != "code" or "nbdev_export()" in cell.source:
        return False
    return not ELSEWHERE.search(cell.source) and (slow or not SLOW.search(cell.source))


CHECKS = re.compile(r"assert_|test_|print$|show_doc$")  # functions that change none of their inputs


def names_in(*nodes):
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def scopes(table):
    yield table
    for inner in table.get_children():
        yield from scopes(inner)


def read_and_changed(source):
    """The names of the notebook that a cell reads, and those that it assigns or may change.

    `x.f(y)` as a statement may change `x`, `f(y)` may change `y`, and `x[0] = y` changes `x`.
    """
    tree, cell = ast.parse(source), symtable.symtable(source, "cell", "exec")
    read = {
        symbol.get_name()
        for scope in scopes(cell)
        for symbol in scope.get_symbols()
        if symbol.is_global() or (scope is cell and symbol.is_referenced())
    }
    symbols = cell.get_symbols()
    changed = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            changed |= names_in(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute):
                changed |= names_in(call.func.value)
            elif not CHECKS.match(getattr(call.func, "id", "")):
                changed |= names_in(*call.args)
    return read, changed


def needed_by_slow(cells):
    "The slow cells of a notebook and those that assign or change a name that one of them reads."
    wanted, needed = set(), []
    for cell in reversed(cells):
        read, changed = read_and_changed(cell.source)
        if SLOW.search(cell.source) or changed & wanted:
            needed.append(cell)
            wanted |= read
    return needed[::-1]


def text_of(outputs):
    parts = []
    for out in outputs:
        data = out.get("data", {})
        if out["output_type"] == "stream" and out["name"] == "stdout":
            parts.append("".join(out["text"]))
        if "image/png" not in data:
            parts.append("".join(data.get("text/plain", "")))
    return re.sub(r"\s+", " ", " ".join(parts)).strip()


def figures_of(outputs):
    return [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]


def shape(text):
    return NUMBER.sub("#", text)


def numbers(text):
    found = (re.sub(",", "", n).replace("−", "-") for n in NUMBER.findall(text))
    return [float(n) for n in found if n.count(".") <= 1]


def pixels_of(png):
    "Shape (rows, columns, 3), from 0 to 1."
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    return np.asarray(image, dtype=float) / 255


def grey_blocks(pixels):
    "Mean grey of the figure's squares, shape (rows, columns)."
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    cut = pixels[: rows * BLOCK, : columns * BLOCK].mean(2)
    return cut.reshape(rows, BLOCK, columns, BLOCK).mean((1, 3))


def mean_colour(pixels):
    "Mean of the pixels that are not grey; grey where there are none."
    coloured = pixels[np.ptp(pixels, 2) > 0.2]
    return coloured.mean(0) if len(coloured) else np.full(3, 0.5)


def difference(old, new):
    "Largest difference of two figures' squares, or of their mean colours; 1 if sizes differ."
    first, second = pixels_of(old), pixels_of(new)
    a, b = grey_blocks(first), grey_blocks(second)
    if any(abs(p - q) > 1 for p, q in zip(a.shape, b.shape, strict=True)):
        return 1.0
    rows, columns = (min(p, q) for p, q in zip(a.shape, b.shape, strict=True))
    squares = np.abs(a[:rows, :columns] - b[:rows, :columns]).max()
    return float(max(squares, np.abs(mean_colour(first) - mean_colour(second)).max()))


@pytest.fixture(scope="module")
def run():
    "Runs a notebook; returns pairs of a committed cell and the cell as it ran."
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    jupyter_client = pytest.importorskip("jupyter_client")
    local = pytest.importorskip("jupyter_client.provisioning.local_provisioner")

    def go(path, slow):
        committed = nbformat.read(path, 4)
        ran = nbformat.read(path, 4)
        for nb in (committed, ran):
            nb.cells = [cell for cell in nb.cells if is_run(cell, slow)]
            if slow:
                nb.cells = needed_by_slow(nb.cells)
        client = nbclient.NotebookClient(
            ran,
            timeout=None,
            kernel_name="python3",
            shutdown_kernel="immediate",  # a polite end takes three seconds a notebook
            resources={"metadata": {"path": str(path.parent)}},
        )
        # a kernel that is ended leaves its temporary folders behind
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            client.execute(env=os.environ | {"TMPDIR": scratch})
        return list(zip(committed.cells, ran.cells, strict=True))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "launch_kernel", start_kernel)
        patch.setattr(local.LocalProvisioner, "kill", end_kernel)
        patch.setattr(jupyter_client.AsyncKernelClient, "wait_for_ready", until_ready)
        yield go


def start_kernel(command, *, env, cwd, **options):
    inline = "module://matplotlib_inline.backend_inline"  # what a kernel itself sets, but later
    return Python(*command[1:], env={**env, "MPLBACKEND": inline}, cwd=cwd)


async def end_kernel(provisioner, restart=False):
    "End the kernel and its children, and wait for it; `jupyter_client` would ask every 0.1 s."
    os.killpg(provisioner.process.pid, signal.SIGKILL)
    provisioner.process.wait()


async def until_ready(client, timeout=None):
    "Wait until both channels answer; the method of the client then reads for 0.2 s more."
    for _ in range(100):
        client.kernel_info()
        with contextlib.suppress(queue.Empty):
            await client.shell_channel.get_msg(timeout=1)
            await client.iopub_channel.get_msg(timeout=0.2)
            return
    raise RuntimeError("the kernel did not answer")


def check_warnings(cell):
    for out in cell.outputs:
        if out["output_type"] == "stream" and out["name"] == "stderr":
            assert "Warning" not in out["text"], (cell.source[:100], out["text"][:300])


def check_text(old, new):
    before, now = text_of(old.outputs), text_of(new.outputs)
    said = f"{new.source[:100]}\n--- committed: {before[:300]}\n--- now: {now[:300]}"
    assert shape(now) == shape(before), said
    for a, b in zip(numbers(now), numbers(before), strict=True):
        assert abs(a - b) <= 0.05 * max(abs(a), abs(b)) + 0.02, f"{b} became {a}\n{said}"


def check_figures(old, new):
    before, now = figures_of(old.outputs), figures_of(new.outputs)
    assert len(before) == len(now), f"{len(before)} figures became {len(now)}: {new.source[:100]}"
    for a, b in zip(before, now, strict=True):
        off = difference(a, b)
        assert off < SAME, f"a figure is not what its cell draws ({off:.2f}): {new.source[:100]}"


def compare(pairs):
    for old, new in pairs:
        check_warnings(new)
        check_text(old, new)
        check_figures(old, new)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=id_of)
def test_notebook_runs_and_says_what_it_said(path, run):
    pairs = run(path, slow=False)
    if path.parent.name != "studies":
        compare(pairs)
    for _, new in pairs:
        check_warnings(new)


def has_slow_cells(path):
    "Those of the studies take hours, and docs/studies.py runs them."
    return path.parent.name != "studies" and "#| slow" in path.read_text(encoding="utf-8")


BY_MACHINE = {  # notebooks whose slow cells assert what holds everywhere and print what does not
    "papers/10_robust_probing": "probes are trained and attacked, and a last bit moves an image",
    "prior/18_objective": "networks are trained, and a last bit moves a point of the figure",
    "inputs/05_zoo": "networks are trained, and a last bit becomes a tenth of a point",
    "rank/13_models": "networks are trained, and a last bit becomes a tenth of a point",
    "index": "networks are trained, and a last bit becomes a tenth of a point",
}


def is_comparable(path, cell):
    "A slow cell that found no data of the studies says `skipped: ...`."
    by_machine = id_of(path) in BY_MACHINE and SLOW.search(cell.source)
    return not by_machine and not text_of(cell.outputs).startswith("skipped:")


@pytest.mark.long
@pytest.mark.parametrize("path", [*filter(has_slow_cells, NOTEBOOKS)], ids=id_of)
def test_slow_cells_say_what_they_said(path, run):
    pairs = run(path, slow=True)
    compare((old, new) for old, new in pairs if is_comparable(path, new))
    for _, new in pairs:
        check_warnings(new)


def test_slow_cells_run_after_what_they_need():
    from nbformat.v4 import new_code_cell

    sources = [
        "import math",
        "def double(x):\n    return helper(x)",
        "helper, table, folder, rows = math.sqrt, {}, Path(), []",
        "assert_close(double(4), 2)",
        "table['a'] = table['b'] = 1",
        "del table['b']",
        "(folder / 'file').write_text('')",
        "fill(rows)",
        "unused = [table for table in rows]",
        "#| slow\nprint(double(table['a']), folder, rows)",
        "print(table)",
    ]
    needed = needed_by_slow([new_code_cell(source) for source in sources])
    assert [sources.index(cell.source) for cell in needed] == [0, 1, 2, 4, 5, 6, 7, 9]


def test_a_moved_title_is_another_figure():
    "The comparison of figures can fail: on a moved title, a colour, a curve."
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def draw(loc="left", color="tab:blue", slope=1.0):
        figure = Figure(figsize=(5, 4))
        ax = figure.add_subplot()
        ax.plot([0, 1], [0, slope], color=color, lw=3)
        ax.set_ylim(0, 1)
        ax.set_title("a finding in some words", loc=loc)
        out = io.BytesIO()
        FigureCanvasAgg(figure).print_png(out)
        return base64.b64encode(out.getvalue())

    assert difference(draw(), draw()) == 0
    assert difference(draw(), draw(loc="center")) > SAME
    assert difference(draw(), draw(color="navy")) > SAME
    assert difference(draw(), draw(slope=0.8)) > SAME
