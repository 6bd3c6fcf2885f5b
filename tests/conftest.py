"A job in the background inherits a deaf ear for Ctrl-C, and so would the processes that tests start and interrupt."

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
