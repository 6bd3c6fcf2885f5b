"""
---
title: What nbdev runs before it would call Quarto
---
"""

# nbdev executes a Python file with front matter when it processes the notebooks, and an exit of
# this file ends nbdev's command: docs/decisions/nbdev_commands.md.

import subprocess
import sys
from pathlib import Path

from nbdev.config import get_config

command = Path(sys.argv[0]).stem
if command in ("nbdev_readme", "nbdev_prepare"):
    root = get_config().config_path
    sys.exit(subprocess.run([sys.executable, "docs/build.py", "--readme"], cwd=root).returncode)
sys.exit(
    f"{command} has changed nothing, because this site is made without Quarto: "
    "`python docs/build.py` builds it in _docs."
)
