"Sphinx configuration of the site; `docs/build.py` stages the notebooks and calls it."

import configparser
import re
from pathlib import Path

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge
from sphinx.util.osutil import relative_uri

_root = Path(__file__).parent.parent
_cfg = configparser.ConfigParser(delimiters=["="])
_cfg.read(_root / "settings.ini", encoding="utf-8")
_cfg = _cfg["DEFAULT"]

project, author, release = _cfg["lib_name"], _cfg["author"], _cfg["version"]
copyright = _cfg["copyright"]
extensions = [
    "myst_nb",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
    "sphinxext.opengraph",
    "notfound.extension",
]
exclude_patterns = ["notebooks"]  # the originals, to be downloaded
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
nb_merge_streams = False  # text stands above the table it introduces
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_inline", "colon_fence"]
myst_heading_anchors = 3
suppress_warnings = [
    "mystnb.unknown_mime_type",
    "myst.header",
]  # nbdev puts names at level 3 wherever they stand

copybutton_selector = "div.cell_input pre, div[class*=highlight-]:not(.cell_output *) > div > pre"
proof_minimal_theme = True
bibtex_bibfiles = ["references.bib"]
ogp_social_cards = {"enable": False}  # one card for all pages
ogp_image = "_static/card.png"
ogp_image_alt = "taskpriors: rank representation models on a distribution over tasks"
ogp_site_url = html_baseurl = f"{_cfg['doc_host']}{_cfg['doc_baseurl']}/"
html_search_scorer = str(Path(__file__).with_name("search_scorer.js"))
notfound_urls_prefix = f"{_cfg['doc_baseurl']}/"
notfound_context = {
    "title": "Page not found",
    "body": "<h1>Page not found</h1>\n<p>The page may have moved: its address is the name of a "
    "chapter without its number. Use the search, or start at the front page.</p>",
}

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = [str(Path(__file__).parent / "_static")]
html_css_files = ["taskpriors.css"]
html_js_files = ["search.js", "checks.js"]
html_favicon = str(Path(__file__).parent / "_static" / "favicon.svg")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5c94",
        "color-brand-content": "#0b5c94",
        "color-brand-visited": "#6b3fa0",
        "color-foreground-muted": "#5c6167",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ecbf5",
        "color-brand-content": "#8ecbf5",
        "color-brand-visited": "#cdb4f0",
        "color-foreground-muted": "#a0a6ad",
    },
}


class WrappedLines(HtmlFormatter):
    "Put each line of code into a span, so that long lines wrap below their indentation."

    def wrap(self, source):
        return super().wrap(self._spans(source))

    def _spans(self, source):
        for is_code, line in source:
            indent = len(re.sub(r"<[^>]*>", "", line)) - len(
                re.sub(r"<[^>]*>", "", line).lstrip(" ")
            )
            yield (
                is_code,
                f'<span class="line" style="--i:{indent + 4}ch">{line}</span>' if is_code else line,
            )


PygmentsBridge.html_formatter = WrappedLines


_TREE = re.compile(
    r'<ul>|</ul>|<li class="(toctree-l\d+)"><a class="reference internal" href="([^"]+)">'
)


def _marked(tree, page, above, uri_of):
    """The list of all pages as one of them shows it: with its addresses, and itself marked.

    `tree` is the list as the front page shows it, and `above` are the pages over this one.
    """
    lists, out, last = [], [], 0
    for part in _TREE.finditer(tree):
        out.append(tree[last : part.start()])
        last = part.end()
        out.append(part[0])
        if part[0] == "<ul>":
            lists.append(len(out) - 1)
        elif part[0] == "</ul>":
            lists.pop()
        else:
            level, target = part[1], part[2]
            here = target.removesuffix(".html")
            link = f'<a class="reference internal" href="{uri_of(target)}">'
            if here == page:
                link = '<a class="current reference internal" href="#">'
            if here == page or here in above:
                out[lists[-1]] = '<ul class="current">'
                level += " current"
            out[-1] = f'<li class="{level}">{link}'
    return "".join([*out, tree[last:]])


def share_navigation(app, page, template, context, doctree):
    """Write the list of all pages once, and not for each page anew.

    Sphinx copies the contents of every page for it, which is half of its work on a site of two
    hundred pages.
    """
    if page not in app.env.all_docs:  # such as the page for a missing page, with its own addresses
        return
    builder = app.builder
    root = app.config.root_doc
    known = builder.taskpriors_navigation = getattr(builder, "taskpriors_navigation", {})

    def toctree(**options):
        key = tuple(sorted(options.items()))
        if key not in known:
            known[key] = builder._get_local_toctree(root, **options)
        parents = {sub: p for p, subs in app.env.toctree_includes.items() for sub in subs}
        above, k = [], page
        while k in parents and parents[k] not in above:
            k = parents[k]
            above.append(k)
        return _marked(known[key], page, above, lambda uri: relative_uri(here, uri))

    here = builder.get_target_uri(page)
    context["toctree"] = toctree


def setup(app):
    app.connect("html-page-context", share_navigation, priority=400)  # the theme reads it at 500
