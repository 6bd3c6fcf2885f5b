"""The site, built once and opened in a real browser; skipped with a reason where Sphinx or Chromium
is missing.
"""

import functools
import http.server
import json
import re
import shutil
import threading
from pathlib import Path

import pytest
from chromium import PATIENCE, needs_browser, open_browser, requests
from filelock import FileLock
from forks import run_to_the_end

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts]
pytestmark = pytest.mark.long
sphinx = pytest.importorskip("sphinx", reason="the site needs the dev extra")


@pytest.fixture(scope="session")
def site(tmp_path_factory, testrun_uid):
    "Build the site once a run: another worker must not write pages while a browser reads them."
    built = tmp_path_factory.getbasetemp().parent / f"site-{testrun_uid}"
    with FileLock(ROOT / "_pages.lock"):
        if not built.exists():
            status, out, err = run_to_the_end("docs/build.py", cwd=ROOT)
            assert status == 0, out[-2000:] + err[-4000:]
            built.touch()
    return ROOT / "_docs"


@pytest.fixture(scope="session")
def pages(site):
    return sorted(
        p.relative_to(site).as_posix() for p in site.rglob("*.html") if "_static" not in p.parts
    )


class Quiet(http.server.SimpleHTTPRequestHandler):
    def translate_path(self, path):  # the page for a missing page has addresses from the root
        return super().translate_path(path.removeprefix("/taskpriors"))

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def address(site):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=site)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


CONTRAST = """
const linear = x => { x /= 255; return x <= .03928 ? x/12.92 : ((x + .055)/1.055)**2.4 };
const lum = c => { const v = c.map(linear); return .2126*v[0] + .7152*v[1] + .0722*v[2] };
const rgb = s => { const m = s.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1] };
const behind = e => rgb(getComputedStyle(e).backgroundColor);
const lums = new Map(), grounds = new Map();
const lumOf = c => lums.get(c) ?? lums.set(c, lum(rgb(c).slice(0, 3))).get(c);
const groundOf = e => {  // luminance behind an element: its own ground, or that of what holds it
  if (!e) return lum(behind(document.body).slice(0, 3));
  if (!grounds.has(e)) {
    const own = behind(e);
    grounds.set(e, own[3] > .99 ? lum(own.slice(0, 3)) : groundOf(e.parentElement));
  }
  return grounds.get(e);
};
const skipped = 'mjx-container, script, style, .headerlink, .visually-hidden, .copybtn';
const bad = {};
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; n = walk.nextNode();) {
  const e = n.parentElement, s = getComputedStyle(e);
  if (!n.textContent.trim() || s.visibility == 'hidden' || !e.offsetParent) continue;
  if (e.closest(skipped)) continue;
  const a = lumOf(s.color), b = groundOf(e), size = parseFloat(s.fontSize);
  const ratio = (Math.max(a, b) + .05)/(Math.min(a, b) + .05);
  const large = size >= 24 || (size >= 18.66 && +s.fontWeight >= 700);
  const where = e.tagName + '.' + e.className + ' ' + s.color;
  if (ratio < (large ? 3 : 4.5)) bad[where] = [ratio, n.textContent.trim().slice(0, 40)];
}
return bad;
"""
WIDTHS = (1300, 390)
THEMES = ("light", "dark")
OWN_SCRIPT = ("index.html", "search.html", "start/explorer.html")  # are loaded at both widths


def resize(browser, width, height=900):
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def faults_of(browser, address, page, widths):
    "What is wrong with a page that is loaded at the first width and looked at at both."
    for k, width in enumerate(widths):
        resize(browser, width)
        if k == 0 or page in OWN_SCRIPT:
            browser.get(f"{address}/{page}")
        reach = browser.execute_script("return document.documentElement.scrollWidth")
        if reach > width + 1:  # not the window's own width: a phone zooms out for a wide page
            yield f"{page} is {reach - width} px too wide at {width} px"
        for theme in THEMES if width == 1300 else ():
            browser.execute_script(f"document.body.dataset.theme = '{theme}'")
            if faint := browser.execute_script(CONTRAST):
                yield f"{page} has too little contrast in the {theme} theme: {faint}"
    yield from (f"{page}: {e}" for e in browser.get_log("browser") if e["level"] == "SEVERE")
    known = (address, "data:", "blob:", "chrome:", "chrome-untrusted:")
    yield from (f"{page} asks for {x}" for x in requests(browser) if not x.startswith(known))


