"Sphinx configuration of the site; `docs/build.py` stages the notebooks and calls it."
import configparser
from pathlib import Path

_root = Path(__file__).parent.parent
_cfg = configparser.ConfigParser(delimiters=["="])
_cfg.read(_root/"settings.ini", encoding="utf-8")
_cfg = _cfg["DEFAULT"]

project, author, release = _cfg["lib_name"], _cfg["author"], _cfg["version"]
copyright = _cfg["copyright"]
extensions = ["myst_nb", "sphinx-mathjax-offline"]
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["mystnb.unknown_mime_type", "myst.header"]  # nbdev puts names at level 3 wherever they stand

html_theme = "furo"
html_title = project
html_static_path = [str(Path(__file__).parent/"_static")]
html_css_files = ["taskpriors.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c94", "color-brand-content": "#0b5c94", "color-brand-visited": "#6b3fa0"},
    "dark_css_variables": {"color-brand-primary": "#8ecbf5", "color-brand-content": "#8ecbf5", "color-brand-visited": "#cdb4f0"},
}
