"""Build the site from the notebooks, with what pip installs and no network.

    python docs/build.py            the whole site, into _docs
    python docs/build.py --readme   README.md from nbs/index.ipynb
    python docs/build.py --check    fail if README.md is stale

Notebooks go through nbdev (documentation of exported names, hidden cells), then through `adapt` into what MyST-NB reads, then to Sphinx.
"""
import argparse
import multiprocessing
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
from notebooks import PROC, ROOT, BuildError, chapters, check_notebook, page_of, process_one, target_of, target_of_anchor
from pages import api_page, front_toctree, papers_page, shown_items

SITE, OUT = PROC/"site", ROOT/"_docs"


def process(paths):
    "Process the notebooks that changed since the last build, two at a time."
    settings = (ROOT/"settings.ini").stat().st_mtime
    def stale(p):
        done = PROC/p.relative_to(ROOT/"nbs")
        return not done.exists() or done.stat().st_mtime < max(p.stat().st_mtime, settings)
    paths = [p for p in paths if stale(p)]
    if not paths: return
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for path, reason in zip(paths, pool.map(process_one, paths)):
            if reason: raise BuildError(path, None, reason)


def adapt(nb, source):
    "Turn a notebook processed by nbdev into one that MyST-NB shows as intended; `source` is its path in the repository."
    cells, n_front = [], 0
    for cell in nb.cells:
        if cell.cell_type == "raw" and cell.source.strip().startswith("---"):
            cells.append(nbformat.v4.new_markdown_cell(_title(cell.source, source)))
            n_front += 1
        elif cell.cell_type == "markdown":
            cell.source = _links(re.sub(r"<!--\s*WARNING: THIS FILE.*?-->", "", cell.source), source)
            cell.source = re.sub(r"(?<=\n)(\$\$[^$]+\$\$)(?=\n)", r"\n\1\n", cell.source)  # MyST wants displays apart from the text
            cells += [cell] if cell.source.strip() else []
        elif cell.cell_type == "code":
            cells += _code(cell, source, "###" if any(re.search(r"^## ", c.source, re.M) for c in cells[1:]) else "##")
    if n_front == 0: raise BuildError(source, 1, "no title: the second cell must be '# Title' and one '> sentence'")
    nb.cells = [c for c in cells if c is not None]
    nb.metadata = {"kernelspec": {"display_name": "python3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
    return nb


def _title(front, source):
    import yaml
    meta = yaml.safe_load(front.strip().strip("-"))
    rel = source.relative_to(ROOT).as_posix()
    link = "" if source.stem == "index" else f"\n\n[Open this notebook]({_url(rel)}){{.notebook-link}}"
    return f"# {meta['title']}\n\n{meta.get('description', '')}{link}"


def _url(rel):
    import configparser
    cfg = configparser.ConfigParser(delimiters=["="])
    cfg.read(ROOT/"settings.ini", encoding="utf-8")
    return f"{cfg['DEFAULT']['git_url']}/blob/{cfg['DEFAULT']['branch']}/{rel}"


def _code(cell, source, level):
    "A code cell, or the documentation that `show_doc` put in its place."
    directives = re.findall(r"^#\|\s*([\w-]+):?\s*(.*)$", cell.source, re.M)
    if "show_doc(" in cell.source and cell.outputs and any(k == "output" and v == "asis" for k, v in directives):
        name = re.search(r"show_doc\(([\w.]+)", cell.source)[1]
        return [nbformat.v4.new_markdown_cell(_doc(cell.outputs[0]["data"]["text/markdown"], name, source, level))]
    tags = {("echo", "false"): "remove-input", ("code-fold", "true"): "hide-input", ("code-fold", "show"): "hide-input"}
    cell.metadata["tags"] = [tags[d] for d in directives if d in tags]
    cell.source = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M).strip("\n")
    for out in cell.outputs:  # the text of a figure object says nothing to a reader
        if "image/png" in out.get("data", {}): out["data"].pop("text/plain", None)
    return [cell] if cell.source.strip() or cell.outputs else []


def _doc(md, name, source, level):
    "What show_doc printed: a target to link to, a heading, the signature, the docstring."
    md = re.sub(r"\A---\n+", "", md.strip())
    link = re.search(r"\[source\]\(([^)]*)\)(\{[^}]*\})?\n*", md)
    if link: md = md.replace(link[0], "") + f"\n\n[source]({link[1]}){{.source-link}}"
    md = re.sub(r"\A#+", level, md.strip())
    module = page_of(source).replace("/", ".")
    return f"({target_of(module, name)})=\n{_links(md, source)}"


def _links(md, source):
    "Absolute links to our own site and links to notebooks become links between pages."
    site = r"https://taskpriors\.github\.io/taskpriors/([\w/]+)\.html"
    md = re.sub(rf"\]\({site}#([\w.]+)\)", lambda m: f"](#{target_of_anchor(m[1].replace('/', '.'), m[2])})", md)
    md = re.sub(rf"\]\({site}\)", r"](/\1.ipynb)", md)
    def notebook(m):
        target = (source.parent/m[1]).resolve()
        if not target.exists(): raise BuildError(source, None, f"a link to {m[1]}, which does not exist")
        return f"](/{page_of(target)}.ipynb)"
    return re.sub(r"\]\((?!/|https?:)([^)\s#]+\.ipynb)(?:#[^)]*)?\)", notebook, md)


def _anchor_items(nb, source):
    "Put a target before each cell that says what of the papers it shows."
    for k, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            for item in shown_items(cell.source, source, k): cell.source = f"({item.label})=\n\n{cell.source}"
    return nb


def stage():
    "Write everything Sphinx reads into _proc/site; unchanged files keep their time, so that Sphinx skips them."
    process(chapters())
    wanted = {}
    for path in chapters():
        nb = adapt(nbformat.read(PROC/path.relative_to(ROOT/"nbs"), 4), path)
        wanted[f"{page_of(path)}.ipynb"] = nbformat.writes(_anchor_items(nb, path))
    front = nbformat.reads(wanted["index.ipynb"], 4)
    front.cells.append(nbformat.v4.new_markdown_cell(front_toctree()))
    wanted["index.ipynb"] = nbformat.writes(front)
    targets = {t for text in wanted.values() for t in re.findall(r"\((taskpriors\.[\w.-]+)\)=", text)}
    wanted |= {"api.md": api_page(targets), "papers.md": papers_page(), "bibliography.md": (ROOT/"docs"/"bibliography.md").read_text(encoding="utf-8")}
    for name, text in wanted.items():
        path = SITE/name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text: path.write_text(text, encoding="utf-8")
    for path in SITE.rglob("*"):
        if path.is_file() and path.relative_to(SITE).as_posix() not in wanted: path.unlink()


def build():
    "Check, stage, and run Sphinx with every warning an error."
    from sphinx.cmd.build import main
    for path in chapters(): check_notebook(path)
    stage()
    status = main(["-b", "html", "-c", str(ROOT/"docs"), "-d", str(PROC/"doctrees"), "-W", "--keep-going", "-q", str(SITE), str(OUT)])
    if status: raise SystemExit("docs/build.py: Sphinx stopped at the warnings above; paths below _proc/site carry the notebook's name")
    print(f"the site is in {OUT.name}/index.html")


def readme():
    "README.md as text, and its figures as (name, bytes)."
    from nbconvert import MarkdownExporter
    process([ROOT/"nbs"/"index.ipynb"])
    nb = nbformat.read(PROC/"index.ipynb", 4)
    source = ROOT/"nbs"/"index.ipynb"
    nb = adapt(nb, source)
    for cell in nb.cells:
        if "remove-input" in cell.metadata.get("tags", []): cell.source = ""
    text, res = MarkdownExporter().from_notebook_node(nb)
    names = {name: f"index_files/figure-{k}.png" for k, name in enumerate(res["outputs"])}
    for name, new in names.items(): text = re.sub(rf"!\[[^\]]*\]\({re.escape(name)}\)", f"![{_caption(nb)}]({new})", text)
    text = re.sub(r"\]\(/([\w/]+)\.ipynb\)", lambda m: f"]({_repo_path(m[1])})", text)
    text = re.sub(r"\]\(#taskpriors\.([\w.]+)\.(\w+)(?:-class)?\)", lambda m: f"](https://taskpriors.github.io/taskpriors/{m[1].replace('.', '/')}.html#{m[2]})", text)
    text = re.sub(r"```python\n\s*```\n", "", text)
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?s)<style.*?</style>", "", text)).strip() + "\n"
    return "<!-- made from nbs/index.ipynb by docs/build.py --readme -->\n\n" + text, {names[k]: v for k, v in res["outputs"].items()}


def _caption(nb):
    return next((m[1] for c in nb.cells for m in [re.search(r"fig-alt:\s*(.*)", c.source)] if m), "Ranking of models over all tasks")


def _repo_path(page):
    return next(p.relative_to(ROOT).as_posix() for p in chapters() if page_of(p) == page)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--readme", action="store_true", help="write README.md")
    args.add_argument("--check", action="store_true", help="fail if README.md is stale")
    args.add_argument("--clean", action="store_true", help="forget earlier builds first")
    args = args.parse_args()
    try:
        if args.clean: [shutil.rmtree(p, ignore_errors=True) for p in (PROC, OUT)]
        if not (args.readme or args.check): return build()
        text, figures = readme()
        if args.check and (ROOT/"README.md").read_text(encoding="utf-8") != text: raise SystemExit("README.md is stale: run python docs/build.py --readme")
        if args.readme:
            (ROOT/"README.md").write_text(text, encoding="utf-8")
            for name, data in figures.items():
                (ROOT/name).parent.mkdir(exist_ok=True)
                (ROOT/name).write_bytes(data)
    except BuildError as e: raise SystemExit(str(e))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
