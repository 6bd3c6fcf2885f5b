"Imported first by the server of tests/forks.py: no collection looks again at what it imports."

import gc
import importlib
import sys
from contextlib import suppress

from forks import IMPORTED, NEEDLESS, rooms

gc.disable()
sys.modules[NEEDLESS] = None
for name in [*IMPORTED.split(), *rooms()]:
    with suppress(ImportError):
        importlib.import_module(name)
sys.modules.pop(NEEDLESS)
gc.collect()
gc.freeze()
gc.enable()
