"Generated pages: contents, names, the map of the papers, and lists for search engines."

import ast
import re
from functools import cache

from adapt import definition, signature
from notebooks import (
    BUILT,
    FIVE,
    FOLDERS,
    GRADES,
    HOW_BUILT,
    RESULTS,
    ROOT,
    built_in,
    catalogue,
    cells,
    chapters,
    counted_items,
    exported,
    grade,
    marks,
    module_of,
    n_computed_here,
    page_of,
    promised,
    read_in,
    recipes_of,
    results,
    target_of,
)

ABOUT = {  # one sentence for the page of each folder
    "prior": "Probability distributions over tasks, and the score of a representation under them.",
    "synbench": "Synthetic tasks with a known optimum, and how close a network comes to it.",
    "transfer": "Published metrics that predict transfer performance from features and labels.",
    "rank": "From features to a verdict: task distribution, skill, uncertainty and forecast.",
    "report": "Reports, tables and figures of a ranking.",
    "tools": "Monitoring a training run, selecting a layer, and the command line.",
    "papers": "Recomputing the figures and tables of the three papers, and NeuCRaB on your data.",
    "studies": "Experiments of the papers and our own; each page begins with its conclusions.",
}
ABOUT_BUILT = {  # the same for the pages of machinery
    "core": "Argument checks, storage, kernels and probes, which all other chapters use.",
    "inputs": "Reading images, texts and files, and computing the features of each model.",
    "prior": "Blockwise computation of the sums, probes and tasks of a prior.",
    "synbench": "The networks that SynBench scores, and their requirements.",
    "rank": "The steps of a ranking, from the models to the verdict.",
    "tools": "The parts of the monitor, the explorer and the command line.",
}
ABOUT_HOW_BUILT = (
    "These chapters are for developers of the library. They describe how sums, files and commands "
    "are implemented, and test what they export. Proofs that depend on one of them link to it."
)


ENTERED = ("rank", "inputs", "tools", "report")  # folders whose modules users call


def front_toctree():
    """Hidden tables of contents: the first pages one by one, then folders.

    A notebook stands in one table only, so the page of a folder leaves out the first results.
    """
    here = [p for p in read_in("nbs") + read_in("start") if p.stem != "index"]
    wings = [page for page in wing_pages() if page.removesuffix("/index") in ABOUT]
    trees = {
        FOLDERS["start"]: [f"{_short(p)} <{page_of(p)}>" for p in here],
        FIVE: [f"{RESULTS[page_of(p)]} <{page_of(p)}>" for p in results()],
        "Derivations and studies": wings,
        "Reference": ["papers", "api", "names", "gallery", "bibliography"],
    }
    trees["Reference"] += ["built"] if "built" in wing_pages() else []
    return "\n\n".join(_toctree(pages, f":caption: {c}\n") for c, pages in trees.items() if pages)


def _short(path):
    "A page for users in the list beside the text: `09_which_layer` -> Which layer."
    words = re.sub(r"^\d+_", "", path.stem).replace("_", " ")
    return words.upper() if words == "faq" else words.capitalize()


def _toctree(pages, options=""):
    return "```{toctree}\n:hidden:\n" + options + "\n" + "\n".join(pages) + "\n```"


@cache
def wing_pages():
    "Map from pages of folders to their text: for readers, implementation, and their index."
    pages, parts = {}, {}
    for folder, about in ABOUT.items():
        first = [p for p in results() if p.parent.name == folder]
        if first + read_in(folder):
            pages[f"{folder}/index"] = _wing(FOLDERS[folder], about, read_in(folder), first)
    for folder, heading in BUILT.items():
        if built_in(folder):
            page = f"{folder}/built" if f"{folder}/index" in pages else f"{folder}/index"
            pages[page] = _wing(heading, ABOUT_BUILT[folder], built_in(folder))
            parts[page] = f"* [{heading}](/{page}.md): {ABOUT_BUILT[folder]}"
    if parts:
        text, tree = "\n".join(parts.values()), _toctree(f"/{page}" for page in parts)
        pages["built"] = f"# {HOW_BUILT}\n\n{ABOUT_HOW_BUILT}\n\n{text}\n\n{tree}\n"
    return pages


