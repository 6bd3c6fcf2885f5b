"The site, built once and opened in a real browser; skipped with a reason where Sphinx or Chromium is missing."
import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sphinx = pytest.importorskip("sphinx", reason="the site needs the dev extra")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver, for instance from the distribution's packages")


@pytest.fixture(scope="session")
def site():
    done = subprocess.run([sys.executable, "docs/build.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return ROOT/"_docs"


@pytest.fixture(scope="session")
def pages(site): return sorted(p.relative_to(site).as_posix() for p in site.rglob("*.html") if "_static" not in p.parts)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass


@pytest.fixture(scope="session")
def address(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
    for flag in [*flags.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}", "--window-size=1300,900"]: options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def test_no_dead_internal_link_or_image(site, pages):
    ids = {}
    def ids_of(page):
        if page not in ids: ids[page] = set(re.findall(r'\bid="([^"]+)"', (site/page).read_text(encoding="utf-8")))
        return ids[page]
    for page in pages:
        html = (site/page).read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]+)"', html):
            if re.match(r"(https?:|mailto:|data:|javascript:)", target): continue
            path, _, anchor = target.partition("#")
            path = path.split("?")[0]
            there = (site/page).parent/path if path else site/page
            assert there.resolve().exists(), f"{page}: {target}"
            if anchor and there.suffix == ".html": assert anchor in ids_of(there.resolve().relative_to(site).as_posix()), f"{page}: {target}"


def test_every_public_name_is_documented(site):
    html = (site/"api.html").read_text(encoding="utf-8")
    for name in ("trace_moments", "sample_labels", "kernel_factor", "ridge_probes"): assert f">{name}<" in html


@needs_browser
def test_pages_load_quietly_and_fit_a_phone(address, pages, browser):
    import json
    for width in (1300, 390):
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        for page in pages:
            browser.get(f"{address}/{page}")
            errors = [e for e in browser.get_log("browser") if e["level"] == "SEVERE" and "favicon" not in e["message"]]
            assert not errors, (page, errors)
            for entry in browser.get_log("performance"):
                m = json.loads(entry["message"])["message"]
                if m["method"] == "Network.requestWillBeSent":
                    url = m["params"]["request"]["url"]
                    assert url.startswith((address, "data:", "blob:", "chrome:")), (page, url)
            over = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
            assert over <= 1, f"{page} is {over} px too wide at {width} px"


@needs_browser
def test_formulas_are_typeset(address, browser):
    browser.get(f"{address}/kernels.html")
    browser.set_script_timeout(20)
    count = browser.execute_async_script("const done = arguments[0]; MathJax.startup.promise.then(() => done(document.querySelectorAll('mjx-container').length))")
    assert count > 10
    assert not browser.execute_script("return document.querySelectorAll('mjx-merror').length")


@needs_browser
def test_search_finds_a_function(address, browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait
    browser.get(f"{address}/search.html?q=trace_moments")
    found = WebDriverWait(browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#search-results li a"))
    assert any("moments" in a.get_attribute("href") for a in found)


CONTRAST = """
const lum = c => { const v = c.map(x => { x /= 255; return x <= .03928 ? x/12.92 : ((x + .055)/1.055)**2.4 }); return .2126*v[0] + .7152*v[1] + .0722*v[2] };
const rgb = s => { const m = s.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1] };
const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c.slice(0, 3) } return rgb(getComputedStyle(document.body).backgroundColor).slice(0, 3) };
const bad = {};
const walk = document.createTreeWalker(document.querySelector('.main') || document.body, NodeFilter.SHOW_TEXT);
for (let n; n = walk.nextNode();) {
  const e = n.parentElement, s = getComputedStyle(e);
  if (!n.textContent.trim() || s.visibility == 'hidden' || !e.offsetParent || e.closest('mjx-container, script, style, .headerlink, .visually-hidden, .copybtn')) continue;
  const a = lum(rgb(s.color).slice(0, 3)), b = lum(ground(e)), ratio = (Math.max(a, b) + .05)/(Math.min(a, b) + .05), size = parseFloat(s.fontSize);
  const large = size >= 24 || (size >= 18.66 && +s.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) bad[e.tagName + '.' + e.className + ' ' + s.color] = [ratio, n.textContent.trim().slice(0, 40)];
}
return bad;
"""


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_passes_wcag_aa(address, pages, browser, theme):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    for page in pages:
        browser.get(f"{address}/{page}")
        browser.execute_script(f"document.body.dataset.theme = '{theme}'")
        bad = browser.execute_script(CONTRAST)
        assert not bad, (page, theme, bad)


@pytest.mark.parametrize("cell, reason", [
    ({"cell_type": "code", "source": "x = (1", "outputs": []}, "syntax error"),
    ({"cell_type": "code", "source": "#| exprot\nx = 1", "outputs": []}, "unknown directive '#| exprot'"),
    ({"cell_type": "markdown", "source": "![a](missing.png)"}, "a missing figure: missing.png"),
    ({"cell_type": "markdown", "source": "[a](99_nowhere.ipynb)"}, "a dead link: 99_nowhere.ipynb"),
])
def test_a_bad_notebook_stops_the_build(cell, reason, monkeypatch):
    import json
    monkeypatch.syspath_prepend(str(ROOT/"docs"))
    import notebooks
    path = ROOT/"nbs"/"98_bad.ipynb"
    try:
        path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
        with pytest.raises(notebooks.BuildError, match=r"nbs/98_bad.ipynb, cell 1: " + re.escape(reason)): notebooks.check_notebook(path)
    finally: path.unlink()


def test_readme_is_current():
    done = subprocess.run([sys.executable, "docs/build.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
