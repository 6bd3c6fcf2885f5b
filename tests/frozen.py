"Imported first by the server of tests/forks.py: no collection looks again at what it imports."

import gc
import importlib
import sys
from contextlib import suppress

from forks import IMPORTED, NEEDLESS, rooms
from matplotlib.backends import backend_registry

gc.disable()
sys.modules[NEEDLESS] = None
for name in [*IMPORTED.split(), *rooms()]:
    with suppress(ImportError):
        importlib.import_module(name)
sys.modules.pop(NEEDLESS)
backend_registry.list_all()  # reads which packages offer one, as each fork would
gc.collect()
gc.freeze()
gc.enable()