def test_no_dead_internal_link_or_image(site, pages):
    ids = {}

    def ids_of(page):
        if page not in ids:
            ids[page] = set(
                re.findall(r'\bid="([^"]+)"', (site / page).read_text(encoding="utf-8"))
            )
        return ids[page]

    for page in pages:
        html = (site / page).read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]+)"', html):
            if re.match(r"(https?:|mailto:|data:|javascript:)", target):
                continue
            path, _, anchor = target.partition("#")
            path = path.split("?")[0]
            if page == "404.html":
                path = path.removeprefix("/taskpriors/")
            there = (site / page).parent / path if path else site / page
            assert there.resolve().exists(), f"{page}: {target}"
            if anchor and there.suffix == ".html":
                assert anchor in ids_of(there.resolve().relative_to(site).as_posix()), (
                    f"{page}: {target}"
                )


def test_every_public_name_is_documented(site, monkeypatch):
    """In the index of names with a link to its page, where it has a heading, a signature and a
    source link; in the index from A to Z; methods with commented parameters included.
    """
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import notebooks

    index, az, n = (
        (site / "names.html").read_text(encoding="utf-8"),
        (site / "genindex.html").read_text(encoding="utf-8"),
        0,
    )
    for path in notebooks.chapters():
        module = notebooks.module_of(path)
        if module is None:
            continue
        page = (site / f"{notebooks.page_of(path)}.html").read_text(encoding="utf-8")
        for name, doc in notebooks.exported(module):
            anchor = re.sub("[^a-z0-9]+", "-", notebooks.target_of(module, name).lower()).strip("-")
            assert doc, f"{module}.{name} has no docstring"
            assert re.search(rf'href="{notebooks.page_of(path)}\.html#{anchor}-?"', index), (
                f"{module}.{name} is not in the index of names"
            )
            section = page.partition(f'id="{anchor}')[2].partition("</section>")[0]
            assert 'class="highlight-python' in section and re.search(
                r'href="[^"]+/taskpriors/[\w/]+\.py#L\d+"', section
            ), f"{module}.{name} lacks its signature or its source"
            second = rf">{name} \([\w.]+\)<(?:(?!</ul>).)*>\(taskpriors\.{re.escape(module)}\)<"
            assert f">{name} (taskpriors.{module})<" in az or re.search(second, az, re.DOTALL), (
                f"{module}.{name} is not in the index from A to Z"  # two modules share a name
            )
            n += 1
    assert n > 200 and "TaskPrior.from_features" in az and "TaskPrior.heldout_error" in index


def test_the_front_door_has_examples_and_users(site):
    import taskpriors

    page = (site / "api.html").read_text(encoding="utf-8")
    for name in taskpriors._FROM:
        anchor = f"tp-{name.lower().replace('_', '-')}{'-constant' * name.isupper()}"
        section = page.partition(f'id="{anchor}"')[2].partition("</section>")[0]
        assert (
            "Derived in" in section
            and "its parameters" in section
            or name in ("METRICS", "metrics")
        ), name
        assert name in section.partition('class="highlight')[2], f"{name} has no example"
        users = section.partition("Used in:")[2].partition("</p>")[0]
        assert users.count("<a ") <= 5, f"{name} names too many chapters"


def test_machines_find_their_way(site, pages):
    import xml.etree.ElementTree as ElementTree

    address = "https://taskpriors.github.io/taskpriors/"
    places = [e.text for e in ElementTree.parse(site / "sitemap.xml").iter() if "loc" in e.tag]
    listed = {p.removeprefix(address) for p in places}
    assert listed == {*pages} - {"404.html", "genindex.html", "search.html"}
    said = (site / "llms.txt").read_text(encoding="utf-8")
    for page in re.findall(rf"\]\({address}(.*?)\)", said):
        assert page in pages
    assert said.startswith("# taskpriors\n\n> ") and said.count("\n## ") == 12  # headings
    chapters = re.findall(rf"\]\({address}(?!(?:api|names|papers)\.html)", said)
    assert len(chapters) == len(CHAPTERS) - 1  # all but the front page


def test_every_page_introduces_itself(site):
    "A description, a social card, the notebook to download, to edit and to run, the version."
    html = (site / "start" / "first_ranking.html").read_text(encoding="utf-8")
    says = "Rank models on your images without labels, with the probability that each model is the "
    says += "best."
    for name in ('property="og:description"', 'name="description"'):
        assert re.search(
            rf'<meta [^>]*{name}[^>]*content="{says}|content="{says}"[^>]*{name}', html
        )
    card = re.search(r'property="og:image" content="[^"]*/taskpriors/([^"]+)"', html)[1]
    assert (site / card).stat().st_size > 5000
    assert re.search(r'href="\.\./_downloads/\w+/01_first_ranking\.ipynb"', html)
    assert "/edit/main/nbs/start/01_first_ranking.ipynb" in html
    assert "colab.research.google.com/github/taskpriors/taskpriors/blob/main/nbs/start/01" in html
    import taskpriors

    assert f"taskpriors {taskpriors.__version__}</span>" in html


