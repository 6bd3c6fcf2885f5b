"Convert notebooks processed by nbdev to pages for MyST-NB."

import ast
import base64
import configparser
import io
import re
import textwrap
from functools import cache
from itertools import count

import nbformat
import numpy as np
from notebooks import (
    ROOT,
    BuildError,
    chapters,
    explained_methods,
    module_of,
    module_of_page,
    notebook_of,
    page_of,
    shown_items,
    target_of,
    target_of_anchor,
)
from PIL import Image
from studies import STUDIES, said_of


def adapt(nb, source, names):
    """Turn a processed notebook into a page's.

    `source` is its path in the repository; `names` maps each public name to its documentation.
    """
    cells = []
    has_title = False
    proves = any(re.search(PROOF, c.source, re.M) for c in nb.cells if c.cell_type == "markdown")
    claims = count(1)
    for cell in nb.cells:
        if cell.cell_type == "raw" and cell.source.strip().startswith("---"):
            cells.append(_markdown(_title(cell.source, source), "title"))
            if proves or source.parent.name in ("prior", "synbench", "transfer"):
                link = "[Symbols used in the proofs](../start/17_notation.ipynb)"
                cells.append(_markdown(_links(link, source, names), "notation"))
            has_title = True
        elif cell.cell_type == "markdown":
            text = _theorems(cell.source, proves, page_of(source), claims)
            cell.source = _prose(text, source, names)
            cells += [cell] if cell.source.strip() else []
        elif cell.cell_type == "code":
            sections = any(re.search(r"^## ", c.source, re.M) for c in cells[1:])
            cells += _code(cell, source, names, "###" if sections else "##")
    if not has_title:
        reason = "no title: the second cell must be '# Title' and one '> sentence'"
        raise BuildError(source, 1, reason)
    nb.cells = _joined(cells) if source.stem == "index" else cells
    nb.metadata = {
        "kernelspec": {"display_name": "python3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "og:description": _description(nb.cells[0].source),
    }
    headings = sum(len(re.findall(r"^##+ ", c.source, re.M)) for c in nb.cells)
    if headings > MOST_HEADINGS:
        nb.metadata["tocdepth"] = 2
    return nb


def _prose(text, source, names):
    "A markdown cell with its links; MyST needs blank lines around displayed formulas."
    text = re.sub(r"<!--\s*WARNING: THIS FILE.*?-->", "", text)
    text = _links(text, source, names)
    text = re.sub(r"(?<=\n)(\$\$[^$]+\$\$)(?=\n)", r"\n\1\n", text)
    return re.sub(r"(?<=\n)(> \$\$[^$]+\$\$)(?=\n)", r">\n\1\n>", text)  # inside a quotation


MOST_HEADINGS = 30  # with more, only sections are listed beside the text, on one screen
PROOF = r"^(?:\*Proof\.\*|\*\*Proof\.\*\*) "
CLAIM = r"^\*\*Claim\*\*(?: \(((?:[^()]|\([^()]*\))*)\))?\. ?|^\*\*Claim\.\*\* ?"
QED = r"∎|\$\\(?:black)?square\$|\\(?:black)?square\$\$"
ENDS_CLAIM = rf"{PROOF}|^#+ |^<!--|^\*\*\w"
ITEM = r"\b(Theorem|Lemma|Proposition|Definition|Algorithm)s? \w"


def _theorems(text, proves, page, claims):
    """Claims become numbered blocks (sphinx-proof), and proofs blocks that unfold (Sphinx).

    A claim is a theorem if its page proves something or its source is an item of a paper. The first
    of `page` is labelled by the page alone, the others by their number as well (from `claims`).
    """
    found = re.search(CLAIM, text, re.M)
    if found and (proves or re.search(ITEM, found[1] or "")):
        rest = text[found.end() :]
        end = re.search(ENDS_CLAIM, rest, re.M)
        body, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
        head = f":::::{{prf:theorem}} {found[1] or ''}".rstrip()
        number = next(claims)
        label = f":label: claim-{page.replace('/', '-')}{'' if number == 1 else f'-{number}'}"
        text = f"{text[: found.start()]}{head}\n{label}\n\n{body.strip()}\n:::::\n\n{after}"
    found = re.search(PROOF, text, re.M)
    if found:
        rest = text[found.end() :]
        end = re.search(QED, rest)
        cut = end.end() if end else len(rest)
        head = f":::::{{admonition}} Proof\n:class: proof\n{_folded()}"
        text = f"{text[: found.start()]}{head}\n{rest[:cut].strip()}\n:::::\n\n{rest[cut:].strip()}"
    return text


def _folded():
    "The option that makes a block collapsible, if Sphinx has it (8.2 needs Python 3.11)."
    import sphinx

    return ":collapsible: closed\n" if sphinx.version_info >= (8, 2) else ""


def _description(title):
    "The sentence below the title, without markup."
    said = (title.split("\n\n") + [""])[1]
    return re.sub(r"[*`$]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", said))


