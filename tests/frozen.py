"Imported last by the server of tests/forks.py: no collection looks again at what came before."

import gc

from matplotlib.backends import backend_registry

backend_registry.list_all()  # reads which packages offer one, as each fork would
gc.collect()
gc.freeze()
