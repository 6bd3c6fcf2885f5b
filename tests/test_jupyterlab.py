"""Pages for users and a proof, opened in JupyterLab and run in a browser, as
`pip install -e ".[dev]"` has it; skipped with a reason where JupyterLab or Chromium is missing.
"""

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chromium import PATIENCE, needs_browser, open_browser, requests

ROOT = Path(__file__).resolve().parent.parent
LOOP = """
import numpy as np
import taskpriors as tp
from sklearn.datasets import load_digits
digits = load_digits()
pixels = digits.data[:120]
models = {"pixels": pixels, "rows": pixels.reshape(-1, 8, 8).sum(2), "some": pixels[:, ::5]}
options = dict(
    references=False, tasks=tp.Tasks(n_tasks=10), compute=tp.Compute(progress=False, cache=False)
)
ranking = tp.rank_models(models, **options)
tp.label_loop(
    ranking, models, digits.images[:120] / 16, classes=["zero", "one"], batch=3, **options
)
"""
PAGES = ("start/01_first_ranking", "start/14_explorer", "prior/01_loss_equivalence")

pytestmark = [pytest.mark.long, needs_browser]
nbformat = pytest.importorskip("nbformat", reason="comes with the dev extra")
pytest.importorskip("jupyterlab", reason="JupyterLab comes with the dev extra")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
ActionChains, Keys = webdriver.ActionChains, webdriver.Keys
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
exceptions = pytest.importorskip("selenium.common.exceptions", reason="needs selenium")
StaleElementReferenceException = exceptions.StaleElementReferenceException


def wait(browser, condition):
    return WebDriverWait(browser, PATIENCE).until(condition)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def address_of(server, runtime, log):
    "Where a server answers, from the file that it writes once it does."
    for _ in range(10 * PATIENCE):
        assert server.poll() is None, log.read_text(encoding="utf-8")[-2000:]
        for path in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(json.JSONDecodeError):  # opened, and not yet written
                return json.loads(path.read_text(encoding="utf-8"))["url"].rstrip("/")
        time.sleep(0.1)
    raise AssertionError(log.read_text(encoding="utf-8")[-2000:])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    "Folders in which JupyterLab keeps its settings, its state and the notebooks."
    top = tmp_path_factory.mktemp("jupyterlab")
    names = ("config", "data", "runtime", "settings", "workspaces", "ipython", "notebooks")
    for name in names:
        (top / name).mkdir()
    for page in PAGES:
        nb = nbformat.read(ROOT / "nbs" / f"{page}.ipynb", 4)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs = []  # what the page shows then, it has drawn here
        place = top / "notebooks" / "nbs" / f"{page}.ipynb"
        place.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(nb, place)
    kernel = dict(name="python3", display_name="python3", language="python")
    cells = [nbformat.v4.new_code_cell(LOOP)]
    loop = nbformat.v4.new_notebook(cells=cells, metadata=dict(kernelspec=kernel))
    nbformat.write(loop, top / "notebooks" / "nbs" / "start" / "loop.ipynb")
    shutil.copy(ROOT / "settings.ini", top / "notebooks")  # a chapter exports itself when it ends
    news = top / "settings" / "@jupyterlab" / "apputils-extension"
    news.mkdir(parents=True)
    answer = dict(fetchNews="false", checkForUpdates=False)  # or JupyterLab would ask
    (news / "notification.jupyterlab-settings").write_text(json.dumps(answer), encoding="utf-8")
    return top