def _wing(heading, about, here, first=()):
    "A page of chapters, each with the sentence that states its result."
    text = "\n".join(f"* [{_title(p)}](/{page_of(p)}.ipynb): {_result(p)}" for p in here)
    if first:
        links = "\n".join(f"* [{_title(p)}](/{page_of(p)}.ipynb): {_result(p)}" for p in first)
        text = f"Read first:\n\n{links}\n\nThen:\n\n{text}"
    tree = _toctree(f"{_title(p)} </{page_of(p)}>" for p in here)
    return f"# {heading}\n\n{about}\n\n{text}\n\n{tree}\n"


@cache
def front_door():
    "Public name -> its module, as `taskpriors.NAME` offers it, without importing the package."
    path = ROOT / "taskpriors" / "__init__.py"
    if not path.exists():
        return {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_NAMES":
            names = ast.literal_eval(node.value)
            return {name: module for module, line in names.items() for name in line.split()}
    return {}


@cache
def home_of(name):
    "The chapter that derives a public name; its module may re-export the name."
    promised = front_door()[name]
    of = {module_of(p): p for p in chapters() if module_of(p)}
    found = [promised] + [m for m in of if name in dict(exported(m))]
    return of[next((m for m in found if name in dict(exported(m))), promised)]


def _names_in(node, own):
    "Public names that a piece of code uses: `tp.NAME`, or NAME if it is not in `own`."
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == "tp":
            yield part.attr
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in own:
            yield part.id


@cache
def _used(path):
    "The public names in the visible code cells."
    shown = [
        ast.parse(re.sub(r"^\s*[%!].*$", "", source, flags=re.M))
        for kind, source in cells(path)
        if kind == "code" and not re.search(r"^#\|\s*(hide|default_exp)", source, re.M)
    ]
    parts = [node for tree in shown for node in ast.walk(tree)]
    own = {n.arg for n in parts if isinstance(n, ast.arg)}
    own |= {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return {name for tree in shown for name in _names_in(tree, own) if name in front_door()}


def users_of(name):
    "The chapters that use a public name, in reading order, without the one that exports it."
    return [p for p in chapters() if p != home_of(name) and name in _used(p)]


@cache
def examples():
    "Map from public names to an example call; the empty name maps to the common first lines."
    text = (ROOT / "docs" / "examples.py").read_text(encoding="utf-8")
    head, *parts = re.split(r"^# %% (\w+)\n", text, flags=re.M)
    found = {"": head.partition('"""\n\n')[2]}
    return found | dict(zip(parts[::2], parts[1::2], strict=True))


def call_first(path):
    "Example calls of the public names of a chapter, for the top of its page."
    if path.parent.name not in ENTERED:
        return None
    names = [name for name in front_door() if home_of(name) == path]
    calls = [examples()[name].strip() for name in names]
    if not calls:
        return None
    code = "\n".join(["import taskpriors as tp", "", *dict.fromkeys(calls)])
    links = ", ".join(f"[`tp.{name}`](#{label_of(name)})" for name in names)
    given = "The page of [all functions](/api.md) defines the variables in these calls."
    return f"```python\n{code}\n```\n\nFor users: {links}. {given}"


def label_of(name):
    "The label of a name on the page of functions; labels ignore case, and `METRICS` is a constant."
    return f"tp.{name}.constant" if name.isupper() else f"tp.{name}"


GROUPS = {  # public names by purpose, in this order
    "Rank models": ENTERED,
    "A prior over tasks": ("prior",),
    "Metrics and agreement": ("transfer", "papers"),
    "SynBench": ("synbench",),
    "Kernels and probes": ("kernels", "probes"),
}


MOST_USERS = 5  # number of chapters listed below a function, in reading order


def api_page(targets):
    "The public names, each with an example and the chapters that use it."
    lines = [
        "---\ntocdepth: 2\n---",
        "# Functions for users",
        "",
        "These names are available after `import taskpriors as tp`. Each has an example, its "
        "parameters, and links to the chapters that use it. "
        "The [index of names](names.md) also lists the names that are not part of this interface. "
        "The examples begin with these lines:",
        "",
        f"```python\n{examples()[''].strip()}\n```",
    ]
    for heading, roots in GROUPS.items():
        names = [n for n, m in front_door().items() if m.split(".")[0] in roots]
        lines += ["", f"## {heading}"]
        for name in names:
            lines += _front_entry(name, targets)
    return "\n".join(lines) + "\n"


def _front_entry(name, targets):
    "A public name: summary, example, and the chapters that derive and use it."
    home = home_of(name)
    module = module_of(home)
    target = target_of(module, name)
    doc = dict(exported(module)).get(name, "")
    yield from ("", f"({label_of(name)})=", "", f"### tp.{name}", "", doc, "")
    if name in examples():
        yield f"```python\n{examples()[name].strip()}\n```\n"
    node = definition(module, name)
    if node is not None:
        head = signature(node, module)
        yield f"<details><summary>Parameters</summary>\n\n```python\n{head}\n```\n\n</details>\n"
    origin = f"Derived in [{_title(home)}](/{page_of(home)}.ipynb)"
    yield origin + (f"; [its parameters](#{target})." if target in targets else ".")
    used = users_of(name)
    if used:
        links = " · ".join(f"[{_title(p)}](/{page_of(p)}.ipynb)" for p in used[:MOST_USERS])
        more = len(used) - MOST_USERS
        yield f"Used in: {links}" + (f" · and {more} more" if more > 0 else "")


def gallery(pages):
    "A notebook of the figures of all chapters (path, notebook as staged), each under its link."
    import nbformat

    found = nbformat.v4.new_notebook()
    text = "# Gallery\n\nAll figures of the site, each below a link to its chapter."
    found.cells.append(nbformat.v4.new_markdown_cell(text, id="gallery"))
    for path, page in pages:
        drawn = [
            (k, cell, out)
            for k, cell in enumerate(page.cells)
            for out in cell.get("outputs", [])
            if "image/png" in out.get("data", {})
        ]
        for k, cell, out in drawn:
            id = f"{path.parent.name}-{path.stem}-{k}"
            link = f"[{_title(path)}](/{page_of(path)}.ipynb)"
            found.cells.append(nbformat.v4.new_markdown_cell(link, id=f"{id}-link"[-64:]))
            one = nbformat.v4.new_code_cell("plot()", id=id[-64:], outputs=[out])
            image = dict(cell.metadata.get("mystnb", {}).get("image", {}), width="420px")
            one.metadata = dict(tags=["remove-input"], mystnb=dict(image=image))
            found.cells.append(one)
    return nbformat.writes(found)


def names_page(targets):
    "All exported names, linked to their derivation if it is among `targets`."
    lines = [
        "---\ntocdepth: 2\n---",
        "# Index of names",
        "",
        "All names in reading order, linked to the cell that derives and tests them "
        "([alphabetical index](genindex)). Names in **bold** are public and keep their path. "
        "The other names can be imported by their path as well, but may move.",
    ]
    for folder, heading in FOLDERS.items():
        here = [p for p in chapters() if p.parent.name == folder and module_of(p)]
        lines += ["", f"## {heading}"] if here else []
        for path in here:
            lines += _module_entry(path, targets)
    return "\n".join(lines) + "\n"


def _module_entry(path, targets):
    "The names of one module."
    module = module_of(path)
    if not exported(module):
        return
    yield from ("", f"### taskpriors.{module}", "", f"From {{doc}}`/{page_of(path)}`.", "")
    for name, doc in exported(module):
        target = target_of(module, name)
        entry = f"[`{name}`](#{target})" if target in targets else f"`{name}`"
        entry = f"* **{entry}**" if name.split(".")[0] in promised(module) else f"* {entry}"
        yield entry + (f": {doc}" if doc else "")


def sitemap(address):
    """The pages for search engines.

    The extension for it lists only the pages that one build wrote again.
    """
    pages = ["index", *wing_pages(), "api", "names", "gallery", "papers"]
    pages += ["bibliography", *(page_of(p) for p in chapters() if p.stem != "index")]
    entries = "".join(f"<url><loc>{address}{page}.html</loc></url>\n" for page in pages)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'{head}<urlset xmlns="{space}">\n{entries}</urlset>\n'


def llms(address, about):
    """The site for language models: every page with the sentence that states its result.

    The extension for it writes titles only.
    """
    parts = {FOLDERS["start"]: read_in("start"), FIVE: results()}
    parts |= {FOLDERS[folder]: read_in(folder) for folder in ABOUT}
    parts[HOW_BUILT] = [path for folder in BUILT for path in built_in(folder)]
    lines = ["# taskpriors", "", f"> {about}"]
    for heading, here in parts.items():
        lines += ["", f"## {heading}", ""] if here else []
        lines += [f"- [{_title(p)}]({address}{page_of(p)}.html): {_result(p)}" for p in here]
    lines += ["", "## Reference", ""]
    for page, what in {
        "api": "Functions for users, each with an example and the chapters that use it.",
        "names": "All names; public names are in bold.",
        "papers": "The items of the papers, with the cells that prove or reproduce them.",
    }.items():
        lines.append(f"- [{page}]({address}{page}.html): {what}")
    return "\n".join(lines) + "\n"


def papers_page(targets):
    "The items of the papers, with the cells that prove or reproduce them."
    shown = marks()
    lines = [
        "# Map of the papers",
        "",
        "This page lists every theorem, lemma, algorithm, figure and table of the three papers, "
        "with the cell that proves or reproduces it. "
        "It is collected from the notebooks when the site is built.",
        "",
        "**proved**: a notebook proves the statement and checks each line numerically. "
        "**refuted**: a proof or the paper's own numbers contradict the statement. "
        "**compared with the paper**: a cell or a command computes a number and compares it with "
        "the printed one. It needs neither networks nor images; the text states which part of the "
        "item is compared. "
        "**not yet compared**: a command downloads the paper's networks and makes the same "
        "comparison, but has not been run at full size. "
        "**implemented only**: the method runs on networks or data other than the paper's, or the "
        "paper prints no number. "
        "**not computational**: a drawing, or a text without a number. "
        "**not reproducible**: the reason is given in the row. "
        "A command computes the item at full size; with `--miniature` it computes a small version.",
        "",
        f"For {n_computed_here()} items, some of them proved or refuted, a number computed without "
        "a neural network is compared with the published one. The table counts the rows below.",
        "",
        *_count_lines(),
    ]
    for paper, items in catalogue().items():
        lines += [
            "",
            f"## {paper}",
            "",
            ":::{table}",
            ":class: papers",
            "",
            "| item | what it says | status | where |",
            "|---|---|---|---|",
        ]
        lines += [
            _paper_row(what, text, shown.get((paper, what), []), targets)
            for what, text in items.items()
        ]
        lines += [":::"]
    return "\n".join(lines) + "\n"


def _count_lines():
    "Table with the number of items of each paper and grade."
    counts = counted_items()
    total = {name: sum(row[name] for row in counts.values()) for name in GRADES}
    lines = [f"| paper | items | {' | '.join(GRADES)} |", "|---" * (len(GRADES) + 2) + "|"]
    for paper, row in {**counts, "all": total}.items():
        numbers = " | ".join(str(row[name]) for name in GRADES)
        lines.append(f"| {paper} | {sum(row.values())} | {numbers} |")
    return lines


def _paper_row(what, line, hits, targets):
    text, _, command = line.partition(" => ")
    text, _, reason = text.partition(" -- ")
    where = ", ".join(
        f"[{_title(path)}](#{item.label})"
        if item.label in targets
        else f"{{doc}}`/{page_of(path)}`"
        for item, path in hits
    )
    status = grade(line, [item.status for item, _ in hits])
    reason = reason or " ".join(recipe_notes(command))
    parts = [where, reason, f"`{command}`" if command else ""]
    return f"| {what} | {text} | {status} | {'; '.join(p for p in parts if p)} |"


@cache
def recipe_notes(command):
    "Notes of the recipes of an item."
    return list(dict.fromkeys(note for recipe in recipes_of(command) for note in recipe.notes))


def _title(path):
    "The title of a notebook."
    return next(
        m[1]
        for kind, source in cells(path)
        for m in [re.match(r"# (.*)", source)]
        if m and kind == "markdown"
    )


def _result(path):
    "The sentence below the title of a notebook."
    return next(
        m[1] for kind, source in cells(path) for m in [re.search(r"^> (.*)", source, re.M)] if m
    )
