"""Build the site from the notebooks, with what pip installs and no network.

    python docs/build.py            the whole site, into _docs
    python docs/build.py --readme   README.md from nbs/index.ipynb
    python docs/build.py --check    fail if README.md is stale

Notebooks go through nbdev (documentation of exported names, hidden cells), then through `adapt`
into what MyST-NB reads, then to Sphinx.
"""

import argparse
import gc
import io
import multiprocessing
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path

import nbformat
from adapt import adapt, anchor_items, documented, settings
from notebooks import PROC, ROOT, BuildError, chapters, check_notebook, page_of, process_one
from pages import (
    api_page,
    call_first,
    front_toctree,
    gallery,
    llms,
    names_page,
    papers_page,
    sitemap,
    wing_pages,
)

SITE, OUT = PROC / "site", ROOT / "_docs"


def process(paths):
    "Process the notebooks that changed since the last build; many of them, two at a time."
    settings = max((ROOT / name).stat().st_mtime for name in ("settings.ini", "docs/notebooks.py"))

    def stale(p):
        done = PROC / p.relative_to(ROOT / "nbs")
        return not done.exists() or done.stat().st_mtime < max(p.stat().st_mtime, settings)

    paths = [p for p in paths if stale(p)]
    if len(paths) < 8:  # a process imports nbdev in the time of a dozen notebooks
        reasons = [process_one(path) for path in paths]
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            reasons = [*pool.map(process_one, paths)]
    for path, reason in zip(paths, reasons, strict=True):
        if reason:
            raise BuildError(path, None, reason)


def stage():
    "Write the sources of Sphinx to _pages/site; unchanged files keep their time and are skipped."
    process(chapters())
    read = {path: nbformat.read(PROC / path.relative_to(ROOT / "nbs"), 4) for path in chapters()}
    names = documented(read.items())
    pages, wanted = [], {}
    for path, nb in read.items():
        page = anchor_items(adapt(nb, path, names), path)
        pages.append((path, page))
        call = call_first(path)
        if call:
            page.cells.insert(1, nbformat.v4.new_markdown_cell(call, id="call-first"))
        wanted[f"{page_of(path)}.ipynb"] = nbformat.writes(page)
    front = nbformat.reads(wanted["index.ipynb"], 4)
    front.cells.append(nbformat.v4.new_markdown_cell(front_toctree(), id="contents"))
    wanted["index.ipynb"] = nbformat.writes(front)
    targets = {
        t
        for text in wanted.values()
        for t in re.findall(r"\(((?:taskpriors\.|shows-)[\w.-]+)\)=", text)
    }
    wanted |= {
        "api.md": api_page(targets),
        "names.md": names_page(targets),
        "papers.md": papers_page(targets),
        "gallery.ipynb": gallery(pages),
    }
    wanted |= {f"{page}.md": text for page, text in wing_pages().items()}
    for name in ("bibliography.md", "references.bib"):
        wanted[name] = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for path in chapters():
        original = path.relative_to(ROOT / "nbs").as_posix()
        wanted[f"notebooks/{original}"] = path.read_text(encoding="utf-8")
    index = SITE / "index.ipynb"
    if index.exists() and index.read_text(encoding="utf-8") != wanted["index.ipynb"]:
        shutil.rmtree(OUT, ignore_errors=True)  # the list of pages stands on every page
    for name, text in wanted.items():
        path = SITE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in SITE.rglob("*"):
        if path.is_file() and path.relative_to(SITE).as_posix() not in wanted:
            path.unlink()


def build():
    "Check and stage the notebooks, and run Sphinx; a warning is an error with notebook and cell."
    from sphinx.cmd.build import main

    gc.set_threshold(100_000, 20, 100)  # all pages are kept, so that collections free little
    for path in chapters():
        check_notebook(path)
    stage()
    with redirect_stderr(io.StringIO()) as told:
        status = main(
            [
                "-b",
                "html",
                "-c",
                str(ROOT / "docs"),
                "-d",
                str(PROC / "doctrees"),
                "-W",
                "--keep-going",
                "--no-color",
                "-q",
                str(SITE),
                str(OUT),
            ]
        )
    if status:
        shutil.rmtree(
            PROC / "doctrees", ignore_errors=True
        )  # or the next build would skip the page and pass
        raise SystemExit("docs/build.py: the site was not built.\n" + _told(told.getvalue()))
    made = {p.relative_to(SITE).with_suffix(".html") for p in SITE.rglob("*") if p.is_file()} | {
        Path("genindex.html"),
        Path("search.html"),
        Path("404.html"),
    }
    for page in OUT.rglob("*.html"):
        if page.relative_to(OUT) not in made and "_static" not in page.parts:
            page.unlink()  # of a notebook that is gone
    if "report/page" in map(page_of, chapters()):  # which shows it
        example_report(OUT / "_static" / "example_report.html")
    address = settings()["doc_host"] + settings()["doc_baseurl"] + "/"
    (OUT / "sitemap.xml").write_text(sitemap(address), encoding="utf-8")
    (OUT / "llms.txt").write_text(llms(address, settings()["description"]), encoding="utf-8")
    print(f"the site is in {OUT.name}/index.html")


