"""The order of reading, the README, and the examples of the site, which need no built site."""

import re
from pathlib import Path

import pytest
from forks import run_to_the_end

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts]


def test_quarto_lists_every_notebook_in_reading_order(monkeypatch):
    yaml = pytest.importorskip("yaml")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import notebooks

    sidebar = yaml.safe_load((ROOT / "nbs" / "_quarto.yml").read_text(encoding="utf-8"))
    front, *sections = sidebar["website"]["sidebar"]["contents"]
    *read, built = [(entry["section"], entry["contents"]) for entry in sections]

    def places(paths):
        return [p.relative_to(ROOT / "nbs").as_posix() for p in paths]

    start, *others = notebooks.FOLDERS
    here = {notebooks.FOLDERS[start]: notebooks.read_in(start)}
    here[notebooks.FIVE] = notebooks.results()
    here |= {notebooks.FOLDERS[folder]: notebooks.read_in(folder) for folder in others}
    assert front == "index.ipynb"
    assert read == [(heading, places(paths)) for heading, paths in here.items() if paths]
    parts = [(part["section"], part["contents"]) for part in built[1]]
    assert built[0] == notebooks.HOW_BUILT
    assert parts == [(h, places(notebooks.built_in(f))) for f, h in notebooks.BUILT.items()]
    listed = [front, *(p for _, paths in [*read, *parts] for p in paths)]
    assert listed == places(notebooks.chapters())
    assert sorted(listed) == sorted(places(CHAPTERS))


def test_every_page_that_the_order_of_reading_names_exists(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import notebooks

    pages = {notebooks.page_of(p) for p in notebooks.chapters()}
    derived = {f"{folder}/{page}" for folder, names in notebooks.DERIVED.items() for page in names}
    named = {*notebooks.RESULTS, *notebooks.MACHINERY, *derived}
    assert named <= pages, sorted(named - pages)


def test_printed_sentences_fold_and_columns_stay_whole(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    from adapt import _fold

    sentence, columns = "word " * 40, "a  b " * 40
    folded = _fold(f"{sentence}\n{columns}\nshort\n").split("\n")
    assert (
        max(map(len, folded[:-3])) <= 100
        and " ".join(line.strip() for line in folded[:-3]) == sentence.strip()
    )
    assert folded[-3:] == [columns, "short", ""]


def test_readme_is_current():
    status, _, err = run_to_the_end("docs/build.py", "--check", cwd=ROOT)
    assert status == 0, err[-2000:]


def test_examples_are_calls_of_all_names_and_run(tmp_path):
    import taskpriors

    path = ROOT / "docs" / "examples.py"
    names = re.findall(r"^# %% (\w+)$", path.read_text(encoding="utf-8"), re.M)
    assert sorted(names) == sorted(taskpriors._FROM)
    env = dict(MPLBACKEND="agg", TASKPRIORS_CACHE=tmp_path / "cache")
    status, _, err = run_to_the_end(path, cwd=tmp_path, env=env)
    assert status == 0, err[-2000:]
