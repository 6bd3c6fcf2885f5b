"The pages that are generated: contents, the index of names, the map of the papers."
import re
from collections import namedtuple

import nbformat
from notebooks import ROOT, BuildError, chapters, exported, page_of, target_of

WINGS = [("", "Ground floor"), ("prior", "Task priors"), ("synbench", "SynBench"), ("transfer", "Transferability"), ("rank", "Ranking models"), ("studies", "Studies")]
STATUS = ("proved", "implemented", "reproduced", "partly", "refuted")
Item = namedtuple("Item", "paper what status label")


def front_toctree():
    "Hidden tables of contents, one a wing, in reading order."
    trees = []
    for folder, caption in WINGS:
        pages = [page_of(p) for p in chapters() if (p.parent.name if p.parent != ROOT/"nbs" else "") == folder and p.stem != "index"]
        if pages: trees.append("```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```")
    trees.append("```{toctree}\n:hidden:\n:caption: Reference\n\napi\npapers\nbibliography\n```")
    return "\n\n".join(trees)


def _default_exp(nb):
    found = (re.match(r"#\|\s*default_exp\s+([\w.]+)", c.source) for c in nb.cells if c.cell_type == "code")
    return next((m[1] for m in found if m), None)


def api_page(targets):
    "Every exported name, by module, linked to where it is derived; `targets` are the places that can be linked to."
    lines = ["# Index of names", "", "Every public name, linked to the cell that derives and tests it."]
    for path in chapters():
        module = _default_exp(nbformat.read(path, 4))
        if module is None: continue
        lines += ["", f"## taskpriors.{module}", "", f"From {{doc}}`/{page_of(path)}`.", ""]
        for name, doc in exported(module):
            target = target_of(module, name)
            lines.append(f"* [`{name}`](#{target}): {doc}" if target in targets else f"* `{name}`: {doc}")
    return "\n".join(lines) + "\n"


def _catalogue():
    "Theorems, lemmas, algorithms, figures and tables of the papers: docs/papers.txt, one a line."
    items, paper = {}, None
    for line in (ROOT/"docs"/"papers.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "): paper = line[2:].strip(); items[paper] = {}
        elif line.strip(): what, _, text = line.partition(":"); items[paper][what.strip()] = text.strip()
    return items


def shown_items(source, path, cell):
    "The papers' items that a markdown cell says it shows: `<!-- shows: Task Priors, Theorem 2.6, proved -->`."
    catalogue, found = _catalogue(), []
    for paper, what, status in re.findall(r"<!--\s*shows:\s*([^,]+?),\s*([^,]+?),\s*(\w+)\s*-->", source):
        if paper not in catalogue or what not in catalogue[paper]: raise BuildError(path, cell, f"'{paper}, {what}' is not in docs/papers.txt")
        if status not in STATUS: raise BuildError(path, cell, f"status '{status}' is not one of {', '.join(STATUS)}")
        found.append(Item(paper, what, status, "shows-" + re.sub(r"\W+", "-", f"{paper} {what} {page_of(path)} {cell}").lower()))
    return found


def papers_page():
    "Which cell proves or reproduces which item of the papers."
    shown = {}
    for path in chapters():
        for k, cell in enumerate(nbformat.read(path, 4).cells):
            if cell.cell_type == "markdown":
                for item in shown_items(cell.source, path, k): shown.setdefault((item.paper, item.what), []).append((item, path, k))
    lines = ["# Map of the papers", "", "Every theorem, lemma, algorithm, figure and table of the three papers, and the notebook that proves or reproduces it. "
             "This page is collected from the notebooks when the site is built; what no notebook claims is open."]
    for paper, items in _catalogue().items():
        lines += ["", f"## {paper}", "", "| item | what it says | status | where |", "|---|---|---|---|"]
        for what, text in items.items():
            hits = shown.get((paper, what), [])
            where = ", ".join(f"{{doc}}`/{page_of(path)}`" for _, path, _ in hits) or ""
            status = ", ".join(dict.fromkeys(item.status for item, *_ in hits)) or "open"
            lines.append(f"| {what} | {text} | {status} | {where} |")
    return "\n".join(lines) + "\n"