def _joined(cells):
    "Join imports with the code that needs them, for the front page and the README."
    out = []
    for c in cells:
        last = out[-1] if out else None
        if last is not None and c.cell_type == last.cell_type == "code" and not last.outputs:
            c.source = f"{out.pop().source}\n\n{c.source}"
        out.append(c)
    return out


@cache
def settings():
    cfg = configparser.ConfigParser(delimiters=["="])
    cfg.read(ROOT / "settings.ini", encoding="utf-8")
    return cfg["DEFAULT"]


def url(rel):
    return f"{settings()['git_url']}/blob/{settings()['branch']}/{rel}"


def file_of(module):
    "Path of a module in the repository."
    return f"taskpriors/{module.replace('.', '/')}.py"


def _markdown(text, id):  # a random id would make every page new in every build
    return nbformat.v4.new_markdown_cell(text, id=id)


def _title(front, source):
    import yaml

    meta = yaml.safe_load(front.strip().strip("-"))
    rel = source.relative_to(ROOT).as_posix()
    said = meta.get("description", "")
    foot = "" if source.stem == "index" else "\n\n" + " · ".join(_ways(rel, module_of(source)))
    run = f"\n\n*{said_of(source)}* {_again(source)}" if source.parent == STUDIES else ""
    return f"# {meta['title']}\n\n{said}{run}{foot}"


def _again(source):
    "The command that runs a study, and a link to its data."
    command = f"TASKPRIORS_DATA=DATA python docs/studies.py --run {source.stem[:2]}"
    data = "[The data of the studies](/papers/study_data.ipynb)"
    return f"To run it again: `{command}`. {data} describes the folder DATA."


def _ways(rel, module):
    "Links to the notebook, its download, its editor and its module."
    repository = settings()["git_url"].removeprefix("https://github.com/")
    places = f"{repository}/blob/{settings()['branch']}/{rel}"
    ways = {
        "Open this notebook": url(rel),
        "edit": url(rel).replace("/blob/", "/edit/", 1),
        "Colab": f"https://colab.research.google.com/github/{places}",
    }
    if module is not None:
        ways["its module"] = url(file_of(module))
    links = [f"[{name}]({target}){{.notebook-link}}" for name, target in ways.items()]
    return [
        *links[:1],
        f"{{download}}`download </notebooks/{rel.removeprefix('nbs/')}>`",
        *links[1:],
    ]


USER_FOLDERS = ("start", "inputs", "rank", "report", "tools", "papers")  # where checks are folded
CHECK = r"(?m)^ *(assert |assert_\w+\(|test_\w+\(|with expect_fail\()"
TAGS = {
    ("echo", "false"): "remove-input",
    ("code-fold", "true"): "hide-input",
    ("code-fold", "report"): "hide-input",
}


def _code(cell, source, names, level):
    "A code cell, or the documentation by which `show_doc` replaced it."
    directives = re.findall(r"^#\|\s*([\w-]+):?\s*(.*)$", cell.source, re.M)
    name = documented_name(cell)
    if name is not None:
        text = _doc(name, source, level, names)
        return [_markdown(text, re.sub(r"\W", "-", f"doc-{name}"))]
    cell.metadata["tags"] = [TAGS[d] for d in directives if d in TAGS]
    cell.source = re.sub(r"^#\|.*\n?", "", cell.source, flags=re.M).strip("\n")
    alt = next((v for k, v in directives if k == "fig-alt"), None)
    if alt:
        cell.metadata["mystnb"] = {"image": {"alt": alt.strip('"')}}
    if source.parent.name in USER_FOLDERS and not cell.outputs and re.search(CHECK, cell.source):
        cell.metadata["tags"].append("hide-input")
        cell.metadata["mystnb"] = {"code_prompt_show": "A check, passed"}
    for out in cell.outputs:
        _output(out, cell, source, names)
    return [cell] if cell.source.strip() or cell.outputs else []


def documented_name(cell):
    "The name whose documentation replaces a cell, or None."
    if cell.cell_type == "code" and "#| output: asis" in cell.source:
        found = re.search(r"^show_doc\((\w[\w.]*)", cell.source, re.M)
        return found[1] if found else None


