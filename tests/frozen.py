"Imported last by the server of tests/forks.py: no collection looks again at what came before."

import gc

gc.collect()
gc.freeze()
