"""The page of a ranking, opened from a file in a real browser; skipped with a reason where Chromium
is missing. What the page says is tested in its chapter.
"""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import test_site
import torch

from taskpriors.inputs.images import load_images
from taskpriors.rank.models import rank_models
from taskpriors.rank.options import nested
from taskpriors.rank.ranking import Ranking

ROOT = Path(__file__).resolve().parent.parent
browser = test_site.browser
needs_browser = test_site.needs_browser
NASTY = "<script>document.title = 'mine'</script>"
LONG = "</script>" + "a-long-name-of-a-checkpoint" * 4


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    "The page of five models on 150 digits, saved, loaded and written by the loaded ranking."
    home = tmp_path_factory.mktemp("report")
    digits = load_images("digits", limit=150, progress=False)
    g = torch.Generator().manual_seed(0)
    models = {f"zoo/{name}": f"zoo/{name}" for name in ("pixels", "blocks", "gradients")}
    models |= {
        NASTY: torch.randn(150, 8, generator=g),
        LONG: torch.randn(150, 4, generator=g),
    }
    few = dict(n_tasks=10, cache=False, progress=False)
    ranking = rank_models(models, digits, **nested(references=False, **few))
    counts = torch.tensor([3e4, 2e6, 0, torch.nan, 5e7], dtype=torch.float64)
    sized = replace(ranking, parameters=counts, failures={"lost": "no such file <b>"})
    return Ranking.load(sized.save(home / "ranking")).report(home / "report.html")


@pytest.fixture
def opened(page, browser):
    "A function that opens the page at a width and with a theme, and returns the browser."

    def go(width=1300, theme=""):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(page.as_uri())
        browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
        return browser

    return go


@needs_browser
@pytest.mark.parametrize("width", [1300, 390])
def test_the_page_asks_for_nothing_and_fits(opened, page, width):
    found = opened(width)
    assert not found.get_log("browser")
    for entry in found.get_log("performance"):
        m = json.loads(entry["message"])["message"]
        if m["method"] == "Network.requestWillBeSent":
            url = m["params"]["request"]["url"]
            assert url.startswith(("data:", page.as_uri())), url
    assert found.execute_script("return document.documentElement.scrollWidth") <= width
    ends = "[...document.querySelectorAll('.interval')].map(x => x.getBoundingClientRect().right)"
    ends = found.execute_script(f"return {ends}")
    assert len(ends) == 5 and max(ends) <= width - 14  # seen without scrolling
    footer = found.execute_script("return document.querySelector('footer').textContent")
    assert re.match(r"Made on \d{4}-\d\d-\d\d by taskpriors \d", footer), footer
    assert page.stat().st_size < 1_500_000


@needs_browser
def test_a_request_that_a_text_would_make_is_forbidden(opened):
    "Even a script or a picture that was let in by an error would not run or load."
    found = opened()
    found.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s);"
        "const i = new Image(); i.src = 'http://127.0.0.1:9/a.png'; document.body.append(i);"
    )
    assert found.execute_script("return window.ran") is None
    said = [entry["message"] for entry in found.get_log("browser")]
    assert any("Content Security Policy" in text for text in said), said


def column(found, name):
    "The sort order of a column, and the texts in it from top to bottom."
    return found.execute_script(
        "const heads = [...document.querySelectorAll('.sortable thead th')];"
        "const k = heads.findIndex(h => h.textContent === arguments[0]);"
        "const rows = [...document.querySelectorAll('.sortable tbody tr')];"
        "return [heads[k].getAttribute('aria-sort'), rows.map(r => r.cells[k].textContent)]",
        name,
    )


def press(found, name):
    "Sort by a column with the keyboard."
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    for button in found.find_elements(By.CSS_SELECTOR, ".sortable thead button"):
        if button.text == name:
            button.send_keys(Keys.ENTER)


@needs_browser
def test_a_heading_sorts_and_says_so(opened):
    found = opened()
    order, losses = column(found, "regret")
    assert order == "ascending" and losses == sorted(losses, key=float)
    press(found, "regret")
    order, turned = column(found, "regret")
    assert order == "descending" and turned == losses[::-1]
    press(found, "skill")
    order, skills = column(found, "skill")
    assert order == "descending" and skills == sorted(skills, key=float, reverse=True)
    press(found, "model")
    order, names = column(found, "model")
    assert order == "ascending" and column(found, "skill")[0] == "none"
    assert names == sorted(names, key=lambda name: name.strip("</").lower())
    for wanted in ("descending", "ascending"):
        press(found, "params")
        order, counts = column(found, "params")
        assert order == wanted and counts[-1] == "", "what is not known stays last"
    assert counts[:-1] == ["0", "30k", "2M", "50M"]


