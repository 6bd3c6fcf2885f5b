"The package's metadata is settings.ini; setuptools reads it through this file."

import sys
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

root = Path(__file__).parent
parser = ConfigParser(delimiters=["="])
parser.read(root / "settings.ini", encoding="utf-8")
cfg = parser["DEFAULT"]

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(root / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    project_urls={"Documentation": cfg["doc_host"] + cfg["doc_baseurl"]},
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=cfg["keywords"],
    # A path in place of a finder: in the folder above a clone, which has the package's name, the
    # installed package comes before the clone, which is a folder without `__init__.py`.
    package_dir={"": "."},
    packages=find_packages(include=["taskpriors", "taskpriors.*"]),
    package_data={
        "taskpriors": [
            "*.mplstyle",
            "*.pyi",
            "py.typed",
            "report/*.html",
            "report/*.js",
            "report/*.toml",
        ],
        "taskpriors.inputs": ["model_names.toml"],
        "taskpriors.tools": ["commands.toml", "label_sheet.html"],
        "taskpriors.papers": ["*.csv", "*.toml"],
        "taskpriors.transfer": ["metrics.toml", "record.json"],
        "taskpriors.rank": [
            "forecast.toml",
            "reference_models.toml",
            "pairs.toml",
            "reliability.json",
        ],
    },
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require={
        "dev": cfg["dev_requirements"].split(),
        **{name: cfg[f"{name}_requirements"].split() for name in cfg["extras"].split()},
    },
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    scripts=["docs/quarto"] if "editable_wheel" in sys.argv else [],  # for contributors only
    zip_safe=False,
)