@pytest.fixture(scope="module")
def lab(folders):
    "Address of a JupyterLab without a token, which asks nothing of the network."
    env = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folders / "config"),
        "JUPYTER_DATA_DIR": str(folders / "data"),
        "JUPYTER_RUNTIME_DIR": str(folders / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folders / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folders / "workspaces"),
        "IPYTHONDIR": str(folders / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "HF_HUB_OFFLINE": "1",
    }
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": str(free_port()),  # another one if somebody takes it first
        "ServerApp.open_browser": "False",
        "ServerApp.root_dir": str(folders / "notebooks"),
        "IdentityProvider.token": "",
        "LabApp.news_url": "None",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
    }
    command = [sys.executable, "-m", "jupyterlab", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    log = folders / "log"
    with log.open("w") as out:
        server = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield address_of(server, folders / "runtime", log)
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def browser(folders):
    driver = open_browser(folders / "chromium")
    yield driver
    driver.quit()


@pytest.fixture
def ran(lab, browser, folders):
    "Opens a page in a tab and a workspace of its own and runs all its cells, from the menu."

    def go(page):
        nb = nbformat.read(folders / "notebooks" / "nbs" / f"{page}.ipynb", 4)
        numbers = range(1, 1 + sum(cell.cell_type == "code" for cell in nb.cells))
        browser.switch_to.new_window("tab")
        browser.get(f"{lab}/lab/workspaces/{page.split('/')[1]}/tree/nbs/{page}.ipynb")
        wait(browser, lambda b: is_idle(b) and len(prompts(b)) == len(numbers))
        assert set(prompts(browser)) == {"[ ]:"} and not pictures(browser)
        wait(browser, runs_all)
        wait(browser, lambda b: prompts(b) == [f"[{k}]:" for k in numbers] or complaints(b))
        assert not complaints(browser)

    return go


def runs_all(browser):
    "Asks the menu to run all cells, which does nothing until JupyterLab knows its current page."
    browser.find_element("xpath", "//*[@id='jp-MainMenu']//*[text()='Run']").click()
    item = '.lm-Menu-item[data-command="runmenu:run-all"]'
    wait(browser, lambda b: b.find_elements("css selector", item))[0].click()
    try:
        return WebDriverWait(browser, 10).until(lambda b: set(prompts(b)) != {"[ ]:"})
    except exceptions.TimeoutException:
        ActionChains(browser).send_keys(Keys.ESCAPE).perform()  # closes the menu
        return False


def is_idle(browser):
    return browser.find_elements(
        "css selector", '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
    )


def all_texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
    return browser.execute_script(script, selector)


def prompts(browser):
    "What stands beside the code cells: [ ] before they run, [*] while they wait, then a number."
    return all_texts(browser, ".jp-Notebook .jp-CodeCell .jp-InputPrompt")


def complaints(browser):
    "Errors and warnings among the outputs."
    kinds = ("error", "stderr")
    return all_texts(
        browser, ",".join(f'[data-mime-type="application/vnd.jupyter.{kind}"]' for kind in kinds)
    )


def pictures(browser, selector=".jp-OutputArea-output img"):
    "(width, source) of the pictures that the outputs show, each in its own proportions."
    script = """
        const images = [...document.querySelectorAll(arguments[0])];
        return images.filter(e => e.naturalWidth).map(e => [
            e.naturalWidth, e.src, e.width/e.height*e.naturalHeight/e.naturalWidth
        ])
    """
    found = browser.execute_script(script, selector)
    assert all(0.98 < stretched < 1.02 for *_, stretched in found), found
    return [(width, source) for width, source, _ in found]


def strangers(browser, lab):
    "Addresses elsewhere that the pages asked for."
    mine = (lab, lab.replace("http:", "ws:"), "data:", "blob:", "chrome:", "chrome-")
    return [url for url in requests(browser) if not url.startswith(mine)]


def test_a_page_runs_and_shows_its_picture(ran, lab, browser):
    ran("start/01_first_ranking")
    ((width, source),) = wait(browser, pictures)
    assert width > 300 and source.startswith("data:image/png")
    assert not strangers(browser, lab)


def test_a_proof_runs_and_shows_its_formulas(ran, lab, browser):
    "The chapter of Theorem 2.3: each line that it checks holds, and its formulas are typeset."
    page = "prior/01_loss_equivalence"
    ran(page)
    (heading,) = all_texts(browser, ".jp-RenderedMarkdown h1")
    assert heading.removesuffix("¶") == title_of(page)  # a sign that links to it
    wait(browser, lambda b: b.find_elements("css selector", ".jp-RenderedMarkdown mjx-container"))
    assert not all_texts(browser, ".jp-RenderedMarkdown mjx-merror")
    assert not strangers(browser, lab)


def title_of(page):
    nb = nbformat.read(ROOT / "nbs" / f"{page}.ipynb", 4)
    (title,) = [c.source[2:].split("\n")[0] for c in nb.cells if c.source.startswith("# ")][:1]
    return title


def test_the_explorer_appears_and_answers(ran, lab, browser):
    "Its controls are there; a slider draws another task, and a click says which point it was."
    ran("start/14_explorer")
    find = functools.partial(browser.find_elements, "css selector")
    drawn = functools.partial(pictures, selector="img.widget-image")
    wait(browser, lambda b: find(".jupyter-widgets [role=slider]"))
    temperature, *_ = find(".jupyter-widgets [role=slider]")
    labels = [e for e in all_texts(browser, ".jupyter-widgets .widget-label") if e]
    assert labels[:6] == ["temperature", "classes", "sampler", "prior", "map", "task"]
    assert all_texts(browser, ".widget-button") == ["frozen", "structure", "coins"]
    ((width, before),) = wait(browser, drawn)
    assert width == 450  # pixels, as redraw makes it
    assert [e.is_displayed() for e in find("img.widget-image")] == [True, False]
    temperature.send_keys(Keys.ARROW_RIGHT)
    wait(browser, lambda b: [source for _, source in drawn(b)] != [before])
    assert float(all_texts(browser, ".widget-readout")[0]) > 1
    find("img.widget-image")[0].click()
    wait(browser, lambda b: "example " in all_texts(b, ".widget-label")[-1])
    _, digit = wait(browser, lambda b: len(drawn(b)) == 2 and drawn(b))
    assert digit[0] == 120  # pixels of the thumbnail
    browser.execute_script(  # and the slider that the page shows where no kernel runs
        "const slider = document.getElementById('temperature'); slider.value = 32;"
        "slider.dispatchEvent(new Event('input'))"
    )
    assert float(browser.find_element("id", "number-0").text) > 0.95
    assert not strangers(browser, lab)


def test_the_label_loop_keeps_each_answer(ran, lab, browser, folders):
    "A button, a key after it and the field each write a label; a batch draws again."
    ran("start/loop")
    answers = folders / "notebooks" / "nbs" / "start" / "labels.csv"
    hands = ActionChains(browser)

    def at(selector):
        return wait(browser, lambda b: [e for e in b.find_elements(*by(selector)) if seen(e)])[0]

    def labels():
        lines = answers.read_text(encoding="utf-8").splitlines()[1:] if answers.exists() else []
        return [line.rpartition(",")[2] for line in lines]

    wait(browser, lambda b: len(pictures(b, "img.widget-image")) == 2)
    first, chart = pictures(browser, "img.widget-image")
    at("button[contains(., 'zero (1)')]").click()
    wait(browser, lambda _: labels() == ["zero"])
    wait(browser, lambda b: pictures(b, "img.widget-image")[0] != first)
    hands.send_keys("2").perform()  # the pointer is where it was
    wait(browser, lambda _: labels() == ["zero", "one"])
    hands.click(at("input[@type='text']")).send_keys("smudge", Keys.ENTER).perform()
    wait(browser, lambda _: labels() == ["zero", "one", "smudge"])
    at("button[contains(., 'smudge (3)')]")
    wait(browser, lambda b: pictures(b, "img.widget-image")[-1] != chart)
    assert not complaints(browser) and not strangers(browser, lab)


def by(selector):  # of an element in an output
    return "xpath", f"//*[contains(@class, 'jp-OutputArea-output')]//{selector}"


def seen(element):
    try:
        return element.is_displayed()
    except StaleElementReferenceException:
        return False
