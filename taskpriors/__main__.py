"The command `taskpriors`, also where its script is not on the path: `python -m taskpriors`."

import sys

from .tools.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