def _output(out, cell, source, names):
    "Links, figures and long lines of what a cell showed."
    data = out.get("data", {})
    if "text/markdown" in data:
        data["text/markdown"] = _links(data["text/markdown"], source, names)
    if "image/png" in data:
        data.pop("text/plain", None)  # the text of a figure object says nothing to a reader
        if _is_drawing(data["image/png"]):
            shown = cell.metadata.setdefault("mystnb", {}).setdefault("image", {})
            shown["classes"] = "drawing"
    if "text/plain" in data:
        data["text/plain"] = _fold(data["text/plain"])
    if "text" in out:
        out["text"] = _fold(out["text"])


DRAWN = 0.85  # share of a drawing that is white: pictures of pixels and filled areas have less


def _is_drawing(png):
    "Whether a picture has a white background and can be inverted on a dark page."
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("L")
    return bool((np.asarray(picture) > 245).mean() > DRAWN)


def _fold(text, width=100):
    "Fold long lines of printed sentences; a line with columns stays whole and scrolls."

    def whole(line):
        return len(line) <= width or re.search(r"\S {2,}\S", line)

    def fold(line):
        return textwrap.fill(
            line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )

    return "\n".join(line if whole(line) else fold(line) for line in text.split("\n"))


def _doc(name, source, level, names):
    "Documentation of a name: index entry, target, heading, signature, docstring and source."
    module = module_of(source)
    node = definition(module, name)
    if node is None:
        reason = f"{name} is exported, and no function or class of its module"
        raise BuildError(source, None, reason)
    entries = [_entry(module, name, level, _links(_body(node, module), source, names, own=name))]
    if isinstance(node, ast.ClassDef):
        for method in explained_methods(node):
            full = f"{name}.{method.name}"
            text = _links(_body(method, module), source, names, own=full)
            entries.append(_entry(module, full, level + "#", text))
    return "\n\n".join(entries)


def _entry(module, name, level, body):
    "An index entry, a link target, a heading and the text."
    index = f"```{{index}} single: {name} (taskpriors.{module})\n```"
    return f"{index}\n\n({target_of(module, name)})=\n{level} `{name}`\n\n{body}"


def _body(node, module):
    "Signature, docstring, source and, for a class, its methods."
    parts = [f"```python\n{signature(node, module)}\n```", ast.get_docstring(node) or ""]
    parts.append(f"[source]({url(file_of(module))}#L{node.lineno}){{.source-link}}")
    if isinstance(node, ast.ClassDef):
        parts.append("\n".join(f"* {m}" for m in _methods(node, *_parsed(module))))
    return "\n\n".join(part for part in parts if part)


