"The pages that are generated: contents, the index of names, the map of the papers."

import re

from notebooks import (
    FOLDERS,
    catalogue,
    cells,
    chapters,
    exported,
    module_of,
    page_of,
    shown_items,
    target_of,
)


def front_toctree():
    "Hidden tables of contents, one a wing, in reading order."
    trees = []
    for folder, caption in {"nbs": "Front page", **FOLDERS}.items():
        here = [p for p in chapters() if p.parent.name == folder and p.stem != "index"]
        pages = [f"{_title(p)} <{page_of(p)}>" for p in here]
        if pages:
            trees.append(
                "```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```"
            )
    trees.append("```{toctree}\n:hidden:\n:caption: Reference\n\napi\npapers\nbibliography\n```")
    return "\n\n".join(trees)


def api_page(targets):
    "Every exported name, linked to where it is derived, if that is among `targets`."
    lines = [
        "# Index of names",
        "",
        "Every public name in reading order, linked to the cell that derives and tests it; "
        "the same [from A to Z](genindex).",
    ]
    for path in chapters():
        module = module_of(path)
        if module is None or not exported(module):
            continue
        lines += ["", f"## taskpriors.{module}", "", f"From {{doc}}`/{page_of(path)}`.", ""]
        for name, doc in exported(module):
            target = target_of(module, name)
            lines.append(
                (f"* [`{name}`](#{target})" if target in targets else f"* `{name}`")
                + (f": {doc}" if doc else "")
            )
    return "\n".join(lines) + "\n"


def papers_page(targets):
    "Which cell proves or reproduces which item of the papers."
    shown = {}
    for path in chapters():
        for k, (kind, source) in enumerate(cells(path), 1):
            if kind == "markdown":
                for item in shown_items(source, path, k):
                    shown.setdefault((item.paper, item.what), []).append((item, path))
    lines = [
        "# Map of the papers",
        "",
        "Every theorem, lemma, algorithm, figure and table of the three papers, and the cell that "
        "proves or reproduces it. "
        "This page is collected from the notebooks when the site is built.",
        "",
        "**proved**: in our words, each line checked by number. "
        "**reproduced**: the published result comes out. "
        "**implemented**: the method, on data of our own. "
        "**partly**: some of it, the notebook says which. **refuted**: it does not hold. "
        "**left out**: no notebook claims it, for the reason given.",
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
            _paper_row(what, *text.partition(" -- ")[::2], shown.get((paper, what), []), targets)
            for what, text in items.items()
        ]
        lines += [":::"]
    return "\n".join(lines) + "\n"


def _paper_row(what, text, reason, hits, targets):
    where = ", ".join(
        f"[{_title(path)}](#{item.label})"
        if item.label in targets
        else f"{{doc}}`/{page_of(path)}`"
        for item, path in hits
    )
    status = ", ".join(dict.fromkeys(item.status for item, _ in hits)) or "left out"
    return f"| {what} | {text} | {status} | {where or reason} |"


def _title(path):
    "The title of a notebook."
    return next(
        m[1]
        for kind, source in cells(path)
        for m in [re.match(r"# (.*)", source)]
        if m and kind == "markdown"
    )