@needs_browser
def test_two_models_are_compared_in_a_sentence(opened):
    found = opened()
    said = "return document.querySelector('.compare output').textContent"
    choose = (
        "const s = document.querySelectorAll('.compare select')[1]; s.value = arguments[0];"
        "s.dispatchEvent(new Event('change'))"
    )
    first = found.execute_script(said)
    assert " points (" in first and "probability of being ahead 0." in first
    found.execute_script(choose, "2")
    assert found.execute_script(said) != first
    found.execute_script(choose, "0")
    assert found.execute_script(said) == "Choose two different models."


@needs_browser
def test_the_theme_follows_the_system_until_it_is_chosen(opened):
    ground = "return getComputedStyle(document.body).backgroundColor"
    click = "const b = document.querySelector('#theme'); b.click(); return b.innerText"
    for system, seen in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(17, 22, 29)")):
        found = opened()
        media = {"features": [{"name": "prefers-color-scheme", "value": system}]}
        found.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        assert found.execute_script(ground) == seen
    assert found.execute_script(click) == "Theme: light"
    assert found.execute_script(ground) == "rgb(255, 255, 255)"
    assert found.execute_script(click) == "Theme: dark"
    found.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert found.execute_script(ground) == "rgb(255, 255, 255)", "paper is white"
    found.execute_script("localStorage.clear()")
    found.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


ACCESS = """
const bad = [];
const all = q => [...document.querySelectorAll(q)];
if (!document.documentElement.lang) bad.push('no language');
if (!document.title.trim()) bad.push('no title');
if (all('main').length !== 1) bad.push('not one main');
if (all('h1').length !== 1) bad.push('not one h1');
let level = 0;
for (const h of all('h1, h2, h3, h4, h5, h6')) {
  const now = +h.tagName[1];
  if (now > level + 1) bad.push('a level is skipped before ' + h.textContent);
  if (!h.textContent.trim()) bad.push('an empty heading');
  level = now;
}
const ids = all('[id]').map(e => e.id);
if (new Set(ids).size !== ids.length) bad.push('an id stands twice');
for (const e of all('[aria-labelledby]'))
  if (!document.getElementById(e.getAttribute('aria-labelledby'))) bad.push('a label is missing');
for (const a of all('a[href^="#"]'))
  if (!document.getElementById(a.getAttribute('href').slice(1))) bad.push('a dead link');
for (const i of all('img')) if (!i.alt) bad.push('a picture without words');
for (const s of all('svg'))
  if (s.getAttribute('role') !== 'img' && !s.closest('[aria-hidden=true]')) bad.push('a bare svg');
for (const s of all('svg[role=img]')) if (!s.getAttribute('aria-label')) bad.push('a mute svg');
for (const b of all('button')) if (!b.textContent.trim()) bad.push('a button without a name');
for (const f of all('select, input')) if (!f.labels.length) bad.push('a field without a label');
for (const t of all('table')) {
  if (!t.caption || !t.caption.textContent.trim()) bad.push('a table without a caption');
  for (const h of t.querySelectorAll('th')) if (!h.scope) bad.push('a heading without a scope');
  for (const r of t.tBodies[0].rows)
    if (r.querySelectorAll('th[scope=row]').length !== 1) bad.push('a row without a heading');
}
for (const d of all('.scroll'))
  if (d.tabIndex !== 0 || !d.getAttribute('aria-label')) bad.push('out of the keyboard\\'s reach');
return bad;
"""

CHART = """
const ink = (e, name) => getComputedStyle(e)[name];
const all = q => [...document.querySelectorAll(q)];
return {
  texts: all('.chart text').map(e => ink(e, 'fill')), page: ink(document.body, 'color'),
  points: all('.chart circle').map(e => ink(e, 'fill')), link: ink(all('a')[0], 'color'),
};
"""


@needs_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_read_it(opened, theme):
    found = opened(theme=theme)
    assert found.execute_script(ACCESS) == []
    assert found.execute_script(test_site.CONTRAST) == {}
    inks = found.execute_script(CHART)
    assert len(inks["texts"]) > 5 and set(inks["texts"]) == {inks["page"]}
    assert len(inks["points"]) == 4 and set(inks["points"]) == {inks["link"]}


@needs_browser
def test_a_name_stays_a_name(opened):
    found = opened()
    assert found.title == "Ranking of 5 models"
    assert NASTY in column(found, "model")[1]
    titles = "return [...document.querySelectorAll('tr th[title]')].map(h => h.title)"
    assert {NASTY, LONG} <= set(found.execute_script(titles))
    count = "return document.querySelectorAll('script').length"
    assert found.execute_script(count) == 2


def test_files_that_are_read_reach_the_wheel(tmp_path):
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for folder, names in {
        "report": {"columns.toml", "report.html", "report.js", "page.py"},
        "tools": {"commands.toml", "label_sheet.html"},
        "transfer": {"metrics.toml", "record.json", "metrics.py"},
        "inputs": {"model_names.toml"},
        "rank": {"forecast.toml", "reference_models.toml", "reference_set.py", "reliability.json"},
    }.items():
        assert names <= {path.name for path in (tmp_path / "taskpriors" / folder).iterdir()}