def signature(node, module):
    "The signature of a definition as it is written, with comments."
    body, lines = _parsed(module)
    if isinstance(node, ast.ClassDef):
        fields = _fields(node, body, lines)
        if fields:
            return f"class {node.name}(\n{fields}\n)"
        start = next(
            (m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None
        )
        if start is None:
            return f"class {node.name}"
        return textwrap.dedent(_head(start, lines)).replace("def __init__", f"class {node.name}", 1)
    return textwrap.dedent(_head(node, lines))


def _head(node, lines):
    "The lines of a function before its body."
    last = node.body[0].lineno - 1
    return "\n".join(lines[node.lineno - 1 : max(last, node.lineno)])


@cache
def _parsed(module):
    text = (ROOT / file_of(module)).read_text(encoding="utf-8")
    return ast.parse(text).body, text.splitlines()


def definition(module, name):
    "The function or class of that name in a module."
    found = [
        n
        for n in _parsed(module)[0]
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name.split(".")[-1]
    ]
    return found[-1] if found else None


def _fields(node, body, lines):
    "The fields of a dataclass with their comments, those of a base in the same module first."
    names = [getattr(base, "id", None) for base in node.bases]
    bases = [n for n in body if isinstance(n, ast.ClassDef) and n.name in names]
    fields = [_fields(base, body, lines) for base in bases]
    for n in node.body:
        if isinstance(n, ast.AnnAssign):
            field = "\n".join(lines[n.lineno - 1 : n.end_lineno]).strip()
            code, _, comment = lines[n.end_lineno - 1].partition("  # ")
            if n.lineno == n.end_lineno:
                field = code.strip()
            fields.append(f"    {field}," + (f"  # {comment}" if comment else ""))
    return "\n".join(f for f in fields if f)


def _methods(node, body, lines):
    "Public methods and properties of a class, with the first line of their docstrings."
    silent = []
    explained = list(explained_methods(node))
    for m in node.body:
        if not isinstance(m, ast.FunctionDef) or m.name.startswith("_") or m in explained:
            continue
        is_property = any("property" in ast.unparse(d) for d in m.decorator_list)
        call = m.name if is_property else f"{m.name}({_arguments(m.args)})"
        doc = (ast.get_docstring(m) or "").split("\n")[0]
        doc = doc or lines[m.lineno - 1].partition("  # ")[2]
        if doc:
            yield f"`.{call}`: {doc}"
        else:
            silent.append(f"`.{call}`")
    if silent:
        yield ", ".join(silent)


def _arguments(arguments):
    "The parameters of a method without `self`, as they are written."
    kept = ast.parse(f"def f({ast.unparse(arguments)}): pass").body[0].args
    for a in (*kept.posonlyargs, *kept.args, *kept.kwonlyargs):
        a.annotation = None
    kept.args = kept.args[1:]
    return ast.unparse(kept)


def _links(md, source, names, own=None):
    "Links to our site and to notebooks become links between pages; names in backticks, links."
    site = r"https://taskpriors\.github\.io/taskpriors/((?!_static)[\w/]+)\.html"
    md = re.sub(
        rf"\]\({site}#([\w.]+)\)",
        lambda m: f"](#{target_of_anchor(module_of_page(m[1]), m[2])})",
        md,
    )
    pages = notebook_of()
    md = re.sub(rf"\]\({site}\)", lambda m: f"](/{m[1]}.{'ipynb' if m[1] in pages else 'md'})", md)

    def notebook(m):
        target = (source.parent / m[1]).resolve()
        if not target.exists():
            raise BuildError(source, None, f"a link to {m[1]}, which does not exist")
        return f"](/{page_of(target)}.ipynb)"

    md = re.sub(r"\]\((?!/|https?:)([^)\s#]+\.ipynb)(?:#[^)]*)?\)", notebook, md)
    return _link_names(md, source, names, own)


def _link_names(md, source, names, own):
    "Names of functions and modules in backticks become links, where the text is plain prose."
    here = page_of(source)
    wing = (module_of(source) or here.replace("/", ".")).split(".")[0]

    def link(m):
        word = m[1].removeprefix("taskpriors.")
        target = where(word.removesuffix("()"), source, names, sure=word.endswith("()"))
        if target is not None:
            return m[0] if word == own else f"[`{m[1]}`](#{target})"
        modules = [word] if "." in m[1] else []
        if own is None:  # in a docstring a plain word is a parameter
            modules.append(f"{wing}.{word}")
        page = next((_page_of_module()[k] for k in modules if k in _page_of_module()), here)
        return m[0] if page == here else f"[`{m[1]}`](/{page}.ipynb)"

    code_or_link = r"(?s)(```.*?```|^#+ [^\n]*$|\[[^\]]*\]\([^)]*\)|\$[^$\n]+\$|^\([\w.-]+\)=)"
    parts = re.split(code_or_link, md, flags=re.M)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"(?<!`)`([A-Za-z_][\w.]*(?:\(\))?)`(?!`)", link, parts[k])
    return "".join(parts)


@cache
def _page_of_module():
    return {module_of(p): page_of(p) for p in chapters() if module_of(p)}


def where(word, source, names, sure=False):
    """The target that a name in a notebook means, or None.

    The notebook's own name comes first, then its wing's, then the only one there is; a plain word
    counts only when it is written close to home or as a call.
    """
    found = names.get(word, [])
    module = module_of(source) or page_of(source).replace("/", ".")
    wing = module.split(".")[0]

    def at_home(m):
        return m == module

    def in_wing(m):
        return "." in m and m.split(".")[0] == wing

    for near in (at_home, in_wing):
        close = [target for m, target in found if near(m)]
        if len(close) == 1:
            return close[0]
    plain = re.fullmatch(r"[a-z]+", word) is not None
    return found[0][1] if len(found) == 1 and (sure or not plain) else None


def documented(pages):
    "Where names can be linked to: name, and module.name -> [(module, target)]."
    names = {}
    for source, nb in pages:
        module = module_of(source)
        for cell in nb.cells:
            name = documented_name(cell)
            if name is None:
                continue
            node = definition(module, name)
            shown = [name]
            if isinstance(node, ast.ClassDef):
                shown += [f"{name}.{m.name}" for m in explained_methods(node)]
            for known in shown:
                for key in (known, f"{module}.{known}"):
                    names.setdefault(key, []).append((module, target_of(module, known)))
    return names


def anchor_items(nb, source):
    "Insert a link target before each cell that marks an item of a paper."
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