def test_figures_have_a_finding_for_a_text(site, pages):
    for page in pages:
        html = (site / page).read_text(encoding="utf-8")
        for image in re.findall(r"<img [^>]*>", html):
            alt = re.search(r'alt="([^"]*)"', image)
            assert alt and len(alt[1].split()) > 4, (page, image)


def test_claims_are_numbered_and_proofs_unfold(site):
    html = (site / "prior" / "edges.html").read_text(encoding="utf-8")
    assert re.search(r'class="proof theorem admonition".*?Theorem \d+', html, re.S)
    if sphinx.version_info >= (8, 2):
        assert re.search(r'<details class="[^"]*proof', html)


def test_checks_are_folded_on_pages_for_users(site):
    html = (site / "start" / "my_features.html").read_text(encoding="utf-8")
    folds = [part.partition("</details>")[0] for part in html.split("A check, passed")[1:]]
    assert any("expect_fail" in fold for fold in folds)


def test_a_chapter_with_functions_for_users_opens_with_a_call(site):
    html = (site / "rank" / "models.html").read_text(encoding="utf-8")
    opening = re.sub(r"<[^>]*>", "", html[html.index("<h1>") : html.index("<h2>")])
    assert "import taskpriors as tp" in opening and "tp.rank_models(" in opening


@needs_browser
def test_the_slider_runs_without_a_kernel(address, browser):
    browser.get(f"{address}/start/explorer.html")
    before = browser.find_element("id", "number-0").text
    browser.execute_script(
        "const slider = document.getElementById('temperature'); slider.value = 32;"
        "slider.dispatchEvent(new Event('input'))"
    )
    after = browser.find_element("id", "number-0").text
    assert float(before) < 0.6 and float(after) > 0.95
    assert float(browser.find_element("id", "chance-0").get_attribute("value")) == float(after)


def test_code_names_link_to_where_they_are_derived(site):
    html = (site / "papers/figures.html").read_text(encoding="utf-8")
    name = "calibration.html#taskpriors-prior-calibration-task-temperature"
    assert f'href="../prior/{name}"' in html
    assert 'href="../prior/heldout.html"' in (site / "rank/ranking.html").read_text(
        encoding="utf-8"
    )


