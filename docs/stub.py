"""Write `taskpriors/__init__.pyi`, by which type checkers see the names that load when first used.

python docs/stub.py          # write it
python docs/stub.py --check  # fail if it is not what would be written
"""

import argparse
import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "taskpriors"
STUB = PACKAGE / "__init__.pyi"


def offered():
    "Module -> the names that `taskpriors` offers from it, as `__init__.py` lists them."
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "_NAMES":
            return {k: v.split() for k, v in ast.literal_eval(node.value).items()}
    raise SystemExit("docs/stub.py: taskpriors/__init__.py must assign _NAMES.")


def stub():
    "The text of the stub: one import a name, as type checkers want what is re-exported."
    lines = ["# Written by docs/stub.py from the names in __init__.py.", ""]
    for module, names in sorted(offered().items()):
        lines += [f"from .{module} import {name} as {name}" for name in sorted(names)]
    return "\n".join([*lines, "", "__version__: str", ""])


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--check", action="store_true", help="fail if the stub is not current")
    if not args.parse_args().check:
        STUB.write_text(stub(), encoding="utf-8")
    elif not STUB.is_file() or STUB.read_text(encoding="utf-8") != stub():
        raise SystemExit("docs/stub.py: the stub is not current. Type `python docs/stub.py`.")


if __name__ == "__main__":
    main()