def example_report(path):
    "Write the report that the chapter on reports shows, on six small models and fifty labels."
    import taskpriors as tp

    names = ["pixels", "blocks", "pca", "gradients", "projection", "random_relu"]
    digits = tp.load_images("digits", limit=400)  # reference models sees them, too
    labels = [y if k % 8 == 0 else None for k, y in enumerate(digits.labels.tolist())]
    models = [f"zoo/{name}" for name in names]
    tp.rank_models(
        models,
        digits,
        labels=labels,
        tasks=tp.Tasks(n_tasks=60),
        compute=tp.Compute(progress=False),
    ).report(path)


def _told(warnings):
    """Sphinx's warnings with the notebook and the cell instead of the staged page and its line.

    MyST-NB counts 10,000 lines a cell.
    """
    sources = {page_of(p): p for p in chapters()}

    def where(m):
        path = sources.get(m[1])
        if path is None:
            return m[0]
        k = int(m[2] or 0) // 10000
        return path.relative_to(ROOT).as_posix() + (f", {_cell(path, m[1], k)}: " if k else ": ")

    return re.sub(
        rf"^{re.escape(str(SITE))}/([\w/]+)\.ipynb(?::(\d+))?: (?:WARNING|ERROR): ",
        where,
        warnings,
        flags=re.M,
    )


def _cell(path, page, k):
    "Number of the cell of a notebook from which cell k of its staged page was made."
    staged, cells = nbformat.read(SITE / f"{page}.ipynb", 4).cells, nbformat.read(path, 4).cells
    here = staged[min(k, len(staged)) - 1]
    found = next((n for n, c in enumerate(cells, 1) if c.get("id") == here.get("id")), None)
    return f"cell {found}" if found else f"a cell made from it, '{here.source[:60]}'"


def readme():
    "README.md as text, and its figures as (name, bytes)."
    from nbconvert import MarkdownExporter

    process([ROOT / "nbs" / "index.ipynb"])
    nb = nbformat.read(PROC / "index.ipynb", 4)
    source = ROOT / "nbs" / "index.ipynb"
    nb = adapt(nb, source, {})
    for cell in nb.cells:
        if "remove-input" in cell.metadata.get("tags", []):
            cell.source = ""
    text, res = MarkdownExporter().from_notebook_node(nb)
    names = {name: f"index_files/figure-{k}.png" for k, name in enumerate(res["outputs"])}
    captions = [c.metadata["mystnb"]["image"]["alt"] for c in nb.cells if "mystnb" in c.metadata]
    for (name, new), caption in zip(names.items(), captions, strict=True):
        text = re.sub(rf"!\[[^\]]*\]\({re.escape(name)}\)", f"![{caption}]({new})", text)
    site = settings()["doc_host"] + settings()["doc_baseurl"]
    text = re.sub(r"\]\(/([\w/]+)\.ipynb\)", lambda m: f"]({_repo_path(m[1])})", text)
    text = re.sub(r"\]\(/([\w/]+)\.md\)", rf"]({site}/\1.html)", text)
    text = re.sub(
        r"\]\(#taskpriors\.([\w.]+)\.(\w+)(?:-class)?\)",
        lambda m: f"]({site}/{m[1].replace('.', '/')}.html#{m[2]})",
        text,
    )
    text = re.sub(r"```python\n\s*```\n", "", text)
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?s)<style.*?</style>", "", text)).strip() + "\n"
    return "<!-- made from nbs/index.ipynb by docs/build.py --readme -->\n\n" + text, {
        names[k]: v for k, v in res["outputs"].items()
    }


def _repo_path(page):
    return next(p.relative_to(ROOT).as_posix() for p in chapters() if page_of(p) == page)


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--readme", action="store_true", help="write README.md")
    args.add_argument("--check", action="store_true", help="fail if README.md is stale")
    args.add_argument("--clean", action="store_true", help="delete earlier builds first")
    args = args.parse_args()
    try:
        if args.clean:
            [shutil.rmtree(p, ignore_errors=True) for p in (PROC, OUT)]
        if not (args.readme or args.check):
            return build()
        text, figures = readme()
        if args.check and (ROOT / "README.md").read_text(encoding="utf-8") != text:
            raise SystemExit("README.md is stale: run python docs/build.py --readme")
        if args.readme:
            (ROOT / "README.md").write_text(text, encoding="utf-8")
            for name, data in figures.items():
                (ROOT / name).parent.mkdir(exist_ok=True)
                (ROOT / name).write_bytes(data)
    except BuildError as e:
        raise SystemExit(str(e)) from e


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