def test_the_map_of_the_papers_margins_to_cells(site):
    html = (site / "papers.html").read_text(encoding="utf-8")
    html = html[html.index('id="task-priors"') :]  # the table of counts stands before
    rows = re.findall(
        r"<tr[^>]*><td><p>(.*?)</p></td>\s*<td><p>(.*?)</p></td>\s*<td><p>(.*?)</p></td>\s*<td><p>(.*?)</p></td>",
        html,
        re.S,
    )
    items = [
        line
        for line in (ROOT / "docs" / "papers.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert len(rows) == len(items)
    for item, says, status, where in rows:
        assert says and where, item
        if status in ("not reproducible", "not computational"):
            assert "<a" not in where, f"{item} has no reason"
            continue
        marked = re.search(r'href="[\w/]+\.html#shows-', where)
        assert marked or "taskpriors</span>" in where, item
        assert status in (
            "proved",
            "refuted",
            "compared with the paper",
            "not yet compared",
            "implemented only",
        ), item


def test_pages_have_titles_and_an_icon(site, pages):
    titles = [
        re.search(r"<title>(.*?)</title>", (site / p).read_text(encoding="utf-8"), re.S)[1].strip()
        for p in pages
    ]
    assert len(set(titles)) == len(titles) and all("taskpriors" in t for t in titles), titles
    assert all(
        'rel="icon"' in (site / p).read_text(encoding="utf-8")
        or "shortcut icon" in (site / p).read_text(encoding="utf-8")
        for p in pages
    )


@needs_browser
def test_pages_load_quietly_fit_a_phone_and_pass_wcag_aa(address, pages, browser):
    """Every page is loaded once, every other one on a phone first, because the pages share their
    scripts and styles.
    """
    faults = [
        fault
        for k, page in enumerate(pages)
        for fault in faults_of(browser, address, page, WIDTHS if k % 2 else WIDTHS[::-1])
    ]
    assert not faults, "\n".join(faults)


@needs_browser
def test_formulas_are_typeset(address, browser):
    browser.get(f"{address}/core/kernels.html")
    browser.set_script_timeout(PATIENCE)
    count = browser.execute_async_script(
        "const done = arguments[0]; MathJax.startup.promise.then("
        "() => done(document.querySelectorAll('mjx-container').length))"
    )
    assert count > 10
    assert not browser.execute_script("return document.querySelectorAll('mjx-merror').length")


@needs_browser
def test_search_finds_a_function(address, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}/search.html?q=trace_moments")
    WebDriverWait(browser, PATIENCE).until(  # results appear one after another
        lambda b: b.find_elements(By.CSS_SELECTOR, '#search-results li a[href*="moments"]')
    )


@needs_browser
@pytest.mark.parametrize("words", ["uncertainty", "Hugging Face", "embeddings"])
def test_search_finds_what_users_call_it_and_shows_prose(address, browser, words):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}/search.html?q={words.replace(' ', '+')}")
    WebDriverWait(browser, PATIENCE).until(
        lambda b: (
            len(b.find_elements(By.CSS_SELECTOR, "#search-results li p.context"))
            == len(b.find_elements(By.CSS_SELECTOR, "#search-results li"))
            > 0
        )
    )
    found = [a.get_attribute("href") for a in browser.find_elements("css selector", "li a")]
    assert any("/start/" in page for page in found), found
    for context in browser.find_elements(By.CSS_SELECTOR, "p.context"):
        assert not re.search(r"\\\(|\\mathbb|^import |assert ", context.text), context.text


FIRST = {
    "few labels": "start/with_labels",
    "multilabel": "start/with_labels",
    "groups": "start/with_labels",
    "patients": "start/with_labels",
    "retrieval": "start/with_labels",
    "latency": "start/reading_the_table",
    "leaderboard": "start/what_i_know",
    "pairs": "start/what_i_know",
    "label loop": "start/with_labels",
    "jupyter label": "start/with_labels",
    "open_clip": "start/my_images",
    "wandb": "start/in_a_training_loop",
    "labels csv": "start/with_labels",
    "huggingface": "start/my_images",
    "my images": "start/my_images",
    "texts": "start/my_texts",
    "feature files": "start/my_features",
    "parquet": "start/my_features",
    "compare two models": "start/first_ranking",
    "which layer": "start/which_layer",
    "checkpoint": "start/in_a_training_loop",
    "choose checkpoint": "start/in_a_training_loop",
    "columns": "start/reading_the_table",
    "uncertainty": "start/glossary",
    "glossary": "start/glossary",
    "notation": "start/notation",
    "questions": "start/faq",
    "objections": "start/four_objections",
    "explorer": "start/explorer",
    "cite": "start/citing",
    "report": "report/index",
    "timm": "inputs/named_models",
    "Lightning": "tools/monitor_lightning",
}


@needs_browser
def test_the_page_that_does_it_is_found_first(address, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    found = {}
    for words in FIRST:
        browser.get(f"{address}/search.html?q={words.replace(' ', '+')}")
        WebDriverWait(browser, PATIENCE).until(
            lambda b: b.find_elements("css selector", "#search-results li > a")
        )
        link = browser.find_element("css selector", "#search-results li > a")
        page = link.get_attribute("href").removeprefix(f"{address}/")
        found[words] = page.partition(".html")[0]
    assert found == FIRST


@needs_browser
def test_no_list_of_contents_runs_off_the_screen(address, browser):
    resize(browser, 1700, 1000)
    for page in ("index", "api", "names", "start/first_ranking", "prior/moments"):
        browser.get(f"{address}/{page}.html")
        parts = (".toc-scroll",) if "prior" in page else (".sidebar-scroll", ".toc-scroll")
        for part in parts:  # an unfolded folder scrolls in its own pane
            over = browser.execute_script(
                f"const e = document.querySelector('{part}');"
                "return e ? e.scrollHeight - e.clientHeight : 0"
            )
            assert over <= 0, f"{page}: {part} is {over} px too long"


@pytest.fixture
def small(tmp_path):
    """A repository of a front page and one more page; returns a function that writes that page's
    cells and builds the site.
    """
    for name in ("docs", "settings.ini"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    (tmp_path / "nbs").mkdir()

    def title(text):
        return dict(
            cell_type="markdown", id="title", metadata={}, source=f"# {text}\n\n> A sentence."
        )

    def write(name, cells):
        cells = [
            dict(
                c,
                id=c.get("id", f"c{k}"),
                metadata={},
                **(dict(execution_count=None) if c["cell_type"] == "code" else {}),
            )
            for k, c in enumerate(cells)
        ]
        (tmp_path / "nbs" / name).write_text(
            json.dumps(dict(cells=cells, metadata={}, nbformat=4, nbformat_minor=5)),
            encoding="utf-8",
        )

    write("index.ipynb", [title("Front")])

    def build(*cells):
        write("98_page.ipynb", [title("Page"), *cells])
        status, out, err = run_to_the_end("docs/build.py", cwd=tmp_path)
        return status, out + err

    return build


def text(source):
    return dict(cell_type="markdown", source=source)


def code(source, **outputs):
    return dict(
        cell_type="code",
        source=source,
        outputs=[dict(output_type="stream", name="stdout", text=outputs["prints"])]
        if outputs
        else [],
    )


@pytest.mark.parametrize(
    "cell, reason",
    [
        (code("x = (1"), "syntax error in line 1: '(' was never closed"),
        (code("#| exprot\nx = 1"), "unknown directive '#| exprot'"),
        (code("#| default_exp nowhere"), "its module nowhere is not there: run nbdev_export"),
        (text("![a](missing.png)"), "a missing figure: missing.png"),
        (
            dict(code("1"), outputs=[dict(output_type="display_data", data={"image/png": ""})]),
            "a figure without '#| fig-alt: what it shows'",
        ),
        (text("[a](99_nowhere.ipynb)"), "a dead link: 99_nowhere.ipynb"),
        (
            text("<!-- shows: Task Priors, Theorem 9.9, proved -->"),
            "'Task Priors, Theorem 9.9' is not in docs/papers.txt",
        ),
        (
            dict(
                code("1"),
                outputs=[dict(output_type="error", ename="KeyError", evalue="'a'", traceback=[])],
            ),
            "an error among the outputs: KeyError: 'a'",
        ),
    ],
)
def test_a_bad_cell_stops_the_build_before_it_starts(cell, reason, small):
    code_, said = small(text("Fine."), cell)
    assert code_ == 1 and said.strip() == f"nbs/98_page.ipynb, cell 3: {reason}", said


def test_what_sphinx_finds_names_the_notebook_and_the_cell(small):
    cells = (
        text("Fine."),
        text("A link to [nowhere](#nowhere)."),
        code("print(1)", prints="1\n"),
        text("```{nonsense}\nx\n```"),
        text("![a](https://example.org/a.png)"),
    )
    for _attempt in range(2):  # nor does a second try pass because the page has not changed
        status, said = small(*cells)
        assert (
            status == 1
            and "cell 3: 'myst' cross-reference target not found: 'nowhere'" in said
            and "nbs/98_page.ipynb, cell 5: Unknown directive type: 'nonsense'" in said
        ), said


def test_a_page_that_is_gone_is_gone(small, tmp_path):
    assert small(text("Fine."))[0] == 0 and (tmp_path / "_docs" / "page.html").exists()
    (tmp_path / "nbs" / "98_page.ipynb").rename(tmp_path / "nbs" / "98_other.ipynb")
    status, _, err = run_to_the_end("docs/build.py", cwd=tmp_path)
    assert (
        status == 0
        and not (tmp_path / "_docs" / "page.html").exists()
        and (tmp_path / "_docs" / "other.html").exists()
    ), err


def test_text_stands_above_the_table_it_introduces(site):
    html = (site / "studies" / "neucrab.html").read_text(encoding="utf-8")
    first, second = (
        html.index(">Mean over tasks, for each N/K and over all"),
        html.index(">rankme minus another metric"),
    )  # as printed, not as in the code
    assert 0 < html.find("<table", first) < second < html.find("<table", second)


RESULTS = ("loss_equivalence", "edges", "moments", "prefix", "robust_bayes")
MAP = "https://taskpriors.github.io/taskpriors/papers.html"


def test_the_front_page_and_the_readme_margin_to_the_proofs(site):
    "In the order of reading; the map of the papers stands on the site, for the README too."
    html = (site / "index.html").read_text(encoding="utf-8")
    article = html[html.index('role="main"') :]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    proofs = ".*?".join(rf'href="\w+/{name}\.html"' for name in RESULTS)
    assert re.search(proofs, article, re.S) and 'href="papers.html"' in article
    proofs = ".*?".join(rf"\]\(nbs/\w+/\d\d_{name}\.ipynb\)" for name in RESULTS)
    assert re.search(proofs, readme, re.S) and f"]({MAP})" in readme
    assert "](/" not in readme  # an address from the root is one of the site only
