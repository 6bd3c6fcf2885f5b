"""The map of the papers: docs/papers.txt, and what the cells of the notebooks mark."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import notebooks  # noqa: E402
import pages  # noqa: E402

from taskpriors.papers.recipes import paper_items  # noqa: E402


def test_an_item_without_a_mark_has_a_command_or_a_reason():
    shown = notebooks.marks()
    for paper, items in notebooks.catalogue().items():
        for what, text in items.items():
            assert (paper, what) in shown or " -- " in text or " => " in text, f"{paper}, {what}"


def test_an_item_that_is_not_shown_whole_says_why():
    shown = notebooks.marks()
    for paper, items in notebooks.catalogue().items():
        for what, text in items.items():
            statuses = [item.status for item, _ in shown.get((paper, what), [])]
            line, _, command = text.partition(" => ")
            if not set(statuses) - {"partly"}:
                reason = line.partition(" -- ")[2] or " ".join(pages.recipe_notes(command))
                assert reason, f"{paper}, {what}"
                assert reason in pages._paper_row(what, text, shown.get((paper, what), []), set())


def test_the_counts_of_the_map_are_those_of_its_rows():
    page = pages.papers_page(targets=set())
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    first = rows.index(next(row for row in rows if row.startswith("| item ")))
    total = next(row for row in rows[:first] if row.startswith("| all "))
    n_items, *counts = map(int, re.findall(r"\d+", total))
    grades = [row.split(" | ")[2] for row in rows[first:] if not row.startswith("| item ")]
    assert n_items == len(grades) == sum(counts)
    for name, count in zip(notebooks.GRADES, counts, strict=True):
        assert grades.count(name) == count, name


def test_at_least_twenty_items_have_a_number_beside_print_that_needs_no_network():
    assert notebooks.n_computed_here() >= 20


def test_a_grade_is_that_of_the_strongest_mark_or_command():
    grade = notebooks.grade
    assert grade("a theorem", ["implemented", "proved"]) == "proved"
    assert grade("a figure", ["partly", "reproduced"]) == "compared with the paper"
    assert grade("a figure", ["implemented"]) == "implemented only"
    assert grade("a figure -- a drawing", []) == "not computational"
    assert grade("a figure -- never published", []) == "not reproducible"
    of = "a table => taskpriors reproduce "
    assert grade(f"{of}synbench-table-15", ["partly"]) == "compared with the paper"
    assert grade(f"{of}synbench-table-18", ["refuted"]) == "refuted"
    assert grade(f"{of}synbench-table-6", []) == "not yet compared"
    assert grade(f"{of}pactran-table-4", ["implemented"]) == "implemented only"
    assert grade(f"{of}task-priors-figure-3-points", []) == "implemented only"  # no number


def test_readme_front_page_and_start_page_count_as_the_map_does():
    counts = notebooks.counted_items().values()
    total = {name: sum(row[name] for row in counts) for name in notebooks.GRADES}
    for page in ("nbs/index.ipynb", "nbs/start/16_the_papers.ipynb"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for name, n in total.items():
            assert re.search(rf"\b{n} (are )?{name}\b", text), f"{page}: {n} {name}"
        assert f"For {notebooks.n_computed_here()} items" in text, page


def test_a_command_of_the_map_names_an_item():
    text = (ROOT / "docs" / "papers.txt").read_text(encoding="utf-8")
    named = set(re.findall(r"taskpriors reproduce ([\w-]+)", text))
    assert named and named <= set(paper_items())
    assert {k for k, v in paper_items().items() if v.paper != "SynBench"} <= named
