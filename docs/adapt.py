"From a notebook that nbdev processed to one that MyST-NB shows as intended."

import ast
import configparser
import re
import textwrap
from functools import lru_cache

import nbformat
from notebooks import (
    ROOT,
    BuildError,
    chapters,
    page_of,
    shown_items,
    target_of,
    target_of_anchor,
)

LIB = ROOT / "taskpriors"


def adapt(nb, source, names):
    "Turn a processed notebook into a page's; `source` is its path in the repository, `names` says where each public name is documented."
    cells, n_front = [], 0
    for cell in nb.cells:
        if cell.cell_type == "raw" and cell.source.strip().startswith("---"):
            cells.append(_markdown(_title(cell.source, source), "title"))
            n_front += 1
        elif cell.cell_type == "markdown":
            cell.source = _links(
                re.sub(r"<!--\s*WARNING: THIS FILE.*?-->", "", cell.source), source, names
            )
            cell.source = re.sub(
                r"(?<=\n)(\$\$[^$]+\$\$)(?=\n)", r"\n\1\n", cell.source
            )  # MyST wants displays apart from the text
            cells += [cell] if cell.source.strip() else []
        elif cell.cell_type == "code":
            cells += _code(
                cell,
                source,
                names,
                "###" if any(re.search(r"^## ", c.source, re.M) for c in cells[1:]) else "##",
            )
    if n_front == 0:
        raise BuildError(
            source, 1, "no title: the second cell must be '# Title' and one '> sentence'"
        )
    nb.cells = _joined(cells) if source.stem == "index" else cells
    nb.metadata = {
        "kernelspec": {"display_name": "python3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return nb


def _joined(cells):
    "On the front page and in the README, imports stand in one block with the code that needs them."
    out = []
    for c in cells:
        last = out[-1] if out else None
        if last is not None and c.cell_type == last.cell_type == "code" and not last.outputs:
            c.source = f"{out.pop().source}\n\n{c.source}"
        out.append(c)
    return out


@lru_cache
def settings():
    cfg = configparser.ConfigParser(delimiters=["="])
    cfg.read(ROOT / "settings.ini", encoding="utf-8")
    return cfg["DEFAULT"]


def url(rel):
    return f"{settings()['git_url']}/blob/{settings()['branch']}/{rel}"


def _markdown(text, id):  # a random id would make every page new in every build
    return nbformat.v4.new_markdown_cell(text, id=id)


def _title(front, source):
    import yaml

    meta = yaml.safe_load(front.strip().strip("-"))
    rel = source.relative_to(ROOT).as_posix()
    links = [f"[Open this notebook]({url(rel)})"]
    module = f"{page_of(source)}.py"
    if (LIB / module).exists():
        links.append(f"[its module]({url('taskpriors/' + module)})")
    foot = (
        ""
        if source.stem == "index"
        else "\n\n" + " · ".join(link + "{.notebook-link}" for link in links)
    )
    return f"# {meta['title']}\n\n{meta.get('description', '')}{foot}"


def _code(cell, source, names, level):
    "A code cell, or the documentation that `show_doc` put in its place."
    directives = re.findall(r"^#\|\s*([\w-]+):?\s*(.*)$", cell.source, re.M)
    if (
        "show_doc(" in cell.source
        and cell.outputs
        and any(k == "output" and v == "asis" for k, v in directives)
    ):
        name = re.search(r"show_doc\(([\w.]+)", cell.source)[1]
        return (
            []
            if name.split(".")[-1].startswith("__") and "." not in name
            else [
                _markdown(
                    _doc(cell.outputs[0]["data"]["text/markdown"], name, source, level, names),
                    re.sub(r"\W", "-", f"doc-{name}"),
                )
            ]
        )
    tags = {
        ("echo", "false"): "remove-input",
        ("code-fold", "true"): "hide-input",
        ("code-fold", "show"): "hide-input",
    }
    cell.metadata["tags"] = [tags[d] for d in directives if d in tags]
    cell.source = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M).strip("\n")
    alt = next((v for k, v in directives if k == "fig-alt"), None)
    if alt:
        cell.metadata["mystnb"] = {"image": {"alt": alt.strip('"')}}
    for out in cell.outputs:
        data = out.get("data", {})
        if "image/png" in data:
            data.pop("text/plain", None)  # the text of a figure object says nothing to a reader
        if "text/plain" in data:
            data["text/plain"] = _fold(data["text/plain"])
        if "text" in out:
            out["text"] = _fold(out["text"])
    return [cell] if cell.source.strip() or cell.outputs else []


def _fold(text, width=100):
    "Fold long lines of printed sentences; a line with columns stays whole and scrolls."

    def whole(line):
        return len(line) <= width or re.search(r"\S {2,}\S", line)

    def fold(line):
        return textwrap.fill(
            line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )

    return "\n".join(line if whole(line) else fold(line) for line in text.split("\n"))


def _doc(md, name, source, level, names):
    "What show_doc printed: an entry of the index, a target to link to, a heading, the signature, the docstring, the source."
    md = re.sub(r"\A---\n+", "", md.strip())
    md = re.sub(r"\[source\]\([^)]*\)(\{[^}]*\})?\n*", "", md)
    md = re.sub(r"\A#+ .*", f"{level} `{name}`", md.strip())
    module = page_of(source).replace("/", ".")
    node = definition(module, name)
    if isinstance(node, ast.ClassDef):
        fields = _fields(node, *_parsed(module))
        if fields:
            md = re.sub(
                r"(?s)```python\n.*?\n```",
                lambda m: f"```python\nclass {name}(\n{fields}\n)\n```",
                md,
                count=1,
            )
    if node is not None:
        file = f"taskpriors/{module.replace('.', '/')}.py"
        md += f"{' ' if md.endswith('*') else chr(10) * 2}[source]({url(file)}#L{node.lineno}){{.source-link}}"
    if isinstance(node, ast.ClassDef):
        md += "\n" + "".join(f"\n* {m}" for m in _methods(node, *_parsed(module)))
    entry = f"```{{index}} single: {name} (taskpriors.{module})\n```"
    return f"{entry}\n\n({target_of(module, name)})=\n{_links(md, source, names, own=name)}"


@lru_cache
def _parsed(module):
    text = (LIB / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    return ast.parse(text).body, text.splitlines()


def definition(module, name):
    "The function, class or patched method of that name in a module."
    found = [
        n
        for n in _parsed(module)[0]
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name.split(".")[-1]
    ]
    return found[-1] if found else None


def _fields(node, body, lines):
    "The fields of a dataclass, those of a base in the same module first, with the comments that explain them."
    bases = [
        n
        for b in node.bases
        for n in body
        if isinstance(n, ast.ClassDef) and n.name == getattr(b, "id", None)
    ]
    above = [_fields(b, body, lines) for b in bases]
    shown = dict.fromkeys(
        lines[n.lineno - 1].strip() for n in node.body if isinstance(n, ast.AnnAssign)
    )
    split = (re.match(r"(.*?)(?:\s+(#.*))?$", line) for line in shown)
    return "\n".join(
        [f for f in above if f] + [f"    {m[1]},{' ' + m[2] if m[2] else ''}" for m in split]
    )


def _methods(node, body, lines):
    "Public methods and properties of a class, written in it or set later, with the first line of their docstrings; patched ones have an entry of their own."
    functions = {f.name: f for f in body if isinstance(f, ast.FunctionDef)}
    methods = [(m.name, m) for m in node.body if isinstance(m, ast.FunctionDef)]
    for targets, values in (
        (t.elts, n.value.elts) if isinstance(t, ast.Tuple) else ([t], [n.value])
        for n in body
        if isinstance(n, ast.Assign)
        for t in n.targets
    ):
        methods += [
            (t.attr, functions[v.id])
            for t, v in zip(targets, values, strict=True)
            if isinstance(t, ast.Attribute)
            and isinstance(v, ast.Name)
            and getattr(t.value, "id", None) == node.name
            and v.id in functions
        ]
    silent = []
    for name, m in methods:
        if name.startswith("_"):
            continue
        prop = any(isinstance(d, ast.Name) and "property" in d.id for d in m.decorator_list)
        doc = (
            (ast.get_docstring(m) or "").split("\n")[0]
            or lines[m.lineno - 1].partition("  # ")[2]
            or lines[m.lineno - 1].partition(" # ")[2]
        )
        call = f"`.{name}{'' if prop else '(' + ', '.join(_args(m.args)) + ')'}`"
        if doc:
            yield f"{call}: {doc}"
        else:
            silent.append(call)
    if silent:
        yield ", ".join(silent)


def _args(a):
    positional = a.posonlyargs + a.args
    start = len(positional) - len(a.defaults)
    out = [
        p.arg if k < start else f"{p.arg}={ast.unparse(a.defaults[k - start])}"
        for k, p in enumerate(positional)
    ][1:]
    out += [f"*{a.vararg.arg}"] if a.vararg else ["*"] if a.kwonlyargs else []
    out += [
        p.arg if d is None else f"{p.arg}={ast.unparse(d)}"
        for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)
    ]
    return out + ([f"**{a.kwarg.arg}"] if a.kwarg else [])


def _links(md, source, names, own=None):
    "Links to our own site and to notebooks become links between pages; public names in backticks become links."
    site = r"https://taskpriors\.github\.io/taskpriors/([\w/]+)\.html"
    md = re.sub(
        rf"\]\({site}#([\w.]+)\)",
        lambda m: f"](#{target_of_anchor(m[1].replace('/', '.'), m[2])})",
        md,
    )
    md = re.sub(rf"\]\({site}\)", r"](/\1.ipynb)", md)

    def notebook(m):
        target = (source.parent / m[1]).resolve()
        if not target.exists():
            raise BuildError(source, None, f"a link to {m[1]}, which does not exist")
        return f"](/{page_of(target)}.ipynb)"

    md = re.sub(r"\]\((?!/|https?:)([^)\s#]+\.ipynb)(?:#[^)]*)?\)", notebook, md)
    return _link_names(md, source, names, own)


def _link_names(md, source, names, own):
    "`trace_moments`, `prior.moments` and chapter 12 become links, outside code blocks, headings, formulas and links."
    here = page_of(source)

    def link(m):
        word = m[1].removeprefix("taskpriors.")
        target = where(word.removesuffix("()"), here, names, sure=word.endswith("()"))
        if target is not None:
            return m[0] if word == own else f"[`{m[1]}`](#{target})"
        near = [f"{here.split('/')[0]}/{word}"] * (
            own is None
        )  # in a docstring a plain word is a parameter
        page = next(
            (
                p
                for p in [*near, word.replace(".", "/") * ("." in m[1])]
                if p in _pages() and p != here
            ),
            None,
        )
        return m[0] if page is None else f"[`{m[1]}`](/{page}.ipynb)"

    def chapter(m):
        page = _numbered().get(m[2])
        return m[0] if page in (None, here) else f"[{m[0]}](/{page}.ipynb)"

    parts = re.split(
        r"(?s)(```.*?```|^#+ [^\n]*$|\[[^\]]*\]\([^)]*\)|\$[^$\n]+\$|^\([\w.-]+\)=)", md, flags=re.M
    )

    def plain(p):
        return re.sub(
            r"\b([Cc]hapter )(\d\d)\b",
            chapter,
            re.sub(r"(?<!`)`([A-Za-z_][\w.]*(?:\(\))?)`(?!`)", link, p),
        )

    return "".join(p if k % 2 else plain(p) for k, p in enumerate(parts))


@lru_cache
def _numbered():
    "Chapter number -> page, the first where two share one."
    return {p.stem[:2]: page_of(p) for p in reversed(chapters()) if p.stem[:2].isdigit()}


@lru_cache
def _pages():
    return {page_of(p) for p in chapters()} - {"index"}


def where(word, here, names, sure=False):
    "The target that a name written on page `here` means, or None: the page's own, the wing's, then the only one; plain words only when written close to home or as a call."
    found = names.get(word, [])
    module, wing = here.replace("/", "."), here.split("/")[0]
    for near in (lambda m: m == module, lambda m: "." in m and m.split(".")[0] == wing):
        close = [t for m, t in found if near(m)]
        if len(close) == 1:
            return close[0]
    plain = re.fullmatch(r"[a-z]+", word) is not None
    return found[0][1] if len(found) == 1 and (sure or not plain) else None


def documented(pages):
    "Where names can be linked to, from what the processed notebooks document: name -> [(module, target)]; also as module.name."
    names = {}
    for source, nb in pages:
        module = page_of(source).replace("/", ".")
        for cell in nb.cells:
            found = (
                re.search(r"show_doc\(([\w.]+)", cell.source) if cell.cell_type == "code" else None
            )
            if not (found and cell.outputs):
                continue
            for key in (found[1], f"{module}.{found[1]}"):
                names.setdefault(key, []).append((module, target_of(module, found[1])))
    return names


def anchor_items(nb, source):
    "Put a target before each cell that says what of the papers it shows."
    seen = set()
    for cell in nb.cells:
        if cell.cell_type != "markdown":
            continue
        labels = [
            item.label
            for item in shown_items(cell.source, source)
            if item.label not in seen and not seen.add(item.label)
        ]
        cell.source = re.sub(
            r"<!--\s*shows:.*?-->\n*", "", cell.source
        )  # a target before a comment would be lost with it
        for label in labels:
            cell.source = f"({label})=\n\n{cell.source or '&nbsp;'}"
    return nb
