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


def test_an_item_that_is_not_whole_says_why():
    shown = notebooks.marks()
    for paper, items in notebooks.catalogue().items():
        for what, text in items.items():
            statuses = [item.status for item, _ in shown.get((paper, what), [])]
            line, _, command = text.partition(" => ")
            if notebooks.standing(text, statuses) != "whole":
                reason = line.partition(" -- ")[2] or " ".join(pages.recipe_notes(command))
                assert reason, f"{paper}, {what}"
                assert reason in pages._paper_row(what, text, shown.get((paper, what), []), set())


def test_the_counts_of_the_map_are_those_of_its_rows():
    page = pages.papers_page(targets=set())
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    first = rows.index(next(row for row in rows if row.startswith("| item ")))
    total = next(row for row in rows[:first] if row.startswith("| all "))
    n_items, *counts = map(int, re.findall(r"\d+", total))
    statuses = [row.split(" | ")[2] for row in rows[first:] if not row.startswith("| item ")]
    assert n_items == len(statuses) == sum(counts)
    standing = dict(zip(notebooks.STANDINGS, counts, strict=True))
    for name in ("to run", "nothing to compute", "left out", "partly"):
        assert standing[name] == statuses.count(name), name
    others = ("partly", "to run", "nothing to compute", "left out")
    assert standing["whole"] == sum(status not in others for status in statuses)


def test_a_standing_is_that_of_the_strongest_mark():
    assert notebooks.standing("a figure", ["partly", "reproduced"]) == "whole"
    assert notebooks.standing("a figure => taskpriors reproduce it", ["partly"]) == "partly"
    assert notebooks.standing("a figure -- why => taskpriors reproduce it", []) == "to run"
    assert notebooks.standing("a figure -- a drawing", []) == "nothing to compute"
    assert notebooks.standing("a figure -- never published", []) == "left out"


def test_a_command_of_the_map_names_an_item():
    text = (ROOT / "docs" / "papers.txt").read_text(encoding="utf-8")
    named = set(re.findall(r"taskpriors reproduce ([\w-]+)", text))
    assert named and named <= set(paper_items())
    assert {k for k, v in paper_items().items() if v.paper != "SynBench"} <= named
